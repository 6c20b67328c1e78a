"""Flows: random flows whose processes die at random writes and starts lose no step and double none.

`GITGATE_TEST_SECONDS=1200 … -m thorough tests/flows/test_faults.py` goes on for so long; `GITGATE_TEST_SEED` draws others.
"""

from __future__ import annotations

import asyncio
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
from gitgate.flows import Branch, journal, program
from gitgate.flows.branches import LOST
from gitgate.flows.journal import HeldRun
from gitgate.record.runs import Run
from gitgate.store.git.objects import PlumbingObjects
from gitgate.store.git.refs import Refs
from gitgate.store.remote import RefMove
from gitgate.testing import Crash
from support.flowing import DEAD, Actors, FlowBench, die

# A process that dies closes nothing: where one is only cut off within this one, its git processes end with this one.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
# Read here: a test sees nothing of the machine's own environment.
SECONDS = float(os.environ.get("GITGATE_TEST_SECONDS", "1200"))
SEED = int(os.environ.get("GITGATE_TEST_SEED", "0"))
Ops = list[Any]
FEW = (6, 8)
MOST_CRASHES = 60  # of one flow, so that it comes to an end
PLAIN = ("step", "step", "fail", "ask", "pause", "agent")
TWO = ("branch", "both", "first", "soon")
KINDS = (*PLAIN, "agent", "now", "loop", *TWO, "both", "child", "child")
CLEAN_EVERY = 20
WRITES = """
echo "$session" > "did-$session"
if [ -f .git ]; then  # a tree of its own: half of what is done there is committed
    case $session in [0-7]*) git add . && git -c user.name=a -c user.email=a@localhost commit -qm "Did $session";; esac
fi
"""


def drawn(dice: random.Random, depth: int = 0, most: int = 4, kinds: Sequence[str] = KINDS) -> Ops:
    """A flow: steps, errors that are caught, questions, agents, loops, branches, some at once, and flows that it calls."""
    found: Ops = []
    for _ in range(dice.randint(1, most)):
        kind = dice.choice(kinds if depth < 2 else PLAIN)
        name = f"{kind[0]}{dice.randint(0, 3)}"
        if kind == "loop":
            found.append([kind, dice.randint(1, 3), drawn(dice, depth + 1, 2, kinds)])
        elif kind == "child":
            found.append([kind, drawn(dice, depth + 1, 2, kinds)])
        elif kind in TWO:
            below = (
                PLAIN if kind == "soon" else kinds
            )  # whose lines share a tree, which nobody joins others in meanwhile
            found.append([kind, drawn(dice, depth + 1, 2, below), drawn(dice, depth + 1, 2, below)])
        elif kind == "agent":
            found.append([kind, dice.choice(["coder", "helped"])])
        else:
            found.append([kind, name])
    return found


class Player:
    """Plays such a flow, and notes what its steps really did."""

    def __init__(self) -> None:
        self.did: Counter[str] = Counter()
        self.below = gitgate.flow(name="below")(self.play)

        @gitgate.flow
        async def beside(*parts: Ops) -> list[Any]:
            return list(await asyncio.gather(*(gitgate.soon(self.play, part) for part in parts)))

        self.beside = beside

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
        if kind == "agent":
            return gitgate.run(what[0], "do it").status
        return self.more(kind, *what)

    def more(self, kind: str, *what: Any) -> Any:
        """What has parts."""
        if kind == "loop":
            return [self.play(what[1]) for _ in range(what[0])]
        if kind == "branch":
            return self.play(what[0] if gitgate.random() < 0.5 else what[1])
        if kind == "child":
            return self.below(what[0])
        if kind == "soon":
            return self.beside(*what)
        together = gitgate.parallel if kind == "both" else gitgate.first
        return together(lambda: self.play(what[0]), lambda: self.play(what[1]))

    def note(self, name: str) -> str:
        self.did[gitgate.step_id()] += 1
        return name

    def fails(self, name: str) -> None:
        self.did[gitgate.step_id()] += 1
        raise ValueError(name)


