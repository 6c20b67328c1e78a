"""Flows: testing one's own: agents and people that are written down, crashes at every step, and recorded runs against new code."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate import testing
from gitgate.errors import Usage
from gitgate.flows.engine import Engine
from support import PATIENCE
from support.flowing import FlowBench

CODER = [
    {"status": "NEEDS_HUMAN", "reason": "Which authentication?"},
    {"status": "DONE", "summary": "did it"},
]
SAID = {"Which authentication?": "OAuth2", "Merge it?": True, "Where?": "Staging"}


@gitgate.flow
def feature(task: str) -> dict[str, Any]:
    coder = gitgate.run("coder", task)
    if not (word := gitgate.pause("Merge it?")):
        gitgate.stuck(word.reason)
    where = gitgate.ask("Where?", options=["Production", "Staging"], wait=True)
    return {"summary": coder.summary, "where": where.answer.value if where.answer else None}


@pytest.mark.slow
def test_a_flow_is_played_with_agents_and_people_that_are_written_down() -> None:
    """No process of theirs is started; who did what, and what was asked, is told."""
    played = testing.play(feature, "a login page", agents={"coder": CODER}, people=SAID)
    assert played.result == {"summary": "did it", "where": "Staging"}
    assert played.starts == ("start coder", "resume coder")
    assert played.asked == ("Which authentication?", "Merge it?", "Where?")
    assert "OAuth2" in played.told["coder"]
    assert played.steps == ("run:coder#1", "pause:_checkpoint#1", "ask#1")


@pytest.mark.slow
def test_the_tests_of_the_page_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `docs/flows.md` has them, with its first flow."""
    page = (Path(__file__).parents[2] / "docs" / "flows.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```python\n")[1:]]
    flow, tests = blocks[0], next(block for block in blocks if "testing" in block)
    (tmp_path / "flows.py").write_text(flow)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "flows", raising=False)
    names: dict[str, Any] = {}
    exec(compile(tests, "flows.md", "exec"), names)  # noqa: S102 - our own page
    sys.modules.pop("flows", None)
    found = [names[name] for name in names if name.startswith("test_")]
    assert len(found) == 2
    for test in found:
        test()


@pytest.mark.slow
def test_people_may_be_a_list_a_function_or_nobody() -> None:
    """A word with it is a note; where nobody answers, the run waits."""
    no = testing.play(feature, "x", people=[(False, "not on a Friday")])
    assert (no.status, no.reason) == ("stuck", "not on a Friday")
    with pytest.raises(gitgate.RunStuck, match="Friday"):
        _ = no.result
    asked: list[tuple[str, list[str]]] = []

    def people(prompt: str, options: list[str]) -> object:
        asked.append((prompt, options))
        return "Production" if options else True

    assert testing.play(feature, "x", people=people).result["where"] == "Production"
    assert asked == [("Merge it?", []), ("Where?", ["Production", "Staging"])]
    waits = testing.play(feature, "x", people={"Merge it?": None})
    assert (waits.status, waits.asked) == ("waiting_human", ("Merge it?",))


@pytest.mark.slow
def test_agents_may_be_functions_and_may_fail() -> None:
    """A function is told what the agent is told; an error is one that the agent ends with."""
    told: list[str] = []

    def coder(prompt: str) -> str:
        told.append(prompt)
        return "all done"

    assert testing.play(feature, "the task", agents={"coder": coder}).result["summary"] == "all done"
    assert told == ["the task"]
    failed = testing.play(feature, "x", agents={"coder": OSError("no network")})
    assert (failed.status, "no network" in failed.reason) == ("failed", True)
    with pytest.raises(Usage, match="expected a flow"):
        testing.play(len, "x")  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_is_killed_at_every_step() -> None:
    """Before each event is written, and after: the result is the same, each agent starts once, each person is asked once."""
    places = []
    for crash in gitgate.testing.crashes(feature, "x", agents={"coder": CODER}, people=SAID):
        places.append(crash.crash)
        assert crash.result == {"summary": "did it", "where": "Staging"}, crash.crash
        assert sorted(crash.starts) == ["resume coder", "start coder"], crash.crash
        assert sorted(crash.asked) == sorted(SAID), crash.crash
        assert crash.doubted == (), crash.crash
    for place in (
        "before begun of run:coder#1",
        "after asked of run:coder#1",
        "before waiting",
        "after completed",
    ):
        assert place in places


def planned() -> gitgate.Flow:
    """A plan that is made anew until a person takes it, by an agent that is told what they said."""
    return gitgate.Flow(
        gitgate.Phase(
            agent="planner",
            human=gitgate.Human(lambda s: f"Approve {s.plan}?"),
            next=lambda s: "execute" if s.approved else "planner",
        ),
        gitgate.Phase("execute", agent=lambda s: {"did": s.plan}, terminal=True, retry=True),
    )


@gitgate.flow
def reviewed(task: str) -> list[str]:
    """Two at once, each with a question of its own, until the reviewer is content."""

    def one(name: str) -> str:
        said = gitgate.run(name, task).summary
        return f"{said} {bool(gitgate.pause(f'Take what {name} did?'))}"

    content, both = False, []
    while not content:
        both = gitgate.parallel(lambda: one("left"), lambda: one("right"))
        content = gitgate.run("reviewer").status == "APPROVED"
    return [str(came) for came in both]


