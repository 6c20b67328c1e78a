"""Service: one answer to many gates. Each is recorded for itself; they travel together, because pushes are dear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core.answers import Given
from ..core.model import Answer, Gate
from ..core.summary import Summary
from ..errors import Conflict, GateError, PushRefused
from ..store.refs import OPEN
from .answering import Manner, Responded, refuse_late, respond
from .desk import Desk
from .publishing import Published
from .remotes import remote_of


@dataclass(frozen=True)
class Fate:
    """What became of one gate of the batch: answered, or why not."""

    id: str
    title: str
    done: Responded | None = None
    error: GateError | None = None


def matching(found: Sequence[Summary], words: str) -> list[Summary]:
    """Those whose title or question holds `words`; case does not matter."""
    wanted = words.casefold()
    return [s for s in found if wanted in s.title.casefold() or wanted in s.question.casefold()]


def respond_all(desk: Desk, chosen: Sequence[Summary], given: Given, manner: Manner) -> list[Fate]:
    """One answer for all of them; a gate that it does not fit is left alone and named."""
    local = replace(manner, push=False)
    fates = [recorded(desk, summary, given, local) for summary in chosen]
    if manner.push is False or (manner.push is None and not desk.settings.flag("push")):
        return fates
    return published(desk, fates, insist=bool(manner.push) or desk.settings.in_ci)


def recorded(desk: Desk, summary: Summary, given: Given, manner: Manner) -> Fate:
    try:
        gate = desk.records.load(summary.id, summary.tip)
        done = respond(desk, gate, given, replace(manner, seen=gate.tip))
    except GateError as refused:
        return Fate(summary.id, summary.title, error=refused)
    return Fate(summary.id, summary.title, done)


def published(desk: Desk, fates: list[Fate], *, insist: bool) -> list[Fate]:
    """All of them to the shared repository in one go; each with its own fate there."""
    remote = remote_of(desk)
    if remote is None or not any(fate.done for fate in fates):
        return fates
    from .syncing import sync

    try:
        refused = sync(desk, remote)
        reasons = {**refused.refused, **refused.broken}
    except GateError as down:
        if insist:
            return [replace(fate, error=fate.error or down) for fate in fates]
        return [there(desk, fate, remote, down.message) for fate in fates]
    return [there(desk, fate, remote, reasons.get(fate.id, ""), insist=insist) for fate in fates]


def there(desk: Desk, fate: Fate, remote: str, reason: str, *, insist: bool = False) -> Fate:
    if fate.done is None:
        return fate
    if reason and insist:
        return replace(fate, error=PushRefused(f"gate {fate.id} is safe here, but not pushed: {reason}"))
    tip = desk.refs.get(OPEN + fate.id)
    gate: Gate = fate.done.gate if tip is None else desk.records.load(fate.id, tip)
    said: Answer = fate.done.answer
    try:
        refuse_late(gate, said)
    except Conflict as late:
        return replace(fate, error=late)
    went = Published(gate, remote, pushed=not reason, reason=reason)
    return replace(fate, done=replace(fate.done, gate=gate, published=went))
