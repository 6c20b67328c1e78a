"""Agents: the hooks that make Claude Code ask through gates, in the form of its settings, and where their shim is.

A resumed agent gets them from the machine that starts it, through `--settings`: what a working tree says of hooks is off.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

SHIM = "hooks/gitgate-hook"
# Event: what it is called for, and for how many seconds. Beyond them the program goes on as if nothing had been said.
EVENTS: dict[str, tuple[str, str, int]] = {
    "PreToolUse": ("pre-tool-use", "*", 180),
    "PostToolUse": ("post-tool-use", "*", 60),
    "Stop": ("stop", "", 120),
    "SessionEnd": ("session-end", "", 30),
}


def plugin_folder() -> Path:
    """The plugin as it is installed: in a wheel inside the package, in a working copy at its top."""
    package = Path(__file__).parents[2]
    inside = package / "plugin"
    return inside if inside.is_dir() else package.parent / "plugin"


def hook_settings(command: str, program: Sequence[str] = ()) -> dict[str, object]:
    """The hooks in the form of Claude Code's settings: each runs `command`, the event's name and `program` in a shell."""
    found: dict[str, object] = {}
    for event, (name, matcher, seconds) in EVENTS.items():
        line = " ".join([command, name, *map(shlex.quote, program)])
        # A shim that is not there exits otherwise, and then the call would be made.
        line += " || exit 2" if event == "PreToolUse" else ""
        entry = {"hooks": [{"type": "command", "command": line, "timeout": seconds}]}
        found[event] = [{"matcher": matcher, **entry} if matcher else entry]
    return found


def hooks(program: Sequence[str] = ()) -> dict[str, object]:
    """The hooks for an agent that this machine starts: the shim in its place, and this very installation behind it.

    -P: no directory takes part in finding our own code; the agent's may hold anything.
    """
    shim = shlex.quote(str(plugin_folder() / SHIM))
    return hook_settings(f"sh {shim}", program or (sys.executable, "-P", "-m", "gitgate"))
