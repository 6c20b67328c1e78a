"""Resumption: several gates at once, in one repository or many, and runs that slept; never more agents than the machine is to run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from .. import claims, text
from .. import resumption as place
from ..acts import needs
from ..agents import scrubbed, without_caller
from ..claims import Claimant, HeldByAnother, is_left_to_others, pending, take_over
from ..context import Desk, open_desk
from ..context.machine import slot
from ..context.targets import remote_of, summaries
from ..errors import Conflict, Failure, GateError, RemoteUnreachable, UnknownGate, Usage, WorkFailed
from ..exchange.syncing import publish, sync
from ..gates import agency, due_runs
from ..gates.agency import CannotStart, began_here, note_inability
from ..gates.leases import RENEW_AT, boottime
from ..gates.recording import act, reload
from ..gates.work import Served, note_served, served_in, worktrees
from ..model import HANDED_BACK
from ..model.gate import Gate, Outcome, SessionRef
from ..policy import project as bylaws
from ..record import Summary
from ..record.runs import OF_A_TREE, Run
from ..sharing.branches import HEADS, finish_cut_off, tip_of
from ..store import private_folder
from ..store.git import Repository
from ..store.git.programs import detach, our_command
from ..store.git.refs import HEAD, RUNS, WORK, Refs
from ..store.records.journal import Journals
from ..store.remote import RefMove
from ..store.remote.fetch import fetch_refs
from ..store.work import commits
from ..store.work.restore import matches, open_worktree, remove_worktree
from ..text import counted
from . import Course
from .run import POLL, Errand, Resumed, handed_back, log_of, resume_gate, tell_ending

# A run that slept goes on, with no gate's answer to tell it: its flow is started again, and finds in its
# journal what it waited for.
#
# Where it began in this clone it goes on in the directory that it began in. Elsewhere it has a working
# tree of its own, as the run was let go, on a branch that only serves that; what is committed there is
# brought to the run's branch each time it rests.


def wake_run(errand: Errand, desk: Desk, run: str) -> Resumed:
    """Start a run's flow again, and stay until it waits or ends."""
    tip = desk.refs.get(RUNS + run)
    if tip is None or began_here(desk, run):
        return start_flow(errand, desk, run, desk.repo.place, {})
    known = Journals(desk.repo, desk.records).load(run, tip)
    with contextlib.ExitStack() as held:
        directory = worktrees(desk) / f"run-{run}"
        if not place.lock(desk, directory, held):
            raise Conflict(
                f"another runner of this clone goes on with run {run}", hint=f"git gate show {run[:6]}"
            )
        there = take_tree(errand, desk, known, directory)
        if there is None:
            return start_flow(
                errand, desk, run, desk.repo.place, {}
            )  # it says itself that its code is not here
        errand.say(f"in {directory}")
        place.free(desk, there)
        with bylaws.in_force(desk, there, say=errand.say) as project:
            by = known.started.text("by") or "agent <agent@gitgate.invalid>"
            env = place.around_program(
                desk, "flow", by, place.settings_without_programs(there), project.settings
            )
            done = start_flow(errand, desk, run, directory, env, project)
        remains = put_tree_away(desk, run, there)
        if remains:
            errand.say(remains)
        return done


