"""Resumption: a runner is called, and one runner of a repository answers however many calls there are.

A call is a mark that is made before the runner is started; whoever works looks for marks until none is left, and looks
once more after letting go of the lock, so that no call falls between two runners.

An answer that is given where the agent ran calls its runner there, at once: answer, claim and lease go in one push, so that
nobody else begins with it meanwhile, and the runner takes the claim from there.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..claims import Claimant, claim, hand_over, is_left_to_others, leave_to_others, lift_note
from ..context import Desk, machine, open_desk
from ..context.machine import host_name, slot
from ..context.targets import no_remote, remote_of, summaries
from ..document import dataclass, field, replace
from ..errors import Conflict, Failure, GateError, PushRefused, RemoteUnreachable, StillWaiting
from ..exchange.syncing import Published, bring_home, publish, push_moves
from ..gates import agency, due_runs
from ..gates.agency import began_here
from ..gates.leases import boottime, shared_at, stalled
from ..model import RESUMING
from ..model.gate import Claim, Gate
from ..runners import AnsweredGate, Order, Runner, find_runner
from ..store import locked, private_folder, read_local, take_lock, write_private
from ..store.git.refs import OPEN, RUNS, WAKE
from ..store.remote import RefMove
from ..store.remote.push import MOST_OWN, most_refs
from .pool import Pool, PoolGroup, is_candidate
from .run import Resumed, log_of

if TYPE_CHECKING:
    from ..record import Summary


def mark(desk: Desk) -> Path:
    return desk.repo.state_dir / "called"


def call(desk: Desk, gate: str = "", runner: str = "local") -> str:
    """Start a runner that nobody waits for, for one gate or for all that can be acted on. Return the path of its log."""
    place = mark(desk)
    private_folder(place.parent)
    place.touch()
    lift_note(desk, gate)
    log = find_runner(runner).start(order_for(desk, gate))
    return str(log_of(desk, gate)) if runner == "local" and gate else log


def order_for(desk: Desk, gate: str = "") -> Order:
    """Return a runner's order for one gate or run; without one, for all that can be acted on."""
    answered: tuple[AnsweredGate, ...] = ()
    if gate:
        tip = desk.refs.get(OPEN + gate)
        if tip is None:
            answered = (AnsweredGate(gate, desk.refs.get(RUNS + gate) or ""),)
        else:
            known = desk.records.load(gate, tip)
            opened, begun = known.opened, known.state == RESUMING
            answered = (AnsweredGate(gate, tip, opened.priority, opened.program, begun),)
    return Order(desk.repo.place, log_of(desk), desk.settings, answered, address_for_others(desk))


def address_for_others(desk: Desk) -> str:
    """Return the address where other machines find this repository."""
    remote = remote_of(desk)
    there = desk.settings.git.get(f"remote.{remote}.url", "") if remote is not None else ""
    return desk.settings.text("runnerAddress") or there or str(desk.repo.place)


Handed = tuple[str, str, bool]
"""A gate or a run, its tip, and whether somebody has begun."""


def hand_out(
    desk: Desk, runner: Runner, say: Callable[[str], None], found: Iterable[Handed] | None = None
) -> int:
    """Hand each gate and run that can be acted on to a runner elsewhere. Return how many could not be handed out.

    Each is named once for each state of its record, and again after a while, because a message may get lost.
    """
    refused, term = 0, desk.settings.seconds("leaseTerm") or 120
    for gate, tip, begun in to_hand_out(desk) if found is None else found:
        # Who takes over has to watch a lease for its term, and may have been kept from that.
        if not is_new(desk, gate, tip, after=2 * term if begun else AGAIN_AFTER):
            continue
        try:
            say(f"{gate}: handed out by {runner.name}: {runner.start(order_for(desk, gate))}")
        except GateError as failed:
            refused += 1
            forget_woken(desk, gate)
            say(f"{gate}: {failed.message}; {failed.hint}")
    return refused


