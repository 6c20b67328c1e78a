"""Runners: this machine. A process of its own that outlives whoever starts it, and holds nothing of theirs open.

A push waits for every process that has its standard error, so all three streams lead elsewhere.
"""

from __future__ import annotations

import sys

from ..agents import without_caller
from ..store.git.programs import detach
from .runner import Order


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
