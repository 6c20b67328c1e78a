"""Core: which tool calls of an agent need a person's approval, by the rules of a repository.

In `.gitgate.yml` they are a list, `approvals:`, of calls such as `Bash(terraform apply*)` or `Write(migrations/**)`, or
of mappings `{call: mcp__billing__*, why: it moves money, to: [ops@example.org], quorum: 2}`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import globs
from .field import Field, near
from .readers import duration, texts, words
from .shell import commands
from .words import ON_TIMEOUT, PRIORITIES

SECTION = "approvals"
FIELDS = ("call", "why", "to", "quorum", "priority", "timeout", "on_timeout")
CALL = re.compile(r"([A-Za-z_*?][\w*?-]*)(?:\((.*)\))?", re.DOTALL)
# A rule for one of these is a rule for all of them: each writes a file.
WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
SHELLS = ("Bash", "PowerShell")
PATHS = ("file_path", "notebook_path", "path")


@dataclass(frozen=True)
class Rule:
    """One rule: a tool's name, and what its call is about where that matters; both may hold `*`."""

    text: str
    tool: str
    about: str | None = None
    why: str = ""
    to: tuple[str, ...] = ()
    quorum: int = 1
    priority: str | None = None
    timeout: int | None = None
    on_timeout: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a call is made: the repository's folder and the agent's, and how links are followed from there."""

    top: str
    cwd: str
    real: Mapping[str, str] | None = None


def parse_rules(root: Field) -> tuple[Rule, ...]:
    listed = root.get(SECTION)
    return () if listed is None else tuple(parse_rule(item) for item in listed.items())


def parse_rule(item: Field) -> Rule:
    if isinstance(item.value, str):
        return with_call(item)
    for name, field in item.mapping().items():
        if name not in FIELDS:
            field.fail(f"there is no such field in a rule{near(name, FIELDS)}; there are {', '.join(FIELDS)}")
    rule = with_call(item.need("call"))
    quorum, timeout, priority, on_timeout = (
        item.get(n) for n in ("quorum", "timeout", "priority", "on_timeout")
    )
    return Rule(
        rule.text,
        rule.tool,
        rule.about,
        words(item, "why"),
        texts(item, "to"),
        quorum.integer(1, 100) if quorum else 1,
        priority.one_of(PRIORITIES) if priority else None,
        duration(timeout) if timeout else None,
        on_timeout.one_of(ON_TIMEOUT) if on_timeout else None,
    )


def with_call(field: Field) -> Rule:
    text = field.text(most=1000).strip()
    found = CALL.fullmatch(text)
    if found is None:
        field.fail("expected a tool, such as `Bash(terraform apply*)`, `Write(migrations/**)` or `mcp__*`")
    about = found[2].strip() if found[2] is not None else None
    return Rule(text, found[1], None if about in (None, "", "*", "**") else about)


def find_rule(rules: Sequence[Rule], tool: str, given: Mapping[str, object], place: Place) -> Rule | None:
    """The first rule that this call falls under."""
    return next((rule for rule in rules if applies(rule, tool, given, place)), None)


def applies(rule: Rule, tool: str, given: Mapping[str, object], place: Place) -> bool:
    names = WRITERS if tool in WRITERS else (tool,)
    if not any(globs.of_text(rule.tool).fullmatch(name) for name in names):
        return False
    if rule.about is None:
        return True
    if tool in SHELLS:
        return runs(rule.about, given.get("command"))
    found = [value for name in PATHS if isinstance(value := given.get(name), str)]
    if found:
        return any(lies_in(rule.about, path, place) for path in found)
    return any(globs.of_text(rule.about).fullmatch(text) for text in said(given))


def runs(pattern: str, command: object) -> bool:
    """Whether one of the commands in a line fits, however it is wrapped."""
    if not isinstance(command, str):
        return True  # what cannot be read is not let through
    wanted = globs.of_text(pattern)
    if wanted.fullmatch(" ".join(command.split())):
        return True
    return any(wanted.fullmatch(" ".join(found)) for found in commands(command))


def lies_in(pattern: str, path: str, place: Place) -> bool:
    """Whether a file is one that the pattern names, from the top of the repository; also by where links lead."""
    whole = posixpath.normpath(posixpath.join(place.cwd, path.replace("\\", "/")))
    known = {whole, (place.real or {}).get(path, whole)}
    tops = {place.top, (place.real or {}).get(place.top, place.top)}
    if pattern.startswith("/"):
        return any(globs.fits_path(pattern, name) for name in known)
    inside = [name.removeprefix(f"{top}/") for name in known for top in tops if name.startswith(f"{top}/")]
    return any(globs.fits_path(pattern, name) for name in inside)


def said(given: object, depth: int = 0) -> Iterator[str]:
    """Every text in a call's arguments."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping) and depth < 8:
        for value in given.values():
            yield from said(value, depth + 1)
    elif isinstance(given, (list, tuple)) and depth < 8:
        for value in given:
            yield from said(value, depth + 1)
