"""Flows: runs from the command line, with agents that are started once, people who are asked once, and processes that are killed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

import gitgate
from gitgate import text
from gitgate.document import codec
from gitgate.errors import Usage
from support import PATIENCE, examples
from support.flowing import Actors, FlowBench, killed_command, was_killed
from support.testbed.command import Command, Outcome
from support.testbed.repositories import Clone

# The examples of a program whose runs pause, and one that looks for what passes through it.
FLOWS = f"""{Path(examples.__file__).read_text(encoding="utf-8")}

@gitgate.flow
def guarded(prompt: str):
    try:
        gitgate.pause("Go on?")
    except Exception as seen:
        print("saw", seen)
    finally:
        print("finally")
    return prompt
"""

DONE = {"status": "DONE", "summary": "did it"}
NEEDS = {"status": "NEEDS_HUMAN", "reason": "Which authentication?"}


@pytest.fixture
def flows(repo: Clone, actors: Actors) -> Actors:
    repo.commit(**{"flows.py": FLOWS})
    for name in ("architect", "test-runner", "deployer"):
        actors.says(name, DONE)
    actors.says("coder", NEEDS, DONE)
    actors.says("reviewer", {"status": "CHANGES"}, {"status": "APPROVED"})
    actors.says("autonomous-agent", NEEDS)
    return actors


def waiting_gate(cli: Command) -> tuple[str, str]:
    """The gate that waits, and what it asks."""
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    return gate["id"], gate["questions"][0]["prompt"]


def test_a_run_waits_for_a_person_and_goes_on(flows: Actors, cli: Command, repo: Clone) -> None:
    """The agent that needs one goes on in its own session with the answer; nothing before it is done again."""
    started = cli("run", "flows.py:simple", "Add a login page", code=8)
    assert "git gate respond" in started.err
    assert flows.starts == ["start architect", "start coder"]
    listed = cli("list", "--runs", "--active", "--json", code=0).json
    assert listed["schema"] == "gitgate.runs/v1"
    (row,) = listed["runs"]
    assert (row["status"], row["agent"], row["waiting_for"]) == (
        "waiting_human",
        "coder",
        "Which authentication?",
    )
    gate, asked = waiting_gate(cli)
    assert (asked, row["gate"]) == ("Which authentication?", gate)
    assert row["answered"] is False
    cli("respond", gate, "OAuth2 with PKCE", code=0)
    to_go_on = f"answered; to go on: git gate resume {row['id'][:6]}"
    assert to_go_on in cli("list", "--runs", code=0).out
    assert to_go_on in cli("show", row["id"], code=0).out
    ended = cli("resume", row["id"], "--json", code=0)
    assert ended.json["status"] == "completed"
    assert flows.starts == ["start architect", "start coder", "resume coder", "start reviewer"]
    assert {name: len(ids) for name, ids in flows.sessions.items()} == {
        "architect": 1,
        "coder": 1,
        "reviewer": 1,
    }
    assert "OAuth2 with PKCE" in flows.prompt("coder")
    assert "Add a login page" in flows.prompt("reviewer")
    (step,) = [step for step in ended.json["steps"] if step["agent"] == "coder"]
    assert step["signal"] == {"status": "DONE", "summary": "did it", "reason": ""}
    assert (step["gate"], step["status"]) == (gate, "completed")
    assert cli("list", "--runs", "--active", "--json", code=0).json["runs"] == []
    cli("resume", row["id"], code=5)


@pytest.mark.slow
def test_the_answer_resumes_the_run(flows: Actors, cli: Command, repo: Clone) -> None:
    """As it would an agent: by whatever acts on the gate's answer, a worker, a hook, or by hand."""
    run = cli("run", "flows.py:approval", "Ship it", "--json", code=8).json["id"]
    cli("respond", waiting_gate(cli)[0], "OAuth2", code=0)
    cli("worker", "--once", code=0)
    gate, asked = waiting_gate(cli)
    assert asked == "Approve for production deployment?"
    assert flows.starts == ["start architect", "start coder", "resume coder", "start test-runner"]
    cli("respond", gate, "--approve", code=0)
    cli("resume", gate, code=0)
    assert cli("show", run, "--json", code=0).json["status"] == "completed"
    assert flows.starts[-1] == "start deployer"
    states = {shown["id"]: shown["state"] for shown in cli("list", "--all", "--json", code=0).json["gates"]}
    assert set(states.values()) == {"resumed"}
    checked = cli("verify", "--json", code=0).json
    assert (checked["ok"], checked["runs"]) == (True, 1)
    forged = repo.git("commit-tree", "HEAD^{tree}", "-p", repo.refs()[f"refs/hitl/runs/{run}"], "-m", "x")
    repo.git("update-ref", f"refs/hitl/runs/{run}", forged)
    assert "holds other files" in cli("verify", code=1).out


@pytest.mark.slow
def test_a_run_stands_for_the_gate_that_it_waits_at(flows: Actors, cli: Command) -> None:
    """Wherever a gate is named; show, status, log, resume and stop are about the run itself."""
    run = cli("run", "flows.py:approval", "Ship it", "--json", code=8).json["id"]
    cli("check", run, code=8)
    cli("comment", run, "which one do we have?", code=0)
    cli("respond", run[:6], "OAuth2", code=0)
    assert "status: waiting_human" in cli("status", run, code=0).out
    cli("resume", run, code=8)
    cli("signal", run, "--status", "CONTINUE", "--message", "go", code=0)
    cli("resume", run, code=0)
    assert "completed: it waits for nobody" in cli("respond", run, "x", code=5).err
    every = cli("list", "--all", "--json").json["gates"]
    (own,) = [gate for gate in every if gate["asked"]["agent"] == "approval"]
    assert own["run"] == {"id": run, "flow": "approval", "step": "pause:_checkpoint#1"}


