"""Render: gates as a list, aligned to the terminal's width. What came out of a gate is neutralised here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..core.text import clip, one_line, width
from ..core.times import ago, parse_time
from ..errors import Usage
from .paint import PRIORITY_COLORS, STATE_COLORS, paint

MOST_ASKER = 24
MOST_BRANCH = 28
LEAST_QUESTION = 12


class Row(Protocol):
    """What a row needs of a gate's summary."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def questions(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def at(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def priority(self) -> str: ...
    @property
    def deadline(self) -> str: ...


HEADS = ("ID", "AGE", "PRIO", "STATE", "ASKED BY", "BRANCH", "QUESTION")
AGE, STATE, ASKER, BRANCH = 1, 3, 4, 5


def age(at: str, now: float) -> str:
    try:
        return ago(now - parse_time(at))
    except Usage:
        return "?"


def due(deadline: str, now: float) -> str:
    try:
        left = parse_time(deadline) - now
    except Usage:
        return ""
    return f"due in {span(left)}" if left > 0 else "overdue"


def span(left: float) -> str:
    """What is left, to the minute or the hour, rounded up: two hours just given are `2h`."""
    minutes = int(-(-left // 60))
    if minutes < 60:
        return f"{minutes}m"
    if minutes < 48 * 60:
        return f"{minutes // 60}h" + (f"{minutes % 60}m" if minutes % 60 else "")
    hours = -(-minutes // 60)
    return f"{hours // 24}d" + (f"{hours % 24}h" if hours % 24 else "")


def cells(row: Row, now: float) -> tuple[str, ...]:
    question = one_line(row.question or row.title)
    more = (
        f" (+{int(row.questions) - 1} more)" if row.questions.isdecimal() and int(row.questions) > 1 else ""
    )
    late = f" · {due(row.deadline, now)}" if row.deadline and row.state == "awaiting" else ""
    return (
        row.id,
        age(row.at, now),
        row.priority,
        row.state,
        one_line(row.agent) or "-",
        one_line(row.branch) or "-",
        f"{question}{more}{late}",
    )


def table(rows: Sequence[Row], now: float, cells_wide: int, *, color: bool = False) -> list[str]:
    """A line a gate. The state is left out where all are waiting; the question gets what is left of the line."""
    body = [cells(row, now) for row in rows]
    shown = [
        column
        for column in range(len(HEADS))
        if column != STATE or any(line[STATE] != "awaiting" for line in body)
    ]
    most = limits(cells_wide)
    widths = {
        c: max(
            width(HEADS[c]), min(most.get(c, cells_wide), max((width(line[c]) for line in body), default=0))
        )
        for c in shown[:-1]
    }
    left = max(LEAST_QUESTION, cells_wide - sum(widths.values()) - 2 * len(widths))
    lines = [paint(joined(HEADS, shown, widths, left), "dim", on=color)]
    for row, line in zip(rows, body, strict=True):
        text = joined(line, shown, widths, left)
        lines.append(colored(text, row) if color else text)
    return lines


def limits(cells_wide: int) -> dict[int, int]:
    """How wide names may get: on a narrow terminal the question comes first."""
    if cells_wide < 72:
        return {ASKER: 10, BRANCH: 8}
    if cells_wide < 100:
        return {ASKER: 14, BRANCH: 12}
    return {ASKER: MOST_ASKER, BRANCH: MOST_BRANCH}


def joined(line: Sequence[str], shown: Sequence[int], widths: dict[int, int], left: int) -> str:
    parts = [padded(clip(line[c], widths[c]), widths[c], right=c == AGE) for c in shown[:-1]]
    return "  ".join([*parts, clip(line[shown[-1]], left)]).rstrip()


def padded(text: str, cells: int, *, right: bool) -> str:
    blanks = " " * (cells - width(text))
    return blanks + text if right else text + blanks


def colored(text: str, row: Row) -> str:
    text = text.replace(row.id, paint(row.id, "bold", on=True), 1)
    if row.priority in PRIORITY_COLORS:
        text = text.replace(row.priority, paint(row.priority, PRIORITY_COLORS[row.priority], on=True), 1)
    if row.state in STATE_COLORS:
        text = text.replace(f" {row.state} ", f" {paint(row.state, STATE_COLORS[row.state], on=True)} ", 1)
    return text
