"""Surfaces: an agent's hooks, called as Claude Code calls them."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gitgate.context import open_desk
from gitgate.context.targets import summaries
from gitgate.surfaces.agent_hooks import run_hook
from support.testbed.repositories import Clone

SESSION = "5d14f5dd-8cd5-4721-9788-2e415584672d"


def question(text: str = "Which database?", *labels: str, several: bool = False) -> dict[str, Any]:
    options = [
        {"label": label, "description": f"about {label}"} for label in labels or ("Postgres", "SQLite")
    ]
    return {"question": text, "header": "Database", "multiSelect": several, "options": options}


@dataclass
class Agent:
    """One conversation in one repository, as its hooks see it."""

    clone: Clone
    session: str = SESSION
    env: dict[str, str] = field(default_factory=lambda: {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"})

    def event(self, name: str, **more: object) -> dict[str, Any]:
        """What Claude Code puts on a hook's standard input."""
        return {
            "session_id": self.session,
            "transcript_path": str(self.clone.path.parent / f"{self.session}.jsonl"),
            "cwd": str(self.clone.path),
            "hook_event_name": name,
            "permission_mode": "default",
            **more,
        }

    def hook(self, name: str, event: Mapping[str, object] | bytes) -> dict[str, Any]:
        raw = event if isinstance(event, bytes) else json.dumps(event).encode()
        return dict(run_hook(f"claude-{name}", raw, {**os.environ, **self.env}, Path.cwd()).value)

    def before(self, tool: str, call: str = "", **more: Any) -> dict[str, Any]:
        """The decision on a call, made in `cwd` if that is given; empty when there is nothing to say."""
        place = {"cwd": more.pop("cwd")} if "cwd" in more else {}
        subagent = {"agent_id": "a1", "agent_type": "x"} if more.pop("subagent", False) else {}
        event = self.event(
            "PreToolUse", tool_name=tool, tool_use_id=call or new_call(), tool_input=more, **subagent, **place
        )
        return dict(self.hook("pre-tool-use", event).get("hookSpecificOutput", {}))

    def ask(self, *questions: dict[str, Any], call: str = "", **more: Any) -> dict[str, Any]:
        return self.before("AskUserQuestion", call, questions=list(questions or (question(),)), **more)

    def gates(self) -> list[str]:
        """The ids of the gates, the oldest first."""
        desk = open_desk(self.clone.path, os.environ)
        return [found.id for found in sorted(summaries(desk), key=lambda found: found.at)]


def new_call() -> str:
    return f"toolu_{uuid.uuid4().hex[:24]}"


@pytest.fixture
def agent(repo: Clone) -> Agent:
    return Agent(repo)
