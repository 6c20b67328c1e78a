"""Flows as phases: planned, conditional, dynamic, branching, human-only, refining and repeated questions; handlers; errors."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

import gitgate
from gitgate import Flow, Human, Phase
from gitgate.errors import Usage
from gitgate.flows import steps
from gitgate.flows.endings import RunWaits
from gitgate.record.runs import Run
from support.flowing import Actors, FlowBench
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

State = gitgate.FlowState


def people(*said: Any) -> tuple[Any, list[Any]]:
    """A handler that says these things in turn, and what it was asked."""
    asked: list[Any] = []
    words = iter(said)

    def approval(prompt: str) -> Any:
        asked.append(prompt)
        return next(words)

    async def choice(prompt: str, options: list[str]) -> Any:
        asked.append((prompt, options))
        return next(words)

    return SimpleNamespace(approval=approval, choice=choice), asked


class Found(BaseModel):
    label: str


def planning() -> tuple[Flow, list[Any]]:
    plans: list[Any] = []

    def planner(state: State) -> dict[str, Any]:
        said = state.human_response.feedback if state.human_response else ""
        plans.append((state.input, said))
        return {"plan": ["one", said or "two"]}

    def execute(state: State) -> dict[str, Any]:
        return {"did": state.plan}

    flow = Flow(
        Phase(
            agent=planner,
            human=Human(lambda s: "Approve plan?\n" + "\n".join(s.plan), "approval"),
            next=lambda s: "execute" if s.approved else "planner",
        ),
        Phase(agent=execute, terminal=True),
    )
    return flow, plans


def test_planned(repo: Clone) -> None:
    """The planner always needs approval; a no sends it back, with what the person said; a yes goes on."""
    flow, plans = planning()
    handler, asked = people((False, "three"), True)
    result = flow.run("Hello", human=handler)
    assert plans == [("Hello", ""), ("Hello", "three")]
    assert asked == ["Approve plan?\none\ntwo", "Approve plan?\none\nthree"]
    assert (result.did, result.approved) == (["one", "three"], True)
    assert result.human_response.value == "yes"


@pytest.mark.parametrize(("confidence", "asked"), [(0.4, ['Verify: "cat"?']), (0.9, [])])
def test_conditional(repo: Clone, confidence: float, asked: list[str]) -> None:
    """Asked only where the agent is not sure; None means that nobody is."""

    def classifier(state: State) -> dict[str, Any]:
        return {"label": state.input, "confidence": confidence}

    handler, were_asked = people(True)
    flow = Flow(
        Phase(
            agent=classifier,
            human=lambda _, output: (
                Human(f'Verify: "{output.label}"?', "approval") if output.confidence < 0.8 else None
            ),
            terminal=True,
        )
    )
    result = flow.run("cat", human=handler)
    assert were_asked == asked
    assert result.approved is bool(asked)
    assert (result.human_response is None) is (not asked)


def test_dynamic(repo: Clone) -> None:
    """The reviewer finds out that it needs a person; routes by its output, and by what the person said just now."""
    went: list[str] = []
    reviews: Iterator[dict[str, Any]] = iter(
        [
            {"needs_human": True, "human_prompt": "How?", "human_options": ["Redesign", "Go on"]},
            {"needs_human": False},
            {"needs_human": False, "approved": True},
        ]
    )

    def coder(state: State) -> None:
        went.append("coder")

    def planner(state: State) -> None:
        went.append("planner")

    def reviewer(state: State) -> dict[str, Any]:
        went.append("reviewer")
        return {"approved": False, **next(reviews)}

    def route(s: State, output: Any) -> str:
        if output.approved:
            return "done"
        if s.human_response and s.human_response.value == "Redesign":
            return "planner"
        return "coder"

    flow = Flow(
        Phase(agent=coder, next="reviewer"),
        Phase(
            agent=reviewer,
            human=lambda _, output: (
                Human(output.human_prompt, "choice", output.human_options) if output.needs_human else None
            ),
            next=route,
        ),
        Phase(agent=planner, next="coder"),
        Phase("done", terminal=True),
    )
    handler, asked = people("Redesign")
    result = flow.run("x", human=handler)
    assert asked == [("How?", ["Redesign", "Go on"])]
    assert went == ["coder", "reviewer", "planner", "coder", "reviewer", "coder", "reviewer"]
    assert result.approved is False, "an agent approves nothing"


@pytest.mark.parametrize(("said", "went"), [("Fast", "fast"), ("Thorough", "thorough"), ("Custom", "custom")])
def test_branching(repo: Clone, said: str, went: str) -> None:
    """A person picks an option, and other phases run."""

    def path(name: str) -> Phase:
        return Phase(f"{name}_path", agent=lambda _: {"went": name}, terminal=True)

    flow = Flow(
        Phase(
            "planner",
            agent=lambda s: {"plan": s.input},
            human=Human("Choose approach:", "choice", ["Fast", "Thorough", "Custom"]),
            next=lambda s: {"Fast": "fast_path", "Thorough": "thorough_path", "Custom": "custom_path"}[
                s.human_response.value
            ],
        ),
        path("fast"),
        path("thorough"),
        path("custom"),
    )
    assert flow.run("x", human=people(said)[0]).went == went


def test_human_only(repo: Clone) -> None:
    """A phase without an agent only asks; its type follows from its options, and the phase below is next."""
    flow = Flow(
        Phase(human=Human("What do you want to build?", options=["App", "API", "Library"])),
        Phase("planner", agent=lambda s: {"plan": f"build {s.human_response.value}"}, next="execute"),
        Phase("execute", agent=lambda s: {"did": s.plan}),
    )
    assert [phase.name for phase in flow.phases] == ["phase-1", "planner", "execute"]
    assert flow.run("x", human=people("API")[0]).did == "build API"


def test_refinement(repo: Clone) -> None:
    """The agent revises by what the person says in their own words, until they are content."""
    drafts: list[str] = []

    def writer(state: State) -> str:
        said = state.human_response
        drafts.append(said.value if said else "first")
        return f"draft {len(drafts)}"

    flow = Flow(
        Phase(
            agent=writer,
            human=Human(lambda s: f"{s.writer}: good?", options=["Good", "Other..."]),
            next=lambda s: "publish" if s.human_response.value == "Good" else "writer",
        ),
        Phase("publish", agent=lambda s: {"published": s.writer}),
    )
    handler, asked = people("shorter", "with an example", "Good")
    result = flow.run("x", human=handler)
    assert drafts == ["first", "shorter", "with an example"]
    assert asked[0] == ("draft 1: good?", ["Good", "Other…"])
    assert result.published == "draft 3"


def several() -> Flow:
    """Research, approve, write, approve, publish."""
    return Flow(
        Phase(
            "research",
            agent=lambda s: {"found": f"all of {s.input}"},
            human=Human("Is it enough?"),
            next=lambda s: "write" if s.approved else "research",
        ),
        Phase(
            "write",
            agent=lambda s: {"text": s.found.upper()},
            human=Human("Publish it?"),
            next=lambda s: "publish" if s.approved else "write",
        ),
        Phase("publish", agent=lambda s: {"published": s.text}, terminal=True),
    )


def test_several_approvals(bench: FlowBench) -> None:
    """Through gates, as people answer them: the program ends in between, and goes on; nothing is asked twice."""
    flow = several()
    events: list[Any] = []
    with pytest.raises(RunWaits) as first:
        flow.run("it", on=events.append)
    (gate,) = first.value.gates
    run = run_of(gate)
    gitgate.respond(gate, approve=True, note="well done", resume=False)
    with pytest.raises(RunWaits) as second:
        flow.resume(run, on=events.append)
    gitgate.respond(second.value.gates[0], approve=True, resume=False)
    result = flow.resume(run, on=events.append)
    assert result.published == "ALL OF IT"
    assert [(event["event"], event["phase"]) for event in events] == [
        ("agent:completed", "research"),
        ("input:requested", "research"),
        ("input:received", "research"),
        ("agent:completed", "write"),
        ("input:requested", "write"),
        ("input:received", "write"),
        ("agent:completed", "publish"),
    ]
    assert events[0]["output"] == {"found": "all of it"}
    assert events[1] == {
        "event": "input:requested", "phase": "research", "id": gate, "prompt": "Is it enough?", "type": "approval"
    }  # fmt: skip
    assert events[2] == {
        "event": "input:received", "phase": "research", "id": gate, "value": "yes", "approved": True
    }  # fmt: skip
    assert len(gitgate.list(all=True)) == 2


def run_of(gate: str) -> str:
    return str(gitgate.show(gate).record.opened.config["run"])


def test_auto_approve(repo: Clone) -> None:
    """Yes, and the first option; recorded as what it is, in nobody's name."""
    flow = Flow(
        Phase("first", human=Human("Go?")),
        Phase("second", human=Human("Which?", options=lambda s: [s.input, "B"])),
    )
    result = flow.run("A", human=gitgate.auto_approve())
    assert (result.human_response.value, result.approved) == ("A", False)
    for gate in gitgate.list(all=True):
        said = gitgate.show(gate.id).answer
        assert said is not None
        assert (said.via, "nobody" in said.by) == ("automatic", True)
        assert (said.confirmed, said.approved) == (False, False), "no person said yes"
    assert {gitgate.show(gate.id).state for gate in gitgate.list(all=True)} == {"resumed"}


