"""Exchange: one gate on its way to the shared repository; and this clone and that one, brought together. Nothing local is lost.

Light on purpose: usually nothing is new, and then no record is read. What differs is the business of `merging`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..context import Desk
from ..context.targets import find_tip, no_remote, remote_of, work_moves
from ..document import dataclass
from ..errors import Failure, GateError, NeverTaken, PushRefused
from ..model import RESUMING
from ..store import private_folder
from ..store.git.refs import OPEN, RUNS, SESSIONS
from ..store.git.remembered import has_lines, remember_tips
from ..store.remote import RefFate, RefMove, tracking_base
from . import Sides, Synced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from ..model.gate import Gate

# A gate on its way to the shared repository. The first answer to reach it counts; nothing local is lost.


TRIES = 6
# Its claim and its lease are here: elsewhere it would look as if whoever holds it were gone.
ACTED_ON = "an agent acts on it here; it goes when that is done"


@dataclass(frozen=True)
class Published:
    """Result of sending a gate. `pushed` is False with a `reason` when it stayed here; `log` names its agent's log,
    started here.

    `told`: the remote's reply when it took an answer: empty, it resumes the agent; else why it does not; None: no
    reply.
    """

    gate: Gate
    remote: str | None = None
    pushed: bool = False
    reason: str = ""
    work: bool = False
    session: bool = False
    log: str = ""
    archived: bool = False
    told: str | None = None


def publish(desk: Desk, gate: Gate, *, push: bool | None = None, work: bool = False) -> Published:
    """Send a gate's record, with its work when `work` is wanted and permitted, in one atomic push.

    `push`: True insists (a failure is an error), False stays local, None does what the settings say.
    """
    if push is False or (push is None and not desk.settings.flag("push")):
        return Published(gate, reason="not asked to push")
    remote = remote_of(desk)
    if remote is None:
        why, mend = no_remote(desk)
        if push:
            raise Failure(
                f"gate {gate.id} is safe here, but not pushed: {why}", hint=f"{mend}, then: git gate sync"
            )
        return Published(gate, reason=why)
    try:
        return send(desk, gate, remote, work=work)
    except GateError as failed:
        if isinstance(failed, NeverTaken):
            raise type(failed)(
                f"gate {gate.id} is not pushed: {failed.message}",
                hint=f"put it aside, and push the rest: git gate sync {remote}",
            ) from failed
        if push or desk.settings.in_ci:
            raise type(failed)(
                f"gate {gate.id} is safe here, but not pushed: {failed.message}", hint=failed.hint
            ) from failed
        return Published(gate, remote, reason=failed.message)


def send(desk: Desk, gate: Gate, remote: str, *, work: bool) -> Published:
    desk.progress(f"pushing gate {gate.id} to {remote}")
    extra = work_moves(desk, gate.id, remote) if work else []
    reason = ""
    for _ in range(TRIES):
        known = desk.tracked(remote, gate.id)
        if known is None and len(gate.history) > 1 and (closed := in_archive(desk, gate, remote)):
            return Published(closed, remote, True, "it was closed and archived there", archived=True)
        if known is None and gate.state == RESUMING:
            return Published(gate, remote, reason=ACTED_ON)
        if not stands_on(gate, known):
            gate = catch_up(desk, gate, remote)
            continue
        record = RefMove(OPEN + gate.id, gate.tip, known)
        if known == gate.tip and not extra:
            return Published(gate, remote, pushed=True)
        fates = push_moves(desk, remote, [record, *extra])
        if all(fate.ok for fate in fates):
            session = any(move.ref.startswith(SESSIONS) for move in extra)
            told = told_of(fates, gate.id)
            return Published(gate, remote, True, reason, bool(extra), session, told=told)
        refused = next((fate for fate in fates if fate.refused), None)
        if refused is not None and extra:
            reason, extra = f"the work was not taken: {refused.reason}", []
        elif refused is not None:
            final = any(note.final and note.ref == record.ref for note in refused.notes)
            error = NeverTaken if final else PushRefused
            raise error(f"{remote} {refused.reason}", hint=f"git gate sync {remote}")
        else:
            gate, extra = catch_up(desk, gate, remote), [] if known else extra
    raise Failure(f"{remote} keeps changing gate {gate.id}", hint=f"git gate sync {remote}")


def told_of(fates: Sequence[RefFate], gate: str) -> str | None:
    if not any(fate.heard for fate in fates):
        return None
    from ..gates.agency import said_of_push

    return said_of_push(fates[0].heard, gate)


def stands_on(gate: Gate, known: str | None) -> bool:
    """Return whether the record goes on from what the remote has.

    The lease of a push would not protect it: another command of this clone may have fetched meanwhile what somebody
    recorded there, and so have moved what the push expects.
    """
    return known is None or any(entry.commit == known for entry in gate.history)


def catch_up(desk: Desk, gate: Gate, remote: str) -> Gate:
    """Fetch what the remote has after a lost race, and record again on top of it what was said here."""
    from ..gates.recording import reload

    bring_home(desk, remote)
    return reload(desk, gate.id)


def in_archive(desk: Desk, gate: Gate, remote: str) -> Gate | None:
    """Return the gate as the remote archived it, if it did: a gate is never opened there a second time."""
    from ..gates.history import load_archived, settle_archived

    settled = settle_archived(desk, remote, {gate.id: gate.tip})
    return load_archived(desk, gate.id) if gate.id in (*settled.gates, *settled.kept) else None


def push_moves(desk: Desk, remote: str, moves: Sequence[RefMove]) -> list[RefFate]:
    from ..store.remote.push import push

    return push(desk.repo, remote, moves, timeout=desk.network_timeout)


# This clone and the shared repository, brought together. Never loses a local gate.
#
# Light on purpose: usually nothing is new, and then no record is read. What differs is the business of
# `merging`.


NEWS_TIMEOUT = 10  # seconds that a person waits who only wants to see one gate


def sync(desk: Desk, remote: str | None = None, *, aside: str | None = None) -> Synced:
    """Fetch, bring together, push what the remote lacks; report each gate's fate.

    `aside` is a gate of which everything that the remote does not have is put aside first.
    """
    name = remote or remote_of(desk)
    if name is None and desk.settings.flag("server"):
        raise Failure("others sync with this repository; it has nothing to sync with", hint="git gate list")
    if name is None:
        why, mend = no_remote(desk)
        raise Failure(f"there is nothing to sync with: {why}", hint=mend)
    done = one_round(desk, name, aside)
    if done.overtaken:
        # Another command in this clone brought something meanwhile: that is here now, and can be brought together.
        done = joined(done, one_round(desk, name))
    desk.heard = desk.network_timeout
    hear_of_archived(desk, done)
    return done


def hear_of_archived(desk: Desk, done: Synced) -> None:
    """Add the late words of gates that were taken over here, and that a fetch no longer brings."""
    if not (desk.repo.state_dir / "overtaken").is_dir():
        return
    from ..gates.history import late_of_archived

    with suppress(GateError):  # the next sync asks again
        done.late += tuple(late_of_archived(desk, done.remote))


def one_round(desk: Desk, name: str, aside: str | None = None) -> Synced:
    done, sides = listen(desk, name)
    if aside is not None:
        from .merging import put_all_aside

        put_all_aside(desk, done, find_tip(desk, aside)[0], sides.theirs)
        sides = both_sides(desk, name)
    done.open = len(sides.local)
    if sides.runs:
        from .merging import send_runs

        send_runs(desk, done, name, both_sides(desk, name).runs)
    ahead = {g: tip for g, tip in sides.local.items() if sides.theirs.get(g) != tip and g not in done.broken}
    if ahead:
        from .merging import push_home

        there = was_there(desk, name, [gate for gate in ahead if gate not in sides.theirs])
        push_home(desk, done, ahead, sides.theirs)
        done.restored = tuple(gate for gate in done.pushed if gate in there)
    return done


def was_there(desk: Desk, remote: str, absent: Collection[str]) -> Collection[str]:
    """Return those of these gates that the remote once had. It does not have them now."""
    if not absent:
        return ()
    from ..store.git.remembered import read_seen_tips

    seen, base = read_seen_tips(desk.repo), tracking_base(remote)
    return {gate for gate in absent if f"{base}open/{gate}" in seen}


def joined(first: Synced, second: Synced) -> Synced:
    """Return the result of two rounds. What was refused or broken is as the second round found it."""
    from dataclasses import fields

    for one in fields(Synced):
        mine, then = getattr(first, one.name), getattr(second, one.name)
        if isinstance(mine, tuple):
            setattr(second, one.name, tuple(dict.fromkeys((*mine, *then))))
    return second


@dataclass(frozen=True)
class Freshness:
    """State of what this clone knows of a remote, and when that was last asked. `heard`: what a look just now
    brought.
    """

    remote: str
    at: float | None
    heard: Synced | None = None
    trouble: str = ""


def freshness(desk: Desk) -> Freshness | None:
    """Return how old the local copy of the remote is; None where there is no remote, since all there is is here."""
    remote = None if desk.settings.flag("server") else remote_of(desk)
    if remote is None:
        return None
    try:
        at = (desk.repo.state_dir / "synced").stat().st_mtime
    except OSError:
        at = None
    return Freshness(remote, at)


def look_for_news(desk: Desk, known: Freshness, within: float) -> Freshness:
    """Fetch what the remote has, if it replies in time, without asking anybody for a password. A remote that
    fails changes nothing.
    """
    try:
        heard = listen(desk, known.remote, within=within)[0]
    except GateError as silent:
        return Freshness(known.remote, known.at, trouble=silent.message)
    desk.heard = within
    return Freshness(known.remote, desk.clock(), heard)


NEWS_EVERY = 1.0
NEWS_AT_MOST_EVERY = 60.0
NEWS_POLL = 0.2


@dataclass(frozen=False)
class RemoteNews:
    """News of one repository's remote, for a process that stays.

    It asks less often where the remote is slow, and much less where it does not answer.
    """

    place: Path
    every: float = NEWS_EVERY
    ask_at: float = 0.0
    pause: float = 0.0
    remote: bool = True
    trouble: str = ""

    def hear(self, open_desk: Callable[[Path], Desk], monotonic: Callable[[], float]) -> str:
        """Ask the remote once. Return a message where it stopped answering, or answers again; else an empty text."""
        begun = monotonic()
        trouble = ""
        try:
            desk = open_desk(self.place)
            try:
                known = freshness(desk)
                self.remote = known is not None and desk.settings.span("fresh") > 0
                if known is not None and self.remote:
                    trouble = look_for_news(desk, known, NEWS_TIMEOUT).trouble
            finally:
                desk.close()
        except (GateError, OSError) as failed:
            trouble = str(failed)
        took = monotonic() - begun
        if trouble:
            self.pause = min(NEWS_AT_MOST_EVERY, max(4 * self.every, 2 * self.pause))
        else:
            self.pause = max(self.every, 2 * took)
        self.ask_at = monotonic() + self.pause
        if trouble == self.trouble:
            return ""
        self.trouble = trouble
        name = self.place.name
        return f"{name}: no news of its remote: {trouble}" if trouble else f"{name}: its remote answers again"


def hear_news(
    remotes: Sequence[RemoteNews], open_desk: Callable[[Path], Desk], say: Callable[[str], None], over: Event
) -> None:
    """Ask each remote whenever it is due, until the event.

    It runs in a thread of its own, so that a slow remote holds up nothing.
    """
    import time

    while not over.wait(NEWS_POLL):
        for one in remotes:
            due = one.remote and not over.is_set() and time.monotonic() >= one.ask_at
            if due and (words := one.hear(open_desk, time.monotonic)):
                say(words)


def bring_home(desk: Desk, remote: str) -> Synced:
    """Fetch into the tracking namespace, then merge each gate that differs into the local one."""
    return listen(desk, remote)[0]


def news(desk: Desk, within: float = NEWS_TIMEOUT) -> str:
    """Fetch once, in a bounded time, what others have done. Return an empty text, or why that failed.

    The caller goes on either way.
    """
    known = freshness(desk)
    if known is None:
        return ""
    looked = look_for_news(desk, known, min(within, desk.settings.seconds("networkTimeout") or within))
    return f"{known.remote} could not be asked: {looked.trouble}" if looked.trouble else ""


def listen(desk: Desk, remote: str, *, within: float | None = None) -> tuple[Synced, Sides]:
    """Fetch what the remote has and bring it together with what is here; return the result, and both sides afterwards.

    With `within` the remote has so many seconds, and nobody is asked for a password.
    """
    from ..store.remote.fetch import begin_fetch
    from ..store.remote.wire import LONGEST

    timeout = within or desk.network_timeout
    prompts = None if within is None else False
    desk.progress(f"asking {remote}")
    with begin_fetch(
        desk.repo, remote, timeout=timeout, longest=within or LONGEST, prompts=prompts
    ) as polling:
        # While git talks: usually nothing is new, and this is all there is to know.
        sides = both_sides(desk, remote)
        fetched = polling.wait()
        if fetched.changed:
            sides = both_sides(desk, remote)
    done = Synced(remote)
    remember_sync(desk)
    if sides.runs:
        from .merging import bring_runs

        bring_runs(desk, done, sides.runs)
    differing = {gate: tip for gate, tip in sides.theirs.items() if sides.local.get(gate) != tip}
    if differing:
        from .merging import bring_in

        bring_in(desk, done, sides, differing, fetched.before)
    note_seen(desk, done, sides, fetched.updated)
    if done.new or done.updated:
        from ..gates.recording import tell_people

        tell_people(desk)
    return done, both_sides(desk, remote) if differing else sides


def note_seen(desk: Desk, done: Synced, sides: Sides, updated: Collection[str]) -> None:
    """Note the tips of those remote records that this fetch moved, or of all, where there is not yet a line for each.

    A record that cannot be read is no record, and is left out.
    """
    known = has_lines(desk.repo, len(sides.theirs))
    wanted = updated if known else {*sides.theirs, *sides.runs}
    base = tracking_base(done.remote)
    tips = {f"{base}open/{gate}": sides.theirs[gate] for gate in wanted if gate in sides.theirs}
    tips |= {f"{base}runs/{run}": tip for run in wanted if (tip := sides.runs.get(run, (None, None))[1])}
    remember_tips(
        desk.repo, {ref: tip for ref, tip in tips.items() if ref.rpartition("/")[2] not in done.broken}
    )


def remember_sync(desk: Desk) -> None:
    """Mark that a sync was done, and when. An empty list can then say truly that nothing waits, and until when
    that is true.
    """
    mark = desk.repo.state_dir / "synced"
    try:
        private_folder(mark.parent)
        mark.touch()
        os.utime(mark, (desk.clock(), desk.clock()))
    except OSError as unwritable:
        desk.progress(f"{mark} cannot be written: {unwritable.strerror}")


def both_sides(desk: Desk, remote: str) -> Sides:
    """Return the tips here and there, from one listing."""
    base = tracking_base(remote)
    places = (OPEN, f"{base}open/", RUNS, f"{base}runs/")
    found: dict[str, dict[str, str]] = {place: {} for place in places}
    for ref, oid in desk.refs.under(*places).items():
        place = next(each for each in places if ref.startswith(each))
        found[place][ref.removeprefix(place)] = oid
    local, theirs, mine, others = found.values()
    runs = {run: (mine.get(run), others.get(run)) for run in {*mine, *others}}
    return Sides(local, theirs, {run: sides for run, sides in runs.items() if sides[0] != sides[1]})
