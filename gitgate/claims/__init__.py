"""Claims: the right to act on an answer: taken, held, handed over, given up.

One atomic move takes it, and exactly one of many who try gets it: the record gains `claimed`, and the lease appears. A gate
that the shared repository knows is claimed there, by push; any other one here. Renewing moves the lease alone. The outcome,
the lease's end and the agent's branch are one move too: a runner that lost its claim changes none of them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from .. import text
from ..context import Desk
from ..context.machine import host_name
from ..context.targets import may_publish_work, remote_of
from ..errors import (
    BrokenRecord,
    Conflict,
    GateError,
    IllegalEvent,
    LostRace,
    PushRefused,
    RefLocked,
    RemoteUnable,
    RemoteUnreachable,
)
from ..exchange.syncing import bring_home, publish, push_moves, stands_on
from ..gates.leases import RENEW_AT, Sightings, boottime, load_lease, shared_at, sightings, watch_lease
from ..gates.recording import reload, tell_people
from ..model import ENDED, FAILED, HANDED_BACK, RESUMING, is_id
from ..model import lease as leases
from ..model.gate import Claim, Event, Gate, Outcome
from ..model.lease import Lease
from ..policy.permit import check_told
from ..record import loose_ends
from ..record.events import told_commit
from ..store import private_folder, read_local, read_local_note, write_private
from ..store.git.refs import LEASES, OPEN
from ..store.records import NOBODY, Signature
from ..store.remote import FateKind, RefFate, RefMove, tracking

TRIES = 8
GIVE_UP_AT = 0.7
WAITER = "waiter"


class ClaimLost(Conflict):
    """Error of a claim that somebody else has now, or whose gate is over. Whoever had the claim stops."""

    code = "claim_lost"


@dataclass(frozen=True)
class HeldLease:
    """Claim that is ours, of a gate or a run. `taken`: before its last renewal began, by the holder's own clock.

    `seed`: a secret of the holder. Its chain began at the beat `began`, with the lease `chain` where that is not the
    claim that names the chain's end. `lease` is empty where somebody deleted ours.
    """

    claim: str
    lease: str
    said: Lease
    remote: str | None
    taken: float
    seed: str = ""
    chain: str = ""
    began: int = 0


Held = TypeVar("Held", bound=HeldLease)


@dataclass(frozen=True)
class HeldClaim(HeldLease):
    """Claim on a gate that is ours."""

    gate: Gate = field(kw_only=True)

    @property
    def attempt(self) -> int:
        event = self.gate.claim.event if self.gate.claim else None
        return event.attempt if isinstance(event, Claim) else 1


@dataclass(frozen=True)
class Claimant:
    """Runner that claims, the term of its lease in seconds, and the clock that it measures by."""

    runner: str
    term: int = 120
    host: str = ""
    by: str = ""
    monotonic: Callable[[], float] = boottime


def claim(desk: Desk, gate: Gate, who: Claimant, *, insist: bool = False) -> HeldClaim:
    """Take the right to act on `gate`, or say who has it (Conflict). `insist`: a person asks, also where it failed.

    A shared gate cannot be claimed while its remote is unreachable: nobody else could see the claim.
    """
    watched = sightings(desk, who.monotonic)
    gate, remote, known = made_known(desk, gate)
    for attempt in range(TRIES):
        if attempt:
            known = desk.tracked(remote, gate.id) if remote is not None else gate.tip
        if not stands_on(gate, known):
            gate = current(desk, gate.id, remote)
            continue
        old = check_free(desk, gate, remote, watched, insist=insist, look=attempt > 0)
        check_told(desk, gate)
        held, moves = compose_claim(desk, gate, who, (remote, known), old)
        try:
            won = move(desk, remote, moves)
        except RemoteUnable:
            watched.interrupt(gate.id)  # Whoever held it could not renew it either.
            raise
        if won:
            note_renewal(desk, held, who.monotonic)
            if gate.state == RESUMING:
                from ..gates.history import note_overtaken

                note_overtaken(desk, gate.id)
            return settle(desk, held, gate)
        gate = current(desk, gate.id, remote)
    watched.interrupt(gate.id)  # Something there may be locked.
    raise LostRace(f"gate {gate.id} keeps changing", hint=f"git gate show {gate.id}")


def made_known(desk: Desk, gate: Gate) -> tuple[Gate, str | None, str | None]:
    """Return the gate, the remote that it is claimed on, if any, and the tip that the claim replaces there.

    A gate that nobody else has is shared first, if it can be: then the claim is where all can see it.
    """
    remote = remote_of(desk)
    if remote is None:
        return gate, None, gate.tip
    # Asked of the process that reads objects, which composing the claim needs anyway.
    known = desk.refs.get(tracking(remote, OPEN + gate.id))
    if known is None and gate.state != RESUMING:
        gate = publish(desk, gate, work=may_publish_work(desk)).gate
        known = desk.tracked(remote, gate.id)
    return (gate, remote, known) if known is not None else (gate, None, gate.tip)


def check_free(
    desk: Desk, gate: Gate, remote: str | None, watched: Sightings, *, insist: bool, look: bool
) -> str | None:
    """Return the lease to replace, if any; Conflict when somebody has the gate, or there is nothing to act on."""
    refuse_archived(desk, gate)
    if gate.state == RESUMING or (gate.actionable and gate.opened.delivery == "wait"):
        found, left = watch_lease(desk, gate, remote, watched)
        if (gate.state == RESUMING or found is not None) and left:
            raise held_by_another(gate, found[1] if found else None, left)
        return found[0] if found else None
    if not gate.actionable and not (insist and gate.state == FAILED):
        raise nothing_to_act_on(gate)
    # None is left over from a claim that ended properly, so that it is looked for only where it was in the way.
    leftover = load_lease(desk, gate.id, remote) if look else None
    return leftover[0] if leftover else None


def refuse_archived(desk: Desk, gate: Gate) -> None:
    """Refuse a gate that is in the archive. A clone that was away for long may still have such a gate as open."""
    from ..store.records.archive import archived

    if archived(desk.repo, gate.id):
        raise ClaimLost(f"gate {gate.id} is over: it is in the archive", hint=f"git gate show {gate.id}")


class HeldByAnother(Conflict):
    """Error of a gate on which somebody else acts. `left`: seconds until a takeover, if they give no sign of life."""

    left = 0.0


def held_by_another(gate: Gate, lease: Lease | None, left: float = 0.0) -> HeldByAnother:
    event = gate.claim.event if gate.claim else None
    who = (
        (lease.runner, lease.host)
        if lease
        else (event.runner, event.host)
        if isinstance(event, Claim)
        else ("", "")
    )
    held = HeldByAnother(
        f"gate {gate.id} is being acted on by {who[0] or 'a runner'} on {who[1] or 'another machine'}",
        hint=f"see: git gate show {gate.id}; if it gives no sign of life, the same command in {left:.0f} s takes over",
    )
    held.left = left
    return held


def nothing_to_act_on(gate: Gate) -> IllegalEvent:
    if gate.opened.delivery == "none" and gate.answer is not None:
        return IllegalEvent(
            f"nobody is to be resumed by gate {gate.id}: its asker reads the answer",
            hint=f"git gate check {gate.id}",
        )
    if gate.state == FAILED:
        return IllegalEvent(
            f"gate {gate.id} failed; a person may try again", hint=f"git gate resume {gate.id}"
        )
    return IllegalEvent(
        f"gate {gate.id} is {gate.state}: nothing is to be resumed", hint=f"git gate show {gate.id}"
    )


def compose_claim(
    desk: Desk, gate: Gate, who: Claimant, where: tuple[str | None, str | None], old: str | None
) -> tuple[HeldClaim, list[RefMove]]:
    """Write the claim and its lease as objects, and return the claim with the two moves that make it count."""
    taken = who.monotonic()
    host = who.host or host_name()
    by = who.by or desk.settings.identity()
    seed = desk.entropy(32)
    event = Claim(
        at=desk.now,
        answer=told_commit(gate),
        nonce=desk.entropy(12),
        runner=who.runner,
        host=host,
        attempt=tries(gate) + 1,
        term=who.term,
        by=by,
        anchor=leases.end_of(seed),
    )
    said = Lease(gate.id, who.runner, host, event.nonce, who.term, 0, desk.now, "", by)
    with desk.records.objects.together():
        claimed = desk.records.write_event(gate, "claimed", event, Signature(by or NOBODY, desk.at))
        said, oid = write_lease(desk, said, claimed.tip)
    remote, known = where
    moves = [RefMove(OPEN + gate.id, claimed.tip, known), RefMove(LEASES + gate.id, oid, old)]
    return HeldClaim(claimed.tip, oid, said, remote, taken, seed, gate=claimed), moves


def tries(gate: Gate) -> int:
    """Count the attempts to act on the answer since the last failure. A claim that was handed back is no
    attempt.
    """
    count = 0
    for entry in gate.events:
        if isinstance(entry.event, Claim):
            count += 1
        elif isinstance(entry.event, Outcome):
            count = 0 if entry.event.result == "failed" else count - int(entry.event.cause == HANDED_BACK)
    return count


def write_lease(desk: Desk, said: Lease, on: str, chain: str = "") -> tuple[Lease, str]:
    """Write a lease that begins now, as a commit on its event and on the lease that began its chain."""
    said = replace(said, at=desk.now, expires=text.format_time(desk.clock() + said.term))
    by = Signature(said.by or NOBODY, desk.at)
    tree = desk.records.commit(on).tree
    return said, desk.records.write_commit(
        tree, (on, chain) if chain else (on,), by, leases.lease_message(said)
    )


def next_lease(desk: Desk, held: Held, *, over: bool = False) -> Held:
    """Write the claim's next lease, which reveals the next link. The last lease of a chain names the end of another
    chain.
    """
    said = replace(held.said, beat=held.said.beat + 1, reveal=next_link(held), anchor="")
    if over:
        said = replace(said, term=0)
    if held.seed and said.beat - held.began == leases.LINKS:
        said = replace(said, anchor=leases.end_of(leases.next_seed(held.seed)))
    said, oid = write_lease(desk, said, held.claim, held.chain)
    return with_lease(held, oid, said)


def next_link(held: HeldLease) -> str:
    """Return the chain's next link, which only the holder knows; empty for a claim of an older version."""
    return leases.value_of(held.seed, held.said.beat + 1 - held.began) if held.seed else ""


