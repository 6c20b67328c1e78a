"""Reading: one gate by its name, open or archived, and what is known of where it went."""

from __future__ import annotations

import pytest

from gitgate.acts import find_gate, open_gate
from gitgate.errors import AmbiguousGate, BrokenRecord, IllegalEvent, UnknownGate
from gitgate.exchange.syncing import sync
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.refs import OPEN
from support.deciding import gate_of, say
from support.resuming import Clock, Seat


def test_a_gate_by_its_name_or_a_beginning_of_it(alone: Seat) -> None:
    """In any case, with blanks around."""
    gate = gate_of(alone)
    for given in (gate.id, gate.id[:4], f" {gate.id[:7].upper()} "):
        found = find_gate(alone.desk, given)
        assert (found.gate, found.archived, found.pushed) == (gate, False, False)
        assert open_gate(alone.desk, given) == gate


@pytest.mark.parametrize(
    "given", ["", "abc", "not-an-id", "abcdefghjk", "abcd", "../open", "-h", "é" * 10, "*"]
)
def test_a_name_that_is_none(alone: Seat, given: str) -> None:
    """Too short, other letters, or nothing of that name."""
    gate_of(alone)
    for read in (find_gate, open_gate):
        with pytest.raises(UnknownGate) as refused:
            read(alone.desk, given)
        assert "git gate" in refused.value.hint


def test_a_name_that_could_be_several(alone: Seat) -> None:
    """All of them are said."""
    gate = gate_of(alone)
    twin = gate.id[:9] + ("2" if gate.id[9] != "2" else "3")
    alone.clone.git("update-ref", OPEN + twin, gate.tip)
    with pytest.raises(AmbiguousGate, match=twin):
        find_gate(alone.desk, gate.id[:5])


def test_no_name_is_the_one_that_waits(alone: Seat) -> None:
    """Not where none or several do."""
    with pytest.raises(UnknownGate, match="no gate waits for an answer"):
        find_gate(alone.desk, None)
    gate = gate_of(alone)
    assert open_gate(alone.desk, None) == gate
    answered = gate_of(alone)
    say(alone, answered)
    assert find_gate(alone.desk, None).gate == gate
    gate_of(alone)
    with pytest.raises(AmbiguousGate, match="2 gates wait"):
        find_gate(alone.desk, None)


def test_an_archived_gate_is_read_like_an_open_one(alone: Seat, clock: Clock) -> None:
    """But nothing can be done to it any more: that is a conflict, and not that nobody knows it."""
    gate = gate_of(alone)
    closed = say(alone, gate).gate
    clock.pass_by(5)
    fold_closed(alone.desk)
    found = find_gate(alone.desk, gate.id[:6])
    assert (found.gate, found.archived) == (closed, True)
    for given in (gate.id, gate.id[:6]):
        with pytest.raises(
            IllegalEvent, match=f"gate {gate.id} is closed and archived; it was answered"
        ) as over:
            open_gate(alone.desk, given)
        assert over.value.hint == f"git gate show {gate.id}"


def test_where_it_went(ann: Seat, bob: Seat) -> None:
    """Pushed when the remote is known to have exactly this."""
    gate = gate_of(ann, session="session-1")
    found = find_gate(ann.desk, gate.id)
    assert (found.pushed, found.remote) == (True, "origin")
    say(ann, gate, push=False)
    assert not find_gate(ann.desk, gate.id).pushed
    with pytest.raises(UnknownGate, match="has never synced with origin"):
        find_gate(bob.desk, gate.id)
    with pytest.raises(UnknownGate, match="has never synced with origin"):
        find_gate(bob.desk, None)
    sync(bob.desk)
    theirs = find_gate(bob.desk, gate.id)
    assert (theirs.gate, theirs.pushed) == (gate, True)


def test_a_broken_record_is_not_read(alone: Seat) -> None:
    """Nothing is decided from it; the error says what is wrong."""
    gate = gate_of(alone)
    alone.clone.git("update-ref", OPEN + gate.id, "HEAD")
    for read in (find_gate, open_gate):
        with pytest.raises(BrokenRecord, match=r"begins with question\.yaml"):
            read(alone.desk, gate.id)
