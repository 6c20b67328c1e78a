"""Test bed: asking and answering through the service, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitgate.acts.answering import Manner, Responded, respond
from gitgate.acts.asking import Asked, AskWishes, ask
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Option, Question
from gitgate.questions import Given
from gitgate.questions.drafts import Draft
from support.resuming import Seat

TEXT = Question("answer", "What?", "text")
DB = Question("answer", "Which database?", "choice", (Option("Postgres"), Option("SQLite")), other=True)
GO = Question("answer", "Deploy?", "approval")
LOCAL = Manner(push=False)


def asked(
    seat: Seat,
    *questions: Question,
    wishes: AskWishes = AskWishes(),
    attachments: Mapping[str, bytes] | None = None,
    **terms: Any,
) -> Asked:
    """Ask as an agent does; `terms` are fields of the draft."""
    fields: dict[str, Any] = {"agent": "coder", **terms}
    return ask(seat.desk, Draft(questions or (DB,), **fields), wishes, attachments)


def gate_of(seat: Seat, *questions: Question, wishes: AskWishes = AskWishes(), **terms: Any) -> Gate:
    return asked(seat, *questions, wishes=wishes, **terms).gate


def say(seat: Seat, gate: Gate, text: str = "Postgres", who: str | None = None, **manner: Any) -> Responded:
    """Answer in words, as the person at this clone or as `who`."""
    return respond(seat.desk, reload(seat.desk, gate.id), Given(text=text), Manner(who=who, **manner))


def approve(seat: Seat, gate: Gate, who: str | None = None, *, yes: bool = True) -> Responded:
    return respond(seat.desk, reload(seat.desk, gate.id), Given(approve=yes), Manner(who=who))