def test_a_policy_forbids_it(repo: Clone) -> None:
    """Then a person is needed: the gate waits, and says why."""
    repo.commit(**{".gitgate.yml": "policy: {who: anyone}\n"})
    flow = Flow(Phase("first", human=Human("Go?")))
    with pytest.raises(RunWaits, match="automatic") as waits:
        flow.run("A", human=gitgate.auto_approve())
    gate = waits.value.gates[0]
    assert gitgate.show(gate).state == "awaiting"
    gitgate.respond(gate, approve=True, resume=False)
    assert flow.resume(run_of(gate), human=gitgate.auto_approve()).approved is True


@pytest.mark.parametrize(("to", "quorum"), [("bob", 1), ("owners", 1), ("bob@example.org", 2)])
def test_a_flow_asks_nobody_who_is_not_known(bench: FlowBench, to: str, quorum: int) -> None:
    """Without a policy such a name would hold nobody back: the step is refused, and nobody is asked."""

    @gitgate.flow
    def asks() -> None:
        gitgate.ask("Go?", to=[to], quorum=quorum, wait=True)

    with pytest.raises(Usage, match="--to"):
        bench.begin(asks).result()
    assert gitgate.list(all=True) == ()


def test_a_program_is_none_of_those_whom_it_is_for(bench: FlowBench) -> None:
    """What it would say is not taken, and the gate waits for them."""

    @gitgate.flow
    def asks() -> bool | None:
        said = gitgate.ask("Go?", type="approval", to=["ada@example.org"], wait=True)
        assert isinstance(said, gitgate.Gate)
        assert said.answer is not None
        return said.answer.verdict == "approved"

    ended = bench.begin(asks, handler=steps.answering(gitgate.auto_approve()))
    (gate,) = gitgate.list()
    assert (ended.gates, gate.state) == ((gate.id,), "awaiting")
    gitgate.respond(gate.id, approve=True, resume=False)
    assert bench.again(asks, ended.id).value is True


