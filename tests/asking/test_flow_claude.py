"""A flow of three agents, with the real Claude Code: one is answered in its own session, and a yes in another clone goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from support.lab.fixtures import MakeMachine, MakeModel
from support.lab.model import Reply
from support.lab.office import Office
from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

from .conftest import MakeOffice
from .test_join_claude import enter, settle_in

pytestmark = [pytest.mark.claude, pytest.mark.slow, pytest.mark.timeout(300)]

FLOW = """
import gitgate


@gitgate.flow
def release(version: str):
    chosen = gitgate.run("architect", f"ARCHITECT-GOES: prepare {version}.").summary
    built = gitgate.run("coder", f"CODER-GOES: {chosen}")
    if not gitgate.pause(f"Release {version} on {chosen}?"):
        gitgate.stuck("not released")
    return [chosen, built.status, gitgate.run("deployer", "DEPLOYER-GOES").summary]
"""
AGENTS = {
    "architect": "---\nname: architect\nmodel: inherit\n---\nYou are the ARCHITECT-OF-THIS-FILE.\n",
    "coder": "---\nname: coder\ntools: Read, Bash\n---\nYou are the CODER-OF-THIS-FILE.\n",
    "deployer": "---\nname: deployer\n---\nYou are the DEPLOYER-OF-THIS-FILE.\n",
}
NEEDS = json.dumps(
    {"status": "NEEDS_HUMAN", "question": "Which database?", "options": ["Postgres", "SQLite"]}
)
WRITES = 'mkdir -p .agents/signals && echo \'{"status": "BUILT"}\' > .agents/signals/coder.json'
TAKEN = ("mcp__gitgate__outcome", {"value": "SQLite", "summary": "One file is enough."})
REPLIES = (
    Reply(f"I looked.\n{NEEDS}", when="ARCHITECT-GOES"),
    Reply(
        "I note it.",
        [TAKEN],
        when="TAKE-SQLITE",
    ),
    Reply("NOTED.", when="It counts when the person"),
    # On a busy machine the server of that tool may not be there yet.
    Reply("Again.", [TAKEN], when="No such tool available", repeat=True, delay=1.5),
    Reply('Decided.\n{"status": "DONE", "summary": "SQLite"}', when="answer"),
    Reply("I build.", [("Bash", {"command": WRITES})], when="CODER-GOES: SQLite"),
    Reply('Deployed.\n{"status": "DONE", "summary": "it is out"}', when="DEPLOYER-GOES"),
    Reply("Over.", repeat=True),
)


def system_of(request: dict[str, Any]) -> str:
    return json.dumps(request["system"])


def is_first(request: dict[str, Any]) -> bool:
    """Whether a conversation begins with it."""
    return all(said["role"] != "assistant" for said in request["messages"])


def test_three_agents_a_join_and_a_yes_from_another_clone(
    machine: MakeMachine,
    scripted: MakeModel,
    bare: Clone,
    clone_of: Callable[..., Clone],
    cli: Command,
    pty_cli: Callable[..., Terminal],
) -> None:
    """Each agent is started once; the one that needed somebody goes on in the session that a person joined."""
    model = scripted(*REPLIES)
    ann = Office(machine("ann-home", model), clone_of(bare, "ann"))
    bob = Office(machine("bob-home", model), clone_of(bare, "bob"))
    program = json.dumps([*model.reach, str(ann.machine.binary)])
    bare.git("config", "gitgate.agent.claude.program", program)
    for clone in (bare, ann.clone):
        clone.git("config", "gitgate.agent.claude.arguments", '["--allowedTools", "Bash"]')
    ann.gate("init", "--server", clone=bare)
    for office in (ann, bob):
        office.clone.git("config", "gitgate.session", "push")
        office.gate("init", "--no-resume")
    files = {f".claude/agents/{name}.md": text for name, text in AGENTS.items()}
    ann.clone.commit("flow", **{"flows.py": FLOW, **files})
    ann.clone.git("push", "-q", "origin", "main")

    run = ann.gate("run", "flows.py", "1.4", "--json", code=8).json["id"]
    asked = ann.waiting()
    assert asked["questions"][0]["prompt"] == "Which database?"
    assert asked["run"]["id"] == run
    settle_in(ann)
    terminal = pty_cli("join", asked["id"], cwd=ann.clone.path, env=ann.env, columns=120)
    terminal.expect("Which database", timeout=60)
    enter(terminal, "TAKE-SQLITE")
    terminal.expect("NOTED.", timeout=60)
    enter(terminal, "/exit")
    terminal.expect("is that your answer?", timeout=60)
    terminal.line("y")
    terminal.finish(code=0)

    until(partial(stands, bob, run, "waiting_human"), 60)
    approval = bob.waiting()
    assert approval["questions"][0]["prompt"] == "Release 1.4 on SQLite?"
    said = bob.gate("respond", approval["id"], "--approve")
    assert "its hook resumes it" in said.err
    until(partial(stands, bob, run, "completed"), 60)
    shown = bob.show(run)
    assert shown["result"] == ["SQLite", "BUILT", "it is out"]
    assert bob.show(asked["id"])["answer"]["via"] == "join"

    by_agent = {
        name: [r for r in model.requests() if f"{name.upper()}-OF-THIS-FILE" in system_of(r)]
        for name in AGENTS
    }
    begun = {name: [r for r in rows if is_first(r)] for name, rows in by_agent.items()}
    assert {name: len(rows) for name, rows in begun.items()} == dict.fromkeys(AGENTS, 1)
    for request in by_agent["coder"]:
        assert {"Read", "Bash"} <= {*request["tools"]} <= {"Read", "Bash", "DeferredToolPlaceholder"}
    assert sum(map(len, by_agent.values())) == len(model.requests())
    last = json.dumps(by_agent["architect"][-1]["messages"])
    for words in ("ARCHITECT-GOES", "TAKE-SQLITE", "One file is enough."):
        assert words in last
    ann.gate("verify", clone=bare)


def stands(office: Office, run: str, wanted: str) -> bool:
    """Whether the run has come so far, as this clone knows it."""
    office.gate("sync", code=None)
    shown = office.gate("show", run, "--json", code=None)
    gates = office.gate("list", "--awaiting", "--json", code=None).json["gates"]
    waits = len(gates) == 1 and "Release" in gates[0]["title"]
    return bool(shown.json["status"] == wanted and (wanted != "waiting_human" or waits))


ASKS = """
import gitgate


