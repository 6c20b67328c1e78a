"""Resumption: gates that a list shows as stalled, handed on: to a runner of this clone where its own one was killed, else to
the shared repository, whose hook looks at all of its gates after any push.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..core.model import Claim, Gate
from ..errors import GateError
from ..service import agency, presence
from ..service.desk import Desk
from ..service.leases import shared_at
from ..service.publishing import push_moves
from ..store.permissions import private_folder
from ..store.push import MOST_OWN, most_refs
from ..store.refs import WAKE
from ..store.remote import RefMove
from .calls import call

if TYPE_CHECKING:
    from ..core.summary import Summary

AGAIN_AFTER = 600.0


def hand_on(desk: Desk, found: Iterable[Summary]) -> list[str]:
    """Have somebody look at each gate that stands still; what was done about it, for whoever looks at the list."""
    stalled = [summary for summary in found if summary.state == "stalled"]
    if not stalled or desk.repo.bare or desk.agent_here():
        return []
    said = []
    for summary in stalled:
        with contextlib.suppress(GateError, OSError):
            said += hand_on_one(desk, desk.records.load(summary.id, summary.tip))
    return said


def hand_on_one(desk: Desk, gate: Gate) -> list[str]:
    if was_ours(desk, gate):
        return [f"gate {gate.id}: its runner here is gone; the next one goes on (log {call(desk, gate.id)})"]
    remote = shared_at(desk, gate.id)
    if remote is None or not may_wake(desk, remote) or not is_new(desk, gate):
        return []
    wake(desk, remote, gate)
    return [f"gate {gate.id}: nobody acts on it; {remote} was told, and goes on where its hook can"]


def was_ours(desk: Desk, gate: Gate) -> bool:
    """Whether a runner of this clone had it: its person allowed that agents are started here, and this one was."""
    event = gate.claim.event if gate.claim is not None else None
    if not isinstance(event, Claim) or (event.runner, event.host) != ("local", socket.gethostname()):
        return False
    if not desk.settings.flag("resumeHere") or desk.settings.text("runner") != "local":
        return False
    session = gate.opened.session
    asked_here = presence.find(desk, gate.id) is not None
    return asked_here and session is not None and not agency.cannot_start(desk, session.agent)


def may_wake(desk: Desk, remote: str) -> bool:
    """A forge has no hook of ours; and nobody else is asked who has not answered just now."""
    return bool(desk.heard) and desk.settings.flag("push") and most_refs(desk.repo, remote) == MOST_OWN


def is_new(desk: Desk, gate: Gate) -> bool:
    """Once for each state of the record, and again after a while."""
    place = private_folder(desk.repo.state_dir / "woken") / gate.id
    with contextlib.suppress(OSError):
        if place.read_text("ascii") == gate.tip and desk.clock() - place.stat().st_mtime < AGAIN_AFTER:
            return False
    place.write_text(gate.tip, "ascii")
    os.utime(place, (desk.clock(), desk.clock()))
    return True


def wake(desk: Desk, remote: str, gate: Gate) -> None:
    """Two pushes that leave nothing behind. What an earlier one left, which was cut off between, goes with the second."""
    known, ref = desk.tracked(remote, gate.id) or gate.tip, WAKE + gate.id
    push_moves(desk, remote, [RefMove(ref, known, None)])
    push_moves(desk, remote, [RefMove(ref, None, known)])
