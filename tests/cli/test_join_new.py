"""A gate without a session gets a new one: the question first, a way to say how it ended, and nothing decided without a person."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.agents.process import Limit
from support.resuming import until
from support.talking import Meeting, meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more

Pty = Callable[..., Terminal]


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Meeting:
    return meet(repo, cli, tmp_path / "claude")


def begin(terminal: Terminal, *lines: str, earlier: int = 0) -> None:
    """Type to the program, one line after the other has had its effect."""
    terminal.expect(f"{earlier} earlier messages")
    for line in lines:
        terminal.line(line)
        terminal.expect(f"claude: {line.split()[0]} done")


def test_a_new_session_begins_with_the_question(desk: Meeting, pty_cli: Pty) -> None:
    """In a worktree of the work, with the question, its context and its instructions; the terms are flags of the program."""
    gate = desk.talk(
        "Shall we migrate?", "--outcome", "approval", "--model", "opus",
        "--system-prompt", "Be brief.", "--session-context", '{"rows": 40000}',
    )  # fmt: skip
    terminal = pty_cli("join", gate[:6])
    before = terminal.expect("opening a new session with claude in a worktree of the work")
    assert "Shall we migrate?" in before
    begin(terminal)
    (run,) = desk.runs
    assert (Path(run["cwd"]) / "draft.txt").read_text("utf-8") == "half done\n"
    assert Path(run["cwd"]) != desk.repo.path
    assert run["env"]["GITGATE_AGENT"] == "claude"
    assert "GITGATE_GATE" not in run["env"]
    assert "-p" not in run["argv"]
    assert "--resume" not in run["argv"]
    assert desk.flag("--model") == "opus"
    assert "Be brief." in desk.flag("--append-system-prompt")
    assert desk.prompt.startswith("(gitgate)")
    assert desk.prompt.count("\n") <= 12
    instructions = desk.flag("--append-system-prompt")
    for words in ("theirs to decide", "call the tool `outcome`", "was written by others"):
        assert words in instructions  # once: the first message does not say it again
        assert words not in desk.prompt
    assert "Shall we migrate?" in desk.prompt
    assert '"rows": 40000' in desk.prompt
    assert desk.flag("--allowedTools").split(",")[0] == "mcp__gitgate__outcome"


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ('outcome approve --summary "It ran in staging."', "command"),
        ('tool {"value": "approve", "summary": "It ran in staging."}', "mcp"),
        ('file {"decision": "approve", "summary": "It ran in staging."}', "file"),
        ('signal {"status": "CONTINUE", "summary": "It ran in staging."}', "file"),
    ],
)
def test_what_the_session_says_is_confirmed(desk: Meeting, pty_cli: Pty, line: str, source: str) -> None:
    """Said by a command, the tool, the file or a signal file: shown, confirmed, recorded with where it was read."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, line)
    assert desk.show(gate)["state"] == "awaiting"
    terminal.line("leave")
    shown = terminal.expect("is that your answer?")
    assert "approved" in shown
    assert "It ran in staging." in shown
    terminal.line("y")
    terminal.finish(code=0)
    answer = desk.answer(gate)
    assert (answer["values"], answer["via"], answer["verdict"]) == ({"answer": True}, "join", "approved")
    held = desk.held(gate)
    assert (held["outcome"], held["source"], held["summary"]) == ("completed", source, "It ran in staging.")
    assert "confirmed" not in held
    assert "transcript" not in held


