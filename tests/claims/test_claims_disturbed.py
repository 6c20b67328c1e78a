"""What happens to a claim while it is made, held or given up: whoever is too late hears it, and nothing is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from gitgate import claims
from gitgate.acts.answering import comment
from gitgate.acts.asking import ask
from gitgate.claims import ClaimLost, HeldByAnother, claim, claim_outcome, finish, renew
from gitgate.claims.attending import RENEW_EVERY, TERM, Attendance, hear
from gitgate.context import machine
from gitgate.errors import Conflict, IllegalEvent, LostRace, PushRefused, RefLocked, RemoteUnable
from gitgate.exchange.syncing import sync
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question
from gitgate.questions.drafts import Draft
from gitgate.sharing.archiving import fold_closed
from gitgate.store.remote import RefMove
from support.meanwhile import Meanwhile
from support.resuming import TERM as LEASE_TERM
from support.resuming import Clock, Seat, claimant, stand_still
from support.testbed.repositories import Clone

# Many small ones, over real pushes: together they would weigh on every run.
pytestmark = pytest.mark.slow
OPEN, LEASES = "refs/hitl/open/", "refs/hitl/leases/"


def answered(seat: Seat) -> Gate:
    return seat.answer(seat.ask())


def remark(seat: Seat, gate: Gate, *, push: bool | None = None) -> None:
    comment(seat.desk, seat.now(gate), "wait", push=push)


def names(gate: Gate) -> list[str]:
    return [entry.name for entry in gate.history]


def out_of_reach(clone: Clone) -> None:
    clone.git("remote", "set-url", "origin", "/no/such/place")


# claiming


def test_a_remark_in_the_moment_of_the_claim(alone: Seat, clock: Clock) -> None:
    """The claim is made on top of it; a gate that never stands still is given up on, unclaimed."""
    gate = answered(alone)
    busy = Meanwhile(clock, lambda: remark(alone, gate))
    held = claim(alone.desk, gate, claimant(monotonic=busy))
    assert names(held.gate)[-2:] == ["commented", "claimed"]
    other = answered(alone)
    restless = Meanwhile(clock, *[lambda: remark(alone, other)] * 8)
    with pytest.raises(LostRace, match="keeps changing"):
        claim(alone.desk, other, claimant(monotonic=restless))
    assert alone.now(other).state == "answered"


def test_a_remark_that_only_this_clone_has(ann: Seat, clock: Clock) -> None:
    """The claim that went through is not undone by it; it is said again on top, here and then there."""
    gate = answered(ann)
    busy = Meanwhile(clock, lambda: remark(ann, gate, push=False))
    held = claim(ann.desk, gate, claimant(monotonic=busy))
    assert names(ann.now(gate))[-2:] == ["claimed", "commented"]
    sync(ann.desk)
    assert finish(ann.desk, held, claim_outcome(ann.desk, held, "resumed")).state == "resumed"


def test_a_gate_that_goes_while_it_is_claimed(ann: Seat, bare: Clone, clock: Clock) -> None:
    """Somebody closed it for good on the shared repository: there is nothing to act on."""
    gate = answered(ann)
    gone = Meanwhile(clock, lambda: bare.git("update-ref", "-d", OPEN + gate.id))
    with pytest.raises(ClaimLost, match="no longer open on origin"):
        claim(ann.desk, gate, claimant(monotonic=gone))


def test_a_gate_that_is_over(alone: Seat) -> None:
    """A copy that was away for long still has as open what the archive holds."""
    gate = answered(alone)
    held = claim(alone.desk, gate, claimant())
    finish(alone.desk, held, claim_outcome(alone.desk, held, "resumed"))
    fold_closed(alone.desk)
    alone.clone.git("update-ref", OPEN + gate.id, gate.tip)
    with pytest.raises(ClaimLost, match="it is in the archive"):
        claim(alone.desk, alone.now(gate), claimant())


def test_an_answer_that_its_asker_reads(alone: Seat) -> None:
    """Nobody is to be resumed, and how the asker gets it is said."""
    gate = ask(alone.desk, Draft((Question("answer", "Which?", "text"),), agent="plain")).gate
    with pytest.raises(IllegalEvent, match="its asker reads the answer") as refused:
        claim(alone.desk, alone.answer(gate), claimant())
    assert refused.value.hint == f"git gate check {gate.id}"


def test_after_a_failure_a_person_decides(alone: Seat) -> None:
    """No runner tries again by itself; one whom a person asks does."""
    held = claim(alone.desk, answered(alone), claimant())
    gate = finish(alone.desk, held, claim_outcome(alone.desk, held, "failed", reason="exit 3"))
    with pytest.raises(IllegalEvent, match="a person may try again"):
        claim(alone.desk, gate, claimant())
    assert claim(alone.desk, gate, claimant(), insist=True).attempt == 1


def test_a_server_that_takes_no_claims(ann: Seat, bare: Clone) -> None:
    """Its reason is passed on, and the gate stays answered for others."""
    gate = answered(ann)
    refusal = '#!/bin/sh\ncase "$1" in refs/hitl/leases/*) echo "no runners here" >&2; exit 1;; esac\n'
    bare.write("hooks/update", refusal, executable=True)
    with pytest.raises(PushRefused, match="no runners here"):
        claim(ann.desk, gate, claimant())
    assert ann.now(gate).state == "answered"


def test_who_watched_while_nobody_could_renew_waits_once_more(
    ann: Seat, bob: Seat, bare: Clone, clock: Clock
) -> None:
    """What the server cannot take of a take-over it could not take of the holder's renewal either: that has time once more."""
    held = claim(ann.desk, answered(ann), claimant("first", monotonic=clock))
    sync(bob.desk)
    for lock in (None, LEASES + held.gate.id):
        stand_still(bob, held.gate, clock)
        place = "hooks/pre-receive" if lock is None else f"{lock}.lock"
        bare.write(place, "#!/bin/sh\necho 'fatal: No space left on device' >&2; exit 1\n", executable=True)
        with pytest.raises((RemoteUnable, LostRace)):
            claim(bob.desk, bob.now(held.gate), claimant("next", monotonic=clock))
        (bare.path / place).unlink()
        with pytest.raises(HeldByAnother) as waits:
            claim(bob.desk, bob.now(held.gate), claimant("next", monotonic=clock))
        assert waits.value.left == LEASE_TERM / 3
        held = renew(ann.desk, held, clock)
    stand_still(bob, held.gate, clock)
    assert claim(bob.desk, bob.now(held.gate), claimant("next", monotonic=clock)).attempt == 2


