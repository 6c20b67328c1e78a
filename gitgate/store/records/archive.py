"""Store: closed gates and runs, found again. Each month is a chain of folds; a gate is at `<id[:2]>/<id>/` in its month's tree.

A fold names what it took in its message (`<id> <tip>`) and keeps it alive as a parent; a line counts only if that
commit is one. A run of a flow is at `runs/<id[:2]>/<id>/`, with the files of all its events together, by a line `<id> run <tip>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ...document import NamedTuple, dataclass, field, replace
from ...errors import BrokenRecord
from ...model import is_id, misread
from ...text import counted
from ..git import Repository
from ..git.canonical import FOLDER, REGULAR, NotCanonical, TreeEntry, dump_commit, dump_tree, parse_commit
from ..git.objects import COMMIT, TREE, Objects, object_id
from ..git.refs import ARCHIVE, TRACKING, Refs
from . import Records, Signature

if TYPE_CHECKING:
    from ..git.canonical import Commit


LATE = "late"
RUN = "run"
RUN_FOLDER = "runs"
_MONTH = r"\d{4}-(0[1-9]|1[0-2])"
_LINE = r"(?m)^([2-9a-km-np-z]{10}) (late |run )?([0-9a-f]{40,64})$"


@dataclass(frozen=True)
class ArchivedGate:
    """Closed gate in the archive of `month`, or an ended run; `late` are tips that came after, kept with it."""

    id: str
    month: str
    tip: str
    late: tuple[str, ...] = field(default=())
    run: bool = field(default=False)

    @property
    def tips(self) -> tuple[str, ...]:
        return (self.tip, *self.late)


@dataclass(frozen=True)
class Shelf:
    """One month's archive as one repository has it: the newest fold."""

    month: str
    ref: str
    fold: str


def is_month(text: str) -> bool:
    return re.fullmatch(_MONTH, text) is not None


def gate_folder(gate: str) -> str:
    return f"{gate[:2]}/{gate}"


def run_folder(run: str) -> str:
    return f"{RUN_FOLDER}/{gate_folder(run)}"


def shelves(repo: Repository, *prefixes: str) -> list[Shelf]:
    """List the months below these prefixes, newest first; by default ours, then what each remote had."""
    given = prefixes or (ARCHIVE, f"{TRACKING}*/archive/*")
    found = [
        Shelf(ref.rpartition("/")[2], ref, fold) for ref, fold in Refs(repo).under(*given).items() if ref
    ]
    return sorted(
        (shelf for shelf in found if is_month(shelf.month)),
        key=lambda shelf: (shelf.month, shelf.ref.startswith(ARCHIVE)),
        reverse=True,
    )


def archived(repo: Repository, gate: str) -> str | None:
    """Return the tip of an archived gate's record; None where it is not archived. All months are asked, newest
    first.
    """
    found = find_archived(repo, shelves(repo), [gate]).get(gate)
    return found.tip if found else None


def archived_ids(repo: Repository, prefix: str, *, runs: bool = False) -> list[str]:
    """List the ids of archived gates, or of runs, that begin with `prefix` (two characters or more)."""
    found: set[str] = set()
    start = f"{RUN_FOLDER}/" if runs else ""
    for shelf in shelves(repo):
        said = repo.git.run(
            "ls-tree", "-z", "--name-only", f"{shelf.fold}:{start}{prefix[:2]}", check=False
        ).out
        found |= {name for name in said.decode("utf-8", "replace").split("\0") if name.startswith(prefix)}
    return sorted(gate for gate in found if is_id(gate))


class Fold(NamedTuple):
    """Content of one fold: gates with the tips they end at, tips that came late, in its order, and runs with
    their tips.
    """

    gates: Mapping[str, str]
    late: Sequence[tuple[str, str]]
    runs: Mapping[str, str]


