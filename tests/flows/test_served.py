"""Flows: an answer that reaches a server goes on with the run there, by the same hook that resumes an agent."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gitgate.cli.jobs.steps import ROBOT
from gitgate.context import open_desk
from gitgate.context.machine import find_presence
from support.flowing import Actors
from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone

FLOW = """
import gitgate


@gitgate.flow
def release(version: str):
    gitgate.run("coder", f"Prepare {version}.")
    if not gitgate.pause("Release it?"):
        gitgate.stuck("not released")
    gitgate.run("deployer")
    return f"released {version}"
"""


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", cwd=bare.path, code=0)
    return bare


@pytest.mark.slow
@pytest.mark.parametrize("escalates", [False, True])
def test_an_answer_from_another_clone_goes_on_with_the_run_on_the_server(
    server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path, escalates: bool
) -> None:
    """Begun in one clone, answered in another, gone on with on the server: each agent starts once, each is asked once."""
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.commit(**{"flows.py": FLOW})
    ann.git("push", "-q", "origin", "main")
    actors = Actors(server, tmp_path / "agents")
    needs = {"status": "NEEDS_HUMAN", "reason": "Which database?"}
    done = {"status": "DONE", "summary": "did it"}
    actors.says("coder", *([needs, done] if escalates else [done]))
    actors.says("deployer", done)
    for line in server.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        ann.git("config", *line.split(" ", 1))
    run = cli("run", "flows.py", "1.4", "--json", cwd=ann.path, code=8).json["id"]
    answers = (["Postgres"] if escalates else []) + ["--approve"]
    for number, answer in enumerate(answers):
        gate = awaited(cli, bob)
        shown = cli("show", gate, "--json", cwd=bob.path, code=0).json
        assert shown["run"]["id"] == run
        said = cli("respond", gate, answer, cwd=bob.path, code=0)
        assert "pushed to origin; its hook resumes it" in said.err
        wanted = "completed" if number == len(answers) - 1 else "waiting_human"
        until(partial(stands, cli, bob, run, gate, wanted))
    assert cli("show", run, "--json", cwd=bob.path, code=0).json["result"] == "released 1.4"
    resumed = ["resume coder"] if escalates else []
    assert actors.starts == ["start coder", *resumed, "start deployer"]
    cli("verify", cwd=server.path, code=0)


@pytest.mark.slow
def test_an_agent_that_the_server_does_not_know_costs_no_run(
    server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """The run is stalled there, whoever looks is told why, and it goes on once the agent is set up; nothing is done again."""
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.commit(**{"flows.py": FLOW})
    ann.git("push", "-q", "origin", "main")
    actors = Actors(server, tmp_path / "agents")
    actors.says("coder", {"status": "DONE"})
    for line in server.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        ann.git("config", *line.split(" ", 1))
    run = cli("run", "flows.py", "1.4", "--json", cwd=ann.path, code=8).json["id"]
    gate = awaited(cli, bob)
    cli("respond", gate, "--approve", cwd=bob.path, code=0)
    until(partial(stands, cli, bob, run, gate, "stalled"))
    shown = cli("show", run, "--json", cwd=bob.path, code=0).json
    assert "no agent is called 'deployer'" in shown["reason"]
    assert "1 run stalled" in cli(cwd=bob.path, code=0).out
    actors.says("deployer", {"status": "DONE"})
    cli("resume", run, cwd=server.path, code=0)
    until(partial(stands, cli, bob, run, gate, "completed"))
    assert actors.starts == ["start coder", "start deployer"]
    cli("verify", cwd=server.path, code=0)


# Where it is started it notes what has started it, up to whoever that was, and works on; where it goes on, it is done.
WORKS = """#!/bin/sh
cat > /dev/null
cd "$(dirname "$0")" || exit 1
echo "$1 $2" >> deployer.log
if [ "$1" = start ]; then
    process=$$
    while [ "$process" -gt 1 ]; do
        echo "$process"
        process=$(ps -o ppid= -p "$process" | tr -d ' ')
    done > above.new
    mv above.new above
    for _ in $(seq 600); do sleep 0.1; done
