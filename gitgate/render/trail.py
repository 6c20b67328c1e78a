"""Render: the audit trail, a line an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.text import one_line
from .paint import paint

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


def line(event: Mapping[str, object], *, color: bool = False) -> str:
    name = str(event["event"])
    who = one_line(str(event.get("by") or "nobody").partition(" <")[0])
    words = one_line(" · ".join(str(event.get("text") or "").split("\n")), 100)
    painted = paint(f"{name:<10}", EVENT_COLORS.get(name, ""), on=color)
    return f"{event['at']}  {str(event['gate'])[:10]}  {painted} {who}{': ' + words if words else ''}"


def trail(events: Sequence[Mapping[str, object]], *, color: bool = False) -> list[str]:
    return [line(event, color=color) for event in events]
