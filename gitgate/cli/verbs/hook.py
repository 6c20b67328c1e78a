"""Command line: what other programs start: `git gate hook NAME`, for the shims in `hooks/`, and `git gate mcp`, for clients of that protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from ...errors import Usage
from .. import DONE, WAITING
from ..terminal import Screen, verb

# `git gate hook NAME`: what the shims in `hooks/` call. Each name is a function of a module, loaded when
# called.


# name: (module, function). The function takes a Screen and the arguments, and gives back an exit code.
HOOKS: dict[str, tuple[str, str]] = {
    "post-receive": ("gitgate.cli.verbs.hook", "post_receive"),
    "pre-receive": ("gitgate.cli.verbs.hook", "pre_receive"),
    "notify": ("gitgate.cli.verbs.notify", "send_all"),
    "dialog-window": ("gitgate.cli.verbs.desk", "show_here"),
    "dialog-terminal": ("gitgate.cli.verbs.desk", "ask_here"),
    "flow-question": ("gitgate.cli.verbs.run", "ask_and_go_on"),
    "runner": ("gitgate.cli.verbs.hook", "runner"),
    "claude-pre-tool-use": ("gitgate.cli.verbs.hook", "claude_pre_tool_use"),
    "claude-post-tool-use": ("gitgate.cli.verbs.hook", "claude_post_tool_use"),
    "claude-stop": ("gitgate.cli.verbs.hook", "claude_stop"),
    "claude-session-end": ("gitgate.cli.verbs.hook", "claude_session_end"),
    "claude-share-session": ("gitgate.cli.verbs.hook", "claude_share_session"),
}


@click.command("hook", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@verb
def hook_command(screen: Screen, name: str, args: tuple[str, ...]) -> int:
    """What the hook shims call; nothing that a person types."""
    if name not in HOOKS:
        raise Usage(f"there is no hook {name!r}", hint=f"git gate hook NAME: known are {', '.join(HOOKS)}")
    module, function = HOOKS[name]
    return int(getattr(import_module(module), function)(screen, args))


def pre_receive(screen: Screen, args: tuple[str, ...]) -> int:
    from .. import receive

    del args
    return receive.pre_receive(screen.env, sys.stdin.buffer.read())


def post_receive(screen: Screen, args: tuple[str, ...]) -> int:
    from .. import receive

    del args
    return receive.post_receive(screen.env, b"")


def runner(screen: Screen, args: tuple[str, ...]) -> int:
    """Started by a person's command, which is consent enough."""
    from .. import receive

    del args
    return receive.act_on_calls(screen.desk())


MOST_BYTES = 64 << 20


def hook_of(name: str) -> Callable[[Screen, tuple[str, ...]], int]:
    """A hook by its name; the answer goes to standard output, and nothing else does."""

    def hook(screen: Screen, _args: tuple[str, ...]) -> int:
        from ...surfaces.agent_hooks import run_hook

        reply = run_hook(name, sys.stdin.buffer.read(MOST_BYTES), screen.env, Path.cwd())
        if reply.out:
            print(reply.out)
        if reply.told:
            screen.say(reply.told)
        return WAITING if reply.told else DONE

    return hook


claude_pre_tool_use = hook_of("claude-pre-tool-use")
claude_post_tool_use = hook_of("claude-post-tool-use")
claude_stop = hook_of("claude-stop")
claude_session_end = hook_of("claude-session-end")


def claude_share_session(screen: Screen, args: tuple[str, ...]) -> int:
    """Push the sessions of these gates; started in the background at a conversation's end."""
    from ...acts.needs import publish_sessions

    publish_sessions(screen.desk(), list(args))
    return DONE


# `git gate mcp` serves gates to clients of the Model Context Protocol.


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
    from ...surfaces.mcp_server import serve_mcp

    if screen.interactive:
        raise Usage(
            "this is for programs: a client starts it, and talks to it in JSON",
            hint="register it: git gate init --mcp claude",
        )
    screen.desk()  # where there is no repository it says so, before a client waits for it
    serve_mcp(screen.env, Path(screen.directory) if screen.directory else Path.cwd())
