"""Flows: branches that run at once. Each has a line of steps of its own, and what they came to is told in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

from .engine import BRANCH, Branch, Engine, RunStops

T = TypeVar("T")


def together(
    engine: Engine, branches: Sequence[Callable[[], T]], kind: str = "parallel", name: str = ""
) -> list[T | BaseException]:
    """What each branch came to, in their order; steps of one branch are told from those of the others."""
    with engine.turn:
        engine.check()
        above = BRANCH.get()
        path = above.next(kind, name)
        lines = [Branch(f"{path}/{number}", above=above) for number in range(len(branches))]
        engine.active += len(branches) - 1
    came: list[T | BaseException] = [RunStops("it was not begun")] * len(branches)

    def run_branch(number: int) -> None:
        BRANCH.set(lines[number])
        try:
            came[number] = branches[number]()
            engine.check_all_done()
        except BaseException as ended:  # noqa: BLE001 - it is the caller's, who is in another thread
            came[number] = ended
        try:
            engine.end_branch()
        except BaseException as lost:  # noqa: BLE001 - the same; and nobody goes on waiting beside it
            came[number] = lost
            engine.wake_by(lost)

    threads = [
        threading.Thread(target=copy_context().run, args=(run_branch, number), daemon=True)
        for number in range(len(branches))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.turn:
        engine.active += 1
    return came
