"""Surfaces: what a key on the desk means: a command of git gate's on a gate as it was shown; and the seconds in which it can be
taken back before it is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from ...errors import GateError, Usage
from ...model.gate import Gate, Question
from ...questions.answers import read_answer
from ...questions.base import Given
from ...questions.types import type_of
from ...store.git.programs import our_command, run_beside
from ...text.display import one_line

STALE = 6
SEEN = "--seen"
# What the person did is recorded as done here; who types the same does it by the command line.
HERE = ("--via", "desk")


@dataclass(frozen=True)
class GateCommand:
    """What is typed after `git gate`, where, and what it comes to in a word or two."""

    place: Path
    gate: str
    words: tuple[str, ...]
    does: str

    def shown(self, *, there: bool) -> str:
        """As a person would type it who has the gate before them; `there`: it is not the repository that they stand in."""
        where = f"-C {quote(str(self.place))} " if there else ""
        words = self.words[:-2] if self.words[-2:] == HERE else self.words
        words = words[:-2] if words[-2:-1] == (SEEN,) else words
        return f"git gate {where}{' '.join(map(quote, words))}"

    @property
    def argv(self) -> list[str]:
        return our_command(*self.words, at=self.place)


def short(gate: Gate) -> str:
    return gate.id[:6]


def the_only(gate: Gate) -> Question:
    """A key answers one question; several are answered in the editor."""
    questions = gate.opened.questions
    if len(questions) > 1:
        raise Usage(
            f"gate {short(gate)} asks {len(questions)} questions at once: e answers them in your editor",
            hint=f"git gate respond {short(gate)} --edit",
        )
    return questions[0]


def approving(place: Path, gate: Gate, *, yes: bool, amend: bool = False) -> GateCommand:
    """What `a` and `r` mean; refused at once where they are no answer to the question."""
    the_only(gate)
    read_answer(gate.opened.questions, Given(approve=yes))
    does = "approve" if yes else "reject"
    return respond_with(place, gate, (f"--{does}",), does, amend=amend)


def choosing(place: Path, gate: Gate, number: int, *, amend: bool = False) -> GateCommand:
    """What a digit means: the option at that place."""
    question = the_only(gate)
    labels = question.labels
    if type_of(question).approves and not labels:
        raise Usage(f"gate {short(gate)} asks yes or no: a approves, r rejects")
    if not 1 <= number <= len(labels):
        expected = (
            f"options 1 to {len(labels)}"
            if labels
            else "no options; e answers it in your editor, m in a line"
        )
        raise Usage(f"gate {short(gate)} has {expected}")
    label = labels[number - 1]
    return respond_with(place, gate, answer_words(question, label), label, amend=amend)


def saying(place: Path, gate: Gate, words: str, *, amend: bool = False) -> GateCommand:
    """An answer in one line: to a choice a label, a number, or words of one's own."""
    question = the_only(gate)
    try:
        read_answer(gate.opened.questions, Given(text=words))
    except GateError:
        if not question.other:
            raise
        read_answer(gate.opened.questions, Given(other=words))
        return respond_with(place, gate, ("--other", words), words, amend=amend)
    return respond_with(place, gate, answer_words(question, words), words, amend=amend)


def answer_words(question: Question, text: str) -> tuple[str, ...]:
    """What begins with `-` or `@` would be read as something else."""
    return ("-a", f"{question.key}={text}") if text[:1] in ("-", "@") else (text,)


def respond_with(place: Path, gate: Gate, words: tuple[str, ...], does: str, *, amend: bool) -> GateCommand:
    """Bound to the very commit that was shown."""
    more = ("--amend",) if amend else ()
    argv = ("respond", short(gate), *words, *more, SEEN, gate.tip, *HERE)
    return GateCommand(place, gate.id, argv, one_line(does, 40))


def stopping(place: Path, name: str, reason: str) -> GateCommand:
    """The end of a gate or of a run."""
    return GateCommand(place, name, ("stop", name[:6], "--reason", reason, *HERE), "stop")


def deferring(place: Path, gate: Gate, duration: str) -> GateCommand:
    return GateCommand(place, gate.id, ("edit", short(gate), "--later", duration), f"later: {duration}")


@dataclass(frozen=True)
class CommandResult:
    """What came of a command: its words, and its exit code."""

    command: GateCommand
    code: int
    words: str

    @property
    def stale(self) -> bool:
        return self.code == STALE


def run_gate_command(command: GateCommand, env: Mapping[str, str]) -> CommandResult:
    """Run it beside the desk, and hear what it says. `--json` has an error as words and a hint."""
    said = run_beside([*command.argv, "--json"], command.place, env)
    if said.code == 0:
        return CommandResult(command, 0, one_line(said.err.strip()) or f"gate {command.gate[:6]}: done")
    try:
        error = json.loads(said.out)["error"]
        words = f"{error['message']}{f' — {hint}' if (hint := error.get('hint')) else ''}"
    except (ValueError, KeyError, TypeError):
        words = said.err.strip() or said.out.strip() or f"exit {said.code}"
    return CommandResult(command, said.code, one_line(words))


@dataclass(frozen=True)
class PendingCommand:
    command: GateCommand
    due: float


@dataclass
class DecisionQueue:
    """Decisions that can still be taken back: each is run when its seconds are over, or when the desk is left."""

    seconds: float
    monotonic: Callable[[], float]
    waiting: list[PendingCommand] = field(default_factory=list)

    def add(self, command: GateCommand) -> None:
        """Of one gate the last word counts."""
        self.drop(command.gate)
        self.waiting.append(PendingCommand(command, self.monotonic() + self.seconds))

    def drop(self, gate: str) -> GateCommand | None:
        found = next((one for one in self.waiting if one.command.gate == gate), None)
        if found is not None:
            self.waiting.remove(found)
        return found.command if found is not None else None

    def undo(self, gate: str | None = None) -> GateCommand | None:
        """Take back what is about to be said at this gate, else what was decided last; None where nothing waits."""
        if gate is not None and any(one.command.gate == gate for one in self.waiting):
            return self.drop(gate)
        return self.waiting.pop().command if self.waiting else None

    def due(self) -> list[GateCommand]:
        """Those whose time is over; they cannot be taken back any more."""
        now = self.monotonic()
        ready = [one for one in self.waiting if one.due <= now]
        self.waiting = [one for one in self.waiting if one.due > now]
        return [one.command for one in ready]

    def all(self) -> list[GateCommand]:
        """Everything, now: whoever leaves the desk does not wait."""
        ready, self.waiting = self.waiting, []
        return [one.command for one in ready]

    @property
    def notes(self) -> dict[str, str]:
        """What stands at each such gate in the list."""
        now = self.monotonic()
        return {
            one.command.gate: f"{one.command.does} in {max(0, round(one.due - now))} s"
            for one in self.waiting
        }
