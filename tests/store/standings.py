"""Test bed: a branch that did something to files that `main` has as well, and how these are made to stand as there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitgate.store.work.aside import Difference, Files, compare
from gitgate.store.work.pinned import put_on, take_off
from store.hard_cases import listing
from support.testbed.repositories import Clone


def wanted(path: bytes) -> bool:
    return path.split(b"/")[-1] == b"rules" or b"conf" in path.split(b"/")


FILES = Files((":(glob)**/rules", ":(glob)**/conf", ":(glob)**/conf/**"), wanted)
Change = Callable[[Clone], object]


def look(repo: Clone) -> Difference:
    return compare(repo.repository, repo.git("rev-parse", "main"), FILES)


def on(repo: Clone) -> set[str]:
    """Let the files stand as `main` has them."""
    found = look(repo)
    put_on(repo.repository, found.stand)
    return {path.decode() for path in found.stand}


def off(repo: Clone) -> set[str]:
    return {path.decode() for path in take_off(repo.repository)}


def changed(repo: Clone) -> None:
    repo.commit(rules="side\n", **{"conf/hook": "side\n", "conf/new": "side\n"})


def staged(repo: Clone) -> None:
    repo.write("rules", "side\n")
    repo.git("add", "rules")


def edited_after_staging(repo: Clone) -> None:
    staged(repo)
    repo.write("rules", "edited since\n")


def untracked(repo: Clone) -> None:
    repo.write("conf/new", "side\n")


def ignored(repo: Clone) -> None:
    repo.commit(**{".gitignore": "conf/new\n"})
    repo.write("conf/new", "side\n")


def deleted(repo: Clone) -> None:
    repo.git("rm", "-q", "rules", "conf/hook")
    repo.commit()


def deleted_unstaged(repo: Clone) -> None:
    (repo.path / "rules").unlink()


def link_instead(repo: Clone) -> None:
    repo.git("rm", "-q", "-r", "conf")
    (repo.path / "conf").symlink_to(repo.path.parent)
    repo.commit()


def file_instead(repo: Clone) -> None:
    repo.git("rm", "-q", "-r", "conf")
    repo.commit(conf="side\n")


def folder_instead(repo: Clone) -> None:
    repo.git("rm", "-q", "rules")
    repo.commit(**{"rules/one": "side\n", "rules/two": "side\n"})


def executable(repo: Clone) -> None:
    (repo.path / "conf/hook").chmod(0o755)
    repo.commit()


SHAPES: list[tuple[Change, set[str]]] = [
    (changed, {"rules", "conf/hook", "conf/new"}),
    (staged, {"rules"}),
    (edited_after_staging, {"rules"}),
    (untracked, {"conf/new"}),
    (ignored, {"conf/new"}),
    (deleted, {"rules", "conf/hook"}),
    (deleted_unstaged, {"rules"}),
    (link_instead, {"conf", "conf/hook"}),
    (file_instead, {"conf", "conf/hook"}),
    (folder_instead, set()),
    (executable, {"conf/hook"}),
]
shapes = pytest.mark.parametrize(
    ("change", "stand"), SHAPES, ids=lambda given: getattr(given, "__name__", "")
)


def as_on_main(repo: Clone) -> dict[str, bytes]:
    """What `main` has of these files, by name."""
    names = [
        name for name in repo.git("ls-tree", "-r", "--name-only", "main").split() if wanted(name.encode())
    ]
    return {name: repo.git("show", f"main:{name}").encode() + b"\n" for name in names}


def of_these(repo: Clone) -> dict[str, bytes]:
    """The same of the working tree."""
    names = [name for name in listing(repo.path) if wanted(name.encode())]
    return {name: (repo.path / name).read_bytes() for name in names if (repo.path / name).is_file()}
