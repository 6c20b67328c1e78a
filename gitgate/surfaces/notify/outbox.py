"""Surfaces: what is to be sent and what was, so that each is sent once; and whether those who want to hear of gates can be told from here."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import text
from ...context import Desk
from ...context.machine import state_home
from ...errors import Failure, GateError
from ...setup.checkup import GOOD, MISSING, WRONG, Finding
from ...store import Sharing, private_folder, read_sharing
from .addresses import Occasion, Recipient, is_server, load_addresses, message_id

if TYPE_CHECKING:
    import sqlite3

# What is to be sent and what was, so that each is sent once, whoever sends it and however often they are
# killed.
#
# A clone's is the person's on this machine: several clones of one repository tell of a gate once. A
# server's is beside its refs, for all accounts that push to it. It holds ids, events and digests of
# addresses; no words of a gate, and no address.


FOLDER = "outbox"
SHARED_FOLDER = "gitgate-outbox"
WAIT = 30.0  # seconds for another account's write
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 3600.0
DOUBLINGS = 10
GIVEN_UP_AFTER = 3 * 86_400.0
KEPT = 90 * 86_400.0
FILE = "messages"
# An address that is new hears of what happened in the day before, not of everything that ever waited.
BEFORE = 86_400.0

DUE, SENT, OVER, GIVEN_UP = "due", "sent", "over", "given up"
TABLES = """
CREATE TABLE IF NOT EXISTS message(
    id TEXT PRIMARY KEY, place TEXT, gate TEXT, event TEXT, key TEXT, at TEXT, address TEXT,
    state TEXT, due REAL, attempts INTEGER, made REAL, done REAL, said TEXT);
CREATE INDEX IF NOT EXISTS waiting ON message(place, state, due);
CREATE TABLE IF NOT EXISTS address(digest TEXT PRIMARY KEY, since REAL, failures INTEGER, until REAL, said TEXT);
CREATE TABLE IF NOT EXISTS seen(place TEXT, gate TEXT, tip TEXT, PRIMARY KEY(place, gate));
CREATE TABLE IF NOT EXISTS known(place TEXT PRIMARY KEY, addresses TEXT);
"""


@dataclass(frozen=True)
class Looked:
    """Gate that was examined, the tip of its record then, and the occasions to send, each with an address."""

    gate: str
    tip: str
    wanted: Sequence[tuple[Occasion, str]] = ()


@dataclass(frozen=True)
class Due:
    """Message that is to be sent now."""

    id: str
    address: str
    occasion: Occasion
    attempts: int
    made: float


@dataclass(frozen=True)
class AddressState:
    """State of an address: how it has answered lately."""

    failures: int = 0
    until: float = 0.0
    said: str = ""
    waiting: int = 0
    sent: int = 0


def outbox_folder(desk: Desk) -> tuple[Path, Sharing]:
    """Return the outbox's folder, and the rights of other accounts there."""
    if is_server(desk):
        shared = read_sharing(desk.settings.git)
        if shared.bits:
            return desk.repo.common_dir / SHARED_FOLDER, shared
        return desk.repo.state_dir / FOLDER, shared
    return (state_home(desk.settings.env) or desk.repo.state_dir) / FOLDER, Sharing()


