"""Command line: `git gate respond`, with the whole grammar of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ...acts import answering, find_anywhere, open_gate
from ...acts.answering import BatchFate, Manner, check_open, matching, respond, respond_all
from ...context import open_desk
from ...context.targets import summaries
from ...document import replace
from ...errors import BadAnswer, GateError, UnknownGate, Usage
from ...gates import Filter, list_gates
from ...model import AWAITING, is_prefix
from ...model.gate import Gate
from ...questions import Given, each
from ...questions.types import typed
from ...text import one_line
from .. import BY_KIND, DONE, WAITING
from ..terminal import (
    SAVED,
    NotYet,
    Screen,
    VerbCommand,
    complete_ids,
    refuse_dash,
    sharing,
    tell_trouble,
    through_option,
    verb,
    where,
)

if TYPE_CHECKING:
    from ...acts.answering import Responded
    from ...context import Desk
    from ...record import Summary


def complete_answers(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the labels of the gate whose id was typed before; none where the gate cannot be found."""
    screen = context.find_object(Screen) or Screen()
    try:
        desk = open_desk(screen.start, screen.env)
        questions = open_gate(desk, context.params.get("gate_id")).opened.questions
    except (GateError, OSError):
        return []
    labels = [label for question in questions for label in question.labels] if len(questions) == 1 else []
    return [label for label in labels if label.casefold().startswith(incomplete.casefold())]


ANSWER_FLAGS = (
    click.option("--approve", is_flag=True, help="Yes."),
    click.option("--reject", is_flag=True, help="No; the agent goes on, knowing it."),
    click.option(
        "-a",
        "--answer",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="One of several answers, or of a form.",
    ),
    click.option("--other", metavar="TEXT", help="Your own words in place of an option."),
    click.option("--note", default="", help="A word to go with the answer."),
)


