"""Flows: a step that runs any function once, one that sleeps, one that receives a signal; and what is noted of what a person said."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Any, TypeVar

from ..acts.asking import AskWishes
from ..errors import Conflict, Usage
from ..model.gate import Gate
from ..questions.answers import printed
from ..questions.drafts import Draft, question
from ..questions.drafts import option as option_of
from ..record.runs import RunEvent
from ..text.times import format_time
from .children import has_children
from .endings import RunStuck, digest_of, json_as_model, model_as_json
from .engine import Engine, Waiting
from .lines import BRANCH, STEP, Doing
from .program import FlowFunction, called, within

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
    """What the function gave when it was done. `model`: what its result is read as; `loose`: a model that nobody announced is
    kept as the mapping that it is; `key`: its key for the outside world, where that is not its own id. A flow is a step already.
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
    """What a step is given, as far as that is JSON: other things look different in each process."""
    try:
        text = json.dumps([list(args), dict(kwargs)], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return ""
    return digest_of(text) if args or kwargs else ""


def in_time(act: Callable[[], T], minutes: float | None, step: str) -> T:
    """What it gives. Longer than so long it is not waited for: Python cannot end it, and it may go on beside the flow."""
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
    """What `act` gives the first time that it does not fail. Each try is a step, and so is each pause, twice as long as the last."""
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
    """Whether a step that was begun before was done: as the probe says, else as a person does."""
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
    """What a person said last, for agents that are told it, and for how a run that gets stuck on it ends."""
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
