"""What `git gate doctor` says of GitLab."""

from __future__ import annotations

from typing import Any

import pytest

from support.forges.gitlab import GitLabForge
from support.testbed.command import Command
from support.testbed.repositories import Clone


@pytest.fixture
def here(repo: Clone, forge: GitLabForge, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """A person's clone of the project."""
    for name in forge.env:
        monkeypatch.delenv(name)
    repo.git("remote", "add", "origin", f"http://127.0.0.1:{forge.port}/{forge.repository}.git")
    repo.git("config", "gitgate.forge", "gitlab")
    return repo


def found(cli: Command, *flags: str) -> dict[str, dict[str, Any]]:
    said = cli.quick("doctor", "--json", *flags).json["findings"]
    return {one["name"]: one for one in said if one["name"].startswith("gitlab")}


def test_off_line(here: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose token speaks there, and a setting that says nothing there."""
    said = found(cli)
    assert said["gitlab token"]["mend"] == "set GITGATE_GITLAB_TOKEN or GITLAB_TOKEN"
    assert "gitlab place" not in said
    assert "a machine of yours has to look" in said["gitlab pipeline"]["words"]
    here.git("config", "gitgate.workflows", f"https://github.com/team/git-gate@{'ab' * 20}")
    cli.quick("init", "--gitlab", "--no-resume", cwd=here.path, code=0)
    assert "does not include git gate's jobs" in found(cli)["gitlab pipeline"]["words"]
    here.git("config", "gitgate.workflows", f"https://github.com/team/git-gate@{'cd' * 20}")
    assert "another commit" in found(cli)["gitlab pipeline"]["words"]
    here.git("config", "gitgate.forgeIssue", "12")
    monkeypatch.setenv("GITLAB_TOKEN", "ada-token")
    said = found(cli)
    assert "that of GITLAB_TOKEN" in said["gitlab token"]["words"]
    assert "merge requests alone" in said["gitlab place"]["words"]


@pytest.mark.usefixtures("here")
def test_on_line(cli: Command, forge: GitLabForge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the token may write, whether a merge waits, and whether jobs may push."""
    assert "without a token" in found(cli, "--online")["gitlab"]["words"]
    monkeypatch.setenv("GITGATE_GITLAB_TOKEN", "ada-token")
    said = found(cli, "--online")
    assert said["gitlab rights"]["words"] == f"the token may write to {forge.repository}"
    assert "can be merged" in said["gitlab merges"]["words"]
    assert "gitlab jobs" not in said
    forge.settings |= {
        "only_allow_merge_if_pipeline_succeeds": True,
        "ci_push_repository_for_job_token_allowed": True,
        "ci_pipeline_variables_minimum_override_role": "developer",
    }
    forge.join("eve", 20, token="ada-token")
    said = found(cli, "--online")
    assert "may not write" in said["gitlab rights"]["words"]
    assert "gitlab merges" not in said
    assert "may push" in said["gitlab jobs"]["words"]
    assert "override variables" in said["gitlab variables"]["words"]
