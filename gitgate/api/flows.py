"""Python: flows: programs of agents and people whose every step is written down, so that they survive their process.

    @gitgate.flow
    def feature(task: str):
        gitgate.run("coder", task)
        if not (word := gitgate.pause("Merge it?")):
            gitgate.stuck(word.reason)

`git gate run FILE:feature "…"` starts it. Every function here is a step: what it gave once, it gives again when the flow is
replayed from its top. Outside of a flow `run`, `parallel` and `stuck` are refused, and the others are what they say.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import random as chance
import time
import uuid as uuids
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar, cast, overload

from ..errors import Usage
from ..flows import BRANCH, STEP, Doing, terms_of
from ..flows.agents import AgentFailed, AgentSignal, run_agent, signal_from
from ..flows.branches import first_error, first_of, in_parallel
from ..flows.branches import soon as soon_of
from ..flows.endings import RunAgain, RunStuck, digest_of, returned, said_of_input
from ..flows.engine import current, need_engine
from ..flows.program import FlowFunction, as_flow, called
from ..flows.steps import coming_id, do_step, receive_next, sleep_until, with_tries
from ..text import one_line, parse_duration, parse_time
from ..text.secrets import redact
from .interactive import model_of
from .terms import seconds

P = ParamSpec("P")
R = TypeVar("R")
LONGEST_SLEEP = 100 * 365 * 86400
Work = str | tuple[str, str] | Callable[[], Any]


@overload
def flow(function: Callable[P, R], /) -> FlowFunction[P, R]: ...
@overload
def flow(
    *,
    name: str = "",
    human_escalation: bool | None = None,
    human_timeout: str | int | None = None,
    on_timeout: str | None = None,
    notify_on_waiting: str | Sequence[str] = (),
) -> Callable[[Callable[P, R]], FlowFunction[P, R]]: ...
def flow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    human_escalation: bool | None = None,
    human_timeout: str | int | None = None,
    on_timeout: str | None = None,
    notify_on_waiting: str | Sequence[str] = (),
) -> Any:
    """A function that is a flow. `human_escalation=False`: agents that need a person end with that, and nobody is asked.
    `human_timeout` and `on_timeout` are the deadline of each question, where it names none of its own. `notify_on_waiting`
    names who is told of each: addresses of `gitgate.notify` by their names.

    >>> @gitgate.flow(human_timeout="24h", notify_on_waiting=["team"])
    ... def feature(task): ...
    """
    terms = terms_of(human_escalation, human_timeout, on_timeout, notify_on_waiting)
    if function is not None:
        return as_flow(function, name, terms)
    return lambda found: as_flow(found, name, terms)


def run(
    agent: str,
    prompt: str | None = None,
    *,
    human: bool | None = None,
    human_timeout: str | int | None = None,
    on_timeout: str | None = None,
    notify: str | Sequence[str] = (),
    tries: int = 1,
    backoff: str | float = "1s",
    max_minutes: float | None = None,
    output: Any = None,
) -> AgentSignal:
    """Run the agent of that name, and come back with how it ended. If it needs a person, that is a gate, and it takes longer.

    Without a prompt it is told the flow's input, what was done before, and what a person said last. `human=False`: its need
    of a person is its end, and nobody is asked; `human_timeout`, `on_timeout` and `notify` are those of its questions, where
    they are not to be the flow's. `output`: a pydantic model that what it said is read as. An agent that fails is started
    anew, `tries` times in all; `max_minutes` ends each of its starts, as a failure.

    >>> gitgate.run("reviewer").status == "APPROVED"
    """
    terms = terms_of(human, human_timeout, on_timeout, notify)
    check_text("run: its prompt", prompt)
    pause, engine = check_tries(tries, backoff, max_minutes), need_engine("run")
    signal = with_tries(engine, tries, pause, lambda: run_agent(engine, agent, prompt, terms, max_minutes))
    model = model_of(output)
    if model is None:
        return signal
    try:
        return AgentSignal(**{**vars(signal), "output": model.model_validate(signal.output)})
    except ValueError as unfit:
        raise AgentFailed(
            f"agent {agent} said no {model.__name__}: {one_line(str(unfit), 500)}",
            hint=f"have its prompt name the fields that {model.__name__} has, in an object that ends its words",
        ) from unfit


def step(
    function: Callable[..., R],
    /,
    *args: Any,
    name: str = "",
    retry: bool = False,
    done: Callable[[], R | None] | None = None,
    tries: int = 1,
    backoff: str | float = "1s",
    max_minutes: float | None = None,
    output: Any = None,
    **kwargs: Any,
) -> R:
    """Run any function once, and keep its result, which is JSON or a pydantic model.

    A process that dies in it leaves open whether it was done. `retry=True` says that doing it again is harmless; `done` is
    asked for its result, and gives None where it was not done; else a person is asked. `step_id()` is a key for the outside
    world, the same each time.

    If it raises, it is tried again, `tries` times in all, after `backoff`, and twice as long each time. Longer than
    `max_minutes` it is not waited for: that is a TimeoutError.
    """
    pause, engine = check_tries(tries, backoff, max_minutes), current()
    if engine is None:
        return cast("R", called(function, args, kwargs))
    if not callable(function):
        raise Usage(f"step: expected a function; found {function!r}", hint="gitgate.step(build, 'release')")
    known = name or getattr(function, "__name__", "step")
    model = model_of(output) or model_of(returned(function))
    key = coming_id("step", known)

    def once() -> Any:
        return do_step(
            *(engine, function, args, kwargs),
            name=known,
            retry=retry,
            done=done,
            model=model,
            key=key,
            max_minutes=max_minutes,
        )

    return cast("R", with_tries(engine, tries, pause, once))


def check_text(what: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise Usage(
            f"{what}: expected text; found {value!r}", hint="str(…) makes text of it, json.dumps(…) JSON"
        )


def check_tries(tries: int, backoff: str | float, max_minutes: float | None) -> float:
    """Return the first pause between two tries, in seconds."""
    if tries < 1 or (max_minutes is not None and not 0 < max_minutes < LONGEST_SLEEP / 60):
        raise Usage(
            f"expected at least one try, and a limit above zero; found tries={tries}, max_minutes={max_minutes}",
            hint='gitgate.step(fetch, tries=3, backoff="10s", max_minutes=5)',
        )
    return length_of(backoff)


def parallel(*branches: Work, policy: str = "all") -> list[Any]:
    """Run several at once: agents (a name, or a name and a prompt) and functions without arguments. Their results, in order.

    The agents of each work in a tree of its own, which begins with the run's work so far. When all are through, what they
    did is merged in their order; where two changed the same lines, a person is asked. If one fails, its error is raised when
    all are through: what it did stays on a Git branch, and what the others did is merged. `policy="first"`: as `first`, and
    None stands for each that was not.
    """
    engine = need_engine("parallel")
    if policy not in ("all", "first"):
        raise Usage(f"policy: expected 'all' or 'first'; found {policy!r}", hint='policy="first"')
    if policy == "first":
        winner, value = raced(branches)
        return [value if number == winner else None for number in range(len(branches))]
    came = in_parallel(engine, [branch_of(branch) for branch in branches])
    if any(isinstance(ended, BaseException) for ended in came):
        raise first_error(came)
    return came


def first(*branches: Work) -> Any:
    """Run several at once, and give the result of the first that comes to its end, which is JSON or an agent's signal.

    The others are ended: their agents stop, and what they ask is taken back. One that fails is not the first; if all fail,
    the first one's error is raised.

    >>> gitgate.first(("coder", "fix it"), lambda: gitgate.ask("Or do you know how?", wait=True).answer.text)
    """
    return raced(branches)[1]


def raced(branches: Sequence[Work]) -> tuple[int, Any]:
    engine = need_engine("first")
    if not branches:
        raise Usage("first: expected branches", hint='gitgate.first("coder", other)')
    winner, value = first_of(engine, [plainly(branch_of(branch)) for branch in branches])
    return winner, signal_from(value["signal"]) if "signal" in value else value["value"]


def plainly(branch: Callable[[], Any]) -> Callable[[], dict[str, Any]]:
    """Wrap a branch so that its result is one that the journal can have."""

    def act() -> dict[str, Any]:
        found = branch()
        return {"signal": found.plain()} if isinstance(found, AgentSignal) else {"value": found}

    return act


def soon(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
    """In an async flow: a step, or a function of several, to be awaited, so that others go on meanwhile.

    >>> await asyncio.gather(gitgate.soon(gitgate.run, "coder", "fix a"), gitgate.soon(gitgate.pause, "And b?"))
    """
    engine = current()
    if engine is None:
        return asyncio.to_thread(function, *args, **kwargs)
    return soon_of(engine, lambda: called(function, args, kwargs))


def workdir() -> Path:
    """Return the directory that the flow's agents work in here: in a branch of `parallel` its own working tree.

    >>> gitgate.step(lambda: subprocess.run(["make"], cwd=gitgate.workdir()).returncode, name="make")
    """
    engine = need_engine("workdir")
    engine.settle()
    return engine.desk.repo.place


def branch_of(work: Work) -> Callable[[], Any]:
    if callable(work):
        return lambda: called(work, (), {})
    named: Any = (work, None) if isinstance(work, str) else work
    if not (isinstance(named, tuple) and len(named) == 2 and isinstance(named[0], str)):
        raise Usage(
            f"a branch is an agent's name, a name and a prompt, or a function; found {work!r}",
            hint='gitgate.parallel(("coder", "fix a"), "reviewer", check)',
        )
    return lambda: run(*named)


def stuck(reason: str = "") -> NoReturn:
    """End the run: it cannot go on. The reason is what `git gate list --runs` shows."""
    engine = need_engine("stuck")
    check_text("stuck: its reason", reason)
    ended = RunStuck(redact(reason, engine.secrets) or "no reason was given")
    ended.refused = bool(engine.extra.get("refused"))
    raise engine.broken_by(ended)


def again(*args: Any, **kwargs: Any) -> NoReturn:
    """Start the flow afresh with this input, in a run of its own, and end this one: for flows of more than 10,000 steps.

    >>> gitgate.again(state)
    """
    engine = need_engine("again")
    if BRANCH.get().path or engine.active > 1:
        raise Usage(
            "again is for the flow itself, and branches of it go on here",
            hint="return from the branch what is to go on, and call again after parallel(…)",
        )
    given = said_of_input(args, kwargs)
    kept = engine.perform("again", "", lambda _: given, brief=True)
    raise engine.broken_by(RunAgain(kept, engine.held.run.steps["again#1"].begun.at))


def now() -> dt.datetime:
    """Return the moment, in UTC; in a flow the one at which the flow came here first."""
    engine = current()
    if engine is None:
        return dt.datetime.now(dt.UTC)
    at = engine.perform("now", "", lambda _: engine.desk.clock(), brief=True)
    return dt.datetime.fromtimestamp(at, dt.UTC)


def length_of(duration: str | float) -> float:
    """Return a duration in seconds."""
    length = float(duration) if isinstance(duration, int | float) else float(parse_duration(duration))
    if not 0 <= length < LONGEST_SLEEP:
        raise Usage(f"expected from 0 to {LONGEST_SLEEP:,} seconds; found {duration}", hint='"2h", or 7200')
    return length


def sleep(duration: str | float) -> None:
    """Wait so long, `"2h"` or a number of seconds. In a flow the process ends meanwhile, and the run goes on when it is time."""
    length = length_of(duration)
    engine = current()
    if engine is None:
        time.sleep(length)
    else:
        sleep_until(engine, "sleep", engine.desk.clock() + length, digest_of(length))


def until(when: dt.datetime | str) -> None:
    """Wait until that moment, as `sleep` does: a `datetime` with its zone, or text such as `2030-01-31T14:05:00Z`."""
    if isinstance(when, dt.datetime) and when.tzinfo is None:
        raise Usage(f"until: {when} names no zone", hint="datetime.now(UTC) + timedelta(hours=2)")
    moment = when.timestamp() if isinstance(when, dt.datetime) else parse_time(when)
    engine = current()
    if engine is None:
        time.sleep(max(0.0, moment - time.time()))
    else:
        sleep_until(engine, "until", moment, digest_of(moment))


@dataclass(frozen=True)
class ReceivedSignal:
    """Signal that somebody sent to a run: its value, by whom and when. `agent`: name of the agent that sent it, if any."""

    topic: str
    value: Any = None
    by: str = ""
    at: str = ""
    agent: str = ""


def receive(topic: str, *, timeout: str | int | None = None) -> ReceivedSignal | None:
    """The next signal on a topic, from `git gate signal RUN --topic NAME VALUE`; None if none came within `timeout`.

    Signals are kept in the order they came, also those that come before anybody asks; each is received once. A signal is
    nobody's approval: whoever may write to the repository may send one. To have a person decide, `ask` or `pause`.
    """
    check_text("receive: its topic", topic)
    found = receive_next(need_engine("receive"), topic, seconds(timeout))
    if found is None:
        return None
    by, at, agent = (str(found.get(key) or "") for key in ("by", "at", "agent"))
    return ReceivedSignal(topic, found.get("value"), by, at, agent)


def random() -> float:
    """Return a number from 0 to 1; in a flow the same each time it is replayed."""
    engine = current()
    number = chance.random
    return number() if engine is None else float(engine.perform("random", "", lambda _: number(), brief=True))


def uuid() -> str:
    """Return a new id; in a flow the same each time it is replayed."""
    engine = current()
    found = str(uuids.uuid4())
    return found if engine is None else str(engine.perform("uuid", "", lambda _: found, brief=True))


def note(text: str) -> None:
    """Write into the journal what a reader of the run should know; silent in replay."""
    engine = need_engine("note")
    check_text("note", text)

    def act(_doing: Doing) -> dict[str, str]:
        engine.say(text)
        return {"text": text}

    engine.perform("note", "", act, brief=True)


def patched(name: str) -> bool:
    """Return whether the code after a change counts: true in runs that come here only now, false in those already past
    it.

    >>> if gitgate.patched("ask the owner too"):
    ...     gitgate.pause("And you, owner?")
    """
    return need_engine("patched").patched(name)


def step_id() -> str:
    """Return a key for the step that is being done, the same in each replay: for services that act once for a key."""
    engine = need_engine("step_id")
    found = STEP.get()
    if not found:
        raise Usage("step_id is for the function that a step runs", hint="gitgate.step(charge, 12)")
    return f"{engine.run_id}/{found}"