@dataclass
class Outbox:
    """Messages of one repository, in a file that others may use at the same time."""

    folder: Path
    shared: Sharing
    place: str
    base: sqlite3.Connection

    def close(self) -> None:
        self.base.close()

    # what is to be told

    def addresses(self, digests: Sequence[str], now: float) -> dict[str, float]:
        """Return since when each address is notified; for a new one, since a day ago. When the addresses change, all
        gates are examined again.
        """
        with self.writing():
            for digest in digests:
                self.base.execute(
                    "INSERT OR IGNORE INTO address VALUES(?, ?, 0, 0, '')", (digest, now - BEFORE)
                )
            known = " ".join(sorted(digests))
            before = self.base.execute(
                "SELECT addresses FROM known WHERE place = ?", (self.place,)
            ).fetchone()
            if before is None or before[0] != known:
                self.base.execute("DELETE FROM seen WHERE place = ?", (self.place,))
                self.base.execute("INSERT OR REPLACE INTO known VALUES(?, ?)", (self.place, known))
        return dict(self.base.execute("SELECT digest, since FROM address"))

    def seen(self) -> dict[str, str]:
        """Return the gates that were examined, and the tips of their records then."""
        return dict(self.base.execute("SELECT gate, tip FROM seen WHERE place = ?", (self.place,)))

    def put(self, looked: Sequence[Looked], now: float) -> None:
        """Record messages, and that their gates were examined: all or nothing. Present messages stay as they are."""
        rows = [
            (message_id(what.gate, what.event, what.key, address), what, address, max(now, what.due))
            for one in looked
            for what, address in one.wanted
        ]
        with self.writing():
            self.base.executemany(
                "INSERT OR IGNORE INTO message VALUES(?, ?, ?, ?, ?, ?, ?, 'due', ?, 0, ?, 0, '')",
                [
                    (name, self.place, what.gate, what.event, what.key, what.at, address, due, now)
                    for name, what, address, due in rows
                ],
            )
            self.base.executemany(
                "INSERT OR REPLACE INTO seen VALUES(?, ?, ?)",
                [(self.place, one.gate, one.tip) for one in looked],
            )

    def forget(self, gates: Sequence[str], now: float) -> None:
        """Remove gates that are no longer open, and messages that are long done."""
        with self.writing():
            self.base.executemany(
                "DELETE FROM seen WHERE place = ? AND gate = ?", [(self.place, one) for one in gates]
            )
            self.base.execute("DELETE FROM message WHERE state <> 'due' AND done < ?", (now - KEPT,))

    # what is sent

    def next(self, now: float) -> Due | None:
        """Return the due message with the fewest attempts, then the oldest, whose address may be tried now."""
        row = self.base.execute(
            "SELECT m.id, m.address, m.gate, m.event, m.key, m.at, m.attempts, m.made FROM message m"
            " LEFT JOIN address a ON a.digest = m.address"
            " WHERE m.place = ? AND m.state = 'due' AND m.due <= ? AND coalesce(a.until, 0) <= ?"
            " ORDER BY m.attempts, m.rowid LIMIT 1",
            (self.place, now, now),
        ).fetchone()
        if row is None:
            return None
        return Due(row[0], row[1], Occasion(row[2], row[3], row[4], row[5]), row[6], row[7])

    def next_at(self) -> float | None:
        """Return when the next message may be sent; None where none waits."""
        row = self.base.execute(
            "SELECT min(max(m.due, coalesce(a.until, 0))) FROM message m"
            " LEFT JOIN address a ON a.digest = m.address WHERE m.place = ? AND m.state = 'due'",
            (self.place,),
        ).fetchone()
        return None if row is None or row[0] is None else float(row[0])

    def trying(self, due: Due) -> None:
        with self.writing():
            self.base.execute("UPDATE message SET attempts = attempts + 1 WHERE id = ?", (due.id,))

    def sent(self, due: Due, now: float) -> None:
        with self.writing():
            self.base.execute(
                "UPDATE message SET state = 'sent', done = ?, said = '' WHERE id = ?", (now, due.id)
            )
            self.base.execute(
                "UPDATE address SET failures = 0, until = 0, said = '' WHERE digest = ? AND failures",
                (due.address,),
            )

    def over(self, due: Due, now: float, said: str = "") -> None:
        """Mark a message as one that need not be sent any more."""
        with self.writing():
            self.base.execute(
                "UPDATE message SET state = 'over', done = ?, said = ? WHERE id = ?", (now, said, due.id)
            )

    def later(self, due: Due, at: float) -> None:
        with self.writing():
            self.base.execute("UPDATE message SET due = ? WHERE id = ?", (at, due.id))

    def failed(self, due: Due, now: float, said: str, *, after: float = 0.0, gone: bool = False) -> float:
        """Record a failed attempt, and return when the address is tried again: later after each failure. A message that
        waited too long is given up.
        """
        given_up = gone or now - due.made > GIVEN_UP_AFTER
        row = self.base.execute("SELECT failures FROM address WHERE digest = ?", (due.address,)).fetchone()
        failures = 1 + (row[0] if row else 0)
        until = now + max(after, pause_after(failures))
        own = now + max(after, pause_after(due.attempts + 1))
        with self.writing():
            self.base.execute(
                "UPDATE message SET state = ?, due = ?, done = ?, said = ? WHERE id = ?",
                (GIVEN_UP if given_up else DUE, own, now, said, due.id),
            )
            self.base.execute(
                "UPDATE address SET failures = ?, until = ?, said = ? WHERE digest = ?",
                (failures, until, said, due.address),
            )
        return until

    def states(self) -> Mapping[str, AddressState]:
        """Return the state of each address."""
        counts: dict[tuple[str, str], int] = {
            (address, state): count
            for address, state, count in self.base.execute(
                "SELECT address, state, count(*) FROM message WHERE place = ? GROUP BY address, state",
                (self.place,),
            )
        }
        return {
            digest: AddressState(
                failures, until, said, counts.get((digest, DUE), 0), counts.get((digest, SENT), 0)
            )
            for digest, failures, until, said in self.base.execute(
                "SELECT digest, failures, until, said FROM address"
            )
        }

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Make one change: all of it is kept, or nothing where the process is killed."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.base.execute("ROLLBACK")
            raise
        self.base.execute("COMMIT")

    # who sends

    @property
    def called(self) -> Path:
        """Path of the mark by which a caller asks for a look."""
        return self.folder / f"called-{message_id(self.place, '', '', '')[4:20]}"

    def call(self) -> None:
        self.called.touch()
        self.shared.give(self.called)

    def heard(self) -> bool:
        """Return whether somebody called since this was last asked."""
        try:
            self.called.unlink()
        except FileNotFoundError:
            return False
        return True

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Take this lock, and yield whether nobody else has it. It ends with the process that has it."""
        import fcntl

        number = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.shared.give(self.folder / f"{name}.lock")
        try:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                got = True
            except OSError:
                got = False
            yield got
        finally:
            os.close(number)


def pause_after(failures: int) -> float:
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, DOUBLINGS)))


def open_outbox(desk: Desk) -> Outbox:
    """Return the outbox of this desk's repository. It is made where there is none yet."""
    folder, shared = outbox_folder(desk)
    private_folder(folder)
    if shared.bits and folder.stat().st_uid == os.geteuid():
        folder.chmod(stat.S_IMODE(shared.mode(folder.stat().st_mode | stat.S_IXUSR)))
    place = folder / FILE
    with usable(place):
        import sqlite3

        base = sqlite3.connect(place, timeout=WAIT, isolation_level=None)
        base.executescript(TABLES)
    shared.give(place)
    return Outbox(folder, shared, str(desk.repo.common_dir.resolve()), base)