@pytest.mark.slow
def test_phases_are_killed_at_every_step() -> None:
    """What a person said reaches the agent once; the plan that was refused is not asked about again."""
    agents = {"planner": [{"plan": "A"}, {"plan": "B"}]}
    for crash in testing.crashes(planned(), "x", agents=agents, people={"A?": (False, "shorter")}):
        assert crash.result["did"] == "B", crash.crash
        assert crash.starts == ("start planner", "start planner"), crash.crash
        assert crash.asked == ("Approve A?", "Approve B?"), crash.crash
        assert "shorter" in crash.told["planner"], crash.crash


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_branches_are_killed_at_every_step() -> None:
    """Both wait together; each agent of each round starts once, each person is asked once."""
    agents: dict[str, Any] = {
        "left": {"status": "DONE", "summary": "left"},
        "right": {"status": "DONE", "summary": "right"},
        "reviewer": [{"status": "CHANGES"}, {"status": "APPROVED"}],
    }
    for crash in testing.crashes(reviewed, "x", agents=agents):
        assert crash.result == ["left True", "right True"], crash.crash
        names = ("left", "left", "reviewer", "reviewer", "right", "right")
        assert sorted(crash.starts) == [f"start {name}" for name in names], crash.crash
        assert len(crash.asked) == 4, crash.crash
        assert crash.doubted == (), crash.crash


@pytest.mark.slow
def test_what_may_happen_twice_is_told() -> None:
    """A step that was cut off may have been done. One that says how to find out is not doubted."""
    charged: dict[str, int] = {}

    def charge() -> str:
        charged[gitgate.step_id()] = charged.get(gitgate.step_id(), 0) + 1
        return "charged"

    @gitgate.flow
    def unprotected() -> str:
        return gitgate.step(charge)

    @gitgate.flow
    def probed() -> str:
        return gitgate.step(charge, done=lambda: "charged" if gitgate.step_id() in charged else None)

    doubted = {crash.crash: crash.doubted for crash in testing.crashes(unprotected)}
    assert doubted["before done of step:charge#1"] == ("step:charge#1",)
    assert doubted["before begun of step:charge#1"] == ()
    charged.clear()
    for crash in testing.crashes(probed):
        assert (crash.result, crash.doubted) == ("charged", ())
    assert set(charged.values()) == {1}


def test_a_recorded_run_is_held_against_the_code_as_it_is(bench: FlowBench) -> None:
    """The same, as far as it is recorded; or where it parts. Nothing is done, asked or written."""
    did: list[str] = []

    def flow_of(*names: str, result: str = "done") -> Any:
        @gitgate.flow(name="feature")
        def made() -> str:
            for name in names:
                gitgate.step(lambda: did.append("x"), name=name)
            gitgate.pause("Go on?")
            return result

        return made

    waits = bench.begin(flow_of("a", "b"))
    before = bench.load(waits.id).tip
    assert testing.replay(flow_of("a", "b"), waits.id).same
    assert testing.replay(flow_of("a", "b"), waits.id[:6]).status == "same"
    other = testing.replay(flow_of("a", "c"), waits.id)
    assert (other.status, "step:b#1" in other.reason, "step:c#1" in other.reason) == ("diverged", True, True)
    assert testing.replay(flow_of("a"), waits.id).status == "diverged"
    gitgate.respond(waits.gates[0], approve=True, resume=False)
    assert bench.again(flow_of("a", "b"), waits.id).value == "done"
    assert testing.replay(flow_of("a", "b"), waits.id).value == "done"
    changed = testing.replay(flow_of("a", "b", result="other"), waits.id)
    assert "it gave 'done', and gives 'other' now" in changed.reason
    assert testing.replay(flow_of("a", "b", "c"), waits.id).status == "diverged"
    assert did == ["x", "x"]
    assert before in [entry.commit for entry in bench.load(waits.id).events]


def test_a_flow_that_ends_before_its_record_does_has_diverged(bench: FlowBench) -> None:
    """It is not taken for completed: what was done beyond it nobody would know of. In a branch as well."""

    def flow_of(count: int, *, branch: bool) -> Any:
        def steps() -> None:
            for number in range(count):
                gitgate.step(lambda: 1, name=f"s{number}")

        @gitgate.flow(name="feature")
        def made() -> None:
            gitgate.parallel(steps) if branch else steps()
            if count == 2:
                gitgate.pause("Go on?")

        return made

    for branch in (False, True):
        waits = bench.begin(flow_of(2, branch=branch))
        ended = bench.again(flow_of(1, branch=branch), waits.id)
        assert (ended.status, "to end" in ended.reason) == ("stalled", True)


def test_a_run_that_cannot_be_let_go_leaves_nobody_waiting(
    bench: FlowBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last branch ends, and the others wait for people: where that cannot be recorded, all of them hear of it."""

    def fails(_: Engine) -> None:
        raise OSError("no space left on the device")

    monkeypatch.setattr(Engine, "all_wait", fails)

    @gitgate.flow
    def several() -> None:
        gitgate.parallel(
            lambda: gitgate.ask("What?", wait=True),
            lambda: gitgate.step(lambda: time.sleep(0.3), name="late"),
        )

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(bench.begin(several)), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    (ended,) = found
    assert (ended.status, "no space" in ended.reason) == ("failed", True)
