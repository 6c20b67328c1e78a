"""Flows: who answers a flow's questions in its own process: the terminal, a rule, or the program's own code.

What they say is recorded as theirs (`via`), in nobody's name: a policy may forbid it, and then the gate waits for a person.
Where nobody made rules it counts for the program that asked, and for no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .. import config
from ..acts.answering import check_open
from ..agents import mark_in
from ..context.ancestry import agent_above
from ..errors import Conflict, NotAllowed, Usage
from ..gates.recording import record
from ..model.gate import Answer, Event, Gate, Question
from ..model.states import ANSWERED
from ..policy.permit import check_program
from ..questions.answers import read_answer
from ..questions.base import Given
from ..store.records.records import NOBODY
from ..text.display import one_line
from .engine import Engine
from .program import called

OTHER = "Other…"
TERMINAL = Path("/dev/tty")


def is_other(label: str) -> bool:
    """Whether an option stands for any words."""
    return label.strip().rstrip(".…").strip().casefold() == "other" and label.strip().casefold() != "other"


def shown_labels(asked: Question) -> list[str]:
    return [*asked.labels, *([OTHER] if asked.other or asked.type == "text" else [])]


class Handler(Protocol):
    """Answers questions; both may be async. Each gives its answer, or the answer and a word with it."""

    def approval(self, prompt: str, /) -> Any: ...
    def choice(self, prompt: str, options: list[str], /) -> Any: ...


class AutoApprove:
    """Says yes, and takes the first option. What has no options it leaves to people."""

    via = "automatic"

    def approval(self, __prompt: str, /) -> bool:
        return True

    def choice(self, __prompt: str, options: list[str], /) -> str | None:
        return None if is_other(options[0]) else options[0]


class CliPrompt:
    """Asks at the terminal that this program was started from."""

    via = "prompt"

    def approval(self, prompt: str, /) -> tuple[bool, str]:
        while True:
            word, _, note = self.line(prompt, "yes or no, and a word with it if you like: ").partition(" ")
            word = word.rstrip(",.:;").lower()
            if word in ("y", "yes", "n", "no"):
                return word.startswith("y"), note.strip()

    def choice(self, prompt: str, options: list[str], /) -> str:
        listed = "\n".join(f"  {number}) {one_line(label)}" for number, label in enumerate(options, 1))
        free = any(is_other(label) for label in options)
        while True:
            word = self.line(f"{prompt}\n{listed}" if options != [OTHER] else prompt, "your answer: ")
            if word.isdecimal() and 0 < int(word) <= len(options):
                word = options[int(word) - 1]
            if word in options and not is_other(word):
                return word
            if is_other(word):
                word = self.line("", "in your own words: ")
            if word and free:
                return word

    def line(self, prompt: str, ask: str) -> str:
        refuse_agents()
        shown = "".join(f"{one_line(line, 2000)}\n" for line in prompt.splitlines())
        try:
            with TERMINAL.open("w", encoding="utf-8") as out, TERMINAL.open(encoding="utf-8") as typed:
                out.write(shown + ask)
                out.flush()
                said = typed.readline()
        except OSError as none:
            raise Usage(
                f"cli_prompt needs a terminal: {none.strerror}", hint="human=None opens gates instead"
            ) from none
        if not said:
            raise KeyboardInterrupt
        return said.strip()


def refuse_agents() -> None:
    """An agent has the person's terminal sometimes, and their judgement never."""
    above = mark_in(config.environment()) or agent_above()
    if above:
        raise NotAllowed(
            f"cli_prompt is for people, and this is an agent's process ({above})",
            hint="human=None opens gates, which a person answers: git gate respond",
        )


def cli_prompt() -> CliPrompt:
    """Ask at the terminal: `flow.run("x", human=gitgate.cli_prompt())`."""
    return CliPrompt()


def auto_approve() -> AutoApprove:
    """Yes to every approval, the first option of every choice: for tests. Recorded as `via: automatic`, in nobody's name."""
    return AutoApprove()


def answering(human: Handler) -> Answering:
    """How the engine asks a handler."""
    for name in ("approval", "choice"):
        if not callable(getattr(human, name, None)):
            raise Usage(
                f"human: expected an object with approval and choice; {type(human).__name__} has no {name}",
                hint="human=gitgate.cli_prompt()",
            )
    return Answering(human, human.via if isinstance(human, AutoApprove | CliPrompt) else "handler")


@dataclass(frozen=True)
class Answering:
    """A handler as the engine has it. `via`: how what it says is recorded."""

    human: Handler
    via: str

    def __call__(self, engine: Engine, gate: Gate) -> None:
        if len(gate.opened.questions) != 1 or not may_answer(engine, gate, self.via):
            return
        given = asked(self.human, gate.opened.questions[0])
        if given is not None:
            write_answer(engine, gate, self.via, *given)


def may_answer(engine: Engine, gate: Gate, via: str) -> bool:
    """Whether the policy takes it. Else nobody is asked here, and the gate waits for a person."""
    try:
        with engine.turn:
            check_program(engine.desk, gate, NOBODY, via)
    except NotAllowed as refused:
        engine.extra["declined"] = refused.message
        engine.say(refused.message)
        return False
    return True


def asked(human: Handler, question: Question) -> tuple[Given, str] | None:
    """What the handler says to this question; None where it leaves it to people."""
    if question.kind == "approval":
        said, note = with_note(called(human.approval, (question.prompt,), {}))
        if said is not None and not isinstance(said, bool):
            raise Usage(f"human: approval gave {said!r}; expected True or False", hint="return answer == 'y'")
        return None if said is None else (Given(approve=said), note)
    if question.kind not in ("choice", "text"):
        return None
    options = shown_labels(question)
    said, note = with_note(called(human.choice, (question.prompt, options), {}))
    if said is None:
        return None
    if not isinstance(said, str) or not said.strip() or is_other(said):
        raise Usage(
            f"human: choice gave {said!r}; expected one of {quoted_options(options)}, or words of its own"
        )
    if said in question.labels:
        return Given(values={question.key: said}), note
    if question.kind == "choice" and not question.other:
        raise Usage(f"human: choice gave {said!r}; expected one of {quoted_options(options)}")
    return (Given(text=said) if question.kind == "text" else Given(other=said)), note


def with_note(said: Any) -> tuple[Any, str]:
    if isinstance(said, tuple) and len(said) == 2 and isinstance(said[1], str):
        return said[0], said[1]
    return said, ""


def quoted_options(options: Sequence[str]) -> str:
    return ", ".join(map(repr, options))


def write_answer(engine: Engine, gate: Gate, via: str, given: Given, note: str) -> None:
    """Record what was said. A person who answered meanwhile was first, and their word counts."""
    desk = engine.desk
    values, verdict = read_answer(gate.opened.questions, given)

    def decide(current: Gate) -> tuple[str, Event]:
        check_open(current, NOBODY, amend=False)
        return "answered", Answer(
            gate=current.id,
            values=values,
            verdict=verdict,
            at=desk.now,
            seen=current.tip,
            by=NOBODY,
            via=via,
            note=note.strip(),
        )

    with engine.turn:
        try:
            record(desk, gate, decide, who=NOBODY)
        except Conflict:
            if engine.find(gate.id).state != ANSWERED:
                raise
