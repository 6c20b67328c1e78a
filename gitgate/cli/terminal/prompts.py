"""Command line: a person at a terminal is asked: line by line, in their editor, or between the steps of a run that they watch."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ...acts import open_gate
from ...acts.answering import Manner, respond
from ...context.targets import remote_of
from ...document import dataclass, field, replace
from ...errors import BadAnswer, Conflict, GateError
from ...gates.agency import is_protected
from ...gates.work import diff_of
from ...model import AWAITING
from ...model.gate import Gate, Question, Value
from ...questions import Given, forms
from ...questions.answers import read_answer, read_mapping
from ...questions.types import expected, field_kind, type_of
from ...render.letter import opening, question_part
from ...store import private_folder
from ...store.git.programs import edit_file
from ...text import ago, clip, neutral, one_line, wrap
from .. import FAILURE
from . import (
    NotYet,
    Pulse,
    Screen,
    choose_letter,
    forget_typed,
    read_lines,
    read_word,
    tell_trouble,
    wants_color,
    where,
)

if TYPE_CHECKING:
    from types import TracebackType

    from ...context import Desk
    from ...flows.engine import Engine

# A person at a terminal is shown the question and asked, line by line or in their editor. Nothing is
# written before all is answered.
#
# What was typed in the editor is kept beside the repository until the answer is recorded: no mistake and
# no crash loses it. `click.edit` writes to a file that it deletes, and does not ask git for the editor.


HELP, NEXT, LEAVE, CANCEL, STOP, LATER = "?", ":s", ":q", ":c", ":stop", "later"
OFFER = f"answer it, or: Enter for the next one, {LEAVE} to leave, {HELP} for help"


class NextGate(Exception):
    """Signal of a person who leaves this gate for later."""


class LeaveAll(Exception):
    """Signal of a person who leaves all gates; what was answered stays answered."""


class StopGate(Exception):
    """Signal of a person who ends the gate: the agent does not go on, and the words say why."""


class Cancelled(Exception):
    """Signal after a session: the gate is ended without an answer."""


def heed(screen: Screen, question: Question, word: str, *, empty: bool = True) -> bool:
    """Do what a typed word says where it is no answer; return True where the question is to be asked again.

    `empty`: Enter alone has a meaning.
    """
    word = word.strip()
    if word == HELP:
        screen.tell(f"  {type_of(question).help(question)}")
        if screen.in_turn:
            screen.tell(
                f"  Enter or {NEXT}: the next gate   {LEAVE} or Ctrl-D: leave; what was answered stays so"
            )
        if screen.may_stop:
            screen.tell(f"  {STOP} WHY: the agent does not go on")
        return True
    if screen.may_stop and word.partition(" ")[0] == STOP:
        reason = word.removeprefix(STOP).strip() or read_word("why? the agent reads it: ").strip()
        if reason:
            raise StopGate(reason)
        return True
    if screen.in_turn and is_left(screen, question, word, empty=empty):
        raise NextGate
    if screen.in_turn and word == LEAVE:
        raise LeaveAll
    if screen.empty_leaves and empty and not word:
        raise EOFError
    if screen.empty_leaves and word == CANCEL:
        raise Cancelled
    return False


def is_left(screen: Screen, question: Question, word: str, *, empty: bool) -> bool:
    """Return whether the person wants to answer another time.

    `later` means that only where it was offered, and where no option has that name.
    """
    if word == NEXT or (empty and not word):
        return True
    return screen.may_wait and word.casefold() == LATER not in map(str.casefold, question.labels)


# What a part of a schema may lean on elsewhere in the whole.
SHARED = ("$schema", "$defs", "definitions")
# What a prompt says of a field in its few words.
TOLD = frozenset({"type", "enum", "minimum", "maximum", "title", "description", "default"})


def ask_form(screen: Screen, question: Question) -> dict[str, object] | str:
    """Ask for a form until it fits its schema. A field is checked when it is given, the whole at the end."""
    schema = question.schema or {}
    fields = schema.get("properties")
    while True:
        if isinstance(fields, Mapping) and fields:
            value: dict[str, object] | str = ask_each(screen, question, schema, fields)
            if not value:  # an empty line to each is one to the form
                heed(screen, question, "")
        else:
            value = read_word("the form, as JSON on one line: ")
            if heed(screen, question, value):
                continue
            if not value.strip():
                raise NotYet
        try:
            read_mapping([question], {question.key: value})
        except BadAnswer as wrong:
            if not value:  # nor is there anything to mend
                raise NotYet from None
            screen.tell(f"  {wrong.words_without(question.key)}; once more")
        else:
            return value


def ask_each(
    screen: Screen, question: Question, schema: Mapping[str, object], fields: Mapping[str, object]
) -> dict[str, object]:
    needed = schema.get("required")
    required = needed if isinstance(needed, list) else []
    found: dict[str, object] = {}
    for name, detail in fields.items():
        value = ask_field(screen, question, (schema, name, detail), needed=name in required)
        if value is not None:
            found[name] = value[0]
    return found


def ask_field(
    screen: Screen, question: Question, field: tuple[Mapping[str, object], str, object], *, needed: bool
) -> tuple[object] | None:
    """Ask for a field's value, wrapped so that null is one too; None where it was left out."""
    schema, name, detail = field
    words = field_kind(detail)
    while True:
        text = read_word(f"{one_line(name)} ({words}{'' if needed else ', optional'}): ")
        if heed(screen, question, text, empty=needed):
            continue
        if not text.strip() and needed:
            raise NotYet
        if not text.strip():
            return None
        value, problem = fitting(schema, name, detail, text)
        if not problem:
            return (value,)
        if is_told(detail):
            problem = f"{quoted_line(text)} does not fit; expected {words}"
        screen.tell(f"  {problem.removeprefix(f'{name}: ')}")


