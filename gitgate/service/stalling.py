"""Service: a gate that waits for a runner which is gone, or never came, although nobody said so. Judged from what is
here, for a list; nothing is fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import lease as leases
from ..core import times
from ..core.model import Answer, Claim, Gate, Outcome, Remark
from ..errors import GateError
from ..store.refs import LEASES
from .desk import Desk

if TYPE_CHECKING:
    from ..core.summary import Summary

# No two clocks differ that much.
SKEW = 600.0
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
    """Whether its lease ran out a while ago or, where the lease is elsewhere, no agent may still be running for it; or
    whether nobody has begun with it for long.
    """
    try:
        if summary.state != RUNNING:
            return ignored(desk, desk.records.load(summary.id, summary.tip))
        return ends(desk, summary) + SKEW < desk.clock()
    except GateError:
        return False


def ignored(desk: Desk, gate: Gate) -> bool:
    """Whether nobody began with an answer, as far as we know: a clone knows what it was told when it last synced."""
    from .starting import noted, unbegun

    if not unbegun(gate):
        return False
    patience = GRACE if noted(gate) else SKEW
    return answered_at(gate) + patience < known_until(desk)


def answered_at(gate: Gate) -> float:
    """Since when there is something to act on that nobody has; a remark that came later changes nothing of that."""
    last = next(entry.event for entry in reversed(gate.history) if entry.name in BEGINNINGS)
    return times.parse_time(last.at) if isinstance(last, Answer | Outcome | Remark) else 0.0


def known_until(desk: Desk) -> float:
    """Until when we know what happened to shared gates."""
    from .publishing import remote_of

    if remote_of(desk) is None:
        return desk.clock()
    try:
        return (desk.repo.state_dir / "synced").stat().st_mtime
    except OSError:
        return 0.0


def ends(desk: Desk, summary: Summary) -> float:
    """When the runner has to have given a sign of life, or to be done."""
    oid = desk.refs.get(LEASES + summary.id)
    lease = leases.parse(desk.records.commit(oid).message) if oid else None
    if lease is not None:
        return times.parse_time(lease.expires)
    gate = desk.records.load(summary.id, summary.tip)
    event = gate.claim.event if gate.claim else None
    if not isinstance(event, Claim):
        return desk.clock()
    longest = max(event.term, desk.settings.seconds("agentTimeout") or 0)
    return times.parse_time(event.at) + longest
