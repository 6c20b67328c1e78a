"""Store: which repository gates are shared through, what moves there, and what we remember of it.

Values and configuration only; `push` and `fetch` do the moving, `wire` talks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache

from ...document import dataclass, field
from ...errors import RemoteUnreachable, UnsafeRemote, Usage
from ..git import Repository, parse_config

HITL = "refs/hitl/"
TRACKING = "refs/gitgate/"
SAMPLE = "refs/hitl/open/2222222222"
# Where git looks for a ref whose name is not whole to it.
COMPLETED = ("refs/", "refs/tags/", "refs/heads/", "refs/remotes/")

# Compiled at first use: most runs of the command need one of them.
_PLAIN_NAME = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
_HELPER = r"(?i)(?:[A-Za-z0-9][A-Za-z0-9+.-]*)?::|(ext|fd)://"
_DASHED_HOST = r"(?i)([a-z+]+://)?([^/@]*@)?-"
_REF = r"refs(/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+"
_OID = r"[0-9a-f]{40}|[0-9a-f]{64}"


@dataclass(frozen=True)
class RefMove:
    """Move of one ref, here or on a remote: to `new` (None: it is deleted) from `old` (None: it must not exist)."""

    ref: str
    new: str | None
    old: str | None


class FateKind(StrEnum):
    """Kind of result of one move, as far as whoever pushed may rely on it."""

    OK = "ok"
    STALE = "stale"  # somebody was first
    NOT_SENT = "not sent"  # it failed with others
    UNKNOWN = "unknown"  # the connection broke before the report came
    REFUSED = "refused"


class Refusal(StrEnum):
    """Reason why a move was refused, where git's report has a word for it."""

    OTHER = ""
    WHOLE_PUSH = "pre-receive hook declined"
    MISSING_OBJECTS = "missing necessary objects"


@dataclass(frozen=True)
class HookNote:
    """Line of our hook about one ref. `commit`: the beginning of the id of the event's commit; `final`: as it
    is, it is never taken.
    """

    ref: str
    words: str
    commit: str = ""
    final: bool = False


@dataclass(frozen=True)
class RefFate:
    """Result of one move. `kind` and `refusal` decide; `why` is the server's text about a refusal, for people.

    `missing_at` names further addresses of the remote that did not take it; the first address alone decides `ok`.
    `heard`: the other lines of the server; `notes`: those of them that our hook wrote about refs. `unable`: why the
    server could not do it for the moment, in its own words, whether or not it would accept it. `blocked`: refs there
    that git takes it for, so that no push reaches it.
    """

    ref: str
    kind: FateKind
    why: str = ""
    refusal: Refusal = Refusal.OTHER
    missing_at: tuple[str, ...] = ()
    heard: tuple[str, ...] = field(default=(), compare=False)
    unable: str = field(default="", compare=False)
    notes: tuple[HookNote, ...] = field(default=(), compare=False)
    blocked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.kind is FateKind.OK

    @property
    def refused(self) -> bool:
        return self.kind is FateKind.REFUSED

    @property
    def lacks_objects(self) -> bool:
        return self.refusal is Refusal.MISSING_OBJECTS

    @property
    def reason(self) -> str:
        """Result of the move, for people."""
        return f"refused: {self.why}" if self.refused else self.kind.value


@dataclass(frozen=True)
class Fetched:
    """Result of a fetch, by gate or run."""

    updated: frozenset[str] = frozenset()
    vanished: frozenset[str] = frozenset()
    before: Mapping[str, str] = field(default_factory=dict)
    """Beginning of the tip that each gate had until now."""

    @property
    def changed(self) -> bool:
        return bool(self.updated or self.vanished)


@dataclass(frozen=True)
class Remote:
    """Remote as this repository's configuration has it, or an address that was given in its place."""

    name: str
    urls: tuple[str, ...]
    push_urls: tuple[str, ...]
    fetch_specs: tuple[str, ...] = ()
    mirror: bool = False
    ssh_command: str = field(default="", repr=False)
    ssh_variant: str = ""

    @property
    def targets(self) -> tuple[str, ...]:
        """Addresses to push to, one push each; the name where there is one address, for git's per-remote settings."""
        return self.push_urls if len(self.push_urls) > 1 else (self.name,)


