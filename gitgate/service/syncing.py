"""Service: this clone and the shared repository, brought together. Never loses a local gate, never brings a closed one back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.model import Entry, Gate
from ..core.reconcile import reconcile
from ..errors import BrokenRecord, Failure, GateError, IllegalEvent, LostRace
from ..store.records import Signature
from ..store.refs import OPEN
from ..store.remote import RefMove, tracking_base
from .desk import Desk
from .publishing import may_publish_work, push_moves, remote_of, work_moves
from .recording import NOBODY


@dataclass
class Synced:
    """What a sync did, gate by gate."""

    remote: str
    new: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    pushed: list[str] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return any(
            (self.new, self.updated, self.again, self.pushed, self.archived, self.refused, self.broken)
        )


def sync(desk: Desk, remote: str | None = None) -> Synced:
    """Fetch, bring together, push what the remote lacks; report each gate's fate."""
    name = remote or remote_of(desk)
    if name is None:
        raise Failure("there is no remote to sync with", hint="git remote add origin URL")
    done = bring_home(desk, name)
    push_home(desk, name, done)
    return done


def bring_home(desk: Desk, remote: str) -> Synced:
    """Fetch into the tracking namespace, then merge each gate that differs into the local one."""
    from ..store.fetch import fetch

    timeout = desk.settings.seconds("networkTimeout") or 60
    fetch(desk.repo, remote, timeout=timeout)
    done = Synced(remote)
    local, theirs = both_sides(desk, remote)
    for gate, tip in theirs.items():
        if local.get(gate) != tip:
            merge_safely(desk, done, gate, local.get(gate), tip)
    return done


def both_sides(desk: Desk, remote: str) -> tuple[dict[str, str], dict[str, str]]:
    """The tips here and there, by gate, from one listing."""
    base = f"{tracking_base(remote)}open/"
    listed = desk.refs.under(OPEN, base)
    local = {ref.removeprefix(OPEN): oid for ref, oid in listed.items() if ref.startswith(OPEN)}
    theirs = {ref.removeprefix(base): oid for ref, oid in listed.items() if ref.startswith(base)}
    return local, theirs


def merge_safely(desk: Desk, done: Synced, gate: str, local: str | None, remote: str) -> None:
    """One bad gate is reported and left alone; the others go on."""
    try:
        merge(desk, done, gate, local, remote)
    except LostRace:
        done.broken[gate] = "it is being changed right now; sync again"
    except GateError as wrong:
        done.broken[gate] = wrong.message


def merge(desk: Desk, done: Synced, gate: str, local: str | None, remote: str) -> None:
    theirs = desk.records.entries(gate, remote)
    desk.records.load(gate, remote)
    if local is None:
        desk.refs.update([RefMove(OPEN + gate, remote, None)])
        done.new.append(gate)
        return
    ours = desk.records.entries(gate, local)
    plan = reconcile(ours, theirs)
    if plan.keep in ("same", "local"):
        return
    tip = remote
    if plan.again:
        tip = record_again(desk, done, gate, remote, plan.again)
    desk.refs.update([RefMove(OPEN + gate, tip, local)])
    done.updated.append(gate)
    done.lost.extend(f"{gate} {entry.name}" for entry in plan.dropped)


def record_again(desk: Desk, done: Synced, gate: str, remote: str, entries: tuple[Entry, ...]) -> str:
    """What was said here and not there, on top of theirs; the author's own commit stays reachable as second parent."""
    current: Gate = desk.records.load(gate, remote)
    who = desk.settings.identity() or NOBODY
    for entry in entries:
        original = entry.parents[1] if len(entry.parents) > 1 else entry.commit
        try:
            current = desk.records.repeat(current, entry, Signature(who, desk.at), original)
        except (IllegalEvent, BrokenRecord) as no_place:
            done.lost.append(f"{gate} {entry.name}: {no_place.message}")
        else:
            done.again.append(gate)
    return current.tip


def push_home(desk: Desk, remote: str, done: Synced) -> None:
    """Push every gate that is ahead here, each in a group of its own with its work."""
    local, theirs = both_sides(desk, remote)
    ahead = {gate: tip for gate, tip in local.items() if theirs.get(gate) != tip and gate not in done.broken}
    if not ahead:
        return
    ahead = without_archived(desk, remote, done, ahead, theirs)
    moves: list[RefMove] = []
    for gate, tip in ahead.items():
        moves.append(RefMove(OPEN + gate, tip, theirs.get(gate)))
        if may_publish_work(desk):
            moves.extend(work_moves(desk, desk.records.load(gate, tip), remote))
    if not moves:
        return
    desk.progress(f"pushing {len(ahead)} gates to {remote}")
    for fate in push_moves(desk, remote, moves):
        gate = fate.ref.rpartition("/")[2]
        if not fate.ok:
            done.refused[gate] = fate.reason
        elif fate.ref.startswith(OPEN):
            done.pushed.append(gate)


def without_archived(
    desk: Desk, remote: str, done: Synced, ahead: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """A gate that the remote does not have open may be closed there: its archive is asked before anything is pushed."""
    absent = [gate for gate in ahead if gate not in theirs]
    if not absent:
        return dict(ahead)
    from .archiving import settle_archived

    settled = settle_archived(desk, remote, {gate: ahead[gate] for gate in absent})
    done.archived.extend(gate for gate, kept in settled.items() if not kept)
    done.broken.update({gate: kept for gate, kept in settled.items() if kept})
    return {gate: tip for gate, tip in ahead.items() if gate not in settled}