@pytest.mark.slow
def test_a_no_ends_it_with_its_reason(flows: Actors, cli: Command) -> None:
    """Exit 3: a person said no, and the flow ended so. An agent that may not ask is told apart: exit 9."""
    flows.says("coder", DONE)
    run = cli("run", "flows.py:approval", "Ship it", "--json", code=8).json["id"]
    cli("respond", waiting_gate(cli)[0], "--reject", "--note", "not on a Friday", code=0)
    ended = cli("resume", run, "--json", code=3)
    assert (ended.json["status"], ended.json["reason"]) == ("stuck", "not on a Friday")
    assert "start deployer" not in flows.starts
    assert "1 run stuck" in cli(code=0).out
    assert cli("--json", code=0).json["runs"] == {"stuck": 1}
    alone = cli("run", "flows.py:autonomous", "x", "--json", code=9)
    assert alone.json["reason"] == "Unexpected: Which authentication?"
    assert cli("list", "--awaiting", "--json", code=0).json["gates"] == []


def test_a_wait_is_seen_by_no_finally(repo: Clone, cli: Command) -> None:
    """The process ends there: what the flow would do at an error or an end is not done."""
    repo.commit(**{"flows.py": FLOWS})
    started = cli("run", "flows.py:guarded", "word", code=8)
    assert started.out == ""
    run = cli("list", "--runs", "--json", code=0).json["runs"][0]["id"]
    cli("respond", waiting_gate(cli)[0], "--approve", code=0)
    assert cli("resume", run, code=0).out == "finally\nword\n"


def test_a_run_is_shown_with_its_steps(flows: Actors, cli: Command) -> None:
    """As a page, as JSON, and as a trail; by four letters of its id."""
    flows.says("coder", DONE)
    run = cli("run", "flows.py:simple", "Add a login page", "--name", "login", "--json", code=0).json["id"]
    shown = cli("show", run[:4], code=0).out
    assert "login" in shown
    assert "run:coder#1" in shown
    assert "did it" in shown
    events = cli("log", run, "--json", code=0).json["events"]
    assert [event["event"] for event in reversed(events)] == [
        *("started", "claimed"),
        *("begun", "done") * 3,
        "completed",
    ]
    assert "login" in cli("list", "--runs", code=0).out
    typed = {
        "COMP_WORDS": f"git-gate show {run[:3]}",
        "COMP_CWORD": "2",
        "_GIT_GATE_COMPLETE": "bash_complete",
    }
    assert cli(env=typed, code=0).out == f"plain,{run}\n"


WIDE = """
import gitgate

@gitgate.flow(name='wide"]; a --> b; <b>')
def wide():
    gitgate.step(str, "a", name='one"] --> evil["<img>')
    gitgate.parallel(lambda: gitgate.step(str, "b", name="left"), lambda: gitgate.step(str, "c", name="right"))
    gitgate.parallel(lambda: gitgate.step(str, "d", name="alone"))
    gitgate.step(str, "e", name="last")
"""


def test_a_run_is_drawn(repo: Clone, cli: Command) -> None:
    """What ran at once stands side by side; a step's name ends no label and begins no markup."""
    repo.commit(**{"flows.py": WIDE})
    run = cli("run", "flows.py", "--json", code=0).json["id"]
    steps = cli("show", run, "--format", "json", code=0).json["steps"]
    places = {step["name"]: place for place, step in enumerate(steps)}
    one, left, right, alone, last = (
        places[name] for name in ('one"] --> evil["<img>', "left", "right", "alone", "last")
    )
    arrows = {
        *(("start", f"s{one}"), (f"s{one}", f"s{left}"), (f"s{one}", f"s{right}")),
        *((f"s{left}", f"s{alone}"), (f"s{right}", f"s{alone}"), (f"s{alone}", f"s{last}")),
        (f"s{last}", f"s{len(steps)}"),
    }
    mermaid = cli("show", run, "--format", "mermaid", code=0).out.splitlines()
    assert {tuple(line.split(" --> ")) for line in map(str.strip, mermaid) if " --> " in line} == arrows
    label = next(line for line in mermaid if line.startswith(f"  s{one}["))
    assert label.startswith(f'  s{one}["')
    assert label.endswith('"]')
    assert label.count('"') == 2
    assert "<img" not in "".join(mermaid)
    assert label.count("<") == label.count("<br/>")
    root = fromstring(cli("show", run, "--format", "xml", code=0).out)  # noqa: S314 - our own words
    assert [step.get("name") for step in root.iter("step")] == [step["name"] for step in steps]
    assert (root.get("id"), root.get("status")) == (run, "completed")
    assert all(step["seconds"] >= 0 for step in steps)
    cli("show", run, "--json", "--format", "mermaid", code=2)


def test_a_gate_is_not_drawn(flows: Actors, cli: Command) -> None:
    run = cli("run", "flows.py:simple", "x", "--json", code=8).json["id"]
    gate, _ = waiting_gate(cli)
    refused = cli("show", gate, "--format", "mermaid", code=2)
    assert "draws a run" in refused.err
    assert f"run {run}, step run:coder#1" in cli("list", "--verbose", code=0).out
    assert f"a step of run {run}" in cli("show", gate, code=0).out
    assert cli("show", gate, "--json", code=0).json["run"] == {
        "id": run,
        "flow": "simple",
        "step": "run:coder#1",
    }


