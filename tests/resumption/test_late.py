"""What an agent made whose runner was overtaken: it is named in its gate, wherever that has got to meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gitgate.acts import find_anywhere, find_gate
from gitgate.claims import HeldClaim, claim, claim_outcome, finish
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate
from gitgate.render.letter import letter
from gitgate.resumption import delivery
from gitgate.resumption.delivery import Made
from gitgate.sharing.archiving import fold_closed
from support.resuming import Clock, Seat, claimant, stand_still
from support.testbed.repositories import Clone

WORDS = "the agent on late was done after its runner had been cut off and another one had taken over; it made no commits"


@pytest.fixture(params=["alone", "shared"])
def seat(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Seat]:
    """A repository of one's own, and a clone of a server: there somebody else may have archived it."""
    if request.param == "alone":
        yield request.getfixturevalue("alone")
        return
    with Seat(request.getfixturevalue("ann"), clock) as found:
        yield found


def overtaken(seat: Seat, clock: Clock) -> tuple[HeldClaim, Gate]:
    """The claim of a runner that fell silent, and the gate as it is when the next one is done with it."""
    gate = seat.answer(seat.ask())
    late = claim(seat.desk, gate, claimant("late", monotonic=clock))
    stand_still(seat, gate, clock)
    held = claim(seat.desk, seat.now(gate), claimant("next", monotonic=clock))
    return late, finish(seat.desk, held, claim_outcome(seat.desk, held, "resumed"))


def last_words(seat: Seat, gate: Gate) -> list[str]:
    found = find_anywhere(find_gate, seat.desk, gate.id).gate
    told = [str(getattr(entry.event, "text", "")) for entry in found.history if entry.name == "late"]
    shown = letter(found, None, 300)
    assert all(words in shown for words in told)
    return told


def test_of_a_gate_that_is_over(seat: Seat, clock: Clock) -> None:
    """It is words from elsewhere that came late: nothing else of the gate changes, and what was archived has them."""
    late, done = overtaken(seat, clock)
    assert delivery.keep_late(seat.desk, late, Made(), "") == WORDS
    now = seat.now(done)
    assert [entry.name for entry in now.history][-3:] == ["claimed", "resumed", "late"]
    assert (now.state, now.outcome, now.claim, now.late) == (done.state, done.outcome, done.claim, ())
    assert last_words(seat, done) == [WORDS]
    fold_closed(seat.desk)
    assert last_words(seat, done) == [WORDS]


def test_of_a_gate_that_is_archived_and_gone_from_here(seat: Seat, clock: Clock) -> None:
    """It is kept beside the record in the archive, once, and opens nothing."""
    late, done = overtaken(seat, clock)
    fold_closed(seat.desk)
    for _ in range(2):
        delivery.keep_late(seat.desk, late, Made(), "")
    assert last_words(seat, done) == [WORDS]
    assert not any(done.id in ref for ref in seat.clone.refs())


def test_other_clones_hear_of_it_once(
    ann: Clone, clock: Clock, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """Where the gate is open there by its record; one that has the gate for the first time is told nothing as news."""
    with Seat(ann, clock) as seat, Seat(clone_of(bare, "eve"), clock) as eve:
        late, done = overtaken(seat, clock)
        sync(eve.desk)
        delivery.keep_late(seat.desk, late, Made(), "")
        assert [sync(eve.desk).late for _ in range(2)] == [(f"{done.id} {WORDS}",), ()]
        assert sync(seat.desk).late == ()
        with Seat(clone_of(bare, "new"), clock) as new:
            assert sync(new.desk).late == ()
            assert last_words(new, done) == [WORDS]


@pytest.mark.slow
def test_the_clone_that_took_over_hears_of_an_archived_one(
    ann: Clone, clock: Clock, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """A remote says nothing of its archive by itself: this one has a reason to ask, until it was told."""
    with Seat(ann, clock) as seat, Seat(clone_of(bare, "bob"), clock) as bob:
        gate = seat.answer(seat.ask())
        late = claim(seat.desk, gate, claimant("late", monotonic=clock))
        sync(bob.desk)
        stand_still(bob, gate, clock)
        held = claim(bob.desk, bob.now(gate), claimant("next", monotonic=clock))
        finish(bob.desk, held, claim_outcome(bob.desk, held, "resumed"))
        note = bob.desk.repo.state_dir / "overtaken" / gate.id
        assert sync(bob.desk).late == ()
        fold_closed(bob.desk)
        assert sync(bob.desk).late == ()
        assert note.exists()
        delivery.keep_late(seat.desk, late, Made(), "")
        assert [sync(bob.desk).late for _ in range(2)] == [(f"{gate.id} {WORDS}",), ()]
        assert not note.exists()


@pytest.mark.slow
def test_a_gate_that_nothing_comes_late_of_is_asked_about_for_a_week(ann: Clone, clock: Clock) -> None:
    """No longer: each time takes a second conversation with the remote."""
    with Seat(ann, clock) as seat:
        _, done = overtaken(seat, clock)
        fold_closed(seat.desk)
        note = seat.desk.repo.state_dir / "overtaken" / done.id
        clock.at = note.stat().st_mtime + 6 * 86_400
        sync(seat.desk)
        assert note.exists()
        clock.at += 2 * 86_400
        sync(seat.desk)
        assert not note.exists()
