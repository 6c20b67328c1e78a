"""The command line asks for a conversation: what it says of it stands in the record, and what does not fit is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest

from gitgate import model as states
from gitgate.cli.main import cli as command_line
from gitgate.model import SESSION_FIELDS
from gitgate.model.gate import OUTCOMES, Talk
from support.testbed.command import Command
from support.testbed.repositories import Clone

Ask = Callable[..., str]
SERVERS = {"mcpServers": {"tickets": {"command": "tickets-mcp", "args": ["--read-only"]}}}
SCHEMA = {"type": "object", "required": ["safe"], "properties": {"safe": {"type": "boolean"}}}


def recorded(repo: Clone, gate: str) -> Mapping[str, object]:
    """The only question, as the record has it."""
    text = repo.git("show", f"refs/hitl/open/{gate}:question.yaml")
    from gitgate.document import codec

    question = codec.parse_document(text.encode(), "question.yaml").need("questions").items()[0].plain()
    assert isinstance(question, dict)
    return question


def test_everything_that_may_be_said_is_recorded(repo: Clone, ask: Ask, tmp_path: Path) -> None:
    """Each flag has its place in the question; an MCP configuration travels by its content, not by its name."""
    (repo.path / "services").mkdir()
    repo.write("services/api.py", "pass\n")
    (tmp_path / "mcp.json").write_text(json.dumps(SERVERS), encoding="utf-8")
    (tmp_path / "prompt.md").write_text("Help them to understand each finding.\n", encoding="utf-8")
    earlier = ask("Look at it?", "--type", "session")
    gate = ask(
        *("Approve the schema?", "--type", "session", "--outcome", "approval", "--cwd", "services/"),
        *("--system-prompt", f"@{tmp_path / 'prompt.md'}", "--session-context", '{"files": ["a.sql"]}'),
        *("--model", "opus", "--mcp-config", str(tmp_path / "mcp.json"), "--session-timeout", "30m"),
        *("--grace", "2m", "--transcript", "--resume-session", earlier[:5], "--save-every", "0"),
    )
    assert recorded(repo, gate)["talk"] == {
        "outcome": "approval",
        "system": "Help them to understand each finding.\n",
        "context": {"files": ["a.sql"]},
        "model": "opus",
        "cwd": "services",
        "mcp": SERVERS,
        "timeout": 1800,
        "grace": 120,
        "transcript": True,
        "save_every": 0,
        "resume": earlier,
    }


@pytest.mark.parametrize(
    ("flags", "outcome"),
    [
        ((), None),
        (("-o", "A", "-o", "B=bee"), "selection"),
        (("--schema", "schema.json"), "structured"),
        (("--checkpoint",), "approval"),
        (("--transcript",), "freeform"),
    ],
)
def test_the_outcome_follows_from_what_is_given(
    repo: Clone, ask: Ask, flags: tuple[str, ...], outcome: str | None
) -> None:
    """Options are to be chosen from, a schema is to be filled; without either it is words. Nothing said, nothing recorded."""
    repo.write("schema.json", json.dumps(SCHEMA))
    talk = recorded(repo, ask("Which?", "--type", "interactive_session", *flags)).get("talk")
    assert (talk["outcome"] if isinstance(talk, dict) else None) == outcome


def test_context_is_read_from_a_file_or_standard_input(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Any JSON, also a list or a number."""
    (tmp_path / "context.json").write_text("[1, {}]", encoding="utf-8")
    states = ("ask", "Which?", "--type", "session", "-q", "--session-context")
    read = cli.quick(*states, f"@{tmp_path / 'context.json'}", code=0).line
    assert recorded(repo, read)["talk"] == {"outcome": "freeform", "context": [1, {}]}
    piped = cli(*states, "-", input=b'"word"', code=0).line
    assert recorded(repo, piped)["talk"] == {"outcome": "freeform", "context": "word"}


def test_a_question_file_says_the_same(repo: Clone, ask: Ask) -> None:
    """In our words, and in those of systems that call it a session's configuration."""
    repo.write(
        "ours.yaml",
        "prompt: Sound?\ntype: session\ntalk:\n  outcome: approval\n  model: opus\n  timeout: 30m\n",
    )
    theirs = {
        "type": "interactive_session",
        "prompt": "Sound?",
        "session_config": {
            "systemPrompt": "Help.",
            "outcomeSchema": {"type": "selection", "options": ["A", "B"]},
        },
    }
    repo.write("theirs.json", json.dumps(theirs))
    ours = recorded(repo, ask("--file", "ours.yaml"))
    assert ours["talk"] == {"outcome": "approval", "model": "opus", "timeout": 1800}
    said = recorded(repo, ask("--file", "theirs.json"))
    assert said["talk"] == {"outcome": "selection", "system": "Help."}
    assert said["options"] == [{"label": "A"}, {"label": "B"}]


