"""Surfaces: a comment's words about a conversation: how to hold it, and how it was held. Never what was said in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.model import Gate
from ...core.times import format_duration
from .words import block, span

if TYPE_CHECKING:
    from ...core.talks import Held


def talked(held: Held | None, most: int) -> list[str]:
    """How long it was talked about and what is to be remembered of that. A transcript never stands here."""
    if held is None:
        return []
    from ...render.talks import held_line

    said = [words for words in (held.summary, held.reason, held.message) if words]
    line = span(held_line(replace(held, transcript="")), 200)
    return [line, *([block("\n\n".join(said), min(most, 4000))] if said else [])]


def join_words(gate: Gate) -> str:
    """A conversation is held in a clone; a typed answer is one too."""
    asked = [question for question in gate.opened.questions if question.type == "session"]
    if not asked:
        return ""
    limits = [question.talk.timeout for question in asked if question.talk and question.talk.timeout]
    lasts = f" It lasts {format_duration(min(limits))} at most." if limits else ""
    return (
        f"**Talk it over** with the agent in a clone of this repository: `git gate join {gate.id}`.{lasts} "
        "What you decide there is the answer; one typed here is an answer too.\n\n"
    )
