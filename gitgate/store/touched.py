"""Store: which paths a gate's work touches, counted from where it left the protected branch."""

from __future__ import annotations

from .repository import Repository
from .saved import EMPTY_TREE


def touched(repo: Repository, protected: str | None, base: str | None, work: str) -> tuple[str, ...] | None:
    """Every path that the work changes, the agent's own commits included; None where its objects are not here.

    From the protected branch rather than from the base: what an agent committed before it asked is its work too.
    """
    git = repo.git
    if not git.ok("cat-file", "-e", f"{work}^{{commit}}"):
        return None
    start = base or EMPTY_TREE[len(work)]
    if protected is not None:
        common = git.run("merge-base", protected, work, check=False)
        start = common.out.decode().strip() or EMPTY_TREE[len(work)]
    return between(repo, start, work)


def between(repo: Repository, start: str, end: str) -> tuple[str, ...] | None:
    """Every path that `end` has otherwise than `start`; None where one of them is not here."""
    said = repo.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", start, end, "--", check=False)
    if said.code:
        return None
    return tuple(path.decode("utf-8", "surrogateescape") for path in said.out.split(b"\0") if path)
