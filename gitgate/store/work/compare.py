"""Store: saved work compared: with the directory it was taken from, and with its base, as a person reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ...errors import GateError, GitFailed, WorkFailed
from ..git.process import Git
from ..git.repository import Repository
from .leftout import printable
from .saved import (
    EMPTY_TREE,
    Saved,
    beneath,
    is_id,
    load_saved,
    load_unverified,
    missing_or_failed,
)
from .snapshot import Wanted, signals_below, take_wanted


def matches(
    repo_of_directory: Repository, work: str, staged: str, *, untracked: bool | None = None, signals: str = ""
) -> bool:
    """Whether a directory is still as the agent left it: the same HEAD, and a snapshot of it would be the same."""
    repo = repo_of_directory
    saved = load_unverified(repo.git, staged=staged, work=work)
    # What was forced into the snapshot (`--include`) has to be looked at again, and looks no different from here.
    forced = frozenset(_changed_new(repo.git, saved))
    wanted = Wanted(
        at=0,
        author=("gitgate", "gitgate@localhost"),
        untracked=saved.aside.untracked if untracked is None else untracked,
        forced=forced,
        included=tuple(sorted(forced)),
        signals=signals_below(repo, signals),
    )
    try:
        now = take_wanted(repo, wanted)
        again = load_saved(repo.git, base=now.base, staged=now.staged, work=now.work)
        return _shape(repo.git, saved) == _shape(repo.git, again)
    except GateError:
        return False


def _changed_new(git: Git, saved: Saved) -> list[bytes]:
    start = saved.base or EMPTY_TREE[len(saved.work)]
    asked = git.out(
        "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", start, saved.work
    )
    return [path for path in asked.split(b"\0") if path]


def _shape(git: Git, saved: Saved) -> tuple[object, ...]:
    aside = saved.aside
    conflict = git.text("rev-parse", f"{aside.unmerged}^{{tree}}") if aside.unmerged else None
    trees = (saved.base, saved.staged_tree, saved.work_tree, saved.merge_heads, conflict)
    return (*trees, aside.operation, frozenset(aside.intent_to_add))


STAGED_ONLY = b"Staged, and not so in the working tree; it comes back with the work:\n"
THEIR_SIDE = b"In conflict, their side; it comes back with the work:\n"
MOST_ARGUMENTS = 100_000


def diff_whole(
    repo: Repository,
    base: str | None,
    staged: str | None,
    work: str,
    *,
    stat: bool = False,
    cells: int = 80,
) -> bytes:
    """The partial work with all that comes back with it. What the working tree does not show stands first: no length of the
    rest can push it out of sight.
    """
    try:
        found = beneath(repo.git, base, staged or work, work)
    except GitFailed as failed:
        raise missing_or_failed(failed) from failed

    def part(end: str, paths: Sequence[bytes]) -> bytes:
        return diff(repo, base, end, stat=stat, cells=cells, paths=[os.fsdecode(path) for path in paths])

    parts = []
    if found.staged and staged:
        parts += [STAGED_ONLY, *(part(staged, some) for some in in_parts(found.staged))]
    if found.conflict and (theirs := _their_side(repo.git, found.conflict)):
        parts += [THEIR_SIDE, *(part(theirs, some) for some in in_parts(found.conflicting))]
    return b"".join([*parts, b"\n" if parts else b"", diff(repo, base, work, stat=stat, cells=cells)])


def _their_side(git: Git, conflict: str) -> str | None:
    said = git.run("rev-parse", "--verify", "-q", f"{conflict}:3", check=False)
    return said.out.decode().strip() or None


def in_parts(paths: Sequence[bytes]) -> Iterator[list[bytes]]:
    """As many at a time as a command line takes."""
    part: list[bytes] = []
    size = 0
    for path in paths:
        if part and size + len(path) > MOST_ARGUMENTS:
            yield part
            part, size = [], 0
        part.append(path)
        size += len(path) + 1
    if part:
        yield part


def diff(
    repo: Repository,
    base: str | None,
    work: str,
    *,
    stat: bool = False,
    cells: int = 80,
    color: bool = False,
    paths: Sequence[str] = (),
) -> bytes:
    """The partial work as a patch, or a summary of so many cells. No program that attributes or configuration name is run."""
    start = base or EMPTY_TREE.get(len(work), "")
    for name in (start, work):
        if not is_id(name):
            raise WorkFailed(f"not the full id of a commit: {printable(os.fsencode(name))}")
    try:
        return repo.git.out(
            *("-c", "core.quotePath=false"),  # names as people wrote them; what acts is quoted all the same
            "diff-tree",
            "-r",
            "-M",
            f"--stat={max(cells, 40)}" if stat else "--patch",
            f"--color={'always' if color else 'never'}",
            "--no-ext-diff",
            "--no-textconv",
            "--submodule=short",
            "--ignore-submodules=none",
            start,
            work,
            "--",
            *paths,
        )
    except GitFailed as failed:
        raise missing_or_failed(failed) from failed
