"""Flows: branches that run at once. Each has a line of steps of its own, and what they came to is told in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

from .engine import BRANCH, Branch, Engine, RunStops
from .trees import BranchTrees

T = TypeVar("T")


def in_parallel(engine: Engine, branches: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """What each branch came to, in their order. Agents of each work in a tree of its own, and what they did is joined."""
    with engine.turn:
        engine.check()
        above = BRANCH.get()
        trees = BranchTrees(engine, above.next("parallel", ""), above, len(branches))
        lines = [trees.line_of(number) for number in range(len(branches))]
    came = run_lines(engine, branches, lines)
    trees.join(came)
    return came


def within_branch(engine: Engine, branch: Callable[[], T], kind: str, name: str) -> T:
    """What a part of the flow gives whose steps are told from those around it."""
    with engine.turn:
        engine.check()
        above = BRANCH.get()
        line = Branch(f"{above.next(kind, name)}/0", above=above)
    (came,) = run_lines(engine, [branch], [line])
    if isinstance(came, BaseException):
        raise came
    return came


def run_lines(
    engine: Engine, branches: Sequence[Callable[[], T]], lines: Sequence[Branch]
) -> list[T | BaseException]:
    """Each branch in a thread of its own, on its line. What is raised in one is what it came to."""
    came: list[T | BaseException] = [RunStops("it was not begun")] * len(branches)
    with engine.turn:
        engine.active += len(branches) - 1

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
        for line in lines:
            if line.desk is not None:
                line.desk.close()
    return came
