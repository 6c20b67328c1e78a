"""A flow that another one calls: a run of its own, which is a step of the other."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate import testing
from gitgate.acts import find_gate
from gitgate.claims import ClaimLost
from gitgate.context import Desk, open_desk
from gitgate.errors import Usage
from gitgate.flows import program
from gitgate.flows.engine import current
from gitgate.flows.journal import load_run, stop_run
from gitgate.flows.program import FlowFunction
from gitgate.record.runs import Run
from gitgate.store.git import Git
from gitgate.store.git.refs import RUNS
from support import PATIENCE
from support.flowing import Actors, FlowBench, killed_command, was_killed
from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = pytest.mark.timeout(900)  # some kill a run at each of its events

FLOWS = """
import gitgate


@gitgate.flow
def inner(word: str) -> str:
    gitgate.run("coder", word)
    try:
        said = gitgate.pause(f"{word}?")
    finally:
        open("PLACE", "a").write(f"inner {word}\\n")
    if not said:
        gitgate.stuck(said.reason)
    return word.upper()


@gitgate.flow
def outer(words: str) -> str:
    try:
        found = [inner(word) for word in words.split()]
    except gitgate.GateError as stopped:
        found = [stopped.message]
    finally:
        open("PLACE", "a").write("outer\\n")
    gitgate.run("closer")
    return " ".join(found)
