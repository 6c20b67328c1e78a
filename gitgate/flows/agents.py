"""Flows: a step that runs an agent. It is started once; what it asks is answered in its own conversation, and then it is done.

What its process says lies in a folder of this machine, one for each start. Whoever replays the step looks there first: an
agent that ended is not started again, one that was cut off goes on in its own conversation.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..acts import needs, sessions
from ..acts.askers import STEP, TERMS
from ..acts.asking import AskWishes
from ..agents.agent import AgentResult, Finished, Meeting, ProcessEnding, Start
from ..agents.flow import RUN
from ..context import Desk
from ..context.machine import host_name
from ..errors import Failure, GateError
from ..gates import agency
from ..gates.work import followed
from ..model import AWAITING
from ..model.gate import Gate, SessionRef
from ..questions.drafts import Draft
from ..questions.prompts import Circumstances, resume_prompt, trailers
from ..questions.signals import Need, draft_of, find_need, last_object, read_need
from ..store import read_local, read_local_note
from ..store.git.refs import OPEN
from ..store.work import commits
from ..store.work.snapshot import operation_in
from ..text import one_line
from . import Doing, FlowTerms
from .endings import FlowEnds, RunStops
from .engine import Engine
from .journal import folder_of

if TYPE_CHECKING:
    from ..agents.agent import AgentOutcome

POLL = 0.25
SETTLES = 5.0
MOST_ROUNDS = 50
MOST_COMMITS = 200
"""So many of a step are named, the last ones."""
WORDS = ("status", "summary", "reason", "message")
GO_ON = "You were interrupted in the middle of your task. What you did is still here. Go on with it, and finish it."


class AgentFailed(Failure):
    """Error of an agent of a flow that came to no end of its own."""

    code = "agent_failed"


class RunStalled(FlowEnds):
    """Stop of a run that nothing here can go on with, and another machine could."""


@dataclass(frozen=True)
class AgentSignal:
    """Signal by which an agent ended. `output`: all that it said, if that was an object. `gates`: what it asked."""

    status: str
    summary: str = ""
    reason: str = ""
    message: str = ""
    output: Any = None
    session: str = ""
    commits: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "commits": list(self.commits), "gates": list(self.gates)}


def signal_from(said: Mapping[str, Any]) -> AgentSignal:
    status, summary, reason, message = (str(said.get(name) or "") for name in WORDS)
    commits, gates = tuple(said.get("commits") or ()), tuple(said.get("gates") or ())
    session = str(said.get("session") or "")
    return AgentSignal(status, summary, reason, message, said.get("output"), session, commits, gates)


@dataclass
class AgentRun:
    """Run of one step's agent, from its start to its end, through whatever it asks."""

    engine: Engine
    doing: Doing
    start: agency.AgentStart
    session: str
    prompt: str
    terms: FlowTerms
    gates: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """What it has committed, as it is published."""
    source: str = needs.SAID

    @property
    def desk(self) -> Desk:
        """The engine's, which other branches read objects by as well: only in its turn."""
        return self.engine.desk

    def to_the_end(self) -> AgentSignal:
        if self.doing.again is not None:
            self.gates, self.made = list(self.doing.again.gates), list(self.doing.again.commits)
        for _ in range(MOST_ROUNDS):
            gate = self.engine.decided(self.gates[-1], stuck=False) if self.gates else None
            if gate is not None:
                said = needs.signalled_end(gate)
                if said is not None:  # it was written elsewhere that nobody is needed any more
                    signal = replace(signal_from(said), session=self.session, gates=tuple(self.gates))
                    return replace(signal, commits=tuple(self.made[-MOST_COMMITS:]))
                self.engine.check_ended(gate)
            ended, outcome, before = self.one_round(gate)
            signal, need = self.read_end(outcome, before)
            self.refuse_failed(ended, outcome, signal)
            asked = self.gate_for(need, before)
            if asked is None:
                about = signal.summary or signal.reason
                words = f"{signal.status}{f': {about}' if about else ''}"
                self.engine.say(f"{self.start.name}: {one_line(words, 200)}")
                self.made += self.committed(before)
                return replace(signal, commits=tuple(self.made[-MOST_COMMITS:]))
        raise AgentFailed(f"agent {self.start.name} asked {MOST_ROUNDS} times in one step")

    # one start of its program

    def one_round(self, gate: Gate | None) -> tuple[Finished, AgentOutcome, Before]:
        """Return how the program of this round ended. Start it first, unless it ended by itself before."""
        number = len(self.gates)
        folder = self.folder(number)
        last = sorted(folder.glob("try-*"), key=lambda place: int(place.name[4:]))
        ended = self.ended_before(last[-1]) if last else None
        before = Before.read(folder) if last else None
        if before is None:
            with self.engine.turn:
                before = Before.look(self.desk, folder)
        if ended is None:
            self.refuse_elsewhere(number, started=bool(last))
            prompt = resume_prompt(gate, Circumstances()) if gate is not None else self.first_prompt
            prompt = GO_ON if last else prompt
            ended = self.start_program(folder / f"try-{len(last)}", prompt, gate, again=bool(last))
        adapter = agency.adapter(self.start.program)
        return ended, adapter.read_outcome(ended), before

    @property
    def first_prompt(self) -> str:
        """Return the task, after what the agent is to know of itself if its program takes that in no other way."""
        return "\n\n".join(part for part in (self.start.before, self.prompt) if part)

    def folder(self, number: int) -> Path:
        step = sha256(self.doing.id.encode()).hexdigest()[:16]
        found = folder_of(self.desk, self.engine.run_id) / step / f"round-{number}"
        found.mkdir(parents=True, exist_ok=True, mode=0o700)
        return found

    def ended_before(self, place: Path) -> Finished | None:
        """Return how a program ended that an earlier process of ours started; None where it did not exit by itself.

        The program's keeper ends it when that process dies.
        """
        from ..agents import keeper
        from ..agents.process import recall

        until = time.monotonic() + SETTLES
        while (ended := recall(place)) is None and time.monotonic() < until:
            if not (place / keeper.STARTED).exists() and time.monotonic() > until - SETTLES / 2:
                break
            time.sleep(POLL / 5)
        return ended if ended is not None and ended.ending is ProcessEnding.EXITED else None

    def refuse_elsewhere(self, number: int, *, started: bool) -> None:
        """Refuse to start a second conversation where the first is on another machine, and has to go on there."""
        again = self.doing.again
        host = again.begun.text("host") if again is not None else host_name()
        if number == 0 and not started and host != host_name():
            raise self.engine.broken_by(
                RunStalled(
                    f"needs {host}: step {self.doing.id} was begun there, and its session is there",
                    hint=f"on {host}: git gate resume {self.engine.run_id[:6]}",
                )
            )

    def start_program(self, place: Path, prompt: str, gate: Gate | None, *, again: bool) -> Finished:
        """Start the program: in its own conversation if it was started before, and with the answer if it has asked."""
        from .. import setup
        from ..agents import process, scrubbed
        from ..resumption import answer_document, answer_texts
        from ..setup.equipping import with_hooks_running

        desk, settings, again = self.desk, self.start.settings, again or gate is not None
        first = ("--session-id", self.session) if self.start.program == "claude" and not again else ()
        program = agency.adapter(self.start.program)
        if not again:
            program.begin(self.session, desk.repo.place, desk.settings.env, program=settings.program)
        if gate is not None:
            self.bring_session()
        with self.engine.turn:
            permissions = setup.permissions_of(desk, self.start.program)
        call = bool(gate is not None and gate.opened.config.get("deferred"))
        launch = with_hooks_running(
            desk,
            self.start.program,
            program.start(
                Start(
                    gate=self.gates[-1] if self.gates else self.engine.run_id,
                    cwd=desk.repo.place,
                    folder=place,
                    prompt=prompt,
                    session=SessionRef(self.start.program, self.session) if again else None,
                    meeting=Meeting(self.session),
                    deferred=call,
                    hooks=program.hooks(),
                    permissions=permissions,
                    answer=answer_document(gate) if gate is not None else b"",
                    told=answer_texts(gate) if gate is not None else {},
                    settings=replace(settings, arguments=(*settings.arguments, *first)),
                    env=scrubbed(desk.settings.env),
                    extra_env=self.surroundings(gate.id if call and gate is not None else ""),
                )
            ),
        )
        self.engine.say(f"{self.start.name}: {'goes on' if again else 'was started'} (log {place})")
        with self.engine.working(self.doing.id, self.start.name):
            running = process.begin(launch)
            try:
                while (ended := running.wait(POLL)) is None:
                    self.check_wanted()
            except BaseException:
                running.stop()
                raise
        return ended

    def check_wanted(self) -> None:
        """End the agent if another process took the run over, a person stops the run, or another branch was first."""
        held = self.engine.held
        self.engine.check_branch()
        held.check_held()
        if held.is_stopping():
            raise self.engine.broken_by(RunStops("the run was stopped"))

    def bring_session(self) -> None:
        """Restore the agent's conversation from its last gate, if its program has not run here since.

        RunStalled, which names the machine that asked, where that session cannot be had here.
        """
        if any(self.folder(len(self.gates) - 1).glob("try-*")):
            return
        gate = self.engine.find(self.gates[-1])
        if gate.opened.session is None:
            return
        try:
            with self.engine.turn:
                saved = sessions.bring(self.desk, gate)
        except GateError as absent:
            host = gate.opened.asked.host or "the machine that asked"
            raise self.engine.broken_by(
                RunStalled(
                    f"needs {host}: {absent.message}",
                    hint=f"on {host}: git gate resume {self.engine.run_id[:6]}",
                )
            ) from absent
        self.session = saved.id
        if saved.files:
            adapter, env = agency.adapter(saved.agent), self.desk.settings.env
            adapter.place(saved, self.desk.repo.place, env, self.start.settings.program)

    def surroundings(self, call_of: str) -> dict[str, str]:
        """Return the variables that the agent's program gets. `call_of`: the gate that decides on a deferred call."""
        from ..resumption import named_in_git

        env = self.desk.settings.env
        path = env.get("PATH", "/usr/bin:/bin")
        ours = str(Path(sys.executable).parent)
        path = path if ours in path.split(":") else f"{path}:{ours}"
        named = {"GITGATE_AGENT": self.start.name, "GITGATE_SESSION": self.session}
        named |= {"GITGATE_GATE": call_of} if call_of else {}
        who, began = self.desk.settings.identity(), self.engine.held.run.started
        if not who or agency.adapter(self.start.program).hides_from_git:  # else git refuses to commit there
            named |= named_in_git(who or began.text("by") or f"{self.start.name} <agent@gitgate.invalid>")
        return {**named, RUN: self.engine.run_id, STEP: self.doing.id, TERMS: self.told_terms(), "PATH": path}

    def told_terms(self) -> str:
        """Return the terms on which the agent asks by itself: those of its step."""
        who = {"flow": self.engine.held.run.flow, "agent": self.start.name}
        human = {"human": self.terms.human_escalation}
        return json.dumps({**who, **human, **self.terms.of_question()})

    # what it said

    def read_end(self, outcome: AgentOutcome, before: Before) -> tuple[AgentSignal, Need | None]:
        """Read how the agent ended: by its signal file if it wrote one, else by the object that ends its words.

        If there is neither, its words alone say so.
        """
        written = before.newer(self.desk, self.start.name)
        self.source = needs.SAID if written is None else f"{self.start.name}.json"
        said = written if written is not None else last_object(outcome.text)[0]
        need = read_need(said) if said is not None else find_need(outcome.text)
        if said is None:
            status = "NEEDS_HUMAN" if need is not None else "DONE"
            said = {"status": status, "summary": one_line(outcome.text[-2000:], 500)}
            said |= {"reason": need.reason or need.question} if need is not None else {}
            output = None
        else:
            output = dict(said)
        status, summary, reason, message = (
            text if isinstance(text := said.get(name), str) else "" for name in WORDS
        )
        session = outcome.session or self.session
        self.session = session
        signal = AgentSignal(status, summary, reason, message, output, session, (), tuple(self.gates))
        return signal, need

    def refuse_failed(self, ended: Finished, outcome: AgentOutcome, signal: AgentSignal) -> None:
        if outcome.result is AgentResult.FAILED and not signal.status.startswith("NEEDS"):
            raise AgentFailed(
                f"agent {self.start.name} failed: {outcome.reason or 'without a reason'}",
                hint=f"what it said: {ended.folder}",
            )

    def gate_for(self, need: Need | None, before: Before) -> Gate | None:
        """Return the gate that this round ended at: one that the agent opened, or a new one for what it needs."""
        with self.engine.turn:
            opened = before.opened_since(self.desk, self.doing.id)
        if opened is not None:
            made = self.committed(before, named=True)
            self.engine.append(
                "asked", step=self.doing.id, gate=opened, **({"commits": made} if made else {})
            )
            self.made += made
            self.gates.append(opened)
            return self.engine.find(opened)
        if need is None or not self.terms.human_escalation:
            return None
        config = {"need": {"source": self.source, "digest": need.digest}}
        made = self.committed(before)
        gate = self.open_for(replace(draft_of(need), agent=self.start.name, config=config), made)
        self.made += made
        self.gates.append(gate.id)
        return gate

    def open_for(self, draft: Draft, made: Sequence[str] = ()) -> Gate:
        """Open a gate with the agent's own session, so that a person can join it, and it can go on elsewhere."""
        number = len(self.gates)
        step = Doing(self.doing.id if number == 0 else f"{self.doing.id}.{number}")
        with self.engine.in_session(SessionRef(self.start.program, self.session)):
            return self.engine.open_gate(
                step, draft, AskWishes(), None, step=self.doing.id, terms=self.terms, commits=made
            )

    def committed(self, before: Before, *, named: bool = False) -> list[str]:
        """Return the commits of this round, oldest first.

        If this process was resumed by an answer, commits that nobody else has get the trailers of that decision.
        Publishing would add them too, but from now on the journal names the commits. `named`: a question names them
        already, so they stay as they are.
        """
        desk = self.desk
        if desk.repo.top is None or before.known is None:
            return []
        with self.engine.turn:
            git, gate = desk.repo.git, followed(desk)
            head = desk.refs.get("HEAD")
            made = commits.new_commits(git, [head] if head else [], before.known)[-MOST_COMMITS:]
            if gate is None or named or not made or operation_in(desk.repo.git_dir) is not None:
                return made
            published = set(made) - set(commits.made_since(git, before.known))
            with suppress(GateError):
                made = commits.add_trailers(git, made, trailers(gate), published)
            return made


