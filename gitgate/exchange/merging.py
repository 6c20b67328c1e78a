"""Exchange: gates and runs that differ here and on the remote. Each gate is brought together by `reconcile`, or pushed, or named as
broken. A run's journal only grows, so that the longer one is the one; whoever goes on with a run that the remote knows
writes there as well, and here it is only carried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from ..context import Desk
from ..context.targets import beside, may_publish_work, work_moves
from ..errors import BrokenRecord, Failure, GateError, IllegalEvent, LostRace
from ..gates.recording import reload
from ..model import RESUMING, parse_trailers, split_person
from ..model.gate import Answer, Entry, Gate
from ..questions.prompts import is_late_outcome
from ..record import contradiction, events
from ..record.events import reconcile, repeatable, said_elsewhere, why_late
from ..store.git.refs import ASIDE, DOUBTED, LEASES, OPEN, RUNS
from ..store.records import AT_ONCE, MOST_STEPS, NOBODY, Beside, Signature
from ..store.remote import RefMove
from ..store.remote.push import push, push_gates
from . import MANY, PutAside, Sides, Stays, Synced, entering

# Events recorded again by one git process: more would be held in memory, each with the whole list of its fellows.
TOGETHER = 100
FEW = 25  # So many records are read before another git has answered.


def bring_in(
    desk: Desk, done: Synced, sides: Sides, differing: Mapping[str, str], before: Mapping[str, str]
) -> None:
    """Bring in the gates that differ on the remote.

    Each gate is judged alone, so that a bad one hinders no other; the refs then move many at a time.
    """
    # So many loose refs would make every later command slow; packed, git reads them at once. Those that the fetch wrote
    # are packed while the records are read: that waits for the disk, and reading does not.
    packing = desk.repo.git.begin("pack-refs", "--all") if len(differing) > MANY else None
    if sum(gate in sides.local for gate in differing) > MANY and desk.bulk is False:
        desk.work_in_bulk()
    moves: dict[str, RefMove] = {}
    for gate, tip in at_hand(desk, differing, sides.local):
        try:
            theirs = desk.records.load(gate, tip)
            move = merged(desk, done, theirs, sides.local.get(gate), before.get(gate, ""))
            if move is not None and move.new == tip:
                why = contradiction(desk.records.commit(tip), theirs)
                done.doubted.update({gate: why} if why else {})
        except GateError as wrong:
            done.broken[gate] = wrong.message
        else:
            if move is not None:
                moves[gate] = move
    if packing is not None:
        packing.result()
    mark_doubted(desk, done, sides, moves)
    move_all(desk, done, moves)


def mark_doubted(desk: Desk, done: Synced, sides: Sides, moves: Mapping[str, RefMove]) -> None:
    """Mark the commits whose message tells lists something else than their record has. Lists then read those records.

    A remote without our hook accepts such commits.
    """
    before = desk.refs.under(DOUBTED) if desk.refs.may_have(DOUBTED) else {}
    marks = [RefMove(DOUBTED + gate, moves[gate].new, before.get(DOUBTED + gate)) for gate in done.doubted]
    kept = {DOUBTED + gate for gate in sides.theirs if gate not in moves or gate in done.doubted}
    gone = [RefMove(ref, None, tip) for ref, tip in before.items() if ref not in kept]
    with suppress(LostRace):  # another command of this clone has just noted the same
        desk.refs.update([*marks, *gone])


def at_hand(
    desk: Desk, tips: Mapping[str, str], local: Mapping[str, str], steps: int = MOST_STEPS
) -> Iterator[tuple[str, str]]:
    """Yield each gate with its tip, after its record was read ahead, and with it the local one where it is another."""
    waiting = list(tips.items())
    for start in range(0, len(waiting), AT_ONCE):
        some = waiting[start : start + AT_ONCE]
        if start:
            desk.progress(f"reading gates: {start} of {len(waiting)}")
        both = [oid for gate, tip in some for oid in (tip, local.get(gate, tip))]
        desk.records.read_ahead(both, steps)
        yield from some


def move_all(desk: Desk, done: Synced, moves: Mapping[str, RefMove]) -> None:
    """Move the refs of gates, all new ones together.

    Each time the file of packed refs is written, all that it has is written again.
    """
    new = {gate: move for gate, move in moves.items() if move.old is None}
    if len(new) > MANY and desk.refs.create_packed(list(new.values())):
        done.new += tuple(new)
        moves = {gate: move for gate, move in moves.items() if gate not in new}
    gates = sorted(moves, key=lambda gate: moves[gate].old is not None)
    for start in range(0, len(gates), MANY):
        move_some(desk, done, {gate: moves[gate] for gate in gates[start : start + MANY]})


def move_some(desk: Desk, done: Synced, moves: Mapping[str, RefMove]) -> None:
    """Move all refs at once; when somebody moved one meanwhile, one by one, so that only that one waits."""
    try:
        desk.refs.update(list(moves.values()))
    except LostRace:
        if len(moves) == 1:
            done.broken.update(dict.fromkeys(moves, "it is being changed right now; sync again"))
            return
        for gate, move in moves.items():
            move_some(desk, done, {gate: move})
    else:
        done.new += tuple(gate for gate, move in moves.items() if move.old is None)
        done.updated += tuple(gate for gate, move in moves.items() if move.old is not None)


def merged(desk: Desk, done: Synced, there: Gate, local: str | None, before: str) -> RefMove | None:
    """Return where the local ref of a gate has to go, given what the remote has. A record that breaks the rules
    raises.

    `before` begins the id of the tip that the remote had until now: a record that does not go on from it was tampered
    with.
    """
    gate, remote, theirs = there.id, there.tip, there.history
    if local is None:
        return RefMove(OPEN + gate, remote, None)
    had = (
        next((entry.commit for entry in theirs if entry.commit.startswith(before)), before)
        if before
        else None
    )
    ours = desk.records.load(gate, local).history
    plan = reconcile(ours, theirs, had)
    if plan.keep in ("same", "local"):
        return None
    known = [entry.event for entry in ours if is_late_outcome(entry.event)]
    told = [entry.event for entry in theirs if is_late_outcome(entry.event)]
    done.late += tuple(f"{gate} {event.text}" for event in told if event not in known)
    tip = record_again(desk, done, gate, remote, plan.again) if plan.again else remote
    done.lost += tuple(f"{gate} {entry.name}" for entry in plan.dropped)
    return RefMove(OPEN + gate, tip, local)


def record_again(desk: Desk, done: Synced, gate: str, remote: str, entries: tuple[Entry, ...]) -> str:
    """Record again on top of the remote's record the events that only this clone has; return the new tip.

    The author's own commit stays reachable as the second parent.
    """
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
                    done.lost += (f"{gate} {entry.name}: {no_place.message}",)
                    continue
                done.again += (gate,)
                if current.history[-1].name == "late":
                    done.late += (late_words(current, entry),)
    return current.tip


def late_words(gate: Gate, entry: Entry) -> str:
    """Return why an event that was recorded elsewhere has no effect, in words for whoever brings it now."""
    said = entry.event
    if isinstance(said, Answer):
        again = f"; if it still holds: git gate respond {gate.id}" if said_elsewhere(gate, said) else ""
        return f"{gate.id} the answer of {said.at} by {split_person(said.by)}: {why_late(gate, said)}{again}"
    if is_late_outcome(said):
        return f"{gate.id} {said.text}"
    return (
        f"{gate.id} {entry.name}: its author had changed the same here by then, or the gate was {gate.state}"
    )


def push_home(desk: Desk, done: Synced, ahead: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Push every gate that is ahead here, whatever goes wrong with another one, or with an event that is never
    taken.
    """
    waiting = without_archived(desk, done, ahead, theirs)
    while waiting:
        push_each(desk, done, waiting, theirs)
        # Each round takes at least one event off each gate that goes again, so that this ends.
        waiting = without_refused(desk, done, waiting, theirs)


