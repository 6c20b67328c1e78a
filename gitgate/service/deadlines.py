"""Service: what happens when a deadline passes. It acts whenever anything looks at the gate; silence is never consent."""

from __future__ import annotations

from ..core import times
from ..core.model import Answer, Edit, Event, Gate, Remark
from .desk import Desk
from .recording import record

VIA = "deadline"


def past_due(desk: Desk, gate: Gate) -> bool:
    return gate.state == "awaiting" and gate.deadline is not None and gate.deadline <= desk.now


def act(desk: Desk, gate: Gate) -> Gate:
    """The gate after its deadline, if that has passed; otherwise the gate."""
    if not past_due(desk, gate):
        return gate
    return record(desk, gate, lambda current: due(desk, current), who="")


def due(desk: Desk, gate: Gate) -> tuple[str, Event]:
    """The event that the passed deadline calls for. A default without permission falls back to `stuck`."""
    how = gate.opened.on_timeout
    if how == "remind" and gate.timeout:
        later = times.format_time(desk.clock() + gate.timeout)
        return "reminded", Edit(at=desk.now, deadline=later)
    if how == "default" and may_default(desk, gate):
        values = {q.key: q.default for q in gate.opened.questions if q.default is not None}
        return "answered", Answer(
            gate=gate.id, values=values, verdict="defaulted", at=desk.now, seen=gate.tip, via=VIA
        )
    return "expired", Remark(at=desk.now, text="nobody answered before the deadline", via=VIA)


def may_default(desk: Desk, gate: Gate) -> bool:
    """Every question declared one; an approval also needs permission from this machine's own configuration."""
    questions = gate.opened.questions
    if any(question.default is None for question in questions):
        return False
    return all(q.type != "approval" for q in questions) or desk.settings.flag("approvalDefaults")
