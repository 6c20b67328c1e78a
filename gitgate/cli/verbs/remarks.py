"""Command line: verbs that say something about a gate without answering it: `comment`, `edit`, `stop`, `withdraw`; `signal`, for
scripts; `outcome`, by which the agent in a joined session says what was decided.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ... import acts
from ...acts import answering
from ...acts.sessions import session_facts
from ...context.targets import is_run
from ...errors import BadAnswer, Usage
from ...model import PRIORITIES
from ...questions.answers import value_words
from ...questions.types import type_of
from ...render import shapes
from ...resumption import meeting
from ...resumption.meeting import reply_to_line
from .. import DONE
from ..terminal import (
    Screen,
    VerbCommand,
    gate_argument,
    refuse_dash,
    tell_trouble,
    through_option,
    verb,
    where,
)
from .respond import nameless, tell_answered
from .run import send_signal, stop_run

if TYPE_CHECKING:
    from pathlib import Path

    from ...context import Desk
    from ...exchange.syncing import Published


push_option = click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")


@click.command("comment", cls=VerbCommand)
@gate_argument()
@click.argument("text")
@push_option
@verb
def comment_command(screen: Screen, gate_id: str, text: str, push: bool | None) -> None:
    """Ask back or add a remark, without deciding.

    \b
    git gate comment 7k2f 'Which region is this for?'
    """
    refuse_dash(text, "git gate comment ID")
    desk = screen.desk()
    tell_remark(
        screen, desk, answering.comment(desk, acts.open_gate(desk, gate_id), text, push=push), "commented on"
    )


@click.command("withdraw", cls=VerbCommand)
@gate_argument()
@click.option("--reason", required=True, help="Why it is no longer needed.")
@push_option
@verb
def withdraw_command(screen: Screen, gate_id: str, reason: str, push: bool | None) -> None:
    """Take a question back. An agent withdraws only its own.

    \b
    git gate withdraw 7k2f --reason 'found it in the docs'
    """
    desk = screen.desk()
    tell_remark(
        screen, desk, answering.withdraw(desk, acts.open_gate(desk, gate_id), reason, push=push), "withdrew"
    )


@click.command("stop", cls=VerbCommand)
@gate_argument()
@click.option("--reason", required=True, help="Why it ends.")
@push_option
@through_option
@verb
def stop_command(screen: Screen, gate_id: str, reason: str, push: bool | None, via: str) -> int:
    """End a gate, or a run; the agent does not go on. To say no and let it go on, reject instead.

    \b
    git gate stop 7k2f --reason 'we do it differently'
    """
    desk = screen.desk()
    if is_run(desk, gate_id):
        return stop_run(screen, desk, gate_id, reason)
    gate = acts.open_gate(desk, gate_id)
    tell_remark(screen, desk, answering.stop(desk, gate, reason, push=push, via=via), "stopped")
    return DONE


@click.command("edit", cls=VerbCommand)
@gate_argument()
@click.option(
    "--to", multiple=True, metavar="WHO", help="Whom it is for now; repeatable; `anyone` for everybody."
)
@click.option("--priority", type=click.Choice(list(reversed(PRIORITIES))), help="How pressing it is.")
@click.option("--timeout", metavar="2h|never", help="A new deadline, counted from now.")
@click.option("--later", metavar="2h|now", help="Put it aside for so long; nobody is reminded meanwhile.")
@push_option
@verb
def edit_command(
    screen: Screen,
    gate_id: str,
    to: tuple[str, ...],
    priority: str | None,
    timeout: str | None,
    later: str | None,
    push: bool | None,
) -> None:
    """Reassign, reprioritise, move the deadline, or put it aside for a while. Its deadline counts all the same.

    \b
    git gate edit 7k2f --to grace@example.org --priority high
    git gate edit 7k2f --timeout 1d
    git gate edit 7k2f --later 2h
    """
    if "anyone" in to and len(set(to)) > 1:
        raise Usage(
            "--to anyone is everybody; another --to says nothing beside it",
            hint="git gate edit ID --to anyone",
        )
    named = None if not to else () if "anyone" in to else to
    desk = screen.desk()
    gate = acts.open_gate(desk, gate_id)
    tell_remark(
        screen,
        desk,
        answering.edit(desk, gate, to=named, priority=priority, timeout=timeout, later=later, push=push),
        "edited",
    )


@click.command("signal", cls=VerbCommand)
@gate_argument()
@click.argument("value", required=False)
@click.option("--status", metavar="S", help="CONTINUE approves, STOP rejects; others pass through.")
@click.option("--message", metavar="M", default="", help="A word with it.")
@click.option("--topic", metavar="NAME", help="Send a run of a flow VALUE on this topic, for its receive().")
@push_option
@verb
def signal_command(
    screen: Screen,
    gate_id: str,
    value: str | None,
    status: str | None,
    message: str,
    topic: str | None,
    push: bool | None,
) -> int:
    """Answer from a script: CONTINUE approves and STOP rejects; other statuses reach a waiting workflow as they are.

    With --topic a run is sent a word, which its journal keeps until the flow receives it. That approves nothing.

    \b
    git gate signal 7k2f --status CONTINUE
    git gate signal 7k2f --status STOP --message 'not this week'
    git gate signal 9m4x --topic deployed v1.4
    """
    if topic is not None and status is None:
        return send_signal(screen, screen.desk(), gate_id, topic, value)
    if status is None or topic is not None or value is not None:
        raise Usage(
            "say --status, for a gate, or --topic with a value, for a run",
            hint=f"git gate signal {gate_id} --status CONTINUE   or of a run: git gate signal RUN --topic NAME VALUE",
        )
    desk = screen.desk()
    desk.refuse_agents("signal")
    gate = acts.open_gate(desk, gate_id)
    try:
        done = answering.signal(desk, gate, status, message, push=push)
    except BadAnswer as unfit:
        raise nameless(unfit) from None
    return tell_answered(screen, desk, done)


def tell_remark(screen: Screen, desk: Desk, published: Published, did: str) -> None:
    """Show the gate as it is now, and say where the remark went."""
    gate = published.gate
    if screen.as_json:
        facts = session_facts(desk, [gate])[gate.id]
        screen.emit("gate", shapes.gate(gate, pushed=published.pushed, **facts), "")
    tell_trouble(screen, published)
    screen.say(f"{did} gate {gate.id}: {where(desk, published)}")


@click.command("outcome", cls=VerbCommand)
@click.argument("value", required=False)
@click.option("--status", metavar="S", help="CONTINUE, STOP, DONE, NEEDS_REVIEW or another word.")
@click.option("--summary", metavar="TEXT", help="What was decided, or done.")
@click.option("--reason", metavar="TEXT", help="Why.")
@click.option("--message", metavar="TEXT", help="What whoever asked is to be told.")
@click.option("--mcp", is_flag=True, help="Be the MCP server of the session, on standard input and output.")
@verb
def outcome_command(screen: Screen, value: str | None, mcp: bool, **said: str | None) -> None:
    """Say how the session ended that a person has opened with `git gate join`.

    For the agent in it. VALUE answers the question: approve or reject, an option, words, or a form as JSON. Nothing counts
    before the person has left the session and confirmed it there. A value that does not fit is refused with what was expected.

    \b
    git gate outcome approve --summary "The index is there, the migration ran in staging."
    git gate outcome --status NEEDS_REVIEW --reason "They want to see the numbers first."
    """
    place = meeting.channel(screen.env)
    if mcp:
        return serve_outcome_tool(place)
    if value is None and not any(said.values()):
        raise Usage("say what was decided, or --status", hint='git gate outcome approve --summary "…"')
    fields: dict[str, object] = {name: text for name, text in said.items() if text is not None}
    question = meeting.question_of(place)
    try:
        if value is not None:
            fields["value"] = type_of(question).outcome_value(question, value)
        understood = meeting.say(place, fields, "command")
    except BadAnswer as unfit:
        unfit.hint = f"git gate outcome {type_of(question).example(question)}"
        raise
    known = "" if understood.value is None else value_words(understood.value)
    screen.emit("outcome", {"value": understood.value, "status": understood.status}, known)
    screen.say("the person is shown this when they leave the session, and confirms it there")
    return None


def serve_outcome_tool(place: Path) -> None:
    """Answer messages, one a line, until the client hangs up."""
    for line in sys.stdin.buffer:
        answer = reply_to_line(line, place) if line.strip() else None
        if answer is not None:
            print(answer, flush=True)
