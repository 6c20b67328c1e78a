"""An answer that is given where the agent ran starts it there at once."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more


def ask(cli: Command, clone: Clone) -> str:
    return cli.quick("ask", "Which?", "--agent", "scripted", cwd=clone.path, code=0).line


def state(cli: Command, clone: Clone, gate: str) -> str:
    return str(cli.quick("show", gate, "--json", cwd=clone.path, code=0).json["state"])


@pytest.fixture
def allowed(ann: Clone, cli: Command) -> Clone:
    cli.quick("init", cwd=ann.path, code=0)
    return ann


def test_it_resumes_here_at_once(allowed: Clone, bare: Clone, agent: Agent, cli: Command) -> None:
    """It says so and names the log; the command does not wait; answer and claim arrive together."""
    agent.is_held("echo done > result; git add -A; git commit -qm done")
    gate = ask(cli, allowed)
    said = cli("respond", gate, "Postgres", cwd=allowed.path, code=0)
    found = re.search(r"resuming here \(log (.*)\)", said.err)
    assert found is not None
    assert agent.ends == []
    assert "claimed" in bare.git("log", "--format=%s", f"refs/hitl/open/{gate}")
    agent.let_go()
    until(lambda: state(cli, allowed, gate) == "resumed")
    assert "claimed gate" in Path(found[1]).read_text()
    assert bare.git("log", "-1", "--format=%s", "main") == "done"
    assert agent.starts == [gate]


def test_each_in_turn_resumes_here(
    allowed: Clone, agent: Agent, cli: Command, pty_cli: Callable[..., Terminal]
) -> None:
    """As one answer alone does, and it says so; so does one answer for all that match."""
    gate = ask(cli, allowed)
    terminal = pty_cli("respond", "--each", cwd=allowed.path)
    terminal.expect("? for help")
    terminal.line("Postgres")
    assert "resuming here (log " in " ".join(terminal.finish(code=0).split())
    until(lambda: state(cli, allowed, gate) == "resumed")
    said = cli.quick(cwd=allowed.path, code=0).out
    assert said == "nothing waits for you · 1 resumed\nnext: git gate show\n"
    assert f"{gate}  resumed" in cli.quick("show", cwd=allowed.path, code=0).out
    second = cli.quick("ask", "Which other?", "--agent", "scripted", cwd=allowed.path, code=0).line
    answer = ("respond", "--each", "--match", "other", "-m", "X")
    held = cli(*answer, "--no-resume", "--no-push", cwd=allowed.path, code=0)
    assert "resuming here" not in held.out
    third = cli.quick("ask", "Which other?", "--agent", "scripted", cwd=allowed.path, code=0).line
    assert agent.starts == [gate]
    assert "resuming here (log " in cli(*answer, cwd=allowed.path, code=0).out
    until(lambda: state(cli, allowed, third) == "resumed")
    assert third in agent.starts
    assert second != third


def test_not_where_nobody_allowed_it(ann: Clone, agent: Agent, cli: Command) -> None:
    """Without `init` it is only published, and nothing is promised that nobody does."""
    gate = ask(cli, ann)
    said = cli("respond", gate, "Postgres", cwd=ann.path, code=0)
    assert (
        "pushed to origin; no hook there said that it resumes it; nothing will resume this by itself"
        in said.err
    )
    assert agent.starts == []


def test_not_where_the_agent_did_not_run(allowed: Clone, bob: Clone, agent: Agent, cli: Command) -> None:
    """Somebody else's clone, with the same permission, only publishes."""
    cli.quick("init", cwd=bob.path, code=0)
    gate = ask(cli, allowed)
    cli.quick("sync", cwd=bob.path, code=0)
    said = cli("respond", gate, "Postgres", cwd=bob.path, code=0)
    assert (
        f"it was asked on {socket.gethostname()} in {allowed.path}: there, git gate resume {gate[:4]}"
        in said.err
    )
    assert agent.starts == []


def test_not_when_it_was_asked_not_to(allowed: Clone, agent: Agent, cli: Command) -> None:
    """`--no-resume` leaves it to others."""
    gate = ask(cli, allowed)
    said = cli("respond", gate, "Postgres", "--no-resume", cwd=allowed.path, code=0)
    assert f"nothing will resume this by itself: git gate resume {gate[:4]}" in said.err


