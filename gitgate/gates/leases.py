"""Gates: leases, read and watched. Whether a holder is gone is told by watching, not by comparing clocks.

What was seen is written down in this repository, so that a command that looks once an hour observes as well as one that
stays. Who moves a lease here writes that down as well, and so does the hook that receives one: then nobody has to watch
from the beginning.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..context.desk import Desk
from ..context.presence import boot_id
from ..context.remotes import remote_of
from ..document.values import dataclass, replace
from ..errors import BrokenRecord, RemoteUnreachable
from ..model import lease as leases
from ..model.gate import Claim, Leased
from ..model.lease import Lease, Link
from ..store.git.permissions import private_folder
from ..store.git.refs import LEASES

RENEW_AT = 1 / 3
"""After so much of its term a lease is renewed; so long is one waited for who was cut off."""
MOST_CHAINS = 1000


def boottime() -> float:
    """A clock that goes on while the machine sleeps, as the leases of others do. All that is noted here goes by it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


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
        from ..store.remote.fetch import fetch_refs

        timeout = desk.settings.seconds("networkTimeout") or 60
        oid = fetch_refs(desk.repo, remote, [ref], timeout=timeout).get(ref)
    return None if oid is None else (oid, read_lease(desk, gate, oid))


def read_lease(desk: Desk, gate: str, oid: str) -> Lease | None:
    """What the lease says; None where it is none of this gate."""
    try:
        found = leases.parse_lease(desk.records.commit(oid).message)
    except BrokenRecord:
        return None
    return found if found is not None and found.gate == gate else None


# whose it is


def parents_of(desk: Desk, oid: str) -> tuple[str, ...]:
    """What the lease stands on: its claim (a waiter's: the record as it was), and the lease that began its chain, if any."""
    return desk.records.commit(oid).parents


def proven(desk: Desk, gate: str, oid: str, claim: Link | None) -> Link | None:
    """How far the chain of a lease was told, if all of it holds; None where it does not.

    `claim` is where the chain begins. A waiter's begins with its first lease, which nobody vouches for.
    """
    later: list[Lease] = []
    for _ in range(MOST_CHAINS):
        lease, above = read_lease(desk, gate, oid), parents_of(desk, oid)
        if lease is None:
            return None
        if len(above) < 2:
            break
        later.append(lease)
        oid = above[1]
    else:
        return None
    start = Link(lease.anchor, 0) if claim is None and lease.beat == 0 and lease.anchor else claim
    known = start if lease.beat == 0 and not lease.reveal else continued(lease, start)
    for lease in reversed(later):
        known = continued(lease, known)
    return known


def continued(lease: Lease, known: Link | None) -> Link | None:
    if known is None or not leases.leads_to(lease.reveal, lease.beat, known):
        return None
    return leases.told_link(lease, known.value)


def chain_of(gate: Leased) -> Link | None:
    """Where the chain of the claim that counts begins. Claims of older versions name none."""
    event = gate.claim.event if gate.claim is not None else None
    return Link(event.anchor, 0) if isinstance(event, Claim) and event.anchor else None


def position(desk: Desk, gate: Leased, found: tuple[str, Lease | None] | None) -> tuple[str, int]:
    """Whose lease it is, and how often it was surely renewed. What somebody else put in its place counts for nothing."""
    claim = gate.claim.commit if gate.claim is not None else ""
    if found is None:
        return claim or gate.tip, 0
    oid, lease = found
    chain = chain_of(gate)
    if claim and chain is None:
        return oid, 0
    if lease is None:
        return claim or oid, 0
    with contextlib.suppress(BrokenRecord):
        above = parents_of(desk, oid)
        known = proven(desk, gate.id, oid, chain)
        if claim:
            return claim, known.beat if known is not None and above[:1] == (claim,) else 0
        if known is not None:
            return (above[1] if len(above) > 1 else oid), known.beat
    return claim or oid, 0


# watching


@dataclass(frozen=True)
class Sighting:
    """What was seen of a holder: how far it had come, and for how many seconds it has not gone on since.

    `last`: when that was looked at last; None since the remote did not answer. `since`: from when on it answered all the
    time; negative where nobody has looked yet since the lease was received here.
    """

    holder: str
    beat: int
    boot: str
    unmoved: float
    last: float | None
    since: float

    def dump(self) -> str:
        last = "-" if self.last is None else f"{self.last:.3f}"
        return f"{self.holder} {self.beat} {self.boot} {self.unmoved:.3f} {last} {self.since:.3f}\n"


