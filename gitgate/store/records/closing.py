"""Store: closed gates and ended runs leave the open ones, in an order in which a kill at any point loses nothing.

First the archive gains them, then the refs go whose exact tip it holds: on the remote, then here. Whoever loses a
race builds again on what won. A repeat does only what is left to do.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, Self

from ...errors import GateError, GitFailed, LostRace, PushRefused, Usage
from ..git import Repository
from ..git.objects import open_objects
from ..git.refs import ARCHIVE, EVIDENCE, LEASES, OPEN, RUNS, SESSIONS, WORK, Refs
from ..git.remembered import remember_tips
from ..remote import FateKind, RefMove, Refusal, tracking
from ..remote.fetch import fetch, fetch_folder, fetch_refs
from ..remote.push import push, push_gates
from ..remote.wire import Progress
from . import Signature
from .archive import (
    ArchivedGate,
    Binder,
    Late,
    Shelf,
    contents,
    find_archived,
    fold_lines,
    is_month,
    late_words,
    shelves,
)


class FoldRefused(PushRefused):
    """Error of a fold that the server's hook refuses, because of a gate in it."""


class Shelves(Protocol):
    """Archive that grows. Whoever builds on a tip that is no longer the newest gets LostRace, and builds again."""

    def refresh(self) -> None: ...

    def refresh_beside(self, refs: Iterable[str]) -> None:
        """Fetch those of these refs that were seen before; `refresh` does not bring them."""

    def months(self) -> list[Shelf]: ...

    def tips(self, refs: Iterable[str]) -> dict[str, str]: ...

    def has_work(self, works: Sequence[tuple[str, str]], months: Iterable[str]) -> frozenset[str]: ...

    def advance(self, moves: Sequence[RefMove]) -> None: ...

    def take_away(self, moves: Sequence[RefMove]) -> dict[str, str]: ...


class LocalShelves:
    def __init__(self, repo: Repository) -> None:
        self.repo = repo
        self.refs = Refs(repo)

    def refresh(self) -> None:
        """Do nothing: what is here is always the newest."""

    def refresh_beside(self, refs: Iterable[str]) -> None:
        """Do nothing: what is here is always the newest."""

    def months(self) -> list[Shelf]:
        return shelves(self.repo, ARCHIVE)

    def tips(self, refs: Iterable[str]) -> dict[str, str]:
        wanted = list(refs)
        return self.refs.under(*wanted) if wanted else {}

    def has_work(self, works: Sequence[tuple[str, str]], months: Iterable[str]) -> frozenset[str]:
        """Return the gates whose work can be kept as evidence: this repository has its commit."""
        del months
        return here(self.repo, works)

    def advance(self, moves: Sequence[RefMove]) -> None:
        self.refs.update(moves)

    def take_away(self, moves: Sequence[RefMove]) -> dict[str, str]:
        """Delete refs, and return which would not go and why. One that moved does not keep the others."""
        try:
            self.refs.update(moves)
        except (LostRace, GitFailed):
            if len(moves) == 1:
                return {moves[0].ref: "it is being changed right now"}
            return {ref: why for move in moves for ref, why in self.take_away([move]).items()}
        return {}


