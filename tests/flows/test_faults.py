"""Flows: random flows whose processes die at random writes and starts lose no step and double none.

`GITGATE_TEST_SECONDS=1200 … -m thorough tests/flows/test_faults.py` goes on for so long; `GITGATE_TEST_SEED` draws others.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pytest

import gitgate
from gitgate.acts import asking
from gitgate.agents import process
from gitgate.errors import Conflict
from gitgate.flows import program
from gitgate.flows.branches import LOST
from gitgate.flows.journal import HeldRun
from gitgate.flows.lines import Branch
from gitgate.record.runs import Run
from gitgate.store.git.objects import PlumbingObjects
from gitgate.store.git.refs import Refs
from gitgate.store.remote.remote import RefMove
from gitgate.testing import Crash
from support.flowing import Actors, FlowBench, die

# Read here: a test sees nothing of the machine's own environment.
SECONDS = float(os.environ.get("GITGATE_TEST_SECONDS", "1200"))
SEED = int(os.environ.get("GITGATE_TEST_SEED", "0"))
Ops = list[Any]
FEW = (6, 8)
MOST_CRASHES = 60  # of one flow, so that it comes to an end
KINDS = ("step", "step", "fail", "ask", "pause", "loop", "branch", "both", "agent", "now", "first")


def drawn(dice: random.Random, depth: int = 0, most: int = 4) -> Ops:
    """A flow: steps, errors that are caught, questions, loops, branches, and some at once."""
    found: Ops = []
    for _ in range(dice.randint(1, most)):
        kind = dice.choice(KINDS if depth < 2 else KINDS[:5])
        name = f"{kind[0]}{dice.randint(0, 3)}"
        if kind == "loop":
            found.append([kind, dice.randint(1, 3), drawn(dice, depth + 1, 2)])
        elif kind in ("branch", "both", "first"):
            found.append([kind, drawn(dice, depth + 1, 2), drawn(dice, depth + 1, 2)])
        elif kind == "agent":
            found.append([kind, dice.choice(["coder", "helped"])])
        else:
            found.append([kind, name])
    return found


class Player:
    """Plays such a flow, and notes what its steps really did."""

    def __init__(self) -> None:
        self.did: Counter[str] = Counter()

    def play(self, ops: Ops) -> list[Any]:
        return [self.one(*op) for op in ops]

    def one(self, kind: str, *what: Any) -> Any:
        if kind == "step":
            return gitgate.step(self.note, what[0], name=what[0], retry=True)
        if kind == "fail":
            try:
                gitgate.step(self.fails, what[0], name=what[0], retry=True)
            except ValueError as failed:
                return f"caught {failed}"
        if kind == "ask":
            gate = gitgate.ask(f"What of {what[0]}?", wait=True)
            return gate.answer.text if gate.answer else None
        if kind == "pause":
            return bool(gitgate.pause(f"On with {what[0]}?"))
        if kind == "now":
            return gitgate.now().year > 2000
        if kind == "loop":
            return [self.play(what[1]) for _ in range(what[0])]
        if kind == "branch":
            return self.play(what[0] if gitgate.random() < 0.5 else what[1])
        if kind in ("both", "first"):
            together = gitgate.parallel if kind == "both" else gitgate.first
            return together(lambda: self.play(what[0]), lambda: self.play(what[1]))
        return gitgate.run(what[0], "do it").status

    def note(self, name: str) -> str:
        self.did[gitgate.step_id()] += 1
        return name

    def fails(self, name: str) -> None:
        self.did[gitgate.step_id()] += 1
        raise ValueError(name)


def meant(ops: Ops, run: Run, branch: Branch) -> list[Any]:
    """What such a flow comes to, without any engine: only which way it took is looked up."""
    return [meant_by(run, branch, *op) for op in ops]


def meant_by(run: Run, branch: Branch, kind: str, *what: Any) -> Any:
    plain = {
        "step": what[0],
        "fail": f"caught {what[0]}",
        "ask": "words",
        "pause": True,
        "now": True,
        "agent": "DONE",
    }
    if kind in plain:
        return plain[kind]
    if kind == "loop":
        return [meant(what[1], run, branch) for _ in range(what[0])]
    if kind == "branch":
        drawn_here = run.steps[branch.next("random", "")].ended
        assert drawn_here is not None
        return meant(what[0] if drawn_here.said["result"] < 0.5 else what[1], run, branch)
    if kind == "first":
        path = branch.next("first", "")
        chosen = run.steps[f"{path}/winner#1"].ended
        assert chosen is not None
        winner = chosen.said["result"]["winner"]
        return meant(what[winner], run, Branch(f"{path}/{winner}"))
    path = branch.next("parallel", "")
    return [meant(part, run, Branch(f"{path}/{number}")) for number, part in enumerate(what)]


class Faults:
    """A process may die before and after each event and each other write of a ref (a claim, a lease, an answer that is heard),
    after a gate was opened, and around an agent's start.
    """

    def __init__(self, dice: random.Random, rate: float) -> None:
        self.dice, self.rate = dice, rate
        self.crashes: list[str] = []
        self.driving = False  # what people write meanwhile is not the process's
        self.held: HeldRun | None = None
        self.plain_append, self.plain_begin = HeldRun.append, process.begin
        self.plain_update, self.plain_play = Refs.update, program.play

    def maybe(self, where: str) -> None:
        lost = self.held is not None and (self.held.lost or self.held.over.is_set())
        if not self.driving or lost or threading.current_thread().name == "lease":
            return
        if len(self.crashes) < MOST_CRASHES and self.dice.random() < self.rate:
            self.crashes.append(where)
            if self.held is None:  # it is being begun, or claimed
                raise Crash
            die(self.held)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        faults = self

        def play(held: HeldRun, *given: Any) -> Any:
            faults.held = held
            try:
                return faults.plain_play(held, *given)
            finally:
                faults.held = None

        def append(held: HeldRun, event: str, /, **said: Any) -> Any:
            faults.maybe(f"before {event}")
            found = faults.plain_append(held, event, **said)
            faults.maybe(f"after {event}")
            return found

        def update(refs: Refs, moves: Sequence[RefMove]) -> None:
            names = " ".join(sorted({move.ref.split("/")[2] for move in moves}))
            faults.maybe(f"before a move of {names}")
            faults.plain_update(refs, moves)
            faults.maybe(f"after a move of {names}")

        def ask(*args: Any, **how: Any) -> Any:
            found = asking.ask(*args, **how)
            faults.maybe("after a gate was opened")
            return found

        def begin(launch: Any, *args: Any) -> Any:
            faults.maybe("before an agent's start")
            running = faults.plain_begin(launch, *args)
            try:
                faults.maybe("after an agent's start")
            except Crash:
                running.stop()  # its keeper does that when its process dies
                raise
            return running

        readers: dict[int, int] = {}
        plain_read = PlumbingObjects.ask

        def read(objects: PlumbingObjects, name: str) -> Any:
            """Two branches that talk to one git at once would get one another's objects."""
            assert readers.setdefault(id(objects), threading.get_ident()) == threading.get_ident()
            try:
                return plain_read(objects, name)
            finally:
                readers.pop(id(objects), None)

        patch.setattr(PlumbingObjects, "ask", read)
        patch.setattr(HeldRun, "append", append)
        patch.setattr(Refs, "update", update)
        patch.setattr(program, "play", play)
        patch.setattr("gitgate.flows.terms.ask", ask)
        patch.setattr(process, "begin", begin)


