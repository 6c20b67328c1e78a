"""Claims: one move takes one, exactly one of many gets it, and nobody acts on what they lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gitgate import claims
from gitgate.acts.answering import comment
from gitgate.claims import BranchMoved, ClaimLost, claim, claim_outcome, finish, hand_back, release, renew
from gitgate.errors import Conflict, IllegalEvent, RemoteUnreachable
from gitgate.exchange.syncing import sync
from gitgate.gates import leases
from gitgate.model import lease
from gitgate.model.gate import Claim, Gate
from gitgate.store.remote import RefMove
from support.resuming import TERM, Clock, Seat, claimant, stand_still
from support.testbed.repositories import Clone

LEASES = "refs/hitl/leases/"


@pytest.fixture(params=["alone", "shared"])
def seat(request: pytest.FixtureRequest) -> Seat:
    """Both kinds of place keep the same contract: a repository of one's own, and a clone of a server."""
    found: Seat = request.getfixturevalue("alone" if request.param == "alone" else "ann")
    return found


@pytest.fixture
def place(seat: Seat, request: pytest.FixtureRequest) -> Clone:
    """Where the claims of `seat` are."""
    shared = "shared" in request.node.name
    found: Clone = request.getfixturevalue("bare") if shared else seat.clone
    return found


def answered(seat: Seat) -> Gate:
    return seat.answer(seat.ask())


def test_a_claim_moves_record_and_lease_together(seat: Seat, place: Clone) -> None:
    """After it the record says who acts, and the lease stands on the claim."""
    held = claim(seat.desk, answered(seat), claimant())
    assert held.gate.state == "resuming"
    assert place.refs()[f"refs/hitl/open/{held.gate.id}"] == held.claim
    assert place.git("rev-parse", f"{LEASES}{held.gate.id}^") == held.claim
    assert seat.now(held.gate).state == "resuming"


def test_a_second_claim_is_refused(seat: Seat) -> None:
    """Whoever comes second hears who acts already."""
    gate = answered(seat)
    claim(seat.desk, gate, claimant("first"))
    with pytest.raises(Conflict, match="first"):
        claim(seat.desk, seat.now(gate), claimant("second"))


def test_a_claim_from_an_old_reading_is_refused(seat: Seat) -> None:
    """The move expects what was read; somebody who read before another claimed moves nothing."""
    gate = answered(seat)
    claim(seat.desk, gate, claimant("first"))
    with pytest.raises(Conflict, match="first"):
        claim(seat.desk, gate, claimant("second"))


def test_a_renewal_moves_the_lease_only(seat: Seat, place: Clone) -> None:
    """The record does not grow with the time that an agent takes."""
    held = claim(seat.desk, answered(seat), claimant())
    again = renew(seat.desk, held)
    assert again.lease != held.lease
    assert place.refs()[f"{LEASES}{held.gate.id}"] == again.lease
    assert place.refs()[f"refs/hitl/open/{held.gate.id}"] == held.claim


def test_an_outcome_ends_the_lease_and_moves_the_branch(seat: Seat, place: Clone) -> None:
    """Record, lease and the agent's branch move together."""
    held = claim(seat.desk, answered(seat), claimant())
    new = seat.clone.commit("the agent's work")
    branch = [RefMove("refs/heads/agent", new, None)]
    gate = finish(seat.desk, held, claim_outcome(seat.desk, held, "resumed", commits=(new,)), branch)
    assert (gate.state, gate.outcome and gate.outcome.commits) == ("resumed", (new,))
    refs = place.refs()
    assert refs["refs/heads/agent"] == new
    assert f"{LEASES}{gate.id}" not in refs
    assert refs[f"refs/hitl/open/{gate.id}"] == gate.tip


def test_a_released_gate_is_claimed_again(seat: Seat) -> None:
    """A claim that is given back leaves the gate answered; the next one counts on."""
    first = claim(seat.desk, answered(seat), claimant())
    gate = release(seat.desk, first, "the network was down")
    assert gate.state == "answered"
    assert claim(seat.desk, gate, claimant()).attempt == 2


