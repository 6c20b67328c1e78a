"""Test bed: the command as a process of its own, without loading it anew each time.

Run as a program, it loads the command once; for each run that it is asked for it forks, and the fork goes on as the
installed command does. What is tested there is a true process: its exit code, its signals, its end without clean-up.
Only how it starts is not.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

# What Python and the C library read when they start: where one of them is another, so is the process.
AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "DYLD_", "MALLOC_")
# Loaded beside the verbs. libgit2 looks at its surroundings when it is loaded: each process does that itself.
BESIDE = ("gitgate.flows.program", "gitgate.cli.process", "gitgate.api", "gitgate.store.remote.push")
LENGTH = struct.Struct(">I")


class Ended(NamedTuple):
    """What a run left behind, as `subprocess` tells it: minus the signal that killed it."""

    code: int
    out: bytes
    err: bytes


class Loaded:
    """The process that has loaded the command, begun when it is first needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None
        self.surroundings: dict[str, str] = {}

    def may_run(self, env: Mapping[str, str]) -> bool:
        """Whether a process that starts with these variables would be as one that is forked."""
        if any(name.startswith(("COVERAGE_", "COV_CORE_")) for name in env):
            return False
        return self.process is None or at_start(env) == self.surroundings

    def begin(self, command: Path) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), str(command)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None,
                pass_fds=[theirs.fileno()],
            )
        self.surroundings = at_start(os.environ)
        self.channel = ours
        return ours

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path | None,
        env: Mapping[str, str],
        input: bytes = b"",
        timeout: float = 60,
        script: str = "",
    ) -> Ended:
        """As `subprocess.run`. With `script` it is that which runs, as by `python -c`."""
        channel = self.channel or self.begin(Path(words[0]))
        job = {"words": list(words), "cwd": str(cwd or Path.cwd()), "env": dict(env), "script": script}
        with (
            tempfile.TemporaryFile() as fed,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            fed.write(input)
            fed.seek(0)
            data = json.dumps(job).encode()
            socket.send_fds(channel, [LENGTH.pack(len(data))], [file.fileno() for file in (fed, out, err)])
            channel.sendall(data)
            number = int(said(channel)["pid"])
            channel.settimeout(timeout)
            try:
                code = int(said(channel)["code"])
            except TimeoutError as late:
                channel.settimeout(None)
                os.kill(number, signal.SIGKILL)
                said(channel)
                raise subprocess.TimeoutExpired(list(words), timeout, content(out), content(err)) from late
            channel.settimeout(None)
            return Ended(code, content(out), content(err))

    def end(self) -> None:
        if self.process is not None and self.channel is not None:
            self.channel.close()
            self.process.wait(30)
            self.process = self.channel = None


LOADED = Loaded()


def at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


def content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def received(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = channel.recv(size - len(data))
        if not more:
            raise EOFError("the other end is gone")
        data += more
    return data


def said(channel: socket.socket) -> dict[str, Any]:
    (size,) = LENGTH.unpack(received(channel, LENGTH.size))
    found: dict[str, Any] = json.loads(received(channel, size))
    return found


def say(channel: socket.socket, **words: int) -> None:
    data = json.dumps(words).encode()
    channel.sendall(LENGTH.pack(len(data)) + data)


def load() -> None:
    """Everything that a verb begins with."""
    from gitgate.cli.main import SECTIONS

    verbs = {f"gitgate.cli.{module}" for section in SECTIONS.values() for module, _ in section.values()}
    for name in (*sorted(verbs), *BESIDE):
        importlib.import_module(name)
    if "pygit2" in sys.modules:
        raise RuntimeError("libgit2 was loaded, and would look at these surroundings for each process")


def serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork for each run that is asked for, and tell how it ended. In a fork: what it is to run."""
    while True:
        header, files, _, _ = socket.recv_fds(channel, LENGTH.size, 3)
        if not header:
            return None
        job: dict[str, Any] = json.loads(received(channel, LENGTH.unpack(header)[0]))
        number = os.fork()
        if not number:
            for place, file in enumerate(files):
                os.dup2(file, place)
                os.close(file)
            return job
        for file in files:
            os.close(file)
        with suppress(OSError):
            say(channel, pid=number)
            say(channel, code=os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))


def become(job: dict[str, Any]) -> None:
    """The process that was asked for, up to its first line."""
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    sys.argv = job["words"]
    if job["script"]:
        sys.argv[0] = "-c"
        exec(job["script"], {"__name__": "__main__"})  # noqa: S102 - as `python -c` would
        return
    from gitgate.cli.process import run

    run()


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    sys.path[0] = str(Path(sys.argv[2]).parent)  # as of the installed command
    load()
    gc.freeze()
    with channel:
        job = serve(channel)
    if job is not None:
        gc.unfreeze()
        become(job)


if __name__ == "__main__":
    main()
