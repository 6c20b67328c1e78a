"""Questions: the grammar of an answer, and how a gate ended, for those who waited.

What was typed becomes values and a verdict, or an error that says what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..document import dataclass, replace
from ..errors import BadAnswer, UnknownOption
from ..model import AWAITING, STOPPED, WITHDRAWN
from ..model.gate import Answer, Gate, Opened, Question, Remark, Value
from . import Given, each, lines_of, match_option, quoted_whole, unique
from .types import TYPES, expected, read_other, read_value, type_of, typed

if TYPE_CHECKING:
    from ..model.gate import Conversation


def read_answer(questions: Sequence[Question], given: Given) -> tuple[dict[str, Value], str]:
    """Return the values by question key, and the verdict."""
    if given.values is not None:
        values = read_mapping(questions, given.values)
    elif len(questions) == 1:
        values = {questions[0].key: read_single(questions[0], given)}
    else:
        values = read_several(questions, given)
    return values, verdict_of(questions, values)


def verdict_of(questions: Sequence[Question], values: Mapping[str, Value]) -> str:
    said = [values[q.key] for q in questions if type_of(q).approves and q.key in values]
    if not said:
        return "answered"
    return "approved" if all(word is True for word in said) else "rejected"


def misfit(opened: Opened, answer: Answer) -> str:
    """Return what is wrong with a recorded answer, or an empty text. Forms are not validated against their schema
    here: that is done before they are written, and by `verify`, because importing the validator costs more than
    this whole check.
    """
    by_key = {question.key: question for question in opened.questions}
    if set(answer.values) != set(by_key):
        return f"it answers {', '.join(answer.values)}; the questions are {', '.join(by_key)}"
    if answer.verdict == "defaulted":
        return misfit_default(opened, answer)
    if not answer.by.strip():
        return "it is nobody's; only a declared default has no name"
    for key, question in by_key.items():
        if not type_of(question).is_possible(question, answer.values[key]):
            return f"{key}: {expected(question)}"
    verdict = verdict_of(opened.questions, answer.values)
    return (
        "" if answer.verdict == verdict else f"it says {answer.verdict}, but what it answers means {verdict}"
    )


def misfit_default(opened: Opened, answer: Answer) -> str:
    """Return what is wrong with a recorded default, or an empty text. A default is the value that the question
    declared, in nobody's name, where the deadline was to apply it.
    """
    if answer.by or answer.amends:
        return "a default is nobody's answer, and amends none"
    if opened.on_timeout != "default":
        return f"a default was not to apply: at its deadline the gate is to be `{opened.on_timeout}`"
    strange = [q.key for q in opened.questions if q.default is None or answer.values[q.key] != q.default]
    return f"{strange[0]}: it is not the default that was declared" if strange else ""


def read_single(question: Question, given: Given) -> Value:
    ways = [given.text is not None, given.approve is not None, bool(given.pairs), given.other is not None]
    if sum(ways) > 1:
        raise BadAnswer(
            "give the answer once: as words, with -a, with --other, or with --approve/--reject",
            hint=typed(question),
        )
    if given.approve is not None:
        return type_of(question).yes_no(question, approve=given.approve)
    if given.other is not None:
        return read_other(question, given.other)
    if given.pairs:
        return type_of(question).from_pairs(question, given.pairs)
    if given.text is None:
        raise BadAnswer("no answer given", hint=typed(question))
    return read_value(question, given.text)


def read_several(questions: Sequence[Question], given: Given) -> dict[str, Value]:
    if given.other is not None:
        raise BadAnswer(
            f"--other answers one question; this gate has {len(questions)}", hint="use -a KEY=VALUE for each"
        )
    named = unique(given.pairs)
    approvals = [q for q in questions if type_of(q).approves]
    if given.approve is not None:
        if len(approvals) != 1:
            raise BadAnswer(
                "--approve and --reject need exactly one approval among the questions", hint=each(questions)
            )
        named.setdefault(approvals[0].key, "yes" if given.approve else "no")
    if given.text is not None:
        named = {**lines_of(questions, given.text), **named}
    return read_mapping(questions, named)


def read_mapping(questions: Sequence[Question], named: Mapping[str, object]) -> dict[str, Value]:
    by_key = {q.key: q for q in questions}
    strange = [key for key in named if key not in by_key]
    if strange:
        raise BadAnswer(
            f"there is no question {strange[0]!r}; the questions are {', '.join(by_key)}",
            hint=each(questions),
        )
    missing = [key for key in by_key if key not in named]
    if missing:
        raise BadAnswer(f"no answer for {', '.join(missing)}", hint=each(questions))
    return {key: read_free(by_key[key], named[key]) for key in by_key}


def read_free(question: Question, given: object) -> Value:
    """Return the value of one answer among several, where `other:TEXT` tells free text from a mistyped label."""
    if (
        TYPES[question.type].has_options
        and isinstance(given, str)
        and given.startswith("other:")
        and not match_option(question, given)
    ):
        return read_other(question, given.removeprefix("other:"))
    try:
        return read_value(question, given)
    except UnknownOption as wrong:
        if not question.other:
            raise
        own = quoted_whole(f"{question.key}=other:{given}")  # --other answers a gate with one question alone
        hint = f"to answer it in your own words: -a {own}"
        raise BadAnswer(wrong.words, hint=hint, about=wrong.about, tells=wrong.tells) from None


def printed(questions: Sequence[Question], answer: Answer) -> str:
    """Return an answer as it is printed. Scripts and agents read this, so its format is a contract."""
    if len(questions) > 1:
        lines = [f"{q.key}: {value_words(answer.values.get(q.key))}" for q in questions]
    else:
        lines = [value_words(answer.values.get(questions[0].key))]
    if answer.note:
        lines.append(answer.note)
    return "\n".join(lines)


def value_words(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "approved" if value else "rejected"
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(value)
    import json

    return json.dumps(value, ensure_ascii=False)


COMPLETED, CANCELLED, TIMEOUT = "completed", "cancelled", "timeout"
NOBODY_ANSWERED = "nobody answered before the deadline"


@dataclass(frozen=True)
class SessionEnding:
    """Ending of a conversation. `value` is the recorded answer, never a default; `confirmed` says whether a person
    gave or confirmed it.
    """

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
        """Return whether a person confirmed that the agent may proceed."""
        return self.outcome == COMPLETED and self.value is True and self.confirmed


def plain_result(gate: Gate) -> dict[str, object] | None:
    """Return the ending of a conversation as JSON fields; None for any other question, and while the gate waits. For
    a checkpoint, `proceed` says whether the agent may go on.
    """
    question, ended = talk_question(gate), session_ending(gate)
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
    """Return the question of a gate that is decided in a conversation; None if it has none."""
    return next((question for question in gate.opened.questions if question.type == "session"), None)


def session_ending(gate: Gate) -> SessionEnding | None:
    """Return how the conversation of a gate ended; None while the gate waits.

    A stop and a withdrawal are `cancelled`, unless the stop says of the conversation that its time ran out. A
    deadline of the gate that passed is `timeout`, with a default or without.
    """
    if gate.state == AWAITING:
        return None
    if gate.closing is not None and gate.state in (STOPPED, WITHDRAWN):
        held = gate.closing.session
        outcome = TIMEOUT if held is not None and held.outcome == TIMEOUT else CANCELLED
        return ending(outcome, None, held, reason=gate.closing.text)
    if gate.answer is not None and not gate.defaulted:
        return answered(gate, gate.answer.answer)
    return SessionEnding(TIMEOUT, reason=NOBODY_ANSWERED, confirmed=False)


def answered(gate: Gate, said: Answer) -> SessionEnding:
    """Return the ending of a conversation that came to an answer. A note is the reason for a no, and a message with
    a yes.
    """
    question = talk_question(gate) or gate.opened.questions[0]
    value = said.values.get(question.key)
    refused = value is False
    ended = ending(
        COMPLETED,
        value,
        said.session,
        reason=said.note if refused else "",
        message="" if refused else said.note,
    )
    return ended if ended.confirmed == said.confirmed else replace(ended, confirmed=said.confirmed)


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
    """Return the proposal that a conversation made last, while the gate waits; nobody has confirmed it. None if
    there is none.
    """
    if gate.state != AWAITING:
        return None
    for entry in reversed(gate.history):
        if isinstance(entry.event, Remark) and is_proposal(entry.event):
            return entry.event
    return None


def is_proposal(remark: Remark) -> bool:
    """Return whether an event proposes an answer. Only a remark may: any other event of a conversation has ended the
    gate.
    """
    return remark.session is not None and remark.session.outcome == "proposed"