def test_a_claim_that_was_handed_back_is_no_attempt(seat: Seat) -> None:
    """A worker that is asked to stop does not use up anybody's attempts."""
    gate = hand_back(seat.desk, claim(seat.desk, answered(seat), claimant()))
    assert claim(seat.desk, gate, claimant()).attempt == 1


def test_a_remark_meanwhile_does_not_stop_the_outcome(seat: Seat) -> None:
    """The outcome is said on top of what a person added while the agent worked."""
    held = claim(seat.desk, answered(seat), claimant())
    comment(seat.desk, seat.now(held.gate), "looks good")
    gate = finish(seat.desk, held, claim_outcome(seat.desk, held, "resumed"))
    assert [entry.name for entry in gate.history][-3:] == ["claimed", "commented", "resumed"]


def test_a_holder_who_lost_the_claim_moves_nothing(seat: Seat, place: Clone, clock: Clock) -> None:
    """Fencing: neither the record nor the agent's branch moves for a runner that was taken over."""
    gate = answered(seat)
    late = claim(seat.desk, gate, claimant("late", monotonic=clock))
    with pytest.raises(Conflict):
        claim(seat.desk, seat.now(gate), claimant("next", monotonic=clock))
    stand_still(seat, gate, clock)
    taken = claim(seat.desk, seat.now(gate), claimant("next", monotonic=clock))
    before = place.refs()
    new = seat.clone.commit("too late")
    with pytest.raises(ClaimLost):
        finish(
            seat.desk,
            late,
            claim_outcome(seat.desk, late, "resumed"),
            [RefMove("refs/heads/agent", new, None)],
        )
    with pytest.raises(ClaimLost):
        renew(seat.desk, late)
    assert {ref: oid for ref, oid in place.refs().items() if ref != "refs/heads/main"} == {
        ref: oid for ref, oid in before.items() if ref != "refs/heads/main"
    }
    assert finish(seat.desk, taken, claim_outcome(seat.desk, taken, "resumed")).state == "resumed"


def test_a_live_holder_is_never_taken_over(seat: Seat, clock: Clock) -> None:
    """However long it takes, a lease that moves is not taken; neither is one whose end has passed by our clock."""
    gate = answered(seat)
    held = claim(seat.desk, gate, claimant("alive", monotonic=clock))
    for _ in range(5):
        with pytest.raises(Conflict):
            claim(seat.desk, seat.now(gate), claimant("next", monotonic=clock))
        clock.pass_by(TERM - 1)
        held = renew(seat.desk, held, clock)
    assert seat.now(gate).claim is not None


def test_clocks_that_differ_rob_nobody(ann: Seat, bob: Seat, clock: Clock) -> None:
    """What the holder's clock said does not count: one who sees a lease for the first time watches it for its term."""
    gate = answered(ann)
    claim(ann.desk, gate, claimant("fast", monotonic=clock))
    sync(bob.desk)
    clock.pass_by(86_400)
    with pytest.raises(Conflict):
        claim(bob.desk, bob.now(gate), claimant("skewed", monotonic=clock))
    stand_still(bob, gate, clock)
    assert claim(bob.desk, bob.now(gate), claimant("skewed", monotonic=clock)).attempt == 2


def test_who_moves_a_lease_here_writes_it_down(alone: Seat, clock: Clock) -> None:
    """In the holder's own repository nobody has to watch from the beginning."""
    gate = answered(alone)
    held = claim(alone.desk, gate, claimant("first", monotonic=clock))
    clock.pass_by(TERM - 1)
    held = renew(alone.desk, held, clock)
    clock.pass_by(TERM - 1)
    with pytest.raises(Conflict) as refused:
        claim(alone.desk, alone.now(gate), claimant("next", monotonic=clock))
    assert "in 1 s takes over" in refused.value.hint
    clock.pass_by(1)
    assert claim(alone.desk, alone.now(gate), claimant("next", monotonic=clock)).attempt == 2