def validate_remote(name_or_url: str) -> str:
    """Return the text, or raise Usage: it could be taken for an option, or run a program (`ext::`), or fool a
    terminal.
    """
    text = name_or_url
    if not text or text != text.strip() or not text.isprintable():
        raise Usage(f"not a remote: {text!r}", hint="git remote -v")
    # The expressions take longer to compile than most addresses to reach, and need one of these.
    if text.startswith("-") or (("//-" in text or "@-" in text) and re.match(_DASHED_HOST, text)):
        raise Usage(f"a remote cannot begin with a dash: {text}", hint="git remote -v")
    if ("::" in text or "d://" in text.lower() or "t://" in text.lower()) and re.match(_HELPER, text):
        raise Usage(
            f"{text.partition(':')[0]}: is not a way to reach gates: such an address can run any program",
            hint="use an ssh, https or file address",
        )
    return text


def validate_move(move: RefMove) -> None:
    if (
        not re.fullmatch(_REF, move.ref)
        or ".." in move.ref
        or "@{" in move.ref
        or move.ref.endswith((".lock", "."))
    ):
        raise Usage(f"not a ref: {move.ref!r}")
    for oid in (move.new, move.old):
        if oid is not None and not re.fullmatch(_OID, oid):
            raise Usage(f"not an object's full name: {oid!r}")
    if move.new is None and move.old is None:
        raise Usage(f"{move.ref} is to be deleted, but its expected value is missing")


LIKE_REFS = tuple(f"{start}refs/" for start in (*COMPLETED, "refs/notes/"))
"""Places of refs that are called like a whole other ref."""


def look_alikes(ref: str) -> tuple[str, ...]:
    """Return the refs that git may take for this one where it completes names, as a branch
    `refs/heads/refs/hitl/open/ID`.
    """
    return (*(f"{start}{ref}" for start in COMPLETED), f"refs/remotes/{ref}/HEAD")


def gate_of(ref: str) -> str:
    """Return the gate that a ref belongs to, so that a gate's refs go together; any other ref stands for itself."""
    parts = ref.split("/")
    return parts[3] if ref.startswith(HITL) and len(parts) == 4 else ref


def tracking(remote: str, ref: str) -> str:
    """Return the ref where we keep what `remote` had at `ref` (one of refs/hitl/…)."""
    return f"{tracking_base(remote)}{ref.removeprefix(HITL)}"


@cache
def tracking_base(remote: str) -> str:
    """Return `refs/gitgate/<remote>/`: outside refs/hitl and refs/remotes, so that no fetch or prune touches a local
    gate.

    A name is one path component: were `a/open` two, pruning what `a` no longer has would prune it as well. An address
    may hold a password, so its digest stands for it.
    """
    if re.fullmatch(_PLAIN_NAME, remote) and not remote.endswith(".lock"):
        return f"{TRACKING}{remote}/"
    if ":" in remote or remote.startswith(("/", ".")):
        import hashlib

        return f"{TRACKING}%{hashlib.sha256(remote.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}/"
    quoted = (
        chr(b) if (chr(b).isalnum() and b < 128) or b in b"_-" else f"%{b:02X}"
        for b in remote.encode("utf-8", "surrogateescape")
    )
    return f"{TRACKING}{''.join(quoted)}/"


def read_config(repo: Repository, pattern: str) -> dict[str, list[str]]:
    """Read git configuration whose key matches, with all its values, as it is now."""
    return parse_config(repo.git.run("config", "-z", "--get-regexp", pattern, check=False).out)


