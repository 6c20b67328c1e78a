"""Store: the one place that starts git.

Everything that git inherits is decided here, so that no hook, alias, replace ref or foreign `GIT_INDEX_FILE` of the
caller changes what a command means.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ...document.values import NamedTuple
from ...errors import Failure, GitFailed

# Variables that name a repository or change how objects are read; inherited from a hook or an outer git command they
# would point our commands at the wrong place.
KEPT_GIT_VARIABLES = frozenset(
    """GIT_TEMPLATE_DIR GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM GIT_DEFAULT_HASH GIT_DEFAULT_REF_FORMAT
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
    GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES""".split()
)

# How git reaches other repositories, and with whose configuration: it names no repository of ours, so that a runner that
# outlives its caller has it as well. (What is not git's own, as SSH_AUTH_SOCK and https_proxy, nobody takes away.)
REACHING = frozenset(
    """GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_ASKPASS GIT_TERMINAL_PROMPT GIT_EXEC_PATH GIT_ALLOW_PROTOCOL
    GIT_PROTOCOL_FROM_USER GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_CONFIG_PARAMETERS
    GIT_CONFIG_COUNT""".split()
)
REACHING_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_")

KEPT_PREFIXES = ("GIT_TRACE",)

SEALED = {
    "LC_ALL": "C",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
}
HOOKS_OFF = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


Piped = subprocess.Popen[bytes]


class GitResult(NamedTuple):
    code: int
    out: bytes
    err: str


class Started(NamedTuple):
    """A git command under way, whose input was empty. It is either waited for or closed."""

    name: str
    process: Piped

    def result(self) -> GitResult:
        out, err = self.process.communicate()
        return GitResult(self.process.returncode, out, err.decode("utf-8", "replace").strip())

    def close(self) -> None:
        """Nobody wants to know any more."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


def reaches(name: str) -> bool:
    """Whether a variable tells git how to reach other repositories."""
    return name in REACHING or name.startswith(REACHING_PREFIXES)


def sealed_environment(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without the variables that would redirect git, and with the ones that make it predictable."""
    kept = {
        k: v
        for k, v in env.items()
        if not k.startswith("GIT_") or k in KEPT_GIT_VARIABLES or k.startswith(KEPT_PREFIXES) or reaches(k)
    }
    return {**kept, **SEALED}


class Git:
    """Runs git in one directory, sealed from what surrounds the caller."""

    def __init__(
        self, directory: Path, env: Mapping[str, str], *, config: Sequence[str] = (), hooks: bool = False
    ) -> None:
        self.directory = directory
        self.env = sealed_environment(env)
        off = () if hooks else HOOKS_OFF
        self.prefix = ["git", *off, *(part for item in config for part in ("-c", item))]

    def run(
        self,
        *args: str,
        input: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float | None = None,
    ) -> GitResult:
        """Run `git *args`; a failure raises GitFailed with git's own words unless `check` is off."""
        try:
            done = subprocess.run(
                [*self.prefix, *args],
                input=input,
                capture_output=True,
                cwd=self.directory,
                env={**self.env, **env} if env else self.env,
                timeout=timeout,
                check=False,
            )
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise no_git(self.directory) from missing
        except subprocess.TimeoutExpired as late:
            raise GitFailed(f"git {args[0]} did not finish within {timeout:g} s", status=124) from late
        result = GitResult(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())
        if check and result.code:
            raise failure(args[0], result)
        return result

    def out(self, *args: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        return self.run(*args, input=input, env=env).out

    def text(self, *args: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Standard output as text, without its one trailing newline."""
        return self.out(*args, input=input, env=env).decode("utf-8", "surrogateescape").removesuffix("\n")

    def ok(self, *args: str) -> bool:
        return self.run(*args, check=False).code == 0

    def begin(self, *args: str) -> Started:
        """Start `git *args` and go on; its outcome is for later."""
        return Started(args[0], self.pipe(*args, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))

    def pipe(
        self,
        *args: str,
        stdin: int | IO[bytes] | None = subprocess.PIPE,
        stderr: int = subprocess.DEVNULL,
    ) -> Piped:
        """A git process that is talked to over its pipes; the caller closes it."""
        try:
            return subprocess.Popen(
                [*self.prefix, *args],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self.directory,
                env=self.env,
            )
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise no_git(self.directory) from missing

    def records(self, *args: str, input: bytes = b"") -> Iterator[str]:
        """What git prints, split at `NUL` and a newline, without ever holding all of it. It reads all of `input` first."""
        with self.pipe(*args) as running:
            if running.stdin:
                running.stdin.write(input)
                running.stdin.close()
            rest = b""
            while chunk := running.stdout.read(1 << 18) if running.stdout else b"":
                *whole, rest = (rest + chunk).split(b"\0\n")
                yield from (part.decode("utf-8", "replace") for part in whole)
        if running.returncode:
            raise GitFailed(f"git {args[0]} failed with exit {running.returncode}", status=running.returncode)


def failure(command: str, result: GitResult) -> GitFailed:
    """In git's own words; that the repository is not ours to write has words that say what to do."""
    import re

    forbidden = re.search(
        r"insufficient permission for adding an object|(?:lock|create|open|write|update).*: (?:Permission denied|Read-only file system)",
        result.err,
    )
    if forbidden:
        line = next(line for line in result.err.splitlines() if forbidden[0] in line)
        return GitFailed(
            f"this repository may not be written: {re.sub('^(error|fatal): ', '', line)}",
            hint="have its files made writable for you, or work in a clone of your own: git clone",
            status=result.code,
            stderr=result.err,
        )
    full = re.search(r".*(?:No space left on device|Disk quota exceeded|File too large).*", result.err)
    if full:
        return GitFailed(
            f"the disk is full: {re.sub('^(error|fatal): ', '', full[0])}",
            hint="make room in the repository's place, then type the same again",
            status=result.code,
            stderr=result.err,
        )
    said = result.err or f"exit {result.code}"
    return GitFailed(f"git {command} failed: {said}", status=result.code, stderr=result.err)


def no_git(directory: Path) -> Failure:
    if directory.is_dir():
        return Failure("git is not on PATH", hint="install git 2.39 or later")
    return Failure(f"{directory} is not a directory")


# Seconds without a byte. A partial clone may have to fetch what is asked, so it is not short.
READ_TIMEOUT = 60.0


class TimedReader:
    """A pipe that is read for as long as something comes: a damaged object can leave git turning round in itself."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.poll = select.poll()
        self.poll.register(pipe, select.POLLIN)
        self.rest = b""

    def more(self) -> bytes:
        """What came next, empty at the end; TimeoutError where nothing did."""
        if not self.poll.poll(READ_TIMEOUT * 1000):
            raise TimeoutError(f"has said nothing for {READ_TIMEOUT:g} s")
        return os.read(self.pipe, 1 << 16)

    def line(self) -> bytes:
        while b"\n" not in self.rest and (came := self.more()):
            self.rest += came
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def exactly(self, size: int) -> bytes:
        """So many bytes, or as many as there are before the end."""
        parts, got = [self.rest], len(self.rest)
        while got < size and (came := self.more()):
            parts.append(came)
            got += len(came)
        whole = b"".join(parts)
        self.rest = whole[size:]
        return whole[:size]
