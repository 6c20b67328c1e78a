"""Gates: one more event on one gate: objects first, then one ref transaction with the value that was read. And the event that a
deadline calls for: it acts whenever anything looks at the gate, and silence is never consent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..context.desk import Desk
from ..context.targets import unknown_gate
from ..errors import LostRace, RefLocked
from ..model.gate import Answer, Edit, Event, Gate, Remark
from ..store.git.refs import OPEN
from ..store.records.records import MOST_EVENTS, NOBODY, Signature
from ..store.remote.remote import RefMove
from ..text import times

# Git waits two seconds for a lock; one that stays so often in a row is nobody's.
MOST_LOCKED = 5
TRIES = 64  # each lost try is somebody else's success, so that all of many at once get their turn


def record(
    desk: Desk,
    gate: Gate,
    decide: Callable[[Gate], tuple[str, Event]],
    *,
    who: str,
    sign: bool = False,
    also: Sequence[RefMove] = (),
    approve: Callable[[Gate], None] | None = None,
) -> Gate:
    """Append what `decide` makes of the gate as it now is; after a lost race it is asked again about the new state."""
    locked = 0
    for _ in range(TRIES):
        try:
            return append(desk, gate, *decide(gate), who=who, sign=sign, also=also, approve=approve)
        except LostRace as lost:
            before, gate = gate, reload(desk, gate.id)
            locked = times_locked(locked, lost, before, gate)
            if locked == MOST_LOCKED:
                raise
    raise LostRace(f"gate {gate.id} keeps being changed by others", hint=f"git gate show {gate.id}")


def times_locked(before: int, lost: LostRace, gate: Gate, now: Gate) -> int:
    """How often in a row nothing but a lock was in the way."""
    return before + 1 if isinstance(lost, RefLocked) and gate.tip == now.tip else 0


def append(
    desk: Desk,
    gate: Gate,
    name: str,
    event: Event,
    *,
    who: str = "",
    sign: bool = False,
    also: Sequence[RefMove] = (),
    approve: Callable[[Gate], None] | None = None,
) -> Gate:
    """One more event on exactly this gate; LostRace when it has moved. `approve` may refuse it as it was written."""
    after = desk.records.write_event(gate, name, event, Signature(who or NOBODY, desk.at, sign))
    if approve is not None:
        approve(after)
    desk.refs.update([RefMove(OPEN + gate.id, after.tip, gate.tip), *also])
    return after


def reload(desk: Desk, gate: str) -> Gate:
    tip = desk.refs.get(OPEN + gate)
    if tip is None:
        raise unknown_gate(desk, gate)
    return desk.records.load(gate, tip)


VIA = "deadline"
DAY = 86_400
SHORTEST = 60
DOUBLINGS = 12  # from a minute, that is more than a day
MOST_REMINDERS = MOST_EVENTS // 2  # a record's room is for answers; who never looks is no longer reminded


NEVER = "0000"  # before every moment


@contextmanager
def judged_at(desk: Desk, moment: str = NEVER) -> Iterator[None]:
    """Deadlines are judged by `moment` in here: what somebody wrote in time counts, although it is read later."""
    before, desk.judged = desk.judged, moment
    try:
        yield
    finally:
        desk.judged = before


def past_due(desk: Desk, gate: Gate) -> bool:
    return (
        gate.state == "awaiting" and gate.deadline is not None and gate.deadline <= (desk.judged or desk.now)
    )


def act(desk: Desk, gate: Gate) -> Gate:
    """The gate after its deadline, if that has passed; otherwise the gate."""
    locked = 0
    for _ in range(TRIES):
        if locked == MOST_LOCKED or not past_due(desk, gate):
            return gate
        try:
            return append(desk, gate, *due(desk, gate))
        except LostRace as lost:
            # Another process looked at the same moment, or somebody answered: what is there now may not be due.
            before, gate = gate, reload(desk, gate.id)
            locked = times_locked(locked, lost, before, gate)
    return gate


def due(desk: Desk, gate: Gate) -> tuple[str, Event]:
    """The event that the passed deadline calls for. A default without permission falls back to `stuck`."""
    how = gate.opened.on_timeout
    if how in ("remind", "defer") and len(gate.history) < MOST_REMINDERS:
        return "reminded", reminder(desk, gate, aside=how == "defer")
    if how == "default" and may_default(desk, gate):
        values = {q.key: q.default for q in gate.opened.questions if q.default is not None}
        return "answered", Answer(
            gate=gate.id, values=values, verdict="defaulted", at=desk.now, seen=gate.tip, via=VIA
        )
    return "expired", Remark(at=desk.now, text="nobody answered before the deadline", via=VIA)


def reminder(desk: Desk, gate: Gate, *, aside: bool) -> Edit:
    """A new deadline, a term after the moment until which the gate was put aside, or is put aside by this for as long."""
    term, now = next_term(gate), desk.clock()
    until = now + term if aside else max(now, times.parse_time(gate.later)) if gate.later else now
    later = times.format_time(until) if aside else None
    return Edit(at=desk.now, deadline=times.format_time(until + term), later=later)


def next_term(gate: Gate) -> int:
    """Until the next reminder: each time twice as long, up to a day. Whoever asks for a second is not to get a commit of
    the record for each; a term of more than a day stays what it is.
    """
    given = gate.timeout or DAY
    so_far = 0
    for entry in reversed(gate.history):
        if entry.name == "edited" and isinstance(entry.event, Edit) and entry.event.timeout is not None:
            break  # a person set another term, which begins anew
        so_far += entry.name == "reminded"
    return max(given, min(DAY, max(SHORTEST, given) << min(so_far, DOUBLINGS)))


def may_default(desk: Desk, gate: Gate) -> bool:
    """Every question declared one, and the policy speaks for it; for an approval somebody has to have said so."""
    if any(question.default is None for question in gate.opened.questions):
        return False
    from ..policy.permit import default_ruling
    from ..policy.rules import load_book

    return default_ruling(desk, load_book(desk), gate).allowed
