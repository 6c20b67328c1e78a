"""Surfaces: the hooks of an agent's program. What Claude Code calls while it works: `git gate hook claude-…`.

Before a tool is used, a question becomes a gate and a call that needs approval waits. After `git gate ask` the run ends.
At a stop, last words that ask become a gate. When it is over, the conversation is saved. Whatever goes wrong before a tool
is used, the call is not made: it is denied, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import GateError
from . import after, before
from . import after as endings
from .event import HookEvent, HookReply, read_event

HOOKS: dict[str, Callable[[HookEvent], HookReply]] = {
    "claude-pre-tool-use": before.pre_tool_use,
    "claude-post-tool-use": after.post_tool_use,
    "claude-stop": endings.run_stopped,
    "claude-session-end": endings.session_end,
}
BEFORE = "claude-pre-tool-use"


def run_hook(name: str, raw: bytes, env: Mapping[str, str], cwd: Path) -> HookReply:
    """What the hook of that name answers. It never raises: an exception would let the call pass."""
    try:
        event = read_event(raw, env, cwd)
        try:
            return HOOKS[name](event)
        finally:
            event.close()
    except GateError as failed:
        words = f"{failed.message}{f' ({failed.hint})' if failed.hint else ''}"
    except Exception as bug:  # noqa: BLE001 - the program goes on as if the hook had said yes
        words = f"a bug in git gate: {type(bug).__name__}: {bug}"
    if name == BEFORE:
        return before.deny(f"git gate cannot tell whether this call may be made, so it is not: {words}")
    return HookReply(json.dumps({"systemMessage": f"git gate: {words}"}))
