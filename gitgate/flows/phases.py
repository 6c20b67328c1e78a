"""Flows: a flow as a table of phases: what runs, what a person is asked of it, and what comes next.

    flow = gitgate.Flow(
        gitgate.Phase("planner", agent=plan, human=gitgate.Human("Approve the plan?"),
                      next=lambda s: "execute" if s.approved else "planner"),
        gitgate.Phase("execute", agent=execute, terminal=True),
    )

It is a loop over the steps that any flow has: an agent is a step, a question is a step. The state is what they gave, so that a
replay comes to the same one.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from .. import config
from ..context import Desk, open_desk
from ..errors import Usage
from ..model.gate import Gate, Option, Question
from ..questions.drafts import Draft, question
from . import terms_of
from .agents import run_agent
from .children import has_children
from .endings import FlowEnding, RunStuck, json_as_model, returned
from .engine import Engine, current, need_engine
from .journal import take_run
from .program import FlowFunction, Surroundings, begin_flow, called, play, within
from .steps import OTHER, Handler, answering, do_step, is_other, noting, shown_labels

RESERVED = ("input", "human_response", "approved")
"""What an agent says under these names stays in its output: it neither approves nor answers."""
HumanType = Literal["approval", "choice"]


class FlowState(Mapping[str, Any]):
    """A mapping that nobody changes, and whose keys are attributes as well: `state.plan` is `state["plan"]`."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_said", said)

    def __getitem__(self, key: str) -> Any:
        found: Mapping[str, Any] = object.__getattribute__(self, "_said")
        value = found[key]
        return FlowState(value) if isinstance(value, dict) else value

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            has = ", ".join(self) or "nothing"
            raise AttributeError(f"the state has no {key!r}; it has {has}") from None

    def __setattr__(self, key: str, value: object) -> None:
        raise TypeError(f"the state changes by what agents return and people say; {key!r} cannot be set")

    def __iter__(self) -> Iterator[str]:
        return iter(object.__getattribute__(self, "_said"))

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "_said"))

    def __repr__(self) -> str:
        return f"FlowState({dict(object.__getattribute__(self, '_said'))!r})"


class FlowEvent(TypedDict):
    """Event that `on` is called with: `agent:completed`, `input:requested` or `input:received`. `id`: id of the gate."""

    event: str
    phase: str
    id: NotRequired[str]
    output: NotRequired[Any]
    prompt: NotRequired[str]
    type: NotRequired[str]
    options: NotRequired[list[str]]
    value: NotRequired[str]
    approved: NotRequired[bool]


Words = str | Callable[..., str]
Labels = Sequence[str] | Callable[..., Sequence[str]]


@dataclass(frozen=True)
class Human:
    """Question that a phase asks a person.

    `type`: `choice` where there are options, else `approval`. An option "Other…" takes any words. `prompt` and
    `options` may be functions of the state, or of state and output.
    """

    prompt: Words
    type: HumanType | None = None
    options: Labels | None = None
    context: str = ""

    @property
    def kind(self) -> str:
        return self.type or ("choice" if self.options is not None else "approval")


@dataclass(frozen=True)
class Phase:
    """One phase. `agent`: an agent's name, or a function of the state; `human`: what is asked of it, or a function that says so,
    or that nobody is; `next`: a phase's name, or a function that gives one. Without it the phase below comes.

    What an agent returns is merged into the state; `update` is a function of state and output that gives what is merged
    instead. `retry`: the function may be done again, where its process died in the middle of it.
    """

    name: str = ""
    agent: str | Callable[..., Any] | None = None
    human: Human | Callable[..., Human | None] | None = None
    next: str | Callable[..., str] | None = None
    terminal: bool = False
    update: Callable[..., Mapping[str, Any]] | None = None
    retry: bool = False


def named(phase: Phase, number: int) -> Phase:
    """A phase's name: its own, its agent's, its function's, or its place."""
    if phase.name:
        return phase
    agent = phase.agent
    own = agent if isinstance(agent, str) else getattr(agent, "__name__", "") if agent is not None else ""
    return replace(phase, name=own if own and own != "<lambda>" else f"phase-{number}")