class RemoteShelves:
    def __init__(
        self,
        repo: Repository,
        remote: str,
        *,
        timeout: float = 60,
        progress: Progress | None = None,
        prompts: bool | None = None,
    ) -> None:
        self.repo = repo
        self.remote = remote
        self.timeout = timeout
        self.progress = progress
        self.prompts = prompts
        self.local = LocalShelves(repo)

    def refresh(self) -> None:
        """Fetch what the remote has now. Its archive comes last: a gate that left the open ones is in it by then."""
        fetch(self.repo, self.remote, timeout=self.timeout, prompts=self.prompts)
        self.refresh_archive()

    def refresh_beside(self, refs: Iterable[str]) -> None:
        """Fetch those of these refs that were seen before.

        A lease may have gone since, or be another one: to delete it as it was would be refused for ever.
        """
        if seen := self.tips(refs):
            fetch_refs(self.repo, self.remote, [*seen], timeout=self.timeout, prompts=self.prompts)

    def refresh_archive(self) -> bool:
        """Fetch the remote's archive, and return whether the remote has one."""
        there = fetch_folder(self.repo, self.remote, "archive", timeout=self.timeout, prompts=self.prompts)
        if there:
            self.adopt()
        return bool(there)

    def months(self) -> list[Shelf]:
        return shelves(self.repo, tracking(self.remote, ARCHIVE))

    def tips(self, refs: Iterable[str]) -> dict[str, str]:
        names = {tracking(self.remote, ref): ref for ref in refs}
        return {names[ref]: oid for ref, oid in self.local.tips(names).items() if ref in names}

    def has_work(self, works: Sequence[tuple[str, str]], months: Iterable[str]) -> frozenset[str]:
        """Return the gates whose work the remote has: to keep there a work that it does not have would publish it."""
        wanted = [f"{WORK}{gate}" for gate, _ in works] + [f"{EVIDENCE}{month}" for month in months]
        there = fetch_refs(self.repo, self.remote, wanted, timeout=self.timeout, prompts=self.prompts)
        return here(self.repo, [(gate, work) for gate, work in works if there.get(WORK + gate) == work])

    def advance(self, moves: Sequence[RefMove]) -> None:
        fates = push(
            self.repo,
            self.remote,
            moves,
            timeout=self.timeout,
            progress=self.progress,
            prompts=self.prompts,
        )
        for fate in fates:
            if fate.kind is FateKind.STALE:
                raise LostRace(
                    f"{self.remote}: somebody else moved {fate.ref} first", hint="git gate archive"
                )
            if fate.refused:
                error = FoldRefused if fate.refusal is Refusal.WHOLE_PUSH else PushRefused
                raise error(f"{self.remote}: {fate.ref}: {fate.reason}", hint="git gate doctor")
        self.adopt()

    def adopt(self) -> None:
        """Move our archive to theirs, except where ours has what theirs lacks: the next fold takes that along."""
        names = {tracking(self.remote, prefix): prefix for prefix in (ARCHIVE, EVIDENCE)}
        known = self.local.refs.under(*names, *names.values())
        for base, prefix in names.items():
            for place, new in known.items():
                if not place.startswith(base):
                    continue
                ref = prefix + place.rpartition("/")[2]
                old = known.get(ref)
                if old != new and covers(self.repo, new, old):
                    with suppress(LostRace, GitFailed):
                        self.local.refs.update([RefMove(ref, new, old)])
                        remember_tips(self.repo, {place: new} if prefix == ARCHIVE else {})

    def take_away(self, moves: Sequence[RefMove]) -> dict[str, str]:
        fates = push_gates(
            self.repo,
            self.remote,
            moves,
            timeout=self.timeout,
            progress=self.progress,
            prompts=self.prompts,
        )
        moved = "it has changed since: sync first"
        return {
            fate.ref: moved if fate.kind is FateKind.STALE else fate.reason for fate in fates if not fate.ok
        }


def covers(repo: Repository, new: str, old: str | None) -> bool:
    """Return whether `new` can be read, and holds everything that `old` does, though it may not be built on it."""
    shelf = Shelf("", new, new)
    lines, unread = fold_lines(repo, [shelf])
    if unread or old is None or any(oid == old for oid, _ in lines[shelf]):
        return not unread
    before = Shelf("", old, old)
    here, there = contents(repo, [before]), contents(repo, [shelf])
    return all(gate in there and set(one.tips) <= set(there[gate].tips) for gate, one in here.items())


