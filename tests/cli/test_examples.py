"""Each verb's help has examples, and each example does what it shows."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from gitgate.cli.main import VERBS
from gitgate.cli.main import cli as group
from support import PATIENCE
from support.everywhere import CELLS
from support.talking import meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]
# Tried where what they need is: a terminal and an agent's session, a forge, a server, an agent's program, a desktop, a minute.
ELSEWHERE = (
    "join",
    "continue",
    "desk",
    "outcome",
    "wrap",
    "github",
    "serve",
    "hook",
    "demo",
    "worker",
    "listen",
)
# What a person's machine would have to have for it, or what they would have done before.
CODES = {
    "git gate check 7k2f": 8,
    "git gate check 7k2f --json": 8,
    "git gate wait 7k2f --for 30m": None,
    "git gate wait 7k2f": None,
    "git gate run nightly.py --detach": None,  # it would go on after the test
    "git gate watch 7k2f": None,
    "git gate notify test": 1,  # nobody is told there
    "git gate notify test team": 2,
    "git gate notify test team --json": 2,
    "git gate watch --for 30m": None,
    "git gate resume 7k2f": 8,  # nobody has answered
    "git gate run 9m4x --code now": 8,  # nor here
    "git gate session drop 7k2f": 1,  # its asker had none
    "git gate respond 7k2f -a db=Postgres -a region=eu": 2,  # of a gate with two questions
    'git gate respond 7k2f --approve --note "after 18:00 only"': 2,  # of an approval
}


FLOWS = """
import gitgate


@gitgate.flow
def feature(task: str):
    return task


@gitgate.flow
def release(version: str):
    return gitgate.step(str, version, name="build")


@gitgate.flow
def deploys():
    gitgate.ask("Where?", wait=True)
"""


def commands() -> dict[str, click.Command]:
    """Every verb, and the verbs within one."""
    context = click.Context(group, info_name="git gate", **group.context_settings)
    found: dict[str, click.Command] = {}
    for verb in VERBS:
        command = group.get_command(context, verb)
        assert command is not None
        if isinstance(command, click.Group):
            within = (
                (f"{verb} {name}", command.get_command(context, name))
                for name in command.list_commands(context)
            )
            found.update((name, one) for name, one in within if one is not None)
        else:
            found[verb] = command
    return found


def examples(command: click.Command) -> list[str]:
    lines = [line.strip() for line in (command.help or "").splitlines()]
    return [line.partition("   ")[0] for line in lines if line.startswith("git gate ")]


SHOWN = [(verb, line) for verb, command in commands().items() for line in examples(command)]
RUN = [
    (verb, line)
    for verb, line in SHOWN
    if verb.split()[0] not in ELSEWHERE and CODES.get(line, 0) is not None
]


@pytest.mark.parametrize(
    "verb", [name for name, command in commands().items() if not command.hidden and name != "hook"]
)
def test_every_verb_shows_how_it_is_typed(verb: str) -> None:
    """With the verb that it is about."""
    found = examples(commands()[verb])
    name = "join" if verb == "continue" else verb  # two words for one verb
    assert found
    assert all(line.startswith(f"git gate {name}") for line in found)


@pytest.mark.parametrize(("verb", "line"), SHOWN)
def test_an_example_is_understood(verb: str, line: str) -> None:
    """Its flags and arguments are ones that the verb takes, wherever it can be run."""
    name = "join" if verb == "continue" else verb
    words = shlex.split(line)[2 + len(name.split()) :]
    # With the group's settings: a command keeps the names of its help option from the first time that it is asked.
    commands()[verb].make_context(verb, words, **group.context_settings)


@pytest.mark.slow
@pytest.mark.parametrize("line", examples(commands()["join"]))
def test_an_example_of_joining_runs(
    repo: Clone,
    cli: Command,
    tmp_path: Path,
    pty_cli: Callable[..., Terminal],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a terminal, with a program in Claude Code's stead."""
    desk = meet(repo, cli, tmp_path / "claude")
    monkeypatch.setenv("VISUAL", "true")
    gate = desk.talk("Shall we migrate?")
    terminal = pty_cli(*(gate if word == "7k2f" else word for word in shlex.split(line)[2:]))
    terminal.expect("0 earlier messages")
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line("on Friday")
    terminal.finish(code=0)


