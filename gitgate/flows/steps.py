"""Flows: what the code of a flow may say: a function that runs once, a sleep, a signal; and who answers its questions in its own process."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .. import config, context
from ..acts.answering import check_open
from ..acts.asking import AskWishes
from ..errors import Conflict, NotAllowed, Usage
from ..gates.recording import record
from ..model import ANSWERED
from ..model.gate import Answer, Event, Gate, Question
from ..policy.permit import check_program
from ..questions import Given
from ..questions.answers import printed, read_answer
from ..questions.drafts import Draft, question
from ..questions.drafts import option as option_of
from ..record.runs import RunEvent
from ..store.records import NOBODY
from ..text import format_time, one_line
from . import BRANCH, STEP, Doing
from .children import has_children
from .endings import RunStuck, digest_of, json_as_model, model_as_json
from .engine import Engine, Waiting
from .program import FlowFunction, called, within

# A step that runs any function once, one that sleeps, one that receives a signal; and what is noted of
# what a person said.


T = TypeVar("T")


def do_step(
    engine: Engine,
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str,
    retry: bool = False,
    done: Callable[[], Any] | None = None,
    model: Any = None,
    loose: bool = False,
    key: str = "",
    max_minutes: float | None = None,
) -> Any:
    """Do a function as a step, and return its result; a step that is recorded as done returns the recorded one.

    `model`: the type that the result is read as. `loose`: a model that was not declared is kept as a plain mapping.
    `key`: the step's key for the outside world, if that is not its id. A flow that is called so is a step already.
    """
    if isinstance(function, FlowFunction) and has_children(engine.held.run):
        return within(engine, function, args, kwargs or {})

    def act(doing: Doing) -> object:
        if doing.again is not None and not retry:
            over, result = was_done(engine, doing, done)
            if over:
                return result
        token = STEP.set(key or doing.id)
        try:
            with engine.working(doing.id):
                given = in_time(lambda: called(function, args, kwargs or {}), max_minutes, doing.id)
            return model_as_json(given, model, f"the result of step {doing.id}", loose=loose)
        finally:
            STEP.reset(token)

    # A phase's function stands where another phase has an agent's name: lists and events call it its agent.
    begun: dict[str, Any] = {"agent": name} if loose else {}
    digest = digest_of_input(args, kwargs or {})
    begun |= {"digest": digest} if digest else {}
    result = engine.perform("step", name, act, **begun)
    return json_as_model(result, model)


def digest_of_input(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return a digest of a step's input; empty where there is none, or it is not JSON.

    Values that are not JSON look different in each process.
    """
    try:
        text = json.dumps([list(args), dict(kwargs)], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return ""
    return digest_of(text) if args or kwargs else ""


def in_time(act: Callable[[], T], minutes: float | None, step: str) -> T:
    """Return the result of `act`. TimeoutError if it takes longer than so many minutes.

    Python cannot end it then, so it may go on beside the flow.
    """
    if minutes is None:
        return act()
    came: list[T | BaseException] = []

    def run() -> None:
        try:
            came.append(act())
        except BaseException as failed:  # noqa: BLE001 - it is the caller's, who is in another thread
            came.append(failed)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(minutes * 60)
    if not came:
        raise TimeoutError(f"step {step} took longer than {minutes:g} minutes")
    if isinstance(came[0], BaseException):
        raise came[0]
    return came[0]


def with_tries(engine: Engine, tries: int, backoff: float, act: Callable[[], T]) -> T:
    """Return the first result of `act` that is no error, in at most `tries` tries.

    Each try is a step. So is each pause between them, which is twice as long as the last.
    """
    for number in range(tries - 1):
        try:
            return act()
        except (Usage, Conflict):
            raise  # the same again
        except Exception:  # noqa: BLE001 - whatever a step raises
            engine.check()
            sleep_until(engine, "backoff", engine.desk.clock() + backoff * 2.0**number)
    return act()


def coming_id(kind: str, name: str) -> str:
    """The id of the next step of that kind and name here."""
    branch = BRANCH.get()
    return replace(branch, counts=dict(branch.counts)).next(kind, name)


def was_done(engine: Engine, doing: Doing, probe: Callable[[], Any] | None) -> tuple[bool, Any]:
    """Return whether a step that was begun before was done, and its result. The probe says so, else a person does."""
    if probe is not None:
        found = called(probe, (), {})
        return found is not None, found
    labels = ("done", "again", "stop")
    means = ("it was done; its result is nothing", "do it (again)", "end the run")
    asked = question(
        f"Step {doing.id} may have been done: its process ended in the middle of it. What is so?",
        type="choice",
        options=[option_of(f"{label}={meaning}") for label, meaning in zip(labels, means, strict=True)],
        other=False,
    )
    gate = engine.open_gate(doing, Draft((asked,), title=f"Was {doing.id} done?"), AskWishes(), None)
    # A program's own handlers are not asked: they were not there.
    said = engine.decided(gate.id, by_handler=False).answer
    value = said.answer.values.get("answer") if said is not None else "stop"
    if value == "stop":
        raise engine.broken_by(RunStuck(f"step {doing.id} may have been done, and is not done again"))
    return value == "done", None


def noting(engine: Engine, gate: Gate) -> Gate:
    """Note what a person said last. Agents are told it, and a run that gets stuck on it ends by it. Return the gate."""
    if gate.answer is not None:
        said = gate.answer.answer
        words = printed(gate.opened.questions, said)
        note = f"\n{said.note}" if said.note and said.note not in words else ""
        engine.extra["refused"] = said.verdict == "rejected"
        engine.extra["told"] = f"What a person said last, to {gate.opened.title!r}: {words}{note}"
    return gate


def sleep_until(engine: Engine, kind: str, moment: float, digest: str = "") -> None:
    """A step that is over when that moment has come. The moment is the one of its first time."""
    begun = {"until": format_time(math.ceil(moment)), "digest": digest}

    def act(doing: Doing) -> None:
        awaited = Waiting(until=(doing.again.begun.text("until") if doing.again else "") or begun["until"])
        while not engine.is_over(awaited):
            engine.park(awaited)

    engine.perform(kind, "", act, False, object, **begun)


def receive_next(engine: Engine, topic: str, within: int | None) -> dict[str, Any] | None:
    """A step that is over with the next signal on a topic, or without one when its time is over."""
    begun = {"until": format_time(math.ceil(engine.desk.clock() + within))} if within is not None else {}

    def act(doing: Doing) -> dict[str, Any] | None:
        until = doing.again.begun.text("until") if doing.again is not None else begun.get("until", "")
        awaited = Waiting(until=until, topic=topic)
        while True:
            with engine.turn:
                sent = engine.next_signal(topic)
                if sent is not None:
                    engine.received.add(sent.n)
                    return said_of_signal(sent)
                if engine.is_over(awaited):
                    return None
            engine.park(awaited)

    found = engine.perform("receive", topic, act, False, object, **begun)
    return found if isinstance(found, dict) else None


def said_of_signal(sent: RunEvent) -> dict[str, Any]:
    """A signal as the result of the step that receives it."""
    found = {"signal": sent.n, "value": sent.said.get("value"), "at": sent.at}
    return found | {key: sent.text(key) for key in ("by", "agent") if sent.text(key)}


# Who answers a flow's questions in its own process: the terminal, a rule, or the program's own code.
#
# What they say is recorded as theirs (`via`), in nobody's name: a policy may forbid it, and then the gate
# waits for a person. Where nobody made rules it counts for the program that asked, and for no other.


OTHER = "Other…"
TERMINAL = Path("/dev/tty")


def is_other(label: str) -> bool:
    """Return whether an option stands for any words, such as "Other…" does."""
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
    context.require_person(
        "cli_prompt",
        config.environment(),
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
    """Return whether the policy accepts a program's answer. If not, nobody is asked here: the gate waits for a person."""
    try:
        with engine.turn:
            check_program(engine.desk, gate, NOBODY, via)
    except NotAllowed as refused:
        engine.extra["declined"] = refused.message
        engine.say(refused.message)
        return False
    return True


def asked(human: Handler, question: Question) -> tuple[Given, str] | None:
    """Ask the handler this question, and return its answer and note; None where the handler leaves it to people."""
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
