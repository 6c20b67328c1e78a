"""Surfaces: what somebody else wrote, as it may stand in a comment.

On a forge, text acts: it mentions people, links issues, loads pictures, hides behind HTML. In a code span or a fenced block
it does none of that, and a fence longer than any run of backticks inside cannot be closed from within.
"""

from __future__ import annotations

import re

from ....text.display import neutral, one_line, wrap

COLUMNS = 100
CUT = "… (cut here)"


def longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def span(text: str, most: int = 200) -> str:
    """One line of somebody's, as a code span."""
    line = one_line(text, most) or "(nothing)"
    fence = "`" * (longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(text: str, most: int, *, kind: str = "text", fold: bool = True) -> str:
    """Several lines of somebody's, as a fenced block of at most `most` characters."""
    words = neutral(text).strip("\n")
    shown = clipped(wrap(words, COLUMNS) if fold else words, most)
    fence = "`" * max(3, longest_run(shown) + 1)
    return f"{fence}{kind}\n{shown}\n{fence}"


def clipped(text: str, most: int) -> str:
    """The beginning, up to a whole line where there is one, and a word that something is missing."""
    if size(text) <= most:
        return text
    kept = text[:most]
    while size(kept) > most:
        kept = kept[: len(kept) - (size(kept) - most)]
    lines, newline, _ = kept.rpartition("\n")
    return f"{lines if newline else kept}\n{CUT}"


def size(text: str) -> int:
    """As a forge counts at the worst: in units of UTF-16."""
    return len(text) + sum(character > "\uffff" for character in text)
