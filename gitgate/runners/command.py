"""Runners: a program of the machine's own hands an answer to any engine there is: a cluster, a batch system, a queue.

It is told three words, the gate's id, the repository's address and the tip of the gate's record, and no content. Whatever it starts
runs `git gate resume GATE` in a clone: the claim in Git decides who acts, so that an order that is given twice does no harm.
"""

from __future__ import annotations

import os

from ..agents import without_caller
from ..config import Settings
from ..errors import Failure, Usage
from ..store.git.programs import tell_program
from ..text import one_line
from .runner import AnsweredGate, Order

ORDER_TIMEOUT = 60.0


class CommandRunner:
    name = "command"
    hands_out = True

    def start(self, order: Order) -> str:
        """Run the program once for each gate, and return what it printed last, which says where to look."""
        program = handing_program(order.settings)
        return [hand_out(order, program, one) for one in order.answered][-1]


def handing_program(settings: Settings) -> str:
    """Return the program that is set. Usage where none is set, or where its file cannot be started."""
    program = settings.text("runnerCommand")
    if not program:
        raise Usage(
            "no program is set that hands out answers",
            hint="git config gitgate.runnerCommand 'PROGRAM ARG…'   (called with GATE ADDRESS COMMIT)",
        )
    first = program.split(maxsplit=1)[0]
    if first.startswith("/") and not os.access(first, os.X_OK):
        raise Usage(
            f"gitgate.runnerCommand: {first} is not there, or may not be started",
            hint="git config gitgate.runnerCommand 'PROGRAM ARG…'",
        )
    return program


def hand_out(order: Order, program: str, one: AnsweredGate) -> str:
    argv = ["sh", "-c", f'{program} "$@"', program, one.id, order.address, one.commit]
    told = {"GITGATE_PRIORITY": one.priority, "GITGATE_ASKER": one.agent}
    ended = tell_program(argv, b"", {**without_caller(order.env), **told}, order.directory, ORDER_TIMEOUT)
    if ended.late or ended.code:
        how = f"did not end within {ORDER_TIMEOUT:g} s" if ended.late else f"ended with exit {ended.code}"
        said = one_line(ended.err.decode("utf-8", "replace"))
        raise Failure(
            f"the program that hands out gate {one.id} {how}{': ' if said else ''}{said}",
            hint="what is set: git config gitgate.runnerCommand",
        )
    lines = [line for line in ended.out.decode("utf-8", "replace").splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else f"handed to {program.split(maxsplit=1)[0]}"
