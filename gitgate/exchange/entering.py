"""Exchange: a push that comes in: its refs, what its rules need to know of the repository that is to take it, and what is new in
its gates, whoever pushes: silence that this clock bears out, files as they are named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from .. import text as times
from ..config import load_settings
from ..context import Desk
from ..document import dataclass, field
from ..errors import FINAL, BrokenRecord, GateError
from ..model import is_id, traits
from ..model.gate import ATTACHMENTS, Entry, Gate, Leased, Opened
from ..questions.file import MOST_BYTES, MOST_TOTAL
from ..record import contradiction
from ..record.events import stages
from ..store.git import Git, Piped, Repository
from ..store.git.canonical import FOLDER, REGULAR
from ..store.git.refs import ARCHIVE, OPEN, Refs, Update

if TYPE_CHECKING:
    from ..record.runs import Run
    from ..store.records.archive import ArchivedGate, Fold

SLACK = 600  # seconds that clocks may differ by
MOST_STEPS = 100_000
FEW = 12


# What speaks against a gate beyond the format, given where it was before the push; empty when nothing does.
Beyond = Callable[[Gate, "str | None"], str]


@dataclass(frozen=False)
class Push:
    """Push to this repository, with what its rules need to know of the repository."""

    desk: Desk
    updates: Sequence[Update]
    beyond: Beyond | None = None
    acting: Callable[[], str] | None = None
    """Why whoever pushes may not act on gates, by the policy; empty when they may."""
    gates: dict[tuple[str, str], Gate] = field(default_factory=dict)
    runs: dict[tuple[str, str], Run] = field(default_factory=dict)
    received: dict[str, tuple[str, Leased]] = field(default_factory=dict)
    """The leases that the push moves, each with its gate as it is afterwards."""
    erased: list[str] = field(default_factory=list)
    """The open gates whose saved session goes."""
    _archived: dict[str, ArchivedGate] | None = None
    _folds: dict[str, list[Fold]] = field(default_factory=dict)
    _folded: dict[str, list[str]] | None = None
    _open: Mapping[str, str] | None = None

    @property
    def archived(self) -> Mapping[str, ArchivedGate]:
        """Gates and runs of this push that the archive here has already."""
        if self._archived is None and not self.desk.refs.may_have(ARCHIVE):
            self._archived = {}
        if self._archived is None:
            from ..store.records.archive import find_archived, shelves

            named = [name for update in self.updates if is_id(name := update.ref.rpartition("/")[2])]
            named += self.folded_by()
            named += [gate for folds in self._folds.values() for fold in folds for gate, _ in fold.late]
            self._archived = find_archived(self.desk.repo, shelves(self.desk.repo, ARCHIVE), named)
        return self._archived

    def folds(self, update: Update) -> list[Fold]:
        """Load the folds that a month of the archive gains by this push, oldest first. BrokenRecord where they
        are not sound.
        """
        from ..store.records.archive import load_fold

        if update.ref in self._folds:
            return self._folds[update.ref]
        chain: list[str] = []
        oid = update.new
        while oid is not None and oid != update.old:
            if len(chain) >= MOST_STEPS:
                raise BrokenRecord("it has more folds than anybody makes")
            chain.append(oid)
            oid = next(iter(self.desk.records.commit(oid).parents), None)
        if oid != update.old:
            raise BrokenRecord(not_grown(update))
        found = [load_fold(self.desk.records, fold) for fold in reversed(chain)]
        self._folds[update.ref] = found
        return found

    def folded_by(self) -> Mapping[str, list[str]]:
        """Return, by gate or run, the tips at which this very push archives it. Unsound folds are left out: they
        are refused where they are judged.
        """
        if self._folded is None:
            self._folded = {}
            for update in self.updates:
                if update.ref.startswith(ARCHIVE) and update.new is not None:
                    with suppress(GateError):
                        for fold in self.folds(update):
                            for gate, tip in (*fold.gates.items(), *fold.runs.items()):
                                self._folded.setdefault(gate, []).append(tip)
        return self._folded

    def after(self, ref: str) -> str | None:
        """Return the commit that a ref will have after the push; None where there will be no such ref."""
        for update in self.updates:
            if update.ref == ref:
                return update.new
        return self.here(ref)

    def before(self, ref: str) -> str | None:
        """Return the commit that a ref has now; None where there is no such ref."""
        for update in self.updates:
            if update.ref == ref:
                return update.old
        return self.here(ref)

    def here(self, ref: str) -> str | None:
        """Return the commit that a ref has in this repository.

        Git's reader is asked for each ref, unless many gates are needed: then all are listed at once.
        """
        if len(self.updates) < FEW or not ref.startswith(OPEN):
            return self.desk.refs.get(ref)
        if self._open is None:
            self._open = self.desk.refs.under(OPEN)
        return self._open.get(ref)

    def gate(self, gate: str, tip: str) -> Gate:
        """Load the gate with this tip, once for each push."""
        if (gate, tip) not in self.gates:
            self.gates[gate, tip] = self.desk.records.load(gate, tip)
        return self.gates[gate, tip]


def receiving_desk(git: Git, zero: str, reader: Piped) -> Desk:
    """Open a desk for a hook that judges a push. Whoever pushes waits, so git is asked for nothing that it gave the
    hook already.

    Settings have no part in what a record may be.
    """
    repo = Repository(git, git.directory, common_folder(git.directory), None, zero, False)
    return Desk(repo, load_settings({}, {}, None), Refs(repo), time, bulk=False, reader=reader)


def common_folder(git_dir: Path) -> Path:
    """Return the folder with the refs that a push moves.

    A worktree of a server may be pushed to as well, and its own git folder names another one.
    """
    try:
        return Path(os.path.normpath(git_dir / (git_dir / "commondir").read_text("utf-8").removesuffix("\n")))
    except (FileNotFoundError, NotADirectoryError):
        return git_dir


def decode(data: bytes) -> str:
    """Decode git's input to a receiving hook: a ref's name may be any bytes, whatever language the server uses."""
    return data.decode("utf-8", "surrogateescape")


def parse_updates(text: str) -> list[Update]:
    """Parse the lines that git gives to a receiving hook, one ref each.

    Only a newline ends a line: a ref's name may have what Unicode calls a line separator.
    """
    found = []
    zero = "0" * len(text.partition(" ")[0])
    for line in filter(None, text.split("\n")):
        old, new, ref = [*line.split(" ", 2), "", ""][:3]
        found.append(Update(None if old == zero else old, None if new == zero else new, ref))
    return found


def not_grown(update: Update) -> str:
    return (
        f"it only grows, by first parents: {str(update.new)[:10]} does not go on from {str(update.old)[:10]}"
    )


def fresh(gate: Gate, old: str | None) -> Sequence[Entry]:
    """Return the events after the commit that was here before the push."""
    commits = [entry.commit for entry in gate.history]
    return gate.history[commits.index(old) + 1 if old in commits else 0 :]


def against_events(desk: Desk, gate: Gate, old: str | None) -> str:
    """Return why the events after `old` are refused; empty when they are accepted."""
    for entry in fresh(gate, old):
        why = against_repeats(entry) or against_clock(desk, entry) or against_files(desk, gate, entry)
        if why:
            return at(entry, why)
    return against_messages(desk, gate, len(fresh(gate, old)))


def against_messages(desk: Desk, gate: Gate, count: int) -> str:
    """Return why one of the last `count` events is refused: its message tells lists something else than its record."""
    then = [gate] if count == 1 else islice(stages(gate.id, gate.history), len(gate.history) - count, None)
    for each in then:
        why = contradiction(desk.records.commit(each.tip), each)
        if why:
            return at(each.history[-1], f"{why} ({FINAL})")
    return ""


def at(entry: Entry, why: str) -> str:
    return f"{entry.name} ({entry.commit[:10]}): {why}"


def against_repeats(entry: Entry) -> str:
    """Return why an event is refused that the record has already; empty when it is new. An event counts once.

    A repeated event would bring back words that their author has replaced since.
    """
    if not entry.repeats:
        return ""
    return f"it is what {entry.repeats[:10]} recorded, once more: an event counts once ({FINAL})"


def against_clock(desk: Desk, entry: Entry) -> str:
    """Return why an event of silence is refused: its deadline has to pass by this clock too."""
    said = getattr(entry.event, "at", "")
    if traits(entry.name).silent and said > times.format_time(desk.clock() + SLACK):
        return f"it is of {said}, and here it is {desk.now}"
    return ""


def against_files(desk: Desk, gate: Gate, entry: Entry) -> str:
    """Return why the files attached to a question are refused; empty when they are accepted.

    They must be those that the question names, regular ones, and within the limits.
    """
    if not isinstance(entry.event, Opened):
        return ""
    sizes = [len(desk.records.attachment(gate, name)) for name in gate.opened.attachments]
    if any(size > MOST_BYTES for size in sizes) or sum(sizes) > MOST_TOTAL:
        return f"its attachments are larger than {MOST_BYTES:,} bytes each, or {MOST_TOTAL:,} together"
    top = desk.records.tree(desk.records.commit(entry.commit).tree).get(ATTACHMENTS.encode())
    found = [] if top is None else files(desk, top.oid, "", 0)
    strange = sorted(set(found) - set(gate.opened.attachments))
    return f"it holds {ATTACHMENTS}/{strange[0]}, which the question does not name" if strange else ""


def files(desk: Desk, tree: str, above: str, depth: int) -> list[str]:
    """List every path below a tree. What is no regular file and no folder gets a name that no question can have."""
    found: list[str] = []
    for name, item in desk.records.tree(tree).items():
        path = above + name.decode("utf-8", "replace")
        if item.mode == FOLDER and depth < 10:
            found += files(desk, item.oid, f"{path}/", depth + 1)
        else:
            found.append(path if item.mode == REGULAR else f"{path} (no regular file)")
    return found
