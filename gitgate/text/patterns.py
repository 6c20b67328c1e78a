"""Text: patterns with `*`, for commands and for paths. None of them can take long, whatever it is held against."""

from __future__ import annotations

import re
from functools import cache

PARTS = r"\*\*/|\*+|\?"
# The wildcards of a path: `*` and `?` stay within a folder; `**/` is any folders, or none.
STAR, ONE, DEEP, FOLDERS = "*", "?", "**", "**/"


@cache
def of_text(pattern: str) -> re.Pattern[str]:
    """Return a pattern's expression: `*` is anything, `?` one character; `x:*` is `x*`, as Claude Code writes it."""
    plain = pattern[:-2] + "*" if pattern.endswith(":*") else pattern
    first, *rest = [re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", plain)]
    if not rest:
        return re.compile(first, re.DOTALL)
    # What follows a star is looked for once, where it comes first: a later place would fit no better.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{between}.*{rest[-1]}", re.DOTALL)


def fits_path(pattern: str, path: str) -> bool:
    """Return whether the pattern names a path, or a folder that the path lies in."""
    tokens = path_tokens(pattern.removeprefix("./").rstrip("/"))
    states = entered({0}, tokens)
    for letter in path:
        if letter == "/" and len(tokens) in states:
            return True
        states = entered({after for state in states for after in moves(state, letter, tokens)}, tokens)
    return len(tokens) in states


@cache
def path_tokens(pattern: str) -> tuple[str, ...]:
    """Return a pattern cut into wildcards and single letters."""
    tokens: list[str] = []
    last = 0
    for found in re.finditer(PARTS, pattern):
        tokens += pattern[last : found.start()]
        tokens.append(found.group() if found.group() in (FOLDERS, STAR, ONE) else DEEP)
        last = found.end()
    # A letter that looks like a wildcard cannot be left over: each was taken out above.
    return (*tokens, *pattern[last:])


def entered(states: set[int], tokens: tuple[str, ...]) -> set[int]:
    """Return the places that these lead to without a letter. Inside `**/` a place is counted below zero."""
    todo = list(states)
    found = set(states)
    while todo:
        state = todo.pop()
        if 0 <= state < len(tokens) and tokens[state] in (STAR, DEEP, FOLDERS) and state + 1 not in found:
            found.add(state + 1)
            todo.append(state + 1)
    return found


def moves(state: int, letter: str, tokens: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places that one more letter leads to."""
    if state < 0:
        return (state, -state) if letter == "/" else (state,)
    if state == len(tokens):
        return ()
    token = tokens[state]
    if token == FOLDERS:
        inside = -(state + 1)
        return (inside, state + 1) if letter == "/" else (inside,)
    if token == DEEP:
        return (state,)
    if token == STAR:
        return () if letter == "/" else (state,)
    if token == ONE:
        return () if letter == "/" else (state + 1,)
    return (state + 1,) if token == letter else ()
