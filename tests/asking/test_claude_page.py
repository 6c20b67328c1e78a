"""The page on Claude Code: what it tells a reader to type is typed here, and its table of rules is one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.document import codec
from gitgate.questions.call_rules import parse_rules
from support import PATIENCE
from support.lab.model import Reply
from support.lab.office import Office
from support.testbed.repositories import Clone

from .conftest import MakeOffice
from .test_real_claude import DATABASE, OVER

PAGE = (Path(__file__).parents[2] / "docs" / "claude-code.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def block(words: str) -> str:
    (found,) = [text for text in blocks("sh") if words in text]
    return found


def test_the_rules_on_the_page_are_rules() -> None:
    """Every field that it shows is read."""
    (text,) = blocks("yaml")
    rules = parse_rules(codec.parse_document(text.encode(), "the page"))
    assert [rule.tool for rule in rules] == ["Bash", "Write", "mcp__*", "Bash"]
    assert (rules[3].quorum, rules[3].timeout, rules[3].to) == (
        2,
        14400,
        ("ann@example.org", "bob@example.org"),
    )


def typed(here: Office, text: str) -> subprocess.CompletedProcess[str]:
    """A block as somebody types it, in a shell in which `claude` is the real one."""
    folder = here.machine.home / "bin"
    folder.mkdir(exist_ok=True)
    claude = folder / "claude"
    claude.write_text(f'#!/bin/sh\nexec {" ".join(here.machine.model.reach)} {here.machine.binary} "$@"\n')
    claude.chmod(0o755)
    env = {**here.env, "PATH": f"{folder}:{here.env['PATH']}"}
    return subprocess.run(
        ["bash", "-c", text],
        cwd=here.clone.path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
    )


@pytest.mark.claude
@pytest.mark.slow
def test_the_page_works_as_it_is_written(office: MakeOffice) -> None:
    """Installed in a project, run, wrapped, and set up to be resumed."""
    ask = Reply("", [("AskUserQuestion", {"questions": [DATABASE]})], when="Add authentication", repeat=True)
    here = office(Reply("Over.", when="Which database"), ask, OVER)
    installed = typed(here, block("git gate init --claude"))
    assert installed.returncode == 0, installed.stderr
    (plain,) = [text for text in blocks("sh") if text.startswith("claude -p")]
    run = typed(here, plain)
    assert json.loads(run.stdout)["stop_reason"] == "tool_deferred"
    assert typed(here, block("git gate wrap -- claude")).returncode == 8
    assert len(here.gates()) == 2
    assert typed(here, block("gitgate.agent.claude.arguments")).returncode == 0
    gate = here.gates()[0]["id"]
    here.respond(gate, "SQLite")
    here.resume(gate)
    assert "--allowedTools" in here.clone.git("config", "gitgate.agent.claude.arguments")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A terminal of our own."""
    server = str(tmp_path / "tmux")

    def run(*words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", server, *words], capture_output=True, text=True, timeout=PATIENCE
        ).stdout

    yield run
    run("kill-server")


@pytest.mark.claude
@pytest.mark.slow
def test_at_a_terminal_nothing_changes(office: MakeOffice, tmux: Callable[..., str], tmp_path: Path) -> None:
    """Claude Code asks the person who sits there, and no gate is opened."""
    here = office(Reply("", [("AskUserQuestion", {"questions": [DATABASE]})], when="GO"), OVER)
    trusted = {str(here.clone.path): {"hasTrustDialogAccepted": True}}
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["dummy-not-a-key"]},
        "projects": trusted,
    }
    config = here.machine.home / ".claude"
    config.mkdir(exist_ok=True)
    (config / ".claude.json").write_text(json.dumps(known))
    hooks = tmp_path / "hooks.json"
    hooks.write_text(json.dumps({"hooks": here.hooks}))
    words = [f"{name}={value}" for name, value in {**here.env, "TERM": "xterm-256color"}.items()]
    command = [
        "env",
        "-i",
        *words,
        *here.machine.model.reach,
        str(here.machine.binary),
        "--settings",
        str(hooks),
    ]
    tmux("new-session", "-d", "-x", "120", "-y", "40", "-c", str(here.clone.path), *command)
    assert seen(tmux, "❯")
    tmux("send-keys", "GO", "Enter")
    assert seen(tmux, "Which database?")
    assert seen(tmux, "Enter to select")
    assert here.gates() == []


def seen(tmux: Callable[..., str], words: str) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if words in tmux("capture-pane", "-p"):
            return True
        time.sleep(0.3)
    return False


def test_the_script_on_the_page_is_the_one_that_is_written(repo: Clone) -> None:
    """Its three ways to ask, each as far as the question."""
    from gitgate.setup import TEXTS

    repo.write("scripts/ask-human.sh", (TEXTS / "ask-human.sh").read_text(), executable=True)
    fake = repo.write("bin/git-gate", "#!/bin/sh\nprintf '%s|' \"$@\"\n", executable=True)
    env = {**os.environ, "PATH": f"{fake.parent}:/usr/bin:/bin"}
    said = subprocess.run(
        ["sh", "-e", "-c", block("Which framework?")],
        cwd=repo.path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == (
        "ask|--wait|--type|text|--|Should I use PostgreSQL or MySQL?|"
        "ask|--wait|--type|approval|--|Update all test files?|\n"
        "ask|--wait|--type|choice|--options|Express,Fastify,Koa|--|Which framework?|"
    )
