"""Service: whether what `.gitgate.yml` says holds. Asked of the code that reads it for real: no other can say what it makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import BadDocument
from .calling import load_rules
from .desk import Desk
from .finding import GOOD, WRONG, Finding
from .policybook import load_book


def policy(desk: Desk) -> Iterator[Finding]:
    """Who may answer; a policy that cannot be read allows nothing."""
    for one in load_book(desk).policies:
        yield Finding("policy", GOOD, f"who may answer is said by {one.source or 'git config'}")


def approvals(desk: Desk) -> Iterator[Finding]:
    """The calls that wait for a person; where the rules cannot be read, none goes through."""
    try:
        rules = load_rules(desk)
    except BadDocument as wrong:
        words = f"the rules cannot be read, so that no call of an agent goes through: {wrong.message}"
        yield Finding("approvals", WRONG, words, "mend them on the protected branch")
        return
    if rules:
        calls = "one rule says" if len(rules) == 1 else f"{len(rules)} rules say"
        yield Finding("approvals", GOOD, f"{calls} which calls of an agent wait for a person")
