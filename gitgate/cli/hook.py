"""Command line: `git gate hook NAME`: what the shims in `hooks/` call. Each name is a function of a module, loaded when called."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from ..errors import Usage
from .screen import Screen, verb

# name: (module, function). The function takes a Screen and the arguments, and gives back an exit code.
HOOKS: dict[str, tuple[str, str]] = {
    "post-receive": ("gitgate.cli.hook", "post_receive"),
    "pre-receive": ("gitgate.cli.hook", "pre_receive"),
    "runner": ("gitgate.cli.hook", "runner"),
    "claude-pre-tool-use": ("gitgate.cli.hook_agent", "claude_pre_tool_use"),
    "claude-post-tool-use": ("gitgate.cli.hook_agent", "claude_post_tool_use"),
    "claude-stop": ("gitgate.cli.hook_agent", "claude_stop"),
    "claude-session-end": ("gitgate.cli.hook_agent", "claude_session_end"),
    "claude-share-session": ("gitgate.cli.hook_agent", "claude_share_session"),
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
    from . import receive

    del args
    return receive.pre_receive(screen.env, sys.stdin.buffer.read())


def post_receive(screen: Screen, args: tuple[str, ...]) -> int:
    from . import receive

    del args
    return receive.post_receive(screen.env, b"")


def runner(screen: Screen, args: tuple[str, ...]) -> int:
    """Started by a person's command, which is consent enough."""
    from . import receive

    del args
    return receive.act_on_calls(screen.desk())
