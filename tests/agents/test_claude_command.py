"""A person's command for Claude Code, with settings of ours: theirs are not lost, and ours are certain."""

from __future__ import annotations

import json

import pytest

from gitgate.agents.claude.command import (
    SettingsFiles,
    is_claude,
    lasting_flags,
    remaining_flags,
    with_settings,
    words_of_line,
)
from gitgate.errors import Usage

HOOK = {"matcher": "*", "hooks": [{"type": "command", "command": "git-gate hook"}]}
OURS = {"hooks": {"PreToolUse": [HOOK]}, "permissions": {"allow": ["Edit(./**)"]}}
THEIRS = {
    "model": "opus",
    "hooks": {"PreToolUse": [{"hooks": []}], "Stop": [{"hooks": []}]},
    "permissions": {"allow": ["Bash(npm test:*)"], "deny": ["Edit(./secrets/**)"]},
}
FILES = {"ci.json": json.dumps(THEIRS), "broken.json": "{", "list.json": "[]"}


def kept(text: str) -> str:
    FILES["kept"] = text
    return "kept"


KEPT = SettingsFiles(FILES.__getitem__, kept)


def settings_in(words: tuple[str, ...]) -> dict[str, object]:
    """The one `--settings` that is left."""
    assert words[:2] == ("claude", "--settings")
    assert "--settings" not in words[3:]
    found: dict[str, object] = json.loads(FILES.get(words[2], words[2]))
    return found


def test_a_command_without_settings_gets_ours() -> None:
    """Before everything else, so that nothing that follows can swallow them."""
    words = with_settings(["claude", "-p", "--", "{task}"], OURS, KEPT)
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
    words = with_settings(["claude", "-p", *given, "--model", "x"], OURS, KEPT)
    assert settings_in(words) == {
        "model": "opus",
        "hooks": {"PreToolUse": [{"hooks": []}, HOOK], "Stop": [{"hooks": []}]},
        "permissions": {"allow": ["Bash(npm test:*)", "Edit(./**)"], "deny": ["Edit(./secrets/**)"]},
    }
    assert words[3:] == ("-p", "--model", "x")


def test_what_follows_the_options_is_left_alone() -> None:
    """A task that speaks of settings is a task."""
    words = with_settings(["claude", "-p", "--", "--settings", "ci.json"], OURS, KEPT)
    assert words[3:] == ("-p", "--", "--settings", "ci.json")
    assert json.loads(words[2]) == OURS


@pytest.mark.parametrize("name", ["broken.json", "list.json"])
def test_settings_that_are_none_are_said(name: str) -> None:
    """The program would pass over them."""
    with pytest.raises(Usage, match="no JSON object"):
        with_settings(["claude", "--settings", name], OURS, KEPT)


@pytest.mark.parametrize(
    ("words", "is_it"),
    [
        (["claude"], True),
        (["/opt/bin/claude", "-p"], True),
        (["claude-code"], False),
        ([], False),
        (["npx", "claude", "-p"], True),
        (["npx", "-y", "@anthropic-ai/claude-code@2.1.329", "-p"], True),
        (["npx", "-p", "@anthropic-ai/claude-code", "claude", "-p"], True),
        (["pnpm", "dlx", "@anthropic-ai/claude-code", "-p"], True),
        (["env", "-u", "X", "A=1", "B=claude", "/usr/bin/claude", "-p"], True),
        (["timeout", "-k", "5", "60", "nice", "-n", "5", "claude", "-p"], True),
        (["node", "/x/@anthropic-ai/claude-code/cli.js", "-p"], True),
        (["npx", "prettier", "claude"], False),
        (["npx", "@anthropic-ai/claude-code-router", "claude"], False),
        (["gemini", "-p", "claude"], False),
        (["sh", "-c", "claude -p GO"], False),
        (["env"], False),
        (["npx", "-p"], False),
    ],
)
def test_whose_command_it_is(words: list[str], is_it: bool) -> None:
    """Its own, by any path, and behind what starts it; not that of a program that has a word of that name."""
    assert is_claude(words) is is_it


