"""Record: two clones' records of one gate. What counts is what the shared repository has; nothing anybody said is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BrokenRecord
from ..model import people
from ..model.gate import Answer, Entry, Event, Gate
from ..model.people import split_person
from ..model.states import AWAITING, traits


@dataclass(frozen=True)
class Reconciled:
    """What to do with a local record, seen the shared one.

    `keep`: which side's tip is the base (`same`, `local`, `remote`). `again`: local entries to record once more on top
    of the remote tip. `dropped`: local entries that have no place there (claims, outcomes, events that lost).
    """

    keep: str
    again: tuple[Entry, ...] = ()
    dropped: tuple[Entry, ...] = ()


def reconcile(local: Sequence[Entry], remote: Sequence[Entry], had: str | None = None) -> Reconciled:
    """Both are first-parent chains, oldest first. Claims and outcomes are never recorded again: a claim names its
    answer's commit, and two runners must not both believe that they hold it. What a person decided on one side may
    have no place on the other any more; whoever records it again finds that out, and says so.

    `had` is the tip that the shared record had before, where that is known: one that does not go on from it was
    rewritten, or something was slipped in before what was there. That is no divergence, and nothing is taken over.
    """
    ours = [entry.commit for entry in local]
    theirs = [entry.commit for entry in remote]
    if had is not None and had not in theirs:
        raise BrokenRecord(
            f"the shared record no longer goes on from {had[:12]}, which it had: it was rewritten"
        )
    if ours == theirs:
        return Reconciled("same")
    if ours[: len(theirs)] == theirs:
        return Reconciled("local")
    if theirs[: len(ours)] == ours:
        return Reconciled("remote")
    shared = common(ours, theirs)
    if not shared:
        raise BrokenRecord("the two records begin with different commits: one of them was rewritten")
    known: dict[tuple[str, str, str], list[Event]] = {}
    for entry in remote:
        known.setdefault(label(entry), []).append(entry.event)
    originals = {parent for entry in remote for parent in entry.parents[1:]}
    again: list[Entry] = []
    dropped: list[Entry] = []
    for entry in local[shared:]:
        if entry.repeats or original(entry) in originals or entry.event in known.get(label(entry), ()):
            continue
        (again if repeatable(entry) else dropped).append(entry)
    return Reconciled("remote", tuple(again), tuple(dropped))


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


def event_folder(entry: Entry) -> str:
    return entry.path.partition("/")[0]


def label(entry: Entry) -> tuple[str, str, str]:
    """By what the same event is looked for among many."""
    return event_folder(entry), getattr(entry.event, "at", ""), getattr(entry.event, "by", "")


def repeatable(entry: Entry) -> bool:
    """Only what a person said is recorded again; an automatic default is not anybody's word."""
    if isinstance(entry.event, Answer):
        return entry.event.verdict != "defaulted"
    return traits(entry.name).said


def said_elsewhere(gate: Gate, said: Answer) -> Answer | None:
    """What the author of a late answer had said already, where that is why it is late."""
    if gate.state != AWAITING:
        return None
    return next((vote.answer for vote in gate.votes if people.same(vote.answer.by, said.by)), None)


def why_late(gate: Gate, said: Answer) -> str:
    """Why an answer that is in the record has no effect."""
    own = said_elsewhere(gate, said)
    if own is not None:
        return f"{split_person(own.by)}'s own answer of {own.at} was there first, and this one was given without it"
    if gate.answer is not None:
        return f"{split_person(gate.answer.answer.by) or 'a default'} was first, at {gate.answer.answer.at}"
    return f"gate {gate.id} was {gate.state} first"
