"""Render: gates as a list, aligned to the terminal's width, and as a tree by branch; and colour. What came out of a gate is
neutralised here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ..errors import Usage
from ..text import ago, are_our_own, clip, one_line, parse_time, width

CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
STATE_COLORS = {
    "awaiting": "yellow",
    "answered": "cyan",
    "resuming": "blue",
    "resumed": "green",
    "failed": "red",
    "stalled": "red",
    "broken": "red",
}
PRIORITY_COLORS = {"urgent": "red", "high": "yellow"}


def paint(text: str, *names: str, on: bool) -> str:
    codes = ";".join(CODES[name] for name in names if name in CODES)
    return f"\x1b[{codes}m{text}\x1b[0m" if on and codes else text


MOST_ASKER = 24
MOST_BRANCH = 28
NARROW, NARROWEST = 72, 50  # below, the branch is left out, and then who asked
STATE_CELLS = 10
LEAST_QUESTION = 8
LEFT_TO_RIGHT = "\u200e"
RIGHT_TO_LEFT = (
    ("\u0590", "\u08ff"),
    ("\ufb1d", "\ufdff"),
    ("\ufe70", "\ufefc"),
    ("\U00010800", "\U00010fff"),
    ("\U0001e800", "\U0001efff"),
)
SESSION = "session"  # the type of a question that is decided in a conversation: `git gate join`


class TableRow(Protocol):
    """Fields that a row of the list needs of a gate's summary."""

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
    @property
    def later(self) -> str: ...
    @property
    def outcome(self) -> str: ...


HEADS = ("ID", "AGE", "PRIO", "STATE", "ASKED BY", "BRANCH", "QUESTION")
AGE, PRIORITY, STATE, ASKER, BRANCH = 1, 2, 3, 4, 5
PRINTABLE = bytes(range(ord(" "), ord("~") + 1))


def age(at: str, now: float) -> str:
    try:
        return ago(now - parse_time(at))
    except Usage:
        return "?"


def ages(moments: Sequence[str], now: float) -> list[str]:
    """Each as `age` has it. In order, those of one age stand together, so that of thousands a few are reckoned."""
    ordered = sorted(dict.fromkeys(moments))  # nearly in order, as the rows are
    if not are_our_own(ordered):
        return [age(at, now) for at in moments]
    known: dict[str, str] = {}
    while len(known) < len(ordered):
        first = len(known)
        said = age(ordered[first], now)
        end = bisect_right(ordered, False, first, key=lambda at: age(at, now) != said)
        known.update(dict.fromkeys(ordered[first:end], said))
    return [known[at] for at in moments]


# What a deadline does to a question that nobody answered.
AT_DEADLINE = {
    "stuck": "it expires, and nobody is resumed",
    "remind": "it waits on, and is announced again",
    "defer": "it is put aside for as long again",
    "default": "its default applies, in nobody's name",
    "fail": "it expires, and whoever asked hears that nobody answered",
}


def due(deadline: str, now: float) -> str:
    try:
        left = parse_time(deadline) - now
    except Usage:
        return ""
    return f"due in {span(left)}" if left > 0 else "overdue"