"""
DONE = {"status": "DONE", "summary": "did it"}


@gitgate.flow
def inner(word: str) -> str:
    gitgate.run("coder", word)
    if not gitgate.pause(f"{word}?"):
        gitgate.stuck("no")
    return word.upper()


@gitgate.flow
def outer(words: list[str]) -> list[str]:
    gitgate.note("begins")
    found = [inner(word) for word in words]
    gitgate.run("closer")
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "finally.log"


@pytest.fixture
def flows(repo: Clone, actors: Actors, log: Path) -> Actors:
    repo.commit(**{"flows.py": FLOWS.replace("PLACE", str(log))})
    actors.says("coder", DONE)
    actors.says("closer", DONE)
    return actors


def answer(gate: str, said: bool) -> None:
    gitgate.respond(gate, approve=said, reject=not said, resume=False)


def runs_in(stage: testing.Stage) -> dict[str, Run]:
    desk = open_desk(stage.place, stage.env)
    try:
        found = {ref.removeprefix(RUNS) for ref in desk.refs.under(RUNS)}
        return {run: load_run(desk, run) for run in found}
    finally:
        desk.close()


def child_of(runs: dict[str, Run], flow: str) -> Run:
    (found,) = (run for run in runs.values() if run.flow == flow)
    return found


def listed(cli: Command, **how: Any) -> dict[str, dict[str, Any]]:
    """The runs by their flows."""
    return {run["flow"]: run for run in cli("list", "--runs", "--json", code=0, **how).json["runs"]}


# replays


@pytest.mark.slow
def test_it_is_killed_at_each_event() -> None:
    """Of both journals. Each agent is started once, each person asked once, the result is the same."""
    count = 0
    for crash in testing.crashes(outer, ["a", "b"]):
        count += 1
        assert crash.result == ["A", "B"], crash.crash
        assert crash.starts == ("start coder", "start coder", "start closer"), crash.crash
        assert sorted(crash.asked) == ["a?", "b?"], crash.crash
        assert crash.steps == ("note#1", "flow:inner#1", "flow:inner#2", "run:closer#1")
    assert count == 2 * 24


@pytest.mark.slow
def test_one_is_killed_at_each_event() -> None:
    """The same of one that is called once, and calls another."""

    @gitgate.flow
    def middle(word: str) -> str:
        return inner(word) + "!"

    @gitgate.flow
    def top(word: str) -> str:
        return middle(word)

    for crash in testing.crashes(top, "a"):
        assert crash.result == "A!", crash.crash
        assert (crash.starts, crash.asked, crash.doubted) == (("start coder",), ("a?",), ()), crash.crash


@pytest.mark.slow
def test_several_at_once_are_killed_at_each_event() -> None:
    """Both wait together, and each goes on with its own answer."""

    @gitgate.flow
    def ask(word: str) -> str:
        return word if gitgate.pause(f"{word}?") else f"not {word}"

    @gitgate.flow
    def both() -> list[str]:
        return gitgate.parallel(lambda: ask("a"), lambda: ask("b"))

    people = {"a?": True, "b?": False}
    for crash in testing.crashes(both, people=people):
        assert crash.result == ["a", "not b"], crash.crash
        assert sorted(crash.asked) == ["a?", "b?"], crash.crash
        assert sorted(crash.steps) == ["parallel#1/0/flow:ask#1", "parallel#1/1/flow:ask#1"]


def test_a_run_and_its_step_name_each_other() -> None:
    with testing.stage() as stage:
        played = stage.play(outer, ["a"])
        runs = runs_in(stage)
    child = child_of(runs, "inner")
    step = runs[played.id].steps["flow:inner#1"]
    assert (step.kind, step.begun.text("run")) == ("flow", child.id)
    assert runs[played.id].children == [child.id]
    assert child.called_by == (played.id, "flow:inner#1")
    assert (child.state, child.end.said["result"] if child.end else None) == ("completed", "A")
    assert list(child.steps) == ["run:coder#1", "pause:_checkpoint#1"]
    assert all(run.closed for run in runs.values())


@pytest.mark.slow
def test_an_error_is_the_steps_error() -> None:
    """The class and the words are the same in the first replay and in each later one."""
    caught: list[tuple[str, str]] = []

    @gitgate.flow
    def fails() -> None:
        gitgate.note("fails")
        raise LookupError("there is no such thing")

    @gitgate.flow
    def catches() -> str:
        try:
            fails()
        except LookupError as failed:
            caught.append((type(failed).__name__, str(failed)))
        return "went on" if gitgate.pause("Go on?") else "no"

    for crash in testing.crashes(catches):
        assert crash.result == "went on", crash.crash
    assert set(caught) == {("LookupError", "there is no such thing")}
    with testing.stage() as stage:
        ended = stage.play(fails)
        assert (ended.status, ended.error["message"]) == ("failed", "there is no such thing")


def test_one_that_is_stuck_ends_all() -> None:
    """As `stuck` ends its run whatever flow says it; the run that called it says the same reason."""
    with testing.stage() as stage:
        played = stage.play(outer, ["a"], people=[False])
        child = child_of(runs_in(stage), "inner")
    assert (played.status, played.reason) == ("stuck", "no")
    assert (child.state, child.end.text("reason") if child.end else "") == ("stuck", "no")


@pytest.mark.slow
def test_one_that_is_stuck_is_killed_at_each_event() -> None:
    for crash in testing.crashes(outer, ["a"], people=[False]):
        assert (crash.status, crash.reason) == ("stuck", "no"), crash.crash


@pytest.mark.slow
def test_calls_go_eight_levels_deep() -> None:
    @gitgate.flow
    def deep(level: int) -> int:
        return 1 + (deep(level - 1) if level > 1 else 0)

    assert testing.play(deep, 8).result == 8
    with pytest.raises(Usage, match="8 levels deep; expected at most 7"):
        assert testing.play(deep, 9).result


@pytest.mark.slow
def test_it_works_in_the_tree_of_its_branch() -> None:
    """And what it did there is joined with the rest."""
    seen: dict[str, str] = {}

    @gitgate.flow
    def writes(name: str) -> None:
        gitgate.run(name)
        seen[name] = str(gitgate.workdir())
        gitgate.pause(f"{name}?")

    @gitgate.flow
    def both() -> None:
        gitgate.parallel(lambda: writes("a"), lambda: writes("b"))

    def agent(name: str) -> Callable[[str, Path], dict[str, str]]:
        def act(_prompt: str, place: Path) -> dict[str, str]:
            (place / f"{name}.txt").write_text(name)
            return DONE

        return act

    with testing.stage() as stage:
        git = Git(stage.place, stage.env)
        (stage.place / "base.txt").write_text("base")
        git.run("add", "-A")
        git.run("commit", "-q", "--no-verify", "-m", "Begin")
        assert stage.play(both, agents={"a": agent("a"), "b": agent("b")}).status == "completed"
        assert len({seen["a"], seen["b"], str(stage.place)}) == 3
        open_yet = [one for one in gc.get_objects() if isinstance(one, Desk) and one._records is not None]
        assert [str(desk.repo.place) for desk in open_yet if str(desk.repo.place) in seen.values()] == []
        assert sorted(path.name for path in stage.place.glob("*.txt")) == ["a.txt", "b.txt", "base.txt"]
        assert len(git.text("worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_the_loser_of_a_race_is_stopped() -> None:
    """What it asks is taken back, with the run that asks it."""

    @gitgate.flow
    def slow() -> str:
        return "slow" if gitgate.pause("Slow?") else "no"

    @gitgate.flow
    def race() -> str:
        return str(gitgate.first(slow, lambda: gitgate.step(lambda: "quick", name="quick")))

    with testing.stage() as stage:
        for crash in stage.crashes(race, people=lambda *_: None):
            assert crash.result == "quick", crash.crash
        lost = [run for run in runs_in(stage).values() if run.flow == "slow"]
        assert {run.state for run in lost} == {"stopped"}
        desk = open_desk(stage.place, stage.env)
        gates = [gate for run in lost for step in run.steps.values() for gate in step.gates]
        assert {
            desk.records.load(gate, str(desk.refs.get(f"refs/hitl/open/{gate}"))).state for gate in gates
        } <= {"withdrawn"}
        desk.close()


@pytest.mark.slow
def test_it_starts_afresh_within_its_step() -> None:
    @gitgate.flow
    def counts(number: int) -> int:
        if number < 3:
            gitgate.again(number + 1)
        return number if gitgate.pause("Enough?") else 0

    @gitgate.flow
    def caller() -> int:
        return counts(1)

    for crash in testing.crashes(caller):
        assert (crash.result, crash.asked) == (3, ("Enough?",)), crash.crash


@pytest.mark.slow
def test_it_sleeps_and_receives() -> None:
    """Its signals are its own, and the run above waits with it."""

    @gitgate.flow
    def waits() -> str:
        gitgate.sleep("1h")
        got = gitgate.receive("built")
        return str(got.value) if got else "nothing"

    @gitgate.flow
    def caller() -> str:
        return waits()

    for crash in testing.crashes(caller, signals={"built": ["v1"]}):
        assert crash.result == "v1", crash.crash


@pytest.mark.slow
def test_async_flows_call_flows() -> None:
    @gitgate.flow
    async def ask(word: str) -> Any:
        return word if await gitgate.soon(gitgate.pause, f"{word}?") else "no"

    @gitgate.flow
    async def both() -> list[Any]:
        return list(await asyncio.gather(gitgate.soon(ask, "a"), gitgate.soon(ask, "b")))

    for crash in testing.crashes(both):
        assert crash.result == ["a", "b"], crash.crash
        assert sorted(crash.asked) == ["a?", "b?"], crash.crash


@pytest.mark.slow
def test_phases_call_flows_and_flows_phases() -> None:
    """A flow is a step already: nobody is asked whether it was done."""

    @gitgate.flow
    def plan(state: dict[str, Any]) -> dict[str, str]:
        return {"plan": f"{state['input']}!" if gitgate.pause("Plan?") else "none"}

    phases = gitgate.Flow(gitgate.Phase("planner", agent=plan), name="phased")

    @gitgate.flow
    def caller() -> str:
        return f"{phases('x').plan} {gitgate.step(inner, 'y')}"

    for crash in testing.crashes(caller):
        assert crash.result == "x! Y", crash.crash
        assert (sorted(crash.asked), crash.doubted) == (["Plan?", "y?"], ()), crash.crash
        assert crash.steps == ("flow:phased#1", "flow:inner#1")


def test_input_and_result_are_json() -> None:
    @gitgate.flow
    def gives(_what: object) -> object:
        return (1, 2)

    @gitgate.flow
    def caller(what: str) -> object:
        return gives({"what": (what,)} if what else object())

    assert testing.play(caller, "x").result == [1, 2]
    assert "input is JSON" in testing.play(caller, "").reason or "input is JSON" in str(
        testing.play(caller, "").error["message"]
    )


def test_a_run_from_before_keeps_its_branches(bench: FlowBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a call was a branch, it is one to the end of that run; nothing diverges, and its fork is like it."""
    with monkeypatch.context() as before:
        before.setattr(program, "HAS_CHILDREN", {})
        waits = bench.begin(outer_asks)
    answer(waits.gates[0], True)
    waits = bench.again(outer_asks, waits.id)
    assert waits.status == "waiting_human"
    answer(waits.gates[0], True)
    assert bench.again(outer_asks, waits.id).value == ["a", "b"]
    branches = {step.branch for step in bench.load(waits.id).steps.values()}
    assert branches == {"flow:asks#1/0", "flow:asks#2/0"}
    assert bench.load(waits.id).children == []


