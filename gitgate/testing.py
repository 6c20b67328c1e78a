"""Testing: your flows, with agents and people that you write down: real Git, in a repository of its own, and no agent's process.

    def test_feature():
        played = gitgate.testing.play(feature, "x", agents={"coder": {"status": "DONE"}}, people=[True])
        assert played.result == "merged"

    def test_feature_survives():
        for crash in gitgate.testing.crashes(feature, "x"):
            assert crash.result == "merged", crash

Agents and people are what they say: one thing, a list of things (one each time), a mapping, or a function. Whoever is not
written down says DONE, yes, or the first option. A flow that waits is replayed with the answer, as it is elsewhere.
"""

from __future__ import annotations

import inspect
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from . import config
from .acts import find_gate
from .acts.answering import Manner, respond
from .agents.agent import AgentOutcome, AgentResult, AgentSettings, Finished, ProcessEnding
from .context import Desk, open_desk
from .errors import IllegalEvent, Usage
from .flows import Doing, FlowTerms, program
from .flows.agents import AgentRun, Before
from .flows.checking import ReplayedRun, export, replay, with_children
from .flows.endings import FlowEnding, error_from, said_of_input
from .flows.engine import Engine
from .flows.journal import HeldRun, load_run, signal_run, take_run
from .flows.program import FlowFunction, Surroundings, called, start_run
from .gates.agency import AgentStart
from .model import AWAITING
from .model.gate import Gate, Question
from .questions import Given
from .questions.drafts import Draft
from .record.runs import Run, RunEntry
from .store.git import Git
from .text import parse_time

PERSON = "A Person <person@example.invalid>"
MOST_ROUNDS = 1000
THREADS_END_WITHIN = 3.0
DOUBT = "may have been done: its process ended in the middle of it"
Script = Any
"""What somebody says: one thing, a list of things, or a function that gives it."""


@dataclass(frozen=True)
class Played:
    """Result of a played run.

    `starts`: its agents, as `start coder` and `resume coder`. `asked`: its questions. `told`: what each agent was told
    last. `doubted`: the steps of which a person was asked whether they were done. `crash`: where the run was killed.
    """

    id: str
    status: str
    value: Any
    reason: str
    error: Mapping[str, Any]
    starts: tuple[str, ...]
    asked: tuple[str, ...]
    told: Mapping[str, str]
    steps: tuple[str, ...]
    doubted: tuple[str, ...] = ()
    crash: str = ""
    raised: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def result(self) -> Any:
        """The flow's value; what it raised, where it came to none."""
        if self.status == "completed":
            return self.value
        raise self.raised or error_from(self.error or {"class": "", "message": self.reason or self.status})


@dataclass
class Cast:
    """Cast of one run: its agents, people and signals, and what they have said by now."""

    agents: Mapping[str, Script]
    people: Script
    signals: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    doubted: list[str] = field(default_factory=list)
    said: dict[str, int] = field(default_factory=dict)
    ended: dict[tuple[str, int], Any] = field(default_factory=dict)

    def next_of(self, who: str, script: Script, *given: Any) -> Any:
        """Return the next thing that somebody says; the last one again where nothing more is written down."""
        if callable(script):
            return called(script, given, {})
        if isinstance(script, list):
            number = self.said.get(who, 0)
            self.said[who] = number + 1
            return script[min(number, len(script) - 1)]
        return script

    def agent(self, name: str, prompt: str, place: Path) -> Any:
        script = self.agents.get(name, {"status": "DONE"})
        given = (prompt, place) if callable(script) and takes_two(script) else (prompt,)
        return self.next_of(f"agent {name}", script, *given)

    def person(self, gate: Gate) -> Any:
        asked = gate.opened.questions[0]
        people, usual = self.people, usually(asked)
        if DOUBT in asked.prompt:
            self.doubted.append(str(gate.opened.config["step"]))
            people, usual = people if isinstance(people, Mapping) else None, "again"
        if isinstance(people, Mapping):
            return next((said for words, said in people.items() if words in asked.prompt), usual)
        if people is None:
            return usual
        return self.next_of("people", people, asked.prompt, list(asked.labels))


def takes_two(script: Callable[..., Any]) -> bool:
    takes = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(script).parameters.values()
    return sum(1 for one in parameters if one.kind in takes and one.default is inspect.Parameter.empty) == 2


def usually(asked: Question) -> Any:
    if asked.kind == "approval":
        return True
    return asked.labels[0] if asked.labels else "words"


class Unseen(Before):
    """State before an agent that is written down: nothing is ever new, because the agent leaves only its words."""

    def newer(self, desk: Desk, name: str) -> Mapping[str, Any] | None:  # noqa: ARG002
        return None

    def opened_since(self, desk: Desk, step: str) -> str | None:  # noqa: ARG002
        return None


