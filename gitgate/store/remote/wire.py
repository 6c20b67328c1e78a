"""Store: a conversation with another repository, and what git's words about a failed one mean.

Git is started so that it never hangs, never asks where nobody can answer, and runs no program that an address smuggles in.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import IO

from ...document import dataclass
from ...errors import DiskFull, Failure, GitFailed, PushRefused, RemoteUnable, RemoteUnreachable
from ..git import Repository, look_after, no_git, refuse_names
from . import Remote

LONGEST = 3600.0  # A server that trickles for ever is cut off, too.
END_TIMEOUT = 2.0

Progress = Callable[[str, int, int | None], None]
"""Told a stage, how many are done, and of how many."""

# Command-line settings win over the user's and the repository's.
PINNED = (
    "protocol.ext.allow=never",
    "protocol.fd.allow=never",
    "protocol.version=2",  # An older one sends every ref that the server has.
)


@dataclass(frozen=True)
class GitSpoken:
    """Output of a git command. `silenced`: it was ended because nothing had come for too long."""

    code: int
    out: list[str]
    err: list[str]
    silenced: bool = False


def terminal() -> bool:
    """Return whether somebody could answer a question for a password."""
    try:
        return os.isatty(0)
    except OSError:  # No standard input at all.
        return False


def surroundings(
    repo: Repository, remote: Remote, *, prompts: bool, named: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a conversation. `named`: settings of a remote; its name may hold `=`, which `-c`
    cannot take.
    """
    env = dict(repo.git.env)
    settings = dict(named or {})
    if remote.mirror:  # A push mirror: git would refuse refspecs.
        settings[f"remote.{remote.name}.mirror"] = "false"
    first = int(env.get("GIT_CONFIG_COUNT") or 0)
    for number, (key, value) in enumerate(settings.items(), first):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    if settings:
        env["GIT_CONFIG_COUNT"] = str(first + len(settings))
    if not prompts:
        env |= {"GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never", **batch_ssh(env, remote)}
    return env


def batch_ssh(env: dict[str, str], remote: Remote) -> dict[str, str]:
    """Return the setting that has OpenSSH ask nothing; any other program, or a wrapper of the user's, is left as
    it is.
    """
    command = env.get("GIT_SSH_COMMAND") or remote.ssh_command
    if not command and "GIT_SSH" in env:
        return {}
    command = command or "ssh"
    variant = env.get("GIT_SSH_VARIANT") or remote.ssh_variant
    program = PurePath(command.split()[0].strip("'\"")).name
    if variant not in ("", "auto", "ssh") or program not in ("ssh", "ssh.exe"):
        return {}
    return {"GIT_SSH_COMMAND": f"{command} -oBatchMode=yes"}


class SilenceLimit:
    """Limit of a git command's silence. Progress is a sign of life: a slow upload may take as long as it needs."""

    def __init__(
        self, process: subprocess.Popen[bytes], silence: float, longest: float, *, own_session: bool
    ) -> None:
        self.process = process
        self.silence = silence
        self.longest = longest
        self.own_session = own_session
        self.heard = self.started = time.monotonic()
        self.ended = threading.Event()
        self.silenced = False
        threading.Thread(target=self._reap, daemon=True).start()

    def sign_of_life(self) -> None:
        self.heard = time.monotonic()

    def wait(self) -> None:
        """Wait until the process has ended, by itself or by us."""
        while not self.ended.wait(max(0.0, self._left())):
            if self._left() <= 0:
                self.silenced = True
                self.stop()
                return

    def _left(self) -> float:
        return min(self.heard + self.silence, self.started + self.longest) - time.monotonic()

    def _reap(self) -> None:
        self.process.wait()
        self.ended.set()

    def stop(self) -> None:
        """Ask git to clean up after itself, then insist; its ssh and helpers go with it."""
        for sign in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            self._send(sign)
            if self.ended.wait(END_TIMEOUT):
                break
        if self.own_session:  # git is gone; an ssh that hangs in a connection may not be.
            self._send(signal.SIGKILL)

    def _send(self, sign: signal.Signals) -> None:
        try:
            if self.own_session:
                os.killpg(self.process.pid, sign)
            else:
                self.process.send_signal(sign)
        except ProcessLookupError:
            pass


