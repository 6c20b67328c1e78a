"""Python: the way from a function to the service and back: a desk for one call, a gate as callers get it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .. import config
from ..model.gate import Counted
from ..model.gate import Gate as Folded
from ..questions.answers import printed
from .values import Answer, Conversation, Gate

if TYPE_CHECKING:
    from ..context.desk import Desk
    from ..exchange.publishing import Published
    from ..model.conversation import HeldConversation

Directory = str | Path | None


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


def told(desk: Desk, published: Published) -> Gate:
    return seen(desk, published.gate, pushed=published.pushed)


def seen(desk: Desk, gate: Folded, *, pushed: bool | None = None, archived: bool = False) -> Gate:
    """A gate as callers get it: apart from the domain, so that either may change alone."""
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
    said, talked = answer_of(gate, gate.answer), talked_of(shapes.held_of(gate))
    return Gate(gate.id, gate.state, gate.opened.title, said, pushed, archived, details, talked)


def talked_of(held: HeldConversation | None) -> Conversation | None:
    return (
        None
        if held is None
        else Conversation(**{n: getattr(held, n) for n in Conversation.__dataclass_fields__})
    )


def answer_of(gate: Folded, counted: Counted | None) -> Answer | None:
    if counted is None:
        return None
    said = counted.answer
    only = gate.opened.questions[0].key if len(gate.opened.questions) == 1 else ""
    return Answer(
        text=printed(gate.opened.questions, said),
        value=said.values.get(only),
        values=dict(said.values),
        verdict=said.verdict,
        note=said.note,
        by=said.by,
        via=said.via,
        at=said.at,
        session=talked_of(said.session),
    )
