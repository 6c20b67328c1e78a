"""Joining, with the real Claude Code at a terminal: a scripted model asked, a person talks to it, and then decides."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from support.lab.model import Reply
from support.lab.office import Office
from support.testbed.terminal import Terminal

from .conftest import MakeOffice

pytestmark = [pytest.mark.claude, pytest.mark.slow, pytest.mark.timeout(300)]

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": name, "description": name} for name in ("Postgres", "SQLite")],
}
BY_CALL = Reply("I looked.", [("AskUserQuestion", {"questions": [DATABASE]})], when="GO-ON")
BY_COMMAND = Reply("I looked.", [("Bash", {"command": "git-gate ask 'Which database?' -q"})], when="GO-ON")
TOLD = Reply("I-TRIED-BOTH-OF-THEM.", when="WHAT-DID-YOU-TRY")
TAKEN = Reply(
    "I note it.",
    [("mcp__gitgate__outcome", {"value": "SQLite", "summary": "One file is enough."})],
    when="TAKE-SQLITE",
)
NOTED = Reply("NOTED.", when="It counts when the person")
OVER = Reply("Over.", repeat=True)


def settle_in(here: Office) -> None:
    """Somebody who used the program before, and trusts this directory."""
    said = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [here.env["ANTHROPIC_API_KEY"][-20:]]},
        "projects": {str(here.clone.path): {"hasTrustDialogAccepted": True}},
    }
    place = here.machine.home / ".claude" / ".claude.json"
    known = json.loads(place.read_text("utf-8")) if place.exists() else {}
    place.write_text(json.dumps({**known, **said}), "utf-8")


def enter(terminal: Terminal, text: str) -> None:
    """As a person types: what comes with its Enter at once is taken for pasted."""
    time.sleep(1.5)
    terminal.keys(text)
    time.sleep(1)
    terminal.keys("\r")


@pytest.mark.parametrize("ask", [BY_CALL, BY_COMMAND], ids=["call", "command"])
def test_a_person_talks_to_it_and_then_decides(
    office: MakeOffice, pty_cli: Callable[..., Terminal], ask: Reply
) -> None:
    """The conversation goes on where it stopped, decides nothing, and is what the resumed agent goes on from."""
    here = office(ask, TOLD, OVER)
    here.clone.write("draft.py", "half = 1\n")
    here.run("GO-ON", "--allowedTools", "Bash")
    settle_in(here)
    gate = str(here.only()["id"])
    terminal = pty_cli("join", gate, cwd=here.clone.path, env=here.env, columns=120)
    terminal.expect("opening claude's session where it was")
    terminal.expect("GO-ON", timeout=60)
    enter(terminal, "WHAT-DID-YOU-TRY")
    terminal.expect("I-TRIED-BOTH-OF-THEM", timeout=60)
    enter(terminal, "/exit")
    terminal.expect("the session is over", timeout=60)
    assert here.only()["state"] == "awaiting"
    terminal.expect("your ")
    terminal.line("SQLite")
    terminal.finish(code=0)
    answer = here.only()["answer"]
    assert (list(answer["values"].values()), answer["via"]) == (["SQLite"], "join")
    here.resume(gate)
    assert here.only()["state"] == "resumed"
    for words in ("GO-ON", "WHAT-DID-YOU-TRY", "I-TRIED-BOTH-OF-THEM", "SQLite"):
        assert words in here.shown


@pytest.mark.parametrize("ask", [BY_CALL, BY_COMMAND], ids=["call", "command"])
def test_the_agents_own_session_says_what_was_decided(
    office: MakeOffice, pty_cli: Callable[..., Terminal], ask: Reply
) -> None:
    """It has the tool without having been told of it; confirmed, that very conversation goes on, and there is no other."""
    here = office(ask, TAKEN, NOTED, OVER)
    here.clone.write("draft.py", "half = 1\n")
    here.run("GO-ON", "--allowedTools", "Bash")
    settle_in(here)
    gate = str(here.only()["id"])
    terminal = pty_cli("join", gate, cwd=here.clone.path, env=here.env, columns=120)
    terminal.expect("GO-ON", timeout=60)
    enter(terminal, "TAKE-SQLITE")
    terminal.expect("NOTED.", timeout=60)
    enter(terminal, "/exit")
    shown = terminal.expect("is that your answer?", timeout=60)
    assert "One file is enough." in shown
    terminal.line("y")
    terminal.finish(code=0)
    answer = here.only()["answer"]
    assert (list(answer["values"].values()), answer["via"]) == (["SQLite"], "join")
    here.resume(gate)
    assert here.only()["state"] == "resumed"
    for words in ("GO-ON", "TAKE-SQLITE", "One file is enough.", "SQLite"):
        assert words in here.shown
    transcripts = [*(here.machine.home / ".claude" / "projects").glob("*/*.jsonl")]
    assert len({place.stem for place in transcripts}) == 1


def test_a_killed_terminal_loses_nothing(office: MakeOffice, pty_cli: Callable[..., Terminal]) -> None:
    """The gate waits, and whoever joins again finds what was said before."""
    here = office(BY_COMMAND, TOLD, OVER)
    here.run("GO-ON", "--allowedTools", "Bash")
    settle_in(here)
    gate = str(here.only()["id"])
    terminal = pty_cli("join", gate, cwd=here.clone.path, env=here.env, columns=120)
    terminal.expect("GO-ON", timeout=60)
    enter(terminal, "WHAT-DID-YOU-TRY")
    terminal.expect("I-TRIED-BOTH-OF-THEM", timeout=60)
    terminal.end()
    assert here.only()["state"] == "awaiting"
    again = pty_cli("join", gate, cwd=here.clone.path, env=here.env, columns=120)
    again.expect("I-TRIED-BOTH-OF-THEM", timeout=60)
    enter(again, "/exit")
    again.expect("the session is over", timeout=60)
    again.expect("your ")
    again.line()
    again.finish(code=8)
    assert "I-TRIED-BOTH-OF-THEM" in here.clone.git(
        "show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl"
    )
