"""Service: whether what `.gitgate.yml` says holds. Asked of the code that reads it for real: no other can say what it makes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..config import FILE
from ..config import SETTINGS as ALL
from ..core import codec
from ..core.field import Field, nearest
from ..core.glance import is_blank
from ..core.policy import SECTION as POLICY
from ..core.rules import SECTION as APPROVALS
from ..errors import BadDocument
from ..store.protected import read_protected
from .calling import load_rules
from .desk import Desk
from .finding import GOOD, WRONG, Finding
from .policybook import load_book, protected_refs

SETTINGS = "settings"
POWERS = frozenset(one.name for one in ALL if one.power)
READ = (SETTINGS, POLICY, APPROVALS)


def unread(desk: Desk) -> Iterator[Finding]:
    """What stands there and does not count: a field of another name, and a setting that no file may make."""
    for root in documents(desk):
        fields = root.mapping()
        yield from (unknown(name, field) for name, field in fields.items() if name not in READ)
        settings = fields.get(SETTINGS)
        if settings is not None and isinstance(settings.value, dict):
            yield from (misplaced(n, one) for n, one in settings.value.items() if n in POWERS)


def misplaced(name: str, field: Field) -> Finding:
    words = f"{at(field)}: it does not count there, where agents can write; it belongs in this machine's own configuration"
    return Finding(FILE, WRONG, words, f"take it away there; if you want it: git config gitgate.{name} …")


def unknown(name: str, field: Field) -> Finding:
    """Whoever meant to restrict something has to know that it is not restricted."""
    meant = nearest(name, READ)
    words = f"{at(field)}: nobody reads a field of that name; there are {', '.join(READ)}"
    return Finding(FILE, WRONG, words, f"call it {meant}" if meant else "take it away there")


def at(field: Field) -> str:
    return f"{field.source}, line {field.line}: {field.path}"


def documents(desk: Desk) -> Iterator[Field]:
    """The file of the working tree, whose settings count, and the protected branch's, whose rules do. Those that cannot be read
    are told of by what needs them.
    """
    found: dict[bytes, str] = {}
    with contextlib.suppress(OSError):
        if desk.repo.top is not None:
            found[(desk.repo.top / FILE).read_bytes()] = FILE
    protected = read_protected(desk.repo, FILE, protected_refs(desk))
    if protected is not None:
        found.setdefault(protected.data, protected.source)
    for data, source in found.items():
        with contextlib.suppress(BadDocument):
            if not is_blank(data):
                yield codec.parse(data, source)


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
