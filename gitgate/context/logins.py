"""Context: who may see the pages of `git gate serve --desk`. A login link works once and gives a browser a session; a gate's link
opens one gate, for one answer. Both are kept on this side, so that one command ends them all.

One file for each person on this machine, shared by every `git gate serve --desk` of theirs. It holds digests: whoever reads it
can log in with nothing that is in it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import NotAllowed
from ..store import locked, private_folder, read_local_note, write_private

NAME = "web.json"
LOGIN_LASTS = 3600.0
SESSION_LASTS, IDLE_LASTS = 7 * 86400.0, 24 * 3600.0
NOTED_EVERY = 300.0
LINK_LASTS = 24 * 3600.0
MOST_SESSIONS, MOST_LOGINS, MOST_LINKS = 50, 20, 1000
KEPT = ("logins", "sessions", "links")


def word_digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


@dataclass
class Logins:
    """The file, read again whenever somebody has changed it."""

    folder: Path
    clock: Callable[[], float]
    _known: dict[str, Any] = field(default_factory=dict)
    _stamp: tuple[int, int] = (0, 0)

    @property
    def place(self) -> Path:
        return self.folder / NAME

    def read(self) -> dict[str, Any]:
        try:
            found = self.place.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._stamp:
                self._known, self._stamp = in_order(read_local_note(self.place)), stamp
        except (OSError, ValueError):
            self._known, self._stamp = {}, (0, 0)
        return self._known

    @property
    def address(self) -> str:
        """Address where the desk was served last; empty where it never was, or no link leads there."""
        return str(self.read().get("address", ""))

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yield the stored logins under a lock, so that only one process changes them; entries that ran out are left
        out.
        """
        private_folder(self.folder)
        with locked(self.folder / f"{NAME}.lock", wait=True):
            self._stamp = (0, 0)
            known = {**self.read()}
            for name in KEPT:
                known[name] = dict(known[name]) if name in known else {}
            known.setdefault("key", secrets.token_hex(32))
            now = self.clock()
            known["logins"] = {one: until for one, until in known["logins"].items() if until > now}
            known["sessions"] = {one: said for one, said in known["sessions"].items() if lasts(said, now)}
            known["links"] = {one: said for one, said in known["links"].items() if said["until"] > now}
            yield known
            known["logins"] = dict(list(known["logins"].items())[-MOST_LOGINS:])
            known["sessions"] = dict(list(known["sessions"].items())[-MOST_SESSIONS:])
            known["links"] = dict(list(known["links"].items())[-MOST_LINKS:])
            write_private(self.place, json.dumps(known).encode())

    def new_login(self, address: str = "") -> tuple[str, str]:
        """A word that logs in once, and the address of the server that it is for: the one given, else the last one started."""
        word = secrets.token_urlsafe(32)
        with self.changing() as known:
            known["logins"][word_digest(word)] = self.clock() + LOGIN_LASTS
            known["address"] = address or known.get("address", "")
        return word, str(known["address"])

    def redeem(self, word: str) -> str | None:
        """A session for the word of a login link, which is worth nothing from then on; None for any other word."""
        if word_digest(word) not in self.read().get("logins", {}):
            return None
        with self.changing() as known:
            if known["logins"].pop(word_digest(word), None) is None:
                return None
            session, now = secrets.token_urlsafe(32), self.clock()
            known["sessions"][word_digest(session)] = {"since": now, "seen": now}
        return session

    def is_known(self, session: str) -> bool:
        said = self.read().get("sessions", {}).get(word_digest(session))
        now = self.clock()
        if said is None or not lasts(said, now):
            return False
        if now - said["seen"] > NOTED_EVERY:
            # On a disk that is full it is noted later: people can read and answer meanwhile.
            with suppress(OSError), self.changing() as known:
                if word_digest(session) in known["sessions"]:
                    known["sessions"][word_digest(session)]["seen"] = now
        return True

    def end(self, session: str) -> None:
        with self.changing() as known:
            known["sessions"].pop(word_digest(session), None)

    def end_all(self) -> int:
        """Every session, every link, and the key that forms are bound with. How many sessions there were."""
        with self.changing() as known:
            ended = len(known["sessions"])
            known.update(logins={}, sessions={}, links={}, key=secrets.token_hex(32))
        return ended

    def new_link(self, gate: str, lasts: float = LINK_LASTS) -> str:
        """An address that opens this gate, for one answer, without a login; empty where no desk was served here."""
        if not self.address:
            return ""  # and nothing is written
        word = secrets.token_urlsafe(32)
        with self.changing() as known:
            known["links"][word_digest(word)] = {"gate": gate, "until": self.clock() + lasts}
        return f"{known['address']}/l/{word}"

    def forget_address(self) -> None:
        """Forget the desk's address, so that no link leads anywhere from now on."""
        with self.changing() as known:
            known["address"] = ""

    def gate_of(self, word: str) -> str | None:
        """The gate that a link opens; None where it was used, is over, or never was."""
        said = self.read().get("links", {}).get(word_digest(word))
        return said["gate"] if said is not None and said["until"] > self.clock() else None

    @contextmanager
    def using_link(self, word: str) -> Iterator[None]:
        """Reserve a link for one answer: nobody else can use it meanwhile or afterwards. Where the answer fails, the
        link works as before.
        """
        with self.changing() as known:
            said, key = known["links"].pop(word_digest(word), None), known["key"]
        if said is None:
            raise NotAllowed("this link was used already: it is for one answer")
        try:
            yield
        except BaseException:
            with self.changing() as known:
                if known["key"] == key:  # else all of them were ended meanwhile
                    known["links"][word_digest(word)] = said
            raise

    def form_word(self, visitor: str) -> str:
        """Return the secret word of our forms, so that no other site can send one in this visitor's name."""
        key = self.read().get("key")
        if not key:
            with self.changing() as known:
                key = known["key"]
        return hmac.new(str(key).encode(), f"form:{visitor}".encode(), hashlib.sha256).hexdigest()


def in_order(said: dict[str, Any]) -> dict[str, Any]:
    """Keep of the file what is of the kind that it has to be: somebody may have written there, or a newer git gate."""
    found: dict[str, Any] = {
        name: said[name] for name in ("address", "key") if isinstance(said.get(name), str)
    }
    kept = {name: said[name] if isinstance(said.get(name), dict) else {} for name in KEPT}
    found["logins"] = {one: until for one, until in kept["logins"].items() if is_moment(until)}
    found["sessions"] = {
        one: {"since": it["since"], "seen": it["seen"]}
        for one, it in kept["sessions"].items()
        if has_moments(it, "since", "seen")
    }
    found["links"] = {
        one: it
        for one, it in kept["links"].items()
        if has_moments(it, "until") and isinstance(it.get("gate"), str)
    }
    return found


def is_moment(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def has_moments(said: object, *names: str) -> bool:
    return isinstance(said, dict) and all(is_moment(said.get(name)) for name in names)


def lasts(said: dict[str, float], now: float) -> bool:
    return now - said["since"] < SESSION_LASTS and now - said["seen"] < IDLE_LASTS


MOST_VISITORS = 10_000


@dataclass
class RateLimit:
    """So many requests at once, and so many a second after that, for each visitor."""

    burst: float
    each_second: float
    monotonic: Callable[[], float]
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def allows(self, visitor: str) -> bool:
        now = self.monotonic()
        left, at = self._left.pop(visitor, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.each_second)
        self._left[visitor] = (max(0.0, left - 1.0), now)
        while len(self._left) > MOST_VISITORS:
            del self._left[next(iter(self._left))]
        return left >= 1.0