def with_lease(held: Held, oid: str, said: Lease) -> Held:
    held = replace(held, lease=oid, said=said)
    if not said.anchor or said.beat == held.began:
        return held
    return replace(held, seed=leases.next_seed(held.seed), chain=oid, began=said.beat)


def is_our_lease(held: HeldLease, said: Lease | None) -> bool:
    """Return whether a lease is one of ours: a renewal may have arrived without our getting the reply."""
    if said is None or said.nonce != held.said.nonce:
        return False
    number = said.beat - held.began
    if not held.seed or number == 0:
        return True
    return 0 < number <= leases.LINKS and said.reveal == leases.value_of(held.seed, number)


def note_renewal(desk: Desk, held: HeldClaim, monotonic: Callable[[], float]) -> None:
    """Note the beat of a lease that is in this repository, so that nobody here need watch it from the beginning."""
    if held.remote is None:
        holder = held.chain if held.gate.claim is None and held.chain else held.claim
        sightings(desk, monotonic).note(held.gate.id, holder, held.said.beat)


def move(desk: Desk, remote: str | None, moves: Sequence[RefMove]) -> bool:
    """Move refs together, on the remote or here; False when somebody else moved one first, or is about to."""
    return tried(desk, remote, moves)[0]


def moved(desk: Desk, remote: str | None, moves: Sequence[RefMove]) -> bool:
    """Move refs together; False when somebody was first, RefLocked where one could not be moved and nobody was, as far
    as known.
    """
    if remote is not None:
        return all_accepted(remote, push_moves(desk, remote, moves))
    try:
        desk.refs.update(moves)
    except RefLocked:
        raise
    except LostRace:
        return False
    return True


