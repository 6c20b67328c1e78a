"""Exchange: this clone's gates and the remote's, brought together: fetched, reconciled, pushed. Here is what a sync found and did,
gate by gate: values alone, so that a list that asks how fresh it is loads no record.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from ..document import dataclass, field

if TYPE_CHECKING:
    from ..store.remote import RefFate

MANY = 500


class Stays(StrEnum):
    """Reason why a gate is not pushed, for people; empty where people need no reason."""

    ACTED_ON = ""
    OVERTAKEN = "it was changed there just now; sync again"


@dataclass(frozen=True)
class Sides:
    """Tips of all open gates, by gate: here, and on the remote."""

    local: Mapping[str, str]
    theirs: Mapping[str, str]
    runs: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """The journals of runs that are not the same on both sides: here, and on the remote."""


@dataclass(frozen=True)
class PutAside:
    """Event that was recorded here and that the remote never takes: the reason, and the ref that keeps the event."""

    gate: str
    event: str
    commit: str
    by: str
    reason: str
    ref: str

    @property
    def words(self) -> str:
        who = f" by {self.by.partition(' <')[0]}" if self.by else ""
        return f"{self.gate} {self.event}{who} ({self.commit[:10]}) was put aside: {self.reason}; see it: git log -p {self.ref}"


@dataclass(frozen=False)
class Synced:
    """Result of a sync, gate by gate.

    `lost`: events that could not be recorded again; `late`: those that were recorded without effect; `aside`: those
    that the remote never takes; `open`: how many gates are open here.
    """

    remote: str
    open: int = 0
    new: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    aside: tuple[PutAside, ...] = ()
    restored: tuple[str, ...] = ()
    """Gates that were pushed again because they were gone from the remote."""
    pushed: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    doubted: dict[str, str] = field(default_factory=dict)
    """Gates whose last commit tells lists something else than their record, and what."""
    refused: dict[str, str] = field(default_factory=dict)
    """Gates and runs that stay here, and why, for people; `fates` is what the remote made of those that were pushed."""
    broken: dict[str, str] = field(default_factory=dict)
    fates: dict[str, tuple[RefFate, ...]] = field(default_factory=dict)
    overtaken: bool = False
    """Another command in this clone brought something meanwhile."""

    def lacks_objects(self, gate: str) -> bool:
        """Return whether the remote refused a gate because it cannot read objects that the gate is based on."""
        return any(fate.lacks_objects for fate in self.fates.get(gate, ()))

    @property
    def changed(self) -> bool:
        return any(
            (
                *(self.new, self.updated, self.again, self.pushed, self.archived, self.refused, self.broken),
                self.aside,
            )
        )
