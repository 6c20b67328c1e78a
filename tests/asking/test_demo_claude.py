"""The demonstration with the real Claude Code, where nothing but loopback is in reach, and what it keeps away from."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from support.lab.model import can_isolate
from support.testbed.command import COMMAND

pytestmark = [pytest.mark.claude, pytest.mark.slow]

ALONE = ("unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
NOT_OURS = {
    "ANTHROPIC_API_KEY": "the-persons-own",
    "ANTHROPIC_AUTH_TOKEN": "the-persons-own",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_MODEL": "the-persons-own",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
}


def a_person(home: Path) -> dict[str, bytes]:
    """Somebody whose own Claude Code would do otherwise: a hook, an environment and an account of theirs."""
    folder = home / ".claude"
    folder.mkdir()
    hook = {"hooks": [{"type": "command", "command": f"touch {home}/ran"}]}
    own = {"hooks": {"SessionStart": [hook]}, "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}
    (folder / "settings.json").write_text(json.dumps(own))
    (folder / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "the-persons-own"}}')
    (home / ".claude.json").write_text('{"oauthAccount": {"emailAddress": "person@example.org"}}')
    return files_of(home)


def files_of(home: Path) -> dict[str, bytes]:
    places = [home / ".claude.json", *(home / ".claude").rglob("*")]
    return {str(place): place.read_bytes() for place in places if place.is_file()}


def test_the_real_program_asks_and_goes_on(claude_binary: Path, home: Path, tmp_path: Path) -> None:
    """Asked through its own tool, ended, answered by a person, resumed by the server's hook with the whole conversation."""
    before = a_person(home)
    env = {**os.environ, **NOT_OURS, "TMPDIR": str(tmp_path)}
    env["PATH"] = f"{claude_binary.parent}:{env['PATH']}"
    began = time.monotonic()
    done = subprocess.run(
        [*(ALONE if can_isolate() else ()), str(COMMAND), "demo", "--claude", "--json"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert time.monotonic() - began < 30
    steps: list[dict[str, Any]] = json.loads(done.stdout)["steps"]
    said = {step["command"]: step["output"] for step in steps}
    assert "(Claude Code)" in said["claude --version"]
    assert any(
        " -- claude -p " in typed and out.startswith("tool_deferred: AskUserQuestion")
        for typed, out in said.items()
    )
    finished = next(text for typed, text in said.items() if typed.startswith("git log -1"))
    for words in (
        "Log in with Postgres",
        "Decided-by: You <you@example.invalid>",
        "login.py",
        "notes.txt",
        "db.py",
    ):
        assert words in finished
    told = said["POST /v1/messages"]
    assert told.startswith(
        "user: Finish the login.\nassistant: I write what does not depend on the database.\n"
    )
    assert '"Which database should the login use?"="Postgres"' in told
    trail = next(text for typed, text in said.items() if typed.startswith("git gate log"))
    assert [line.split()[2] for line in trail.splitlines()] == ["resumed", "claimed", "answered", "opened"]
    assert files_of(home) == before
    assert not (home / "ran").exists()
    assert not list(tmp_path.glob("gitgate-demo-*"))
