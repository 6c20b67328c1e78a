"""A person's command for Claude Code, with settings of ours: theirs are not lost, and ours are certain."""

from __future__ import annotations

import json

import pytest

from gitgate.agents.claude_command import is_claude, with_settings
from gitgate.errors import Usage

HOOK = {"matcher": "*", "hooks": [{"type": "command", "command": "git-gate hook"}]}
OURS = {"hooks": {"PreToolUse": [HOOK]}, "permissions": {"allow": ["Edit(./**)"]}}
THEIRS = {
    "model": "opus",
    "hooks": {"PreToolUse": [{"hooks": []}], "Stop": [{"hooks": []}]},
    "permissions": {"allow": ["Bash(npm test:*)"], "deny": ["Edit(./secrets/**)"]},
}
FILES = {"ci.json": json.dumps(THEIRS), "broken.json": "{", "list.json": "[]"}


def settings_in(words: tuple[str, ...]) -> dict[str, object]:
    """The one `--settings` that is left."""
    assert words[:2] == ("claude", "--settings")
    assert "--settings" not in words[3:]
    found: dict[str, object] = json.loads(words[2])
    return found


def test_a_command_without_settings_gets_ours() -> None:
    """Before everything else, so that nothing that follows can swallow them."""
    words = with_settings(["claude", "-p", "--", "{task}"], OURS, FILES.__getitem__)
    assert settings_in(words) == OURS
    assert words[3:] == ("-p", "--", "{task}")


@pytest.mark.parametrize(
    "given",
    [
        ["--settings", "ci.json"],
        ["--settings=ci.json"],
        ["--settings", json.dumps(THEIRS)],
        ["--settings", "broken.json", "--settings", "ci.json"],
    ],
)
def test_theirs_are_kept(given: list[str]) -> None:
    """From a file or as they stand; of several the last, as the program itself has it."""
    words = with_settings(["claude", "-p", *given, "--model", "x"], OURS, FILES.__getitem__)
    assert settings_in(words) == {
        "model": "opus",
        "hooks": {"PreToolUse": [{"hooks": []}, HOOK], "Stop": [{"hooks": []}]},
        "permissions": {"allow": ["Bash(npm test:*)", "Edit(./**)"], "deny": ["Edit(./secrets/**)"]},
    }
    assert words[3:] == ("-p", "--model", "x")


def test_what_follows_the_options_is_left_alone() -> None:
    """A task that speaks of settings is a task."""
    words = with_settings(["claude", "-p", "--", "--settings", "ci.json"], OURS, FILES.__getitem__)
    assert words[3:] == ("-p", "--", "--settings", "ci.json")
    assert json.loads(words[2]) == OURS


@pytest.mark.parametrize("name", ["broken.json", "list.json"])
def test_settings_that_are_none_are_said(name: str) -> None:
    """The program would pass over them."""
    with pytest.raises(Usage, match="no JSON object"):
        with_settings(["claude", "--settings", name], OURS, FILES.__getitem__)


@pytest.mark.parametrize(
    ("words", "is_it"),
    [
        (["claude"], True),
        (["/opt/bin/claude", "-p"], True),
        (["claude-code"], False),
        (["npx", "claude"], False),
        ([], False),
    ],
)
def test_whose_command_it_is(words: list[str], is_it: bool) -> None:
    """Its own, by any path; not that of a program that starts it."""
    assert is_claude(words) is is_it