class Family(dict[str, Run]):
    """The runs of one flow: those in which it started afresh, and those that they have called."""

    def meant(self, ops: Ops, run: Run, branch: Branch) -> list[Any]:
        """What such a flow comes to, without any engine: only which way it took is looked up."""
        return [meant_by(self, run, branch, *op) for op in ops]

    def called(self, run: Run, step: str) -> Run:
        return self[run.steps[step].begun.text("run")]

    @property
    def lost(self) -> set[tuple[str, str]]:
        """The steps that count no more, because another branch was first; those of the runs that they are as well."""
        found = set()
        for run in self.values():
            races = {
                step.id: step for step in run.steps.values() if step.id.endswith("/winner#1") and step.ended
            }
            for step in run.steps.values():
                for race, won in races.items():
                    path = race.removesuffix("winner#1")
                    assert won.ended is not None
                    line = step.id.removeprefix(path).partition("/")[0]
                    if (
                        step.id.startswith(path)
                        and line.isdigit()
                        and int(line) != won.ended.said["result"]["winner"]
                    ):
                        found.add((run.id, step.id))
        while more := {
            (run.id, step)
            for run in self.values()
            for step in run.steps
            if run.called_by in found and (run.id, step) not in found
        }:
            found |= more
        return found


def meant_by(family: Family, run: Run, branch: Branch, kind: str, *what: Any) -> Any:
    meant = family.meant
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
    if kind == "child":
        return meant(what[0], family.called(run, branch.next("flow", "below")), Branch())
    if kind == "soon":
        below = family.called(run, branch.next("flow", "beside"))
        return [meant(part, below, Branch(f"soon#{number + 1}")) for number, part in enumerate(what)]
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
        self.family: list[HeldRun] = []
        """All that this process holds: the run, those that it has called, the one in which it starts afresh."""
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
            die(*self.family)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        faults = self

        def play(held: HeldRun, *given: Any) -> Any:
            faults.held = held
            try:
                return faults.plain_play(held, *given)
            finally:
                faults.held = None

        def holding(plain: Any) -> Any:
            def hold(*args: Any) -> Any:
                found = plain(*args)
                if found is not None:
                    faults.family.append(found)
                if any(held.lost == DEAD for held in faults.family):  # meanwhile, in another line
                    die(*faults.family)
                return found

            return hold

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

        patch.setattr(HeldRun, "append", append)
        patch.setattr(Refs, "update", update)
        patch.setattr(program, "play", play)
        for name in ("claim_run", "own_claim"):
            patch.setattr(journal, name, holding(getattr(journal, name)))
        self.install_beside(patch)

    def install_beside(self, patch: pytest.MonkeyPatch) -> None:
        faults = self

        plain_check = HeldRun.check_held

        def check_held(held: HeldRun) -> None:
            if (
                held.lost == DEAD
            ):  # nobody of a dead process notices that it lost the run, and gives back what it holds
                raise Crash
            plain_check(held)

        patch.setattr(HeldRun, "check_held", check_held)

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
        patch.setattr("gitgate.flows.ask", ask)
        patch.setattr(process, "begin", begin)


def one_flow(bench: FlowBench, actors: Actors, seed: int) -> Mapping[str, int]:
    """Draw a flow, drive it to its end through its crashes, and hold what came of it to what it means."""
    dice = random.Random(seed)  # noqa: S311 - drawn again by its seed
    parts, player = [drawn(dice) for _ in range(dice.choice([1, 1, 2]))], Player()

    @gitgate.flow(name=f"flow{seed}")
    def flow(number: int, before: list[Any]) -> list[Any]:
        found = [*before, *player.play(parts[number])]
        if number + 1 < len(parts):
            gitgate.again(number + 1, found)
        return found

    for log in actors.folder.glob("*.log"):
        log.unlink()
    faults = Faults(dice, dice.choice([0.01, 0.05, 0.15]))
    crashes = faults.crashes
    with pytest.MonkeyPatch.context() as patch:
        faults.install(patch)
        own = driven(bench, flow, seed, faults)
    family = family_of(bench, own)
    came: list[Any] = []
    for number, run in enumerate(own):
        assert run.end is not None
        assert run.end.name == "completed", (seed, run.end, crashes)
        came += family.meant(parts[number], run, Branch())
    assert run.end is not None
    assert run.end.said["result"] == came, (seed, parts, crashes)
    hold_all(bench, actors, family, player, seed, crashes)
    bench.close()
    steps, events = (
        sum(len(run.steps) for run in family.values()),
        sum(len(run.events) for run in family.values()),
    )
    return {"crashes": len(crashes), "runs": len(family), "steps": steps, "events": events}


