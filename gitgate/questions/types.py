"""Questions: the question types, one object each, and the list of them. Nothing else knows their names.

A new type is a class here, or in a module of its own, and a line in `TYPES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from .. import questions
from ..errors import BadAnswer, UnknownOption
from ..model.gate import Question, Value
from ..text import hang, one_line
from . import (
    NOTES,
    UNCUT,
    VALUES,
    WORDS,
    Control,
    Filled,
    Given,
    QuestionType,
    ReplyWays,
    article,
    as_number,
    given_value,
    is_option,
    kind_of,
    labels_listed,
    lines_of,
    match_option,
    quoted,
    quoted_whole,
    sure_number,
    unique,
    without_key,
    words_in,
)

YES = frozenset(("yes", "y", "true", "approve", "approved", "ok", "okay", "lgtm", "continue"))
NO = frozenset(("no", "n", "false", "reject", "rejected", "deny", "denied"))
APPROVING = ("approve", "approved", "yes", "accept", "continue", "ok", "proceed")
REJECTING = ("reject", "rejected", "no", "deny", "decline", "stop", "cancel")
SAYS_YES = frozenset(("CONTINUE", "APPROVED", "APPROVE"))
SAYS_NO = frozenset(("STOP", "REJECTED", "REJECT"))
SAYS_NEITHER = frozenset(("", "DONE", "COMPLETED", "COMPLETE", "FINISHED", "SUCCESS"))
MOST_FIELDS = 8
LONGEST = 80  # characters of an option that a reply shows ready to copy


class TextType(QuestionType):
    name, aliases = "text", ("input", "freeform")
    entry = "lines"
    means = "any words; \\ at the end of a line goes on, :e opens your editor"

    def prompt(self, question: Question) -> str:
        return r"your answer (\ at the end of a line goes on, :e opens your editor): "

    def written(self, question: Question, text: str) -> Given:
        return Given(text=text)


class ApprovalType(QuestionType):
    name, aliases = "approval", ("yesno", "yes/no", "confirmation", "confirm")
    noun = "an approval"
    signals: Mapping[str, bool] = {"CONTINUE": True, "STOP": False}
    means = "y or n; words after it are your note"
    word = "--approve"

    def expected(self, question: Question) -> str:
        return "expected yes or no"

    def read(self, question: Question, given: object) -> Value:
        if isinstance(given, bool):
            return given
        word = given.strip().lower() if isinstance(given, str) else ""
        if word in YES:
            return True
        if word in NO:
            return False
        if not word:
            raise self.empty(question)
        raise BadAnswer(
            f"expected yes or no, found {quoted(given)}",
            hint="git gate respond ID --approve, or --reject; more words go into --note",
            about=question.key,
        )

    def is_possible(self, question: Question, value: Value) -> bool:
        return isinstance(value, bool)

    def yes_no(self, question: Question, *, approve: bool) -> Value:
        return approve

    def proposed(
        self, question: Question, data: Mapping[str, object], said: Mapping[str, str]
    ) -> Value | None:
        """Return a yes or a no, if all parts of the signal agree; with any other status the person is asked."""
        strange = [name for name in data if name not in (*VALUES, *NOTES, *WORDS, "status", "approved")]
        if strange:
            raise BadAnswer(
                f"expected a decision and words about it; found {strange[0]!r} too", about=question.key
            )
        found = {self.decision(question, data[n]) for n in (*VALUES, "approved") if data.get(n) is not None}
        status = str(data.get("status") or "").upper()
        if status in SAYS_YES | SAYS_NO:
            found.add(status in SAYS_YES)
        if len(found) > 1:
            raise BadAnswer("expected one decision; this says both yes and no", about=question.key)
        return found.pop() if found and status in SAYS_YES | SAYS_NO | SAYS_NEITHER else None

    def decision(self, question: Question, given: object) -> bool:
        if isinstance(given, bool):
            return given
        if isinstance(given, Mapping):
            inner = self.proposed(question, given, {})
            if isinstance(inner, bool):
                return inner
        word = given.strip().lower() if isinstance(given, str) else ""
        if word in YES or word in APPROVING:
            return True
        if word in NO or word in REJECTING:
            return False
        raise BadAnswer(
            "expected yes or no", hint="approve, or reject; more words: --message", about=question.key
        )

    def ways(self, question: Question, start: str) -> list[str]:
        return [f"{start} --approve", f"{start} --reject --note WHY"]

    def legend(self, question: Question, cells: int) -> str:
        return "    yes or no"

    def value_schema(self, question: Question) -> dict[str, object]:
        return {"type": "string", "enum": ["approve", "reject"]}

    def example(self, question: Question) -> str:
        return "approve, or reject"

    def prompt(self, question: Question) -> str:
        return "yes or no, and a word with it if you like [y/n]: "

    def help(self, question: Question) -> str:
        return self.means

    def understood(self, question: Question, word: str, own_words: Callable[[], str]) -> tuple[object, str]:
        first, _, rest = word.strip().partition(" ")
        decision = first.rstrip(",.:;").lower()
        return (decision, rest.strip()) if rest.strip() and decision in YES | NO else (word, "")

    def controls(self, question: Question) -> list[Control]:
        return [Control("one", choices=(("yes", "Approve", ""), ("no", "Reject", "")))]

    def reply_ways(self, question: Question) -> Iterator[ReplyWays]:
        for way in ("/approve", "/approve with a note", "/reject why not"):
            yield ((way, None),)

    def reply_part(self, question: Question) -> str:
        return "yes"


class ChoiceType(QuestionType):
    name = "choice"
    aliases: tuple[str, ...] = ("select", "selection")
    has_options = True
    takes = "one"
    means = "a number, a label, or the beginning of one"

    def expected(self, question: Question) -> str:
        return f"expected one of: {labels_listed(question)}"

    def read(self, question: Question, given: object) -> Value:
        if not isinstance(given, str):
            raise BadAnswer(f"expected one of the options, found {kind_of(given)}", about=question.key)
        return self.pick(question, given)

    def pick(self, question: Question, given: str) -> str:
        word = given.strip()
        if not word:
            raise self.empty(question)
        label = match_option(question, word)
        if label is not None:
            return label
        wrong = questions.wrong_option(question, word)
        raise UnknownOption(wrong, hint=questions.option_hint(question, word), about=question.key)

    def is_possible(self, question: Question, value: Value) -> bool:
        return super().is_possible(question, value) and is_option(question, str(value))

    def yes_no(self, question: Question, *, approve: bool) -> Value:
        """Return the one option whose label says yes, or no; raise BadAnswer where there is none."""
        words = APPROVING if approve else REJECTING
        found = [label for label in question.labels if label.casefold() in words]
        return found[0] if len(found) == 1 else super().yes_no(question, approve=approve)

    def proposed(
        self, question: Question, data: Mapping[str, object], said: Mapping[str, str]
    ) -> Value | None:
        value = given_value(data)
        if value is None:
            return None
        label = self.read(question, value)
        word = str(value).strip()
        if word.casefold() != str(label).casefold() and not word.startswith("#"):
            raise BadAnswer(
                f"expected a whole label; {word!r} is the beginning of {label!r}", about=question.key
            )
        return label

    def ways(self, question: Question, start: str) -> list[str]:
        from shlex import quote

        example = quote(one_line(question.options[0].label))
        return [f"{start} {example}    (or '#1')", *([f"{start} --other TEXT"] if question.other else [])]

    def value_schema(self, question: Question) -> dict[str, object]:
        return {"type": "string"} if question.other else {"type": "string", "enum": list(question.labels)}

    def example(self, question: Question) -> str:
        from shlex import quote

        return quote(question.labels[0])

    def prompt(self, question: Question) -> str:
        return f"your choice [1-{len(question.options) + question.other}, or its name]: "

    def understood(self, question: Question, word: str, own_words: Callable[[], str]) -> tuple[object, str]:
        """Return a number, a label or its beginning; where own words are allowed, they are the last number."""
        last = str(len(question.options) + 1) if question.other else ""
        if last and word.strip().lstrip("#") == last and match_option(question, word) is None:
            return f"other:{own_words()}", ""
        return self.places(question, word), ""

    def places(self, question: Question, word: str) -> object:
        return as_number(question, word)

    def written(self, question: Question, text: str) -> Given:
        word = text.strip()
        if question.other and word.startswith("other:"):
            return Given(other=word.removeprefix("other:").strip())
        return Given(text=self.lines_written(word))

    def lines_written(self, text: str) -> str:
        return text

    def controls(self, question: Question) -> list[Control]:
        places = tuple(
            (str(place), option.label, option.description) for place, option in enumerate(question.options)
        )
        asked = Control(self.takes, choices=places)
        own = Control("line", "own", "or something else, in your own words", needed=False)
        return [asked, own] if question.other else [asked]

    def filled(self, question: Question, said: Filled) -> object:
        """Return the option by its place, so that no label is taken for another; own words are marked with `other:`."""
        own = words_in(said, "own").strip() if question.other else ""
        chosen = [place for place in said.get("", ()) if place]
        strange = [place for place in chosen if not questions.is_place(question, place)]
        if strange:
            raise BadAnswer(f"there is no option {quoted(strange[0])}", about=question.key)
        if own and chosen:
            raise BadAnswer("choose, or answer in your own words: not both", about=question.key)
        if own:
            return f"other:{own}"
        if not chosen:
            raise self.empty(question)
        labels = [question.labels[int(place)] for place in chosen]
        return labels if self.takes == "several" else labels[0]

    def replied(self, question: Question, text: str) -> Given:
        whole = text.strip()
        if questions.labelled(question, whole):
            return Given(values={question.key: self.part_replied(question, whole)})
        key, colon, rest = text.partition(":")
        if colon and key.strip().lower() == "other":
            return Given(other=rest.strip())
        words = without_key(text, question).strip()
        return Given(values={question.key: self.part_replied(question, words)}) if words else Given(text="")

    def part_replied(self, question: Question, words: str) -> object:
        if words.startswith("other:") and not questions.labelled(question, words):
            return words
        return self.answered(question, words) if words.strip() else words

    def answered(self, question: Question, words: str) -> object:
        return questions.answered(question, words)

    def chosen(self, question: Question, words: str) -> object:
        return questions.picked(question, words)

    def reply_ways(self, question: Question) -> Iterator[ReplyWays]:
        yield self.numbers(question)
        named = f"/choose {one_line(question.options[0].label)}"
        if len(named) <= LONGEST:
            yield ((named, question.labels[:1]),)
        if question.other:
            yield (("/answer other: something else", ["something else"]),)

    def numbers(self, question: Question) -> ReplyWays:
        return ((f"/choose {sure_number(question, 0)}", None),)

    def reply_part(self, question: Question) -> str:
        label = one_line(question.options[0].label)
        try:
            sure_word = questions.answered(question, label) == question.options[0].label
        except BadAnswer:
            sure_word = False
        hidden = len(label) > LONGEST or "<!--" in label or "," in label or label.startswith("other:")
        return label if sure_word and not hidden else sure_number(question, 0, marks=1)


class ChoicesType(ChoiceType):
    name = "choices"
    aliases: tuple[str, ...] = ("multiselect",)
    takes = "several"
    means = "several of them with commas between, as numbers or labels: 1,3"

    def expected(self, question: Question) -> str:
        return f"expected some of: {labels_listed(question)}"

    def read(self, question: Question, given: object) -> Value:
        if isinstance(given, str):
            found = match_option(question, given.strip())
            parts: Sequence[object] = (
                [given] if found else [part for part in given.split(",") if part.strip()]
            )
        elif isinstance(given, (list, tuple)):
            parts = given
        else:
            raise BadAnswer(f"expected a list of options, found {kind_of(given)}", about=question.key)
        if not parts:
            raise self.empty(question)
        return list(dict.fromkeys(str(super(ChoicesType, self).read(question, part)) for part in parts))

    def is_possible(self, question: Question, value: Value) -> bool:
        return isinstance(value, list) and bool(value) and all(is_option(question, part) for part in value)

    def yes_no(self, question: Question, *, approve: bool) -> Value:
        return QuestionType.yes_no(self, question, approve=approve)

    def proposed(
        self, question: Question, data: Mapping[str, object], said: Mapping[str, str]
    ) -> Value | None:
        value = given_value(data)
        return None if value is None else self.read(question, value)

    def other(self, words: str) -> Value:
        return [words]

    def value_schema(self, question: Question) -> dict[str, object]:
        return {"type": "array", "items": super().value_schema(question), "minItems": 1}

    def example(self, question: Question) -> str:
        import json
        from shlex import quote

        return quote(json.dumps(list(question.labels[:2]), ensure_ascii=False))

    def outcome_value(self, question: Question, text: str) -> object:
        return json_or_text(question, text)

    def prompt(self, question: Question) -> str:
        return f"your choices, such as 1,3 [1-{len(question.options) + question.other}, or names]: "

    def places(self, question: Question, word: str) -> object:
        if match_option(question, word.strip()) is not None:
            return [word]
        parts = [part.strip() for part in word.split(",") if part.strip()]
        if len(parts) == 1 and all(piece.lstrip("#").isdecimal() for piece in word.split()):
            parts = word.split()
        return [as_number(question, part) for part in parts]

    def lines_written(self, text: str) -> str:
        return ", ".join(line.strip().lstrip("-*").strip() for line in text.splitlines() if line.strip())

    def answered(self, question: Question, words: str) -> object:
        return questions.several_answered(question, words)

    def chosen(self, question: Question, words: str) -> object:
        return questions.several_picked(question, words)

    def numbers(self, question: Question) -> ReplyWays:
        """Return a reply that names two options, where it reads back as these two; else one that names one."""
        one = super().numbers(question)
        if len(question.options) == 1:
            return one
        return ((f"{one[0][0]}, {sure_number(question, 1)}", question.labels[:2]), *one)


class FormType(QuestionType):
    name, aliases = "form", ("structured",)
    has_schema = True
    entry = "fields"
    means = "a value for each field; an optional one may stay empty, Enter at another one is none to the form"
    word = "-a FIELD=VALUE"

    def expected(self, question: Question) -> str:
        return "expected a form as JSON, or -a FIELD=VALUE"

    def read(self, question: Question, given: object) -> Value:
        from .forms import validate

        if isinstance(given, str):
            given = self.parsed(question, given)
        if not isinstance(given, Mapping):
            raise BadAnswer(
                f"expected an object with the form's fields, found {kind_of(given)}", about=question.key
            )
        value = dict(given)
        problems = validate(question.schema or {}, value)
        if problems:
            raise BadAnswer(
                "the form does not fit its schema: " + "; ".join(problems[:5]), about=question.key
            )
        return value

    def parsed(self, question: Question, text: str) -> object:
        if not text.strip():
            raise self.empty(question)
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError) as wrong:
            raise BadAnswer(
                f"expected a form as JSON: {wrong}",
                hint="or give its fields: -a FIELD=VALUE",
                about=question.key,
            ) from None

    def is_possible(self, question: Question, value: Value) -> bool:
        """Return whether this is an object. The schema is checked before writing, and by `verify`: it is slow."""
        return isinstance(value, Mapping)

    def from_pairs(self, question: Question, pairs: Sequence[tuple[str, str]]) -> Value:
        if len(pairs) == 1 and pairs[0][0] == question.key:
            return super().from_pairs(question, pairs)
        from .forms import coerce

        return self.read(question, coerce(question.schema or {}, unique(pairs)))

    def proposed(
        self, question: Question, data: Mapping[str, object], said: Mapping[str, str]
    ) -> Value | None:
        """Return the object within `decision`, else the whole where it fits; a status alone has none."""
        value = given_value(data)
        if isinstance(value, Mapping):
            try:
                return self.read(question, value)
            except BadAnswer:
                if not self.is_whole(question, data):
                    raise
        if value is None and set(data) <= {"status", *WORDS, *NOTES} and not self.is_whole(question, data):
            return None
        return self.read(question, data)

    def is_whole(self, question: Question, data: Mapping[str, object]) -> bool:
        try:
            self.read(question, data)
        except BadAnswer:
            return False
        return True

    def ways(self, question: Question, start: str) -> list[str]:
        """Return a command with an option for each required field; without any, with the form as JSON."""
        from shlex import quote

        named = [name for name in required(question) if isinstance(name, str)]
        fields = [f"-a {quote(one_line(name))}=…" for name in named[:MOST_FIELDS]]
        return [" ".join([start, *(fields or ["-a FIELD=VALUE …"])])]

    def details(self, question: Question, cells: int = UNCUT) -> str:
        fields = (question.schema or {}).get("properties")
        if not isinstance(fields, Mapping) or not fields:
            return "    a form, as JSON"
        lines = []
        for name, detail in fields.items():
            described = detail.get("description") if isinstance(detail, Mapping) else None
            words = f": {one_line(described)}" if isinstance(described, str) else ""
            optional = "" if name in required(question) else ", optional"
            told = f"{one_line(str(name))} ({field_kind(detail)}{optional}){words}"
            lines.append(hang(told, cells, "    "))
        return "\n".join(lines)

    def value_schema(self, question: Question) -> dict[str, object]:
        return {"type": "object"}

    def example(self, question: Question) -> str:
        return "'{\"FIELD\": …}'"

    def outcome_value(self, question: Question, text: str) -> object:
        return json_or_text(question, text)

    def sections(self, question: Question) -> list[str]:
        fields = (question.schema or {}).get("properties")
        return list(fields) if isinstance(fields, dict) else []

    def written(self, question: Question, text: str) -> Given:
        if text.lstrip().startswith("{"):
            return super().written(question, text)
        parts = lines_of([Question(key, "", "text") for key in self.sections(question)], text)
        return Given(pairs=tuple((key, value) for key, value in parts.items() if value))

    def controls(self, question: Question) -> list[Control]:
        """Return one control for each field, by its place; a schema that names none is answered as JSON."""
        fields = (question.schema or {}).get("properties")
        if not isinstance(fields, Mapping) or not fields:
            return [Control("lines", hint="a form, as JSON")]
        return [
            questions.field_control(
                str(place), str(name), detail, field_kind(detail), needed=name in required(question)
            )
            for place, (name, detail) in enumerate(fields.items())
        ]

    def filled(self, question: Question, said: Filled) -> object:
        names = self.sections(question)
        if not names:
            return self.parsed(question, words_in(said, ""))
        from .forms import coerce

        pairs = {name: words_in(said, str(place)) for place, name in enumerate(names)}
        return coerce(question.schema or {}, {name: words for name, words in pairs.items() if words})

    def replied(self, question: Question, text: str) -> Given:
        """Return the fields of JSON or of `field: value` lines; a line without a colon continues the one before."""
        if text.lstrip().startswith("{"):
            return super().replied(question, text)
        found: list[tuple[str, str]] = []
        for line in text.splitlines():
            key, colon, value = line.partition(":")
            if colon and re.fullmatch(r"[\w.-]+", key.strip()):
                found.append((key.strip(), value.strip()))
            elif found and line.strip():
                found[-1] = (found[-1][0], f"{found[-1][1]}\n{line.strip()}")
            elif line.strip():
                raise BadAnswer("the form is answered by lines of `field: value`")
        return Given(pairs=tuple(found))

    def reply_ways(self, question: Question) -> Iterator[ReplyWays]:
        yield (("/answer field: value\nother field: value", None),)

    def reply_part(self, question: Question) -> str:
        return "{}"


class SessionType(QuestionType):
    """Type of a question decided in a conversation. Its answer is of the type of the outcome: `Question.kind`."""

    name, aliases = "session", ("interactive_session",)


TYPES: dict[str, QuestionType] = {
    one.name: one
    for one in (
        TextType(),
        ApprovalType(),
        ChoiceType(),
        ChoicesType(),
        FormType(),
        SessionType(),
    )
}


def type_of(question: Question) -> QuestionType:
    """Return the type that the question's answer has."""
    return TYPES[question.kind]


