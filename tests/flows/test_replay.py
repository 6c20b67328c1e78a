"""Flows: what was done is not done again, and what a replay gives is what was given."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections import Counter
from typing import Any

import pytest
from pydantic import create_model

import gitgate
from gitgate import testing
from gitgate.errors import Usage
from gitgate.flows import program
from gitgate.flows.agents import AgentSignal
from gitgate.flows.endings import Diverged, RunStuck, RunWaits, StepFailed, error_from
from gitgate.record.runs import told_reason
from support.flowing import FlowBench


def answer(run: str, bench: FlowBench, said: object) -> None:
    """Answer what the run waits for, as its person."""
    (gate,) = bench.load(run).waits_for
    if isinstance(said, bool):
        gitgate.respond(gate, approve=said, reject=not said, resume=False)
    else:
        gitgate.respond(gate, said, resume=False)  # type: ignore[arg-type]


def test_each_step_is_done_once(bench: FlowBench) -> None:
    """A replay goes past what is recorded without doing it, to where the run waits, and then to its end."""
    did: list[str] = []

    def once(word: str) -> str:
        did.append(word)
        return word * 2

    @gitgate.flow
    def feature(word: str) -> dict[str, Any]:
        first = gitgate.step(once, word)
        second = gitgate.step(once, "b")
        moment, number, name = gitgate.now(), gitgate.random(), gitgate.uuid()
        gitgate.note("half way")
        ok = gitgate.pause("Go on?")
        return {"steps": [first, second], "drawn": [str(moment), number, name], "ok": bool(ok)}

    waits = bench.begin(feature, "a")
    assert waits.status == "waiting_human"
    assert bench.again(feature, waits.id).status == "waiting_human"
    drawn = [step.ended.said["result"] for step in bench.load(waits.id).steps.values() if step.kind in ("now", "random", "uuid") and step.ended]  # fmt: skip
    answer(waits.id, bench, True)
    ended = bench.again(feature, waits.id)
    assert ended.status == "completed"
    assert did == ["a", "b"]
    assert ended.value["steps"] == ["aa", "bb"]
    assert ended.value["drawn"][1:] == drawn[1:]
    assert ended.value["ok"] is True
    assert bench.load(waits.id).state == "completed"
    assert [line for line in bench.lines if line == "half way"] == ["half way"]
    assert gitgate.show(waits.gates[0]).state == "resumed"


def test_called_in_a_program_it_runs_there(bench: FlowBench) -> None:
    """It gives the flow's value, and raises its error; where it waits, what passes through is no Exception."""

    @gitgate.flow
    def double(number: int) -> int:
        return gitgate.step(lambda: number * 2, name="double")

    @gitgate.flow
    def wrong() -> None:
        raise ValueError("no")

    @gitgate.flow
    def asks() -> None:
        gitgate.pause("Go on?")

    assert double(4) == 8
    with pytest.raises(ValueError, match="no"):
        wrong()
    with pytest.raises(RunWaits) as waits:
        asks()
    assert len(waits.value.gates) == 1
    assert not isinstance(waits.value, Exception)


def test_a_caught_error_is_the_same_error_again(bench: FlowBench) -> None:
    """Class and words: a flow that goes on after an error does so in replay."""
    tries: list[int] = []

    def fails() -> None:
        tries.append(1)
        raise KeyError("missing\nline")

    @gitgate.flow
    def catches() -> str:
        said = "no error"
        try:
            gitgate.step(fails)
        except KeyError as failed:
            said = f"{type(failed).__name__} {failed.args}"
        gitgate.pause("Go on?")
        return said

    waits = bench.begin(catches)
    answer(waits.id, bench, True)
    assert bench.again(catches, waits.id).value == "KeyError ('missing\\nline',)"
    assert tries == [1]


