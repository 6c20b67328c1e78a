"""Command line: `git gate sync`, `archive` and `verify`."""

from __future__ import annotations

import click

from .screen import Screen, verb


@click.command("sync")
@click.argument("remote", required=False)
@verb
def sync_command(screen: Screen, remote: str | None) -> int:
    """Fetch and push gates, and bring the two sides together. Never loses a local one."""
    from dataclasses import asdict

    from ..service.syncing import sync

    desk = screen.desk()
    done = sync(desk, remote)
    screen.emit("sync", asdict(done), "")
    for gate, reason in {**done.refused, **done.broken}.items():
        screen.warn(f"{gate}: {reason}")
    for words in done.lost:
        screen.warn(f"somebody was first; without effect: {words}")
    parts = {"new": done.new, "updated": done.updated, "pushed": done.pushed, "archived": done.archived}
    words = " · ".join(f"{len(found)} {name}" for name, found in parts.items() if found)
    screen.say(f"{done.remote}: {words or 'nothing new'}")
    return 1 if done.refused or done.broken else 0
