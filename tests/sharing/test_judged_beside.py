"""A push that opens many gates: a second process judges half of them, and what comes of it is what one would have said."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gitgate import sharing
from gitgate.exchange.entering import Push
from gitgate.model.gate import Gate
from gitgate.sharing import refusals
from gitgate.store.git.refs import OPEN, Update
from support.misreading import EVERY, changed
from support.resuming import Seat

COUNT = 12
OF_A_ROOT = [name for name in EVERY if not name.startswith("parents ")]  # a question has none


@pytest.fixture
def updates(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> list[Update]:
    """As a server is asked to take them; of few gates it takes many here."""
    monkeypatch.setattr(sharing, "MANY", COUNT)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    gates = [alone.ask(f"Which, {number}?", push=False) for number in range(COUNT)]
    return [Update(None, gate.tip, OPEN + gate.id) for gate in gates]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this process looked at."""
    seen: list[str] = []
    real = sharing.judge

    def judge(push: Push, update: Update) -> str:
        seen.append(update.ref)
        return real(push, update)

    monkeypatch.setattr(sharing, "judge", judge)
    return seen


def test_half_of_many_are_judged_elsewhere(alone: Seat, updates: list[Update], judged: list[str]) -> None:
    """And what git says to the one is not read by the other. Nothing of the second process is left."""
    assert refusals(alone.desk, updates) == {}
    assert judged == [update.ref for update in updates[: COUNT // 2]]
    assert refusals(alone.desk, updates[1:]) == {}
    assert len(judged) == COUNT // 2 + COUNT - 1
    assert os.waitpid(-1, os.WNOHANG) == (0, 0)  # the git that answers goes on, and none waits to be noticed


def test_what_is_refused_is_so_in_the_same_words(alone: Seat, updates: list[Update]) -> None:
    """Wherever in the push it stands."""
    wrong = [Update(None, updates[0].new, updates[place].ref) for place in (3, COUNT - 2)]
    mixed = [next((bad for bad in wrong if bad.ref == one.ref), one) for one in updates]
    said = refusals(alone.desk, mixed)
    assert said == refusals(alone.desk, wrong)
    assert set(said) == {bad.ref for bad in wrong}


@pytest.mark.parametrize(
    "how", [one if one == "two authors" else pytest.param(one, marks=pytest.mark.slow) for one in OF_A_ROOT]
)
def test_a_bad_object_is_one_alone_and_among_many(alone: Seat, updates: list[Update], how: str) -> None:
    """Whichever process reads it, and whatever was read before it."""
    for place in (1, COUNT - 1):
        one = updates[place]
        bad = one._replace(new=changed(alone.clone, str(one.new), EVERY[how]))
        said = refusals(alone.desk, [bad])
        assert refusals(alone.desk, [*updates[:place], bad, *updates[place + 1 :]]) == said
        assert set(said) == {bad.ref}


@pytest.mark.slow
def test_what_is_more_than_a_question_is_looked_at_here(alone: Seat, updates: list[Update]) -> None:
    """An answer starts an agent: who judges is told of each."""
    last = alone.answer(
        alone.now(alone.desk.records.load(updates[-1].ref.removeprefix(OPEN), str(updates[-1].new)))
    )
    changed = [*updates[:-1], Update(None, last.tip, OPEN + last.id)]
    heard: list[str] = []

    def beyond(gate: Gate, _old: str | None) -> str:
        heard.append(gate.id)
        return ""

    assert refusals(alone.desk, changed, beyond) == {}
    assert last.id in heard
    assert len(heard) == COUNT // 2 + 1


@pytest.mark.parametrize("says", ["nothing", pytest.param("half of a name", marks=pytest.mark.slow)])
def test_a_second_process_that_fails_leaves_all_to_the_first(
    alone: Seat, updates: list[Update], judged: list[str], monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    """It may be killed at any moment."""

    def fail(_push: Push, some: Sequence[Update]) -> bytes:
        if says == "nothing":
            raise MemoryError
        return some[0].ref.encode()[:-1]

    monkeypatch.setattr(sharing, "tell_sound", fail)
    assert refusals(alone.desk, updates) == {}
    assert judged == [update.ref for update in updates]


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_where_no_process_can_be_had_one_judges_all(
    alone: Seat, updates: list[Update], judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account may have as many as it may."""

    def fail() -> int:
        raise BlockingIOError

    desk = alone.desk
    desk.records.objects.begin()
    before = open_files()
    monkeypatch.setattr(os, "fork", fail)
    assert refusals(desk, updates) == {}
    assert judged == [update.ref for update in updates]
    assert open_files() == before