def here(repo: Repository, works: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Return the gates whose work is a commit that this repository has."""
    if not works:
        return frozenset()
    asked = "".join(f"{work}\n" for _, work in works).encode()
    said = repo.git.text("cat-file", "--buffer", "--batch-check=%(objecttype)", input=asked).splitlines()
    return frozenset(gate for (gate, _), kind in zip(works, said, strict=True) if kind == "commit")


def kept_with(gate: str) -> tuple[str, ...]:
    """Return the refs that go with a record, and have no purpose once it is archived; work goes when evidence
    keeps it.
    """
    return (SESSIONS + gate, LEASES + gate)


MOST_GATES = 100
OTHERWISE = "the archive has this run with another end; see both: git gate verify"
TRIES = 60


@dataclass(frozen=True)
class Closed:
    """Gate or run to fold: its record's tip, the month it closed in, and its work where that is to be kept."""

    id: str
    tip: str
    month: str
    work: str | None = None
    run: bool = False

    @property
    def ref(self) -> str:
        return (RUNS if self.run else OPEN) + self.id


@dataclass(frozen=True)
class Folded:
    """Result of folding. `gates`, runs among them, are archived and gone from the open ones.

    `late` are those of them whose words came after they were archived; `kept` says why one stays.
    """

    gates: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FoldPlan:
    """Gates of a batch, and late words, that the archive lacks, by month."""

    fresh: Mapping[str, list[Closed]]
    late: Mapping[str, list[Late]]

    @property
    def months(self) -> list[str]:
        return sorted({*self.fresh, *self.late})


def fold(
    repo: Repository,
    closed: Sequence[Closed],
    *,
    by: Signature,
    remote: str | None = None,
    timeout: float = 60,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> Folded:
    """Archive these gates: in `remote`'s archive and then in ours, or only in ours where there is no remote."""
    for gate in closed:
        if not is_month(gate.month):
            raise Usage(f"not a month: {gate.month!r}")
    place: Shelves = LocalShelves(repo)
    if remote is not None:
        place = RemoteShelves(repo, remote, timeout=timeout, progress=progress, prompts=prompts)
    place.refresh()
    with Closing(repo, place, by) as closing:
        batches = in_batches({gate.id: gate for gate in closed}.values())
        for batch in [*batches, *(closing.unshared() if remote is not None else ())]:
            closing.close(batch)
        return closing.folded()


def settle(
    repo: Repository,
    remote: str,
    absent: Mapping[str, str],
    *,
    by: Signature,
    timeout: float = 60,
    prompts: bool | None = None,
) -> Folded:
    """Close the gates open here that `remote` has in its archive.

    This is asked before anything is pushed, so that a stale clone never brings a closed gate back. Words that the
    remote did not have go to the archive with the record. A gate in neither is new, and not among the result.
    """
    place = RemoteShelves(repo, remote, timeout=timeout, prompts=prompts)
    there = place.refresh_archive()
    if unread := fold_lines(repo, place.months())[1] if there else {}:
        shelf, why = next(iter(unread.items()))
        words = f"{remote} may have archived it: its archive of {shelf.month} cannot be read: {why}"
        return Folded(kept=dict.fromkeys(absent, words))
    if not there or not find_archived(repo, place.months(), absent):
        return Folded()
    place.refresh()
    held = find_archived(repo, place.months(), absent)
    with Closing(repo, place, by) as closing:
        found = [Closed(gate, absent[gate], known.month, run=known.run) for gate, known in held.items()]
        for batch in in_batches(found):
            try:
                closing.close(batch)
            except GateError as failed:  # What cannot be shelved stays open here, and is not pushed.
                closing.kept |= {gate.id: failed.message for gate in batch if gate.id not in closing.gone}
        return closing.folded()


def in_batches(closed: Iterable[Closed], most: int = MOST_GATES) -> list[list[Closed]]:
    """Return batches of one month each."""
    months: dict[str, list[Closed]] = {}
    for gate in closed:
        months.setdefault(gate.month, []).append(gate)
    return [group[n : n + most] for _, group in sorted(months.items()) for n in range(0, len(group), most)]


class Closing:
    """One run of folding, with what it did so far."""

    def __init__(self, repo: Repository, place: Shelves, by: Signature) -> None:
        self.repo = repo
        self.refs = Refs(repo)
        self.place = place
        self.binder = Binder(repo, open_objects(repo, bulk=True), by)
        self.gone: list[str] = []
        self.late: set[str] = set()
        self.kept: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.binder.objects.close()

    def folded(self) -> Folded:
        return Folded(
            tuple(self.gone), tuple(gate for gate in self.gone if gate in self.late), dict(self.kept)
        )

    def close(self, batch: Sequence[Closed]) -> None:
        """Shelve the batch, then delete what is shelved.

        Where the server's hook does not take all, each half goes by itself, so that one gate holds up no other.
        """
        try:
            self.close_together(batch)
        except FoldRefused as refused:
            half = len(batch) // 2
            if half:
                self.place.refresh()
                self.close(batch[:half])
                self.close(batch[half:])
            else:
                self.kept |= {gate.id: refused.message for gate in batch}

    def close_together(self, batch: Sequence[Closed]) -> None:
        batch = self.unmoved(batch)
        for attempt in range(TRIES):
            try:
                evidence = self.shelve(batch)
                break
            except LostRace:
                if attempt == TRIES - 1:
                    raise
                time.sleep(random.uniform(0.5, 1) * min(0.01 * 2**attempt, 0.5))  # noqa: S311 - spreads racers out
                self.place.refresh()
        else:
            return
        self.take_away(batch, evidence)

    def unmoved(self, batch: Sequence[Closed]) -> list[Closed]:
        """Return the batch without gates that are open there with another tip: this clone has not seen what was
        said.
        """
        there = self.place.tips(gate.ref for gate in batch)
        moved = [gate for gate in batch if there.get(gate.ref, gate.tip) != gate.tip]
        self.kept |= {gate.id: "it has changed since: sync first" for gate in moved}
        return [gate for gate in batch if gate not in moved]

    # first the archive

    def shelve(self, batch: Sequence[Closed]) -> frozenset[str]:
        """Put every gate of the batch into the archive; return those whose work is kept as evidence."""
        plan = self.plan(batch)
        moves = [self.archive_move(plan, month) for month in plan.months]
        work_moves, evidence = self.evidence(batch)
        if not moves and not work_moves:
            return evidence
        try:
            self.place.advance([*moves, *work_moves])
        except PushRefused:
            if not work_moves:
                raise
            if moves:  # The host does not take the work (its size, its workflow files): the records go alone.
                self.place.advance(moves)
            return frozenset()
        return evidence

    def plan(self, batch: Sequence[Closed]) -> FoldPlan:
        held = find_archived(self.repo, self.place.months(), [gate.id for gate in batch])
        fresh: dict[str, list[Closed]] = {}
        late: dict[str, list[Late]] = {}
        for gate in batch:
            known = held.get(gate.id)
            if known is None:
                fresh.setdefault(gate.month, []).append(gate)
            elif gate.run or self.holds(known, gate.tip):
                continue  # nothing is said of an ended run any more: a journal that goes another way stays where it is
            else:
                words = late_words(self.repo, gate.id, gate.tip, known.tips)
                late.setdefault(known.month, []).append(words)
                self.late.add(gate.id)
        return FoldPlan(fresh, late)

    def archive_move(self, plan: FoldPlan, month: str) -> RefMove:
        ref = ARCHIVE + month
        base = self.place.tips([ref]).get(ref)
        new = plan.fresh.get(month, ())
        gates = sorted((gate.id, gate.tip) for gate in new if not gate.run)
        runs = sorted((run.id, run.tip) for run in new if run.run)
        return RefMove(ref, self.binder.fold(month, base, gates, plan.late.get(month, ()), runs), base)

    def holds(self, known: ArchivedGate, tip: str) -> bool:
        """Return whether the archive keeps all that `tip` says."""
        return tip in known.tips or any(
            self.repo.git.ok("merge-base", "--is-ancestor", tip, shelved) for shelved in known.tips
        )

    def evidence(self, batch: Sequence[Closed]) -> tuple[list[RefMove], frozenset[str]]:
        """Return the moves that keep the batch's work, and the gates whose work is kept after them."""
        works = [(gate.id, gate.work) for gate in batch if gate.work]
        months = {gate.month for gate in batch if gate.work}
        there = self.place.has_work(works, months) if works else frozenset()
        moves: list[RefMove] = []
        for month in sorted(months):
            ref = EVIDENCE + month
            base = self.place.tips([ref]).get(ref)
            mine = {gate.id: gate.work for gate in batch if gate.work and gate.month == month}
            held = find_archived(self.repo, [Shelf(month, ref, base)], mine) if base else {}
            there |= {gate for gate, known in held.items() if mine[gate] in known.tips}
            new = sorted((gate, work) for gate, work in mine.items() if gate in there and gate not in held)
            if new:
                moves.append(RefMove(ref, self.binder.fold(f"evidence {month}", base, new), base))
        return moves, there

    # then the open refs

    def take_away(self, batch: Sequence[Closed], evidence: frozenset[str]) -> None:
        held = find_archived(self.repo, self.place.months(), [gate.id for gate in batch])
        safe = [gate for gate in batch if gate.id in held and self.holds(held[gate.id], gate.tip)]
        self.kept |= {run.id: OTHERWISE for run in batch if run.run and run.id in held and run not in safe}
        if not isinstance(self.place, LocalShelves):
            failed = self.place.take_away(self.deletions(self.place, safe, evidence))
            self.kept |= {ref.rpartition("/")[2]: why for ref, why in failed.items()}
            safe = [gate for gate in safe if gate.id not in self.kept]
        here = LocalShelves(self.repo)
        mine = here.tips(gate.ref for gate in safe)
        failed = here.take_away(self.deletions(here, safe, evidence))
        tips = {gate.ref: gate.tip for gate in safe}
        failed |= {ref: "it has changed here since" for ref, tip in mine.items() if tips[ref] != tip}
        self.kept |= {ref.rpartition("/")[2]: why for ref, why in failed.items()}
        self.gone += [gate.id for gate in safe if gate.id not in self.kept]

    def deletions(self, place: Shelves, safe: Sequence[Closed], evidence: frozenset[str]) -> list[RefMove]:
        """Return the deletions of these gates' refs that `place` has; the record goes only at the exact tip that
        is shelved.
        """
        beside = [ref for gate in safe for ref in (WORK + gate.id, *kept_with(gate.id))]
        place.refresh_beside(beside)
        there = place.tips([*(gate.ref for gate in safe), *beside])
        moves: list[RefMove] = []
        for gate in safe:
            wanted = [(gate.ref, gate.tip)]
            wanted += [(ref, there.get(ref, "")) for ref in kept_with(gate.id)]
            if gate.work and gate.id in evidence:
                wanted.append((WORK + gate.id, gate.work))
            if gate.run:  # what was in its trees when it waited last
                wanted.append((WORK + gate.id, there.get(WORK + gate.id, "")))
            moves += [RefMove(ref, None, tip) for ref, tip in wanted if tip and there.get(ref) == tip]
        return moves

    def unshared(self) -> list[list[Closed]]:
        """Return, in batches, what our own archive has and the remote's has not: it was folded here while there
        was no remote.
        """
        theirs = {shelf.fold for shelf in self.place.months()}
        mine = contents(self.repo, [one for one in shelves(self.repo, ARCHIVE) if one.fold not in theirs])
        held = find_archived(self.repo, self.place.months(), mine) if mine else {}
        lacking = [
            [Closed(one.id, tip, one.month, run=one.run) for tip in one.tips if tip]
            for one in mine.values()
            if one.id not in held or not set(one.tips) <= set(held[one.id].tips)
        ]
        # One gate's tips one after another: the first closes it, what came late is shelved beside it.
        rounds = max(map(len, lacking), default=0)
        return [
            batch for n in range(rounds) for batch in in_batches(tips[n] for tips in lacking if n < len(tips))
        ]


def prune(repo: Repository, spare: Callable[[str, str], bool] = lambda _gate, _tip: False) -> list[str]:
    """Delete the work, sessions and leases here of gates that are archived.

    Work goes only where evidence keeps it, or where `spare` says of a gate and its tip that there is nothing to keep.
    """
    refs = Refs(repo)
    open_here = {ref.removeprefix(OPEN) for ref in refs.under(OPEN)}
    beside = refs.under(WORK, *kept_with(""))
    ids = {ref.rpartition("/")[2] for ref in beside} - open_here
    closed = find_archived(repo, shelves(repo), ids)
    kept = find_archived(repo, shelves(repo, EVIDENCE, "refs/gitgate/*/evidence/*"), closed)
    moves = [
        RefMove(ref, None, oid)
        for ref, oid in beside.items()
        if (gate := ref.rpartition("/")[2]) in closed
        and (
            not ref.startswith(WORK)
            or (gate in kept and oid in kept[gate].tips)
            or closed[gate].run
            or spare(gate, closed[gate].tip)
        )
    ]
    failed = LocalShelves(repo).take_away(moves) if moves else {}
    return [move.ref for move in moves if move.ref not in failed]
