"""Core: how many people stand behind several answers. Two that could be the same person count as one.

Git knows people by an address, a forge by a login. Only the policy can say which belong together (`people`), so that an
address and a login that it does not tell apart are not counted as two.
"""

from __future__ import annotations

from collections.abc import Sequence

from .people import address
from .policy import Person, Policy
from .ruling import Who, matches

WHOLE, BY_ADDRESS, BY_LOGIN = "whole", "address", "login"
Kind = tuple[str, bool, str]


def people_behind(policies: Sequence[Policy], answers: Sequence[Who]) -> int:
    """The fewest people that these can be."""
    kinds = {kind_of(policies, who) for who in answers}
    by_address = [known for kind, known, _ in kinds if kind == BY_ADDRESS]
    by_login = [known for kind, known, _ in kinds if kind == BY_LOGIN]
    # The policy tells apart whom it lists; anybody else may be one of those on the other side.
    strangers = by_address.count(False) + by_login.count(False)
    return len(kinds) - min(len(by_address), len(by_login), strangers)


def kind_of(policies: Sequence[Policy], who: Who) -> Kind:
    """By what somebody is known, whether the policy lists them, and the one name that they have."""
    person = listed(policies, who)
    if person is not None:
        whole = (person.emails or person.keys) and person.logins
        return (WHOLE if whole else BY_LOGIN if person.logins else BY_ADDRESS, True, person.name)
    if who.login and not who.key:
        return (BY_LOGIN, False, who.login.casefold())
    return (BY_ADDRESS, False, address(who.signer if who.key and who.signer else who.by))


def listed(policies: Sequence[Policy], who: Who) -> Person | None:
    """The first of the people listed that this is; a login that they are not listed with is somebody else's."""
    return next((person for policy in policies for person in policy.people if matches(person, who)), None)


def cautions(policies: Sequence[Policy]) -> list[str]:
    """What to know where a policy counts people, and does not say who of them is who."""
    found = []
    for policy in policies:
        for term in (*(rule.terms for rule in policy.rules), policy.default):
            if term.quorum <= 1 and (term.refusals or 1) <= 1:
                continue
            half = [person.name for person in term.who or policy.people if not is_whole(policy, person)]
            who = ", ".join(half[:8])
            if half:
                found.append(
                    f"rule {term.name}: {who}: known by an address or by a login, not by both; list both under `people`, "
                    "or an answer by the other counts as nobody's, or as the same person's as another"
                )
            elif term.who is None:
                found.append(
                    f"rule {term.name}: anyone may answer; whoever is not listed under `people` with an address and a login "
                    "is not counted beside somebody who is known by the other"
                )
    return list(dict.fromkeys(found))


def is_whole(policy: Policy, person: Person) -> bool:
    """Whether somebody is known by both; a list may name by one of them somebody whom `people` has whole."""
    return any(
        bool((known.emails or known.keys) and known.logins)
        for known in policy.people
        if known == person or known.emails & person.emails or known.logins & person.logins
    )
