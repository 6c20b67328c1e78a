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


@click.command("archive")
@click.option("--older-than", metavar="7d", help="Only gates that closed at least so long ago.")
@verb
def archive_command(screen: Screen, older_than: str | None) -> int:
    """Fold closed gates away, month by month. They stay readable: list --all, show, log."""
    from ..core.times import parse_duration
    from ..service.archiving import fold_closed

    desk = screen.desk(bulk=True)
    least = (
        parse_duration(older_than) if older_than is not None else desk.settings.seconds("archiveAfter") or 0
    )
    done = fold_closed(desk, older_than=least)
    screen.emit("archive", {"remote": done.remote, "folded": done.folded, "kept": done.kept}, "")
    for gate, reason in done.kept.items():
        screen.warn(f"{gate}: {reason}")
    where = f" (here and on {done.remote})" if done.remote else ""
    count = len(done.folded)
    screen.say(
        f"folded {count} {'gate' if count == 1 else 'gates'}{where}" if count else "no closed gate to fold"
    )
    return 1 if done.kept else 0
