"""`git gate mcp` as clients have it: the installed program over standard input and output, called by the protocol's own library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import ElicitResult

# The protocol's library takes a second or two to load: these tests load it, and not whoever collects them.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

# What clients spoke until now, and what they will: in the one a server may ask, in the other it is called once more.
ERAS = ("legacy", "auto")
Talk = Callable[["Client"], Awaitable[None]]
Shown = list[tuple[str, dict[str, Any]]]


def talk(
    place: Path,
    to_do: Talk,
    *,
    era: str = "auto",
    fills: Callable[[], Any] | None = None,
    shown: Shown | None = None,
) -> None:
    """Start the server as a client does, in `place`; `fills` is whoever sits at the client and fills forms in."""
    import anyio
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp_types import ElicitResult

    async def fill(_context: object, form: Any) -> ElicitResult:
        if shown is not None:
            shown.append((form.message, dict(form.requested_schema)))
        if fills is None:
            await anyio.sleep_forever()
        said = fills() if fills is not None else None
        return ElicitResult(action="accept", content=said) if said else ElicitResult(action="decline")

    async def run() -> None:
        started = StdioServerParameters(command=str(COMMAND), args=["mcp"], cwd=place, env=dict(os.environ))
        sits_there: Any = fill if fills or shown is not None else None
        client = Client(stdio_client(started), mode=era, elicitation_callback=sits_there)
        with anyio.fail_after(150):
            async with client:
                await to_do(client)

    anyio.run(run)


async def call(client: Client, name: str, **given: object) -> Any:
    return await client.call_tool(name, given)


def words(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("era", ERAS)
def test_a_client_asks_waits_and_hears_a_person(era: str, repo: Clone, cli: Command) -> None:
    """The id at once, progress while it waits, and then what the person said in their own shell."""
    told: list[float] = []

    async def heard_of(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        told.append(progress)

    import anyio
    from anyio import to_thread

    async def work(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["ask", "check", "wait", "withdraw", "list", "show"]
        asked = await call(client, "ask", prompt="Which?", options=["A", "B"])
        gate = asked.structured_content["id"]
        soon = await client.call_tool("wait", {"id": gate, "seconds": 3}, progress_callback=heard_of)
        assert soon.structured_content["state"] == "awaiting"
        assert told
        async with anyio.create_task_group() as both:
            both.start_soon(to_thread.run_sync, partial(cli, "respond", gate, "B", code=0))
            heard = await call(client, "wait", id=gate, seconds=120)
        assert (words(heard), heard.structured_content["answer"]["via"]) == ("B", "cli")

    talk(repo.path, work, era=era)


@pytest.mark.parametrize("era", ERAS)
def test_whoever_sits_at_the_client_proposes(era: str, repo: Clone, cli: Command) -> None:
    """They are shown the question while the call waits. What they say ends the call, and is nobody's approval."""
    shown: Shown = []

    async def work(client: Client) -> None:
        gate = (
            await call(client, "ask", prompt="Deploy to production?", type="approval")
        ).structured_content["id"]
        heard = await call(client, "wait", id=gate, seconds=120)
        assert "no answer" in words(heard)
        assert heard.structured_content["answer"] is None
        again = await call(client, "wait", id=gate, seconds=0)
        assert again.structured_content["proposal"]["value"] is True

    talk(repo.path, work, era=era, fills=lambda: {"answer": "approve"}, shown=shown)
    ((message, schema),) = shown
    assert message.startswith("Deploy to production?")
    assert schema["properties"]["answer"]["enum"] == ["approve", "reject"]
    (gate,) = cli("list", "--json", code=0).json["gates"]
    assert (gate["state"], gate["proposal"]["approved"]) == ("awaiting", False)


@pytest.mark.parametrize("era", ERAS)
def test_a_form_that_is_declined_is_no_answer(era: str, repo: Clone, cli: Command) -> None:
    """The call waits on, and the gate as well."""

    async def work(client: Client) -> None:
        gate = (await call(client, "ask", prompt="Which?")).structured_content["id"]
        heard = await call(client, "wait", id=gate, seconds=3)
        assert heard.structured_content == {"id": gate, "state": "awaiting", "answer": None, "proposal": None}

    talk(repo.path, work, era=era, fills=lambda: None)


def test_a_form_is_gone_when_the_gate_is_answered_elsewhere(repo: Clone, cli: Command) -> None:
    """Nobody has to close it for the call to come back with a person's answer."""
    import anyio
    from anyio import to_thread

    async def work(client: Client) -> None:
        gate = (await call(client, "ask", prompt="Which?")).structured_content["id"]
        async with anyio.create_task_group() as both:
            both.start_soon(to_thread.run_sync, partial(cli, "respond", gate, "Postgres", code=0))
            heard = await call(client, "wait", id=gate, seconds=120)
        assert words(heard) == "Postgres"

    shown: Shown = []
    talk(repo.path, work, era="legacy", shown=shown)
    assert len(shown) == 1


def test_it_speaks_of_nothing_but_the_protocol(repo: Clone) -> None:
    """Line by line, as any client may write it: standard output has answers alone, and it ends when the client hangs up."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    }
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list", "arguments": {}}},
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen([str(COMMAND), "mcp"], cwd=repo.path, stdin=pipe, stdout=pipe) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        said = []
        for line in lines:
            running.stdin.write(json.dumps(line).encode() + b"\n")
            running.stdin.flush()
            if "id" in line:
                said.append(json.loads(running.stdout.readline()))
        running.stdin.close()
        assert running.wait(60) == 0
    assert [one["id"] for one in said] == [1, 2]
    assert said[0]["result"]["serverInfo"]["name"] == "gitgate"
    assert said[1]["result"]["content"][0]["text"] == "Nothing waits."


def test_outside_of_a_repository_it_says_so(tmp_path: Path, cli: Command) -> None:
    said = cli("mcp", cwd=tmp_path, code=1)
    assert "repository" in said.err


def test_without_its_extra_it_names_the_command(repo: Clone, cli: Command) -> None:
    script = (
        "import sys; sys.modules['mcp'] = None; sys.modules['mcp.server.stdio'] = None\n"
        "from gitgate.cli.process import run; run()"
    )
    said = cli.scripted(script, "mcp", cwd=repo.path)
    assert said.code == 1
    assert "pip install 'git-gate[mcp]'" in said.err


def test_nothing_else_loads_it() -> None:
    """Neither another verb nor what the tools do: a second that nobody else pays."""
    script = "import gitgate.surfaces.mcp_server, gitgate.cli.main, gitgate.cli.verbs.init, sys; print('mcp' in sys.modules, 'anyio' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "False"]