@dataclass
class ScriptedRun(AgentRun):
    """Run of a step's agent that is written down. It is not asked again for what it has said."""

    cast: Cast = field(default_factory=lambda: Cast({}, None))

    def one_round(self, gate: Gate | None) -> tuple[Finished, AgentOutcome, Before]:
        self.engine.held.check_held()
        key = (f"{self.engine.run_id}/{self.doing.id}", len(self.gates))
        name = self.start.name
        if key not in self.cast.ended:
            answer = gate.answer.answer.values if gate is not None and gate.answer is not None else {}
            prompt = (
                self.prompt if gate is None else json.dumps(dict(answer), ensure_ascii=False, default=str)
            )
            self.cast.starts.append(f"{'resume' if self.gates else 'start'} {name}")
            self.cast.told[name] = prompt
            self.cast.ended[key] = self.cast.agent(name, prompt, self.desk.repo.place)
        said = self.cast.ended[key]
        failed = isinstance(said, BaseException)
        text = said if isinstance(said, str) else "" if failed else json.dumps(said)
        result = AgentResult.FAILED if failed else AgentResult.DONE
        done = Finished(ProcessEnding.EXITED, int(failed), text.encode(), b"", self.desk.repo.state_dir)
        reason = str(said) if failed else ""
        return done, AgentOutcome(result, text=text, reason=reason), Unseen(frozenset(), frozenset())

    def open_for(self, draft: Draft, made: Sequence[str] = ()) -> Gate:
        number = len(self.gates)
        step = Doing(self.doing.id if number == 0 else f"{self.doing.id}.{number}", self.doing.again)
        return self.engine.open_gate(step, draft, wishes_of_nobody(), None, step=self.doing.id, commits=made)


def wishes_of_nobody() -> Any:
    from .acts.asking import AskWishes

    return AskWishes(push=False)


# crashes


class Crash(BaseException):
    """End of a process, as far as one process can have it. Nothing is reported to `git gate`, and nothing is let go."""


@dataclass
class Fuse:
    """Event at which a run is killed, by its number, and whether before or after it is written. Zero: none."""

    number: int = 0
    when: str = "before"
    count: int = 0
    at: str = ""

    def burn(self, held: CrashingRun, number: int, when: str, name: str, step: str) -> None:
        if number == self.number and when == self.when and not self.at:
            self.at = f"{when} {name}{f' of {step}' if step else ''}"
            held.die()


@dataclass
class CrashingRun(HeldRun):
    """Run whose process ends at a chosen event. From then on it writes nothing, and lets nothing go."""

    fuse: Fuse = field(default_factory=Fuse)
    dead: bool = False
    family: list[CrashingRun] = field(default_factory=list)
    """All that this process holds: the run, and those that its steps are."""

    def as_ours(self, held: HeldRun) -> HeldRun:
        found = crashing(held, self.fuse, self.family)
        if self.dead:  # by another branch, while this one was just taking it
            found.die()
        return super().as_ours(found)

    def check_held(self) -> None:
        if self.dead:
            raise Crash
        super().check_held()

    def die(self) -> None:
        """Release the locks, as the system does when a process ends, and nothing else."""
        for one in self.family:
            one.dead = True
            one.over.set()
            if one.lock >= 0:
                os.close(one.lock)
                one.lock = -1
        raise Crash

    def append(self, name: str, /, **said: Any) -> RunEntry:
        with self.turn:
            self.check_held()
            self.fuse.count += 1
            number, step = self.fuse.count, str(said.get("step", ""))
            self.fuse.burn(self, number, "before", name, step)
            entry = super().append(name, **said)
            self.fuse.burn(self, number, "after", name, step)
            return entry

    def leave(self, name: str, /, *, still: Callable[[], bool] | None = None, **said: Any) -> Run:
        with self.turn:
            self.check_held()
            self.fuse.count += 1
            number = self.fuse.count
            self.fuse.burn(self, number, "before", name, "")
            run = super().leave(name, still=still, **said)
            if not self.over.is_set():
                return run
            self.fuse.burn(self, number, "after", name, "")
            return run


def crashing(held: HeldRun, fuse: Fuse, family: list[CrashingRun] | None = None) -> CrashingRun:
    found = CrashingRun(**{one.name: getattr(held, one.name) for one in fields(held)}, fuse=fuse)
    found.family = family if family is not None else []
    found.family.append(found)
    return found


# the stage


