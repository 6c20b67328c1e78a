"""`git gate doctor --claude`: the real program is tried out in a scratch repository, and what is missing is said."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import PATIENCE
from support.lab.model import can_isolate
from support.testbed.command import COMMAND
from support.testbed.repositories import Clone

from .test_demo_claude import ALONE, NOT_OURS, a_person, files_of

SHELL, TOOL = "asks in its shell (claude -p)", "asks by its own tool (git gate wrap -- claude -p)"


def doctor(clone: Clone, path: str, code: int, **env: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [*(ALONE if can_isolate() else ()), str(COMMAND), "doctor", "--claude", "--json"],
        cwd=clone.path,
        env={**os.environ, "PATH": path, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == code, done.stdout.decode() + done.stderr.decode()
    return {one["name"]: one for one in json.loads(done.stdout)["findings"]}


def path_to(binary: Path) -> str:
    return f"{binary.parent}:{os.environ['PATH']}"


@pytest.mark.claude
@pytest.mark.slow
def test_it_is_tried_from_the_question_to_the_answer(
    claude_binary: Path, repo: Clone, home: Path, tmp_path: Path
) -> None:
    """In both ways; the project and the person's own Claude Code stay as they were, and nothing is left behind."""
    subprocess.run([str(COMMAND), "init", "--claude", "-q"], cwd=repo.path, check=True, timeout=PATIENCE)
    before, refs = a_person(home), repo.refs()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = doctor(repo, path_to(claude_binary), 0, **NOT_OURS, TMPDIR=str(scratch))
    for name in (
        "Claude Code",
        SHELL,
        f"{SHELL}, goes on",
        TOOL,
        f"{TOOL}, goes on",
        "hooks in .claude/settings.json",
    ):
        assert found[name]["state"] == "good", found
    assert (files_of(home), repo.refs()) == (before, refs)
    assert list(scratch.glob("gitgate-rehearsal-*")) == []


@pytest.mark.claude
@pytest.mark.slow
def test_what_is_in_the_way_is_named(claude_binary: Path, repo: Clone) -> None:
    """No hooks yet; a rule of the project that forbids it; no git gate on PATH."""
    found = doctor(repo, path_to(claude_binary), 0)
    assert found["hooks in .claude/settings.json"]["mend"] == "git gate init --claude"
    repo.write(".claude/settings.json", '{"permissions": {"deny": ["Bash(git gate ask:*)"]}}')
    found = doctor(repo, path_to(claude_binary), 1)
    assert found[SHELL]["state"] == "wrong"
    assert "Bash(git gate ask:*)" in found[SHELL]["mend"]
    assert found[TOOL]["state"] == "good"
    (repo.path / ".claude/settings.json").unlink()
    found = doctor(repo, f"{claude_binary.parent}:/usr/bin:/bin", 1)
    assert "not on PATH" in found[SHELL]["words"]


def test_without_the_program(repo: Clone) -> None:
    """It is named, with how to get it; nothing else is tried."""
    found = doctor(repo, f"{Path(COMMAND).parent}:/usr/bin:/bin", 0)
    assert found["Claude Code"]["mend"].startswith("npm install")
    assert SHELL not in found


def test_a_program_that_does_not_run(repo: Clone, tmp_path: Path) -> None:
    """Why is told."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'no such machine' >&2\nexit 3\n")
    program.chmod(0o755)
    found = doctor(repo, path_to(program), 1)
    assert "no such machine" in found["Claude Code"]["words"]


def test_no_agent_rehearses(repo: Clone) -> None:
    """It would answer."""
    done = subprocess.run(
        [str(COMMAND), "doctor", "--claude"],
        cwd=repo.path,
        env={**os.environ, "CLAUDECODE": "1"},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 4