def aliases() -> dict[str, str]:
    """Return our words for types, by those that other systems use."""
    return {alias: one.name for one in TYPES.values() for alias in one.aliases}


def type_name(given: str) -> str | None:
    """Return our word for a question type, or None when it is not one."""
    name = given.strip().lower()
    return name if name in TYPES else aliases().get(name)


def read_value(question: Question, given: object) -> Value:
    """Return the value that `given` means as an answer to this question; BadAnswer says what was expected.

    For a conversation, its outcome decides how it is read.
    """
    return type_of(question).read(question, given)


def read_other(question: Question, given: str) -> Value:
    """Return the value for free text in place of an option."""
    one = TYPES[question.type]
    if not one.has_options:
        raise BadAnswer(
            f"--other is for choices; this is {article(question.type)} question",
            hint=typed(question),
            about=question.key,
        )
    if not question.other:
        raise BadAnswer(
            f"only the options are allowed: {labels_listed(question)}",
            hint=typed(question),
            about=question.key,
        )
    if not given.strip():
        raise one.empty(question)
    return one.other(given.strip())


def expected(question: Question) -> str:
    """Return in a few words which answers the question accepts."""
    return type_of(question).expected(question)


def typed(question: Question) -> str:
    """Return the command that answers the question, and which answers it accepts."""
    return type_of(question).typed(question)