@pytest.mark.slow
def test_only_time_in_which_the_remote_answered_is_watched(ann: Seat, bob: Seat, clock: Clock) -> None:
    """A holder that was cut off together with everybody else has the time for one renewal when the remote is back."""
    gate = answered(ann)
    held = claim(ann.desk, gate, claimant("first", monotonic=clock))
    sync(bob.desk)
    stand_still(bob, gate, clock, TERM / 2)
    url = bob.clone.git("remote", "get-url", "origin")
    bob.clone.git("remote", "set-url", "origin", str(bob.clone.path / "gone"))
    clock.pass_by(10)
    with pytest.raises(RemoteUnreachable):
        claim(bob.desk, bob.now(gate), claimant("next", monotonic=clock))
    clock.pass_by(TERM * 10)
    bob.clone.git("remote", "set-url", "origin", url)
    with pytest.raises(Conflict) as refused:
        claim(bob.desk, bob.now(gate), claimant("next", monotonic=clock))
    assert isinstance(refused.value, claims.HeldByAnother)
    assert TERM / 3 <= refused.value.left <= TERM * 2 / 3
    stand_still(bob, gate, clock, TERM / 3 - 1)
    renew(ann.desk, held, clock)
    clock.pass_by(2)
    with pytest.raises(Conflict):
        claim(bob.desk, bob.now(gate), claimant("next", monotonic=clock))


def test_what_nobody_saw_of_the_network_is_not_held_against_the_holder(
    ann: Seat, bob: Seat, clock: Clock
) -> None:
    """Two looks that lie far apart: in between the remote may have been away. So it is looked at once more."""
    gate = answered(ann)
    claim(ann.desk, gate, claimant("first", monotonic=clock))
    sync(bob.desk)
    for wait in (TERM * 10, TERM / 3 - 1, 1):
        with pytest.raises(Conflict):
            claim(bob.desk, bob.now(gate), claimant("next", monotonic=clock))
        clock.pass_by(wait)
    assert claim(bob.desk, bob.now(gate), claimant("next", monotonic=clock)).attempt == 2


def test_an_amended_answer_is_what_is_claimed(seat: Seat) -> None:
    """A claim names the answer that counts now; one for another answer does not fold."""
    held = claim(seat.desk, answered(seat), claimant())
    event = held.gate.claim.event if held.gate.claim else None
    assert isinstance(event, Claim)
    assert held.gate.answer is not None
    assert event.answer == held.gate.answer.commit


def test_a_waiting_gate_is_not_claimed(seat: Seat) -> None:
    """There is nothing to act on before somebody answered."""
    with pytest.raises(IllegalEvent):
        claim(seat.desk, seat.ask(), claimant())


def test_a_shared_gate_is_not_claimed_offline(ann: Seat) -> None:
    """Out of reach of the shared repository nobody knows whether another acts: the claim is refused, nothing moves."""
    gate = answered(ann)
    ann.clone.git("remote", "set-url", "origin", str(ann.clone.path / "gone"))
    with pytest.raises(RemoteUnreachable):
        claim(ann.desk, gate, claimant())
    assert ann.now(gate).state == "answered"


def test_an_answer_given_offline_is_claimed_with_it(ann: Seat, bare: Clone) -> None:
    """Answer, claim and lease arrive in one push."""
    gate = ann.answer(ann.ask(), push=False)
    before = bare.refs()[f"refs/hitl/open/{gate.id}"]
    held = claim(ann.desk, gate, claimant())
    assert bare.git("rev-list", "--first-parent", "--count", f"{before}..refs/hitl/open/{gate.id}") == "2"
    assert bare.refs()[f"{LEASES}{gate.id}"] == held.lease


def test_two_clones_race(ann: Seat, bob: Seat) -> None:
    """The one who pushes second loses, and knows the winner from then on."""
    gate = answered(ann)
    sync(bob.desk)
    theirs = bob.now(gate)
    claim(ann.desk, gate, claimant("ann"))
    with pytest.raises(Conflict, match="ann"):
        claim(bob.desk, theirs, claimant("bob"))
    assert bob.now(gate).state == "resuming"


