"""Command line: `git gate respond --each`: every waiting gate in turn, or one answer for all that match."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.answers import Given
from ..core.model import Gate
from ..errors import GateError, UnknownGate, Usage
from . import exits
from .screen import Screen

if TYPE_CHECKING:
    from ..core.summary import Summary
    from ..service.answering import Manner
    from ..service.batch import Fate
    from ..service.desk import Desk

HINT = "git gate respond --each --match deploy --approve"


def respond_each(screen: Screen, desk: Desk, gate_id: str | None, given: Given, flags: dict[str, Any]) -> int:
    """The exit code is the worst of all."""
    check(screen, gate_id, given, flags)
    chosen = waiting(desk, flags["match"])
    fates = (
        all_alike(desk, chosen, given, flags) if not given.nothing else in_turn(screen, desk, chosen, flags)
    )
    report(screen, desk, fates)
    return max((code_of(fate) for fate in fates), default=exits.DONE)


def check(screen: Screen, gate_id: str | None, given: Given, flags: dict[str, Any]) -> None:
    if gate_id is not None:
        raise Usage(
            "--each goes through every waiting gate; an id or a word cannot stand beside it",
            hint=f"{HINT}, or -m TEXT",
        )
    for name in ("amend", "seen", "edit"):
        if flags[name]:
            raise Usage(f"--{name} is about one gate; it cannot stand beside --each")
    if not given.nothing and flags["match"] is None:
        raise Usage("one answer for all of them? say for which: --match TEXT", hint=HINT)
    if given.nothing and not screen.interactive:
        raise Usage("no answer given, and no terminal to ask on", hint=HINT)


def waiting(desk: Desk, match: str | None) -> list[Summary]:
    from ..service.batch import matching
    from ..service.listing import Filter, listed

    found = listed(desk, Filter(states=("awaiting",)))
    chosen = found if match is None else matching(found, match)
    if not chosen:
        words = (
            f"no waiting gate has {match!r} in its title or question"
            if found
            else "no gate waits for an answer"
        )
        raise UnknownGate(words, hint="git gate list")
    return chosen


def manner_of(flags: dict[str, Any], note: str | None = None) -> Manner:
    from ..service.answering import Manner

    return Manner(note=flags["note"] if note is None else note, sign=flags["sign"], push=flags["push"])


def all_alike(desk: Desk, chosen: Sequence[Summary], given: Given, flags: dict[str, Any]) -> list[Fate]:
    from ..service.batch import respond_all

    return respond_all(desk, chosen, given, manner_of(flags))


def in_turn(screen: Screen, desk: Desk, chosen: Sequence[Summary], flags: dict[str, Any]) -> list[Fate]:
    """One after the other, each answered, or left for later. What was answered stays answered, however it ends."""
    from .turns import LeaveAll, NextGate

    fates: list[Fate] = []
    asking = replace(screen, in_turn=True)
    try:
        for place, summary in enumerate(chosen, 1):
            screen.warn(f"\n── {place} of {len(chosen)} ──")
            gate = desk.records.load(summary.id, summary.tip)
            with suppress(NextGate):
                fates.append(one(asking, desk, gate, flags))
    except LeaveAll:
        return fates
    except (EOFError, KeyboardInterrupt):
        report(screen, desk, fates)
        raise
    return fates


def one(screen: Screen, desk: Desk, gate: Gate, flags: dict[str, Any]) -> Fate:
    from ..service.answering import respond
    from ..service.batch import Fate
    from .prompts import ask_questions, present, show
    from .turns import OFFER

    show(screen, desk, gate)
    alone = len(gate.opened.questions) == 1
    if alone:
        present(screen, gate.opened.questions[0], several=False)
    screen.tell(f"\n{OFFER}")
    given, note = ask_questions(screen, desk, gate, flags["note"], presented=alone)
    try:
        done = respond(desk, gate, given, replace(manner_of(flags, note), seen=gate.tip))
    except GateError as refused:
        screen.warn(refused.message)
        return Fate(gate.id, gate.opened.title, error=refused)
    return Fate(gate.id, gate.opened.title, done)


def code_of(fate: Fate) -> int:
    return exits.BY_KIND[fate.error.kind] if fate.error else exits.DONE


def report(screen: Screen, desk: Desk, fates: Sequence[Fate]) -> None:
    """Each gate's fate: a line each, or one JSON list."""
    from ..core.text import one_line
    from .respond import what_next

    lines = []
    for fate in fates:
        words = (
            fate.error.message
            if fate.error
            else f"{fate.done.answer.verdict}: {what_next(desk, fate.done)}"
            if fate.done
            else ""
        )
        lines.append(f"{fate.id}  {one_line(fate.title, 40):<40}  {one_line(words)}")
    screen.emit("answers", {"gates": [shape(fate) for fate in fates]}, "\n".join(lines))


def shape(fate: Fate) -> dict[str, object]:
    from ..render import shapes

    gate = shapes.gate(fate.done.gate, pushed=fate.done.published.pushed) if fate.done else None
    error = None
    if fate.error is not None:
        error = {"code": fate.error.code, "message": fate.error.message, "hint": fate.error.hint}
    return {"id": fate.id, "title": fate.title, "code": code_of(fate), "gate": gate, "error": error}
