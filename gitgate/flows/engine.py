"""Flows: a flow's code replayed against its journal. What was done returns at once, what was not is done now, once.

The seams: `perform` makes a step of any function; `ask` is a step that opens a gate and may wait for it. `handler` answers a gate in this process instead of a person; `leave` ends the process where every branch
waits (else `RunWaits` is raised). Which engine a piece of code runs under is told by `current()`.

What passes through a flow without being its error (a wait, an end, a divergence) is a `BaseException`, so that no
`except Exception` of the flow takes it for one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, NoReturn

from ..acts.asking import AskWishes, on_terms
from ..agents.flow import RUN
from ..claims.attending import hear
from ..context import Desk
from ..context.targets import remote_of, summaries
from ..errors import BrokenRecord, Conflict, UnknownGate, Usage
from ..gates.work import made_by_us
from ..model import AWAITING, EXPIRED, STOPPED, WITHDRAWN
from ..model.gate import Gate, SessionRef
from ..policy.permit import check_heard
from ..questions.drafts import Draft
from ..record.runs import RunEvent, RunStep
from ..text import parse_time
from ..text.secrets import secret_values
from . import BRANCH, STEP, Branch, Doing, FlowTerms, ask_own, called_at, is_asked_by, plain_name
from .endings import (
    BranchLost,
    Diverged,
    FlowEnds,
    ProcessForked,
    RunStops,
    RunStuck,
    RunWaits,
    digest_of,
    error_from,
    error_of,
    no_exit,
    through_json,
)
from .journal import HeldRun

KEY_FOR = 10 * 365 * 86400
"""A key stands for its gate for the life of its run."""
LOOK_EVERY = 1.0
STAYS = 5.0
"""A sleep that is over so soon is waited for by the process."""
APPROVALS = ("approval", "pause")


@dataclass(frozen=True)
class Waiting:
    """Wait of a branch: for the first of a gate, a moment and a signal on a topic, or for a run that it called."""

    gate: str = ""
    until: str = ""
    topic: str = ""
    child: Engine | None = None


ENGINE: ContextVar[Engine | None] = ContextVar("gitgate_engine", default=None)


def current() -> Engine | None:
    """Return the engine that replays the calling code; None outside of a flow."""
    return ENGINE.get()


def need_engine(what: str) -> Engine:
    engine = ENGINE.get()
    if engine is None:
        raise Usage(
            f"{what} is a step of a flow, and no flow runs here",
            hint="@gitgate.flow, then: git gate run FILE:NAME",
        )
    return engine


@dataclass
class Engine:
    """Replay of one run, by the process that holds it."""

    held: HeldRun
    run_desk: Desk
    terms: FlowTerms = field(default_factory=FlowTerms)
    say: Callable[[str], None] = lambda _words: None
    leave: Callable[[RunWaits], NoReturn] | None = None
    handler: Callable[[Engine, Gate], None] | None = None
    """Answers a gate in this process; what it said is recorded before the gate is looked at again."""
    told: Callable[[Gate], None] = lambda _gate: None
    """Hears of each gate that is opened."""
    extra: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Engine], None] = lambda _engine: None
    """Says of each engine what else it is replayed with: of this one, and of those of the runs that it calls."""
    forked: Callable[[], object] = object
    """Ends a process that a step's function has forked, and that came back from it."""
    process: int = field(default_factory=os.getpid)
    session: SessionRef | None = None
    broken: FlowEnds | None = None
    lost: BaseException | None = None
    active: int = 1
    parked: dict[str, Waiting] = field(default_factory=dict)
    stays: float = STAYS
    trees: list[Callable[[], list[dict[str, str]]]] = field(default_factory=list)
    """Each says what is in the working trees of branches that run at once."""
    received: set[int] = field(default_factory=set)
    """Signals that a step of this process has taken."""
    at_work: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Of each step that something is done for right now: its agent, or nothing where it is a function; and since when."""
    turn: threading.RLock = field(default_factory=threading.RLock)
    changed: threading.Condition = field(init=False)

    def __post_init__(self) -> None:
        self.changed = threading.Condition(self.turn)
        self.secrets = secret_values(self.desk.settings.env)

    @property
    def desk(self) -> Desk:
        """The desk that the calling branch works at. Others read objects by it as well: only in the engine's turn."""
        branch = BRANCH.get(None)
        found = branch.desk_here if branch is not None else None
        return self.run_desk if found is None else found

    def settle(self) -> None:
        """Give the branch its working tree now, because work in it is about to begin."""
        branch = BRANCH.get()
        while branch.desk is None and branch.above is not None:
            if branch.settle is not None:
                settle, branch.settle = branch.settle, None
                settle()
            else:
                branch = branch.above

    @property
    def run_id(self) -> str:
        return self.held.run.id

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """Bind the flow's code to this run, so that the steps that it calls in this block are the run's."""
        engine, branch, step = ENGINE.set(self), BRANCH.set(self.first_branch()), STEP.set("")
        try:
            yield
        finally:
            ENGINE.reset(engine)
            BRANCH.reset(branch)
            STEP.reset(step)

    def first_branch(self) -> Branch:
        return Branch()

    # steps

    def perform(
        self,
        kind: str,
        name: str,
        act: Callable[[Doing], object],
        brief: bool = False,
        ready: Callable[[], object] = object,
        **begun: Any,
    ) -> Any:
        """The recorded result of this step, or what `act` gives, recorded. `brief`: it takes no time, so that only its end is
        written. `ready` is called before it begins, or is gone on with; `begun` is what stands in its beginning.
        """
        doing, known = self.next_step(kind, name)
        if known is not None and known.is_over:
            self.check_drift(known, begun, fatal=kind in APPROVALS)
            return self.replayed(known)
        at = {"line": doing.line} if doing.line else {}
        if brief:
            result = self.encoded(f"the result of step {doing.id}", act(doing))
            self.append("done", step=doing.id, kind=kind, name=name, result=result, **at)
            return result
        ready()
        if known is None:
            self.append("begun", step=doing.id, kind=kind, name=name, **begun, **at)
        else:
            self.check_drift(known, begun, fatal=kind in APPROVALS)
            doing.again = known
        self.held.share()
        return self.done(doing, act)

    def done(self, doing: Doing, act: Callable[[Doing], object]) -> Any:
        token = STEP.set(doing.id)
        try:
            with no_exit():
                result = self.encoded(f"the result of step {doing.id}", act(doing))
        except Exception as failed:
            self.append("raised", step=doing.id, error=error_of(failed))
            raise
        finally:
            STEP.reset(token)
        self.append("done", step=doing.id, result=result)
        return result

    def next_step(self, kind: str, name: str) -> tuple[Doing, RunStep | None]:
        """Return the next step, by its branch, kind, name and number, and its record in the journal, if it has one."""
        line = called_at()
        with self.turn:
            self.check()
            branch = BRANCH.get()
            step = branch.next(kind, name)
            recorded = self.held.run.order.get(branch.path, [])
            expected = recorded[branch.at] if branch.at < len(recorded) else None
            branch.at += 1
            if expected is not None and expected != step:
                self.diverge(expected, f"{step}{f' ({line})' if line else ''}")
            if expected is None and self.held.must_stop:
                raise self.broken_by(RunStops("the run was stopped", hint=f"git gate show {self.run_id[:6]}"))
            return Doing(step, line=line), self.held.run.steps[step] if expected is not None else None

    def diverge(self, expected: str, wanted: str) -> NoReturn:
        line = self.held.run.steps[expected].begun.text("line")
        did = f"{expected}{f' ({line})' if line else ''}"
        raise self.broken_by(
            Diverged(
                f"the code of flow {self.held.run.flow} has changed: run {self.run_id} did {did} here, "
                f"and the code wants {wanted}",
                hint='bring the earlier code back, or mark the change where it begins: if gitgate.patched("what"): …',
            )
        )

    def check_all_done(self) -> None:
        """Refuse the end of a branch that has more recorded steps than the code called."""
        with self.turn:
            branch = BRANCH.get()
            recorded = self.held.run.order.get(branch.path, [])
            if branch.at < len(recorded):
                self.diverge(recorded[branch.at], "to end")

    def broken_by(self, why: FlowEnds) -> FlowEnds:
        """Do no step from now on, even where the flow takes this for an error of its own. Return the exception."""
        self.broken = self.broken or why
        return why

    def ended_by(self, ended: FlowEnds) -> FlowEnds:
        """Return why the flow ends: the first reason that was noted, else the exception that passed through it."""
        return self.broken or ended

    @property
    def goes_on(self) -> bool:
        return self.broken is None and self.lost is None

    def check(self) -> None:
        if self.broken is not None:
            raise self.broken
        if self.lost is not None:
            raise self.lost
        self.check_branch()

    def check_branch(self) -> None:
        branch = BRANCH.get(None)
        if branch is not None and branch.is_lost:
            raise BranchLost("another branch was first")

    def append(self, event: str, /, **said: Any) -> None:
        if os.getpid() != self.process:
            self.forked()
            raise ProcessForked(f"run {self.run_id} goes on in the process that was there first")
        with self.turn:
            self.check_branch()
            self.held.append(event, **said)

    def check_drift(self, known: RunStep, now: Mapping[str, Any], *, fatal: bool) -> None:
        """Compare a step's input with the recorded one. The journal notes a difference. If it is `fatal` it ends the
        run instead: an approval counts for the question that was asked, not for another one.
        """
        before, digest = known.begun.said.get("digest"), now.get("digest")
        if before is None or digest is None or before == digest:
            return
        if fatal:
            raise self.broken_by(
                Diverged(
                    f"step {known.id} of run {self.run_id} asks something else than was asked",
                    hint="an approval counts for what was asked: bring the earlier words back, or begin anew from there:\n"
                    f"git gate run {self.run_id[:6]} --from {quote(known.id)}",
                )
            )
        said = f"step {known.id}: its input is another one than it was recorded with"
        self.say(said)
        with self.turn:
            if all(entry.event.said.get("text") != said for entry in self.held.run.events):
                self.append("noted", step=known.id, text=said)

    def replayed(self, known: RunStep) -> Any:
        ended = known.ended
        if ended is not None and ended.name == "raised":
            raise error_from(ended.said["error"])
        return ended.said.get("result") if ended is not None else None

    def encoded(self, what: str, value: object) -> Any:
        """Return a result as replay will give it: after its way through JSON, the first time as well."""
        return through_json(what, value, self.secrets)

    def patched(self, name: str) -> bool:
        """Return whether the code after a change applies here: only in a run that had not passed this place."""
        with self.turn:
            self.check()
            branch = BRANCH.get()
            recorded = self.held.run.order.get(branch.path, [])
            step = f"patched:{plain_name(name)}#1"
            own = f"{branch.path}/{step}" if branch.path else step
            if own in self.held.run.steps:
                if branch.at < len(recorded) and recorded[branch.at] == own:
                    branch.at += 1
                return True
            if branch.at < len(recorded):
                return False
            branch.at += 1
            self.append("patched", step=own, name=name)
            return True

    @contextmanager
    def working(self, step: str, agent: str = "") -> Iterator[None]:
        """List the step in `at_work` during this block, for whoever watches this process."""
        self.at_work[step] = (agent, self.desk.clock())
        try:
            yield
        finally:
            self.at_work.pop(step, None)

    # gates

    def ask(
        self,
        draft: Draft,
        wishes: AskWishes = AskWishes(),
        attachments: Mapping[str, bytes] | None = None,
        *,
        wait: bool = True,
        kind: str = "ask",
        name: str = "",
        stuck: bool = True,
        by_handler: bool = True,
    ) -> Gate:
        """Ask the question of a step, unless it was asked before. Return its gate, decided if `wait` says so."""

        def open_and_wait(doing: Doing) -> dict[str, str]:
            gate = self.open_gate(doing, draft, wishes, attachments)
            if wait:
                gate = self.decided(gate.id, stuck=stuck, by_handler=by_handler)
            return {"gate": gate.id, "tip": gate.tip}

        question = draft.questions[0]
        sort = "approval" if kind == "ask" and question.kind == "approval" else kind
        digest = digest_of([(q.prompt, q.type, q.labels) for q in draft.questions])
        kept = self.perform(sort, name or draft.key or "", open_and_wait, digest=digest)
        return self.gate_at(kept)

    def gate_at(self, kept: Mapping[str, str]) -> Gate:
        """A gate as it was when a step recorded it. Whoever took the run over fetched its journal alone: the rest may be away still."""
        with self.turn:
            with suppress(BrokenRecord):
                return self.desk.records.load(kept["gate"], kept["tip"])
            if self.held.held.remote is not None:
                from ..exchange.syncing import bring_home

                bring_home(self.desk, self.held.held.remote)
            return self.desk.records.load(kept["gate"], kept["tip"])

    @contextmanager
    def in_session(self, session: SessionRef) -> Iterator[None]:
        """Ask in the name of this conversation during this block, instead of in the name of the run."""
        with self.turn:
            kept = self.desk.settings
            env = {name: value for name, value in kept.env.items() if name != RUN}
            self.desk.settings = replace(kept, env={**env, "GITGATE_AGENT": session.agent})
            self.session = session
            try:
                yield
            finally:
                self.desk.settings, self.session = kept, None

    def open_gate(
        self,
        doing: Doing,
        draft: Draft,
        wishes: AskWishes,
        attachments: Mapping[str, bytes] | None,
        *,
        step: str = "",
        terms: FlowTerms | None = None,
        commits: Sequence[str] = (),
    ) -> Gate:
        """Open the gate of a step under the step's key. The record has the key, so each replay finds it on any machine."""
        key, made = f"{self.run_id}/{doing.id}", {"commits": list(commits)} if commits else {}
        with self.turn:
            self.check_branch()
            if doing.again is not None:
                known = self.gate_of(doing.again, key, draft, made)
                if known is not None:
                    return known
            said = (terms or self.terms).of_question()
            draft = replace(
                on_terms(self.desk, draft, said),
                key=key,
                key_for=KEY_FOR,
                agent=draft.agent or self.held.run.flow,
                session=self.session.id if self.session is not None else None,
                config={
                    **(draft.config or {}),
                    "run": self.run_id,
                    "flow": self.held.run.flow,
                    "step": doing.id,
                },
            )
            wishes = replace(wishes, wait=False)
            asked = ask_own(
                self.desk, draft, wishes, attachments or {}, doing.again, self.say, agents=bool(step)
            )
            self.append("asked", step=step or doing.id, gate=asked.gate.id, **made)
        self.say(f"asks: {asked.gate.opened.title} (gate {asked.gate.id})")
        self.told(asked.gate)
        return asked.gate

    def gate_of(self, step: RunStep, key: str, draft: Draft, made: Mapping[str, list[str]]) -> Gate | None:
        """The gate of a step that was begun before: as its journal says, or, where its process died in between, by its key."""
        if step.gates:
            return self.find(step.gates[-1])
        self.hear_gates()  # one that was opened elsewhere need not be known here
        for found in [one.id for one in summaries(self.desk) if one.key == key]:
            gate = self.find(found)
            if is_asked_by(gate, step, draft):
                self.append("asked", step=step.id, gate=found, **made)
                return gate
        return None

    def find(self, gate: str) -> Gate:
        from ..acts import find_gate

        with self.turn:
            with suppress(UnknownGate):
                return find_gate(self.desk, gate).gate
            self.hear_gates()  # it was opened elsewhere, and the journal alone is known here
            return find_gate(self.desk, gate).gate

    def decided(self, gate_id: str, *, stuck: bool = True, by_handler: bool = True) -> Gate:
        """Return the gate once it is decided. Until then this branch waits."""
        while True:
            gate = self.find(gate_id)
            if gate.state == AWAITING and self.handler is not None and by_handler:
                self.handler(self, gate)
                gate = self.find(gate_id)
            if gate.state != AWAITING:
                break
            self.park(Waiting(gate_id))
        if stuck:
            self.check_ended(gate)
        return self.heard(gate)

    def check_ended(self, gate: Gate) -> None:
        """End the run if its question was stopped, taken back, or expired without an answer."""
        if gate.state in (STOPPED, WITHDRAWN):
            why = gate.closing.text if gate.closing is not None else ""
            raise self.broken_by(RunStuck(why or f"gate {gate.id} was {gate.state}"))
        if gate.expired and gate.state == EXPIRED and gate.opened.on_timeout != "fail":
            raise self.broken_by(RunStuck(f"nobody answered gate {gate.id} before its deadline"))

    def heard(self, gate: Gate) -> Gate:
        """Record that the answer is acted on here, so that nobody else is started for it."""
        given_here = getattr(self.handler, "via", "")
        with self.turn:
            check_heard(self.desk, gate, given_here=given_here)
            if gate.actionable:
                with suppress(Conflict):  # a runner took it, and it is the one that has started us
                    return hear(self.desk, gate, None, given_here=given_here)
            return gate

    # waiting

    def park(self, waiting: Waiting) -> None:
        """This branch waits. Where all do, the run does: its process ends, or `RunWaits` passes through the flow."""
        branch = BRANCH.get()
        with self.turn:
            self.check()
            self.parked[branch.path] = waiting
            self.active -= 1
            if self.active == 0:
                try:
                    self.all_wait()
                except BaseException as lost:
                    self.wake_by(lost)
                    raise
            while self.goes_on and branch.path in self.parked:
                self.changed.wait(LOOK_EVERY)
                self.held.check_held()
            self.check()

    def all_wait(self) -> None:
        """Read the news, and let go of the run unless a branch can go on. A short wait is spent here."""
        self.hear_news()
        while not self.some_go_on():
            left = self.soonest()
            if left is None or left > self.stays:
                self.rest()
                return
            self.changed.wait(max(left, 0.01))
            self.held.check_held()

    def hear_news(self) -> None:
        if self.hear_gates():
            for engine in self.at_rest():
                if any(waiting.topic for waiting in engine.parked.values()):
                    engine.held.hear_others()

    def hear_gates(self) -> bool:
        """Fetch the news of gates from the remote, if the run is shared. Return whether it is."""
        if remote_of(self.desk) is None or self.held.held.remote is None:
            return False
        from ..exchange.syncing import news

        news(self.desk)
        return True

    def at_rest(self) -> Iterator[Engine]:
        """Yield this run, and those that it has called and waits for."""
        yield self
        for waiting in self.parked.values():
            if waiting.child is not None:
                yield from waiting.child.at_rest()

    def rest_of_child(self, path: str, child: Engine) -> None:
        """Let the branch wait that leads another run, because all of that run waits."""
        if path not in self.parked:
            self.parked[path] = Waiting(child=child)
            self.active -= 1
        if self.active == 0:
            self.all_wait()

    def some_go_on(self) -> bool:
        """Let each branch go on that has what it waited for. Return whether any branch is active."""
        for path, waiting in list(self.parked.items()):
            if self.is_over(waiting):
                del self.parked[path]
                self.active += 1
        if self.active:
            self.changed.notify_all()
        return bool(self.active)

    def is_over(self, waiting: Waiting) -> bool:
        if waiting.child is not None:
            return waiting.child.some_go_on()
        if waiting.gate and self.find(waiting.gate).state != AWAITING:
            return True
        if waiting.until and parse_time(waiting.until) <= self.desk.clock():
            return True
        return bool(waiting.topic) and self.next_signal(waiting.topic) is not None

    def soonest(self) -> float | None:
        """Return in how many seconds the first branch goes on by itself."""
        every = [waiting for engine in self.at_rest() for waiting in engine.parked.values()]
        moments = [parse_time(waiting.until) for waiting in every if waiting.until]
        return min(moments) - self.desk.clock() if moments else None

    def rest(self) -> None:
        """Let the run go, and say what it waits for. A signal that arrives as that is written is heard instead."""
        waits = self.what_is_awaited()
        every = list(self.at_rest())
        self.let_rest(still=lambda: not self.some_go_on())
        if self.active:
            return
        for engine in every[1:]:
            engine.let_rest()
        self.broken = waits
        if self.leave is not None:
            self.leave(waits)
        self.changed.notify_all()

    def let_rest(self, still: Callable[[], bool] | None = None) -> None:
        waits = self.what_is_awaited()
        topics = list(dict.fromkeys(one.topic for one in self.parked.values() if one.topic))
        said: dict[str, Any] = {"gates": list(waits.gates), "until": waits.until, "topics": topics}
        said = {key: value for key, value in said.items() if value} | self.kept_work()
        self.held.leave("waiting" if waits.gates else "sleeping", still=still, **said)

    def kept_work(self) -> dict[str, Any]:
        """Return the work in the branches' trees, kept by one commit of ours, for whoever goes on elsewhere."""
        if self.held.held.remote is None and not made_by_us(self.run_desk, self.run_desk.repo.place):
            return {}
        lines = [line for lines_of in self.trees for line in lines_of()]
        if not lines:
            return {}
        from ..store.work.commits import commit_of

        every = dict.fromkeys(line[key] for line in lines for key in ("work", "staged", "head"))
        return {"trees": lines, "work": commit_of(self.run_desk.repo.git, lines[0]["work"], *every)}

    def what_is_awaited(self) -> RunWaits:
        parked = [waiting for engine in self.at_rest() for waiting in engine.parked.values()]
        gates = tuple(dict.fromkeys(one.gate for one in parked if one.gate))
        until = min((one.until for one in parked if one.until), default="")
        deadline = min(filter(None, map(self.end_of, gates)), default="")
        every = [(engine.run_id, one.topic) for engine in self.at_rest() for one in engine.parked.values()]
        signals = dict.fromkeys((run, topic) for run, topic in every if topic)
        parts = [f"for an answer to {', '.join(gates)}"] if gates else []
        parts += [f"for a signal on {topic!r}" for topic in dict.fromkeys(topic for _, topic in signals)]
        parts += [f"until {until}"] if until else []
        why = str(self.extra.get("declined", ""))
        hints = [f"git gate respond {gate[:6]}" for gate in gates]
        hints += [f"git gate signal {run[:6]} --topic {quote(topic)} VALUE" for run, topic in signals]
        waits = RunWaits(
            f"run {self.run_id} waits {', or '.join(parts)}{f'; {why}' if why else ''}", hint="\n".join(hints)
        )
        waits.run = self.run_id
        waits.gates, waits.until = gates, min(filter(None, (until, deadline)), default="")
        return waits

    def end_of(self, gate_id: str) -> str:
        """Return a gate's deadline, if the run ends by it. Other deadlines answer the gate, which wakes the run."""
        gate = self.find(gate_id)
        return gate.deadline or "" if gate.opened.on_timeout == "stuck" else ""

    def next_signal(self, topic: str) -> RunEvent | None:
        """Return the oldest signal on that topic that no step has received."""
        unheard = self.held.run.unheard(topic)
        return next((event for event in unheard if event.n not in self.received), None)

    def wake_by(self, lost: BaseException) -> None:
        """Wake the waiting branches: the run is lost or its remote is silent, so it cannot be let go as it should."""
        with self.turn:
            self.lost = self.lost or lost
            self.changed.notify_all()

    def end_branch(self) -> None:
        with self.turn:
            self.active -= 1
            if self.active == 0 and self.parked and self.goes_on:
                self.all_wait()

    def come_back(self) -> None:
        """Count a branch as active again that had nothing to do."""
        self.active += 1

    def drop_branch(self, line: Branch) -> None:
        """Wake all that waits in a branch that lost, so that it goes on to its end."""
        with self.turn:
            line.lost = True
            for path in [path for path in self.parked if f"{path}/".startswith(f"{line.path}/")]:
                self.unpark(path)
            self.changed.notify_all()

    def unpark(self, path: str) -> None:
        waiting = self.parked.pop(path)
        self.active += 1
        if waiting.child is not None:
            for below in list(waiting.child.parked):
                waiting.child.unpark(below)
