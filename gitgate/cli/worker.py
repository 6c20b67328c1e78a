"""Command line: `git gate worker`: stays, and acts on answers and deadlines."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import Usage
from . import exits
from .screen import Screen, verb


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
    from ..resumption.worker import Plan, work
    from .resume import stop_on_signal

    places = known(screen, directories, everywhere=everywhere)
    plan = Plan(places, screen.env, most)
    with stop_on_signal() as stopping:
        shift = work(plan, screen.say, stopping, once=once)
    from dataclasses import asdict

    screen.emit("worker", {"gates": [asdict(done) for done in shift.done]}, "")
    return exits.DONE


def known(screen: Screen, directories: tuple[str, ...], *, everywhere: bool) -> list[Path]:
    if everywhere:
        from ..service.registry import places

        if directories:
            raise Usage("--everywhere, or directories: not both")
        found = places(screen.env)
        if not found:
            raise Usage("no repository is known", hint="git gate init in each")
        return found
    here = Path(screen.directory) if screen.directory else Path.cwd()
    return [here / directory for directory in directories] or [here]