@pytest.mark.slow
def test_an_exit_in_a_flow_is_an_error_of_it(bench: FlowBench) -> None:
    """In its body, in a step and in a branch: the run has failed and says why. It would else be left as if it went on."""

    def leaves() -> None:
        sys.exit(4)

    @gitgate.flow
    def body() -> None:
        sys.exit("enough")

    @gitgate.flow
    def step() -> str:
        try:
            gitgate.step(leaves)
        except RuntimeError as failed:
            return str(failed)
        return "no error"

    @gitgate.flow
    def branch() -> None:
        gitgate.parallel(leaves, gitgate.now)

    ended = bench.begin(body)
    assert (ended.status, ended.reason) == ("failed", "the code called sys.exit('enough')")
    assert bench.load(ended.id).state == "failed"
    assert bench.begin(step).value == "the code called sys.exit(4)"
    assert bench.begin(branch).reason == "the code called sys.exit(4)"


def test_an_error_that_nobody_knows_is_named(bench: FlowBench) -> None:
    """A journal makes nothing be imported, and no class be called that is not an error."""
    for name in ("unheard.of:Error", "builtins:SystemExit", "builtins:eval", "subprocess:Popen", "os:system"):
        made = error_from({"class": name, "message": "echo"})
        assert isinstance(made, StepFailed), name
    assert isinstance(error_from({"class": "builtins:OSError", "message": "x"}), OSError)
    moved = error_from({"class": "gitgate.flows.elsewhere:ChildStopped", "message": "x"})
    assert isinstance(moved, gitgate.ChildStopped)  # ours, recorded before its module had its name of now


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", float("nan"), [lambda: 0]])
def test_a_result_that_is_no_json_is_refused(bench: FlowBench, value: object) -> None:
    """At once, and with the step's name; a flow may catch it like any error."""

    @gitgate.flow
    def unfit() -> None:
        gitgate.step(lambda: value, name="odd")

    ended = bench.begin(unfit)
    assert ended.status == "failed"
    assert "step:odd#1" in ended.reason


def test_a_result_is_what_json_makes_of_it_the_first_time_as_well(bench: FlowBench) -> None:
    """No tuple that is a list in replay, no number that is a key."""

    @gitgate.flow
    def shapes() -> Any:
        found = gitgate.step(lambda: {"pair": (1, 2), 3: None}, name="odd")
        return [found, isinstance(found["pair"], list)]

    assert bench.begin(shapes).value == [{"pair": [1, 2], "3": None}, True]


NO_TEXT = "caf\udce9"
"""A file's name that is not UTF-8, as Python has it."""


def test_what_is_no_text_is_refused_as_a_result(bench: FlowBench) -> None:
    """No reader of JSON need take it; with the step's name, and how to have it as text. As an input before a run begins."""

    @gitgate.flow
    def lists(_folder: str) -> Any:
        gitgate.step(lambda: [{"name": NO_TEXT}], name="names")

    ended = bench.begin(lists, "x")
    assert (ended.status, "step:names#1" in ended.reason) == ("failed", True)
    assert "backslashreplace" in getattr(ended.raised, "hint", "")
    with pytest.raises(Usage, match="the flow's input has a character"):
        bench.begin(lists, NO_TEXT)
    gitgate.verify()