def is_told(detail: object) -> bool:
    """Return whether the words in the prompt name all that the schema demands of the field."""
    return isinstance(detail, Mapping) and set(detail) <= TOLD


def quoted_line(text: str) -> str:
    return f'"{one_line(text, 40)}"'


def fitting(schema: Mapping[str, object], name: str, detail: object, text: str) -> tuple[object, str]:
    """Return the typed text as the field's value, and what is wrong with it by this field's part of the schema."""
    value = forms.coerce(schema, {name: text.strip()})[name]
    part = {key: schema[key] for key in SHARED if key in schema}
    problems = forms.validate({**part, "type": "object", "properties": {name: detail}}, {name: value})
    return value, "; ".join(problems[:2])


EDITOR = ":e"


def ask_in_terminal(screen: Screen, desk: Desk, gate: Gate, note: str) -> tuple[Given, str]:
    """Show the gate, ask each question until its answer fits. Ctrl-C and Ctrl-D leave with nothing written."""
    show_letter(screen, desk, gate)
    return ask_questions(screen, desk, gate, note)


def ask_offered(
    screen: Screen, desk: Desk, gate: Gate, note: str, offer: str, *, afresh: bool = False
) -> tuple[Given, str]:
    """Show the gate and what may be typed instead of an answer, and ask. `afresh`: what was typed before is dropped."""
    show_letter(screen, desk, gate)
    alone = len(gate.opened.questions) == 1
    if alone:
        present(screen, gate.opened.questions[0], several=False)
    screen.tell(f"\n{offer}")
    if afresh:
        forget_typed()
    return ask_questions(screen, desk, gate, note, presented=alone)


def ask_questions(
    screen: Screen, desk: Desk, gate: Gate, note: str, *, presented: bool = False
) -> tuple[Given, str]:
    """Ask each question until its answer fits. `presented`: the only question was shown already."""
    several = len(gate.opened.questions) > 1
    notes = [note] if note else []
    values: dict[str, object] = {}
    for question in gate.opened.questions:
        if several or not presented:
            present(screen, question, several=several)
        values[question.key] = ASK[type_of(question).entry](screen, desk, gate, question, notes)
    return Given(values=values), "\n".join(notes)


def show_letter(screen: Screen, desk: Desk, gate: Gate) -> None:
    cells = screen.letter_width
    stat = diff_of(desk, gate, stat=True, cells=cells - 3) if gate.opened.work.changed else ""
    aside(screen, opening(gate, desk.clock(), cells, stat=stat, color=screen.colored))


def present(screen: Screen, question: Question, *, several: bool) -> None:
    aside(screen, "\n" + question_part(question, screen.letter_width, several=several, numbered=True))


def aside(screen: Screen, text: str) -> None:
    """Print rendered text, which is neutral already, to standard error: standard output is for the verb's data."""
    import click

    screen.pulse.stop()
    click.echo(text, err=True, color=screen.colored)