@contextlib.contextmanager
def usable(place: Path) -> Iterator[None]:
    """Turn errors of the outbox's file into a failure that says what to do: they are no bug of ours."""
    try:
        import sqlite3
    except ImportError as missing:
        raise Failure(
            "people cannot be told: this Python was built without sqlite3",
            hint="install git gate with another Python",
        ) from missing
    try:
        yield
    except sqlite3.DatabaseError as broken:
        hint = f"make it writable; where it is damaged, move it away: mv {place} {place}.damaged"
        raise Failure(f"the outbox {place} cannot be used: {broken}", hint=hint) from broken


# Whether those who want to hear of gates can be told from here. Nobody is told anything by looking.


TRY = "git gate notify test"


def examine_addresses(desk: Desk) -> Iterator[Finding]:
    """Yield findings on each address, and on each line that names none."""
    try:
        book = load_addresses(desk)
        states = states_here(desk)
    except (GateError, OSError) as trouble:
        yield Finding("notify", WRONG, str(trouble), "git config --get-all gitgate.notify")
        return
    for wrong in book.unusable:
        yield Finding("notify", WRONG, wrong.words, wrong.mend)
    for one in book.recipients:
        yield examine_one(desk, one, states.get(one.digest, AddressState()))
    for one in book.elsewhere:
        words = f"{one.name} ({one.shown}) is told by the server; {one.source} names it"
        yield Finding("notify", GOOD, words)
    if is_server(desk) and not book.recipients and not book.unusable:
        words = "nobody is told of a gate that is pushed here"
        yield Finding("notify", MISSING, words, "git config --add gitgate.notify 'webhook https://…'")


def states_here(desk: Desk) -> dict[str, AddressState]:
    """Return how the addresses have answered. Nothing is made where nothing was ever sent."""
    if not (outbox_folder(desk)[0] / FILE).exists():
        return {}
    outbox = open_outbox(desk)
    try:
        with usable(outbox.folder / FILE):
            return dict(outbox.states())
    finally:
        outbox.close()


def examine_one(desk: Desk, one: Recipient, state: AddressState) -> Finding:
    why = one.channel.lacks(one.target)
    if why:
        return Finding("notify", WRONG, f"{one.name}: {why}", TRY)
    if one.channel.kind == "desktop" and is_server(desk):
        words = f"{one.name}: nobody sits before this server's desktop"
        return Finding("notify", WRONG, words, "git config --unset-all gitgate.notify desktop")
    if state.failures:
        waits = f"{state.waiting} wait, until {text.format_time(state.until)}"
        return Finding("notify", WRONG, f"{one.name}: {state.said}; {waits}", f"{TRY} {one.name}")
    return Finding("notify", GOOD, f"{one.name} ({one.shown}) is told of gates, by {one.source}")
