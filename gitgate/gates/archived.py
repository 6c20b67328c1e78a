"""Gates: gates and runs in the archive, read again, and told apart from those that are only gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..context.desk import Desk
from ..document.values import replace
from ..errors import AmbiguousGate, GateError
from ..model.gate import Answer, Gate
from ..record.events import counted_entry
from ..store.records import archive, closing
from ..store.records.records import NOBODY, Signature

if TYPE_CHECKING:
    from ..record.runs import Run


def prune_archived(desk: Desk) -> None:
    """What lies beside gates that are archived, and is kept elsewhere or worth nothing, goes."""
    closing.prune(desk.repo, lambda gate, tip: not has_partial_work(desk, gate, tip))


def has_partial_work(desk: Desk, gate: str, tip: str) -> bool:
    """Whether its work is more than the commit that the agent stood on; what cannot be read is kept."""
    try:
        return desk.records.load(gate, tip).opened.work.changed
    except GateError:
        return True


def settle_archived(desk: Desk, remote: str, absent: Mapping[str, str]) -> closing.Folded:
    """Which of these gates, open here and not there, the remote has archived, with why one is still open here."""
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    result = closing.settle(desk.repo, remote, absent, by=by, timeout=desk.network_timeout)
    if result.gates:
        prune_archived(desk)
    return result


def load_archived(desk: Desk, prefix: str) -> Gate | None:
    """The archived gate that `prefix` names, from any month's archive, ours or a remote's."""
    one = the_archived(desk, prefix)
    return with_late(desk, desk.records.load(one.id, one.tip), one.late) if one and one.tip else None


def load_archived_run(desk: Desk, prefix: str) -> Run | None:
    """The archived run that `prefix` names."""
    one = the_archived(desk, prefix, runs=True)
    if one is None or not one.tip:
        return None
    from ..store.records.journal import Journals

    return Journals(desk.repo, desk.records).load(one.id, one.tip)


def the_archived(desk: Desk, prefix: str, *, runs: bool = False) -> archive.ArchivedGate | None:
    found = archive.archived_ids(desk.repo, prefix, runs=runs)
    if len(found) > 1:
        raise AmbiguousGate(f"{prefix} could be {', '.join(found[:8])}", hint="type more of the id")
    there = archive.find_archived(desk.repo, archive.shelves(desk.repo), found)
    return there[found[0]] if there else None


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
                late.append(counted_entry(entry, entry.event))
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


def archived_runs(desk: Desk) -> Iterator[tuple[str, str]]:
    """(id, tip) of every archived run."""
    return ((one.id, one.tip) for one in archive.listing_of_runs(desk.repo))
