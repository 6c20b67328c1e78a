"""Store: git configuration that is the machine's own.

A configuration may include a file of the working tree; what stands there came with a branch, and grants nothing.
"""

from __future__ import annotations

from pathlib import Path

from .process import Git
from .repository import Repository


def machine_values(repo: Repository, pattern: str, *, nearest: bool = False) -> dict[str, list[str]]:
    """All values of the keys that match, in their order, without those that a file of a working tree brought.

    `nearest`: of each key those alone that stand together: the repository's own rather than the person's, and those before
    the system's.
    """
    how = ("--null", "--show-scope", "--show-origin")
    asked = repo.git.run("config", *how, "--get-regexp", pattern, check=False)
    parts = asked.out.decode("utf-8", "surrogateescape").split("\0")
    found: dict[str, list[str]] = {}
    scopes: dict[str, str] = {}
    foreign: dict[str, bool] = {}
    for scope, origin, line in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        if origin not in foreign:
            foreign[origin] = from_work(repo.git, origin, repo)
        if foreign[origin]:
            continue
        key, newline, value = line.partition("\n")
        if nearest and scopes.setdefault(key, scope) != scope:
            found[key], scopes[key] = [], scope
        found.setdefault(key, []).append(value if newline else "true")
    return found


def from_work(git: Git, origin: str, repo: Repository) -> bool:
    """Whether a value's origin is a file that a branch carries: inside the working tree and outside git's own folder."""
    if not origin.startswith("file:"):
        return origin.startswith("blob:")
    file = (git.directory / unquoted(origin.removeprefix("file:"))).resolve()
    if any(file.is_relative_to(place.resolve()) for place in (repo.common_dir, repo.git_dir)):
        return False
    tops = [repo.top, *(_top(pointer) for pointer in (repo.common_dir / "worktrees").glob("*/gitdir"))]
    if repo.common_dir.name == ".git":
        tops.append(repo.common_dir.parent)
    return any(file.is_relative_to(top.resolve()) for top in tops if top is not None)


def _top(pointer: Path) -> Path:
    return Path(pointer.read_text("utf-8", "surrogateescape").strip()).parent


def unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name