def tried(desk: Desk, remote: str | None, moves: Sequence[RefMove]) -> tuple[bool, RefLocked | None]:
    """Move refs together. Return whether they moved, and the lock that prevented it, if that is why not."""
    try:
        return moved(desk, remote, moves), None
    except RefLocked as locked:
        return False, locked


def all_accepted(remote: str, fates: Sequence[RefFate]) -> bool:
    refused = next((fate for fate in fates if fate.refused), None)
    if refused is not None and refused.unable:
        raise RemoteUnable(
            f"{remote} could not do it for the moment ({refused.unable})",
            hint="type the same again later; if it stays so, tell whoever runs the server",
        )
    if refused is not None:
        raise PushRefused(f"{remote} {refused.reason}", hint=f"git gate sync {remote}")
    locked = next((fate for fate in fates if fate.unable), None)
    if locked is not None:
        raise RefLocked(
            f"{remote} could not do it for the moment ({locked.unable})",
            hint="type the same again; a lock that a killed git left goes after ten minutes",
        )
    if any(fate.kind is FateKind.UNKNOWN for fate in fates):
        raise RemoteUnreachable(
            f"{remote}: the connection broke before it said what it took", hint="try again"
        )
    return all(fate.ok for fate in fates)


def settle(desk: Desk, held: HeldClaim, before: Gate) -> HeldClaim:
    """Move the record here too, after a push that won. What else happened here meanwhile, the next sync brings
    together.
    """
    if held.remote is not None:
        follow(desk, held.gate, before.tip)
    return held