def answer_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of an answer to a verb: to `respond`, and to each verb that takes one with its question."""
    for option in reversed(ANSWER_FLAGS):
        command = option(command)
    return command


@click.command("respond", cls=VerbCommand)
@click.argument("gate_id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.argument("answer", required=False, shell_complete=complete_answers)
@click.option("-m", "--message", "message", metavar="TEXT", help="The answer, when no id is given.")
@answer_flags
@click.option("--edit", "-e", "edit", is_flag=True, help="Write the answer in your editor.")
@click.option("--each", is_flag=True, help="Every waiting gate in turn.")
@click.option("--match", metavar="TEXT", help="With --each: only gates whose title or question holds TEXT.")
@click.option("--template", metavar="NAME", help="Answer with a prepared text from the settings.")
@click.option("--sign/--no-sign", default=None, help="Sign the answer with your key.")
@click.option("--amend", is_flag=True, help="Correct your answer, until an agent takes it.")
@click.option(
    "--seen", metavar="COMMIT", help="The commit of the gate that you read; refused if it has changed since."
)
@click.option(
    "--later", metavar="2h", help="No answer now: put it aside for so long. It still waits (exit 8)."
)
@click.option("--no-resume", is_flag=True, help="Do not resume the agent from here.")
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@through_option
@verb
def respond_command(screen: Screen, gate_id: str | None, answer: str | None, **flags: Any) -> int:
    """Answer a gate.

    One word alone is always an id. With one gate waiting, no id is needed: use -m, --approve, --reject or -a.
    Without an answer, and on a terminal, it asks.

    \b
    git gate respond 7k2f Postgres        a label, a unique beginning of one, or '#2'
    git gate respond 7k2f --other "MySQL, we have it already"
    git gate respond 7k2f --approve --note "after 18:00 only"
    git gate respond 7k2f -a db=Postgres -a region=eu
    """
    refuse_dash(answer if answer is not None else flags["message"], "git gate respond ID")
    given = given_in_flags(answer, flags)
    desk = screen.desk(meanwhile=load_acts)
    desk.records.objects.begin()  # while the processes above are looked at
    desk.refuse_agents("respond")
    if flags["later"] is not None:
        return answer_later(screen, desk, gate_id, given, flags)
    if flags["template"]:
        given = from_template(desk, given, flags["template"])
    if flags["each"] or flags["match"] is not None:
        return respond_each(screen, desk, gate_id, given, flags)
    try:
        gate = find_anywhere(open_gate, desk, gate_id)
    except UnknownGate as unknown:
        raise taken_for_id(desk, unknown, gate_id, answer) from None
    if gate_id is None and not screen.interactive:
        screen.say(f"gate {gate.id}: {gate.opened.title}")
    try:
        done = answer_one(screen, desk, gate, given, flags)
    except BadAnswer as unfit:
        raise nameless(unfit) from None
    except NotYet:
        screen.say(f"the gate still waits: git gate respond {gate.id[:6]}")
        return WAITING
    return tell_answered(screen, desk, done, resume=not flags["no_resume"])


def load_acts() -> None:
    from ...acts import answering  # noqa: F401


def answer_later(screen: Screen, desk: Desk, gate_id: str | None, given: Given, flags: dict[str, Any]) -> int:
    """Put a gate aside; it still waits, and its deadline counts."""
    if not given.nothing or flags["each"] or flags["match"] is not None or flags["template"]:
        raise Usage("--later is no answer, and is of one gate", hint="git gate respond ID --later 2h")
    published = answering.edit(
        desk, find_anywhere(open_gate, desk, gate_id), later=flags["later"], push=flags["push"]
    )
    gate = published.gate
    tell_trouble(screen, published)
    until = f"later until {gate.later}" if gate.later else "no longer put aside"
    first = gate.deadline is not None and gate.later is not None and gate.deadline < gate.later
    screen.emit("gate", {"id": gate.id, "state": gate.state, "later": gate.later}, "")
    screen.say(f"gate {gate.id}: {until}{f'; its deadline comes first: {gate.deadline}' if first else ''}")
    return WAITING


def nameless(unfit: Usage) -> Usage:
    """Return the error without the name of the only question: it needs none, and its key is one that we gave it."""
    unfit.message = unfit.words_without("answer")
    return unfit


def taken_for_id(desk: Desk, unknown: UnknownGate, gate_id: str | None, answer: str | None) -> UnknownGate:
    """Return the error for an unknown id, with how to give the word as an answer: one word alone is always an id."""
    if gate_id is None or answer is not None or any(c.isdigit() for c in gate_id):
        return unknown
    from shlex import quote

    waiting = [one.id[:6] for one in summaries(desk) if one.state == AWAITING]
    if len(waiting) == 1:
        hint = f"to answer the only gate that waits: git gate respond -m {quote(gate_id)}"
    elif waiting and not is_prefix(gate_id.strip().lower()):
        others = f"   (or {', '.join(waiting[1:5])}; what each asks: git gate list)"
        hint = f"an id comes first: git gate respond {waiting[0]} {quote(gate_id)}{others}"
    else:
        return unknown
    return UnknownGate(unknown.message, hint=hint)


def given_in_flags(answer: str | None, flags: dict[str, Any]) -> Given:
    """Return the answer as it was typed, before it is known which question it answers."""
    if flags["approve"] and flags["reject"]:
        raise Usage("--approve or --reject, not both", hint="git gate respond ID --approve")
    if answer is not None and flags["message"] is not None:
        raise Usage("give the answer once: as a word, or with -m", hint="git gate respond ID ANSWER")
    text = flags["message"] if answer is None else answer
    approve = True if flags["approve"] else False if flags["reject"] else None
    return Given(
        text=text, approve=approve, pairs=tuple(pair(word) for word in flags["pairs"]), other=flags["other"]
    )


def pair(word: str) -> tuple[str, str]:
    key, mark, value = word.partition("=")
    if not mark or not key.strip():
        raise Usage(f"-a takes KEY=VALUE; found {word!r}", hint="git gate respond ID -a KEY=VALUE")
    return key.strip(), value


def answer_one(screen: Screen, desk: Desk, gate: Gate, given: Given, flags: dict[str, Any]) -> Responded:
    check_open(gate, desk.person(), amend=flags["amend"])
    note = flags["note"]
    if flags["edit"]:
        given = edited(screen, desk, gate, given)
    elif given.nothing:
        given, note = ask_person(screen, desk, gate, note)
    manner = Manner(
        note=note,
        seen=flags["seen"] or gate.tip,
        amend=flags["amend"],
        sign=flags["sign"],
        push=flags["push"],
        via=flags["via"],
        **delivery(desk, flags),
    )
    try:
        done = respond(desk, gate, given, manner)
    except GateError as refused:
        if flags["edit"]:
            from ..terminal.prompts import draft_path

            refused.hint = f"{refused.hint}\nyour text is kept in {draft_path(desk, gate)}".strip()
        raise
    if flags["edit"]:
        from ..terminal.prompts import discard

        discard(desk, gate)
    return done


def delivery(desk: Desk, flags: dict[str, Any]) -> dict[str, Any]:
    """Return how an answer is acted on: where this clone may resume agents, it starts the agent here.

    The code for that is loaded only where it is allowed.
    """
    if not desk.settings.flag("resumeHere"):
        return {}
    from ...resumption.calls import deliver_here, leave_here

    return {"deliver": leave_here if flags["no_resume"] else deliver_here}


def edited(screen: Screen, desk: Desk, gate: Gate, given: Given) -> Given:
    from ..terminal.prompts import has_editor, write_answer

    if given.approve is not None or given.other is not None:
        raise Usage("--edit writes the answer; --approve, --reject and --other cannot stand beside it")
    if not has_editor(screen, desk):
        raise Usage(
            "--edit needs a terminal, or an editor that works without one",
            hint=f"git gate respond {gate.id} ANSWER",
        )
    return write_answer(screen, desk, gate, given)


def from_template(desk: Desk, given: Given, name: str) -> Given:
    """Return a prepared answer, which only this machine's configuration has: `git config gitgate.template.NAME TEXT`."""
    if not given.nothing:
        raise Usage("--template is the answer; nothing else can stand beside it")
    prefix = "gitgate.template."
    text = desk.settings.git.get(prefix + name.lower())  # git keeps the last part of a name in small letters
    if text is None:
        known = ", ".join(k.removeprefix(prefix) for k in desk.settings.git if k.startswith(prefix)) or "none"
        raise Usage(
            f"there is no template {name!r}; prepared here: {known}",
            hint=f"git config gitgate.template.{name} 'Use the staging database.'",
        )
    return Given(text=text)


