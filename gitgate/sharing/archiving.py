"""Sharing: closed gates, folded away and read again. Nothing is lost by it, and nothing comes back by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..context.desk import Desk
from ..context.find import summaries
from ..context.recording import NOBODY
from ..context.remotes import may_publish_work, remote_of
from ..errors import GateError
from ..gates.archived import tidy
from ..gates.listing import settled_summary
from ..model.gate import Gate
from ..store.records import closing
from ..store.records.records import Signature
from ..text import times


@dataclass
class Archived:
    """What one run of folding did. `kept` says why a closed gate is still open."""

    remote: str | None
    folded: tuple[str, ...] = ()
    kept: dict[str, str] = field(default_factory=dict)


def fold_closed(desk: Desk, *, older_than: int = 0, remote: str | None = None) -> Archived:
    """Fold every gate that closed at least so many seconds ago, in the remote's archive and then in ours."""
    name = remote or remote_of(desk)
    done = Archived(name)
    if name is not None:
        from ..exchange.syncing import sync

        # What the remote has to say comes first: a gate that changed there is not folded as it was here.
        synced = sync(desk, name)
        done.kept.update(synced.refused)
    ready = [
        gate
        for gate in closed_gates(desk)
        if gate.id not in done.kept and seconds_since_end(desk, gate) >= older_than
    ]
    if ready:
        desk.progress(f"folding {len(ready)} closed gates")
        result = closing.fold(
            desk.repo,
            [as_closed(desk, gate) for gate in ready],
            by=Signature(desk.settings.identity() or NOBODY, desk.at),
            remote=name,
            timeout=desk.settings.seconds("networkTimeout") or 60,
        )
        done.folded = tuple(result.gates)
        done.kept.update(result.kept)
    tidy(desk)
    return done


def closed_gates(desk: Desk) -> Iterator[Gate]:
    """The gates to which nothing more will happen. The trailers are a hint; the record decides."""
    now = desk.now
    for summary in list(summaries(desk)):
        current = settled_summary(desk, summary) if summary.deadline and summary.deadline <= now else summary
        if not current.closed:
            continue
        try:
            gate = desk.records.load(current.id, current.tip)
        except GateError as broken:
            desk.progress(f"{current.id}: {broken.message}")
            continue
        if gate.closed:
            yield gate


def last_at(gate: Gate) -> str:
    event = gate.history[-1].event
    return str(getattr(event, "at", "") or gate.opened.asked.at)


def seconds_since_end(desk: Desk, gate: Gate) -> float:
    return desk.clock() - times.parse_time(last_at(gate))


def as_closed(desk: Desk, gate: Gate) -> closing.Closed:
    """The work goes along as evidence where it may be published, or where there is nobody to publish it to."""
    work = gate.opened.work
    shared = remote_of(desk) is None or may_publish_work(desk)
    keep = work.commit if shared else None
    return closing.Closed(gate.id, gate.tip, last_at(gate)[:7], keep)