@dataclass
class Stage:
    """Repository of its own, in which flows are run."""

    place: Path
    env: dict[str, str]
    ahead: float = 0.0
    """How far its clock is before the machine's: sleeps and deadlines are not waited for."""

    def clock(self) -> float:
        return time.time() + self.ahead

    def desk(self) -> Desk:
        return open_desk(self.place, self.env, bulk=True, clock=self.clock)

    def skip_to(self, moment: str) -> bool:
        """Set the clock to a moment; False where there is none to go to."""
        if not moment:
            return False
        self.ahead = max(self.ahead, parse_time(moment) - time.time() + 1)
        return True

    def goes_on(self, ended: FlowEnding, cast: Cast) -> bool:
        """Let happen what a run waits for, and return whether anything did: an answer, a signal, or else its time
        comes.
        """
        if ended.status not in ("waiting_human", "sleeping"):
            return False
        return self.answer(ended, cast) or self.send(ended, cast) or self.skip_to(ended.until)

    def send(self, ended: FlowEnding, cast: Cast) -> bool:
        """Send the next signal of each topic that the run waits for. False where nothing more is written down."""
        desk = self.desk()
        try:
            every = with_children(desk, load_run(desk, ended.id))
            return sum(self.send_to(desk, run, cast) for run in every) > 0
        finally:
            desk.close()

    def send_to(self, desk: Desk, run: Run, cast: Cast) -> bool:
        topics = list(run.rest.said.get("topics", ())) if run.rest is not None else []
        sent = [topic for topic in topics if cast.sent.get(topic, 0) < len(cast.signals.get(topic, ()))]
        for topic in sent:
            number = cast.sent.get(topic, 0)
            cast.sent[topic] = number + 1
            run = signal_run(desk, run, topic, cast.signals[topic][number])
        return bool(sent)

    def play(
        self,
        flow: FlowFunction[..., Any],
        *args: Any,
        agents: Mapping[str, Script] | None = None,
        people: Script = None,
        signals: Mapping[str, Sequence[Any]] | None = None,
        fuse: Fuse | None = None,
        **kwargs: Any,
    ) -> Played:
        """Run a flow to its end, or to where nobody answers: `people` gives None. Sleeps and deadlines take no time."""
        if not isinstance(flow, FlowFunction):
            raise Usage(
                f"expected a flow; found {flow!r}", hint="@gitgate.flow above its def, or gitgate.Flow(…)"
            )
        cast, fuse = Cast(agents or {}, people, dict(signals or {})), fuse or Fuse()
        given = said_of_input(args, kwargs)
        desk = self.desk()
        try:
            held = start_run(desk, flow, given, {})
            run = held.run.id
            ended = self.replayed(flow, crashing(held, fuse), cast)
            for _ in range(MOST_ROUNDS):
                if ended is not None and ended.next:
                    run = ended.next
                elif ended is not None and not self.goes_on(ended, cast):
                    break
                ended = self.again(flow, run, cast, fuse)
            return self.told(desk, run, cast, fuse, ended)
        finally:
            desk.close()

    def replayed(self, flow: FlowFunction[..., Any], held: CrashingRun, cast: Cast) -> FlowEnding | None:
        """Replay the run once, and return how that ended; None where it was killed."""
        given, before = held.run.started.said["given"], set(threading.enumerate())
        around = Surroundings(self.desk, prepare=lambda engine: self.cast_in(engine, cast))
        try:
            return program.play(held, around, flow.terms, lambda: flow.call(given))
        except Crash:
            # A process takes its threads with it; here each ends when it next looks at its run.
            until = time.monotonic() + THREADS_END_WITHIN
            while set(threading.enumerate()) - before and time.monotonic() < until:
                time.sleep(0.01)
            return None

    def again(self, flow: FlowFunction[..., Any], run: str, cast: Cast, fuse: Fuse) -> FlowEnding | None:
        """Replay the run once more, as the next process would; None where it was killed."""
        desk = self.desk()
        try:
            return self.replayed(flow, crashing(take_run(desk, run), fuse), cast)
        except IllegalEvent:  # it was killed when it was over
            over = load_run(desk, run)
            following = over.end.text("next") if over.end is not None else ""
            return FlowEnding(run, over.state, next=following)
        finally:
            desk.close()

    def cast_in(self, engine: Engine, cast: Cast) -> None:
        def actor(doing: Doing, name: str, session: str, prompt: str, terms: FlowTerms) -> AgentRun:
            start = AgentStart(name, "flow", AgentSettings())
            return ScriptedRun(engine, doing, start, session, prompt, terms, cast=cast)

        engine.extra["actor"] = actor
        engine.stays = 0.0

    def answer(self, ended: FlowEnding, cast: Cast) -> bool:
        """Let people answer what the run waits for. False where none of them says anything."""
        desk, spoke = self.desk(), False
        try:
            for gate_id in ended.gates:
                gate = find_gate(desk, gate_id).gate
                if gate.state != AWAITING:
                    spoke = True
                    continue
                said = cast.person(gate)
                cast.asked[gate.id] = gate.opened.questions[0].prompt
                if said is not None:
                    note = ""
                    if isinstance(said, tuple):
                        said, note = said
                    respond(desk, gate, given_to(gate, said), Manner(who=PERSON, note=note, push=False))
                    spoke = True
        finally:
            desk.close()
        return spoke

    def told(self, desk: Desk, run: str, cast: Cast, fuse: Fuse, ended: FlowEnding | None) -> Played:
        now = load_run(desk, run)
        error = now.end.said.get("error") if now.end is not None else None
        return Played(
            id=run,
            status=now.state if now.closed or ended is None else ended.status,
            value=now.end.said.get("result") if now.end is not None else None,
            reason=(now.end.text("reason") if now.end is not None else "") or (ended.reason if ended else ""),
            error=error or {},
            starts=tuple(cast.starts),
            asked=tuple(cast.asked.values()),
            told=cast.told,
            steps=tuple(now.steps),
            doubted=tuple(dict.fromkeys(cast.doubted)),
            crash=fuse.at,
            raised=ended.raised if ended is not None else None,
        )

    def crashes(
        self,
        flow: FlowFunction[..., Any],
        *args: Any,
        agents: Mapping[str, Script] | None = None,
        people: Script = None,
        signals: Mapping[str, Sequence[Any]] | None = None,
        **kwargs: Any,
    ) -> Iterator[Played]:
        """Play the run once for each of its events, killed before it is written, and once killed after. Each goes on to
        its end.
        """
        whole = Fuse()
        self.play(flow, *args, agents=agents, people=people, signals=signals, fuse=whole, **kwargs)
        for number in range(1, whole.count + 1):
            for when in ("before", "after"):
                fuse = Fuse(number, when)
                yield self.play(
                    flow, *args, agents=agents, people=people, signals=signals, fuse=fuse, **kwargs
                )


