"""Surfaces: whether the record has a comment already: as an answer, a vote, one that came late, or as what ended the gate."""

from __future__ import annotations

import contextlib

from ...core.model import Answer, Gate
from ...errors import UnknownGate
from ...service.desk import Desk
from ...service.reading import find_gate
from .forge import Comment


def is_taken(desk: Desk, gate: str, comment: Comment) -> bool:
    """Whether the record has it: as an answer, or as what ended the gate."""
    with contextlib.suppress(UnknownGate):
        found = find_gate(desk, gate).gate
        return answered_by(found, comment) or ended_by(found, comment)
    return False


def ended_by(gate: Gate, comment: Comment) -> bool:
    return gate.closing is not None and f"({comment.url})" in gate.closing.text


def answered_by(gate: Gate, comment: Comment) -> bool:
    """Whether this comment is in the record: counted, as a vote, or late."""
    events = [entry.event for entry in gate.history]
    return any(isinstance(said, Answer) and is_from(said, comment) for said in events)


def is_from(said: Answer, comment: Comment) -> bool:
    """Comments on commits are counted by themselves, so the same number may be another one's elsewhere."""
    return (said.evidence.get("comment"), said.evidence.get("commit", "")) == (comment.number, comment.commit)
