"""Agents: runs somebody's command in their place: their terminal, their signals, their exit code; we only listen.

What it prints goes on to where it would have gone, as it comes; the end of it is kept, because that is where a program
says how it ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import Failure

KEPT = 4_000_000
CHUNK = 65_536
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")


@dataclass(frozen=True)
class Heard:
    """The end of what a command printed, its exit code (128 + n after signal n), and the number of its process."""

    code: int
    out: bytes
    pid: int


def run_wrapped(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], forward: Callable[[bytes], object]
) -> Heard:
    """Run a command to its end; `forward` is given each piece of its standard output as it comes."""
    try:
        child = subprocess.Popen(list(argv), cwd=cwd, env=dict(env), stdout=subprocess.PIPE)
    except (OSError, ValueError) as unstartable:
        reason = unstartable.strerror if isinstance(unstartable, OSError) else str(unstartable)
        raise Failure(
            f"{argv[0]} cannot be started: {reason}", hint="git gate wrap -- COMMAND ARGUMENTS…"
        ) from unstartable
    kept = bytearray()
    before = pass_signals_on(child)
    try:
        assert child.stdout is not None  # noqa: S101 - it was asked for above
        while piece := os.read(child.stdout.fileno(), CHUNK):
            forward(piece)
            kept += piece
            if len(kept) > 2 * KEPT:
                del kept[:-KEPT]
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if child.stdout is not None:
            child.stdout.close()
    return Heard(128 - code if code < 0 else code, bytes(kept[-KEPT:]), child.pid)


def pass_signals_on(child: subprocess.Popen[bytes]) -> dict[int, Any]:
    """Until the child has ended, a signal to us is one to it: what it does then is its own business."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        # From the keyboard it comes to the whole group; a second one is harmless, a missing one would leave it running.
        if child.poll() is None and number != signal.SIGINT:
            child.send_signal(number)

    numbers = [getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)]
    return {number: signal.signal(number, pass_on) for number in numbers}
