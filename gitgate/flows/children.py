"""Flows: a flow that another one calls. It is a run of its own, with its steps and its gates; of the run above it is one step.

The step's beginning names the run, by an id that follows from the two of them, so that there is one however often its process
dies. The same process leads both: where all lines of the run below wait, that line of the run above does. The run below is
claimed and leased like any other, so that whoever judges a push needs nothing but its own journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ..acts import answering, find_gate
from ..acts.askers import STEP, TERMS
from ..agents.flow import RUN
from ..context import Desk
from ..errors import Conflict, Failure, GateError, Usage
from ..gates.agency import began_here, note_begun
from ..gates.history import load_archived_run
from ..gates.leases import boottime
from ..model import AWAITING, STOPPING
from ..record.runs import FLOW, STARTED, Run, RunEvent, RunStep, dump_run_event, run_id, words_of_error
from ..store.git.refs import RUNS
from . import BRANCH, Branch, Doing, FlowTerms
from .agents import RunStalled
from .endings import (
    BranchLost,
    ChildStopped,
    Diverged,
    FlowEnding,
    FlowEnds,
    RunAgain,
    RunStops,
    RunStuck,
    RunWaits,
    digest_of,
    error_from,
    error_of,
    no_exit,
)
from .engine import Engine
from .journal import HeldRun, RunTaken, begin_run, bring_run, folder_of, journals, load_run, take_run
from .trees import desk_at, keep_all

MOST_DEPTH = 8
LOCKED_FOR = 10.0
"""A program that a dead process has just started may keep its lock for a moment."""
EXPORTED_RUN = f"refs/gitgate/+export/{RUNS.replace('/', '-')}"
HAS_CHILDREN = {"children": "runs"}
"""In the start of a run whose calls of other flows are runs; in one that began before there were any, they are branches."""
OF_THE_START = (
    *("by", "logins", "host", "directory", "version", "python", "file", "code", "path", "branch", "lock"),
    *HAS_CHILDREN,
)


@dataclass
class ChildEngine(Engine):
    """Replay of a run that another run has called. It waits where all its branches do; the run above has the last word."""

    above: Engine = field(kw_only=True)
    place: Branch = field(kw_only=True)
    """The line of the run above in which it was called."""
    own: Branch | None = None
    """Its own first line, with a desk where that branch has a tree."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.turn, self.changed = self.above.turn, self.above.changed

    def first_branch(self) -> Branch:
        def adopt(desk: Desk) -> Desk:
            return desk_of_run(desk_at(desk, desk.repo.place), self.run_id)

        self.own = Branch(above=self.place, adopt=adopt)
        return self.own

    def close(self) -> None:
        if self.own is not None and self.own.desk is not None:
            self.own.desk.close()

    def ended_by(self, ended: FlowEnds) -> FlowEnds:
        if self.broken is not None:
            return self.broken
        own = (RunWaits, RunStops, RunAgain, BranchLost, Diverged, RunStalled)
        return ended if isinstance(ended, own) or self.above.broken is None else RunStops(ended.message)

    @property
    def goes_on(self) -> bool:
        return super().goes_on and self.above.goes_on

    def check(self) -> None:
        super().check()
        self.above.check()

    def all_wait(self) -> None:
        self.above.rest_of_child(self.place.path, self)

    def come_back(self) -> None:
        super().come_back()
        if self.place.path in self.above.parked:
            del self.above.parked[self.place.path]
            self.above.come_back()

    def wake_by(self, lost: BaseException) -> None:
        super().wake_by(lost)
        self.above.wake_by(lost)


def desk_of_run(desk: Desk, run: str) -> Desk:
    """Make the desk ask in the name of the run, whatever conversation the process was started in. Return the desk."""
    from ..agents import without_conversation

    env = without_conversation(desk.settings.env)
    for name in ("GITGATE_AGENT", STEP, TERMS):
        env.pop(name, None)
    desk.settings = replace(desk.settings, env={**env, RUN: run})
    return desk


def depth_of(engine: Engine) -> int:
    return 1 + depth_of(engine.above) if isinstance(engine, ChildEngine) else 1


def has_children(run: Run) -> bool:
    """Return whether each flow that this run calls is a run of its own."""
    return HAS_CHILDREN.items() <= run.started.said.items()


