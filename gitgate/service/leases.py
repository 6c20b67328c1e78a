"""Service: leases, read and watched. Whether a holder is gone is told by watching, not by comparing clocks.

What was seen is written down in this clone, so that a command that looks once an hour observes as well as one that stays.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..core import lease as leases
from ..core import times
from ..core.lease import Lease
from ..core.model import Claim, Gate
from ..core.values import dataclass
from ..errors import BrokenRecord, Usage
from ..store.permissions import private_folder
from ..store.refs import LEASES
from .desk import Desk
from .publishing import remote_of

BOOT = Path("/proc/sys/kernel/random/boot_id")
UNOBSERVED = 600.0
"""How long past its end a lease still counts for one who sees it for the first time: no two clocks differ that much."""


def shared_at(desk: Desk, gate: str) -> str | None:
    """The remote that knows this gate, where alone it is claimed; None when this repository is all there is."""
    remote = remote_of(desk)
    return remote if remote is not None and desk.tracked(remote, gate) is not None else None


def load_lease(desk: Desk, gate: str, remote: str | None) -> tuple[str, Lease | None] | None:
    """The lease on a gate, read where the gate is claimed: its commit, and what it says."""
    ref = LEASES + gate
    if remote is None:
        oid = desk.refs.get(ref)
    else:
        from ..store.fetch import fetch_refs

        timeout = desk.settings.seconds("networkTimeout") or 60
        oid = fetch_refs(desk.repo, remote, [ref], timeout=timeout).get(ref)
    if oid is None:
        return None
    try:
        found = leases.parse(desk.records.commit(oid).message)
    except BrokenRecord:
        found = None
    return oid, found if found is not None and found.gate == gate else None


@dataclass(frozen=True)
class Sightings:
    """What this clone saw of others' leases, and when by its own clock."""

    folder: Path
    monotonic: Callable[[], float] = time.monotonic

    def lapsed(self, gate: str, seen: str, term: float, expires: float | None, now: float) -> bool:
        """Whether `seen` was there, unchanged, for all of `term`; noted if it is new."""
        place = self.folder / gate
        boot, at = boot_id(), self.monotonic()
        before = read_sighting(place)
        if before is not None and before[:2] == (seen, boot) and before[2] <= at:
            return at - before[2] >= term
        private_folder(self.folder)
        new = place.with_name(f".{gate}.{os.getpid()}.{threading.get_ident()}")
        new.write_text(f"{seen} {boot} {at}\n", "ascii")
        new.replace(place)
        # One that was watched before has moved since: its holder lives, whatever the clocks say.
        return before is None and expires is not None and now > expires + UNOBSERVED

    def forget(self, gate: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / gate).unlink()


def sightings(desk: Desk, monotonic: Callable[[], float] = time.monotonic) -> Sightings:
    return Sightings(desk.repo.state_dir / "sightings", monotonic)


def read_sighting(place: Path) -> tuple[str, str, float] | None:
    try:
        seen, boot, at = place.read_text("ascii").split()
        return seen, boot, float(at)
    except (OSError, ValueError):
        return None


def boot_id() -> str:
    """One clock runs from one start of the machine to the next; without a name for that, only within one process."""
    try:
        return BOOT.read_text("ascii").strip() or f"process-{os.getpid()}"
    except OSError:
        return f"process-{os.getpid()}"


def is_lapsed(desk: Desk, gate: Gate, found: tuple[str, Lease | None] | None, watched: Sightings) -> bool:
    """Whether whoever held the gate is gone. A lease that is missing is watched like one that does not move."""
    term, expires = term_of(gate), None
    if found is not None and found[1] is not None:
        term = max(term, found[1].term)
        with contextlib.suppress(Usage):
            expires = times.parse_time(found[1].expires)
    return watched.lapsed(gate.id, found[0] if found else gate.tip, term, expires, desk.clock())


def term_of(gate: Gate) -> float:
    event = gate.claim.event if gate.claim else None
    return float(event.term) if isinstance(event, Claim) else 0.0
