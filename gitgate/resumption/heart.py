"""Resumption: keeps a claim alive while an agent works, beside it, and says when it is lost.

A claim that can no longer be renewed counts as lost before its term is over: whoever watches it waits out the whole term,
so that the agent has stopped before another one starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from ..claims.claiming import ClaimLost, HeldClaim
from ..claims.holding import renew
from ..context.desk import Desk
from ..errors import GateError
from ..gates.leases import RENEW_AT, boottime

GIVE_UP_AT = 0.7
Ended = TypeVar("Ended")


class Heart:
    """`with Heart(open_desk, held) as heart:` renews until the end; `lost` is set when the claim is no longer ours.

    While an agent works, a claim that cannot be renewed is lost: elsewhere it may be taken over. When the agent has ended
    (`rest`), nothing is done twice by holding on: then it is lost only to who did take it over.
    """

    def __init__(
        self, open_desk: Callable[[], Desk], held: HeldClaim, *, clock: Callable[[], float] = boottime
    ) -> None:
        self.open_desk = open_desk
        self.held = held
        self.clock = clock
        self.began = clock()
        self.lost = threading.Event()
        self.over = threading.Event()
        self.resting = threading.Event()
        self.heard = threading.Event()
        self.turn = threading.Lock()
        self.reason = ""
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> HeldClaim:
        """No more renewals; the claim as it was last renewed."""
        self.over.set()
        self.thread.join()
        return self.held

    def rest(self) -> None:
        """The agent has ended, and what came of it has still to be recorded."""
        self.resting.set()

    def give_up_with(self, act: Callable[[HeldClaim], Ended]) -> Ended:
        """What `act` makes of the claim, which it ends; no renewal comes between. Where it fails, renewals go on."""
        with self.turn:
            if self.lost.is_set():
                raise ClaimLost(self.reason, hint=f"git gate show {self.held.gate.id}")
            self.heard.clear()
            ended = act(self.held)
            self.over.set()
            return ended

    def _beat(self) -> None:
        term = float(self.held.said.term)
        renewed, pause = self.began, term * RENEW_AT
        desk: Desk | None = None
        try:
            while not self.over.wait(pause):
                began, pause = self.clock(), min(term / 20, 5.0)
                try:
                    desk = desk or self.open_desk()
                    if not self._renew(desk):
                        return
                except ClaimLost as lost:
                    self._lose(lost.message)
                    return
                except (GateError, OSError) as silent:
                    if self.clock() - renewed > term * GIVE_UP_AT and not self.resting.is_set():
                        self._lose(f"the claim could not be renewed: {silent}")
                        return
                else:
                    self.heard.set()
                    renewed, pause = began, term * RENEW_AT
        finally:
            if desk is not None:
                desk.close()

    def _renew(self, desk: Desk) -> bool:
        """False when it is over: its outcome was recorded while we waited for our turn."""
        with self.turn:
            if self.over.is_set():
                return False
            self.held = renew(desk, self.held)
            return True

    def _lose(self, reason: str) -> None:
        self.reason = reason
        self.lost.set()
