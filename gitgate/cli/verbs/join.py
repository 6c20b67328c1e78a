"""Command line: `git gate join`: a conversation about a gate on this terminal, and then the person's answer; at a checkpoint a few keys."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ...acts import answering, find_anywhere, open_gate
from ...acts.answering import Manner, check_open, respond, stop
from ...acts.needs import publish_sessions
from ...agents.process import Limit, foreground
from ...context import open_desk
from ...errors import AmbiguousGate, BadAnswer, Failure, GateError, Usage
from ...exchange.syncing import news, publish
from ...gates import agency
from ...gates.recording import act
from ...gates.work import diff_of
from ...model.gate import Conversation
from ...policy import permit
from ...questions import Given
from ...questions.answers import value_words
from ...questions.forms import check_schema
from ...questions.types import type_of
from ...resumption import joining, meeting
from ...resumption.joining import saving, who_spoke
from ...store.git.programs import open_folder
from ...text import one_line
from .. import CLOSED, WAITING
from ..terminal import Screen, complete_ids, forget_typed, read_duration, read_word, tell_trouble, verb, where
from ..terminal.prompts import CANCEL, Cancelled, ask_in_terminal, present, show_letter
from .respond import delivery, tell_answered

if TYPE_CHECKING:
    from ...agents.process import LeftProgram
    from ...context import Desk
    from ...model.gate import Gate
    from ...questions.signals import Understood
    from ...resumption.joining import JoinedConversation
    from ...resumption.meeting import ChosenConversation, HeardProposal


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
class EndedSession:
    """End of a session: how the program ended, how long the conversation has lasted, and when it was opened this time."""

    left: LeftProgram
    seconds: int
    since: float


def conclude(screen: Screen, talk: JoinedConversation, ended: EndedSession, flags: dict[str, Any]) -> int:
    """Conclude a session with the answer, an end without one, or not yet.

    The gate still waits, unless somebody else decided meanwhile.
    """
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
        held = meeting.held(desk, talk, "timeout", ended.seconds, heard.said)
        return end(screen, desk, talk, gate, replace(held, source=""), TIME_OVER, flags)
    if flags["yes"]:
        return unasked(screen, desk, talk, gate, heard, ended, flags)
    try:
        given, note, kept = decision(screen, desk, talk, gate, heard, flags["note"])
    except EOFError:
        if kept_talk := meeting.left(desk, talk, ended.seconds):
            words = f"talked with {talk.saved.agent}, and decided nothing"
            tell_trouble(screen, answering.tell_of_talk(desk, gate, words, kept_talk, push=flags["push"]))
        return leave(screen, desk, talk)
    except Cancelled:
        reason = why()
        held = meeting.held(desk, talk, "cancelled", ended.seconds, source="person", reason=reason)
        return end(screen, desk, talk, gate, held, reason or CANCELLED, flags)
    source = "" if kept is not None and kept is heard.said and kept.value is not None else "person"
    held = meeting.held(desk, talk, "completed", ended.seconds, kept, source=source)
    return record_conversation(screen, desk, talk, gate, given, {**flags, "note": note}, held)


def understood(screen: Screen, desk: Desk, talk: JoinedConversation, ended: EndedSession) -> HeardProposal:
    try:
        return meeting.understand(desk, talk, ended.since)
    except BadAnswer as unfit:
        screen.warn(unfit.message)
        return meeting.HeardProposal()


def unasked(
    screen: Screen,
    desk: Desk,
    talk: JoinedConversation,
    gate: Gate,
    heard: HeardProposal,
    ended: EndedSession,
    flags: dict[str, Any],
) -> int:
    """Record what the session says without asking, for `--yes`.

    It is kept as a proposal, unless the policy wants no more than that for an answer.
    """
    said = heard.said
    if said is None:
        screen.say("the session proposed no outcome")
        return leave(screen, desk, talk)
    show_proposal(screen, talk, heard)
    ruling = permit.may_be_automatic(desk, gate)
    if heard.plain and said.value is not None and ruling.allowed:
        held = meeting.held(desk, talk, "completed", ended.seconds, said, confirmed=False)
        return record_conversation(screen, desk, talk, gate, given_in_session(gate, said), flags, held)
    proposal = meeting.proposed(desk, talk, ended.seconds, said)
    words = f"{talk.saved.agent} proposed: {proposal_words(said)}; nobody has confirmed it"
    tell_trouble(screen, answering.propose(desk, gate, words, proposal, push=flags["push"]))
    doubt = ruling.why if not ruling.allowed else "it may not be what you said last, or repeat older words"
    screen.say(f"kept as a proposal, which --yes does not confirm: {doubt}")
    return leave(screen, desk, talk)


def decision(
    screen: Screen, desk: Desk, talk: JoinedConversation, gate: Gate, heard: HeardProposal, note: str
) -> tuple[Given, str, Understood | None]:
    """Return the person's answer and note, and the proposal as far as it still goes with that answer."""
    screen.warn("\nthe session is over")
    said = heard.said
    if said is not None:
        show_proposal(screen, talk, heard)
    if said is not None and said.value is not None:
        if confirmed(differs=heard.differs):
            return given_in_session(gate, said), note, said
        said = None  # What was said with it was said of another answer.
    else:
        forget_typed()
    screen.say(
        f"what is your answer? (an empty line or Ctrl-D: not yet; {CANCEL} ends the gate without an answer)\n"
    )
    given, note = ask_in_terminal(replace(screen, empty_leaves=True), desk, gate, note)
    return given, note, said


