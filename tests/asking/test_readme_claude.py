"""The README's way with Claude Code, line by line: the real program asks, a person answers on a terminal, and it goes on."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from support import PATIENCE
from support.lab.fixtures import MakeMachine, MakeModel
from support.lab.model import Reply
from support.readme import PERSON, bare_machine, block_after, program, tell
from support.testbed.terminal import Terminal

pytestmark = [pytest.mark.claude, pytest.mark.slow, pytest.mark.readme]

ASKED = {
    "question": "Which session store?",
    "header": "Store",
    "multiSelect": False,
    "options": [{"label": "Redis", "description": "a server"}, {"label": "Cookies", "description": "none"}],
}
ASKS = Reply("I looked at the code.", [("AskUserQuestion", {"questions": [ASKED]})], when="Add a login page")
ENDS = Reply("The login page is planned, with Redis.", when='=\\"Redis\\"')


def test_the_readme_leads_to_a_finished_work_with_claude(
    machine: MakeMachine, scripted: MakeModel, tmp_path: Path
) -> None:
    """In an empty home, with git, Python, a shell and Claude Code alone."""
    claude = machine("claude-home", scripted(ENDS, ASKS))
    env = {**claude.env, **bare_machine(tmp_path)}
    env["CLAUDE_CONFIG_DIR"] = f"{env['HOME']}/.claude"
    reach = " ".join(claude.model.reach).replace("nsenter", "/usr/bin/nsenter")
    program(env, "claude", f'#!/bin/sh\nexec {reach} {claude.binary} "$@"\n')
    project = tmp_path / "project"
    git = ["git", *(word for name, value in PERSON.items() for word in ("-c", f"{name}={value}"))]
    for command in (
        ["init", "-q", str(project)],
        ["-C", str(project), "commit", "-q", "--allow-empty", "-m", "First"],
    ):
        subprocess.run([*git, *command], env=env, check=True)
    for name in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(project), "config", name, PERSON[name]], env=env, check=True)

    def typed(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=project,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    init, wrap, respond = block_after("**With Claude Code**")
    began = time.monotonic()
    done = typed(init)
    assert done.returncode == 0, done.stderr
    asked = typed(wrap)
    assert asked.returncode == 8, asked.stdout + asked.stderr
    assert "Which session store?" in asked.stderr
    with Terminal("-c", respond, program="bash", cwd=project, env=env) as terminal:
        terminal.expect("Which session store?")
        terminal.expect("Cookies")
        terminal.expect("? for help")
        terminal.line("Redis")
        said = terminal.finish(code=0, timeout=60)
    assert "resuming here" in said
    until = time.monotonic() + PATIENCE
    while True:
        (gate,) = json.loads(typed("git gate list --all --json").stdout)["gates"]
        if gate["state"] == "resumed" or time.monotonic() > until:
            break
        time.sleep(0.2)
    seconds = time.monotonic() - began
    assert gate["state"] == "resumed", typed("git gate show " + gate["id"]).stdout
    assert "The login page is planned, with Redis." in typed("git gate show " + gate["id"]).stdout
    tell("Claude Code", seconds)
