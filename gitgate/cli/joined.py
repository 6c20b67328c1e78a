"""Command line: the end of a session that was joined: what it proposes is shown, and a person says what it comes to.

Only here does anything of a conversation become an answer: by a person who confirms it, or gives it. With `--yes` it is kept
as a proposal, unless the policy says that nobody need confirm it. Time that ran out and a session that was cancelled are
recorded as that.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.answers import Given, shown
from ..core.text import one_line
from ..errors import BadAnswer, GateError
from . import exits
from .keyboard import read_word
from .screen import Screen
from .turns import CANCEL, Cancelled
from .whereto import tell_trouble, where

if TYPE_CHECKING:
    from ..agents.foreground import Left
    from ..core.model import Gate
    from ..core.outcomes import Understood
    from ..core.talks import Held
    from ..resumption.concluding import Heard
    from ..resumption.joining import Conversation
    from ..service.desk import Desk


SOURCES = {
    "command": "by `git gate outcome`",
    "mcp": "by its tool `outcome`",
    "file": "in a file",
    "json": "as the object that ends its last message",
}
MOST_SHOWN = 400
CANCELLED = "cancelled by the person in the session"
TIME_OVER = "the session's time was over"


@dataclass(frozen=True)
class Ended:
    """How the program ended, how long the conversation has lasted, when it was opened this time."""

    left: Left
    seconds: int
    since: float


def conclude(screen: Screen, talk: Conversation, ended: Ended, flags: dict[str, Any]) -> int:
    """The gate still waits, unless somebody else decided meanwhile: the answer, an end without one, or not yet."""
    from ..resumption import concluding, joining
    from ..service.answering import check_open
    from ..service.calling import publish_sessions
    from ..service.deadlines import act
    from ..service.reading import open_gate
    from ..service.syncing import news

    desk = screen.desk()
    screen.say(news(desk))
    try:
        gate = act(desk, open_gate(desk, talk.gate.id))
        check_open(gate, desk.person(), amend=False)
    except GateError:
        screen.say(joining.put_away(desk, talk))
        raise
    if flags["push"] is not False:
        publish_sessions(desk, [gate.id])
    heard = understood(screen, desk, talk, ended)
    if ended.left.timed_out:
        held = concluding.held(desk, talk, "timeout", ended.seconds, heard.said)
        return end(screen, desk, talk, gate, replace(held, source=""), TIME_OVER, flags)
    if flags["yes"]:
        return unasked(screen, desk, talk, gate, heard, ended, flags)
    try:
        given, note, kept = decision(screen, desk, talk, gate, heard, flags["note"])
    except EOFError:
        return leave(screen, desk, talk)
    except Cancelled:
        reason = why()
        held = concluding.held(desk, talk, "cancelled", ended.seconds, source="person", reason=reason)
        return end(screen, desk, talk, gate, held, reason or CANCELLED, flags)
    source = "" if kept is not None and kept is heard.said and kept.value is not None else "person"
    held = concluding.held(desk, talk, "completed", ended.seconds, kept, source=source)
    return record(screen, desk, talk, gate, given, {**flags, "note": note}, held)


def understood(screen: Screen, desk: Desk, talk: Conversation, ended: Ended) -> Heard:
    from ..resumption import concluding

    try:
        return concluding.understand(desk, talk, ended.since)
    except BadAnswer as unfit:
        screen.warn(unfit.message)
        return concluding.Heard()


def unasked(
    screen: Screen,
    desk: Desk,
    talk: Conversation,
    gate: Gate,
    heard: Heard,
    ended: Ended,
    flags: dict[str, Any],
) -> int:
    """With --yes nobody looks: what the session says is kept as a proposal, unless the policy wants no more than that."""
    from ..resumption import concluding
    from ..service import policing, remarks

    said = heard.said
    if said is None:
        screen.say("the session proposed no outcome")
        return leave(screen, desk, talk)
    show(screen, talk, heard)
    ruling = policing.may_be_automatic(desk, gate)
    if heard.plain and said.value is not None and ruling.allowed:
        held = concluding.held(desk, talk, "completed", ended.seconds, said, confirmed=False)
        return record(screen, desk, talk, gate, given_of(gate, said), flags, held)
    proposal = concluding.proposed(desk, talk, ended.seconds, said)
    words = f"{talk.saved.agent} proposed: {in_words(said)}; nobody has confirmed it"
    tell_trouble(screen, remarks.propose(desk, gate, words, proposal, push=flags["push"]))
    doubt = ruling.why if not ruling.allowed else "it may not be what you said last, or repeat older words"
    screen.say(f"kept as a proposal, which --yes does not confirm: {doubt}")
    return leave(screen, desk, talk)


def decision(
    screen: Screen, desk: Desk, talk: Conversation, gate: Gate, heard: Heard, note: str
) -> tuple[Given, str, Understood | None]:
    """What the person says; and what was proposed, as far as it still goes with that."""
    from .prompts import ask_in_terminal

    screen.warn("\nthe session is over")
    said = heard.said
    if said is not None:
        show(screen, talk, heard)
    if said is not None and said.value is not None:
        if confirmed(differs=heard.differs):
            return given_of(gate, said), note, said
        said = None  # What was said with it was said of another answer.
    screen.say(
        f"what is your answer? (an empty line or Ctrl-D: not yet; {CANCEL} ends the gate without an answer)\n"
    )
    given, note = ask_in_terminal(replace(screen, empty_leaves=True), desk, gate, note)
    return given, note, said


def given_of(gate: Gate, said: Understood) -> Given:
    return Given(values={gate.opened.questions[0].key: said.value})


def in_words(said: Understood) -> str:
    return "no answer yet" if said.value is None else shown(said.value)


def show(screen: Screen, talk: Conversation, heard: Heard) -> None:
    """What is proposed, by whom and how; and the person's own last words, for whoever confirms it is to know them."""
    said = heard.said
    if said is None:
        return
    value = in_words(said)
    screen.warn(f"\n{talk.saved.agent} proposes, {SOURCES[said.source]}: {value}")
    for name in ("status", "summary", "reason", "message"):
        words = getattr(said, name)
        if words and words != value:
            screen.warn(f"  {name}: {words}")
    if heard.last:
        screen.warn(f"you said last: {both_ends(one_line(heard.last))}")
    if heard.differs:
        screen.warn("  you said that after it was proposed: the two may differ")


