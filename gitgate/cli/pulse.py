"""Command line: a sign of life. Words that are said only if what they announce is still going on after a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Timer

PATIENCE = 1.0


@dataclass
class Pulse:
    """At most one announcement is pending; whatever is said or printed meanwhile takes its place."""

    pending: list[Timer] = field(default_factory=list)

    def start(self, words: str, say: Callable[[str], None]) -> None:
        from threading import Timer

        self.stop()
        timer = Timer(PATIENCE, say, (words,))
        timer.daemon = True
        timer.start()
        self.pending.append(timer)

    def stop(self) -> None:
        while self.pending:
            self.pending.pop().cancel()
