"""Store: the tips of all open gates, streamed by two git processes that work at the same time.

`for-each-ref` alone would do, but it reads every object before it prints the first: with `cat-file` behind it, ten
thousand tips take half as long, and whoever reads them works meanwhile.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from ...errors import GitFailed
from ...record.summary import absent
from .process import Git

# Larger ones are given back to the system each time, and taking them anew costs as much as reading them.
CHUNK = 1 << 16
PIPE = 1 << 20
# No tip comes near. Of a larger object, which anybody can push there, only its beginning is kept.
MOST_TIP = 1 << 22
KEPT = 1 << 12


class Tips:
    """Begun when made, and read once."""

    def __init__(self, git: Git, folder: str) -> None:
        self.mark = os.urandom(12).hex().encode()
        names = "--format=%(objectname) %(refname)"
        self.refs = git.pipe("for-each-ref", names, folder.rstrip("/"), stdin=subprocess.DEVNULL)
        form = f"{self.mark.decode()} %(rest) %(objecttype) %(objectsize) %(objectname)"
        self.objects = git.pipe("cat-file", "--buffer", f"--batch={form}", stdin=self.refs.stdout)
        if self.refs.stdout is not None:
            self.refs.stdout.close()
        widen(self.objects.stdout)

    def runs(self) -> Iterator[bytes]:
        """Whole tips, many at a time; each begins with a line that begins with the mark."""
        rest, out = b"", self.objects.stdout
        try:
            while chunk := out.read(CHUNK) if out else b"":
                known = len(rest) - len(self.mark)
                rest += chunk
                cut = rest.rfind(self.mark, max(known, 0))
                if cut > 0:
                    yield self.checked(rest[:cut])
                    rest = rest[cut:]
                elif len(rest) > MOST_TIP:
                    rest = rest[:KEPT] + rest[-len(self.mark) :]
            if rest:
                yield self.checked(rest)
            codes = [self.refs.wait(), self.objects.wait()]
        finally:
            self.close()
        if any(codes):
            raise GitFailed(f"git failed to list the gates: exit {max(codes)}", status=max(codes))

    def checked(self, run: bytes) -> bytes:
        if not run.startswith(self.mark):
            raise absent(run)
        return run

    def close(self) -> None:
        """Also before all was read: nobody waits for the rest."""
        for running in (self.refs, self.objects):
            if running.poll() is None:
                running.kill()
                running.wait()
        if self.objects.stdout is not None:
            self.objects.stdout.close()


def widen(pipe: IO[bytes] | None) -> None:
    """Let git go on while our own code is being loaded: as it comes, a pipe is full after a hundred tips."""
    with suppress(ImportError, OSError):  # it cannot be done everywhere, and a user may have no more of them
        import fcntl

        if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