def ask_person(screen: Screen, desk: Desk, gate: Gate, note: str) -> tuple[Given, str]:
    """Show the question and ask the person, since no answer was given; refuse where nobody is there."""
    if not screen.interactive:
        questions = gate.opened.questions
        hint = (
            each(questions)
            if len(questions) > 1
            else f"{typed(questions[0]).replace(' ID ', f' {gate.id[:6]} ')}   git gate show {gate.id[:6]}"
        )
        raise Usage(f"no answer given to gate {gate.id}", hint=hint)
    from ..terminal.prompts import ask_in_terminal

    return ask_in_terminal(screen, desk, gate, note)


def tell_answered(screen: Screen, desk: Desk, done: Responded, *, resume: bool = True) -> int:
    """Say what was recorded, where it went, and what happens next; return the exit code."""
    gate = done.gate
    if screen.as_json:
        from ...acts.sessions import session_facts
        from ...render import shapes

        facts = session_facts(desk, [gate])[gate.id]
        screen.emit("gate", shapes.gate(gate, pushed=done.published.pushed, **facts), "")
    tell_trouble(screen, done.published)
    screen.say(f"gate {gate.id}{' ' if done.counted else ': '}{recording_words(desk, done, resume=resume)}")
    if not screen.quiet and left_to_this_clone(desk, done):
        screen.say_once(desk)
    return DONE


def left_to_this_clone(desk: Desk, done: Responded) -> bool:
    """Return whether nothing but this clone, in which the agent asked, would start it again."""
    from ...context.machine import find_presence

    published = done.published
    if (
        desk.settings.flag("initialised")
        or published.log
        or (published.pushed and (published.told == "" or on_forge(desk, published.remote)))
    ):
        return False
    return find_presence(desk, done.gate.id) is not None


def what_next(desk: Desk, done: Responded, *, resume: bool = True) -> str:
    """Return the last words on an answer: where it is, and what acts on it."""
    gate, published = done.gate, done.published
    if published.log:
        return f"resuming here (log {published.log})"
    went = where(desk, published)
    if gate.opened.delivery == "none":
        reads = f"nothing will resume this by itself: git gate check {gate.id[:4]} reads it"
        return went if went == SAVED else f"{went}; {reads}" if published.pushed else reads
    if gate.opened.delivery == "wait":
        heard = waited_for(desk, gate)
        if went == SAVED or heard:
            return went if went == SAVED else f"{went}; {heard}"
    if published.pushed:
        return f"{went}; {acts_there(desk, done, resume=resume)}"
    return went if went == SAVED else f"nothing will resume this by itself: git gate resume {gate.id[:4]}"


def waited_for(desk: Desk, gate: Gate) -> str:
    """Return the words that say who hears an answer that somebody blocked on.

    They are empty where nobody waits any more, and the saved session is to be resumed.
    """
    from ...claims.attending import attended

    reads = f"git gate check {gate.id[:4]} reads it"
    waits = attended(desk, gate)
    if waits is None:
        return f"whoever waits for it hears it; {reads} as well"
    if waits:
        return "somebody waits for it"
    return "" if gate.opened.session is not None else f"nobody waits for it any more: {reads}"


