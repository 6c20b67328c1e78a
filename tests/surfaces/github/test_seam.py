"""The seam: a forge that is nobody's subclass is shown questions, heard and asked for jobs by the same code."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitgate
from gitgate.acts import find_gate
from gitgate.context import Desk, open_desk
from gitgate.surfaces.forge.accept import accept_comment, dispatch, doubt
from gitgate.surfaces.forge.hosts import Author, Forge, PullRequest
from gitgate.surfaces.forge.hosts.connect import KINDS, ForgeKind, connect, find_place
from gitgate.surfaces.forge.posting import load_board, post_gate
from gitgate.surfaces.forge.sweeping import sweep
from support.forges.tiny import Tiny
from support.testbed.command import Command
from support.testbed.repositories import Clone

ADA, EVE = Author("ada", 7), Author("eve", 8)


@pytest.fixture
def clone(bare: Clone, clone_of: Callable[..., Clone]) -> Clone:
    here = clone_of(bare, "agents")
    here.git("checkout", "-q", "-b", "feature")
    here.git("push", "-q", "origin", "feature")
    for key in ("initialised", "publishWork"):
        here.git("config", f"gitgate.{key}", "true")
    return here


@pytest.fixture
def desk(clone: Clone) -> Iterator[Desk]:
    opened = open_desk(clone.path, os.environ)
    yield opened
    opened.close()


@pytest.mark.usefixtures("agent")
def test_another_forge_is_served_by_the_same_code(clone: Clone, cli: Command, desk: Desk) -> None:
    """Asked, shown, refused, answered, proven, and a job asked for: nothing of GitHub's takes part."""
    tiny = Tiny()
    forge: Forge = tiny
    head = clone.git("rev-parse", "HEAD")
    tiny.pulls = [PullRequest(3, "feature", head, f"{tiny.site}/merge_requests/3")]
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=clone.path, code=0).line
    assert sweep(desk, forge).trouble == []
    assert "Which?" in tiny.comments[1].body
    assert tiny.statuses[head][0] == "pending"
    assert accept_comment(desk, forge, tiny.write(3, EVE, "/answer MySQL").number).outcome == "refused"
    reply = tiny.write(3, ADA, "/answer Postgres")
    assert accept_comment(desk, forge, reply.number).outcome == "answered"
    assert (reply.number, "+1") in tiny.reactions
    now = find_gate(desk, gate).gate
    assert now.answer is not None
    assert (now.state, now.answer.answer.via) == ("answered", "tiny")
    assert doubt(desk, forge, now) == ""
    post_gate(desk, forge, now, load_board(forge, 3))
    assert "Answered" in tiny.comments[1].body
    assert dispatch(desk, forge, now) == f"{tiny.site}/jobs/1"
    assert tiny.started == [(gate, now.answer.commit)]


@pytest.mark.parametrize(
    "address",
    ["https://tiny.example/team/project.git", "git@tiny.example:team/project.git", "ssh://git@tiny.example/team/project"],
)  # fmt: skip
def test_a_new_kind_is_one_line(clone: Clone, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """How it is built, and where its API is; its token is found as any other's."""
    monkeypatch.setenv("GITGATE_GITHUB_TOKEN", "a-token")
    kind = ForgeKind(lambda place, _web: Tiny(place.repository), lambda server: f"{server}/api/v4")
    monkeypatch.setitem(KINDS, "gitea", kind)  # under a name that the setting knows
    clone.git("remote", "set-url", "origin", address)
    clone.git("config", "gitgate.forge", "gitea")
    desk = open_desk(clone.path, os.environ)
    try:
        found, forge = find_place(desk), connect(desk)
    finally:
        desk.close()
    assert found is not None
    assert (found.api, found.site) == ("https://tiny.example/api/v4", "https://tiny.example/team/project")
    assert isinstance(forge, Tiny)
    assert forge.is_ours("team/project")


def test_without_a_remote_the_way_to_one_is_named(repo: Clone, cli: Command) -> None:
    """There is nothing yet that could be a forge."""
    said = cli.quick("github", "sweep", cwd=repo.path, code=1)
    assert "no forge is known for this repository: there is no remote" in said.err
    assert "git remote add origin URL" in said.err


def test_only_githubs_own_checks_know_more_than_the_seam() -> None:
    """Whoever serves any forge names no adapter: those who do are told here, with the reason."""
    reasons = {
        "surfaces/forge/hosts/connect.py": "it chooses the adapter",
        "surfaces/forge/hosts/gitea.py": "its API is GitHub's with what differs",
        "surfaces/forge/checkup.py": "GitHub's own workflows, secrets and rights, and GitLab's, are what it looks at",
    }
    top = Path(gitgate.__file__).parent
    places = [*(top / "surfaces/forge").rglob("*.py"), *(top / "cli").rglob("*.py")]
    assert {place.relative_to(top).as_posix() for place in places if names_adapter(place)} == set(reasons)


def names_adapter(place: Path) -> bool:
    """Whether it takes an adapter's class from its module."""
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").rpartition(".")[2] in ("github", "gitea", "gitlab")
        and {"GitHub", "Gitea", "GitLab"} & {alias.name for alias in node.names}
        for node in ast.walk(ast.parse(place.read_text(encoding="utf-8")))
    )