def look_in_turn(desk: Desk) -> list[Handed]:
    """Return what is to be handed out; empty where another process sees to that.

    Each push starts a look, and a look goes through all gates. So one process looks and one waits, which then sees what
    the others came for. The others find nothing to do.
    """
    folder = private_folder(desk.repo.state_dir)
    next_one = take_lock(folder / "next-look.lock")
    if next_one is None:
        return []
    with contextlib.ExitStack() as turn:
        try:
            turn.enter_context(locked(folder / "look.lock", wait=True))
        finally:
            os.close(next_one)
        return to_hand_out(desk)


def to_hand_out(desk: Desk) -> list[Handed]:
    """Return the gates that are answered or whose runner gives no sign of life, and the runs that are due."""
    wanted = [one for one in summaries(desk) if is_candidate(one) and not is_left_to_others(desk, one.id)]
    begun = {one.id: one.state == RESUMING for one in wanted}
    gates = [(one.id, one.tip, begun[one.id]) for one in wanted if not begun[one.id] or stalled(desk, one)]
    return gates + [(run, desk.refs.get(RUNS + run) or "", False) for run in due_runs(desk)]


def answer_calls(desk: Desk, say: Callable[[str], None], stopping: threading.Event) -> PoolGroup | None:
    """Act on everything that can be acted on in this repository; None when another runner does so already."""
    called = mark(desk)
    pool = pool_of(desk, say, stopping)
    pool.asked = False
    group = None

    def again() -> bool:
        with contextlib.suppress(FileNotFoundError):
            called.unlink()
            return True
        return False

    while again() and not stopping.is_set():
        with locked(private_folder(desk.repo.state_dir) / "runner.lock") as ours:
            if not ours:  # another runner of this repository works
                called.touch()  # The other one finds it, or found it before it went.
                return group
            group = PoolGroup([pool], desk.settings.number("maxAgents"), stopping)
            group.drain(more=again)
    return group


def pool_of(
    desk: Desk,
    say: Callable[[str], None],
    stopping: threading.Event,
    *,
    insist: bool = False,
    untold: frozenset[str] = frozenset(),
) -> Pool:
    """Return a pool for the desk's repository. `untold`: variables that our git gets, and that no agent may see."""
    start, env = desk.repo.place, dict(desk.settings.env)
    told = {name: value for name, value in env.items() if name not in untold}

    def opener() -> Desk:
        opened = open_desk(start, env, clock=desk.clock)
        opened.settings = replace(opened.settings, env=told)
        return opened

    term = desk.settings.seconds("leaseTerm") or 120
    who = Claimant("local", term=term, monotonic=boottime)
    return Pool(opener, who, say, stopping, insist=insist, log=lambda gate: log_of(desk, gate))


def refuse_waiting(gate: Gate) -> None:
    if gate.state == "awaiting":
        raise StillWaiting(
            f"nobody has answered gate {gate.id} yet, so there is nothing to resume with",
            hint=f"answer it: git gate respond {gate.id[:6]}   or decide in the agent's own session: git gate join {gate.id[:6]}",
        )


def refuse_failed(done: Resumed) -> None:
    """Raise an error that says why the gate that was named was not resumed, unless it was."""
    if done.result == "resumed":
        return
    if done.result == "lost":
        raise Conflict(done.reason, hint=f"git gate show {done.gate}")
    hint = f"what it said: {done.log}" if done.log else f"git gate show {done.gate}"
    if done.result == "failed":
        again = f"git gate resume {done.gate[:6]}   or end it: git gate stop {done.gate[:6]} --reason WHY"
        hint = f"{again}   ({hint})"
    raise Failure(f"gate {done.gate} was not resumed: {done.reason}", hint=hint)