def test_words_that_are_no_text_keep_no_run_from_its_end(bench: FlowBench) -> None:
    """They are spelt out: in an error, in a reason, in a name. A run that could not write its end would go on for ever."""

    def odd() -> None:
        raise ValueError(NO_TEXT, 1)

    @gitgate.flow
    def caught() -> str:
        gitgate.step(int, name=NO_TEXT)
        try:
            gitgate.step(odd)
        except ValueError as seen:
            return "caught" if str(seen) else "silent"
        return ""

    @gitgate.flow
    def stuck() -> None:
        gitgate.stuck(NO_TEXT)

    @gitgate.flow
    def fails() -> None:
        odd()

    ended = bench.begin(caught)
    assert (ended.status, ended.value) == ("completed", "caught")
    for flow, status in ((stuck, "stuck"), (fails, "failed")):
        ended = bench.begin(flow)
        assert (ended.status, bench.load(ended.id).state) == (status, status)
        assert r"caf\udce9" in told_reason(bench.load(ended.id))
    gitgate.verify()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gitgate.step(3), "step: expected a function; found 3"),  # type: ignore[arg-type]
        (lambda: gitgate.run("coder", 5), "run: its prompt: expected text; found 5"),  # type: ignore[arg-type]
        (lambda: gitgate.run(None), "None is not an agent's name"),  # type: ignore[arg-type]
        (lambda: gitgate.run("co der"), "'co der' is not an agent's name"),
        (lambda: gitgate.stuck(5), "stuck: its reason: expected text; found 5"),  # type: ignore[arg-type]
        (lambda: gitgate.note(5), "note: expected text; found 5"),  # type: ignore[arg-type]
        (lambda: gitgate.receive(5), "receive: its topic: expected text; found 5"),  # type: ignore[arg-type]
    ],
)
def test_what_no_step_can_be_given_is_refused_before_it(bench: FlowBench, call: Any, words: str) -> None:
    """Nothing of it is recorded: the flow may catch it, and goes on as it does in a replay."""

    @gitgate.flow
    def wrong() -> str:
        try:
            call()
        except Usage as seen:
            gitgate.note("caught")
            return seen.message
        return "taken"

    ended = bench.begin(wrong)
    assert ended.value.startswith(words)
    assert list(bench.load(ended.id).steps) == ["note#1"]


def test_a_signal_is_no_result_and_says_what_is(bench: FlowBench) -> None:
    """Who returns how an agent ended hears which of its fields are text."""

    @gitgate.flow
    def returns_it() -> Any:
        return AgentSignal("DONE")

    assert ".status, .summary or .output" in getattr(bench.begin(returns_it).raised, "hint", "")


def test_a_secret_is_refused_with_the_name_of_its_step(bench: FlowBench) -> None:
    """It would stand in Git for good; it is not redacted, because replay would give another value."""

    @gitgate.flow
    def leaks() -> None:
        gitgate.step(lambda: {"key": "ghp_" + "a1B2" * 9}, name="login")

    ended = bench.begin(leaks)
    assert ended.status == "failed"
    assert "step:login#1" in ended.reason
    assert "secret" in ended.reason
    assert "ghp_" not in bench.clone.git("log", "-p", f"refs/hitl/runs/{ended.id}")


def test_a_secret_of_a_flow_is_not_recorded(bench: FlowBench) -> None:
    """In its input it is refused before a run begins; in the reason of an end it is taken out, since nothing replays that."""
    secret = "ghp_" + "a1B2" * 9

    @gitgate.flow
    def gives_up(_word: str) -> None:
        gitgate.stuck(f"{secret} is refused")

    with pytest.raises(Usage, match="the flow's input has what looks like a secret"):
        bench.begin(gives_up, secret)
    with pytest.raises(Usage, match="the flow's input"):
        bench.begin(gives_up, {"deep": [secret]})
    assert "refs/hitl/runs" not in " ".join(bench.clone.refs())
    ended = bench.begin(gives_up, "x")
    assert (ended.status, ended.reason.endswith(" is refused")) == ("stuck", True)
    assert "ghp_" not in bench.clone.git("log", "-p", f"refs/hitl/runs/{ended.id}")


def test_an_error_is_called_by_its_class(bench: FlowBench) -> None:
    """The words of a KeyError are a key. A flow that calls this one sees the error itself."""

    @gitgate.flow
    def looks_up(key: str) -> int:
        known: dict[str, int] = {}
        return known[key]

    @gitgate.flow
    def caller() -> str:
        with pytest.raises(KeyError, match="nope"):
            looks_up("nope")
        return "caught"

    ended = bench.begin(looks_up, "nope")
    assert ended.reason == "KeyError: 'nope'"
    assert told_reason(bench.load(ended.id)) == ended.reason
    assert bench.begin(caller).value == "caught"


