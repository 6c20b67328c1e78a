"""Store: git's configuration: the machine's own, and all of it as it was before an agent worked beside it.

A configuration may include a file of the working tree; what stands there came with a branch, and grants nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from ...document.values import dataclass
from ...errors import Failure
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


MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class KeptFiles:
    """What files held, None where there was none; and git's configuration as it came out of them."""

    files: Mapping[Path, bytes | None]
    settings: bytes


WATCHED: dict[Path, KeptFiles] = {}


def keep_config(repo: Repository, besides: Iterable[Path] = ()) -> KeptFiles:
    files = {*sources(repo), *besides}
    return KeptFiles({place: content(place) for place in sorted(files)}, whole_config(repo))


def put_back(repo: Repository, kept: KeptFiles) -> list[Path]:
    """Whatever was changed stands as it did; those files. Failure where git's configuration is another nevertheless."""
    changed = [place for place, before in kept.files.items() if content(place) != before]
    for place in changed:
        restore(place, kept.files[place])
    if whole_config(repo) != kept.settings:
        raise altered()
    return changed


def altered() -> Failure:
    return Failure(
        "git's configuration was changed while the agent worked, and cannot be put back: nothing is sent with it",
        hint="git config --list --show-origin in that job says what it is now; what the agent did is in its log",
    )


def watch_config(repo: Repository, besides: Iterable[Path] = ()) -> None:
    """From now on no conversation of this process begins with another configuration."""
    WATCHED[repo.common_dir] = keep_config(repo, besides)


def look_after(repo: Repository) -> list[Path]:
    kept = WATCHED.get(repo.common_dir)
    return put_back(repo, kept) if kept is not None and files_differ(kept) else []


def files_differ(kept: KeptFiles) -> bool:
    return any(content(place) != before for place, before in kept.files.items())


def sources(repo: Repository) -> set[Path]:
    """The files that git takes its configuration from, and those that it would if they were there."""
    env = repo.git.env
    home = Path(env.get("HOME") or "/")
    usual = {
        repo.common_dir / "config",
        repo.common_dir / "config.worktree",
        repo.git_dir / "config.worktree",
    }
    usual |= {home / ".gitconfig", Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"}
    if env.get("GIT_CONFIG_GLOBAL"):
        usual.add(Path(env["GIT_CONFIG_GLOBAL"]))
    # Where the repository is, other configuration would be.
    usual |= {repo.git_dir / "commondir", *link(repo)}
    origins = (part.decode("utf-8", "surrogateescape") for part in whole_config(repo).split(b"\0"))
    named = {origin.removeprefix("file:") for origin in origins if origin.startswith("file:")}
    return {Path(os.path.normpath(repo.git.directory / name)) for name in named} | usual


def link(repo: Repository) -> list[Path]:
    """The file that says where the repository is, in a working tree that has one."""
    place = repo.top / ".git" if repo.top is not None else None
    return [place] if place is not None and place.is_file() else []


def whole_config(repo: Repository) -> bytes:
    return repo.git.run("config", "--list", "--show-origin", "--includes", "-z", check=False).out


def config_digest(repo: Repository) -> str:
    """A word for all of git's configuration here."""
    return sha256(whole_config(repo)).hexdigest()


def content(place: Path) -> bytes | None:
    try:
        with place.open("rb") as file:
            return file.read(MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as unreadable:
        raise altered() from unreadable


def restore(place: Path, before: bytes | None) -> None:
    try:
        if before is None:
            place.unlink()
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_name(f".{place.name}.{os.getpid()}.gitgate")
        new.write_bytes(before)
        if place.exists():
            new.chmod(place.stat().st_mode & 0o7777)
        new.replace(place)
    except OSError as unwritable:
        raise altered() from unwritable