@gitgate.flow
def asks(word: str) -> str:
    return word if gitgate.pause(f"{word}?") else "no"


@gitgate.flow
def outer_asks() -> list[str]:
    return [asks("a"), asks("b")]


# held against the code


@pytest.mark.slow
def test_a_recorded_one_is_held_against_the_code() -> None:
    """Of the run that called it and of an exported history; what the child's code changes is found there."""

    def flows(extra: bool) -> FlowFunction[..., Any]:
        @gitgate.flow(name="below")
        def below(word: str) -> str:
            if extra:
                gitgate.note("new")
            return word if gitgate.pause(f"{word}?") else "no"

        @gitgate.flow(name="above")
        def above() -> str:
            return below("a")

        return above

    with testing.stage() as stage:
        played = stage.play(flows(extra=False))
        child = child_of(runs_in(stage), "below").id
        file = testing.export(played.id, "above.bundle", directory=stage.place)
        for run in (played.id, file):
            assert testing.replay(flows(extra=False), run, directory=stage.place).same
            other = testing.replay(flows(extra=True), run, directory=stage.place)
            assert (other.status, child in other.reason) == ("diverged", True)


# from the command line


@pytest.mark.slow
def test_the_answer_to_a_child_goes_on_with_the_root(flows: Actors, cli: Command, log: Path) -> None:
    """Both wait; neither's `finally` sees it; the child's id goes on with the run that called it."""
    told = cli("run", "flows.py:outer", "a b", "--json", code=8).json
    assert not log.exists()
    runs = listed(cli)
    root, child = runs["outer"], runs["inner"]
    assert (root["id"], root["status"], child["status"]) == (told["id"], "waiting_human", "waiting_human")
    assert root["gates"] == child["gates"] != []
    assert (root["parent"], root["children"]) == (None, [child["id"]])
    assert child["parent"] == {"run": root["id"], "step": "flow:inner#1"}
    shown = cli("show", root["id"], "--json", code=0).json
    assert [step["run"] for step in shown["steps"]] == [child["id"]]
    assert f"step flow:inner#1 of run {root['id']}" in cli("show", child["id"], code=0).out
    tree = cli("tree", root["id"], code=0).out
    assert f"run {child['id']}" in tree
    assert "run:coder#1" in tree
    gate = cli("show", child["gate"], "--json", code=0).json
    assert gate["run"] == {"id": child["id"], "flow": "inner", "step": "pause:_checkpoint#1"}
    assert "is a step of run" in cli("run", child["id"], "--from", "pause:_checkpoint#1", code=2).err
    answer(child["gate"], True)
    again = cli("resume", child["id"], "--json", code=8).json
    assert (again["id"], again["status"]) == (root["id"], "waiting_human")
    answer(again["gate"], True)
    assert cli("resume", root["id"], code=0).out == "A B\n"
    assert log.read_text() == "inner a\ninner b\nouter\n"
    assert flows.starts == ["start coder", "start coder", "start closer"]
    assert {run["status"] for run in listed(cli).values()} == {"completed"}
    cli("verify", code=0)


