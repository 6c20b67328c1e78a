"""Service: a person speaks through a surface that vouches for their login, as answering does with its evidence."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.model import Gate, Remark
from ..core.ruling import Said, Who
from .deadlines import act
from .desk import Desk
from .policing import permit, signing
from .publishing import Published, publish
from .recording import record
from .remarks import needed


@dataclass(frozen=True)
class Vouched:
    """Somebody whom a surface knows by their login, which surface that is, and when they said it there."""

    by: str
    login: str
    via: str
    at: str


def stop_for(desk: Desk, gate: Gate, who: Vouched, reason: str, *, push: bool | None = None) -> Published:
    """A person ends a gate; the agent does not go on."""
    words = needed(reason, "say why it is stopped", "/stop why the agent should not go on")
    gate = act(desk, gate)
    leave = permit(desk, gate, Who(who.by, login=who.login), Said(who.at, who.via), sign=None)
    event = Remark(at=desk.now, by=who.by, text=words, via=who.via)
    with signing(gate, leave):
        stopped = record(
            desk, gate, lambda _now: ("stopped", event), who=who.by, sign=leave.sign, approve=leave.approve
        )
    return publish(desk, stopped, push=push)