def follow(desk: Desk, gate: Gate, before: str) -> None:
    try:
        desk.refs.update([RefMove(OPEN + gate.id, gate.tip, before)])
    except LostRace:
        remote = shared_at(desk, gate.id)
        if remote is not None:
            bring_home(desk, remote)


def current(desk: Desk, gate: str, remote: str | None) -> Gate:
    """Load the gate as it is where it is claimed; ClaimLost when it is no longer open there."""
    if remote is not None:
        bring_home(desk, remote)
        if desk.tracked(remote, gate) is None:
            raise ClaimLost(f"gate {gate} is no longer open on {remote}", hint=f"git gate show {gate}")
    return reload(desk, gate)


def renew(desk: Desk, held: HeldClaim, monotonic: Callable[[], float] = boottime) -> HeldClaim:
    """Renew the claim for another term; ClaimLost when somebody else has it. A network failure is raised as it is."""
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


def keep_renewed(
    term: float,
    is_over: Callable[[float], bool],
    renewed: Callable[[], bool],
    lose: Callable[[str], None],
    *,
    clock: Callable[[], float] = boottime,
    since: float | None = None,
    holds_on: Callable[[], bool] = lambda: False,
) -> None:
    """Renew a lease in time until `is_over` says so, after so many seconds, or `renewed` returns False.

    `lose` gets the reason why the lease is no longer ours. One that cannot be renewed is lost, since elsewhere it may
    be taken over, unless its holder `holds_on`.
    """
    last, pause = clock() if since is None else since, term * RENEW_AT
    while not is_over(pause):
        began, pause = clock(), min(term / 20, 5.0)
        try:
            if not renewed():
                return
        except ClaimLost as taken:
            lose(taken.message)
            return
        except (GateError, OSError) as silent:
            if clock() - last > term * GIVE_UP_AT and not holds_on():
                lose(f"the claim could not be renewed: {silent}")
                return
        else:
            last, pause = began, term * RENEW_AT


