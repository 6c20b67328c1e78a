"""Store: what git says has changed in a working tree, read from one `git status`."""

from __future__ import annotations

import re

from ..core.values import dataclass
from .git import Git
from .leftout import printable

GITLINK = b"160000"
ABSENT = b"000000"


@dataclass(frozen=True)
class Change:
    """A tracked path that differs between HEAD, index and working tree. `staged`, `unstaged`: git's letters, or `.`."""

    path: bytes
    staged: str
    unstaged: str
    submodule: str
    mode_head: bytes
    mode_index: bytes
    mode_work: bytes
    head: bytes
    index: bytes

    @property
    def intent_to_add(self) -> bool:
        return self.unstaged == "A"

    @property
    def is_new(self) -> bool:
        return self.staged == "A" or self.intent_to_add

    @property
    def is_gitlink(self) -> bool:
        return GITLINK in (self.mode_index, self.mode_work) or self.submodule != "N..."


@dataclass(frozen=True)
class Unmerged:
    """A path in conflict: mode and blob of the ancestor, ours and theirs (mode `000000` where a side lacks it)."""

    path: bytes
    stages: tuple[tuple[bytes, bytes], tuple[bytes, bytes], tuple[bytes, bytes]]

    @property
    def ours(self) -> tuple[bytes, bytes]:
        return self.stages[1]


@dataclass(frozen=True)
class Changes:
    """What one `git status` said."""

    head: str | None
    branch: str | None
    changed: tuple[Change, ...] = ()
    unmerged: tuple[Unmerged, ...] = ()
    untracked: tuple[bytes, ...] = ()
    unreadable: tuple[str, ...] = ()


def look(git: Git, *, untracked: bool) -> Changes:
    """What has changed. All that a person may have configured about the output of `status` is said explicitly."""
    asked = git.run(
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        # Exact renames cost a comparison of everything with everything, and a snapshot has no use for them.
        "--no-renames",
        "--no-ahead-behind",
        # `ignore = all` in somebody's .gitmodules would hide a submodule that was moved.
        "--ignore-submodules=none",
        f"--untracked-files={'all' if untracked else 'no'}",
    )
    return parse_status(asked.out, asked.err)


def parse_status(out: bytes, err: str = "") -> Changes:
    head: str | None = None
    branch: str | None = None
    changed: list[Change] = []
    unmerged: list[Unmerged] = []
    untracked: list[bytes] = []
    for record in out.split(b"\0"):
        kind = record[:2]
        if kind == b"1 ":
            changed.append(_change(record))
        elif kind == b"? ":
            untracked.append(record[2:])
        elif kind == b"u ":
            unmerged.append(_unmerged(record))
        elif record.startswith(b"# branch.oid "):
            head = record[13:].decode()
        elif record.startswith(b"# branch.head "):
            branch = _branch(record[14:])
    return Changes(
        None if head == "(initial)" else head,
        branch,
        tuple(changed),
        tuple(unmerged),
        tuple(untracked),
        tuple(_unreadable(err)),
    )


def _branch(name: bytes) -> str | None:
    """A branch whose name is no UTF-8 cannot be written down in a question; it counts as none."""
    try:
        return None if name == b"(detached)" else name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _change(record: bytes) -> Change:
    _, letters, submodule, head, index, work, head_id, index_id, path = record.split(b" ", 8)
    staged, unstaged = chr(letters[0]), chr(letters[1])
    return Change(path, staged, unstaged, submodule.decode(), head, index, work, head_id, index_id)


def _unmerged(record: bytes) -> Unmerged:
    _, _, _, *rest = record.split(b" ", 10)
    base, ours, theirs, _, base_id, ours_id, theirs_id, path = rest
    return Unmerged(path, ((base, base_id), (ours, ours_id), (theirs, theirs_id)))


def _unreadable(err: str) -> list[str]:
    """The directories that git could not open; it says so, and goes on as if they were empty."""
    names = re.findall(r"could not open directory '(.+)': ", err)
    return [printable(name.encode("utf-8", "surrogateescape")) for name in names]