def one_flow(bench: FlowBench, actors: Actors, seed: int) -> Mapping[str, int]:
    """Draw a flow, drive it to its end through its crashes, and hold what came of it to what it means."""
    dice = random.Random(seed)  # noqa: S311 - drawn again by its seed
    ops, player = drawn(dice), Player()

    @gitgate.flow(name=f"flow{seed}")
    def flow() -> list[Any]:
        return player.play(ops)

    for log in actors.folder.glob("*.log"):
        log.unlink()
    faults = Faults(dice, dice.choice([0.01, 0.05, 0.15]))
    crashes = faults.crashes
    with pytest.MonkeyPatch.context() as patch:
        faults.install(patch)
        run = driven(bench, flow, seed, faults)
    assert run.end is not None
    assert run.end.name == "completed", (seed, run.end, crashes)
    assert run.end.said["result"] == meant(ops, run, Branch()), (seed, ops, crashes)
    hold(bench, actors, run, player, seed, crashes)
    return {"crashes": len(crashes), "steps": len(run.steps), "events": len(run.events)}


def driven(bench: FlowBench, flow: Any, seed: int, faults: Faults) -> Run:
    last: BaseException | None = None
    for _ in range(400):
        runs = [bench.load(ref[15:]) for ref in bench.clone.refs("refs/hitl/runs")]
        own = [run for run in runs if run.flow == f"flow{seed}"]
        if own and own[0].closed:
            return own[0]
        faults.driving = True
        try:
            ended = bench.again(flow, own[0].id) if own else bench.begin(flow)
        except (Crash, Conflict) as died:
            last = died
            faults.driving = False
        else:
            faults.driving = False
            answer_all(ended.gates)
        bench.close()
    raise AssertionError(f"seed {seed}: it comes to no end: {last!r}, {bench.lines[-4:]}")