def lost(held: HeldClaim) -> ClaimLost:
    return ClaimLost(
        f"the claim on gate {held.gate.id} is no longer ours: another runner took over",
        hint=f"git gate show {held.gate.id}",
    )


def finish(desk: Desk, held: HeldClaim, outcome: Outcome, branch: Sequence[RefMove] = ()) -> Gate:
    """Record the outcome of the claim and give the claim up; `branch` moves with it or not at all.

    A remark that reached the record meanwhile is no reason to fail: the outcome is written again on top of it.
    """
    gate, locked = held.gate, None  # what is locked is waited for: nobody has moved the branch
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
        done, locked = tried(desk, held.remote, moves)
        if done:
            sightings(desk).forget(gate.id)
            tell_end(desk, after)
            if held.remote is None:
                return publish(desk, after).gate
            follow(desk, after, gate.tip)
            return after
        before, gate = gate, current(desk, gate.id, held.remote)
        if gate.tip == before.tip:
            before_lease, held = held.lease, still_ours(desk, held)
            branch = branch if locked or held.lease != before_lease else refuse_moved(branch)
    raise locked or LostRace(f"gate {gate.id} keeps changing", hint=f"git gate show {gate.id}")


def is_recorded(gate: Gate, held: HeldClaim) -> bool:
    """Return whether our outcome is recorded and only the push's reply was lost: nobody else knows the link that it
    reveals.
    """
    said = gate.outcome
    return (
        said is not None and said.claim == held.claim and bool(held.seed) and said.reveal == next_link(held)
    )


def bring_after(desk: Desk, held: HeldClaim, gate: Gate, branch: Sequence[RefMove]) -> Gate:
    """Return the gate with its recorded outcome. Move the branch now, where the server was killed before it did."""
    if branch:
        move(desk, held.remote, branch)
    sightings(desk).forget(gate.id)
    tell_end(desk, gate)
    return gate


def tell_end(desk: Desk, gate: Gate) -> None:
    """Notify people of an agent that failed, or that left something to look at."""
    if gate.state == FAILED or (gate.outcome is not None and loose_ends(gate.outcome)):
        tell_people(desk)


def still_ours(desk: Desk, held: HeldClaim) -> HeldClaim:
    """Return the claim with its lease as the lease is now; ClaimLost when the claim is no longer ours.

    A renewal may have arrived without our getting the reply, or somebody who may not has moved or deleted the lease.
    As long as the record has no other claim, ours counts, and its lease goes on.
    """
    found = load_lease(desk, held.gate.id, held.remote)
    if found is not None and found[1] is not None and is_our_lease(held, found[1]):
        return with_lease(held, found[0], found[1])
    if held.gate.claim is None:
        raise lost(held)  # a waiter's lease is all that it has
    now = current(desk, held.gate.id, held.remote)
    if now.claim is None or now.claim.commit != held.claim or now.state != RESUMING:
        raise lost(held)
    return replace(held, lease=found[0] if found is not None else "")


def refuse_moved(branch: Sequence[RefMove]) -> Sequence[RefMove]:
    """Raise BranchMoved if there is a branch: record and lease are as they were, so that somebody moved the branch."""
    if branch:
        raise BranchMoved(f"{branch[0].ref} was moved by somebody else", hint="git fetch")
    return branch


class BranchMoved(LostRace):
    """Error of an agent's branch that is not where it was when the agent went on."""

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
    cause: str = ENDED,
) -> Outcome:
    """Return the outcome of the claim, in the name of its holder."""
    said = Outcome(desk.now, held.claim, result, held.said.by, reason, log, branch, tuple(commits))
    return replace(said, cause=cause)


def release(desk: Desk, held: HeldClaim, reason: str, log: str = "") -> Gate:
    """Give the claim back; the gate is answered again, and somebody else may act on it."""
    return finish(desk, held, claim_outcome(desk, held, "released", reason=reason, log=log))


