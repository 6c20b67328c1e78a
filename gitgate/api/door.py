"""Python: the way from a function to the service and back: a desk for one call, a gate as callers get it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .. import config
from ..document.values import dataclass as cheap_dataclass
from ..document.values import field as cheap_field
from ..model.gate import Answer, Gate, Question, Value
from ..questions.answers import printed

if TYPE_CHECKING:
    from ..context.desk import Desk
    from ..exchange.publishing import Published
    from ..flows.engine import Engine
    from ..model.conversation import Conversation

Directory = str | Path | None
FLOWS = f"{__package__.rpartition('.')[0]}.flows.engine"


@cheap_dataclass(frozen=True)
class ShownAnswer(Answer):
    """What was said, with the questions that it is about. `text` is what `git gate check` prints."""

    questions: tuple[Question, ...] = cheap_field(default=(), repr=False)

    @property
    def text(self) -> str:
        return printed(self.questions, self)

    @property
    def value(self) -> Value | None:
        """What was said to the only question."""
        return self.values.get(self.questions[0].key) if len(self.questions) == 1 else None


@dataclass(frozen=True, repr=False)
class ShownGate:
    """One gate as it is now, and what its record alone does not say. `details` is everything, in the shape of
    `git gate show --json`; `record` is the gate as its events make it.
    """

    record: Gate
    pushed: bool
    archived: bool = False
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def state(self) -> str:
        return self.record.state

    @property
    def title(self) -> str:
        return self.record.opened.title

    @property
    def answer(self) -> ShownAnswer | None:
        counted = self.record.answer
        return (
            None
            if counted is None
            else ShownAnswer(**vars(counted.answer), questions=self.record.opened.questions)
        )

    @property
    def session(self) -> Conversation | None:
        """The conversation that ended it, with an answer or without."""
        from ..render.shapes import held_of

        return held_of(self.record)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<gate {self.id}, {self.state}: {self.title!r}>"


@dataclass(frozen=True)
class Event:
    """One line of the audit trail."""

    gate: str
    event: str
    at: str
    by: str | None
    text: str
    commit: str


@dataclass(frozen=True)
class Status:
    """How many gates are in which state, and what each agent waits for."""

    counts: Mapping[str, int]
    agents: tuple[Mapping[str, object], ...]


def flow_here() -> Engine | None:
    """The flow that the calling code belongs to. Where none was ever loaded, none is for this either."""
    engines = sys.modules.get(FLOWS)
    return engines.current() if engines is not None else None


@contextmanager
def open_desk(directory: Directory, said: Mapping[str, str] | None = None) -> Iterator[Desk]:
    """A desk for one call; `said` are settings given by the caller. In bulk: a Python process lives long, so libgit2 is worth
    its loading.
    """
    from ..context.desk import open_desk as opened

    config.refuse_system()
    desk = opened(standing(directory), config.environment(), flags=said, bulk=True)
    try:
        yield desk
    finally:
        desk.close()


def standing(directory: Directory) -> Path:
    """Where a call works, wherever the process goes afterwards."""
    return Path.cwd() if directory is None else Path(directory).absolute()


def published_gate(desk: Desk, published: Published) -> ShownGate:
    return seen(desk, published.gate, pushed=published.pushed)


def seen(desk: Desk, gate: Gate, *, pushed: bool | None = None, archived: bool = False) -> ShownGate:
    """A gate as callers get it."""
    from ..acts.sessions import saved
    from ..context.remotes import remote_of
    from ..policy.marks import marks
    from ..render import shapes

    if pushed is None:
        remote = None if archived else remote_of(desk)
        pushed = archived or (remote is not None and desk.tracked(remote, gate.id) == gate.tip)
    details = shapes.gate(
        gate,
        pushed=pushed,
        signed=marks(desk, [gate]),
        archived=archived,
        saved=gate.id in saved(desk, [gate]),
    )
    return ShownGate(gate, pushed, archived, details)
