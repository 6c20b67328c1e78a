"""Runners: this machine. A process of its own that outlives whoever starts it, and holds nothing of theirs open.

A push waits for every process that has its standard error, so all three streams lead elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from ..agents import scrubbed
from ..agents.process import detach
from ..store.git.process import reaches
from .runner import Order

CALLER = ("GITGATE_AGENT", "GITGATE_GATE")


def without_caller(env: Mapping[str, str]) -> dict[str, str]:
    """An environment for a runner: nothing in it tells of the push, the agent or the gate that it was started by.

    How git reaches the remote it does tell: what the runner's agent made has to get there. The agent itself is started
    without that (`scrubbed`).
    """
    kept = {name: value for name, value in env.items() if reaches(name)}
    return {name: value for name, value in {**kept, **scrubbed(env)}.items() if name not in CALLER}


def start_sender(place: Path, env: Mapping[str, str], log: Path) -> None:
    """Start what tells people of gates (`surfaces.notify`). The repository is named: who pushes need not be who owns it."""
    command = [sys.executable, "-P", "-m", "gitgate", "-C", str(place), "hook", "notify"]
    bare = {"GIT_DIR": str(place)} if (place / "objects").is_dir() else {}
    detach(command, place, {**without_caller(env), **bare}, log)


class Local:
    name = "local"

    def start(self, order: Order) -> str:
        # -P: the directory that we work in never takes part in finding our own code.
        command = [
            sys.executable,
            "-P",
            "-m",
            "gitgate",
            "-C",
            str(order.directory),
            "hook",
            "runner",
            *order.gates,
        ]
        detach(command, order.directory, without_caller(order.env), order.log)
        return str(order.log)
