"""Context: one more event on one gate. Objects first, then one ref transaction with the value that was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import LostRace
from ..model.gate import Event, Gate
from ..store.git.refs import OPEN
from ..store.records.records import Signature
from ..store.remote.remote import RefMove
from .desk import Desk
from .find import unknown_gate

TRIES = 64  # each lost try is somebody else's success, so that all of many at once get their turn
NOBODY = "gitgate <nobody@gitgate.invalid>"


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
    for _ in range(TRIES):
        try:
            return append(desk, gate, *decide(gate), who=who, sign=sign, also=also, approve=approve)
        except LostRace:
            gate = reload(desk, gate.id)
    raise LostRace(f"gate {gate.id} keeps being changed by others", hint=f"git gate show {gate.id}")


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
