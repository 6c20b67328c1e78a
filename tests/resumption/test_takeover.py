"""A server's runner that was killed: whoever comes by next has the server go on, and nobody else's runner is disturbed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # leases have to lapse

TERM = 4


def runners(place: Path) -> list[int]:
    """The processes of runners in this repository."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if process.name.isdigit() and (process / "cwd").readlink() == place.resolve():
                mine = b"post-receive" in words or b"runner" in words
                found += [int(process.name)] if mine and b"-m" in words else []
        except OSError:
            continue
    return found


def end_all(place: Path) -> None:
    for number in runners(place):
        with suppress(ProcessLookupError):  # it ended by itself meanwhile
            os.kill(number, signal.SIGKILL)


def kill_runner(place: Path) -> None:
    until(lambda: bool(runners(place)))
    end_all(place)
    until(lambda: not runners(place))


@pytest.fixture(autouse=True)
def _no_runner_stays(bare: Clone) -> Iterator[None]:
    yield
    end_all(bare.path)


@pytest.fixture
def killed(server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command) -> str:
    """A gate whose agent was at work on the server when its runner was killed. Now the agent would come to an end."""
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    server.git("config", "gitgate.leaseTerm", f"{TERM}s")
    agent.does("sleep 30; echo never > never")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    until(lambda: agent.starts == [gate])
    agent.does("echo done > result; git add -A; git commit -qm done")
    kill_runner(server.path)
    return gate


def documented(start: str) -> list[str]:
    """The commands that docs/servers.md has systemd or cron start."""
    text = (Path(__file__).parents[2] / "docs/servers.md").read_text(encoding="utf-8")
    return [line.removeprefix(start) for line in text.splitlines() if line.startswith(start)]


def is_resumed(server: Clone, gate: str) -> bool:
    return server.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}").startswith("resumed")


def branch(clone: Clone) -> None:
    clone.git("push", "-q", "origin", "HEAD:refs/heads/other")


def tag(clone: Clone) -> None:
    clone.git("tag", "v1")
    clone.git("push", "-q", "origin", "v1")


def branch_goes(clone: Clone) -> None:
    clone.git("push", "-q", "origin", ":refs/heads/spare")


@pytest.mark.parametrize("wait", [0.0, TERM + 0.5], ids=["before the lease has lapsed", "afterwards"])
@pytest.mark.parametrize("pushed", [branch, tag, branch_goes])
def test_any_push_has_the_next_runner_begin(
    killed: str, server: Clone, bob: Clone, agent: Agent, pushed: Callable[[Clone], None], wait: float
) -> None:
    """Of whatever kind, and at once: the runner that it starts waits for the lease to lapse."""
    server.git("branch", "spare", "main")
    time.sleep(wait)
    pushed(bob)
    until(lambda: is_resumed(server, killed))
    assert agent.starts == [killed, killed]
    assert agent.ends == [killed]
    # The refs of one move become visible one after another.
    until(lambda: server.git("log", "--format=%s", "main").splitlines() == ["done", "start"])
    until(lambda: not runners(server.path))


