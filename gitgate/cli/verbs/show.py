"""Command line: verbs that look: `show`, `diff` and `worktree` at one gate, `check` and `wait` at its answer alone; `status`, `tree`,
`log` and `watch` at where things stand.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...acts import find_anywhere, find_gate
from ...context.targets import is_run, remote_of, summaries
from ...document import replace
from ...errors import Usage
from ...gates import Filter, by_branch, list_gates
from ...gates.recording import is_told_of
from ...model.gate import Gate
from ...policy.ruling import marks
from ...questions.answers import plain_result, printed
from ...render import tree_lines
from ...text import clip, neutral
from .. import exit_of_gate
from ..terminal import Screen, VerbCommand, gate_argument, json_line, read_duration, verb

if TYPE_CHECKING:
    from ...context import Desk
    from ...exchange.syncing import Freshness


@click.command("show", cls=VerbCommand)
@gate_argument(required=False)
@click.option("--diff", "diff_", is_flag=True, help="With the whole diff of the partial work.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "xml", "mermaid"]),
    help="How to print it; a run of a flow also as a picture's source.",
)
@verb
def show_command(screen: Screen, gate_id: str | None, diff_: bool, format_: str | None) -> None:
    """One gate as a letter: the question, its context, what the agent did so far, and how to answer.

    Without an id it is the only one that waits; where none waits, the last one that was asked. On a terminal news of it are
    looked for first, as by `list`.

    \b
    git gate show 7k2f
    git gate show 7k2f --diff
    git gate show RUN --format mermaid
    """
    from ...acts.sessions import session_facts
    from ...gates.work import comes_back, diff_of
    from ...render import shapes

    if screen.as_json and format_ not in (None, "json"):
        raise Usage(f"--json or --format {format_}, not both", hint="git gate show ID --format json")
    desk = screen.desk()
    if gate_id is not None and is_run(desk, gate_id):
        from .run import show_run

        show_run(screen, desk, gate_id, format_)
        return
    if format_ == "mermaid":
        raise Usage(
            f"--format {format_} draws a run of a flow; a gate is shown as text, json or xml",
            hint="git gate list --runs",
        )
    known = news_of(screen, desk)
    found = find_anywhere(find_gate, desk, gate_id if gate_id is not None else last_one(screen, desk))
    gate = found.gate
    signed = marks(desk, [gate])
    hidden, facts = comes_back(desk, gate.opened.work), session_facts(desk, [gate])[gate.id]
    shape = {
        **shapes.gate(
            gate, pushed=found.pushed, signed=signed, archived=found.archived, comes_back=hidden, **facts
        ),
        "history": shapes.history(gate.history),
    }
    if screen.as_json or format_ == "json":
        if diff_:
            shape["diff"] = diff_of(desk, gate)
        replace(screen, as_json=True).emit("gate", shape, "")
        return
    if format_ == "xml":
        from ...render.shapes import document

        click.echo(document(shape))
        return
    from ...render.letter import letter

    cells = screen.letter_width
    stat = diff_of(desk, gate, stat=True, cells=cells - 3) if gate.opened.work.changed else ""
    text = letter(
        gate,
        desk.clock(),
        cells,
        stat=stat,
        signed=signed,
        archived=found.archived,
        color=screen.colored,
    )
    if diff_:
        text += "\n\n" + diff_of(desk, gate, color=screen.colored)
    screen.page(text)
    if known is not None:
        from .lists import tell_age

        tell_age(screen, desk, known)


def news_of(screen: Screen, desk: Desk) -> Freshness | None:
    """Return how fresh this clone's knowledge is, for a person who looks at it; None for a program."""
    if not screen.watched:
        return None
    from .lists import looked

    return looked(screen, desk)


def last_one(screen: Screen, desk: Desk) -> str | None:
    """Return the gate that was asked last, where none waits: its outcome is of interest then."""
    every = list(summaries(desk))
    if not every or any(summary.state == "awaiting" for summary in every):
        return None
    screen.say("nothing waits; this was asked last:")
    return max(every, key=lambda summary: (summary.at, summary.id)).id


@click.command("diff", cls=VerbCommand)
@gate_argument(required=False)
@click.option("--stat", is_flag=True, help="Only how much of which file.")
@verb
def diff_command(screen: Screen, gate_id: str | None, stat: bool) -> None:
    """The partial work as a diff against the commit that it stands on.

    \b
    git gate diff 7k2f
    git gate diff 7k2f --stat
    """
    from ...gates.work import diff_of

    desk = screen.desk()
    gate = find_gate(desk, gate_id).gate
    text = diff_of(desk, gate, stat=stat, cells=min(screen.width, 80), color=screen.colored)
    if screen.as_json:
        screen.emit("diff", {"id": gate.id, "diff": text}, "")
    elif text:
        screen.page(text.rstrip("\n"))
    else:
        screen.say(f"gate {gate.id} has no uncommitted work")