@dataclass(frozen=True)
class Before:
    """State before an agent's program was started: its gates, its signal files, and the commits known then."""

    gates: frozenset[str]
    signals: frozenset[str]
    known: tuple[str, ...] | None = None
    """The commits below which nothing is the agent's; None where nobody noted that."""

    @classmethod
    def look(cls, desk: Desk, folder: Path) -> Before:
        head = desk.refs.get("HEAD")
        known = (*commits.known_tips(desk.repo), *([head] if head else []))
        found = cls(frozenset(desk.refs.under(OPEN)), needs.writings(desk), known)
        new = folder / "before.new"
        said = {"gates": sorted(found.gates), "signals": sorted(found.signals), "known": known}
        new.write_text(json.dumps(said), encoding="utf-8")
        new.replace(folder / "before.json")
        return found

    @classmethod
    def read(cls, folder: Path) -> Before | None:
        with suppress(OSError, ValueError, TypeError):
            said = read_local_note(folder / "before.json", gates=list, signals=list, known=(list, type(None)))
            known = tuple(said["known"]) if said.get("known") is not None else None
            return cls(frozenset(said["gates"]), frozenset(said["signals"]), known)
        return None

    def newer(self, desk: Desk, name: str) -> Mapping[str, Any] | None:
        """Return the content of that agent's signal file, if it was written since."""
        place = desk.repo.place / desk.settings.text("signals") / f"{name}.json"
        with suppress(OSError, ValueError, RecursionError):
            seen = place.stat()
            if seen.st_size > needs.MOST_BYTES:
                return None
            said = read_local(place)
            if needs.writing_of(place, seen, said) in self.signals:
                return None
            value = json.loads(said.decode("utf-8-sig"))
            return value if isinstance(value, dict) and isinstance(value.get("status"), str) else None
        return None

    def opened_since(self, desk: Desk, step: str) -> str | None:
        """Return the gate that the agent opened in its shell in this step, and that waits."""
        for ref, tip in desk.refs.under(OPEN).items():
            if ref not in self.gates:
                gate = desk.records.load(ref.removeprefix(OPEN), tip)
                if gate.state == AWAITING and gate.opened.config.get("step") == step:
                    return gate.id
        return None


