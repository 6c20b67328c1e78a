"""Service: what happens when a deadline passes. It acts whenever anything looks at the gate; silence is never consent."""

from __future__ import annotations

from ..core import times
from ..core.model import Answer, Edit, Event, Gate, Remark
from ..errors import GateError
from .desk import Desk
from .listing import Summary, summary_of
from .recording import record

VIA = "deadline"


def overdue(summary: Summary, now: str) -> bool:
    """RFC 3339 in UTC compares as text."""
    return summary.state == "awaiting" and bool(summary.deadline) and summary.deadline <= now


def past_due(desk: Desk, gate: Gate) -> bool:
    return gate.state == "awaiting" and gate.deadline is not None and gate.deadline <= desk.now


def settle(desk: Desk, summary: Summary) -> Summary:
    """The summary of a gate whose deadline passed, after acting on it. One that cannot be acted on stays as it is."""
    try:
        gate = act(desk, desk.records.load(summary.id, summary.tip))
    except GateError:
        return summary
    return summary_of(gate.id, gate.tip, desk.records.commit(gate.tip).message)


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
