"""Context: what this machine knows for itself, and no record says: the repositories that `git gate init` was run in, slots for agents,
who listens in a clone, and which agents asked from it, by process, directory and conversation.

The latter is kept beside the repository and never pushed: it is how this machine knows that a gate is its own. It is one file
with a line for each gate: a file for each would take a block of the disk for four hundred bytes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ..document import dataclass, names_of, replace
from ..model import is_id
from ..store import locked, parse_note, private_folder, read_local, read_local_note, take_lock, write_private
from ..store.git import Repository
from . import Desk, earlier_presences, presence_file


@dataclass(frozen=True)
class Presence:
    """One gate that was asked here. `session` is the conversation's id, which no record holds.

    `branch` is the one that its directory was on; empty where that is the work's own. Not `trusted`: the agent had been
    resumed here with work that came from elsewhere. `flags` are those of its command line that a run of the same
    conversation needs again.
    """

    gate: str
    agent: str
    program: str
    session: str
    directory: str
    work: str
    pid: int
    started: str
    boot: str
    at: str
    branch: str = ""
    trusted: bool = True
    flags: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        """True where exactly that process still runs: the number alone may be another process's by now."""
        return (
            self.pid > 0
            and self.boot == boot_id()
            and bool(self.started)
            and started(self.pid) == self.started
        )


def note_presence(desk: Desk, present: Presence) -> None:
    """Write down who asked; a disk that is full is no reason to fail a question that was asked already."""
    present = replace(present, started=started(present.pid), boot=boot_id())
    said = {name: getattr(present, name) for name in names_of(present)}
    place = presence_file(desk)
    with suppress(OSError):
        private_folder(place.parent)
        with locked(place, wait=True), place.open("a+b") as notes:
            notes.seek(max(0, notes.tell() - 1))
            cut = notes.read() not in (b"", b"\n")  # by somebody who was killed in the middle, or had no room
            notes.write((b"\n" if cut else b"") + json.dumps(said).encode() + b"\n")


def find_presence(desk: Desk, gate: str) -> Presence | None:
    """Return the note on the asker of this gate; None when it was asked elsewhere."""
    notes = read_notes(presence_file(desk))
    # Inside of a text JSON has a backslash before each quote: this stands where a line begins, and nowhere else.
    start = notes.rfind(f'{{"gate": "{gate}"'.encode())
    if start < 0:
        return parse_presence(read_notes(earlier_presences(desk) / gate))
    return parse_presence(notes[start:].partition(b"\n")[0])


def everyone_here(desk: Desk) -> Iterator[Presence]:
    """Everybody who asked from here, by their gates."""
    earlier = earlier_presences(desk)
    files = [file for file in earlier.iterdir() if is_id(file.name)] if earlier.is_dir() else []
    lines = [*map(read_notes, files), *read_notes(presence_file(desk)).splitlines()]
    known = {found.gate: found for found in map(parse_presence, lines) if found is not None}
    yield from (known[gate] for gate in sorted(known))


def read_notes(place: Path) -> bytes:
    try:
        return read_local(place)
    except OSError:
        return b""


PRESENT: dict[str, type] = {
    **dict.fromkeys(
        ("gate", "agent", "program", "session", "directory", "work", "started", "boot", "at"), str
    ),
    "pid": int,
}


def parse_presence(line: bytes) -> Presence | None:
    """A note as it was written; None where it is none, or was cut short."""
    try:
        said = parse_note(line, **PRESENT)
        return Presence(**{**said, "flags": tuple(map(str, said.get("flags", ())))})
    except (ValueError, TypeError, AttributeError):
        return None


def host_name() -> str:
    """Return this machine's own name, like `socket.gethostname`, but without the 1.5 ms that loading that module
    costs.
    """
    return os.uname().nodename


