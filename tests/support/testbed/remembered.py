"""Test bed: what git said of a repository's place and of its settings, for as long as nothing that it read has changed.

Each command asks git both when it begins, and a test gives many commands: one git process in five said what another
had said a moment before. Git itself answers first, in each test. Whatever else it may have looked at is not remembered:
settings that include others, a working tree elsewhere, a repository that is searched upward.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gitgate.store.git import Git, GitResult, Started

if TYPE_CHECKING:
    import pytest

READING = frozenset({"--list", "--get-regexp", "--get-all"})
# Settings that make git read what is not looked at here.
LEADING = (b"include", b"worktree")
RUN, BEGIN = Git.run, Git.begin
GIT = shutil.which("git")


@dataclass
class Remembered:
    """What was said in this test, by everything that it followed from."""

    said: dict[object, GitResult] = field(default_factory=dict)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """From now on git is asked once, within this process; those that are started ask for themselves."""

        def run(git: Git, *args: str, **how: object) -> GitResult:
            premises = None if how.keys() - {"check"} else followed_from(git, args)
            if premises is None or premises not in self.said:
                result = RUN(git, *args, **how)  # type: ignore[arg-type]
                if premises is not None:
                    self.said[premises] = result
                return result
            return self.said[premises]

        def begin(git: Git, *args: str) -> Started | Begun:
            premises = followed_from(git, args)
            if premises is None:
                return BEGIN(git, *args)
            return Begun(self, premises, None if premises in self.said else BEGIN(git, *args))

        patch.setattr(Git, "run", run)
        patch.setattr(Git, "begin", begin)


@dataclass(frozen=True)
class Begun:
    """As `Started`, of a command that may have run before."""

    memory: Remembered
    premises: object
    started: Started | None

    def result(self) -> GitResult:
        if self.started is not None:
            self.memory.said[self.premises] = self.started.result()
        return self.memory.said[self.premises]

    def close(self) -> None:
        if self.started is not None:
            self.started.close()


def followed_from(git: Git, args: tuple[str, ...]) -> object:
    """All that the answer to such a question depends on; nothing where there may be more than is known here."""
    place = args[:2] == ("rev-parse", "--absolute-git-dir")
    if not (place or (args[0] == "config" and READING & set(args) and not {"--file", "--blob"} & set(args))):
        return None
    if git.env.get("GIT_CONFIG_NOSYSTEM") != "1" or not the_real_git(git.env):
        return None
    try:
        folder = git_folder(git)
        return folder and (tuple(git.prefix), args, tuple(sorted(git.env.items())), *looked_at(git, folder))
    except OSError:
        return None


def the_real_git(env: Mapping[str, str]) -> bool:
    """A test may put a git of its own first, or have git tell what it does."""
    if any(name.startswith("GIT_TRACE") for name in env):
        return False
    for folder in env.get("PATH", "").split(os.pathsep):
        if os.path.lexists(found := f"{folder}/git"):
            return found == GIT
    return False


def git_folder(git: Git) -> Path | None:
    """Git's own folder of what is in this directory itself."""
    if named := git.env.get("GIT_DIR"):
        return git.directory / named
    inner = git.directory / ".git"
    if inner.is_file():
        return git.directory / os.fsdecode(inner.read_bytes()).removeprefix("gitdir:").strip()
    if inner.is_dir():
        return inner
    return git.directory if (git.directory / "HEAD").is_file() else None


def looked_at(git: Git, folder: Path) -> tuple[object, ...]:
    """The files that it reads, as they are now, and who has those folders; OSError where one leads elsewhere."""
    link = folder / "commondir"
    common = folder / os.fsdecode(link.read_bytes()).strip() if link.exists() else folder
    person = Path(git.env["GIT_CONFIG_GLOBAL"]) if "GIT_CONFIG_GLOBAL" in git.env else common / "none"
    settings = [content(file) for file in (person, common / "config", folder / "config.worktree")]
    if any(word in (text or b"").lower() for text in settings for word in LEADING):
        raise OSError("these settings lead to others")
    others = (content(folder / "HEAD"), content(common / "shallow"))
    places = [stat(place) for place in (git.directory, folder, common, common / "objects", common / "refs")]
    return (git.directory, *settings, *others, *places, os.geteuid(), Path.cwd())


def content(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def stat(place: Path) -> tuple[int, int, int, int]:
    seen = place.stat()
    return (seen.st_dev, seen.st_ino, seen.st_uid, seen.st_mode)
