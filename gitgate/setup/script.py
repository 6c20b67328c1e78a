"""Setup: `git gate init --script`: a small script by which any program asks a person."""

from __future__ import annotations

from .guidance import script_removal as removal
from .guidance import script_steps as steps

__all__ = ["removal", "steps"]
