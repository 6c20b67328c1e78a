"""Resumption: an answer that is given where the agent ran starts it there, at once.

Answer, claim and lease go in one push, so that nobody else begins with it meanwhile; a runner that outlives the command
takes the claim from there.
"""

from __future__ import annotations

from dataclasses import replace

from ..claims.claiming import Claimant, claim, hand_over, leave_to_others
from ..context import presence
from ..context.desk import Desk
from ..context.registry import slot
from ..context.remotes import remote_of
from ..errors import GateError, RemoteUnreachable
from ..exchange.publishing import Published, publish
from ..gates import agency
from ..gates.leases import boottime, shared_at
from ..model.gate import Gate
from .calls import call
from .run import log_of


def may_resume_here(desk: Desk, gate: Gate, push: bool | None) -> bool:
    """Whether this clone may start the agent: it asked from here, `init` allowed it, and its program is known."""
    if not desk.settings.flag("resumeHere") or desk.repo.bare or desk.settings.text("runner") != "local":
        return False
    here, session = presence.find_presence(desk, gate.id), gate.opened.session
    if here is None or session is None or not gate.actionable or gate.opened.delivery != "resume":
        return False
    if not may_claim(desk, gate, push) or here.work != (gate.opened.work.commit or ""):
        return False
    return not agency.cannot_start(desk, gate.opened.program)


def may_claim(desk: Desk, gate: Gate, push: bool | None) -> bool:
    """A claim on a shared gate is a push: where none is wanted, there is none."""
    if remote_of(desk) is None:
        return push is not True
    wanted = push is True or (push is None and desk.settings.flag("push"))
    return wanted or (push is None and shared_at(desk, gate.id) is None)


def leave_here(desk: Desk, gate: Gate, *, push: bool | None = None) -> Published:
    """Publish the answer, and start nothing here by itself: neither now nor when another answer starts its agent."""
    leave_to_others(desk, gate)
    return publish(desk, gate, push=push)


def deliver_here(desk: Desk, gate: Gate, *, push: bool | None = None) -> Published:
    """Publish the answer with a claim on it and start the agent; where that is not to be, publish it as ever."""
    if not may_resume_here(desk, gate, push):
        return publish(desk, gate, push=push)
    with slot(desk.settings.env, desk.settings.number("maxAgents")) as free:
        pass
    if not free:
        # Whoever has room acts on it; if nobody does, our own runner does when an agent has ended.
        published = publish(desk, gate, push=push)
        return replace(published, log=call(desk, gate.id))
    who = Claimant("local", term=desk.settings.seconds("leaseTerm") or 120, monotonic=boottime)
    try:
        held = claim(desk, gate, who)
    except RemoteUnreachable as silent:
        if push or desk.settings.in_ci:
            return publish(desk, gate, push=push)
        return Published(gate, shared_at(desk, gate.id), reason=silent.message)
    except GateError:
        return publish(desk, gate, push=push)
    hand_over(desk, held)
    call(desk, gate.id)
    return Published(held.gate, held.remote, pushed=held.remote is not None, log=str(log_of(desk, gate.id)))