class Model:
    """What a pydantic model can do, as far as it is used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def model_dump(self, mode: str) -> dict[str, str]:
        assert mode == "json"
        return {"name": self.name}

    @classmethod
    def model_validate(cls, value: dict[str, str]) -> Model:
        return cls(value["name"])

    @classmethod
    def model_json_schema(cls) -> dict[str, str]:
        return {}


@pytest.mark.slow
def test_a_model_is_a_model_again(bench: FlowBench) -> None:
    """By what the function says that it returns, or by `output`; else it is refused."""

    def made() -> Model:
        return Model("ada")

    @gitgate.flow
    def models() -> list[str]:
        first = gitgate.step(made)
        second = gitgate.step(lambda: Model("bob"), output=Model, name="second")
        gitgate.pause("Go on?")
        return [first.name, second.name, type(first).__name__]

    @gitgate.flow
    def unsaid() -> None:
        gitgate.step(lambda: Model("ada"), name="unsaid")

    waits = bench.begin(models)
    answer(waits.id, bench, True)
    assert bench.again(models, waits.id).value == ["ada", "bob", "Model"]

    @gitgate.flow
    def gives() -> Model:
        return made()

    @gitgate.flow
    def caller() -> list[str]:
        return [gives().name, type(gives()).__name__]

    @gitgate.flow
    def gives_unsaid() -> object:
        return made()

    assert gives().name == "ada"
    assert bench.begin(gives).value == {"name": "ada"}
    assert bench.begin(caller).value == ["ada", "Model"]
    refused = bench.begin(gives_unsaid).reason
    assert refused.startswith("the result of flow gives_unsaid is a Model, and replay would not know")
    assert "output=Model" in str(getattr(bench.begin(unsaid).raised, "hint", ""))


def test_other_code_than_was_recorded_is_told_apart(bench: FlowBench) -> None:
    """It names what was recorded and what the code wants; nothing is done, and the earlier code goes on."""
    did: list[str] = []

    @gitgate.flow(name="feature")
    def before() -> str:
        gitgate.step(lambda: did.append("a"), name="a")
        gitgate.pause("Go on?")
        return "done"

    @gitgate.flow(name="feature")
    def after() -> str:
        with contextlib.suppress(Exception):  # what a careless flow does
            gitgate.step(lambda: did.append("b"), name="b")
        return "swallowed"

    waits = bench.begin(before)
    answer(waits.id, bench, True)
    diverged = bench.again(after, waits.id)
    assert diverged.status == "stalled"
    assert isinstance(diverged.raised, Diverged)
    assert "step:a#1" in diverged.reason
    assert "step:b#1" in diverged.reason
    assert did == ["a"]
    assert bench.again(before, waits.id).value == "done"


def test_a_changed_approval_is_another_question(bench: FlowBench) -> None:
    """A yes counts for what was asked. Another input of another step is only told."""
    prompts = iter(["Deploy to staging?", "Deploy to production?"])

    @gitgate.flow
    def deploys() -> bool:
        return bool(gitgate.pause(next(prompts)))

    waits = bench.begin(deploys)
    answer(waits.id, bench, True)
    ended = bench.again(deploys, waits.id)
    assert ended.status == "stalled"
    assert "asks something else" in ended.reason


@pytest.mark.slow
def test_a_patch_counts_for_runs_that_come_to_it_later(bench: FlowBench) -> None:
    """A run that was past it goes on as it was; a new one takes the new way, and so does its replay."""

    def flow_of(*, changed: bool) -> Any:
        @gitgate.flow(name="feature")
        def feature() -> list[str]:
            found = [gitgate.step(lambda: "a", name="a")]
            if changed and gitgate.patched("more"):
                found.append(gitgate.step(lambda: "new", name="new"))
            found.append(gitgate.step(lambda: "b", name="b"))
            gitgate.pause("Go on?")
            return found

        return feature

    old = bench.begin(flow_of(changed=False))
    new = bench.begin(flow_of(changed=True))
    for run in (old, new):
        answer(run.id, bench, True)
    assert bench.again(flow_of(changed=True), old.id).value == ["a", "b"]
    assert bench.again(flow_of(changed=True), new.id).value == ["a", "new", "b"]


def test_branches_have_steps_of_their_own(bench: FlowBench) -> None:
    """Their results come in their order; several wait together, and each goes on when its own answer is there."""

    def asks(name: str) -> str:
        gitgate.step(lambda: name, name="same")
        gate = gitgate.ask(f"What of {name}?", wait=True)
        return f"{name}: {gate.answer.text if gate.answer else None}"

    @gitgate.flow
    def several() -> list[str]:
        return gitgate.parallel(
            lambda: asks("a"), lambda: asks("b"), lambda: gitgate.step(lambda: "c", name="c")
        )

    waits = bench.begin(several)
    assert waits.status == "waiting_human"
    gates = bench.load(waits.id).waits_for
    assert len(gates) == 2
    titles = {gitgate.show(gate).title: gate for gate in gates}
    gitgate.respond(titles["What of b?"], "two", resume=False)
    assert bench.again(several, waits.id).status == "waiting_human"
    assert bench.load(waits.id).waits_for == [titles["What of a?"]]
    gitgate.respond(titles["What of a?"], "one", resume=False)
    assert bench.again(several, waits.id).value == ["a: one", "b: two", "c"]
    assert {step.branch for step in bench.load(waits.id).steps.values()} == {
        "parallel#1/0",
        "parallel#1/1",
        "parallel#1/2",
    }


@pytest.mark.parametrize("wrong", [3, ("coder",), ("coder", "x", "y"), (3, "x")])
def test_what_is_no_branch_is_refused(bench: FlowBench, wrong: Any) -> None:
    """With what was found and what is expected; before anything runs."""

    @gitgate.flow
    def parts() -> None:
        gitgate.parallel(lambda: gitgate.note("did"), wrong)

    ended = bench.begin(parts)
    assert f"a name and a prompt, or a function; found {wrong!r}" in ended.reason
    assert not bench.load(ended.id).steps


def test_the_error_of_a_branch_is_raised_when_all_are_through(bench: FlowBench) -> None:
    """What the others do is not lost."""
    did: list[str] = []

    def fails() -> None:
        raise ValueError("one of them")

    @gitgate.flow
    def several() -> str:
        try:
            gitgate.parallel(
                lambda: gitgate.step(fails), lambda: gitgate.step(lambda: did.append("b"), name="b")
            )
        except ValueError as failed:
            return str(failed)
        return "no error"

    assert bench.begin(several).value == "one of them"
    assert did == ["b"]


@pytest.mark.slow
def test_a_flow_within_a_flow_is_a_step_of_it(bench: FlowBench) -> None:
    """Its own steps are recorded in a run of its own."""

    @gitgate.flow
    def inner(word: str) -> str:
        gitgate.pause(f"{word}?")
        return word.upper()

    @gitgate.flow
    def outer() -> list[str]:
        return [inner("a"), inner("b")]

    waits = bench.begin(outer)
    answer(waits.id, bench, True)
    assert bench.again(outer, waits.id).status == "waiting_human"
    answer(waits.id, bench, True)
    ended = bench.again(outer, waits.id)
    assert ended.value == ["A", "B"]
    steps = bench.load(waits.id).steps
    assert list(steps) == ["flow:inner#1", "flow:inner#2"]
    for step in steps.values():
        assert list(bench.load(step.begun.text("run")).steps) == ["pause:_checkpoint#1"]


def test_an_async_function_is_a_flow_as_well(bench: FlowBench) -> None:
    """So is one that a step runs."""

    async def slowly() -> int:
        await asyncio.sleep(0)
        return 3

    @gitgate.flow
    async def feature() -> Any:
        found: Any = gitgate.step(slowly)
        await asyncio.sleep(0)
        gitgate.pause("Go on?")
        return found + 1

    waits = bench.begin(feature)
    answer(waits.id, bench, True)
    assert bench.again(feature, waits.id).value == 4


def test_stuck_is_an_end_that_no_except_takes(bench: FlowBench) -> None:
    """With its reason; whether a person's no came before it is told."""

    @gitgate.flow
    def gives_up() -> None:
        try:
            if not (word := gitgate.pause("Deploy?")):
                gitgate.stuck(word.reason)
        except Exception:  # noqa: BLE001 - what a careless flow does
            return

    waits = bench.begin(gives_up)
    (gate,) = waits.gates
    gitgate.respond(gate, reject=True, note="not on a Friday", resume=False)
    ended = bench.again(gives_up, waits.id)
    assert (ended.status, ended.reason, ended.refused) == ("stuck", "not on a Friday", True)
    assert isinstance(ended.raised, RunStuck)