def test_what_a_handler_said_counts_for_its_program_alone(repo: Clone, bench: FlowBench) -> None:
    """Somebody else who goes on with the run finds that nobody has confirmed it, also with another handler."""
    seen: set[str] = set()
    flow = Flow(Phase("first", human=Human("Go?")), name="f")

    def dies(engine: Any, gate: Any) -> None:
        steps.answering(gitgate.auto_approve())(engine, gate)
        raise KeyboardInterrupt

    for handler in (None, steps.answering(people(True)[0])):
        with pytest.raises(KeyboardInterrupt):
            bench.begin(flow, "x", handler=dies)
        (run,) = {run_of(gate.id) for gate in gitgate.list(all=True) if gate.state == "answered"} - seen
        seen.add(run)
        ended = bench.again(flow, run, handler=handler)
        assert (ended.status, "nobody has confirmed" in ended.reason) == ("failed", True)


@pytest.mark.parametrize("said", ["yes", 1, "Slow"])
def test_a_handler_that_says_something_else(repo: Clone, said: object) -> None:
    """A word is no yes, and no option that there was not."""
    flow = Flow(Phase("a", human=Human("Go?")))
    with pytest.raises(Usage, match="expected True or False"):
        flow.run("x", human=people(said)[0])
    assert [gate.state for gate in gitgate.list(all=True)] == ["withdrawn"], "its run has failed"
    other = Flow(Phase("a", human=Human("Which?", options=["Fast", "Good"])))
    with pytest.raises(Usage, match="'Fast', 'Good'"):
        other.run("x", human=people(said)[0])
    with pytest.raises(Usage, match="approval and choice"):
        flow.run("x", human=object())  # type: ignore[arg-type]