def test_arguments_are_what_the_flow_takes(repo: Clone, cli: Command) -> None:
    """By place or by name, as text or as what the parameter says; another is refused with what it takes."""
    repo.commit(
        **{
            "flows.py": "import gitgate\n@gitgate.flow\ndef sums(name: str, count: int = 1, flags: list = []):\n"
            "    return [name, count, flags]\n"
        }
    )
    run = ("run", "flows.py")
    assert json.loads(cli(*run, "a", code=0).out) == ["a", 1, []]
    assert json.loads(cli(*run, "7", "-i", "count=2", "-i", 'flags=["x"]', code=0).out) == ["7", 2, ["x"]]
    assert "count: int" in cli(*run, code=2).err
    assert "expected int" in cli(*run, "a", "many", code=2).err
    assert "KEY=VALUE" in cli(*run, "a", "-i", "count", code=2).err
    assert "there is no flow 'other'; it has sums" in cli("run", "flows.py:other", "a", code=2).err
    assert "nowhere.py" in cli("run", "nowhere.py", code=2).err


def test_a_file_that_cannot_be_loaded_says_where(repo: Clone, cli: Command) -> None:
    """It is the flow's own mistake, and no bug of ours; no run begins."""
    for code, why in (
        ("import gitgate\n1 +\n", "line 2: SyntaxError"),
        ("import gitgate\n\nundefined()\n", "line 3: NameError: name 'undefined'"),
        ("import nowhere_at_all\n", "line 1: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", "line 2: FlowExited: the code called sys.exit(3)"),
        ("\0", "broken.py cannot be loaded: SyntaxError"),
    ):
        repo.write("broken.py", code)
        assert why in cli("run", "broken.py", code=1).err
    assert cli("list", "--runs", "--json", code=0).json["runs"] == []


ODD = """
import os

import gitgate


def forks():
    return os.fork() > 0


def fails():
    raise ValueError("nothing comes of it")


@gitgate.flow
def forking():
    return [gitgate.step(forks), gitgate.step(int)]


@gitgate.flow
def leaving():
    os.chdir("/")
    gitgate.step(int)
    return bool(gitgate.pause("Go on?"))


@gitgate.flow
def failing():
    gitgate.step(fails)
"""


def test_a_process_that_a_step_forks_does_not_go_on_with_the_flow(repo: Clone, cli: Command) -> None:
    """It comes back from the step's function as well. Two of them would write one journal, and the run end as failed."""
    repo.commit(**{"flows.py": ODD})
    done = cli("run", "flows.py:forking", "--json", code=0)
    assert done.json["result"] == [True, 0]
    assert "a process that a step forked came back" in done.err
    assert "os._exit(0)" in done.err
    cli("verify", code=0)


@pytest.mark.parametrize("inner", [False, True], ids=["here", "-C"])
def test_a_flow_may_change_its_directory(repo: Clone, cli: Command, inner: bool) -> None:
    """What is told at its end is of the repository that it began in."""
    repo.commit(**{"sub/flows.py": ODD})
    where = ("-C", "sub") if inner else ()
    file = "flows.py:leaving" if inner else "sub/flows.py:leaving"
    run = cli(*where, "run", file, "--json", code=8).json["id"]
    gate, _ = waiting_gate(cli)
    cli("respond", gate, "--approve", code=0)
    assert cli(*where, "resume", run, code=0).out == "true\n"


def test_a_traceback_begins_in_the_flow(repo: Clone, cli: Command) -> None:
    """Which of our functions called it is nothing to its author; what it was given, where it was given nothing, neither."""
    repo.commit(**{"flows.py": ODD})
    failed = cli("run", "flows.py:failing", code=1)
    first, second = failed.err.partition("Traceback")[2].splitlines()[1:3]
    assert "flows.py" in first
    assert "gitgate.step(fails)" in second
    (run,) = cli("list", "--runs", "--json", code=0).json["runs"]
    assert "input:" not in cli("show", run["id"], code=0).out
    assert cli("show", run["id"], "--json", code=0).json["input"] is None


@pytest.mark.slow
def test_an_agent_that_is_not_set_up_here_costs_no_run(repo: Clone, cli: Command, actors: Actors) -> None:
    """What was done before stays; set up here or elsewhere the run goes on, and nothing is done again."""
    actors.says("architect", DONE)
    code = "import gitgate\n@gitgate.flow\ndef build():\n    gitgate.run('architect', 'x')\n    return gitgate.run('builder', 'x').status\n"
    repo.commit(**{"flows.py": code})
    stalled = cli("run", "flows.py", "--json", code=1)
    run = stalled.json["id"]
    assert stalled.json["status"] == "stalled"
    assert "no agent is called 'builder'" in stalled.json["reason"]
    assert "git config gitgate.agent.builder.start" in stalled.err
    assert f"git gate resume {run[:6]}" in stalled.err
    assert [step["path"] for step in stalled.json["steps"]] == ["run:architect#1"]
    assert cli(code=0).out == "nothing waits for you · 1 run stalled\nnext: git gate list --runs\n"
    actors.says("builder", DONE)
    assert cli("resume", run, code=0).out == "DONE\n"
    assert actors.starts == ["start architect", "start builder"]


