"""Joining where there is more than one way: an agent's own session that says its outcome, one that is not to be had, other programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.agents.claude.transcript import project_folder
from support.talking import Meeting, meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more

Pty = Callable[..., Terminal]
SESSION = "0b9c4f0e-0000-4000-8000-000000000000"
ASKED = {
    "type": "assistant",
    "uuid": "u1",
    "parentUuid": None,
    "message": {"role": "assistant", "content": [{"type": "text", "text": "APPROVED was what the last gate said."}]},
}  # fmt: skip


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Meeting:
    return meet(repo, cli, tmp_path / "claude")


def asked(desk: Meeting, *args: str) -> str:
    """A gate of an agent whose conversation is on this machine."""
    place = project_folder(os.environ, desk.repo.path)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{SESSION}.jsonl").write_text(json.dumps(ASKED) + "\n", encoding="utf-8")
    return desk.ask(*args, "--agent", "claude", "--session", SESSION)


def begin(terminal: Terminal, *lines: str, earlier: int = 0) -> None:
    terminal.expect(f"{earlier} earlier messages")
    for line in lines:
        terminal.line(line)
        terminal.expect(f"claude: {line.split()[0]} done")


def test_the_agents_own_session_says_its_outcome_too(desk: Meeting, pty_cli: Pty) -> None:
    """It gets the tool and no further words; confirmed, the agent goes on in that conversation, of which there is one."""
    gate = asked(desk, "Deploy?", "--type", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, "say go on then", 'tool {"value": "approve", "summary": "Staging is green."}', earlier=1)
    terminal.line("leave")
    assert "Staging is green." in terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    (run,) = desk.runs
    assert run["argv"][-2:] == ["--resume", SESSION]
    assert not {"--session-id", "--append-system-prompt", "--model"} & set(run["argv"])
    assert Path(run["cwd"]) == desk.repo.path.resolve()
    assert desk.held(gate)["source"] == "mcp"
    assert "go on then" in desk.saved(gate)
    (desk.folder / "claude.py").write_text(
        "import sys\nopen(__file__ + '.resumed', 'w').write(' '.join(sys.argv) + sys.stdin.read())\n"
        'print(\'{"type": "result", "is_error": false, "result": "done", "session_id": "x"}\')\n',
        encoding="utf-8",
    )
    desk.cli("resume", gate, code=0)
    told = (desk.folder / "claude.py.resumed").read_text("utf-8")
    assert f"--resume {SESSION}" in told
    assert "approved it" in told
    assert desk.show(gate)["state"] == "resumed"
    assert len(list((Path.home() / ".claude" / "projects").rglob("*.jsonl"))) == 1


def test_what_was_said_before_is_no_word_on_it(desk: Meeting, pty_cli: Pty) -> None:
    """The agent's last words before the person came decide nothing."""
    gate = asked(desk, "Deploy?", "--type", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, earlier=1)
    terminal.line("leave")
    assert "understood" not in terminal.expect("[y/n]: ")


def test_one_that_is_not_here_is_replaced_if_the_person_agrees(desk: Meeting, pty_cli: Pty) -> None:
    """Refused by an empty line; agreed to, a new one opens, and the agent's own stays what the gate is resumed with."""
    gate = asked(desk, "Deploy?", "--type", "approval")
    before = desk.repo.git("rev-parse", f"refs/hitl/sessions/{gate}")
    aside = desk.folder / "elsewhere"
    (desk.repo.path / ".git" / "gitgate" / "asked.jsonl").rename(aside)
    desk.repo.git("update-ref", "-d", f"refs/hitl/sessions/{gate}")
    refused = pty_cli("join", gate)
    refused.expect("open a new session with the question instead? [y/N] ")
    refused.line("")
    assert "is not here" in refused.finish(code=1)
    assert desk.runs == []
    agreed = pty_cli("join", gate)
    agreed.expect("[y/N] ")
    agreed.line("y")
    begin(agreed, "say never-saved", "outcome reject")
    assert "Deploy?" in desk.prompt
    desk.repo.git("update-ref", f"refs/hitl/sessions/{gate}", before)
    agreed.line("leave")
    agreed.expect("is that your answer?")
    agreed.line("y")
    agreed.finish(code=0)
    assert desk.answer(gate)["verdict"] == "rejected"
    assert desk.repo.git("rev-parse", f"refs/hitl/sessions/{gate}") == before


def test_a_new_one_may_be_wanted(desk: Meeting, pty_cli: Pty) -> None:
    """`--new` opens another conversation beside the agent's own, in a place of its own."""
    gate = asked(desk, "Deploy?", "--type", "approval")
    terminal = pty_cli("join", gate, "--new")
    begin(terminal)
    assert "--session-id" in desk.runs[0]["argv"]
    assert Path(desk.runs[0]["cwd"]) != desk.repo.path.resolve()


