"""The demonstration: the whole loop with the real command, a real server and its real hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, so that what is left of them can be seen."""
    place = tmp_path / "scratch with space"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


@pytest.mark.slow
def test_the_loop_runs_from_the_question_to_the_audit(cli: Command, scratch: Path) -> None:
    """Asked, answered from another clone, resumed by the server's hook, checked; then nothing is left behind."""
    shown = cli("demo", "--json", code=0, timeout=60).json
    assert shown["schema"] == "gitgate.demo/v1"
    said = {step["command"]: step["output"] for step in shown["steps"]}
    finished = next(text for typed, text in said.items() if typed.startswith("git log -1"))
    assert "Log in with Postgres" in finished
    assert "Decided-by: You <you@example.invalid>" in finished
    assert "notes.txt" in finished, "the half-done work is in the agent's commit"
    trail = next(text for typed, text in said.items() if typed.startswith("git gate log"))
    assert [line.split()[2] for line in trail.splitlines()] == ["resumed", "claimed", "answered", "opened"]
    assert said["git gate verify"].startswith("1 gate, 4 events: nothing is wrong")
    assert shown["kept"] is None
    assert list(scratch.glob("gitgate-demo-*")) == []


@pytest.mark.slow
def test_it_is_told_step_by_step(cli: Command) -> None:
    """Each command with who types it, and at the end what to type in one's own repository."""
    said = cli("demo", code=0, timeout=60).out
    assert "agent$ git gate ask" in said
    assert "you$ git gate respond" in said
    assert "git gate init --server" in said


@pytest.mark.slow
def test_kept_it_can_be_looked_into(cli: Command, git: object, scratch: Path) -> None:
    """The folder stays, with a server whose gate a person can read with plain git."""
    kept = Path(cli("demo", "--json", "--keep", code=0, timeout=60).json["kept"])
    assert kept.parent == scratch
    server = Clone(kept / "server.git")
    (gate,) = server.refs("refs/hitl/open")
    assert "hitl: 1" in server.git("show", f"{gate}:question.yaml")