def acts_there(desk: Desk, done: Responded, *, resume: bool) -> str:
    """Return the words that say what acts on a pushed answer.

    A server has a hook. A forge has none for gates, so that it is asked for a job here.
    """
    if not on_forge(desk, done.published.remote):
        return hook_acts(desk, done)
    from ...gates.agency import kept_back

    if kept_back(desk, [done.gate]):
        return no_job(desk, done.gate)
    if not resume:
        return f"to resume it: git gate github dispatch {done.gate.id[:6]}"
    from ...surfaces.forge.accept import after_answer

    sent = after_answer(desk, done.gate)
    if sent is None:
        return f"nothing will resume this by itself: git gate resume {done.gate.id[:4]}"
    return f"a job resumes it: {sent.url}" if sent.url else sent.why


def no_job(desk: Desk, gate: Gate) -> str:
    """Return why no job resumes the agent: its session stayed where it asked.

    The words say how to start it there. In that clone they also say what would let a job do so the next time.
    """
    from ...context.machine import find_presence

    how = f" ({sharing(desk)})" if find_presence(desk, gate.id) is not None else ""
    return f"no job has its session{how}; {resumed_by_hand(desk, gate)}"


def hook_acts(desk: Desk, done: Responded) -> str:
    """Return whether the server's hook resumes the agent, else who can still start it.

    Only what the server itself said is promised.
    """
    told = done.published.told
    if told == "":
        return "its hook resumes it"
    why = (
        "no hook there said that it resumes it"
        if told is None
        else f"it is not resumed there ({one_line(told)})"
    )
    return f"{why}; {resumed_by_hand(desk, done.gate)}"


def resumed_by_hand(desk: Desk, gate: Gate) -> str:
    """Return the words that say how and where to resume the agent.

    Its session is taken to be where it asked: more is not known.
    """
    from ...context.machine import find_presence

    command = f"git gate resume {gate.id[:4]}"
    asked = gate.opened.asked
    if find_presence(desk, gate.id) is not None:
        return f"nothing will resume this by itself: {command}"
    directory = f" in {one_line(asked.directory)}" if asked.directory else ""
    place = f"on {one_line(asked.host)}{directory}" if asked.host else "elsewhere"
    return f"it was asked {place}: there, {command}, or a git gate worker"


def on_forge(desk: Desk, remote: str | None) -> bool:
    """Return whether the remote is a forge, by the configuration alone, so that elsewhere no code of forges is loaded."""
    address = desk.settings.git.get(f"remote.{remote}.url", "").lower()
    known = "github.com" in address or ".ghe.com" in address
    return known or bool(desk.settings.text("forge")) or bool(desk.settings.env.get("GITHUB_API_URL"))


HINT = "git gate respond --each --match deploy --approve"


def respond_each(screen: Screen, desk: Desk, gate_id: str | None, given: Given, flags: dict[str, Any]) -> int:
    """Answer each waiting gate; the exit code is the worst of all."""
    check_given(screen, gate_id, given, flags)
    chosen = waiting(desk, flags["match"])
    fates = (
        all_alike(desk, chosen, given, flags) if not given.nothing else in_turn(screen, desk, chosen, flags)
    )
    report(screen, desk, fates)
    return max((code_of(fate) for fate in fates), default=DONE)


def check_given(screen: Screen, gate_id: str | None, given: Given, flags: dict[str, Any]) -> None:
    if gate_id is not None:
        raise Usage(
            "--each goes through every waiting gate; an id or a word cannot stand beside it",
            hint=f"{HINT}, or -m TEXT",
        )
    for name in ("amend", "seen", "edit"):
        if flags[name]:
            raise Usage(f"--{name} is about one gate; it cannot stand beside --each")
    if not given.nothing and flags["match"] is None:
        raise Usage("one answer for all of them? say for which: --match TEXT", hint=HINT)
    if given.nothing and not screen.interactive:
        raise Usage("no answer given, and no terminal to ask on", hint=HINT)


def waiting(desk: Desk, match: str | None) -> list[Summary]:
    found = list_gates(desk, Filter(states=("awaiting",)))
    chosen = found if match is None else matching(found, match)
    if not chosen:
        words = (
            f"no waiting gate has {match!r} in its title or question"
            if found
            else "no gate waits for an answer"
        )
        raise UnknownGate(words, hint="git gate list")
    return chosen


