"""Runs as people and scripts see them: watched, drawn as a tree, and named wherever a gate may be named."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from support.flowing import Actors
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

FLOWS = """
import gitgate
from gitgate import Flow, Human, Phase


@gitgate.flow
def approval(prompt: str):
    gitgate.run("coder", prompt)
    word = gitgate.pause("Ship it?")
    return "shipped" if word else "kept"


@gitgate.flow
def quick():
    return gitgate.step(str, 1, name="one")


@gitgate.flow
def both():
    gitgate.parallel(lambda: bool(gitgate.pause("A?")), lambda: bool(gitgate.pause("B?")))


phases = Flow(
    Phase("plan", agent=lambda s: {"plan": "p"}, human=Human("Which?", options=["one", "two"]), terminal=True),
)
"""


@pytest.fixture
def flows(repo: Clone, actors: Actors) -> Actors:
    repo.commit(**{"flows.py": FLOWS})
    actors.says("coder", {"status": "DONE", "summary": "did it"})
    return actors


def begun(cli: Command, *words: str, code: int = 8) -> str:
    return str(cli("run", *words, "--json", code=code).json["id"])


def watched(cli: Command, run: str, *words: str) -> list[dict[str, object]]:
    """What `watch --json` printed, one object a line."""
    return [json.loads(line) for line in cli("watch", run, "--json", *words, code=0).out.splitlines()]


@pytest.mark.slow
def test_a_run_is_watched_from_its_first_event_to_its_end(flows: Actors, cli: Command, repo: Clone) -> None:
    """Programs hear what agents and people said, as `on` tells it; watching writes nothing."""
    run = begun(cli, "flows.py:approval", "x")
    before = repo.refs("refs/hitl")
    found = watched(cli, run, "--for", "1s")
    assert [event["event"] for event in found] == [
        *("started", "claimed", "begun", "done", "agent:completed"),
        *("begun", "asked", "input:requested", "waiting"),
    ]
    (agent,) = [event for event in found if event["event"] == "agent:completed"]
    assert (agent["agent"], agent["output"]["status"]) == ("coder", "DONE")  # type: ignore[index]
    (wanted,) = [event for event in found if event["event"] == "input:requested"]
    gate = cli("show", run, "--json", code=0).json["gate"]
    assert (wanted["id"], wanted["prompt"], wanted["type"]) == (gate, "Ship it?", "approval")
    assert repo.refs("refs/hitl") == before
    cli("respond", run, "--approve", code=0)
    cli("resume", run, code=0)
    (said,) = [event for event in watched(cli, run) if event["event"] == "input:received"]
    assert (said["id"], said["value"], said["approved"]) == (gate, "yes", True)
    assert watched(cli, run)[-2]["event"] == "completed"
    shown = cli("watch", run, code=0).out
    assert "agent:completed" not in shown
    assert "input:received" in shown


@pytest.mark.slow
def test_phases_are_watched_by_the_same_events(flows: Actors, cli: Command) -> None:
    """A phase's function is its agent; a choice says its options, and approves nothing."""
    run = begun(cli, "flows.py:phases", "x")
    cli("respond", run, "two", code=0)
    found = {str(event["event"]): event for event in watched(cli, run, "--for", "1s")}
    assert found["agent:completed"]["output"] == {"plan": "p"}
    assert found["agent:completed"]["agent"] == "plan"
    assert found["input:requested"]["options"] == ["one", "two"]
    assert (found["input:received"]["value"], found["input:received"]["approved"]) == ("two", False)


