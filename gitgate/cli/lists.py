"""Command line: `git gate list`, and what `git gate` says without a verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..core.states import STATES
from ..errors import GateError
from ..render.table import table
from .screen import Screen, verb

if TYPE_CHECKING:
    from ..service.desk import Desk
    from ..service.listing import Summary


@click.command("list")
@click.option("-v", "--verbose", is_flag=True, help="With title and context.")
@click.option("--all", "all_", is_flag=True, help="Any state, archived ones too.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only this state; repeatable."
)
@click.option("--awaiting", is_flag=True, help="Only those that wait for an answer.")
@click.option("--type", "type_", metavar="T", help="Only this type of question.")
@click.option("--branch", metavar="B", help="Only work on this branch.")
@click.option("--pr", type=int, metavar="N", help="Only those of this pull request.")
@click.option("--mine", is_flag=True, help="Only those that I may answer.")
@click.option("--asked-by", metavar="WHO", help="Only those that WHO asked.")
@click.option("--everywhere", is_flag=True, help="In every repository that `git gate init` knows.")
@click.option("--sync", "sync_", is_flag=True, help="Fetch and push first.")
@verb
def list_command(screen: Screen, **flags: Any) -> None:
    """What waits, or needs a person, most pressing first."""
    from ..service.listing import Filter, listed

    desk = screen.desk(bulk=screen.as_json)
    if flags["sync_"]:
        from ..service.syncing import sync

        sync(desk)
    states = (*flags["states"], *(("awaiting",) if flags["awaiting"] else ()))
    chosen = Filter(
        all=flags["all_"],
        states=states,
        type=type_of(flags["type_"]),
        branch=flags["branch"],
        pull_request=flags["pr"],
        mine=desk.person() if flags["mine"] else None,
        asked_by=flags["asked_by"],
    )
    found = listed(desk, chosen)
    if screen.as_json:
        screen.emit("list", {"gates": gates_of(screen, desk, found)}, "")
    elif found:
        lines = verbose(screen, desk, found) if flags["verbose"] else rows(screen, desk, found)
        screen.page("\n".join(lines))
    else:
        screen.say(nothing(desk, filtered=any(flags.values())))


def type_of(given: str | None) -> str | None:
    if given is None:
        return None
    from ..core.questions import TYPES, type_name
    from ..errors import Usage

    name = type_name(given)
    if name is None:
        raise Usage(f"{given!r} is not a type of question; expected one of {', '.join(TYPES)}")
    return name


def rows(screen: Screen, desk: Desk, found: Sequence[Summary]) -> list[str]:
    return table(found, desk.clock(), screen.width, color=screen.colored)


def verbose(screen: Screen, desk: Desk, found: Sequence[Summary]) -> list[str]:
    """Each gate with its title and context below its line."""
    from ..core.text import neutral, one_line, wrap

    head, *body = rows(screen, desk, found)
    lines = [head]
    for summary, line in zip(found, body, strict=True):
        lines += [line, f"    {one_line(summary.title)}"]
        try:
            context = desk.records.load(summary.id, summary.tip).opened.context
        except GateError as broken:
            context = broken.message
        if context:
            lines.append(wrap(neutral(context), min(screen.width, 100), "    "))
    return lines


def gates_of(screen: Screen, desk: Desk, found: Sequence[Summary]) -> list[object]:
    """The same gates whole. A broken record is reported and left out: nothing is decided from it."""
    from ..render import shapes
    from ..service.publishing import remote_of
    from ..store.remote import tracking_base

    remote = remote_of(desk)
    base = f"{tracking_base(remote)}open/" if remote else ""
    theirs = desk.refs.under(base) if base else {}
    gates: list[object] = []
    for summary in found:
        try:
            gate = desk.records.load(summary.id, summary.tip)
        except GateError as broken:
            screen.warn(f"{summary.id}: {broken.message}")
            continue
        gates.append(shapes.gate(gate, pushed=theirs.get(base + gate.id) == gate.tip))
    return gates


def nothing(desk: Desk, *, filtered: bool) -> str:
    """`nothing waiting` would be a lie in a clone that never heard of the gates of its remote."""
    from ..service.publishing import remote_of
    from ..store.remote import tracking_base

    remote = remote_of(desk)
    if remote is not None and not desk.refs.under(tracking_base(remote)) and not synced_before(desk):
        return f"this clone has never synced its gates with {remote}: git gate sync"
    if filtered:
        return "no gate fits; every gate here: git gate list --all"
    return "nothing waits for you"


def synced_before(desk: Desk) -> bool:
    return (desk.repo.state_dir / "synced").exists()


def overview(screen: Screen) -> None:
    """The state in a line, the waiting list, and the next command to type."""
    from ..service.listing import Filter, listed

    desk = screen.desk()
    every = listed(desk, Filter(all=True))
    counts: dict[str, int] = {}
    for summary in every:
        counts[summary.state] = counts.get(summary.state, 0) + 1
    waiting = [summary for summary in every if summary.state in ("awaiting", "failed", "broken")]
    if screen.as_json:
        screen.emit("overview", {"counts": counts, "waiting": [summary.id for summary in waiting]}, "")
        return
    words = (
        [f"{counts['awaiting']} wait for you" if counts.get("awaiting", 0) != 1 else "1 waits for you"]
        if counts.get("awaiting")
        else []
    )
    words += [
        f"{counts[state]} {state}"
        for state in ("answered", "resuming", "failed", "broken")
        if counts.get(state)
    ]
    click.echo(" · ".join(words) if words else nothing(desk, filtered=False))
    if waiting:
        click.echo("\n" + "\n".join(rows(screen, desk, waiting[:20])), color=screen.colored)
        more = f"  ({len(waiting) - 20} more: git gate list)" if len(waiting) > 20 else ""
        click.echo(f"\nnext: git gate show {waiting[0].id[:6]}{more}")
    else:
        click.echo('next: git gate ask "…"   or: git gate -h')