def started(pid: int) -> str:
    """Return when a process began, as the kernel counts; empty when it is gone or nobody can tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """One clock runs from one start of the machine to the next; without a name for that, only within one process."""
    try:
        return BOOT.read_text("utf-8").strip() or f"process-{os.getpid()}"
    except OSError:
        return f"process-{os.getpid()}"


@dataclass(frozen=True)
class Attentive:
    """Somebody who hears of questions in a clone as they are asked (`git gate listen`, `git gate desk`), and by which dialogs."""

    by: str
    pid: int
    host: str
    dialog: str
    since: str
    started: str = ""


# Whoever listens has the lock; the file beside it says who that is, and is touched as long as they do. One listener, and one desk.
LISTENING, AT_DESK, BEAT = "listening", "desk", 15.0
TRIES, PAUSE = 5, 0.05


def begin_listening(desk: Desk, who: Attentive, kind: str = LISTENING) -> int | None:
    """The open lock of the only one who listens in this clone (or has the desk open); None where somebody else does."""
    folder = private_folder(desk.repo.state_dir)
    for _ in range(TRIES):  # whoever only looks has it for a moment as well
        number = take_lock(folder / f"{kind}.lock")
        if number is not None:
            note_listening(folder / kind, who)
            return number
        time.sleep(PAUSE)
    return None


def note_listening(place: Path, who: Attentive) -> None:
    said = {name: getattr(who, name) for name in names_of(who)}
    write_private(place, json.dumps({**said, "started": started(who.pid)}).encode())


def keep_listening(repo: Repository, kind: str = LISTENING) -> None:
    """Still there: what another machine that shares the folder goes by."""
    with suppress(OSError):
        os.utime(repo.state_dir / kind)


def end_listening(repo: Repository, number: int, kind: str = LISTENING) -> None:
    """Our own word is taken back, and nobody else's."""
    with suppress(OSError):
        (repo.state_dir / kind).unlink()
    os.close(number)


def attentive_ones(desk: Desk) -> list[Attentive]:
    """Return the listeners that a question here reaches: the listener, and whoever has the desk open."""
    return [who for kind in (LISTENING, AT_DESK) if (who := find_listener(desk, kind)) is not None]


def find_listener(desk: Desk, kind: str = LISTENING) -> Attentive | None:
    """Return the listener of this clone, if one runs. A killed one leaves its note, but no lock; a lock on another
    machine cannot be seen here.
    """
    folder = desk.repo.state_dir
    try:
        place = folder / kind
        who = Attentive(**read_local_note(place, by=str, pid=int, host=str, dialog=str, since=str))
        if who.host != os.uname().nodename:
            return who if time.time() - place.stat().st_mtime < 4 * BEAT else None
        with locked(folder / f"{kind}.lock") as ours:
            return None if ours else who
    except (OSError, ValueError, TypeError):
        return None


def state_home(env: Mapping[str, str]) -> Path | None:
    """Return the folder for state that this person's programs keep on this machine beyond their end; None where there
    is no home.
    """
    if env.get("XDG_STATE_HOME"):
        return Path(env["XDG_STATE_HOME"]) / "gitgate"
    return Path(env["HOME"]) / ".local" / "state" / "gitgate" if env.get("HOME") else None


@contextmanager
def slot(env: Mapping[str, str], most: int) -> Iterator[bool]:
    """Take one of `most` slots until the context ends, and yield whether one was free."""
    home = state_home(env)
    if home is None or most <= 0:
        yield most > 0
        return
    number = take_slot(private_folder(home / "slots"), most)
    try:
        yield number is not None
    finally:
        if number is not None:
            os.close(number)


def take_slot(folder: Path, most: int) -> int | None:
    """The open file of the first free slot."""
    slots = (take_lock(folder / str(number)) for number in range(most))
    return next((taken for taken in slots if taken is not None), None)


MOST_REPOSITORIES = 10_000


def repositories(env: Mapping[str, str]) -> list[Path]:
    """Return the registered repositories that still exist."""
    return [place for place in read_registry(env) if place.is_dir()]


def read_registry(env: Mapping[str, str]) -> list[Path]:
    home = state_home(env)
    if home is None:
        return []
    try:
        lines = read_local(home / "repositories").decode("utf-8", "surrogateescape").split("\n")
    except OSError:
        return []
    return list(dict.fromkeys(Path(line) for line in lines[:MOST_REPOSITORIES] if line))


def register(env: Mapping[str, str], place: Path) -> None:
    change_registry(env, lambda known: [*(p for p in known if p != place and p.is_dir()), place])


def unregister(env: Mapping[str, str], place: Path) -> None:
    change_registry(env, lambda known: [p for p in known if p != place])


def change_registry(env: Mapping[str, str], to: Callable[[list[Path]], list[Path]]) -> None:
    """Read and write the list while nobody else does."""
    home = state_home(env)
    if home is None:
        return
    with locked(private_folder(home) / "repositories.lock", wait=True):
        lines = "".join(f"{place}\n" for place in to(read_registry(env)) if "\n" not in str(place))
        write_private(home / "repositories", lines.encode("utf-8", "surrogateescape"))
