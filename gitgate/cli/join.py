"""Command line: `git gate join`: a conversation about a gate on this terminal, and then the person's answer."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

import click

from ..errors import AmbiguousGate, Failure, GateError, UnknownGate, Usage
from .joined import Ended
from .screen import Screen, complete_ids, read_duration, verb

if TYPE_CHECKING:
    from ..agents.foreground import Limit
    from ..core.model import Gate
    from ..resumption.joining import Conversation
    from ..resumption.meeting import Chosen
    from ..service.desk import Desk


@click.command("join")
@click.argument("gate_id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--next", "next_", is_flag=True, help="The most pressing gate that waits.")
@click.option("--new", "new", is_flag=True, help="A new session, whatever conversation there is.")
@click.option("--agent", metavar="NAME", help="The agent of a new session; else gitgate.joinAgent.")
@click.option("--editor", is_flag=True, help="First open the editor on the worktree.")
@click.option(
    "--yes",
    is_flag=True,
    help="Ask nothing: the outcome is kept as a proposal (exit 8), unless the policy says `automatic: true`.",
)
@click.option("--yes-mcp", is_flag=True, help="Start the MCP servers that the gate names without asking.")
@click.option("--session-timeout", metavar="30m", help="How long the session may last.")
@click.option("--note", default="", help="A word to go with the answer.")
@click.option("--sign/--no-sign", default=None, help="Sign the answer with your key.")
@click.option("--no-resume", is_flag=True, help="Do not resume the agent from here.")
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@verb
def join_command(screen: Screen, gate_id: str | None, next_: bool, **flags: Any) -> int:
    """Open the agent's own session here, to look around and talk; then decide.

    It opens where the agent stopped: in the directory that it left, or in a worktree of its partial work. A gate without a
    session gets a new one, in a worktree of its own, with the question first. While you talk the gate waits. When you leave
    the session you are shown what it proposes and confirm it, or are asked for the answer; an empty line or Ctrl-D leaves
    the gate waiting (exit 8), and joining again goes on from there. A gate that is ended there, or whose session ran out of
    time, is closed (exit 9).

    \b
    git gate join 7k2f
    git gate join --next
    git gate join 7k2f --editor --session-timeout 30m
    """
    desk = screen.desk()
    desk.refuse_agents("join")
    need_terminal(screen, gate_id)
    gate = chosen(desk, gate_id, next_=next_)
    from ..resumption import joining, meeting
    from .joined import conclude

    with joining.alone(desk, gate):
        introduce(screen, desk, gate)
        talk = meeting.talk_of(gate)
        if talk.checkpoint and meeting.the_question(gate) is not None:
            from .checkpoint import decide_here

            return decide_here(screen, desk, gate, flags)
        choice = which(screen, desk, gate, flags)
        servers = agreed(screen, desk, gate, choice, flags)
        with meeting.opened(desk, gate, choice, servers) as opened:
            tell_where(screen, opened)
            if flags["editor"]:
                open_editor(screen, desk, opened)
            limit = limit_of(gate, flags)
            screen.close()  # Ctrl-C on this terminal would end the git that it reads with.
            ended = converse(screen, desk, opened, limit)
        return conclude(screen, opened, ended, flags)


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
    from ..service.reading import asking, open_gate

    try:
        gate = act(desk, asking(open_gate, desk, gate_id))
    except AmbiguousGate as several:
        if gate_id is None:
            several.hint = "name one: git gate join ID   or the most pressing: git gate join --next"
        raise
    check_open(gate, desk.person(), amend=False)
    need_forms(gate)
    return gate


def need_forms(gate: Gate) -> None:
    """Whoever could not answer at the end hears of it before they talk."""
    for question in gate.opened.questions:
        if question.schema is not None:
            from ..core.forms import check_schema

            check_schema(question.schema, f"the schema of {question.key}")


def most_pressing(desk: Desk) -> str:
    from ..service.listing import Filter, listed

    found = listed(desk, Filter(states=("awaiting",)))
    if not found:
        raise UnknownGate("no gate waits for an answer", hint="git gate list --all")
    return found[0].id


def introduce(screen: Screen, desk: Desk, gate: Gate) -> None:
    """What is being asked."""
    from .prompts import present, show

    show(screen, desk, gate)
    questions = gate.opened.questions
    for question in questions:
        present(screen, question, several=len(questions) > 1)
    screen.warn("")


def which(screen: Screen, desk: Desk, gate: Gate, flags: dict[str, Any]) -> Chosen:
    """The agent's own conversation, or, where there is none or it is not to be had here, another one about the question."""
    from ..resumption import joining, meeting

    agent = flags["agent"] or desk.settings.text("joinAgent")
    if flags["new"] or gate.opened.session is None:
        return meeting.another(desk, gate, agent, anew=flags["new"])
    try:
        return meeting.own(desk, gate, joining.find_session(desk, gate))
    except (Failure, Usage) as absent:
        screen.warn(f"{absent.message}\n")
        if not agrees("open a new session with the question instead? [y/N] "):
            raise
    return meeting.another(desk, gate, agent)


