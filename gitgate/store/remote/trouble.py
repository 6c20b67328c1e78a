"""Store: what git's words about a failed conversation mean, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import Failure, PushRefused, RemoteUnreachable
from .wire import GitSpoken

_SECRET = re.compile(r"(://)[^/@\s]*@")
_NOISE = re.compile(
    r"error: failed to push some refs|Please make sure you have|and the repository exists|hint: "
)


@dataclass(frozen=True)
class Cause:
    words: re.Pattern[str]
    error: Callable[..., Failure]
    meaning: str
    hint: str


def cause(words: str, error: type[Failure], meaning: str, hint: str) -> Cause:
    return Cause(re.compile(words, re.IGNORECASE), error, meaning, hint)


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
    cause("no space left|disk quota|unable to create temporary object|unpacker error|remote unpack failed", PushRefused,
          "the server could not store it (disk full or not writable)", f"tell whoever runs the server; {SYNC}"),
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
    """The error that a failed conversation amounts to, in words for people."""
    name = without_secret(remote)
    if said.silenced:
        return RemoteUnreachable(
            f"{name} said nothing for {timeout:g} s; whether anything arrived is not known", hint=SYNC
        )
    text = "\n".join(said.err)
    for known in CAUSES:
        if known.words.search(text):
            return known.error(f"{name}: {known.meaning} ({gist(said.err)})", hint=known.hint)
    return fallback(f"{name}: {gist(said.err) or f'git ended with {said.code}'}", hint=SYNC)


def gist(lines: Sequence[str]) -> str:
    """The one line that says most: git's last word, or else what the other side said before it."""
    telling = [line for line in lines if not _NOISE.search(line)]
    fatal = [line for line in telling if line.startswith(("fatal: ", "error: "))]
    ssh = [line for line in telling if not line.startswith(("fatal: ", "error: ", "remote: "))]
    generic = "Could not read from remote repository"
    best = [line for line in fatal if generic not in line] or ssh or telling
    return without_secret(printable(best[-1].removeprefix("fatal: ").removeprefix("error: "))) if best else ""


def without_secret(text: str) -> str:
    """A password in an address is not shown."""
    return _SECRET.sub(r"\1", text)


def printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def server_words(lines: Sequence[str]) -> str:
    """What the server's hooks said, on one line, for the reason of a refusal."""
    said = [printable(line.removeprefix("remote:")).strip() for line in lines if line.startswith("remote:")]
    kept = [
        line for line in said if line and not re.match(r"error: hook declined to update|[\w ]+: +\d+%", line)
    ]
    return " · ".join(kept)[:2000]