def choose_remote(
    settings_remote: str | None, repo: Repository, config: Mapping[str, str] | None = None
) -> str | None:
    """Return `gitgate.remote`, else the branch's push remote, else `origin`, else none.

    `config` is git's configuration where the caller has read it already (last value of each key).
    """
    if settings_remote:
        return validate_remote(settings_remote)
    if config is None:
        read = read_config(repo, r"^branch\..*\.(push)?remote$|^remote\.(pushdefault$|.*\.(url|pushurl)$)")
        config = {key: values[-1] for key, values in read.items()}
    for name in push_remotes(repo, config):
        if name and name != ".":  # "." is this very repository: a branch that follows a local one.
            return validate_remote(name)
    known = "remote.origin.url" in config or "remote.origin.pushurl" in config
    return "origin" if known else None


def push_remotes(repo: Repository, config: Mapping[str, str]) -> list[str]:
    """Return the remotes where the current branch goes, first choice first.

    Git is not asked for the branch when all branches go to one place.
    """
    named = {value for key, value in config.items() if key.startswith("branch.") and key.endswith("remote")}
    default = config.get("remote.pushdefault", "")
    if not default and named <= {"origin"}:
        return []
    said = repo.git.run("symbolic-ref", "-q", "HEAD", check=False).out
    branch = said.decode("utf-8", "surrogateescape").removesuffix("\n").removeprefix("refs/heads/")
    return [config.get(f"branch.{branch}.pushremote", ""), default, config.get(f"branch.{branch}.remote", "")]


def read_remote(repo: Repository, name: str) -> Remote:
    """Read the configuration of a remote. Refuse one that would overwrite or delete local gates."""
    validate_remote(name)
    known = f"remote.{name}.url" in repo.configured or f"remote.{name}.pushurl" in repo.configured
    # Who made the remote a moment ago finds it as well.
    config = repo.configured if known else read_config(repo, r"^remote\.|^core\.sshcommand$|^ssh\.variant$")

    def values(variable: str) -> tuple[str, ...]:
        return tuple(config.get(f"remote.{name}.{variable}", ()))

    urls = values("url") or values("pushurl")
    if not urls:
        if not looks_like_address(name):
            raise RemoteUnreachable(
                f"there is no remote named {name}",
                hint=f"git remote add {name} URL, or name another: git config gitgate.remote NAME",
            )
        urls = (name,)
    remote = Remote(
        name=name,
        urls=urls,
        push_urls=values("pushurl") or urls,
        fetch_specs=values("fetch"),
        mirror=values("mirror")[-1:] not in ((), ("false",), ("no",), ("off",), ("0",)),
        ssh_command=config.get("core.sshcommand", [""])[-1],
        ssh_variant=config.get("ssh.variant", [""])[-1],
    )
    refuse_unsafe(remote)
    return remote


def looks_like_address(text: str) -> bool:
    return ":" in text or "/" in text or text.startswith(".")


def refuse_unsafe(remote: Remote) -> None:
    for url in {*remote.urls, *remote.push_urls}:
        validate_remote(url)
    for spec in remote.fetch_specs:
        if overwrites_gates(spec):
            raise UnsafeRemote(
                f"{remote.name} is a mirror: with {spec} every fetch overwrites or deletes gates kept here",
                hint=f"work in a plain clone, or: git config remote.{remote.name}.fetch "
                f"'+refs/heads/*:refs/remotes/{remote.name}/*'",
            )


def overwrites_gates(spec: str) -> bool:
    """Return whether this fetch refspec writes into refs/hitl, where gates that were not pushed yet live."""
    if spec.startswith("^"):
        return False
    target = spec.removeprefix("+").rpartition(":")[2]
    before, star, after = target.partition("*")
    if not star:
        return target.startswith(HITL)
    return (SAMPLE.startswith(before) or before.startswith(HITL)) and SAMPLE.endswith(after)


def ids_of(refs: Sequence[str]) -> frozenset[str]:
    if not refs:
        return frozenset()
    from ...model import is_id

    return frozenset(name for name in (ref.rpartition("/")[2] for ref in refs) if is_id(name))