@pytest.mark.slow
def test_a_stop_ends_both(flows: Actors, cli: Command) -> None:
    root = cli("run", "flows.py:outer", "a", "--json", code=8).json["id"]
    cli("stop", root, "--reason", "not wanted", code=0)
    told = {flow: (run["status"], run["reason"]) for flow, run in listed(cli).items()}
    assert told == {
        "outer": ("stopped", "not wanted"),
        "inner": ("stopped", "its run was stopped: not wanted"),
    }
    assert cli("list", "--awaiting", "--json", code=0).json["gates"] == []
    assert flows.starts == ["start coder"]


@pytest.mark.slow
def test_a_child_that_is_stopped_is_its_steps_error(flows: Actors, cli: Command) -> None:
    """The run that called it is told when it goes on, and may go on without it."""
    root = cli("run", "flows.py:outer", "a", "--json", code=8).json["id"]
    child = listed(cli)["inner"]["id"]
    assert f"git gate resume {root[:6]}" in cli("stop", child, "--reason", "not this", code=0).err
    assert cli("list", "--awaiting", "--json", code=0).json["gates"] == []
    assert cli("resume", root, code=0).out == f"run {child} of flow inner was stopped: not this\n"
    error = cli("show", root, "--json", code=0).json["steps"][0]["error"]
    assert error["class"].endswith(f":{gitgate.ChildStopped.__name__}")