def span(left: float) -> str:
    """Format the time left, to the minute or the hour, rounded up: two hours just given are `2h`."""
    minutes = int(-(-left // 60))
    if minutes < 60:
        return f"{minutes}m"
    if minutes < 48 * 60:
        return f"{minutes // 60}h" + (f"{minutes % 60}m" if minutes % 60 else "")
    hours = -(-minutes // 60)
    return f"{hours // 24}d" + (f"{hours % 24}h" if hours % 24 else "")


def columns_of(rows: Sequence[TableRow], now: float) -> list[list[str]]:
    """Return the cells below each heading of HEADS."""
    return [
        lined([row.id for row in rows]),
        ages([row.at for row in rows], now),
        lined([row.priority for row in rows]),
        lined([row.state for row in rows]),
        [name or "-" for name in lined([row.agent for row in rows])],
        [name or "-" for name in lined([row.branch for row in rows])],
        lined([row.question or row.title for row in rows]),
    ]


def lined(texts: list[str]) -> list[str]:
    """Each as `one_line` has it; looked at together, because nearly always nothing is to be done."""
    whole = "\n".join(["", *texts, ""])
    plain = whole.isascii() and whole.encode().translate(None, PRINTABLE) == b"\n" * (len(texts) + 1)
    if plain and not any(blanks in whole for blanks in ("  ", "\n ", " \n")):
        return texts
    return [one_line(text) for text in texts]


def row_end(row: TableRow, now: float) -> str:
    """Return the row's end, which stays however much of the question is cut: that there are more, how it is answered,
    until when.
    """
    count = int(row.questions) if row.questions.isdecimal() and len(row.questions) < 4 else 1
    more = f" (+{count - 1} more)" if count > 1 else ""
    if row.state == "failed":
        return f"{more} · resume or stop"
    if row.state != "awaiting":
        return more + (f" · {one_line(row.outcome)}" if row.outcome else "")
    talked = " · join" if row.type == SESSION else ""
    talked += f" · {one_line(row.outcome)}" if row.outcome else ""
    talked += aside(row.later, now)
    return more + talked + (f" · {due(row.deadline, now)}" if row.deadline else "")


def aside(later: str, now: float) -> str:
    """Return until when a gate is postponed, to the minute; nothing once that is over."""
    try:
        return f" · later until {later[:16]}Z" if later and parse_time(later) > now else ""
    except Usage:
        return ""


def is_more(row: TableRow) -> bool:
    return (
        bool(row.deadline or row.outcome or row.later)
        or row.questions != "1"
        or row.type == SESSION
        or row.state == "failed"
    )


def table(rows: Sequence[TableRow], now: float, cells_wide: int, *, color: bool = False) -> list[str]:
    """A line a gate, never longer than the terminal. The question gets what is left of it; what says the same of every
    gate is left out, and on a narrow terminal what is needed least to choose one.

    Built a column at a time: in a list of thousands the calls for each cell would take longer than git does.
    """
    columns = [[head, *texts] for head, texts in zip(HEADS, columns_of(rows, now), strict=True)]
    with_state = bool(set(columns[STATE][1:]) - {"awaiting"})
    room = cells_wide - STATE_CELLS if with_state else cells_wide
    left_out = {STATE: not with_state, BRANCH: room < NARROW, ASKER: room < NARROWEST, PRIORITY: room < 36}
    shown = [c for c in range(len(HEADS)) if not left_out.get(c)]
    most = limits(room)
    laid = [padded(columns[c], most.get(c, cells_wide), right=c == AGE) for c in shown[:-1]]
    left = max(LEAST_QUESTION, cells_wide - sum(width(column[0]) + 2 for column in laid))
    endings = ["", *(row_end(row, now) if is_more(row) else "" for row in rows)]
    if any(endings):
        question = [
            clip(text, max(LEAST_QUESTION, left - width(end))) + end
            for text, end in zip(columns[-1], endings, strict=True)
        ]
    else:
        question = list(clipped(columns[-1], left)[0])
    lines = [clip(line.rstrip(), cells_wide) for line in map("  ".join, zip(*laid, question, strict=True))]
    if not color:
        return lines
    return [paint(lines[0], "dim", on=True), *map(colored, lines[1:], rows)]


def is_beginning(title: str, question: str) -> bool:
    """Return whether the title is only the beginning of the question, as it is where nobody gave a title."""
    return question.startswith(title.removesuffix("…")) or title.startswith(question.removesuffix("…"))


def limits(cells_wide: int) -> dict[int, int]:
    """Return how wide names may get: on a narrow terminal the question comes first."""
    if cells_wide < NARROW:
        return {ASKER: 10}
    if cells_wide < 100:
        return {ASKER: 14, BRANCH: 12}
    return {ASKER: MOST_ASKER, BRANCH: MOST_BRANCH}


def padded(column: Sequence[str], most: int, *, right: bool) -> list[str]:
    """The column as wide as its widest cell, head included, or as `most`."""
    fitting, size = clipped(column, max(most, width(column[0])))
    if "".join(fitting).isascii():
        return [text.rjust(size) for text in fitting] if right else [text.ljust(size) for text in fitting]
    blanks = [" " * (size - width(text)) for text in fitting]
    if right:
        return [blank + text for text, blank in zip(fitting, blanks, strict=True)]
    return [text + mark_after(text) + blank for text, blank in zip(fitting, blanks, strict=True)]


def mark_after(text: str) -> str:
    """Two cells beside each other in a script that runs to the left would change places on a terminal that knows how."""
    return LEFT_TO_RIGHT if not text.isascii() and runs_left(text) else ""


def runs_left(text: str) -> bool:
    return any(low <= letter <= high for letter in text for low, high in RIGHT_TO_LEFT)


def clipped(column: Sequence[str], most: int) -> tuple[Sequence[str], int]:
    """The column cut to `most` cells, and how many its widest cell has then."""
    size = max(map(len if "".join(column).isascii() else width, column))
    if size <= most:
        return column, size
    return [clip(text, most) for text in column], most


def colored(text: str, row: TableRow) -> str:
    text = text.replace(row.id, paint(row.id, "bold", on=True), 1)
    if row.priority in PRIORITY_COLORS:
        text = text.replace(row.priority, paint(row.priority, PRIORITY_COLORS[row.priority], on=True), 1)
    if row.state in STATE_COLORS:
        text = text.replace(f" {row.state} ", f" {paint(row.state, STATE_COLORS[row.state], on=True)} ", 1)
    return text


LEAST_TITLE = 8
DEEPEST = 12


class BranchGates(Protocol):
    """The gates of a branch."""

    @property
    def first(self) -> Sequence[TableRow]: ...
    def children(self, of: str) -> Sequence[TableRow]: ...


def tree_lines(branches: Mapping[str, BranchGates], cells: int, *, color: bool = False) -> list[str]:
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
