"""Command line: the hooks of an agent's program. They talk to it alone, in its own form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from . import exits

if TYPE_CHECKING:
    from .screen import Screen

MOST_BYTES = 64 << 20
PREFIX = "claude-"


def hook_of(name: str) -> Callable[[Screen, tuple[str, ...]], int]:
    """A hook by its name; the answer goes to standard output, and nothing else does."""

    def hook(screen: Screen, _args: tuple[str, ...]) -> int:
        from ..surfaces.agent_hooks import run

        reply = run(name, sys.stdin.buffer.read(MOST_BYTES), screen.env, Path.cwd())
        if reply.out:
            print(reply.out)
        return exits.DONE

    return hook


claude_pre_tool_use = hook_of("claude-pre-tool-use")
claude_post_tool_use = hook_of("claude-post-tool-use")
claude_stop = hook_of("claude-stop")
claude_session_end = hook_of("claude-session-end")


def claude_share_session(screen: Screen, args: tuple[str, ...]) -> int:
    """Push the sessions of these gates; started in the background at a conversation's end."""
    from ..service.calling import publish_sessions

    publish_sessions(screen.desk(), list(args))
    return exits.DONE
