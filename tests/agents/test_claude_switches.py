"""What keeps our hooks, or our questions, from Claude Code, read before it is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitgate.agents.claude.switches import read_switches

OFF, ON = {"disableAllHooks": True}, {"disableAllHooks": False}
DENIES = {"permissions": {"denyInsteadOfPrompting": True}}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def put(tmp_path: Path, **files: object) -> None:
    """Write the settings of the user, the project and the folder."""
    places = {
        "user": "home/.claude/settings.json",
        "project": "here/.claude/settings.json",
        "local": "here/.claude/settings.local.json",
        "given": "here/given.json",
    }
    for name, value in files.items():
        place = tmp_path / places[name]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


@pytest.mark.parametrize(
    ("words", "files", "why"),
    [
        ("claude -p GO", {}, ""),
        ("claude -p GO --bare", {}, "--bare"),
        ("npx claude --safe-mode -p GO", {}, "--safe-mode"),
        ("claude -p -- --bare", {}, ""),
        ("env CLAUDE_CODE_SIMPLE=true claude -p GO", {}, "CLAUDE_CODE_SIMPLE=true"),
        ("env CLAUDE_CODE_SIMPLE=0 claude -p GO", {}, ""),
        ("claude -p GO --settings given.json", {"given": OFF}, "disableAllHooks in --settings"),
        ("claude -p GO --settings=given.json", {"given": OFF}, "disableAllHooks in --settings"),
        ("claude -p GO", {"user": OFF}, "home/.claude/settings.json"),
        ("claude -p GO", {"project": OFF}, "here/.claude/settings.json"),
        ("claude -p GO", {"local": OFF}, "settings.local.json"),
        ("claude -p GO", {"user": OFF, "project": ON}, ""),
        ("claude -p GO --settings given.json", {"user": OFF, "local": OFF, "given": ON}, ""),
        ("claude -p GO --setting-sources user", {"project": OFF, "local": OFF}, ""),
        ("claude -p GO --setting-sources=project,local", {"user": OFF}, ""),
        ("claude -p GO", {"user": {"env": {"CLAUDE_CODE_SAFE_MODE": "1"}}}, "CLAUDE_CODE_SAFE_MODE in "),
        ("claude -p GO", {"user": {"disableAllHooks": "true"}, "project": "{", "local": "[]"}, ""),
        ("claude -p GO --settings none.json", {}, ""),
    ],
)
def test_what_switches_hooks_off(
    words: str, files: dict[str, object], why: str, tmp_path: Path, env: dict[str, str]
) -> None:
    """As it was measured: what comes first in the order of settings counts alone, also where it says no."""
    put(tmp_path, **files)
    found = read_switches(words.split(" "), tmp_path / "here", env).hooks
    assert bool(found) is bool(why)
    assert why in "".join(found)


def test_variables_of_the_environment_switch_them_off(tmp_path: Path, env: dict[str, str]) -> None:
    """Those that the agent would inherit."""
    found = read_switches(["claude"], tmp_path, {**env, "CLAUDE_CODE_SAFE_MODE": "1"})
    assert found.hooks == ("CLAUDE_CODE_SAFE_MODE=1",)
    assert read_switches(["claude"], tmp_path, {}).hooks == ()


@pytest.mark.parametrize(
    ("words", "files", "why"),
    [
        ("claude -p GO", {}, ""),
        ("claude -p GO --permission-prompts none", {}, "--permission-prompts none"),
        ("claude -p GO --permission-prompts=none", {}, "--permission-prompts none"),
        ("claude -p GO --permission-prompts all", {}, ""),
        ("claude --restricted -p GO", {}, "--restricted"),
        ("env CLAUDE_CODE_RESTRICTED=1 claude -p GO", {}, "--restricted"),
        ("claude -p GO", {"user": DENIES}, "denyInsteadOfPrompting in "),
        ("claude -p GO --settings given.json", {"given": DENIES}, "denyInsteadOfPrompting in --settings"),
    ],
)
def test_what_keeps_it_from_asking(
    words: str, files: dict[str, object], why: str, tmp_path: Path, env: dict[str, str]
) -> None:
    """Hooks run, and hold calls back; but nobody can be asked."""
    put(tmp_path, **files)
    found = read_switches(words.split(" "), tmp_path / "here", env)
    assert found.hooks == ()
    assert bool(found.questions) is bool(why)
    assert why in "".join(found.questions)
