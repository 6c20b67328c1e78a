"""Store: which of the changes a snapshot takes, and how git is told of each.

The index of the snapshot is a copy of the agent's. It is brought to the staged tree by `reset`, and from there to the
working tree by `remove` and `feed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from stat import S_ISDIR

from ...document import dataclass, field
from ..git import Git, failure
from . import (
    GATES_OWN,
    NESTED,
    NOT_A_FILE,
    LeftOut,
    Parents,
    is_gates_own,
    is_storable,
    lstat,
    printable,
    refuse_new,
    refuse_secret,
    secret_name_reason,
)

GITLINK = b"160000"
ABSENT = b"000000"


@dataclass(frozen=True)
class PathChange:
    """Tracked path that differs between HEAD, index and working tree. `staged`, `unstaged`: git's letters, or `.`."""

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
    """Path in conflict: mode and blob of the ancestor, ours and theirs (mode `000000` where a side lacks it)."""

    path: bytes
    stages: tuple[tuple[bytes, bytes], tuple[bytes, bytes], tuple[bytes, bytes]]

    @property
    def ours(self) -> tuple[bytes, bytes]:
        return self.stages[1]


@dataclass(frozen=True)
class Changes:
    """Result of one `git status`."""

    head: str | None
    branch: str | None
    changed: tuple[PathChange, ...] = ()
    unmerged: tuple[Unmerged, ...] = ()
    untracked: tuple[bytes, ...] = ()
    unreadable: tuple[str, ...] = ()


