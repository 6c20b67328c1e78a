"""Service: gates that differ here and on the remote. Each is brought together by `reconcile`, or pushed, or named as broken.

Never brings a closed gate back: what the remote does not have open is looked for in its archive first.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.model import Answer, Entry, Gate
from ..core.reconcile import reconcile
from ..core.states import RESUMING
from ..errors import BrokenRecord, GateError, IllegalEvent, LostRace
from ..store.chain import Beside
from ..store.records import Signature
from ..store.refs import OPEN
from ..store.remote import RefMove
from .desk import Desk, split_person
from .publishing import may_publish_work, stands_on, work_moves
from .recording import NOBODY
from .syncing import MANY, OVERTAKEN, Sides, Synced

# Events recorded again by one git process: more would be held in memory, each with the whole list of its fellows.
TOGETHER = 100


def bring_in(
    desk: Desk, done: Synced, sides: Sides, differing: Mapping[str, str], before: Mapping[str, str]
) -> None:
    """Each gate is judged alone, so that a bad one hinders no other; the refs then move many at a time."""
    moves: dict[str, RefMove] = {}
    for count, (gate, tip) in enumerate(differing.items(), 1):
        if count % 500 == 0:
            desk.progress(f"reading gates: {count} of {len(differing)}")
        try:
            move = merged(desk, done, gate, sides.local.get(gate), tip, before.get(gate, ""))
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


def merged(
    desk: Desk, done: Synced, gate: str, local: str | None, remote: str, before: str
) -> RefMove | None:
    """Where the local ref of a gate has to go, seen what the remote has. A record that breaks the rules raises.

    `before` is how the tip began that the remote had until now: a record that does not go on from it was tampered with.
    """
    theirs = desk.records.load(gate, remote).history
    if local is None:
        return RefMove(OPEN + gate, remote, None)
    had = (
        next((entry.commit for entry in theirs if entry.commit.startswith(before)), before)
        if before
        else None
    )
    plan = reconcile(desk.records.load(gate, local).history, theirs, had)
    if plan.keep in ("same", "local"):
        return None
    tip = record_again(desk, done, gate, remote, plan.again) if plan.again else remote
    done.lost.extend(f"{gate} {entry.name}" for entry in plan.dropped)
    return RefMove(OPEN + gate, tip, local)


def record_again(desk: Desk, done: Synced, gate: str, remote: str, entries: tuple[Entry, ...]) -> str:
    """What was said here and not there, on top of theirs; the author's own commit stays reachable as second parent."""
    current: Gate = desk.records.load(gate, remote)
    who = desk.settings.identity() or NOBODY
    beside = Beside(desk.records, gate, current.history)
    for start in range(0, len(entries), TOGETHER):
        with desk.records.objects.together():
            for entry in entries[start : start + TOGETHER]:
                original = entry.parents[1] if len(entry.parents) > 1 else entry.commit
                try:
                    by = Signature(who, desk.at)
                    current = desk.records.repeat(current, entry, by, original, beside)
                except (IllegalEvent, BrokenRecord) as no_place:
                    done.lost.append(f"{gate} {entry.name}: {no_place.message}")
                    continue
                done.again.append(gate)
                if current.history[-1].name == "late":
                    done.late.append(late_words(current, entry))
    return current.tip


def late_words(gate: Gate, entry: Entry) -> str:
    """For whoever said it elsewhere, and brings it now: why it is of no effect."""
    said = entry.event
    if isinstance(said, Answer):
        from .answering import said_elsewhere, why_late

        again = f"; if it still holds: git gate respond {gate.id}" if said_elsewhere(gate, said) else ""
        return f"{gate.id} the answer of {said.at} by {split_person(said.by)}: {why_late(gate, said)}{again}"
    return (
        f"{gate.id} {entry.name}: its author had changed the same here by then, or the gate was {gate.state}"
    )


def push_home(desk: Desk, done: Synced, ahead: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Push every gate that is ahead here, each with its work, and none held up by another's fault."""
    from ..store.batches import push_gates

    remote = done.remote
    moves: list[RefMove] = []
    for gate, tip in without_archived(desk, done, ahead, theirs).items():
        loaded = desk.records.load(gate, tip)
        if loaded.state == RESUMING and theirs.get(gate) is None:
            continue  # Its claim and its lease are here: elsewhere it would look as if whoever holds it were gone.
        if not stands_on(loaded, theirs.get(gate)):
            done.refused[gate] = OVERTAKEN
            continue
        moves.append(RefMove(OPEN + gate, tip, theirs.get(gate)))
        if may_publish_work(desk):
            moves.extend(work_moves(desk, loaded, remote))
    if not moves:
        return
    desk.progress(f"pushing {len(ahead)} gates to {remote}")
    timeout = desk.settings.seconds("networkTimeout") or 60
    for fate in push_gates(desk.repo, remote, moves, timeout=timeout):
        gate = fate.ref.rpartition("/")[2]
        if not fate.ok:
            done.refused[gate] = fate.reason
        elif fate.ref.startswith(OPEN):
            done.pushed.append(gate)


def without_archived(
    desk: Desk, done: Synced, ahead: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """A gate that the remote does not have open may be closed there: its archive is asked before anything is pushed."""
    absent = [gate for gate in ahead if gate not in theirs]
    if not absent:
        return dict(ahead)
    from .archiving import settle_archived

    settled = settle_archived(desk, done.remote, {gate: ahead[gate] for gate in absent})
    done.archived.extend(settled.gates)
    done.lost.extend(
        f"{gate}, archived before; what was said here: git gate show {gate}" for gate in settled.late
    )
    done.broken.update(settled.kept)
    return {gate: tip for gate, tip in ahead.items() if gate not in (*settled.gates, *settled.kept)}