@pytest.mark.slow
def test_an_agent_of_a_child_is_ended_by_a_stop_of_the_root(
    flows: Actors, repo: Clone, cli: Command, tmp_path: Path
) -> None:
    """Whoever leads both hears it, and ends the agent first."""
    beat = tmp_path / "beat"
    script = f"while true; do date +%N > {beat}; sleep 0.1; done"
    repo.git("config", "--replace-all", "gitgate.agent.coder.start", json.dumps(["sh", "-c", script]))
    running = cli.start("run", "flows.py:outer", "a")
    until(beat.exists)
    root = listed(cli)["outer"]["id"]
    assert "told to stop" in cli("stop", root, "--reason", "enough", code=0).err
    assert running.wait(PATIENCE) == 9
    running.communicate()
    assert {flow: run["status"] for flow, run in listed(cli).items()} == {
        "outer": "stopped",
        "inner": "stopped",
    }
    before = beat.read_text()
    time.sleep(0.5)
    assert beat.read_text() == before


def test_a_stop_is_heard_between_the_steps_of_a_child(bench: FlowBench) -> None:
    """It is said of the run above, whose journal nobody writes meanwhile."""
    did: list[int] = []

    def work(number: int) -> None:
        did.append(number)
        if number == 1:
            desk = bench.desk()
            runs = [load_run(desk, ref.removeprefix(RUNS)) for ref in desk.refs.under(RUNS)]
            stop_run(desk, next(run for run in runs if not run.called_by[0]), "enough")

    @gitgate.flow
    def works() -> None:
        for number in range(5):
            gitgate.step(work, number)

    @gitgate.flow
    def caller() -> None:
        works()

    ended = bench.begin(caller)
    assert (ended.status, ended.reason) == ("stopped", "enough")
    assert did in ([0, 1], [0, 1, 2])
    (child,) = bench.load(ended.id).children
    assert bench.load(child).state == "stopped"


