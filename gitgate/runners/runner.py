"""Runners: what starts a resumed agent. A runner takes an order and returns at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Order:
    """What is to be acted on: these gates of the repository at `directory`, or all that can be. `log` is where it tells."""

    directory: Path
    log: Path
    env: Mapping[str, str]
    gates: tuple[str, ...] = ()


class Runner(Protocol):
    """One place where agents are started."""

    name: str

    def start(self, order: Order) -> str:
        """Start acting on it, and return at once; where to look for what comes of it."""
        ...
