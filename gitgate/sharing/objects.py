"""Sharing: every commit and tree that a push brings for refs of ours, held to the one form that is read here.

The rules of each kind of ref read what they need. What lies beside that, such as a second parent of what was recorded again,
would reach every clone as well: one that has git check what it fetches (`transfer.fsckObjects`) would get no gates at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..errors import GateError
from ..model import is_id
from ..store.git.canonical import NotCanonical, parse_history, parse_new_commit, parse_tree
from ..store.git.objects import COMMIT, TREE
from ..store.git.refs import EVIDENCE, LEASES, OPEN, SESSIONS, WORK, Update
from ..store.work import parse_aside

if TYPE_CHECKING:
    from ..exchange.entering import Push

Read = Callable[[bytes, int], object]
READERS: dict[str, Read] = {COMMIT: parse_new_commit, TREE: parse_tree}
HISTORY: dict[str, Read] = {COMMIT: parse_history}
AT_ONCE = 1000
WITHOUT_FILES = ("--objects", "--filter=blob:none", "--no-object-names")


def against_objects(push: Push) -> dict[str, str]:
    """Return by ref what is wrong with an object that it brings; empty when all of them are read here as git
    reads them.
    """
    brought = [one for one in push.updates if one.new is not None and one.old != one.new]
    records = [one for one in brought if not one.ref.startswith((WORK, EVIDENCE))]
    found = {}
    if records and against_records(push, records):
        for one in records:  # it is told for which ref; that takes longer, and is hardly ever needed
            if why := against_records(push, [one]):
                found[one.ref] = why
    for one in brought:
        if one.ref.startswith((WORK, EVIDENCE)) and (why := against_work(push, one)):
            found[one.ref] = why
    return found


def against_records(push: Push, updates: Sequence[Update]) -> str:
    """Return what is wrong with the commits and trees of records, folds, journals, leases and sessions; empty
    when nothing is.
    """
    gates = {name for one in updates if is_id(name := one.ref.rpartition("/")[2])}
    known = {tip for kind in (OPEN, SESSIONS, LEASES) for gate in gates if (tip := push.here(kind + gate))}
    known.update(one.old for one in updates if one.old is not None)
    wanted = listed(push, [str(one.new) for one in updates], known, *WITHOUT_FILES)
    return against_each(push, [oid for oid in wanted if oid not in push.desk.records.sound], READERS)


def against_work(push: Push, update: Update) -> str:
    """Return what is wrong with the objects of the work; empty when nothing is.

    Checked are its commits, the trees that are new in them, and the order of headers in the commits that they
    build on.
    """
    try:
        ours = evidence_of(push, update) if update.ref.startswith(EVIDENCE) else commits_of_work(push, update)
        read = [push.desk.records.commit(oid) for oid in ours]
    except GateError as wrong:
        return wrong.message
    if bare := next((oid for oid, commit in zip(ours, read, strict=True) if not commit.has_addresses), ""):
        return f"commit {bare[:12]} has an author without an address"
    beneath = {parent for commit in read for parent in commit.parents} - set(ours)
    beneath |= set() if ours else {str(update.new)}
    trees = () if update.ref.startswith(EVIDENCE) else listed(push, ours, beneath, *WITHOUT_FILES)
    return against_each(push, trees, READERS) or against_each(
        push, listed(push, beneath, (), "--not", "--all"), HISTORY
    )


def commits_of_work(push: Push, update: Update) -> list[str]:
    """Return the commits that git gate made of the work: none for a gate without changes, and one for a run."""
    gate = update.ref.removeprefix(WORK)
    tip = push.after(OPEN + gate)
    if tip is None:
        return [str(update.new)]
    work = push.gate(gate, tip).opened.work
    ours = [oid for oid in dict.fromkeys((work.commit, work.staged)) if oid and oid != work.base]
    staged = push.desk.records.commit(work.staged) if work.staged in ours else None
    conflict = parse_aside(staged.body.decode("utf-8", "surrogateescape")).unmerged if staged else None
    return [*ours, conflict] if staged and conflict in staged.parents else ours


def evidence_of(push: Push, update: Update) -> list[str]:
    """Return those folds of the evidence that are new. They keep the work of closed gates."""
    return listed(push, [str(update.new)], {update.old} if update.old else (), "--first-parent")


def listed(push: Push, tips: Iterable[str], known: Iterable[str | None], *how: str) -> list[str]:
    """List the objects that git reaches from `tips` and not from `known`."""
    asked = "".join([*(f"{tip}\n" for tip in tips), *(f"^{tip}\n" for tip in known)])
    if not asked:
        return []
    given = ("rev-list", "--ignore-missing", "--stdin", *how)
    return push.desk.repo.git.text(*given, input=asked.encode()).split()


def against_each(push: Push, oids: Sequence[str], readers: dict[str, Read]) -> str:
    """Return what is wrong with the first of these objects that cannot be read; empty when all can."""
    objects, width = push.desk.records.objects, push.desk.records.width
    for start in range(0, len(oids), AT_ONCE):
        objects.forget()
        objects.ahead(oids[start : start + AT_ONCE])
        for oid in oids[start : start + AT_ONCE]:
            try:
                kind, payload = objects.read(oid)
            except GateError as broken:
                return broken.message
            if kind not in readers:
                return f"{oid[:12]} is a {kind}, which no ref of gates leads to"
            try:
                readers[kind](payload, width)
            except NotCanonical as wrong:
                return f"{kind} {oid[:12]} {wrong.message}"
    objects.forget()
    return ""