def start_flow(
    errand: Errand,
    desk: Desk,
    run: str,
    directory: Path,
    env: dict[str, str],
    project: bylaws.InForce | None = None,
) -> Resumed:
    """Start a run's flow in a process of its own, and stay until that ends."""
    from ..agents.agent import AgentResult, Start
    from ..agents.process import begin

    program, log = agency.adapter("flow"), str(log_of(desk, run))
    begun = f"{desk.now}-{desk.entropy(4)}".replace(":", "")
    settings = agency.settings_for_start(desk, "flow")
    started = Start(
        gate=run,
        cwd=directory,
        folder=desk.repo.state_dir / "runs" / run / begun,
        session=SessionRef("flow", run),
        settings=settings if project is None else bylaws.without_doubt(settings, project),
        env=scrubbed(desk.settings.env),
        extra_env=env,
    )
    running = begin(program.start(started))
    try:
        while (ended := running.wait(POLL)) is None:
            if errand.stopping.is_set():
                running.stop()
                return handed_back(run, log)
    except BaseException:
        running.stop()
        raise
    tell_ending(errand, ended)
    outcome = program.read_outcome(ended)
    if outcome.result is AgentResult.FAILED:
        return Resumed(run, "failed", outcome.reason or "it could not go on", log)
    errand.say(f"run {run}: {outcome.text}")
    return Resumed(run, "resumed", "", log)