def test_behind_what_starts_it_only_its_own_words_change() -> None:
    """The flags go to it, not to `env` or `npx`; and what lasts is read from its own words."""
    words = ("env", "A=1", "npx", "-y", "claude", "-p", "--settings", '{"model": "opus"}', "GO")
    found = with_settings(words, OURS, KEPT)
    assert found[:6] == ("env", "A=1", "npx", "-y", "claude", "--settings")
    assert json.loads(found[6]) == {"model": "opus", **OURS}
    assert found[7:] == ("-p", "GO")


def test_a_file_of_theirs_is_not_shown_on_a_command_line() -> None:
    """It may hold secrets, and everybody on the machine sees a command line; theirs itself stays as it is."""
    words = with_settings(["claude", "-p", "--settings=ci.json"], OURS, KEPT)
    assert words[:3] == ("claude", "--settings", "kept")
    assert FILES["ci.json"] == json.dumps(THEIRS)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("claude -p GO", ""),
        ("claude -p GO --allowedTools Edit Bash(git:*)", "--allowedTools Edit,Bash(git:*)"),
        ("claude --allowed-tools Edit,Write -p GO", "--allowedTools Edit,Write"),
        ("claude --allowedTools=Edit --allowedTools Write Edit", "--allowedTools Edit,Write"),
        ("claude --disallowedTools WebFetch -p GO --model opus", "--disallowedTools WebFetch --model opus"),
        ("claude -p --permission-mode acceptEdits GO", "--permission-mode acceptEdits"),
        ("claude -p --permission-mode bypassPermissions GO", ""),
        ("claude -p --dangerously-skip-permissions GO", ""),
        ("claude -p --model=opus --model sonnet GO", "--model sonnet"),
        ("claude -p -- GO --model opus", ""),
        ("claude -p --settings {} --resume x GO", ""),
    ],
)
def test_what_a_later_run_needs_again(line: str, kept: str) -> None:
    """What may be done, the mode and the model; nothing that leaves out every question."""
    assert " ".join(lasting_flags(line.split(" "))) == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((), ("--allowedTools", "Edit", "--model", "opus")),
        (("--model", "haiku"), ("--allowedTools", "Edit")),
        (("--allowed-tools", "Bash"), ("--model", "opus")),
        (("--model=haiku", "--allowedTools", "Bash"), ()),
    ],
)
def test_this_machines_own_word_counts_alone(given: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """By each spelling of a flag."""
    assert remaining_flags(("--allowedTools", "Edit", "--model", "opus"), given) == kept


RULE = "Bash(git add:*)"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (f"claude -p GO --allowedTools {RULE} Edit --model opus", f"--allowedTools {RULE},Edit --model opus"),
        (f"/opt/a/claude --allowedTools={RULE},Edit -p GO", f"--allowedTools {RULE},Edit"),
        ("node /x/@anthropic-ai/claude-code/cli.js -p GO --model opus", "--model opus"),
        ("claude -p do this --model haiku", "--model haiku"),
        ("claude -p two\\012lines --model haiku", "--model haiku"),
        ("claude --model opus -p", "--model opus"),
        ('claude -p --settings {"hooks": {"a": "--model x"}} --model opus --resume 5d14', "--model opus"),
        # What is said could be words of a flag, and what nobody knows could be one's value.
        ("claude -p say --model opus", ""),
        ("claude -p do this --model haiku do this --allowedTools Bash", ""),
        ("claude -p please --allowedTools Bash", ""),
        ("claude --append-system-prompt be --allowedTools Bash -p GO", ""),
        ("claude --allowedTools Bash(echo (x)) -p GO", ""),
        ("claude --model -p GO", ""),
        ("claude -- --allowedTools Bash", ""),
        ("my-claude -p GO --model opus", ""),
    ],
)
def test_a_line_whose_words_are_not_kept_apart(line: str, kept: str) -> None:
    """What a person said is left out of it; whatever else is not a known flag lets nothing be taken."""
    words = words_of_line(line, ("GO", "do this", "two\nlines"))
    assert " ".join(lasting_flags(words)) == kept
