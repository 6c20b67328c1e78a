"""Python: what came of a conversation, and the classes that say what its outcome looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, cast

from ..core.model import Gate as Folded
from ..errors import BadAnswer, Usage
from .door import seen
from .values import Gate

if TYPE_CHECKING:
    from ..core.endings import Ending
    from ..service.desk import Desk

Outcome = Literal["completed", "cancelled", "timeout"]


class Model(Protocol):
    """What a pydantic model's class can do; nothing of pydantic is imported here."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...

    @classmethod
    def model_validate(cls, obj: Any, /) -> Self: ...


T = TypeVar("T")
M = TypeVar("M", bound=Model)
Schema = Mapping[str, object]


@dataclass(frozen=True)
class SessionResult(Generic[T]):
    """What came of a conversation. `response` is what a person decided, so only where it was `completed`; `duration` is how
    many seconds it was open, and `transcript` what was said, where that was asked for. `confirmed` is false where the policy
    takes for a response what no person confirmed.
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
    """A person's word on going on: true where they said so. `reason` says why not, `message` is what they added to a yes."""

    proceed: bool
    reason: str = ""
    message: str = ""
    gate: Gate | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.proceed


def model_of(schema: object) -> type[Model] | None:
    """The schema where it is a model's class, by what it can do."""
    known = isinstance(schema, type) and all(
        hasattr(schema, n) for n in ("model_json_schema", "model_validate")
    )
    return cast("type[Model]", schema) if known else None


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
    desk: Desk, gate: Folded, model: type[Model] | None, *, archived: bool = False
) -> SessionResult[Any] | None:
    from ..core.endings import ending_of

    ending = ending_of(gate)
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


def response_of(gate: Folded, ending: Ending, model: type[Model] | None) -> object:
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
