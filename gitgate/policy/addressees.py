"""Policy: those whom a question is for, where no policy says who may answer. Their addresses, logins and keys then hold others back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..context import Desk
from ..errors import Usage
from ..model.gate import Gate
from . import Book, Person, Policy, RuleTerms, load_book, person_of
from .ruling import TO, is_of_question

ADDRESS = r"[^@\s<>,]+@[^@\s<>,]+"
LOGIN = r"@[\w.-]+"  # a team of a forge (`@org/team`) is nobody's login


def held_to(book: Book, gate: Gate) -> Book:
    """Return the book that holds for `gate`: where there is no policy, one whose only rule is whom the question is
    for.
    """
    if book.policies or not gate.holds_to:
        return book
    people = addressees(gate.to)
    terms = RuleTerms(TO, who=people, quorum=gate.opened.quorum, refusals=gate.opened.refusals)
    # None of them stands under `people`: that an address and a login are two people's, nobody has said.
    return Book((Policy(terms, own=True),), book.ref)


def is_of_gate(book: Book) -> bool:
    """Return whether the book's only rule comes from one question: whom the question is for."""
    return any(is_of_question(policy.default) for policy in book.policies)


def addressees(to: Iterable[str]) -> tuple[Person, ...]:
    """Return everybody whom `to` names; whoever it names by no address, login or key is nobody's match."""
    return tuple(known_person(word) or Person(word) for word in to)


def known_person(word: str) -> Person | None:
    """Return whom an address, an `@login` or a key names; None for any other name."""
    found = person_of(word)
    plain = re.fullmatch(LOGIN if word.strip().startswith("@") else ADDRESS, word.strip())
    return found if found is not None and (found.keys or plain) else None


def keys_of(people: Sequence[Person]) -> list[str]:
    return [key for person in people for key in sorted(person.keys)]


def check_addressees(desk: Desk, to: Sequence[str], quorum: int = 1, *, again: str = "--to") -> None:
    """Refuse a name that holds nobody back, and more people than `to` names. Where there is a policy, that knows its people."""
    if not to or load_book(desk).policies:
        return
    found = {word: known_person(word) for word in to}
    unknown = next((word for word, person in found.items() if person is None), None)
    if unknown is not None:
        raise Usage(
            f"--to {unknown}: nothing says who that is, so that it would hold nobody back",
            hint=f"{again} ada@example.org, an @login or a key (SHA256:…); or list them under people in the policy",
        )
    people = [person for person in found.values() if person is not None]
    logins = {login for person in people for login in person.logins}
    others = {name for person in people for name in (*person.emails, *person.keys)}
    most = max(len(logins), len(others))
    if quorum > most:
        raise Usage(
            f"{quorum} have to agree, and --to names {most} who are surely different people",
            hint="name each by an address, or all by @login; or list them under people in the policy",
        )


def way_to_answer(gate: Gate) -> str:
    """Say what somebody can do whom a question does not take for one of those whom it is for."""
    people = addressees(gate.to)
    if keys_of(people):
        return f"sign it with that key: git gate respond {gate.id[:6]} --sign"
    if any(person.logins for person in people):
        return (
            "a login is told where somebody logs in: answer on the forge, or on the team's pages; or whoever asked "
            f"names an address: git gate edit {gate.id[:6]} --to ada@example.org"
        )
    return (
        f"leave it to them; whoever asked may name others: git gate edit {gate.id[:6]} --to ada@example.org"
    )
