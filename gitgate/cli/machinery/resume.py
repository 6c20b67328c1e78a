"""Command line: `git gate resume`: act on what was answered, here and now."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import click

from ...errors import Usage
from .. import exits
from ..terminal.screen import Screen, gate_argument, verb

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...model.gate import Gate
    from ...resumption.run import Resumed


NOTHING = "nothing is to be resumed; what waits: git gate list"


@click.command("resume")
@gate_argument(required=False)
@click.option("--all", "all_", is_flag=True, help="Every gate that is answered.")
@click.option("--runner", metavar="NAME", help="What starts the agent: local, or another that is set up.")
@click.option("--detach", is_flag=True, help="Start it and return; the log says what comes of it.")
@verb
def resume_command(screen: Screen, gate_id: str | None, all_: bool, runner: str | None, detach: bool) -> int:
    """Claim what is answered, and start its agent again on the restored work.

    Stays until the agent is done. Exit 5 when another runner has it; 8 when nobody has answered.

    \b
    git gate resume 7k2f
    git gate resume --all
    """
    if (gate_id is None) == (not all_):
        raise Usage(
            "name a gate, or --all" if gate_id is None else "name a gate, or --all, not both",
            hint="git gate list --state answered",
        )
    desk = screen.desk()
    name = runner or desk.settings.text("runner")
    if gate_id is not None:
        from ...acts.reading import open_gate
        from ...resumption.calls import refuse_waiting

        gate = open_gate(desk, gate_id)
        refuse_waiting(gate)
        return (
            elsewhere(screen, desk, name, gate.id) if detach or name != "local" else one(screen, desk, gate)
        )
    if name != "local":
        return each_elsewhere(screen, desk, name)
    return elsewhere(screen, desk, name, "") if detach else every(screen, desk)


def elsewhere(screen: Screen, desk: Desk, name: str, gate: str) -> int:
    """Leave it to a runner."""
    from ...resumption.calls import call

    log = call(desk, gate, name)
    screen.emit("resume", {"runner": name, "log": log, "gate": gate or None}, "")
    screen.say(f"resuming by {name} (log {log})")
    return exits.DONE


def each_elsewhere(screen: Screen, desk: Desk, name: str) -> int:
    """Leave to a runner what it can act on, and say of the rest why it cannot."""
    from ...resumption.calls import leave_all

    left = leave_all(desk, name)
    gates = [{"gate": gate, "log": log} for gate, log in left.logs.items()]
    screen.emit("resume", {"runner": name, "gates": gates}, "")
    for gate, log in left.logs.items():
        screen.say(f"gate {gate}: resuming by {name} (log {log})")
    for gate, error in left.failed.items():
        screen.warn(f"gate {gate}: {error.message}; {error.hint}")
    if not gates and not left.failed:
        screen.say(NOTHING)
    return exits.FAILURE if left.failed else exits.DONE


def one(screen: Screen, desk: Desk, gate: Gate) -> int:
    from ...resumption.calls import crew_of, refuse_failed

    with stop_on_signal() as stopping:
        done = crew_of(desk, screen.say, stopping, insist=True).act(gate.id)
    tell(screen, [done])
    refuse_failed(done)
    return exits.DONE


def every(screen: Screen, desk: Desk) -> int:
    from ...resumption.calls import crew_of
    from ...resumption.crew import Shift

    with stop_on_signal() as stopping:
        shift = Shift([crew_of(desk, screen.say, stopping)], desk.settings.number("maxAgents"), stopping)
        shift.drain()
    tell(screen, shift.done)
    for gate, error in shift.failed.items():
        screen.warn(f"{gate}: {error.message}")
    if not shift.done and not shift.failed:
        screen.say(NOTHING)
    bad = shift.failed or any(done.result != "resumed" for done in shift.done)
    return exits.FAILURE if bad else exits.DONE


def tell(screen: Screen, done: list[Resumed]) -> None:
    from dataclasses import asdict

    screen.emit("resume", {"gates": [asdict(item) for item in done]}, "")


class stop_on_signal:  # noqa: N801  read as a statement: `with stop_on_signal() as stopping`
    """SIGTERM and SIGINT ask us to hand back what we hold; nothing is left half done."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def __enter__(self) -> threading.Event:
        self.before = {
            number: signal.signal(number, lambda *_: self.stopping.set())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        return self.stopping

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
