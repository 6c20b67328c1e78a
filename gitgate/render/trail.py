"""Render: the audit trail, a line an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ..model.states import traits
from ..text.display import clip, one_line, width
from .shapes import event_words
from .table import STATE_COLORS, TableRow, is_beginning, paint

NARROW = 72


def line(event: Mapping[str, object], cells: int = 10_000, *, color: bool = False) -> str:
    """One event, its words cut to what the line has left."""
    name = str(event["event"])
    who = one_line(str(event.get("by") or "nobody").partition(" <")[0])
    words = one_line(" · ".join(event_words(event).split("\n")))
    mark = event.get("signature")
    if isinstance(mark, Mapping):
        who = f"{who} ({one_line(str(mark['verdict']))})"
    at, gate = str(event["at"]), str(event["gate"])
    if cells < NARROW:  # to the minute, and of the id what a person types
        at, gate = at[:16] + at[-1:], gate[:6]
    head = f"{at}  {gate[:10]}  "
    painted = paint(f"{name:<10}", traits(name).color, on=color)
    left = max(1, cells - width(head) - max(len(name), 10) - 1)
    return f"{head}{painted} {clip(f'{who}: {words}' if words else who, left)}"


def trail(events: Sequence[Mapping[str, object]], cells: int, *, color: bool = False) -> list[str]:
    return [line(event, cells, color=color) for event in events]


LEAST_TITLE = 8
DEEPEST = 12


class BranchGates(Protocol):
    """The gates of a branch."""

    @property
    def first(self) -> Sequence[TableRow]: ...
    def children(self, of: str) -> Sequence[TableRow]: ...


def tree(branches: Mapping[str, BranchGates], cells: int, *, color: bool = False) -> list[str]:
    lines: list[str] = []
    for name in sorted(branches):
        lines.append(paint(clip(one_line(name), cells) or "(no branch)", "bold", on=color))
        lines.extend(family_lines(branches[name], cells, color=color))
    return lines


def family_lines(family: BranchGates, cells: int, *, color: bool) -> Iterator[str]:
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


def side_by_side(rows: Sequence[TableRow], lead: str) -> list[tuple[TableRow, str, bool]]:
    """As a stack: the first one on top."""
    return [(row, lead, place == 0) for place, row in enumerate(reversed(rows))]
