"""Python: where things stand, gates and their work looked at, and both sides brought together."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Usage
from .terms import Directory, Event, Status, absolute_directory, open_desk, seen
from .terms import ShownGate as Gate

if TYPE_CHECKING:
    from ..acts.reporting import Json
    from ..audit import Verified
    from ..audit.origins import Origin
    from ..context.desk import Desk
    from ..exchange import Synced
    from ..gates.listing import Filter
    from ..gates.searching import FoundDecision
    from ..store.work.restore import Worktree


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

    start = absolute_directory(directory)
    with open_desk(directory) as desk:
        gate = find_gate(desk, str(id)).gate
        return open_place(desk, gate, beside(desk, gate) if place is None else start / place)


def tree(*, all: bool = False, directory: Directory = None) -> Mapping[str, tuple[Gate, ...]]:
    """Gates under the branch that their work is on; with `all` closed ones too. The branch is empty where there is none."""
    from ..gates.listing import Filter, by_branch, list_gates

    states = () if all else ("awaiting", "answered", "resuming", "failed")
    with open_desk(directory) as desk:
        return {
            branch: tuple(
                seen(desk, desk.records.load(one.id, one.tip)) for one in found if one.state != "broken"
            )
            for branch, found in by_branch(list_gates(desk, Filter(all=all, states=states))).items()
        }


def watch(
    id: str | Gate | None = None, *, for_: str | int | None = None, directory: Directory = None
) -> Iterator[Event]:
    """What happens to gates, as it happens; ends with the gate when one is named, or after so long.

    >>> for event in gitgate.watch("7k2f", for_="10m"): ...
    """
    from ..text.times import parse_duration

    seconds = None if for_ is None else parse_duration(str(for_))
    return watched(None if id is None else str(id), seconds, absolute_directory(directory))


def watched(given: str | None, seconds: int | None, start: Path) -> Iterator[Event]:
    from ..acts.reporting import watch_events as follow

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


def list(  # noqa: A001 - the verb's name
    *,
    all: bool = False,
    state: str | Sequence[str] = (),
    awaiting: bool = False,
    type: str | None = None,
    branch: str | None = None,
    pr: int | None = None,
    mine: bool = False,
    asked_by: str | None = None,
    sync: bool = False,
    directory: Directory = None,
) -> tuple[Gate, ...]:
    """What waits or needs a person, most pressing first; with `all` any state, archived gates last.

    >>> [gate.title for gate in gitgate.list(branch="main")]
    """
    from ..gates import listing

    states = (state,) if isinstance(state, str) else tuple(state)
    kind = None if type is None else known_type(type)
    with open_desk(directory) as desk:
        if sync:
            from ..exchange.syncing import sync as bring_together

            bring_together(desk)
        chosen = listing.Filter(
            all=all,
            states=(*states, "awaiting") if awaiting else states,
            type=kind,
            branch=branch,
            pull_request=pr,
            mine=desk.person() if mine else None,
            asked_by=asked_by,
        )
        return found(desk, chosen)


def known_type(given: str) -> str:
    from ..questions.types import TYPES, type_name

    kind = type_name(given)
    if kind is None:
        raise Usage(f"{given!r} is not a type of question; expected one of {', '.join(TYPES)}")
    return kind


def found(desk: Desk, chosen: Filter) -> tuple[Gate, ...]:
    """The gates whose records are whole; those of the archive last."""
    from ..gates import listing

    here = [one for one in listing.list_gates(desk, chosen) if one.state != "broken"]
    if chosen.mine is not None:
        from ..policy.permit import mine

        here = mine(desk, here)
    away = listing.archived(desk, chosen) if chosen.all else []
    return (
        *(seen(desk, desk.records.load(one.id, one.tip)) for one in here),
        *(seen(desk, desk.records.load(one.id, one.tip), archived=True) for one in away),
    )


def show(id: str | Gate | None = None, *, directory: Directory = None) -> Gate:
    """One gate, open or archived; `details["history"]` has every event.

    >>> gitgate.show("7k2f").details["work"]
    """
    from ..acts.reading import find_gate
    from ..render import shapes

    with open_desk(directory) as desk:
        found = find_gate(desk, None if id is None else str(id))
        gate = seen(desk, found.gate, pushed=found.pushed, archived=found.archived)
        details = {**gate.details, "history": shapes.history(found.gate.history)}
        return replace(gate, details=details)


def status(*, directory: Directory = None) -> Status:
    """Where things stand: all gates counted, and each agent with what it waits for."""
    from ..acts.reporting import overall_status

    with open_desk(directory) as desk:
        fields, _ = overall_status(desk)
        counts, agents = fields["counts"], fields["agents"]
        return Status(
            counts if isinstance(counts, dict) else {},
            tuple(agents) if isinstance(agents, builtins.list) else (),
        )


def log(
    id: str | Gate | None = None, *, n: int | None = None, directory: Directory = None
) -> tuple[Event, ...]:
    """The audit trail of one gate or of all, newest first."""
    from ..acts.reporting import events_of_all, events_of_one

    with open_desk(directory) as desk:
        events = events_of_all(desk) if id is None else events_of_one(desk, str(id))
        return tuple(map(event_of, events[:n]))


def sync(
    remote: str | None = None, *, put_aside: str | Gate | None = None, directory: Directory = None
) -> Synced:
    """Fetch and push gates, and bring the two sides together. Never loses a local one.

    Of the gate `put_aside`, all that the remote does not have is put aside first: for what the remote does not take.

    >>> [one.ref for one in gitgate.sync(put_aside="7k2f").aside]
    """
    from ..exchange.syncing import sync as bring_together

    with open_desk(directory) as desk:
        return bring_together(desk, remote, aside=None if put_aside is None else str(put_aside))


def verify(*ids: str | Gate, branch: str | None = None, directory: Directory = None) -> Verified:
    """Check every gate's chain, bindings and signatures, or only those named.

    >>> assert gitgate.verify().ok
    """
    from ..audit.auditing import audit, refuse_unsynced

    with open_desk(directory) as desk:
        if branch is not None:
            refuse_unsynced(desk)
        return audit(desk, tuple(map(str, ids)), branch)


def why(file: str | Path, *, rev: str | None = None, directory: Directory = None) -> tuple[Origin, ...]:
    """Which decisions led to these lines: of a whole file, of `FILE:LINE` or of `FILE:LINE,LINE`.

    >>> [one.gate for one in gitgate.why("src/db.py:40,60") if one.verified]
    """
    from ..audit.origins import origins, read_asked

    with open_desk(directory) as desk:
        return tuple(origins(desk, read_asked(desk, absolute_directory(directory), str(file), rev)))


def search(
    *words: str,
    type: str | None = None,
    by: str | None = None,
    since: str | None = None,
    limit: int = 20,
    directory: Directory = None,
) -> tuple[FoundDecision, ...]:
    """Earlier decisions that have all these words, the most fitting first, then the newest. Open gates and archived ones.

    >>> [one.gate.opened.title for one in gitgate.search("which database", since="90d")]
    """
    from ..gates.searching import SearchTerms
    from ..gates.searching import search as look_through
    from ..text.times import parse_since

    kind = None if type is None else known_type(type)
    with open_desk(directory) as desk:
        moment = 0.0 if since is None else parse_since(since, desk.clock())
        return tuple(look_through(desk, SearchTerms(words, kind, by, moment, limit))[0])
