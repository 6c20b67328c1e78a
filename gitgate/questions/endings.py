"""Questions: how a question that is decided in a conversation ended, for whoever asked it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..document.values import dataclass
from ..model.gate import Answer, Gate, Question, Remark, Value
from ..model.states import AWAITING, STOPPED, WITHDRAWN

if TYPE_CHECKING:
    from ..model.conversation import Conversation


COMPLETED, CANCELLED, TIMEOUT = "completed", "cancelled", "timeout"
NOBODY_ANSWERED = "nobody answered before the deadline"


@dataclass(frozen=True)
class SessionEnding:
    """What came of it. `value` is what a person said, and nothing else: a default is nobody's answer."""

    outcome: str
    value: Value | None = None
    seconds: int = 0
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    transcript: str = ""
    confirmed: bool = True

    @property
    def proceed(self) -> bool:
        """Whether a person said yes to going on."""
        return self.outcome == COMPLETED and self.value is True and self.confirmed


def plain(gate: Gate) -> dict[str, object] | None:
    """The same for programs; None for another question, and while the gate waits. A checkpoint says whether to proceed."""
    question, ended = talk_question(gate), ending_of(gate)
    if question is None or ended is None:
        return None
    checkpoint = question.talk is not None and question.talk.checkpoint
    return {
        "outcome": ended.outcome,
        "response": ended.value,
        "confirmed": ended.confirmed,
        "duration": ended.seconds,
        **({"proceed": ended.proceed} if checkpoint else {}),
        **{name: getattr(ended, name) for name in ("status", "summary", "reason", "message")},
        "transcript": ended.transcript or None,
    }


def talk_question(gate: Gate) -> Question | None:
    """The question of a gate that is decided in a conversation."""
    return next((question for question in gate.opened.questions if question.type == "session"), None)


def ending_of(gate: Gate) -> SessionEnding | None:
    """None while the gate waits.

    A stop and a withdrawal are `cancelled`, unless the stop says of the conversation that its time ran out; a deadline of
    the gate that passed is `timeout`, with a default or without.
    """
    if gate.state == AWAITING:
        return None
    if gate.closing is not None and gate.state in (STOPPED, WITHDRAWN):
        held = gate.closing.session
        outcome = TIMEOUT if held is not None and held.outcome == TIMEOUT else CANCELLED
        return ending(outcome, None, held, reason=gate.closing.text)
    if gate.answer is not None and not gate.defaulted:
        return answered(gate, gate.answer.answer)
    return SessionEnding(TIMEOUT, reason=NOBODY_ANSWERED)


def answered(gate: Gate, said: Answer) -> SessionEnding:
    """The value is that of the question; what was said beside it is the reason for a no, and a message with a yes."""
    question = talk_question(gate) or gate.opened.questions[0]
    value = said.values.get(question.key)
    refused = value is False
    return ending(
        COMPLETED,
        value,
        said.session,
        reason=said.note if refused else "",
        message="" if refused else said.note,
    )


def ending(
    outcome: str, value: Value | None, held: Conversation | None, *, reason: str = "", message: str = ""
) -> SessionEnding:
    if held is None:
        return SessionEnding(outcome, value, reason=reason, message=message)
    why, more = held.reason or reason, held.message or message
    if more == why:  # what a script said once is not said twice
        more = ""
    transcript, confirmed = held.transcript, held.confirmed
    return SessionEnding(
        outcome, value, held.seconds, held.status, held.summary, why, more, transcript, confirmed
    )


def proposal_of(gate: Gate) -> Remark | None:
    """What a conversation proposed last, while the gate waits: nobody has confirmed it."""
    if gate.state != AWAITING:
        return None
    for entry in reversed(gate.history):
        if isinstance(entry.event, Remark) and is_proposal(entry.event):
            return entry.event
    return None


def is_proposal(remark: Remark) -> bool:
    """Only a remark may be one: whatever else comes of a conversation has ended the gate."""
    return remark.session is not None and remark.session.outcome == "proposed"
