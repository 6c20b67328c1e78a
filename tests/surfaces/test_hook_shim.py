"""The plugin's shim: what Claude Code starts. Whatever is missing or broken, a question is not passed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gitgate.agents.claude.command import EVENTS, SHIM, hook_settings, hooks, plugin_folder
from support import PATIENCE
from support.testbed.repositories import Clone

from .conftest import Agent, question

BIN = str(Path(sys.executable).parent)
BARE = "/usr/bin:/bin"
RULES = "approvals:\n  - mcp__*\n"


def call(tool: str, **given: object) -> bytes:
    event = {
        "session_id": "s" * 8,
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_use_id": "t1",
        "tool_input": given,
    }
    return json.dumps(event, separators=(",", ":")).encode()


ASK = call("AskUserQuestion", questions=[question()])


def shim(
    name: str, given: bytes, cwd: Path, program: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(plugin_folder() / SHIM), name, *program],
        input=given.decode(),
        cwd=cwd,
        env={"PATH": BARE, "HOME": os.environ["HOME"], "CLAUDE_CODE_ENTRYPOINT": "sdk-cli", **(env or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.slow
def test_it_hands_on_what_git_gate_says(agent: Agent) -> None:
    """Found on PATH, named after the event, or set in git's configuration."""
    place, other = agent.clone.path, call("Read", file_path="x")
    assert shim("pre-tool-use", other, place, (), {"PATH": f"{BIN}:{BARE}"}).stdout == ""
    for number, (program, env) in enumerate(
        [((), {"PATH": f"{BIN}:{BARE}"}), ((sys.executable, "-P", "-m", "gitgate"), {})]
    ):
        said = shim("pre-tool-use", ASK.replace(b'"t1"', f'"t{number}"'.encode()), place, program, env)
        assert (said.returncode, said.stderr.count("Error")) == (0, 0)
        assert json.loads(said.stdout)["hookSpecificOutput"]["permissionDecision"] in ("defer", "deny")
    agent.clone.git("config", "gitgate.program", f"{BIN}/git-gate")
    assert "permissionDecision" in shim("pre-tool-use", ASK, place).stdout
    # The question waits, so every other call of this run is denied as well.
    said = shim("pre-tool-use", other, place)
    assert json.loads(said.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert len(agent.gates()) == 1


def broken(tmp_path: Path, script: str) -> str:
    program = tmp_path / "broken"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    "script", [None, "exit 1", "exit 70", "kill -9 $$", "cat >/dev/null; sleep 90", "echo '{\"half'; exit 1"]
)
def test_a_question_is_denied_when_git_gate_is_missing_or_broken(
    script: str | None, repo: Clone, tmp_path: Path
) -> None:
    """Exit 2 with the reason: the one ending that Claude Code takes for a no."""
    program = () if script is None else (broken(tmp_path, script),)
    started = time.monotonic()
    said = shim("pre-tool-use", ASK, repo.path, program, {"GITGATE_HOOK_SECONDS": "1"})
    assert (said.returncode, said.stdout) == (2, "")
    assert "could not be asked" in said.stderr
    assert time.monotonic() - started < 45


def test_a_program_that_is_named_and_missing_is_missing(repo: Clone) -> None:
    """As after an upgrade of Python."""
    said = shim("pre-tool-use", ASK, repo.path, ("/nowhere/python", "-m", "gitgate"))
    assert (said.returncode, "not installed" in said.stderr) == (2, True)


