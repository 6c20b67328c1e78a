"""`git gate init --gitlab`: what it writes, what it leaves alone, and what it pins."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from gitgate.setup.workflows import JOBS, OURS_IN, ROOT
from support.forges.pipelines import INSTALL, Loader, PipelineFiles, documents
from support.testbed.command import Command
from support.testbed.repositories import Clone

TOP = Path(__file__).parents[3]
COMMIT, NEWER = "c0ffee" * 6 + "beef", "ab" * 20


@pytest.fixture
def here(repo: Clone) -> Clone:
    repo.git("remote", "add", "origin", "https://gitlab.com/group/project.git")
    repo.git("config", "gitgate.workflows", f"https://github.com/team/git-gate@{COMMIT}")
    return repo


def written(cli: Command, clone: Clone, *flags: str, code: int = 0) -> str:
    cli.quick("init", "--gitlab", "--no-resume", *flags, cwd=clone.path, code=code)
    place = clone.path / OURS_IN
    return place.read_text() if place.exists() else ""


def test_what_is_included_is_pinned_by_commit_and_by_hash(here: Clone, cli: Command) -> None:
    """From GitHub's address of that commit, and only as it is in this git gate; from the same GitLab as a project's file."""
    text = written(cli, here)
    _, said = documents(text)
    (one,) = said["include"]
    assert one["remote"] == f"https://raw.githubusercontent.com/team/git-gate/{COMMIT}/{JOBS}"
    assert one["integrity"] == "sha256-" + b64encode(sha256((TOP / JOBS).read_bytes()).digest()).decode()
    assert (one["inputs"]["source"], one["inputs"]["source-commit"]) == (
        "https://github.com/team/git-gate",
        COMMIT,
    )
    here.git("config", "gitgate.workflows", f"https://gitlab.com/tools/ci/git-gate@{NEWER}")
    (one,) = documents(written(cli, here))[1]["include"]
    assert {name: one[name] for name in ("project", "ref", "file")} == {
        "project": "tools/ci/git-gate",
        "ref": NEWER,
        "file": JOBS,
    }
    assert "integrity" not in one


def test_written_again_it_changes_the_commit_alone(here: Clone, cli: Command) -> None:
    """The agent is a person's."""
    before = written(cli, here).replace("image: python:3.13", "image: ours:1")
    (here.path / OURS_IN).write_text(before)
    here.git("config", "gitgate.workflows", f"https://github.com/team/git-gate@{NEWER}")
    assert written(cli, here) == before.replace(COMMIT, NEWER)
    root = here.path / ROOT
    root.write_text(root.read_text() + "\nown:\n  script: [make]\n")
    written(cli, here)
    assert "own:" in root.read_text()


def test_a_file_of_ones_own_stays(here: Clone, cli: Command) -> None:
    """It is said what to add to it."""
    (here.path / ROOT).write_text("own:\n  script: [make]\n")
    said = cli.quick("init", "--gitlab", "--no-resume", cwd=here.path, code=0)
    assert "add the inputs and the include of docs/gitlab.md" in said.err + said.out
    assert (here.path / ROOT).read_text() == "own:\n  script: [make]\n"
    (here.path / OURS_IN).write_text("somebody: else\n")
    refused = cli.quick("init", "--gitlab", cwd=here.path, code=2)
    assert f"{OURS_IN} is there, and is not ours" in refused.err


def test_it_is_taken_away_again(here: Clone, cli: Command) -> None:
    """A root that somebody has changed stays."""
    written(cli, here)
    cli.quick("init", "--gitlab", "--remove", cwd=here.path, code=0)
    assert not (here.path / ROOT).exists()
    assert not (here.path / ".gitlab").exists()


@pytest.mark.parametrize("named", ["team/git-gate@main", "https://github.com/team/git-gate@main", "git-gate"])
def test_what_can_be_moved_is_no_source(here: Clone, cli: Command, named: str) -> None:
    """A branch or a tag."""
    here.git("config", "gitgate.workflows", named)
    assert "the 40 characters of a commit" in cli.quick("init", "--gitlab", cwd=here.path, code=2).err