@pytest.mark.slow
def test_a_stopped_gate_and_a_passed_deadline_are_the_end_of_the_run(bench: FlowBench) -> None:
    """Silence is no consent: the run is stuck, and says why."""

    @gitgate.flow
    def asks() -> None:
        gitgate.pause("Deploy?")

    @gitgate.flow(human_timeout="1s")
    def hurries() -> None:
        gitgate.pause("Deploy?")

    waits = bench.begin(asks)
    gitgate.stop(waits.gates[0], reason="we do it by hand")
    stopped = bench.again(asks, waits.id)
    assert (stopped.status, stopped.reason, stopped.refused) == ("stuck", "we do it by hand", False)
    late = bench.begin(hurries)
    time.sleep(1.1)
    # Where the machine is slow the second is over before the run has ended its wait.
    ended = late if late.status == "stuck" else bench.again(hurries, late.id)
    assert ended.status == "stuck"
    assert "deadline" in ended.reason


def test_ask_wait_and_check_are_steps(bench: FlowBench) -> None:
    """An open gate is journaled; what `check` saw it sees again; `wait` waits."""

    @gitgate.flow
    def asks() -> list[object]:
        gate = gitgate.ask("Which?", options=["A", "B"])
        seen = gitgate.check(gate)
        found = gitgate.wait(gate.id)
        return [gate.state, seen, found.answer.value if found.answer else None]

    waits = bench.begin(asks)
    answer(waits.id, bench, "B")
    assert bench.again(asks, waits.id).value == ["awaiting", None, "B"]