fi
echo '{"status": "DONE", "summary": "did it"}'
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["push", "worker", "timer"])
def test_a_run_whose_server_dies_within_a_step_is_gone_on_with(
    server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path, by: str
) -> None:
    """With all that the hook has started: the next push of any kind takes it over, and so does what a timer calls. Once."""
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.commit(**{"flows.py": FLOW})
    ann.git("push", "-q", "origin", "main")
    actors = Actors(server, tmp_path / "agents")
    actors.says("coder", {"status": "DONE"})
    works = tmp_path / "agents" / "works.sh"
    works.write_text(WORKS)
    works.chmod(0o755)
    for how in ("start", "resume"):
        server.git("config", f"gitgate.agent.deployer.{how}", json.dumps([str(works), how, "{session}"]))
    for line in server.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        ann.git("config", *line.split(" ", 1))
    server.git("config", "gitgate.leaseTerm", "10s")
    run = cli("run", "flows.py", "1.4", "--json", cwd=ann.path, code=8).json["id"]
    gate = awaited(cli, bob)
    cli("respond", gate, "--approve", cwd=bob.path, code=0)
    above = works.with_name("above")
    until(above.exists)
    died = [int(line) for line in above.read_text().split()]
    assert os.getpid() not in died
    assert len(died) >= 4  # the agent, the run, what acts on the answer, and what watches over them
    for process in died:
        os.kill(process, signal.SIGKILL)

    def goes_on() -> bool:
        """Whatever somebody does next, again and again; each does it at most once a second."""
        time.sleep(1)
        if by == "push":
            bob.commit("Something else")
            bob.git("push", "-q", "origin", "HEAD:refs/heads/other")
        else:
            words = ("worker", "--once") if by == "worker" else ("resume", "--all")
            cli(*words, cwd=server.path)
        return stands(cli, bob, run, gate, "completed")

    until(goes_on)
    (first, one), (then, other) = (
        line.split() for line in works.with_name("deployer.log").read_text().splitlines()
    )
    assert (first, then) == ("start", "resume")
    assert one == other
    assert actors.starts == ["start coder"]
    events = cli("log", gate, "--json", cwd=bob.path, code=0).json["events"]
    assert [event["event"] for event in events].count("resumed") == 1
    cli("verify", cwd=server.path, code=0)


def awaited(cli: Command, clone: Clone) -> str:
    cli("sync", cwd=clone.path, code=0)
    (gate,) = cli("list", "--awaiting", "--json", cwd=clone.path, code=0).json["gates"]
    return str(gate["id"])


def stands(cli: Command, clone: Clone, run: str, gate: str, wanted: str) -> bool:
    """Whether the run has come so far, and the gate that was answered is over."""
    cli("sync", cwd=clone.path)
    shown = (cli("show", name, "--json", cwd=clone.path, code=0).json for name in (run, gate))
    return [next(shown)["status"], next(shown)["state"]] == [wanted, "resumed"]


NIGHTLY = """
import gitgate


@gitgate.flow
def nightly():
    word = gitgate.receive("built")
    gitgate.run("coder", word.value)
    return [word.value, word.by]
"""


