"""Context: which open gate is meant, by its id, by the beginning of one, or because it is the only one that waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import AmbiguousGate, IllegalEvent, UnknownGate
from ..model import states
from ..model.trailers import parse_trailers
from ..record.headline import Summary, read_summaries
from ..store.git.refs import OPEN, RUNS
from .desk import Desk
from .remotes import never_synced, remote_of

LISTING = "git gate list"
SYNC = "git gate sync"
# From so many on it takes less time to load SQLite and to read the index than to read the commits.
MANY = 500


def find_tip(desk: Desk, given: str | None, *, waiting: str = "waits for an answer") -> tuple[str, str]:
    """(id, tip) of the open gate that `given` names, or of the only one that waits."""
    if given is None:
        return only_waiting(desk, waiting)
    word = given.strip().lower()
    if states.is_id(word):
        return one_of(desk, given, [OPEN + word])
    if not states.is_prefix(word):
        raise UnknownGate(
            f"{given!r} is not a gate's id: they have 10 letters and digits, none of them 0, 1, l or o; 4 are enough",
            hint=LISTING,
        )
    return one_of(desk, given, desk.refs.beginning(OPEN + word))


def is_run(desk: Desk, given: str | None) -> bool:
    """Whether a run is meant by what was typed, and no gate."""
    word = (given or "").strip().lower()
    if not states.is_prefix(word) or desk.refs.beginning(OPEN + word):
        return False
    return bool(desk.refs.beginning(RUNS + word)) or is_archived_run(desk, word)


def is_archived_run(desk: Desk, prefix: str) -> bool:
    from ..store.records.archive import archived_ids

    return bool(archived_ids(desk.repo, prefix, runs=True))


def gate_of_run(desk: Desk, given: str) -> str:
    """The gate at which the run that is named waits; empty where no run is."""
    word = given.strip().lower()
    refs = desk.refs.beginning(RUNS + word) if states.is_prefix(word) else []
    tips = [tip for ref in refs if (tip := desk.refs.get(ref)) is not None]
    if not tips and states.is_prefix(word) and is_archived_run(desk, word):
        raise IllegalEvent(
            f"run {word} is over, and archived: it waits for nobody", hint=f"git gate show {word}"
        )
    if len(tips) != 1:
        return ""
    run, said = refs[0].removeprefix(RUNS), parse_trailers(desk.records.commit(tips[0]).message) or {}
    gates = said.get("Gates", "").split()
    if not gates:
        raise IllegalEvent(
            f"run {run} is {said.get('State', 'unknown')}: it waits for nobody",
            hint=f"git gate show {run[:6]}",
        )
    if len(gates) > 1:
        raise AmbiguousGate(
            f"run {run} waits at {', '.join(gates)}",
            hint="name one of them; what each asks: git gate list --awaiting",
        )
    return gates[0]


def one_of(desk: Desk, given: str, refs: Iterable[str]) -> tuple[str, str]:
    found = {ref.removeprefix(OPEN): tip for ref in refs if (tip := desk.tip(ref)) is not None}
    if not found and (waited := gate_of_run(desk, given)):
        return one_of(desk, waited, [OPEN + waited])
    if not found:
        raise unknown_gate(desk, given)
    if len(found) > 1:
        raise AmbiguousGate(f"{given} could be {', '.join(sorted(found)[:8])}", hint="type more of the id")
    return found.popitem()


def unknown_gate(desk: Desk, given: str) -> UnknownGate:
    remote = never_synced(desk)
    if remote is not None:
        return UnknownGate(
            f"there is no gate {given} here, and this clone has never synced with {remote}", hint=SYNC
        )
    more = f"; {SYNC} fetches those of the remote" if remote_of(desk) else ""
    return UnknownGate(f"there is no gate {given} here", hint=f"{LISTING} --all shows every gate here{more}")


def only_waiting(desk: Desk, what: str) -> tuple[str, str]:
    waiting = [summary for summary in summaries(desk) if summary.state == "awaiting"]
    if not waiting:
        remote = never_synced(desk)
        if remote is not None:
            raise UnknownGate(
                f"no gate {what} here, and this clone has never synced with {remote}", hint=SYNC
            )
        raise UnknownGate(f"no gate {what}", hint=LISTING)
    if len(waiting) > 1:
        names = ", ".join(summary.id[:6] for summary in waiting[:8])
        raise AmbiguousGate(
            f"{len(waiting)} gates wait: {names}", hint="name one of them; what each asks: git gate list"
        )
    return waiting[0].id, waiting[0].tip


def summaries(desk: Desk) -> Iterator[Summary]:
    """Every open gate. One whose trailers break the rules still appears, as `broken`."""
    tips = desk.refs.tips()
    for run in tips.runs():
        yield from read_summaries(run, tips.mark, OPEN)


def all_summaries(desk: Desk) -> list[Summary]:
    """The same at once, for lists and figures. Of many, what the index has of their commits is not read again."""
    if pays(how_many(desk.repo.index)):
        from ..store.records.index import read_open

        return read_open(desk.index, desk.refs)
    found = list(summaries(desk))
    if pays(len(found)):
        from ..store.records.index import TIPS, rows_of

        desk.index.replace(TIPS, rows_of(desk.index, found))
    return found


def how_many(index: Path) -> int:
    """How many open gates the index knows, without loading SQLite: its own number for such things, in the file's head."""
    try:
        with index.open("rb") as file:
            return int.from_bytes(file.read(64)[60:], "big")
    except OSError:
        return 0


def pays(count: int) -> bool:
    """Whether the index saves more than it costs for so many gates. Some builds of Python come without SQLite."""
    if count < MANY:
        return False
    try:
        import sqlite3  # noqa: F401
    except ImportError:
        return False
    return True
