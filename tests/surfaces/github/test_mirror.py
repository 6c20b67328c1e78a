"""A repository that is mirrored to GitHub: people answer there, and the server of record has the questions and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.resuming import Agent
from support.testbed.repositories import Clone

from .conftest import THREAD, Team

pytestmark = pytest.mark.slow  # each takes a second or more


@dataclass
class Mirrored:
    """`team.bare` is the server of record; the mirror has its branches, and no gate ever."""

    team: Team
    mirror: Clone

    def push_on(self) -> None:
        """As the page says: branches and tags."""
        self.team.bare.git("push", "-q", str(self.mirror.path), "refs/heads/*", "refs/tags/*")

    def gates(self, where: Clone) -> str:
        return where.git("for-each-ref", "refs/hitl")


@pytest.fixture
def mirrored(team: Team) -> Mirrored:
    path = team.folder / "mirror.git"
    team.bare.git("init", "-q", "--bare", "--initial-branch=main", str(path))
    found = Mirrored(team, Clone(path))
    found.push_on()
    return found


@pytest.fixture
def machine_of_both(mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    """No job: a clone of the server of record, told where the mirror is, with a token of Ada's for it."""
    team = mirrored.team
    here = team.clone_of(team.bare, "both")
    at = {"forgeAt": team.forge.site, "forge": "github", "forgeApi": team.forge.api}
    for key, value in at.items():
        here.git("config", f"gitgate.{key}", value)
    with monkeypatch.context() as outside:
        for name in team.forge.env:
            outside.delenv(name)
        outside.setenv("GITGATE_GITHUB_TOKEN", "ada-token")
        yield here


def swept(team: Team, here: Clone) -> Any:
    return team.cli.quick("github", "sweep", "--json", cwd=here.path, code=0).json


def test_an_answer_on_the_mirror_is_pushed_to_the_server_of_record(
    mirrored: Mirrored, machine_of_both: Clone
) -> None:
    """The question is shown there, the answer is recorded here; the mirror has nothing of either."""
    team = mirrored.team
    gate = team.ask("Which?", show=False)
    swept(team, machine_of_both)
    assert any(f"gate={gate} seen=" in one["body"] for one in team.forge.by("ada"))
    before = mirrored.gates(team.bare)
    team.forge.write(THREAD, "grace", "/answer Postgres")
    assert [one["outcome"] for one in swept(team, machine_of_both)["accepted"]] == ["answered"]
    assert mirrored.gates(team.bare) != before
    said = team.gate(gate)
    assert said["answer"]["values"] == {"answer": "Postgres"}
    assert said["answer"]["by"].startswith("grace <")
    assert mirrored.gates(mirrored.mirror) == ""
    assert [one["state"] for one in team.forge.statuses] == ["pending", "success"]


def test_its_agent_goes_on_and_the_mirror_follows(
    mirrored: Mirrored, machine_of_both: Clone, agent: Agent
) -> None:
    """On the machine that hears the answer; its commits are on the server of record, and reach the mirror with the next push."""
    team = mirrored.team
    gate = team.ask("Which?", show=False)
    swept(team, machine_of_both)
    team.forge.write(THREAD, "grace", "/answer Postgres")
    machine_of_both.git("config", "gitgate.publishWork", "true")
    agent.does("echo done > made && git add made && git commit -qm Made")
    team.cli.quick("github", "sweep", "--resume", cwd=machine_of_both.path, code=0)
    assert agent.ends == [gate]
    assert team.gate(gate)["state"] == "resumed"
    made = team.bare.git("rev-parse", "feature")
    assert mirrored.mirror.git("rev-parse", "feature") != made
    mirrored.push_on()
    assert mirrored.mirror.git("rev-parse", "feature") == made
    assert any("the agent went on" in one["body"] for one in team.forge.by("ada"))


def test_a_job_of_the_mirror_pushes_to_the_server_of_record(
    mirrored: Mirrored, clone_of: Callable[..., Clone]
) -> None:
    """With the other server as a remote of its own."""
    team = mirrored.team
    gate = team.ask("Which?", show=False)
    job = clone_of(mirrored.mirror, "job-of-the-mirror")
    job.git("remote", "add", "record", str(team.bare.path))
    job.git("fetch", "-q", "record")
    job.git("config", "gitgate.remote", "record")
    team.cli.quick("github", "prepare", cwd=job.path, env={"CI": "true"}, code=0)
    swept(team, job)
    team.forge.write(THREAD, "grace", "/answer Postgres")
    assert [one["outcome"] for one in swept(team, job)["accepted"]] == ["answered"], team.told()
    assert team.gate(gate)["answer"]["values"] == {"answer": "Postgres"}
    assert mirrored.gates(mirrored.mirror) == ""


def test_an_address_that_is_none_is_named(mirrored: Mirrored, machine_of_both: Clone) -> None:
    """With what to type; the remote is not taken in its place."""
    machine_of_both.git("config", "gitgate.forgeAt", "somewhere")
    said = mirrored.team.cli.quick("github", "sweep", cwd=machine_of_both.path, code=1).err
    assert "gitgate.forgeAt is somewhere" in said
    assert "git config gitgate.forgeAt https://github.com/OWNER/NAME" in said
