"""Core: two clones' records of one gate. What counts is what the shared repository has; nothing anybody said is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .model import Answer, Entry, Opened

AGAIN = ("answered", "voted", "late", "commented", "amended")


@dataclass(frozen=True)
class Plan:
    """What to do with a local record, seen the shared one.

    `keep`: which side's tip is the base (`same`, `local`, `remote`). `again`: local entries to record once more on top
    of the remote tip. `dropped`: local entries that have no place there (claims, outcomes, events that lost).
    """

    keep: str
    again: tuple[Entry, ...] = ()
    dropped: tuple[Entry, ...] = ()


def reconcile(local: Sequence[Entry], remote: Sequence[Entry]) -> Plan:
    """Both are first-parent chains, oldest first. Claims and outcomes are never recorded again: a claim names its
    answer's commit, and two runners must not both believe that they hold it.
    """
    ours = [entry.commit for entry in local]
    theirs = [entry.commit for entry in remote]
    if ours == theirs:
        return Plan("same")
    if ours[: len(theirs)] == theirs:
        return Plan("local")
    if theirs[: len(ours)] == ours:
        return Plan("remote")
    shared = common(ours, theirs)
    known = {entry.path for entry in remote}
    originals = {parent for entry in remote for parent in entry.parents[1:]}
    again: list[Entry] = []
    dropped: list[Entry] = []
    for entry in local[shared:]:
        if entry.path in known or original(entry) in originals:
            continue
        (again if repeatable(entry) else dropped).append(entry)
    return Plan("remote", tuple(again), tuple(dropped))


def common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    count = 0
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            break
        count += 1
    return count


def original(entry: Entry) -> str:
    """The commit that its author made: the second parent of one recorded again, else the commit itself."""
    return entry.parents[1] if len(entry.parents) > 1 else entry.commit


def repeatable(entry: Entry) -> bool:
    """Only what a person said is recorded again; an automatic default is not anybody's word."""
    if isinstance(entry.event, Opened):
        return False
    if isinstance(entry.event, Answer):
        return entry.event.verdict != "defaulted"
    return entry.name == "commented"
