"""Resumption: a runner is called, and one runner of a repository answers however many calls there are.

A call is a mark that is made before the runner is started; whoever works looks for marks until none is left, and looks
once more after letting go of the lock, so that no call falls between two runners.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core.model import Gate
from ..errors import Conflict, Failure, StillWaiting
from ..runners import Order, find
from ..service.claiming import Claimant
from ..service.desk import Desk, open_desk
from ..service.leases import boottime
from ..store.permissions import private_folder
from .crew import Crew, Shift
from .run import Done, log_of


def mark(desk: Desk) -> Path:
    return desk.repo.state_dir / "called"


def call(desk: Desk, gate: str = "", runner: str = "local") -> str:
    """Start a runner that nobody waits for, for one gate or for all that can be acted on; where it tells what it does."""
    place = mark(desk)
    private_folder(place.parent)
    place.touch()
    order = Order(desk.repo.place, log_of(desk), desk.settings.env, (gate,) if gate else ())
    log = find(runner).start(order)
    return str(log_of(desk, gate)) if runner == "local" and gate else log


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Whether no other runner of this repository works."""
    try:
        import fcntl
    except ImportError:
        yield True
        return
    private_folder(folder)
    number = os.open(folder / "runner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        got = True
    except OSError:
        got = False
    try:
        yield got
    finally:
        os.close(number)


def answer_calls(desk: Desk, say: Callable[[str], None], stopping: threading.Event) -> Shift | None:
    """Act on everything that can be acted on in this repository; None when another runner does so already."""
    called = mark(desk)
    crew = crew_of(desk, say, stopping)
    shift = None

    def again() -> bool:
        with contextlib.suppress(FileNotFoundError):
            called.unlink()
            return True
        return False

    while again() and not stopping.is_set():
        with alone(desk.repo.state_dir) as got:
            if not got:
                called.touch()  # The other one finds it, or found it before it went.
                return shift
            shift = Shift([crew], desk.settings.number("maxAgents"), stopping)
            shift.drain(more=again)
    return shift


def crew_of(
    desk: Desk, say: Callable[[str], None], stopping: threading.Event, *, insist: bool = False
) -> Crew:
    """A crew for the repository of this desk, with desks of its own."""
    start, env = desk.repo.place, dict(desk.settings.env)

    def opener() -> Desk:
        return open_desk(start, env, clock=desk.clock)

    term = desk.settings.seconds("leaseTerm") or 120
    who = Claimant("local", term=term, monotonic=boottime)
    return Crew(opener, who, say, stopping, insist=insist, log=lambda gate: log_of(desk, gate))


def refuse_waiting(gate: Gate) -> None:
    if gate.state == "awaiting":
        raise StillWaiting(
            f"nobody has answered gate {gate.id} yet, so there is nothing to resume with",
            hint=f"answer it: git gate respond {gate.id[:6]}   or decide in the agent's own session: git gate join {gate.id[:6]}",
        )


def refuse_failed(done: Done) -> None:
    """Whoever named a gate is told why it was not resumed."""
    if done.result == "resumed":
        return
    if done.result == "lost":
        raise Conflict(done.reason, hint=f"git gate show {done.gate}")
    hint = f"what it said: {done.log}" if done.log else f"git gate show {done.gate}"
    if done.result == "failed":
        again = f"git gate resume {done.gate[:6]}   or end it: git gate stop {done.gate[:6]} --reason WHY"
        hint = f"{again}   ({hint})"
    raise Failure(f"gate {done.gate} was not resumed: {done.reason}", hint=hint)
