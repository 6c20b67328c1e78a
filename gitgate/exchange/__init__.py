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
    """Why a gate is not pushed, for people; empty where that goes without saying."""

    ACTED_ON = ""
    OVERTAKEN = "it was changed there just now; sync again"


@dataclass(frozen=True)
class Sides:
    """The tips of all open gates, by gate: here, and on the remote."""

    local: Mapping[str, str]
    theirs: Mapping[str, str]
    runs: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """The journals of runs that are not the same on both sides: here, and on the remote."""


@dataclass(frozen=True)
class PutAside:
    """An event that was recorded here and that the remote never takes: why, and the ref that keeps it."""

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
    """What a sync did, gate by gate. `lost`: what found no place any more; `late`: what is kept, and without effect.
    `aside`: what the remote never takes; `open`: how many gates are open here.
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
    """Of those that were pushed, the gates that were gone from there."""
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
        """Whether the remote refused it since it cannot read what it stands on."""
        return any(fate.lacks_objects for fate in self.fates.get(gate, ()))

    @property
    def changed(self) -> bool:
        return any(
            (
                *(self.new, self.updated, self.again, self.pushed, self.archived, self.refused, self.broken),
                self.aside,
            )
        )