@pytest.mark.slow
def test_it_is_said_where_no_server_goes_on_with_a_run(repo: Clone, bare: Clone, cli: Command) -> None:
    """At its beginning, not once somebody has answered: what an earlier agent left uncommitted is enough for that."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.commit(**{"flows.py": ODD})
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    assert "--protected" not in cli("run", "flows.py:leaving", code=8).err
    repo.write("left.txt", "by an agent")
    words = cli("run", "flows.py:leaving", code=8).err
    assert "answers go on with the run here alone" in words
    assert "git gate run flows.py:leaving --protected" in words
    assert "here alone" not in cli("run", "flows.py:leaving", "--protected", code=8).err


def test_run_takes_a_run_with_the_code_of_now(repo: Clone, cli: Command) -> None:
    """`--code now` as `resume` has it, and `--here`, which is what `run` does; what contradicts them is refused."""
    code = "import gitgate\n@gitgate.flow\ndef says():\n    gitgate.pause('Go on?')\n    return {!r}\n"
    repo.write("says.py", code.format("before"))
    run = cli("run", "says.py", "--here", "--code", "now", "--json", code=8).json["id"]
    repo.write("says.py", code.format("after"))
    cli("respond", waiting_gate(cli)[0], "--approve", code=0)
    for beside in (["x"], ["-i", "a=1"], ["--branch", "b"], ["--name", "n"], ["--detach"]):
        assert "nothing beside it" in cli("run", run, *beside, "--code", "now", code=2).err
    assert "leave one out" in cli("run", "says.py", "--here", "--branch", "b", code=2).err
    assert "leave one out" in cli("run", "says.py", "--protected", "--code", "now", code=2).err
    assert cli("run", run, "--code", "now", code=0).out == "after\n"


@pytest.mark.slow
def test_a_run_goes_on_with_the_code_that_it_began_with(repo: Clone, cli: Command) -> None:
    """Also where that was never committed; with the code as it is now where somebody says so."""
    code = "import gitgate\n@gitgate.flow\ndef says():\n    gitgate.pause('Go on?')\n    return {!r}\n"
    repo.write("says.py", code.format("before"))
    runs = [cli("run", "says.py", "--json", code=8).json["id"] for _ in range(2)]
    assert f"git gate resume {runs[0]}" in cli("run", runs[0], code=2).err  # where a file's name is wanted
    repo.write("says.py", code.format("after"))
    for gate in cli("list", "--awaiting", "--json", code=0).json["gates"]:
        cli("respond", gate["id"], "--approve", code=0)
    assert cli("resume", runs[0], code=0).out == "before\n"
    assert cli("resume", runs[1], "--code", "now", code=0).out == "after\n"


CLAUDE = """
import json, pathlib, sys
place = pathlib.Path(__file__).parent
(place / "argv.json").write_text(json.dumps(sys.argv[1:]))
(place / "prompt").write_text(sys.stdin.read())
said = {"type": "result", "subtype": "success", "is_error": False, "session_id": sys.argv[sys.argv.index("--session-id") + 1]}
print(json.dumps({**said, "result": 'I looked.\\n{"status": "APPROVED", "summary": "sound"}'}))
"""


def test_an_agent_is_described_by_a_file_of_the_protected_branch(
    repo: Clone, cli: Command, tmp_path: Path
) -> None:
    """What it says there is what it is told about itself; on another branch it says nothing."""
    fake = tmp_path / "claude.py"
    fake.write_text(CLAUDE)
    repo.git("config", "gitgate.agent.claude.program", json.dumps([sys.executable, str(fake)]))
    flow = "import gitgate\n@gitgate.flow\ndef checks():\n    return gitgate.run('critic', 'Look.').status\n"
    repo.write(".claude/agents/critic.md", "---\nname: critic\nmodel: opus\n---\nYou find faults.\n")
    repo.commit(**{"checks.py": flow})
    repo.git("branch", "-q", "-m", "main", "mine")
    repo.git("branch", "-q", "main", "mine~1")
    refused = cli("run", "checks.py", code=1)
    assert "no agent is called 'critic'" in refused.err
    repo.git("branch", "-q", "-f", "main", "mine")
    assert cli("run", "checks.py", code=0).out == "APPROVED\n"
    argv = json.loads((tmp_path / "argv.json").read_text())
    assert argv[argv.index("--append-system-prompt") + 1] == "You find faults."
    assert argv[argv.index("--model") + 1] == "opus"
    assert (tmp_path / "prompt").read_text() == "Look."


GEMINI = """import json, os, pathlib, sys
place = pathlib.Path(__file__).parent
(place / "argv.json").write_text(json.dumps(sys.argv[1:]))
(place / "prompt").write_text(sys.stdin.read())
(place / "name").write_text(os.environ["GIT_COMMITTER_NAME"])
print(json.dumps({"type": "init", "session_id": sys.argv[sys.argv.index("--session-id") + 1]}))
print(json.dumps({"type": "message", "role": "assistant", "content": '{"status": "APPROVED"}'}))
print(json.dumps({"type": "result", "status": "success"}))
"""


@pytest.mark.slow
def test_what_a_file_says_of_an_agent_reaches_any_program(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Before its first prompt, with its model; what only Claude Code can be kept from is refused, and not dropped.

    One whose shell hides the person's name from git has it in its environment, so that it can commit.
    """
    fake = tmp_path / "gemini.py"
    fake.write_text(GEMINI)
    repo.git("config", "gitgate.agent.gemini.program", json.dumps([sys.executable, str(fake)]))
    flow = "import gitgate\n@gitgate.flow\ndef checks():\n    return gitgate.run('critic', 'Look.').status\n"
    repo.write(
        ".claude/agents/critic.md", "---\nprogram: gemini\nmodel: fast\ntools: Read\n---\nYou find faults.\n"
    )
    repo.commit(**{"checks.py": flow})
    refused = cli("run", "checks.py", code=1).err
    assert "critic.md: gemini takes no tools from a file" in refused
    assert "leave tools out there" in refused
    assert not (tmp_path / "prompt").exists()
    repo.write(".claude/agents/critic.md", "---\nprogram: gemini\nmodel: fast\n---\nYou find faults.\n")
    repo.commit("model alone")
    assert cli("run", "checks.py", code=0).out == "APPROVED\n"
    assert (tmp_path / "prompt").read_text() == "You find faults.\n\nLook."
    assert (tmp_path / "name").read_text() == "Ada Lovelace"
    argv = json.loads((tmp_path / "argv.json").read_text())
    assert argv[argv.index("--model") + 1] == "fast"


