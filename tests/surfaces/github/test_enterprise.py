"""Which server of GitHub's: where the workflows come from, and what Enterprise Server does otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.context import open_desk
from gitgate.errors import Failure
from gitgate.setup.workflows import NAMES, source_of
from gitgate.surfaces.forge.hosts.github import RUN_DETAILS, GitHub, headers
from gitgate.surfaces.forge.hosts.web import ForgeFailed, Web
from support.forges.standin import Fault, Forge, forge_server
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import Team

PIN = "team/git-gate@" + "a1" * 20


@pytest.mark.parametrize(
    ("url", "commit", "found"),
    [
        ("https://github.com/team/git-gate", "a1" * 20, ("team/git-gate", "a1" * 20)),
        ("https://github.com/team/git-gate.git", "a1" * 20, ("team/git-gate", "a1" * 20)),
        ("https://github.com/team/git-gate", "", None),
        ("ssh://git@ssh.github.com:443/team/git-gate", "a1" * 20, ("team/git-gate", "a1" * 20)),
        ("https://github.com.evil.example/team/git-gate", "a1" * 20, None),
        ("https://git.example.org/team/git-gate", "a1" * 20, None),
        ("https://evil.example/github.com/team/git-gate", "a1" * 20, None),
        ("file:///srv/git-gate", "", None),
    ],
)
def test_the_source_is_where_it_was_installed_from(
    repo: Clone, monkeypatch: pytest.MonkeyPatch, url: str, commit: str, found: tuple[str, str] | None
) -> None:
    """As pip noted it, at that commit; an installation from elsewhere names none."""
    noted = json.dumps({"url": url, "vcs_info": {"vcs": "git", "commit_id": commit}})
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", lambda *_: noted)
    assert source_here(repo) == (("github.com", *found) if found else None)


def source_here(repo: Clone) -> tuple[str, str, str] | None:
    desk = open_desk(repo.path, os.environ)
    try:
        said = source_of(desk)
    except Failure:
        return None
    finally:
        desk.close()
    return said.host, said.repository, said.commit


@pytest.mark.parametrize(
    "address", ["https://git.example.org/team/project", "git@git.example.org:team/project"]
)
@pytest.mark.parametrize(
    ("url", "forge", "host"),
    [
        ("https://git.example.org/tools/git-gate", "github", "git.example.org"),
        ("https://git.example.org/tools/git-gate", "", "git.example.org"),
        ("https://github.com/tools/git-gate", "github", ""),
        ("https://github.com/tools/git-gate", "", "github.com"),
        ("https://github.com/tools/git-gate", "gitea", "github.com"),
        ("https://other.example.org/tools/git-gate", "github", ""),
    ],
)
def test_enterprise_server_calls_what_is_on_it(
    repo: Clone, monkeypatch: pytest.MonkeyPatch, address: str, url: str, forge: str, host: str
) -> None:
    """The remote is on it by the setting, or by where git gate came from; no other server's commit is named there."""
    repo.git("remote", "add", "origin", address)
    repo.git("config", "gitgate.forge", forge or "github")
    if not forge:
        repo.git("config", "--unset", "gitgate.forge")
    noted = json.dumps({"url": url, "vcs_info": {"vcs": "git", "commit_id": "a1" * 20}})
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", lambda *_: noted)
    assert source_here(repo) == ((host, "tools/git-gate", "a1" * 20) if host else None)


def test_init_on_enterprise_server_installs_from_it(repo: Clone, cli: Command) -> None:
    """No server is named, so that a job fetches from its own; written again it stays so."""
    repo.git("remote", "add", "origin", "https://git.example.org/team/project")
    repo.git("config", "gitgate.forge", "github")
    refused = cli.quick("init", "--github", code=1).err
    assert "not installed from a repository on git.example.org" in refused
    repo.git("config", "gitgate.workflows", PIN)
    for _ in range(2):
        cli.quick("init", "--github", code=0)
        for name in NAMES:
            text = (repo.path / ".github/workflows" / name).read_text()
            assert 'source: {}\n      source-commit: "{}"\n'.format(*PIN.split("@")) in text
            assert "github.com/" not in text
            assert f"uses: {PIN.partition('@')[0]}/.github/workflows/" in text


# Enterprise Server 3.19 and earlier


@pytest.fixture
def enterprise(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    """It refuses to be asked for the run that it starts."""
    with forge_server("enterprise") as forge:
        forge.join("ada", token="ada-token")
        for name, value in forge.env.items():
            monkeypatch.setenv(name, value)
        yield forge


def hub(forge: Forge) -> GitHub:
    return GitHub(Web(forge.api, "ada-token", headers=headers()), forge.repository, forge.site)


def test_a_job_is_started_on_enterprise_server(enterprise: Forge) -> None:
    """Without its run; that it refuses to be asked is found out once."""
    ours = hub(enterprise)
    for _ in range(2):
        assert ours.dispatch("7k2fw9c3ab", "a" * 40) == f"{enterprise.site}/actions/workflows/gitgate.yml"
    assert [sent["inputs"]["gate"] for sent in enterprise.dispatched] == ["7k2fw9c3ab"] * 2
    assert len([one for one in enterprise.asked if one.endswith("/dispatches")]) == 3


def test_another_refusal_is_one(enterprise: Forge) -> None:
    """Neither asked again nor taken for that one."""
    enterprise.faults = [
        Fault(422, words="Workflow does not have 'workflow_dispatch' trigger", methods=("POST",))
    ]
    with pytest.raises(ForgeFailed, match="trigger") as failed:
        hub(enterprise).dispatch("7k2fw9c3ab", "a" * 40)
    assert "git gate init --github" in failed.value.hint
    assert enterprise.dispatched == []


def test_githubs_own_tells_the_run(forge: Forge) -> None:
    """There it is asked for."""
    assert hub(forge).dispatch("7k2fw9c3ab", "a" * 40) == f"{forge.site}/actions/runs/7"
    assert forge.dispatched[0][RUN_DETAILS] is True


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_an_answer_from_a_terminal_starts_a_job_there(
    enterprise: Forge, bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """As from github.com, when it is answered and with `--runner github` later."""
    team = Team(enterprise, bare, clone_of, cli, tmp_path)
    gate = team.ask("Which?")
    said = cli.quick("respond", gate, "Postgres", cwd=team.agents.path, code=0)
    assert f"a job resumes it: {enterprise.site}/actions/workflows/gitgate.yml" in said.err
    cli.quick("resume", gate, "--runner", "github", cwd=team.agents.path, code=0)
    commit = team.gate(gate)["answer"]["commit"]
    assert [one["inputs"] for one in enterprise.dispatched] == [{"gate": gate, "commit": commit}] * 2
