"""Core: trailers of a project's own commits. Git's tool for it obeys the user's settings, which may run programs."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: ?\S")


def with_trailers(message: str, wanted: Sequence[tuple[str, str]]) -> str:
    """`message` with each of `wanted` as one of its trailers; one that is there is not said twice."""
    body = message.rstrip("\n")
    before, gap, last = body.rpartition("\n\n")
    block = last.split("\n") if gap and is_block(last) else []
    missing = [f"{name}: {value}" for name, value in wanted if f"{name}: {value}" not in block]
    if not missing:
        return message
    if block:
        return f"{before}\n\n" + "\n".join([*block, *missing]) + "\n"
    return (f"{body}\n\n" if body else "\n\n") + "\n".join(missing) + "\n"


def is_block(paragraph: str) -> bool:
    """Whether every line of the last paragraph is a trailer, or goes on with one."""
    lines = paragraph.split("\n")
    return bool(_TRAILER.match(lines[0])) and all(_TRAILER.match(line) or line[:1] in " \t" for line in lines)