# A flow whose steps ask on terms of their own, and an agent that asks in its shell.
TERMS = """
import gitgate


@gitgate.flow(human_timeout="2h", on_timeout="default", human_escalation=False)
def terms():
    said = gitgate.run("coder", "Go.")
    gitgate.run("shell", "Go.", human=True, human_timeout="3h", on_timeout="notify_again")
    gitgate.pause("Release?")
    return said.status


@gitgate.flow
def plain():
    return gitgate.run("coder", "Go.").status


@gitgate.flow
def quiet():
    return gitgate.run("shell", "Go.", human=False).status
"""
SHELL = "cat >/dev/null; git gate ask 'Which port?' -q 2> said.txt || true; cat said.txt >&2"


@pytest.mark.slow
def test_a_step_asks_on_its_own_terms_and_a_flow_on_its_own(flows: Actors, cli: Command, repo: Clone) -> None:
    """Also what an agent asks by itself in its shell; a default that no question declares leaves the run stuck."""
    repo.commit(**{"terms.py": TERMS})
    repo.git("config", "gitgate.agent.shell.start", json.dumps(["sh", "-c", SHELL]))
    repo.git("config", "gitgate.agent.shell.resume", json.dumps(["sh", "-c", "cat >/dev/null"]))
    run = cli("run", "terms.py:terms", "--json", code=8).json["id"]
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert gate["questions"][0]["prompt"] == "Which port?"
    assert gate["run"] == {"id": run, "flow": "terms", "step": "run:shell#1"}
    assert (gate["asked"]["agent"], gate["on_timeout"]) == ("shell", "remind")
    assert hours_until_deadline(gate) == 3
    cli("respond", gate["id"], "8080", "--no-resume", code=0)
    assert flows.starts == ["start coder"], "human=False asked somebody"
    cli("resume", run, code=8)
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert (gate["questions"][0]["prompt"], gate["on_timeout"]) == ("Release?", "stuck")
    assert hours_until_deadline(gate) == 2
    cli("respond", gate["id"], "--approve", "--no-resume", code=0)
    assert cli("resume", run, code=0).out == "NEEDS_HUMAN\n"


def hours_until_deadline(gate: dict[str, Any]) -> int:
    until, since = (text.parse_time(gate[at] if at else gate["asked"]["at"]) for at in ("deadline", ""))
    return round((until - since) / 3600)


@pytest.mark.slow
def test_what_an_agent_needs_is_its_end_where_the_machine_says_so(
    flows: Actors, cli: Command, repo: Clone
) -> None:
    """By setting; and an agent that asks in its shell nevertheless is refused, and told what to do instead."""
    repo.commit(**{"terms.py": TERMS})
    repo.git("config", "gitgate.agent.shell.start", json.dumps(["sh", "-c", SHELL]))
    repo.git("config", "gitgate.humanEscalation", "false")
    assert cli("run", "terms.py:plain", code=0).out == "NEEDS_HUMAN\n"
    repo.git("config", "--unset", "gitgate.humanEscalation")
    cli("run", "terms.py:quiet", code=0)
    assert "asks nobody in this step" in (repo.path / "said.txt").read_text()
    assert cli("list", "--all", "--json", code=0).json["gates"] == []


@pytest.mark.slow
@pytest.mark.parametrize("looks", ["status", "watch", "worker"])
def test_a_signal_file_written_anew_goes_on_without_the_agent(
    flows: Actors, cli: Command, repo: Clone, looks: str
) -> None:
    """Whoever looks ends the wait; the step ends with what the file says, and an approval is not answered by one."""
    run = cli("run", "flows.py:approval", "x", "--json", code=8).json["id"]
    gate, _ = waiting_gate(cli)
    place = repo.write(".agents/signals/coder.json", json.dumps({"status": "BUILT", "summary": "by hand"}))
    os.utime(place, (time.time() + 5,) * 2)
    if looks == "watch":
        cli("watch", gate, "--for", "20s", code=0)
    elif looks == "worker":
        said = cli("worker", "--once", code=0)
        assert f"gate {gate} was taken back" in said.err
    else:
        cli("status", gate, code=0)
    shown = cli("show", gate, "--json", code=0).json
    assert (shown["state"], shown["answer"]) == ("withdrawn", None)
    if looks == "worker":
        wait_until(lambda: len(cli("list", "--awaiting", "--json", code=0).json["gates"]) == 1)
        wait_until(lambda: cli("show", run, "--json", code=0).json["status"] == "waiting_human")
    else:
        cli("resume", run, code=8)
    step = next(one for one in cli("show", run, "--json", code=0).json["steps"] if one["name"] == "coder")
    assert (step["signal"]["status"], step["signal"]["summary"]) == ("BUILT", "by hand")
    assert flows.starts == ["start architect", "start coder", "start test-runner"]
    approval, asked = waiting_gate(cli)
    assert asked == "Approve for production deployment?"
    repo.write(".agents/signals/approval.json", json.dumps({"status": "APPROVED"}))
    cli("status", code=0)
    assert waiting_gate(cli)[0] == approval


@pytest.mark.slow
def test_a_flow_names_who_is_told_of_what_it_asks(flows: Actors, cli: Command, repo: Clone) -> None:
    """By the name of an address; one that nobody has here is refused before the run begins."""
    code = "import gitgate\n@gitgate.flow(notify_on_waiting=['team'])\ndef told():\n"
    code += "    gitgate.run('coder', 'Go.', notify=['desk'])\n    gitgate.pause('Go on?')\n"
    repo.commit(**{"told.py": code})
    repo.git("config", "gitgate.notify", "tema=command true")
    refused = cli("run", "told.py", code=2)
    assert "--notify team: no address is called so here; there are tema" in refused.err
    assert cli("list", "--runs", "--json", code=0).json["runs"] == []
    repo.git("config", "gitgate.notify", "team=command true")
    run = cli("run", "told.py", "--json", code=8).json["id"]
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert asked_for(repo, gate["id"])["notify"] == ["desk"]
    cli("respond", gate["id"], "OAuth2", "--no-resume", code=0)
    cli("resume", run, code=8)
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert asked_for(repo, gate["id"])["notify"] == ["team"]