def without_refused(
    desk: Desk, done: Synced, sent: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """Take the events that a remote never takes off the gates that were refused for them; return what is left to
    push again.
    """
    found = {}
    for gate, fates in list(done.fates.items()):
        said = {note.commit: note.words for fate in fates for note in fate.notes if note.final}
        if not said or gate not in sent:
            continue
        record = desk.records.load(gate, sent[gate])
        fresh = [e for e in entering.fresh(record, theirs.get(gate)) if e.parents]
        why = {e.commit: said[e.commit[:10]] for e in fresh if e.commit[:10] in said}
        if why:
            del done.refused[gate], done.fates[gate]
            tip = put_aside(desk, done, record, why)
            if tip != theirs.get(gate):
                found[gate] = tip
    return found


def put_all_aside(desk: Desk, done: Synced, gate: str, theirs: Mapping[str, str]) -> None:
    """Put aside every event recorded here that the remote does not have, on a person's word."""
    record = reload(desk, gate)
    if gate not in theirs:
        raise Failure(
            f"{done.remote} does not have gate {gate}: there is nothing to go back to",
            hint=f"end it, or take it back: git gate withdraw {gate} --reason R",
        )
    fresh = entering.fresh(record, theirs[gate])
    if fresh:
        put_aside(desk, done, record, {entry.commit: "as you asked" for entry in fresh})


def put_aside(desk: Desk, done: Synced, gate: Gate, why: Mapping[str, str]) -> str:
    """Take events off a record, each with a reason, and return the new tip. Later events are recorded again on what is
    left.

    The record as it was is kept under a ref of its own, with all that it has.
    """
    first = next(place for place, entry in enumerate(gate.history) if entry.commit in why)
    after = [entry for entry in gate.history[first:] if entry.commit not in why and not entry.repeats]
    again = tuple(entry for entry in after if repeatable(entry))
    tip = record_again(desk, done, gate.id, gate.history[first - 1].commit, again)
    done.lost += tuple(f"{gate.id} {entry.name}" for entry in after if not repeatable(entry))
    ref = f"{ASIDE}{gate.id}/{gate.tip[:10]}"
    desk.refs.update([RefMove(ref, gate.tip, desk.refs.get(ref)), RefMove(OPEN + gate.id, tip, gate.tip)])
    for entry in gate.history:
        if entry.commit in why:
            by = getattr(entry.event, "by", "")
            done.aside += (PutAside(gate.id, entry.name, entry.commit, by, why[entry.commit], ref),)
    return tip


def push_each(desk: Desk, done: Synced, waiting: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Push these gates, each with its work."""
    remote = done.remote
    moves = moves_home(desk, done, waiting, theirs)
    if not moves:
        return
    desk.progress(f"pushing {len(waiting)} gates to {remote}")
    taken: list[str] = []
    for fate in push_gates(desk.repo, remote, moves, timeout=desk.network_timeout):
        gate = fate.ref.rpartition("/")[2]
        if not fate.ok:
            done.refused[gate] = fate.reason
            done.fates[gate] = (*done.fates.get(gate, ()), fate)
        elif fate.ref.startswith(OPEN):
            taken.append(gate)
    done.pushed += tuple(taken)


def moves_home(
    desk: Desk, done: Synced, ahead: Mapping[str, str], theirs: Mapping[str, str]
) -> list[RefMove]:
    """Return the moves that send the gates that are ahead here. `done` says why the others stay."""
    moves: list[RefMove] = []
    known = beside(desk, done.remote) if may_publish_work(desk) else None
    plain = unclaimed(desk, [tip for gate, tip in ahead.items() if gate not in theirs])
    stay: dict[str, Stays] = {}
    others = {gate: tip for gate, tip in ahead.items() if gate in theirs or tip not in plain}
    for gate, tip in at_hand(desk, others, {}, steps=2):
        try:
            why = kept_home(desk, gate, tip, theirs.get(gate))
        except GateError as broken:
            done.broken[gate] = broken.message
            why = Stays.ACTED_ON
        if why is not None:
            stay[gate] = why
    done.overtaken = Stays.OVERTAKEN in stay.values()
    done.refused.update({gate: why.value for gate, why in stay.items() if why})
    for gate, tip in ahead.items():
        if gate not in stay:
            moves.append(RefMove(OPEN + gate, tip, theirs.get(gate)))
            moves += work_moves(desk, gate, done.remote, known) if known is not None else []
    return moves


def unclaimed(desk: Desk, tips: Sequence[str]) -> frozenset[str]:
    """Return those of many records that certainly have no claim, without reading any of them.

    These are questions alone, and records without a folder of claims.
    """
    if len(tips) <= FEW:
        return frozenset()
    how = ("--no-walk=unsorted", "--parents", "--ignore-missing", "--stdin")
    # A shallow clone could have been cut off in the middle of a record.
    asked = "" if desk.repo.shallow else "\n".join(tips)
    lines = desk.repo.git.text("rev-list", *how, input=asked.encode()).split("\n")
    alone = frozenset(line for line in lines if line and " " not in line)
    others = [tip for tip in tips if tip not in alone]
    if not others:
        return alone
    claims = events.FOLDER_OF["claimed"]
    asked = "".join(f"{tip}^{{tree}}\n{tip}:{claims}\n" for tip in others)
    said = desk.repo.git.text(
        "cat-file", "--buffer", "--batch-check=%(objecttype)", input=asked.encode()
    ).split("\n")
    told = zip(others, said[::2], said[1::2], strict=True)
    return alone | {tip for tip, tree, claim in told if tree == "tree" and claim == f"{tip}:{claims} missing"}


def kept_home(desk: Desk, gate: str, tip: str, there: str | None) -> Stays | None:
    """Return why a gate is not pushed; None where it is. A gate that is pushed goes on from what the remote has.

    Its record is read only where it may have been claimed here: to read a thousand takes longer than to push them, and
    the server that takes them reads them.
    """
    chain = desk.records.chain(gate, tip)
    if there is not None and all(oid != there for oid, _ in chain):
        return Stays.OVERTAKEN
    claims = events.FOLDER_OF["claimed"].encode()
    if there is None and claims in desk.records.tree(chain[-1][1].tree):
        # Its claim and its lease are here: elsewhere it would look as if whoever holds it were gone.
        return Stays.ACTED_ON if desk.records.load(gate, tip).state == RESUMING else None
    return None


def without_archived(
    desk: Desk, done: Synced, ahead: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """Return the gates that the remote's archive does not have. The archive is asked before anything is pushed.

    A gate that the remote does not have open may be closed there.
    """
    absent = [gate for gate in ahead if gate not in theirs]
    if not absent:
        return dict(ahead)
    from ..gates.history import settle_archived

    settled = settle_archived(desk, done.remote, {gate: ahead[gate] for gate in absent})
    done.archived += tuple(settled.gates)
    done.lost += tuple(
        f"{gate}, archived before; what was said here: git gate show {gate}" for gate in settled.late
    )
    done.broken.update(settled.kept)
    return {gate: tip for gate, tip in ahead.items() if gate not in (*settled.gates, *settled.kept)}


Differing = Mapping[str, tuple[str | None, str | None]]


def bring_runs(desk: Desk, done: Synced, runs: Differing) -> None:
    """Bring in the journals that the remote has and this clone has not, or has shorter."""
    from ..store.records.archive import find_archived, shelves

    new = [run for run, (mine, _) in runs.items() if mine is None]
    over = find_archived(desk.repo, shelves(desk.repo), new) if new else {}
    for run, (mine, theirs) in runs.items():
        if theirs is None or run in over or (mine is not None and not counts_more(desk, run, theirs, mine)):
            continue
        try:
            desk.refs.update([RefMove(RUNS + run, theirs, mine)])
        except LostRace:
            continue  # whoever goes on with it here brings it together
        done.new, done.updated = (
            ((*done.new, run), done.updated) if mine is None else (done.new, (*done.updated, run))
        )


def closed_there(desk: Desk, done: Synced, absent: Mapping[str, str]) -> Collection[str]:
    """Return the runs that the remote has in its archive; here they are archived as well, or kept for a reason."""
    from ..gates.history import settle_archived

    settled = settle_archived(desk, done.remote, absent)
    done.archived += tuple(settled.gates)
    done.refused.update(settled.kept)
    return (*settled.gates, *settled.kept)


def send_runs(desk: Desk, done: Synced, remote: str, runs: Differing) -> None:
    """Push the journals that this clone has and the remote has not. A run that goes on here alone stays, as its lease
    does.

    One that the remote does not have may be archived there, and is not brought back.
    """
    here = desk.refs.under(LEASES) if runs else {}
    runs = {run: sides for run, sides in runs.items() if sides[1] is not None or LEASES + run not in here}
    absent = {run: mine for run, (mine, theirs) in runs.items() if mine is not None and theirs is None}
    settled = closed_there(desk, done, absent) if absent else ()
    for run, (mine, theirs) in callers_first(desk, runs):
        if run in settled or mine is None:
            continue
        if theirs is not None and not goes_on_from(desk, mine, theirs):
            continue
        try:
            # What its branches have in their trees, where it was let go while the remote was away.
            work = work_moves(desk, run, remote) if may_publish_work(desk) else []
            moves = [RefMove(RUNS + run, mine, theirs), *work]
            fate = push(desk.repo, remote, moves, timeout=desk.network_timeout)[0]
        except GateError as failed:
            done.refused[run] = failed.message
            continue
        if fate.ok:
            done.pushed = (*done.pushed, run)
        elif fate.refused:
            done.refused[run] = fate.reason
            done.fates[run] = (fate,)


def callers_first(desk: Desk, runs: Differing) -> list[tuple[str, tuple[str | None, str | None]]]:
    """Return the runs so that each comes before those that it called: a remote takes no step of a run that it
    does not know.
    """

    def depth(run: str) -> int:
        count, above = 0, run
        while (mine := runs.get(above, (None, None))[0]) is not None and count < 10:
            count, above = (
                count + 1,
                (parse_trailers(desk.records.commit(mine).message) or {}).get("Parent", ""),
            )
        return count

    return sorted(runs.items(), key=lambda item: depth(item[0]))


def counts_more(desk: Desk, run: str, theirs: str, mine: str) -> bool:
    """Return whether the remote's journal of a run replaces the one here.

    It does where it goes on from ours, or somebody claimed the run there since. What a process of this clone had not
    shared when it was killed counts no more then.
    """
    if goes_on_from(desk, theirs, mine):
        return True
    if goes_on_from(desk, mine, theirs):
        return False
    from ..store.records.journal import Journals

    events = Journals(desk.repo, desk.records).load(run, theirs).events
    claimed = next((entry.commit for entry in reversed(events) if entry.event.name == "claimed"), mine)
    return not goes_on_from(desk, mine, claimed)


def goes_on_from(desk: Desk, new: str, old: str) -> bool:
    return desk.repo.git.ok("merge-base", "--is-ancestor", old, new)
