"""Command line: the hooks of a repository that others push to, and the runner that they start."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from . import exits

if TYPE_CHECKING:
    from .screen import Screen


def runner(screen: Screen, args: tuple[str, ...]) -> int:
    """Acts on everything that can be acted on here, then ends. Its talk is the log."""
    from ..resume.calls import answer_calls
    from .resume import stop_on_signal

    del args
    desk = screen.desk()

    def say(words: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(f"{stamp} {words}", file=sys.stderr, flush=True)

    with stop_on_signal() as stopping:
        shift = answer_calls(desk, say, stopping)
    return exits.DONE if shift is None or not shift.failed else exits.FAILURE
