"""Core: what an attachment may be called. A record is checked out by people on any system, so a name that means
something else on one of them is refused everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NoReturn

from ..errors import BadDocument
from .text import one_line

MOST_ATTACHMENTS = 20
MOST_BYTES = 5 << 20
MOST_TOTAL = 20 << 20
MOST_NAME = 200
MOST_DEPTH = 8

# Windows gives these to devices, with any extension.
DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
# What NTFS calls `.git` when it shortens names.
SHORT_GIT = re.compile(r"git~\d+", re.IGNORECASE)
FORBIDDEN = '\\:*?"<>|'


def check_name(name: str, source: str, *, line: int = 0, field: str = "attachments") -> str:
    """`name` if it is a path that stays inside a record on every system; BadDocument says what was expected."""

    def fail(expected: str) -> NoReturn:
        raise BadDocument(
            one_line(source), line, field, f'expected {expected}; found "{one_line(name[:400], 80)}"'
        )

    problem = _whole(name) or next((wrong for part in name.split("/") if (wrong := _part(part))), "")
    if problem:
        fail(problem)
    return name


def check_names(
    names: Iterable[str], source: str, *, line: int = 0, field: str = "attachments"
) -> tuple[str, ...]:
    """Every name checked, and that they are few and differ on systems that ignore case and composition."""
    checked: dict[str, str] = {}
    for name in names:
        check_name(name, source, line=line, field=field)
        if len(checked) == MOST_ATTACHMENTS:
            raise BadDocument(
                one_line(source), line, field, f"expected at most {MOST_ATTACHMENTS} files; found more"
            )
        folded = fold(name)
        if folded in checked:
            both = f'"{one_line(checked[folded], 80)}" and "{one_line(name, 80)}"'
            raise BadDocument(
                one_line(source), line, field, f"expected names that differ on every system; found {both}"
            )
        checked[folded] = name
    for folded, name in checked.items():
        above = next((f for f in _above(folded) if f in checked), None)
        if above is not None:
            both = f'"{one_line(checked[above], 80)}" and "{one_line(name, 80)}"'
            raise BadDocument(
                one_line(source), line, field, f"expected no file that is also a folder; found {both}"
            )
    return tuple(checked.values())


def fold(name: str) -> str:
    """What systems that ignore case and composition take `name` for."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFKC", normalize("NFKC", name).casefold())


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _whole(name: str) -> str:
    """What was expected of the whole name, where it is wrong."""
    if not name:
        return "the path of a file"
    if one_line(name) != name:
        return "a path without control, invisible or repeated blank characters"
    if len(name.encode("utf-8")) > MOST_NAME:
        return f"a path of at most {MOST_NAME} bytes"
    if name.startswith(("/", "~")):
        return "a relative path"
    if name.startswith("-"):
        return "a path that does not start with a dash"
    bad = next((character for character in name if character in FORBIDDEN), None)
    if bad:
        return f"a relative path with `/` and without `{bad}`"
    if name.count("/") >= MOST_DEPTH:
        return f"a path of at most {MOST_DEPTH} parts"
    return ""


def _part(part: str) -> str:
    """What was expected of a part between slashes, where it is wrong."""
    if part in ("", "."):
        return "a path without empty parts or `.`"
    if part == "..":
        return "a path without `..`"
    if part != part.strip() or part.endswith("."):
        return "a path whose parts do not end with a dot or begin or end with a blank"
    folded = fold(part)
    if folded == ".git" or SHORT_GIT.fullmatch(folded):
        return "a path outside .git"
    if DEVICES.fullmatch(folded):
        return "a name that Windows does not give to a device"
    return ""
