"""Command line: `git gate worker`: stays, and acts on answers and deadlines."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import Usage
from .. import exits
from ..terminal.screen import Screen, explain_alone, gate_argument, verb


@click.command("worker")
@click.argument("directories", metavar="[DIR]...", nargs=-1)
@click.option("--everywhere", is_flag=True, help="In every repository that `git gate init` knows.")
@click.option("--most", type=click.IntRange(1), metavar="N", help="At most so many agents at once.")
@click.option("--once", is_flag=True, help="End when nothing is left to do.")
@verb
def worker_command(
    screen: Screen, directories: tuple[str, ...], everywhere: bool, most: int | None, once: bool
) -> int:
    """Stay and act on answers and deadlines, in this repository or in those named.

    SIGTERM and Ctrl-C end it cleanly: agents are stopped, and what it holds is handed back.

    \b
    git gate worker
    git gate worker ../api ../web
    """
    from ...resumption.worker import WorkerPlan, work
    from .resume import stop_on_signal

    places = known(screen, directories, everywhere=everywhere)
    plan = WorkerPlan(places, screen.env, most)
    with stop_on_signal() as stopping:
        shift = work(plan, screen.say, stopping, once=once)
    from dataclasses import asdict

    screen.emit("worker", {"gates": [asdict(done) for done in shift.done]}, "")
    return exits.DONE


def known(screen: Screen, directories: tuple[str, ...], *, everywhere: bool) -> list[Path]:
    if everywhere:
        from ...context.registry import places

        if directories:
            raise Usage("--everywhere, or directories: not both")
        found = places(screen.env)
        if not found:
            raise Usage("no repository is known", hint="git gate init in each")
        return found
    here = Path(screen.directory) if screen.directory else Path.cwd()
    return [here / directory for directory in directories] or [here]


@click.group("session", invoke_without_command=True)
@verb
def session_command(screen: Screen) -> None:
    """The saved conversations of agents."""
    explain_alone(screen)


@session_command.command("drop")
@gate_argument()
@verb
def drop_command(screen: Screen, gate_id: str) -> int:
    """Erase a gate's saved session, here and on the remote. The record stays whole: it holds none of it.

    Git keeps the objects until they are pruned, and other clones keep what they fetched.

    \b
    git gate session drop 7k2f
    """
    from ...acts.reading import find_gate
    from ...acts.sessions import drop

    desk = screen.desk()
    desk.refuse_agents("session drop")
    gate = find_gate(desk, gate_id).gate
    done = drop(desk, gate.id)
    screen.emit(
        "session", {"gate": done.gate, "here": done.here, "remote": done.remote, "there": done.there}, ""
    )
    where = " and ".join([*(["here"] if done.here else []), *([f"on {done.remote}"] if done.there else [])])
    screen.say(f"the session of gate {gate.id} is erased {where}")
    screen.say(
        "its objects stay until git prunes them (git gc --prune=now), and copies in other clones remain"
    )
    return exits.DONE