def manner_of(flags: dict[str, Any], note: str | None = None) -> Manner:
    said = flags["note"] if note is None else note
    return Manner(note=said, via=flags["via"], sign=flags["sign"], push=flags["push"])


def all_alike(desk: Desk, chosen: Sequence[Summary], given: Given, flags: dict[str, Any]) -> list[BatchFate]:
    return [begun(desk, fate, flags) for fate in respond_all(desk, chosen, given, manner_of(flags))]


def begun(desk: Desk, fate: BatchFate, flags: dict[str, Any]) -> BatchFate:
    """Start a runner for an answered gate whose agent ran here, if nobody was first.

    The answer is published with the others.
    """
    if fate.done is None or not delivery(desk, flags):
        return fate
    from ...claims import leave_to_others
    from ...resumption.calls import call, may_resume_here

    done = fate.done
    if flags["no_resume"]:
        leave_to_others(desk, done.gate)
        return fate
    if not may_resume_here(desk, done.gate, flags["push"]):
        return fate
    return replace(fate, done=replace(done, published=replace(done.published, log=call(desk, fate.id))))


def in_turn(screen: Screen, desk: Desk, chosen: Sequence[Summary], flags: dict[str, Any]) -> list[BatchFate]:
    """Ask about one gate after the other; each is answered, or left for later.

    However this ends, what was answered stays answered.
    """
    from ..terminal.prompts import LeaveAll, NextGate

    fates: list[BatchFate] = []
    prompting = replace(screen, in_turn=True)
    try:
        for place, summary in enumerate(chosen, 1):
            screen.warn(f"\n── {place} of {len(chosen)} ──")
            gate = desk.records.load(summary.id, summary.tip)
            try:
                fates.append(one(prompting, desk, gate, flags))
                came_of_it = fate_words(desk, fates[-1])
            except NextGate:
                came_of_it = "left for later"
            if place < len(chosen):  # the last one is told with all of them
                screen.tell(f"{place} of {len(chosen)}: gate {gate.id}: {came_of_it}")
    except LeaveAll:
        return fates
    except (EOFError, KeyboardInterrupt):
        report(screen, desk, fates)
        raise
    return fates


def one(screen: Screen, desk: Desk, gate: Gate, flags: dict[str, Any]) -> BatchFate:
    from ..terminal.prompts import OFFER, ask_offered

    given, note = ask_offered(screen, desk, gate, flags["note"], OFFER)
    manner = replace(manner_of(flags, note), seen=gate.tip, **delivery(desk, flags))
    try:
        done = respond(desk, gate, given, manner)
    except GateError as refused:
        return BatchFate(gate.id, gate.opened.title, error=refused)
    return BatchFate(gate.id, gate.opened.title, done)


def fate_words(desk: Desk, fate: BatchFate) -> str:
    """Return the words that say what was recorded and what acts on it, or why nothing was recorded."""
    if fate.done is None:
        return fate.error.message if fate.error is not None else ""
    return recording_words(desk, fate.done)


def recording_words(desk: Desk, done: Responded, *, resume: bool = True) -> str:
    if done.counted:
        return f"{done.answer.verdict}: {what_next(desk, done, resume=resume)}"
    needed = f"one of the {done.gate.opened.quorum} answers alike that are needed"
    return f"your answer is {needed}; {where(desk, done.published)}"


def code_of(fate: BatchFate) -> int:
    return BY_KIND[fate.error.kind] if fate.error else DONE


def report(screen: Screen, desk: Desk, fates: Sequence[BatchFate]) -> None:
    """Print each gate's fate: a line for each, or one JSON list."""
    lines = [
        f"{fate.id}  {one_line(fate.title, 40):<40}  {one_line(fate_words(desk, fate))}" for fate in fates
    ]
    fields = {"gates": [shape(desk, fate) for fate in fates]} if screen.as_json else {}
    screen.emit("answers", fields, "\n".join(lines))


def shape(desk: Desk, fate: BatchFate) -> dict[str, object]:
    from ...acts.sessions import session_facts
    from ...render import shapes

    gate = error = None
    if fate.done:
        facts = session_facts(desk, [fate.done.gate])[fate.done.gate.id]
        gate = shapes.gate(fate.done.gate, pushed=fate.done.published.pushed, **facts)
    if fate.error is not None:
        error = {"code": fate.error.code, "message": fate.error.message, "hint": fate.error.hint}
    return {"id": fate.id, "title": fate.title, "code": code_of(fate), "gate": gate, "error": error}
