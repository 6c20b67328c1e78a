"""Any mix of staged, unstaged and untracked changes comes back as it was."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gitgate.store.work.restore import matches
from store.hard_cases import fingerprint, listing, reopen, snap, status
from support.testbed.repositories import Clone, make_clone

# Few names, some of them each other's folders, so that files, links and folders take one another's places.
NAMES = ("a", "b", "d", "d/x", "d/y", "e/f/g", "ü", "-z", "n\nl")
# Each makes two repositories: a quarter of what is usual, which is 25.
EXAMPLES = settings().max_examples // 4
KINDS = ("file", "program", "link", "gone")


@dataclass(frozen=True)
class Move:
    """One thing that an agent does."""

    name: str
    kind: str
    text: str
    then: str

    def make(self, clone: Clone) -> None:
        place = clone.path / self.name
        clear(clone.path, place)
        if self.kind == "link":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.text or "nowhere")
        elif self.kind != "gone":
            clone.write(self.name, self.text, executable=self.kind == "program")
        if self.then == "stage":
            clone.git("--literal-pathspecs", "add", "-A", "--", self.name, check=False)
        elif self.then == "intend" and self.kind != "gone":
            clone.git("--literal-pathspecs", "add", "-N", "--", self.name, check=False)


def clear(top: Path, place: Path) -> None:
    """Make room: whatever is at a place or stands where one of its folders has to be."""
    for path in (*reversed(place.parents), place):
        if path.is_relative_to(top) and path != top and (path.is_symlink() or path.is_file()):
            path.unlink()
    if place.is_dir():
        shutil.rmtree(place)


moves = st.lists(
    st.builds(
        Move,
        name=st.sampled_from(NAMES),
        kind=st.sampled_from(KINDS),
        text=st.sampled_from(("", "one\n", "two\r\n", "d", "a")),
        then=st.sampled_from(("leave", "stage", "stage", "intend")),
    ),
    max_size=8,
)


@pytest.mark.usefixtures("person")
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=moves, work=moves)
@pytest.mark.slow
def test_any_work_comes_back(history: list[Move], work: list[Move]) -> None:
    """Whatever was committed and whatever was done since, the same split and the same files come back."""
    with tempfile.TemporaryDirectory() as room:
        clone = make_clone(Path(room) / "r")
        for move in history:
            move.make(clone)
        clone.commit()
        for move in work:
            move.make(clone)
        before = fingerprint(clone)
        snapshot = snap(clone)
        assert fingerprint(clone) == before
        assert snapshot.left_out == ()
        event(f"dirty: {snapshot.dirty}")
        place = reopen(clone, snapshot, Path(room) / "w")
        # An intended file that is gone again has nothing to come back: git lists it as deleted where it was intended.
        expected = [line for line in status(clone.path) if line not in gone_intents(clone)]
        assert status(place.directory) == expected
        assert listing(place.directory) == listing(clone.path)
        assert matches(clone.repository, snapshot.work, snapshot.staged)


def gone_intents(clone: Clone) -> list[bytes]:
    tracked = set(clone.git("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0"))
    deleted = [line for line in status(clone.path) if line.startswith(b"1 .D ")]
    return [line for line in deleted if line.split(b" ", 8)[8].decode() not in tracked]
