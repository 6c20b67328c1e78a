"""Python: what the functions give back. Apart from the domain, so that either may change alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..model.gate import Value


@dataclass(frozen=True)
class Conversation:
    """How a conversation about a question went: how it ended (`completed`, `cancelled`, `timeout`) and after how long."""

    outcome: str
    seconds: int
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    confirmed: bool = True
    transcript: str = field(default="", repr=False)


@dataclass(frozen=True)
class Answer:
    """What was said. `text` is what `git gate check` prints; `value` is that of the only question."""

    text: str
    value: Value | None
    values: Mapping[str, Value]
    verdict: str
    note: str
    by: str
    via: str
    at: str
    session: Conversation | None = None

    @property
    def approved(self) -> bool:
        """Whether a person said yes. A default is nobody's yes, nor is what nobody confirmed."""
        return self.verdict == "approved" and self.confirmed

    @property
    def confirmed(self) -> bool:
        """Whether a person said it: no declared default, and nothing that a session proposed and nobody looked at."""
        return self.verdict != "defaulted" and (self.session is None or self.session.confirmed)


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
class Gate:
    """One gate as it is now. `details` is everything, in the shape of `git gate show --json`.

    `session` is the conversation that ended it, with an answer or without.
    """

    id: str
    state: str
    title: str
    answer: Answer | None
    pushed: bool
    archived: bool = False
    details: Mapping[str, object] = field(default_factory=dict, repr=False)
    session: Conversation | None = None

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True)
class Status:
    """How many gates are in which state, and what each agent waits for."""

    counts: Mapping[str, int]
    agents: tuple[Mapping[str, object], ...]


@dataclass(frozen=True)
class Problem:
    """What does not hold: of which gate, in which commit."""

    gate: str
    commit: str
    kind: str
    problem: str


@dataclass(frozen=True)
class Verified:
    """What checking every gate found. `ok` means that nothing is wrong."""

    ok: bool
    gates: int
    events: int
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


@dataclass(frozen=True)
class PutAside:
    """An event that the remote never takes and that is in its gate's record here no more; `ref` keeps it."""

    gate: str
    event: str
    commit: str
    by: str
    reason: str
    ref: str


@dataclass(frozen=True)
class Synced:
    """What a sync did, by gate. `lost`: what found no place any more; `late`: what is kept, and without effect."""

    remote: str
    new: tuple[str, ...]
    updated: tuple[str, ...]
    pushed: tuple[str, ...]
    archived: tuple[str, ...]
    lost: tuple[str, ...]
    refused: Mapping[str, str]
    broken: Mapping[str, str]
    late: tuple[str, ...] = ()
    aside: tuple[PutAside, ...] = ()


@dataclass(frozen=True)
class Worktree:
    """Where a gate's partial work was put to be looked at; `notes` are for whoever goes on in it."""

    gate: str
    directory: Path
    branch: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resumed:
    """What came of acting on one gate: `resumed`, `released` for another attempt, `failed`, `lost` to another runner; or
    `started`, where nobody waited for it.
    """

    gate: str
    result: str
    reason: str = ""
    log: str = ""
    branch: str = ""
    commits: tuple[str, ...] = ()
    attempt: int = 0
    asked_again: bool = False


@dataclass(frozen=True)
class Archived:
    """The gates that were folded away; `kept` says of a closed one why it is still open."""

    remote: str | None
    folded: tuple[str, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """One thing that `init` sets up, and what that means for a person. `done`: it is so now."""

    name: str
    means: str
    done: bool


@dataclass(frozen=True)
class Finding:
    """One thing that `doctor` looked at: `good`, `missing` (a choice that was not made) or `wrong`, and what mends it."""

    name: str
    state: str
    words: str
    mend: str = ""


@dataclass(frozen=True)
class Policy:
    """The rules that hold here, each as a mapping of its terms, by where they were read. No sources: no policy."""

    sources: Mapping[str, tuple[Mapping[str, object], ...]]
    branch: str | None


@dataclass(frozen=True)
class Ruling:
    """Whether somebody may answer a gate, by which rule, and why. `paths` is None where nobody knows what the work touches."""

    gate: str
    who: str
    allowed: bool
    rule: str | None
    why: str
    rules: tuple[Mapping[str, object], ...]
    paths: tuple[str, ...] | None


@dataclass(frozen=True)
class Dropped:
    """Where a saved session was erased: here, and on which remote."""

    gate: str
    here: bool
    remote: str | None = None
    there: bool = False