def given_in_session(gate: Gate, said: Understood) -> Given:
    return Given(values={gate.opened.questions[0].key: said.value})


def proposal_words(said: Understood) -> str:
    return "no answer yet" if said.value is None else value_words(said.value)


def show_proposal(screen: Screen, talk: JoinedConversation, heard: HeardProposal) -> None:
    """Show what is proposed, by whom, and how.

    The person's own last words are shown as well: whoever confirms the proposal is to know them.
    """
    said = heard.said
    if said is None:
        return
    value = proposal_words(said)
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
    """Shorten text in its middle: second thoughts are at its end."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]} … {text[-MOST_SHOWN // 2 :]}"


def confirmed(*, differs: bool) -> bool:
    """Return whether the proposal is the person's answer; False means that another one is asked for.

    Raise EOFError for "not yet", and Cancelled to end the gate without an answer. An empty line means "not yet". Where
    the proposal may not be what the person meant (`differs`), an empty line means nothing, and the prompt comes again.
    """
    sys.stderr.write("\n  y  that is my answer          n  not yet: the gate still waits\n")
    sys.stderr.write("  e  another answer             c  end the gate without an answer\n")
    forget_typed()
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


def record_conversation(
    screen: Screen,
    desk: Desk,
    talk: JoinedConversation,
    gate: Gate,
    given: Given,
    flags: dict[str, Any],
    held: Conversation,
) -> int:
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
    talk: JoinedConversation,
    gate: Gate,
    held: Conversation,
    reason: str,
    flags: dict[str, Any],
) -> int:
    """End the gate without an answer, so that the agent does not go on."""
    published = stop(desk, gate, reason, push=flags["push"], session=held)
    tell_trouble(screen, published)
    screen.say(joining.put_away(desk, talk).partition(";")[0])
    how = TIME_OVER if held.outcome == "timeout" else "cancelled"
    screen.say(f"gate {gate.id}: {how}; {where(desk, published)}")
    return CLOSED


def leave(screen: Screen, desk: Desk, talk: JoinedConversation) -> int:
    short = talk.gate.id[:6]
    screen.warn("")
    screen.say(joining.put_away(desk, talk))
    screen.say(f"the gate still waits: git gate join {short}   or: git gate respond {short}")
    return WAITING


@click.command("join")
@click.argument("gate_id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--new", "new", is_flag=True, help="A new session, whatever conversation there is.")
@click.option("--agent", metavar="NAME", help="The agent of a new session; else gitgate.joinAgent.")
@click.option("--editor", is_flag=True, help="First open the editor on the worktree.")
@click.option(
    "--yes",
    is_flag=True,
    help="Ask nothing: the outcome is kept as a proposal (exit 8), unless the policy says `automatic: true`.",
)
@click.option("--session-timeout", metavar="30m", help="How long the session may last.")
@click.option("--note", default="", help="A word to go with the answer.")
@click.option("--sign/--no-sign", default=None, help="Sign the answer with your key.")
@click.option("--no-resume", is_flag=True, help="Do not resume the agent from here.")
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@verb
def join_command(screen: Screen, gate_id: str | None, **flags: Any) -> int:
    """Open the agent's own session here, to look around and talk; then decide.

    It opens where the agent stopped: in the directory that it left, or in a worktree of its partial work. A gate without a
    session gets a new one, in a worktree of its own, with the question first. While you talk the gate waits. When you leave
    the session you are shown what it proposes and confirm it, or are asked for the answer; an empty line or Ctrl-D leaves
    the gate waiting (exit 8), and joining again goes on from there. A gate that is ended there, or whose session ran out of
    time, is closed (exit 9). At a checkpoint a few keys decide; `t`, --new or --agent opens a session about it first.

    \b
    git gate join 7k2f
    git gate join 7k2f --editor --session-timeout 30m
    """
    desk = screen.desk()
    desk.refuse_agents("join")
    need_terminal(screen, gate_id)
    gate = waiting_gate(desk, gate_id)
    with joining.alone(desk, gate):
        introduce(screen, desk, gate)
        talk = meeting.talk_of(gate)
        if talk.checkpoint and meeting.the_question(gate) is not None:
            apart = flags["new"] or flags["agent"]
            decided = None if apart else decide_here(screen, desk, gate, flags)
            if decided is not None:
                return decided
            flags["apart"] = True
        choice = which(screen, desk, gate, flags)
        servers = agreed(screen, gate, choice, flags)
        with meeting.open_meeting(desk, gate, choice, servers) as opened:
            tell_where(screen, opened)
            tell_who(screen, opened)
            if flags["editor"]:
                open_editor(screen, opened)
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


def waiting_gate(desk: Desk, gate_id: str | None) -> Gate:
    """Return the waiting gate that is meant; refuse one that no longer waits, with what became of it."""
    try:
        gate = act(desk, find_anywhere(open_gate, desk, gate_id))
    except AmbiguousGate as several:
        if gate_id is None:
            several.hint = "name one: git gate join ID   (what each asks: git gate list)"
        raise
    check_open(gate, desk.person(), amend=False)
    need_forms(gate)
    return gate


def need_forms(gate: Gate) -> None:
    """Refuse a form that nobody could answer at the end, before the person talks with the agent."""
    for question in gate.opened.questions:
        if question.schema is not None:
            check_schema(question.schema, f"the schema of {question.key}")


def introduce(screen: Screen, desk: Desk, gate: Gate) -> None:
    """Show the gate and its questions."""
    show_letter(screen, desk, gate)
    questions = gate.opened.questions
    for question in questions:
        present(screen, question, several=len(questions) > 1)
    screen.warn("")


def which(screen: Screen, desk: Desk, gate: Gate, flags: dict[str, Any]) -> ChosenConversation:
    """Return the agent's own conversation; where there is none, or none here, another one about the question."""
    agent = flags["agent"] or desk.settings.text("joinAgent")
    if flags["new"] or flags.get("apart") or gate.opened.session is None:
        return meeting.another(desk, gate, agent, anew=flags["new"])
    try:
        return meeting.own(desk, gate, joining.find_session(desk, gate))
    except (Failure, Usage) as absent:
        screen.warn(f"{absent.message}\n")
        if not agrees("open a new session with the question instead? [y/N] "):
            raise
    return meeting.another(desk, gate, agent)


