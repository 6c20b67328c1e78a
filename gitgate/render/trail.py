"""Render: the audit trail, a line an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.text import clip, one_line, width
from .paint import paint
from .shapes import words_of

NARROW = 72
EVENT_COLORS = {
    "opened": "yellow",
    "answered": "green",
    "amended": "green",
    "voted": "green",
    "defaulted": "magenta",
    "expired": "magenta",
    "failed": "red",
    "stopped": "red",
    "resumed": "cyan",
}


def line(event: Mapping[str, object], cells: int = 10_000, *, color: bool = False) -> str:
    """One event, its words cut to what the line has left."""
    name = str(event["event"])
    who = one_line(str(event.get("by") or "nobody").partition(" <")[0])
    words = one_line(" · ".join(words_of(event).split("\n")))
    mark = event.get("signature")
    if isinstance(mark, Mapping):
        who = f"{who} ({one_line(str(mark['verdict']))})"
    at, gate = str(event["at"]), str(event["gate"])
    if cells < NARROW:  # to the minute, and of the id what a person types
        at, gate = at[:16] + at[-1:], gate[:6]
    head = f"{at}  {gate[:10]}  "
    painted = paint(f"{name:<10}", EVENT_COLORS.get(name, ""), on=color)
    left = max(1, cells - width(head) - max(len(name), 10) - 1)
    return f"{head}{painted} {clip(f'{who}: {words}' if words else who, left)}"


def trail(events: Sequence[Mapping[str, object]], cells: int, *, color: bool = False) -> list[str]:
    return [line(event, cells, color=color) for event in events]
