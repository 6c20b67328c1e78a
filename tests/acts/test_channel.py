"""How a session says what was decided in it: a message to the person who joined, checked when written and when read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitgate.errors import BadAnswer, NotAllowed
from gitgate.model.gate import Option, Question, Talk
from gitgate.resumption import meeting
from gitgate.resumption.meeting import reply_to_line
from support.testbed.command import Command

APPROVAL = Question("answer", "Go?", "session", talk=Talk(outcome="approval"))
SELECTION = Question(
    "answer", "Which?", "session", (Option("Postgres"), Option("SQLite")), talk=Talk(outcome="selection")
)
FORM = Question(
    "answer",
    "How?",
    "session",
    schema={"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]},
    talk=Talk(outcome="structured"),
)
WORDS = Question("answer", "What?", "session", talk=Talk())
SEVERAL = Question("answer", "Which?", "choices", (Option("a"), Option("b")))


def asks(place: Path, method: str, number: object = 1, **parameters: object) -> dict[str, object]:
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})
    answer = reply_to_line(line.encode(), place)
    assert answer is not None
    found: dict[str, object] = json.loads(answer)
    assert found["id"] == number
    return found


def calls(place: Path, **arguments: object) -> tuple[bool, str]:
    """Whether the tool took it, and what it said."""
    result = asks(place, "tools/call", name="outcome", arguments=arguments)["result"]
    assert isinstance(result, dict)
    return not result["isError"], str(result["content"][0]["text"])


@pytest.mark.parametrize(
    ("question", "value", "means"),
    [
        (APPROVAL, "approve", True),
        (APPROVAL, "reject", False),
        (SELECTION, "SQLite", "SQLite"),
        (FORM, {"rows": 3}, {"rows": 3}),
        (WORDS, "on Friday", "on Friday"),
        (SEVERAL, ["a", "b"], ["a", "b"]),
    ],
)
def test_what_is_said_is_what_is_heard(
    tmp_path: Path, question: Question, value: object, means: object
) -> None:
    """By the tool, for every kind of outcome; with where it came from, and for our eyes only."""
    place = meeting.open_channel(tmp_path / "runs", question)
    assert meeting.read_session_outcome(place, question) is None
    assert calls(place, value=value, summary="So it is.")[0]
    heard = meeting.read_session_outcome(place, question)
    assert heard is not None
    assert (heard.value, heard.source) == (means, "mcp")
    assert heard.at == place.stat().st_mtime
    assert place.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("question", "value"),
    [(APPROVAL, "perhaps"), (SELECTION, "MySQL"), (FORM, {"rows": "three"}), (SEVERAL, ["c"]), (WORDS, 7)],
)
def test_what_does_not_fit_is_refused_and_not_kept(tmp_path: Path, question: Question, value: object) -> None:
    """The tool's error says what was expected; what was said before it still counts."""
    place = meeting.open_channel(tmp_path / "runs", question)
    taken, words = calls(place, value=value)
    assert not taken
    assert words.startswith("Not written: ")
    assert not place.exists()


