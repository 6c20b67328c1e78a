"""A checkpoint: no agent, a few keys at the terminal: look at the work, go on or stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.talking import Meeting, meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more

Pty = Callable[..., Terminal]


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Meeting:
    return meet(repo, cli, tmp_path / "claude")


@pytest.fixture
def gate(desk: Meeting) -> str:
    return desk.talk("Approve deployment?", "--checkpoint")


def test_a_person_goes_on(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """`c` is CONTINUE: an approval, with the message; no program was started for it."""
    terminal = pty_cli("join", gate[:6])
    assert "Approve deployment?" in terminal.expect("[d/m/c/s/t/q]: ")
    terminal.line("m")
    terminal.expect("message: ")
    terminal.line("after lunch")
    terminal.expect("[d/m/c/s/t/q]: ")
    terminal.line("c")
    terminal.finish(code=0)
    answer = desk.answer(gate)
    assert (answer["verdict"], answer["note"], answer["via"]) == ("approved", "after lunch", "join")
    held = desk.held(gate)
    assert (held["outcome"], held["status"], held["message"], held["source"]) == (
        "completed",
        "CONTINUE",
        "after lunch",
        "prompt",
    )
    assert desk.runs == []
    desk.cli("check", gate, code=0)


def test_a_person_stops(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """`s` is STOP: a no with its reason, which is asked for until there is one; whoever waits hears both."""
    terminal = pty_cli("continue", gate)
    terminal.expect("[d/m/c/s/t/q]: ")
    terminal.line("s")
    terminal.expect("why: ")
    terminal.line("")
    terminal.expect("why: ")
    terminal.line("the tests are red")
    terminal.finish(code=0)
    answer = desk.answer(gate)
    assert (answer["verdict"], answer["note"]) == ("rejected", "the tests are red")
    assert (desk.held(gate)["status"], desk.held(gate)["reason"]) == ("STOP", "the tests are red")
    assert "the tests are red" in desk.cli("check", gate, code=3).out


def test_the_work_is_looked_at_first(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """`d` shows the partial work, and decides nothing."""
    terminal = pty_cli("join", gate, rows=200)
    terminal.expect("[d/m/c/s/t/q]: ")
    terminal.line("d")
    assert "+half done" in terminal.expect("[d/m/c/s/t/q]: ")
    assert desk.show(gate)["state"] == "awaiting"


@pytest.mark.parametrize("leaves", ["q\r", "\r", "\x04", "no\rq\r"], ids=["q", "empty", "Ctrl-D", "other"])
def test_anything_else_leaves_it_waiting(desk: Meeting, pty_cli: Pty, gate: str, leaves: str) -> None:
    """Only the keys that say so decide."""
    terminal = pty_cli("join", gate)
    terminal.expect("[d/m/c/s/t/q]: ")
    terminal.keys(leaves)
    assert f"git gate join {gate[:6]}" in terminal.finish(code=8)
    assert desk.show(gate)["state"] == "awaiting"


def test_a_script_decides_it_by_a_signal(desk: Meeting, gate: str) -> None:
    """Without a terminal: CONTINUE approves, STOP refuses, and another status decides nothing."""
    assert "--status CONTINUE" in desk.cli("signal", gate, "--status", "DONE", code=2).err
    desk.cli("signal", gate, "--status", "CONTINUE", "--message", "approved", code=0)
    assert (desk.answer(gate)["verdict"], desk.answer(gate)["note"]) == ("approved", "approved")
    letter = desk.cli("show", gate, code=0).out
    assert "read from the person" in letter
    assert "agent's own signal" not in letter


@pytest.mark.parametrize("opened", ["t", "--new", "--agent"])
@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({"status": "CONTINUE", "summary": "the diff is fine"}, "approved"),
        ({"status": "STOP", "reason": "the tests are red", "summary": "looked"}, "rejected"),
    ],
)
def test_an_agent_is_talked_to_first(
    desk: Meeting, pty_cli: Pty, gate: str, opened: str, said: dict[str, str], verdict: str
) -> None:
    """By a key or a flag: in the work, told the message and what to do; its CONTINUE or STOP counts once it is confirmed."""
    flags = {"t": [], "--new": ["--new"], "--agent": ["--agent", "claude"]}[opened]
    terminal = pty_cli("join", gate, *flags)
    if opened == "t":
        terminal.expect("[d/m/c/s/t/q]: ")
        terminal.line("m")
        terminal.expect("message: ")
        terminal.line("after lunch")
        terminal.expect("[d/m/c/s/t/q]: ")
        terminal.line("t")
    terminal.expect("opening a new session with claude in a worktree of the work")
    terminal.expect("0 earlier messages")
    assert "Approve deployment?" in desk.prompt
    assert "the status CONTINUE, or reject with the status STOP" in desk.flag("--append-system-prompt")
    terminal.line(f"tool {json.dumps(said)}")
    terminal.expect("claude: tool done")
    assert desk.show(gate)["state"] == "awaiting"
    terminal.line("leave")
    shown = terminal.expect("is that your answer?")
    assert said["summary"] in shown
    assert desk.show(gate)["state"] == "awaiting"
    terminal.line("y")
    terminal.finish(code=0)
    answer, held = desk.answer(gate), desk.held(gate)
    assert (answer["verdict"], answer["via"]) == (verdict, "join")
    assert answer["note"] == ("after lunch" if opened == "t" else "")
    assert (held["status"], held.get("reason")) == (said["status"], said.get("reason"))
    assert (Path(desk.runs[0]["cwd"])) != desk.repo.path


def test_talking_at_a_checkpoint_decides_nothing(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """Not confirmed, it waits; and the same talk goes on the next time."""
    terminal = pty_cli("join", gate)
    terminal.expect("[d/m/c/s/t/q]: ")
    terminal.line("t")
    terminal.expect("0 earlier messages")
    terminal.line('tool {"status": "CONTINUE"}')
    terminal.expect("claude: tool done")
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("n")
    terminal.finish(code=8)
    assert desk.show(gate)["state"] == "awaiting"
    again = pty_cli("join", gate)
    again.expect("[d/m/c/s/t/q]: ")
    again.line("t")
    again.expect("opening the session that was begun earlier")
