"""Flows: recorded runs against the code as it is now, from the command line and from exported histories; and what a linter names."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitgate
from gitgate import testing
from gitgate.errors import Failure, Usage
from gitgate.flows.checking import lint
from gitgate.flows.program import load_flow
from support.testbed.command import Command
from support.testbed.repositories import Clone

BEFORE = """
import gitgate


@gitgate.flow
def release(version):
    gitgate.step(str.upper, version, name="tag")
    word = gitgate.pause("Release it?")
    gitgate.step(len, version, name="publish")
    return bool(word)
"""
AFTER = BEFORE.replace(
    '    gitgate.step(str.upper, version, name="tag")\n',
    '    gitgate.note("begins")\n    gitgate.step(str.upper, version, name="label")\n',
)


@pytest.fixture
def waiting(repo: Clone, cli: Command) -> str:
    """A run that waits for its person."""
    repo.commit(**{"flows.py": BEFORE})
    return str(cli("run", "flows.py", "v1", "--json", code=8).json["id"])


def test_a_deploy_is_told_which_runs_it_would_break(waiting: str, repo: Clone, cli: Command) -> None:
    """With what was recorded and what the code wants, each with its line; nothing is done, and nothing written."""
    before = repo.git("rev-parse", f"refs/hitl/runs/{waiting}")
    same = cli("run", "--check", "flows.py", "--json", code=0).json
    assert same["runs"] == [{"run": waiting, "status": "same", "reason": None}]
    repo.write("flows.py", AFTER)
    other = cli("run", "--check", "flows.py", code=1).out
    assert f"run {waiting}: diverged" in other
    assert "did step:tag#1 (flows.py:7) here" in other
    assert "the code wants note#1 (flows.py:7)" in other
    repo.write("flows.py", BEFORE.replace("release", "publish"))
    assert "there is no flow 'release'" in cli("run", "--check", "flows.py", code=1).out
    repo.write(
        "flows.py", BEFORE.replace("    word =", '    if gitgate.patched("x"):\n        pass\n    word =')
    )
    cli("run", "--check", "flows.py:release", code=0)
    assert repo.git("rev-parse", f"refs/hitl/runs/{waiting}") == before


CALLS = """
import gitgate


@gitgate.flow
def tagged(version: str):
    gitgate.step(str.upper, version, name="tag")
    return bool(gitgate.pause(f"Tag {version}?"))


@gitgate.flow
def release(version):
    return tagged(version)
"""


@pytest.mark.slow
def test_the_flows_that_it_calls_are_checked_with_it(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Where one of them diverges, the run that called it does; one that is waited in, one that is over, and a history."""
    repo.commit(**{"flows.py": CALLS})
    waits = cli("run", "flows.py:release", "v1", "--json", code=8).json["id"]
    over = cli("run", "flows.py:release", "v2", "--json", code=8).json["id"]
    cli("respond", over, "--approve", code=0)
    cli("resume", over, code=0)
    history = tmp_path / "v1.bundle"
    testing.export(waits, history, directory=repo.path)
    same = cli("run", "--check", "flows.py", "--all", "--json", code=0).json["runs"]
    assert {(one["run"], one["status"]) for one in same} == {(waits, "same"), (over, "same")}
    cli("run", "--check", "flows.py:release", str(history), code=0)
    repo.write("flows.py", CALLS.replace('name="tag"', 'name="label"'))
    for words in (["flows.py", "--all"], ["flows.py:release", str(history)]):
        said = cli("run", "--check", *words, "--json", code=1).json["runs"]
        assert all("did step:tag#1 (flows.py:7) here" in one["reason"] for one in said)
        assert {one["run"] for one in said} == ({waits, over} if "--all" in words else {waits})
    repo.write("flows.py", CALLS.replace("return bool", "return not bool"))
    (changed,) = (
        one
        for one in cli("run", "--check", "flows.py", "--all", "--json", code=1).json["runs"]
        if one["run"] == over
    )
    assert "was completed; it gave True, and gives False now" in changed["reason"]


def test_runs_that_have_ended_are_checked_where_somebody_says_so(
    waiting: str, repo: Clone, cli: Command
) -> None:
    cli("stop", waiting, "--reason", "enough", code=0)
    assert "--all" in cli("run", "--check", "flows.py", code=0).err
    repo.write("flows.py", AFTER)
    assert waiting in cli("run", "--check", "--all", "flows.py", code=1).out