def ask_line(screen: Screen, _desk: Desk, _gate: Gate, question: Question, notes: list[str]) -> object:
    """Ask until what was typed has a meaning that answers the question; say each time what was expected."""
    kind = type_of(question)
    while True:
        word = read_word(kind.prompt(question))
        if heed(screen, question, word):
            continue
        value, note = kind.understood(question, word, lambda: read_word("in your own words: "))
        notes += [note] if note else []
        try:
            read_mapping([question], {question.key: value})
        except BadAnswer as wrong:
            words = wrong.words_without(question.key)
            screen.tell(f"  {words}" if wrong.tells else f"  {words}; {expected(question)}")
        else:
            return value


def ask_text(screen: Screen, desk: Desk, gate: Gate, question: Question, _notes: list[str]) -> object:
    """Ask for text: Enter sends a line, what is pasted comes whole, a backslash goes on, and `:e` opens the editor."""
    while True:
        text = read_lines(type_of(question).prompt(question))
        if text.strip() == EDITOR:
            return read_in_editor(screen, desk, gate, question)
        if heed(screen, question, text):
            continue
        if text.strip():
            return text
        screen.tell(f"  an empty answer is not an answer; {expected(question)}")


def read_in_editor(screen: Screen, desk: Desk, gate: Gate, question: Question) -> Value:

    alone = replace(gate, opened=replace(gate.opened, questions=(question,)))
    given = write_answer(screen, desk, alone, Given())
    return read_mapping([question], {question.key: given.text})[question.key]


def ask_fields(screen: Screen, _desk: Desk, _gate: Gate, question: Question, _notes: list[str]) -> object:
    return ask_form(screen, question)


# By how the answer of a type is entered.
ASK: dict[str, Callable[[Screen, Desk, Gate, Question, list[str]], object]] = {
    "line": ask_line,
    "lines": ask_text,
    "fields": ask_fields,
}


LINE = "# ------------------------ >8 ------------------------"
CELLS = 78


def write_answer(screen: Screen, desk: Desk, gate: Gate, given: Given) -> Given:
    """Open the person's editor until the answer fits, and return that answer.

    An answer that does not fit is offered again, with its text and the reason.
    """
    path = draft_path(desk, gate)
    wrong, text = "", kept(path, gate, given)
    while True:
        private_folder(path.parent)
        path.write_text(document(gate, text, wrong), encoding="utf-8", errors="surrogateescape")
        screen.pulse.stop()
        edit_file(desk.repo, path, screen.env)
        text = below(path.read_text(encoding="utf-8", errors="surrogateescape"))
        try:
            return read_document(gate, text)
        except BadAnswer as unfit:
            wrong = unfit.message
            give_up_or_retry(screen, path, unfit, empty=blank(text, keys(gate.opened.questions)))


def give_up_or_retry(screen: Screen, path: Path, unfit: BadAnswer, *, empty: bool) -> None:
    """Return where the person edits the text again; else raise BadAnswer.

    An empty text means that they thought better of it. Without anybody to ask, the text is kept in its file.
    """
    if not empty and screen.interactive:
        screen.warn(f"{unfit.message}\nyour text is kept in {path}")
        if choose_letter("edit it again, or quit? [e/q]: ", "eq") == "e":
            return
    if empty:
        path.unlink(missing_ok=True)
        raise BadAnswer("nothing was written below the line, so nothing is recorded", hint=unfit.hint)
    raise BadAnswer(
        unfit.message, hint=f"{unfit.hint}\nyour text is kept in {path}; --edit goes on with it".strip()
    )


def discard(desk: Desk, gate: Gate) -> None:
    """Delete the draft of an answer that was recorded."""
    draft_path(desk, gate).unlink(missing_ok=True)


def draft_path(desk: Desk, gate: Gate) -> Path:
    return desk.repo.state_dir / "drafts" / f"{gate.id}.txt"


def kept(path: Path, gate: Gate, given: Given) -> str:
    """Return the text that the editor opens with.

    That is the given text, else what an earlier attempt left, else the form of an answer.
    """
    if given.text is not None:
        return given.text
    if path.exists() and not given.pairs:
        earlier = below(path.read_text(encoding="utf-8", errors="surrogateescape"))
        if not blank(earlier, keys(gate.opened.questions)):
            return earlier
    said = dict(given.pairs)
    return "\n".join(
        f"{key}: {said.get(key, '')}".rstrip() + "\n" for key in keys(gate.opened.questions)
    ).rstrip("\n")


