"""Servers, and clones of them, for tests of what moves between repositories."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from gitgate.store.work.pinned import git_settings
from gitgate.store.work.restore import as_environment
from support.servers import HttpServer, SshServer
from support.sharing import Place, make_place
from support.testbed.repositories import Clone

# A fresh machine has `git http-backend` with its git, but no sshd.
SSH = [pytest.mark.server, pytest.mark.slow]
KINDS = ["path", "file", pytest.param("ssh", marks=SSH), pytest.param("http", marks=pytest.mark.server)]


@pytest.fixture
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Clone], str]:
    def of(kind: str, server: Clone) -> str:
        server.git("config", "http.receivepack", "true")
        if kind == "ssh":
            sshd: SshServer = request.getfixturevalue("sshd")
            monkeypatch.setenv("GIT_SSH_COMMAND", sshd.command)
            return sshd.url(server.path)
        if kind == "http":
            web: HttpServer = request.getfixturevalue("web")
            return web.url(server.path)
        return f"file://{server.path}" if kind == "file" else str(server.path)

    return of


@pytest.fixture(params=KINDS)
def place(
    request: pytest.FixtureRequest,
    bare: Clone,
    clone_of: Callable[..., Clone],
    address: Callable[[str, Clone], str],
) -> Place:
    """The same server, reached in each of the four ways."""
    return make_place(bare, clone_of, address(request.param, bare))


@pytest.fixture
def near(bare: Clone, clone_of: Callable[..., Clone]) -> Place:
    """A server by path: for what does not depend on the way there."""
    return make_place(bare, clone_of, str(bare.path))


@pytest.fixture
def branch(repo: Clone) -> Clone:
    """On a branch that has not changed anything yet; `main` has rules, in the middle of the tree as well."""
    repo.commit("rules", rules="main\n", **{"conf/hook": "main\n", "sub/rules": "main\n", "code": "main\n"})
    repo.git("checkout", "-q", "-b", "side")
    return repo


@pytest.fixture
def git_of_agents(branch: Clone, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on git is set up as it is for an agent that works there meanwhile."""

    def set_up() -> None:
        for name, value in as_environment(git_settings(branch.repository), os.environ).items():
            monkeypatch.setenv(name, value)

    return set_up