def required(question: Question) -> list[object]:
    """Return the fields of a form that are required."""
    needed = (question.schema or {}).get("required")
    return needed if isinstance(needed, list) else []


def field_kind(detail: object) -> str:
    """Return in a few words which values a form's field takes: `integer, 1 to 5`, `one of eu, us`."""
    if not isinstance(detail, Mapping):
        return "anything"
    choices = detail.get("enum")
    if isinstance(choices, list) and choices:
        return one_line("one of " + ", ".join(plain_word(choice) for choice in choices), 120)
    given = detail.get("type", "anything")
    kind = " or ".join(str(name) for name in given) if isinstance(given, list) else str(given)
    kind = {"string": "text", "boolean": "yes or no"}.get(kind, kind)
    low, high = detail.get("minimum"), detail.get("maximum")
    limits = (
        f"{low} to {high}"
        if low is not None and high is not None
        else (f"at least {low}" if low is not None else f"at most {high}" if high is not None else "")
    )
    return one_line(", ".join(word for word in (kind, limits, str(detail.get("format", ""))) if word), 120)


def plain_word(value: object) -> str:
    return value if isinstance(value, str) else quoted_whole(value)


def json_or_text(question: Question, text: str) -> object:
    """Return the value of a text: of JSON where it begins with a bracket or a brace, else the text."""
    import json

    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadAnswer(f"expected JSON: {wrong}", about=question.key) from wrong
