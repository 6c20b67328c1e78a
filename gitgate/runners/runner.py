"""Runners: what starts a resumed agent. A runner takes an order and returns at once. `Local` is this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..agents import without_caller
from ..store.git.programs import detach, our_command


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


class Local:
    """This machine: a process of its own that outlives whoever starts it, and holds nothing of theirs open.

    A push waits for every process that has its standard error, so all three streams lead elsewhere.
    """

    name = "local"

    def start(self, order: Order) -> str:
        command = our_command("hook", "runner", *order.gates, at=order.directory)
        detach(command, order.directory, without_caller(order.env), order.log)
        return str(order.log)
