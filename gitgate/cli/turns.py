"""Command line: what a person may type at a prompt besides an answer: for help, for the next gate, to leave."""

from __future__ import annotations

from ..core.model import Question
from ..core.questions import expected
from .screen import Screen

HELP, NEXT, LEAVE, CANCEL = "?", ":s", ":q", ":c"
OFFER = f"answer it, or: Enter for the next one, {LEAVE} to leave, {HELP} for help"
MEANS = {
    "approval": "y or n; words after it are your note",
    "choice": "a number, a label, or the beginning of one",
    "choices": "several of them with commas between, as numbers or labels: 1,3",
    "form": "a value for each field; an optional one may stay empty, Enter at another one is none to the form",
}
TEXT = "any words; \\ at the end of a line goes on, :e opens your editor"


class NextGate(Exception):
    """This one is left for later."""


class LeaveAll(Exception):
    """Enough; what was answered stays answered."""


class Cancelled(Exception):
    """After a session: the gate is ended without an answer."""


def heed(screen: Screen, question: Question, word: str, *, empty: bool = True) -> bool:
    """Whether what was typed was no answer, and was done: then it is asked again. `empty`: Enter alone has a meaning."""
    word = word.strip()
    if word == HELP:
        means = MEANS.get(question.kind, TEXT)
        screen.tell(f"  {means}" if question.kind == "approval" else f"  {means}; {expected(question)}")
        if screen.in_turn:
            screen.tell(
                f"  Enter or {NEXT}: the next gate   {LEAVE} or Ctrl-D: leave; what was answered stays so"
            )
        return True
    if screen.in_turn and (word == NEXT or (empty and not word)):
        raise NextGate
    if screen.in_turn and word == LEAVE:
        raise LeaveAll
    if screen.empty_leaves and empty and not word:
        raise EOFError
    if screen.empty_leaves and word == CANCEL:
        raise Cancelled
    return False
