"""Flows: the right to go on with a run, and its journal while somebody has it.

A run is acted on by one process at a time, by the same leases as a gate's answer: `claimed` names the end of a chain, the lease
is renewed beside the work, and whoever finds it unmoved for its whole term takes over by a claim of their own. Every event is
a compare-and-swap on the journal, and a take-over is an event: whoever was taken over writes nothing more.

A run that the shared repository knows is claimed there. Its events go there with the next link of the lease's chain, before a
step begins and whenever the run waits or ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from .. import model
from ..claims import (
    ClaimLost,
    HeldByAnother,
    HeldLease,
    is_our_lease,
    keep_renewed,
    move,
    next_lease,
    next_link,
    with_lease,
    write_lease,
)
from ..context import Desk
from ..context.machine import host_name
from ..context.targets import may_publish_work, remote_of
from ..errors import (
    AmbiguousGate,
    Conflict,
    GateError,
    IllegalEvent,
    LostRace,
    PushRefused,
    RemoteUnreachable,
    UnknownGate,
    Usage,
)
from ..exchange.merging import counts_more
from ..gates.agency import folder_of_run, note_claim
from ..gates.history import load_archived_run
from ..gates.leases import boottime, load_lease, sightings, watch_lease
from ..gates.recording import tell_people
from ..model import STOPPING
from ..model.gate import Claim
from ..model.lease import Lease, end_of, parse_lease
from ..record.runs import (
    MOST_EVENTS,
    MOST_NAME,
    MOST_SIGNAL,
    MOST_SPARE,
    Run,
    RunEntry,
    is_short,
    said_of_claim,
)
from ..store import private_folder, read_local_note, write_private
from ..store.git.refs import LEASES, OPEN, RUNS, WORK
from ..store.records import NOBODY, Signature
from ..store.records.journal import PACK_AFTER, Journals
from ..store.remote import RefMove, tracking
from ..store.remote.fetch import fetch_refs
from ..text.secrets import redact, secret_values

TRIES = 16
RUNNER = "flow"
MOST_SIGNALS = 5_000


def journals(desk: Desk) -> Journals:
    return Journals(desk.repo, desk.records)


def find_run(desk: Desk, given: str) -> Run:
    """Return the run that an id, or the beginning of one, means."""
    word = given.strip().lower()
    if not model.is_prefix(word):
        raise UnknownGate(
            f"{given!r} is not a run's id: they have 10 letters and digits, none of them 0, 1, l or o; 4 are enough",
            hint="git gate list --runs",
        )
    found = desk.refs.beginning(RUNS + word)
    if len(found) > 1:
        names = ", ".join(ref.removeprefix(RUNS) for ref in found[:8])
        raise AmbiguousGate(f"{given} could be {names}", hint="type more of the id")
    if not found:
        archived = load_archived_run(desk, word)
        if archived is not None:
            return archived
        gate = bool(desk.refs.beginning(OPEN + word))
        raise UnknownGate(
            f"{given} is a gate here, and a run's id is wanted" if gate else f"there is no run {given} here",
            hint=f"git gate list --runs --all   {f'the gate: git gate show {given}' if gate else 'or first: git gate sync'}",
        )
    return load_run(desk, found[0].removeprefix(RUNS))


def load_run(desk: Desk, run: str) -> Run:
    tip = desk.refs.get(RUNS + run)
    if tip is not None:
        return journals(desk).load(run, tip)
    archived = load_archived_run(desk, run)
    if archived is None:
        raise UnknownGate(f"there is no run {run} here", hint="git gate list --runs")
    return archived


def shared_at(desk: Desk, run: str) -> str | None:
    """Return the remote that knows this run. Where there is one, the run is claimed there alone."""
    remote = remote_of(desk)
    known = remote is not None and desk.refs.get(tracking(remote, RUNS + run)) is not None
    return remote if known else None


def bring_run(desk: Desk, run: str, at: str | None = None) -> None:
    """Fetch the journal of a run, and take it over where it counts more than ours. `at`: its remote, if not known here."""
    remote = at or shared_at(desk, run)
    if remote is None:
        return
    timeout = desk.settings.seconds("networkTimeout") or 60
    # With what its branches had in their trees, if it waits so.
    theirs = fetch_refs(desk.repo, remote, [RUNS + run, WORK + run], timeout=timeout).get(RUNS + run)
    mine = desk.refs.get(RUNS + run)
    if theirs is None or mine == theirs:
        return
    if mine is None or counts_more(desk, run, theirs, mine):
        desk.refs.update([RefMove(RUNS + run, theirs, mine)])


@dataclass(frozen=True)
class RunClaimant:
    """Holder of runs: for how long it claims a run at a time, on which host, and by whom."""

    term: int = 120
    host: str = ""
    by: str = ""


def claimant(desk: Desk) -> RunClaimant:
    term = desk.settings.seconds("leaseTerm") or 120
    return RunClaimant(term, host_name(), desk.settings.identity())


class RunTaken(HeldByAnother):
    """Conflict over a run: another process goes on with it."""


@dataclass
class HeldRun:
    """This process goes on with a run: `append` writes its journal, `leave` gives the right up with its last event.

    Its methods may be called from several threads.
    """

    desk: Desk
    run: Run
    held: HeldLease
    lock: int = -1
    packed: str | None = None
    fresh: int = 0
    unshared: int = 0
    lost: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    turn: threading.RLock = field(default_factory=threading.RLock)
    thread: threading.Thread | None = None
    above: HeldRun | None = None
    """The run whose step this one is; it is led by the same process."""
    children: dict[str, HeldRun] = field(default_factory=dict)
    deliver: Callable[[], object] = object
    """Brings what was committed to the run's branch, before the run is let go."""
    recorded: ClassVar[bool] = False
    """Whether it is only read."""

    # writing

    def append(self, name: str, /, **said: Any) -> RunEntry:
        """Write one more event, if the run is still ours. What others wrote meanwhile, such as a stop, is read first."""
        with self.turn:
            self.check_held()
            self.check_room(name)
            if name == "begun" and self.above is not None:
                self.above.is_stopping()  # nothing else of it is written meanwhile
            for _ in range(TRIES):
                before = self.run.tip
                entry = self.write(name, said)
                try:
                    self.desk.refs.update([RefMove(RUNS + self.run.id, entry.commit, before)])
                except LostRace:
                    self.reload()
                    continue
                self.unshared += 1
                self.pack()
                return entry
            raise LostRace(f"the journal of run {self.run.id} keeps changing", hint="git gate list --runs")

    def write(self, name: str, said: Mapping[str, Any]) -> RunEntry:
        by = Signature(self.held.said.by or NOBODY, self.desk.at)
        return journals(self.desk).write_event(self.run, name, self.desk.now, said, by)

    def check_held(self) -> None:
        if self.lost:
            raise ClaimLost(self.lost, hint=f"git gate show {self.run.id}")
        if self.above is not None:
            self.above.check_held()

    @property
    def is_lost(self) -> bool:
        return bool(self.lost) or (self.above is not None and self.above.is_lost)

    @property
    def must_stop(self) -> bool:
        """Return whether the record says that this run is to stop, or a run above, of which this one is a step."""
        return self.run.state == STOPPING or (self.above is not None and self.above.must_stop)

    def is_stopping(self) -> bool:
        """Read the journal here again, and return whether a stop was asked for, of this run or of a run above. A stop
        from elsewhere is read when the run is shared.
        """
        with self.turn:
            tip = self.desk.refs.get(RUNS + self.run.id)
            if tip != self.run.tip:
                self.reload()
        return self.must_stop or (self.above is not None and self.above.is_stopping())

    def check_room(self, name: str) -> None:
        if name == "begun" and len(self.run.events) > MOST_EVENTS - MOST_SPARE:
            raise Conflict(
                f"run {self.run.id} has {len(self.run.events):,} events; no further step begins",
                hint="start it afresh with what it has come to, before that: gitgate.again(…)",
            )

    def reload(self) -> None:
        """Read the journal as it is here now. If another process claimed the run, it is no longer ours."""
        now = load_run(self.desk, self.run.id)
        if now.claim is None or now.claim.commit != self.held.claim:
            self.lost = f"run {self.run.id} is no longer ours: another process took over"
        self.run = now
        self.check_held()

    def pack(self) -> None:
        self.fresh += 1
        if self.fresh >= PACK_AFTER:
            journals(self.desk).pack(self.run.tip, self.packed)
            self.fresh, self.packed = 0, self.run.tip

    # sharing

    def share(self) -> None:
        """Bring what is new to the remote, with a renewed lease, which proves that it is its holder who says it."""
        with self.turn:
            if self.held.remote is None or not self.unshared:
                return
            self.check_held()
            for _ in range(TRIES):
                after = next_lease(self.desk, self.held)
                if move(self.desk, self.held.remote, [*self.journal_move(), self.lease_move(after.lease)]):
                    self.held = replace(after, taken=boottime())
                    self.unshared = 0
                    self.save()
                    return
                self.rejoin()
            raise LostRace(f"the journal of run {self.run.id} keeps changing", hint="git gate sync")

    def journal_move(self) -> list[RefMove]:
        ref = RUNS + self.run.id
        known = self.desk.refs.get(tracking(str(self.held.remote), ref))
        return [RefMove(ref, self.run.tip, known)] if known != self.run.tip else []

    def work_move(self, remote: str | None) -> list[RefMove]:
        """Return the move of the run's work ref, if one is needed: set by the event that names the work of the
        branches, removed by the next wait without such work, or by the run's end.
        """
        ref, rest = WORK + self.run.id, self.run.rest
        known = self.desk.refs.get(ref if remote is None else tracking(remote, ref))
        wanted = (rest.text("work") or None) if rest is not None else None
        return [RefMove(ref, wanted, known)] if wanted != known and (rest or self.run.closed) else []

    def as_ours(self, held: HeldRun) -> HeldRun:
        """Hold a child run in this process as well, so that it ends with this run. Return it."""
        held.above, self.children[held.run.id] = self, held
        return held

    def lease_move(self, new: str | None) -> RefMove:
        return RefMove(LEASES + self.run.id, new, self.held.lease or None)

    def rejoin(self) -> None:
        """After a lost race at the remote: what others wrote there comes first, and ours is said again on top of it.

        Only a holder's events count as ours; others may have said that the run is to stop.
        """
        remote, ref = str(self.held.remote), RUNS + self.run.id
        timeout = self.desk.settings.seconds("networkTimeout") or 60
        theirs = fetch_refs(self.desk.repo, remote, [ref], timeout=timeout).get(ref)
        if theirs is None:
            self.lost = f"run {self.run.id} is no longer on {remote}"
            self.check_held()
            return
        now = journals(self.desk).load(self.run.id, theirs)
        if now.claim is None or now.claim.commit != self.held.claim:
            self.lost = f"run {self.run.id} is no longer ours: another process took over"
            self.check_held()
        self.still_ours()
        ours, before = self.run, self.run.tip
        known = {entry.commit for entry in now.events}
        self.run = now
        for entry in [one for one in ours.events if one.commit not in known]:
            # A step that had not begun there does not begin: the run may be ending.
            with contextlib.suppress(IllegalEvent):
                self.write(entry.event.name, entry.event.said)
        self.desk.refs.update([RefMove(ref, self.run.tip, before)])

    def still_ours(self) -> None:
        """Read the lease as it stands: a renewal may have arrived without an answer to us."""
        found = load_lease(self.desk, self.run.id, self.held.remote)
        if found is not None and found[1] is not None and is_our_lease(self.held, found[1]):
            self.held = with_lease(self.held, found[0], found[1])

    # the lease

    def renew(self) -> None:
        with self.turn:
            if self.over.is_set():
                return
            for _ in range(TRIES):
                after = next_lease(self.desk, self.held)
                if move(self.desk, self.held.remote, [self.lease_move(after.lease)]):
                    self.held = replace(after, taken=boottime())
                    self.note()
                    self.hear_others()
                    return
                self.check_claim()
                self.still_ours()
            raise LostRace(f"the lease of run {self.run.id} keeps being moved", hint="git gate list --runs")

    def hear_others(self) -> None:
        """Read what others wrote of the run at the remote, such as a stop, while an agent works for hours."""
        if self.held.remote is None:
            return
        ref = RUNS + self.run.id
        known = self.desk.refs.get(tracking(self.held.remote, ref))
        timeout = self.desk.settings.seconds("networkTimeout") or 60
        if fetch_refs(self.desk.repo, self.held.remote, [ref], timeout=timeout).get(ref) != known:
            self.rejoin()

    def check_claim(self) -> None:
        """Read the journal again where the run is claimed. ClaimLost where somebody else has claimed the run."""
        if self.held.remote is not None:
            self.rejoin()
        else:
            self.reload()

    def note(self) -> None:
        if self.held.remote is None:
            sightings(self.desk).note(self.run.id, self.held.claim, self.held.said.beat)
        self.save()

    def keep(self) -> None:
        """Renew the lease in a thread, until the run is let go."""
        self.thread = threading.Thread(target=self._beat, daemon=True, name="lease")
        self.thread.start()

    def _beat(self) -> None:
        def renewed() -> bool:
            if self.above is not None:
                self.above.check_held()
            self.renew()
            return True

        def lose(reason: str) -> None:
            self.lost = f"run {self.run.id}: {reason}" if self.run.id not in reason else reason

        keep_renewed(float(self.held.said.term), self.over.wait, renewed, lose)

    def leave(self, name: str, /, *, still: Callable[[], bool] | None = None, **said: Any) -> Run:
        """Write this holder's last event, and end its lease. `still`: whether to leave, asked before each write."""
        with self.turn:
            self.check_held()
            self.deliver()
            for _ in range(TRIES):
                if still is not None and not still():
                    return self.run
                before = self.run.tip
                entry = self.write(name, {**said, "reveal": next_link(self.held)})
                here = [RefMove(RUNS + self.run.id, entry.commit, before), *self.work_move(None)]
                there = [] if self.held.remote is not None else [self.lease_move(None)]
                try:
                    self.desk.refs.update([*here, *there])
                except LostRace:
                    self.reload()
                    self.still_ours()
                    continue
                break
            else:
                raise LostRace(
                    f"the journal of run {self.run.id} keeps changing", hint="git gate list --runs"
                )
            self.over.set()
            if self.held.remote is not None:
                self.end_there()
            self.unlock()
            if name != "waiting" and self.above is None:  # of what it waits for people hear as of any gate
                tell_people(self.desk)
            return self.run

    def end_there(self) -> None:
        """Push the last events and end the lease. If the remote is silent, the lease lapses, and a sync brings them."""
        try:
            for _ in range(TRIES):
                work = self.work_move(self.held.remote) if may_publish_work(self.desk) else []
                if move(self.desk, self.held.remote, [*self.journal_move(), *work, self.lease_move(None)]):
                    return
                self.rejoin()
        except GateError as silent:
            self.desk.progress(f"run {self.run.id} is not shared: {silent.message}")

    def unlock(self) -> None:
        """Release this clone's lock on the run, and delete the saved claim."""
        with contextlib.suppress(OSError):
            place_of(self.desk, self.run.id).unlink()
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1

    def save(self) -> None:
        """Save the claim, so that the next process of this clone goes on with it if this process is killed."""
        said = {
            "claim": self.held.claim,
            "lease": self.held.lease,
            "remote": self.held.remote,
            "seed": self.held.seed,
            "chain": self.held.chain,
            "began": self.held.began,
        }
        write_private(place_of(self.desk, self.run.id), json.dumps(said).encode())