def run_agent(
    engine: Engine,
    name: str,
    prompt: str | None,
    own: FlowTerms = FlowTerms(),
    max_minutes: float | None = None,
) -> AgentSignal:
    """Run the agent `name` as one step: it is started once, and gone on with until it needs nobody any more."""
    terms = own.below(engine.terms)
    if terms.human_escalation is None:
        terms = replace(terms, human_escalation=engine.desk.settings.flag("humanEscalation"))

    def act(doing: Doing) -> dict[str, Any]:
        session = doing.again.begun.text("session") if doing.again is not None else begun["session"]
        engine.settle()
        actor = engine.extra.get("actor")
        if actor is not None:  # a test's
            return dict(actor(doing, name, session, told, terms).to_the_end().plain())
        start = starts[0]
        if max_minutes is not None:
            limited = replace(start.settings, timeout=max_minutes * 60)
            start = agency.AgentStart(start.name, start.program, limited, start.before)
        run = AgentRun(engine, doing, start, session, told, terms)
        return run.to_the_end().plain()

    def look() -> None:
        if engine.extra.get("actor") is None:
            starts.append(start_of(engine, name))

    agency.check_name(name)
    starts: list[agency.AgentStart] = []
    told = prompt if prompt is not None else told_by_itself(engine)
    begun = {"agent": name, "session": str(uuid.uuid4()), "host": host_name()}
    begun["digest"] = sha256((prompt or "").encode("utf-8", "replace")).hexdigest()[:16]
    return signal_from(engine.perform("run", name, act, False, look, **begun))


