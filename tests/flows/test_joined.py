"""Flows: a person joins the session of an agent that a run waits for, and decides a checkpoint: from the terminal, by the run's id."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each sits at a terminal

Pty = Callable[..., Terminal]
FLOWS = """
import gitgate


@gitgate.flow
def feature(task: str):
    said = gitgate.run("coder", task)
    ok = gitgate.pause("Deploy?")
    if not ok:
        gitgate.stuck(ok.reason)
    return [said.status, said.summary]
"""
# Started it needs a person, which it writes to its file; gone on with it is told the answer, and is done.
AGENT = """#!/bin/sh
echo "$1 $2 $(pwd)" >> {folder}/starts
cat > {folder}/told
mkdir -p .agents/signals
case $1 in
start) echo half > work.txt; echo '{{"status": "NEEDS_HUMAN", "reason": "Which authentication?"}}' > .agents/signals/coder.json ;;
resume) echo '{{"status": "DONE", "summary": "as we said"}}' ;;
join) echo "HERE IS $(cat work.txt)"; printf '> '; read -r line; [ -z "$line" ] || echo "$line" > .agents/signals/coder.json ;;
esac
"""
TALKED = {"status": "DONE", "summary": "OAuth2 with PKCE"}


@pytest.fixture
def folder(repo: Clone, tmp_path: Path) -> Path:
    """Where its agent notes how it was started."""
    agent = tmp_path / "agent.sh"
    agent.write_text(AGENT.format(folder=tmp_path).replace("cat > ", "[ $1 = join ] || cat > "))
    agent.chmod(0o755)
    for how in ("start", "resume", "join"):
        repo.git("config", f"gitgate.agent.coder.{how}", json.dumps([str(agent), how, "{session}"]))
    repo.commit(**{"flows.py": FLOWS})
    return tmp_path


@pytest.mark.parametrize("flags", [(), ("--branch", "feature/x")], ids=["here", "branch"])
def test_an_agent_is_talked_to_and_the_run_goes_on(
    repo: Clone, cli: Command, pty_cli: Pty, folder: Path, flags: tuple[str, ...]
) -> None:
    """In its own session, where it stopped. What it then writes to its file is the answer once the person confirms it; the agent
    hears it, and `run()` has taken longer. No file of the tree is moved by that.
    """
    run = cli("run", "flows.py:feature", "Log in", *flags, "--json", code=8).json["id"]
    talk = pty_cli("continue" if flags else "join", run)
    assert "Which authentication?" in talk.expect("opening coder's session where it was")
    talk.expect("HERE IS half")
    talk.line(json.dumps(TALKED))
    assert "OAuth2 with PKCE" in talk.expect("is that your answer?")
    talk.line("y")
    talk.finish(code=0)
    cli("resume", run, code=8)
    starts = [line.split(" ") for line in (folder / "starts").read_text().splitlines()]
    assert [how for how, *_ in starts] == ["start", "join", "resume"]
    assert len({(session, place) for _, session, place in starts}) == 1
    place = Path(starts[0][2])
    assert (place == repo.path) is (not flags)
    assert "OAuth2 with PKCE" in (folder / "told").read_text()
    assert [file.name for file in (place / ".agents/signals").iterdir()] == ["coder.json"]
    (step, pause) = cli("show", run, "--json", code=0).json["steps"]
    assert (step["status"], step["signal"]["summary"], pause["name"]) == (
        "completed",
        "as we said",
        "_checkpoint",
    )
    decides = pty_cli("join", run)
    decides.expect("[d/m/c/s/t/q]: ")
    decides.line("c")
    decides.finish(code=0)
    assert cli("resume", run, code=0).out == '["DONE", "as we said"]\n'


def test_a_person_ends_it_in_the_session(cli: Command, pty_cli: Pty, folder: Path) -> None:
    """The run is stuck with their reason, and the agent is not started again. Left without a word it waits as before."""
    run = cli("run", "flows.py:feature", "x", "--json", code=8).json["id"]
    talk = pty_cli("join", run)
    talk.expect("HERE IS half")
    talk.line("")
    talk.expect("what is your answer?")
    talk.line("")
    talk.finish(code=8)
    assert cli("show", run, "--json", code=0).json["status"] == "waiting_human"
    talk = pty_cli("join", run)
    talk.expect("HERE IS half")
    talk.line("")
    talk.expect("what is your answer?")
    talk.line(":c")
    talk.expect("why")
    talk.line("we do it differently")
    talk.finish(code=9)
    ended = cli("resume", run, "--json", code=9).json
    assert (ended["status"], ended["reason"]) == ("stuck", "we do it differently")
    starts = (folder / "starts").read_text().splitlines()
    assert [line.split(" ")[0] for line in starts] == ["start", "join", "join"]


def test_the_file_is_heard_while_somebody_is_in_the_session(
    repo: Clone, cli: Command, pty_cli: Pty, folder: Path
) -> None:
    """Whoever looks takes the question back; the person is told so when they leave, and the step ends with what the file says."""
    run = cli("run", "flows.py:feature", "x", "--json", code=8).json["id"]
    talk = pty_cli("join", run)
    talk.expect("HERE IS half")
    talk.line(json.dumps(TALKED))
    talk.expect("is that your answer?")
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    cli("status", gate["id"], code=0)
    assert cli("show", gate["id"], "--json", code=0).json["state"] == "withdrawn"
    talk.line("y")
    assert "withdrawn" in talk.finish(code=5)
    cli("resume", run, code=8)
    step = cli("show", run, "--json", code=0).json["steps"][0]
    assert step["signal"] == {**TALKED, "reason": ""}
    assert [line.split(" ")[0] for line in (folder / "starts").read_text().splitlines()] == ["start", "join"]
