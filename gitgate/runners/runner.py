"""Runners: what starts a resumed agent. A runner takes an order and returns at once. `Local` is this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from ..agents import without_caller
from ..config import Settings
from ..document import dataclass
from ..store.git.programs import detach, our_command


class AnsweredGate(NamedTuple):
    """One gate (or run) whose agent is to be started, and all that a runner may know of it. `commit`: the tip of its record.

    `stalled`: somebody has begun with it, and gives no sign of life.
    """

    id: str
    commit: str
    priority: str = "normal"
    agent: str = ""
    stalled: bool = False


@dataclass(frozen=True)
class Order:
    """Order to a runner: to act on these gates of the repository at `directory`, or on all that can be.

    `log`: the file where the runner writes what it does. `address`: where other machines reach the repository.
    """

    directory: Path
    log: Path
    settings: Settings
    answered: tuple[AnsweredGate, ...] = ()
    address: str = ""

    @property
    def gates(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.answered)

    @property
    def env(self) -> Mapping[str, str]:
        return self.settings.env


class Runner(Protocol):
    """One place where agents are started. `hands_out`: the hook of a shared repository leaves its answers to it."""

    name: str
    hands_out: bool

    def start(self, order: Order) -> str:
        """Start acting on it, and return at once; where to look for what comes of it."""
        ...


class Local:
    """This machine: a process of its own that outlives whoever starts it, and holds nothing of theirs open.

    A push waits for every process that has its standard error, so all three streams lead elsewhere.
    """

    name = "local"
    hands_out = False

    def start(self, order: Order) -> str:
        command = our_command("hook", "runner", *order.gates, at=order.directory)
        detach(command, order.directory, without_caller(order.env), order.log)
        return str(order.log)
