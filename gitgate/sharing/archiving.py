"""Sharing: closed gates and ended runs, folded away and read again. Nothing is lost by it, and nothing comes back by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .. import text
from ..context import Desk
from ..context.targets import may_publish_work, remote_of, summaries
from ..errors import GateError
from ..gates import runs_here, settled_summary
from ..gates.history import prune_archived
from ..model import parse_trailers
from ..model.gate import Gate
from ..store.git.refs import ARCHIVE, CODE_OF_RUNS, RUNS
from ..store.records import NOBODY, Signature, closing
from ..store.remote import RefMove
from ..text import counted


@dataclass
class Archived:
    """Result of one run of folding. `kept` says why a closed gate or an ended run is still open."""

    remote: str | None
    folded: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    kept: dict[str, str] = field(default_factory=dict)


def fold_closed(desk: Desk, *, older_than: int = 0, remote: str | None = None) -> Archived:
    """Fold every gate that closed and every run that ended at least `older_than` seconds ago, first in the
    remote's archive and then in this clone's.
    """
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
    runs = [run for run in ended_runs(desk, older_than) if run.id not in done.kept]
    if ready or runs or (name is not None and has_lost(desk, name)):
        desk.progress(f"folding {counted(len(ready), 'closed gate')}, {counted(len(runs), 'ended run')}")
        result = closing.fold(
            desk.repo,
            [*(as_closed(desk, gate) for gate in ready), *runs],
            by=Signature(desk.settings.identity() or NOBODY, desk.at),
            remote=name,
            timeout=desk.network_timeout,
        )
        ours = {run.id for run in runs}
        done.folded = tuple(gate for gate in result.gates if gate not in ours)
        done.runs = tuple(run for run in result.gates if run in ours)
        done.kept.update(result.kept)
        forget_code(desk, done.runs)
    prune_archived(desk)
    return done


def has_lost(desk: Desk, remote: str) -> bool:
    """Return whether a month that is archived here is missing in the remote's archive, or at another commit there.

    The next fold puts back what the remote lacks.
    """
    ours = desk.refs.under(ARCHIVE)
    if not ours:
        return False
    from ..store.remote.fetch import ask_tips

    there = ask_tips(desk.repo, remote, [*ours], timeout=desk.network_timeout)
    return any(there.get(ref) != tip for ref, tip in ours.items())


def forget_code(desk: Desk, runs: Sequence[str]) -> None:
    """Delete the refs that keep the code of these runs. The runs are over, so that nothing needs the code any
    more.
    """
    there = desk.refs.under(*(CODE_OF_RUNS + run for run in runs)) if runs else {}
    if there:
        desk.refs.update([RefMove(ref, None, oid) for ref, oid in there.items()])


def closed_gates(desk: Desk) -> Iterator[Gate]:
    """Yield the gates to which nothing more will happen. The trailers are a hint; the record decides."""
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


def ended_runs(desk: Desk, older_than: int) -> Iterator[closing.Closed]:
    """Yield the runs that ended at least `older_than` seconds ago. The message of a run is a hint; its journal
    decides.
    """
    from ..store.records.journal import Journals

    for said in runs_here(desk):
        if not said.get("Closed"):
            continue
        try:
            run = Journals(desk.repo, desk.records).load(said["Run"], str(desk.refs.get(RUNS + said["Run"])))
        except GateError as broken:
            desk.progress(f"{said['Run']}: {broken.message}")
            continue
        if is_needed(desk, run.called_by[0]):
            continue
        if run.end is not None and desk.clock() - text.parse_time(run.end.at) >= older_than:
            yield closing.Closed(run.id, run.tip, run.end.at[:7], run=True)


def is_needed(desk: Desk, caller: str) -> bool:
    """Return whether the run that called another one is still open: it may yet read the result of the run that
    it called.
    """
    tip = desk.refs.get(RUNS + caller) if caller else None
    return tip is not None and not (parse_trailers(desk.records.commit(tip).message) or {}).get("Closed")


def last_at(gate: Gate) -> str:
    event = gate.history[-1].event
    return str(getattr(event, "at", "") or gate.opened.asked.at)


def seconds_since_end(desk: Desk, gate: Gate) -> float:
    return desk.clock() - text.parse_time(last_at(gate))


def as_closed(desk: Desk, gate: Gate) -> closing.Closed:
    """Return what the archive takes of a closed gate.

    The work is kept as evidence where it may be published, or where there is no remote to publish it to.
    """
    work = gate.opened.work
    shared = remote_of(desk) is None or may_publish_work(desk)
    keep = work.commit if shared else None
    return closing.Closed(gate.id, gate.tip, last_at(gate)[:7], keep)
