"""Audit: records that were there and are gone, or grew shorter: here, where others push to this repository, and at each remote. It
goes by the tips that this clone has noted; what no note has was never seen from here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..context import Desk
from ..context.targets import remotes_here
from ..errors import GateError
from ..store.git.refs import ARCHIVE, ASIDE, OPEN, RUNS
from ..store.git.remembered import RECORDS, SeenTip, commits_below, read_seen_tips
from ..store.records.archive import ArchivedGate, Shelf, contents, shelves
from ..store.remote import HITL, tracking, tracking_base
from ..text import counted, format_time
from . import Verified

MOST_NAMED = 8
SILENCE = 20


@dataclass(frozen=True)
class Noted:
    """One ref that was seen: at which remote (empty: here), as which ref there, and each tip that it had."""

    remote: str
    ref: str
    seen: tuple[SeenTip, ...]

    @property
    def name(self) -> str:
        return self.ref.rpartition("/")[2]

    @property
    def last(self) -> SeenTip:
        return self.seen[-1]

    @property
    def place(self) -> str:
        return self.remote or "this repository"


@dataclass(frozen=False)
class Present:
    """Current state to compare with: the refs here and as they were fetched last, and the archives."""

    desk: Desk
    refs: Mapping[str, str]
    over: Mapping[str, ArchivedGate]
    asked: dict[str, Mapping[str, str] | None] = field(default_factory=dict)

    @cached_property
    def aside(self) -> Sequence[str]:
        """Records as they were before something was taken off them here."""
        return [*self.desk.refs.under(ASIDE).values()]

    def tips(self, one: Noted) -> Sequence[str]:
        """Return the record's tip now: at the ref, or in an archive; empty where it is in neither."""
        now = self.refs.get(tracking(one.remote, one.ref) if one.remote else one.ref)
        if now is not None:
            return (now,)
        found = self.over.get(one.name)
        return [tip for tip in found.tips if tip] if found is not None else ()

    def archive_of(self, remote: str) -> Mapping[str, str] | None:
        """Return the tips of a remote's archive now, by month; None where it cannot be asked."""
        if remote not in self.asked:
            from ..store.remote.fetch import tips_below

            try:
                self.asked[remote] = tips_below(self.desk.repo, remote, ARCHIVE, timeout=SILENCE)
            except GateError:
                self.asked[remote] = None
        return self.asked[remote]

    def may_be_archived(self, remote: str) -> bool:
        """Return whether a remote's archive has grown since it was fetched."""
        there = self.archive_of(remote) if remote else {}
        return any(self.refs.get(tracking(remote, ref)) != tip for ref, tip in (there or {}).items())


def check_gone(desk: Desk, done: Verified, only: Collection[str] = ()) -> None:
    """Name what is gone, or went back; with `only`, of these gates and runs."""
    noted = [one for one in noted_refs(desk) if not only or one.name in only]
    if not noted:
        return
    bases = {tracking_base(one.remote) if one.remote else HITL for one in noted}
    present = Present(desk, desk.refs.under(*bases), contents(desk.repo, shelves(desk.repo)))
    check_records(done, present, [one for one in noted if one.ref.startswith((OPEN, RUNS))])
    for one in noted:
        if one.ref.startswith(ARCHIVE):
            check_month(done, present, one)


def noted_refs(desk: Desk) -> Iterator[Noted]:
    """Yield the refs noted of this repository, and of the remotes that are still configured."""
    places = {tracking_base(remote): remote for remote in remotes_here(desk)}
    for ref, seen in read_seen_tips(desk.repo).items():
        if ref.startswith(RECORDS):
            yield Noted("", ref, tuple(seen))
            continue
        base = "/".join(ref.split("/")[:3]) + "/"
        if base in places and (there := HITL + ref.removeprefix(base)).startswith(RECORDS):
            yield Noted(places[base], there, tuple(seen))


def check_records(done: Verified, present: Present, noted: Sequence[Noted]) -> None:
    """Each gate and each run: it is there, or in an archive, and goes on from each tip that it had."""
    moved = {one: tips for one in noted if {s.tip for s in one.seen} - {*(tips := present.tips(one))}}
    below = commits_below(present.desk.repo, (tip for tips in moved.values() for tip in tips))
    aside: Collection[str] | None = None
    for one, tips in moved.items():
        if not tips:
            tell_gone(done, present, one)
            continue
        lost = [sighting for sighting in one.seen if sighting.tip not in below]
        if lost and not one.remote:
            aside = commits_below(present.desk.repo, present.aside) if aside is None else aside
            lost = [sighting for sighting in lost if sighting.tip not in aside]
        if lost and not any(one.name == told.gate and told.kind == "shared" for told in done.problems):
            last = lost[-1]
            words = f"{one.place} had {last.tip[:12]} of it at {format_time(last.at)}, and no longer has that: it was set back or rewritten"
            done.wrong(one.name, last.tip, "gone", f"{words}; {mend(present, one)}")


def tell_gone(done: Verified, present: Present, one: Noted) -> None:
    """Say of a record that is neither at its ref nor in an archive that we know what speaks for its being lost."""
    at = format_time(one.last.at)
    if one.remote and present.may_be_archived(one.remote):
        words = f"{one.remote} has it no longer among what is open; its archive has grown since it was fetched: git gate sync, then: git gate verify"
        done.note(one.name, one.last.tip, "gone", words)
        return
    asked = "no archive has it"
    if one.remote and present.archive_of(one.remote) is None:
        asked = f"no archive here has it, and {one.remote} could not be asked for its own"
    words = f"{one.place} has it no longer, and {asked}; it was there at {at}"
    done.wrong(one.name, one.last.tip, "gone", f"{words}; {mend(present, one)}")


def mend(present: Present, one: Noted) -> str:
    """Return advice on how to restore a lost record, with the command."""
    if one.remote and one.ref in present.desk.refs.under(one.ref):
        return f"it is here, and this puts it back: git gate sync {one.remote}"
    return "a clone that still has it puts it back: git gate sync, there"


def check_month(done: Verified, present: Present, one: Noted) -> None:
    """The archive of a month has all that it once had."""
    there = present.archive_of(one.remote) if one.remote else present.refs
    if there is None:
        done.note(
            one.name, one.last.tip, "gone", f"{one.remote} could not be asked whether its archive is whole"
        )
        return
    now = there.get(one.ref)
    if {sighting.tip for sighting in one.seen} == {now}:
        return
    repo = present.desk.repo
    if now is not None and not repo.git.ok("cat-file", "-e", now):
        words = f"the archive of {one.remote} has changed since it was fetched: git gate archive, then: git gate verify"
        done.note(one.name, one.last.tip, "gone", words)
        return
    below = commits_below(repo, [now] if now else [])
    if all(sighting.tip in below for sighting in one.seen):
        return
    had = contents(repo, [Shelf(one.name, one.ref, sighting.tip) for sighting in one.seen])
    has = contents(repo, [Shelf(one.name, one.ref, now)] if now else [])
    lost = sorted(gate for gate in had if gate not in has or not {*had[gate].tips} <= {*has[gate].tips})
    if lost:
        named = ", ".join(lost[:MOST_NAMED]) + (", …" if len(lost) > MOST_NAMED else "")
        words = f"{one.place} has lost of its archive of {one.name} what it had at {format_time(one.last.at)}: {counted(len(lost), 'record')} ({named})"
        done.wrong(
            one.name, one.last.tip, "gone", f"{words}; a clone that has them puts them back: git gate archive"
        )
