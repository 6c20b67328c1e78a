"""Store: which paths a gate's work touches, counted from where it left the protected branch, and which of them the files
as they were do not show.
"""

from __future__ import annotations

from ..core.values import dataclass
from .git import Git
from .repository import Repository
from .saved import EMPTY_TREE, load_aside


def touched(
    repo: Repository, protected: str | None, base: str | None, work: str, staged: str | None = None
) -> tuple[str, ...] | None:
    """Every path that the work changes, the agent's own commits included; None where its objects are not here.

    From the protected branch rather than from the base: what an agent committed before it asked is its work too. Restoring
    brings back the base, what was staged and the sides of a conflict as well as the files, so that all of them count: a file
    that was staged, or committed, and then deleted is in none of the working tree's own changes.
    """
    git = repo.git
    trees = dict.fromkeys(name for name in (work, staged, base) if name)
    if not all(git.ok("cat-file", "-e", f"{name}^{{commit}}") for name in trees):
        return None
    start = base or EMPTY_TREE[len(work)]
    if protected is not None:
        common = git.run("merge-base", protected, work, check=False)
        start = common.out.decode().strip() or EMPTY_TREE[len(work)]
    found: dict[str, None] = {}
    for name in trees:
        paths = between(repo, start, name)
        if paths is None:
            return None
        found.update(dict.fromkeys(paths))
    conflicting = beneath(git, base, staged or work, work).conflicting
    return (*found, *(path for path in map(decoded, conflicting) if path not in found))


def between(repo: Repository, start: str, end: str) -> tuple[str, ...] | None:
    """Every path that `end` has otherwise than `start`; None where one of them is not here."""
    said = repo.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", start, end, "--", check=False)
    if said.code:
        return None
    return tuple(decoded(path) for path in said.out.split(b"\0") if path)


def decoded(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Beneath:
    """What restoring work brings back beside the files as they were. `staged`: paths that are staged as neither the base nor
    the working tree has them, deletions included. `conflicting`: paths in conflict, whose sides `conflict` holds.
    """

    staged: tuple[bytes, ...] = ()
    conflicting: tuple[bytes, ...] = ()
    conflict: str | None = None


def beneath(git: Git, base: str | None, staged: str, work: str) -> Beneath:
    """What a comparison of the working tree with its base does not show; nothing where the commits are all the same."""
    if base == staged:
        return Beneath()
    start = base or EMPTY_TREE[len(work)]
    in_index = names(git, start, staged)
    beside = frozenset(names(git, staged, work)) if in_index and staged != work else frozenset()
    conflict = load_aside(git, staged).unmerged
    # Below a folder for each of its sides.
    listed = git.out("ls-tree", "-r", "-z", "--name-only", "--full-tree", conflict) if conflict else b""
    sides = dict.fromkeys(name.partition(b"/")[2] for name in listed.split(b"\0") if name)
    return Beneath(tuple(path for path in in_index if path in beside), tuple(sides), conflict)


def names(git: Git, start: str, end: str) -> list[bytes]:
    asked = git.out("diff-tree", "-r", "-z", "--name-only", "--no-renames", start, end, "--")
    return [path for path in asked.split(b"\0") if path]
