"""Claims: somebody waits for a gate, and holds a lease while they do. When they are silent for a term, a saved session is
resumed instead; either way one of them acts. A killed waiter leaves the gate open.

Only a gate with a saved session has somebody to be resumed, and so needs a lease.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .. import text
from ..context import Desk
from ..context.targets import remote_of
from ..errors import Conflict, Failure, GateError, LostRace, RemoteUnreachable
from ..exchange.syncing import bring_home, stands_on
from ..gates.leases import boottime, load_lease, shared_at, sightings, watch_lease
from ..gates.recording import act
from ..model import AWAITING
from ..model.gate import Claim, Gate, Outcome
from ..model.lease import Lease, end_of
from ..policy.permit import check_heard, check_told
from ..record.events import told_commit
from ..store import private_folder
from ..store.git.refs import LEASES, OPEN
from ..store.records import NOBODY, Signature
from ..store.remote import RefMove
from . import (
    TRIES,
    WAITER,
    ClaimLost,
    HeldClaim,
    current,
    follow,
    is_our_lease,
    move,
    next_lease,
    next_link,
    note_renewal,
    renew,
    tries,
    with_lease,
    write_lease,
)

TERM = 300
RENEW_EVERY = TERM / 3


class Attendance:
    """Lease of somebody who waits for one gate. A waiter that loses it waits on: whoever acts first counts."""

    def __init__(self, desk: Desk, gate: Gate, monotonic: Callable[[], float]) -> None:
        self.desk = desk
        self.monotonic = monotonic
        self.held: HeldClaim | None = None
        self.next = monotonic()
        self.needed = gate.opened.delivery == "wait" and gate.opened.session is not None

    def keep(self, gate: Gate) -> None:
        """Take the lease or renew it when it is time. A renewal that fails, as where the network is down, is
        tried again later.
        """
        if not self.needed or gate.state != AWAITING or self.monotonic() < self.next:
            return
        self.next = self.monotonic() + RENEW_EVERY
        try:
            if self.held is None:
                self.held = attend(self.desk, gate, self.monotonic)
            else:
                self.held = renew(self.desk, self.held, self.monotonic)
        except ClaimLost:
            self.held = None
        except GateError as silent:
            self.next = self.monotonic() + RENEW_EVERY / 5
            self.desk.progress(f"the waiter's lease could not be renewed: {silent.message}")

    def leave(self, gate: Gate) -> None:
        """End the lease of a waiter that leaves without an answer, so that a runner need not wait for the term
        to pass.

        On a remote, a last lease says so: only its holder can prove that it may go, and a deletion proves
        nothing.
        """
        if self.held is not None:
            held = self.held
            try:
                new = next_lease(self.desk, held, over=True).lease if held.remote is not None else None
                move(self.desk, held.remote, [RefMove(LEASES + gate.id, new, held.lease)])
            except GateError as silent:
                self.desk.progress(f"the waiter's lease stays until it lapses: {silent.message}")
            self.held = None


@contextlib.contextmanager
def blocking(desk: Desk, gate: str) -> Iterator[None]:
    """Mark in this clone that somebody blocks on the gate, for as long as the context lasts.

    The mark is a lock of the system, which ends with its process however that ends.
    """
    place = desk.repo.state_dir / "waiting" / gate
    number = -1
    with contextlib.suppress(OSError):
        private_folder(place.parent)
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(number, fcntl.LOCK_SH)
    try:
        yield
    finally:
        if number >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # The last one clears up.
                place.unlink()
            os.close(number)


def is_blocked_on_here(desk: Desk, gate: str) -> bool:
    try:
        number = os.open(desk.repo.state_dir / "waiting" / gate, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(number)
    return False


def attended(desk: Desk, gate: Gate) -> bool | None:
    """Return whether somebody blocks on this gate; None where this clone cannot know.

    Without a session, a waiter elsewhere has no lease that would show it.
    """
    if is_blocked_on_here(desk, gate.id):
        return True
    if gate.opened.session is None:
        return False if remote_of(desk) is None else None
    try:
        found = load_lease(desk, gate.id, shared_at(desk, gate.id))
        lease = found[1] if found is not None else None
        if lease is None or lease.runner != WAITER or lease.over:
            return False
        return text.parse_time(lease.expires) > desk.clock()
    except GateError:
        return None


def attend(desk: Desk, gate: Gate, monotonic: Callable[[], float]) -> HeldClaim | None:
    """Take the waiter's lease; None when another waiter has one, or got it first."""
    remote = shared_at(desk, gate.id)
    found, left = watch_lease(desk, gate, remote, sightings(desk, monotonic))
    if found is not None and left:
        return None
    asked, seed = gate.opened.asked, desk.entropy(32)
    said = Lease(
        *(gate.id, WAITER, asked.host, desk.entropy(12), TERM, 0, desk.now, "", asked.agent),
        anchor=end_of(seed),
    )
    taken = monotonic()
    said, oid = write_lease(desk, said, gate.tip)
    if not move(desk, remote, [RefMove(LEASES + gate.id, oid, found[0] if found else None)]):
        return None
    held = HeldClaim(gate.tip, oid, said, remote, taken, seed, chain=oid, gate=gate)
    note_renewal(desk, held, monotonic)
    return held


