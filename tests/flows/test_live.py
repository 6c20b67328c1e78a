"""Flows: a run before a person: what its agents do is seen while they do it, and its question may be answered as soon as it waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.flowing import Actors
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each starts the command on a terminal, some of them several times

Pty = Callable[..., Terminal]
FLOWS = """
import gitgate


@gitgate.flow
def feature(task: str):
    try:
        gitgate.run("coder", task)
        word = gitgate.pause("Merge it?")
        if not word:
            gitgate.stuck(word.reason)
        gitgate.run("deployer")
        return "merged"
    finally:
        print("the flow is over")


@gitgate.flow
def both():
    said = gitgate.parallel(
        lambda: gitgate.ask("Which port?", wait=True).answer.text,
        lambda: gitgate.ask("When?", type="choice", options=["later", "now"], wait=True).answer.text,
    )
    return " ".join(said)
"""
DONE = {"status": "DONE", "summary": "did it"}
NEEDS = {"status": "NEEDS_HUMAN", "question": "Which database?", "options": ["Postgres", "SQLite"]}
OFFER = "leaves the run waiting, ? for help"
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@pytest.fixture
def flows(repo: Clone, actors: Actors) -> Actors:
    repo.commit(**{"flows.py": FLOWS})
    actors.says("coder", DONE)
    actors.says("deployer", DONE)
    return actors


def the_run(cli: Command) -> dict[str, object]:
    """The only one there is."""
    (found,) = cli("list", "--runs", "--json", code=0).json["runs"]
    return dict(found)


def test_a_person_is_asked_at_once_and_the_run_goes_on(flows: Actors, cli: Command, pty_cli: Pty) -> None:
    """An agent's question and then the flow's own, one after the other at the same terminal; the flow sees one end."""
    flows.says("coder", NEEDS, DONE)
    terminal = pty_cli("run", "flows.py:feature", "Add a login page")
    assert "Postgres" in terminal.expect(OFFER)
    terminal.line("Postgres")
    assert "coder: DONE: did it" in terminal.expect("Merge it?")
    terminal.expect(OFFER)
    terminal.line("y")
    text = terminal.finish(code=0)
    assert (text.count("the flow is over"), text.count("\nmerged\n")) == (1, 1)
    assert flows.starts == ["start coder", "resume coder", "start deployer"]
    assert the_run(cli)["status"] == "completed"
    gates = cli("list", "--all", "--json", code=0).json["gates"]
    assert [(gate["state"], gate["answer"]["via"]) for gate in gates] == [("resumed", "cli")] * 2
    cli("verify", code=0)


@pytest.mark.parametrize(
    ("typed", "code"), [("later\r", 8), ("\x04", 8), ("", 130)], ids=["later", "Ctrl-D", "Ctrl-C"]
)
def test_it_is_left_waiting(flows: Actors, cli: Command, pty_cli: Pty, typed: str, code: int) -> None:
    """By a word, Ctrl-D or Ctrl-C: nothing is decided, and what to type another time is said."""
    terminal = pty_cli("run", "flows.py:feature", "x")
    terminal.expect(OFFER)
    terminal.expect("[y/n]: ")
    if typed:
        terminal.keys(typed)
    said = terminal.finish(code=code) if typed else terminal.interrupt(code=code)
    run, (gate,) = the_run(cli), cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert f"git gate respond {gate['id'][:6]}" in said
    assert f"git gate resume {str(run['id'])[:6]}" in said
    assert (run["status"], "the flow is over" in said) == ("waiting_human", False)
    if typed == "later\r":
        again = pty_cli("resume", str(run["id"]))
        again.expect(OFFER)
        again.line("no, not on a Friday")
        assert "stuck: not on a Friday" in again.finish(code=3)
        assert flows.starts == ["start coder"]


def test_of_several_questions_any_may_be_answered(flows: Actors, cli: Command, pty_cli: Pty) -> None:
    """One that is left comes again when the run has gone on with the others; an option may be called as the word that leaves."""
    terminal = pty_cli("run", "flows.py:both")
    terminal.expect("waits for an answer to")  # what was said before names both
    first = terminal.expect(OFFER)
    terminal.line("")
    second = terminal.expect(OFFER)
    assert sum("Which port?" in shown for shown in (first, second)) == 1
    if "Which port?" in second:  # they are asked in the order in which their branches came to them
        terminal.line("8080")
        terminal.expect(OFFER)
        terminal.line("later")  # the option
    else:
        terminal.line("later")
        assert "Which port?" in terminal.expect(OFFER)
        terminal.line("8080")
    assert "8080 later" in terminal.finish(code=0)


def test_whoever_was_first_elsewhere_is_heard(flows: Actors, cli: Command, pty_cli: Pty) -> None:
    """The prompt still stands; what is typed at it comes too late, and the run goes on with what was said."""
    terminal = pty_cli("run", "flows.py:feature", "x")
    terminal.expect(OFFER)
    terminal.expect("[y/n]: ")
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    cli("respond", gate["id"], "--reject", "--note", "I was first", "--no-resume", code=0)
    terminal.line("y")
    assert "stuck: I was first" in terminal.finish(code=3)


@pytest.mark.parametrize("how", ["agent", "stdin", "json"])
def test_nobody_else_is_asked(flows: Actors, pty_cli: Pty, repo: Clone, how: str) -> None:
    """No agent that has the person's terminal, nobody where nothing can be typed, no program that reads JSON."""
    if how == "stdin":
        line = f"'{COMMAND}' run flows.py:feature x </dev/null"
        terminal = pty_cli("-c", line, program="sh")
    elif how == "agent":
        terminal = pty_cli("run", "flows.py:feature", "x", env={"CLAUDECODE": "1"})
    else:
        terminal = pty_cli("run", "flows.py:feature", "x", "--json")
    said = terminal.finish(code=8)
    assert OFFER not in said
    assert "git gate respond" in said