class GitConversation:
    """Git command that talks to `remote`; `on_line` gets each line of its output, progress included.

    It has begun when this is made, and other things can be done until `end` waits for it. Left before its end, it is
    stopped.
    """

    def __init__(
        self,
        repo: Repository,
        remote: Remote,
        config: Sequence[str],
        args: Sequence[str],
        *,
        timeout: float,
        longest: float = LONGEST,
        prompts: bool | None = None,
        named: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        look_after(repo)
        refuse_names(args)
        asks = terminal() if prompts is None else prompts
        # A session of its own has no terminal to ask on and can be ended as a whole.
        own_session = not asks and os.name == "posix"
        settings = [part for item in (*PINNED, *config) for part in ("-c", item)]
        try:
            self.process = subprocess.Popen(
                [*repo.git.prefix, *settings, *args],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=repo.git.directory,
                env=surroundings(repo, remote, prompts=asks, named=named),
                start_new_session=own_session,
            )
        except FileNotFoundError as missing:
            raise no_git(repo.git.directory) from missing
        self.silence = SilenceLimit(self.process, timeout, longest, own_session=own_session)
        self.out = LineReader(self.process.stdout, self.silence, None)
        self.err = LineReader(self.process.stderr, self.silence, on_line)

    def end(self) -> GitSpoken:
        """Wait until git is done, or has been silent for too long."""
        try:
            self.silence.wait()
        except BaseException:
            self.silence.stop()
            raise
        # A connection that ssh keeps for later holds our pipe open: what git had to say has been said.
        self.out.join(END_TIMEOUT)
        self.err.join(END_TIMEOUT)
        return GitSpoken(self.process.returncode, self.out.lines, self.err.lines, self.silence.silenced)

    def leave(self) -> None:
        """Stop what has not ended yet."""
        if not self.silence.ended.is_set():
            self.silence.stop()


def converse(
    repo: Repository,
    remote: Remote,
    config: Sequence[str],
    args: Sequence[str],
    *,
    timeout: float,
    prompts: bool | None = None,
    named: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> GitSpoken:
    """Have a conversation from beginning to end."""
    return GitConversation(
        repo, remote, config, args, timeout=timeout, prompts=prompts, named=named, on_line=on_line
    ).end()


class LineReader(threading.Thread):
    """Reader of one stream to its end. A line ends with a newline or, for progress, with a carriage return."""

    def __init__(
        self, stream: IO[bytes] | None, silence: SilenceLimit, on_line: Callable[[str], None] | None
    ) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.silence = silence
        self.on_line = on_line
        self.lines: list[str] = []
        self.start()

    def run(self) -> None:
        rest = b""
        if self.stream is None:
            return
        with self.stream as stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self.silence.sign_of_life()
                *whole, rest = (rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
                for line in whole:
                    self._take(line)
        self._take(rest)

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            self.lines.append(text)
            if self.on_line is not None:
                self.on_line(text)


def late_listener(progress: Progress) -> Callable[[str], None]:
    """Return a reader of git's lines that loads the parser of progress only when progress comes. An idle fetch
    has none.
    """
    handlers: list[Callable[[str], None]] = []

    def on_line(line: str) -> None:
        if "objects: " in line or "deltas: " in line:
            if not handlers:
                handlers.append(listener(progress))
            handlers[0](line)

    return on_line


def listener(progress: Progress) -> Callable[[str], None]:
    """Return a reader that passes git's progress lines to `progress` as a stage, how many are done, and of how many."""
    from git.util import RemoteProgress

    stages = {
        RemoteProgress.COUNTING: "counting",
        RemoteProgress.COMPRESSING: "compressing",
        RemoteProgress.WRITING: "sending",
        RemoteProgress.RECEIVING: "receiving",
        RemoteProgress.RESOLVING: "checking",
        RemoteProgress.FINDING_SOURCES: "looking",
    }

    class Listener(RemoteProgress):
        def update(
            self,
            op_code: int,
            cur_count: str | float,
            max_count: str | float | None = None,
            message: str = "",
        ) -> None:
            del message
            stage = stages.get(op_code & self.OP_MASK, "working")
            progress(stage, int(float(cur_count or 0)), int(float(max_count)) if max_count else None)

    return Listener().new_message_handler()


# What ails a machine, whoever asks it for what.
_AILS = (
    "no space left on device|disk quota exceeded|read-only file system|input/output error|stale file handle|out of memory.*"
    "|cannot allocate memory|too many open files|resource temporarily unavailable"
)
# How a server says that it could not, whole lines: also where a hook is said to have declined, which then judged nothing.
_UNABLE = (
    r"(?i)(error|fatal): (.*: )?unable to create '.*\.lock': (file exists|permission denied)\W*"
    rf"|(error|fatal): (.*: )?({_AILS})\W*|\w*error: \[errno \d+\] ({_AILS}|permission denied).*"
    r"|(error|fatal): cannot (run|exec|fork)\b.*|error: \S*hooks/\S+ died of signal \d+"
    r"|\S*hooks/[\w-]+: .*(not found|permission denied|no such file or directory)|.* no module named '?gitgate\b.*"
    r"|git-gate is not installed where .*"
    r"|(\w+: )*internal (server|api)\b.*(error|unreachable).*|fatal error in commit_refs"
)
# The same where no hook declined: a hook may say this of whoever pushes.
_SHUT = (
    r"(?i)(error|fatal): (.*: )?(permission denied|insufficient permission .*)\W*"
    r"|(error: )?(remote unpack failed: )?unable to (create temporary object directory|migrate objects to permanent storage)"
)
_LOGIN = r"(://)[^/@\s]*@"
# Whose disk is full: what the other side says comes behind `remote:`, or is told of as refused.
_FULL, _THERE = r"(?i)no space left|disk quota", r"^remote: |unpack(er)? (failed|error)|\[remote rejected\]"
_FROM_THERE = r"remote:|error: remote unpack failed: |(error|fatal): .*\bhooks/"
_NOISE = r"error: failed to push some refs|Please make sure you have|and the repository exists|hint: "


@dataclass(frozen=True)
class Cause:
    """Meaning of a line of git's, or of the program that connects. There is no field for it; git's words are
    always English here.
    """

    words: str
    error: Callable[..., Failure]
    meaning: str
    hint: str


def cause(words: str, error: type[Failure], meaning: str, hint: str) -> Cause:
    return Cause(f"(?i){words}", error, meaning, hint)


SYNC = "nothing is lost here; later: git gate sync"

# The first that fits is told. Names before connections: an unknown host also "could not connect".
CAUSES = (
    cause("could not resolve host|name or service not known", RemoteUnreachable, "its host is unknown",
          f"check the address (git remote -v) and the network; {SYNC}"),
    cause("host key verification failed", RemoteUnreachable, "its ssh key is not known here",
          f"connect once by hand to accept it: ssh HOST; {SYNC}"),
    cause(r"permission denied \(|authentication failed|could not read (username|password)|terminal prompts disabled"
          r"|returned error: 401", RemoteUnreachable, "it did not accept our identity",
          f"check your key or token with: git fetch REMOTE; {SYNC}"),
    cause("returned error: 403|permission to .* denied|access denied|protected|read-only", PushRefused,
          "it does not let us write", f"ask for write access; {SYNC}"),
    cause("http 413|returned error: 413|too many (refs|ref updates|references)|(push|pack) (is )?too large", PushRefused,
          "it does not take so much at once", SYNC),
    cause("no space left|disk quota|unable to create temporary object|read-only file system", RemoteUnable,
          "the server could not store it (disk full or not writable)", f"tell whoever runs the server; {SYNC}"),
    cause("unpacker error|remote unpack failed", PushRefused,
          "the server could not store it", f"tell whoever runs the server; {SYNC}"),
    cause("does not support .*(atomic|shallow)", PushRefused, "it cannot take several refs at once (no atomic pushes)",
          "use a git server over ssh or smart http"),
    cause("dubious ownership", RemoteUnreachable, "git does not trust that directory: it belongs to somebody else",
          "git config --global --add safe.directory PATH"),
    cause("does not appear to be a git repository|repository .*not found|returned error: 404|no such file or directory",
          RemoteUnreachable, "there is no repository at its address", f"check the address: git remote -v; {SYNC}"),
    cause("transport .* not allowed|remote helper", RemoteUnreachable, "git does not speak its protocol",
          "use an ssh, https or file address"),
    cause("connection refused|failed to connect|could not connect|timed out|network is unreachable|no route to host"
          "|connection reset|connection closed", RemoteUnreachable, "it cannot be reached", SYNC),
)  # fmt: skip


def explain(
    remote: str, said: GitSpoken, *, timeout: float, fallback: type[Failure] = RemoteUnreachable
) -> Failure:
    """Return the error that a failed conversation amounts to, in words for people."""
    name = without_secret(remote)
    if said.silenced:
        return RemoteUnreachable(
            f"{name} said nothing for {timeout:g} s; whether anything arrived is not known", hint=SYNC
        )
    text = "\n".join(said.err)
    here = [line for line in said.err if not re.search(_THERE, line) and re.search(_FULL, line)]
    if here:
        return DiskFull(
            f"the disk is full: {gist(here)}", hint="make room here, then type the same again: df -h"
        )
    for known in CAUSES:
        if re.search(known.words, text):
            return known.error(f"{name}: {known.meaning} ({gist(said.err)})", hint=known.hint)
    return fallback(f"{name}: {gist(said.err) or f'git ended with {said.code}'}", hint=SYNC)


def gist(lines: Sequence[str]) -> str:
    """Return the one line that says most: git's last word, or else what the other side said before it."""
    telling = [line for line in lines if not re.search(_NOISE, line)]
    fatal = [line for line in telling if line.startswith(("fatal: ", "error: "))]
    ssh = [line for line in telling if not line.startswith(("fatal: ", "error: ", "remote: "))]
    generic = "Could not read from remote repository"
    best = [line for line in fatal if generic not in line] or ssh or telling
    return without_secret(printable(best[-1].removeprefix("fatal: ").removeprefix("error: "))) if best else ""


def without_secret(text: str) -> str:
    """Remove the login and password from an address, so that they are not shown."""
    return re.sub(_LOGIN, r"\1", text)


def inability_here(failed: GitFailed) -> str:
    """Return why git in this repository, which others may push to, was unable to do its part; empty where it
    failed otherwise.
    """
    return inability([f"remote: {line}" for line in failed.stderr.splitlines()])


def inability(lines: Sequence[str], reason: str = "") -> str:
    """Return the other side's words on why it could not do its part; empty where that is not why. `reason` is
    git's, of one ref.
    """
    declined = reason.endswith("hook declined")
    there = [line.removeprefix("remote:").strip() for line in lines if re.match(_FROM_THERE, line)]
    for words in (*there, f"error: {reason}"):
        if re.fullmatch(_UNABLE, words) or (not declined and re.fullmatch(_SHUT, words)):
            return printable(words.removeprefix("error: ").removeprefix("fatal: "))
    return ""


def printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def server_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of the server's hooks: git marks each with `remote:`."""
    said = [printable(line.removeprefix("remote:")).strip() for line in lines if line.startswith("remote:")]
    return tuple(
        line for line in said if line and not re.match(r"error: hook declined to update|[\w ]+: +\d+%", line)
    )


def in_one_line(heard: Sequence[str]) -> str:
    """Join the lines of the server for the reason of a refusal."""
    return " · ".join(heard)[:2000]