def phase(**said: Any) -> Phase:
    return Phase(**{"name": "plan", "agent": lambda _: {}, **said})


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        ([], "needs phases"),
        (
            [phase(next="exekute"), phase(name="execute")],
            "no phase is called 'exekute'; there are plan, execute",
        ),
        ([phase(human=Human("Which?", "choice"))], "a choice needs options"),
        ([phase(human=Human("Which?", options=["A"]))], "a choice of one option is none"),
        ([phase(human=Human("Which?", options="AB"))], "expected a list of labels"),
        ([phase(human=Human("Go?", "approval", ["A", "B"]))], "an approval has no options"),
        ([phase(human=Human("Go?", "maybe"))], "expected approval or choice; found 'maybe'"),  # type: ignore[arg-type]
        ([phase(human="Go?")], "expected a Human"),
        ([phase(), phase()], "two phases are called 'plan'"),
        ([Phase("a")], "neither an agent nor a question"),
        ([phase(terminal=True, next="plan")], "terminal, and has a next"),
        ([phase(agent=3)], "expected a name or a function"),
    ],
)
def test_what_cannot_go_well_is_refused_at_once(phases: list[Phase], words: str) -> None:
    """Before the first step, with the phase's name and what is expected."""
    with pytest.raises(Usage) as refused:
        Flow(*phases)
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (phase(next=lambda _: "nowhere"), "no phase is called 'nowhere'; there are plan"),
        (phase(next=lambda _: None), "no phase is called None"),
        (phase(human=lambda _: "Go?"), "expected a Human, or None"),
        (phase(human=lambda _: Human("Which?", "choice")), "a choice needs options"),
        (phase(human=Human(lambda _: "")), "prompt: expected words"),
        (phase(human=Human("Which?", options=lambda _: ["A"])), "a choice of one option"),
        (phase(update=lambda _, _out: 3), "update: expected a mapping"),
        (phase(agent=lambda _: {"x": object()}), "is recorded as JSON"),
    ],
)
def test_what_is_wrong_in_the_middle_is_named(repo: Clone, made: Phase, words: str) -> None:
    """With the phase's name as well."""
    with pytest.raises(Usage) as refused:
        Flow(made).run("x", human=gitgate.auto_approve())
    assert words in refused.value.message
    assert "plan" in refused.value.message


def test_the_state_is_what_agents_give(repo: Clone) -> None:
    """By attribute and by key; read, not written; what is merged may be said; a model is a model in `human` and `next`."""

    def classify(state: State) -> Found:
        return Found(label=state["input"])

    seen: list[Any] = []

    def seeing(_: State, out: Any) -> str:
        seen.append(type(out).__name__)
        return "count"

    flow = Flow(
        Phase(agent=classify, next=seeing),
        Phase("count", agent=lambda: [1, 2], update=lambda s, out: {"total": sum(out), "label": s.label * 2}),
        Phase("plain", agent=lambda: "words"),
    )
    result = flow.run("cat")
    assert seen == ["Found"]
    assert (result.label, result.total, result["plain"]) == ("catcat", 3, "words")
    with pytest.raises(AttributeError, match="no 'missing'; it has"):
        _ = result.missing
    with pytest.raises(TypeError, match="cannot be set"):
        result.label = "dog"
    with pytest.raises(TypeError):
        result["label"] = "dog"


@pytest.mark.slow
def test_an_agent_by_its_name_is_told(repo: Clone, actors: Actors) -> None:
    """The flow's input, the state, what a person said last, and why. Its words are its output."""
    actors.says("planner", {"status": "DONE", "summary": "planned", "plan": "P1"})
    actors.says("coder", {"status": "DONE", "summary": "coded"})
    flow = Flow(
        Phase(
            agent="planner",
            human=Human(lambda s: f"Approve {s.plan}?"),
            next=lambda s: "coder" if s.approved else "planner",
        ),
        Phase(agent="coder"),
    )
    handler, asked = people((False, "with tests please"), True)
    result = flow.run("a login page", human=handler)
    assert asked == ["Approve P1?"] * 2
    assert actors.starts == ["start planner", "start planner", "start coder"]
    told = actors.prompt("planner")
    for words in ("a login page", "P1", "with tests please"):
        assert words in told
    assert (result.plan, result.summary) == ("P1", "coded")


def test_a_file_has_it_and_it_outlives_its_process(repo: Clone, cli: Command) -> None:
    """`git gate run FILE:NAME` runs phases as it runs a function."""
    repo.commit(
        **{
            "flows.py": "from gitgate import Flow, Human, Phase\n"
            "release = Flow(\n"
            "    Phase('build', agent=lambda s: {'built': s.input}, human=Human('Release it?'), next='ship'),\n"
            "    Phase('ship', agent=lambda s: {'shipped': s.approved}, terminal=True),\n)\n"
        }
    )
    run = cli("run", "flows.py:release", "1.4", "--json", code=8).json["id"]
    cli("respond", "--approve", code=0)
    assert cli("show", run, "--json", code=0).json["flow"] == "release"
    said = json.loads(cli("resume", run, code=0).out)
    assert (said["built"], said["shipped"], said["input"]) == ("1.4", True, "1.4")