def folder_of(desk: Desk, run: str) -> Path:
    """Return the folder of what this machine alone keeps of a run. It is made if it is missing."""
    return private_folder(folder_of_run(desk, run))


def place_of(desk: Desk, run: str) -> Path:
    return folder_of(desk, run) / "claim.json"


def lock_here(desk: Desk, run: str) -> int:
    """Take a lock of the system on the run. It ends with this process, however that ends."""
    import fcntl

    number = os.open(folder_of(desk, run) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise RunTaken(
            f"another process of this clone goes on with run {run}", hint=f"watch it: git gate show {run[:6]}"
        ) from None
    return number


def begin_run(desk: Desk, said: Mapping[str, Any], *, push: bool | None = None, at: str = "") -> HeldRun:
    """Begin a new run, claimed by this process from its first event on."""
    wanted = desk.settings.flag("push") if push is None else push
    remote = remote_of(desk) if wanted else None
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    run = journals(desk).write_started(
        at or desk.now, {**said, "nonce": said.get("nonce") or desk.entropy(12)}, by
    )
    lock = lock_here(desk, run.id)
    try:
        try:
            return claim_run(desk, run, remote, lock, None, None)
        except (RemoteUnreachable, PushRefused) as silent:
            if remote is None or push:
                raise
            desk.progress(f"the run stays here alone: {silent.message}")
            return claim_run(desk, journals(desk).load(run.id, run.events[0].commit), None, lock, None, None)
    except BaseException:
        os.close(lock)
        raise


def claim_run(
    desk: Desk, run: Run, remote: str | None, lock: int, known: str | None, lease: str | None
) -> HeldRun:
    """Claim the run: `known` is its journal where it is claimed, `lease` the lease there."""
    who = claimant(desk)
    mine = desk.refs.get(RUNS + run.id)
    seed, taken = desk.entropy(32), boottime()
    event = Claim(
        *(desk.now, run.tip, desk.entropy(12), RUNNER, who.host, run.attempts + 1, who.term, who.by),
        anchor=end_of(seed),
    )
    by = Signature(who.by or NOBODY, desk.at)
    journals(desk).write_event(run, "claimed", desk.now, {"claim": said_of_claim(event)}, by)
    said = Lease(run.id, RUNNER, who.host, event.nonce, who.term, 0, desk.now, "", who.by)
    said, oid = write_lease(desk, said, run.tip)
    moves = [RefMove(RUNS + run.id, run.tip, known), RefMove(LEASES + run.id, oid, lease)]
    held = HeldRun(desk, run, HeldLease(run.tip, oid, said, remote, taken, seed), lock)
    note_claim(desk, run.id, run.tip)
    held.save()  # before it counts: a process that is killed right after goes on with it, and nobody waits for its term
    if not move(desk, remote, moves):
        raise RunTaken(f"another process went on with run {run.id} first", hint=f"git gate show {run.id[:6]}")
    if remote is not None:
        desk.refs.update([RefMove(RUNS + run.id, run.tip, mine)])
    held.note()
    held.keep()
    return held


def take_run(desk: Desk, run: str) -> HeldRun:
    """Go on with a run that was begun before. RunTaken where another process does."""
    lock = lock_here(desk, run)
    try:
        return claim_again(desk, run, lock)
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(lock)
        raise


def claim_again(desk: Desk, run: str, lock: int) -> HeldRun:
    bring_run(desk, run)
    loaded = load_run(desk, run)
    if loaded.closed:
        raise IllegalEvent(f"run {run} is over: {loaded.state}", hint=f"git gate show {run[:6]}")
    ours = own_claim(desk, loaded, lock)
    if ours is not None:
        return ours
    remote = shared_at(desk, run)
    found, left = watch_lease(desk, loaded, remote, sightings(desk))
    if loaded.claim is not None and left:
        refused = RunTaken(
            f"run {run} is gone on with by {RUNNER} on {holder_of(loaded)}",
            hint=f"if it gives no sign of life, the same command in {left:.0f} s takes over",
        )
        refused.left = left
        raise refused
    ref = RUNS + run
    known = desk.refs.get(tracking(remote, ref)) if remote is not None else loaded.tip
    return claim_run(desk, loaded, remote, lock, known, found[0] if found is not None else None)


def holder_of(run: Run) -> str:
    event = run.claim.event if run.claim is not None else None
    return event.host if isinstance(event, Claim) and event.host else "another machine"


def own_claim(desk: Desk, run: Run, lock: int) -> HeldRun | None:
    """Return the claim of a killed process of this clone. Our lock proves that it is gone, so nobody has to wait."""
    if run.claim is None:
        return None
    try:
        fields = dict.fromkeys(("claim", "lease", "seed", "chain"), str)
        said = read_local_note(place_of(desk, run.id), **fields, remote=(str, type(None)), began=(int, float))
        lease = parse_lease(desk.records.commit(said["lease"]).message)
    except (OSError, ValueError, KeyError, GateError):
        return None
    if lease is None or said.get("claim") != run.claim.commit:
        return None
    held = HeldLease(
        *(said["claim"], said["lease"], lease, said["remote"], boottime()),
        seed=str(said["seed"]),
        chain=str(said["chain"]),
        began=int(said["began"]),
    )
    ours = HeldRun(desk, run, held, lock)
    try:
        ours.unshared = 1  # what the killed process had not shared, if anything
        ours.still_ours()
        there = desk.refs.get(tracking(said["remote"], RUNS + run.id)) if said["remote"] else None
        if there is not None and there not in {entry.commit for entry in run.events}:
            ours.rejoin()  # somebody said something of it meanwhile
        ours.renew()
    except ClaimLost:
        return None
    ours.keep()
    return ours


def stop_run(desk: Desk, run: Run, reason: str) -> Run:
    """Say that a run is to stop. Its holder ends its agents; if it has none, the next holder does so first."""
    if run.closed or run.state == STOPPING:
        return run
    said = {"reason": reason, "by": desk.person()}
    return say_beside(desk, run, "stopping", said, done=lambda now: now.closed or now.state == STOPPING)


def signal_run(desk: Desk, run: Run, topic: str, value: Any = None) -> Run:
    """Send a run a word on a topic. It is kept in the journal until a step receives it, and is nobody's approval."""
    refuse_signal(desk, run, topic, value)
    agent = desk.agent_here()
    said = {"topic": topic, "by": desk.settings.identity(), "nonce": desk.entropy(6)}
    said |= {"value": value} if value is not None else {}
    said |= {"agent": agent} if agent else {}
    return say_beside(desk, run, "signalled", said)


def refuse_signal(desk: Desk, run: Run, topic: str, value: Any) -> None:
    again = f"git gate signal {run.id[:6]} --topic NAME VALUE"
    if run.closed or run.state == STOPPING:
        raise Conflict(
            f"run {run.id} is {run.state}, and receives nothing more", hint=f"git gate show {run.id[:6]}"
        )
    if not is_short(topic):
        raise Usage(f"--topic: expected a name in one line, of at most {MOST_NAME} characters", hint=again)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as unfit:
        raise Usage(f"a signal's value is JSON: {unfit}", hint="text, a number, a list, a mapping") from unfit
    if len(text.encode("utf-8", "replace")) > MOST_SIGNAL:
        raise Usage(
            f"a signal's value has at most {MOST_SIGNAL:,} bytes; this one has {len(text):,} characters",
            hint="write it to a file, and send its name",
        )
    if redact(text, secret_values(desk.settings.env)) != text:
        raise Usage(
            "the value looks like a secret, and it would be recorded in Git",
            hint="send what it is called, and read it where it is used",
        )
    if len(run.events) > MOST_EVENTS - 2 * MOST_SPARE or sum(map(len, run.signals.values())) >= MOST_SIGNALS:
        raise Conflict(
            f"run {run.id} has no room for another signal: {len(run.events):,} events",
            hint=f"git gate show {run.id[:6]}",
        )


def say_beside(
    desk: Desk, run: Run, name: str, said: Mapping[str, Any], done: Callable[[Run], bool] = lambda _run: False
) -> Run:
    """An event of somebody who does not hold the run. `done`: that it need not be said any more."""
    by = Signature(str(said["by"]) or NOBODY, desk.at)
    for _ in range(TRIES):
        if done(run):
            return run
        before, remote = run.tip, shared_at(desk, run.id)
        known = desk.refs.get(tracking(remote, RUNS + run.id)) if remote is not None else before
        if known is not None and known not in {entry.commit for entry in run.events}:
            # What is not shared here yet, whoever goes on with the run says again on top of this.
            run = journals(desk).load(run.id, known)
        here = before in {entry.commit for entry in run.events}
        journals(desk).write_event(run, name, desk.now, said, by)
        if move(desk, remote, [RefMove(RUNS + run.id, run.tip, known)]):
            if remote is not None and here:
                desk.refs.update([RefMove(RUNS + run.id, run.tip, before)])
            return run
        bring_run(desk, run.id)
        run = load_run(desk, run.id)
    raise LostRace(f"the journal of run {run.id} keeps changing", hint=f"git gate show {run.id[:6]}")
