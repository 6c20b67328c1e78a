"""Surfaces: the questions of a pull request as the page of a check run, beside its status: pure.

The page is the comment's questions and the work, in the same inert Markdown. Its notes stand on the lines of the head that the work
changes. It has no buttons: a check that a job made starts no workflow, so that answers stand in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ...text.display import one_line
from .comment import LIMITS, MOST, View, question_block, work_block
from .hosts.forge import CheckNote, CheckPage
from .telling import size, span

MOST_TITLE = 120
MOST_SHOWN = 5  # so many gates with their questions
MOST_NOTES = 50  # that one request takes
HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)
DECIDED = frozenset(("success", "failure"))


def page_of(views: Sequence[View], state: str, words: str, url: str, head: str) -> CheckPage:
    """What a head is judged, by its status, and the questions of those gates that wait."""
    if not views:
        return CheckPage(state if state in DECIDED else "", one_line(words, MOST_TITLE), span(words, 300), "")
    shown = views[:MOST_SHOWN]
    more = f"\n\nand {len(views) - len(shown)} more gates" if len(views) > len(shown) else ""
    asks = views[0].gate.opened.title if len(views) == 1 else words
    return CheckPage(
        "action_required",
        one_line(asks, MOST_TITLE),
        f"**Answer in [the conversation]({url}).** Nothing on this page is an answer.\n\n"
        + fitted(shown, question_part, MOST - 500)
        + more,
        fitted(shown, work_block, MOST - 500),
        tuple(note for view in shown for note in notes(view, head))[:MOST_NOTES],
    )


def fitted(views: Sequence[View], part: Callable[[View, int], str], most: int) -> str:
    """A part of each, as much as there is room for."""
    text = ""
    for limit in LIMITS:
        text = "\n\n".join(said for view in views if (said := part(view, limit)))
        if size(text) <= most:
            return text
    return text[: most // 2]


def question_part(view: View, most: int) -> str:
    gate = view.gate
    head = f"gate **{gate.id}** · asked by {span(gate.opened.asked.agent, 80)}"
    return "\n\n".join([head, *(question_block(view, one, most) for one in gate.opened.questions)])


def notes(view: View, head: str) -> Iterator[CheckNote]:
    """On the lines that the work changes, as they stand in the head: only where it is what the work was begun on."""
    gate = view.gate
    if gate.opened.work.base != head:
        return
    words = f"An agent changed this, and asks (gate {gate.id}): {one_line(gate.opened.title, 200)}"
    for path, first, last in touched(view.diff):
        yield CheckNote(path, first, last, words)


def touched(diff: str) -> Iterator[tuple[str, int, int]]:
    """The lines that a diff changes, by their numbers before it: those that go, or the one behind which others are put. What a
    line says is never taken for the diff's own words: each part says how many lines it has. New files have none.
    """
    path, old, left, came = "", 0, 0, 0
    first = last = 0
    for line in diff.split("\n"):
        if not left and not came:
            if line.startswith("--- "):
                path = path_in(line)
            elif found := HUNK.match(line):
                old, left, came = int(found[1]), int(found[2] or 1), int(found[3] or 1)
                old += not left  # nothing goes: the number is that of the line before
            continue
        if line.startswith("\\"):
            continue
        goes, comes = not line.startswith("+"), not line.startswith("-")
        if goes and comes:
            if first:
                yield path, first, last
            first = 0
        elif path:
            place = old if goes else max(1, old - 1)
            first, last = first or place, max(last if first else 0, place)
        old, left, came = old + goes, left - goes, came - comes
        if not left and not came and first:
            yield path, first, last
            first = 0


def path_in(line: str) -> str:
    """The path in a diff's head; empty for a new file, and for a name that has to be quoted."""
    path = line.removeprefix("--- ").rstrip("\t")
    return path.removeprefix("a/") if path.startswith("a/") else ""