def load_fold(chains: Records, oid: str) -> Fold:
    """Load the content of a fold. BrokenRecord where it takes anything away, or is not what it says.

    It has all that the fold before it has, unchanged. Besides, it has a folder for each gate that its message names,
    which is the tree of that gate's record; a folder for each run, with the files of its journal; and answers below
    the `late/` of gates that were there.
    """
    commit = chains.commit(oid)
    at = f"fold {oid[:12]}"
    why = misread(commit.encoding, commit.body)
    if why:  # `contents` has git read it
        raise BrokenRecord(f"{at}: its message {why}")
    if not commit.parents:
        if chains.raw_tree(commit.tree):
            raise BrokenRecord(f"{at}: a month begins empty")
        return Fold({}, (), {})
    found = named_by(at, commit)
    gates, late = found.gates, found.late
    strange = set(commit.parents[1:]) - {*gates.values(), *found.runs.values(), *(tip for _, tip in late)}
    if strange:
        raise BrokenRecord(f"{at} has {min(strange)[:12]} as a parent, and does not say what it is")
    before = chains.tree(chains.commit(commit.parents[0]).tree)
    for gate, _ in late:
        drawer = before.get(gate[:2].encode())
        if drawer is None or gate.encode() not in chains.tree(drawer.oid):
            raise BrokenRecord(f"{at}: nothing can come late for gate {gate}, which is not in this archive")
    after = dict(chains.tree(commit.tree))
    compare_runs(chains, at, (dict(before).get(RUNS_ENTRY), after.pop(RUNS_ENTRY, None)), found.runs)
    before = {name: entry for name, entry in before.items() if name != RUNS_ENTRY}
    compare_drawers(chains, at, before, after, gates, late)
    return found


def named_by(at: str, commit: Commit) -> Fold:
    """Return the content that a fold's message names: gates with their tips, tips that came late, and runs."""
    gates: dict[str, str] = {}
    late: list[tuple[str, str]] = []
    runs: dict[str, str] = {}
    for gate, kind, tip in re.findall(_LINE, commit.message):
        if tip not in commit.parents[1:]:
            raise BrokenRecord(f"{at} names {tip[:12]} of gate {gate}, which is no parent of it")
        if gate in gates or gate in runs:
            raise BrokenRecord(f"{at} takes {'run' if gate in runs else 'gate'} {gate} twice")
        if kind == f"{LATE} ":
            late.append((gate, tip))
        else:
            (runs if kind else gates)[gate] = tip
    return Fold(gates, late, runs)


RUNS_ENTRY = RUN_FOLDER.encode()


def compare_runs(
    chains: Records,
    at: str,
    sides: tuple[TreeEntry | None, TreeEntry | None],
    runs: Mapping[str, str],
) -> None:
    """Check the runs before and after: each new one is named, and its folder has the files of its journal, and
    nothing else.
    """
    old, new = sides
    if old is not None and new is None:
        raise BrokenRecord(f"{at} takes '{RUN_FOLDER}' out of the archive")
    if new is not None and new.mode != FOLDER:
        raise BrokenRecord(f"{at} holds '{RUN_FOLDER}', which is no folder")
    before = chains.tree(old.oid) if old is not None else {}
    after = chains.tree(new.oid) if new is not None else {}
    added: set[str] = set()
    for drawer in changed_entries(at, before, after):
        shown = drawer.name.decode("utf-8", "replace")
        had = chains.tree(before[drawer.name].oid) if drawer.name in before else {}
        inside = chains.tree(drawer.oid) if drawer.mode == FOLDER else {}
        for entry in changed_entries(at, had, inside):
            run = entry.name.decode("utf-8", "replace")
            fits = entry.mode == FOLDER and run[:2] == shown and run in runs and entry.name not in had
            if not fits or entry.oid != assembled(chains, run, runs[run])[0]:
                raise BrokenRecord(f"{at} holds run {run} otherwise than as a journal that it names")
            added.add(run)
    left = sorted(set(runs) - added)
    if left:
        raise BrokenRecord(f"{at} names run {left[0]}, and does not take it in")


