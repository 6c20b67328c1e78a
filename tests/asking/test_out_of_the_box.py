"""After `git gate init --claude` and nothing else, the real Claude Code asks: in its shell, by its own tool, at a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.lab.model import Reply

from .conftest import MakeOffice
from .test_claude_page import seen, tmux, typed
from .test_real_claude import DATABASE, OVER

__all__ = ["tmux"]
pytestmark = [pytest.mark.claude, pytest.mark.slow]

IN_SHELL = Reply(
    "Asking.", [("Bash", {"command": "git gate ask 'Which database?' -o Postgres -o SQLite"})], when="GO"
)
BY_TOOL = Reply("Asking.", [("AskUserQuestion", {"questions": [DATABASE]})], when="GO")


@pytest.mark.parametrize("line", ["claude -p GO", "git gate wrap --waiting-ok -- claude -p GO"])
def test_it_asks_in_its_shell(line: str, office: MakeOffice) -> None:
    """Without a flag or a rule that permits it; answered, it goes on."""
    here = office(IN_SHELL, Reply("Thanks.", when="SQLite"))
    assert typed(here, "git gate init --claude").returncode == 0
    said = typed(here, line)
    assert said.returncode == 0, said.stderr
    gate = here.only()
    assert (gate["state"], gate["delivery"], gate["session"]["saved"]) == ("awaiting", "resume", True)
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    assert here.only()["state"] == "resumed"


@pytest.mark.parametrize(
    ("reply", "flags"), [(IN_SHELL, ""), (BY_TOOL, "--permission-prompt-tool stdio --output-format json")]
)
def test_a_plain_run_ends_with_words(reply: Reply, flags: str, office: MakeOffice) -> None:
    """The gate's id and how to answer, beside what the program itself prints: an empty line, or its object. Resumed, it is
    silent, and so it is once the answer is there.
    """
    here = office(reply, Reply("Thanks.", when="SQLite"), OVER)
    assert typed(here, "git gate init --claude").returncode == 0
    said = typed(here, f"claude -p GO {flags}")
    gate = here.only()
    assert (said.returncode, "gate" in said.stdout.partition('"result"')[0]) == (0, False)
    assert said.stderr.count(f"gate {gate['id']}: Which database?") == 1
    assert "nothing failed: the run ended at its question." in said.stderr
    assert f"to answer: git gate respond {gate['id'][:6]} Postgres" in said.stderr
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    again = typed(here, "claude -p again")
    assert (again.returncode, again.stderr) == (0, "")


def test_wrapped_it_asks_by_its_own_tool(office: MakeOffice) -> None:
    """The gate's id and how to answer stand where there was an empty line."""
    here = office(BY_TOOL, OVER)
    assert typed(here, "git gate init --claude").returncode == 0
    said = typed(here, "git gate wrap -- claude -p GO")
    gate = here.only()
    assert (said.returncode, said.stdout) == (8, "")
    assert f"gate {gate['id']}: Which database?" in said.stderr
    assert said.stderr.count(f"git gate respond {gate['id'][:6]} Postgres") == 1
    assert gate["session"]["saved"] is True
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    assert '\\"Which database?\\"=\\"SQLite\\"' in here.shown


def test_wrapped_in_a_project_without_hooks(office: MakeOffice) -> None:
    """They are given by the command line."""
    here = office(BY_TOOL, OVER)
    said = typed(here, "git gate wrap -- claude -p GO --output-format json")
    assert said.returncode == 8
    assert json.loads(said.stdout)["stop_reason"] == "tool_deferred"
    assert here.only()["state"] == "awaiting"


@pytest.mark.parametrize(
    "command",
    [
        "git gate ask 'Which?'; touch pwned",
        'git gate ask "$(touch pwned)"',
        "X=1 git gate ask 'Which?'",
        "touch pwned",
    ],
)
def test_nothing_else_is_permitted_by_it(command: str, office: MakeOffice) -> None:
    """What is more than a plain call is the program's to judge, and here it refuses."""
    here = office(Reply("", [("Bash", {"command": command})], when="GO"), OVER)
    assert typed(here, "git gate init --claude").returncode == 0
    typed(here, "claude -p GO")
    assert here.gates() == []
    assert not (here.clone.path / "pwned").exists()


