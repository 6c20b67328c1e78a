"""Service: what happens when a deadline passes. It acts whenever anything looks at the gate; silence is never consent."""

from __future__ import annotations

from ..core import times
from ..core.model import Answer, Edit, Event, Gate, Remark
from ..errors import LostRace
from ..store.chain import MOST_EVENTS
from .desk import Desk
from .recording import TRIES, append, reload

VIA = "deadline"
DAY = 86_400
MOST_REMINDERS = MOST_EVENTS // 2  # a record's room is for answers; who never looks is no longer reminded


def past_due(desk: Desk, gate: Gate) -> bool:
    return gate.state == "awaiting" and gate.deadline is not None and gate.deadline <= desk.now


def act(desk: Desk, gate: Gate) -> Gate:
    """The gate after its deadline, if that has passed; otherwise the gate."""
    for _ in range(TRIES):
        if not past_due(desk, gate):
            return gate
        try:
            return append(desk, gate, *due(desk, gate))
        except LostRace:
            # Another process looked at the same moment, or somebody answered: what is there now may not be due.
            gate = reload(desk, gate.id)
    return gate


def due(desk: Desk, gate: Gate) -> tuple[str, Event]:
    """The event that the passed deadline calls for. A default without permission falls back to `stuck`."""
    how = gate.opened.on_timeout
    if how == "remind" and len(gate.history) < MOST_REMINDERS:
        later = times.format_time(desk.clock() + (gate.timeout or DAY))
        return "reminded", Edit(at=desk.now, deadline=later)
    if how == "default" and may_default(desk, gate):
        values = {q.key: q.default for q in gate.opened.questions if q.default is not None}
        return "answered", Answer(
            gate=gate.id, values=values, verdict="defaulted", at=desk.now, seen=gate.tip, via=VIA
        )
    return "expired", Remark(at=desk.now, text="nobody answered before the deadline", via=VIA)


def may_default(desk: Desk, gate: Gate) -> bool:
    """Every question declared one, and the policy speaks for it; for an approval somebody has to have said so."""
    if any(question.default is None for question in gate.opened.questions):
        return False
    from .policing import default_ruling
    from .policybook import load_book

    return default_ruling(desk, load_book(desk), gate).allowed
