"""Surfaces: the desk's repositories, read again as soon as something has moved there, and asked for news of their remotes.

Two threads: a remote that is slow holds up nothing of what happens on this machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...context.desk import Desk
from ...errors import GateError
from ...exchange.syncing import NEWS_TIMEOUT, freshness, look_for_news
from ...resumption.calls import hand_on, wake_due
from ...store.git.repository import Repository
from .inbox import RepositoryState, fingerprint, read_repository

POLL = 0.4
AT_LEAST_EVERY = 20.0  # deadlines pass, and runners fall silent, without any ref that moves
NEWS_EVERY = 1.0
NEWS_AT_MOST_EVERY = 60.0


@dataclass
class WatchedPlace:
    """A repository: how it looked when it was read, and when its remote is to be asked again."""

    place: Path
    repo: Repository | None = None
    seen: tuple[int, ...] = ()
    read_at: float = float("-inf")
    ask_at: float = 0.0
    pause: float = 0.0
    remote: bool = True
    trouble: str = ""


@dataclass
class InboxWatch:
    """`read` is told of each repository as it is now; `say` of what this clone did about what stood still, and of silence."""

    places: Sequence[Path]
    open_desk: Callable[[Path], Desk]
    read: Callable[[RepositoryState], None]
    say: Callable[[str], None]
    monotonic: Callable[[], float] = time.monotonic
    over: threading.Event = field(default_factory=threading.Event)
    _nudged: threading.Event = field(default_factory=threading.Event)
    _watched: list[WatchedPlace] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._watched = [WatchedPlace(place) for place in self.places]

    def start(self) -> None:
        for work in (self.reading, self.hearing):
            threading.Thread(target=work, daemon=True, name=f"desk {work.__name__}").start()

    def stop(self) -> None:
        self.over.set()
        self._nudged.set()

    def nudge(self) -> None:
        """Look now: something was done here."""
        self._nudged.set()

    def reading(self) -> None:
        while not self.over.is_set():
            nudged = self._nudged.is_set()
            self._nudged.clear()
            for watched in self._watched:
                if not self.over.is_set():
                    self.look(watched, insist=nudged)
            self._nudged.wait(POLL)

    def look(self, watched: WatchedPlace, *, insist: bool = False) -> None:
        """Read it again, if anything can have changed."""
        # Before it is read: what moves meanwhile is seen the next time.
        now = fingerprint(watched.repo) if watched.repo is not None else ()
        due = self.monotonic() - watched.read_at > AT_LEAST_EVERY
        if now == watched.seen and not due and not insist:
            return
        watched.seen, watched.read_at = now, self.monotonic()
        try:
            desk = self.open_desk(watched.place)
        except (GateError, OSError) as gone:
            self.read(RepositoryState(watched.place, trouble=str(gone)))
            return
        try:
            watched.repo = desk.repo
            watched.seen = watched.seen or fingerprint(desk.repo)
            state = read_repository(desk)
            self.read(state)
            with suppress(GateError, OSError):
                for words in [*hand_on(desk, state.gates), *wake_due(desk)]:
                    self.say(words)
        finally:
            desk.close()

    def hearing(self) -> None:
        while not self.over.wait(POLL / 2):
            for watched in self._watched:
                if watched.remote and not self.over.is_set() and self.monotonic() >= watched.ask_at:
                    self.hear(watched)

    def hear(self, watched: WatchedPlace) -> None:
        """Ask its remote once. The next time comes later where it is slow, and much later where it is silent."""
        begun = self.monotonic()
        trouble = ""
        try:
            desk = self.open_desk(watched.place)
            try:
                known = freshness(desk)
                watched.remote = known is not None and desk.settings.span("fresh") > 0
                if known is not None and watched.remote:
                    trouble = look_for_news(desk, known, NEWS_TIMEOUT).trouble
            finally:
                desk.close()
        except (GateError, OSError) as failed:
            trouble = str(failed)
        took = self.monotonic() - begun
        if trouble:
            watched.pause = min(NEWS_AT_MOST_EVERY, max(4 * NEWS_EVERY, 2 * watched.pause))
        else:
            watched.pause = max(NEWS_EVERY, 2 * took)
        watched.ask_at = self.monotonic() + watched.pause
        if trouble != watched.trouble:
            watched.trouble = trouble
            back = f"{watched.place.name}: its remote answers again"
            self.say(f"{watched.place.name}: no news of its remote: {trouble}" if trouble else back)
