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
    """Gate or run whose agent is to be started, with all that a runner may know of it. `commit`: the tip of its record.

    `stalled`: somebody began with it, and gives no sign of life.
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
    """Place where agents are started. `hands_out`: the hook of a shared repository leaves its answers to it."""

    name: str
    hands_out: bool

    def start(self, order: Order) -> str:
        """Start acting on the order, and return at once with where to look for the result."""
        ...


class Local:
    """Runner on this machine: a process of its own, which outlives its starter and holds nothing of the starter's open.

    A push waits for every process that has its standard error, so all three streams lead elsewhere.
    """

    name = "local"
    hands_out = False

    def start(self, order: Order) -> str:
        command = our_command("hook", "runner", *order.gates, at=order.directory)
        detach(command, order.directory, without_caller(order.env), order.log)
        return str(order.log)