def test_an_agent_does_not_ask_itself(flows: Actors, cli: Command) -> None:
    """What asks at the terminal is no way around: it refuses an agent's process by itself."""
    run = cli("run", "flows.py:feature", "x", "--json", code=8).json
    asks = ("hook", "flow-question", run["id"], "then", run["gate"])
    refused = cli(*asks, env={"CLAUDECODE": "1"}, input="y\n")
    assert (refused.code, "is for people" in refused.err) == (4, True)


def test_a_run_on_a_branch_goes_on_in_its_tree(
    flows: Actors, cli: Command, pty_cli: Pty, repo: Clone, tmp_path: Path
) -> None:
    """The other program works where the first one did."""
    for name in ("coder", "deployer"):
        script = f"cat >/dev/null; pwd >> {tmp_path}/places"
        repo.git("config", f"gitgate.agent.{name}.start", json.dumps(["sh", "-c", script]))
    terminal = pty_cli("run", "flows.py:feature", "x", "--branch", "feature/x")
    terminal.expect(OFFER)
    terminal.line("y")
    terminal.finish(code=0)
    first, second = (tmp_path / "places").read_text().split()
    assert first == second != str(repo.path)


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}], ids=["live", "plain"])
def test_the_agent_is_seen_while_it_works(
    flows: Actors, pty_cli: Pty, repo: Clone, tmp_path: Path, env: dict[str, str]
) -> None:
    """Its name, its step and its age, where the terminal can; else plain lines alone."""
    go = tmp_path / "go"
    script = f"cat >/dev/null; sleep 1; while [ ! -e {go} ]; do sleep 0.05; done; echo built"
    repo.git("config", "gitgate.agent.coder.start", json.dumps(["sh", "-c", script]))
    terminal = pty_cli("run", "flows.py:feature", "x", env=env)
    terminal.expect("coder: was started")
    if not env:
        terminal.expect("s (run:coder#1)")
    go.touch()
    terminal.expect("coder: DONE: built")
    terminal.expect(OFFER)
    terminal.line("later")
    said = terminal.finish(code=8)
    assert any(frame in said for frame in FRAMES) is (not env)
