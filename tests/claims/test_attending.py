"""Waiters: whoever blocks on an answer gets it, or a saved session does, and never both."""

from __future__ import annotations

import pytest

from gitgate.claims import claim
from gitgate.claims.attending import TERM, Attendance, WaitLimit, hear, wait
from gitgate.errors import Conflict, RemoteUnreachable
from gitgate.model.gate import Gate
from support.resuming import Clock, Seat, claimant, stand_still
from support.testbed.repositories import Clone

pytestmark = pytest.mark.slow  # each takes a good part of a second

LEASES = "refs/hitl/leases/"


@pytest.fixture(params=["alone", "shared"])
def seat(request: pytest.FixtureRequest) -> Seat:
    found: Seat = request.getfixturevalue("alone" if request.param == "alone" else "ann")
    return found


def attended(seat: Seat, gate: Gate, clock: Clock) -> Attendance:
    attendance = Attendance(seat.desk, gate, clock)
    attendance.keep(gate)
    return attendance


def test_a_waiter_takes_the_answer(seat: Seat, clock: Clock) -> None:
    """Hearing it is acting on it: the gate is resumed, the lease is gone."""
    gate = seat.ask(wait=True)
    attendance = attended(seat, gate, clock)
    assert attendance.held is not None
    gate = seat.answer(gate)
    heard = hear(seat.desk, gate, attendance.held)
    assert (heard.state, seat.now(gate).state) == ("resumed", "resumed")
    assert not seat.clone.refs(LEASES)


def test_while_it_waits_no_runner_takes_it(seat: Seat, clock: Clock) -> None:
    """A waiter that renews keeps runners away, however long."""
    gate = seat.ask(wait=True)
    attendance = attended(seat, gate, clock)
    gate = seat.answer(gate)
    for _ in range(3):
        with pytest.raises(Conflict, match="waiter"):
            claim(seat.desk, seat.now(gate), claimant(monotonic=clock))
        clock.pass_by(TERM - 1)
        before = attendance.held
        attendance.keep(seat.now(gate)) if seat.now(gate).state == "awaiting" else renewed(
            seat, attendance, clock
        )
        assert attendance.held != before


def renewed(seat: Seat, attendance: Attendance, clock: Clock) -> None:
    from gitgate.claims import renew

    assert attendance.held is not None
    attendance.held = renew(seat.desk, attendance.held, clock)


def test_a_silent_waiter_s_session_is_resumed_instead(seat: Seat, clock: Clock) -> None:
    """After a whole term without a sign of life a runner may claim; the waiter that wakes up gets nothing."""
    gate = seat.ask(wait=True)
    attendance = attended(seat, gate, clock)
    gate = seat.answer(gate)
    with pytest.raises(Conflict):
        claim(seat.desk, gate, claimant(monotonic=clock))
    stand_still(seat, gate, clock, TERM)
    assert claim(seat.desk, gate, claimant("next", monotonic=clock)).gate.state == "resuming"
    with pytest.raises(Conflict, match="silent for too long"):
        hear(seat.desk, seat.now(gate), attendance.held)


def test_two_waiters_take_it_once(seat: Seat, clock: Clock) -> None:
    """The one with the lease takes it; the other one reads it."""
    gate = seat.ask(wait=True)
    first, second = attended(seat, gate, clock), attended(seat, gate, clock)
    assert second.held is None
    gate = seat.answer(gate)
    assert hear(seat.desk, gate, second.held).state == "answered"
    assert hear(seat.desk, gate, first.held).state == "resumed"
    assert [entry.name for entry in seat.now(gate).history].count("claimed") == 1


def test_a_waiter_that_leaves_lets_go(seat: Seat, clock: Clock) -> None:
    """A bounded wait that ran out does not make a runner wait for its term to pass."""
    gate = seat.ask(wait=True)
    gate = wait(seat.desk, gate, WaitLimit(0.3))
    assert gate.state == "awaiting"
    assert claim(seat.desk, seat.answer(gate), claimant(monotonic=clock)).attempt == 1


def test_out_of_reach_the_answer_is_not_given_out(ann: Seat, bare: Clone) -> None:
    """A waiter that cannot tell whether another acts does not act."""
    gate = ann.ask(wait=True)
    ann.answer(gate, push=False)
    ann.clone.git("remote", "set-url", "origin", str(ann.clone.path / "gone"))
    with pytest.raises(RemoteUnreachable):
        wait(ann.desk, ann.now(gate), WaitLimit(0.3))
    ann.clone.git("remote", "set-url", "origin", str(bare.path))
    assert wait(ann.desk, ann.now(gate), WaitLimit(5)).state == "resumed"
    assert "resumed" in bare.git("log", "--format=%s", f"refs/hitl/open/{gate.id}")
