"""Service: one more event on one gate. Objects first, then one ref transaction with the value that was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.model import Event, Gate
from ..errors import LostRace
from ..store.records import Signature
from ..store.refs import OPEN
from ..store.remote import RefMove
from .desk import Desk

TRIES = 8
NOBODY = "gitgate <nobody@gitgate.invalid>"


def record(
    desk: Desk,
    gate: Gate,
    decide: Callable[[Gate], tuple[str, Event]],
    *,
    who: str,
    sign: bool = False,
    also: Sequence[RefMove] = (),
) -> Gate:
    """Append what `decide` makes of the gate as it now is; after a lost race it is asked again about the new state."""
    for attempt in range(TRIES):
        name, event = decide(gate)
        after = desk.records.write_event(gate, name, event, Signature(who or NOBODY, desk.at, sign))
        try:
            desk.refs.update([RefMove(OPEN + gate.id, after.tip, gate.tip), *also])
        except LostRace:
            if attempt == TRIES - 1:
                raise
            gate = reload(desk, gate.id)
        else:
            return after
    raise LostRace(f"gate {gate.id} is being changed by somebody else", hint=f"git gate show {gate.id}")


def reload(desk: Desk, gate: str) -> Gate:
    tip = desk.refs.get(OPEN + gate)
    if tip is None:
        raise desk.unknown(gate)
    return desk.records.load(gate, tip)
