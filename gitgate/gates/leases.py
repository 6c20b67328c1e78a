"""Gates: leases, read and watched, and gates whose holder is silent. Watching tells that, not comparing clocks.

What was seen is written down in this repository, so that a command that looks once an hour observes as well as one that
stays. Who moves a lease here writes that down as well, and so does the hook that receives one: then nobody has to watch
for a whole term first.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .. import text
from ..context import Desk
from ..context.machine import boot_id
from ..context.targets import remote_of
from ..document import dataclass, replace
from ..errors import BrokenRecord, GateError, RemoteUnreachable
from ..model import lease as leases
from ..model.gate import Answer, Claim, Gate, Leased, Outcome, Remark
from ..model.lease import Lease, Link
from ..store import private_folder, read_local
from ..store.git.refs import LEASES

if TYPE_CHECKING:
    from ..record import Summary


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

        oid = fetch_refs(desk.repo, remote, [ref], timeout=desk.network_timeout).get(ref)
    return None if oid is None else (oid, read_lease(desk, gate, oid))


def read_lease(desk: Desk, gate: str, oid: str) -> Lease | None:
    """Return the lease in a commit; None where it is no lease of this gate."""
    try:
        found = leases.parse_lease(desk.records.commit(oid).message)
    except BrokenRecord:
        return None
    return found if found is not None and found.gate == gate else None


# whose it is


def parents_of(desk: Desk, oid: str) -> tuple[str, ...]:
    """Return the parents of a lease: its claim (for a waiter the record as it was), and the lease that began its
    chain, if any.
    """
    return desk.records.commit(oid).parents


def proven(desk: Desk, gate: str, oid: str, claim: Link | None) -> Link | None:
    """Return how far the chain of a lease was renewed, if all of it holds; None where it does not.

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
    """Return the first link of the lease chain of the claim that counts; None for claims of older versions, which name
    none.
    """
    event = gate.claim.event if gate.claim is not None else None
    return Link(event.anchor, 0) if isinstance(event, Claim) and event.anchor else None


def position(desk: Desk, gate: Leased, found: tuple[str, Lease | None] | None) -> tuple[str, int]:
    """Return the holder of the lease, and the proven count of its renewals. A lease that somebody else wrote in its
    place counts for nothing.
    """
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
    """Observation of a lease's holder: the last renewal seen, and the seconds since without a new one.

    `last`: time of the last look; None since the remote did not answer. `since`: time from which on the remote
    answered without a gap; negative where nobody has looked yet since the lease was received here. `moved`: the
    holder was seen to renew.
    """

    holder: str
    beat: int
    boot: str
    unmoved: float
    last: float | None
    since: float
    moved: bool = False

    def dump(self) -> str:
        last = "-" if self.last is None else f"{self.last:.3f}"
        seen = f"{self.unmoved:.3f} {last} {self.since:.3f} {self.moved:d}"
        return f"{self.holder} {self.beat} {self.boot} {seen}\n"


