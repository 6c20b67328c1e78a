"""Surfaces: the desk's repositories, read again as soon as something has moved there, and asked for news of their remotes.

Three threads: neither a remote that is slow nor a notification that does not leave holds up what happens on this machine.
While it reads, whoever sits here is noted beside each repository as somebody who hears of its questions.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...context.desk import Desk
from ...context.machine import (
    AT_DESK,
    BEAT,
    Attentive,
    begin_listening,
    end_listening,
    host_name,
    keep_listening,
)
from ...errors import GateError
from ...exchange.syncing import RemoteNews, hear_news
from ...gates.listing import fingerprint
from ...resumption.calls import hand_on, wake_due
from ...store.git.repository import Repository
from .inbox import RepositoryState, read_repository

POLL = 0.4
AT_LEAST_EVERY = 20.0  # deadlines pass, and runners fall silent, without any ref that moves
TELL_EVERY = 5.0


@dataclass
class WatchedPlace:
    """A repository: how it looked when it was read. `held`: the lock of the desk there."""

    place: Path
    repo: Repository | None = None
    seen: tuple[int, ...] = ()
    read_at: float = float("-inf")
    held: int | None = None
    attend_at: float = 0.0


@dataclass
class InboxWatch:
    """`read` is told of each repository as it is now; `say` of what this clone did about what stood still, and of silence.

    `tell` looks once whether anybody is to be told of a repository's gates, until the event; False where nobody ever is.
    """

    places: Sequence[Path]
    open_desk: Callable[[Path], Desk]
    read: Callable[[RepositoryState], None]
    say: Callable[[str], None]
    tell: Callable[[Path, threading.Event], bool] | None = None
    monotonic: Callable[[], float] = time.monotonic
    over: threading.Event = field(default_factory=threading.Event)
    _nudged: threading.Event = field(default_factory=threading.Event)
    _watched: list[WatchedPlace] = field(default_factory=list)
    _attending: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._watched = [WatchedPlace(place) for place in self.places]

    def start(self) -> None:
        for work in (self.reading, self.hearing, self.telling):
            threading.Thread(target=work, daemon=True, name=f"desk {work.__name__}").start()

    def stop(self) -> None:
        self.over.set()
        self._nudged.set()
        with self._attending:
            for watched in self._watched:
                number, watched.held = watched.held, None
                if number is not None and watched.repo is not None:
                    end_listening(watched.repo, number, AT_DESK)

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
        if watched.held is not None and watched.repo is not None and self.monotonic() >= watched.attend_at:
            watched.attend_at = self.monotonic() + BEAT
            keep_listening(watched.repo, AT_DESK)
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
            self.attend(watched, desk)
            watched.seen = watched.seen or fingerprint(desk.repo)
            state = read_repository(desk)
            self.read(state)
            with suppress(GateError, OSError):
                for words in [*hand_on(desk, state.gates), *wake_due(desk)]:
                    self.say(words)
        finally:
            desk.close()

    def attend(self, watched: WatchedPlace, desk: Desk) -> None:
        """Whoever asks here is not told that nobody listens. Of two desks one is noted; the other is when that one has gone."""
        with self._attending, suppress(GateError, OSError):
            if watched.held is None and not self.over.is_set():
                who = Attentive(desk.person(), os.getpid(), host_name(), AT_DESK, desk.now)
                watched.held = begin_listening(desk, who, AT_DESK)

    def telling(self) -> None:
        """Those who want to hear of gates, also of deadlines and reminders; what is cut off is sent by whoever looks next."""
        tell = self.tell
        left = list(self.places) if tell is not None else []
        while tell is not None and left and not self.over.is_set():
            left = [place for place in left if tell(place, self.over)]
            self.over.wait(TELL_EVERY)

    def hearing(self) -> None:
        hear_news([RemoteNews(place) for place in self.places], self.open_desk, self.say, self.over)
