"""A runner that went away without a word: the list says that a person is needed."""

from __future__ import annotations

from gitgate.core.drafts import Draft
from gitgate.core.model import Gate, Question
from gitgate.service.asking import ask
from gitgate.service.claiming import claim
from gitgate.service.listing import Filter, listed
from gitgate.service.recording import reload
from gitgate.service.reporting import gate_status
from gitgate.service.starting import note_inability
from gitgate.service.syncing import sync
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


def test_an_answer_that_nobody_acts_on(alone: Seat, clock: Clock) -> None:
    """It is listed as in need of a person once whoever would act on it has had the time."""
    gate = alone.answer(alone.ask())
    assert states(alone) == []
    clock.pass_by(590)
    assert states(alone) == []
    clock.pass_by(20)
    assert states(alone) == ["stalled"]
    fields, text = gate_status(alone.desk, gate.id)
    assert (fields["state"], fields["stalled"]) == ("answered", True)
    assert f"nobody acts on the answer; it was asked on {gate.opened.asked.host}" in text
    claim(alone.desk, gate, claimant())
    assert states(alone) == []


def test_a_runner_that_cannot_says_so_once(alone: Seat, clock: Clock) -> None:
    """The gate is in the list a minute later, and stays answered, so that another machine may claim it."""
    gate = alone.answer(alone.ask())
    for _ in range(2):
        note_inability(alone.desk, gate.id, "its session is not here")
    assert [entry.name for entry in alone.now(gate).history] == ["opened", "answered", "commented"]
    clock.pass_by(50)
    assert states(alone) == []
    clock.pass_by(20)
    assert states(alone) == ["stalled"]
    assert alone.now(gate).actionable


def test_a_clone_knows_only_what_it_was_told(ann: Seat, bob: Seat, clock: Clock) -> None:
    """An answer may long be acted on elsewhere: nothing is said to stand still that was not looked at since."""
    ann.answer(ann.ask())
    clock.pass_by(86_400)
    assert states(ann) == []
    sync(ann.desk)
    assert states(ann) == ["stalled"]
    note_inability(ann.desk, listed(ann.desk, Filter())[0].id, "one of many clones")
    assert "commented" not in [e.name for e in reload(ann.desk, listed(ann.desk, Filter())[0].id).history]


def test_an_answer_that_is_only_read_is_not_acted_on(alone: Seat, clock: Clock) -> None:
    """Where there is no session to resume, an answer is the end of it."""
    draft = Draft((Question("answer", "Which?", "text"),), agent="plain")
    alone.answer(ask(alone.desk, draft).gate)
    clock.pass_by(86_400)
    assert states(alone) == []


def test_a_lease_that_is_no_lease(alone: Seat, clock: Clock) -> None:
    """Whatever stands at its ref, the list goes on."""
    gate = claimed(alone)
    alone.clone.git("update-ref", f"refs/hitl/leases/{gate.id}", "HEAD")
    clock.pass_by(10 * 86_400)
    assert states(alone) == ["stalled"]