def replayed(engine: Engine, call: Callable[[], Any]) -> Any:
    """Replay the flow, and return its result.

    A wait or an end that passed through the flow counts, even where the flow made an error or a value of it.
    """
    try:
        engine.check()
        with engine.replaying():
            with no_exit():
                value = call()
            engine.check()
            engine.check_all_done()
        return engine.encoded("the flow's result", value)
    except Exception:
        engine.check()
        raise


@dataclass
class FlowStep:
    """A step that is a run: `flow` is its name, `given` what it is given; `call` calls it, and `lead` has that replayed, to its end
    or to where it waits.
    """

    engine: Engine
    flow: str
    terms: FlowTerms
    given: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], Any]
    lead: Callable[[Engine, Callable[[], Any]], FlowEnding]

    def result(self) -> Any:
        """Return the result of the child run, as this step recorded it.

        Where none is recorded, begin the run, or go on with it, to its end or to where it waits.
        """
        engine = self.engine
        engine.check()
        if depth_of(engine) >= MOST_DEPTH:
            raise Usage(
                f"flow {self.flow} is called {MOST_DEPTH} levels deep; expected at most {MOST_DEPTH - 1} below the first",
                hint="call it from a flow further up, or end that one by gitgate.again(…)",
            )
        doing, known = engine.next_step(FLOW, self.flow)
        given = engine.encoded(f"the input of step {doing.id}", self.given)
        digest = {"digest": digest_of(given)}
        if known is not None:
            engine.check_drift(known, digest, fatal=False)
        if known is not None and known.is_over and not engine.held.recorded:
            return engine.replayed(known)
        begun = known.begun if known is not None else self.begin(doing, given, digest)
        if engine.held.recorded:
            return self.compared(begun, known)
        engine.held.share()
        try:
            ended = self.led(doing, begun)
        except RunTaken as taken:
            raise engine.broken_by(RunStalled(taken.message, hint=taken.hint)) from taken
        return self.recorded(doing, ended)

    def begin(self, doing: Doing, given: Mapping[str, Any], digest: Mapping[str, str]) -> RunEvent:
        engine = self.engine
        with engine.turn:
            since = engine.held.desk.now
            run = run_id(self.start(doing.id, given, since))
            said = {"run": run, "since": since, "given": given, **digest}
            said |= {"line": doing.line} if doing.line else {}
            engine.append("begun", step=doing.id, kind=FLOW, name=self.flow, **said)
            return engine.held.run.steps[doing.id].begun

    def start(self, step: str, given: Mapping[str, Any], since: str) -> bytes:
        return dump_run_event(RunEvent(STARTED, 0, since, self.start_said(step, given)))

    def start_said(self, step: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return how the run begins. All of it is from the journal above, so that each process begins the same run."""
        run = self.engine.held.run
        said = {key: run.started.said[key] for key in OF_THE_START if key in run.started.said}
        one = given["args"][0] if len(given["args"]) == 1 and not given["kwargs"] else given
        said |= {"flow": self.flow, "given": given, "input": one}
        return {**said, "parent": run.id, "parent_step": step, "nonce": f"of-{run.id}"}

    # leading it

    def led(self, doing: Doing, begun: RunEvent) -> FlowEnding:
        """Lead the run, and the ones in which it starts afresh, as far as they come."""
        run = begun.text("run")
        while True:
            ended = self.led_once(doing, run, begun)
            if not ended.next:
                return ended
            run = ended.next

    def led_once(self, doing: Doing, run: str, begun: RunEvent) -> FlowEnding:
        engine = self.engine
        with engine.turn:
            place = engine.run_desk.repo.place
            desk, work = desk_at(engine.run_desk, place), desk_of_run(desk_at(engine.run_desk, place), run)
        try:
            said = self.start_said(doing.id, begun.said["given"])
            held = open_child(engine.held, desk, run, begun.text("since"), said)
            if isinstance(held, Run):
                return as_it_ended(held)
            if engine.held.run.steps[doing.id].begun.text("run") == run and not held.run.steps:
                engine.say(f"run {run} of {self.flow}: step {doing.id}")
            given, child = held.run.started.said["given"], self.engine_of(held, work)
            try:
                return self.lead(child, lambda: self.call(given))
            except BaseException as lost:
                if held.lost:
                    engine.held.lost = engine.held.lost or str(lost)
                raise
            finally:
                child.close()
        finally:
            desk.close()
            work.close()

    def engine_of(self, held: HeldRun, desk: Desk) -> ChildEngine:
        above = self.engine
        child = ChildEngine(
            *(held, desk, self.terms.below(above.terms), above.say, None, above.handler),
            told=above.told,
            prepare=above.prepare,
            stays=above.stays,
            above=above,
            place=BRANCH.get(),
        )
        above.prepare(child)
        if held.must_stop:
            child.broken = RunStops("the run was stopped")
        return child

    def recorded(self, doing: Doing, ended: FlowEnding) -> Any:
        """Record the end of the child run as this step's own. Return its value, or raise its error."""
        engine = self.engine
        if ended.status == "completed":
            value = engine.encoded(f"the result of step {doing.id}", ended.value)
            engine.append("done", step=doing.id, result=value)
            return value
        if ended.status == "failed":
            engine.append("raised", step=doing.id, error=ended.error)
            raise ended.raised or error_from(ended.error)
        if ended.status == "stuck":
            stuck = RunStuck(ended.reason)
            stuck.refused = ended.refused
            raise engine.broken_by(stuck)
        if ended.status == "stopped":
            engine.check()
            if engine.held.must_stop:
                raise engine.broken_by(RunStops("the run was stopped"))
            failed = ChildStopped(f"run {ended.id} of flow {self.flow} was stopped: {ended.reason}")
            engine.append("raised", step=doing.id, error=error_of(failed))
            raise failed
        engine.check()
        raise engine.broken_by(
            ended.raised if isinstance(ended.raised, FlowEnds) else RunStalled(ended.reason)
        )

    # a recorded one

    def compared(self, begun: RunEvent, known: RunStep | None) -> Any:
        """Replay the recorded child run against the code as well. Nothing is done."""
        engine = self.engine
        run = recorded_run(engine.held.desk, begun.text("run"))
        while run is not None and run.state not in ("stopping", "stopped"):
            run = self.compared_run(run)
        if known is None or not known.is_over:
            engine.append("done", step=begun.text("step"))
            return None
        return engine.replayed(known)

    def compared_run(self, run: Run) -> Run | None:
        """Replay one recorded child run. Return the run in which it started afresh, if it did."""
        engine, given = self.engine, run.started.said["given"]
        child = self.engine_of(replace(engine.held, run=run, children={}, above=engine.held), engine.run_desk)
        try:
            value = replayed(child, lambda: self.call(given))
        except RunAgain:
            return recorded_run(engine.held.desk, run.end.text("next")) if run.end is not None else None
        except Exception as failed:
            if run.state == "failed":
                return None
            raise engine.broken_by(other_end(run, f"it fails now: {failed}")) from failed
        finally:
            child.close()
        if run.state == "completed" and run.end is not None and run.end.said.get("result") != value:
            was = run.end.said.get("result")
            raise engine.broken_by(other_end(run, f"it gave {was!r}, and gives {value!r} now"))
        return None


def other_end(run: Run, what: str) -> Diverged:
    return Diverged(f"the code of flow {run.flow} has changed: run {run.id} was {run.state}; {what}")


def recorded_run(desk: Desk, run: str) -> Run | None:
    """Return a run as it is known here, or in a history that was exported."""
    with suppress(GateError):
        kept = desk.refs.get(EXPORTED_RUN + run)
        return load_run(desk, run) if kept is None else journals(desk).load(run, kept)
    return None


def as_it_ended(run: Run) -> FlowEnding:
    end = run.end
    said = end.said if end is not None else {}
    error = said.get("error") or {}
    return FlowEnding(
        *(run.id, run.state, said.get("result")),
        reason=words_of_error(error) if error else str(said.get("reason") or ""),
        error=error,
        refused=bool(said.get("refused")),
        next=str(said.get("next") or ""),
    )


def is_run_known(desk: Desk, run: str) -> bool:
    return desk.refs.get(RUNS + run) is not None or load_archived_run(desk, run) is not None


def open_child(above: HeldRun, desk: Desk, run: str, at: str, said: Mapping[str, Any]) -> HeldRun | Run:
    """The run that a step of `above` is: begun, or taken again where that was done before; what is recorded, if it is over."""
    bring_run(desk, run, above.held.remote)
    if is_run_known(desk, run):
        found = load_run(desk, run)
        if found.called_by != (above.run.id, said["parent_step"]):
            raise Failure(
                f"run {run} is no step of run {above.run.id}, which names it",
                hint=f"git gate verify {run[:6]}",
            )
        return found if found.closed else above.as_ours(take_child(above, desk, run))
    meant = run_id(dump_run_event(RunEvent(STARTED, 0, at, said)))
    if meant != run:
        raise Failure(
            f"run {run}, which a step of run {above.run.id} names, is not here, and would begin as {meant} now",
            hint=f"git gate sync   or go on with the gitgate that began it: {above.run.started.text('version')}",
        )
    if began_here(desk, above.run.id):
        note_begun(desk, run, above.run.started.text("path"))
    return above.as_ours(begin_run(desk, said, push=above.held.remote is not None, at=at))


def take_child(above: HeldRun, desk: Desk, run: str) -> HeldRun:
    """Claim a child run again, and wait for its lease to lapse.

    Its last holder held the run above as well, and is gone, so the lease lapses soon. RunTaken where it does not.
    """
    soon, until = boottime() + LOCKED_FOR, boottime() + 3 * above.held.said.term
    while True:
        try:
            return take_run(desk, run)
        except RunTaken as taken:
            if boottime() > (until if taken.left else soon):
                raise
            time.sleep(min(taken.left + 0.1, 1.0))
            above.check_held()


def root_of(desk: Desk, run: Run) -> Run:
    """Return the run that no run has called, and that this one is a part of."""
    for _ in range(MOST_DEPTH):
        if not run.called_by[0]:
            break
        bring_run(desk, run.called_by[0])
        run = load_run(desk, run.called_by[0])
    return run


# ending


def wind_up(desk: Desk, held: HeldRun, reason: str) -> None:
    """Clean up before a run ends without having come to its end.

    Its child runs end, its open questions are taken back, and the work of its branches is kept.
    """
    end_children(desk, held, held.run.steps.values(), reason)
    withdraw_gates(desk, held.run, reason)
    put_trees_away(desk, held.run.id)


def put_trees_away(desk: Desk, run: str) -> None:
    """Remove the working trees of the run's branches, and keep their work.

    That includes trees that were never merged, as those of branches within one that lost a race.
    """
    if not (folder_of(desk, run) / "trees").is_dir():
        return
    try:
        for words in keep_all(desk, run):
            desk.progress(words)
    except (GateError, OSError) as failed:
        desk.progress(f"a branch's working tree is still there: {failed}")


def withdraw_gates(desk: Desk, run: Run, reason: str) -> None:
    """Withdraw the questions of the run that are still open, because nobody needs their answers any more."""
    for gate_id in dict.fromkeys(gate for step in run.steps.values() for gate in step.gates):
        with suppress(GateError):
            gate = find_gate(desk, gate_id).gate
            if gate.state == AWAITING:
                answering.withdraw(desk, gate, reason)


def end_children(desk: Desk, held: HeldRun, steps: Iterable[RunStep], reason: str) -> None:
    """End the runs that those steps are, and that have not ended."""
    for step in list(steps):
        run = step.begun.text("run") if step.kind == FLOW and not step.is_over else ""
        while run:
            run = end_child(desk, held, run, reason)


def end_child(desk: Desk, above: HeldRun, run: str, reason: str) -> str:
    """End one of them. If it had ended by starting afresh, the run in which it did."""
    own = desk_of_run(desk_at(desk, desk.repo.place), run)
    try:
        led = above.children.get(run)
        if led is not None and not led.over.is_set():
            with suppress(Conflict):  # it is just ending
                stop_held(own, led, reason, reason)
            return ""
        bring_run(desk, run, above.held.remote)
        found = load_run(desk, run) if is_run_known(desk, run) else None
        if found is None or found.called_by[0] != above.run.id:
            return ""
        if found.end is None:
            beside = desk_at(desk, desk.repo.place)
            try:
                stop_held(own, take_child(above, beside, run), reason, reason)
            finally:
                beside.close()
        return found.end.text("next") if found.end is not None else ""
    finally:
        own.close()


def stop_held(desk: Desk, held: HeldRun, reason: str, said: str) -> None:
    """End a run that this process holds, because a person wants it, or because the run that called it ends."""
    wind_up(desk, held, said)
    if held.run.state != STOPPING:
        held.append("stopping", reason=reason, by=held.held.said.by)
    held.leave("stopped", reason=reason)
