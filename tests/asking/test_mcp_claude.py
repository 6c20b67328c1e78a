"""`git gate mcp` with the real Claude Code: registered by one command, it calls the tools, and a person answers beside it."""

from __future__ import annotations

import threading
import time

import pytest

from support.lab.model import Reply
from support.lab.office import Office
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import MakeOffice

pytestmark = [pytest.mark.claude, pytest.mark.slow, pytest.mark.timeout(180)]

TOOL = "mcp__gitgate__"
# It does not wait for servers before its first turn; where it has a tool that does, a model is told to call that.
READY = Reply("I wait for the tools.", [("WaitForMcpServers", {})], when="GO-ON")


def test_it_asks_by_the_tool(office: MakeOffice) -> None:
    """Its question is a gate with the work, whose id it is told at once; the run goes on."""
    question = {"prompt": "Which database?", "options": ["Postgres", "SQLite"]}
    ask = Reply("I ask.", [(f"{TOOL}ask", question)])
    look = Reply("I look.", [(f"{TOOL}list", {})], when="waits for a person")
    here = office(READY, ask, look, Reply("Over.", repeat=True))
    here.hooks = {}
    here.clone.write("draft.py", "half = 1\n")
    here.gate("init", "--mcp", "claude")
    result = here.run("GO-ON", *allowed(here, "ask", "list"))
    assert result["result"] == "Over.", result
    gate = here.only()
    assert (gate["state"], gate["title"], gate["delivery"]) == ("awaiting", "Which database?", "none")
    assert gate["asked"]["agent"].startswith("agent-claude-")
    assert gate["work"]["dirty"] is True
    assert gate["id"] in here.shown


def test_it_waits_for_a_person(office: MakeOffice, repo: Clone, cli: Command) -> None:
    """Within one turn: the call blocks, a person answers in their own shell, and the agent goes on with it."""
    gate = cli("ask", "Which database?", "-q", code=0).line
    wait = Reply("I wait.", [(f"{TOOL}wait", {"id": gate, "seconds": 120})])
    here = office(READY, wait, Reply("Over.", repeat=True))
    here.hooks = {}
    here.gate("init", "--mcp", "claude")

    def answer() -> None:
        waiting, until = repo.path / ".git" / "gitgate" / "waiting" / gate, time.monotonic() + 90
        while not waiting.exists() and time.monotonic() < until:
            time.sleep(0.05)
        here.respond(gate, "Postgres", "--note", "the cluster that we have")

    person = threading.Thread(target=answer)
    person.start()
    result = here.run("GO-ON", *allowed(here, "wait"))
    person.join(120)
    assert result["result"] == "Over.", result
    assert "the cluster that we have" in here.shown
    assert here.only()["answer"]["via"] == "cli"


def allowed(here: Office, *tools: str) -> tuple[str, ...]:
    """The project's servers, and these tools of ours without asking."""
    servers = ("--mcp-config", str(here.clone.path / ".mcp.json"), "--strict-mcp-config")
    return (*servers, "--allowedTools", ",".join(f"{TOOL}{tool}" for tool in tools))