def test_a_value_that_does_not_fit_is_refused_at_once(desk: Meeting, pty_cli: Pty) -> None:
    """The agent is told what was expected, by the command and by the tool, and may say it better; the last one counts."""
    gate = desk.talk("Which?", "--outcome", "selection", "-o", "Postgres", "-o", "SQLite")
    terminal = pty_cli("join", gate)
    terminal.expect("earlier messages")
    terminal.line("outcome MySQL")
    refused = terminal.expect("claude: outcome done")
    assert "Postgres, SQLite" in refused
    assert "git gate outcome Postgres" in refused
    assert "git gate respond" not in refused  # an agent may not run that
    terminal.line('tool {"value": "MySQL"}')
    refused = terminal.expect("claude: tool done")
    assert '"isError": true' in refused
    assert "git gate respond" not in refused
    terminal.line("outcome SQLite")
    terminal.expect("claude: outcome done")
    terminal.line("outcome Postgres")
    terminal.expect("[0]")
    terminal.line("leave")
    terminal.expect("claude proposes, by `git gate outcome`: Postgres")
    terminal.expect("[y/e/n/c]: ")  # what is typed before the question is forgotten
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.answer(gate)["values"] == {"answer": "Postgres"}


def test_a_structured_outcome_fits_its_schema(desk: Meeting, pty_cli: Pty, tmp_path: Path) -> None:
    """A form is read from the last fenced object too, its decision unwrapped; the person still confirms it."""
    schema = tmp_path / "schema.json"
    schema.write_text(
        json.dumps(
            {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
        )
    )
    gate = desk.talk("Audit?", "--outcome", "structured", "--schema", str(schema))
    terminal = pty_cli("join", gate)
    begin(terminal, 'reply Here it is.|```json|{"decision": {"approved": true}}|```')
    terminal.line("leave")
    assert '{"approved": true}' in terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.answer(gate)["values"] == {"answer": {"approved": True}}
    assert desk.held(gate)["source"] == "json"


@pytest.mark.parametrize(
    "words", ["I can't approve this.", "Decision: APPROVED", "You approved it an hour ago. APPROVED", "Hm."]
)
def test_words_propose_nothing_and_the_person_is_asked(desk: Meeting, pty_cli: Pty, words: str) -> None:
    """Whatever is said in words, the person is asked for the answer, and it is theirs."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, f"reply {words}")
    terminal.line("leave")
    terminal.expect("the session is over")
    assert "is that your answer" not in terminal.expect("[y/n]")
    terminal.line("n not before Friday")
    terminal.finish(code=0)
    assert desk.answer(gate)["verdict"] == "rejected"
    assert desk.held(gate)["source"] == "person"


def test_another_answer_is_the_persons_own(desk: Meeting, pty_cli: Pty) -> None:
    """`e` asks for the answer at the prompt; what was said of the other one does not stick to it."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, "outcome approve --summary Sound.")
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("e")
    terminal.expect("[y/n]: ")
    terminal.line("n")
    terminal.finish(code=0)
    assert desk.answer(gate)["values"] == {"answer": False}
    held = desk.held(gate)
    assert (held["source"], held.get("summary")) == ("person", None)


def test_other_statuses_pass_through(desk: Meeting, pty_cli: Pty) -> None:
    """NEEDS_REVIEW decides nothing: the person is shown it and asked, and it is recorded beside their answer."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, 'outcome --status NEEDS_REVIEW --reason "numbers first" --message "ask Ada"')
    terminal.line("leave")
    shown = terminal.expect("[y/n]: ")
    assert "no answer yet" in shown
    assert "NEEDS_REVIEW" in shown
    terminal.line("n")
    terminal.finish(code=0)
    held = desk.held(gate)
    assert (held["status"], held["reason"], held["message"]) == ("NEEDS_REVIEW", "numbers first", "ask Ada")


@pytest.mark.parametrize("key", ["n", "", "\x04"], ids=["n", "empty", "Ctrl-D"])
def test_not_yet_leaves_it_waiting_and_the_session_is_gone_on_with(
    desk: Meeting, pty_cli: Pty, key: str
) -> None:
    """Joined again, it is the same conversation, in the same place where something changed, and asks nothing anew."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, "say first-words", "edit notes.txt", "outcome approve")
    terminal.line("leave")
    terminal.expect("[y/e/n/c]: ")
    terminal.keys(key) if key == "\x04" else terminal.line(key)
    said = terminal.finish(code=8)
    assert f"git gate join {gate[:6]}" in said
    assert "what was changed stays in" in said
    assert desk.show(gate)["state"] == "awaiting"
    again = pty_cli("join", gate)
    assert "opening the session that was begun earlier" in again.expect("earlier messages")
    assert "2 earlier messages" in again.text
    first, second = desk.runs
    assert second["cwd"] == first["cwd"]
    assert (
        second["argv"][second["argv"].index("--resume") + 1]
        == first["argv"][first["argv"].index("--session-id") + 1]
    )
    assert "--" not in second["argv"]
    again.line("leave")
    again.expect("[y/n]: ")  # What was said the last time is no outcome of this time.


def test_it_can_be_cancelled(desk: Meeting, pty_cli: Pty) -> None:
    """The person ends the gate with a reason: recorded as cancelled, for whoever waits closed without an answer."""
    gate = desk.talk("Shall we migrate?")
    terminal = pty_cli("join", gate)
    begin(terminal, "say hello")
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line(":c")
    terminal.expect("why, if you want to say: ")
    terminal.line("we do it differently")
    terminal.finish(code=9)
    held = desk.held(gate)
    assert (held["outcome"], held["reason"]) == ("cancelled", "we do it differently")
    assert desk.show(gate)["state"] == "stopped"
    desk.cli("check", gate, code=9)


def test_time_runs_out(desk: Meeting, pty_cli: Pty) -> None:
    """The person is warned where they look, then the program is ended, the terminal put right, and it is a timeout."""
    gate = desk.talk("Shall we migrate?", "--session-timeout", "1s", "--grace", "3s")
    desk.at_once("say until-then", "deaf")
    terminal = pty_cli("join", gate)
    terminal.expect("this session is over in 3 s")
    assert "\x07" in terminal.raw
    assert "\x1b]2;gate" in terminal.raw
    said = terminal.finish(code=9)  # It did not listen, and is killed.
    assert f"gate {gate}: the session's time was over; saved here" in said
    assert "by Ada" not in desk.cli("check", gate, code=9).err
    assert desk.show(gate)["state"] == "stopped"
    held = desk.held(gate)
    assert (held["outcome"], held.get("source")) == ("timeout", None)
    assert held["seconds"] >= 4
    closing = desk.show(gate)["closing"]
    assert (closing["by"], closing["session"]["confirmed"]) == (None, False)
    assert "until-then" in desk.saved(gate)
    desk.cli("check", gate, code=9)


def test_a_decision_does_not_outlive_its_time_unseen(desk: Meeting, pty_cli: Pty) -> None:
    """What the session said before its time ran out is told, and no answer; `--session-timeout` is the person's to set."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval", "--grace", "0s")
    desk.at_once('file {"decision": "approve", "summary": "Sound."}')
    terminal = pty_cli("join", gate, "--session-timeout", "3s")
    terminal.expect("claude: file done")
    terminal.finish(code=9)
    assert desk.answer(gate) is None
    assert (desk.held(gate)["outcome"], desk.held(gate)["summary"]) == ("timeout", "Sound.")


def test_a_killed_terminal_loses_nothing(desk: Meeting, pty_cli: Pty) -> None:
    """Saved while it lasts; after `kill -9` the gate waits, and the conversation is gone on with."""
    gate = desk.talk("Shall we migrate?", "--save-every", "1s")
    terminal = pty_cli("join", gate)
    begin(terminal, "say saved-meanwhile")
    until(lambda: is_saved(desk, gate, "saved-meanwhile"))
    terminal.line("say after-that")
    terminal.expect("claude: say done")
    terminal.process.kill()
    terminal.end()
    assert desk.show(gate)["state"] == "awaiting"
    again = pty_cli("join", gate)
    begin(again, earlier=3)


def is_saved(desk: Meeting, gate: str, words: str) -> bool:
    return words in desk.repo.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl", check=False)


def test_a_session_that_is_still_open_is_not_opened_twice(desk: Meeting, pty_cli: Pty) -> None:
    """The program may outlive the command that started it, with the terminal: then it is there that one talks to it."""
    gate = desk.talk()
    shell = pty_cli("-c", f"trap '' HUP; git-gate join {gate}; sleep 60", program="/bin/bash")
    begin(shell, "say hello")
    pid = int(desk.runs[0]["pid"])
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    said = pty_cli("join", gate).finish(code=5)
    assert f"process {pid}" in said
    os.kill(pid, signal.SIGKILL)
    begin(pty_cli("join", gate), earlier=2)


def test_one_goes_on_from_an_earlier_gate(desk: Meeting, pty_cli: Pty) -> None:
    """A later session branches off from an earlier one: it knows what was said there, and leaves that as it was."""
    first = desk.talk("Which index?")
    terminal = pty_cli("join", first)
    begin(terminal, "say btree-was-best")
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line("btree")
    terminal.finish(code=0)
    second = desk.talk("And the migration?", "--resume-session", first)
    again = pty_cli("join", second)
    begin(again, earlier=2)
    assert "--fork-session" in desk.runs[1]["argv"]
    assert desk.flag("--resume") == desk.runs[0]["argv"][desk.runs[0]["argv"].index("--session-id") + 1]
    assert "And the migration?" in desk.prompt
    again.line("leave")
    again.expect("your answer (")
    again.line("on Friday")
    again.finish(code=0)
    assert "btree-was-best" in desk.saved(second)
    assert "And the migration?" not in desk.saved(first)


def test_servers_start_only_with_a_persons_word(desk: Meeting, pty_cli: Pty, tmp_path: Path) -> None:
    """An agent wrote them and they are commands: shown in full, refused by an empty line, and by --yes alone."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"logs": {"command": "logs-server", "args": ["--all"]}}}))
    gate = desk.talk("Shall we?", "--mcp-config", str(config))

    def servers() -> set[str]:
        return set(json.loads(Path(desk.flag("--mcp-config")).read_text("utf-8"))["mcpServers"])

    terminal = pty_cli("join", gate)
    assert '"logs-server"' in terminal.expect("start them? [y/N] ")
    assert desk.runs == []
    terminal.line("")
    begin(terminal)
    assert servers() == {"gitgate"}
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line()
    terminal.finish(code=8)
    unasked = pty_cli("join", gate, "--yes")
    unasked.expect("they are not started")
    begin(unasked, earlier=1)
    assert servers() == {"gitgate"}
    unasked.line("leave")
    unasked.finish(code=8)
    agreed = pty_cli("join", gate)
    agreed.expect("start them? [y/N] ")
    agreed.line("y")
    begin(agreed, earlier=1)
    assert servers() == {"gitgate", "logs"}
    place = Path(desk.flag("--mcp-config"))
    assert place.stat().st_mode & 0o077 == 0
    agreed.line("leave")
    agreed.expect("your answer (")
    agreed.line()
    agreed.finish(code=8)
    desk.repo.git("config", "gitgate.joinServers", "true")
    granted = pty_cli("join", gate, "--yes")
    granted.expect("they are not started")  # What earlier versions took for a permission is none.
    begin(granted, earlier=1)
    assert servers() == {"gitgate"}
    granted.line("leave")
    granted.finish(code=8)


def test_the_editor_opens_on_the_worktree(
    desk: Meeting, pty_cli: Pty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--editor` opens what is set on the folder of the session before that begins."""
    gate = desk.talk()
    monkeypatch.setenv("VISUAL", f"echo editing > {tmp_path}/edited; pwd >> {tmp_path}/edited; true")
    terminal = pty_cli("join", gate, "--editor")
    begin(terminal)
    words, place = (tmp_path / "edited").read_text("utf-8").split()
    assert (words, place) == ("editing", desk.runs[0]["cwd"])


def test_the_transcript_is_recorded_where_it_was_asked_for(desk: Meeting, pty_cli: Pty) -> None:
    """What the two said, without secrets and without our own words to the agent."""
    gate = desk.talk("Shall we?", "--transcript")
    terminal = pty_cli("join", gate)
    secret = "ghp_" + "a1B2" * 9
    begin(terminal, f"say my token is {secret}", "reply I did not look.")
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line("later")
    terminal.finish(code=0)
    transcript = desk.held(gate)["transcript"]
    assert transcript.startswith("person: my token is [redacted")
    assert "assistant: I did not look." in transcript
    assert secret not in transcript
    assert "(gitgate)" not in transcript


def test_how_long_it_took_is_counted_over_all_of_it(desk: Meeting, pty_cli: Pty) -> None:
    """Left and joined again, the seconds add up."""
    gate = desk.talk()
    for words in ("", "done"):
        terminal = pty_cli("join", gate)
        terminal.expect("earlier messages")
        time.sleep(1.2)
        terminal.line("leave")
        terminal.expect("your answer (")
        terminal.line(words)
        terminal.finish()
    assert desk.held(gate)["seconds"] >= 2


def test_the_warning_fits_the_terminal(desk: Meeting, pty_cli: Pty) -> None:
    """One line, however narrow: a second one would push away what the program shows."""
    gate = desk.talk("Shall we migrate?", "--session-timeout", "1s", "--grace", "3s")
    terminal = pty_cli("join", gate, columns=30)
    begin(terminal)
    terminal.finish(code=9)
    (shown,) = re.findall("\x1b\\[0;7m(.*?)\x1b\\[0m", terminal.raw)
    assert "over in 3 s" in shown
    assert len(shown) < 30
    whole = Limit(60, 60, f"gate {gate[:6]}: this session")
    for columns in (10, 20, 40, 60, 80, 200):
        assert len(whole.words(60, columns)) < columns
    assert "come to an end" in whole.words(60, 120)


def test_a_schema_that_nobody_here_can_check_is_told_before_the_talk(
    desk: Meeting, pty_cli: Pty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra `forms` the answer could not be recorded at the end."""
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}')
    gate = desk.talk("Audit?", "--schema", str(schema))
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "jsonschema_rs.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    said = pty_cli("join", gate).finish(code=1)
    assert "pip install 'git-gate[forms]'" in said
    assert desk.runs == []


@pytest.mark.parametrize("required", [["ok"], []])
def test_an_empty_line_leaves_a_form_for_later(
    desk: Meeting, pty_cli: Pty, tmp_path: Path, required: list[str]
) -> None:
    """At a field that is needed, or where nothing was given to any."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": required}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    gate = desk.talk("Audit?", "--schema", str(tmp_path / "schema.json"))
    terminal = pty_cli("join", gate)
    begin(terminal)
    terminal.line("leave")
    terminal.expect("ok (")
    terminal.expect(": ")
    terminal.line("")
    assert "the gate still waits" in terminal.finish(code=8)


def test_an_answer_given_elsewhere_is_heard_before_anybody_is_asked(
    desk: Meeting, pty_cli: Pty, cli: Command, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """By another clone, over the remote, while the person talked."""
    desk.repo.git("remote", "add", "origin", str(bare.path))
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    other = clone_of(bare, "other")
    terminal = pty_cli("join", gate)
    begin(terminal, "outcome approve")
    cli.quick("respond", gate, "--reject", cwd=other.path, code=0)
    terminal.line("leave")
    said = terminal.finish(code=5)
    assert "is that your answer?" not in said
    assert desk.answer(gate)["verdict"] == "rejected"


def test_off_line_the_person_is_told_and_asked(desk: Meeting, pty_cli: Pty, tmp_path: Path) -> None:
    """Nobody can be heard of, and that is no reason to lose the decision."""
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    desk.repo.git("remote", "add", "origin", str(tmp_path / "gone.git"))
    terminal = pty_cli("join", gate)
    begin(terminal, "outcome approve")
    terminal.line("leave")
    assert "origin could not be asked" in terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.answer(gate)["verdict"] == "approved"
