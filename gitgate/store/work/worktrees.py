"""Store: the working trees that a repository has, and which branch the next one may stand on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import Usage, WorkFailed
from ..git.process import Git
from ..git.repository import Repository
from .saved import printable

MOST_NAMES = 100
READABLE = 0o644


@dataclass(frozen=True)
class WorkingTree:
    path: Path
    branch: str | None


@dataclass(frozen=True)
class Choice:
    """The branch that a new working tree stands on (None: on none), whether it is to be made, and what to tell."""

    branch: str | None
    create: bool = False
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def in_turn(repo: Repository, *, change: bool) -> Iterator[None]:
    """Changes one after the other, and no reading meanwhile: git gives up over a working tree that another git just makes."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = _open_lock(repo.common_dir / "gitgate-worktrees.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if change else fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _open_lock(place: Path) -> int:
    """The same file for every account that works in the repository, whatever its umask: it is empty, and to read it is enough."""
    try:
        lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, READABLE)
    except PermissionError as refused:
        try:
            return os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it could not be made, and that is what to say
            raise refused from None
    if os.fstat(lock).st_mode & READABLE != READABLE:
        with contextlib.suppress(PermissionError):
            os.fchmod(lock, READABLE)
    return lock


def list_worktrees(repo: Repository) -> list[WorkingTree]:
    """Every working tree, with the branch it stands on, or is about to return to when its rebase is through."""
    with in_turn(repo, change=False):
        out = repo.git.out("worktree", "list", "--porcelain", "-z")
    found = []
    for block in out.split(b"\0\0"):
        lines = dict(line.partition(b" ")[::2] for line in block.split(b"\0") if line)
        if b"worktree" in lines:
            branch = lines.get(b"branch")
            short = branch and os.fsdecode(branch.removeprefix(b"refs/heads/"))
            found.append(WorkingTree(Path(os.fsdecode(lines[b"worktree"])), short or None))
    return [*found, *_rebasing(repo)]


def _rebasing(repo: Repository) -> list[WorkingTree]:
    found = []
    for git_dir in (repo.common_dir, *sorted((repo.common_dir / "worktrees").glob("*"))):
        for room in ("rebase-merge", "rebase-apply"):
            name = git_dir / room / "head-name"
            if name.is_file():
                branch = name.read_text("utf-8", "surrogateescape").strip().removeprefix("refs/heads/")
                found.append(WorkingTree(_place_of(git_dir), branch))
    return found


def _place_of(git_dir: Path) -> Path:
    pointer = git_dir / "gitdir"
    if not pointer.is_file():
        return git_dir.parent
    return Path(pointer.read_text("utf-8", "surrogateescape").strip()).parent


def choose_branch(repo: Repository, base: str | None, branch: str | None, fallback: str) -> Choice:
    """The branch itself where it is free and still at base (or gone); otherwise a new one, and the reason."""
    if branch is None:
        return Choice(None)
    if not _is_branch_name(repo.git, fallback):
        raise Usage(
            f"not a name for a branch: {printable(os.fsencode(fallback))}",
            hint="see: git help check-ref-format",
        )
    held = {tree.branch: tree.path for tree in list_worktrees(repo) if tree.branch}
    shown = printable(os.fsencode(branch))
    if not _is_branch_name(repo.git, branch):
        reason = f"{shown} is not a name for a branch"
    elif branch in held:
        reason = f"branch {shown} is checked out in {held[branch]}"
    else:
        tip = _tip(repo.git, branch)
        if tip == base:
            return Choice(branch, create=base is None)
        if tip is None:
            return Choice(
                branch, create=True, notes=(f"branch {shown} was not here: it was made at the work's base",)
            )
        reason = f"branch {shown} has moved since the question was asked"
    name = _free_name(repo.git, base, fallback, held)
    note = f"{reason}; this work stands on the new branch {name}" + (f" at {base[:10]}" if base else "")
    return Choice(name, create=True, notes=(note,))


def _free_name(git: Git, base: str | None, wanted: str, held: dict[str, Path]) -> str:
    for number in range(1, MOST_NAMES):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if name not in held and _tip(git, name) in (None, base):
            return name
    raise WorkFailed(
        f"every branch from {wanted} to {wanted}-{MOST_NAMES} is taken", hint=f"git branch --list '{wanted}*'"
    )


def _tip(git: Git, branch: str) -> str | None:
    asked = git.run("rev-parse", "--verify", "-q", f"refs/heads/{branch}^{{commit}}", check=False)
    return asked.out.decode().strip() or None


def _is_branch_name(git: Git, name: str) -> bool:
    plain = bool(name) and not name.startswith("-") and name != "HEAD" and "\0" not in name
    return plain and git.ok("check-ref-format", f"refs/heads/{name}")


def outside(repo: Repository) -> Git:
    """Git that stands in no working tree, so that it may remove the one that the caller stands in."""
    git = Git(repo.common_dir, without_place(repo.git.env))
    git.env["GIT_DIR"] = str(repo.common_dir)
    return git


def without_place(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