@pytest.mark.slow
def test_a_history_is_replayed_elsewhere(waiting: str, repo: Clone, cli: Command, tmp_path: Path) -> None:
    """As in CI: in a folder that knows nothing of the run, with the answers that people gave."""
    (gate,) = cli("show", waiting, "--json", code=0).json["gates"]
    cli("respond", gate, "--approve", "--no-resume", code=0)
    cli("resume", waiting, code=0)
    history = testing.export(waiting, "release.bundle", directory=repo.path)
    assert history == repo.path / "release.bundle"
    assert "+export" not in repo.git("for-each-ref")
    elsewhere = Clone(tmp_path / "ci")
    elsewhere.path.mkdir()
    elsewhere.git("init", "-q")
    (elsewhere.path / "flows.py").write_text(BEFORE)
    cli("run", "--check", "flows.py", str(history), cwd=elsewhere.path, code=0)
    flow = load_flow(elsewhere.path / "flows.py", "release")
    replayed = testing.replay(flow, history, directory=elsewhere.path)
    assert (replayed.same, replayed.value) == (True, True)
    (elsewhere.path / "flows.py").write_text(BEFORE.replace('name="publish"', 'name="other"'))
    told = cli("run", "--check", "flows.py", str(history), cwd=elsewhere.path, code=1).out
    assert "did step:publish#1 (flows.py:9) here, and the code wants step:other#1 (flows.py:9)" in told
    written = testing.export(waiting, "again.bundle", directory=repo.path)
    assert testing.replay(flow, written).same
    with pytest.raises(Usage, match=r"ends with \.bundle"):
        testing.export(waiting, "again.json", directory=repo.path)
    (repo.path / "broken.bundle").write_text("nothing")
    with pytest.raises(Failure, match="is no history"):
        testing.replay(flow, repo.path / "broken.bundle")


LINTED = """
import datetime as dt
import os, random
import time as clock
from pathlib import Path
from time import monotonic as mono

import gitgate


def fetch():
    return open("x").read()


def helper():
    return random.random()  # 16: a flow calls it


def unused():
    return random.random()


@gitgate.flow(name="other")
def bad(given):
    moment = dt.datetime.now()  # 25
    gitgate.step(fetch)
    gitgate.step(lambda: clock.time())
    gitgate.step(fetch, clock.time())  # 28
    helper()
    mono()  # 30
    Path("x").write_text("y")  # 31
    os.path.join("a", "b")
    given.time()
    print("x")  # 34
    return gitgate.now()


@gitgate.flow
async def good(given):
    given.random()
    return gitgate.random(), gitgate.uuid(), gitgate.sleep(1)


phase = gitgate.Phase("x", agent=fetch, next=lambda s: "a" if random.random() > 0.5 else "b")  # 44
"""


def test_a_linter_names_what_no_replay_repeats(repo: Clone, cli: Command) -> None:
    """In flows, in what they call, and in what decides between phases; not in what a step does."""
    repo.write("flows.py", LINTED)
    found = {(one.line, one.name) for one in lint(repo.path / "flows.py")}
    assert found == {
        (16, "random.random"),
        (25, "datetime.datetime.now"),
        (28, "time.time"),
        (30, "time.monotonic"),
        (31, "write_text"),
        (34, "print"),
        (44, "random.random"),
    }
    told = cli("run", "--lint", "flows.py", code=1).out
    assert "flows.py:25: in bad, datetime.datetime.now() asks a clock in each replay; gitgate.now()" in told
    repo.write("flows.py", BEFORE)
    assert cli("run", "--lint", "flows.py", "--json", code=0).json["findings"] == []


def test_what_is_looked_at_stands_alone(waiting: str, repo: Clone, cli: Command) -> None:
    """Nothing is started by mistake, and a file that cannot be read says so."""
    for wrong in (["--check", "--lint"], ["--all"], ["--lint", "x"]):
        assert "stand alone" in cli("run", "flows.py", *wrong, code=2).err
    cli("run", "--lint", "none.py", code=2)
    repo.write("broken.py", "def (")
    assert "line 1" in cli("run", "--lint", "broken.py", code=1).err
    cli("run", "--check", "flows.py", "none.bundle", code=2)
    assert gitgate.show(cli("show", waiting, "--json", code=0).json["gates"][0]).state == "awaiting"
