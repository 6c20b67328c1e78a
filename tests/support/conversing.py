"""Test bed: how a conversation ends, recorded as the command that holds one records it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gitgate.acts.answering import Manner, respond, stop
from gitgate.context import Desk, open_desk
from gitgate.gates.recording import reload
from gitgate.model.gate import Conversation, Gate
from gitgate.questions import Given


def held(outcome: str = "completed", seconds: int = 60, **said: str) -> Conversation:
    return Conversation(outcome, seconds, **said)  # type: ignore[arg-type]


@contextmanager
def desk_here() -> Iterator[Desk]:
    desk = open_desk(Path.cwd(), os.environ)
    try:
        yield desk
    finally:
        desk.close()


def open_gate(gate: str) -> Gate:
    """The gate as it is in the repository where the test stands."""
    with desk_here() as desk:
        return reload(desk, gate)


def talk_to_answer(gate: str, text: str, session: Conversation) -> Gate:
    """The conversation came to this answer."""
    with desk_here() as desk:
        return respond(desk, reload(desk, gate), Given(text=text), Manner(via="join", session=session)).gate


def stop_talk(gate: str, session: Conversation) -> Gate:
    """The conversation came to no answer."""
    with desk_here() as desk:
        return stop(desk, reload(desk, gate), "the session ended", session=session).gate