def agrees(prompt: str) -> bool:
    try:
        return read_word(prompt).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def agreed(
    screen: Screen, gate: Gate, choice: ChosenConversation, flags: dict[str, Any]
) -> dict[str, object]:
    """Return the gate's MCP servers if a person lets them start: they are commands, and an agent wrote them."""
    import json

    mcp = meeting.talk_of(gate).mcp
    servers = mcp.get("mcpServers") if mcp is not None else None
    if not isinstance(servers, dict) or not servers:
        return {}
    if not agency.adapter(choice.saved.agent).takes_servers:
        screen.say(f"the gate names MCP servers; {choice.saved.agent} is not given any")
        return {}
    screen.warn(
        f"whoever asked wants these MCP servers in the session; they are programs that run as you, here:\n\n"
        f"{json.dumps(mcp, indent=2, ensure_ascii=False)}\n"
    )
    if flags["yes"]:
        screen.say("they are not started: nobody looked at them")
        return {}
    if agrees("start them? [y/N] "):
        return dict(servers)
    screen.say("they are not started")
    return {}


def tell_where(screen: Screen, talk: JoinedConversation) -> None:
    """Say where the session opens, and what becomes of the changes made there."""
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


def tell_who(screen: Screen, talk: JoinedConversation) -> None:
    """Say who spoke in the conversation before.

    Several may have to agree: what earlier people said is no answer of those who come after them.
    """
    spoke = [] if talk.new else who_spoke(talk.gate)
    for words in spoke:
        screen.say(words)
    needed = talk.gate.opened.quorum
    if spoke and needed > 1:
        screen.say(f"{needed} answers alike are needed; the one that you confirm afterwards is your own")