def test_a_lease_that_is_nothing_of_the_kind(alone: Seat, clock: Clock) -> None:
    """Whatever stands in its place is watched like a holder who gives no sign of life, and then replaced."""
    gate = answered(alone)
    claim(alone.desk, gate, claimant(monotonic=clock))
    alone.clone.git("update-ref", LEASES + gate.id, "HEAD:README")
    with pytest.raises(Conflict):
        claim(alone.desk, alone.now(gate), claimant(monotonic=clock))
    clock.pass_by(60)
    assert claim(alone.desk, alone.now(gate), claimant(monotonic=clock)).attempt == 2


def test_a_system_that_does_not_name_its_starts(
    alone: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one process saw of a lease still counts for it; another one could not compare its clock."""
    monkeypatch.setattr(machine, "BOOT", alone.clone.path / "none")
    gate = answered(alone)
    claim(alone.desk, gate, claimant(monotonic=clock))
    with pytest.raises(Conflict):
        claim(alone.desk, alone.now(gate), claimant(monotonic=clock))
    (noted,) = (alone.clone.path / ".git/gitgate/sightings").iterdir()
    assert f" process-{os.getpid()} " in noted.read_text()
    clock.pass_by(60)
    assert claim(alone.desk, alone.now(gate), claimant(monotonic=clock)).attempt == 2


# holding


def test_a_renewal_that_arrived_unheard_does_not_stop_the_outcome(alone: Seat) -> None:
    """The lease moved, and it is ours by its nonce."""
    held = claim(alone.desk, answered(alone), claimant())
    renew(alone.desk, held)
    assert finish(alone.desk, held, claim_outcome(alone.desk, held, "resumed")).state == "resumed"
    assert not alone.clone.refs(LEASES)


def test_an_outcome_on_a_gate_that_never_stands_still(
    ann: Seat, bob: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up on after some tries, and the claim is still held."""
    monkeypatch.setattr(claims, "TRIES", 2)
    held = claim(ann.desk, answered(ann), claimant())
    sync(bob.desk)
    pester: list[Callable[[], object]] = [lambda: remark(bob, held.gate, push=True)]
    said = claim_outcome(ann.desk, held, "resumed")
    with (
        Seat(ann.clone, Meanwhile(clock, *pester, *pester, int, *pester, int)) as busy,
        pytest.raises(LostRace, match="keeps changing"),
    ):
        finish(busy.desk, held, said)
    assert bob.now(held.gate).state == "resuming"


def test_an_outcome_that_meets_a_lock(ann: Seat, bare: Clone) -> None:
    """Nobody moved the branch: nothing is recorded without it, and the same is tried again. So it is with what is deleted."""
    held = claim(ann.desk, answered(ann), claimant())
    new, old = ann.clone.commit("the agent's work"), bare.git("rev-parse", "main")
    said, branch = claim_outcome(ann.desk, held, "resumed"), [RefMove("refs/heads/main", new, old)]
    for name, told in (("refs/heads/main", RefLocked), ("packed-refs", RemoteUnable)):
        bare.write(f"{name}.lock", "")
        with pytest.raises(told, match=rf"could not do it for the moment .*{name}\.lock"):
            finish(ann.desk, held, said, branch)
        (bare.path / f"{name}.lock").unlink()
        held = renew(ann.desk, held)
    assert finish(ann.desk, held, said, branch).state == "resumed"
    assert bare.git("rev-parse", "main") == new


def test_an_outcome_that_meets_a_lock_here(alone: Seat) -> None:
    """The same in a repository of one's own."""
    held = claim(alone.desk, answered(alone), claimant())
    tip = alone.clone.git("rev-parse", "main")
    said, branch = claim_outcome(alone.desk, held, "resumed"), [RefMove("refs/heads/other", tip, None)]
    for name in ("refs/heads/other", "packed-refs"):
        alone.clone.write(f".git/{name}.lock", "")
        with pytest.raises(RefLocked):
            finish(alone.desk, held, said, branch)
        (alone.clone.path / f".git/{name}.lock").unlink()
    assert finish(alone.desk, held, said, branch).state == "resumed"


# waiting


def waiting(seat: Seat, gate: Gate, monotonic: Callable[[], float]) -> Attendance:
    attendance = Attendance(seat.desk, gate, monotonic)
    attendance.keep(gate)
    return attendance


def test_a_waiter_whose_lease_another_has(alone: Seat, clock: Clock) -> None:
    """It goes on waiting without one, and leaves the answer to the other."""
    gate = alone.ask(wait=True)
    first = waiting(alone, gate, clock)
    alone.clone.git("update-ref", "-d", LEASES + gate.id)
    second = waiting(alone, gate, clock)
    clock.pass_by(RENEW_EVERY)
    first.keep(gate)
    assert first.held is None
    gate = alone.answer(gate)
    assert hear(alone.desk, gate, first.held).state == "answered"
    assert hear(alone.desk, gate, second.held).state == "resumed"


def test_a_waiter_takes_over_from_one_that_went_silent(alone: Seat, clock: Clock) -> None:
    """After a whole term in which its lease did not move."""
    gate = alone.ask(wait=True)
    waiting(alone, gate, clock)
    second = waiting(alone, gate, clock)
    assert second.held is None
    clock.pass_by(TERM)
    second.keep(gate)
    assert second.held is not None


def test_two_that_begin_to_wait_at_once(alone: Seat, clock: Clock) -> None:
    """One gets the lease, the other one waits all the same."""
    gate = alone.ask(wait=True)
    ours: list[Attendance] = []
    # The first reading is when the waiting begins, the others are what keeping asks.
    late = waiting(
        alone, gate, Meanwhile(clock, int, int, int, lambda: ours.append(waiting(alone, gate, clock)))
    )
    assert late.held is None
    assert ours[0].held is not None


def test_a_waiter_without_a_network(ann: Seat, bare: Clone, clock: Clock) -> None:
    """It keeps what it holds, tries again soon, and says so; when it leaves, the lease lapses by itself."""
    gate = ann.ask(wait=True)
    heard: list[str] = []
    attendance = waiting(ann, gate, clock)
    attendance.desk.progress = heard.append
    before = attendance.held
    out_of_reach(ann.clone)
    attendance.desk = ann.desk
    attendance.desk.progress = heard.append
    clock.pass_by(RENEW_EVERY)
    attendance.keep(gate)
    assert attendance.held == before
    assert attendance.next == clock() + RENEW_EVERY / 5
    attendance.leave(gate)
    assert [words.partition(":")[0] for words in heard] == [
        "the waiter's lease could not be renewed",
        "the waiter's lease stays until it lapses",
    ]
    assert LEASES + gate.id in bare.refs()


def test_a_waiter_hears_what_was_said_elsewhere_first(ann: Seat, bob: Seat, clock: Clock) -> None:
    """An answer given here off line, a remark made there: both are in the record that it acts on."""
    gate = ann.ask(wait=True)
    attendance = waiting(ann, gate, clock)
    sync(bob.desk)
    stale = ann.answer(gate, push=False)
    remark(bob, gate, push=True)
    sync(ann.desk)
    assert names(hear(ann.desk, stale, attendance.held)) == [
        *("opened", "commented", "answered", "claimed", "resumed")
    ]


def test_a_waiter_on_a_gate_that_never_stands_still(alone: Seat, clock: Clock) -> None:
    """It gives up, and has not been told the answer: whoever has not claimed it does not act on it."""
    gate = alone.ask(wait=True)
    attendance = waiting(alone, gate, clock)
    gate = alone.answer(gate)
    # The clock is read three times for each of the tries.
    pester: list[Callable[[], object]] = [lambda: remark(alone, gate), int, int]
    with (
        Seat(alone.clone, Meanwhile(clock, *pester * 8)) as busy,
        pytest.raises(LostRace, match="keeps changing"),
    ):
        hear(busy.desk, gate, attendance.held)
    assert "claimed" not in names(reload(alone.desk, gate.id))