def agrees(prompt: str) -> bool:
    from .keyboard import read_word

    try:
        return read_word(prompt).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def agreed(
    screen: Screen, desk: Desk, gate: Gate, choice: Chosen, flags: dict[str, Any]
) -> dict[str, object]:
    """The MCP servers of the gate, if a person lets them start: they are commands, and an agent wrote them."""
    import json

    from ..resumption import meeting

    mcp = meeting.talk_of(gate).mcp
    servers = mcp.get("mcpServers") if mcp is not None else None
    if not isinstance(servers, dict) or not servers:
        return {}
    if choice.saved.agent != "claude":
        screen.say(f"the gate names MCP servers; {choice.saved.agent} is not given any")
        return {}
    screen.warn(
        f"whoever asked wants these MCP servers in the session; they are programs that run as you, here:\n\n"
        f"{json.dumps(mcp, indent=2, ensure_ascii=False)}\n"
    )
    if flags["yes_mcp"]:
        return dict(servers)
    if flags["yes"]:
        if desk.settings.flag("joinServers"):
            return dict(servers)
        screen.say("they are not started: nobody looked at them (--yes-mcp starts them)")
        return {}
    if agrees("start them? [y/N] "):
        return dict(servers)
    screen.say("they are not started")
    return {}


def tell_where(screen: Screen, talk: Conversation) -> None:
    """Where they are about to be, and what becomes of it."""
    agent, directory = talk.saved.agent, talk.launch.cwd
    if talk.own and talk.place.ours:
        screen.say(f"opening {agent}'s session in a worktree of its work: {directory}")
        screen.say(
            "what is changed there is what the agent goes on with, if it is resumed on this machine when you answered; "
            "elsewhere it starts from its work as it was saved"
        )
    elif talk.own:
        screen.say(f"opening {agent}'s session where it was: {directory}")
    else:
        what = "a new session" if talk.new else "the session that was begun earlier"
        where = f"in a worktree of the work: {directory}" if talk.place.ours else f"in {directory}"
        screen.say(f"opening {what} with {agent} {where}")
    screen.say(
        "nothing is decided in it: when you leave it, you confirm what was said, or are asked for the answer"
    )


def open_editor(screen: Screen, desk: Desk, talk: Conversation) -> None:
    """Whatever the person edits with, on the folder; one that needs the terminal has it until it is closed."""
    from ..store.editor import open_folder

    command = (
        desk.settings.env.get("GITGATE_EDITOR")
        or desk.settings.text("editor")
        or desk.settings.env.get("VISUAL")
        or desk.settings.env.get("EDITOR")
    )
    if not command:
        screen.say("no editor is set: git config --global gitgate.editor 'code'")
        return
    screen.pulse.stop()
    problem = open_folder(command, talk.launch.cwd, screen.env)
    if problem:
        screen.say(problem)


def limit_of(gate: Gate, flags: dict[str, Any]) -> Limit | None:
    from ..agents.foreground import Limit
    from ..resumption import meeting

    talk = meeting.talk_of(gate)
    seconds = (
        read_duration(flags["session_timeout"], "--session-timeout", "30m")
        if flags["session_timeout"]
        else talk.timeout
    )
    if seconds is None:
        return None
    if seconds <= 0:
        raise Usage("a session has to last for some time", hint="--session-timeout 30m")
    return Limit(seconds, talk.grace, f"gate {gate.id[:6]}: this session")


def converse(screen: Screen, desk: Desk, talk: Conversation, limit: Limit | None) -> Ended:
    """The program has the terminal. However it ends, what was said is saved with the gate."""
    from ..agents.foreground import foreground
    from ..resumption import meeting
    from ..resumption.saving import saving
    from ..service.desk import open_desk

    since = desk.clock()
    every = meeting.talk_of(talk.gate).save_every
    spent = talk.spent
    try:
        with saving(lambda: open_desk(screen.start, screen.env), talk, every):
            left = foreground(
                talk.launch, limit, begun=lambda pid: meeting.remember(desk, talk, pid, talk.spent)
            )
    finally:
        spent += int(desk.clock() - since)
        meeting.remember(desk, talk, 0, spent)
        keep(screen, talk)
    if left.timed_out:
        screen.say(f"the session's time was over, and {talk.saved.agent} was ended")
    elif left.code:
        screen.say(f"{talk.saved.agent} ended with exit code {left.code}")
    return Ended(left, spent, since)


def keep(screen: Screen, talk: Conversation) -> None:
    from ..resumption import joining

    desk = screen.desk()
    try:
        if not joining.keep(desk, talk) and talk.own:
            screen.say(
                "the conversation was not saved with the gate: an agent that is resumed elsewhere does not know it"
            )
    except (GateError, OSError) as failed:
        screen.say(f"the conversation was not saved with the gate: {failed}")
    finally:
        screen.close()
