"""Store: where folds are shelved: in this repository, or in a shared one and then in this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from ..errors import GitFailed, LostRace, PushRefused
from .archive import Shelf, contents, shelves
from .fetch import fetch, fetch_folder, fetch_refs
from .push import ALL_REFUSED, push, push_gates
from .refs import ARCHIVE, EVIDENCE, LEASES, SESSIONS, WORK, Refs
from .remote import REFUSED, STALE, RefMove, tracking
from .repository import Repository
from .wire import Progress


class FoldRefused(PushRefused):
    """The server's hook does not take a fold: something speaks against a gate of it."""


class Shelves(Protocol):
    """Where an archive grows. Whoever builds on a tip that is no longer the newest gets LostRace, and builds again."""

    def refresh(self) -> None: ...

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
        """What is here is always the newest."""

    def months(self) -> list[Shelf]:
        return shelves(self.repo, ARCHIVE)

    def tips(self, refs: Iterable[str]) -> dict[str, str]:
        wanted = list(refs)
        return self.refs.under(*wanted) if wanted else {}

    def has_work(self, works: Sequence[tuple[str, str]], months: Iterable[str]) -> frozenset[str]:
        """Which of these (gate, work) can be kept as evidence: what is here whole."""
        del months
        return here(self.repo, works)

    def advance(self, moves: Sequence[RefMove]) -> None:
        self.refs.update(moves)

    def take_away(self, moves: Sequence[RefMove]) -> dict[str, str]:
        """Delete refs, and answer which would not go and why. One that moved does not keep the others."""
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
        """What the remote has now. Its archive is asked last: a gate that left the open ones is in it by then."""
        fetch(self.repo, self.remote, timeout=self.timeout, prompts=self.prompts)
        fetch_folder(self.repo, self.remote, "archive", timeout=self.timeout, prompts=self.prompts)
        self.adopt()

    def months(self) -> list[Shelf]:
        return shelves(self.repo, tracking(self.remote, ARCHIVE))

    def tips(self, refs: Iterable[str]) -> dict[str, str]:
        names = {tracking(self.remote, ref): ref for ref in refs}
        return {names[ref]: oid for ref, oid in self.local.tips(names).items() if ref in names}

    def has_work(self, works: Sequence[tuple[str, str]], months: Iterable[str]) -> frozenset[str]:
        """Which works the remote has: keeping one there that it does not have would publish it."""
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
            if fate.reason == STALE:
                raise LostRace(
                    f"{self.remote}: somebody else moved {fate.ref} first", hint="git gate archive"
                )
            if fate.reason.startswith(REFUSED):
                error = FoldRefused if fate.reason.startswith(ALL_REFUSED) else PushRefused
                raise error(f"{self.remote}: {fate.ref}: {fate.reason}", hint="git gate doctor")
        self.adopt()

    def adopt(self) -> None:
        """Our archive becomes theirs, except where ours has what theirs lacks: the next fold takes that along."""
        for prefix in (ARCHIVE, EVIDENCE):
            theirs = self.local.refs.under(tracking(self.remote, prefix))
            ours = self.local.refs.under(prefix)
            for place, new in theirs.items():
                ref = prefix + place.rpartition("/")[2]
                old = ours.get(ref)
                if old != new and (old is None or covers(self.repo, new, old)):
                    with suppress(LostRace, GitFailed):
                        self.local.refs.update([RefMove(ref, new, old)])

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
        return {fate.ref: moved if fate.reason == STALE else fate.reason for fate in fates if not fate.ok}


def covers(repo: Repository, new: str, old: str) -> bool:
    """Whether `new` holds everything that `old` does, though it may not be built on it."""
    if repo.git.ok("merge-base", "--is-ancestor", old, new):
        return True
    here, there = (contents(repo, [Shelf("", fold, fold)]) for fold in (old, new))
    return all(gate in there and set(one.tips) <= set(there[gate].tips) for gate, one in here.items())


def here(repo: Repository, works: Sequence[tuple[str, str]]) -> frozenset[str]:
    """The gates whose work is a commit that this repository has."""
    if not works:
        return frozenset()
    asked = "".join(f"{work}\n" for _, work in works).encode()
    said = repo.git.text("cat-file", "--batch-check=%(objecttype)", input=asked).splitlines()
    return frozenset(gate for (gate, _), kind in zip(works, said, strict=True) if kind == "commit")


def kept_with(gate: str) -> tuple[str, ...]:
    """The refs beside a record that have no purpose once it is archived; work goes when evidence keeps it."""
    return (SESSIONS + gate, LEASES + gate)
