"""Python: a question that is decided in a conversation between a person and an agent, and a checkpoint without an agent."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, Unpack, cast, overload

from ..errors import BadAnswer, Conflict, StillWaiting, Usage
from ..model.gate import Gate as Folded
from ..model.gate import Value
from .gates import waited, withdraw
from .terms import (
    Asking,
    Directory,
    InteractiveTerms,
    PauseTerms,
    absolute_directory,
    flow_here,
    interactive,
    open_desk,
    open_in_flow,
    pausing,
    refuse_unknown,
    seen,
)
from .terms import ShownGate as Gate

if TYPE_CHECKING:
    from ..context import Desk
    from ..flows.engine import Engine
    from ..questions.answers import SessionEnding


Outcome = Literal["completed", "cancelled", "timeout"]


class PydanticModel(Protocol):
    """Pydantic model's class, by the methods that are used of it; nothing of pydantic is imported here."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...

    @classmethod
    def model_validate(cls, obj: Any, /) -> Self: ...


T = TypeVar("T")
M = TypeVar("M", bound=PydanticModel)
Schema = Mapping[str, object]


@dataclass(frozen=True)
class SessionResult(Generic[T]):
    """Result of a conversation.

    `response`: what a person decided, so only where `outcome` is `completed`. `duration`: for how many seconds it was
    open. `transcript`: what was said, where that was asked for. `confirmed`: false where the policy takes for a
    response what no person confirmed.
    """

    outcome: Outcome
    response: T | None
    duration: int
    transcript: str | None
    gate: Gate
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    confirmed: bool = True


@dataclass(frozen=True)
class Checkpoint:
    """Decision of a person on going on: true where they said so. `reason`: why not. `message`: added to a yes."""

    proceed: bool
    reason: str = ""
    message: str = ""
    gate: Gate | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.proceed


def model_of(schema: object) -> type[PydanticModel] | None:
    """The schema where it is a model's class, by what it can do."""
    known = isinstance(schema, type) and all(
        hasattr(schema, n) for n in ("model_json_schema", "model_validate")
    )
    return cast("type[PydanticModel]", schema) if known else None


def schema_of(given: type[Any] | Schema | None) -> Schema | None:
    model = model_of(given)
    if model is not None:
        return model.model_json_schema()
    if given is None or isinstance(given, Mapping):
        return given
    raise Usage(
        f"schema: expected a JSON Schema as a mapping, or a pydantic model; found {given!r}",
        hint='schema={"type": "object", "properties": {"approved": {"type": "boolean"}}}',
    )


def result_of(
    desk: Desk, gate: Folded, model: type[PydanticModel] | None, *, archived: bool = False
) -> SessionResult[Any] | None:
    from ..questions.answers import session_ending

    ending = session_ending(gate)
    if ending is None:
        return None
    return SessionResult(
        outcome=cast("Outcome", ending.outcome),
        response=response_of(gate, ending, model),
        duration=ending.seconds,
        transcript=ending.transcript or None,
        gate=seen(desk, gate, archived=archived),
        status=ending.status,
        summary=ending.summary,
        reason=ending.reason,
        message=ending.message,
        confirmed=ending.confirmed,
    )


def response_of(gate: Folded, ending: SessionEnding, model: type[PydanticModel] | None) -> object:
    """The value, or an instance of the model. A validator of the model's own knows more than its schema says."""
    if model is None or ending.value is None:
        return ending.value
    try:
        return model.model_validate(ending.value)
    except ValueError as unfit:
        raise BadAnswer(
            f"the answer to gate {gate.id} fits the schema, but not {model.__name__}: {unfit}",
            hint=f"git gate show {gate.id[:6]}",
        ) from unfit


Standing = Literal["idle", "pending", "resolved"]
Wait = str | int | None


