"""A runner that went away without a word: the list says that a person is needed."""

from __future__ import annotations

from gitgate.core.model import Gate
from gitgate.service.claiming import claim
from gitgate.service.listing import Filter, listed
from resuming import TERM, Clock, Seat, claimant


def states(seat: Seat, chosen: Filter = Filter()) -> list[str]:
    return [summary.state for summary in listed(seat.desk, chosen)]


def claimed(seat: Seat) -> Gate:
    gate = seat.answer(seat.ask())
    claim(seat.desk, gate, claimant())
    return gate


def test_a_lease_that_ran_out(alone: Seat, clock: Clock) -> None:
    """Its term and what clocks may differ by have to pass; then the gate is in the list, and named stalled."""
    claimed(alone)
    assert states(alone) == []
    assert states(alone, Filter(all=True)) == ["resuming"]
    clock.pass_by(TERM + 590)
    assert states(alone) == []
    clock.pass_by(20)
    assert states(alone) == ["stalled"]
    assert states(alone, Filter(all=True)) == ["stalled"]
    assert states(alone, Filter(states=("resuming",))) == ["resuming"]


def test_without_the_lease_the_agents_own_limit_counts(alone: Seat, clock: Clock) -> None:
    """A lease that is kept elsewhere is not seen: the longest that an agent may run has to pass."""
    gate = claimed(alone)
    alone.clone.git("update-ref", "-d", f"refs/hitl/leases/{gate.id}")
    alone.clone.git("config", "gitgate.agentTimeout", "1h")
    clock.pass_by(3600 + 590)
    assert states(alone) == []
    clock.pass_by(20)
    assert states(alone) == ["stalled"]


def test_a_lease_that_is_no_lease(alone: Seat, clock: Clock) -> None:
    """Whatever stands at its ref, the list goes on."""
    gate = claimed(alone)
    alone.clone.git("update-ref", f"refs/hitl/leases/{gate.id}", "HEAD")
    clock.pass_by(10 * 86_400)
    assert states(alone) == ["stalled"]
