"""Command line: `git gate mcp` serves gates to clients of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from ..terminal.screen import Screen, verb


@click.command("mcp")
@verb
def mcp_command(screen: Screen) -> None:
    """Serve gates to a client of the Model Context Protocol, on standard input and output, until it hangs up.

    Its tools ask, check, wait, withdraw, list and show. None answers. What is asked through it is asked by an agent, and asking
    gives the gate's id at once. While `wait` waits, a client that can show a form asks whoever sits there. That is a proposal for a
    person, or an answer that nobody confirmed where the policy takes such.

    A client starts it by itself, once it is registered by `git gate init --mcp claude`, or `--mcp vscode --mcp codex`. It needs:
    pip install 'git-gate[mcp]'

    \b
    git gate mcp
    """
    from ...errors import Usage
    from ...surfaces.mcp_server import serve_mcp

    if screen.interactive:
        raise Usage(
            "this is for programs: a client starts it, and talks to it in JSON",
            hint="register it: git gate init --mcp claude",
        )
    screen.desk()  # where there is no repository it says so, before a client waits for it
    serve_mcp(screen.env, Path(screen.directory) if screen.directory else Path.cwd())