def test_at_a_terminal_it_asks_in_its_shell_unasked(office: MakeOffice, tmux: Callable[..., str]) -> None:
    """No question for leave to ask comes between."""
    here = office(IN_SHELL, OVER)
    assert typed(here, "git gate init --claude").returncode == 0
    trusted = {str(here.clone.path): {"hasTrustDialogAccepted": True}}
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["dummy-not-a-key"]},
        "projects": trusted,
    }
    (here.machine.home / ".claude").mkdir(exist_ok=True)
    (here.machine.home / ".claude" / ".claude.json").write_text(json.dumps(known))
    words = [f"{name}={value}" for name, value in {**here.env, "TERM": "xterm-256color"}.items()]
    command = ["env", "-i", *words, *here.machine.model.reach, str(here.machine.binary)]
    tmux("new-session", "-d", "-x", "120", "-y", "40", "-c", str(here.clone.path), *command)
    assert seen(tmux, "❯")
    tmux("send-keys", "GO", "Enter")
    assert seen(tmux, "waits for an answer"), tmux("capture-pane", "-p")
    assert here.only()["state"] == "awaiting"


# As if there were no /proc: nothing of it is found, whoever looks.
WITHOUT_PROC = """
import pathlib
for name in ("open", "is_dir", "read_text", "read_bytes", "readlink"):
    def hidden(self, *args, _real=getattr(pathlib.Path, name), _name=name, **more):
        if str(self).startswith("/proc"):
            if _name == "is_dir":
                return False
            raise FileNotFoundError(str(self))
        return _real(self, *args, **more)
    setattr(pathlib.Path, name, hidden)
"""
UNHOOKED = """'{"disableAllHooks": true}'"""
MAY = "--allowedTools 'Bash(git add:*)' 'Bash(git commit:*)' Write --model sonnet"


@pytest.mark.parametrize("line", [f"claude -p GO {MAY}", f"git gate wrap --waiting-ok -- claude -p GO {MAY}"])
def test_resumed_it_may_do_what_it_might_before(line: str, office: MakeOffice) -> None:
    """What it was started with is this machine's to keep: its file is written, and its commit is made."""
    here = office(
        IN_SHELL,
        Reply("", [("Write", {"file_path": "db.txt", "content": "SQLite"})], when="SQLite"),
        Reply("", [("Bash", {"command": "git add db.txt && git commit -qm 'Take SQLite'"})], when="db.txt"),
        Reply("Done."),
    )
    assert typed(here, "git gate init --claude && git add .claude && git commit -qm hooks").returncode == 0
    assert typed(here, line).returncode == 0
    gate = here.only()
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    assert here.clone.git("log", "-1", "--format=%s") == "Take SQLite"
    assert here.machine.model.requests()[-1]["model"] == here.machine.model.requests()[0]["model"]


@pytest.mark.parametrize("line", [f"claude -p GO {MAY}", f"claude {MAY} -p GO"])
def test_without_proc_its_line_says_what_it_might(line: str, office: MakeOffice) -> None:
    """As on macOS: a system that shows processes by `ps` alone. The prompt takes no part in it."""
    here = office(
        IN_SHELL,
        Reply("", [("Write", {"file_path": "db.txt", "content": "SQLite"})], when="SQLite"),
        Reply("Done."),
    )
    hidden = here.machine.home / "sitecustomize.py"
    hidden.write_text(WITHOUT_PROC, "utf-8")
    assert typed(here, "git gate init --claude && git add .claude && git commit -qm hooks").returncode == 0
    assert typed(here, f"PYTHONPATH={hidden.parent} {line}").returncode == 0
    gate = here.only()
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    assert (here.clone.path / "db.txt").read_text() == "SQLite"


def test_what_wrap_started_is_kept_for_a_question_at_its_end(office: MakeOffice) -> None:
    """Its last words ask, and it is over before there is a gate: what it might do, it may do again."""
    here = office(
        Reply("NEEDS_HUMAN: Which database?", when="GO"),
        Reply("", [("Write", {"file_path": "db.txt", "content": "SQLite"})], when="SQLite"),
        Reply("Done."),
    )
    assert (
        typed(here, f"git gate wrap --waiting-ok -- claude -p GO {MAY} --settings {UNHOOKED}").returncode == 0
    )
    gate = here.only()
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    assert (here.clone.path / "db.txt").read_text() == "SQLite"


def test_resumed_it_may_not_do_what_this_machine_forbids(office: MakeOffice) -> None:
    """Its own word on a flag counts in place of what the first run was given."""
    here = office(
        IN_SHELL,
        Reply("", [("Write", {"file_path": "db.txt", "content": "SQLite"})], when="SQLite"),
        Reply("Done."),
    )
    given = ["--allowedTools", "Bash(git status:*)"]
    here.clone.git("config", "gitgate.agent.claude.arguments", json.dumps(given))
    assert typed(here, "git gate init --claude && git add .claude && git commit -qm hooks").returncode == 0
    assert typed(here, f"claude -p GO {MAY}").returncode == 0
    gate = here.only()
    here.respond(gate["id"], "SQLite")
    here.resume(gate["id"])
    assert not (here.clone.path / "db.txt").exists()