class Interactive(Generic[T]):
    """A handle on one conversation at a time: `idle` until it asks, `pending` while the gate waits, then `resolved`.

    >>> with gitgate.Interactive() as talk:
    ...     result = talk.ask("Is the new schema sound?", outcome="approval").wait()

    Left as a context, it takes back what is still pending. With an id it goes on with a gate that was asked before, perhaps
    by a process that is gone.
    """

    @overload
    def __init__(
        self: Interactive[Value],
        id: str | Gate | None = None,
        *,
        schema: None = None,
        directory: Directory = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Interactive[M], id: str | Gate | None = None, *, schema: type[M], directory: Directory = None
    ) -> None: ...

    def __init__(
        self, id: str | Gate | None = None, *, schema: type[Any] | None = None, directory: Directory = None
    ) -> None:
        self._id = None if id is None else str(id)
        self._model = model_of(schema)
        self._directory = absolute_directory(directory)
        self._result: SessionResult[T] | None = None
        self._asking = threading.Lock()

    @property
    def id(self) -> str | None:
        """Id of the gate; None before anything was asked."""
        return self._id

    @property
    def status(self) -> Standing:
        if self._id is None:
            return "idle"
        return "resolved" if self.result is not None else "pending"

    @property
    def result(self) -> SessionResult[T] | None:
        """Result of the conversation; None while there is none."""
        return self._look(None, block=False)

    @overload
    def ask(self, prompt: str, *, schema: type[M], **terms: Unpack[InteractiveTerms]) -> Interactive[M]: ...
    @overload
    def ask(
        self, prompt: str, *, schema: Schema | None = None, **terms: Unpack[InteractiveTerms]
    ) -> Interactive[Value]: ...

    def ask(
        self,
        prompt: str,
        *,
        schema: type[Any] | Schema | None = None,
        **terms: Unpack[InteractiveTerms],
    ) -> Interactive[Any]:
        """Open the gate and come back at once, with this handle. Conflict: what it asked before still waits."""
        refuse_unknown("ask", terms, InteractiveTerms.__optional_keys__)
        asking = interactive(prompt, schema_of(schema), terms, blocks=False)
        with self._asking:
            if self.status == "pending":
                raise Conflict(
                    f"gate {self._id} still waits for its session, and a handle asks one thing at a time",
                    hint=f"wait() for it, or take it back: git gate withdraw {self._id} --reason R",
                )
            self._directory = absolute_directory(terms.get("directory", self._directory))
            self._id = open_asking(asking, self._directory)
            self._model, self._result = model_of(schema), None
        return cast("Interactive[Any]", self)

    def wait(self, for_: Wait = None) -> SessionResult[T] | None:
        """Block until the conversation is over; None when the time ran out before."""
        if self._id is None:
            raise Usage(
                "nothing was asked, so there is nothing to wait for", hint='ask("Is the schema sound?")'
            )
        return self._look(for_, block=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status == "pending":
            withdraw(str(self._id), reason="its asker is gone", directory=self._directory)

    def _look(self, for_: Wait, *, block: bool) -> SessionResult[T] | None:
        if self._id is None or self._result is not None:
            return self._result
        from ..acts import find_gate

        with open_desk(self._directory) as desk:
            found = find_gate(desk, self._id)
            self._id = found.gate.id
            gate = waited(desk, found.gate, for_) if block else found.gate
            result = result_of(desk, gate, self._model, archived=found.archived)
            if block or gate.closed:  # a look is not yet the hearing of an answer
                self._result = result
        return result


@overload
def ask_interactive(
    prompt: str,
    *,
    schema: type[M],
    wait: Literal[True] = True,
    wait_for: Wait = None,
    **terms: Unpack[InteractiveTerms],
) -> SessionResult[M]: ...
@overload
def ask_interactive(
    prompt: str,
    *,
    schema: Schema | None = None,
    wait: Literal[True] = True,
    wait_for: Wait = None,
    **terms: Unpack[InteractiveTerms],
) -> SessionResult[Value]: ...
@overload
def ask_interactive(
    prompt: str, *, schema: type[M], wait: Literal[False], **terms: Unpack[InteractiveTerms]
) -> Interactive[M]: ...
@overload
def ask_interactive(
    prompt: str, *, schema: Schema | None = None, wait: Literal[False], **terms: Unpack[InteractiveTerms]
) -> Interactive[Value]: ...


def ask_interactive(
    prompt: str,
    *,
    schema: type[Any] | Schema | None = None,
    wait: bool = True,
    wait_for: Wait = None,
    **terms: Unpack[InteractiveTerms],
) -> SessionResult[Any] | Interactive[Any]:
    """Ask a person to decide in a conversation (`git gate join`), and block until they did; `wait=False` gives a handle.

    `outcome` is `approval`, `selection` (with `options`), `structured` (with `schema`: JSON Schema, or a pydantic model whose
    instance is then the response) or `freeform`. For the conversation: `system_prompt`, `context` (any JSON), `model`, `cwd`,
    `mcp_config`, `timeout` and `grace` (of the session; the gate's own deadline is `gate_timeout`), `capture_transcript`,
    `resume_session`, `save_every`. For the gate: `title`, `attach`, `priority`, `confidence`, `on_timeout`, `default`, `to`,
    `notify`, `quorum`, `agent`, `session`, `key`, `no_work`, `no_untracked`, `include`, `push`, `directory`.
    StillWaiting: `wait_for` ran out, and the gate still waits.

    >>> result = gitgate.ask_interactive("Is the new schema sound?", outcome="approval", timeout="30m")
    >>> result.outcome == "completed" and result.response
    """
    refuse_unknown("ask_interactive", terms, InteractiveTerms.__optional_keys__)
    blocks, directory = wait or wait_for is not None, terms.get("directory")
    asking = interactive(prompt, schema_of(schema), terms, blocks=blocks)
    if (flow := flow_here()) is not None:
        return talked_in_flow(flow, asking, model_of(schema), wait=blocks)
    gate = open_asking(asking, directory)
    handle: Interactive[Any] = Interactive(gate, schema=model_of(schema), directory=directory)
    return wait_for_result(handle, wait_for) if blocks else handle


def pause(prompt: str, *, wait_for: Wait = None, **terms: Unpack[PauseTerms]) -> Checkpoint:
    """Ask a person whether to go on, and block until they said; no agent is in it. Silence is never a yes.

    It takes `context` and what `ask_interactive` takes for the gate. StillWaiting: `wait_for` ran out, and the gate still
    waits.

    >>> if not (word := gitgate.pause("Approve deployment?")):
    ...     raise SystemExit(word.reason)
    """
    refuse_unknown("pause", terms, PauseTerms.__optional_keys__)
    if (flow := flow_here()) is not None:
        return checkpoint_of(cast("SessionResult[Any]", talked_in_flow(flow, pausing(prompt, terms), None)))
    directory = terms.get("directory")
    handle = Interactive(open_asking(pausing(prompt, terms), directory), directory=directory)
    return checkpoint_of(wait_for_result(handle, wait_for))


def checkpoint_of(result: SessionResult[Any]) -> Checkpoint:
    # nobody else's word is a yes
    proceed = result.outcome == "completed" and result.response is True and result.confirmed
    return Checkpoint(proceed, result.reason, result.message, result.gate)


def talked_in_flow(
    engine: Engine, asking: Asking, model: type[PydanticModel] | None, *, wait: bool = True
) -> SessionResult[Any] | Interactive[Any]:
    """Ask for a conversation as a step of a flow, and return its result; without `wait`, a handle.

    The step of a checkpoint is called `pause`.
    """
    talk = asking.draft.questions[0].talk
    kind = "pause" if talk is not None and talk.checkpoint else "ask_interactive"
    gate = open_in_flow(engine, asking, wait=wait, kind=kind, name="_checkpoint")
    if not wait:
        return Interactive(gate.id, schema=model)
    with engine.turn:
        result = result_of(engine.desk, gate, model)
    if result is None:
        raise StillWaiting(f"gate {gate.id} still waits", hint=f"git gate show {gate.id[:6]}")
    return result


def open_asking(asking: Asking, directory: Directory) -> str:
    with open_desk(directory) as desk:
        return asking.open(desk).gate.id


def wait_for_result(handle: Interactive[T], wait_for: Wait) -> SessionResult[T]:
    result = handle.wait(wait_for)
    if result is None:
        raise StillWaiting(
            f"gate {handle.id} still waits for its session", hint=f"to wait on: git gate wait {handle.id}"
        )
    return result
