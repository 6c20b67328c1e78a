"""Store: the partial work is taken, as two commits on top of HEAD, and nothing that the agent sees is touched.

One `git status` says what has changed; a clean tree costs no more. Everything else happens on a copy of the index, fed
with exactly the paths that changed, so that the tree is walked once, and git's own filters and line ends apply.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from ...document import dataclass, replace
from ...errors import GitFailed, Usage, WorkFailed
from .. import private_folder
from ..git import Git, Repository
from . import (
    EMPTY_TREE,
    READ_FOR_SECRETS,
    UNMERGED_SUBJECT,
    WORK_SUBJECT,
    Aside,
    LeftOut,
    lstat,
    printable,
    secret_text_reason,
    work_failed,
)
from .plan import Changes, IndexPlan, PathChange, Planner, changes_of_tree

PREFIX = "index-"
LONGEST_WAIT = 2.0
FORGOTTEN_AFTER = 24 * 3600.0
# `safecrlf` would refuse a file over its line ends; a split index or a cache of untracked files would be written
# beside the agent's own index.
PINNED = (
    "core.safecrlf=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "i18n.commitEncoding=UTF-8",
)


@dataclass(frozen=True)
class IndexMark:
    """Mark that identifies an index file: another writer replaces the file."""

    modified: int
    size: int
    inode: int


def mark(repo: Repository) -> IndexMark | None:
    try:
        found = (repo.git_dir / "index").stat()
    except FileNotFoundError:
        return None
    return IndexMark(found.st_mtime_ns, found.st_size, found.st_ino)


def wait_for_lock(repo: Repository) -> None:
    """Wait a moment for another git that is changing the index; the working tree is between two states meanwhile."""
    lock = repo.git_dir / "index.lock"
    until = time.monotonic() + LONGEST_WAIT
    while lock.exists():
        if time.monotonic() > until:
            raise WorkFailed(
                f"another git is at work here: {lock} exists",
                hint=f"let it finish and ask again (in a hook of its own: ask --no-work); if none is running: rm {quote(str(lock))}",
            )
        time.sleep(0.02)


@dataclass(frozen=True)
class Scratch:
    """Git with an index of our own."""

    git: Git
    index: Path

    def _env(self) -> dict[str, str]:
        return {"GIT_INDEX_FILE": str(self.index)}

    def index_info(self, lines: Sequence[bytes]) -> None:
        """Set or remove entries by mode and object, without a look at the working tree."""
        if lines:
            fed = b"".join(line + b"\0" for line in lines)
            self.run("update-index", "-z", "--replace", "--index-info", input=fed)

    def add(self, paths: Sequence[bytes]) -> None:
        """Take paths as they are in the working tree; those that are gone first, to make room for what came instead."""
        if paths:
            fed = b"".join(path + b"\0" for path in paths)
            how = ("-z", "--add", "--remove", "--replace", "--ignore-skip-worktree-entries", "--stdin")
            self.run("update-index", *how, input=fed)

    def write_tree(self) -> str:
        return self.run("write-tree").decode().strip()

    def run(self, *args: str, input: bytes = b"") -> bytes:
        pinned = (part for item in PINNED for part in ("-c", item))
        return self.git.out(*pinned, *args, input=input, env=self._env())


@contextmanager
def scratch_index(repo: Repository, *, copied: bool = True) -> Iterator[Scratch]:
    """Make a scratch index, gone at the end: a copy of the agent's, or empty."""
    import shutil
    import tempfile

    rooms = repo.state_dir
    private_folder(rooms)
    _sweep(rooms)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=rooms) as room:
        index = Path(room) / "index"
        source = repo.git_dir / "index"
        if copied and source.exists():
            # With its time of modification: git compares it with a file's to know whether it must look inside. A copy
            # that looks younger makes git believe that an edit within the same tick is no edit.
            shutil.copy2(source, index)
        yield Scratch(repo.git, index)


