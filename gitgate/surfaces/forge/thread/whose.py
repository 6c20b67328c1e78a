"""Surfaces: whose reply counts, in the words of the policy's rules that decide. Names stand in code spans, where they notify nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....context.desk import Desk
from ....errors import GateError
from ....model.gate import Gate
from ....policy.book import load_book
from ....policy.permit import case
from ....policy.rules import Person, RuleTerms
from ....policy.ruling import deciding
from ....text.times import format_duration
from .words import span

MOST_NAMES = 20
WRITE = "the right to write to this repository"
Groups = Mapping[str, Sequence[Person]]


@dataclass(frozen=True)
class Whose:
    """Whose reply counts. `closed`: why nobody's does, and what does."""

    words: str = "anybody who may write to this repository"
    closed: str = ""


ANYBODY = Whose()


def whose_reply(desk: Desk, gate: Gate) -> Whose:
    """As the policy is now; one that cannot be read allows nothing."""
    try:
        book = load_book(desk)
        terms = deciding(book.policies, case(desk, book, gate)) if book.policies else None
    except GateError as broken:
        return Whose(
            closed=f"**Nobody can answer** while the policy cannot be read: {span(broken.message, 300)}"
        )
    if terms is None:
        return unruled(gate)
    groups: dict[str, Sequence[Person]] = {}
    for policy in book.policies:
        groups.update(policy.groups or {})
    return in_words(gate, terms, groups)


def unruled(gate: Gate) -> Whose:
    """Without a policy nothing binds, not even whom it is for: that says who was asked, and no more."""
    return Whose(f"{ANYBODY.words}, asked of {addressed(gate)}") if gate.to else ANYBODY


def addressed(gate: Gate) -> str:
    return ", ".join(span(who, 60) for who in gate.to)


def in_words(gate: Gate, terms: Sequence[RuleTerms], groups: Groups) -> Whose:
    """One rule in a line; of several, which all have to agree, each by its name."""
    if any(term.require_signed for term in terms):
        return Whose(closed=signed_words(gate, terms, groups))
    to = f", of those whom it is for: {addressed(gate)}" if gate.to else ""
    rules = list(dict.fromkeys(rule_words(gate, term, groups) for term in terms))
    said = [rule for rule in rules if rule]
    if not said:
        return Whose(f"{addressed(gate)} (with {WRITE})") if gate.to else ANYBODY
    if len(said) == 1:
        return Whose(f"{said[0]}, with {WRITE}{to}")
    return Whose(f"whoever fits all of this, with {WRITE}: {'; and '.join(said)}{to}")


def signed_words(gate: Gate, terms: Sequence[RuleTerms], groups: Groups) -> str:
    said = "; and ".join(dict.fromkeys(rule for term in terms if (rule := rule_words(gate, term, groups))))
    who = f" It counts from {said}." if said else ""
    return (
        "**Answer in a terminal**: the policy takes signed answers only, and a comment carries no signature. "
        f"In a clone of this repository: `git gate respond {gate.id}`.{who}"
    )


def rule_words(gate: Gate, term: RuleTerms, groups: Groups) -> str:
    """What one rule asks of people; empty when it leaves it to all."""
    said = [
        people_line(term.who, groups) if term.who is not None else "",
        f"{term.quorum} of them have to agree" if term.quorum > 1 else "",
        "" if term.requester_may_answer else f"not {asker(gate)}, whose agent asked",
        f"no later than {format_duration(term.within)} after it was asked" if term.within is not None else "",
    ]
    if not any(said):
        return ""
    return ", ".join(part for part in (said[0] or "anybody", *said[1:]) if part)


def asker(gate: Gate) -> str:
    logins = gate.opened.asked.logins
    if logins:
        return " and not ".join(span(f"@{login}", 60) for login in logins)
    return span(gate.opened.asked.by.partition(" <")[0] or "the person", 60)


def people_line(who: Sequence[Person], groups: Groups) -> str:
    """Groups by their name with who is in them, everybody else by name."""
    left = list(who)
    said: list[str] = []
    for name, members in groups.items():
        if members and set(members) <= set(who):
            said.append(f"the group {span(name, 60)} ({several(members)})")
            left = [person for person in left if person not in members]
    return " or ".join([*said, *([several(left)] if left else [])])


def several(people: Sequence[Person]) -> str:
    names = [person_words(person) for person in people]
    more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(dict.fromkeys(names[:MOST_NAMES])) + more


def person_words(person: Person) -> str:
    """By name, and by login where that is another word: a reply is known by it alone."""
    logins = sorted(person.logins)
    if person.name.removeprefix("@").casefold() in logins:
        return span(person.name, 60)
    if logins:
        return f"{span(person.name, 60)} ({', '.join(span(f'@{login}', 60) for login in logins[:5])})"
    return f"{span(person.name, 60)} (in a terminal: the policy names no login)"