def hear(desk: Desk, gate: Gate, held: HeldClaim | None, *, given_here: str = "") -> Gate:
    """Take the answer for the waiter: claim, outcome and the lease's end are one move.

    Conflict when a runner took the answer while the waiter was silent. Where another waiter has the lease, that
    one takes the answer. `given_here`: how the waiter's own program answers.
    """
    remote = held.remote if held is not None else shared_at(desk, gate.id)
    for _ in range(TRIES):
        refuse_taken(gate)
        if not gate.actionable:
            return gate
        known = desk.tracked(remote, gate.id) if remote is not None else gate.tip
        if not stands_on(gate, known):
            gate = current(desk, gate.id, remote)
            continue
        held = still_held(desk, gate, held, remote)
        found = load_lease(desk, gate.id, remote) if held is None else None
        another = found is not None and not (found[1] is not None and found[1].over)
        if another and gate.opened.session is not None:
            return gate
        check_told(desk, gate, given_here=given_here)
        heard = write_heard(desk, gate, next_link(held) if held is not None else "")
        moves = [RefMove(OPEN + gate.id, heard.tip, known)]
        moves += [RefMove(LEASES + gate.id, None, held.lease)] if held is not None else []
        if move(desk, remote, moves):
            if remote is not None:
                follow(desk, heard, gate.tip)
            return heard
        gate = current(desk, gate.id, remote)
    raise LostRace(f"gate {gate.id} keeps changing", hint=f"git gate show {gate.id}")


def refuse_taken(gate: Gate) -> None:
    """Raise Conflict where a session was resumed in the waiter's stead and has the answer. To act on it here
    too would be twice.
    """
    event = gate.claim.event if gate.claim else None
    if isinstance(event, Claim) and event.runner != WAITER and gate.state in ("resuming", "resumed"):
        raise Conflict(
            f"this waiter was silent for too long: the answer to gate {gate.id} went to the saved session instead, "
            f"resumed by {event.runner} on {event.host}",
            hint=f"git gate show {gate.id}",
        )


def still_held(desk: Desk, gate: Gate, held: HeldClaim | None, remote: str | None) -> HeldClaim | None:
    """Return the claim with its lease as the lease is now; None when the lease is not ours."""
    if held is None:
        return None
    found = load_lease(desk, gate.id, remote)
    if found is None or found[1] is None or not is_our_lease(held, found[1]):
        return None
    return with_lease(held, found[0], found[1])


