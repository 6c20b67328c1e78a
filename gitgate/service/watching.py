"""Service: what happens to gates, as it happens. Read-only: it writes nothing but a passed deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ..core.model import Gate
from ..errors import GateError
from ..store.refs import OPEN
from .deadlines import act
from .desk import Desk
from .reading import find_open
from .remotes import remote_of
from .reporting import Json, events_of
from .waiting import listen

POLL = 0.5
FETCH_EVERY = 10.0


def watch(
    desk: Desk,
    given: str | None,
    seconds: float | None = None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Json]:
    """Each event that is new since the watch began; with one gate, its past too, until it closes."""
    only = find_open(desk, given)[0] if given else None
    known = {} if only else tips(desk, None)
    counted = {gate: len(load(desk, gate, tip).history) for gate, tip in known.items()}
    start = last_fetch = monotonic()
    remote = remote_of(desk)
    while True:
        for gate, tip in tips(desk, only).items():
            loaded = settled(desk, gate, tip)
            if known.get(gate) != loaded.tip:
                yield from events_of(loaded)[counted.get(gate, 0) :]
                known[gate], counted[gate] = loaded.tip, len(loaded.history)
            if only is not None and loaded.closed:
                return
        if seconds is not None and monotonic() - start >= seconds:
            return
        if remote is not None and monotonic() - last_fetch >= FETCH_EVERY:
            listen(desk, remote)
            last_fetch = monotonic()
        sleep(POLL)


def tips(desk: Desk, only: str | None) -> dict[str, str]:
    found = desk.refs.under(OPEN + only if only else OPEN.rstrip("/"))
    return {ref.removeprefix(OPEN): oid for ref, oid in found.items()}


def load(desk: Desk, gate: str, tip: str) -> Gate:
    return desk.records.load(gate, tip)


def settled(desk: Desk, gate: str, tip: str) -> Gate:
    loaded = load(desk, gate, tip)
    try:
        return act(desk, loaded)
    except GateError:
        return loaded