WRONG = [
    (("--model", "opus"), "--model is for a question that is decided in a session", "add --type session"),
    (("--type", "approval", "--outcome", "approval"), "--outcome is for a question", "leave out --outcome"),
    (("--checkpoint",), "--checkpoint is for a question", "add --type session"),
    (
        ("--type", "session", "--outcome", "approval", "-o", "A"),
        "ends in an approval has no options",
        "selection",
    ),
    (("--type", "session", "--outcome", "selection"), "selection needs options", "-o LABEL"),
    (("--type", "session", "--outcome", "structured"), "structured outcome needs a schema", "--schema FILE"),
    (
        ("--type", "session", "--outcome", "freeform", "--schema", "schema.json"),
        "ends in free text has no schema",
        "--schema",
    ),
    (("--type", "session", "--outcome", "maybe"), "'maybe' is not one of", ""),
    (("--type", "session", "--cwd", ".."), "--cwd: expected a folder within the worktree", ""),
    (("--type", "session", "--cwd", "/etc"), "--cwd: expected a folder within the worktree", ""),
    (("--type", "session", "--cwd", "a/../../b"), "--cwd: expected a folder within the worktree", ""),
    (("--type", "session", "--cwd", "nowhere"), "there is no such folder", "--cwd services/api"),
    (("--type", "session", "--model", "--print"), "--model: expected a model's name", ""),
    (("--type", "session", "--session-timeout", "0"), "--session-timeout: ", ""),
    (("--type", "session", "--session-timeout", "soon"), "--session-timeout: expected a duration", ""),
    (("--type", "session", "--grace", "-1"), "--grace: expected a duration", ""),
    (("--type", "session", "--save-every", "often"), "--save-every: expected a duration", ""),
    (
        ("--type", "session", "--session-context", "{1}"),
        "--session-context, line 1: column 2: expected JSON",
        "",
    ),
    (("--type", "session", "--session-context", "NaN"), "NaN is no number of JSON", ""),
    (("--type", "session", "--mcp-config", "torn.json"), "torn.json, line 2: column 3: expected JSON", ""),
    (("--type", "session", "--mcp-config", "bytes.json"), "bytes.json, line 1: expected UTF-8 text", ""),
    (("--type", "session", "--mcp-config", "list.json"), "--mcp-config: expected a mapping", ""),
    (("--type", "session", "--mcp-config", "empty.json"), "--mcp-config: mcpServers: expected a value", ""),
    (("--type", "session", "--mcp-config", "none.json"), "--mcp-config: none.json cannot be read", ""),
    (("--type", "session", "--resume-session", "not an id"), "--resume-session: expected the id", ""),
    (("--type", "session", "--system-prompt", "@none.md"), "--system-prompt: none.md cannot be read", ""),
    (
        ("--type", "session", "--checkpoint", "--model", "opus"),
        "--model is for an agent",
        "leave out --checkpoint",
    ),
    (
        ("--type", "session", "--checkpoint", "--mcp-config", "list.json", "--transcript"),
        "--mcp-config is for an agent",
        "--mcp-config and --transcript",
    ),
    (
        ("--type", "session", "--checkpoint", "--outcome", "freeform"),
        "a checkpoint is an approval",
        "leave out --outcome",
    ),
    (("--type", "session", "--session-context", "@large.json"), "at most 262,144 bytes", "--attach FILE"),
]


