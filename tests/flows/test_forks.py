"""Flows: a fork of a run carries what came before a step, marked, and does the rest anew; also where its process is killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.flowing import killed_command, was_killed
from support.testbed.command import Command
from support.testbed.repositories import Clone

FLOW = """
import pathlib

import gitgate


def did(word):
    with pathlib.Path("PLACE").open("a") as log:
        log.write(word + "\\n")
    return word


def fails():
    did("fails")
    raise OSError("no network")


@gitgate.flow
def release(version):
    first = gitgate.step(did, "build " + version, name="build", retry=True)
    ok = gitgate.pause("Build it?")
    try:
        gitgate.step(fails, retry=True)
    except OSError:
        pass
    second = gitgate.step(did, "second", name="second", retry=True)
    go = gitgate.pause("Release it?")
    return [first, bool(ok), second, bool(go)]
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "did.log"


@pytest.fixture
def done(repo: Clone, cli: Command, log: Path) -> str:
    """A run that is over: its first question was answered yes, its last one no."""
    repo.commit(**{"flows.py": FLOW.replace("PLACE", str(log))})
    run = str(cli("run", "flows.py", "v1", "--json", code=8).json["id"])
    for answer in ("--approve", "--reject"):
        cli("respond", cli("show", run, "--json", code=0).json["gate"], answer, "--no-resume", code=0)
        cli("resume", run)
    assert cli("show", run, "--json", code=0).json["result"] == ["build v1", True, "second", False]
    assert log.read_text().split("\n")[:-1] == ["build v1", "fails", "second"]
    log.write_text("")
    return run


@pytest.mark.slow
def test_a_fork_carries_what_came_before_and_asks_the_rest_again(
    done: str, repo: Clone, cli: Command, log: Path
) -> None:
    """With the code as it is now, and an id of its own. The no to the last question is not carried; the first yes is."""
    before = repo.git("rev-parse", f"refs/hitl/runs/{done}")
    repo.write("flows.py", FLOW.replace("PLACE", str(log)).replace('"second", name', '"another", name'))
    told = cli("run", done, "--from", "step:second#1", "--json", code=8)
    fork = told.json
    assert (fork["parent"], fork["from"]) == ({"run": done, "step": "step:second#1"}, "step:second#1")
    assert fork["id"] != done
    assert f"as run {done} was before step:second#1" in told.err
    carried = {step["path"]: step["carried"] for step in fork["steps"]}
    assert carried == {
        "step:build#1": done,
        "pause:_checkpoint#1": done,
        "step:fails#1": done,
        "step:second#1": None,
        "pause:_checkpoint#2": None,
    }
    assert log.read_text() == "another\n"
    shown = cli("show", fork["id"], code=0).out
    assert f"fork of run {done}, from step:second#1" in shown
    assert shown.count(f"carried from run {done[:6]}") == 3
    cli("respond", fork["gate"], "--approve", "--no-resume", code=0)
    ended = cli("resume", fork["id"], "--json", code=0).json
    assert ended["result"] == ["build v1", True, "another", True]
    assert repo.git("rev-parse", f"refs/hitl/runs/{done}") == before
    cli("verify", code=0)


@pytest.mark.slow
def test_an_approval_is_carried_for_the_same_question_alone(
    done: str, repo: Clone, cli: Command, log: Path
) -> None:
    repo.write("flows.py", FLOW.replace("PLACE", str(log)).replace("Build it?", "Build and sell it?"))
    told = cli("run", done, "--from", "step:second#1", code=1).err
    assert "asks something else" in told
    assert log.read_text() == ""


@pytest.mark.slow
def test_what_cannot_be_forked_is_refused(done: str, repo: Clone, cli: Command) -> None:
    """Before anything is written."""
    before = repo.refs("refs/hitl")
    assert "it has step:build#1" in cli("run", done, "--from", "step:none#1", code=2).err
    assert "nothing beside it" in cli("run", done, "x", "--from", "step:second#1", code=2).err
    assert "there is no run" in cli("run", "zzzz", "--from", "step:second#1", code=1).err
    assert repo.refs("refs/hitl") == before
    repo.write(
        "open.py",
        "import gitgate\n\n\n@gitgate.flow\ndef opens():\n"
        "    gate = gitgate.ask('Where?')\n    gitgate.parallel(lambda: gitgate.note('a'))\n    gitgate.wait(gate.id)\n",
    )
    run = cli("run", "open.py", "--json", code=8).json
    waits = run["steps"][-1]["path"]
    assert waits.startswith("wait:")
    assert "without waiting" in cli("run", run["id"], "--from", waits, code=2).err
    assert "run at once" in cli("run", run["id"], "--from", "parallel#1/0/note#1", code=2).err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_fork_that_is_killed_while_it_carries_does_nothing_again(
    done: str, repo: Clone, cli: Command, log: Path
) -> None:
    """At a sample of its writes: whoever goes on with it carries the rest before anything is done."""
    repo.git("config", "gitgate.leaseTerm", "2s")
    kills = 0
    for number in range(1, 30, 3):
        known = {run["id"] for run in cli("list", "--runs", "--json", code=0).json["runs"]}
        log.write_text("")
        killed = killed_command(repo, number, "before", "run", done, "--from", "step:second#1")
        if not was_killed(killed):
            break
        kills += 1
        (fork,) = {run["id"] for run in cli("list", "--runs", "--json", code=0).json["runs"]} - known
        ended = cli("resume", fork, "--json", code=8).json
        assert [step["carried"] for step in ended["steps"]].count(done) == 3, number
        assert set(log.read_text().split()) == {"second"}, number
        assert json.dumps(ended["steps"]).count("pause:_checkpoint#2") == 1
    assert kills >= 3
