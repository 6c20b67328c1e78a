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
from .publishing import may_publish_work, push_moves, remote_of, stands_on, work_moves
from .recording import NOBODY

MANY = 500


@dataclass(frozen=True)
class Sides:
    """The tips of all open gates, by gate: here, and on the remote."""

    local: Mapping[str, str]
    theirs: Mapping[str, str]


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
    done, sides = listen(desk, name)
    push_home(desk, name, done, sides)
    return done


def bring_home(desk: Desk, remote: str) -> Synced:
    """Fetch into the tracking namespace, then merge each gate that differs into the local one."""
    return listen(desk, remote)[0]


def listen(desk: Desk, remote: str) -> tuple[Synced, Sides]:
    """What the remote says, brought together with what is here; and both sides as they are afterwards."""
    from ..store.fetch import begin_fetch

    timeout = desk.settings.seconds("networkTimeout") or 60
    desk.progress(f"asking {remote}")
    with begin_fetch(desk.repo, remote, timeout=timeout) as polling:
        sides = both_sides(
            desk, remote
        )  # while git talks: usually nothing is new, and this is all there is to know
        if polling.wait().changed:
            sides = both_sides(desk, remote)
    done = Synced(remote)
    remember_sync(desk)
    differing = {gate: tip for gate, tip in sides.theirs.items() if sides.local.get(gate) != tip}
    if not differing:
        return done, sides
    if len(differing) > MANY and desk.bulk is False:
        desk.work_in_bulk()
    bring_in(desk, done, sides, differing)
    if len(done.new) > MANY:
        # So many loose refs would make every later command slow; packed, git reads them at once.
        desk.repo.git.run("pack-refs", "--all", check=False)
    return done, both_sides(desk, remote)


def remember_sync(desk: Desk) -> None:
    """So that an empty list can say `nothing waits` and mean it."""
    mark = desk.repo.state_dir / "synced"
    if not mark.exists():
        try:
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
        except OSError as unwritable:
            desk.progress(f"{mark} cannot be written: {unwritable.strerror}")


def both_sides(desk: Desk, remote: str) -> Sides:
    """The tips here and there, from one listing."""
    base = f"{tracking_base(remote)}open/"
    local: dict[str, str] = {}
    theirs: dict[str, str] = {}
    for ref, oid in desk.refs.under(OPEN, base).items():
        if ref.startswith(OPEN):
            local[ref.removeprefix(OPEN)] = oid
        else:
            theirs[ref.removeprefix(base)] = oid
    return Sides(local, theirs)


def bring_in(desk: Desk, done: Synced, sides: Sides, differing: Mapping[str, str]) -> None:
    """Each gate is judged alone, so that a bad one hinders no other; the refs then move many at a time."""
    moves: dict[str, RefMove] = {}
    for count, (gate, tip) in enumerate(differing.items(), 1):
        if count % 500 == 0:
            desk.progress(f"reading gates: {count} of {len(differing)}")
        try:
            move = merged(desk, done, gate, sides.local.get(gate), tip)
        except GateError as wrong:
            done.broken[gate] = wrong.message
        else:
            if move is not None:
                moves[gate] = move
    gates = list(moves)
    for start in range(0, len(gates), MANY):
        move_some(desk, done, {gate: moves[gate] for gate in gates[start : start + MANY]})


def move_some(desk: Desk, done: Synced, moves: Mapping[str, RefMove]) -> None:
    """All at once; when somebody moved one of them meanwhile, one by one, so that only that one waits."""
    try:
        desk.refs.update(list(moves.values()))
    except LostRace:
        if len(moves) == 1:
            done.broken.update(dict.fromkeys(moves, "it is being changed right now; sync again"))
            return
        for gate, move in moves.items():
            move_some(desk, done, {gate: move})
    else:
        for gate, move in moves.items():
            (done.new if move.old is None else done.updated).append(gate)


def merged(desk: Desk, done: Synced, gate: str, local: str | None, remote: str) -> RefMove | None:
    """Where the local ref of a gate has to go, seen what the remote has. A record that breaks the rules raises."""
    theirs = desk.records.load(gate, remote).history
    if local is None:
        return RefMove(OPEN + gate, remote, None)
    plan = reconcile(desk.records.load(gate, local).history, theirs)
    if plan.keep in ("same", "local"):
        return None
    tip = record_again(desk, done, gate, remote, plan.again) if plan.again else remote
    done.lost.extend(f"{gate} {entry.name}" for entry in plan.dropped)
    return RefMove(OPEN + gate, tip, local)


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


def push_home(desk: Desk, remote: str, done: Synced, sides: Sides) -> None:
    """Push every gate that is ahead here, each in a group of its own with its work."""
    local, theirs = sides.local, sides.theirs
    ahead = {gate: tip for gate, tip in local.items() if theirs.get(gate) != tip and gate not in done.broken}
    if not ahead:
        return
    ahead = without_archived(desk, remote, done, ahead, theirs)
    moves: list[RefMove] = []
    for gate, tip in ahead.items():
        loaded = desk.records.load(gate, tip)
        if not stands_on(loaded, theirs.get(gate)):
            done.refused[gate] = "it was changed there just now; sync again"
            continue
        moves.append(RefMove(OPEN + gate, tip, theirs.get(gate)))
        if may_publish_work(desk):
            moves.extend(work_moves(desk, loaded, remote))
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