FIRST = dict(reversed(RUN))


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        # The first one of each verb, unless a run has to be begun for it.
        pytest.param(
            *each,
            marks=[]
            if FIRST[each[0]] == each[1] and not {"RUN", "9m4x"} & set(shlex.split(each[1]))
            else [pytest.mark.slow],
        )
        for each in RUN
    ],
)
def test_an_example_runs(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path, verb: str, line: str
) -> None:
    """As it stands, in a clone where a question waits; only the id is another one."""
    del verb
    clone = clone_of(bare, "repo")
    (clone.path / "notes.md").write_text("x", encoding="utf-8")
    gate = cli.quick("ask", "Which?", "-o", "Postgres", "-o", "JWT", "-q", cwd=clone.path, code=0).line
    words = [gate if word == "7k2f" else word for word in shlex.split(line)[2:]]
    run = (
        "deploys" if {"--topic", "--code"} & set(words) else "release" if {"RUN", "9m4x"} & set(words) else ""
    )
    if run or words[0] == "run":
        (clone.path / "flows.py").write_text(FLOWS, encoding="utf-8")
    if run:
        cli("run", f"flows.py:{run}", *(["1.4"] if run == "release" else []), cwd=clone.path)
        (begun,) = cli.quick("list", "--runs", "--all", "--json", cwd=clone.path, code=0).json["runs"]
        words = [begun["id"] if word in ("RUN", "9m4x") else word for word in words]
    elif "signal" in words:
        words[1] = cli.quick("ask", "Go?", "--type", "approval", "-q", cwd=clone.path, code=0).line
    if "--github" in words:
        clone.git("config", "gitgate.workflows", f"team/git-gate@{'a1' * 20}")
    if words[0] == "why":
        clone.commit(**{"src/db.py": "x = 1\n" * 60})
        clone.git("tag", "v1.2")
    if words[0] == "compare":
        other = cli.quick("ask", "Which?", "-q", cwd=clone.path, code=0).line
        words = [other if word == "c3ab" else word for word in words]
    if words[0] == "verify" and "--branch" in words:
        cli.quick("respond", gate, "JWT", cwd=clone.path, code=0)
    # A run that waits ends its process.
    said = (cli if "--code" in words else cli.quick)(*words, cwd=clone.path)
    assert said.code == CODES.get(line, 0), f"{line}\n{said.err}"


@pytest.mark.parametrize(
    "line", [*examples(commands()["wait"]), *(e for e in examples(commands()["watch"]) if "7k2f" in e)]
)
def test_an_example_that_waits_ends_with_the_answer(cli: Command, repo: Clone, line: str) -> None:
    """Which is there already, so that nobody waits."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    cli.quick("respond", gate, "JWT", code=0)
    said = cli.quick(*(gate if word == "7k2f" else word for word in shlex.split(line)[2:]), code=0)
    assert "JWT" in said.out


@pytest.mark.parametrize("line", examples(commands()["wrap"]))
def test_an_example_of_wrapping_runs(
    cli: Command, repo: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """With a program in Claude Code's stead that ends by asking."""
    claude = tmp_path / "bin" / "claude"
    claude.parent.mkdir()
    asks = '{"status": "needs_input", "question": "Which?"}'
    claude.write_text(f"#!/bin/sh\necho '{asks}'\n", encoding="utf-8")
    claude.chmod(0o755)
    monkeypatch.setenv("PATH", f"{claude.parent}:{os.environ['PATH']}")
    said = cli.quick(*shlex.split(line)[2:], code=8)
    (gate,) = cli.quick("list", "--json", code=0).json["gates"]
    assert f"git gate respond {gate['id'][:6]}" in said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [  # That of a queue ends by itself: tests/resumption/test_queue.py has one.
        *(e for e in examples(commands()["worker"]) if "--queue" not in e),
        *(e for e in examples(commands()["watch"]) if "7k2f" not in e),
    ],
)
def test_an_example_that_stays_runs_until_it_is_stopped(
    cli: Command, clone_of: Callable[..., Clone], bare: Clone, line: str
) -> None:
    """In a clone beside two others; SIGTERM ends it."""
    here, *_ = (clone_of(bare, name) for name in ("here", "api", "web"))
    words = shlex.split(line)[2:]
    if "RUN" in words:  # one that waits
        (here.path / "flows.py").write_text(FLOWS, encoding="utf-8")
        cli("run", "flows.py:deploys", cwd=here.path)
        (begun,) = cli.quick("list", "--runs", "--all", "--json", cwd=here.path, code=0).json["runs"]
        words = [begun["id"] if word == "RUN" else word for word in words]
    running = cli.start(*words, cwd=here.path)
    time.sleep(2)
    assert running.poll() is None, running.communicate()
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    assert running.returncode in (0, -signal.SIGTERM, 130), said


@pytest.mark.slow
@pytest.mark.parametrize("line", examples(commands()["outcome"]))
def test_an_example_of_an_outcome_runs(
    repo: Clone, cli: Command, tmp_path: Path, pty_cli: Callable[..., Terminal], line: str
) -> None:
    """Typed by the agent of a session that a person has joined."""
    desk = meet(repo, cli, tmp_path / "claude")
    gate = desk.talk("Shall we migrate?", "--outcome", "approval")
    terminal = pty_cli("join", gate)
    terminal.expect("earlier messages")
    terminal.line(line.removeprefix("git gate "))
    assert "[0]" in terminal.expect("claude: outcome done")


def test_each_verb_is_tried_everywhere() -> None:
    """Each that there is has its cells among what is typed in every kind of place: test_everywhere.py."""
    assert {typed.split()[0] for typed in CELLS if typed and typed[0] != "-"} - {"nonsense"} == set(VERBS)