@pytest.mark.parametrize(
    "content",
    ["", "yes", "[true]", '{"decision": "perhaps"}', '{"decision": true, "status": "STOP"}', '{"status": "a b"}'],
)  # fmt: skip
def test_a_file_written_by_hand_is_held_against_the_question(tmp_path: Path, content: str) -> None:
    """Whoever wrote it: what does not answer the question is told as that, and is no answer."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    place.write_text(content)
    with pytest.raises(BadAnswer, match="the outcome that the session left"):
        meeting.read_session_outcome(place, APPROVAL)


def test_a_new_session_hears_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    """An outcome that nobody confirmed is not carried over."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    meeting.say(place, {"value": "approve"}, "command")
    assert meeting.open_channel(tmp_path / "runs", APPROVAL) == place
    assert meeting.read_session_outcome(place, APPROVAL) is None


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    """The file is a file."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    (tmp_path / "other").write_text('{"decision": true}')
    place.symlink_to(tmp_path / "other")
    with pytest.raises(BadAnswer):
        meeting.read_session_outcome(place, APPROVAL)


def test_the_server_speaks_the_protocol(tmp_path: Path) -> None:
    """Greeting in the client's version, one tool made from the question, silence to notifications, errors to the rest."""
    place = meeting.open_channel(tmp_path / "runs", SELECTION)
    hello = asks(place, "initialize", "x", protocolVersion="2024-11-05", capabilities={})["result"]
    assert isinstance(hello, dict)
    assert (hello["protocolVersion"], hello["serverInfo"]["name"]) == ("2024-11-05", "gitgate")
    listed = asks(place, "tools/list")["result"]
    assert isinstance(listed, dict)
    (tool,) = listed["tools"]
    assert tool["name"] == "outcome"
    assert tool["inputSchema"]["properties"]["value"]["enum"] == ["Postgres", "SQLite"]
    assert asks(place, "ping")["result"] == {}
    assert reply_to_line(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', place) is None
    assert reply_to_line(b'{"jsonrpc": "2.0", "id": 3, "result": {}}', place) is None
    for strange in (asks(place, "resources/list"), asks(place, "tools/call", name="rm")):
        assert "error" in strange
    for line in (b"{", b"[]", b"7", b"\xff", b'"x"'):
        assert "error" in json.loads(reply_to_line(line, place) or "{}")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2099-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
        (7, "2025-11-25"),
    ],
)
def test_the_server_promises_no_version_that_it_does_not_speak(
    tmp_path: Path, asked: object, answered: str
) -> None:
    """The client's, or the latest one of ours, which it may take or leave."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    hello = asks(place, "initialize", protocolVersion=asked)["result"]
    assert isinstance(hello, dict)
    assert hello["protocolVersion"] == answered


def test_the_server_takes_several_requests_at_once(tmp_path: Path) -> None:
    """As the version of March 2025 has it: an answer to each that wants one, and none to notifications alone."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    said = json.loads(reply_to_line(json.dumps([*pings, told, 7]).encode(), place) or "")
    assert [one["id"] for one in said] == [1, 2, None]
    assert "error" in said[2]
    assert reply_to_line(json.dumps([told]).encode(), place) is None


@pytest.mark.parametrize("arguments", [None, [], "approve", {"value": None}, {"rm": "-rf"}])
def test_strange_arguments_are_no_outcome(tmp_path: Path, arguments: object) -> None:
    """Nothing is taken for a decision that is none."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    asks(place, "tools/call", name="outcome", arguments=arguments)
    heard = meeting.read_session_outcome(place, APPROVAL)
    assert heard is None or heard.value is None


def test_outside_a_session_there_is_nothing_to_say_it_to(tmp_path: Path, cli: Command) -> None:
    """The command says when it is meant; one whose session is over says that."""
    said = cli("outcome", "approve", code=4).err
    assert "git gate join" in said
    gone = {"GITGATE_OUTCOME": str(tmp_path / "gone" / "outcome.json")}
    assert "is over" in cli("outcome", "approve", env=gone, code=4).err
    with pytest.raises(NotAllowed):
        meeting.channel({})


def test_an_agent_may_say_it(tmp_path: Path, cli: Command) -> None:
    """It decides nothing, so it is no verb for people alone; nothing said at all is a mistake."""
    place = meeting.open_channel(tmp_path / "runs", APPROVAL)
    env = {"GITGATE_OUTCOME": str(place), "CLAUDECODE": "1"}
    assert cli("outcome", code=2, env=env).err
    done = cli("outcome", "approve", "--status", "CONTINUE", "--json", env=env, code=0)
    assert (done.json["value"], done.json["status"]) == (True, "CONTINUE")
    assert json.loads(place.read_text())["source"] == "command"