def read_sighting(place: Path) -> Sighting | None:
    """None where there is none; one that an older version wrote is none either."""
    try:
        holder, beat, boot, unmoved, last, since = place.read_text("ascii").split()
        return Sighting(
            holder, int(beat), boot, float(unmoved), None if last == "-" else float(last), float(since)
        )
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Sightings:
    """What this repository saw of leases, by its own clock."""

    folder: Path
    monotonic: Callable[[], float] = boottime

    def note(self, gate: str, holder: str, beat: int, *, received: bool = False) -> None:
        """The lease was moved here just now, by its holder on this machine, or as a push that was `received`."""
        self.write(gate, Sighting(holder, beat, boot_id(), 0.0, self.monotonic(), -1.0 if received else 0.0))

    def look(self, gate: str, holder: str, beat: int, age: float | None = None) -> Sighting:
        """How long it has not moved, as far as this repository knows: noted from now on, if it is new.

        `age`: for so long it has stood here by the time of its file, which tells what another account received.
        """
        now, before = self.monotonic(), self.known(gate, holder, beat)
        if before is None:
            found = Sighting(holder, beat, boot_id(), age or 0.0, now, -1.0 if age else now)
        elif before.last is None or before.last > now:
            found = replace(before, last=now, since=now)
        else:
            found = replace(before, last=now, unmoved=before.unmoved + now - before.last)
        self.write(gate, found)
        return found

    def known(self, gate: str, holder: str, beat: int) -> Sighting | None:
        """What was seen of just this holder, at just this beat or a later one, since the machine was started."""
        before = read_sighting(self.folder / gate)
        same = before is not None and (before.holder, before.boot) == (holder, boot_id())
        return before if same and before is not None and beat <= before.beat else None

    def left(
        self,
        gate: str,
        holder: str,
        beat: int,
        term: float,
        *,
        cut_off: bool = True,
        age: float | None = None,
    ) -> float:
        """For how many seconds more it has to stand still before its holder is gone.

        Where a network lies between (`cut_off`), nobody knows what it did while nobody looked. Then the holder has as
        much time as it needs for one renewal from when somebody looks again.
        """
        before, grace = self.known(gate, holder, beat), term * RENEW_AT
        found = self.look(gate, holder, beat, age)
        now = found.last or 0.0
        away = cut_off and before is not None and before.unmoved < term
        if found.since < 0 or (away and before is not None and found.unmoved - before.unmoved > grace):
            found = replace(found, since=now)
            self.write(gate, found)
        waited = now - found.since if found.since else grace
        return max(0.0, term - found.unmoved, grace - waited)

    def interrupt(self, gate: str = "") -> None:
        """The remote did not answer: until it does again no time counts, for this gate or for all."""
        names = [gate] if gate else [place.name for place in self.places()]
        for name in names:
            before = read_sighting(self.folder / name)
            if before is not None and before.last is not None:
                self.write(name, replace(before, last=None))

    def places(self) -> list[Path]:
        with contextlib.suppress(OSError):
            return [place for place in self.folder.iterdir() if not place.name.startswith(".")]
        return []

    def write(self, gate: str, found: Sighting) -> None:
        private_folder(self.folder)
        new = self.folder / f".{gate}.{os.getpid()}.{threading.get_ident()}"
        new.write_text(found.dump(), "ascii")
        new.replace(self.folder / gate)

    def forget(self, gate: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / gate).unlink()


def sightings(desk: Desk, monotonic: Callable[[], float] = boottime) -> Sightings:
    return Sightings(desk.repo.state_dir / "sightings", monotonic)


def watch_lease(
    desk: Desk, gate: Leased, remote: str | None, watched: Sightings
) -> tuple[tuple[str, Lease | None] | None, float]:
    """The lease as it is now, and for how long it has still to stand still before its holder is gone: 0, it is gone.

    A lease that is missing is watched like one that does not move.
    """
    try:
        found = load_lease(desk, gate.id, remote)
    except RemoteUnreachable:
        watched.interrupt(gate.id)
        raise
    return found, left_of(desk, gate, found, watched, cut_off=remote is not None)


def left_of(
    desk: Desk,
    gate: Leased,
    found: tuple[str, Lease | None] | None,
    watched: Sightings,
    *,
    cut_off: bool,
) -> float:
    lease = found[1] if found is not None else None
    if lease is not None and lease.over and gate.claim is None:
        return 0.0
    term = max(term_of(gate), float(lease.term) if lease is not None else 0.0)
    age = None if cut_off else age_of(desk, gate.id)
    return watched.left(gate.id, *position(desk, gate, found), term, cut_off=cut_off, age=age)


def age_of(desk: Desk, gate: str) -> float | None:
    """For how long the lease has stood as it does in a repository that others push to; None where that cannot be told."""
    if not desk.repo.bare:
        return None
    try:
        age = time.time() - (desk.repo.common_dir / (LEASES + gate)).stat().st_mtime
    except OSError:
        return None  # git has packed it, or keeps refs in another way
    return age if age > 0 else None


def term_of(gate: Leased) -> float:
    event = gate.claim.event if gate.claim else None
    return float(event.term) if isinstance(event, Claim) else 0.0
