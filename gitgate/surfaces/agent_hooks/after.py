"""Surfaces: after a tool was used. A run that has asked ends there; a call that was approved is told what came of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ...core import guard
from ...core.calls import ASK_TOOL
from ...errors import NotARepository
from .event import NOTHING, Event, Reply

if TYPE_CHECKING:
    from ...core.model import Gate

OURS = re.compile(r"mcp__.*git-?_?gate.*", re.IGNORECASE)
MOST_RESULT = 6000


def post_tool_use(event: Event) -> Reply:
    if event.env.get("GITGATE_GATE") and event.tool != ASK_TOOL:
        told = made(event)
        if told.out:
            return told
    if not may_have_asked(event):
        return NOTHING
    from ...service.calling import waiting

    try:
        desk = event.desk()
    except NotARepository:
        return NOTHING
    found = [gate for gate in waiting(desk, event.session) if has_asked(event, gate)]
    if not found:
        return NOTHING
    words = f"gate {found[0].id} waits for an answer; the run goes on with it"
    return Reply(json.dumps({"continue": False, "stopReason": words}))


def may_have_asked(event: Event) -> bool:
    """Whether the call can have opened a gate: looked at before anything is read."""
    if event.subagent:
        return False
    if event.tool in ("Bash", "PowerShell"):
        return "gate" in str(event.given.get("command", "")) or "ask" in str(event.given.get("command", ""))
    return OURS.fullmatch(event.tool) is not None


def has_asked(event: Event, gate: Gate) -> bool:
    """Whether this call opened that gate: it says so, or its command is one that asks."""
    return guard.asks(str(event.given.get("command", ""))) or gate.id in json.dumps(event.response)


def made(event: Event) -> Reply:
    """What an approved call gave. In a turn with several calls the program may show the agent no result of it."""
    from ...service.calling import gate_of_call

    gate = gate_of_call(event.desk(), event.call)
    if gate is None:
        return NOTHING
    text = (
        event.response if isinstance(event.response, str) else json.dumps(event.response, ensure_ascii=False)
    )
    clipped = (
        text
        if len(text) <= MOST_RESULT
        else f"{text[:MOST_RESULT]} … ({len(text) - MOST_RESULT} more characters)"
    )
    words = f"The call that gate {gate.id} approved was made once, just now. Its result: {clipped}"
    said = {"hookEventName": "PostToolUse", "additionalContext": words}
    return Reply(json.dumps({"hookSpecificOutput": said}))