PROMPTED = """
import gitgate
from gitgate import Flow, Human, Phase
flow = Flow(Phase("a", human=Human("Go\\x1b[31m?")), Phase("b", human=Human("Which?", options=["Fast", "Other..."])))
result = flow.run("x", human=gitgate.cli_prompt())
print("RESULT", result.approved, result.human_response.value)
"""


def test_the_terminal_is_asked(repo: Clone) -> None:
    """Another word than yes or no is asked again; an option is a number or its label; the prompt's controls are shown."""
    with Terminal("-c", PROMPTED, cwd=repo.path, program=sys.executable) as terminal:
        terminal.expect("yes or no")
        assert "\x1b[31m" not in terminal.raw
        terminal.line("perhaps")
        terminal.expect("yes or no")
        terminal.line("y, gladly")
        terminal.expect("1) Fast")
        terminal.line("2")
        terminal.expect("own words")
        terminal.line("slowly")
        terminal.expect("RESULT False slowly")
    said = {gate.title: gitgate.show(gate.id).answer for gate in gitgate.list(all=True, directory=repo.path)}
    assert {answer.via for answer in said.values() if answer} == {"prompt"}


def test_an_agent_is_not_asked_at_a_terminal(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell may have the person's terminal."""
    monkeypatch.setenv("CLAUDECODE", "1")
    with pytest.raises(gitgate.errors.NotAllowed, match="cli_prompt is for people"):
        Flow(Phase("a", human=Human("Go?"))).run("x", human=gitgate.cli_prompt())


def test_without_a_terminal_it_says_so(repo: Clone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With what to do instead."""
    monkeypatch.setattr(steps, "TERMINAL", tmp_path / "none" / "tty")
    with pytest.raises(Usage, match="needs a terminal"):
        Flow(Phase("a", human=Human("Go?"))).run("x", human=gitgate.cli_prompt())


@pytest.mark.slow
def test_a_deadline_that_passes_is_no_answer(bench: FlowBench) -> None:
    """The run is stuck."""
    flow = Flow(Phase("a", human=Human("Go?"), next=lambda _: "a"), human_timeout="1s", name="f")
    ended = bench.begin(flow, "x")
    if ended.status == "waiting_human":  # unless the machine was so slow that it has passed already
        time.sleep(1.1)
        ended = bench.again(flow, ended.id)
    assert (ended.status, "deadline" in ended.reason or "nobody answered" in ended.reason) == ("stuck", True)


def test_a_flow_of_phases_within_a_flow(bench: FlowBench) -> None:
    """Is a branch of it."""
    inner = several()

    @gitgate.flow
    def outer(word: str) -> str:
        return str(inner(word).published)

    handler = steps.answering(gitgate.auto_approve())
    assert bench.begin(outer, "it", handler=handler).value == "ALL OF IT"


def test_a_program_answers_no_checkpoint(bench: FlowBench) -> None:
    """A pause is passed by a person's yes alone."""

    @gitgate.flow
    def pauses() -> bool:
        return bool(gitgate.pause("Go on?"))

    assert bench.begin(pauses, handler=steps.answering(gitgate.auto_approve())).value is False


def test_steps_have_their_phases_names(bench: FlowBench) -> None:
    """In the journal: what ran and what was asked, in order."""
    handler = steps.answering(gitgate.auto_approve())
    ended = bench.begin(several(), "it", handler=handler)
    run: Run = bench.load(ended.id)
    assert run.order[""] == [
        "step:research#1",
        "approval:research#1",
        "step:write#1",
        "approval:write#1",
        "step:publish#1",
    ]


def test_the_phases_of_the_page_run_as_they_stand(repo: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    """As `docs/flows.md` has them."""
    page = (Path(__file__).parents[2] / "docs" / "flows.md").read_text(encoding="utf-8")
    code = page.partition("## As phases")[2].partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "flows.md", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("'")[3] for line in lines[:-1]] == [
        *("agent:completed", "input:requested", "input:received"),
        "agent:completed",
    ]
    assert lines[-1] == "three steps to a login page"