def take_tree(errand: Errand, desk: Desk, run: Run, directory: Path) -> Repository | None:
    """Return the run's working tree as the run was let go, or as it is where the run's process was killed in it."""
    left = left_by(errand, desk, run)
    if left is None:
        return None
    there = place.repository_of(desk, directory)
    if there is not None and (run.rest is None or is_as_left(there, left)):
        return there
    private_folder(desk.repo.state_dir)
    if (
        directory.exists()
    ):  # an answer took the run further since, in another place: this one is what it was before
        remove_worktree(desk.repo, directory, force=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    own = f"run/{run.id}"
    drop_served(desk, own, left["head"])
    made = open_worktree(
        desk.repo,
        base=left["head"],
        staged=left["staged"],
        work=left["work"],
        directory=directory,
        branch=own,
        fallback_branch=own,
    )
    there = place.repository_of(desk, made.directory)
    if there is not None:
        note_served(there, Served(made.branch or own, left["branch"], left["head"]))
    return there


def left_by(errand: Errand, desk: Desk, run: Run) -> dict[str, str] | None:
    """Return the commits of the run's own tree as it was let go, else that of its code; None where neither is here."""
    own = run.own_tree
    if own is not None:
        if has_commits(desk, own) or (bring_tree(desk, run.id) and has_commits(desk, own)):
            return {"branch": "", **own}
        errand.say(
            f"what run {run.id} did was not published: git gate init, and git gate sync, where it was let go"
        )
    code = run.started.text("code")
    if not code or not desk.repo.git.ok("cat-file", "-e", f"{code}^{{commit}}"):
        return None
    return {"head": code, "staged": code, "work": code, "branch": ""}


def has_commits(desk: Desk, own: dict[str, str]) -> bool:
    return all(desk.repo.git.ok("cat-file", "-e", f"{own[key]}^{{commit}}") for key in OF_A_TREE)


def bring_tree(desk: Desk, run: str) -> bool:
    """Fetch the work in the run's trees from the remote. Return whether it was there."""
    remote = remote_of(desk)
    if remote is None:
        return False
    try:
        return WORK + run in fetch_refs(desk.repo, remote, [WORK + run], timeout=desk.network_timeout)
    except GateError:
        return False


def is_as_left(there: Repository, left: dict[str, str]) -> bool:
    try:
        return Refs(there).get(HEAD) == left["head"] and matches(there, left["work"], left["staged"])
    except GateError:
        return False


def put_tree_away(desk: Desk, run: str, there: Repository) -> str:
    """Remove the working tree of a run that is over. One with uncommitted changes stays, and is named."""
    tip = desk.refs.get(RUNS + run)
    if tip is None or not Journals(desk.repo, desk.records).load(run, tip).closed:
        return ""
    served = served_in(there)
    try:
        remove_worktree(desk.repo, there.place)
    except WorkFailed:
        return f"changes that were not committed remain in {there.place}"
    if served is not None and served.branch:
        with contextlib.suppress(GateError):  # it is told apart from what nobody else has, or stays
            drop_served(desk, served.own, tip_of(desk, remote_of(desk), served.branch))
    return ""


def drop_served(desk: Desk, own: str, above: str | None) -> None:
    """Delete the branch that only served a run, if another branch has the commits on it."""
    tip = desk.refs.get(HEADS + own)
    if tip is not None and above is not None and commits.is_ancestor(desk.repo.git, tip, above):
        desk.refs.update([RefMove(HEADS + own, None, tip)])


# Several gates at once, in one repository or many, never more agents than the machine is to run.
#
# The same pool serves `git gate resume --all`, the runner that a hook starts, and the worker that stays.


PAUSE = 0.2
LOOK_AGAIN = 30.0
SAY_AGAIN = 600.0
REACH_AGAIN = 5.0


@dataclass
class Pool:
    """Pool that acts on the gates of one repository. `opener` opens a new desk for each caller, since none is shared."""

    opener: Callable[[], Desk]
    who: Claimant
    say: Callable[[str], None] = lambda _words: None
    stopping: threading.Event = field(default_factory=threading.Event)
    insist: bool = False
    asked: bool = True
    """Somebody asked for these agents: else those stay whose answer was given with `--no-resume`."""
    log: Callable[[str], Path] | None = None
    stamp: Callable[[], str] = lambda: text.format_time(time.time())
    later: dict[str, tuple[str, float]] = field(default_factory=dict)
    course: Callable[[Gate], Course] = lambda _gate: Course()
    limits: dict[str, tuple[str, float]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    """Gates of which it was said that their remote does not answer."""
    awaited: dict[str, float] = field(default_factory=dict)
    """When a gate that another runner has, and may have left, is looked at again; `limits`: until when that goes on."""

    def errand(self, gate: str, *, insist: bool = False) -> Errand:
        tell, note = partial(self.tell, gate), partial(self.note, gate)
        return Errand(self.opener, self.who, tell, note, self.stopping, insist=insist, course=self.course)

    def note(self, gate: str, words: str) -> None:
        """Write into the gate's own log, where people look for it later."""
        if self.log is not None:
            write_log(self.log(gate), self.stamp(), words)

    def tell(self, gate: str, words: str) -> None:
        """Report to whoever watches, and write it into the log."""
        self.say(words)
        self.note(gate, words)

    def act(self, gate: str) -> Resumed:
        """Act on one gate to its end. A failure that may pass is tried again, as often as the settings allow."""
        desk, insist = self.opener(), self.insist
        try:
            if desk.refs.get(RUNS + gate) is not None:
                return self.wake(desk, gate)
            while True:
                if not self.wait_until_ready(desk, reload(desk, gate), insist=insist):
                    return handed_back(gate)
                done = self.attempt(desk, gate, insist=insist)
                insist = False
                if done.result != "released" or done.handed_back:
                    return done
        except OSError as broken:
            raise Failure(f"this machine: {broken}", hint="df -h; git gate doctor") from broken
        finally:
            desk.close()

    def attempt(self, desk: Desk, gate: str, *, insist: bool = False) -> Resumed:
        """Wait for a free slot, then try once."""

        def once() -> Resumed:
            held = take_over(desk, gate)
            known = held.gate if held else reload(desk, gate)
            return resume_gate(self.errand(gate, insist=insist), desk, known, held)

        return self.in_a_slot(desk, gate, once)

    def in_a_slot(self, desk: Desk, gate: str, act: Callable[[], Resumed]) -> Resumed:
        waiting = False
        while not self.stopping.is_set():
            with slot(desk.settings.env, desk.settings.number("maxAgents")) as free:
                if free:
                    return act()
            if not waiting:
                self.tell(gate, f"{gate} waits: as many agents run as gitgate.maxAgents allows")
                waiting = True
            self.stopping.wait(PAUSE)
        return handed_back(gate)

    def wake(self, desk: Desk, run: str) -> Resumed:
        """Go on with a run that slept until now. It gets no gate's answer."""
        self.put_off_run(desk, run)
        self.tell(run, f"run {run}: what it waited for has come")
        done = self.in_a_slot(desk, run, lambda: wake_run(self.errand(run), desk, run))
        self.put_off_run(desk, run)
        return done

    def put_off_run(self, desk: Desk, run: str) -> None:
        """Put a run off until its journal has grown, or for a while, because what went wrong would go wrong again."""
        self.later[run] = (desk.refs.get(RUNS + run) or "", time.monotonic() + SAY_AGAIN)

    def wait_until_ready(self, desk: Desk, gate: Gate, *, insist: bool = False) -> bool:
        """Wait after a failed attempt, twice as long after each. Return False when this process has to stop."""
        left = pause_left(desk, gate)
        if left > 0 and not insist:
            self.tell(gate.id, f"gate {gate.id}: the next attempt is in {left:.0f} s")
            return not self.stopping.wait(left)
        return not self.stopping.is_set()

    def candidates(self, desk: Desk, chosen: Sequence[str] = ()) -> Iterator[str]:
        """Return the gates that may be acted on now, those that were handed to this process first."""
        handed = pending(desk)
        yield from handed
        now = time.monotonic()
        for summary in summaries(desk):
            seen, at = self.later.get(summary.id, ("", 0.0))
            wanted = is_candidate(summary) and (not chosen or summary.id in chosen)
            if not self.asked and wanted and summary.state == "answered":
                wanted = not is_left_to_others(desk, summary.id)
            if wanted and summary.id not in handed and not (seen == summary.tip and now < at):
                yield summary.id
        for run in due_runs(desk) if not chosen else ():
            seen, at = self.later.get(run, ("", 0.0))
            if not (seen == desk.refs.get(RUNS + run) and now < at):
                yield run

    def put_off(self, desk: Desk, gate: str, seconds: float = LOOK_AGAIN) -> None:
        """Put a gate off until its record changes, or for so many seconds."""
        self.later[gate] = (desk.refs.get(f"refs/hitl/open/{gate}") or "", time.monotonic() + seconds)

    def leave(self, gate: str, failed: GateError) -> None:
        """Put off a gate that cannot be acted on here for now, and report why. The reason decides for how long."""
        desk, pause = self.opener(), LOOK_AGAIN
        if isinstance(failed, RemoteUnreachable):
            pause = REACH_AGAIN
            if gate not in self.silent:
                self.silent.add(gate)
                self.tell(gate, f"gate {gate}: {failed.message}; it is tried again until that answers")
        elif not isinstance(failed, Conflict | UnknownGate):
            # It will be the same for a while, and is said each time.
            pause = SAY_AGAIN
            self.tell(gate, f"gate {gate}: {failed.message}")
        if isinstance(failed, CannotStart):
            with contextlib.suppress(GateError):
                note_inability(desk, gate, failed.message)
        self.put_off(desk, gate, pause)
        if isinstance(failed, HeldByAnother):
            self.await_end(desk, gate, failed)
        desk.close()

    def await_end(self, desk: Desk, gate: str, held: HeldByAnother) -> None:
        """Look again at a gate that another runner has, until its lease has lapsed, or was renewed by a live runner."""
        now, term, tip = time.monotonic(), self.who.term, desk.refs.get(f"refs/hitl/open/{gate}") or ""
        known, until = self.limits.get(gate, ("", 0.0))
        if known != tip:
            # Two terms: so long does it take, at the most, to see one of them pass.
            until = now + 2 * term + 1 if held.left <= term else now
            self.limits[gate] = (tip, until)
        if now < until:
            # At least as often as a lease is renewed: else it would not count as watching where a network lies between.
            self.awaited[gate] = now + min(held.left + 0.1, term * RENEW_AT * 0.9)
            self.later[gate] = (tip, self.awaited[gate])

    def is_due(self, now: float) -> bool:
        """Return whether it is time to look again at an awaited gate. Gates whose time has come are no longer awaited."""
        due = [gate for gate, at in self.awaited.items() if at <= now]
        for gate in due:
            del self.awaited[gate]
        return bool(due)


def write_log(place: Path, stamp: str, words: str) -> None:
    """Write into a log that only its owner can read, because an agent may say anything."""
    with contextlib.suppress(OSError):
        private_folder(place.parent)
        with os.fdopen(
            os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
        ) as out:
            out.write("".join(f"{stamp} {line}\n" for line in words.splitlines()))


def is_candidate(summary: Summary) -> bool:
    """Return whether a gate may be acted on, from its tip's trailers alone. The claim decides from the record."""
    if summary.state == "answered":
        return summary.delivery in ("resume", "wait")
    if summary.state == "expired":
        return summary.on_timeout == "fail" and summary.delivery != "none"
    return summary.state == "resuming"


def pause_left(desk: Desk, gate: Gate) -> float:
    """Return the seconds until the next attempt may begin.

    They are at most the whole pause, because the machine that failed may have another clock.
    """
    last = gate.history[-1].event
    released = [e.event for e in gate.events if isinstance(e.event, Outcome)]
    if not released or gate.claim is not None or released[-1].result != "released":
        return 0.0
    if released[-1].cause == HANDED_BACK and last == released[-1]:
        return 0.0
    first = desk.settings.seconds("retryAfter") or 0
    try:
        began = text.parse_time(released[-1].at)
    except Usage:
        return 0.0
    pause = first * 2.0 ** (claims.tries(gate) - 1)
    return min(pause, began + pause - desk.clock())


@dataclass
class PoolGroup:
    """Pools of several repositories that share a bounded number of threads, until nothing is left or they have to stop."""

    pools: Sequence[Pool]
    most: int
    stopping: threading.Event
    done: list[Resumed] = field(default_factory=list)
    failed: dict[str, GateError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.threads = ThreadPoolExecutor(max(1, self.most), thread_name_prefix="gate")
        self.busy: dict[tuple[int, str], Future[Resumed]] = {}

    def look(self, chosen: Sequence[str] = ()) -> int:
        """Begin with everything that can be begun, and return how much that was."""
        begun = 0
        for number, pool in enumerate(self.pools):
            desk = pool.opener()
            try:
                for gate in pool.candidates(desk, chosen):
                    if (number, gate) not in self.busy:
                        self.busy[number, gate] = self.threads.submit(pool.act, gate)
                        begun += 1
            finally:
                desk.close()
        return begun

    def collect(self) -> None:
        """Note what has ended; a gate that cannot be acted on here is looked at again later."""
        for (number, gate), ending in list(self.busy.items()):
            if not ending.done():
                continue
            del self.busy[number, gate]
            try:
                self.done.append(ending.result())
                self.pools[number].silent.discard(gate)
            except GateError as failed:
                self.failed[gate] = failed
                self.pools[number].leave(gate, failed)

    def drain(self, more: Callable[[], bool] | None = None) -> None:
        """Work until nothing is left. With `more`, which says that something new may have come, also until the lease of each
        gate that another runner has, and may have left, was renewed or has lapsed: nobody else may look soon.
        """
        self.look()
        while (self.busy or (more is not None and self.awaits())) and not self.stopping.is_set():
            time.sleep(PAUSE / 4)
            self.collect()
            if more is not None and (more() or self.is_due()):
                self.look()
        self.end()

    def awaits(self) -> bool:
        return any(pool.awaited for pool in self.pools)

    def is_due(self) -> bool:
        now = time.monotonic()
        return any(pool.is_due(now) for pool in self.pools)

    def end(self) -> None:
        """Let those who work come to their end: they hand back what they hold when they are to stop."""
        self.threads.shutdown(wait=True, cancel_futures=True)
        self.busy = {key: ending for key, ending in self.busy.items() if not ending.cancelled()}
        self.collect()


LOOK_EVERY = 1.0
SYNC_EVERY = 15.0


@dataclass
class WatchedRepository:
    """One repository that a worker looks after: the desk that it looks from, and the pool that acts."""

    desk: Desk
    pool: Pool
    say: Callable[[str], None]
    synced: float = field(default=-SYNC_EVERY)
    silent: bool = False

    def look(self) -> None:
        """Deal with what arrived and with what is due. An error is reported, so that it stops no other repository."""
        try:
            self.listen()
            self.keep_deadlines()
            self.read_signals()
        except GateError as trouble:
            self.say(f"{self.desk.repo.place}: {trouble.message}")

    def listen(self) -> None:
        if time.monotonic() - self.synced < SYNC_EVERY:
            return
        self.synced = time.monotonic()
        finish_cut_off(self.desk, self.say)
        remote = remote_of(self.desk)
        if remote is None:
            return
        try:
            sync(self.desk, remote)
        except GateError as silent:
            if not self.silent:
                self.say(f"{self.desk.repo.place}: {silent.message}")
            self.silent = True
        else:
            self.silent = False

    def keep_deadlines(self) -> None:
        now = self.desk.now
        late = [s for s in summaries(self.desk) if s.state == "awaiting" and s.deadline and s.deadline <= now]
        for summary in late:
            before = self.desk.records.load(summary.id, summary.tip)
            after = act(self.desk, before)
            if after.tip != before.tip:
                self.say(f"the deadline of gate {summary.id} has passed: {after.history[-1].name}")
                publish(self.desk, after)

    def read_signals(self) -> None:
        """Take back the gates that agents of this machine no longer need, by their signal files.

        A run that waited for such a gate goes on, in a process of its own.
        """
        for gate in needs.end_signalled(self.desk):
            self.say(f"gate {gate.id} was taken back: {gate.closing.text if gate.closing else ''}")
            run = gate.opened.run
            if run:
                log = self.desk.repo.state_dir / "logs" / f"run-{run}.log"
                place = self.desk.repo.place
                detach(
                    our_command("resume", run, at=place), place, without_caller(self.desk.settings.env), log
                )


@dataclass(frozen=True)
class WorkerPlan:
    """Plan of a worker: the repositories that it looks after, and how much it does at once."""

    places: Sequence[Path]
    env: Mapping[str, str]
    most: int | None = None
    runner: str = "worker"


def watched_repository(
    plan: WorkerPlan, place: Path, say: Callable[[str], None], stopping: threading.Event
) -> WatchedRepository:
    flags = {"maxAgents": str(plan.most)} if plan.most is not None else {}
    env = dict(plan.env)

    def opener() -> Desk:
        return open_desk(place, env, flags=flags)

    desk = opener()
    term = desk.settings.seconds("leaseTerm") or 120
    who = Claimant(plan.runner, term=term, monotonic=boottime)
    return WatchedRepository(desk, Pool(opener, who, say, stopping, log=lambda gate: log_of(desk, gate)), say)


def work_group(
    plan: WorkerPlan, say: Callable[[str], None], stopping: threading.Event, *, once: bool = False
) -> PoolGroup:
    """Act until told to stop, then hand back what is held; with `once`, until nothing is left."""
    watched = [watched_repository(plan, place, say, stopping) for place in plan.places]
    most = plan.most or max(one.desk.settings.number("maxAgents") for one in watched)
    group = PoolGroup([one.pool for one in watched], most, stopping)
    say(f"working in {counted(len(watched), 'repository')}, at most {counted(most, 'agent')} at once")
    try:
        while not stopping.is_set():
            for one in watched:
                one.look()
            group.look()
            if once and not group.busy:
                break
            stopping.wait(LOOK_EVERY if not group.busy else LOOK_EVERY / 4)
            group.collect()
    finally:
        group.end()
        for one in watched:
            one.desk.close()
    return group
