"""Command line: `git gate outcome`: what the agent in a joined session says was decided. It writes one file, never a record."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ...errors import BadAnswer, Usage
from ...questions.answers import value_words
from ...questions.types import type_of
from ..terminal.screen import Screen, verb

if TYPE_CHECKING:
    from pathlib import Path


@click.command("outcome")
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
    from ...resumption import meeting

    place = meeting.channel(screen.env)
    if mcp:
        return serve(place)
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


def serve(place: Path) -> None:
    """One line, one message, until the client hangs up."""
    from ...surfaces.outcome_tool import reply

    for line in sys.stdin.buffer:
        answer = reply(line, place) if line.strip() else None
        if answer is not None:
            print(answer, flush=True)