def test_several_questions_are_asked_at_the_end(desk: Meeting, pty_cli: Pty, tmp_path: Path) -> None:
    """Nobody could say which of them an outcome would answer: the session hears all, and there is no way to say one."""
    file = tmp_path / "q.yaml"
    file.write_text(
        "questions:\n- {key: db, prompt: Which database?, type: text}\n- {key: go, prompt: Deploy?, type: approval}\n"
    )
    gate = desk.ask("--file", str(file))
    terminal = pty_cli("join", gate)
    begin(terminal, 'reply ```json|{"decision": true}|```')
    assert "Which database?" in desk.prompt
    assert "Deploy?" in desk.prompt
    assert "GITGATE_OUTCOME" not in desk.runs[0]["env"]
    terminal.line("leave")
    assert "understood" not in terminal.expect("your answer (")
    terminal.line("Postgres")
    terminal.expect("[y/n]: ")
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.answer(gate)["values"] == {"db": "Postgres", "go": True}
    assert desk.held(gate)["source"] == "person"


def test_any_program_may_hold_it(desk: Meeting, pty_cli: Pty) -> None:
    """Opened as this machine's configuration says, with the question in a file and the place for the outcome."""
    program = desk.folder / "mine.py"
    program.write_text(
        "import json, os, sys\nfrom pathlib import Path\n"
        "assert 'Shall we?' in Path(sys.argv[1]).read_text()\n"
        "assert 'git gate outcome' in Path(sys.argv[1]).read_text()\n"
        "assert Path(os.environ['GITGATE_PROMPT_FILE']).samefile(sys.argv[1])\n"
        "Path(os.environ['GITGATE_OUTCOME']).write_text(json.dumps({'value': input('mine> ')}))\n"
    )
    desk.repo.git(
        "config",
        "--global",
        "gitgate.agent.mine.join",
        json.dumps([sys.executable, str(program), "{prompt_file}"]),
    )
    gate = desk.talk("Shall we?", "--outcome", "approval")
    terminal = pty_cli("join", gate, "--agent", "mine")
    terminal.expect("mine> ")
    terminal.line("approve")
    assert "approved" in terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    assert (desk.answer(gate)["verdict"], desk.held(gate)["source"]) == ("approved", "file")


def test_an_outcome_that_does_not_fit_is_told_and_asked_for(desk: Meeting, pty_cli: Pty) -> None:
    """A file that a program wrote by hand and wrongly is not quietly passed over, and no answer."""
    gate = desk.talk("Shall we?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, 'file {"value": "perhaps"}')
    terminal.line("leave")
    assert "does not fit" in terminal.expect("[y/n]: ")
    terminal.line("")
    terminal.finish(code=8)


def test_somebody_else_may_decide_meanwhile(desk: Meeting, pty_cli: Pty, cli: Command) -> None:
    """What the session says comes too late then, and is not asked about."""
    gate = desk.talk("Shall we?", "--outcome", "approval")
    terminal = pty_cli("join", gate, "--yes")
    begin(terminal, "outcome approve")
    cli("respond", gate, "--reject", code=0)
    terminal.line("leave")
    assert "is that your answer?" not in terminal.finish(code=5)
    assert desk.answer(gate)["verdict"] == "rejected"


def test_it_is_held_where_it_was_asked_for(desk: Meeting, pty_cli: Pty) -> None:
    """A folder of the worktree; a link in the work that leads out of it is not followed."""
    (desk.repo.path / "services").mkdir()
    (desk.repo.path / "services" / "api.py").write_text("x = 1\n")
    gate = desk.talk("Shall we?", "--cwd", "services")
    terminal = pty_cli("join", gate)
    begin(terminal)
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line("yes")
    place = Path(desk.runs[0]["cwd"])
    assert place.name == "services"
    terminal.finish(code=0)
    (desk.repo.path / "services" / "api.py").unlink()
    (desk.repo.path / "services").rmdir()
    (desk.repo.path / "services").symlink_to("/tmp")
    out = desk.talk("And this?", "--cwd", "services")
    assert "leads out of the worktree" in pty_cli("join", out).finish(code=1)
    assert len(desk.runs) == 1


def test_a_long_context_is_read_from_a_file(desk: Meeting, pty_cli: Pty, tmp_path: Path) -> None:
    """An argument has its limits: it is cut there, and names the file where all of it is."""
    rows = [f"row {number}: " + "ä" * 40 for number in range(2500)]
    (tmp_path / "context.json").write_text(json.dumps(rows))
    gate = desk.talk("Shall we?", "--session-context", f"@{tmp_path}/context.json")
    begin(pty_cli("join", gate))
    assert len(desk.prompt.encode()) < 110_000
    assert "row 2499" not in desk.prompt
    named = desk.prompt.split("All of it is in the file ")[1].split(";")[0]
    assert "row 2499" in Path(named).read_text("utf-8")
    assert Path(named).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("signal", ["stop", "no"])
def test_the_policy_has_its_say(desk: Meeting, pty_cli: Pty, signal: str) -> None:
    """Whoever may not answer may not by way of a session either; the gate waits on."""
    rules = "policy:\n  people: {bob: {email: bob@example.org}}\n  who: [bob]\n"
    desk.repo.commit("policy", **{".gitgate.yml": rules})
    gate = desk.talk("Shall we?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    begin(terminal, "outcome approve" if signal == "no" else "say hm")
    terminal.line("leave")
    terminal.expect("]: " if signal == "no" else "[y/n]: ")
    terminal.line("y")
    terminal.finish(code=4)
    assert desk.show(gate)["state"] == "awaiting"
