"""Resumption: keeps a claim alive while an agent works, beside it, and says when it is lost.

A claim that can no longer be renewed counts as lost before its term is over: whoever watches it waits out the whole term,
so that the agent has stopped before another one starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ..errors import GateError
from ..service.claiming import ClaimLost, Held
from ..service.desk import Desk
from ..service.holding import renew
from ..service.leases import RENEW_AT, boottime

GIVE_UP_AT = 0.7


class Heart:
    """`with Heart(open_desk, held) as heart:` renews until the end; `lost` is set when the claim is no longer ours."""

    def __init__(
        self, open_desk: Callable[[], Desk], held: Held, *, clock: Callable[[], float] = boottime
    ) -> None:
        self.open_desk = open_desk
        self.held = held
        self.clock = clock
        self.began = clock()
        self.lost = threading.Event()
        self.over = threading.Event()
        self.reason = ""
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> Held:
        """No more renewals; the claim as it was last renewed."""
        self.over.set()
        self.thread.join()
        return self.held

    def _beat(self) -> None:
        term = float(self.held.said.term)
        renewed, pause = self.began, term * RENEW_AT
        desk: Desk | None = None
        try:
            while not self.over.wait(pause):
                began, pause = self.clock(), min(term / 20, 5.0)
                try:
                    desk = desk or self.open_desk()
                    self.held = renew(desk, self.held)
                except ClaimLost as lost:
                    self._lose(lost.message)
                    return
                except (GateError, OSError) as silent:
                    if self.clock() - renewed > term * GIVE_UP_AT:
                        self._lose(f"the claim could not be renewed: {silent}")
                        return
                else:
                    renewed, pause = began, term * RENEW_AT
        finally:
            if desk is not None:
                desk.close()

    def _lose(self, reason: str) -> None:
        self.reason = reason
        self.lost.set()
