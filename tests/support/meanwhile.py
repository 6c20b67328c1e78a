"""Test bed: what somebody else does in the moment between a command's reading and its moving."""

from __future__ import annotations

from collections.abc import Callable


class Meanwhile:
    """A clock, handed to the command under test: at each of its readings the next thing happens, while any are left."""

    def __init__(self, clock: Callable[[], float], *happens: Callable[[], object]) -> None:
        self.clock = clock
        self.happens = list(happens)

    def __call__(self) -> float:
        if self.happens:
            self.happens.pop(0)()
        return self.clock()
