"""What a job's agent may do without being asked, and that nobody is given it elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitgate.agents.claude import Claude
from gitgate.agents.process import CommandEnd
from gitgate.context import Desk, open_desk
from gitgate.errors import Failure, NotAllowed, Usage
from gitgate.setup import permissions_of
from gitgate.setup.equipping import able_to_ask, equipped, need_hooks, watched, why_not_resumed
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


GATED = {".gitgate.yml": "approvals:\n  - Bash(terraform apply*)\n"}
NEW = "4a3a7a3e-3c06-4f4a-9d0e-1c5a5f1a0001"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("claude -p GO", True),
        ("npx -y claude GO", True),
        ("claude -c -p GO", False),
        ("claude -cp GO", False),
        ("claude -p --resume=5d14 GO", False),
        ("claude -p --session-id 5d14f5dd GO", False),
        ("claude -p -- -c", True),
    ],
)
def test_hooks_are_given_in_every_folder(desk: Desk, repo: Clone, words: str, named: bool) -> None:
    """Also where the project has them; a conversation that goes on keeps its name."""
    repo.commit("hooks", **{".claude/settings.json": json.dumps({"hooks": {"Stop": "gitgate-hook"}})})
    found = able_to_ask(desk, words.split(" "), NEW, repo.path)
    settings = json.loads(found[found.index("--settings") + 1])
    assert "PreToolUse" in settings["hooks"]
    assert found[-5:-3] == ("--session-id", NEW) or (NEW in found) is named
    assert found.index("--permission-prompt-tool") == words.split(" ").index("claude") + 1


def test_other_programs_are_left_alone(desk: Desk, repo: Clone) -> None:
    """What begins them, too."""
    for words in (["gemini", "-p", "claude"], ["npx", "prettier", "claude"], ["./agent.sh"]):
        assert able_to_ask(desk, words, NEW, repo.path) == tuple(words)
        assert need_hooks(desk, [*words, "--bare"], repo.path, os.environ) == ()


def test_a_file_is_looked_for_where_the_command_is_typed(desk: Desk, repo: Clone) -> None:
    """As the program itself does."""
    (repo.path / "pkg").mkdir()
    (repo.path / "pkg/own.json").write_text('{"model": "opus"}')
    found = able_to_ask(desk, ["claude", "--settings", "own.json", "-p", "GO"], NEW, repo.path / "pkg")
    assert json.loads(Path(found[found.index("--settings") + 1]).read_text())["model"] == "opus"
    with pytest.raises(Usage, match=r"own\.json"):
        able_to_ask(desk, ["claude", "--settings", "own.json", "-p", "GO"], NEW, repo.path)


def test_nobody_is_resumed_without_hooks_where_calls_need_approval(
    desk: Desk, repo: Clone, home: Path
) -> None:
    """By what this machine gives it, or by the person's own settings. Elsewhere it may be."""
    repo.git("config", "gitgate.agent.claude.arguments", '["--bare"]')
    opened = open_desk(repo.path, os.environ)
    assert why_not_resumed(opened, "claude") == ""
    repo.commit("rules", **GATED)
    assert "--bare" in why_not_resumed(opened, "claude")
    assert why_not_resumed(opened, "codex") == ""
    opened.close()
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    assert "disableAllHooks" in why_not_resumed(desk, "claude")
    with pytest.raises(NotAllowed, match="disableAllHooks in"):
        need_hooks(desk, ["claude", "-p"], repo.path, os.environ)


def test_a_run_without_a_mark_is_missed(desk: Desk, repo: Clone) -> None:
    """The mark is of its own conversation: another one's says nothing of it."""
    repo.commit("rules", **GATED)
    said = CommandEnd(0, b'{"type": "result", "result": "done", "session_id": "x"}\n', 1)
    with watched(desk, ["claude", "-p", "--session-id", NEW], repo.path, os.environ) as watch:
        assert "although calls need approval" in watch.missed(said)
        assert watch.missed(CommandEnd(0, b"2.1.329 (Claude Code)\n", 1)) == ""
        watch.mark.parent.mkdir(parents=True)
        watch.mark.write_text("another-session\n")
        assert watch.missed(said) != ""
        watch.mark.write_text(f"another-session\n{NEW}\n")
        assert watch.missed(said) == ""
    assert not watch.mark.exists()
    with watched(desk, ["gemini", "-p"], repo.path, os.environ) as watch:
        assert watch.missed(said) == ""