def _sweep(rooms: Path) -> None:
    """Remove folders that a killed process left, a day later."""
    import shutil

    for room in rooms.glob(f"{PREFIX}*"):
        try:
            if time.time() - room.stat().st_mtime > FORGOTTEN_AFTER:
                shutil.rmtree(room, ignore_errors=True)
        except FileNotFoundError:
            continue


TRIES = 3
# In this order: a rebase that stopped has CHERRY_PICK_HEAD as well.
OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)


@dataclass(frozen=True)
class Snapshot:
    """Partial work as commits: base ← staged ← work; all three are the same where nothing had changed."""

    base: str | None
    staged: str
    work: str
    branch: str | None
    dirty: bool
    files: int
    insertions: int
    deletions: int
    changed: int
    untracked: int
    left_out: tuple[LeftOut, ...]
    intent_to_add: tuple[str, ...]
    operation: str | None


@dataclass(frozen=True)
class Wanted:
    """Content that a snapshot is to have, and the author of its commits."""

    at: int
    author: tuple[str, str]
    untracked: bool = True
    forced: frozenset[bytes] = frozenset()
    included: tuple[bytes, ...] = ()
    apart: frozenset[bytes] = frozenset()
    signals: bytes = b""  # the folder whose `*.json` are what agents say, below the top
    most_bytes: int = 10_000_000

    def identity(self) -> dict[str, str]:
        name, email = self.author
        date = f"@{self.at} +0000"
        roles = ("AUTHOR", "COMMITTER")
        said = {"NAME": name, "EMAIL": email, "DATE": date}
        return {f"GIT_{role}_{key}": value for role in roles for key, value in said.items()}


def take(
    repo: Repository,
    *,
    at: int,
    untracked: bool = True,
    include: Sequence[str] = (),
    apart: Sequence[str] = (),
    signals: str = "",
    author: tuple[str, str],
    most_bytes: int = 10_000_000,
    meanwhile: Callable[[], object] | None = None,
) -> Snapshot:
    """Write the partial work's objects; no ref, index, reflog or file of the agent's is moved.

    `include` names files or directories, relative to the top of the working tree, that go whatever they look like. `apart`
    names untracked files that are the request itself, and so no work; those outside of the tree are none of it anyway. Nor
    is a signal file work, tracked or not: those directly in the folder `signals`. `meanwhile` is done while git looks.
    """
    wanted = Wanted(
        at,
        author,
        untracked,
        apart=_apart(repo, apart),
        signals=signals_below(repo, signals),
        most_bytes=most_bytes,
    )
    return take_wanted(repo, _with_included(repo, wanted, include) if include else wanted, meanwhile)


def take_wanted(repo: Repository, wanted: Wanted, meanwhile: Callable[[], object] | None = None) -> Snapshot:
    try:
        for _ in range(TRIES):
            wait_for_lock(repo)
            before = mark(repo)
            changes = changes_of_tree(repo.git, untracked=wanted.untracked, meanwhile=meanwhile)
            meanwhile = None
            taken = _take(repo, wanted, changes)
            if mark(repo) == before:
                return taken
    except GitFailed as failed:
        raise work_failed(failed) from failed
    except OSError as failed:
        raise WorkFailed(
            f"the partial work cannot be saved: {failed.strerror or failed}{f': {failed.filename}' if failed.filename else ''}",
            hint="mend that, and ask again",
        ) from failed
    raise WorkFailed(
        "the partial work keeps changing while it is read", hint="let the other git finish, and ask again"
    )


def _take(repo: Repository, wanted: Wanted, changes: Changes) -> Snapshot:
    operation = operation_in(repo.git_dir)
    merging = operation == "merge"
    nothing = not (changes.changed or changes.unmerged or changes.untracked or changes.unreadable)
    if nothing and not merging and not wanted.forced and changes.head:
        return _clean(changes, operation)
    plan = _plan(repo, wanted, changes)
    if not plan.dirty and not merging and changes.head:
        return replace(_clean(changes, operation), left_out=tuple(plan.left_out))
    staged, work = _commit(repo, wanted, changes, plan, operation)
    files, insertions, deletions = count_changes(repo.git, changes.head, work)
    return Snapshot(
        base=changes.head,
        staged=staged,
        work=work,
        branch=changes.branch,
        dirty=plan.dirty or merging,
        files=files,
        insertions=insertions,
        deletions=deletions,
        changed=plan.tracked,
        untracked=len(plan.untracked),
        left_out=tuple(plan.left_out),
        intent_to_add=tuple(printable(path) for path in plan.intent_to_add),
        operation=operation,
    )


