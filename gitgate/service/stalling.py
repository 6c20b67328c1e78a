"""Service: a gate whose runner is gone although nobody said so. Judged from what is here, for a list; nothing is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import lease as leases
from ..core import times
from ..core.model import Claim
from ..errors import GateError
from ..store.refs import LEASES
from .desk import Desk

if TYPE_CHECKING:
    from ..core.summary import Summary

# No two clocks differ that much.
SKEW = 600.0


def stalled(desk: Desk, summary: Summary) -> bool:
    """Whether its lease ran out a while ago or, where the lease is elsewhere, no agent may still be running for it."""
    try:
        return ends(desk, summary) + SKEW < desk.clock()
    except GateError:
        return False


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
