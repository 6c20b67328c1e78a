"""Surfaces: what moves while somebody looks: each repository is watched by its files, and its remote asked for news, so that a page
can say within a second or two that a gate was answered elsewhere.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import GateError
from ...exchange.syncing import RemoteNews, hear_news
from ...gates.listing import fingerprint
from .reading import WebWorld

if TYPE_CHECKING:
    from ...store.git.repository import Repository

POLL = 0.4
AT_LEAST_EVERY = 30.0  # deadlines pass, and ages grow, without any ref that moves
STILL_THERE = 10.0
MOST_STREAMS = 50


@dataclass
class LivePages:
    """`version` grows with whatever moves; whoever is told of it reads anew."""

    world: WebWorld
    note: Callable[[str], None]
    version: int = 0
    streams: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    _repos: dict[Path, Repository] = field(default_factory=dict)
    _seen: dict[Path, tuple[int, ...]] = field(default_factory=dict)

    def start(self) -> None:
        for work in (self.watching, self.hearing):
            threading.Thread(target=work, daemon=True, name=f"pages {work.__name__}").start()

    def watching(self) -> None:
        read_at = time.monotonic()
        while not self.over.wait(POLL):
            moved = [place for place in self.world.places if self.has_moved(place)]
            if moved or time.monotonic() - read_at > AT_LEAST_EVERY:
                read_at = time.monotonic()
                self.version += 1

    def has_moved(self, place: Path) -> bool:
        """Whether a ref of ours has, or an agent has asked; no process is started to see that."""
        if place not in self._repos:
            with suppress(GateError, OSError):
                desk = self.world.open_desk(place)
                self._repos[place] = desk.repo
                desk.close()
        now = fingerprint(self._repos[place]) if place in self._repos else ()
        moved = now != self._seen.get(place, now)
        self._seen[place] = now
        return moved

    def hearing(self) -> None:
        """Beside it, so that a remote that is slow holds up nothing of what happens on this machine."""
        remotes = [RemoteNews(place) for place in self.world.places]
        hear_news(remotes, self.world.open_desk, self.note, self.over)

    async def events(self, may_stay: Callable[[], bool]) -> AsyncIterator[str]:
        """As server-sent events: a number for whatever moved, as long as they may stay; a line now and then shows that it is there."""
        seen, said = self.version, time.monotonic()
        self.streams += 1
        try:
            yield f"retry: 2000\ndata: {seen}\n\n"
            while not self.over.is_set():
                await asyncio.sleep(POLL / 2)
                if self.version != seen:
                    seen, said = self.version, time.monotonic()
                    yield f"data: {seen}\n\n"
                elif time.monotonic() - said > STILL_THERE:
                    said = time.monotonic()
                    yield ": still there\n\n"
                if not may_stay():
                    return
        finally:
            self.streams -= 1
