"""Core: patterns with `*`, for commands and for paths."""

from __future__ import annotations

import re
from functools import cache

PARTS = re.compile(r"\*\*/|\*+|\?")


@cache
def of_text(pattern: str) -> re.Pattern[str]:
    """`*` is anything at all, `?` one character; `x:*` is `x*`, as Claude Code writes it."""
    plain = pattern[:-2] + "*" if pattern.endswith(":*") else pattern
    pieces = [".*" if piece[:1] == "*" else "." if piece == "?" else re.escape(piece) for piece in cut(plain)]
    return re.compile("".join(pieces), re.DOTALL)


@cache
def of_path(pattern: str) -> re.Pattern[str]:
    """`*` stays within a folder, `**` does not; a pattern for a folder is for all that is in it."""
    plain = pattern.removeprefix("./") + ("**" if pattern.endswith("/") else "")
    said = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    pieces = [said.get(piece) or (".*" if piece[:2] == "**" else re.escape(piece)) for piece in cut(plain)]
    return re.compile("".join(pieces) + "(?:/.*)?", re.DOTALL)


def cut(pattern: str) -> list[str]:
    """A pattern as its wildcards and what is between them; stars that touch are one, so that none can try forever."""
    pieces, last = [], 0
    for found in PARTS.finditer(pattern):
        pieces += [pattern[last : found.start()]] if found.start() > last else []
        pieces.append(found.group() if len(found.group()) < 3 or found.group() == "**/" else "**")
        last = found.end()
    return pieces + ([pattern[last:]] if last < len(pattern) else [])
