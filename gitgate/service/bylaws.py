"""Service: what a project lets its agents do, as its protected branch has it.

An agent that is resumed reads no settings of the tree that it works in: whoever pushed that branch wrote them. What the
project permits and forbids on its protected branch holds nevertheless. Its hooks and servers do not: they are programs, and
those would be taken from the agent's branch.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Failure
from ..store.protected import read_protected
from .desk import Desk
from .policybook import protected_refs

FILES = {"claude": ".claude/settings.json"}
LISTS = ("allow", "deny", "ask")


def permissions(desk: Desk, program: str) -> Mapping[str, list[str]]:
    """The project's rules on tools for a program of that name; nothing where there are none."""
    path = FILES.get(program)
    found = read_protected(desk.repo, path, protected_refs(desk)) if path else None
    if found is None:
        return {}
    import json

    try:
        said = json.loads(found.data.decode("utf-8-sig"))
        rules = said.get("permissions", {})
        chosen = {name: rules[name] for name in LISTS if rules.get(name)}
    except (ValueError, AttributeError, RecursionError) as wrong:
        raise unreadable(found.source, str(wrong)) from None
    for name, each in chosen.items():
        if not isinstance(each, list) or not all(isinstance(rule, str) for rule in each):
            raise unreadable(found.source, f"permissions.{name} is not a list of texts")
    return chosen


def unreadable(source: str, why: str) -> Failure:
    """What it forbids cannot be known, so that nothing is started."""
    return Failure(f"{source} cannot be read: {why}", hint="mend it on the protected branch")
