"""Flows: programs of agents and people that survive their process. A run is told by its journal, `refs/hitl/runs/<id>`.

Here is where the code of a flow stands, what it says of its questions, and which gate is the question of which step.
`journal` holds the right to go on with a run, and writes its events. `engine` replays a flow against them: `Engine.perform` makes
a step of any function, `Engine.ask` one that opens a gate, and `Engine.handler` answers gates in this process.
`branches.in_parallel` runs several steps at once, each on a line of its own, as they are numbered here. `agents` is the step that
runs an agent. `program` is a flow as a program: how a run begins, is played, goes on and ends.
What an event is, and what a run amounts to, is below: `record.runs`, `model.RUN_TABLE`, `store.records.journal`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..acts.asking import Asked, AskWishes, ask
from ..context import Desk
from ..errors import Conflict, Usage
from ..model import AT_DEADLINE, ON_TIMEOUT
from ..model.gate import Gate
from ..questions.drafts import Draft
from ..record.runs import RunStep
from ..text import parse_duration

# Where the code of a flow stands: its lines of steps, and the id of the next step of each.
#
# A step's id is its line, its kind, its name, and which of these it is there; no number goes across
# lines, which run at once.


OURS = f"{Path(__file__).parents[1]}/"
LIBRARY = f"{Path(threading.__file__).parent}/"


@dataclass
class Branch:
    """Branch of a flow: one sequence of its steps. `at`: how many of its recorded steps the replay has reached."""

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
        """Desk of the branch's own working tree; None where its agents work in the run's directory."""
        if self.desk is None and self.above is not None:
            found = self.above.desk_here
            if found is None or self.adopt is None:
                return found
            self.desk = self.adopt(found)
        return self.desk

    @property
    def is_lost(self) -> bool:
        """Return whether another branch was first: beside this branch, or beside a branch that this one is a part of."""
        return self.lost or (self.above is not None and self.above.is_lost)

    def next(self, kind: str, name: str) -> str:
        """Return the id of the branch's next step of that kind and name."""
        word = f"{kind}:{plain_name(name)}" if name else kind
        self.counts[word] = self.counts.get(word, 0) + 1
        own = f"{word}#{self.counts[word]}"
        return f"{self.path}/{own}" if self.path else own


@dataclass
class Doing:
    """Step that is being done. `again`: an earlier process began it, and nobody knows how far that came."""

    id: str
    again: RunStep | None = None
    line: str = ""


BRANCH: ContextVar[Branch] = ContextVar("gitgate_branch")
STEP: ContextVar[str] = ContextVar("gitgate_step", default="")


def plain_name(name: str) -> str:
    """Return a step's name as a part of an id: one line, without the characters that separate branches."""
    return "".join(c if c.isprintable() and c not in "/#" else "_" for c in name)[:80] or "_"


def called_at() -> str:
    """Return the line of the flow that called for a step, as `flows.py:12`; empty where that is not known."""
    frame = sys._getframe(1)  # noqa: SLF001 - a whole traceback for each of 10,000 steps takes too long
    while frame.f_code.co_filename.startswith(OURS) and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_code.co_filename.rpartition("/")[2]
    known = (
        not frame.f_code.co_filename.startswith((OURS, LIBRARY)) and name.isprintable() and len(name) <= 100
    )
    return f"{name}:{frame.f_lineno}" if known else ""


# What a flow, or a step of it, says of its questions, and which gate is the question of which step.


MOST_FORGED = 16


@dataclass(frozen=True)
class FlowTerms:
    """Terms of the questions that a flow, or a step of it, asks.

    A term that is not set comes from the flow above, else from this machine's settings. `human_timeout`: seconds until
    the deadline of each question. `notify`: the names of those who are notified of it.
    """

    human_escalation: bool | None = None
    human_timeout: int | None = None
    on_timeout: str | None = None
    notify: tuple[str, ...] = ()

    def below(self, above: FlowTerms) -> FlowTerms:
        """Return the terms of a step whose flow has the terms `above`: the step's own, and the flow's for the rest."""
        own = {name: value for name, value in vars(self).items() if value not in (None, ())}
        return replace(above, **own)

    def of_question(self) -> dict[str, Any]:
        """Return the terms under the names that a question has for them, as an agent gets them in its environment."""
        said = {"timeout": self.human_timeout, "on_timeout": self.on_timeout, "notify": list(self.notify)}
        return {name: value for name, value in said.items() if value}


def terms_of(
    human_escalation: bool | None,
    human_timeout: str | int | None,
    on_timeout: str | None,
    notify: str | Sequence[str],
) -> FlowTerms:
    """Read the terms that a program gave as keywords. Usage where one cannot be meant."""
    seconds = parse_duration(str(human_timeout)) if human_timeout is not None else None
    if seconds is not None and seconds <= 0:
        raise Usage("human_timeout: a deadline has to be in the future", hint='human_timeout="24h"')
    how = AT_DEADLINE.get(on_timeout, on_timeout) if on_timeout is not None else None
    if how is not None and how not in ON_TIMEOUT:
        raise Usage(
            f"on_timeout: expected one of {', '.join(ON_TIMEOUT)}; found {on_timeout!r}",
            hint='on_timeout="stuck"',
        )
    names = (notify,) if isinstance(notify, str) and notify else tuple(notify)
    return FlowTerms(human_escalation, seconds, how, names)


def ask_own(
    desk: Desk,
    draft: Draft,
    wishes: AskWishes,
    attachments: Mapping[str, bytes],
    before: RunStep | None,
    say: Callable[[str], None],
    *,
    agents: bool,
) -> Asked:
    """Ask under a key that no other question has.

    An agent of the flow may know the step's key, and may have asked something harmless under it. An answer to that
    question is no answer to this one. With `agents` the question is an agent's, and any gate with the key is its own.
    `before`: the step's record, if a process that died began it.
    """
    for number in range(MOST_FORGED):
        key = f"{draft.key}~{number}" if number else draft.key
        asked = ask(desk, replace(draft, key=key), wishes, attachments)
        if asked.new or agents or (before is not None and is_asked_by(asked.gate, before, draft)):
            return asked
        say(f"gate {asked.gate.id} has the key {key}, and is not the question of that step")
    raise Conflict(
        f"{MOST_FORGED} gates have the key {draft.key}, and none is the question of that step",
        hint="git gate list --all",
    )


def is_asked_by(gate: Gate, step: RunStep, draft: Draft) -> bool:
    """Return whether a gate with a step's key is that step's: it asks the same, and not before the step began."""
    asked, wanted = (
        [(q.prompt.strip(), q.type, q.labels) for q in questions]
        for questions in (gate.opened.questions, draft.questions)
    )
    return asked == wanted and gate.opened.asked.at >= step.begun.at
