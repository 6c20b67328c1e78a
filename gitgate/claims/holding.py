"""Claims: a claim that is held: renewed while its holder works, then given up with what came of it, or given back.

The outcome, the lease's end and the agent's branch are one move: a runner that lost its claim changes none of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..context.desk import Desk
from ..context.recording import NOBODY
from ..errors import GateError, LostRace
from ..exchange.publishing import publish, stands_on
from ..gates.leases import boottime, load_lease, sightings
from ..gates.notices import tell_people
from ..model.gate import Event, Gate, Outcome
from ..model.states import FAILED, RESUMED, RESUMING
from ..store.git.refs import LEASES, OPEN
from ..store.records.records import Signature
from ..store.remote.remote import RefMove
from .claiming import (
    TRIES,
    ClaimLost,
    HeldClaim,
    current,
    follow,
    is_ours,
    move,
    next_lease,
    next_link,
    note_renewal,
    with_lease,
)


def renew(desk: Desk, held: HeldClaim, monotonic: Callable[[], float] = boottime) -> HeldClaim:
    """The claim for another term; ClaimLost when it is somebody else's. A network failure is raised as it is."""
    for _ in range(TRIES):
        taken = monotonic()
        after = next_lease(desk, held)
        if move(desk, held.remote, [RefMove(LEASES + held.gate.id, after.lease, held.lease or None)]):
            note_renewal(desk, after, monotonic)
            return replace(after, taken=taken)
        held = still_ours(desk, held)
    raise LostRace(
        f"the lease of gate {held.gate.id} keeps being moved by others", hint=f"git gate show {held.gate.id}"
    )


def lost(held: HeldClaim) -> ClaimLost:
    return ClaimLost(
        f"the claim on gate {held.gate.id} is no longer ours: another runner took over",
        hint=f"git gate show {held.gate.id}",
    )


def finish(desk: Desk, held: HeldClaim, outcome: Outcome, branch: Sequence[RefMove] = ()) -> Gate:
    """Record what came of the claim and give it up; `branch` moves with it or not at all.

    A remark that reached the record meanwhile is no reason to fail: the outcome is said again on top of it.
    """
    gate = held.gate
    by = Signature(outcome.by or desk.settings.identity() or NOBODY, desk.at)
    for _ in range(TRIES):
        if is_recorded(gate, held):
            return bring_after(desk, held, gate, branch)
        if gate.claim is None or gate.claim.commit != held.claim:
            raise lost(held)
        known = desk.tracked(held.remote, gate.id) if held.remote is not None else gate.tip
        if not stands_on(gate, known):
            gate = current(desk, gate.id, held.remote)
            continue
        event: Event = replace(outcome, claim=held.claim, reveal=next_link(held))
        after = desk.records.write_event(gate, "outcome", event, by)
        ended = [RefMove(LEASES + gate.id, None, held.lease)] if held.lease else []
        # A git that is killed in between has moved the first ones.
        moves = [*branch, RefMove(OPEN + gate.id, after.tip, known), *ended]
        if move(desk, held.remote, moves):
            sightings(desk).forget(gate.id)
            if held.remote is None:
                return publish(desk, after).gate
            follow(desk, after, gate.tip)
            return after
        before, gate = gate, current(desk, gate.id, held.remote)
        if gate.tip == before.tip:
            before_lease, held = held.lease, still_ours(desk, held)
            branch = branch if held.lease != before_lease else refuse_moved(branch)
    raise LostRace(f"gate {gate.id} keeps changing", hint=f"git gate show {gate.id}")


def is_recorded(gate: Gate, held: HeldClaim) -> bool:
    """Whether our outcome is there, and the answer to its push was lost: nobody else knows the link that it reveals."""
    said = gate.outcome
    return (
        said is not None and said.claim == held.claim and bool(held.seed) and said.reveal == next_link(held)
    )


def bring_after(desk: Desk, held: HeldClaim, gate: Gate, branch: Sequence[RefMove]) -> Gate:
    """The gate, whose outcome is recorded. Where the server was killed before it came to the branch, that goes after it."""
    if branch:
        move(desk, held.remote, branch)
    sightings(desk).forget(gate.id)
    if gate.state in (FAILED, RESUMED):
        tell_people(desk)
    return gate


def still_ours(desk: Desk, held: HeldClaim) -> HeldClaim:
    """The claim with the lease as it is. A renewal may have arrived without our hearing of it; or somebody who may not
    has moved or deleted the lease: as long as the record has no other claim, ours counts, and its lease goes on.
    """
    found = load_lease(desk, held.gate.id, held.remote)
    if found is not None and found[1] is not None and is_ours(held, found[1]):
        return with_lease(held, found[0], found[1])
    if held.gate.claim is None:
        raise lost(held)  # a waiter's lease is all that it has
    now = current(desk, held.gate.id, held.remote)
    if now.claim is None or now.claim.commit != held.claim or now.state != RESUMING:
        raise lost(held)
    return replace(held, lease=found[0] if found is not None else "")


def refuse_moved(branch: Sequence[RefMove]) -> Sequence[RefMove]:
    """The record and the lease are as they were: it is the branch that somebody moved."""
    if branch:
        raise BranchMoved(f"{branch[0].ref} was moved by somebody else", hint="git fetch")
    return branch


class BranchMoved(LostRace):
    """The agent's branch is not where it was when the agent went on."""

    code = "branch_moved"


def claim_outcome(
    desk: Desk,
    held: HeldClaim,
    result: str,
    *,
    reason: str = "",
    log: str = "",
    branch: str = "",
    commits: Sequence[str] = (),
) -> Outcome:
    """What came of the claim, as its holder says it."""
    return Outcome(desk.now, held.claim, result, held.said.by, reason, log, branch, tuple(commits))


def release(desk: Desk, held: HeldClaim, reason: str, log: str = "") -> Gate:
    """Give the claim back; the gate is answered again, and somebody else may act on it."""
    return finish(desk, held, claim_outcome(desk, held, "released", reason=reason, log=log))


def try_release(desk: Desk, held: HeldClaim, reason: str) -> None:
    """The same where nothing more can be done about a failure: then the claim lapses by itself."""
    with contextlib.suppress(GateError):
        release(desk, held, reason)
