"""Test bed: pushes to a server with our hook, by many hands, of which most are refused.

The hook is asked within this process first, in the server's repository: that takes a hundredth of the time of a push. What it lets
in is pushed in earnest, and some of what it refuses too, so that it is the real hook that is tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from hypothesis import settings

from gitgate.cli.receive import pre_receive
from gitgate.errors import GateError
from support.testbed.repositories import Clone

Moves = Mapping[str, "str | None"]
ZERO = "0" * 40
IN_EARNEST = 12
"""Each so many refusals one is pushed all the same."""


def examples(few: int) -> int:
    """As many as the profile has, where `few` are what every run can afford."""
    return few * settings().max_examples // settings.get_profile("repeatable").max_examples


def lend_objects(borrower: Clone, lenders: Iterable[Clone]) -> None:
    """What anybody has there is read by the borrower as its own: nothing need be fetched."""
    folders = [
        one.path / ("objects" if (one.path / "objects").is_dir() else ".git/objects") for one in lenders
    ]
    borrower.write(".git/objects/info/alternates", "".join(f"{folder}\n" for folder in folders))


@dataclass
class Door:
    """The hook of a server, and how often it has refused."""

    server: Clone
    refusals: int = 0
    said: str = ""
    """What it said last."""
    seen: dict[str, str] = field(default_factory=dict)

    def refs(self) -> dict[str, str]:
        """What is there; read again after a push, and once somebody said that others were at it."""
        self.seen = self.seen or self.server.refs("refs/hitl")
        return self.seen

    def look_again(self) -> None:
        self.seen = {}

    def refuses(self, clone: Clone, moves: Moves) -> bool:
        """Whether the hook takes no such push from there."""
        there = self.refs()
        lines = [
            f"{there.get(ref, ZERO)} {new or ZERO} {ref}\n"
            for ref, new in moves.items()
            if there.get(ref) != new
        ]
        env = {
            **os.environ,
            "GIT_DIR": str(self.server.path),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(clone.path / ".git/objects"),
        }
        notes = {note: note.read_bytes() for note in self.server.path.glob("gitgate/sightings/*")}
        with redirect_stderr(StringIO()) as said:
            try:
                refused = not lines or pre_receive(env, "".join(lines).encode()) != 0
            except GateError as failed:
                refused, self.said = True, failed.message
        self.said = said.getvalue() or self.said
        assert "is not in this repository" not in self.said, "an attack that is not whole tries nothing"
        for note, text in notes.items() if not refused else ():
            note.write_bytes(text)  # Nothing was received yet.
        return refused

    def push(self, clone: Clone, moves: Moves) -> bool:
        """All of it or nothing, whatever is there now; whether it was taken."""
        refused = self.refuses(clone, moves)
        self.refusals += refused
        if refused and self.refusals % IN_EARNEST:
            return False
        before = self.refs()
        specs = [f"{new or ''}:{ref}" for ref, new in moves.items() if new or ref in before]
        if specs:
            clone.git("push", "-q", "-f", "--atomic", str(self.server.path), *specs, check=False)
        self.look_again()
        after = self.refs()
        assert not refused or after == before, f"a push does what the hook refuses: {specs}"
        taken = all(after.get(ref) == new for ref, new in moves.items())
        assert refused or taken, f"a push does not do what the hook takes: {specs}"
        return not refused


def copy_places(pattern: Sequence[Clone], to: Path) -> Path:
    """Repositories that know one another, in another folder: what one history does there, the next one does not see."""
    for one in pattern:
        place = shutil.copytree(one.path, to / one.path.name, symlinks=True, copy_function=shutil.copy)
        config = place / (".git/config" if (place / ".git").is_dir() else "config")
        text = config.read_text()
        for other in pattern:
            text = text.replace(str(other.path), str(to / other.path.name))
        config.write_text(text)
    return to
