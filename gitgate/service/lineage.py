"""Service: which gate came of which. A resumed agent that asks again opens a gate that names the one it follows."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.summary import Summary, by_pressure, summary_of
from ..core.values import dataclass
from ..errors import GateError
from ..store.refs import OPEN
from .desk import Desk

MOST_STEPS = 100


@dataclass(frozen=True)
class Family:
    """Gates of a branch, and by gate the one that it follows; `found` has those that are followed, too."""

    found: tuple[Summary, ...]
    follows: dict[str, str]

    def children(self, of: str) -> list[Summary]:
        return [one for one in self.found if self.follows.get(one.id) == of]

    @property
    def first(self) -> list[Summary]:
        """Those that follow none of the others."""
        return [one for one in self.found if one.id not in self.follows]


def families(desk: Desk, branches: dict[str, list[Summary]]) -> dict[str, Family]:
    return {branch: family(desk, branch, found) for branch, found in branches.items()}


def family(desk: Desk, branch: str, found: Sequence[Summary]) -> Family:
    """With what each of them follows on the same branch, over or not; what is archived is left out."""
    members = {one.id: one for one in found}
    follows: dict[str, str] = {}
    for one in found:
        current = one
        for _ in range(MOST_STEPS):  # who writes records may close a circle; a gate is entered once
            before = predecessor(desk, current)
            if (
                before is None
                or before.branch != branch
                or current.id in follows
                or circular(follows, current.id, before.id)
            ):
                break
            follows[current.id] = before.id
            members.setdefault(before.id, before)
            current = before
    return Family(tuple(by_pressure(members.values())), follows)


def circular(follows: dict[str, str], gate: str, before: str) -> bool:
    seen: str | None = before
    while seen is not None and seen != gate:
        seen = follows.get(seen)
    return seen == gate


def predecessor(desk: Desk, one: Summary) -> Summary | None:
    try:
        name = desk.records.load(one.id, one.tip).opened.follows
        tip = desk.refs.get(OPEN + name) if name else None
        return summary_of(name, tip, desk.records.commit(tip).message) if name and tip else None
    except GateError:
        return None
