"""The same over ssh: whoever pushes is let go at once, while the agent goes on without them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.resuming import Agent, until
from support.servers import ssh_server
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.server]


def test_an_answer_over_ssh(
    server: Clone,
    ann: Clone,
    clone_of: Callable[..., Clone],
    agent: Agent,
    cli: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Asked over ssh, answered over ssh from another clone; the agent runs on the server after the connection is gone."""
    agent.is_held('echo "$GITGATE_ANSWER" > db; git add -A; git commit -qm done')
    # Whoever logs in has another home: the server's own configuration has to do.
    server.git("config", "gitgate.agent.scripted.resume", f'["{agent.folder}/agent.sh"]')
    server.git("config", "user.name", "The Server")
    server.git("config", "user.email", "server@example.org")
    with ssh_server(tmp_path_factory.mktemp("sshd")) as sshd:
        monkeypatch.setenv("GIT_SSH_COMMAND", sshd.command)
        bob = clone_of(server, "bob")
        for clone in (ann, bob):
            clone.git("remote", "set-url", "origin", sshd.url(server.path))
            clone.git("config", "gitgate.session", "push")
            cli.quick("init", "--no-resume", cwd=clone.path, code=0)
        gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
        cli.quick("sync", cwd=bob.path, code=0)
        cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
        assert agent.ends == []
    agent.let_go()
    until(lambda: agent.ends == [gate])
    until(lambda: server.git("log", "-1", "--format=%s", "main") == "done")