def asked_for(repo: Clone, gate: str) -> dict[str, Any]:
    """What the gate's own record says."""
    opened = repo.git("log", "--format=%H", "--reverse", "--first-parent", f"refs/hitl/open/{gate}").split()[
        0
    ]
    said: Any = codec.parse_document(repo.git("show", f"{opened}:question.yaml").encode(), "q").plain()
    return dict(said)


def test_terms_that_no_flow_can_have_are_refused_at_once() -> None:
    """Where the flow is written, with what was expected."""
    with pytest.raises(Usage, match="on_timeout: expected one of stuck, default, remind"):
        gitgate.flow(on_timeout="never")
    with pytest.raises(Usage, match="human_timeout"):
        gitgate.Flow(human_timeout="0s")


@pytest.mark.slow
def test_a_run_has_a_branch_of_its_own(repo: Clone, actors: Actors, cli: Command) -> None:
    """In a working tree beside; there it goes on, from wherever that is asked for."""
    repo.commit(**{"flows.py": FLOWS})
    actors.says("coder", NEEDS, DONE)
    script = "cat >/dev/null; echo $0 >> done.txt; git add -A; git commit -qm $0"
    for name in ("architect", "reviewer"):
        repo.git("config", f"gitgate.agent.{name}.start", json.dumps(["sh", "-c", script, name]))
    run = cli("run", "flows.py:simple", "x", "--branch", "feature/x", "--json", code=8).json
    assert run["branch"] == "feature/x"
    cli("respond", waiting_gate(cli)[0], "OAuth2", code=0)
    cli("resume", run["id"], code=0)
    assert repo.git("show", "feature/x:done.txt").split() == ["architect", "reviewer"]
    assert not (repo.path / "done.txt").exists()
    assert "not the name of a branch" in cli("run", "flows.py:simple", "x", "--branch", "a..b", code=1).err


def test_a_run_in_this_tree_may_be_asked_for(repo: Clone, cli: Command) -> None:
    """--here is what happens without --branch, and does not stand beside it."""
    repo.commit(
        **{"place.py": "import gitgate\n\n@gitgate.flow\ndef place():\n    return str(gitgate.workdir())\n"}
    )
    assert cli("run", "place.py", "--here", code=0).line == str(repo.path)
    refused = cli("run", "place.py", "--here", "--branch", "b", code=2).err
    assert "--here is the working tree that you are in, and --branch another one" in refused


@pytest.mark.slow
def test_a_run_goes_on_by_itself(repo: Clone, actors: Actors, cli: Command) -> None:
    """With --detach: its id is printed, and a process of its own goes on with it."""
    repo.commit(**{"flows.py": FLOWS})
    for name in ("architect", "coder", "reviewer"):
        actors.says(name, DONE)
    run = cli("run", "flows.py:simple", "x", "--detach", code=0).line
    wait_until(lambda: cli("show", run, "--json", code=0).json["status"] == "completed")
    assert actors.starts == ["start architect", "start coder", "start reviewer"]


def test_a_run_is_stopped(flows: Actors, cli: Command) -> None:
    """Where it waits, at once: what it asks is withdrawn. Exit 9 is how its own process would end."""
    run = cli("run", "flows.py:simple", "x", "--json", code=8).json["id"]
    cli("stop", run, "--reason", "not wanted", code=0)
    shown = cli("show", run, "--json", code=0).json
    assert (shown["status"], shown["reason"]) == ("stopped", "not wanted")
    assert cli("list", "--awaiting", "--json", code=0).json["gates"] == []
    cli("stop", run, "--reason", "again", code=5)


@pytest.mark.slow
def test_an_agent_that_runs_is_ended_by_a_stop(
    repo: Clone, actors: Actors, cli: Command, tmp_path: Path
) -> None:
    """Its process ends; the run's own ends with exit 9."""
    repo.commit(**{"flows.py": FLOWS})
    beat = tmp_path / "beat"
    script = f"while true; do date +%N > {beat}; sleep 0.1; done"
    repo.git("config", "gitgate.agent.architect.start", json.dumps(["sh", "-c", script]))
    running = cli.start("run", "flows.py:simple", "x")
    wait_until(beat.exists)
    run = cli("list", "--runs", "--json", code=0).json["runs"][0]["id"]
    cli("stop", run, "--reason", "enough", code=0)
    assert running.wait(PATIENCE) == 9
    running.communicate()
    before = beat.read_text()
    time.sleep(0.5)
    assert beat.read_text() == before
    assert cli("show", run, "--json", code=0).json["status"] == "stopped"


def wait_until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
def test_ctrl_c_leaves_it_to_be_gone_on_with(
    repo: Clone, actors: Actors, cli: Command, tmp_path: Path
) -> None:
    """Its agent ends with it, and goes on in its own session."""
    repo.commit(**{"flows.py": FLOWS})
    for name in ("coder", "reviewer"):
        actors.says(name, DONE)
    began = tmp_path / "began"
    script = f"echo $0 >> {began}; [ $0 = resume ] || sleep 60"
    for how in ("start", "resume"):
        repo.git("config", f"gitgate.agent.architect.{how}", json.dumps(["sh", "-c", script, how]))
    running = cli.start("run", "flows.py:simple", "x")
    wait_until(began.exists)
    running.send_signal(signal.SIGINT)
    assert running.wait(PATIENCE) == 130
    said = running.communicate()[1]
    run = cli("list", "--runs", "--json", code=0).json["runs"][0]
    assert f"git gate resume {run['id'][:6]}" in said
    assert run["status"] == "running"
    cli("resume", run["id"], code=0)
    assert began.read_text().split() == ["start", "resume"]