@pytest.mark.slow
def test_a_crash_at_any_event_loses_and_doubles_nothing() -> None:
    """At each of them in turn: the next replay goes on, each person is asked once, and the result is the same."""
    did: Counter[str] = Counter()

    def once() -> str:
        did[gitgate.step_id()] += 1
        return "a"

    @gitgate.flow
    def feature() -> list[object]:
        first = gitgate.step(once, retry=True)
        gate = gitgate.ask("Which?", wait=True)
        both = gitgate.parallel(gitgate.random, lambda: gitgate.step(lambda: 2, name="two", retry=True))
        return [first, gate.answer.text if gate.answer else None, both[1], bool(gitgate.pause("Go?"))]

    found = list(testing.crashes(feature, people={"Which?": "yes"}))
    for crash in found:
        assert crash.result == ["a", "yes", 2, True], crash.crash
        assert sorted(crash.asked) == ["Go?", "Which?"], crash.crash
        assert did[f"{crash.id}/step:once#1"] == 1 + (crash.crash == "before done of step:once#1"), (
            crash.crash
        )
    assert len({crash.crash for crash in found}) >= 26


@pytest.mark.slow
def test_a_step_that_may_have_been_done_is_asked_about() -> None:
    """Unless it says that doing it again is harmless, or how to find out: nobody guesses."""
    did: list[str] = []

    def charged() -> str:
        did.append(gitgate.step_id())
        return "charged"

    def flow_of(**how: Any) -> Any:
        @gitgate.flow(name="charge")
        def charge() -> object:
            return gitgate.step(charged, name="charge", **how)

        return charge

    with testing.stage() as stage:
        for said, value, count in (("done", None, 1), ("again", "charged", 2)):
            did.clear()
            people = {"may have been done": said}
            played = stage.play(flow_of(), people=people, fuse=testing.Fuse(2, "before"))
            assert (played.crash, played.result) == ("before done of step:charge#1", value)
            assert played.doubted == ("step:charge#1",)
            assert did == [f"{played.id}/step:charge#1"] * count
        stopped = stage.play(flow_of(), people={"may have been": "stop"}, fuse=testing.Fuse(2, "before"))
        assert (stopped.status, "is not done again" in stopped.reason) == ("stuck", True)
        found = stage.play(flow_of(done=lambda: "found"), fuse=testing.Fuse(2, "before"))
        assert (found.result, found.doubted) == ("found", ())


