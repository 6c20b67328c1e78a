"""Runners: what starts a resumed agent: this machine, a CI job, a queue. A new one is one file and one line here."""

from __future__ import annotations

from ..errors import Usage
from .celery import QueueRunner
from .command import CommandRunner
from .github import GitHubRunner
from .runner import AnsweredGate, Local, Order, Runner

__all__ = ["RUNNERS", "AnsweredGate", "Order", "Runner", "find_runner"]

EVERY: tuple[Runner, ...] = (
    Local(),
    GitHubRunner(),
    CommandRunner(),
    QueueRunner(),
)
RUNNERS = {runner.name: runner for runner in EVERY}


def find_runner(name: str) -> Runner:
    """Return the runner of that name."""
    if name not in RUNNERS:
        raise Usage(
            f"no runner is called {name!r}",
            hint=f"git gate resume --all --runner local   (known are {', '.join(RUNNERS)})",
        )
    return RUNNERS[name]
