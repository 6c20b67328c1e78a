"""Questions: the grammar of an answer. What was typed becomes values and a verdict, or an error that says what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..document.values import dataclass
from ..errors import BadAnswer
from ..model.gate import Answer, Opened, Question, Value
from .types import article, expected, match_option, quoted_whole, read_other, read_value, typed

APPROVING = ("approve", "approved", "yes", "accept", "continue", "ok", "proceed")
REJECTING = ("reject", "rejected", "no", "deny", "decline", "stop", "cancel")


@dataclass(frozen=True)
class Given:
    """What a person gave, on whichever surface. `approve` is None when neither word was said."""

    text: str | None = None
    approve: bool | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    other: str | None = None
    values: Mapping[str, object] | None = None

    @property
    def nothing(self) -> bool:
        return (
            self.text is None
            and self.approve is None
            and not self.pairs
            and self.other is None
            and self.values is None
        )


def read_answer(questions: Sequence[Question], given: Given) -> tuple[dict[str, Value], str]:
    """The values by question key, and the verdict."""
    if given.values is not None:
        values = read_mapping(questions, given.values)
    elif len(questions) == 1:
        values = {questions[0].key: read_single(questions[0], given)}
    else:
        values = read_several(questions, given)
    return values, verdict_of(questions, values)


def verdict_of(questions: Sequence[Question], values: Mapping[str, Value]) -> str:
    said = [values[q.key] for q in questions if q.kind == "approval" and q.key in values]
    if not said:
        return "answered"
    return "approved" if all(word is True for word in said) else "rejected"


def misfit(opened: Opened, answer: Answer) -> str:
    """What is wrong with a recorded answer, or nothing. Forms are held against their schema before they are written,
    and by `verify`: importing that costs more than all of this.
    """
    by_key = {question.key: question for question in opened.questions}
    if set(answer.values) != set(by_key):
        return f"it answers {', '.join(answer.values)}; the questions are {', '.join(by_key)}"
    if answer.verdict == "defaulted":
        return misfit_default(opened, answer)
    if not answer.by.strip():
        return "it is nobody's; only a declared default has no name"
    for key, question in by_key.items():
        if not is_possible(question, answer.values[key]):
            return f"{key}: {expected(question)}"
    verdict = verdict_of(opened.questions, answer.values)
    return (
        "" if answer.verdict == verdict else f"it says {answer.verdict}, but what it answers means {verdict}"
    )


def misfit_default(opened: Opened, answer: Answer) -> str:
    """A default is what the question declared, in nobody's name, where the deadline was to bring it about."""
    if answer.by or answer.amends:
        return "a default is nobody's answer, and amends none"
    if opened.on_timeout != "default":
        return f"a default was not to apply: at its deadline the gate is to be `{opened.on_timeout}`"
    strange = [q.key for q in opened.questions if q.default is None or answer.values[q.key] != q.default]
    return f"{strange[0]}: it is not the default that was declared" if strange else ""


def is_possible(question: Question, value: Value) -> bool:
    """Whether a recorded value is one that this question can have."""
    if question.kind == "approval":
        return isinstance(value, bool)
    if question.kind == "form":
        return isinstance(value, Mapping)
    if question.kind == "choices":
        return isinstance(value, list) and bool(value) and all(is_option(question, part) for part in value)
    return (
        isinstance(value, str)
        and bool(value.strip())
        and (question.kind != "choice" or is_option(question, value))
    )


def is_option(question: Question, word: str) -> bool:
    return word in question.labels or (question.other and bool(word.strip()))


def read_single(question: Question, given: Given) -> Value:
    ways = [given.text is not None, given.approve is not None, bool(given.pairs), given.other is not None]
    if sum(ways) > 1:
        raise BadAnswer(
            "give the answer once: as words, with -a, with --other, or with --approve/--reject",
            hint=typed(question),
        )
    if given.approve is not None:
        return read_yes_no(question, approve=given.approve)
    if given.other is not None:
        return read_other(question, given.other)
    if given.pairs:
        return read_pairs(question, given.pairs)
    if given.text is None:
        raise BadAnswer("no answer given", hint=typed(question))
    return read_value(question, given.text)


def read_yes_no(question: Question, *, approve: bool) -> Value:
    """--approve and --reject are for approvals; on a choice that has such an option they name it."""
    if question.kind == "approval":
        return approve
    if question.kind == "choice":
        words = APPROVING if approve else REJECTING
        found = [label for label in question.labels if label.casefold() in words]
        if len(found) == 1:
            return found[0]
    flag = "--approve" if approve else "--reject"
    raise BadAnswer(
        f"{question.key}: {flag} answers an approval; this is {article(question)} question",
        hint=typed(question),
    )


def read_pairs(question: Question, pairs: Sequence[tuple[str, str]]) -> Value:
    if question.kind == "form" and not (len(pairs) == 1 and pairs[0][0] == question.key):
        from . import forms

        return read_value(question, forms.coerce(question.schema or {}, unique(pairs)))
    named = unique(pairs)
    strange = [key for key in named if key != question.key]
    if strange:
        raise BadAnswer(
            f"there is no question {strange[0]!r}; the question is {question.key}", hint=typed(question)
        )
    return read_value(question, named[question.key])


def read_several(questions: Sequence[Question], given: Given) -> dict[str, Value]:
    if given.other is not None:
        raise BadAnswer(
            f"--other answers one question; this gate has {len(questions)}", hint="use -a KEY=VALUE for each"
        )
    named = unique(given.pairs)
    approvals = [q for q in questions if q.kind == "approval"]
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
    """Among several questions `other:TEXT` is how free text is told from a mistyped label."""
    choosing = question.type in ("choice", "choices")
    if (
        choosing
        and isinstance(given, str)
        and given.startswith("other:")
        and not match_option(question, given)
    ):
        return read_other(question, given.removeprefix("other:"))
    try:
        return read_value(question, given)
    except BadAnswer as wrong:
        if " --other " not in wrong.hint:
            raise
        own = quoted_whole(f"{question.key}=other:{given}")  # --other answers a gate with one question alone
        raise BadAnswer(wrong.message, hint=f"to answer it in your own words: -a {own}") from None


def lines_of(questions: Sequence[Question], text: str) -> dict[str, str]:
    """`key: value` lines, as they are written in a comment; a line without a key goes on with the one before."""
    keys = {q.key for q in questions}
    named: dict[str, str] = {}
    current = ""
    for line in text.strip().splitlines():
        key, colon, rest = line.partition(":")
        if colon and key.strip() in keys:
            current = key.strip()
            if current in named:
                raise BadAnswer(f"{current} is answered twice")
            named[current] = rest.strip()
        elif current:
            named[current] = f"{named[current]}\n{line}".strip()
        else:
            raise BadAnswer(f"this gate has {len(questions)} questions", hint=each(questions))
    return named


def unique(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    named: dict[str, str] = {}
    for key, value in pairs:
        if key in named:
            raise BadAnswer(f"{key} is answered twice")
        named[key] = value
    return named


def each(questions: Sequence[Question]) -> str:
    return "git gate respond ID " + " ".join(f"-a {q.key}=…" for q in questions)


def printed(questions: Sequence[Question], answer: Answer) -> str:
    """What an answer prints as: the contract with scripts and agents that read it."""
    if len(questions) > 1:
        lines = [f"{q.key}: {shown(answer.values.get(q.key))}" for q in questions]
    else:
        lines = [shown(answer.values.get(questions[0].key))]
    if answer.note:
        lines.append(answer.note)
    return "\n".join(lines)


def shown(value: Value | None) -> str:
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
