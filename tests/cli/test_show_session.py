"""A question that is decided in a conversation, wherever a gate is shown: before it, after an answer, and ended without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import pytest

import gitgate
from gitgate.acts import open_gate
from gitgate.acts.answering import Manner, respond, stop
from gitgate.api.terms import open_desk
from gitgate.model.gate import Conversation
from gitgate.questions import Given
from support.testbed.command import Command
from support.testbed.repositories import Clone

Ask = Callable[..., str]
HELD = Conversation(
    "completed", 342, "DONE", "Looks good after the indexes.", "two reviews", "see \x1b[31mlog", "command",
    transcript="person: secret talk",
)  # fmt: skip
TIMES = Conversation("timeout", 1865, summary="We read half of it.", source="", confirmed=False)


@pytest.fixture
def session(ask: Ask, repo: Clone, tmp_path: Path) -> str:
    """An approval that is talked about, with every term."""
    servers = {"mcpServers": {"no\x1btes": {"command": "notes-server"}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers), encoding="utf-8")
    return ask(
        *("Approve the schema?", "--type", "session", "--outcome", "approval", "--model", "opus"),
        *("--system-prompt", "Help them.\x1b[2J", "--session-context", '{"files": ["a.sql\\u202e"]}'),
        *("--session-timeout", "30m", "--mcp-config", str(tmp_path / "mcp.json"), "--transcript"),
    )


def decide(repo: Clone, gate: str, held: Conversation, *, approve: bool | None = None) -> None:
    """What `join` writes when a conversation is over: an answer, or without one an end."""
    with open_desk(repo.path) as desk:
        found = open_gate(desk, gate)
        if approve is None:
            stop(desk, found, "the time for the conversation was up", session=held)
        else:
            respond(desk, found, Given(approve=approve), Manner(via="join", session=held))


def parsed(said: str) -> minidom.Document:
    return minidom.parseString(said.encode())  # noqa: S318 - what is parsed is our own


def text(document: minidom.Document, name: str) -> str:
    (element,) = document.getElementsByTagName(name)
    return "".join(node.data for node in element.childNodes if isinstance(node, minidom.Text))


def test_a_letter_says_how_to_join_and_how_it_goes(cli: Command, session: str) -> None:
    """How to join first, a typed answer too; the terms of the conversation, and no sign in them acts."""
    said = cli.quick("show", session, code=0).out
    for words in (
        "The conversation", "it ends with approved or rejected", "model opus", "at most 30m", "1m to come to an end",
        "its transcript is kept", "Help them.\\x1b[2J", '"a.sql\\u202e"', "no\\x1btes; none runs unless you confirm it",
        "yes or no", f"git gate join {session[:6]}", f"git gate respond {session[:6]} --approve",
    ):  # fmt: skip
        assert words in said
    assert said.index("git gate join") < said.index("git gate respond")
    assert "\x1b" not in said


def test_a_plain_session_says_how_to_join_too(cli: Command, ask: Ask) -> None:
    """Without any terms."""
    said = cli.quick("show", ask("What now?", "--type", "session"), code=0).out
    assert "git gate join" in said
    assert "The conversation" not in said


def test_a_checkpoint_says_what_it_is(cli: Command, ask: Ask) -> None:
    """There is no agent to talk to."""
    said = cli.quick("show", ask("Go on?", "--type", "session", "--checkpoint"), code=0).out
    assert "a small prompt asks: go on, or stop" in said
    assert "it asks whether to go on" in said


def test_an_answered_letter_says_how_it_was_decided(cli: Command, repo: Clone, session: str) -> None:
    """How long it took, where it was read, what was said of it, and who; the transcript only as being there."""
    decide(repo, session, HELD, approve=True)
    said = cli.quick("show", session, code=0).out
    for words in (
        "approved", "conversation of 5m42s · DONE · read from the agent's own signal", "transcript kept",
        "summary: Looks good after the indexes.", "reason: two reviews", "message: see \\x1b[31mlog",
        "— Ada Lovelace <ada@example.org> (unverified), ", "by join",
    ):  # fmt: skip
        assert words in said
    assert "secret talk" not in said
    trail = cli.quick("log", session, code=0).out
    assert "approved (completed after 5m42s) · Looks good after the indexes." in trail
    state = cli.quick("status", session, code=0).out
    assert "talked: conversation of 5m42s" in state
    assert "summary: Looks good after the indexes." in state


def test_a_letter_of_a_session_that_came_to_nothing(cli: Command, repo: Clone, session: str) -> None:
    """That it was a timeout, and after how long; nobody decided, and nobody ended it."""
    decide(repo, session, TIMES)
    said = cli.quick("show", session, code=0).out
    for words in (
        "stopped: the time for the conversation was up", "timeout, conversation of 31m5s",
        "summary: We read half of it.", "— nobody", "(timeout after 31m5s)",
    ):  # fmt: skip
        assert words in " ".join(said.split())
    assert cli.quick("show", session, "--json", code=0).json["closing"]["by"] is None
    assert "by Ada" not in cli.quick("check", session, code=9).err
    assert "by Ada" not in repo.git("log", "-1", "--format=%s", f"refs/hitl/open/{session}")
    assert "approved" not in said.split("How it ended")[1]
    assert "timeout after 31m5s" in cli.quick("log", session, code=0).out
    assert "talked: timeout" in cli.quick("status", session, code=0).out
    cli.quick("check", session, code=9)


def test_json_has_the_terms_and_how_it_was_held(cli: Command, repo: Clone, session: str) -> None:
    """Everything, also terms that nobody set, and the transcript."""
    (question,) = cli.quick("show", session, "--json", code=0).json["questions"]
    assert question["talk"] == {
        "outcome": "approval", "system": "Help them.\x1b[2J", "context": {"files": ["a.sql\u202e"]}, "model": "opus",
        "cwd": "", "mcp": {"mcpServers": {"no\x1btes": {"command": "notes-server"}}}, "timeout": 1800, "grace": 60,
        "transcript": True, "save_every": 300, "resume": "", "checkpoint": False,
    }  # fmt: skip
    decide(repo, session, HELD, approve=False)
    shape = cli.quick("show", session, "--json", code=0).json
    assert shape["answer"]["verdict"] == "rejected"
    assert shape["answer"]["session"] == {
        "outcome": "completed", "seconds": 342, "status": "DONE", "summary": "Looks good after the indexes.",
        "reason": "two reviews", "message": "see \x1b[31mlog", "source": "command", "confirmed": True, "content": "",
        "transcript": "person: secret talk",
    }  # fmt: skip
    (answered,) = [event for event in shape["history"] if event["event"] == "answered"]
    assert answered["session"]["seconds"] == 342
    assert "transcript" not in answered["session"]
    status = cli.quick("status", session, "--json", code=0).json
    assert (status["type"], status["talked"]["seconds"]) == ("session", 342)


def test_json_of_a_session_that_came_to_nothing(cli: Command, repo: Clone, session: str) -> None:
    """The closing says how it ended; there is no answer."""
    decide(repo, session, TIMES)
    shape = cli.quick("show", session, "--json", code=0).json
    assert shape["answer"] is None
    assert shape["closing"]["reason"] == "the time for the conversation was up"
    assert (shape["closing"]["session"]["outcome"], shape["closing"]["session"]["seconds"]) == (
        "timeout",
        1865,
    )


def test_a_list_leaves_out_what_was_said(cli: Command, repo: Clone, session: str) -> None:
    """Of every gate, how it ended; the transcript of one is in `show --json`."""
    decide(repo, session, HELD, approve=True)
    (gate,) = cli.quick("list", "--all", "--json", code=0).json["gates"]
    assert gate["answer"]["session"]["summary"] == "Looks good after the indexes."
    assert "transcript" not in gate["answer"]["session"]


def test_json_of_other_gates_says_that_nobody_talked(cli: Command, ask: Ask) -> None:
    """The field is there, and empty."""
    gate = ask("Which?")
    cli.quick("respond", gate, "words", code=0)
    shape = cli.quick("show", gate, "--json", code=0).json
    assert shape["answer"]["session"] is None
    assert "talk" not in shape["questions"][0]


def test_xml_before_a_session(cli: Command, session: str) -> None:
    """The plan-like form: its type, prompt, config with durations in milliseconds, and how to go on."""
    document = parsed(cli.quick("show", session, "--format", "xml", code=0).out)
    (element,) = document.getElementsByTagName("human-interaction")
    assert (element.getAttribute("type"), element.getAttribute("status")) == (
        "interactive_session",
        "pending",
    )
    assert text(document, "prompt") == "Approve the schema?"
    assert {name: text(document, name) for name in ("model", "timeout", "outcome-type", "grace")} == {
        "model": "opus", "timeout": "1800000", "outcome-type": "approval", "grace": "60000",
    }  # fmt: skip
    assert json.loads(text(document, "session-context")) == {"files": ["a.sql\u202e"]}
    assert text(document, "message") == f"Waiting for the session to be held: git gate join {session[:6]}"
    for absent in ("outcome", "duration", "response", "cwd", "resume-session"):
        assert not document.getElementsByTagName(absent)


def test_xml_after_a_session(cli: Command, repo: Clone, session: str) -> None:
    """Outcome, how long people talked, response, and what was said of it."""
    decide(repo, session, HELD, approve=True)
    said = cli.quick("show", session, "--format", "xml", code=0).out
    document = parsed(said)
    (element,) = document.getElementsByTagName("human-interaction")
    assert element.getAttribute("status") == "completed"
    names = ("outcome", "duration", "response", "status", "summary", "message")
    assert [text(document, name) for name in names] == [
        "approved", "342000", "true", "DONE", "Looks good after the indexes.", "see \\x1b[31mlog",
    ]  # fmt: skip
    assert "secret talk" not in said


def test_xml_of_a_session_that_came_to_nothing(cli: Command, repo: Clone, session: str) -> None:
    """Its status is how it ended, and there is no response."""
    decide(repo, session, TIMES)
    document = parsed(cli.quick("show", session, "--format", "xml", code=0).out)
    (element,) = document.getElementsByTagName("human-interaction")
    assert element.getAttribute("status") == "timeout"
    assert (text(document, "outcome"), text(document, "duration")) == ("timeout", "1865000")
    assert text(document, "message").endswith("the time for the conversation was up")
    assert not document.getElementsByTagName("response")


def test_a_list_tells_a_session_and_how_to_act(cli: Command, ask: Ask, session: str) -> None:
    """However narrow the terminal is; with -v the command itself."""
    plain = ask("Which?")
    lines = {line.split()[0]: line for line in cli.quick("list", code=0).out.splitlines()}
    assert lines[session].endswith("Approve the schema? · join")
    assert not lines[plain].endswith("join")
    narrow = cli.quick("list", env={"COLUMNS": "60", "GIT_PAGER_IN_USE": "true"}, code=0).out
    assert "· join" in narrow
    assert f"talk it over: git gate join {session[:6]}" in cli.quick("list", "-v", code=0).out
    listed = {gate["id"]: gate for gate in cli.quick("list", "--json", code=0).json["gates"]}
    assert listed[session]["questions"][0]["talk"]["model"] == "opus"


def test_what_comes_next_is_to_join(cli: Command, session: str) -> None:
    """In the overview, and in the status of the gate."""
    assert f"next: git gate join {session[:6]}" in cli.quick(code=0).out
    assert f"next: git gate join {session[:6]}" in cli.quick("status", session, code=0).out


@pytest.mark.parametrize(
    ("status", "code", "verdict"), [("CONTINUE", 0, "approved"), ("stop", 3, "rejected")]
)
def test_a_signal_decides_an_approval_by_session(
    cli: Command, session: str, status: str, code: int, verdict: str
) -> None:
    """And the answer keeps the signal itself."""
    cli.quick("signal", session, "--status", status, "--message", "fine", code=0)
    cli.quick("check", session, code=code)
    answer = cli.quick("show", session, "--json", code=0).json["answer"]
    assert (answer["verdict"], answer["via"], answer["note"]) == (verdict, "signal", "fine")
    assert answer["session"]["status"] == status
    assert answer["session"]["source"] == "person"


def test_a_typed_answer_is_read_by_the_outcome(cli: Command, ask: Ask, session: str) -> None:
    """Without any conversation: as an approval, as one of the options."""
    assert "expected yes or no" in cli.quick("respond", session, "perhaps", code=2).err
    cli.quick("respond", session, "--reject", "--note", "no rollback", code=0)
    assert cli.quick("check", session, code=3).out == "rejected\nno rollback\n"
    choice = ask("Which?", "--type", "session", "-o", "Blue", "-o", "Green")
    assert "Blue, Green" in cli.quick("respond", choice, "Red", code=2).err
    cli.quick("respond", choice, "gr", code=0)
    assert cli.quick("check", choice, code=0).out == "Green\n"


def test_an_approval_by_session_is_not_given_by_default(cli: Command, ask: Ask) -> None:
    """Silence is no consent here either."""
    flags = (
        "--type",
        "session",
        "--outcome",
        "approval",
        "--default",
        "yes",
        "--timeout",
        "1h",
        "--on-timeout",
        "default",
    )
    assert "not given by default" in cli.quick("ask", "Deploy?", *flags, code=4).err


def test_a_checkpoint_takes_a_signal(cli: Command, ask: Ask) -> None:
    """As any approval; and what decides nothing is refused."""
    gate = ask("Go on?", "--type", "session", "--checkpoint")
    cli.quick("signal", gate, "--status", "NEEDS_REVIEW", code=2)
    cli.quick("signal", gate, "--status", "CONTINUE", code=0)
    assert cli.quick("check", gate, code=0).out == "approved\n"


def test_other_statuses_pass_through(cli: Command, ask: Ask) -> None:
    """To a waiting workflow: the word as the answer with its message as the note; both in the session too."""
    gate = ask("What now?", "--type", "session")
    cli.quick("signal", gate, "--status", "NEEDS_REVIEW", "--message", "look at b.sql", code=0)
    assert cli.quick("wait", gate, code=0).out == "NEEDS_REVIEW\nlook at b.sql\n"
    session = cli.quick("show", gate, "--json", code=0).json["answer"]["session"]
    assert (session["status"], session["message"], session["seconds"]) == ("NEEDS_REVIEW", "look at b.sql", 0)


def test_a_signal_may_bring_a_selection(cli: Command, ask: Ask) -> None:
    """A status is no label: the message is the answer."""
    gate = ask("Which?", "--type", "session", "-o", "Blue", "-o", "Green")
    cli.quick("signal", gate, "--status", "DONE", "--message", "Green", code=0)
    answer = cli.quick("show", gate, "--json", code=0).json["answer"]
    assert (answer["values"], answer["note"]) == ({"answer": "Green"}, "")
    assert answer["session"]["status"] == "DONE"


def test_python_sees_the_conversation(repo: Clone, session: str) -> None:
    """With the answer and with the gate."""
    decide(repo, session, HELD, approve=True)
    gate = gitgate.show(session, directory=repo.path)
    assert gate.session is not None
    assert gate.answer is not None
    assert gate.answer.session == gate.session
    assert (gate.session.outcome, gate.session.seconds, gate.session.status) == ("completed", 342, "DONE")
    assert gate.session.transcript == "person: secret talk"
    assert "secret talk" not in repr(gate)


def test_python_sees_a_conversation_without_an_answer(repo: Clone, session: str) -> None:
    """How it ended, and that there is no answer."""
    decide(repo, session, TIMES)
    gate = gitgate.show(session, directory=repo.path)
    assert (gate.answer, gate.state) == (None, "stopped")
    assert gate.session == gitgate.Conversation(
        "timeout", 1865, summary="We read half of it.", confirmed=False
    )
