"""Questions: the question types, and what makes an answer fit. One row a type; nothing else knows their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..errors import BadAnswer
from ..model.gate import Question, Value

ALIASES = {
    "yesno": "approval",
    "yes/no": "approval",
    "confirmation": "approval",
    "confirm": "approval",
    "select": "choice",
    "selection": "choice",
    "multiselect": "choices",
    "input": "text",
    "freeform": "text",
    "interactive_session": "session",
    "structured": "form",
}
YES = frozenset(("yes", "y", "true", "approve", "approved", "ok", "okay", "lgtm", "continue"))
NO = frozenset(("no", "n", "false", "reject", "rejected", "deny", "denied"))


def type_name(given: str) -> str | None:
    """Our word for a question type, or None when it is not one."""
    name = given.strip().lower()
    name = ALIASES.get(name, name)
    return name if name in TYPES else None


def read_text(question: Question, given: object) -> Value:
    if not isinstance(given, str):
        raise BadAnswer(f"{question.key}: expected text, found {kind_of(given)}")
    text = given.strip("\n")
    if not text.strip():
        raise empty(question)
    return text


def read_approval(question: Question, given: object) -> Value:
    if isinstance(given, bool):
        return given
    word = given.strip().lower() if isinstance(given, str) else ""
    if word in YES:
        return True
    if word in NO:
        return False
    if not word:
        raise empty(question)
    raise BadAnswer(
        f"{question.key}: expected yes or no, found {quoted(given)}",
        hint="git gate respond ID --approve, or --reject; more words go into --note",
    )


def read_choice(question: Question, given: object) -> Value:
    if not isinstance(given, str):
        raise BadAnswer(f"{question.key}: expected one of the options, found {kind_of(given)}")
    return pick(question, given)


def read_choices(question: Question, given: object) -> Value:
    if isinstance(given, str):
        found = match_option(question, given.strip())
        parts: Sequence[object] = [given] if found else [part for part in given.split(",") if part.strip()]
    elif isinstance(given, (list, tuple)):
        parts = given
    else:
        raise BadAnswer(f"{question.key}: expected a list of options, found {kind_of(given)}")
    if not parts:
        raise empty(question)
    picked = [
        pick(question, part) if isinstance(part, str) else str(read_choice(question, part)) for part in parts
    ]
    return list(dict.fromkeys(picked))


def read_form(question: Question, given: object) -> Value:
    from . import forms

    if isinstance(given, str):
        given = parse_object(question, given)
    if not isinstance(given, Mapping):
        raise BadAnswer(f"{question.key}: expected an object with the form's fields, found {kind_of(given)}")
    value = dict(given)
    problems = forms.validate(question.schema or {}, value)
    if problems:
        raise BadAnswer(f"{question.key}: the form does not fit its schema: " + "; ".join(problems[:5]))
    return value


READERS: Mapping[str, Callable[[Question, object], Value]] = {
    "text": read_text,
    "approval": read_approval,
    "choice": read_choice,
    "choices": read_choices,
    "form": read_form,
}
TYPES = (*READERS, "session")


def read_value(question: Question, given: object) -> Value:
    """What `given` means as an answer to this question; BadAnswer says what was expected.

    A conversation's is read by its outcome.
    """
    return READERS[question.kind](question, given)


def read_other(question: Question, given: str) -> Value:
    """Free text in place of an option."""
    if question.type not in ("choice", "choices"):
        raise BadAnswer(
            f"{question.key}: --other is for choices; this is {article(question)} question",
            hint=typed(question),
        )
    if not question.other:
        raise BadAnswer(
            f"{question.key}: only the options are allowed: {listed(question)}", hint=typed(question)
        )
    if not given.strip():
        raise empty(question)
    return given.strip() if question.type == "choice" else [given.strip()]


def match_option(question: Question, given: str) -> str | None:
    """The one label that `given` means: the label in any case, `#2`, or a unique beginning of it. A bare number is a place where
    no label begins with it.
    """
    folded = given.casefold()
    exact = [label for label in question.labels if label == given] or [
        label for label in question.labels if label.casefold() == folded
    ]
    if not exact and given.startswith("#") and given.isascii() and given[1:].isdecimal():
        place = int(given[1:7])
        return question.labels[place - 1] if 1 <= place <= len(question.labels) else None
    near = exact or [label for label in question.labels if folded and label.casefold().startswith(folded)]
    if not near and given.isascii() and given.isdecimal():
        return match_option(question, f"#{given}")
    return near[0] if len(near) == 1 else None


def pick(question: Question, given: str) -> str:
    word = given.strip()
    if not word:
        raise empty(question)
    label = match_option(question, word)
    if label is not None:
        return label
    raise BadAnswer(f"{question.key}: {wrong_option(question, word)}", hint=option_hint(question, word))


def wrong_option(question: Question, word: str) -> str:
    if word.startswith("#") or (word.isascii() and word.isdecimal()):
        return f"{word} is not an option; they are numbered #1 to #{len(question.options)}"
    several = [label for label in question.labels if label.casefold().startswith(word.casefold())]
    if len(several) > 1:
        return f"{quoted(word)} could be {' or '.join(several)}"
    near = {label.casefold(): label for label in question.labels}
    from difflib import get_close_matches  # only a near miss needs it

    close = get_close_matches(word.casefold(), list(near), 1, 0.6)
    meant = f"; did you mean {near[close[0]]}?" if close else ""
    return f"{quoted(word)} is not one of the options: {listed(question)}{meant}"


def option_hint(question: Question, word: str) -> str:
    if question.other:
        return f"to answer in your own words: git gate respond ID --other {quoted_whole(word)}"
    return "git gate respond ID '#1'   (a label, a unique beginning of one, or its number)"


def empty(question: Question) -> BadAnswer:
    return BadAnswer(f"{question.key}: an empty answer is not an answer", hint=typed(question))


def article(question: Question) -> str:
    """`an approval`, `a choice`."""
    return f"{'an' if question.type[0] in 'aeiou' else 'a'} {question.type}"


def typed(question: Question) -> str:
    """How an answer is typed, and what would be one."""
    from shlex import quote

    first = {"approval": "--approve", "form": "-a FIELD=VALUE", "text": '"…"'}
    words = quote(question.labels[0]) if question.labels else first.get(question.kind, '"…"')
    return f"git gate respond ID {words}   ({expected(question)})"


def expected(question: Question) -> str:
    """What would be an answer, in a few words."""
    if question.kind in ("choice", "choices"):
        return f"expected {'one' if question.kind == 'choice' else 'some'} of: {listed(question)}"
    if question.kind == "approval":
        return "expected yes or no"
    return "expected a form as JSON, or -a FIELD=VALUE" if question.kind == "form" else "expected some text"


def listed(question: Question) -> str:
    return ", ".join(question.labels)


def kind_of(given: object) -> str:
    names = {
        bool: "a yes/no value",
        int: "a number",
        float: "a number",
        str: "text",
        dict: "an object",
        list: "a list",
    }
    return "nothing" if given is None else names.get(type(given), type(given).__name__)


def quoted(given: object) -> str:
    text = str(given)
    return quoted_whole(text if len(text) <= 80 else text[:79] + "…")


def quoted_whole(text: str) -> str:
    import json  # where nothing is wrong nothing is quoted

    return json.dumps(text, ensure_ascii=False)


def parse_object(question: Question, text: str) -> object:
    if not text.strip():
        raise empty(question)
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadAnswer(
            f"{question.key}: expected a form as JSON: {wrong}", hint="or give its fields: -a FIELD=VALUE"
        ) from None