@pytest.mark.slow
def test_a_watched_run_goes_on_by_itself(flows: Actors, cli: Command, repo: Clone) -> None:
    """As soon as somebody has answered; without --continue it stays where it is."""
    run = begun(cli, "flows.py:approval", "x")
    watching = subprocess.Popen(
        [str(COMMAND), "watch", run, "--continue", "--for", "60s"],
        cwd=repo.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(1)
        cli("respond", run, "--approve", code=0)
        out, err = watching.communicate(timeout=60)
    finally:
        watching.kill()
    assert "somebody answered; going on" in err
    assert "completed" in out
    assert cli("show", run, "--json", code=0).json["result"] == "shipped"
    refused = cli("watch", "--continue", code=2)
    assert "git gate list --runs --active" in refused.err


def test_the_protected_branchs_code_is_run(flows: Actors, cli: Command, repo: Clone) -> None:
    """Whatever the file says here; one that is not there, or no repository's, is refused with what to type."""
    repo.write("flows.py", "raise SystemExit('the code here was run')\n")
    run = begun(cli, "--protected", "flows.py:quick", code=0)
    found = cli("show", run, "--json", code=0).json
    assert (found["result"], found["code"]) == ("1", repo.git("rev-parse", "main"))
    repo.write("new.py", FLOWS)
    refused = cli("run", "--protected", "new.py:quick", code=2).err
    assert "the protected branch has no file new.py" in refused
    assert "git gate run new.py" in refused


@pytest.fixture
def runs(flows: Actors, cli: Command) -> dict[str, str]:
    """One that waits, one that waits at two gates, one that is over, one that is archived, and none."""
    archived = begun(cli, "flows.py:quick", code=0)
    cli("archive", code=0)
    return {
        "waiting": begun(cli, "flows.py:approval", "x"),
        "two": begun(cli, "flows.py:both"),
        "over": begun(cli, "flows.py:quick", code=0),
        "archived": archived,
        "unknown": "zzzzzzzzzz",
    }


SEEN = ("show", "status", "log", "tree", "verify")
ABOUT_ITS_GATE = ("check", "diff", "comment {} hm", "edit {} --priority high", "worktree")
ENDING = ("respond {} --approve", "signal {} --status CONTINUE", "join", "continue", "wait {} --for 1s")


@pytest.mark.slow
def test_a_run_is_named_wherever_a_gate_is(runs: dict[str, str], cli: Command) -> None:
    """Whatever its state: a verb acts on it, on the gate that it waits at, or says why not and what to type."""

    def said(verb: str, run: str) -> tuple[int, str]:
        words = (verb if "{}" in verb else f"{verb} {{}}").format(run).split()
        done = cli.quick(*words)
        assert "Traceback" not in done.err
        return done.code, done.err

    for verb in SEEN:
        for which in ("waiting", "two", "over", "archived"):
            assert said(verb, runs[which])[0] == 0, (verb, which)
    for verb in ABOUT_ITS_GATE:
        assert said(verb, runs["waiting"])[0] in (0, 8), verb
    for verb in (*ABOUT_ITS_GATE, "respond {} --approve", "signal {} --status CONTINUE", "wait {} --for 1s"):
        for which, words in (
            ("over", "waits for nobody"),
            ("archived", "waits for nobody"),
            ("two", "waits at"),
        ):
            code, err = said(verb, runs[which])
            assert code not in (0, 8), (verb, which)
            assert words in err, (verb, which, err)
            assert "git gate " in err, (verb, which)
    for verb in (*SEEN, *ABOUT_ITS_GATE, *ENDING, "resume", "stop {} --reason x", "watch {} --for 1s"):
        code, err = said(verb, runs["unknown"])
        assert code != 0, verb
        assert "git gate " in err, verb
    for which in ("over", "archived"):
        for verb in ("resume", "stop {} --reason x"):
            code, err = said(verb, runs[which])
            assert (code, "is over" in err) == (5, True), (verb, which)


@pytest.mark.slow
def test_a_runs_steps_stand_as_a_tree(runs: dict[str, str], cli: Command) -> None:
    """And a page names each gate that it waits at."""
    shown = cli("tree", runs["two"], code=0).out.splitlines()
    found = cli("show", runs["two"], "--json", code=0).json
    steps = {step["path"]: step["gate"] for step in found["steps"]}
    gates = [steps[f"parallel#1/{number}/pause:_checkpoint#1"] for number in range(2)]
    assert sorted(one["gate"] for one in found["waiting"]) == sorted(gates)
    assert shown[1:] == [
        "  parallel#1",
        *("    0", f"      pause:_checkpoint#1 [waiting] gate {gates[0]}"),
        *("    1", f"      pause:_checkpoint#1 [waiting] gate {gates[1]}"),
    ]
    page = cli("show", runs["two"], code=0).out
    for word, gate in zip(("A?", "B?"), gates, strict=True):
        assert f"waits for: {word} (gate {gate})\n  asked " in page
        assert f"  next: git gate respond {gate[:6]}\n" in page


@pytest.mark.slow
def test_a_watched_run_tells_of_those_that_it_has_called(flows: Actors, cli: Command, repo: Clone) -> None:
    """Their steps, and what their gates ask and hear, each by its own run's id."""
    called = """
import gitgate


@gitgate.flow
def inner(word: str):
    return bool(gitgate.pause(f"{word}?"))


@gitgate.flow
def outer():
    return inner("Take it")
"""
    repo.commit(**{"called.py": called})
    run = begun(cli, "called.py:outer")
    (below,) = cli("show", run, "--json", code=0).json["children"]
    cli("respond", cli("show", below, "--json", code=0).json["gate"], "--approve", code=0)
    cli("resume", run, code=0)
    found = watched(cli, run)
    told = [(event["event"], event.get("run") or event["gate"]) for event in found]
    for event in ("asked", "input:requested", "input:received", "completed"):
        assert (event, below) in told
    assert told[-1] in {("completed", run), ("input:received", below)}
    assert ("completed", run) in told


@pytest.mark.slow
def test_a_page_says_who_asks_and_what_to_type(flows: Actors, cli: Command) -> None:
    """Of an agent its conversation as well, in which a person may talk to it; once the run has ended, what had begun is stopped."""
    flows.says("coder", {"status": "NEEDS_HUMAN", "reason": "Which way?"})
    run = begun(cli, "flows.py:approval", "x")
    shown = cli("show", run, "--json", code=0).json
    gate, session = shown["gate"], shown["steps"][0]["session"]
    for verb in ("show", "status"):
        page = cli(verb, run, code=0).out
        assert f"waits for: Which way? (gate {gate})\n  asked by coder, session {session}, " in page
        assert f"next: git gate respond {gate[:6]}   or talk to coder first: git gate join {gate[:6]}" in page
    cli("stop", run, "--reason", "another way", code=0)
    assert [step["status"] for step in cli("show", run, "--json", code=0).json["steps"]] == ["stopped"]
    assert "next:" not in cli("show", run, code=0).out