def write_heard(desk: Desk, gate: Gate, reveal: str) -> Gate:
    """Write the claim and its outcome as objects; `reveal` ends the lease."""
    asked = gate.opened.asked
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    claim = Claim(
        at=desk.now,
        answer=told_commit(gate),
        nonce=desk.entropy(12),
        runner=WAITER,
        host=asked.host,
        attempt=tries(gate) + 1,
        term=TERM,
        by=asked.agent,
    )
    claimed = desk.records.write_event(gate, "claimed", claim, by)
    outcome = Outcome(at=desk.now, claim=claimed.tip, result="resumed", by=claim.by, reveal=reveal)
    return desk.records.write_event(claimed, "outcome", outcome, by)


POLL = 0.25
SLOWEST_POLL = 1.0
FETCH_EVERY = 5.0
SLOWEST_FETCH = 30.0
WORD_EVERY = 60.0


@dataclass(frozen=True)
class WaitLimit:
    """Limit of a wait in seconds (None: without end), with the clock and the sleep function that it uses."""

    seconds: float | None = None
    monotonic: Callable[[], float] = boottime
    sleep: Callable[[float], None] = time.sleep


def wait(desk: Desk, gate: Gate, limit: WaitLimit = WaitLimit()) -> Gate:
    """Wait until the gate is decided or the time is over, and return it. Deliver the answer to this waiter.

    A waiter that is interrupted records that it has left, so that nobody is shown that somebody waits.
    """
    attendance = Attendance(desk, gate, limit.monotonic)
    with blocking(desk, gate.id):
        try:
            return until_decided(desk, gate, limit, attendance)
        except BaseException:
            attendance.leave(gate)
            raise


def until_decided(desk: Desk, gate: Gate, limit: WaitLimit, attendance: Attendance) -> Gate:
    start = limit.monotonic()
    pause, next_fetch, next_word = POLL, start, start + WORD_EVERY
    every = FETCH_EVERY
    remote = remote_of(desk)
    while True:
        gate = act(desk, gate)
        now = limit.monotonic()
        over = limit.seconds is not None and now - start >= limit.seconds
        if gate.state != AWAITING:
            try:
                return deliver(desk, gate, attendance)
            except RemoteUnreachable as silent:
                # Out of reach nobody knows whether another acts on it already: the answer is not given out twice.
                if over:
                    raise
                desk.remind(f"still waiting: {silent.message}")
        elif over:
            attendance.leave(gate)
            return gate
        attendance.keep(gate)
        if remote is not None and now >= next_fetch:
            hear_remote(desk, remote)
            next_fetch, every = now + every, min(every * 1.5, SLOWEST_FETCH)
        elif now >= next_word:
            desk.remind(f"still waiting for an answer to {gate.id} ({int((now - start) / 60)} min)")
            next_word += WORD_EVERY
        left = None if limit.seconds is None else limit.seconds - (now - start)
        limit.sleep(pause if left is None else max(0.0, min(pause, left)))
        pause = min(pause * 1.2, SLOWEST_POLL)
        gate = refreshed(desk, gate)


def hear_remote(desk: Desk, remote: str) -> None:
    """Fetch what the remote has. A network that is down is no reason to stop waiting."""
    try:
        bring_home(desk, remote)
    except GateError as silent:
        desk.progress(f"{remote} does not answer: {silent.message}")


def refreshed(desk: Desk, gate: Gate) -> Gate:
    tip = desk.refs.get(OPEN + gate.id)
    if tip is None:
        from ..gates.history import load_archived

        archived = load_archived(desk, gate.id)
        if archived is None:
            raise Failure(f"gate {gate.id} is gone from this clone", hint="git gate sync")
        return archived
    return gate if tip == gate.tip else desk.records.load(gate.id, tip)


def deliver(desk: Desk, gate: Gate, attendance: Attendance) -> Gate:
    """Return the decided gate to its waiter.

    With delivery `wait`, to receive the answer is to act on it: that is recorded where the gate is shared.
    """
    if gate.opened.delivery != "wait" or (gate.answer is None and not gate.expired):
        check_heard(desk, gate)
        return gate
    heard = hear(desk, gate, attendance.held)
    attendance.held = None
    return heard
