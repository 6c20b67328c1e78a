"""Command line: `git gate join`: the agent's own session on this terminal, and then the person's answer."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..errors import AmbiguousGate, GateError, UnknownGate, Usage
from . import exits
from .screen import Screen, complete_ids, verb

if TYPE_CHECKING:
    from ..core.model import Gate
    from ..resume.joining import Conversation
    from ..service.desk import Desk


@click.command("join")
@click.argument("gate_id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--next", "next_", is_flag=True, help="The most pressing gate that waits.")
@click.option("--note", default="", help="A word to go with the answer.")
@click.option("--sign/--no-sign", default=None, help="Sign the answer with your key.")
@click.option("--no-resume", is_flag=True, help="Do not resume the agent from here.")
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@verb
def join_command(screen: Screen, gate_id: str | None, next_: bool, **flags: Any) -> int:
    """Open the agent's own session here, to look around and talk; then decide.

    It opens where the agent stopped: in the directory that it left, or in a worktree of its partial work. While you talk the
    gate waits. When you leave the session you are asked for the answer; an empty line or Ctrl-D leaves the gate waiting (exit
    8), and joining again goes on from there.
    """
    desk = screen.desk()
    desk.refuse_agents("join")
    need_terminal(screen, gate_id)
    gate = chosen(desk, gate_id, next_=next_)
    from ..resume import joining

    saved = joining.find_session(desk, gate)
    with joining.alone(desk, gate):
        with joining.opened(desk, gate, saved) as talk:
            introduce(screen, desk, talk)
            screen.close()  # Ctrl-C on this terminal would end the git that it reads with.
            converse(screen, talk)
        return decide(screen, screen.desk(), talk, flags)


continue_command = copy.copy(join_command)
continue_command.name = "continue"


def need_terminal(screen: Screen, gate_id: str | None) -> None:
    if screen.as_json or not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        short = gate_id or "ID"
        raise Usage(
            "join opens the agent's session, and needs a terminal",
            hint=f"in a terminal: git gate join {short}   without one: git gate respond {short} ANSWER",
        )


def chosen(desk: Desk, gate_id: str | None, *, next_: bool) -> Gate:
    """The waiting gate that is meant; what happened to one that no longer waits is told."""
    if next_ and gate_id is not None:
        raise Usage("name a gate, or --next, not both")
    if next_:
        gate_id = most_pressing(desk)
    from ..service.answering import check_open
    from ..service.deadlines import act
    from ..service.reading import open_gate

    try:
        gate = act(desk, open_gate(desk, gate_id))
    except AmbiguousGate as several:
        if gate_id is None:
            several.hint = "name one: git gate join ID   or the most pressing: git gate join --next"
        raise
    check_open(gate, desk.person(), amend=False)
    return gate


def most_pressing(desk: Desk) -> str:
    from ..service.listing import Filter, listed

    found = listed(desk, Filter(states=("awaiting",)))
    if not found:
        raise UnknownGate("no gate waits for an answer", hint="git gate list --all")
    return found[0].id


def introduce(screen: Screen, desk: Desk, talk: Conversation) -> None:
    """What is being asked, and where they are about to be."""
    from .prompts import present, show

    show(screen, desk, talk.gate)
    questions = talk.gate.opened.questions
    for question in questions:
        present(screen, question, several=len(questions) > 1)
    screen.warn("")
    if talk.place.ours:
        screen.say(f"opening {talk.saved.agent}'s session in a worktree of its work: {talk.place.directory}")
        screen.say(
            "what is changed there is what the agent goes on with, if it is resumed on this machine when you answered; "
            "elsewhere it starts from its work as it was saved"
        )
    else:
        screen.say(f"opening {talk.saved.agent}'s session where it was: {talk.place.directory}")
    screen.say("nothing is decided in it: when you leave it, you are asked for the answer")


def converse(screen: Screen, talk: Conversation) -> None:
    """The program has the terminal. However it ends, what was said is saved with the gate."""
    from ..agents.foreground import foreground

    try:
        code = foreground(talk.launch)
    finally:
        keep(screen, talk)
    if code:
        screen.say(f"{talk.saved.agent} ended with exit code {code}")


def keep(screen: Screen, talk: Conversation) -> None:
    from ..resume import joining

    desk = screen.desk()
    try:
        if not joining.keep(desk, talk):
            screen.say(
                "the conversation was not saved with the gate: an agent that is resumed elsewhere does not know it"
            )
    except (GateError, OSError) as failed:
        screen.say(f"the conversation was not saved with the gate: {failed}")
    finally:
        screen.close()


def decide(screen: Screen, desk: Desk, talk: Conversation, flags: dict[str, Any]) -> int:
    """The gate still waits, unless somebody else decided meanwhile: the answer, or not yet."""
    from ..resume import joining
    from ..service.answering import Manner, check_open, respond
    from ..service.calling import publish_sessions
    from ..service.deadlines import act
    from ..service.publishing import publish
    from ..service.recording import reload
    from .prompts import ask_in_terminal
    from .respond import delivery, tell_answered

    gate = act(desk, reload(desk, talk.gate.id))
    try:
        check_open(gate, desk.person(), amend=False)
    except GateError:
        screen.say(joining.put_away(desk, talk))
        raise
    if flags["push"] is not False:
        publish_sessions(desk, [gate.id])
    screen.say("\nthe session is over; what is your answer? (an empty line or Ctrl-D: not yet)\n")
    try:
        given, note = ask_in_terminal(replace(screen, empty_leaves=True), desk, gate, flags["note"])
    except EOFError:
        return leave(screen, desk, talk)
    deliver = joining.go_on_from(talk, delivery(desk, flags).get("deliver", publish))
    manner = Manner(
        note=note, via="join", seen=gate.tip, sign=flags["sign"], push=flags["push"], deliver=deliver
    )
    return tell_answered(screen, desk, respond(desk, gate, given, manner), resume=not flags["no_resume"])


def leave(screen: Screen, desk: Desk, talk: Conversation) -> int:
    from ..resume import joining

    short = talk.gate.id[:6]
    screen.warn("")
    screen.say(joining.put_away(desk, talk))
    screen.say(f"the gate still waits: git gate join {short}   or: git gate respond {short}")
    return exits.WAITING