def assembled(chains: Records, run: str, tip: str) -> tuple[str, bytes]:
    """Return the files of all events of a journal as one tree: its id, and the tree."""
    from .journal import read_chain

    files = (TreeEntry(REGULAR, name.encode(), blob) for _, blob, name in read_chain(chains, run, tip))
    payload = dump_tree(files)
    return object_id(TREE, payload, chains.width), payload


def compare_drawers(
    chains: Records,
    at: str,
    before: Mapping[bytes, TreeEntry],
    after: Mapping[bytes, TreeEntry],
    gates: Mapping[str, str],
    late: Sequence[tuple[str, str]],
) -> None:
    added: set[str] = set()
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        shown = name.decode("utf-8", "replace")
        if new is None or new.mode != FOLDER:
            raise BrokenRecord(f"{at} takes {shown!r} out of the archive, or changes it")
        had = chains.tree(old.oid) if old else {}
        for entry in changed_entries(at, had, chains.tree(new.oid)):
            gate = entry.name.decode("utf-8", "replace")
            if entry.mode != FOLDER or not gate.startswith(shown) or len(shown) != 2:
                raise BrokenRecord(f"{at} holds {shown}/{gate}, which is no gate's folder")
            tips = [tip for one, tip in late if one == gate]
            if entry.name in had:
                check_late(chains, at, gate, had[entry.name], entry, tips)
            elif gate not in gates or entry.oid != chains.commit(gates[gate]).tree:
                raise BrokenRecord(f"{at} holds gate {gate} otherwise than as a record that it names")
            else:
                added.add(gate)
    left = sorted(set(gates) - added)
    if left:
        raise BrokenRecord(f"{at} names gate {left[0]}, and does not take it in")


def changed_entries(
    at: str, before: Mapping[bytes, TreeEntry], after: Mapping[bytes, TreeEntry]
) -> Iterator[TreeEntry]:
    """Yield the entries of `after` that are new or changed. BrokenRecord where an entry is gone."""
    for name in before:
        if name not in after:
            raise BrokenRecord(f"{at} takes {name.decode('utf-8', 'replace')!r} out of the archive")
    yield from (entry for name, entry in after.items() if before.get(name) != entry)


def check_late(
    chains: Records, at: str, gate: str, before: TreeEntry, after: TreeEntry, tips: Sequence[str]
) -> None:
    """Refuse changes to an archived gate, other than answers that the late tips have."""
    said: set[str] = set()
    for tip in tips:
        answers = chains.tree(chains.commit(tip).tree).get(b"answers")
        said |= {entry.oid for entry in chains.tree(answers.oid).values()} if answers else set()
    for folder in changed_entries(at, chains.tree(before.oid), chains.tree(after.oid)):
        if folder.name != LATE.encode() or folder.mode != FOLDER:
            raise BrokenRecord(f"{at} changes gate {gate}, which is archived")
        had = chains.tree(before.oid).get(folder.name)
        kept = chains.tree(had.oid) if had else {}
        new = list(changed_entries(at, kept, chains.tree(folder.oid)))
        if any(entry.mode != REGULAR or entry.oid not in said or entry.name in kept for entry in new):
            raise BrokenRecord(
                f"{at} adds to gate {gate}, which is archived, what no answer that came late is"
            )


PLACES = (gate_folder, run_folder)