def test_from_a_third_server_nothing_can_be_included(here: Clone, cli: Command) -> None:
    """Neither GitHub nor this GitLab."""
    here.git("config", "gitgate.workflows", f"https://git.example.org/team/git-gate@{COMMIT}")
    assert "neither GitHub nor this GitLab" in cli.quick("init", "--gitlab", cwd=here.path, code=1).err


def test_the_page_shows_the_root_that_is_written() -> None:
    """Whoever has a file of their own adds that to it."""
    page = (TOP / "docs/gitlab.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    root = (TOP / "gitgate/texts/gitlab/root.yml").read_text(encoding="utf-8")
    assert shown == root.partition("\n")[2]


def test_a_job_installs_as_githubs_do() -> None:
    """By the lock of the pinned commit, and nothing is built from what a registry has."""
    text = (TOP / JOBS).read_text(encoding="utf-8")
    lines = documents(text)[1][INSTALL]["script"]
    github = (TOP / ".github/workflows/agent.yml").read_text(encoding="utf-8")
    pip = [line for line in lines if "pip install" in line]
    assert len(pip) == 2
    assert all(" ".join(line.split()) in " ".join(github.split()) for line in pip)
    assert lines[1] == (
        'git init -q source && git -C source fetch -q --depth 1 "$SOURCE" "$SOURCE_COMMIT" '
        "&& git -C source checkout -q FETCH_HEAD"
    )


def test_no_input_is_part_of_a_command() -> None:
    """But what installs the agent, which the default branch names: each of the others is a variable that is not looked into."""
    _, jobs = documents((TOP / JOBS).read_text(encoding="utf-8"))
    scripts = [line for job in jobs.values() for line in job.get("script", []) if isinstance(line, str)]
    assert {line for line in scripts if "$[[" in line} == {"$[[ inputs.agent-setup ]]"}
    for job in jobs.values():
        for value in job.get("variables", {}).values():
            if isinstance(value, dict):
                assert value["expand"] is False
    for free in ("task", "branch", "gate", "commit", "command"):
        named = [
            v
            for job in jobs.values()
            for v in job.get("variables", {}).values()
            if f"inputs.{free} ]]" in str(v)
        ]
        assert named
        assert all(isinstance(value, dict) for value in named)


def test_an_agents_job_has_no_environment_with_the_token() -> None:
    """And none of its artifacts, nor the claim's, is given to whoever asks for it."""
    _, jobs = documents((TOP / JOBS).read_text(encoding="utf-8"))
    ours = {name: job for name, job in jobs.items() if name.startswith("gitgate:")}
    scopes = {name: job.get("environment", {}).get("name", "") for name, job in ours.items()}
    assert scopes == {
        "gitgate:answer": "gitgate",
        "gitgate:hand": "",
        "gitgate:agent": "gitgate-agent",
        "gitgate:deliver": "gitgate",
        "gitgate:first": "gitgate-agent",
        "gitgate:publish": "gitgate",
    }
    assert all(job["artifacts"]["access"] == "none" for job in ours.values() if "artifacts" in job)
    assert [one["job"] for one in ours["gitgate:agent"]["needs"]] == ["gitgate:hand"]


def test_the_files_fit_together() -> None:
    """Every input that one gives the next takes, and each has a value."""
    top = TOP / "gitgate/texts/gitlab"
    ours = (top / "gitgate.yml").read_text().replace("  - SOURCE", "  - project: x")
    files = PipelineFiles((top / "root.yml").read_text(), {OURS_IN: ours}, (top / "jobs.yml").read_text())
    assert "gitgate:answer" in files.jobs({})
    with pytest.raises(AssertionError, match="input gate"):
        files.jobs({"gate": "7k2f; rm -rf"})
    assert list(yaml.load_all(ours, Loader))