def test_a_runner_killed_before_its_claim(
    server: Clone, ann: Clone, agent: Agent, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lease tells of it: what is answered and not begun is enough."""
    ann.git("config", "gitgate.session", "push")
    cli.quick("init", "--no-resume", cwd=ann.path, code=0)
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    hook = server.path / "hooks/post-receive"
    text = hook.read_text()
    hook.write_text("#!/bin/sh\nexit 0\n")
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    hook.write_text(text)
    branch(ann)
    until(lambda: is_resumed(server, gate))
    assert agent.starts == agent.ends == [gate]


@pytest.mark.parametrize("verb", [("sync",), ("list", "--sync")])
def test_git_gate_in_any_clone_wakes_the_server(
    killed: str, server: Clone, bob: Clone, agent: Agent, cli: Command, verb: tuple[str, ...]
) -> None:
    """It is shown as stalled after one lease, and whoever sees that has the server go on. Nothing of it stays there."""
    cli.quick("sync", cwd=bob.path, code=0)
    assert cli.quick("list", "--all", "--json", cwd=bob.path, code=0).json["gates"][0]["stalled"] is False
    time.sleep(TERM + 0.5)
    said = cli.quick(*verb, cwd=bob.path, code=0).err
    assert f"gate {killed}: nobody acts on it; origin was told" in said
    listed = cli.quick("list", "--json", cwd=bob.path, code=0).json["gates"]
    assert [(one["id"], one["stalled"]) for one in listed] == [(killed, True)]
    until(lambda: is_resumed(server, killed))
    assert agent.starts == [killed, killed]
    assert agent.ends == [killed]
    assert not server.refs("refs/hitl/wake")


@pytest.mark.parametrize("by", ["that push", "the next one"])
def test_who_wakes_a_server_may_be_killed_before_it_takes_the_ref_away(
    killed: str, server: Clone, bob: Clone, cli: Command, by: str
) -> None:
    server.git("config", "gitgate.resumeHere", "false")
    cli.quick("sync", "-q", cwd=bob.path, code=0)
    tip = server.refs("refs/hitl/open")[f"refs/hitl/open/{killed}"]
    if by == "that push":
        bob.git("push", "-q", "origin", f"{tip}:refs/hitl/wake/{killed}")
    else:
        server.git("update-ref", f"refs/hitl/wake/{killed}", tip)
        branch(bob)
    until(lambda: not server.refs("refs/hitl/wake"))


def test_git_gate_on_a_terminal_wakes_the_server(
    killed: str, server: Clone, bob: Clone, agent: Agent, pty_cli: Callable[..., Terminal]
) -> None:
    """Without a verb, in a clone that has not heard of it before."""
    time.sleep(TERM + 0.5)
    said = pty_cli(cwd=bob.path, env={"GITGATE_FRESH": "20", "CI": ""}).finish(code=0)
    assert "1 stalled" in said
    assert "nobody acts on it; origin was told" in said
    until(lambda: is_resumed(server, killed))
    assert agent.ends == [killed]


@pytest.mark.parametrize("start", ["ExecStart=", "* * * * * "], ids=["systemd", "cron"])
def test_what_the_documentation_has_a_timer_start(
    killed: str, server: Clone, agent: Agent, start: str
) -> None:
    """Each minute, whether there is anything to do or not; it says nothing that cron would send as a letter."""
    (line,) = documented(start)
    assert line.startswith("/usr/local/bin/git-gate -C /srv/project.git ")
    words = line.split()[3:]

    def tick() -> str:
        command = [sys.executable, "-P", "-m", "gitgate", "-C", str(server.path), *words]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout + done.stderr

    renewed = (server.path / "refs/hitl/leases" / killed).stat().st_mtime
    assert tick() == ""
    if time.time() - renewed < TERM:  # else the machine was so busy that the lease had lapsed by then
        assert agent.ends == []
    time.sleep(TERM + 0.5)
    assert tick() == ""
    assert is_resumed(server, killed)
    assert agent.ends == [killed]
    assert tick() == ""
    assert agent.starts == [killed, killed]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("servers.md", ["git-gate.service", "git-gate.timer"]),
        ("scale.md", ["git-gate-worker.service", "git-gate-beat.service"]),
    ],
)
def test_the_documented_units_are_systemds(tmp_path: Path, page: str, names: list[str]) -> None:
    """Systemd itself finds nothing wrong with them."""
    verify = shutil.which("systemd-analyze")
    assert verify is not None, "systemd-analyze is missing: apt-get install systemd"
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    units = re.findall(r"```\n# /etc/systemd/system/(git-gate[-.\w]+)\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in units] == names
    for name, unit in units:
        here = re.sub(r"ExecStart=\S+", f"ExecStart={sys.executable}", re.sub("User=.*", "User=root", unit))
        (tmp_path / name).write_text(here)
    said = subprocess.run(
        [verify, "verify", *(str(tmp_path / name) for name, _ in units)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (said.returncode, [line for line in said.stderr.splitlines() if "git-gate" in line]) == (0, [])


def test_an_agent_that_works_is_left_alone(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Pushes and looks of others, for longer than a lease: nobody begins with it a second time."""
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    term = 3 * TERM  # a busy machine renews late
    server.git("config", "gitgate.leaseTerm", f"{term}s")
    agent.is_held("echo done > result; git add -A; git commit -qm done")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    until(lambda: agent.starts == [gate])
    number, end = 0, time.monotonic() + 1.5 * term
    while time.monotonic() < end:
        bob.git("push", "-q", "origin", f"HEAD:refs/heads/other-{(number := number + 1)}")
        said = cli.quick("sync", cwd=bob.path, code=0).err
        assert "nobody acts on it" not in said
        time.sleep(TERM / 4)
    agent.let_go()
    until(lambda: is_resumed(server, gate))
    assert agent.starts == [gate]
    assert not server.refs("refs/hitl/wake")


def test_a_runner_of_this_clone_that_was_killed(repo: Clone, agent: Agent, cli: Command) -> None:
    """The next look at the list, as after the machine was started again, starts the next one: that was allowed here."""
    cli.quick("init", cwd=repo.path, code=0)
    repo.git("config", "gitgate.leaseTerm", f"{TERM}s")
    agent.does("sleep 30; echo never > never")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=repo.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=repo.path, code=0)
    until(lambda: agent.starts == [gate])
    agent.does("")
    kill_runner(repo.path)
    time.sleep(TERM + 1.1)
    assert "its runner here is gone; the next one goes on" in cli.quick("list", cwd=repo.path, code=0).err
    until(lambda: agent.ends == [gate])
    until(lambda: cli.quick("show", gate, "--json", cwd=repo.path, code=0).json["state"] == "resumed")
    assert agent.starts == [gate, gate]
