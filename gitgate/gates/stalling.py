"""Gates: a gate that waits for a runner which is gone, or never came, although nobody said so. For a list: nothing is
decided by it.

What is here is judged as it is. Where the lease is kept elsewhere it is looked at there (`look_at_leases`), by whoever has
just heard from there anyway.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..context.desk import Desk
from ..context.remotes import remote_of
from ..errors import GateError
from ..model.gate import Answer, Claim, Gate, Outcome, Remark
from ..store.git.permissions import private_folder
from ..store.git.refs import LEASES
from ..text import times
from .leases import age_of, left_of, parents_of, position, read_lease, shared_at, sightings, term_of

if TYPE_CHECKING:
    from ..record.summary import Summary


# A job may wait for its machine for so long; whatever else resumes agents begins at once.
QUEUE = 600.0
# A runner has said that it cannot; a worker elsewhere that can looks every few seconds.
GRACE = 60.0
RUNNING = "resuming"
BEGINNINGS = ("answered", "amended", "defaulted", "released", "expired", "returned")


def may_stall(summary: Summary) -> bool:
    """Whether somebody has to act on this gate: only then is there more to look at than the list knows."""
    if summary.state == RUNNING:
        return True
    told = summary.state == "answered" or (summary.state == "expired" and summary.on_timeout == "fail")
    return told and summary.delivery in ("resume", "wait")


def stalled(desk: Desk, summary: Summary) -> bool:
    """Whether whoever acts on it has given no sign of life for a lease's term, or nobody has begun with it for as long."""
    try:
        gate = desk.records.load(summary.id, summary.tip)
        return silent(desk, gate) if summary.state == RUNNING else ignored(desk, gate)
    except GateError:
        return False


def ignored(desk: Desk, gate: Gate) -> bool:
    """Whether nobody began with an answer, as far as we know: a clone knows what it was told when it last synced."""
    from .starting import noted, unbegun

    if not unbegun(gate):
        return False
    by_job = desk.settings.text("runner") != "local"
    patience = GRACE if noted(gate) else QUEUE if by_job else float(desk.settings.seconds("leaseTerm") or 120)
    return answered_at(gate) + patience < known_until(desk)


def answered_at(gate: Gate) -> float:
    """Since when there is something to act on that nobody has; a remark that came later changes nothing of that."""
    last = next(entry.event for entry in reversed(gate.history) if entry.name in BEGINNINGS)
    return times.parse_time(last.at) if isinstance(last, Answer | Outcome | Remark) else 0.0


def known_until(desk: Desk) -> float:
    """Until when we know what happened to shared gates."""
    return desk.clock() if remote_of(desk) is None else marked_at(desk, "synced")


def marked_at(desk: Desk, name: str) -> float:
    """When this clone did that last; 0 where it never did."""
    try:
        return (desk.repo.state_dir / name).stat().st_mtime
    except OSError:
        return 0.0


# signs of life


def silent(desk: Desk, gate: Gate) -> bool:
    """Whether the lease has run out as far as is known here: by what this repository saw of it, or else by the clocks.

    Who acts on it is another matter: that takes watching, because clocks differ (`leases.watch_lease`).
    """
    if gate.claim is None:
        return False
    remote = shared_at(desk, gate.id)
    oid = lease_known(desk, gate.id, remote)
    age = age_of(desk, gate.id) if remote is None and oid is not None else None
    if age is not None:
        return age > term_of(gate)  # received here, whatever the clock of its holder says
    if remote is None:
        return ends(desk, gate, oid) < desk.clock()
    found = None if oid is None else (oid, read_lease(desk, gate.id, oid))
    seen = sightings(desk).known(gate.id, *position(desk, gate, found))
    unmoved = seen is not None and seen.unmoved >= term_of(gate)
    return unmoved or ends(desk, gate, oid) < marked_at(desk, LOOKED)


LOOKED = "looked"  # when the leases were looked at that had run out by then
LOOKED_THROUGH = "looked-through"  # when a sync last went through all the gates


def is_time(desk: Desk, name: str, every: float) -> bool:
    """Whether that was last done so long ago; it is done now."""
    if 0 <= desk.clock() - marked_at(desk, name) < every:
        return False
    set_mark(desk, name)
    return True


def set_mark(desk: Desk, name: str) -> None:
    mark = private_folder(desk.repo.state_dir) / name
    mark.touch()
    os.utime(mark, (desk.clock(), desk.clock()))


def lease_known(desk: Desk, gate: str, remote: str | None) -> str | None:
    if remote is None:
        return desk.refs.get(LEASES + gate)
    from ..store.remote.fetch import have

    return have(desk.repo, remote, [LEASES + gate]).get(LEASES + gate)


def ends(desk: Desk, gate: Gate, oid: str | None) -> float:
    """When the holder of the claim that counts has to have given a sign of life, by its own clock."""
    claim, event = (gate.claim.commit, gate.claim.event) if gate.claim is not None else ("", None)
    lease = read_lease(desk, gate.id, oid) if oid is not None else None
    if lease is not None and oid is not None and parents_of(desk, oid)[:1] == (claim,):
        return times.parse_time(lease.expires)
    return times.parse_time(event.at) + event.term if isinstance(event, Claim) else desk.clock()


def look_at_leases(desk: Desk, found: Iterable[Summary], *, within: float) -> None:
    """Ask the shared repository about those that, by what is known, should have given a sign of life since. Usually there
    are none, and nobody is asked.
    """
    remote, late = remote_of(desk), list[Gate]()
    for summary in found if remote is not None else ():
        try:
            gate = desk.records.load(summary.id, summary.tip)
            due = shared_at(desk, gate.id) is not None and gate.claim is not None
            if due and ends(desk, gate, lease_known(desk, gate.id, remote)) < desk.clock():
                late.append(gate)
        except GateError:
            continue
    if not late or remote is None:
        return
    from ..store.remote.fetch import fetch_refs

    refs = [LEASES + gate.id for gate in late]
    try:
        there = fetch_refs(desk.repo, remote, refs, timeout=within, prompts=False)
    except GateError as silence:
        desk.progress(f"{remote} does not say who acts on its gates: {silence.message}")
        for gate in late:
            sightings(desk).interrupt(gate.id)
        return
    for gate in late:
        oid = there.get(LEASES + gate.id)
        seen = None if oid is None else (oid, read_lease(desk, gate.id, oid))
        left_of(desk, gate, seen, sightings(desk), cut_off=True)
    set_mark(desk, LOOKED)