def start_of(engine: Engine, name: str) -> agency.AgentStart:
    """Return how an agent is started.

    An agent that is not set up here is no error of the flow: what was done stays, and the run can go on later.
    """
    try:
        with engine.turn:
            return agency.how_started(engine.desk, name)
    except GateError as absent:
        go_on = f"then: git gate resume {engine.run_id[:6]}"
        hint = f"{absent.hint}\n{go_on}" if absent.hint else go_on
        raise engine.broken_by(RunStalled(absent.message, hint=hint)) from absent


def told_by_itself(engine: Engine) -> str:
    """Return the prompt for an agent that the flow gives none.

    It has the flow's input, how the agents before it ended, the flow's state, and what a person said last.
    """
    run = engine.held.run
    parts = [f"You are a step of the flow {run.flow!r}."]
    given = run.started.said.get("input")
    if given not in (None, {}, []):
        parts.append(f"Its input:\n{in_words(given)}")
    ended = [step for step in run.steps.values() if step.kind == "run" and step.ended is not None]
    lines = [line for step in ended[-10:] if (line := summary_line(step.name, step.ended))]
    parts += ["What was done before:\n" + "\n".join(lines)] if lines else []
    parts += [f"The state:\n{in_words(engine.extra['state'])}"] if engine.extra.get("state") else []
    parts += [str(engine.extra["told"])] if engine.extra.get("told") else []
    return "\n\n".join(parts)


def in_words(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def summary_line(name: str, ended: Any) -> str:
    said = ended.said.get("result")
    if not isinstance(said, dict):
        return ""
    about = said.get("summary") or said.get("reason") or ""
    return f"- {name}: {said.get('status', '')}{f': {one_line(str(about), 300)}' if about else ''}"
