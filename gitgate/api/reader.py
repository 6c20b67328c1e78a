"""Python: where things stand, and both sides brought together."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ..errors import Usage
from .door import Directory, open_desk, seen
from .looker import event_of
from .values import Event, Gate, Problem, PutAside, Status, Synced, Verified

if TYPE_CHECKING:
    from ..context.desk import Desk
    from ..gates.listing import Filter


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

    here = [one for one in listing.listed(desk, chosen) if one.state != "broken"]
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
        done = bring_together(desk, remote, aside=None if put_aside is None else str(put_aside))
        return Synced(
            done.remote,
            tuple(done.new),
            tuple(done.updated),
            tuple(done.pushed),
            tuple(done.archived),
            tuple(done.lost),
            dict(done.refused),
            dict(done.broken),
            tuple(done.late),
            tuple(PutAside(**asdict(one)) for one in done.aside),
        )


def verify(*ids: str | Gate, branch: str | None = None, directory: Directory = None) -> Verified:
    """Check every gate's chain, bindings and signatures, or only those named.

    >>> assert gitgate.verify().ok
    """
    from ..audit.auditing import audit, refuse_unsynced

    with open_desk(directory) as desk:
        if branch is not None:
            refuse_unsynced(desk)
        done = audit(desk, tuple(map(str, ids)), branch)
        problems, notes = (
            tuple(Problem(one.gate, one.commit, one.kind, one.words) for one in found)
            for found in (done.problems, done.notes)
        )
        return Verified(not problems, done.gates, done.events, problems, notes)
