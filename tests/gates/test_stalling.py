"""A runner that went away without a word: the list says that a person is needed."""

from __future__ import annotations

from collections.abc import Callable

from gitgate.acts.asking import ask
from gitgate.acts.reporting import gate_status
from gitgate.claims import claim, renew
from gitgate.context.targets import summaries
from gitgate.exchange.syncing import sync
from gitgate.gates import Filter, list_gates
from gitgate.gates.agency import note_inability
from gitgate.gates.leases import look_at_leases, sightings
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question
from gitgate.questions.drafts import Draft
from support import PATIENCE
from support.resuming import TERM, Clock, Seat, claimant
from support.testbed.repositories import Clone


def states(seat: Seat, chosen: Filter = Filter()) -> list[str]:
    return [summary.state for summary in list_gates(seat.desk, chosen)]


def claimed(seat: Seat) -> Gate:
    gate = seat.answer(seat.ask())
    claim(seat.desk, gate, claimant())
    return gate


def test_a_lease_that_ran_out(alone: Seat, clock: Clock) -> None:
    """Its term has to pass, and no more than that; then the gate is in the list, and named stalled."""
    claimed(alone)
    assert states(alone) == []
    assert states(alone, Filter(all=True)) == ["resuming"]
    clock.pass_by(TERM - 1)
    assert states(alone) == []
    clock.pass_by(2)
    assert states(alone) == ["stalled"]
    assert states(alone, Filter(all=True)) == ["stalled"]
    assert states(alone, Filter(states=("resuming",))) == ["resuming"]


def test_a_lease_that_goes_on(alone: Seat, clock: Clock) -> None:
    """However long the agent works: the term counts from the last renewal."""
    gate = alone.answer(alone.ask())
    held = claim(alone.desk, gate, claimant())
    for _ in range(3):
        clock.pass_by(TERM - 1)
        assert states(alone) == []
        held = renew(alone.desk, held)
    clock.pass_by(TERM + 1)
    assert states(alone) == ["stalled"]


def test_without_the_lease_its_claim_says_when_it_ends(alone: Seat, clock: Clock) -> None:
    """Somebody took the lease away, or it was never heard of."""
    gate = claimed(alone)
    alone.clone.git("update-ref", "-d", f"refs/hitl/leases/{gate.id}")
    clock.pass_by(TERM - 1)
    assert states(alone) == []
    clock.pass_by(2)
    assert states(alone) == ["stalled"]


def heard_states(seat: Seat) -> list[str]:
    """As `git gate list --sync` sees it."""
    desk = seat.desk
    sync(desk)
    return [summary.state for summary in list_gates(desk, Filter(all=True))]


def test_a_runner_elsewhere_that_is_gone(ann: Seat, bob: Seat, clock: Clock) -> None:
    """After one term of its lease it is stalled in every clone that looks, the first time that it looks as well."""
    gate = ann.answer(ann.ask())
    held = claim(ann.desk, ann.now(gate), claimant())
    assert heard_states(bob) == ["resuming"]
    clock.pass_by(TERM - 1)
    renew(ann.desk, held)
    clock.pass_by(2)
    assert heard_states(bob) == ["resuming"]  # the claim's own term is over, and its lease was renewed
    clock.pass_by(TERM)
    assert states(bob, Filter(all=True)) == ["resuming"]  # nobody has looked since
    assert heard_states(bob) == ["stalled"]
    assert states(bob) == ["stalled"]


def test_a_holder_that_is_seen_to_go_on_is_not_judged_by_its_clock(
    ann: Seat, bob: Seat, clone_of: Callable[..., Clone], bare: Clone, clock: Clock
) -> None:
    """It is an hour behind: its lease has always run out, by what it says. Until it was seen to be renewed nobody can tell."""
    gate = ann.answer(ann.ask())
    with Seat(clone_of(bare, "behind"), Clock(clock.at - 3600)) as behind:
        sync(behind.desk)
        held = claim(behind.desk, behind.now(gate), claimant("behind"))
        assert heard_states(bob) == ["stalled"]
        held = renew(behind.desk, held)
        for _ in range(2):
            clock.pass_by(1)
            assert heard_states(bob) == ["resuming"]


def test_all_leases_are_looked_at_where_that_is_asked(ann: Seat, bob: Seat, clock: Clock) -> None:
    """One that lasts for another hour by its holder's clock is watched from now on, and not from then."""
    gate = ann.answer(ann.ask())
    claim(ann.desk, ann.now(gate), claimant())
    sync(bob.desk)
    for every in (False, True):
        desk = bob.desk
        look_at_leases(desk, list(summaries(desk)), within=PATIENCE, every=every)
        assert [place.name for place in sightings(desk).places()] == [gate.id] * every


def test_a_remote_that_is_away_tells_nothing(ann: Seat, bob: Seat, bare: Clone, clock: Clock) -> None:
    """Who was not heard for want of a network is not said to be gone."""
    gate = ann.answer(ann.ask())
    claim(ann.desk, ann.now(gate), claimant())
    sync(bob.desk)
    clock.pass_by(TERM + 1)
    desk = bob.desk
    desk.heard = 1.0  # it answered, and is away a moment later
    bare.path.rename(bare.path.with_name("away"))
    assert [summary.state for summary in list_gates(desk, Filter(all=True))] == ["resuming"]


def test_an_answer_that_nobody_acts_on(alone: Seat, clock: Clock) -> None:
    """It is listed as in need of a person once whoever would act on it has had the time."""
    gate = alone.answer(alone.ask())
    assert states(alone) == []
    clock.pass_by(119)
    assert states(alone) == []
    clock.pass_by(2)
    assert states(alone) == ["stalled"]
    alone.clone.git("config", "gitgate.runner", "github")
    assert states(alone) == []  # a job waits for its machine first
    alone.clone.git("config", "--unset", "gitgate.runner")
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
    note_inability(ann.desk, list_gates(ann.desk, Filter())[0].id, "one of many clones")
    assert "commented" not in [e.name for e in reload(ann.desk, list_gates(ann.desk, Filter())[0].id).history]


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
