"""Python: gates and their work looked at: the diff, a worktree, the tree of branches, what happens as it happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .door import Directory, open_desk, seen, standing
from .values import Event, Gate, Worktree

if TYPE_CHECKING:
    from ..acts.reporting import Json


def diff(id: str | Gate | None = None, *, stat: bool = False, directory: Directory = None) -> str:
    """The partial work as a diff against the commit that it stands on; empty where there is none."""
    from ..acts.reading import find_gate
    from ..gates.work import diff_of

    with open_desk(directory) as desk:
        return diff_of(desk, find_gate(desk, None if id is None else str(id)).gate, stat=stat)


def worktree(id: str | Gate, place: str | Path | None = None, *, directory: Directory = None) -> Worktree:
    """The partial work as a worktree, to look around and try things in: at `place`, or beside the repository.

    >>> looked_at = gitgate.worktree("7k2f").directory
    """
    from ..acts.reading import find_gate
    from ..gates.work import beside, open_place

    start = standing(directory)
    with open_desk(directory) as desk:
        gate = find_gate(desk, str(id)).gate
        made = open_place(desk, gate, beside(desk, gate) if place is None else start / place)
        return Worktree(gate.id, made.directory, made.branch, tuple(made.notes))


def tree(*, all: bool = False, directory: Directory = None) -> Mapping[str, tuple[Gate, ...]]:
    """Gates under the branch that their work is on; with `all` closed ones too. The branch is empty where there is none."""
    from ..gates.listing import Filter, by_branch, listed

    states = () if all else ("awaiting", "answered", "resuming", "failed")
    with open_desk(directory) as desk:
        return {
            branch: tuple(
                seen(desk, desk.records.load(one.id, one.tip)) for one in found if one.state != "broken"
            )
            for branch, found in by_branch(listed(desk, Filter(all=all, states=states))).items()
        }


def watch(
    id: str | Gate | None = None, *, for_: str | int | None = None, directory: Directory = None
) -> Iterator[Event]:
    """What happens to gates, as it happens; ends with the gate when one is named, or after so long.

    >>> for event in gitgate.watch("7k2f", for_="10m"): ...
    """
    from ..text.times import parse_duration

    seconds = None if for_ is None else parse_duration(str(for_))
    return watched(None if id is None else str(id), seconds, standing(directory))


def watched(given: str | None, seconds: int | None, start: Path) -> Iterator[Event]:
    from ..acts.reporting import watch as follow

    with open_desk(start) as desk:
        for event in follow(desk, given, seconds):
            yield event_of(event)


def event_of(event: Json) -> Event:
    return Event(
        gate=str(event["gate"]),
        event=str(event["event"]),
        at=str(event["at"]),
        by=None if event["by"] is None else str(event["by"]),
        text=str(event.get("text", "")),
        commit=str(event["commit"]),
    )