def given_to(gate: Gate, said: Any) -> Given:
    asked = gate.opened.questions[0]
    if isinstance(said, bool):
        return Given(approve=said)
    if isinstance(said, Mapping):
        return Given(values=said)
    if asked.labels and isinstance(said, str) and said not in asked.labels and asked.other:
        return Given(other=said)
    return Given(text=said) if isinstance(said, str) else Given(values={asked.key: said})


@contextmanager
def stage() -> Iterator[Stage]:
    """Make a repository of its own for several runs, and delete it afterwards."""
    with tempfile.TemporaryDirectory(prefix="gitgate-stage-") as room:
        given = config.environment()
        place = Path(room) / "repository"
        kept: dict[str, str] = {
            name: given[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in given
        }
        env: dict[str, str] = {**kept, "HOME": room, "GIT_CONFIG_NOSYSTEM": "1"}
        Git(Path(room), env).run("init", "-q", "-b", "main", str(place))
        git = Git(place, env)
        for name, value in (("user.name", "A Tester"), ("user.email", "tester@example.invalid")):
            git.run("config", name, value)
        git.run("commit", "-q", "--no-verify", "--allow-empty", "-m", "A stage")
        yield Stage(place, env)


def play(
    flow: FlowFunction[..., Any],
    *args: Any,
    agents: Mapping[str, Script] | None = None,
    people: Script = None,
    signals: Mapping[str, Sequence[Any]] | None = None,
    **kwargs: Any,
) -> Played:
    """Run a flow with these agents and people, in a repository of its own."""
    with stage() as here:
        return here.play(flow, *args, agents=agents, people=people, signals=signals, **kwargs)


def crashes(
    flow: FlowFunction[..., Any],
    *args: Any,
    agents: Mapping[str, Script] | None = None,
    people: Script = None,
    signals: Mapping[str, Sequence[Any]] | None = None,
    **kwargs: Any,
) -> Iterator[Played]:
    """The flow once for each event of its run, killed before it is written, and once killed after; each gone on with to its end.

    >>> for crash in gitgate.testing.crashes(feature, "x"):
    ...     assert crash.result == "merged", crash.crash
    """
    with stage() as here:
        yield from here.crashes(flow, *args, agents=agents, people=people, signals=signals, **kwargs)


__all__ = [
    "Crash",
    "Fuse",
    "Played",
    "ReplayedRun",
    "Stage",
    "crashes",
    "export",
    "play",
    "replay",
    "stage",
]