def family_of(bench: FlowBench, roots: Sequence[Run]) -> Family:
    found = Family({run.id: run for run in roots})
    runs = [bench.load(ref[15:]) for ref in bench.clone.refs("refs/hitl/runs")]
    while more := {run.id: run for run in runs if run.called_by[0] in found and run.id not in found}:
        found.update(more)
    return found


def driven(bench: FlowBench, flow: Any, seed: int, faults: Faults) -> list[Run]:
    """To its end, through its crashes: the run, and those in which it started afresh."""
    last: object = None
    others = threading.enumerate()
    for _ in range(400):
        runs = [bench.load(ref[15:]) for ref in bench.clone.refs("refs/hitl/runs")]
        own = sorted(
            (run for run in runs if run.flow == f"flow{seed}"),
            key=lambda run: run.started.text("after") != "",
        )
        going = [run for run in own if not run.closed]
        if own and not going:
            return own
        faults.driving = True
        try:
            ended = bench.again(flow, going[0].id) if own else bench.begin(flow, 0, [])
        except (Crash, Conflict) as died:
            last = died
        else:
            last = ended
            faults.driving = False
            answer_all(ended.gates)
        faults.driving = False
        threads_end(others)
        faults.family.clear()
        bench.close()
    raise AssertionError(f"seed {seed}: it comes to no end: {last!r}, {bench.lines[-4:]}")


def threads_end(others: Collection[threading.Thread]) -> None:
    """A dead process has no threads: those of lines that were not awaited any more end before the next one begins."""
    for thread in set(threading.enumerate()) - set(others):
        thread.join(30)
        assert not thread.is_alive(), thread


def answer_all(gates: Iterable[str]) -> None:
    for gate in gates:
        shown = gitgate.show(gate)
        if shown.state == "awaiting" and shown.title.startswith("On with"):
            gitgate.respond(gate, approve=True, resume=False)
        elif shown.state == "awaiting":
            gitgate.respond(gate, "words", resume=False)


def hold_all(
    bench: FlowBench, actors: Actors, family: Family, player: Player, seed: int, crashes: list[str]
) -> None:
    """No step lost, none doubled but what may be; each agent in one session and its work there, each question asked once."""
    lost, every = family.lost, [(run, step) for run in family.values() for step in run.steps.values()]
    for run in family.values():
        ended = {
            step.id for step in run.steps.values() if step.ended and step.ended.said.get("error") == LOST
        }
        assert ended <= {step for of, step in lost if of == run.id}, (seed, run.id, ended)
        hold(run, player, {step for of, step in lost if of == run.id}, seed, crashes)
    agents = [
        (step.begun.text("session"), (run.id, step.id) in lost) for run, step in every if step.kind == "run"
    ]
    log = actors.folder / "starts.log"
    lines = [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []
    started = Counter(session for how, _, session in lines if how == "start")
    assert set(started.values()) <= {1}, (seed, started, crashes)
    assert {session for _, _, session in lines} <= {session for session, _ in agents}
    for session, of_loser in agents:
        there = (bench.clone.path / f"did-{session}").exists()
        assert there != of_loser, (seed, session, of_loser, crashes)
    assert not bench.clone.git("for-each-ref", "refs/gitgate/+branches"), seed
    assert len(bench.clone.git("worktree", "list").splitlines()) == 1, seed


def hold(run: Run, player: Player, lost: Collection[str], seed: int, crashes: list[str]) -> None:
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
    told = {gate for step in run.steps.values() if step.id not in lost for gate in step.gates}
    assert len(told) == len([key for key in keys if not of_any(key.partition("/")[2], lost)]), (seed, keys)


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
    text = text.replace(plain, '[ "$how" = resume ] && number=1')
    # What each did has to be where the run is, in the end.
    script.write_text(text.replace("cd ", f"{WRITES}cd ", 1))
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
        if told["flows"] % CLEAN_EVERY == 0:
            for ref in bench.clone.refs("refs/hitl"):
                bench.clone.git("update-ref", "-d", ref)
            bench.clone.git("clean", "-fdq")
    with capsys.disabled():
        sys.stderr.write(f"{dict(told)}\n")
    assert told["crashes"] > told["flows"]