def read_sighting(place: Path) -> Sighting | None:
    """None where there is none; one that an older version wrote is none either."""
    try:
        holder, beat, boot, unmoved, last, since, *moved = read_local(place).decode("ascii").split()
        looked = None if last == "-" else float(last)
        return Sighting(holder, int(beat), boot, float(unmoved), looked, float(since), moved == ["1"])
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Sightings:
    """Observations that this repository made of leases, by its own clock."""

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
            earlier = read_sighting(self.folder / gate)
            moved = earlier is not None and (earlier.holder, earlier.boot) == (holder, boot_id())
            found = Sighting(holder, beat, boot_id(), age or 0.0, now, -1.0 if age else now, moved)
        elif before.last is None or before.last > now:
            found = replace(before, last=now, since=now)
        else:
            found = replace(before, last=now, unmoved=before.unmoved + now - before.last)
        self.write(gate, found)
        return found

    def known(self, gate: str, holder: str, beat: int) -> Sighting | None:
        """Return the observation of exactly this holder, at this beat or a later one, since the machine was started;
        None without one.
        """
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
        """Return for how many seconds more a lease has to stay unmoved before its holder counts as gone.

        Where a network lies between (`cut_off`), nobody knows the holder's renewals while nobody looked. Then the
        holder has as much time as it needs for one renewal from when somebody looks again.
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
    if (lease is not None and lease.over and gate.claim is None) or is_abandoned(desk, gate):
        return 0.0
    term = max(term_of(gate), float(lease.term) if lease is not None else 0.0)
    age = None if cut_off else age_of(desk, gate.id)
    return watched.left(gate.id, *position(desk, gate, found), term, cut_off=cut_off, age=age)


JOBS = "github"
"""The runner by whose name three jobs of one run claim a gate. None of them renews its lease, which is for as long as all may take."""
CLOCKS = 600.0


def is_abandoned(desk: Desk, gate: Leased) -> bool:
    """Return whether jobs claimed the gate and the claim's own time is over. Whoever looks is on a new machine and has
    watched nothing.
    """
    event = gate.claim.event if gate.claim else None
    if not isinstance(event, Claim) or event.runner != JOBS:
        return False
    return desk.clock() > text.parse_time(event.at) + event.term + CLOCKS


def age_of(desk: Desk, gate: str) -> float | None:
    """Return the age of the lease's present state in a repository that others push to; None where that cannot be
    known.
    """
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


# A job may wait for its machine for so long; whatever else resumes agents begins at once.
QUEUE_TIME = 600.0
# A runner has said that it cannot; a worker elsewhere that can looks every few seconds.
GRACE = 60.0
RUNNING = "resuming"
BEGINNINGS = ("answered", "amended", "defaulted", "released", "expired", "returned")


def may_stall(summary: Summary) -> bool:
    """Return whether somebody has to act on this gate. Only such a gate may have stalled, which the list alone cannot
    tell.
    """
    if summary.state == RUNNING:
        return True
    told = summary.state == "answered" or (summary.state == "expired" and summary.on_timeout == "fail")
    return told and summary.delivery in ("resume", "wait")


def stalled(desk: Desk, summary: Summary) -> bool:
    """Return whether the gate's runner was silent for a lease's term, or nobody claimed its answer for as long."""
    try:
        gate = desk.records.load(summary.id, summary.tip)
        return silent(desk, gate) if summary.state == RUNNING else ignored(desk, gate)
    except GateError:
        return False


def ignored(desk: Desk, gate: Gate) -> bool:
    """Return whether nobody claimed an answer in time, as far as is known here: a clone knows only its last sync."""
    from .agency import noted, unbegun

    if not unbegun(gate):
        return False
    by_job = desk.settings.text("runner") != "local"
    term = (
        GRACE if noted(gate) else QUEUE_TIME if by_job else float(desk.settings.seconds("leaseTerm") or 120)
    )
    return answered_at(gate) + term < known_until(desk)


def answered_at(gate: Gate) -> float:
    """Return since when a gate has something to act on that nobody has claimed; a later remark does not change that."""
    last = next(entry.event for entry in reversed(gate.history) if entry.name in BEGINNINGS)
    return text.parse_time(last.at) if isinstance(last, Answer | Outcome | Remark) else 0.0


def known_until(desk: Desk) -> float:
    """Return the time until which we know what happened to shared gates."""
    return desk.clock() if remote_of(desk) is None else marked_at(desk, "synced")


def marked_at(desk: Desk, name: str) -> float:
    """Return when this clone did that last; 0 where it never did."""
    try:
        return (desk.repo.state_dir / name).stat().st_mtime
    except OSError:
        return 0.0


# signs of life


def silent(desk: Desk, gate: Gate) -> bool:
    """Return whether the lease has run out as far as is known here: by this repository's observations, or else by the
    clocks.

    Taking over is another matter: it needs watching, because clocks differ (`leases.watch_lease`).
    """
    if gate.claim is None:
        return False
    remote = shared_at(desk, gate.id)
    oid = lease_known(desk, gate.id, remote)
    age = age_of(desk, gate.id) if remote is None and oid is not None else None
    if age is not None:
        return age > term_of(gate)  # received here, whatever the clock of its holder says
    if remote is None:
        return ends(desk, gate, oid) < desk.clock()
    found = None if oid is None else (oid, read_lease(desk, gate.id, oid))
    seen = sightings(desk).known(gate.id, *position(desk, gate, found))
    if seen is not None and (seen.moved or seen.unmoved >= term_of(gate)):
        return seen.unmoved >= term_of(gate)
    return ends(desk, gate, oid) < marked_at(desk, LOOKED)


LOOKED = "looked"  # when the leases were looked at that had run out by then
LOOKED_THROUGH = "looked-through"  # when a sync last went through all the gates


def is_time(desk: Desk, name: str, every: float) -> bool:
    """Return whether the last time is at least `every` seconds ago, and if so, mark it as done now."""
    if 0 <= desk.clock() - marked_at(desk, name) < every:
        return False
    set_mark(desk, name)
    return True


def set_mark(desk: Desk, name: str) -> None:
    mark = private_folder(desk.repo.state_dir) / name
    mark.touch()
    os.utime(mark, (desk.clock(), desk.clock()))


def lease_known(desk: Desk, gate: str, remote: str | None) -> str | None:
    if remote is None:
        return desk.refs.get(LEASES + gate)
    from ..store.remote.fetch import have

    return have(desk.repo, remote, [LEASES + gate]).get(LEASES + gate)


def ends(desk: Desk, gate: Gate, oid: str | None) -> float:
    """Return when the holder of the claim that counts has to have renewed its lease, by its own clock."""
    claim, event = (gate.claim.commit, gate.claim.event) if gate.claim is not None else ("", None)
    lease = read_lease(desk, gate.id, oid) if oid is not None else None
    if lease is not None and oid is not None and parents_of(desk, oid)[:1] == (claim,):
        return text.parse_time(lease.expires)
    return text.parse_time(event.at) + event.term if isinstance(event, Claim) else desk.clock()


def look_at_leases(desk: Desk, found: Iterable[Summary], *, within: float, every: bool = False) -> None:
    """Ask the shared repository about those that, by what is known, should have given a sign of life since. Usually there
    are none, and nobody is asked. About `every` one, where a holder's clock may be ahead of ours.
    """
    remote, late = remote_of(desk), list[Gate]()
    for summary in found if remote is not None else ():
        try:
            gate = desk.records.load(summary.id, summary.tip)
            due = shared_at(desk, gate.id) is not None and gate.claim is not None
            if due and (every or ends(desk, gate, lease_known(desk, gate.id, remote)) < desk.clock()):
                late.append(gate)
        except GateError:
            continue
    if not late or remote is None:
        return
    from ..store.remote.fetch import fetch_refs

    refs = [LEASES + gate.id for gate in late]
    try:
        there = fetch_refs(desk.repo, remote, refs, timeout=within, prompts=False)
    except GateError as silence:
        desk.progress(f"{remote} does not say who acts on its gates: {silence.message}")
        for gate in late:
            sightings(desk).interrupt(gate.id)
        return
    for gate in late:
        oid = there.get(LEASES + gate.id)
        seen = None if oid is None else (oid, read_lease(desk, gate.id, oid))
        left_of(desk, gate, seen, sightings(desk), cut_off=True)
    set_mark(desk, LOOKED)
