"""Store: the index beside a repository: what was read of commits, kept for whoever looks at thousands of gates again.

What is kept stands under a gate's id and a commit's. What a commit says never changes, so that none of it can be out of date;
which commits count is asked of git each time. It is there to be faster, and for nothing else: where anything is wrong with it,
git is read, and the index is made anew. A row is a line of fields between tabs, with a sum, so that damage is noticed.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from zlib import crc32

from ..model import LENGTH
from ..record import Summary, read_summaries
from ..version import VERSION
from . import may_keep, private_folder
from .git import failure
from .git.canonical import is_sound_commit
from .git.refs import OPEN, Refs, batch_form, checked_run, widen

# To be raised when a row's fields or how they are read changes. A release has indexes of its own in any case.
FORMAT = 3
# Summaries of open gates, those of archived ones, and of whole records what figures need and what a search looks through.
TIPS, ARCHIVED, RECORDS, TEXTS = "tips", "archived", "records", "texts"
TABLES = (TIPS, ARCHIVED, RECORDS, TEXTS)
ABOUT = f"{VERSION} {FORMAT}".encode()
# Rows that nobody asks for any more stay until there are more of them than this, and than of the others.
MOST_DEAD = 250
MADE_ANEW = "it is made anew"
NOT_WRITTEN = "it may not be written, and Git was read instead"
WAIT = 0.25  # seconds for another process to write its rows
# SQLite's own numbers for what is the matter with the file itself, and not with who may use it or when.
UNFIT = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH)


class Unfit(sqlite3.DatabaseError):
    """Error of an index that cannot be used as it is, and can be made anew."""


class Index:
    """Index of summaries. It is read when it is asked; what was learnt is written when it is closed."""

    def __init__(self, place: Path, zero: str) -> None:
        self.place = place
        self.width = LENGTH + 1 + len(zero)
        self.new: dict[str, list[bytes]] = {}
        self.whole: dict[str, Iterable[bytes]] = {}
        self.counts: dict[str, int] = {}
        self.trouble = ""
        self.unfit = False

    def known(self, table: str) -> dict[bytes, bytes]:
        """Return each row of a table by its beginning: `GATE TAB COMMIT`."""
        try:
            if self.unfit or is_empty_file(self.place):
                return {}
            with closing(self.connect()) as base:
                return self.read(base, table)
        except sqlite3.Error as failed:
            self.judge(failed)
        except OSError:
            pass  # there is none yet, or it is somebody else's
        return {}

    def read(self, base: sqlite3.Connection, table: str) -> dict[bytes, bytes]:
        if is_empty(base):
            return {}  # another process is about to write the first rows
        check_version(base)
        found: dict[bytes, bytes] = {}
        count, width = 0, self.width
        for row, total in base.execute(f"SELECT row, total FROM {table}"):  # noqa: S608 - one of TABLES
            if not isinstance(row, bytes) or crc32(row) != total:
                raise Unfit("is damaged")
            found[row[:width]] = row
            count += 1
        self.counts[table] = count
        return found

    def learn(self, table: str, rows: Iterable[bytes]) -> None:
        """Add rows to those of a table, when the index is closed."""
        self.new.setdefault(table, []).extend(rows)

    def replace(self, table: str, rows: Iterable[bytes]) -> None:
        """Replace the rows of a table, when the index is closed; they are made at that time."""
        self.whole[table] = rows

    def drop_dead(self, table: str, live: Sequence[bytes]) -> None:
        """Drop the rows that are not `live`, once there are many of them. The live ones are all that is asked for."""
        if self.counts.get(table, 0) - len(live) > max(len(live), MOST_DEAD):
            self.replace(table, live)

    def close(self) -> str:
        """Write what was learnt. Return what was wrong with the index, in words; empty where nothing was."""
        if (any(self.new.values()) or self.whole or self.unfit) and may_keep(self.place.parent):
            try:
                self.write()
            except sqlite3.Error as failed:
                self.judge(failed)
            except OSError:
                pass  # it is only to be faster, and the disk may be full
        end = NOT_WRITTEN if self.unfit else MADE_ANEW  # it is unfit no more once it was removed
        said, self.trouble = self.trouble.replace(MADE_ANEW, end), ""
        self.new, self.whole, self.counts, self.unfit = {}, {}, {}, False
        return said

    def write(self) -> None:
        private_folder(self.place.parent)
        if self.unfit:
            self.remove()
        try:
            self.put()
        except sqlite3.Error as failed:
            if not is_unfit(failed):
                raise
            self.judge(failed)
            self.remove()
            self.put()

    def put(self) -> None:
        """Write all of it or nothing. A process that is killed meanwhile leaves a journal, which the next one
        rolls back.
        """
        with closing(self.connect()) as base:
            base.execute("PRAGMA auto_vacuum = FULL")  # of a file that has no table yet
            base.execute(
                "PRAGMA synchronous = OFF"
            )  # what a power failure leaves is noticed, and can be read again
            base.execute("BEGIN IMMEDIATE")
            if is_empty(base):
                make_tables(base)
            check_version(base)
            for table, rows in self.whole.items():
                base.execute(f"DELETE FROM {table}")  # noqa: S608 - one of TABLES
                add_rows(base, table, rows)
            for table, rows in self.new.items():
                add_rows(base, table, rows)
            (count,) = base.execute("SELECT count(*) FROM tips").fetchone()
            base.execute(f"PRAGMA user_version = {count}")  # where `context.targets` sees it without SQLite
            base.execute("COMMIT")

    def connect(self) -> sqlite3.Connection:
        # SQLite would wait for a named pipe without end. One in its place is made way for, as what is damaged is.
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(self.place.stat().st_mode):
                raise Unfit("is no regular file")
        base = sqlite3.connect(self.place, timeout=WAIT, isolation_level=None)
        base.text_factory = bytes
        return base

    def judge(self, failed: sqlite3.Error) -> None:
        """Note what is wrong. A damaged file is made anew; one that may not be used, or is in use, is done without."""
        if is_unfit(failed):
            self.unfit = True
            why = str(failed) if isinstance(failed, Unfit) else "is damaged"
            self.trouble = f"{self.place}, which only makes long lists faster, {why}: {MADE_ANEW}"
        elif sqlite_code(failed) == sqlite3.SQLITE_BUSY:
            self.trouble = f"{self.place} is held by another process: Git was read instead"

    def remove(self) -> None:
        for name in (self.place.name, f"{self.place.name}-journal"):
            with suppress(FileNotFoundError):
                self.place.with_name(name).unlink()
        self.unfit = False


def is_empty_file(place: Path) -> bool:
    found = place.stat()
    return stat.S_ISREG(found.st_mode) and not found.st_size


def is_empty(base: sqlite3.Connection) -> bool:
    """Return whether the index has no tables yet; SQLite writes its first page before them."""
    (tables,) = base.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables


def make_tables(base: sqlite3.Connection) -> None:
    for table in TABLES:
        base.execute(f"CREATE TABLE {table} (row BLOB, total INTEGER)")
    base.execute("CREATE TABLE about (said BLOB)")
    base.execute("INSERT INTO about VALUES (?)", (ABOUT,))


def check_version(base: sqlite3.Connection) -> None:
    """Raise Unfit unless the index is ours, and of this version."""
    if base.execute("SELECT said FROM about").fetchall() != [(ABOUT,)]:
        raise Unfit("is from another version")


def add_rows(base: sqlite3.Connection, table: str, rows: Iterable[bytes]) -> None:
    into = f"INSERT INTO {table} VALUES (?, ?)"  # noqa: S608 - one of TABLES
    base.executemany(into, ((row, crc32(row)) for row in rows))


def sqlite_code(failed: sqlite3.Error) -> int:
    """Return SQLite's number of an error, without what it adds for details."""
    return getattr(failed, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_unfit(failed: sqlite3.Error) -> bool:
    return sqlite_code(failed) in UNFIT


def rows_of(index: Index, found: Iterable[Summary]) -> Iterator[bytes]:
    """Yield the rows to keep of these summaries.

    A broken gate is read anew each time, and so is one whose fields do not fit a row.
    """
    fields = len(Summary._fields)
    for one in found:
        row = "\t".join(one)
        fits = len(one.id) + 1 + len(one.tip) == index.width and row.count("\t") == fields - 1
        if fits and one.state != "broken":
            yield row.encode()


def summary_in(row: bytes) -> Summary:
    return Summary._make(row.decode().split("\t"))


def read_open(index: Index, refs: Refs) -> list[Summary]:
    """Read every open gate. Nothing is read of commits that the index has."""
    form = "--format=%(refname:lstrip=3)%09%(objectname)"
    asked = refs.git.begin("for-each-ref", form, OPEN.rstrip("/"))  # it goes on while the index is read
    widen(asked.process.stdout)
    try:
        kept = index.known(TIPS)
        listed = asked.result()
    finally:
        asked.close()
    if listed.code:
        raise failure("for-each-ref", listed)
    names = listed.out.split(b"\n")[:-1]
    there = [kept[name] for name in names if name in kept]
    fresh = read_tips(refs, [name for name in names if name not in kept]) if len(there) < len(names) else []
    index.learn(TIPS, rows_of(index, fresh))
    index.drop_dead(TIPS, there)
    return [*map(summary_in, there), *fresh]


def read_tips(refs: Refs, names: Sequence[bytes]) -> list[Summary]:
    """Read these gates from their commits, by one git process."""
    mark = os.urandom(12).hex().encode()
    pairs = (name.rpartition(b"\t") for name in names)
    asked = b"".join(b"%s %s%s\n" % (oid, OPEN.encode(), gate) for gate, _, oid in pairs)
    out = refs.git.out("cat-file", "--buffer", batch_form(mark), input=asked)
    return list(read_summaries(checked_run(out, mark), mark, OPEN, is_sound_commit))


def archived_summaries(
    index: Index, tips: Sequence[tuple[str, str]], read: Callable[[str, str], Summary]
) -> list[Summary]:
    """Return summaries of archived gates, each with the commit that it ended at. `read` is for what the index
    does not have.
    """
    kept = index.known(ARCHIVED)
    rows = [(gate, tip, kept.get(f"{gate}\t{tip}".encode())) for gate, tip in tips]
    fresh = {gate: read(gate, tip) for gate, tip, row in rows if row is None}
    index.learn(ARCHIVED, rows_of(index, fresh.values()))
    return [fresh[gate] if row is None else summary_in(row) for gate, _, row in rows]