def asked_of(function: Callable[..., Any], state: FlowState, output: Any) -> Any:
    """Call a function with the state, or with state and output, by how many arguments it requires. Return its result."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return called(function, (state,), {})
    takes = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(1 for one in parameters if one.kind in takes and one.default is inspect.Parameter.empty)
    return called(function, (state, output)[:count], {})


def by_its_function(engine: Engine, flow: FlowFunction[..., Any]) -> Callable[..., Any]:
    """A flow that a phase calls, as something that is given as much as the flow takes."""

    @functools.wraps(flow.function)
    def call(*given: Any) -> Any:
        said = [object.__getattribute__(one, "_said") if isinstance(one, FlowState) else one for one in given]
        return within(engine, flow, said, {})

    return call


class Flow(FlowFunction[[Any], FlowState]):
    """Phases that follow one another. `run` runs them in this process; `git gate run FILE:NAME` so that they outlive one.

    `human_timeout`, `on_timeout`, `human_escalation` and `notify_on_waiting` are those of `gitgate.flow`.
    """

    phases: tuple[Phase, ...]

    def __init__(
        self,
        *phases: Phase,
        name: str = "",
        human_escalation: bool | None = None,
        human_timeout: str | int | None = None,
        on_timeout: str | None = None,
        notify_on_waiting: str | Sequence[str] = (),
    ) -> None:
        terms = terms_of(human_escalation, human_timeout, on_timeout, notify_on_waiting)

        def walk(input: str) -> dict[str, Any]:
            return through(self, input)

        super().__init__(walk, name, terms)  # type: ignore[arg-type]
        found = tuple(named(phase, number) for number, phase in enumerate(phases, 1))
        object.__setattr__(self, "phases", found)
        check_phases(found)

    def __call__(self, input: Any = "") -> FlowState:
        return self.run(input)

    def run(
        self,
        input: Any = "",
        *,
        human: Handler | None = None,
        on: Callable[[FlowEvent], object] | None = None,
        directory: str | Path | None = None,
    ) -> FlowState:
        """Run it to its end, and give its last state.

        `human=None` opens gates; where nobody has answered yet, `RunWaits` is raised, and `resume` goes on. Else the
        handler answers, as `cli_prompt()`, `auto_approve()`, or any object with `approval` and `choice`. `on` is told what
        happens.
        """
        engine = current()
        if engine is not None:
            return FlowState(within(engine, self, [input], {}))
        return end_state(begin_flow(self, [input], {}, self.around(human, on, directory)))

    def resume(
        self,
        run: str,
        *,
        human: Handler | None = None,
        on: Callable[[FlowEvent], object] | None = None,
        directory: str | Path | None = None,
    ) -> FlowState:
        """Go on with a run of this flow that waits, or whose process died: what was done is not done again."""
        around = self.around(human, on, directory)
        desk = around.open_desk()
        try:
            held = take_run(desk, run)
            given = held.run.started.said["given"]
            return end_state(play(held, around, self.terms, lambda: self.call(given)))
        finally:
            desk.close()

    def around(
        self,
        human: Handler | None,
        on: Callable[[FlowEvent], object] | None,
        directory: str | Path | None,
    ) -> Surroundings:
        place, env = Path.cwd() if directory is None else Path(directory).absolute(), config.environment()

        def opened() -> Desk:
            return open_desk(place, env)

        def prepare(engine: Engine) -> None:
            engine.extra["on"] = on

        return Surroundings(opened, handler=None if human is None else answering(human), prepare=prepare)


def end_state(came: FlowEnding) -> FlowState:
    return FlowState(came.result())


# before the first step


def check_phases(phases: Sequence[Phase]) -> None:
    """Refuse phases that cannot work, as far as that can be seen without running them."""
    if not phases:
        raise Usage("a flow needs phases", hint='gitgate.Flow(gitgate.Phase("plan", agent="planner"))')
    names = [phase.name for phase in phases]
    for phase in phases:
        if names.count(phase.name) > 1:
            raise Usage(f"two phases are called {phase.name!r}", hint='gitgate.Phase("another name", …)')
        if phase.agent is None and phase.human is None and not phase.terminal:
            raise Usage(
                f"phase {phase.name!r} has neither an agent nor a question", hint="agent=… or human=…"
            )
        if phase.terminal and phase.next is not None:
            raise Usage(
                f"phase {phase.name!r} is terminal, and has a next", hint="leave out terminal=True, or next=…"
            )
        if not (phase.agent is None or isinstance(phase.agent, str) or callable(phase.agent)):
            raise Usage(f"phase {phase.name!r}: agent: expected a name or a function", hint='agent="coder"')
        if isinstance(phase.next, str):
            found_phase(phases, phase, phase.next)
        check_human(phase)


def check_human(phase: Phase) -> None:
    human = phase.human
    if human is None or (callable(human) and not isinstance(human, Human)):
        return
    check_question(phase, human)
    if isinstance(human.options, Sequence):
        labels_of(phase, human.options)


def check_question(phase: Phase, human: object) -> Human:
    where = f"phase {phase.name!r}: human"
    if not isinstance(human, Human):
        raise Usage(
            f"{where}: expected a Human, or None where nobody is asked; found {human!r}",
            hint='human=gitgate.Human("Approve?")',
        )
    if human.kind not in ("approval", "choice"):
        raise Usage(f"{where}: type: expected approval or choice; found {human.type!r}", hint='type="choice"')
    if human.kind == "choice" and not human.options:
        raise Usage(f"{where}: a choice needs options", hint='Human("Which?", options=["Fast", "Thorough"])')
    if human.kind == "approval" and human.options is not None:
        raise Usage(f"{where}: an approval has no options", hint='type="choice"')
    return human


def labels_of(phase: Phase, given: object) -> list[str]:
    where = f"phase {phase.name!r}: options"
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise Usage(
            f"{where}: expected a list of labels; found {given!r}", hint='options=["Fast", "Thorough"]'
        )
    if not all(isinstance(label, str) and label.strip() for label in given):
        raise Usage(
            f"{where}: expected labels that are text; found {given!r}", hint='options=["Fast", "Slow"]'
        )
    if len(given) == 1 and not is_other(given[0]):
        raise Usage(
            f"{where}: a choice of one option is none; found {given!r}",
            hint=f'options=["{given[0]}", "Other…"]',
        )
    return [label.strip() for label in given]


def found_phase(phases: Sequence[Phase], here: Phase, name: object) -> Phase:
    for phase in phases:
        if phase.name == name:
            return phase
    names = [phase.name for phase in phases]
    near = get_close_matches(str(name), names, 1)
    raise Usage(
        f"phase {here.name!r}: next: no phase is called {name!r}; there are {', '.join(names)}",
        hint=f"next={near[0] if near else names[0]!r}",
    )


# the loop


@dataclass
class Walk:
    """One way through the phases: the state as it is by now."""

    flow: Flow
    engine: Engine
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> FlowState:
        return FlowState(self.said)

    def tell(self, event: FlowEvent) -> None:
        on = self.engine.extra.get("on")
        if on is not None:
            called(on, (event,), {})

    def is_new(self, before: int) -> bool:
        """Return whether something was done since the journal had `before` events, and not only replayed."""
        return len(self.engine.held.run.events) > before

    # an agent

    def run(self, phase: Phase) -> Any:
        """Run the phase's agent, merge what it gives into the state, and return its output."""
        if phase.agent is None:
            return None
        before = len(self.engine.held.run.events)
        self.engine.extra["state"] = {
            key: value for key, value in self.said.items() if key not in RESERVED and value is not None
        }
        output, plain = self.by_name(phase) if isinstance(phase.agent, str) else self.by_function(phase)
        if self.is_new(before):
            self.tell({"event": "agent:completed", "phase": phase.name, "output": plain})
        if phase.update is not None:
            merged = asked_of(phase.update, self.state, output)
            if not isinstance(merged, Mapping):
                raise Usage(
                    f"phase {phase.name!r}: update: expected a mapping; found {merged!r}", hint="return {…}"
                )
            plain = self.engine.encoded(f"phase {phase.name}: update", dict(merged))
        elif not isinstance(plain, Mapping):
            plain = {phase.name: plain} if plain is not None else {}
        self.said.update({key: value for key, value in plain.items() if key not in RESERVED})
        return output

    def by_name(self, phase: Phase) -> tuple[Any, Any]:
        """An agent by its name, which is told the input, the state, and what a person said last."""
        signal = run_agent(self.engine, str(phase.agent), None)
        words = ("status", "summary", "reason", "message")
        said = {word: value for word in words if (value := getattr(signal, word))}
        plain = {**said, **signal.output} if isinstance(signal.output, Mapping) else said
        return FlowState(plain), plain

    def by_function(self, phase: Phase) -> tuple[Any, Any]:
        function = cast("Callable[..., Any]", phase.agent)
        if isinstance(function, FlowFunction) and has_children(self.engine.held.run):
            plain = asked_of(by_its_function(self.engine, function), self.state, None)
            return FlowState(plain) if isinstance(plain, dict) else plain, plain
        plain = do_step(
            self.engine,
            asked_of,
            (function, self.state, None),
            name=phase.name,
            retry=phase.retry,
            loose=True,
        )
        model = returned(function)
        if plain is not None and hasattr(model, "model_validate"):
            return json_as_model(plain, model), plain
        return FlowState(plain) if isinstance(plain, dict) else plain, plain

    # a person

    def ask(self, phase: Phase, output: Any) -> None:
        """Ask the phase's question, and put the answer into the state.

        A phase that may ask first drops the earlier answer, even where it then asks nothing. RunStuck where nobody
        answers.
        """
        if phase.human is None:
            return
        human: Any = phase.human
        if not isinstance(human, Human):
            human = asked_of(human, self.state, output)
        self.said |= {"human_response": None, "approved": False}
        if human is None:
            return
        asked = self.question(phase, check_question(phase, human), output)
        before = len(self.engine.held.run.events)
        gate = noting(self.engine, self.engine.ask(Draft((asked,), context=human.context), name=phase.name))
        if gate.answer is None:
            raise self.engine.broken_by(RunStuck(f"nobody answered gate {gate.id}"))
        answer = gate.answer.answer
        value = answer.values[asked.key]
        word = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        approved = answer.verdict == "approved" if asked.type == "approval" else None
        self.said["human_response"] = {
            "value": word, "approved": approved, "feedback": answer.note, "via": answer.via, "gate": gate.id
        }  # fmt: skip
        self.said["approved"] = bool(approved)
        if self.is_new(before):
            event: FlowEvent = {"event": "input:received", "phase": phase.name, "id": gate.id, "value": word}
            self.tell(event if approved is None else {**event, "approved": approved})

    def requested(self, phase: Phase, gate: Gate) -> None:
        asked = gate.opened.questions[0]
        event: FlowEvent = {
            "event": "input:requested",
            "phase": phase.name,
            "id": gate.id,
            "prompt": asked.prompt,
        }
        if asked.kind == "approval":
            self.tell({**event, "type": "approval"})
        else:
            self.tell({**event, "type": "choice", "options": shown_labels(asked)})

    def question(self, phase: Phase, human: Human, output: Any) -> Question:
        words = human.prompt
        prompt = words if isinstance(words, str) else asked_of(words, self.state, output)
        if not isinstance(prompt, str) or not prompt.strip():
            raise Usage(
                f"phase {phase.name!r}: prompt: expected words; found {prompt!r}", hint='Human("Approve?")'
            )
        if human.kind == "approval":
            return question(prompt, type="approval")
        given = human.options
        labels = labels_of(phase, asked_of(given, self.state, output) if callable(given) else given)
        options = [Option(label) for label in labels if not is_other(label)]
        if not options:
            return question(prompt, type="text")
        asked = question(prompt, type="choice", options=[*options, Option(OTHER)], other=False)
        return replaced(asked, options, other=len(options) < len(labels))

    # what comes next

    def after(self, phase: Phase, output: Any) -> Phase | None:
        if phase.terminal:
            return None
        phases = self.flow.phases
        if phase.next is None:
            below = phases.index(phase) + 1
            return phases[below] if below < len(phases) else None
        wanted = phase.next
        return found_phase(
            phases, phase, wanted if isinstance(wanted, str) else asked_of(wanted, self.state, output)
        )


def replaced(asked: Question, options: Sequence[Option], *, other: bool) -> Question:
    from ..document import replace as exchanged

    return exchanged(asked, options=tuple(options), other=other)


def through(flow: Flow, input: Any) -> dict[str, Any]:
    """The phases, one after the other, to the end. What it gives is the last state."""
    walk = Walk(flow, need_engine("Flow"))
    walk.said = {**(input if isinstance(input, Mapping) else {}), "input": input}
    walk.said |= {"human_response": None, "approved": False}
    phase: Phase | None = flow.phases[0]
    while phase is not None:
        walk.engine.told = partial(walk.requested, phase)
        output = walk.run(phase)
        walk.ask(phase, output)
        phase = walk.after(phase, output)
    return cast("dict[str, Any]", json.loads(json.dumps(walk.said)))