def keys(questions: tuple[Question, ...]) -> list[str]:
    """Return the sections of an answer: one for each question, or one for each field of the only form."""
    if len(questions) > 1:
        return [question.key for question in questions]
    return type_of(questions[0]).sections(questions[0])


def document(gate: Gate, text: str, wrong: str) -> str:
    return f"{comments(gate, wrong)}\n{LINE}\n{text}\n"


def comments(gate: Gate, wrong: str) -> str:
    """Return the question as comments above the line."""
    questions = gate.opened.questions
    parts = [f"NOT RECORDED: {neutral(wrong)}"] if wrong else []
    parts.append(f"{gate.id}: {one_line(gate.opened.title)}")
    parts += [question_part(question, CELLS, several=len(questions) > 1) for question in questions]
    if gate.opened.context:
        parts.append(wrap(neutral(gate.opened.context), CELLS, "  "))
    parts.append(advice(questions))
    lines = "\n\n".join(parts).split("\n")
    return "\n".join(f"# {line}".rstrip() for line in lines)


def advice(questions: tuple[Question, ...]) -> str:
    names = keys(questions)
    how = "each part after its name" if names else expected(questions[0])
    return f"Write your answer below the line ({how}).\nNothing is recorded if it is left empty."


def below(text: str) -> str:
    """Return the answer, which the person writes below the line.

    Where the line is gone, or only the space above it was used, return all that is no comment there.
    """
    lines = text.splitlines()
    place = lines.index(LINE) if LINE in lines else len(lines)
    answer = "\n".join(lines[place + 1 :]).strip("\n")
    above = "\n".join(line for line in lines[:place] if not line.startswith("#")).strip("\n")
    return answer if answer.strip() or not above.strip() else above


def blank(text: str, names: list[str]) -> bool:
    """Return whether a text is empty: names of sections alone are nothing."""
    empty = {f"{name}:" for name in names}
    return all(not line.strip() or line.strip() in empty for line in text.splitlines())


def read_document(gate: Gate, text: str) -> Given:
    """Read the text as an answer that fits; BadAnswer says what does not."""
    questions = gate.opened.questions
    if blank(text, keys(questions)):
        raise BadAnswer("an empty answer is not an answer", hint=expected(questions[0]))
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise BadAnswer("the answer is not UTF-8 text", hint="save it as UTF-8")
    only = questions[0]
    given = Given(text=text) if len(questions) > 1 else type_of(only).written(only, text)
    read_answer(questions, given)
    return given


def has_editor(screen: Screen, desk: Desk) -> bool:
    """Return whether the person chose an editor, or sits at the terminal to use git's default one."""
    return (
        sys.stdin.isatty()
        or any(screen.env.get(name) for name in ("GIT_EDITOR", "VISUAL", "EDITOR"))
        or "core.editor" in desk.settings.git
    )


# A run as a person has it before them: a line that shows which agents work, and its question as soon as
# it waits.
#
# Where a run waits, its process ends in the middle of the flow. At a terminal another program takes its
# place there: it asks, and goes on with the run once that is answered.


OURS = f"{Path(__file__).parents[2]}{os.sep}"
TICK = 0.1
HOLDS = 0.3
"""What was printed has the line for so long: it may come in pieces."""
FRAMES = ("⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏")
PLAIN_FRAMES = ("|", "/", "-", "\\")
CLEARED = "\r\x1b[K"
RUN_OFFER = f"answer it, or: {LATER} (or Enter) leaves the run waiting, ? for help"


