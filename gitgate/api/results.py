"""Python: what the verbs give back that look after a repository rather than a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


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