@pytest.mark.parametrize(("flags", "said", "hint"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_what_does_not_fit_is_refused_with_what_was_expected(
    repo: Clone, cli: Command, flags: tuple[str, ...], said: str, hint: str
) -> None:
    """By the name of its flag or of the file, and nothing is written."""
    repo.write("schema.json", json.dumps(SCHEMA))
    repo.write("torn.json", "{\n  mcpServers: {}}\n")
    repo.write("list.json", "[]")
    repo.write("empty.json", "{}")
    (repo.path / "bytes.json").write_bytes(b'{"mcpServers": "\xff"}')
    repo.write("large.json", json.dumps({"log": "x" * 300_000}))
    refused = cli.quick("ask", "Which?", *flags, code=2)
    assert said in refused.err
    assert hint in refused.err
    assert refused.out == ""
    assert repo.git("for-each-ref", "refs/hitl") == ""


def test_an_earlier_session_has_to_be_there(repo: Clone, cli: Command) -> None:
    """A gate that nobody knows has no conversation to go on with."""
    cli.quick("ask", "Which?", "--type", "session", "--resume-session", "zzzz", code=1)
    assert repo.git("for-each-ref", "refs/hitl") == ""


def test_a_file_brings_all_of_it(repo: Clone, cli: Command) -> None:
    """No flag of a session stands beside a question file."""
    repo.write("q.yaml", "prompt: Sound?\ntype: session\n")
    refused = cli.quick("ask", "--file", "q.yaml", "--session-timeout", "30m", code=2)
    assert "--file brings the question; --session-timeout cannot stand beside it" in refused.err


def test_waiting_prints_the_value(repo: Clone, cli: Command, ask: Ask) -> None:
    """The outcome as a value of its kind; a gate that was stopped has none (9)."""
    chosen = ask("Which?", "--type", "session", "-o", "Staging", "-o", "Production")
    cli.quick("respond", chosen, "prod", code=0)
    assert cli.quick("wait", chosen, code=0).out == "Production\n"
    approved = ask("Sound?", "--type", "session", "--outcome", "approval")
    cli.quick("respond", approved, "--reject", "--note", "no index", code=0)
    assert cli.quick("check", approved, code=3).out == "rejected\nno index\n"
    states = ask("Why?", "--type", "session")
    cli.quick("stop", states, "--reason", "not now", code=0)
    ended = cli.quick("wait", states, code=9)
    assert (ended.out, "not now" in ended.err) == ("", True)
    waited = cli.quick("ask", "Sound?", "--type", "session", "--checkpoint", "--wait-for", "0", code=8)
    assert waited.out == ""


def test_programs_are_told_how_it_ended(repo: Clone, cli: Command, ask: Ask) -> None:
    """As one object: a checkpoint says whether to proceed, and why not; nothing while it waits, nor of another question."""
    checkpoint = ask("Deploy?", "--type", "session", "--checkpoint")
    assert cli.quick("check", checkpoint, "--json", code=8).json["result"] is None
    cli.quick("respond", checkpoint, "--reject", "--note", "tests fail", code=0)
    said = cli.quick("check", checkpoint, "--json", code=3).json["result"]
    assert (said["outcome"], said["proceed"], said["reason"]) == ("completed", False, "tests fail")
    states = ask("Why?", "--type", "session")
    cli.quick("stop", states, "--reason", "not now", code=0)
    said = cli.quick("check", states, "--json", code=9).json["result"]
    assert (said["outcome"], said["response"], said["reason"]) == ("cancelled", None, "not now")
    assert "proceed" not in said
    assert "result" not in cli.quick("check", ask("Which?"), "--json", code=8).json


def test_sessions_are_found(repo: Clone, cli: Command, ask: Ask) -> None:
    """By their type, under either name, whatever they end in."""
    asked = {ask("One?", "--type", "session"), ask("Two?", "--type", "session", "--outcome", "approval")}
    ask("Three?", "--type", "approval")
    for name in ("session", "interactive_session"):
        gates = cli.quick("list", "--type", name, "--json", code=0).json["gates"]
        assert {gate["id"] for gate in gates} == asked


def test_every_part_of_a_conversation_has_its_flag() -> None:
    """None was forgotten, and the words that are offered are those that are known."""
    assert set(SESSION_FIELDS.values()) == set(Talk.__dataclass_fields__)
    assert OUTCOMES == states.SESSION_OUTCOMES


@pytest.mark.parametrize(
    ("option", "typed", "found"),
    [
        ("--outcome", "s", ["selection", "structured"]),
        ("--model", "o", ["opus"]),
        ("--type", "se", ["session"]),
        ("--session-timeout", "3", ["30m"]),
    ],
)
def test_a_shell_completes_the_values(option: str, typed: str, found: list[str]) -> None:
    """What may stand behind a flag, where there are words to choose from."""
    command = command_line.get_command(click.Context(command_line), "ask")
    assert command is not None
    context = click.Context(command)
    (parameter,) = (p for p in command.params if option in p.opts)
    assert [item.value for item in parameter.shell_complete(context, typed)] == found


@pytest.mark.parametrize("key", ["ghp_" + "x7Qk" * 9, "a-word-of-this-machine-92"])
def test_no_key_of_a_tool_is_recorded(repo: Clone, cli: Command, tmp_path: Path, key: str) -> None:
    """What looks like a key, or is one of the environment's, is refused; a variable's name is not."""
    place = tmp_path / "mcp.json"
    for value, code in ((key, 2), ("${TICKETS_API_KEY}", 0)):
        server = {"command": "tickets-mcp", "env": {"TICKETS_API_KEY": value}}
        place.write_text(json.dumps({"mcpServers": {"tickets": server}}), encoding="utf-8")
        env = {"TICKETS_API_KEY": "a-word-of-this-machine-92"}
        said = cli.quick("ask", "Well?", "--type", "session", "--mcp-config", str(place), env=env, code=code)
        assert key not in said.err
        assert ("${API_KEY}" in said.err) == bool(code)