@click.command("worktree", cls=VerbCommand)
@gate_argument()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@verb
def worktree_command(screen: Screen, gate_id: str, directory: Path | None) -> None:
    """The partial work as a worktree, to look around and try things in; prints where it is.

    \b
    git gate worktree 7k2f
    git gate worktree 7k2f ../look
    """
    from shlex import quote

    from ...gates.work import open_place

    desk = screen.desk()
    gate = find_gate(desk, gate_id).gate
    place = open_place(desk, gate, chosen_directory(screen, desk, gate, directory))
    screen.emit(
        "worktree",
        {"id": gate.id, "directory": str(place.directory), "branch": place.branch},
        str(place.directory),
    )
    for note in place.notes:
        screen.say(note)
    screen.say(f"when you are done: git worktree remove --force {quote(str(place.directory))}")


def chosen_directory(screen: Screen, desk: Desk, gate: Gate, given: Path | None) -> Path:
    from ...gates.work import beside

    start = Path(screen.directory) if screen.directory else Path.cwd()
    if given is not None:
        return (start / given).resolve()
    return beside(desk, gate)


@click.command("status", cls=VerbCommand)
@gate_argument(required=False)
@verb
def status_command(screen: Screen, gate_id: str | None) -> None:
    """Say where things stand: one gate in a few lines, or all of them counted, and who asked.

    \b
    git gate status
    git gate status 7k2f
    """
    from ...acts.reporting import gate_status, overall_status

    desk = screen.desk()
    if gate_id is not None and is_run(desk, gate_id):
        from .run import show_run

        show_run(screen, desk, gate_id, None)
        return
    from .lists import age_shape, looked, tell_age

    known = looked(screen, desk)
    if gate_id is not None:
        fields, text = gate_status(desk, gate_id)
    else:
        fields, text = overall_status(desk)
    fields = {**fields, "synced": age_shape(known)}
    screen.emit("status", fields, "\n".join(clip(line, screen.width) for line in text.split("\n")))
    tell_age(screen, desk, known)


@click.command("tree", cls=VerbCommand)
@gate_argument(required=False)
@click.option("--all", "all_", is_flag=True, help="Closed gates too.")
@verb
def tree_command(screen: Screen, gate_id: str | None, all_: bool) -> None:
    """Gates under the branch that their work is on; a gate that follows another stands below it. Of a run: its steps.

    \b
    git gate tree
    git gate tree --all
    git gate tree RUN
    """
    from ...gates.work import families

    desk = screen.desk()
    if gate_id is not None:
        from .run import tree_run

        if not is_run(desk, gate_id):
            raise Usage(
                f"tree takes a run's id, and {gate_id} is none here",
                hint="git gate tree --all   runs: git gate list --runs --all",
            )
        tree_run(screen, desk, gate_id)
        return
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
            "tree", {"branches": shape}, "\n".join(tree_lines(branches, screen.width, color=screen.colored))
        )
    else:
        screen.emit("tree", {"branches": {}}, "")
        screen.say("no gates" if all_ else "no gates; closed ones too: git gate tree --all")


@click.command("log", cls=VerbCommand)
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
    from ...render.letter import trail

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


@click.command("watch", cls=VerbCommand)
@gate_argument(required=False)
@click.option("--for", "for_", metavar="30m", help="Stop after so long.")
@click.option(
    "--continue", "continue_", is_flag=True, help="Of a run: go on with it as soon as somebody has answered."
)
@verb
def watch_command(screen: Screen, gate_id: str | None, for_: str | None, continue_: bool) -> None:
    """Follow what happens to gates, as it happens, one line each. Ends with the gate, or the run, when one is named.

    Of a run also what happens to those that it has called. It changes nothing; only with --continue, and for a run alone, it
    starts a process that goes on with it as soon as its wait is over.

    \b
    git gate watch --for 30m
    git gate watch 7k2f
    git gate watch RUN --continue
    """
    from ...acts.reporting import watch_events
    from ...render.letter import trail_line

    desk = screen.desk()
    seconds = read_duration(for_, "--for", "30m") if for_ is not None else None
    of_run = gate_id is not None and is_run(desk, gate_id)
    if continue_ and not of_run:
        raise Usage("--continue goes on with a run: name one", hint="git gate list --runs --active")
    if screen.interactive:
        screen.say("each event is a line, as it comes; Ctrl-C ends this")
    if gate_id is not None and of_run:
        from .run import watch_run

        watch_run(screen, desk, gate_id, seconds, going_on=continue_)
        return
    for event in watch_events(desk, gate_id, seconds):
        if screen.as_json:
            click.echo(json_line("event", event))
        else:
            click.echo(trail_line(event, screen.width, color=screen.colored))


