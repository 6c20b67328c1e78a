"""Gates: the policy explained: its rules, and for one gate and one person which of them decides, and why."""

from __future__ import annotations

from collections.abc import Mapping

from ..context.desk import Desk
from ..document.values import dataclass
from ..model.gate import Gate
from ..policy.book import Book
from ..policy.permit import case, explain
from ..policy.rules import RuleTerms
from ..policy.ruling import Who, deciding
from .work import comes_back


@dataclass(frozen=True)
class Explained:
    """Whether somebody may answer a gate, by which rule (None: no policy), and why. `paths`: what its work touches that a rule is about, `staged_only`: what of it the
    files do not show; None where nobody knows.
    """

    gate: str
    who: str
    allowed: bool
    rule: str | None
    why: str
    source: str
    terms: tuple[RuleTerms, ...]
    paths: tuple[str, ...] | None
    staged_only: tuple[str, ...] | None = None

    @property
    def rules(self) -> tuple[Mapping[str, object], ...]:
        """The terms that hold for this gate, for programs."""
        return tuple(map(plain_terms, self.terms))


@dataclass(frozen=True)
class PolicyInForce:
    """The rules that hold here, each as a mapping of its terms, by where they were read. No sources: no policy."""

    sources: Mapping[str, tuple[Mapping[str, object], ...]]
    branch: str | None


def explain_gate(desk: Desk, book: Book, gate: Gate, given: str | None) -> Explained:
    """One gate and one person, by default the one at this machine."""
    who = who_meant(desk, given)
    facts = case(desk, book, gate)
    said = explain(desk, book, gate, who)
    terms = deciding(book.policies, facts)
    hidden = comes_back(desk, gate.opened.work) if facts.paths is not None else None
    return Explained(
        gate.id,
        given or who.by,
        said.allowed,
        said.rule if book.policies else None,
        said.why,
        said.source,
        terms,
        facts.paths,
        None if hidden is None else (*hidden["staged_only"], *hidden["in_conflict"]),
    )


def who_meant(desk: Desk, given: str | None) -> Who:
    """An e-mail, `Name <e-mail>`, or `@login`."""
    if given and given.startswith("@"):
        return Who("", login=given[1:])
    return Who(f"{given} <{given}>" if given and "<" not in given else given or desk.person())


def in_force(book: Book) -> PolicyInForce:
    return PolicyInForce(
        {source: tuple(map(plain_terms, terms)) for source, terms in rules_of(book)}, book.ref
    )


def rules_of(book: Book) -> list[tuple[str, tuple[RuleTerms, ...]]]:
    """Every rule of every policy in its order, the default last, with where it was read."""
    return [
        (policy.source or policy.default.source, (*(rule.terms for rule in policy.rules), policy.default))
        for policy in book.policies
    ]


def plain_terms(term: RuleTerms) -> Mapping[str, object]:
    """A rule's terms, for programs."""
    return {
        "name": term.name,
        "who": None if term.who is None else [person.name for person in term.who],
        "quorum": term.quorum,
        "refusals": term.refusals,
        "requester_may_answer": term.requester_may_answer,
        "require_signed": term.require_signed,
        "within": term.within,
        "defaults": term.defaults,
        "automatic": term.automatic,
        "source": term.source,
    }
