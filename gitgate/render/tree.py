"""Render: gates under their branches, and below a gate those that follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ..core.text import clip, one_line
from .paint import STATE_COLORS, paint
from .table import Row, is_beginning

LEAST_TITLE = 8
DEEPEST = 12


class Family(Protocol):
    """The gates of a branch."""

    @property
    def first(self) -> Sequence[Row]: ...
    def children(self, of: str) -> Sequence[Row]: ...


def tree(branches: Mapping[str, Family], cells: int, *, color: bool = False) -> list[str]:
    lines: list[str] = []
    for name in sorted(branches):
        lines.append(paint(clip(one_line(name), cells) or "(no branch)", "bold", on=color))
        lines.extend(family_lines(branches[name], cells, color=color))
    return lines


def family_lines(family: Family, cells: int, *, color: bool) -> Iterator[str]:
    """Each gate with what follows it below. A long story is not indented out of sight."""
    todo = side_by_side(family.first, "")
    while todo:
        row, lead, last = todo.pop()
        state = one_line(row.state)
        head = f"{lead}{'└─' if last else '├─'} {one_line(row.id[:6])} "
        painted = paint(f"[{state}]", STATE_COLORS.get(row.state, ""), on=color)
        # Only the title is cut: colour codes take no room.
        room = max(LEAST_TITLE, cells - len(head) - len(state) - 3)
        title, question = one_line(row.title), one_line(row.question)
        same = is_beginning(title, question)
        yield f"{head}{painted} {clip(question if same else title, room)}"
        below = f"{lead}{'   ' if last else '│  '}" if len(lead) < 3 * DEEPEST else lead
        if question and not same:
            yield clip(f"{below}  Question: {question}", cells)
        todo += side_by_side(family.children(row.id), below)


def side_by_side(rows: Sequence[Row], lead: str) -> list[tuple[Row, str, bool]]:
    """As a stack: the first one on top."""
    return [(row, lead, place == 0) for place, row in enumerate(reversed(rows))]