def test_a_branch_that_moved_stops_the_outcome_only_until_it_goes_elsewhere(ann: Seat, bare: Clone) -> None:
    """A branch that somebody else moved is told apart from a claim that was lost."""
    held = claim(ann.desk, answered(ann), claimant())
    new = ann.clone.commit("the agent's work")
    wrong = [RefMove("refs/heads/main", new, new)]
    with pytest.raises(BranchMoved):
        finish(ann.desk, held, claim_outcome(ann.desk, held, "resumed"), wrong)
    assert f"{LEASES}{held.gate.id}" in bare.refs()
    assert finish(ann.desk, held, claim_outcome(ann.desk, held, "resumed")).state == "resumed"


def test_a_renewal_whose_report_was_lost_is_recognised(seat: Seat) -> None:
    """What a lease reveals tells our own from another's: the next one goes on from it."""
    held = claim(seat.desk, answered(seat), claimant())
    renewed = renew(seat.desk, held)
    assert renew(seat.desk, replace(held)).said.beat >= renewed.said.beat == 1


@pytest.mark.slow
def test_a_chain_that_ends_is_followed_by_another(
    seat: Seat, place: Clone, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long an agent works, its lease is proven from its claim on; whose report was lost goes on as well."""
    monkeypatch.setattr(lease, "LINKS", 3)
    held = claim(seat.desk, answered(seat), claimant(monotonic=clock))
    for number in range(1, 12):
        lost = held
        held = renew(seat.desk, held, clock)
        oid, said = leases.load_lease(seat.desk, held.gate.id, held.remote) or ("", None)
        assert oid == place.refs()[LEASES + held.gate.id]
        assert leases.position(seat.desk, held.gate, (oid, said)) == (held.claim, held.said.beat)
        if number % 4 == 0:
            held = renew(seat.desk, lost, clock)
    assert finish(seat.desk, held, claim_outcome(seat.desk, held, "resumed")).state == "resumed"


@pytest.mark.slow
def test_what_others_put_in_a_leases_place_is_no_sign_of_life(seat: Seat, place: Clone, clock: Clock) -> None:
    """Neither a lease that proves nothing nor one that was there before keeps a dead runner's claim."""
    gate = answered(seat)
    held = claim(seat.desk, gate, claimant("gone", monotonic=clock))
    held = renew(seat.desk, held, clock)
    stand_still(seat, gate, clock, TERM / 4)
    for number in range(2, 9):
        said = replace(held.said, beat=number, reveal="0" * 64)
        _, forged = claims.write_lease(seat.desk, said, held.claim)
        seat.clone.git("push", "-q", "-f", str(place.path), f"{forged}:{LEASES}{gate.id}")
        stand_still(seat, gate, clock, TERM / 4)
        seat.clone.git("push", "-q", "-f", str(place.path), f"{held.lease}:{LEASES}{gate.id}")
    assert claim(seat.desk, seat.now(gate), claimant("next", monotonic=clock)).attempt == 2


@pytest.mark.slow
def test_a_lease_that_somebody_moved_is_taken_back(seat: Seat, place: Clone) -> None:
    """Where nothing refuses it anybody may move or delete it: as long as no other claim counts, the holder goes on."""
    held = claim(seat.desk, answered(seat), claimant())
    _, forged = claims.write_lease(seat.desk, replace(held.said, nonce="other", beat=7), held.claim)
    seat.clone.git("push", "-q", "-f", str(place.path), f"{forged}:{LEASES}{held.gate.id}")
    held = renew(seat.desk, held)
    assert place.refs()[LEASES + held.gate.id] == held.lease
    place.git("update-ref", "-d", LEASES + held.gate.id)
    held = renew(seat.desk, held)
    place.git("update-ref", "-d", LEASES + held.gate.id)
    assert finish(seat.desk, held, claim_outcome(seat.desk, held, "resumed")).state == "resumed"


def test_sync_carries_no_claim_over(ann: Seat, bob: Seat, clone_of: Callable[..., Clone]) -> None:
    """A claim made on another copy of the record has no place in the shared one."""
    gate = answered(ann)
    sync(bob.desk)
    held = claim(ann.desk, gate, claimant("ann"))
    bob.clone.git("update-ref", f"refs/hitl/open/{gate.id}", held.gate.history[0].commit)
    sync(bob.desk)
    assert bob.now(gate).tip == held.claim