def test_what_a_run_still_asks_is_taken_back_when_it_ends_badly(bench: FlowBench) -> None:
    """Nobody would hear the answer. What a flow asked without waiting, and then came to its end, stays."""

    def flow_of(how: str) -> Any:
        @gitgate.flow(name=how)
        def made() -> None:
            gitgate.ask(f"Still of use, {how}?")
            if how == "failed":
                raise ValueError("no")
            if how == "stuck":
                gitgate.stuck("no way on")

        return made

    for how, state in (("failed", "withdrawn"), ("stuck", "withdrawn"), ("completed", "awaiting")):
        assert bench.begin(flow_of(how)).status == how
        (gate,) = [one for one in gitgate.list(all=True) if how in one.title]
        assert gate.state == state


def test_outside_of_a_flow(bench: FlowBench) -> None:
    """What only a flow can do is refused with the way to one; the rest is what it says."""
    for call in (
        lambda: gitgate.run("coder"),
        gitgate.parallel,
        lambda: gitgate.stuck("x"),
        lambda: gitgate.note("x"),
        lambda: gitgate.patched("x"),
        gitgate.step_id,
    ):
        with pytest.raises(Usage, match="no flow runs here"):
            call()
    assert 0 <= gitgate.random() < 1
    assert len(gitgate.uuid()) == 36
    assert gitgate.now().tzinfo is not None
    assert gitgate.step(lambda: (1, 2)) == (1, 2)


def test_a_step_that_fails_is_tried_again() -> None:
    """Each try is a step, and each pause: none is done twice when its process ends between. Its key stays the same."""
    tries: list[str] = []

    def flaky(good: int) -> str:
        tries.append(gitgate.step_id())
        if len(tries) < good:
            raise OSError(f"no network, {len(tries)}")
        return "fetched"

    @gitgate.flow
    def fetches(good: int) -> str:
        return gitgate.step(flaky, good, tries=3, backoff="1h")

    played = testing.play(fetches, 3)
    assert played.result == "fetched"
    assert played.steps == ("step:flaky#1", "backoff#1", "step:flaky#2", "backoff#2", "step:flaky#3")
    assert len(tries) == 3
    assert len(set(tries)) == 1
    tries.clear()
    failed = testing.play(fetches, 9)
    assert (failed.status, failed.reason) == ("failed", "OSError: no network, 3")


def test_an_agent_that_fails_is_started_anew() -> None:
    @gitgate.flow
    def builds() -> str:
        return gitgate.run("coder", "x", tries=2, backoff=0).summary

    said = {"status": "DONE", "summary": "second time"}
    played = testing.play(builds, agents={"coder": [OSError("no network"), said]})
    assert (played.result, played.starts) == ("second time", ("start coder", "start coder"))