def answer_all(gates: Iterable[str]) -> None:
    for gate in gates:
        shown = gitgate.show(gate)
        if shown.state == "awaiting" and shown.title.startswith("On with"):
            gitgate.respond(gate, approve=True, resume=False)
        elif shown.state == "awaiting":
            gitgate.respond(gate, "words", resume=False)


def hold(bench: FlowBench, actors: Actors, run: Run, player: Player, seed: int, crashes: list[str]) -> None:
    """No step lost, none doubled but what may be; each agent in one session, each question asked once."""
    lost = {step.id for step in run.steps.values() if step.ended and step.ended.said.get("error") == LOST}
    for step in run.steps.values():
        if step.id in lost:  # nobody asks whether it was done
            continue
        if step.kind == "step":
            times = player.did[f"{run.id}/{step.id}"]
            assert 1 <= times <= 1 + len(crashes), (seed, step.id, times)
        if step.kind in ("ask", "pause", "approval"):
            assert len(step.gates) == 1, (seed, step.id, step.gates)
    keys = Counter(str(gate.details["key"]) for gate in gitgate.list(all=True) if gate.details["run"] and gate.details["run"]["id"] == run.id)  # type: ignore[index]  # fmt: skip
    assert all(count == 1 for count in keys.values()), (seed, keys)
    agents = [step for step in run.steps.values() if step.kind == "run" and step.id not in lost]
    told = {gate for step in run.steps.values() if step.id not in lost for gate in step.gates}
    assert len(told) == len([key for key in keys if not of_any(key.partition("/")[2], lost)]), (seed, keys)
    if agents:
        lines = [line.split(" ") for line in (actors.folder / "starts.log").read_text().splitlines()]
        started = Counter(session for how, _, session in lines if how == "start")
        assert set(started.values()) <= {1}, (seed, started, crashes)
        begun = [
            step for step in run.steps.values() if step.kind == "run"
        ]  # those that lost a race were started as well
        assert {session for _, _, session in lines} <= {step.begun.text("session") for step in begun}


def of_any(key: str, steps: Collection[str]) -> bool:
    """Whether a gate was asked by one of these steps; an agent's later ones have a number behind."""
    return key in steps or key.rpartition(".")[0] in steps


@pytest.fixture
def cast(actors: Actors) -> Actors:
    actors.says("coder", {"status": "DONE"})
    actors.says("helped", {"status": "NEEDS_HUMAN", "reason": "What of it?"}, {"status": "DONE"})
    # The agent that is helped asks in each session that is new to it, and is done in one that goes on.
    script = actors.folder / "agent.sh"
    plain = '[ -f "$name.said" ] && read -r number < "$name.said"'
    text = script.read_text()
    assert plain in text
    script.write_text(text.replace(plain, '[ "$how" = resume ] && number=1'))
    return actors


@pytest.mark.slow
def test_two_random_flows(bench: FlowBench, cast: Actors) -> None:
    """The same ones in every run of the tests."""
    told: Counter[str] = Counter()
    for seed in FEW:
        told.update(one_flow(bench, cast, seed))
    assert told["crashes"] > 8


@pytest.mark.slow
def test_a_sample_of_random_flows(bench: FlowBench, cast: Actors) -> None:
    """The same ones each time; hundreds of crashes among them."""
    first = SEED or 1
    told: Counter[str] = Counter()
    for seed in range(first, first + 8):
        told.update(one_flow(bench, cast, seed))
    assert told["crashes"] > 20


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(0)
def test_random_flows_for_a_while(bench: FlowBench, cast: Actors, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty minutes, unless said otherwise; the figures are printed."""
    until, seed = time.monotonic() + SECONDS, SEED or 1000
    told: Counter[str] = Counter()
    while time.monotonic() < until:
        told.update({**one_flow(bench, cast, seed), "flows": 1})
        seed += 1
        if told["flows"] % 20 == 0:
            for ref in bench.clone.refs("refs/hitl"):
                bench.clone.git("update-ref", "-d", ref)
    with capsys.disabled():
        sys.stderr.write(f"{dict(told)}\n")
    assert told["crashes"] > told["flows"]
