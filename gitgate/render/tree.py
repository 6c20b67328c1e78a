"""Render: gates under their branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.text import clip, one_line
from .paint import STATE_COLORS, paint
from .table import Row


def tree(branches: Mapping[str, Sequence[Row]], cells: int, *, color: bool = False) -> list[str]:
    lines: list[str] = []
    for name in sorted(branches):
        lines.append(paint(one_line(name) or "(no branch)", "bold", on=color))
        rows = branches[name]
        for place, row in enumerate(rows):
            corner = "└─" if place == len(rows) - 1 else "├─"
            state = paint(f"[{one_line(row.state)}]", STATE_COLORS.get(row.state, ""), on=color)
            lines.append(
                clip_tail(
                    f"{corner} {one_line(row.id[:6])} {state} ",
                    one_line(row.title),
                    cells,
                    len(one_line(row.state)),
                )
            )
            bar = "  " if place == len(rows) - 1 else "│ "
            if one_line(row.question) != one_line(row.title):
                lines.append(clip(f"{bar}   Question: {one_line(row.question)}", cells))
    return lines


def clip_tail(head: str, tail: str, cells: int, state: int) -> str:
    """Only the title is cut: colour codes take no room."""
    return head + clip(tail, max(20, cells - 14 - state))
