"""Agents: one adapter for each program that asks and is resumed.

A new agent is one file beside these and one line in `AGENTS`; whether we run inside one is asked in its order.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.session import SessionRef
from ..errors import Usage
from .agent import Agent
from .claude import Claude
from .codex import Codex
from .command import Command

AGENTS: dict[str, Agent] = {agent.name: agent for agent in (Claude(), Codex(), Command())}


def find(name: str) -> Agent:
    """The adapter of that name."""
    if name not in AGENTS:
        raise Usage(
            f"no agent is called {name!r}",
            hint=f"known are {', '.join(AGENTS)}; any other program is started by `command`",
        )
    return AGENTS[name]


def detect(env: Mapping[str, str]) -> SessionRef | None:
    """The conversation that this process runs inside, if any."""
    return next((found for agent in AGENTS.values() if (found := agent.detect(env))), None)
