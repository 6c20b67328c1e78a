"""Setup: `git gate init --agents`: guidance for agents without a plugin, in AGENTS.md."""

from __future__ import annotations

from .guidance import agents_removal as removal
from .guidance import agents_steps as steps

__all__ = ["removal", "steps"]
