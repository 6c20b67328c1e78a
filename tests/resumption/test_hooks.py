"""A server whose hooks run: an answer that is pushed there resumes the agent, once, and the push does not wait for it."""

from __future__ import annotations

import socket

import pytest

from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

COMMITS = 'echo "db=$GITGATE_ANSWER" > db.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'


@pytest.fixture(autouse=True)
def _sessions_travel(server: Clone, ann: Clone, bob: Clone, cli: Command) -> None:
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    del server


def ask(cli: Command, clone: Clone, *flags: str) -> str:
    return cli.quick("ask", "Which database?", "--agent", "scripted", *flags, cwd=clone.path, code=0).line


def state(cli: Command, clone: Clone, gate: str) -> str:
    cli.quick("sync", cwd=clone.path)
    return str(cli.quick("show", gate, "--json", cwd=clone.path, code=0).json["state"])


def test_an_answer_from_another_clone_resumes_the_agent_on_the_server(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Asked in one clone, answered in another, resumed on the server: the branch goes on from the partial work."""
    agent.does(COMMITS)
    ann.git("checkout", "-q", "-b", "feature")
    ann.git("push", "-q", "origin", "feature")
    ann.write("partial", "p")
    gate = ask(cli, ann)
    cli.quick("sync", cwd=bob.path, code=0)
    said = cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
    assert "pushed to origin; its hook resumes it" in said.err
    until(lambda: "refs/heads/feature" in server.refs() and state(cli, bob, gate) == "resumed")
    assert server.git("log", "-1", "--format=%s", "feature") == "Use Postgres"
    assert server.git("show", "feature:partial") == "p"
    assert f"Gate: {gate}" in server.git("log", "-1", "--format=%b", "feature")
    until(lambda: not (server.path / "gitgate/worktrees" / gate).exists())
    assert list(server.refs("refs/heads")) == ["refs/heads/feature", "refs/heads/main"]
    assert agent.starts == [gate]
    letter = cli.quick("show", gate, cwd=bob.path, code=0).out
    made = server.git("rev-parse", "feature")[:10]
    assert f"What came of it\n  resumed: by local on {socket.gethostname()}, attempt 1\n" in letter
    assert f"commits on feature: {made}\n" in letter


def test_an_answer_that_the_server_acts_on_asks_for_no_init(
    server: Clone, ann: Clone, agent: Agent, cli: Command
) -> None:
    """Not even in the clone where the agent asked, as long as that was not set up."""
    ann.git("config", "--unset", "gitgate.initialised")
    agent.does(COMMITS)
    gate = ask(cli, ann, "-q")
    said = cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    assert "its hook resumes it" in said.err
    assert "git gate init" not in said.err
    until(lambda: state(cli, ann, gate) == "resumed")


@pytest.mark.slow
def test_a_session_that_stayed_behind_is_not_promised(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """The server says so as it takes the answer, and writes it into the gate once; whoever has the session goes on."""
    ann.git("config", "gitgate.session", "local")
    gate = ask(cli, ann)
    cli.quick("sync", cwd=bob.path, code=0)
    said = cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
    host = socket.gethostname()
    assert (
        f"pushed to origin; it is not resumed there (its session is not here); it was asked on {host} in {ann.path}"
        in said.err
    )
    until(lambda: "commented" in events(server, gate))
    server.git("hook", "run", "post-receive", check=False)
    cli.quick("resume", "--all", cwd=server.path, code=1)
    assert events(server, gate) == ["opened", "answered", "commented"]
    cli.quick("sync", cwd=ann.path, code=0)
    assert f"not resumed on {host}" in cli.quick("show", gate, cwd=ann.path, code=0).out
    assert state(cli, ann, gate) == "answered"
    cli.quick("resume", gate, cwd=ann.path, code=0)
    assert agent.starts == [gate]
    assert state(cli, bob, gate) == "resumed"


def events(server: Clone, gate: str) -> list[str]:
    return [
        line.split(":")[0].split()[0]
        for line in server.git(
            "log", "--reverse", "--format=%(trailers:key=Hitl-Event,valueonly)", f"refs/hitl/open/{gate}"
        ).splitlines()
        if line
    ]


@pytest.mark.parametrize(
    ("where", "key", "why"),
    [
        ("server", "gitgate.resumeHere", "git gate init did not allow it"),
        ("hook", "post-receive", "it has no post-receive hook"),
        ("hook", "pre-receive", ""),
        ("machine", "gitgate.agent.scripted.resume", "no command is set that starts 'scripted'"),
    ],
)
@pytest.mark.slow
def test_a_server_says_why_it_does_not_resume(
    server: Clone, ann: Clone, agent: Agent, cli: Command, where: str, key: str, why: str
) -> None:
    """What it lacks is named, and the way on."""
    gate = ask(cli, ann)
    if where == "machine":
        run_git("config", "--global", "--unset", key, cwd=ann.path)
    elif where == "hook":
        (server.path / "hooks" / key).unlink()
    else:
        server.git("config", key, "false")
    said = cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0).err
    assert (f"it is not resumed there ({why}" if why else "no hook there said that it resumes it") in said
    assert f"nothing will resume this by itself: git gate resume {gate[:4]}" in said
    assert agent.starts == [] or key == "pre-receive"  # an older server resumes, too, and says nothing


@pytest.mark.slow
def test_the_push_does_not_wait_for_the_agent(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """The agent is at work when the push that started it is through."""
    agent.is_held()
    gate = ask(cli, ann)
    cli.quick("sync", cwd=bob.path, code=0)
    cli.quick("respond", gate, "Postgres", "--no-push", cwd=bob.path, code=0)
    bob.git("push", "-q", "origin", f"refs/hitl/open/{gate}")
    until(lambda: agent.starts == [gate])
    assert agent.ends == []
    agent.let_go()
    until(lambda: agent.ends == [gate])


@pytest.mark.slow
def test_the_same_hook_run_twice_changes_nothing(
    server: Clone, ann: Clone, agent: Agent, cli: Command
) -> None:
    """A delivery that is repeated finds nothing to do."""
    gate = ask(cli, ann)
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    until(lambda: state(cli, ann, gate) == "resumed")
    tip = server.refs()[f"refs/hitl/open/{gate}"]
    for _ in range(2):
        (server.path / "gitgate/called").touch()
        cli("hook", "post-receive", cwd=server.path, env={"GIT_DIR": "."}, code=0)
    assert server.refs()[f"refs/hitl/open/{gate}"] == tip
    assert agent.starts == [gate]


@pytest.mark.slow
@pytest.mark.thorough
def test_many_answers_in_one_push_are_one_run(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Each gate is claimed once, by one runner, at most so many at a time."""
    gates = [ask(cli, ann) for _ in range(5)]
    cli.quick("sync", cwd=bob.path, code=0)
    for gate in gates:
        cli.quick("respond", gate, "Postgres", "--no-push", cwd=bob.path, code=0)
    cli.quick("sync", cwd=bob.path, code=0)
    until(lambda: sorted(agent.ends) == sorted(gates))
    assert sorted(agent.starts) == sorted(gates)


def test_a_server_that_may_not_resume_does_not(server: Clone, ann: Clone, agent: Agent, cli: Command) -> None:
    """Starting agents takes consent; the gates are kept all the same."""
    cli.quick("init", "--server", "--no-resume", cwd=server.path, code=0)
    gate = ask(cli, ann)
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    log = server.path / "gitgate/logs/runner.log"
    until(lambda: "not started here" in log.read_text())
    assert agent.starts == []


@pytest.mark.slow
def test_a_branch_that_went_on_gets_the_commits_beside_it(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Where no fast-forward is possible the commits have a branch of their own, and the outcome names it."""
    agent.does(COMMITS)
    gate = ask(cli, ann)
    bob.commit("meanwhile", README="by Bob\n")
    bob.git("push", "-q", "origin", "main")
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    until(lambda: state(cli, ann, gate) == "resumed")
    found = cli.quick("show", gate, "--json", cwd=ann.path, code=0).json["resume"]
    assert found["branch"] == f"gate/{gate}"
    assert server.git("log", "-1", "--format=%s", f"gate/{gate}") == "Use Postgres"
    assert server.git("log", "-1", "--format=%s", "main") == "meanwhile"


@pytest.mark.slow
def test_a_server_that_has_no_name_lends_the_askers(
    server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command, nobody: None
) -> None:
    """Git refuses to commit without an identity; the agent then goes by the name of the person whose agent it is."""
    for clone, name in ((ann, "Ann"), (bob, "Bob")):
        clone.git("config", "user.name", name)
        clone.git("config", "user.email", f"{name.lower()}@example.org")
    agent.set_up()
    agent.does(COMMITS)
    ann.git("checkout", "-q", "-b", "feature")
    ann.git("push", "-q", "origin", "feature")
    gate = ask(cli, ann)
    cli.quick("sync", cwd=bob.path, code=0)
    cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
    until(lambda: state(cli, bob, gate) in ("resumed", "failed"))
    assert server.git("log", "-1", "--format=%an <%ae>", "feature") == "Ann <ann@example.org>"
