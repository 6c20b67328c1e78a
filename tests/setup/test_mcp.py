"""`git gate init --mcp`: our server in the file where each client looks for servers, beside whatever else stands there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gitgate.setup.parts import CLIENTS, NAMES, McpClient
from support.testbed.command import Command
from support.testbed.repositories import Clone

ENTRY = {"claude": ("git-gate", ["mcp"]), "opencode": (["git-gate", "mcp"], None)}


def servers(client: McpClient, place: Path) -> dict[str, Any]:
    text = (place / client.file).read_text("utf-8")
    found: dict[str, Any] = (tomllib.loads(text) if client.file.endswith(".toml") else json.loads(text))[
        client.under
    ]
    return found


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_it_is_registered_and_taken_out(client: McpClient, repo: Clone, cli: Command) -> None:
    """Twice is once; others' servers and settings stay as they are."""
    if client.file.endswith(".toml"):
        others = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "other"\n'
    else:
        others = json.dumps({"mine": 1, client.under: {"other": {"command": "other"}}}, indent=2) + "\n"
    repo.write(client.file, others)
    cli.quick("init", "--mcp", client.name, code=0)
    found = servers(client, repo.path)
    words = found["gitgate"]["command"]
    said = [words, *found["gitgate"]["args"]] if isinstance(words, str) else words
    assert said == ["git-gate", "mcp"]
    assert found["other"] == {"command": "other"}
    once = (repo.path / client.file).read_text("utf-8")
    again = cli.quick("init", "--mcp", client.name, "--json", code=0).json["steps"]
    assert all(step["done"] for step in again)
    assert (repo.path / client.file).read_text("utf-8") == once
    cli.quick("init", "--remove", "--mcp", client.name, code=0)
    assert (repo.path / client.file).read_text("utf-8").rstrip() == others.rstrip()


def test_files_of_its_own_go_with_it(repo: Clone, cli: Command) -> None:
    """Where nothing else stood in them; `init --remove` takes them out as well."""
    cli.quick("init", *(word for name in NAMES for word in ("--mcp", name)), code=0)
    assert all((repo.path / client.file).is_file() for client in CLIENTS)
    cli.quick("init", "--remove", code=0)
    assert not any((repo.path / client.file).exists() for client in CLIENTS)
    assert not (repo.path / ".vscode").exists()


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("vscode", ".vscode/mcp.json", "{// comment\n}"),
        ("claude", ".mcp.json", '{"mcpServers": []}'),
        ("codex", ".codex/config.toml", "= no"),
        ("codex", ".codex/config.toml", '[mcp_servers.gitgate]\ncommand = "somebody-elses"\n'),
    ],
)
def test_what_cannot_be_added_to_stays(name: str, file: str, text: str, repo: Clone, cli: Command) -> None:
    """It is named, with what to do; nothing is overwritten."""
    repo.write(file, text)
    said = cli.quick("init", "--mcp", name, code=1)
    assert file in said.err
    assert (repo.path / file).read_text("utf-8") == text


def test_a_dry_run_writes_nothing(repo: Clone, cli: Command) -> None:
    cli.quick("init", "--mcp", "gemini", "--dry-run", code=0)
    assert not (repo.path / ".gemini").exists()


def test_a_person_who_types_it_is_told(repo: Clone, pty_cli: Any) -> None:
    """It is for programs, and names the command that registers it."""
    terminal = pty_cli("mcp", cwd=repo.path)
    terminal.expect("git gate init --mcp claude")
    terminal.finish(code=2)
