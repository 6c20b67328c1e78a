"""What a job's agent may do without being asked, and that nobody is given it elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitgate.agents.claude import Claude
from gitgate.context import Desk, open_desk
from gitgate.errors import Failure, Usage
from gitgate.setup import permissions_of
from gitgate.setup.equipping import equipped
from support.testbed.repositories import Clone

RULES = {"permissions": {"allow": ["Bash(npm test:*)"], "deny": ["Edit(./migrations/**)"]}}


@pytest.fixture
def desk(repo: Clone) -> Iterator[Desk]:
    opened = open_desk(repo.path, os.environ)
    yield opened
    opened.close()


def test_elsewhere_the_project_alone_permits(repo: Clone, desk: Desk) -> None:
    """As its protected branch says."""
    repo.commit("rules", **{".claude/settings.json": json.dumps(RULES)})
    assert permissions_of(desk, "claude") == RULES["permissions"]


def test_a_job_permits_to_work(repo: Clone, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what the project says; what it forbids stays forbidden. Another program is given nothing."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert permissions_of(desk, "claude") == {"allow": list(Claude.job_rules)}
    repo.commit("rules", **{".claude/settings.json": json.dumps(RULES)})
    found = permissions_of(desk, "claude")
    assert found == {
        "allow": ["Bash(npm test:*)", *Claude.job_rules],
        "deny": ["Edit(./migrations/**)"],
    }
    assert permissions_of(desk, "scripted") == {}


def test_rules_that_cannot_be_read_start_nobody(repo: Clone, desk: Desk) -> None:
    """What they forbid cannot be known."""
    repo.commit("rules", **{".claude/settings.json": "{"})
    with pytest.raises(Failure, match="cannot be read"):
        equipped(desk, ["claude", "-p"])


def test_a_command_of_claudes_is_equipped(repo: Clone, desk: Desk) -> None:
    """With a file of settings that the command names, from the top of the repository; any other command stays."""
    repo.write("ci.json", json.dumps({"model": "opus"}))
    words = equipped(desk, ["claude", "--settings", "ci.json", "-p"])
    said = json.loads(Path(words[2]).read_text())
    assert said["model"] == "opus"
    assert "PreToolUse" in said["hooks"]
    assert words[3:] == ("-p",)
    assert equipped(desk, ["./agent.sh", "--settings", "ci.json"]) == ("./agent.sh", "--settings", "ci.json")
    with pytest.raises(Usage, match=r"none\.json"):
        equipped(desk, ["claude", "--settings", "none.json"])