def test_one_whose_root_is_taken_over_writes_nothing(bench: FlowBench) -> None:
    """What it asks stays asked: whoever took over goes on with it."""
    gates: list[str] = []

    @gitgate.flow
    def asks_and_goes_on() -> None:
        gates.append(gitgate.ask("Sure?").id)
        engine = current()
        assert engine is not None
        assert engine.held.above is not None
        engine.held.above.lost = "another process took over"
        gitgate.note("too late")

    @gitgate.flow
    def caller() -> None:
        asks_and_goes_on()

    with pytest.raises(ClaimLost, match="took over"):
        bench.begin(caller)
    desk = bench.desk()
    runs = [load_run(desk, ref.removeprefix(RUNS)) for ref in desk.refs.under(RUNS)]
    assert [(run.state, run.end) for run in runs] == [("running", None), ("running", None)]
    assert find_gate(desk, gates[0]).gate.state == "awaiting"


@pytest.mark.slow
def test_two_who_go_on_at_once_start_nothing_twice(flows: Actors, cli: Command) -> None:
    root = cli("run", "flows.py:outer", "a", "--json", code=8).json["id"]
    child = listed(cli)["inner"]
    answer(child["gate"], True)
    both = [cli.start("resume", run) for run in (root, child["id"])]
    codes = sorted(one.wait(60) for one in both)
    for one in both:
        one.communicate()
    assert codes == [0, 5]
    assert flows.starts == ["start coder", "start closer"]


@pytest.mark.slow
def test_a_killed_process_is_gone_on_with(flows: Actors, repo: Clone, cli: Command) -> None:
    """With SIGKILL at each event of both: its leases are its own, so that nobody waits for their end."""
    for number in range(1, 6):
        for said in flows.folder.glob("*.said"):
            said.unlink()
        (flows.folder / "starts.log").unlink(missing_ok=True)
        when = "before" if number % 2 else "after"
        assert was_killed(killed_command(repo, number, when, "run", "flows.py:outer", "a"))
        (root,) = (
            run["id"] for run in cli("list", "--runs", "--active", "--json").json["runs"] if not run["parent"]
        )
        waits = cli("resume", root, "--json", code=8).json
        answer(waits["gate"], True)
        assert cli("resume", root, code=0).out == "A\n"
        assert flows.starts == ["start coder", "start closer"]


@pytest.mark.slow
def test_another_clone_goes_on_with_it(
    flows: Actors, repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """Through a server whose hook judges both journals; what was done is not done there."""
    cli("init", "--server", "--no-resume", cwd=bare.path, code=0)
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    cli("run", "flows.py:outer", "a", "--json", code=8)
    there = clone_of(bare, "there")
    for line in repo.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        there.git("config", *line.split(" ", 1))
    cli("sync", cwd=there.path, code=0)
    runs = listed(cli, cwd=there.path)
    cli("respond", runs["inner"]["gate"], "--approve", cwd=there.path, code=0)
    assert cli("resume", runs["inner"]["id"], cwd=there.path, code=0).out == "A\n"
    assert flows.starts == ["start coder", "start closer"]
    cli("sync", code=0)
    assert {run["status"] for run in listed(cli).values()} == {"completed"}
    assert bare.refs("refs/hitl/leases") == {}
    assert json.loads(cli("verify", "--json", code=0).out)["problems"] == []


RECEIVES = """
import gitgate


@gitgate.flow
def built() -> str:
    return str(gitgate.receive("built", timeout="1d").value)


@gitgate.flow
def release() -> str:
    return built()


@gitgate.flow
def odd():
    gitgate.step(lambda: {1, 2}, name="odd")
"""


@pytest.mark.slow
def test_it_is_said_which_run_a_signal_is_for(repo: Clone, cli: Command) -> None:
    """The one that receives it; and a run that fails by a rule of ours says what to do instead."""
    repo.commit(**{"flows.py": RECEIVES})
    waits = cli("run", "flows.py:release", "--json", code=8)
    (below,) = cli("show", waits.json["id"], "--json", code=0).json["children"]
    assert f"send it: git gate signal {below[:6]} --topic built VALUE" in waits.err
    cli("signal", below, "--topic", "built", "v1", code=0)
    assert cli("resume", waits.json["id"], code=0).out == "v1\n"
    assert "\n  use a mapping, a list, text" in cli("run", "flows.py:odd", code=1).err
