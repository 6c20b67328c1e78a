"""What sessions promise, one promise a test: continue, stop, status, signal, going on after a crash, and holding a session."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.agents.claude.transcript import project_folder
from support import PATIENCE
from support.talking import Meeting, meet
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more

Pty = Callable[..., Terminal]
SESSION = "0b9c4f0e-0000-4000-8000-000000000000"
REASON = "Need clarification on the authentication approach"


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Meeting:
    return meet(repo, cli, tmp_path / "claude")


@pytest.fixture
def stuck(desk: Meeting) -> str:
    """A gate of an agent that was stuck and said why; what it had tried is in its conversation."""
    tried = {"type": "assistant", "uuid": "u1", "parentUuid": None}
    words = {"role": "assistant", "content": [{"type": "text", "text": "I tried basic auth and tokens."}]}
    place = project_folder(os.environ, desk.repo.path)
    place.mkdir(parents=True)
    (place / f"{SESSION}.jsonl").write_text(json.dumps({**tried, "message": words}) + "\n", encoding="utf-8")
    return desk.ask(REASON, "--agent", "claude", "--session", SESSION)


def talk(terminal: Terminal, *lines: str) -> None:
    terminal.expect("earlier messages")
    for line in lines:
        terminal.line(line)
        terminal.expect(f"claude: {line.split()[0]} done")


def leave(terminal: Terminal, answer: str) -> None:
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line(answer)


# Continuing


def test_continue_opens_the_agents_session_with_all_of_its_history(
    desk: Meeting, pty_cli: Pty, stuck: str
) -> None:
    """Which agent and why are told, then its own conversation opens with what it said before."""
    terminal = pty_cli("continue", stuck)
    shown = terminal.expect("1 earlier messages")
    assert REASON in shown
    assert "opening claude's session" in shown
    assert desk.flag("--resume") == SESSION


def test_the_agent_goes_on_in_the_conversation_and_says_how_it_ended(
    desk: Meeting, pty_cli: Pty, stuck: str
) -> None:
    """A new signal (`DONE` with a summary) is noticed when the person leaves, confirmed, and is what whoever waits gets."""
    terminal = pty_cli("continue", stuck)
    talk(terminal, "say use PKCE", 'signal {"status": "DONE", "summary": "OAuth2 with PKCE, as told"}')
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.cli("check", stuck, code=0).line == "OAuth2 with PKCE, as told"
    held = desk.held(stuck)
    assert (held["status"], held["source"]) == ("DONE", "file")


def test_a_signal_that_still_needs_a_person_changes_nothing(desk: Meeting, pty_cli: Pty, stuck: str) -> None:
    """While the status is NEEDS_HUMAN the gate waits, and the person is asked for the answer themselves."""
    terminal = pty_cli("continue", stuck)
    talk(terminal, 'signal {"status": "NEEDS_HUMAN", "reason": "still unclear"}')
    terminal.line("leave")
    assert "understood" not in terminal.expect("your answer (")
    terminal.line()
    terminal.finish(code=8)
    assert desk.show(stuck)["state"] == "awaiting"


def test_it_is_one_longer_conversation_and_no_second_execution(
    desk: Meeting, pty_cli: Pty, stuck: str
) -> None:
    """What was said is in the agent's own session; the record has one answer, and nothing was started beside it."""
    terminal = pty_cli("continue", stuck)
    talk(terminal, "say use PKCE")
    leave(terminal, "PKCE")
    terminal.finish(code=0)
    saved = desk.saved(stuck)
    assert "I tried basic auth" in saved
    assert "use PKCE" in saved
    events = [event["event"] for event in desk.show(stuck)["history"]]
    assert events.count("answered") == 1
    assert "claimed" not in events


def test_what_waits_is_told_to_the_workflow_only_when_it_is_decided(
    desk: Meeting, pty_cli: Pty, stuck: str
) -> None:
    """A script that waits just takes longer: however often a person comes and goes, it hears the one answer."""
    waiting = subprocess.Popen([str(COMMAND), "wait", stuck], stdout=subprocess.PIPE, text=True)
    try:
        first = pty_cli("continue", stuck)
        talk(first, "say let me think")
        leave(first, "")
        first.finish(code=8)
        assert waiting.poll() is None
        second = pty_cli("continue", stuck)
        talk(second)
        leave(second, "PKCE")
        second.finish(code=0)
        assert waiting.communicate(timeout=PATIENCE)[0].strip() == "PKCE"
        assert waiting.returncode == 0
    finally:
        waiting.kill()
        waiting.wait()


