"""Command line: `git gate session`: the saved conversations of agents."""

from __future__ import annotations

import click

from . import exits
from .screen import Screen, explain_alone, gate_argument, verb


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
    from ..service.reading import find_gate
    from ..service.sessions import drop

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
