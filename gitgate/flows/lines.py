"""Flows: where the code of a flow stands: its lines of steps, and the id of the next step of each.

A step's id is its line, its kind, its name, and which of these it is there; no number goes across lines, which run at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from ..context.desk import Desk
from ..record.runs import RunStep

OURS = f"{Path(__file__).parents[1]}/"
LIBRARY = f"{Path(threading.__file__).parent}/"


@dataclass
class Branch:
    """One line of a flow's steps. `at`: how many of the journal's it has come to."""

    path: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    at: int = 0
    above: Branch | None = None
    desk: Desk | None = None
    """Where its agents work, if that is not where the branch above works."""
    settle: Callable[[], None] | None = None
    """Makes it a place of its own, when the first of them starts."""
    lost: bool = False
    adopt: Callable[[Desk], Desk] | None = None
    """Makes a desk of another run one of its own."""

    @property
    def desk_here(self) -> Desk | None:
        """Where its agents work; None where that is where the run does."""
        if self.desk is None and self.above is not None:
            found = self.above.desk_here
            if found is None or self.adopt is None:
                return found
            self.desk = self.adopt(found)
        return self.desk

    @property
    def is_lost(self) -> bool:
        """Whether another branch was first, beside this one or beside one that it is a part of."""
        return self.lost or (self.above is not None and self.above.is_lost)

    def next(self, kind: str, name: str) -> str:
        """The id of the next step of that kind and name here."""
        word = f"{kind}:{plain_name(name)}" if name else kind
        self.counts[word] = self.counts.get(word, 0) + 1
        own = f"{word}#{self.counts[word]}"
        return f"{self.path}/{own}" if self.path else own


@dataclass
class Doing:
    """A step that is being done. `again`: it was begun before, and nobody knows how far it came."""

    id: str
    again: RunStep | None = None
    line: str = ""


BRANCH: ContextVar[Branch] = ContextVar("gitgate_branch")
STEP: ContextVar[str] = ContextVar("gitgate_step", default="")


def plain_name(name: str) -> str:
    """A step's name as a part of an id: in one line, without what separates branches."""
    return "".join(c if c.isprintable() and c not in "/#" else "_" for c in name)[:80] or "_"


def called_at() -> str:
    """The line of the flow that wants a step, as `flows.py:12`; empty where that is not known."""
    frame = sys._getframe(1)  # noqa: SLF001 - a whole traceback for each of 10,000 steps takes too long
    while frame.f_code.co_filename.startswith(OURS) and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_code.co_filename.rpartition("/")[2]
    known = (
        not frame.f_code.co_filename.startswith((OURS, LIBRARY)) and name.isprintable() and len(name) <= 100
    )
    return f"{name}:{frame.f_lineno}" if known else ""