def test_the_editor_first_and_then_the_session(
    desk: Meeting, pty_cli: Pty, stuck: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--editor` opens it at the top of the workspace, and the session follows."""
    monkeypatch.setenv("VISUAL", f"pwd > {tmp_path}/edited; true")
    terminal = pty_cli("continue", stuck, "--editor")
    talk(terminal)
    assert (tmp_path / "edited").read_text("utf-8").strip() == desk.runs[0]["cwd"]


# Listing, status, stopping, signalling


def test_the_list_says_who_waits_for_what(desk: Meeting, stuck: str) -> None:
    """Waiting gates with the agent and the reason; closed ones only when asked for."""
    shown = desk.cli("list", code=0).out
    assert stuck in shown
    assert "Need clarification" in shown
    desk.cli("stop", stuck, "--reason", "another approach", code=0)
    assert stuck not in desk.cli("list", code=0).out
    assert stuck in desk.cli("list", "--all", code=0).out


def test_status_says_whether_it_can_be_continued(desk: Meeting, stuck: str) -> None:
    """State, agent, reason, since when, and what to type."""
    shown = desk.cli("status", stuck, code=0).out
    for words in (stuck, "awaiting", "claude", REASON, "ago", "git gate "):
        assert words in shown


def test_stop_ends_it_with_a_reason(desk: Meeting, pty_cli: Pty, stuck: str) -> None:
    """The agent does not go on, whoever waits hears that it is closed, and there is nothing left to continue."""
    desk.cli("stop", stuck, "--reason", "another approach", code=0)
    assert desk.show(stuck)["state"] == "stopped"
    assert "another approach" in desk.cli("status", stuck, code=0).out
    desk.cli("check", stuck, code=9)
    pty_cli("continue", stuck).finish(code=5)
    desk.cli("resume", stuck, code=5)
    assert desk.runs == []


def test_a_stop_needs_a_reason(desk: Meeting, stuck: str) -> None:
    """Whoever reads it later wants to know why."""
    desk.cli("stop", stuck, code=2)
    assert desk.show(stuck)["state"] == "awaiting"


@pytest.mark.parametrize(("status", "code"), [("CONTINUE", 0), ("STOP", 3)])
def test_a_signal_decides_without_a_session(desk: Meeting, status: str, code: int) -> None:
    """For scripts: CONTINUE lets the workflow go on, STOP refuses, each with its message."""
    gate = desk.talk("Approve deployment?", "--checkpoint")
    desk.cli("signal", gate, "--status", status, "--message", "as agreed", code=0)
    done = desk.cli("check", gate, code=code)
    assert "as agreed" in done.out
    assert desk.answer(gate)["via"] == "signal"


def test_another_status_reaches_the_workflow_as_it_is(desk: Meeting, stuck: str) -> None:
    """What is no approval passes through in the words it was signalled in."""
    desk.cli("signal", stuck, "--status", "NEEDS_REVIEW", code=0)
    assert desk.cli("check", stuck, code=0).line == "NEEDS_REVIEW"


# Going on after something died


def test_whatever_dies_while_it_waits_is_not_needed(desk: Meeting, pty_cli: Pty, stuck: str) -> None:
    """No process of ours runs meanwhile; a new one lists it, opens the session, and the agent is where it was."""
    terminal = pty_cli("continue", stuck)
    talk(terminal, "say half a thought")
    terminal.process.kill()
    terminal.end()
    assert stuck in desk.cli("list", code=0).out
    again = pty_cli("continue", stuck)
    assert "2 earlier messages" in again.expect("earlier messages") + "earlier messages"


def test_a_workflow_that_is_run_again_waits_at_the_same_question(desk: Meeting, pty_cli: Pty) -> None:
    """Still waiting, it gets the same gate and waits on; decided meanwhile, that gate's answer, and it goes on."""
    asks = ("ask", "Which way?", "--key", "way", "-q")
    gate = desk.cli(*asks, code=0).line
    assert desk.cli(*asks, code=0).line == gate
    desk.cli("check", gate, code=8)
    terminal = pty_cli("join", gate)
    talk(terminal)
    leave(terminal, "left")
    terminal.finish(code=0)
    assert [desk.cli("check", gate, code=0).line for _ in range(2)] == ["left", "left"]


# Holding a session


def test_whoever_holds_sessions_finds_those_that_wait(desk: Meeting) -> None:
    """By type, as JSON, with all that it takes to hold one."""
    gate = desk.talk("Shall we?", "--outcome", "approval", "--model", "opus", "--session-timeout", "30m")
    desk.ask("Which one?")
    found = desk.cli("list", "--type", "session", "--json", code=0).json["gates"]
    assert [each["id"] for each in found] == [gate]
    (question,) = desk.show(gate)["questions"]
    assert (question["type"], question["talk"]["model"], question["talk"]["timeout"]) == (
        "session",
        "opus",
        1800,
    )


def test_the_program_is_started_interactively(desk: Meeting, pty_cli: Pty) -> None:
    """With the terminal for itself, no print mode, and model, instructions, context and question handed to it."""
    gate = desk.talk(
        "Shall we?", "--model", "haiku", "--system-prompt", "Be kind.", "--session-context", '"the plan"'
    )
    terminal = pty_cli("join", gate)
    talk(terminal)
    argv = desk.runs[0]["argv"]
    assert not {"-p", "--print"} & set(argv)
    assert desk.flag("--model") == "haiku"
    assert "Be kind." in desk.flag("--append-system-prompt")
    assert "Shall we?" in desk.prompt
    assert "the plan" in desk.prompt


def test_the_end_of_a_session_resolves_the_gate(desk: Meeting, pty_cli: Pty) -> None:
    """Outcome, response and how long it took are recorded at once, and whoever asked gets them."""
    gate = desk.talk("Shall we?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    talk(terminal, "outcome approve --summary Sound.")
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.show(gate)["state"] == "answered"
    held = desk.held(gate)
    assert held["outcome"] == "completed"
    assert isinstance(held["seconds"], int)
    assert desk.answer(gate)["values"] == {"answer": True}


def test_the_plan_shows_where_a_session_stands(desk: Meeting, pty_cli: Pty) -> None:
    """Pending with its terms; afterwards completed, with the outcome, how long it took and the response."""
    gate = desk.talk("Shall we?", "--outcome", "approval", "--model", "opus")

    def plan() -> str:
        return desk.cli("show", gate, "--format", "xml", code=0).out

    pending = plan()
    assert '<human-interaction key="answer" type="interactive_session" status="pending">' in pending
    assert "<model>opus</model>" in pending
    assert "<outcome-type>approval</outcome-type>" in pending
    terminal = pty_cli("join", gate)
    talk(terminal, "outcome approve")
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    done = plan()
    assert 'type="interactive_session" status="completed"' in done
    for field in ("<outcome>", "<response>", "<duration>"):
        assert field in done
