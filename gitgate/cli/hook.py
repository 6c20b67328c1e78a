"""Command line: `git gate hook NAME`: what the shims in `hooks/` call. Each name is a function of a module, loaded when called."""

from __future__ import annotations

from importlib import import_module

import click

from ..errors import Usage
from .screen import Screen, verb

# name: (module, function). The function takes a Screen and the arguments, and gives back an exit code.
HOOKS: dict[str, tuple[str, str]] = {
    "post-receive": ("gitgate.cli.hook_receive", "post_receive"),
    "pre-receive": ("gitgate.cli.hook_receive", "pre_receive"),
    "runner": ("gitgate.cli.hook_receive", "runner"),
}


@click.command("hook", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@verb
def hook_command(screen: Screen, name: str, args: tuple[str, ...]) -> int:
    """What the hook shims call; nothing that a person types."""
    if name not in HOOKS:
        raise Usage(f"there is no hook {name!r}", hint=f"known are {', '.join(HOOKS)}")
    module, function = HOOKS[name]
    return int(getattr(import_module(module), function)(screen, args))
