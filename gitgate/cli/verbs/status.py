"""Command line: `git gate status`, `tree`, `log` and `watch`: where things stand. Agents may read them too."""

from __future__ import annotations

import click

from ..terminal.screen import Screen, gate_argument, json_line, read_duration, verb


@click.command("status")
@gate_argument(required=False)
@verb
def status_command(screen: Screen, gate_id: str | None) -> None:
    """Where things stand: one gate in a few lines, or all of them counted, and who asked.

    \b
    git gate status
    git gate status 7k2f
    """
    from ...acts.reporting import gate_status, overall_status
    from ...text.display import clip

    desk = screen.desk()
    from ..machinery.sync import age_shape, looked, tell_age

    known = looked(screen, desk)
    if gate_id is not None:
        fields, text = gate_status(desk, gate_id)
    else:
        fields, text = overall_status(desk)
    fields = {**fields, "synced": age_shape(known)}
    screen.emit("status", fields, "\n".join(clip(line, screen.width) for line in text.split("\n")))
    tell_age(screen, desk, known)


@click.command("tree")
@click.option("--all", "all_", is_flag=True, help="Closed gates too.")
@verb
def tree_command(screen: Screen, all_: bool) -> None:
    """Gates under the branch that their work is on; a gate that follows another stands below it.

    \b
    git gate tree
    git gate tree --all
    """
    from ...gates.lineage import families
    from ...gates.listing import Filter, by_branch, list_gates
    from ...render.trail import tree

    desk = screen.desk()
    states = () if all_ else ("awaiting", "answered", "resuming", "failed")
    branches = families(desk, by_branch(list_gates(desk, Filter(all=all_, states=states))))
    shape = {
        name: [
            {
                "id": one.id,
                "state": one.state,
                "title": one.title,
                "question": one.question,
                "follows": family.follows.get(one.id),
            }
            for one in family.found
        ]
        for name, family in branches.items()
    }
    if branches:
        screen.emit(
            "tree", {"branches": shape}, "\n".join(tree(branches, screen.width, color=screen.colored))
        )
    else:
        screen.emit("tree", {"branches": {}}, "")
        screen.say("no gates" if all_ else "no gates; closed ones too: git gate tree --all")


@click.command("log")
@gate_argument(required=False)
@click.option("-n", "most", type=click.IntRange(1), help="At most so many events.")
@verb
def log_command(screen: Screen, gate_id: str | None, most: int | None) -> None:
    """The audit trail: who asked, who answered, on what evidence, and what came of it. Newest first.

    \b
    git gate log
    git gate log 7k2f
    git gate log -n 20 --json
    """
    from ...acts.reporting import events_of_all, events_of_one
    from ...context.find import is_run
    from ...context.remotes import remote_of
    from ...render.trail import trail

    desk = screen.desk(bulk=gate_id is None)
    if gate_id is not None and is_run(desk, gate_id):
        from .run import log_run

        log_run(screen, desk, gate_id, most)
        return
    events = events_of_one(desk, gate_id) if gate_id else events_of_all(desk)
    events = events[:most] if most else events
    screen.emit("log", {"events": events}, "")
    if events and not screen.as_json:
        screen.page("\n".join(trail(events, screen.width, color=screen.colored)))
    elif not events:
        more = "; git gate sync fetches those of the remote" if remote_of(desk) else ""
        screen.say(f"no gate was ever opened here{more}")


@click.command("watch")
@gate_argument(required=False)
@click.option("--for", "for_", metavar="30m", help="Stop after so long.")
@verb
def watch_command(screen: Screen, gate_id: str | None, for_: str | None) -> None:
    """What happens to gates, as it happens, one line each; read-only. Ends with the gate when one is named.

    \b
    git gate watch --for 30m
    git gate watch 7k2f
    """
    from ...acts.reporting import watch_events
    from ...render.trail import line

    desk = screen.desk()
    seconds = read_duration(for_, "--for", "30m") if for_ is not None else None
    if screen.interactive:
        screen.say("each event is a line, as it comes; Ctrl-C ends this")
    for event in watch_events(desk, gate_id, seconds):
        if screen.as_json:
            click.echo(json_line("event", event))
        else:
            click.echo(line(event, screen.width, color=screen.colored))