def test_another_answer_does_not_start_it_either(allowed: Clone, agent: Agent, cli: Command) -> None:
    """What was answered with `--no-resume`, alone or among many, waits for somebody to ask for its agent."""
    left, other = (ask(cli, allowed) for _ in range(2))
    among = cli.quick("ask", "Which among?", "--agent", "scripted", cwd=allowed.path, code=0).line
    cli("respond", left, "Postgres", "--no-resume", cwd=allowed.path, code=0)
    assert "resuming here" in cli("respond", other, "Postgres", cwd=allowed.path, code=0).err
    until(lambda: state(cli, allowed, other) == "resumed")
    many = ("respond", "--each", "--match", "among", "-m", "Postgres", "--no-resume")
    cli(*many, cwd=allowed.path, code=0)
    last = ask(cli, allowed)
    cli("respond", last, "Postgres", cwd=allowed.path, code=0)
    until(lambda: state(cli, allowed, last) == "resumed")
    assert sorted(agent.starts) == sorted([other, last])
    cli("resume", left, "--detach", cwd=allowed.path, code=0)
    until(lambda: state(cli, allowed, left) == "resumed")
    assert among not in agent.starts
    cli("resume", "--all", cwd=allowed.path, code=0)
    assert state(cli, allowed, among) == "resumed"


def test_out_of_reach_it_is_saved_and_not_resumed(allowed: Clone, agent: Agent, cli: Command) -> None:
    """Nobody may act on a shared gate that nobody can see."""
    gate = ask(cli, allowed)
    allowed.git("remote", "set-url", "origin", str(allowed.path / "gone"))
    said = cli("respond", gate, "Postgres", cwd=allowed.path, code=0)
    assert "saved, not pushed: git gate sync" in said.err
    cli("resume", gate, cwd=allowed.path, code=1)
    assert agent.starts == []


def test_without_a_remote_it_resumes_here(repo: Clone, agent: Agent, cli: Command) -> None:
    """A repository of one's own needs no server."""
    cli.quick("init", cwd=repo.path, code=0)
    gate = ask(cli, repo)
    assert "resuming here" in cli("respond", gate, "Postgres", code=0).err
    until(lambda: state(cli, repo, gate) == "resumed")


def test_no_more_agents_than_allowed(repo: Clone, agent: Agent, cli: Command, tmp_path: Path) -> None:
    """Over all that are answered at once, `maxAgents` run; the others wait their turn, and all are resumed."""
    cli.quick("init", cwd=repo.path, code=0)
    agent.does(
        f"touch {tmp_path}/run-$$; ls {tmp_path} | grep -c run- >> {tmp_path}/counts; sleep 0.4; rm {tmp_path}/run-$$"
    )
    gates = [ask(cli, repo) for _ in range(5)]
    for gate in gates:
        assert "resuming here" in cli("respond", gate, "Postgres", code=0).err
    until(lambda: all(state(cli, repo, gate) == "resumed" for gate in gates))
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 5
    assert max(counts) <= 2


def test_a_gate_that_is_acted_on_alone_is_not_shared_meanwhile(
    ann: Clone, bare: Clone, agent: Agent, cli: Command
) -> None:
    """Its lease is here: shared without it, it would look abandoned. It is shared with its outcome."""
    agent.is_held()
    ann.git("remote", "set-url", "origin", str(ann.path / "gone"))
    gate = ask(cli, ann)
    cli("respond", gate, "Postgres", cwd=ann.path, code=0)
    running = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.starts == [gate])
    ann.git("remote", "set-url", "origin", str(bare.path))
    cli("sync", cwd=ann.path, code=0)
    cli("comment", gate, "still there?", cwd=ann.path, code=0)
    assert f"refs/hitl/open/{gate}" not in bare.refs()
    agent.let_go()
    assert running.wait(PATIENCE) == 0
    running.communicate()
    assert "resumed" in bare.git("log", "--format=%s", f"refs/hitl/open/{gate}")


def test_an_answer_pushed_into_the_agent_s_clone_resumes_it(
    allowed: Clone, bob: Clone, bare: Clone, agent: Agent, cli: Command
) -> None:
    """A clone that was set up is a place to push answers to; the claim is still made where the gate is shared."""
    agent.does("echo done > result; git add -A; git commit -qm done")
    gate = ask(cli, allowed)
    cli.quick("sync", cwd=bob.path, code=0)
    cli.quick("respond", gate, "Postgres", "--no-push", cwd=bob.path, code=0)
    bob.git("push", "-q", str(allowed.path), f"refs/hitl/open/{gate}")
    until(lambda: bare.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}").startswith("resumed"))
    assert agent.starts == [gate]
    assert bare.git("log", "-1", "--format=%s", "main") == "done"
