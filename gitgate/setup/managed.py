"""Setup: managed parts of a repository. One value says how a part is written, whether it is there as it should be, and how it is
removed, so that `git gate init` and `git gate init --remove` cannot disagree about it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..context import Desk
from ..document import dataclass
from ..errors import Failure, Usage


@dataclass(frozen=True)
class Step:
    """One thing to set up, and what it `means` for the person. `done`: it is so already."""

    name: str
    means: str
    done: bool
    take: Callable[[], None]


@dataclass(frozen=True)
class ManagedText:
    """File of a project that is ours, or that has a part of ours.

    `add` returns the file's text with our part, and `drop` the text without it, both from the text as it is now; the text of a
    file that is missing is empty, and a file whose text would be empty is removed. `add` may refuse: what is not ours is
    not written over. Where it fails for an `optional` part, that part is not written, and the step says why.
    """

    top: Path
    file: str
    means: str
    add: Callable[[str], str]
    drop: Callable[[str], str]
    part: str = ""
    removed: str = "taken away"
    executable: bool = False
    optional: bool = False

    @property
    def place(self) -> Path:
        return self.top / self.file

    @property
    def name(self) -> str:
        return f"{self.part} in {self.file}" if self.part else self.file

    def write(self) -> Step:
        """Return the step that puts our part there, done where it is there as it should be."""
        here = text_of(self.place)
        try:
            wanted = self.add(here)
        except Failure as unknown:
            if not self.optional:
                raise
            words = f"not written: {unknown.message}; {unknown.hint}"
            return Step(self.name, words, True, lambda: None)
        done = here == wanted and (not self.executable or os.access(self.place, os.X_OK))
        return Step(
            self.name, self.means, done, lambda: put_text(self.place, wanted, executable=self.executable)
        )

    def remove(self) -> Step:
        """Return the step that takes our part away, done where there is none."""
        here = text_of(self.place)
        left = self.drop(here)

        def take() -> None:
            if left.strip():
                put_text(self.place, left)
            else:
                take_away(self.place, self.top)

        return Step(self.name, self.removed, here == left, take)


@dataclass(frozen=True)
class ManagedSetting:
    """Value in the configuration of this repository alone."""

    desk: Desk
    key: str
    value: str
    means: str

    def write(self) -> Step:
        """Return the step that sets it, done where it has this value."""
        done = self.desk.settings.git.get(self.key.lower()) == self.value
        return Step(
            f"config {self.key} {self.value}",
            self.means,
            done,
            lambda: configure(self.desk, "--replace-all", self.key, self.value),
        )

    def remove(self) -> Step:
        """Return the step that unsets it, whatever its value is, done where it has none."""
        done = self.key.lower() not in self.desk.settings.git
        return Step(
            f"config {self.key}", "forgotten", done, lambda: configure(self.desk, "--unset-all", self.key)
        )


Managed = ManagedText | ManagedSetting


def configure(desk: Desk, *args: str) -> None:
    """Change the configuration of this repository alone."""
    desk.repo.git.run("config", "--local", *args)


def top_of(desk: Desk) -> Path:
    """Return the top of the working tree; a bare repository is refused."""
    if desk.repo.top is None:
        raise Usage("this is a bare repository: there is no project to write to", hint="do it in a clone")
    return desk.repo.top


def text_of(place: Path) -> str:
    """Return the text of a file, empty where there is none."""
    try:
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as unreadable:
        raise Failure(
            f"{place} cannot be read: {unreadable}", hint="mend it, or move it away"
        ) from unreadable


def refuse_foreign(name: str, text: str, mark: str) -> None:
    """Refuse a file that is there without our mark: it is somebody else's."""
    if text and mark not in text:
        raise Usage(f"{name} is there, and is not ours", hint="rename it, and run this again")


def put_text(place: Path, text: str, *, executable: bool = False) -> None:
    """Write all of a file or nothing; a link is followed to the file that it stands for."""
    place = place.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}.new")
    new.write_text(text, encoding="utf-8", newline="\n")
    mode = place.stat().st_mode & 0o777 if place.exists() else 0o644
    new.chmod(mode | 0o111 if executable else mode)
    new.replace(place)


def take_away(place: Path, stop: Path) -> None:
    """Remove a file, and the folders below `stop` that it leaves empty."""
    place.unlink(missing_ok=True)
    for folder in place.parents:
        if folder == stop or not folder.is_relative_to(stop) or any(folder.iterdir()):
            return
        folder.rmdir()