def test_what_an_agent_says_is_read_as_a_model() -> None:
    """What does not fit is the agent's failure, with its name and the field."""
    verdict: Any = create_model("Verdict", score=(int, ...))

    @gitgate.flow
    def judges() -> int:
        return int(gitgate.run("critic", output=verdict).output.score)

    assert testing.play(judges, agents={"critic": {"status": "DONE", "score": 3}}).result == 3
    failed = testing.play(judges, agents={"critic": {"status": "DONE"}})
    assert failed.status == "failed"
    assert failed.reason.startswith("agent critic said no Verdict: ")
    assert "score" in failed.reason


@pytest.mark.slow
def test_a_step_that_takes_too_long_is_not_waited_for(bench: FlowBench) -> None:
    """It is a TimeoutError, which a flow may catch, now and in replay."""
    over = threading.Event()

    @gitgate.flow
    def slow() -> str:
        try:
            gitgate.step(over.wait, 60, name="slow", max_minutes=0.005)
        except TimeoutError as late:
            gitgate.pause("Go on?")
            return str(late)
        return "in time"

    began = time.monotonic()
    waits = bench.begin(slow)
    assert time.monotonic() - began < 50
    over.set()
    answer(waits.id, bench, True)
    assert "longer than 0.005 minutes" in bench.again(slow, waits.id).value
    for wrong in ({"tries": 0}, {"max_minutes": 0}, {"max_minutes": float("nan")}):
        with pytest.raises(Usage, match="at least one try"):
            gitgate.step(len, "x", **wrong)


def test_another_input_is_drift_and_is_shown_once(bench: FlowBench) -> None:
    """What was recorded counts; that the code would give something else stands in the journal, and is said."""
    given = ["a"]

    @gitgate.flow
    def drifts() -> str:
        found = gitgate.step(str.upper, given[0], name="up")
        gitgate.pause("Go on?")
        return found

    waits = bench.begin(drifts)
    given[0] = "b"
    for _ in range(2):
        assert bench.again(drifts, waits.id).status == "waiting_human"
    noted = [entry.event for entry in bench.load(waits.id).events if entry.event.name == "noted"]
    assert [event.said["step"] for event in noted] == ["step:up#1"]
    assert "another one" in noted[0].said["text"]
    assert any("another one" in line for line in bench.lines)
    answer(waits.id, bench, True)
    assert bench.again(drifts, waits.id).value == "A"


@pytest.mark.slow
def test_an_agent_that_takes_too_long_is_ended(bench: FlowBench) -> None:
    """Its program with it; the next try is a start of its own."""
    bench.clone.git("config", "gitgate.agent.slow.start", "sleep 600")

    @gitgate.flow
    def waits() -> str:
        try:
            gitgate.run("slow", "x", tries=2, backoff=0, max_minutes=0.02)
        except gitgate.AgentFailed as failed:
            return str(failed)
        return "in time"

    began = time.monotonic()
    ended = bench.begin(waits)
    assert "agent slow failed" in ended.value
    assert time.monotonic() - began < 100
    assert [step.state for step in bench.load(ended.id).steps.values()] == ["raised", "done", "raised"]


def test_what_else_runs_the_code_is_compared(bench: FlowBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python, git gate and the file that names the packages: said where they are others than when the run began."""
    lock = bench.clone.write("uv.lock", "one\n")

    @gitgate.flow
    def asks() -> bool:
        return bool(gitgate.pause("Go on?"))

    ended = bench.begin(asks)
    run = bench.load(ended.id)
    assert run.started.text("lock").startswith("uv.lock ")
    program.tell_differences(bench.desk(), run, bench.lines.append)
    assert not [line for line in bench.lines if "began with" in line]
    lock.write_text("other\n")
    monkeypatch.setattr("gitgate.version.VERSION", "99.0")
    program.tell_differences(bench.desk(), run, bench.lines.append)
    told = [line for line in bench.lines if "began with" in line]
    assert [line.partition("began with ")[2].split(" ")[0] for line in told] == ["git", "the"]
    assert told[0].endswith("here it is 99.0")
