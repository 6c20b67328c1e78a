"""Command line: the receiving hooks by their names, and the runner that they and other commands start."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from . import exits

if TYPE_CHECKING:
    from ..service.desk import Desk
    from .screen import Screen


def pre_receive(screen: Screen, args: tuple[str, ...]) -> int:
    from . import receive

    del args
    return receive.pre_receive(screen.env, sys.stdin.buffer.read())


def post_receive(screen: Screen, args: tuple[str, ...]) -> int:
    from . import receive

    del args
    return receive.post_receive(screen.env, b"")


def runner(screen: Screen, args: tuple[str, ...]) -> int:
    """Started by a person's command, which is consent enough."""
    del args
    return act_on_calls(screen.desk())


def act_on_calls(desk: Desk) -> int:
    """Acts on everything that can be acted on here, then ends. Its talk is the log."""
    from ..resumption.calls import answer_calls
    from .resume import stop_on_signal

    def say(words: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(f"{stamp} {words}", file=sys.stderr, flush=True)

    with stop_on_signal() as stopping:
        shift = answer_calls(desk, say, stopping)
    return exits.DONE if shift is None or not shift.failed else exits.FAILURE