@dataclass(frozen=False)
class AgentLine(Pulse):
    """Line at the foot of a terminal: the agents that work, their steps and ages. Whatever is printed takes its place.

    While a function of the flow works nothing is drawn, since it may print.
    """

    engines: list[Engine] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)
    shown: bool = False
    free_at: float = 0.0
    turns: int = 0

    def follow(self, engine: Engine) -> None:
        """Show the agents of this engine, too; the first engine begins the line."""
        self.engines.append(engine)
        if len(self.engines) == 1:
            threading.Thread(target=self.keep_drawing, daemon=True, name="line").start()

    def start(self, words: str, say: Callable[[str], None]) -> None:
        """Announce something that takes long, unless an agent works: then the agents' line shows it already."""
        if not any(engine.at_work for engine in self.engines):
            super().start(words, say)

    def stop(self) -> None:
        super().stop()
        with self.turn:
            self.free_at = time.monotonic() + HOLDS
            self.clear()

    def keep_drawing(self) -> None:
        while True:
            time.sleep(TICK)
            with self.turn:
                if time.monotonic() >= self.free_at:
                    self.draw()

    def draw(self) -> None:
        words = self.words()
        if not words:
            self.clear()
            return
        from shutil import get_terminal_size

        frames = FRAMES if (sys.stderr.encoding or "").lower().startswith("utf") else PLAIN_FRAMES
        frame, self.turns = frames[self.turns % len(frames)], self.turns + 1
        self.write(f"{CLEARED}{clip(f'{frame} {words}', get_terminal_size((80, 24)).columns - 1)}\r")
        self.shown = True

    def words(self) -> str:
        """Return each agent that works, since when, and in which step; empty where a function works as well."""
        found = []
        for engine in list(self.engines):
            for step, (agent, since) in list(engine.at_work.items()):
                if not agent:
                    return ""
                found.append(f"{one_line(agent, 40)} {ago(engine.run_desk.clock() - since)} ({step})")
        return "   ".join(found)

    def clear(self) -> None:
        if self.shown:
            self.write(CLEARED)
            self.shown = False

    def write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self.engines.clear()  # the terminal has gone; the run goes on


def show_agents(screen: Screen) -> Callable[[Engine], None]:
    """Return the function that is called with each engine of a run.

    On a terminal that can show it, the function draws what the engine's agents do from then on.
    """
    if not sys.stderr.isatty() or screen.as_json or screen.quiet:
        return lambda _engine: None
    if not wants_color(screen.color, screen.env, screen.settings, terminal=True):
        return lambda _engine: None
    screen.pulse.stop()
    screen.pulse = line = AgentLine()
    return line.follow


def end_fork(screen: Screen) -> NoReturn:
    """End a process that a step's function forked and that came back from it, and say why.

    Such a process has to end within the function: everything that it has belongs to the first process as well.
    """
    screen.warn(
        "a process that a step forked came back from its function, and ends; the run goes on in the first one"
    )
    screen.warn("  end it in the function, by os._exit(0), or use subprocess or multiprocessing")
    sys.stderr.flush()
    os._exit(FAILURE)


def tell_where(screen: Screen, desk: Desk, commit: str, flow: str) -> None:
    """Say that a server could go on with the run, and will not: its code here is not on the protected branch.

    Changes in this working tree count as part of that code. Without a remote nothing is said.
    """
    if remote_of(desk) is not None and not is_protected(desk, commit):
        screen.say(
            "this code is not on the protected branch, as it is here: answers go on with the run here alone"
        )
        screen.say(
            f"  to have a server go on with it, with that branch's code: git gate run {flow} --protected"
        )


def frames_of_flow(raised: BaseException) -> TracebackType | None:
    """Return the traceback from the flow's own first line on: what calls the flow does not concern its author."""
    found = raised.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename.startswith(OURS):
        found = found.tb_next
    return found or raised.__traceback__


def may_ask(screen: Screen, desk: Desk) -> bool:
    """Return whether a person sits at this terminal, and this is no agent's process."""
    return screen.interactive and not desk.agent_here()


def offer(screen: Screen, desk: Desk, gate_id: str) -> bool:
    """Ask what a run waits for, as `git gate respond` asks it; return whether it is decided, by whomever."""
    gate = open_gate(desk, gate_id)
    if gate.state != AWAITING:
        screen.say(f"gate {gate.id} is {gate.state} already")
        return True
    screen.warn("")
    try:
        asking = replace(screen, in_turn=True, may_wait=True)
        given, note = ask_offered(asking, desk, gate, "", RUN_OFFER, afresh=True)
    except NextGate:
        return False
    try:
        done = respond(desk, gate, given, Manner(note=note, seen=gate.tip))
    except GateError as refused:
        screen.warn(f"{refused.message}{f'; {refused.hint}' if refused.hint else ''}")
        return isinstance(refused, Conflict)
    tell_trouble(screen, done.published)
    came = (
        done.answer.verdict
        if done.counted
        else f"one of the {gate.opened.quorum} answers alike that are needed"
    )
    screen.say(f"gate {gate.id}: {came}; {where(desk, done.published)}")
    return done.counted