def find_archived(repo: Repository, months: Sequence[Shelf], gates: Iterable[str]) -> dict[str, ArchivedGate]:
    """Find these gates and runs on these shelves. Each takes one path in a tree, so that the archive's size does
    not matter.
    """
    ids = [gate for gate in dict.fromkeys(gates) if is_id(gate)]  # a ref may be called anything
    wanted = [(shelf, gate) for shelf in months for gate in ids]
    if not wanted:
        return {}
    asked = "".join(f"{shelf.fold}:{place(gate)}\n" for place in PLACES for shelf, gate in wanted)
    said = repo.git.text("cat-file", "--batch-check=%(objecttype)", input=asked.encode()).splitlines()
    there: dict[Shelf, list[str]] = {}
    for (shelf, gate), *kinds in zip(wanted, said[: len(wanted)], said[len(wanted) :], strict=True):
        if "tree" in kinds:
            there.setdefault(shelf, []).append(gate)
    found: dict[str, ArchivedGate] = {}
    for shelf in months:
        present = there.get(shelf, [])
        told = contents(repo, [shelf], present) if present else {}
        for gate in present:
            if gate in told:
                found[gate] = together(found.get(gate), told[gate])
    return found


def together(one: ArchivedGate | None, other: ArchivedGate) -> ArchivedGate:
    """Join the entries of one gate in the archives of two repositories."""
    if one is None:
        return other
    return replace(one, late=tuple(dict.fromkeys(tip for tip in (*one.late, *other.tips) if tip != one.tip)))


def listing(repo: Repository, months: Sequence[Shelf] | None = None) -> list[ArchivedGate]:
    """List every archived gate with its tip, newest month first."""
    found = contents(repo, shelves(repo) if months is None else months)
    return [one for one in found.values() if not one.run]


def listing_of_runs(repo: Repository) -> list[ArchivedGate]:
    """List every archived run with its tip, newest month first."""
    return [one for one in contents(repo, shelves(repo)).values() if one.run]


def contents(repo: Repository, months: Sequence[Shelf], only: Sequence[str] = ()) -> dict[str, ArchivedGate]:
    """Return what the folds of these shelves took, by their messages along first parents. A shelf of which a fold cannot be read says
    nothing: what git makes of such a fold is another history than what is written there.
    """
    lines = fold_lines(repo, months)[0]
    wanted = frozenset(only)
    found: dict[str, ArchivedGate] = {}
    seen: set[str] = set()
    # Newest first over all of them; of two chains each in its own order.
    waiting = [(-line[0][1].committed_at, place, 0) for place, line in enumerate(lines.values())]
    heapify(waiting)
    shelved = [*lines.items()]
    while waiting:
        _, place, at = heappop(waiting)
        shelf, line = shelved[place]
        oid, commit = line[at]
        if oid in seen:
            continue  # and so is what is below it
        seen.add(oid)
        if at + 1 < len(line):
            heappush(waiting, (-line[at + 1][1].committed_at, place, at + 1))
        read_fold(found, shelf.month, frozenset(commit.parents), commit.message, wanted)
    return found


FoldLine = Sequence[tuple[str, "Commit"]]