@click.command("wait", cls=VerbCommand)
@gate_argument()
@click.option("--for", "for_", metavar="30m", help="How long at most; then exit 8, and the gate still waits.")
@verb
def wait_command(screen: Screen, gate_id: str, for_: str | None) -> int:
    """Block until a gate is answered, and print only the answer.

    Killing the waiter leaves the gate open; type the same again to go on waiting.

    \b
    git gate wait 7k2f
    git gate wait 7k2f --for 30m
    """
    desk = screen.desk()
    return wait_for(screen, desk, find_anywhere(find_gate, desk, gate_id).gate, for_)


@click.command("check", cls=VerbCommand)
@gate_argument()
@verb
def check_command(screen: Screen, gate_id: str) -> int:
    """Print the answer; exit 8 while there is none.

    \b
    git gate check 7k2f
    git gate check 7k2f --json
    """
    desk = screen.desk()
    from ...policy.permit import check_heard
    from .lists import looked, tell_age

    found = find_anywhere(find_gate, desk, gate_id)
    known = None
    if found.gate.state == "awaiting" and found.pushed:
        known = looked(screen, desk)
        found = find_gate(desk, gate_id) if known is not None and known.heard is not None else found
    if not found.archived:
        check_heard(desk, found.gate)
    code = tell_answer(screen, desk, found.gate, pushed=found.pushed, archived=found.archived)
    if known is not None and known.heard is not None:
        tell_age(screen, desk, known)
    elif found.gate.state == "awaiting":
        tell_of_elsewhere(screen, desk)
    return code


def tell_of_elsewhere(screen: Screen, desk: Desk) -> None:
    """Say how to hear of answers from other clones: a look asks no remote, and would never find them."""
    if remote_of(desk) is not None:
        screen.say("that is what this clone knows; to hear of answers given elsewhere: git gate sync")


def wait_for(screen: Screen, desk: Desk, gate: Gate, most: str | None) -> int:
    from ...claims.attending import WaitLimit, wait

    seconds = read_duration(most, "--for", "30m") if most is not None else None
    if gate.state == "awaiting":
        screen.say(f"waiting for an answer to {gate.id}; if this is interrupted: git gate wait {gate.id}")
        if not is_anybody_told(desk):
            screen.say("nobody listens here: git gate listen")
    heard = wait(desk, gate, WaitLimit(seconds))
    remote = remote_of(desk)
    return tell_answer(
        screen, desk, heard, pushed=remote is not None and desk.tracked(remote, heard.id) == heard.tip
    )


def is_anybody_told(desk: Desk) -> bool:
    """Return whether somebody at this machine hears of a gate by itself.

    A job's machine has nobody to sit there: it counts as yes, so that no listener is proposed.
    """
    from ...context.machine import attentive_ones

    return desk.settings.in_ci or is_told_of(desk) or bool(attentive_ones(desk))


def tell_answer(screen: Screen, desk: Desk, gate: Gate, *, pushed: bool, archived: bool = False) -> int:
    """Print the answer on stdout and the circumstances on stderr; return the verdict as the exit code."""
    from ...render import shapes

    answer = gate.answer.answer if gate.answer else None
    verdict = answer.verdict if answer else None
    text = neutral(printed(gate.opened.questions, answer)) if answer else ""
    fields: dict[str, object] = {}
    if screen.as_json:
        from ...acts.sessions import session_facts

        facts = session_facts(desk, [gate])[gate.id]
        fields = {**shapes.gate(gate, pushed=pushed, archived=archived, **facts), "verdict": verdict}
    if any(question.type == "session" for question in gate.opened.questions):
        fields["result"] = plain_result(gate)
    screen.emit("answer", fields, text)
    screen.say(circumstances_line(gate))
    return exit_of_gate(gate.state, verdict, expired=gate.expired)


def circumstances_line(gate: Gate) -> str:
    """Return what a reader of the bare answer must not miss; empty where there is nothing."""
    if gate.state == "awaiting":
        return f"gate {gate.id} still waits for an answer; look again with: git gate check {gate.id}"
    if gate.defaulted:
        return "nobody answered before the deadline; this is the declared default"
    if gate.expired:
        return "nobody answered before the deadline"
    if gate.closing is not None:
        from ...render.shapes import who_ended

        by = (who_ended(gate.closing) or "").partition(" <")[0]
        return f"gate {gate.id} was {gate.state}{f' by {by}' if by else ''}: {gate.closing.text}"
    if gate.answer is not None and not gate.answer.answer.confirmed:
        return "nobody confirmed this: a session proposed it, and the policy takes that for an answer"
    return ""