def _clean(changes: Changes, operation: str | None) -> Snapshot:
    head = changes.head or ""
    return Snapshot(head, head, head, changes.branch, False, 0, 0, 0, 0, 0, (), (), operation)


def operation_in(git_dir: Path) -> str | None:
    """Return the operation that git is in the middle of, such as a merge; None where there is none."""
    for sign, operation in OPERATIONS:
        if (git_dir / sign).exists():
            return operation
    return None


def _plan(repo: Repository, wanted: Wanted, changes: Changes) -> IndexPlan:
    heads = _other_heads(repo.git_dir)

    def is_known(change: PathChange) -> bool:
        at = (f"{head}:{os.fsdecode(change.path)}" for head in heads)
        known = (repo.git.run("rev-parse", "--verify", "-q", name, check=False).out for name in at)
        return change.index in (found.strip() for found in known)

    planner = Planner(
        top=_top(repo),
        zero=repo.zero,
        forced=wanted.forced,
        included=wanted.included,
        apart=wanted.apart,
        signals=wanted.signals,
        staged_secrets=_staged_secrets(repo.git, changes.changed),
        most_bytes=wanted.most_bytes,
        is_known=is_known,
    )
    return planner.decide(changes)


def _staged_secrets(git: Git, changed: Sequence[PathChange]) -> Mapping[bytes, str]:
    """Return the newly staged files whose staged content looks secret, where the file itself has been edited since."""
    edited = [c for c in changed if c.staged == "A" and c.unstaged in "MDT" and not c.is_gitlink]
    if not edited:
        return {}
    out = git.out("cat-file", "--batch", input=b"".join(c.index + b"\n" for c in edited))
    found = {}
    for change in edited:
        head, _, out = out.partition(b"\n")
        size = int(head.split(b" ")[2])
        if reason := secret_text_reason(out[: min(size, READ_FOR_SECRETS)], change.path):
            found[change.path] = reason
        out = out[size + 1 :]
    return found


def _commit(
    repo: Repository, wanted: Wanted, changes: Changes, plan: IndexPlan, operation: str | None
) -> tuple[str, str]:
    conflict = _commit_conflict(repo, wanted, plan) if plan.unmerged else None
    aside = Aside(wanted.untracked, operation, conflict, tuple(plan.intent_to_add))
    with scratch_index(repo) as scratch:
        scratch.index_info(plan.reset)
        if plan.staged or plan.unmerged or changes.head is None:
            staged_tree = scratch.write_tree()
        else:
            staged_tree = f"{changes.head}^{{tree}}"
        scratch.index_info(plan.remove)
        scratch.add([*plan.gone, *plan.feed])
        moved = plan.remove or plan.gone or plan.feed
        work_tree = scratch.write_tree() if moved else staged_tree
    heads = _merge_heads(repo.git_dir) if operation == "merge" else []
    parents = [*([changes.head] if changes.head else []), *heads, *([conflict] if conflict else [])]
    staged = _write_commit(repo.git, wanted, staged_tree, parents, aside.dump())
    return staged, _write_commit(repo.git, wanted, work_tree, [staged], f"{WORK_SUBJECT}\n")