def fold_lines(repo: Repository, months: Sequence[Shelf]) -> tuple[dict[Shelf, FoldLine], dict[Shelf, str]]:
    """Read the folds of each shelf, newest first, by the one reader of commits; and of the shelves that cannot be read, why."""
    if not months:
        return {}, {}
    asked = "".join(f"{tip}\n" for tip in dict.fromkeys(shelf.fold for shelf in months)).encode()
    how = ("--first-parent", "--ignore-missing", "--stdin")
    named = repo.git.out("rev-list", *how, input=asked) if asked else b""
    out = repo.git.out("cat-file", "--buffer", "--batch", input=asked + named)
    payloads = dict(printed_commits(out))
    parsed: dict[str, Commit] = {}
    lines: dict[Shelf, FoldLine] = {}
    wrong: dict[Shelf, str] = {}
    for shelf in months:
        try:
            lines[shelf] = line_below(payloads, parsed, shelf.fold, len(repo.zero) // 2)
        except BrokenRecord as broken:
            wrong[shelf] = broken.message
    return lines, wrong


def printed_commits(out: bytes) -> Iterator[tuple[str, bytes]]:
    """The commits that `git cat-file --batch` prints; what is missing, or something else, is left out."""
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        oid, *said = out[at:end].decode("utf-8", "replace").split(" ")
        at = end + 1
        if len(said) == 2:
            size = int(said[1])
            if said[0] == COMMIT:
                yield oid, out[at : at + size]
            at += size + 1


def line_below(
    payloads: Mapping[str, bytes], parsed: dict[str, Commit], tip: str, width: int
) -> list[tuple[str, Commit]]:
    """The folds from this one back to the beginning of its month, as they are written."""
    line: list[tuple[str, Commit]] = []
    oid = tip
    while oid:
        if oid not in parsed:
            if oid not in payloads:
                raise BrokenRecord(f"fold {oid[:12]} is not here, or is no commit")
            parsed[oid] = sound_fold(oid, payloads[oid], width)
        line.append((oid, parsed[oid]))
        oid = next(iter(parsed[oid].parents), "")
    return line


def sound_fold(oid: str, payload: bytes, width: int) -> Commit:
    try:
        found = parse_commit(payload, width)
    except NotCanonical as wrong:
        raise BrokenRecord(f"fold {oid[:12]} {wrong.message}") from wrong
    if why := misread(found.encoding, found.body):
        raise BrokenRecord(f"fold {oid[:12]}: its message {why}")
    return found


def read_fold(
    found: dict[str, ArchivedGate], month: str, parents: frozenset[str], message: str, wanted: frozenset[str]
) -> None:
    for gate, kind, tip in re.findall(_LINE, message):
        if tip in parents and (not wanted or gate in wanted):
            before, late = found.get(gate), kind == f"{LATE} "
            if kind == f"{RUN} ":
                found[gate] = ArchivedGate(gate, month, tip, run=True)
            elif before is None:
                found[gate] = ArchivedGate(gate, month, "" if late else tip, (tip,) if late else ())
            elif late:
                found[gate] = replace(before, late=(*before.late, tip))
            else:  # The walk goes back in time: the oldest fold that took a gate is the one that closed it.
                others = (before.tip,) if before.tip and before.tip != tip else ()
                found[gate] = replace(before, tip=tip, late=(*before.late, *others))


ROOT_AUTHOR = "gitgate <gitgate@localhost>"
_ANSWER = re.compile(r"answers/([A-Za-z0-9][A-Za-z0-9._-]{0,120})")


@dataclass(frozen=True)
class Late:
    """Words that reached a gate after it was archived: the tip that has them, and the files it adds."""

    id: str
    tip: str
    files: Mapping[str, str] = field(default_factory=dict)


def late_words(repo: Repository, gate: str, tip: str, known: Iterable[str]) -> Late:
    """Return the late words of `tip`, beyond the `known` tips of its gate. Only answers become files; all
    commits stay.
    """
    said = repo.git.out(
        *(
            "log",
            "--first-parent",
            "--diff-merges=first-parent",
            "--format=",
            "--raw",
            "-r",
            "-z",
            "--no-abbrev",
        ),
        *("--no-renames", "--no-show-signature", "--diff-filter=A", tip, "--not", *known, "--"),
    ).split(b"\0")
    files: dict[str, str] = {}
    for head, path in zip(said[0::2], said[1::2], strict=False):
        fields = head.decode().split()
        name = _ANSWER.fullmatch(path.decode("utf-8", "replace"))
        if name and len(fields) == 5 and fields[1] == REGULAR:
            files[name[1]] = fields[3]
    return Late(gate, tip, files)


class Binder:
    """Builder of folds. The same gates on the same base give the same tree, whoever builds it."""

    def __init__(self, repo: Repository, objects: Objects, by: Signature) -> None:
        self.objects = objects
        self.by = by
        self.chains = Records(repo, objects)

    def fold(
        self,
        what: str,
        base: str | None,
        gates: Sequence[tuple[str, str]],
        late: Sequence[Late] = (),
        runs: Sequence[tuple[str, str]] = (),
    ) -> str:
        """Write a fold on `base` (none: on an empty root) with these gates and runs, each with the commit it
        ends at.
        """
        base = base or self.root(what)
        tree = self.tree(self.chains.commit(base).tree, gates, late)
        tree = self.with_runs(tree, runs) if runs else tree
        lines = [f"{gate} {tip}" for gate, tip in gates] + [f"{one.id} {LATE} {one.tip}" for one in late]
        lines += [f"{run} {RUN} {tip}" for run, tip in runs]
        some = len(gates) + len(late)
        counts = [counted(some, "gate")] if some or not runs else []
        counts += [counted(len(runs), "run")] if runs else []
        message = f"fold {' and '.join(counts)} into {what}\n\n" + "\n".join(lines) + "\n"
        parents = [base, *(tip for _, tip in gates), *(one.tip for one in late), *(tip for _, tip in runs)]
        return self.objects.write(
            COMMIT, dump_commit(tree, dict.fromkeys(parents), self.by.who, self.by.at, message)
        )

    def root(self, what: str) -> str:
        """Write the first commit of a month. Its id is always the same, so that two who begin a month at once
        begin the same one.
        """
        empty = self.objects.write(TREE, b"")
        return self.objects.write(COMMIT, dump_commit(empty, (), ROOT_AUTHOR, 0, f"begin {what}\n"))

    def tree(self, base: str, gates: Sequence[tuple[str, str]], late: Sequence[Late]) -> str:
        top = self.chains.tree(base)
        touched: dict[bytes, dict[bytes, TreeEntry]] = {}
        for gate, tip in gates:
            drawer = self.drawer(touched, top, gate)
            drawer[gate.encode()] = TreeEntry(FOLDER, gate.encode(), self.chains.history(tip).tree)
        for one in late:
            drawer = self.drawer(touched, top, one.id)
            if one.files and one.id.encode() in drawer:
                drawer[one.id.encode()] = self.with_late(drawer[one.id.encode()], one.files)
        for name, drawer in touched.items():
            top[name] = TreeEntry(FOLDER, name, self.write(drawer.values()))
        return self.write(top.values())

    def with_runs(self, base: str, runs: Sequence[tuple[str, str]]) -> str:
        """Write the tree with each of these runs below `runs/`: the files of its events, which its commits hold
        one by one.
        """
        top = self.chains.tree(base)
        inside = self.chains.tree(top[RUNS_ENTRY].oid) if RUNS_ENTRY in top else {}
        touched: dict[bytes, dict[bytes, TreeEntry]] = {}
        for run, tip in runs:
            payload = assembled(self.chains, run, tip)[1]
            folder = TreeEntry(FOLDER, run.encode(), self.objects.write(TREE, payload))
            self.drawer(touched, inside, run)[run.encode()] = folder
        for name, drawer in touched.items():
            inside[name] = TreeEntry(FOLDER, name, self.write(drawer.values()))
        top[RUNS_ENTRY] = TreeEntry(FOLDER, RUNS_ENTRY, self.write(inside.values()))
        return self.write(top.values())

    def drawer(
        self, touched: dict[bytes, dict[bytes, TreeEntry]], top: Mapping[bytes, TreeEntry], gate: str
    ) -> dict[bytes, TreeEntry]:
        name = gate_folder(gate).partition("/")[0].encode()
        if name not in touched:
            touched[name] = self.chains.tree(top[name].oid) if name in top else {}
        return touched[name]

    def with_late(self, entry: TreeEntry, files: Mapping[str, str]) -> TreeEntry:
        inside = self.chains.tree(entry.oid)
        name = LATE.encode()
        kept = self.chains.tree(inside[name].oid) if name in inside else {}
        kept |= {file.encode(): TreeEntry(REGULAR, file.encode(), blob) for file, blob in files.items()}
        inside[name] = TreeEntry(FOLDER, name, self.write(kept.values()))
        return TreeEntry(FOLDER, entry.name, self.write(inside.values()))

    def write(self, entries: Iterable[TreeEntry]) -> str:
        return self.objects.write(TREE, dump_tree(entries))