@pytest.mark.slow
def test_a_process_that_is_killed_beside_its_agent(
    repo: Clone, actors: Actors, cli: Command, tmp_path: Path
) -> None:
    """With SIGKILL, while the agent works: the agent ends with it, and goes on in the very session that it began."""
    repo.commit(**{"flows.py": FLOWS})
    for name in ("coder", "reviewer"):
        actors.says(name, DONE)
    began, beat = tmp_path / "began", tmp_path / "beat"
    script = f"echo $0 $1 >> {began}; while [ $0 = start ]; do date +%N > {beat}; sleep 0.1; done"
    for how in ("start", "resume"):
        line = ["sh", "-c", script, how, "{session}"]
        repo.git("config", f"gitgate.agent.architect.{how}", json.dumps(line))
    running = cli.start("run", "flows.py:simple", "x")
    wait_until(beat.exists)
    running.kill()
    running.communicate()
    assert running.wait(PATIENCE) == -signal.SIGKILL
    run = cli("list", "--runs", "--json", code=0).json["runs"][0]["id"]
    cli("resume", run, code=0)
    (first, one), (second, other) = (line.split() for line in began.read_text().splitlines())
    assert (first, second) == ("start", "resume")
    assert one == other
    before = beat.read_text()
    time.sleep(0.5)
    assert beat.read_text() == before


@pytest.mark.slow
def test_two_who_go_on_at_once_start_nothing_twice(flows: Actors, cli: Command, repo: Clone) -> None:
    """One of them does; the other is told so, or finds that it is over."""
    run = cli("run", "flows.py:simple", "x", "--json", code=8).json["id"]
    cli("respond", waiting_gate(cli)[0], "OAuth2", code=0)
    both = [cli.start("resume", run) for _ in range(4)]
    codes = sorted(one.wait(60) for one in both)
    for one in both:
        one.communicate()
    assert codes == [0, 5, 5, 5]
    assert flows.starts == ["start architect", "start coder", "resume coder", "start reviewer"]


