"""The adapter for Codex: its one file is moved as it is, and its events are read."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from gitgate.agents import AGENTS, detect
from gitgate.agents.agent import AgentOutcome, AgentResult, AgentSettings, Finished, ProcessEnding, Start
from gitgate.agents.process import run_launch
from gitgate.errors import Failure
from gitgate.model.gate import SavedSession, SessionRef

CODEX = AGENTS["codex"]
ID = "0199c4f0-0000-7000-8000-000000000000"
NAME = f"sessions/2026/01/02/rollout-2026-01-02T03-04-05-{ID}.jsonl"
TOKEN = "ghp" + "_" + "a1B2c3D4e5" * 4
SESSION = SessionRef("codex", ID)


def kept_session(home: Path, text: str) -> Path:
    place = home / ".codex" / NAME
    place.parent.mkdir(parents=True)
    place.write_text(
        json.dumps({"type": "response_item", "payload": {"text": text, "encrypted_content": text}}) + "\n{cut"
    )
    return place


def test_it_is_known_by_its_mark() -> None:
    assert detect({"CODEX_THREAD_ID": ID, "PWD": "/here"}) == SessionRef("codex", ID, "/here")


def test_a_session_moves_to_another_home(tmp_path: Path) -> None:
    """Redacted, except what is signed; the same place below the other home; one that is there stays."""
    kept_session(tmp_path / "one", f"use {TOKEN}")
    saved = CODEX.collect(SESSION, {"HOME": str(tmp_path / "one")})
    assert list(saved.files) == [NAME]
    record = json.loads(saved.files[NAME])
    assert record["payload"] == {"text": "use [redacted: github token]", "encrypted_content": f"use {TOKEN}"}
    other = {"CODEX_HOME": str(tmp_path / "two")}
    CODEX.place(saved, tmp_path, other)
    placed = tmp_path / "two" / NAME
    assert placed.read_bytes() == saved.files[NAME]
    placed.write_text("went on")
    CODEX.place(saved, tmp_path, other)
    assert placed.read_text() == "went on"


def test_what_is_missing_or_too_large_is_named(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert CODEX.collect(SESSION, env).left_out == (("rollout", "it was not found"),)
    kept_session(tmp_path, "x" * 1000)
    assert CODEX.collect(SESSION, env, most=100).left_out[0][0] == NAME


@pytest.mark.parametrize(
    "name",
    ["../x.jsonl", NAME.replace("sessions", "../sessions"), NAME.replace("0199", "0198"), "config.toml"],
)
def test_a_pushed_session_writes_only_where_it_may(name: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="holds no conversation"):
        CODEX.place(SavedSession("codex", ID, files={name: b"evil"}), tmp_path, {"HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_it_is_resumed_with_the_prompt_on_stdin(tmp_path: Path) -> None:
    """A stand-in for the program is told everything, and its last words are read from the file."""
    program = tmp_path / "codex"
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1 $2 $3" = "exec -c allow_login_shell=false" ] && shift 3 || exit 2\n'
        f'[ "$1 $2 $3 $4 $5" = "-s workspace-write resume --json -o" ] && [ "$7 $8" = "{ID} -" ] || exit 2\n'
        'cat > "$6"\necho \'{"type":"thread.started","thread_id":"\'"$7"\'"}\'\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    settings = AgentSettings((str(program),), ("-s", "workspace-write"))
    start = Start(
        "7k2fw3x9ab",
        tmp_path,
        tmp_path / "folder",
        "--the answer",
        SESSION,
        settings=settings,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert CODEX.read_outcome(run_launch(CODEX.start(start))) == AgentOutcome(
        AgentResult.DONE, ID, "--the answer"
    )


def test_a_failed_turn_says_why(tmp_path: Path) -> None:
    """An error of the service may pass; a wrong flag does not."""
    out = b'{"type":"thread.started","thread_id":"t"}\nnoise\n{"type":"turn.failed","error":{"message":"stream disconnected"}}\n'
    failed = CODEX.read_outcome(Finished(ProcessEnding.EXITED, 1, out, b"", tmp_path))
    assert failed == AgentOutcome(AgentResult.FAILED, "t", reason="stream disconnected", retry=True)
    wrong = CODEX.read_outcome(
        Finished(ProcessEnding.EXITED, 2, b"", b"error: unexpected argument\n", tmp_path)
    )
    assert (wrong.reason, wrong.retry) == ("exit 2: error: unexpected argument", False)
