"""Service: closed gates, folded away and read again. Nothing is lost by it, and nothing comes back by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..core import times
from ..core.fold import counted
from ..core.model import Answer, Gate
from ..errors import AmbiguousGate, GateError
from ..store import archive, closing
from ..store.records import Signature
from .desk import Desk
from .listing import settled, summaries
from .publishing import may_publish_work, remote_of
from .recording import NOBODY


@dataclass
class Folding:
    """What one run of folding did. `kept` says why a closed gate is still open."""

    remote: str | None
    folded: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def fold_closed(desk: Desk, *, older_than: int = 0, remote: str | None = None) -> Folding:
    """Fold every gate that closed at least so many seconds ago, in the remote's archive and then in ours."""
    name = remote or remote_of(desk)
    done = Folding(name)
    if name is not None:
        from .syncing import sync

        # What the remote has to say comes first: a gate that changed there is not folded as it was here.
        synced = sync(desk, name)
        done.kept.update(synced.refused)
    ready = [
        gate for gate in closed_gates(desk) if gate.id not in done.kept and age(desk, gate) >= older_than
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
        done.folded.extend(result.gates)
        done.kept.update(result.kept)
    tidy(desk)
    return done


def tidy(desk: Desk) -> None:
    """What lies beside gates that are archived, and is kept elsewhere or worth nothing, goes."""
    closing.prune(desk.repo, lambda gate, tip: not has_partial_work(desk, gate, tip))


def has_partial_work(desk: Desk, gate: str, tip: str) -> bool:
    """Whether its work is more than the commit that the agent stood on; what cannot be read is kept."""
    try:
        return desk.records.load(gate, tip).opened.work.changed
    except GateError:
        return True


def closed_gates(desk: Desk) -> Iterator[Gate]:
    """The gates to which nothing more will happen. The trailers are a hint; the record decides."""
    now = desk.now
    for summary in list(summaries(desk)):
        current = settled(desk, summary) if summary.deadline and summary.deadline <= now else summary
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


def age(desk: Desk, gate: Gate) -> float:
    return desk.clock() - times.parse_time(last_at(gate))


def as_closed(desk: Desk, gate: Gate) -> closing.Closed:
    """The work goes along as evidence where it may be published, or where there is nobody to publish it to."""
    work = gate.opened.work
    shared = remote_of(desk) is None or may_publish_work(desk)
    keep = work.commit if shared else None
    return closing.Closed(gate.id, gate.tip, last_at(gate)[:7], keep)


def settle_archived(desk: Desk, remote: str, absent: Mapping[str, str]) -> closing.Folded:
    """Which of these gates, open here and not there, the remote has archived, with why one is still open here."""
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    timeout = desk.settings.seconds("networkTimeout") or 60
    result = closing.settle(desk.repo, remote, absent, by=by, timeout=timeout)
    if result.gates:
        tidy(desk)
    return result


def load_archived(desk: Desk, prefix: str) -> Gate | None:
    """The archived gate that `prefix` names, from any month's archive, ours or a remote's."""
    found = archive.named(desk.repo, prefix)
    if len(found) > 1:
        raise AmbiguousGate(f"{prefix} could be {', '.join(found[:8])}", hint="type more of the id")
    there = archive.find(desk.repo, archive.shelves(desk.repo), found)
    one = there[found[0]] if there else None
    return with_late(desk, desk.records.load(one.id, one.tip), one.late) if one and one.tip else None


def with_late(desk: Desk, gate: Gate, tips: tuple[str, ...]) -> Gate:
    """With the answers that came when it was in the archive already: they change nothing, but somebody gave them."""
    said = [entry.event for entry in gate.history]
    late = []
    for tip in tips:
        try:
            entries = desk.records.load(gate.id, tip).history
        except GateError as broken:
            desk.progress(f"{gate.id}: what came late cannot be read: {broken.message}")
            continue
        for entry in entries:
            if isinstance(entry.event, Answer) and entry.event not in said:
                said.append(entry.event)
                late.append(counted(entry, entry.event))
    return replace(gate, late=(*gate.late, *late))


def archived_gates(desk: Desk) -> Iterator[Gate]:
    """Every archived gate. One whose record is broken is reported and left out."""
    for one in archive.listing(desk.repo):
        try:
            yield desk.records.load(one.id, one.tip)
        except GateError as broken:
            desk.progress(f"{one.id}: {broken.message}")


def archived_tips(desk: Desk) -> Iterator[tuple[str, str]]:
    """(id, tip) of every archived gate, for whoever checks them all."""
    return ((one.id, one.tip) for one in archive.listing(desk.repo))
