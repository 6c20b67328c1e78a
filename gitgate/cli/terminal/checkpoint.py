"""Command line: a checkpoint: a few keys: look at the work, go on or stop, and say why; an agent only where one is wanted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ...questions import Given
from ...questions.types import type_of
from .. import WAITING
from . import Screen, read_word

if TYPE_CHECKING:
    from ...context import Desk
    from ...model.gate import Gate


KEYS = (
    "\n  d  look at the work as a diff      c  continue\n"
    "  m  a message to go with it         s  stop, and say why\n"
    "  t  talk it over with an agent      q  not yet: the gate still waits\n"
)
PROMPT = "[d/m/c/s/t/q]: "
TALK = "TALK"


def decide_here(screen: Screen, desk: Desk, gate: Gate, flags: dict[str, Any]) -> int | None:
    """CONTINUE or STOP, as the person says; nothing else is one of them. None where they talk to an agent first."""
    begun = desk.clock()
    try:
        status, reason, message = ask_checkpoint(screen, desk, gate)
        if status == TALK:
            flags["note"] = "\n".join(words for words in (flags["note"], message) if words)
            return None
    except EOFError:
        screen.warn("")
        screen.say(f"the gate still waits: git gate join {gate.id[:6]}   or: git gate respond {gate.id[:6]}")
        return WAITING
    return record(screen, desk, gate, (status, reason, message, int(desk.clock() - begun)), flags)


def ask_checkpoint(screen: Screen, desk: Desk, gate: Gate) -> tuple[str, str, str]:
    """The status, the reason of a stop, and the message."""
    message = ""
    sys.stderr.write(KEYS)
    while True:
        word = read_word(PROMPT).strip().lower()
        if word in ("q", "quit", ""):
            raise EOFError
        if word in ("d", "diff"):
            look_at_work(screen, desk, gate)
        elif word in ("m", "message"):
            message = read_word("message: ").strip()
        elif word in ("c", "continue"):
            return "CONTINUE", "", message
        elif word in ("s", "stop"):
            return "STOP", read_reason("why: "), message
        elif word in ("t", "talk"):
            return TALK, "", message
        else:
            sys.stderr.write("  expected one of d, m, c, s, t, q\n")


def read_reason(prompt: str) -> str:
    while True:
        words = read_word(prompt).strip()
        if words:
            return words
        sys.stderr.write("  whoever goes on from here needs a reason\n")


def look_at_work(screen: Screen, desk: Desk, gate: Gate) -> None:
    from ...errors import GateError
    from ...gates.work import diff_of

    try:
        text = diff_of(desk, gate, color=screen.colored)
    except GateError as absent:
        screen.warn(f"  {absent.message}")
        return
    screen.page(text) if text else screen.warn("  there is no work that was not committed")


def record(
    screen: Screen, desk: Desk, gate: Gate, said: tuple[str, str, str, int], flags: dict[str, Any]
) -> int:
    from ...acts.answering import Manner, respond
    from ...model.gate import Conversation
    from ..verbs.respond import delivery, tell_answered

    status, reason, message, seconds = said
    question = gate.opened.questions[0]
    go_on = status == "CONTINUE"
    held = Conversation("completed", max(0, seconds), status, reason=reason, message=message, source="prompt")
    note = "\n".join(words for words in (flags["note"], reason, message) if words)
    manner = Manner(
        note=note,
        via="join",
        seen=gate.tip,
        sign=flags["sign"],
        push=flags["push"],
        session=held,
        **delivery(desk, flags),
    )
    value: object = go_on if type_of(question).approves else status
    done = respond(desk, gate, Given(values={question.key: value}), manner)
    return tell_answered(screen, desk, done, resume=not flags["no_resume"])
