"""Core: what a policy says, as values: people, the terms of a rule, the rules. `policy` reads them, `ruling` decides by them."""

from __future__ import annotations

from collections.abc import Mapping

from .values import dataclass, field

DEFAULT = "default"


@dataclass(frozen=True)
class Person:
    """Somebody, by whatever they are told by. `keys` are fingerprints; with one listed, another key is not theirs."""

    name: str
    emails: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Terms:
    """What one rule asks for. `who`: None is anyone. A flag that is None leaves things as they are without a policy.

    `automatic`: scripts answer unless it is false; what nobody confirmed counts only where it is true.
    """

    name: str = DEFAULT
    who: tuple[Person, ...] | None = None
    quorum: int = 1
    refusals: int | None = None
    requester_may_answer: bool = True
    require_signed: bool = False
    within: int | None = None
    defaults: bool | None = None
    automatic: bool | None = None
    source: str = ""


@dataclass(frozen=True)
class Rule:
    """Terms for the gates that fit; an empty condition fits all.

    With `confidence_below` they hold beside those of the rule that decides otherwise: what an agent says of itself tightens only.
    """

    terms: Terms
    paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    confidence_below: float | None = None


@dataclass(frozen=True)
class Policy:
    """All of it. None for a list of people or agents is: any."""

    default: Terms = Terms()
    rules: tuple[Rule, ...] = ()
    people: tuple[Person, ...] = ()
    groups: Mapping[str, tuple[Person, ...]] | None = None
    allowed_signers: str | None = None
    signers: tuple[str, ...] = ()
    agents: tuple[str, ...] | None = None
    commands: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    loads: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    askers: tuple[Person, ...] | None = None
    runners: tuple[Person, ...] | None = None
    source: str = ""

    @property
    def by_path(self) -> bool:
        return any(rule.paths for rule in self.rules)