@dataclass(frozen=False)
class LeftToRunner:
    """Result of leaving gates to a runner: the log for each gate, and the error for each that could not be left."""

    logs: dict[str, str] = field(default_factory=dict)
    failed: dict[str, GateError] = field(default_factory=dict)


def leave_all(desk: Desk, runner: str) -> LeftToRunner:
    """Leave to the runner each gate whose agent is to be started, if its answer is shared."""
    find_runner(runner)
    remote, left = remote_of(desk), LeftToRunner()
    if remote is None:
        why, mend = no_remote(desk)
        raise Failure(f"another machine sees no gate of this repository: {why}", hint=mend)
    bring_home(desk, remote)
    for gate in [one for one in summaries(desk) if is_candidate(one) and one.state != "resuming"]:
        if gate.delivery != "resume":
            continue
        try:
            if desk.tracked(remote, gate.id) != gate.tip:
                raise Conflict(
                    "its answer is not shared",
                    hint=f"git gate resume {gate.id} --runner {runner}, which shares it",
                )
            left.logs[gate.id] = call(desk, gate.id, runner)
        except GateError as refused:
            left.failed[gate.id] = refused
    return left


AGAIN_AFTER = 600.0


def hand_on(desk: Desk, found: Iterable[Summary]) -> list[str]:
    """Have a runner look at each gate that stands still. Return what was done about it, for whoever reads the list."""
    stalled = [summary for summary in found if summary.state == "stalled"]
    if not stalled or desk.repo.bare or desk.agent_here():
        return []
    said: list[str] = []
    awake: dict[str, bool | None] = {}
    for summary in stalled:
        with contextlib.suppress(GateError, OSError):
            said += hand_on_one(desk, desk.records.load(summary.id, summary.tip), awake)
    return said


def wake_due(desk: Desk) -> list[str]:
    """Start a runner where a run that began here has what it waited for, once for each wait."""
    if desk.repo.bare or desk.agent_here() or not desk.settings.flag("resumeHere"):
        return []
    if desk.settings.text("runner") != "local":
        return []
    due = [run for run in due_runs(desk) if began_here(desk, run)]
    new = [run for run in due if is_new(desk, run, desk.refs.get(RUNS + run) or "")]
    if not new:
        return []
    log = call(desk)
    return [f"run {run}: what it waited for has come; it goes on (log {log})" for run in new]


def hand_on_one(desk: Desk, gate: Gate, awake: dict[str, bool | None]) -> list[str]:
    """Have a runner look at one gate: one of this clone if it had the claim, else the remote's. Return what was done.

    `awake`: which remotes were woken already, None for one that may not be. A remote that wakes up looks at every gate.
    """
    if was_ours(desk, gate):
        return [f"gate {gate.id}: its runner here is gone; the next one goes on (log {call(desk, gate.id)})"]
    remote = shared_at(desk, gate.id)
    if remote is None:
        return []
    if remote not in awake:
        awake[remote] = False if may_wake(desk, remote) else None
    if awake[remote] is None or not is_new(desk, gate.id, gate.tip):
        return []
    if not awake[remote]:
        wake(desk, remote, gate)
        awake[remote] = True
    return [f"gate {gate.id}: nobody acts on it; {remote} was told, and goes on where its hook can"]


def was_ours(desk: Desk, gate: Gate) -> bool:
    """Return whether a runner of this clone had the claim, and this clone may still start the agent.

    Its person allowed that agents are started here, the agent asked here, and its program is known.
    """
    event = gate.claim.event if gate.claim is not None else None
    if not isinstance(event, Claim) or (event.runner, event.host) != ("local", host_name()):
        return False
    if not desk.settings.flag("resumeHere") or desk.settings.text("runner") != "local":
        return False
    session = gate.opened.session
    asked_here = machine.find_presence(desk, gate.id) is not None
    return asked_here and session is not None and not agency.cannot_start(desk, session.agent)


