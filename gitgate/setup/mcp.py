"""Setup: `git gate mcp` registered with a client, in the file of the project in which that client looks for servers. It is to be
committed, so that every clone's agents have the tools. Whatever else stands there stays.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..context.desk import Desk
from ..errors import Failure
from .steps import Step, put_text, take_away, text_of, top_of

SERVER = "gitgate"
COMMAND, ARGUMENTS = "git-gate", ["mcp"]
BEGIN, END = "# git-gate: begin", "# git-gate: end"


class McpClient(NamedTuple):
    """A client: how it is called, its file, under which name that has servers, and one of them in its form."""

    name: str
    program: str
    file: str
    under: str
    entry: Mapping[str, object]
    then: str


PLAIN: Mapping[str, object] = {"command": COMMAND, "args": ARGUMENTS}
TYPED: Mapping[str, object] = {"type": "stdio", **PLAIN}
CLIENTS: tuple[McpClient, ...] = (
    McpClient(
        "claude",
        "Claude Code",
        ".mcp.json",
        "mcpServers",
        TYPED,
        "it asks once whether the project's servers may start",
    ),
    McpClient(
        "codex",
        "Codex",
        ".codex/config.toml",
        "mcp_servers",
        PLAIN,
        "it starts them in a project that it trusts: codex --trust",
    ),
    McpClient(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        "mcpServers",
        PLAIN,
        "it starts them in a folder that it trusts",
    ),
    McpClient(
        "opencode",
        "opencode",
        "opencode.json",
        "mcp",
        {"type": "local", "command": [COMMAND, *ARGUMENTS], "enabled": True},
        "it starts them by itself",
    ),
    McpClient(
        "vscode", "VS Code", ".vscode/mcp.json", "servers", TYPED, "it asks whether the server is trusted"
    ),
)
NAMES = tuple(client.name for client in CLIENTS)


def mcp_steps(desk: Desk, names: Sequence[str]) -> list[Step]:
    return [registered(desk, client) for client in CLIENTS if client.name in names]


def mcp_removal(desk: Desk, names: Sequence[str] = NAMES) -> list[Step]:
    if desk.repo.top is None:
        return []
    return [taken_out(desk, client) for client in CLIENTS if client.name in names]


def registered(desk: Desk, client: McpClient) -> Step:
    place = top_of(desk) / client.file
    text = text_of(place)
    wanted = with_server(text, client)
    means = f"{client.program} has git gate's tools: {client.then} (commit it)"
    return Step(f"{SERVER} in {client.file}", means, text == wanted, lambda: put_text(place, wanted))


def taken_out(desk: Desk, client: McpClient) -> Step:
    top = top_of(desk)
    place = top / client.file
    text = text_of(place)
    without = without_server(text, client) if text else text

    def take() -> None:
        if without.strip():
            put_text(place, without)
        else:
            take_away(place, top)

    return Step(f"{SERVER} in {client.file}", "taken away; other servers stay", text == without, take)


def with_server(text: str, client: McpClient) -> str:
    if client.file.endswith(".toml"):
        return with_table(text, client)
    here = parse_client_settings(text, client)
    servers = here.get(client.under, {})
    if servers.get(SERVER) == dict(client.entry):
        return text
    return written({**here, client.under: {**servers, SERVER: dict(client.entry)}})


def without_server(text: str, client: McpClient) -> str:
    if client.file.endswith(".toml"):
        return re.sub(rf"\n?{BEGIN}\n.*?{END}\n", "", text, flags=re.DOTALL)
    here = parse_client_settings(text, client)
    servers = here.get(client.under, {})
    if SERVER not in servers:
        return text
    left = {name: one for name, one in servers.items() if name != SERVER}
    rest = {name: one for name, one in here.items() if name != client.under or left}
    if left:
        rest[client.under] = left
    return written(rest) if rest else ""


def written(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def parse_client_settings(text: str, client: McpClient) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as wrong:
        raise Failure(
            f"{client.file} is not JSON, so that nothing can be added to it: {wrong}",
            hint=f'put it there yourself, under {client.under}: "{SERVER}": {json.dumps(dict(client.entry))}',
        ) from wrong
    if not isinstance(found, dict) or not isinstance(found.get(client.under, {}), dict):
        raise Failure(
            f"{client.file} is not in the form of {client.program}'s settings: {client.under} is no object",
            hint="mend it, and run this again",
        )
    return found


def with_table(text: str, client: McpClient) -> str:
    """The file with our table at its end, between marks: no writer of TOML takes part, so that every other line stays as it is."""
    try:
        known = tomllib.loads(text).get(client.under, {})
    except tomllib.TOMLDecodeError as wrong:
        raise Failure(f"{client.file} is not TOML: {wrong}", hint="mend it, and run this again") from wrong
    if isinstance(known, dict) and known.get(SERVER) == dict(client.entry):
        return text
    without = without_server(text, client)
    if isinstance(known, dict) and SERVER in known and without == text:
        raise Failure(
            f"{client.file} has another server called {SERVER}",
            hint=f"take [{client.under}.{SERVER}] out there",
        )
    entry = "\n".join(f"{name} = {json.dumps(value)}" for name, value in client.entry.items())
    before = f"{without.rstrip()}\n\n" if without.strip() else ""
    return f"{before}{BEGIN}\n[{client.under}.{SERVER}]\n{entry}\n{END}\n"