def changes_of_tree(git: Git, *, untracked: bool, meanwhile: Callable[[], object] | None = None) -> Changes:
    """Ask git what has changed. All that a person may have configured about the output of `status` is set explicitly.

    `meanwhile` is done while git looks.
    """
    asked = git.begin(
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
    try:
        if meanwhile is not None:
            meanwhile()
        said = asked.result()
    finally:
        asked.close()
    if said.code:
        raise failure(asked.name, said)
    return parse_status(said.out, said.err)


def parse_status(out: bytes, err: str = "") -> Changes:
    head: str | None = None
    branch: str | None = None
    changed: list[PathChange] = []
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
    """Return the branch; none where its name is no UTF-8, which cannot be written down in a question."""
    try:
        return None if name == b"(detached)" else name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _change(record: bytes) -> PathChange:
    _, letters, submodule, head, index, work, head_id, index_id, path = record.split(b" ", 8)
    staged, unstaged = chr(letters[0]), chr(letters[1])
    return PathChange(path, staged, unstaged, submodule.decode(), head, index, work, head_id, index_id)


def _unmerged(record: bytes) -> Unmerged:
    _, _, _, *rest = record.split(b" ", 10)
    base, ours, theirs, _, base_id, ours_id, theirs_id, path = rest
    return Unmerged(path, ((base, base_id), (ours, ours_id), (theirs, theirs_id)))


def _unreadable(err: str) -> list[str]:
    """Return the directories that git could not open; git reports them, and goes on as if they were empty."""
    names = re.findall(r"could not open directory '(.+)': ", err) if err else []
    return [printable(name.encode("utf-8", "surrogateescape")) for name in names]


DIRTY_SUBMODULE = "a submodule: changes inside it stay there"
MOVED_SUBMODULE = "a submodule: the commit it stands on is named, but only its own repository has it"


@dataclass(frozen=False)
class IndexPlan:
    """Plan of changes to the copied index, collected path by path."""

    reset: list[bytes] = field(default_factory=list)  # `--index-info` lines that make the staged tree
    remove: list[bytes] = field(
        default_factory=list
    )  # `--index-info` lines for what `--stdin` would stumble over
    gone: list[bytes] = field(default_factory=list)  # paths for `--stdin` that are no longer there
    feed: list[bytes] = field(default_factory=list)  # paths for `--stdin` that are
    staged: bool = False
    tracked: int = 0
    untracked: list[bytes] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    intent_to_add: list[bytes] = field(default_factory=list)
    unmerged: list[Unmerged] = field(default_factory=list)

    @property
    def dirty(self) -> bool:
        return bool(
            self.staged or self.feed or self.gone or self.remove or self.intent_to_add or self.unmerged
        )

    def leave(self, path: bytes, reason: str) -> None:
        self.left_out.append(LeftOut(printable(path), reason))


def is_signal(path: bytes, folder: bytes) -> bool:
    """Return whether a file is an agent's signal: directly in that folder, and JSON."""
    return bool(folder) and path.rpartition(b"/")[0] == folder and path.endswith(b".json")


@dataclass(frozen=True)
class Planner:
    """Decides path by path.

    `forced` are untracked files that go although they look secret, are large or ignored; `included` are the paths that
    a person named, which settles it for what is newly staged beneath them, too. `apart` are untracked files that are no work;
    nor are the files in the folder `signals`, tracked or not: by them an agent says something.
    """

    top: Path
    zero: str
    forced: frozenset[bytes]
    included: tuple[bytes, ...]
    apart: frozenset[bytes]
    signals: bytes
    staged_secrets: Mapping[bytes, str]
    most_bytes: int
    # Whether the other side of a merge brought a staged file: then it is in somebody's history already.
    is_known: Callable[[PathChange], bool]
    plan: IndexPlan = field(default_factory=IndexPlan)

    def decide(self, changes: Changes) -> IndexPlan:
        parents = Parents(self.top)
        # A file that was moved is new to git but not to history.
        moved = {change.head for change in changes.changed} - {self.zero.encode()}
        for change in changes.changed:
            self._tracked(change, parents, moved)
        for conflict in changes.unmerged:
            self._conflict(conflict, parents)
        for path in self._all_untracked(changes):
            self._untracked(path)
        for directory in changes.unreadable:
            self.plan.left_out.append(LeftOut(directory, "a directory that cannot be read"))
        return self.plan

    def _all_untracked(self, changes: Changes) -> list[bytes]:
        """List the untracked files that git lists, and those that were asked for although git ignores them."""
        known = {change.path for change in changes.changed} | set(changes.untracked)
        listed = [*changes.untracked, *sorted(self.forced - known)]
        return [path for path in listed if path in self.forced or not self._is_apart(path)]

    def _is_apart(self, path: bytes) -> bool:
        return path in self.apart or self._is_signal(path)

    def _is_signal(self, path: bytes) -> bool:
        return is_signal(path, self.signals) and path not in self.forced

    def _tracked(self, change: PathChange, parents: Parents, moved: set[bytes]) -> None:
        if self._is_signal(change.path):
            if change.staged != "." or change.intent_to_add:
                self._reset(change.path, change.mode_head, change.head)
            return
        if reason := self._refuse_tracked(change, parents, moved):
            self.plan.leave(change.path, reason)
            if change.staged != "." or change.intent_to_add:
                self._reset(change.path, change.mode_head, change.head)
            return
        unstaged = self._work(change, parents)
        self.plan.staged |= change.staged != "."
        self.plan.tracked += unstaged or change.staged != "."
        if change.intent_to_add:
            self.plan.intent_to_add.append(change.path)

    def _refuse_tracked(self, change: PathChange, parents: Parents, moved: set[bytes]) -> str | None:
        if is_gates_own(change.path):
            return GATES_OWN
        if not change.is_new or change.is_gitlink or self._is_forced(change.path) or change.index in moved:
            return None
        # What is newly staged is as unpublished as what is untracked: `git add -A` takes an .env too.
        # Beyond a link stands another file, whatever it holds; of this one only the staged content is left.
        look = secret_name_reason if parents.beyond_link(change.path) else partial(refuse_secret, self.top)
        reason = self.staged_secrets.get(change.path) or look(change.path)
        return None if reason and self.is_known(change) else reason

    def _is_forced(self, path: bytes) -> bool:
        return path in self.forced or any(
            path == name or path.startswith(name + b"/") or name == b"." for name in self.included
        )

    def _reset(self, path: bytes, mode: bytes, oid: bytes) -> None:
        if int(mode, 8):
            self.plan.reset.append(b"%s %s 0\t%s" % (mode, oid, path))
        else:
            self.plan.reset.append(self._removal(path))

    def _removal(self, path: bytes) -> bytes:
        return b"%s %s 0\t%s" % (ABSENT, self.zero.encode(), path)

    def _work(self, change: PathChange, parents: Parents) -> bool:
        """Plan the unstaged half; tell whether there is anything to it."""
        if change.unstaged == ".":
            return False
        if change.mode_work == GITLINK == change.mode_index:
            return self._submodule(change)
        return self._file(change.path, parents)

    def _submodule(self, change: PathChange) -> bool:
        moved = change.submodule[1] == "C" or change.unstaged != "M"
        if moved:
            self.plan.leave(change.path, MOVED_SUBMODULE)
            self.plan.feed.append(change.path)
        if change.submodule[2:] != "..":
            self.plan.leave(change.path, DIRTY_SUBMODULE)
        return moved

    def _file(self, path: bytes, parents: Parents) -> bool:
        """Plan a tracked path as it is in the working tree now."""
        beyond = parents.beyond_link(path)
        found = None if beyond else lstat(self.top, path)
        if beyond or (found and S_ISDIR(found.st_mode)):
            self.plan.remove.append(self._removal(path))
            if found and lstat(self.top, path + b"/.git"):
                # Git would take it for a submodule, which nobody declared.
                self.plan.leave(path + b"/", NESTED)
        elif found is None:
            self.plan.gone.append(path)
        elif not is_storable(found):
            self.plan.leave(path, NOT_A_FILE)
            return False
        else:
            self.plan.feed.append(path)
        return True

    def _conflict(self, conflict: Unmerged, parents: Parents) -> None:
        """Stage a path in conflict as ours; its three sides are kept apart."""
        mode, oid = conflict.ours
        self.plan.reset.append(self._removal(conflict.path))
        if int(mode, 8):
            self._reset(conflict.path, mode, oid)
        if is_gates_own(conflict.path):
            self.plan.leave(conflict.path, GATES_OWN)
            return
        self.plan.tracked += 1
        self.plan.unmerged.append(conflict)
        if GITLINK not in {side[0] for side in conflict.stages}:
            self._file(conflict.path, parents)

    def _untracked(self, path: bytes) -> None:
        if reason := self._refuse_untracked(path):
            self.plan.leave(path, reason)
        elif lstat(self.top, path) is not None:
            self.plan.feed.append(path)
            self.plan.untracked.append(path)

    def _refuse_untracked(self, path: bytes) -> str | None:
        if is_gates_own(path):
            return GATES_OWN
        if path not in self.forced:
            return refuse_new(self.top, path, self.most_bytes)
        if path.endswith(b"/"):
            return NESTED
        found = lstat(self.top, path)
        return NOT_A_FILE if found and not is_storable(found) else None