def hand_back(desk: Desk, held: HeldClaim, why: str = "") -> Gate:
    """Give the claim back without counting an attempt: this machine has to stop, or cannot do it for now."""
    reason = f"handed back: {why}" if why else "handed back"
    return finish(desk, held, claim_outcome(desk, held, "released", reason=reason, cause=HANDED_BACK))


def try_release(desk: Desk, held: HeldClaim, reason: str) -> None:
    """Give the claim back after a failure that nothing else can mend; if that fails too, the claim lapses."""
    with contextlib.suppress(GateError, OSError):
        release(desk, held, reason)


def held_folder(desk: Desk) -> Path:
    return desk.repo.state_dir / "held"


def hand_over(desk: Desk, held: HeldClaim) -> None:
    """Write the claim down for the runner that is about to start."""
    write_private(private_folder(held_folder(desk)) / held.gate.id, json.dumps(dump_held(held)).encode())


def dump_held(held: HeldClaim) -> dict[str, object]:
    """Return what another process needs to go on as the holder. Without the `seed`, nothing proves that it is the
    holder.
    """
    return {
        "claim": held.claim,
        "lease": held.lease,
        "remote": held.remote,
        "taken": held.taken,
        "seed": held.seed,
    }


def pending(desk: Desk) -> list[str]:
    """List the gates whose claim waits to be taken over."""
    with contextlib.suppress(OSError):
        return sorted(place.name for place in held_folder(desk).iterdir() if is_id(place.name))
    return []


def take_over(desk: Desk, gate: str) -> HeldClaim | None:
    """Take the claim that was left for this runner, once; None when there is none, or it is over."""
    place = held_folder(desk) / gate
    mine = place.with_name(f".{gate}.{os.getpid()}")
    try:
        place.replace(mine)  # Of several runners, one gets the file.
        said = read_local_note(mine)
        mine.unlink()
    except (OSError, ValueError):
        return None
    return load_held(desk, gate, said)


def load_held(desk: Desk, gate: str, said: object) -> HeldClaim | None:
    """Load the claim that `dump_held` wrote; None where it is nothing of the kind, or the gate has another claim by
    now.
    """
    try:
        given = dict(said) if isinstance(said, Mapping) else {}
        found = leases.parse_lease(desk.records.commit(str(given["lease"])).message)
        taken, remote = float(given["taken"]), given["remote"]
    except (ValueError, TypeError, KeyError, BrokenRecord):
        return None
    now = reload(desk, gate)
    if found is None or now.claim is None or now.claim.commit != given["claim"]:
        return None
    return HeldClaim(
        *(str(given["claim"]), str(given["lease"]), found, remote, taken),
        seed=str(given.get("seed", "")),
        gate=now,
    )


# What a person left to others: `--no-resume`


def notes_of_left(desk: Desk) -> Path:
    return desk.repo.state_dir / "left"


def leave_to_others(desk: Desk, gate: Gate) -> None:
    """Note that this answer starts no agent here by itself, whatever else does; only an explicit request starts one."""
    if gate.answer is not None:
        (private_folder(notes_of_left(desk)) / gate.id).write_text(gate.answer.signed_commit, "ascii")


def is_left_to_others(desk: Desk, gate: str) -> bool:
    """Return whether the answer that counts is noted as left to others; a note of another answer says nothing."""
    try:
        noted = read_local(notes_of_left(desk) / gate).decode("ascii")
    except (OSError, ValueError):
        return False
    answer = reload(desk, gate).answer
    return answer is not None and noted in (answer.commit, answer.signed_commit)


def lift_note(desk: Desk, gate: str = "") -> None:
    """Delete the note that left a gate's answer to others, or all such notes: somebody wants an agent here after
    all.
    """
    with contextlib.suppress(OSError):
        for place in [notes_of_left(desk) / gate] if gate else notes_of_left(desk).iterdir():
            place.unlink(missing_ok=True)