def both_ends(text: str) -> str:
    """Second thoughts stand at the end."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]} … {text[-MOST_SHOWN // 2 :]}"


def confirmed(*, differs: bool) -> bool:
    """Whether that is the answer; another one is asked for. Not yet is EOFError.

    An empty line is not yet; where what was proposed may not be what the person meant, it is nothing.
    """
    sys.stderr.write("\n  y  that is my answer          n  not yet: the gate still waits\n")
    sys.stderr.write("  e  another answer             c  end the gate without an answer\n")
    while True:
        word = read_word("is that your answer? [y/e/n/c]: ").strip().lower()
        if word in ("y", "yes"):
            return True
        if word in ("e", "edit"):
            return False
        if word in ("n", "no") or (not word and not differs):
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

    published = stop(desk, gate, reason, push=flags["push"], session=held)
    tell_trouble(screen, published)
    screen.say(joining.put_away(desk, talk).partition(";")[0])
    how = TIME_OVER if held.outcome == "timeout" else "cancelled"
    screen.say(f"gate {gate.id}: {how}; {where(desk, published)}")
    return exits.CLOSED


def leave(screen: Screen, desk: Desk, talk: Conversation) -> int:
    from ..resumption import joining

    short = talk.gate.id[:6]
    screen.warn("")
    screen.say(joining.put_away(desk, talk))
    screen.say(f"the gate still waits: git gate join {short}   or: git gate respond {short}")
    return exits.WAITING
