"""A release: the tag, the version, the changelog and the address say the same, or nothing is built; nothing else is permitted."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitgate.version import REPOSITORY, VERSION

TOP = Path(__file__).parents[1]
JOBS: dict[str, Any] = yaml.safe_load((TOP / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
(HOLD,) = (step["run"] for step in JOBS["build"]["steps"] if step.get("name", "").startswith("Hold the tag"))


def held(
    folder: Path, *, tag: str = f"v{VERSION}", repository: str = "team/gate", day: str = "2026-11-19"
) -> str:
    """What the step says of a tree; empty where it lets the release go on."""
    (folder / "gitgate").mkdir()
    text = (TOP / "gitgate/version.py").read_text("utf-8")
    (folder / "gitgate/version.py").write_text(text.replace(REPOSITORY, "team/gate"), "utf-8")
    changes = (TOP / "CHANGELOG.md").read_text("utf-8")
    (folder / "CHANGELOG.md").write_text(
        re.sub(r"(?m)^(## \[[\d.]+\] - ).*$", rf"\g<1>{day}", changes), "utf-8"
    )
    env = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag, "GITHUB_REPOSITORY": repository}
    done = subprocess.run(
        ["bash", "-e", "-c", HOLD], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


@pytest.mark.needs("bash")
def test_this_version_can_be_released(tmp_path: Path) -> None:
    """Under its own tag, from the repository whose address is set."""
    assert held(tmp_path) == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tag": "v9.9.9"}, f"gitgate/version.py says {VERSION}"),
        ({"day": "soon"}, "name the day of the release"),
        ({"repository": "other/gate"}, "set REPOSITORY there, and carry it on with docs/generate.py"),
    ],
)
@pytest.mark.needs("bash")
def test_what_differs_is_named(tmp_path: Path, wrong: dict[str, str], said: str) -> None:
    """With what to change."""
    assert said in held(tmp_path, **wrong)


def test_the_changelog_has_this_version() -> None:
    """As a section of its own, below what is not released."""
    heads = re.findall(r"^## \[(.+?)\]", (TOP / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heads[:2] == ["Unreleased", VERSION]


def test_the_plugin_has_this_version() -> None:
    """Claude Code compares it with the one that it has."""
    text = (TOP / "plugin/.claude-plugin/plugin.json").read_text("utf-8")
    assert f'"version": "{VERSION}"' in text


def test_each_job_may_do_one_thing() -> None:
    """What is built cannot be published by the same job, and neither writes to the repository; no secret is used."""
    allowed = {name: job["permissions"] for name, job in JOBS.items()}
    assert allowed == {
        "build": {"contents": "read", "id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
    }
    assert JOBS["publish"]["needs"] == "build"
    assert JOBS["publish"]["environment"]["name"] == "pypi"
    text = (TOP / ".github/workflows/release.yml").read_text("utf-8")
    assert "secrets." not in text
    assert all(re.search(r"@[0-9a-f]{40} # v\d", line) for line in text.splitlines() if "uses:" in line)


def test_nothing_is_published_that_was_not_tagged() -> None:
    """A push of a branch, a pull request and a call start nothing."""
    said = yaml.safe_load((TOP / ".github/workflows/release.yml").read_text("utf-8"))
    assert said[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