@gitgate.flow(human_timeout="2d", on_timeout="remind")
def choose():
    return gitgate.run("chooser", "CHOOSER-GOES").summary


@gitgate.flow(human_escalation=False)
def alone():
    said = gitgate.run("chooser", "CHOOSER-GOES")
    return [said.status, said.reason]
"""
CHOOSER = {".claude/agents/chooser.md": "---\nname: chooser\n---\nYou are the CHOOSER-OF-THIS-FILE.\n"}
DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": name, "description": name} for name in ("Postgres", "SQLite")],
}
CALL = Reply("I ask.", [("AskUserQuestion", {"questions": [DATABASE]})], when="CHOOSER-GOES")


def test_a_question_by_its_own_tool_is_answered_in_that_very_call(office: MakeOffice) -> None:
    """On the terms of the flow; and the project's rules on tools hold in a flow as they do elsewhere."""
    touch = [("Bash", {"command": "git gate list > listed.txt; touch made.txt"})]
    here = office(
        CALL,
        Reply("Taken.", touch, when='"Which database\\?"="SQLite"'),
        Reply('Done.\n{"status": "DONE", "summary": "SQLite it is"}', repeat=True),
    )
    here.clone.git("config", "gitgate.agent.claude.arguments", '["--allowedTools", "Bash"]')
    rules = json.dumps({"permissions": {"deny": ["Bash(git gate list:*)"]}})
    here.clone.commit("flow", **{"flows.py": ASKS, ".claude/settings.json": rules, **CHOOSER})
    run = here.gate("run", "flows.py:choose", "--json", code=8).json["id"]
    gate = here.only()
    assert gate["run"] == {"id": run, "flow": "choose", "step": "run:chooser#1"}
    assert gate["asked"]["agent"] == "chooser"
    assert gate["on_timeout"] == "remind"
    assert gate["deadline"]
    here.respond(gate["id"], "SQLite")
    assert here.gate("resume", run).out == "SQLite it is\n"
    assert not (here.clone.path / "made.txt").exists(), "a denied call was made"
    firsts = [r for r in here.machine.model.requests() if is_first(r)]
    assert len(firsts) == 1


def test_a_step_that_asks_nobody_hears_what_the_agent_needs(office: MakeOffice) -> None:
    """Neither its tool nor its last words open a gate, with hooks or without; it is not started a second time."""
    here = office(CALL, Reply('{"status": "NEEDS_HUMAN", "reason": "Which database?"}', repeat=True))
    here.clone.commit("flow", **{"flows.py": ASKS, **CHOOSER})
    done = here.gate("run", "flows.py:alone")
    assert json.loads(done.out) == ["NEEDS_HUMAN", "Which database?"]
    assert here.gates() == []
    assert "asks nobody in this step" in here.shown
    assert len(here.machine.model.requests()) == 2
