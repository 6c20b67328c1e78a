"""Claims: somebody blocks on a gate. A killed waiter leaves the gate open; a saved session is resumed in its stead."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..context.desk import Desk
from ..context.remotes import remote_of
from ..errors import Failure, GateError, RemoteUnreachable
from ..gates.deadlines import act
from ..gates.leases import boottime
from ..model.gate import Gate
from ..model.states import AWAITING
from ..policy.permit import check_heard
from ..store.git.refs import OPEN
from .attending import Attendance, blocking, hear

POLL = 0.25
SLOWEST_POLL = 1.0
FETCH_EVERY = 5.0
SLOWEST_FETCH = 30.0
WORD_EVERY = 60.0


@dataclass(frozen=True)
class WaitLimit:
    """How long a waiter waits (None: without end), and the clock and the bed it uses."""

    seconds: float | None = None
    monotonic: Callable[[], float] = boottime
    sleep: Callable[[float], None] = time.sleep


def wait(desk: Desk, gate: Gate, patience: WaitLimit = WaitLimit()) -> Gate:
    """The gate once it is decided, or still waiting when the patience ran out. Delivers the answer to this waiter.

    One that is interrupted says that it has left, so that nobody is told that somebody waits.
    """
    attendance = Attendance(desk, gate, patience.monotonic)
    with blocking(desk, gate.id):
        try:
            return until_decided(desk, gate, patience, attendance)
        except BaseException:
            attendance.leave(gate)
            raise


def until_decided(desk: Desk, gate: Gate, patience: WaitLimit, attendance: Attendance) -> Gate:
    start = patience.monotonic()
    pause, next_fetch, next_word = POLL, start, start + WORD_EVERY
    every = FETCH_EVERY
    remote = remote_of(desk)
    while True:
        gate = act(desk, gate)
        now = patience.monotonic()
        over = patience.seconds is not None and now - start >= patience.seconds
        if gate.state != AWAITING:
            try:
                return deliver(desk, gate, attendance)
            except RemoteUnreachable as silent:
                # Out of reach nobody knows whether another acts on it already: the answer is not given out twice.
                if over:
                    raise
                desk.progress(f"still waiting: {silent.message}")
        elif over:
            attendance.leave(gate)
            return gate
        attendance.keep(gate)
        if remote is not None and now >= next_fetch:
            hear_remote(desk, remote)
            next_fetch, every = now + every, min(every * 1.5, SLOWEST_FETCH)
        elif now >= next_word:
            desk.progress(f"still waiting for an answer to {gate.id} ({int((now - start) / 60)} min)")
            next_word += WORD_EVERY
        left = None if patience.seconds is None else patience.seconds - (now - start)
        patience.sleep(pause if left is None else max(0.0, min(pause, left)))
        pause = min(pause * 1.2, SLOWEST_POLL)
        gate = refreshed(desk, gate)


def hear_remote(desk: Desk, remote: str) -> None:
    """Hear what the remote has; a network that is down is no reason to stop waiting."""
    from ..exchange.syncing import bring_home

    try:
        bring_home(desk, remote)
    except GateError as silent:
        desk.progress(f"{remote} does not answer: {silent.message}")


def refreshed(desk: Desk, gate: Gate) -> Gate:
    tip = desk.refs.get(OPEN + gate.id)
    if tip is None:
        from ..gates.archived import load_archived

        archived = load_archived(desk, gate.id)
        if archived is None:
            raise Failure(f"gate {gate.id} is gone from this clone", hint="git gate sync")
        return archived
    return gate if tip == gate.tip else desk.records.load(gate.id, tip)


def deliver(desk: Desk, gate: Gate, attendance: Attendance) -> Gate:
    """With delivery `wait`, hearing the answer is acting on it, there where the gate is shared."""
    if gate.opened.delivery != "wait" or (gate.answer is None and not gate.expired):
        check_heard(desk, gate)
        return gate
    heard = hear(desk, gate, attendance.held)
    attendance.held = None
    return heard
