"""Command line: the end of a session that was joined: what was understood is shown, and a person says what it comes to.

Only here does anything of a conversation become an answer: by a person who confirms it, or gives it, or who said beforehand
(`--yes`) that one beyond doubt is to be taken. Time that ran out and a session that was cancelled are recorded as that.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.answers import Given, shown
from ..errors import BadAnswer, GateError
from . import exits
from .keyboard import read_word
from .screen import Screen
from .turns import CANCEL, Cancelled

if TYPE_CHECKING:
    from ..core.model import Gate
    from ..core.outcomes import Understood
    from ..core.talks import Held
    from ..resumption.joining import Conversation
    from ..service.desk import Desk
    from .join import Ended

SOURCES = {
    "command": "the session said so",
    "mcp": "the session said so",
    "file": "the session wrote so",
    "json": "as its last message has it",
    "words": "from the last words",
}
CANCELLED = "cancelled by the person in the session"


def conclude(screen: Screen, talk: Conversation, ended: Ended, flags: dict[str, Any]) -> int:
    """The gate still waits, unless somebody else decided meanwhile: the answer, an end without one, or not yet."""
    from ..resumption import concluding, joining
    from ..service.answering import check_open
    from ..service.calling import publish_sessions
    from ..service.deadlines import act
    from ..service.recording import reload

    desk = screen.desk()
    gate = act(desk, reload(desk, talk.gate.id))
    try:
        check_open(gate, desk.person(), amend=False)
    except GateError:
        screen.say(joining.put_away(desk, talk))
        raise
    if flags["push"] is not False:
        publish_sessions(desk, [gate.id])
    said = understood(screen, desk, talk, ended)
    if ended.left.timed_out:
        held = concluding.held(desk, talk, "timeout", ended.seconds, said)
        return end(screen, desk, talk, gate, replace(held, source=""), "the session's time was over", flags)
    if flags["yes"]:
        return unasked(screen, desk, talk, gate, said, ended, flags)
    try:
        given, note, kept = decision(screen, desk, gate, said, flags["note"])
    except EOFError:
        return leave(screen, desk, talk)
    except Cancelled:
        reason = why()
        held = concluding.held(desk, talk, "cancelled", ended.seconds, source="person", reason=reason)
        return end(screen, desk, talk, gate, held, reason or CANCELLED, flags)
    source = "" if kept is not None and kept is said and said.value is not None else "person"
    held = concluding.held(desk, talk, "completed", ended.seconds, kept, source=source)
    return record(screen, desk, talk, gate, given, replace_note(flags, note), held)


def replace_note(flags: dict[str, Any], note: str) -> dict[str, Any]:
    return {**flags, "note": note}


def understood(screen: Screen, desk: Desk, talk: Conversation, ended: Ended) -> Understood | None:
    from ..resumption import concluding

    try:
        return concluding.understand(desk, talk, ended.since)
    except BadAnswer as unfit:
        screen.warn(unfit.message)
        return None


def unasked(
    screen: Screen,
    desk: Desk,
    talk: Conversation,
    gate: Gate,
    said: Understood | None,
    ended: Ended,
    flags: dict[str, Any],
) -> int:
    """With --yes: an outcome beyond doubt is the answer; anything else is for a person."""
    from ..resumption import concluding

    if said is None or said.value is None or not said.sure:
        screen.say("the session did not say beyond doubt what was decided; --yes takes nothing less")
        return leave(screen, desk, talk)
    show(screen, said)
    held = concluding.held(desk, talk, "completed", ended.seconds, said, confirmed=False)
    given = Given(values={gate.opened.questions[0].key: said.value})
    return record(screen, desk, talk, gate, given, flags, held)


def decision(
    screen: Screen, desk: Desk, gate: Gate, said: Understood | None, note: str
) -> tuple[Given, str, Understood | None]:
    """What the person says; and what was understood, as far as it still goes with that."""
    from .prompts import ask_in_terminal

    screen.warn("\nthe session is over")
    if said is not None:
        show(screen, said)
    if said is not None and said.value is not None:
        if confirmed():
            return Given(values={gate.opened.questions[0].key: said.value}), note, said
        said = None  # What was said with it was said of another answer.
    screen.say(
        f"what is your answer? (an empty line or Ctrl-D: not yet; {CANCEL} ends the gate without an answer)\n"
    )
    given, note = ask_in_terminal(replace(screen, empty_leaves=True), desk, gate, note)
    return given, note, said


def show(screen: Screen, said: Understood) -> None:
    """What was understood, and where it was read."""
    value = "no answer yet" if said.value is None else shown(said.value)
    screen.warn(f"\nunderstood ({SOURCES.get(said.source, said.source)}): {value}")
    for name in ("status", "summary", "reason", "message"):
        words = getattr(said, name)
        if words and words != value:
            screen.warn(f"  {name}: {words}")


def confirmed() -> bool:
    """Whether that is the answer; another one is asked for. Not yet is EOFError."""
    sys.stderr.write("\n  y  that is my answer          n  not yet: the gate still waits\n")
    sys.stderr.write("  e  another answer             c  end the gate without an answer\n")
    while True:
        word = read_word("is that your answer? [y/e/n/c]: ").strip().lower()
        if word in ("y", "yes"):
            return True
        if word in ("e", "edit"):
            return False
        if word in ("n", "no", ""):
            raise EOFError
        if word in ("c", CANCEL, "cancel"):
            raise Cancelled
        sys.stderr.write("  expected one of y, e, n, c\n")


def why() -> str:
    try:
        return read_word("why, if you want to say: ").strip()
    except EOFError:
        return ""


def record(
    screen: Screen,
    desk: Desk,
    talk: Conversation,
    gate: Gate,
    given: Given,
    flags: dict[str, Any],
    held: Held,
) -> int:
    from ..resumption import joining
    from ..service.answering import Manner, respond
    from ..service.publishing import publish
    from .respond import delivery, tell_answered

    deliver = joining.go_on_from(talk, delivery(desk, flags).get("deliver", publish))
    manner = Manner(
        note=flags["note"],
        via="join" if held.confirmed else "join --yes",
        seen=gate.tip,
        sign=flags["sign"],
        push=flags["push"],
        session=held,
        deliver=deliver,
    )
    done = respond(desk, gate, given, manner)
    if not talk.own and talk.place.ours and talk.place.directory.is_dir():
        screen.say(f"what was changed stays in {talk.place.directory}")
    return tell_answered(screen, desk, done, resume=not flags["no_resume"])


def end(
    screen: Screen,
    desk: Desk,
    talk: Conversation,
    gate: Gate,
    held: Held,
    reason: str,
    flags: dict[str, Any],
) -> int:
    """The gate is over without an answer; the agent does not go on."""
    from ..resumption import joining
    from ..service.remarks import stop
    from .whereto import tell_trouble, where

    published = stop(desk, gate, reason, push=flags["push"], session=held)
    tell_trouble(screen, published)
    screen.say(joining.put_away(desk, talk).partition(";")[0])
    how = "timed out" if held.outcome == "timeout" else "cancelled"
    screen.say(f"gate {gate.id} {how}: {where(desk, published)}")
    return exits.CLOSED


def leave(screen: Screen, desk: Desk, talk: Conversation) -> int:
    from ..resumption import joining

    short = talk.gate.id[:6]
    screen.warn("")
    screen.say(joining.put_away(desk, talk))
    screen.say(f"the gate still waits: git gate join {short}   or: git gate respond {short}")
    return exits.WAITING