def _commit_conflict(repo: Repository, wanted: Wanted, plan: IndexPlan) -> str:
    """Write the sides of every path in conflict as one commit: a tree has one place for a path and git up to
    three sides.
    """
    lines = [
        b"%s %s 0\t%d/%s" % (mode, oid, number, conflict.path)
        for conflict in plan.unmerged
        for number, (mode, oid) in enumerate(conflict.stages, 1)
        if int(mode, 8)
    ]
    with scratch_index(repo, copied=False) as scratch:
        scratch.index_info(lines)
        tree = scratch.write_tree()
    return _write_commit(repo.git, wanted, tree, [], f"{UNMERGED_SUBJECT}\n")


def _write_commit(git: Git, wanted: Wanted, tree: str, parents: Sequence[str], message: str) -> str:
    stands_on = [part for parent in parents for part in ("-p", parent)]
    return git.text(
        "-c",
        "i18n.commitEncoding=UTF-8",
        "commit-tree",
        *stands_on,
        tree,
        input=message.encode("utf-8", "surrogateescape"),
        env=wanted.identity(),
    )


def _merge_heads(git_dir: Path) -> list[str]:
    return (git_dir / "MERGE_HEAD").read_text("ascii").split()


def _other_heads(git_dir: Path) -> list[str]:
    """Return the commits whose changes git is bringing in."""
    names = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD")
    return [
        head
        for name in names
        if (git_dir / name).is_file()
        for head in (git_dir / name).read_text("ascii").split()
    ]


def count_changes(git: Git, base: str | None, work: str) -> tuple[int, int, int]:
    """Count files, insertions and deletions from base to work. Renames are limited: counting must not cost more
    than saving.
    """
    start = base or EMPTY_TREE[len(work)]
    said = git.text("diff-tree", "--shortstat", "-M", "-l200", "--no-ext-diff", "--no-textconv", start, work)

    def number(word: str) -> int:
        found = re.search(rf"(\d+) {word}", said)
        return int(found[1]) if found else 0

    return number("file"), number("insertion"), number("deletion")


def _with_included(repo: Repository, wanted: Wanted, include: Sequence[str]) -> Wanted:
    top = _top(repo)
    names = tuple(_named(top, name) for name in include)
    listed = repo.git.out("ls-files", "-o", "-z", "--", *(os.fsdecode(name) for name in names))
    # A pipe or a socket is nothing that git lists; named by a person it deserves an answer.
    named = {name for name in names if not (top / os.fsdecode(name)).is_dir()}
    tracked = repo.git.out("ls-files", "-z", "--", *(os.fsdecode(name) for name in names)).split(b"\0")
    forced = {path for path in listed.split(b"\0") if path} | (named - set(tracked))
    return replace(wanted, included=names, forced=frozenset(forced))


def _apart(repo: Repository, names: Sequence[str]) -> frozenset[bytes]:
    """Return the paths below the top that `names` are; read through links on the way, as git lists them."""
    top = _top(repo).resolve() if names else Path()
    places = [Path(top / name) for name in names]
    real = [place.parent.resolve() / place.name for place in places]
    return frozenset(os.fsencode(place.relative_to(top)) for place in real if place.is_relative_to(top))


def signals_below(repo: Repository, folder: str) -> bytes:
    """Return the folder of signal files as git names it; empty where it is none, or lies outside of the tree."""
    found = _apart(repo, [f"{folder}/any.json"]) if folder and not repo.bare else frozenset()
    return next((path.rpartition(b"/")[0] for path in found), b"")


def _named(top: Path, name: str) -> bytes:
    place = Path(name)
    place = place.parent.resolve() / place.name if place.is_absolute() else top / place
    relative = os.fsencode(os.path.relpath(place, top))
    if relative.split(b"/", 1)[0] == b"..":
        raise Usage(
            f"{printable(os.fsencode(name))} is outside this working tree",
            hint=f"--include PATH, beneath {top}",
        )
    if lstat(top, relative) is None:
        raise Usage(
            f"nothing is at {printable(relative)}", hint=f"--include PATH: a file or a folder beneath {top}"
        )
    return relative


def _top(repo: Repository) -> Path:
    if repo.top is None:
        raise WorkFailed("a bare repository has no partial work", hint="ask in a clone, or with --no-work")
    return repo.top