def test_calls_pass_only_where_nobody_made_rules(repo: Clone, tmp_path: Path) -> None:
    """Without git gate nobody can tell which calls need approval; where there are no rules, none does."""
    pay = call("mcp__billing__pay")
    assert shim("pre-tool-use", pay, repo.path).returncode == 0
    assert shim("pre-tool-use", pay, tmp_path).returncode == 0
    repo.commit("rules", **{".gitgate.yml": RULES})
    denied = shim("pre-tool-use", pay, repo.path)
    assert (denied.returncode, "need approval" in denied.stderr) == (2, True)
    assert shim("pre-tool-use", pay, tmp_path, env={"CLAUDE_PROJECT_DIR": str(repo.path)}).returncode == 2
    assert shim("pre-tool-use", pay, tmp_path, env={"GITGATE_GATE": "7k2fw3x9ab"}).returncode == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RULES, 2),
        ("aprovals:\n  - mcp__*\n", 2),
        ("Apporvals: [mcp__x]\n", 2),
        ("{approvals: [mcp__x]}\n", 2),
        ("policy:\n  approvals: [mcp__x]\n", 2),
        (RULES.encode("utf-16"), 2),
        ("# approve\nother: 1\n", 2),
        ("# comments alone\n\nsettings:\n  push: false\npolicy: {quorum: 2}\nnotify:\n- name: x\n", 0),
        ("", 0),
    ],
)
@pytest.mark.parametrize("where", ["tree", "branch"])
def test_what_may_hold_rules_holds_calls_without_git_gate(
    repo: Clone, text: str | bytes, code: int, where: str
) -> None:
    """In the working tree as well, and committed and not pushed; a shell cannot tell more than whether there may be some."""
    repo.write(".gitgate.yml", text)
    if where == "branch":
        repo.git("checkout", "-q", "-b", "agent")
        repo.git("add", "-A")
        repo.git("commit", "-q", "-m", "rules")
        (repo.path / ".gitgate.yml").unlink()
    assert shim("pre-tool-use", call("mcp__billing__pay"), repo.path).returncode == code


def test_a_command_that_could_answer_is_denied_when_it_cannot_be_checked(repo: Clone, tmp_path: Path) -> None:
    """Git gate may be broken for hooks, and work in a shell."""
    program = (broken(tmp_path, "exit 1"),)
    assert (
        shim("pre-tool-use", call("Bash", command="git gate respond 7k2f yes"), repo.path, program).returncode
        == 2
    )
    assert shim("pre-tool-use", call("Bash", command="ls"), repo.path, program).returncode == 0


def test_a_person_at_the_terminal_is_still_asked(repo: Clone) -> None:
    """Their program asks them itself."""
    env = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
    assert shim("pre-tool-use", ASK, repo.path, env=env).returncode == 0
    assert (
        shim("pre-tool-use", ASK, repo.path, env={**env, "CLAUDE_CODE_SESSION_ATTENDED": "0"}).returncode == 2
    )


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, 8),
        ({"GITGATE_WRAPPED": "1"}, 0),
        ({"GITGATE_GATE": "7k2fw3x9ab"}, 0),
        ({"CLAUDE_CODE_ENTRYPOINT": "cli"}, 0),
    ],
)
def test_who_started_a_run_hears_what_waits(agent: Agent, more: dict[str, str], code: int) -> None:
    """By a hook that fails, of which alone the program shows words; unless somebody else says it, or sits before it."""
    agent.ask(question())
    (gate,) = agent.gates()
    program = (sys.executable, "-P", "-m", "gitgate")
    event = json.dumps(agent.event("SessionEnd")).encode()
    said = shim("session-end", event, agent.clone.path, program, more)
    assert (said.returncode, said.stdout) == (code, "")
    assert (f"git gate respond {gate[:6]} Postgres" in said.stderr) == (code == 8)


@pytest.mark.parametrize("name", ["post-tool-use", "stop", "session-end"])
def test_other_events_are_left_alone(name: str, repo: Clone, tmp_path: Path) -> None:
    """There is nothing to deny: a stop that is refused would run on."""
    for program in ((), (broken(tmp_path, "exit 1"),)):
        assert shim(name, b"{}", repo.path, program).returncode == 0


@pytest.mark.slow
def test_a_large_call_is_handed_on_whole(agent: Agent) -> None:
    """A file of a megabyte, with whatever is in it."""
    agent.clone.commit("rules", **{".gitgate.yml": "approvals:\n  - Write(big)\n"})
    given = call("Write", file_path=str(agent.clone.path / "big"), content="\\ % ` $(x) \0 ü\n" * 70_000)
    said = shim("pre-tool-use", given, agent.clone.path, env={"PATH": f"{BIN}:{BARE}"})
    assert json.loads(said.stdout)["hookSpecificOutput"]["permissionDecision"] == "defer"


def test_the_plugin_s_hooks_are_the_ones_of_the_code() -> None:
    """One table; each is called for its event, and the one that decides fails closed without its shim, too."""
    written = json.loads((plugin_folder() / "hooks/hooks.json").read_text("utf-8"))
    assert written["hooks"] == hook_settings('sh "${CLAUDE_PLUGIN_ROOT}"/hooks/gitgate-hook')
    assert set(hooks()) == set(EVENTS)
    said = json.dumps(hooks(["/no where/python"])["PreToolUse"])
    assert "gitgate-hook pre-tool-use '/no where/python' || exit 2" in said