@pytest.mark.slow
def test_another_clone_goes_on_with_it(
    flows: Actors, repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """From its journal alone, where the flow's code is on the protected branch; what was done is not done there."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    flows.says("coder", DONE)
    run = cli("run", "flows.py:approval", "Ship it", "--json", code=8).json["id"]
    there = clone_of(bare, "there")
    for line in repo.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        there.git("config", *line.split(" ", 1))
    cli("sync", cwd=there.path, code=0)
    cli("respond", waiting_gate(cli)[0], "--approve", cwd=there.path, code=0)
    assert cli("resume", run, "--json", cwd=there.path, code=0).json["status"] == "completed"
    assert flows.starts == ["start architect", "start coder", "start test-runner", "start deployer"]
    cli("sync", code=0)
    assert cli("show", run, "--json", code=0).json["status"] == "completed"
    assert bare.refs("refs/hitl/leases") == {}


# As another machine would run the command.
ELSEWHERE = """
import os, sys
here = os.uname()
os.uname = lambda: os.uname_result((here[0], "elsewhere", *here[2:]))
sys.argv = ["git-gate", *sys.argv[1:]]
from gitgate.cli.process import run
run()
"""


@pytest.mark.slow
def test_what_a_killed_process_had_not_shared_gives_way(
    flows: Actors, repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """Another machine claimed the run meanwhile: its journal is the run's, also in the clone that it was begun and killed in."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    there = clone_of(bare, "there")
    for line in repo.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        there.git("config", *line.split(" ", 1))
    for clone in (repo, there):
        clone.git("config", "gitgate.leaseTerm", "3s")
    assert was_killed(killed_command(repo, 3, "after", "run", "flows.py:simple", "x"))
    cli("sync", cwd=there.path, code=0)
    ((journal, shared),) = there.refs("refs/hitl/runs").items()
    run = journal.rpartition("/")[2]
    assert shared != repo.git("rev-parse", journal)
    claimed = goes_on(lambda: cli.scripted(ELSEWHERE, "resume", run, cwd=there.path))
    assert f"needs {socket.gethostname()}" in claimed.err
    ended = goes_on(lambda: cli("resume", run))
    assert ended.code == 8, ended.err
    assert repo.git("rev-parse", journal) == bare.git("rev-parse", journal)
    cli("sync", cwd=there.path, code=0)
    assert cli("show", run, "--json", cwd=there.path, code=0).json["status"] == "waiting_human"


@pytest.mark.slow
def test_a_question_that_was_opened_elsewhere_is_not_asked_again(
    repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """Its process was killed before the journal had its gate; whoever goes on elsewhere looks for one there first."""
    repo.commit(**{"flows.py": FLOWS})
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    there = clone_of(bare, "there")
    for clone in (repo, there):
        clone.git("config", "gitgate.leaseTerm", "3s")
    assert was_killed(killed_command(repo, 1, "after", "run", "flows.py:guarded", "word"))
    cli("sync", cwd=there.path, code=0)
    (journal,) = there.refs("refs/hitl/runs")
    run = journal.rpartition("/")[2]
    assert was_killed(killed_command(repo, 1, "before", "resume", run))
    assert (len(bare.refs("refs/hitl/open")), there.refs("refs/hitl/open")) == (1, {})
    ended = goes_on(lambda: cli("resume", run, cwd=there.path))
    assert ended.code == 8, ended.err
    assert there.refs("refs/hitl/open") == bare.refs("refs/hitl/open")
    assert len(bare.refs("refs/hitl/open")) == 1


def goes_on(resume: Callable[[], Outcome]) -> Outcome:
    """Once the lease of the process that went on before has lapsed."""
    until = time.monotonic() + PATIENCE
    while (done := resume()).code == 5:
        assert time.monotonic() < until, done.err
        time.sleep(0.5)
    return done


@pytest.mark.slow
def test_an_agent_is_ended_by_a_stop_from_another_clone(
    repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """Whoever goes on with the run hears it with the next renewal of its lease."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("config", "gitgate.leaseTerm", "3s")
    repo.commit(**{"flows.py": FLOWS})
    beat = tmp_path / "beat"
    script = f"while true; do date +%N > {beat}; sleep 0.1; done"
    repo.git("config", "gitgate.agent.architect.start", json.dumps(["sh", "-c", script]))
    there = clone_of(bare, "there")
    running = cli.start("run", "flows.py:simple", "x")
    wait_until(beat.exists)
    run = cli("list", "--runs", "--json", code=0).json["runs"][0]["id"]
    cli("sync", cwd=there.path, code=0)
    assert "told to stop" in cli("stop", run, "--reason", "enough", cwd=there.path, code=0).err
    assert running.wait(PATIENCE) == 9
    running.communicate()
    cli("sync", cwd=there.path, code=0)
    shown = cli("show", run, "--json", cwd=there.path, code=0).json
    assert (shown["status"], shown["reason"]) == ("stopped", "enough")


@pytest.mark.slow
def test_code_from_elsewhere_has_to_be_on_the_protected_branch(
    repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """What somebody pushed to another branch does not run on this machine; a person may go on with what is here."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("fetch", "-q", "origin")
    repo.git("checkout", "-q", "-b", "mine", "origin/main")
    repo.commit(
        **{
            "says.py": "import gitgate\n@gitgate.flow\ndef says():\n    gitgate.pause('Go on?')\n    return 'theirs'\n"
        }
    )
    repo.git("push", "-q", "origin", "mine")
    run = cli("run", "says.py", "--json", code=8).json["id"]
    there = clone_of(bare, "there")
    cli("sync", cwd=there.path, code=0)
    cli("respond", waiting_gate(cli)[0], "--approve", cwd=there.path, code=0)
    assert "not on the protected branch" in cli("resume", run, cwd=there.path, code=4).err
    there.commit(
        **{
            "says.py": "import gitgate\n@gitgate.flow\ndef says():\n    gitgate.pause('Go on?')\n    return 'ours'\n"
        }
    )
    assert cli("resume", run, "--code", "now", cwd=there.path, code=0).out == "ours\n"


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_process_is_gone_on_with(
    flows: Actors, repo: Clone, cli: Command, bench: FlowBench, when: str
) -> None:
    """With SIGKILL, in its first process and in a later one: each agent starts once, each person is asked once, and it comes to
    the same end.
    """
    for number, later in ((1, 3), (4, 2)) if when == "after" else ((2, 2), (4, 3)):
        for said in flows.folder.glob("*.said"):
            said.unlink()
        (flows.folder / "starts.log").unlink(missing_ok=True)
        done = killed_command(repo, number, when, "run", "flows.py:reviews", "x")
        assert was_killed(done), done.err
        run = next(r["id"] for r in cli("list", "--runs", "--active", "--json").json["runs"])
        answer_all(cli)
        assert was_killed(killed_command(repo, later, when, "resume", run))
        assert drive(cli, run) == "deployed"
        starts = [start for start in flows.starts if start.startswith("start ")]
        # The second round of coder and reviewer is a step of its own.
        assert sorted(starts) == sorted(f"start {name}" for name in ("architect", *("coder", "reviewer") * 2, "deployer"))  # fmt: skip
        asked = [gate.title for gate in gitgate.list(all=True) if str(gate.details["key"]).startswith(run)]
        assert sorted(asked) == ["Approve architecture?", "Approve deployment?", "Which authentication?"]


def drive(cli: Command, run: str) -> str:
    """Go on and answer until it is over."""
    for _ in range(12):
        ended = cli("resume", run)
        if ended.code != 8:
            assert ended.code == 0, ended.err
            return ended.out.strip()
        answer_all(cli)
    raise AssertionError("it waits for ever")


def answer_all(cli: Command) -> None:
    for gate in cli("list", "--awaiting", "--json", code=0).json["gates"]:
        answer = ["OAuth2"] if gate["questions"][0]["type"] == "text" else ["--approve"]
        cli("respond", gate["id"], *answer, code=0)


def test_the_first_flow_of_the_page_runs(repo: Clone, cli: Command) -> None:
    """As `docs/flows.md` has it: its ten lines, its agent, and what is typed."""
    page = (Path(__file__).parents[2] / "docs" / "flows.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    setting, typed = (block.partition("```")[0] for block in page.split("```bash\n")[1:3])
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    repo.write("flows.py", code)
    repo.git(*shlex.split(setting)[1:])
    codes = {"run": 8, "list": 0, "respond": 0, "resume": 0}
    run, out = "", ""
    for line in typed.splitlines():
        words = [run if word == "RUN" else word for word in shlex.split(line)[2:]]
        out = cli(*words, code=codes[words[0]]).out
        run = run or cli("list", "--runs", "--json", code=0).json["runs"][0]["id"]
    assert out == "merged\n"
    assert repo.path.joinpath("work.txt").read_text() == "done\n"


def test_a_file_that_is_not_there_is_said_so(repo: Clone, cli: Command) -> None:
    """Not that it is left out of what Git keeps."""
    said = cli.quick("run", "nope.py", cwd=repo.path, code=2)
    assert "there is no file" in said.err
    assert "git gate run FILE[:NAME]" in said.err