def may_wake(desk: Desk, remote: str) -> bool:
    """Return whether the remote may be woken: pushes are allowed, it answered just now, and it is no forge.

    A forge has no hook of ours.
    """
    return bool(desk.heard) and desk.settings.flag("push") and most_refs(desk.repo, remote) == MOST_OWN


def is_new(desk: Desk, name: str, tip: str, *, after: float = AGAIN_AFTER) -> bool:
    """Return true once for each state of the record, and again after a while."""
    place = private_folder(desk.repo.state_dir / "woken") / name
    with contextlib.suppress(OSError):
        if read_local(place) == tip.encode("ascii") and desk.clock() - place.stat().st_mtime < after:
            return False
    write_private(place, tip.encode("ascii"))
    os.utime(place, (desk.clock(), desk.clock()))
    return True


def forget_woken(desk: Desk, name: str) -> None:
    (desk.repo.state_dir / "woken" / name).unlink(missing_ok=True)


def wake(desk: Desk, remote: str, gate: Gate) -> None:
    """Wake the remote by two pushes that leave nothing behind: the second removes the ref, if our hook there has not."""
    known, ref = desk.tracked(remote, gate.id) or gate.tip, WAKE + gate.id
    (fate,) = push_moves(desk, remote, [RefMove(ref, known, None)])
    if not fate.ok:
        raise PushRefused(f"{remote} {fate.reason}")
    push_moves(desk, remote, [RefMove(ref, None, known)])


def may_resume_here(desk: Desk, gate: Gate, push: bool | None) -> bool:
    """Return whether this clone may start the agent: it asked from here, `init` allowed it, and its program is known."""
    if not desk.settings.flag("resumeHere") or desk.repo.bare or desk.settings.text("runner") != "local":
        return False
    here, session = machine.find_presence(desk, gate.id), gate.opened.session
    if here is None or session is None or not gate.actionable or gate.opened.delivery != "resume":
        return False
    if not may_claim(desk, gate, push) or here.work != (gate.opened.work.commit or ""):
        return False
    return not agency.cannot_start(desk, gate.opened.program)


def may_claim(desk: Desk, gate: Gate, push: bool | None) -> bool:
    """Return whether a claim may be made here. On a shared gate a claim is a push, so pushes have to be wanted."""
    if remote_of(desk) is None:
        return push is not True
    wanted = push is True or (push is None and desk.settings.flag("push"))
    return wanted or (push is None and shared_at(desk, gate.id) is None)


def leave_here(desk: Desk, gate: Gate, *, push: bool | None = None, work: bool = False) -> Published:
    """Publish the answer, and start no agent here by itself: neither now nor when another answer starts its own."""
    leave_to_others(desk, gate)
    return publish(desk, gate, push=push, work=work)


def deliver_here(desk: Desk, gate: Gate, *, push: bool | None = None, work: bool = False) -> Published:
    """Publish the answer with a claim on it, and start the agent. Where that may not be, publish the answer alone."""
    if not may_resume_here(desk, gate, push):
        return publish(desk, gate, push=push, work=work)
    with slot(desk.settings.env, desk.settings.number("maxAgents")) as free:
        pass
    if not free:
        # Whoever has room acts on it; if nobody does, our own runner does when an agent has ended.
        published = publish(desk, gate, push=push, work=work)
        return replace(published, log=call(desk, gate.id))
    who = Claimant("local", term=desk.settings.seconds("leaseTerm") or 120, monotonic=boottime)
    try:
        held = claim(desk, gate, who)
    except RemoteUnreachable as silent:
        if push or desk.settings.in_ci:
            return publish(desk, gate, push=push, work=work)
        return Published(gate, shared_at(desk, gate.id), reason=silent.message)
    except GateError:
        return publish(desk, gate, push=push, work=work)
    hand_over(desk, held)
    call(desk, gate.id)
    return Published(held.gate, held.remote, pushed=held.remote is not None, log=str(log_of(desk, gate.id)))
