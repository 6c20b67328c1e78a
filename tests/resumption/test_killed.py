"""Runners that are killed outright, at every step: no answer is lost, no two agents run at once, nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone

# Each step as a function of ours that a runner is killed in front of (or, with `after`, behind).
DIE = """
import os, signal, sys
from unittest import mock

def die(*_args, **_kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

module, name, after = sys.argv[1:4]
owner = __import__(module, fromlist=[name])
real = getattr(owner, name)

def killed(*args, **kwargs):
    if after == "after":
        real(*args, **kwargs)
    die()

with mock.patch.object(owner, name, killed):
    from gitgate.cli.main import main
    sys.exit(main(["resume", sys.argv[4]]))
"""
STEPS = {
    "before the claim": ("gitgate.claims", "move", "before"),
    "claimed": ("gitgate.claims", "move", "after"),
    "the claim not yet known here": ("gitgate.claims", "follow", "before"),
    "the place made": ("gitgate.resumption", "with_branch_news", "before"),
    "about to start": ("gitgate.agents.process", "begin", "before"),
    "started": ("gitgate.agents.process", "begin", "after"),
    "finished, not recorded": ("gitgate.resumption.delivery", "gather", "before"),
    "commits made, not recorded": ("gitgate.resumption.delivery", "gather", "after"),
    "recorded, not known here": ("gitgate.claims", "follow", "before"),
    "recorded, not cleaned up": ("gitgate.resumption.delivery", "clean_up", "before"),
}
STARTED_TWICE = {"started"}
# Each takes seconds; these say most, and the others run with the slow ones.
ALWAYS = {"commits made, not recorded"}
CASES = [
    pytest.param(
        step, shared, id=f"{where}-{step}", marks=[] if shared and step in ALWAYS else pytest.mark.slow
    )
    for step in STEPS
    for where, shared in (("shared", True), ("alone", False))
]


def killed_at(step: str, gate: str, cwd: Clone) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DIE, *STEPS[step], gate],
        cwd=cwd.path,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize(("step", "shared"), CASES)
@pytest.mark.slow
def test_a_runner_killed_at_any_step(
    step: str, shared: bool, ann: Clone, bare: Clone, agent: Agent, cli: Command
) -> None:
    """Once its lease has lapsed another one takes over; the agent does its work once, or once more where it was cut off."""
    agent.does("sleep 0.3; echo done > result; git add -A; git commit -qm done")
    if not shared:
        if step.endswith(("not known here", "not yet known here")):
            step = "claimed"  # There is nobody else to know it.
        ann.git("remote", "remove", "origin")
    ann.git("config", "gitgate.leaseTerm", "1s")
    ann.git("config", "gitgate.retryAfter", "0s")
    ann.git("config", "gitgate.publishWork", "true")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    killed_at(step, gate, ann)
    until(lambda: resumed(cli, ann, gate))
    assert agent.starts in ([gate], [gate] * 2 if step in STARTED_TWICE else [gate])
    assert agent.ends == [gate]
    assert ann.git("log", "--format=%s", "main").splitlines() == ["done", "start"]
    if shared:
        assert bare.git("log", "-1", "--format=%s", "main") == "done"
        assert bare.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}").startswith("resumed")
        assert f"refs/hitl/leases/{gate}" not in bare.refs()


def resumed(cli: Command, clone: Clone, gate: str) -> bool:
    """Try until it works, as a person or a worker would."""
    cli.quick("sync", cwd=clone.path)
    if cli.quick("show", gate, "--json", cwd=clone.path, code=0).json["state"] == "resumed":
        return True
    return cli.quick("resume", gate, cwd=clone.path).code == 0


@pytest.mark.slow
def test_an_agent_dies_with_its_runner(ann: Clone, agent: Agent, cli: Command) -> None:
    """Killed half-way, the runner takes the agent along, so that none runs when the next one starts."""
    agent.does("sleep 30; echo never >> never")
    ann.git("config", "gitgate.leaseTerm", "1s")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    running = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.starts == [gate])
    pid = int(agent.log.read_text().split()[1])
    running.send_signal(signal.SIGKILL)
    running.communicate()
    until(lambda: not alive(pid))
    agent.does("")
    until(lambda: resumed(cli, ann, gate))
    assert agent.starts == [gate, gate]
    assert agent.ends == [gate]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_runner_that_loses_its_claim_stops_its_agent(
    ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """A runner that was held up for too long is taken over; when it wakes up its agent is ended, and it records nothing."""
    agent.does("sleep 20; echo late > late; git add -A; git commit -qm late")
    gate = answered_for_both(ann, bob, cli)
    late = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.starts == [gate])
    pid = int(agent.log.read_text().split()[1])
    late.send_signal(signal.SIGSTOP)
    agent.does("")
    until(lambda: resumed(cli, bob, gate))
    late.send_signal(signal.SIGCONT)
    assert late.wait(PATIENCE) == 5
    late.communicate()
    assert not alive(pid)
    history = cli.quick("show", gate, "--json", cwd=bob.path, code=0).json["history"]
    assert [event["event"] for event in history][-3:] == ["claimed", "claimed", "resumed"]
    time.sleep(0.2)
    cli.quick("sync", cwd=bob.path, code=0)
    assert bob.git("ls-remote", "origin", "refs/heads/main").split()[0] == bob.git("rev-parse", "origin/main")


# Stands still, like a machine that sleeps, when all is ready and the agent is about to be started.
STOPS = """
import os, signal, sys
from gitgate.resumption import run

ready = run.note_writings

def stands_still(*args):
    ready(*args)
    os.kill(os.getpid(), signal.SIGSTOP)

run.note_writings = stands_still
from gitgate.cli.main import main
sys.exit(main(["resume", sys.argv[1]]))
"""


@pytest.mark.slow
def test_a_runner_that_stood_still_before_it_started_the_agent_starts_none(
    ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Somebody took over meanwhile: it hears that before it starts anything, and no two agents are there at once."""
    agent.does("")
    gate = answered_for_both(ann, bob, cli)
    late = subprocess.Popen(
        [sys.executable, "-c", STOPS, gate],
        cwd=ann.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert os.WIFSTOPPED(os.waitpid(late.pid, os.WUNTRACED)[1])
        until(lambda: resumed(cli, bob, gate))
        assert agent.starts == [gate]
        late.send_signal(signal.SIGCONT)
        assert late.wait(PATIENCE) == 5
    finally:
        late.kill()
    assert agent.starts == [gate]


def answered_for_both(ann: Clone, bob: Clone, cli: Command) -> str:
    """A gate that either clone can act on, with a lease that soon lapses."""
    for clone in (ann, bob):
        clone.git("config", "gitgate.leaseTerm", "1s")
    ann.git("config", "gitgate.session", "push")
    gate = cli.quick(
        "ask", "Which?", "--agent", "scripted", "--session", "session-1", cwd=ann.path, code=0
    ).line
    cli.quick("sync", cwd=ann.path, code=0)
    publish_work(ann, gate)
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    return gate


def publish_work(clone: Clone, gate: str) -> None:
    clone.git("push", "-q", "origin", f"refs/hitl/work/{gate}", f"refs/hitl/sessions/{gate}")