def open_editor(screen: Screen, talk: JoinedConversation) -> None:
    """Open the person's editor on the session's folder; one that needs the terminal has it until it is closed."""
    command = screen.env.get("VISUAL") or screen.env.get("EDITOR")
    if not command:
        screen.say("no editor is set: export VISUAL=code")
        return
    screen.pulse.stop()
    problem = open_folder(command, talk.launch.cwd, screen.env)
    if problem:
        screen.say(problem)


def limit_of(gate: Gate, flags: dict[str, Any]) -> Limit | None:
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


def converse(screen: Screen, desk: Desk, talk: JoinedConversation, limit: Limit | None) -> EndedSession:
    """Give the program the terminal. However it ends, what was said is saved with the gate."""
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
        save_conversation(screen, talk)
    if left.timed_out:
        screen.say(f"the session's time was over, and {talk.saved.agent} was ended")
    elif left.code:
        screen.say(f"{talk.saved.agent} ended with exit code {left.code}")
    return EndedSession(left, spent, since)


def save_conversation(screen: Screen, talk: JoinedConversation) -> None:
    desk = screen.desk()
    try:
        if not joining.keep_conversation(desk, talk) and talk.own:
            screen.say(
                "the conversation was not saved with the gate: an agent that is resumed elsewhere does not know it"
            )
    except (GateError, OSError) as failed:
        screen.say(f"the conversation was not saved with the gate: {failed}")
    finally:
        screen.close()


# A checkpoint. Look at the work, go on or stop, and say why; an agent only where one is wanted.


KEYS = (
    "\n  d  look at the work as a diff      c  continue\n"
    "  m  a message to go with it         s  stop, and say why\n"
    "  t  talk it over with an agent      q  not yet: the gate still waits\n"
)
PROMPT = "[d/m/c/s/t/q]: "
TALK = "TALK"


def decide_here(screen: Screen, desk: Desk, gate: Gate, flags: dict[str, Any]) -> int | None:
    """Record CONTINUE or STOP as the person says; nothing else is one of them.

    None where they talk to an agent first.
    """
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
    return record_checkpoint(screen, desk, gate, (status, reason, message, int(desk.clock() - begun)), flags)


def ask_checkpoint(screen: Screen, desk: Desk, gate: Gate) -> tuple[str, str, str]:
    """Ask for the status, the reason of a stop, and the message."""
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
    try:
        text = diff_of(desk, gate, color=screen.colored)
    except GateError as absent:
        screen.warn(f"  {absent.message}")
        return
    screen.page(text) if text else screen.warn("  there is no work that was not committed")


def record_checkpoint(
    screen: Screen, desk: Desk, gate: Gate, said: tuple[str, str, str, int], flags: dict[str, Any]
) -> int:
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