@pytest.mark.slow
def test_a_signal_from_another_clone_wakes_the_run_on_the_server(
    server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """The push of the signal is what the server's hook acts on; who sent it is known there."""
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.commit(**{"flows.py": NIGHTLY})
    ann.git("push", "-q", "origin", "main")
    actors = Actors(server, tmp_path / "agents")
    actors.says("coder", {"status": "DONE"})
    run = cli("run", "flows.py", "--json", cwd=ann.path, code=8).json["id"]
    cli("sync", cwd=bob.path, code=0)
    cli("signal", run, "--topic", "built", "v1.4", cwd=bob.path, code=0)

    def is_over() -> bool:
        cli("sync", cwd=bob.path)
        return bool(cli("show", run, "--json", cwd=bob.path, code=0).json["status"] == "completed")

    until(is_over)
    name = bob.git("config", "user.email")
    shown = cli("show", run, "--json", cwd=bob.path, code=0).json["result"]
    assert shown[0] == "v1.4"
    assert name in shown[1]
    assert actors.prompt("coder") == "v1.4"
    cli("verify", cwd=server.path, code=0)


BUILDS = """
import gitgate


@gitgate.flow
def builds():
    for number in range(2):
        gitgate.receive("built")
        gitgate.run("coder")
    if gitgate.pause("Release it?"):
        gitgate.run("coder")
    gitgate.receive("released")
    gitgate.run("coder")
    return "released"
"""
# Commits once a start, on whatever it finds; leaves a line uncommitted for the next one.
COMMITS = """#!/bin/sh
cat > /dev/null
number=$(($(cat number.txt 2>/dev/null || echo 0) + 1))
echo $number > number.txt
git add number.txt && git commit -qm "Commit $number" && echo $number >> left.txt
echo '{"status": "DONE"}'
"""


class Woken:
    """A run that was begun on a branch of a clone, and sleeps; a server whose hook wakes it, and a person who fetches."""

    def __init__(self, server: Clone, clone_of: Callable[..., Clone], cli: Command, folder: Path) -> None:
        self.server, self.cli = server, cli
        self.ann, self.bob = clone_of(server, "ann"), clone_of(server, "bob")
        for clone in (self.ann, self.bob):
            cli.quick("init", "--no-resume", cwd=clone.path, code=0)
        self.ann.commit(**{"flows.py": BUILDS})
        self.ann.git("push", "-q", "origin", "main")
        script = folder / "commits.sh"
        script.write_text(COMMITS)
        script.chmod(0o755)
        server.git("config", "gitgate.agent.coder.start", str(script))
        for key, value in zip(("name", "email"), ROBOT, strict=True):  # no person's account
            server.git("config", f"user.{key}", value)
        self.ann.git("switch", "-qc", "feature")
        self.ann.commit("Ann's own", own="1\n")
        self.ann.git("push", "-q", "origin", "feature")
        self.run = self.begun("--protected")

    def begun(self, *how: str) -> str:
        return str(self.cli("run", *how, "flows.py", "--json", cwd=self.ann.path, code=8).json["id"])

    def shown(self) -> dict[str, Any]:
        self.cli("sync", cwd=self.bob.path)
        found: dict[str, Any] = self.cli("show", self.run, "--json", cwd=self.bob.path, code=0).json
        return found

    def sends(self, topic: str, status: str, steps: int) -> None:
        """A signal, and the run when it has come so far."""
        self.cli("sync", cwd=self.bob.path, code=0)
        self.cli("signal", self.run, "--topic", topic, cwd=self.bob.path, code=0)
        until(lambda: (shown := self.shown())["status"] == status and len(shown["steps"]) >= steps)

    def fetched(self, branch: str = "feature") -> list[str]:
        """What somebody who fetches has on the branch, newest first."""
        self.bob.git("fetch", "-q", "origin")
        return self.bob.git("log", "--format=%s", f"origin/{branch}").splitlines()


@pytest.fixture
def woken(server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path) -> Woken:
    return Woken(server, clone_of, cli, tmp_path)


@pytest.mark.slow
def test_what_agents_commit_on_the_server_is_on_the_branch_of_the_run(woken: Woken, cli: Command) -> None:
    """Woken by signals and by an answer: each goes on where the one before ended, and whoever fetches has it."""
    woken.sends("built", "sleeping", 3)
    assert woken.fetched()[:2] == ["Commit 1", "Ann's own"]
    woken.sends("built", "waiting_human", 5)
    assert woken.fetched()[:3] == ["Commit 2", "Commit 1", "Ann's own"]
    gate = awaited(cli, woken.bob)
    asked = cli("show", gate, "--json", cwd=woken.bob.path, code=0).json
    assert asked["work"]["branch"] == "feature"
    assert (
        asked["asked"]["by"] == woken.ann.git("var", "GIT_AUTHOR_IDENT").rpartition(" ")[0].rpartition(" ")[0]
    )
    presence = find_presence(open_desk(woken.server.path, dict(os.environ)), gate)
    assert presence is not None
    assert not presence.trusted  # its work came from elsewhere
    cli("respond", gate, "--approve", cwd=woken.bob.path, code=0)
    until(lambda: stands(cli, woken.bob, woken.run, gate, "sleeping"))
    assert woken.fetched()[:4] == ["Commit 3", "Commit 2", "Commit 1", "Ann's own"]
    woken.sends("released", "completed", 8)
    assert woken.fetched()[:5] == ["Commit 4", "Commit 3", "Commit 2", "Commit 1", "Ann's own"]
    made = [commit for step in woken.shown()["steps"] for commit in step["commits"]]
    assert made[::-1] == woken.bob.git("rev-list", "-4", "origin/feature").split()
    assert f"Gate: {gate}" in woken.bob.git("log", "-1", "--format=%b", made[2])
    assert f"1 commit, {made[2][:10]}" in cli("show", woken.run, cwd=woken.bob.path, code=0).out
    cli("verify", cwd=woken.server.path, code=0)


@pytest.mark.slow
def test_a_branch_that_went_on_while_the_run_slept_is_not_merged(woken: Woken, cli: Command) -> None:
    """As with an answer: what the agent committed is on a branch of its own, which the journal names; and so it goes on."""
    woken.ann.commit("Meanwhile", other="1\n")
    woken.ann.git("push", "-q", "origin", "feature")
    woken.sends("built", "sleeping", 3)
    assert woken.fetched()[:2] == ["Meanwhile", "Ann's own"]
    assert woken.fetched(f"run/{woken.run}")[:2] == ["Commit 1", "Ann's own"]
    told = cli("log", woken.run, cwd=woken.bob.path, code=0).out
    assert f"is on run/{woken.run}: feature went another way meanwhile" in told
    woken.ann.git("fetch", "-q", "origin")
    woken.ann.git("merge", "-q", "-m", "Merged", f"origin/run/{woken.run}")
    woken.ann.git("push", "-q", "origin", "feature")
    cli("signal", woken.run, "--topic", "built", cwd=woken.server.path, code=0)
    cli("resume", woken.run, cwd=woken.server.path, code=8)  # by hand, where no working tree is
    assert woken.fetched(f"run/{woken.run}")[:3] == ["Commit 2", "Commit 1", "Ann's own"]
    cli("stop", woken.run, "--reason", "enough", cwd=woken.server.path, code=0)
    cli("verify", cwd=woken.server.path, code=0)


@pytest.mark.slow
def test_another_clone_that_wakes_a_run_keeps_its_own_checkout(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """What is committed is on the run's branch of the shared repository; the clone that woke it stays on its own."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    woken = Woken(bare, clone_of, cli, tmp_path)
    bob = woken.bob
    bob.git("config", "gitgate.agent.coder.start", str(tmp_path / "commits.sh"))
    bob.git("fetch", "-q", "origin")  # the protected branch, whose code it is
    before = bob.git("rev-parse", "HEAD")
    cli("sync", cwd=bob.path, code=0)
    cli("signal", woken.run, "--topic", "built", cwd=bob.path, code=0)
    said = cli("resume", "--all", cwd=bob.path, code=0)
    assert f"run {woken.run}: the run is sleeping" in said.err
    assert woken.fetched()[:2] == ["Commit 1", "Ann's own"]
    assert (bob.git("rev-parse", "HEAD"), bob.git("status", "--porcelain")) == (before, "")


@pytest.mark.slow
def test_a_server_runs_no_flow_of_a_branch(woken: Woken, cli: Command) -> None:
    """Whoever may push a branch may not have its code run: what HEAD is in a tree that was made for an agent is no policy."""
    woken.ann.commit(**{"flows.py": BUILDS.replace("return", "open('pwned', 'w'); return")})
    woken.ann.git("push", "-q", "origin", "feature")
    run = woken.begun()
    cli("sync", cwd=woken.ann.path, code=0)
    said = cli("resume", run, cwd=woken.server.path, code=1).err
    assert "with code that is not on the protected branch" in said
