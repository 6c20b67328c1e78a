"""Questions: what a question type says: how its answer is read, shown, prompted and given on every surface; and which option a word
means. A number is a place in the list, and may be another option's label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..document import dataclass
from ..errors import BadAnswer
from ..model.gate import Question, Value
from ..text import one_line

# The fields of what a session proposes: its value goes by any of the first.
VALUES = ("value", "decision", "response", "answer", "verdict", "outcome")
NOTES = ("note", "notes", "comment", "comments")
WORDS = ("summary", "reason", "message")
UNCUT = 10_000

# A reply ready to copy: the first of these whose options it is sure to mean; None: it needs no check.
ReplyWays = tuple[tuple[str, Sequence[str] | None], ...]


@dataclass(frozen=True)
class Given:
    """Input of a person for one question, from any surface. `approve` is None when the person said neither yes nor
    no.
    """

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


@dataclass(frozen=True)
class Control:
    """Input field of a question on a page. `name` is unique within its question.

    Kinds "lines" and "line" take words. "one" and "several" take of `choices`: the value that is sent, its label,
    its description. "menu" takes of `choices` as well, or nothing.
    """

    kind: str
    name: str = ""
    label: str = ""
    choices: tuple[tuple[str, str, str], ...] = ()
    hint: str = ""
    needed: bool = True


# What a page sends of one question: by the control's name all that was filled in, in the order of the page.
Filled = Mapping[str, Sequence[str]]


class QuestionType:
    """Type of a question. This base class suits an answer of a few words; each type overrides what differs."""

    name = ""
    aliases: tuple[str, ...] = ()  # words that other systems use for it
    has_options = False  # one or several of a list are chosen
    has_schema = False  # the answer is an object that a JSON Schema describes
    signals: Mapping[str, bool] = {}  # the statuses of a script that decide; such a type is an approval
    entry = "line"  # at a terminal: one "line", "lines", or "fields", one after another
    means = "any words"  # what is told there of how to type it
    word = '"…"'  # an answer as it is typed after `git gate respond ID`

    @property
    def noun(self) -> str:
        return f"{article(self.name)} question"

    @property
    def approves(self) -> bool:
        """Return whether a yes to this question allows something; policies and defaults depend on that."""
        return bool(self.signals)

    def expected(self, question: Question) -> str:
        """Return in a few words which answers the question accepts."""
        return "expected some text"

    def typed(self, question: Question) -> str:
        """Return the command that answers the question, and which answers it accepts."""
        from shlex import quote

        words = quote(question.labels[0]) if question.labels else self.word
        return f"git gate respond ID {words}   ({self.expected(question)})"

    def empty(self, question: Question) -> BadAnswer:
        return BadAnswer(
            "an empty answer is not an answer", hint=self.typed(question), about=question.key, tells=False
        )

    # The answer

    def read(self, question: Question, given: object) -> Value:
        """Return the answer's value that `given` means; raise BadAnswer, which says what was expected."""
        if not isinstance(given, str):
            raise BadAnswer(f"expected text, found {kind_of(given)}", about=question.key)
        text = given.strip("\n")
        if not text.strip():
            raise self.empty(question)
        return text

    def is_possible(self, question: Question, value: Value) -> bool:
        """Return whether this question can have this recorded value."""
        return isinstance(value, str) and bool(value.strip())

    def yes_no(self, question: Question, *, approve: bool) -> Value:
        """Return the value that --approve or --reject means; raise BadAnswer where it means none."""
        flag = "--approve" if approve else "--reject"
        raise BadAnswer(
            f"{flag} answers an approval; this is {article(question.type)} question",
            hint=self.typed(question),
            about=question.key,
        )

    def from_pairs(self, question: Question, pairs: Sequence[tuple[str, str]]) -> Value:
        """Return the value that `-a KEY=VALUE` gives."""
        named = unique(pairs)
        strange = [key for key in named if key != question.key]
        if strange:
            raise BadAnswer(
                f"there is no question {strange[0]!r}; the question is {question.key}",
                hint=self.typed(question),
            )
        return self.read(question, named[question.key])

    def other(self, words: str) -> Value:
        """Return the value for an answer in free text, in place of an option."""
        return words

    def proposed(
        self, question: Question, data: Mapping[str, object], said: Mapping[str, str]
    ) -> Value | None:
        """Return the value that a session proposes in the fields of its signal or, failing those, in its words; None if
        it has none.
        """
        value = given_value(data)
        if value is None:
            value = next((said[name] for name in WORDS if said[name]), None)
        return None if value is None else self.read(question, value)

    # How it is shown

    def ways(self, question: Question, start: str) -> list[str]:
        """Return the commands that answer the question, for the text view of a gate."""
        return [f"{start} TEXT    (or --edit, to write it in your editor)"]

    def details(self, question: Question, cells: int = UNCUT) -> str:
        """Return what every surface shows of the possible answer besides the options; `cells` limits its width."""
        return ""

    def legend(self, question: Question, cells: int) -> str:
        """Return the details of the possible answer for the text view of a gate, where no command is printed next to
        them.
        """
        return self.details(question, cells)

    # The agent in a session

    def value_schema(self, question: Question) -> dict[str, object]:
        """Return the JSON Schema of the value that the agent's tool takes."""
        return {"type": "string"}

    def example(self, question: Question) -> str:
        """Return an example value for `git gate outcome`, ready to type."""
        return "'THE ANSWER'"

    def outcome_value(self, question: Question, text: str) -> object:
        """Return the value that the text typed after `git gate outcome` stands for."""
        return text

    # The terminal and the editor

    def prompt(self, question: Question) -> str:
        return "your answer: "

    def help(self, question: Question) -> str:
        return f"{self.means}; {self.expected(question)}"

    def understood(self, question: Question, word: str, own_words: Callable[[], str]) -> tuple[object, str]:
        """Return the answer and the note in a line typed at the prompt; `own_words` asks for free text where the
        question allows it.
        """
        return word, ""

    def sections(self, question: Question) -> list[str]:
        """Return the parts of an answer that is written in an editor."""
        return []

    def written(self, question: Question, text: str) -> Given:
        """Return the input that was written in the editor."""
        return Given(text=text.strip())

    # A page

    def controls(self, question: Question) -> list[Control]:
        """Return the input fields of a page that answer the question."""
        return [Control("lines")]

    def filled(self, question: Question, said: Filled) -> object:
        """Return the value that was filled in on a page, for `Given.values`."""
        words = words_in(said, "")
        if not words.strip():
            raise self.empty(question)
        return words

    # Comments on a forge

    def replied(self, question: Question, text: str) -> Given:
        """Return the input in the text after `/answer` in a comment."""
        return Given(text=without_key(text, question))

    def part_replied(self, question: Question, words: str) -> object:
        """Return the input for this question from a comment that answers several questions."""
        return words

    def chosen(self, question: Question, words: str) -> object:
        """Return the value for the options named after `/choose`; raise BadAnswer where the question has no options."""
        raise BadAnswer(f"/choose is for questions with options; this is {self.noun}")

    def reply_ways(self, question: Question) -> Iterator[ReplyWays]:
        """Yield replies that are ready to copy."""
        yield (("/answer your words", None),)

    def reply_part(self, question: Question) -> str:
        """Return an example answer to this question for a reply to several questions."""
        return "…"


def words_in(said: Filled, name: str) -> str:
    """Return the text typed in a control, or the choice of one that takes one thing; line ends of a page become
    newlines.
    """
    given = said.get(name) or ("",)
    return given[0].replace("\r\n", "\n")


def is_place(question: Question, word: str) -> bool:
    """Return whether `word` is the index of an option, counted from 0, as a page sends it."""
    return word.isascii() and word.isdecimal() and len(word) <= 6 and int(word) < len(question.options)


def field_control(place: str, name: str, detail: object, kind: str, *, needed: bool) -> Control:
    """Return the control for a form's field: a menu where the schema lists the values, or asks yes or no. `kind`
    describes the value in words.
    """
    said = detail if isinstance(detail, Mapping) else {}
    described = said.get("description")
    parts = (described if isinstance(described, str) else "", kind)
    hint = ": ".join(one_line(word) for word in parts if word and word != "text")
    choices = said.get("enum")
    if isinstance(choices, list) and choices:
        words = [choice if isinstance(choice, str) else quoted_whole(choice) for choice in choices]
        return Control("menu", place, name, tuple((word, word, "") for word in words), hint, needed)
    if said.get("type") == "boolean":
        return Control("menu", place, name, (("true", "yes", ""), ("false", "no", "")), hint, needed)
    long = said.get("type") in ("string", "array", "object") and not {"format", "pattern"} & set(said)
    return Control("lines" if long else "line", place, name, hint=hint, needed=needed)


def article(name: str) -> str:
    """Return the name with its article: `an approval`, `a choice`."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


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


def given_value(data: Mapping[str, object]) -> object:
    """Return the proposed value under the first of its possible names that is present, or None."""
    return next((data[name] for name in VALUES if data.get(name) is not None), None)


def unique(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    named: dict[str, str] = {}
    for key, value in pairs:
        if key in named:
            raise BadAnswer(f"{key} is answered twice")
        named[key] = value
    return named


def without_key(text: str, question: Question) -> str:
    key, colon, rest = text.partition(":")
    return rest.strip() if colon and key.strip() == question.key else text


def lines_of(questions: Sequence[Question], text: str) -> dict[str, str]:
    """Return the answers of a comment by key, from `key: value` lines. A line without a key continues the one
    before.
    """
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


def each(questions: Sequence[Question]) -> str:
    return "git gate respond ID " + " ".join(f"-a {q.key}=…" for q in questions)


NUMBER = r"#*([0-9]{1,6})"


def labels_listed(question: Question) -> str:
    return ", ".join(question.labels)


def quoted(given: object) -> str:
    text = str(given)
    return quoted_whole(text if len(text) <= 80 else text[:79] + "…")


def quoted_whole(text: object) -> str:
    import json  # where nothing is wrong nothing is quoted

    return json.dumps(text, ensure_ascii=False)


def match_option(question: Question, given: str) -> str | None:
    """Return the one label that `given` means: the label in any case, `#2`, or a unique beginning of a label. A bare
    number is a place where no label begins with it.
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
    return f"{quoted(word)} is not one of the options: {labels_listed(question)}{meant}"


def option_hint(question: Question, word: str) -> str:
    if question.other:
        return f"to answer in your own words: git gate respond ID --other {quoted_whole(word)}"
    return "git gate respond ID '#1'   (a label, a unique beginning of one, or its number)"


def is_option(question: Question, word: str) -> bool:
    return word in question.labels or (question.other and bool(word.strip()))


def as_number(question: Question, word: str) -> str:
    """Return `2` as `#2`, unless an option has that label."""
    word = word.strip()
    return f"#{word}" if word.isdecimal() and match_option(question, word) is None else word


# In a reply, where a number and a label are both likely


def labelled(question: Question, word: str) -> list[int]:
    """Return the places of the options with this label: exactly, in any case, or as a comment shows it."""
    folded, shown = word.casefold(), one_line(word).casefold()
    exact = [place for place, label in enumerate(question.labels) if label.casefold() == folded]
    return exact or [
        place for place, label in enumerate(question.labels) if shown and one_line(label).casefold() == shown
    ]


def numbered(question: Question, word: str) -> int | None:
    """Return the index of the option at that place, counted from 1; any number of `#` before it changes nothing."""
    found = re.fullmatch(NUMBER, word)
    place = int(found.group(1)) - 1 if found else -1
    return place if 0 <= place < len(question.options) else None


def sure_number(question: Question, place: int, marks: int = 0) -> str:
    """Return the shortest number that means this place and is no other option's label."""
    forms = (f"{'#' * many}{place + 1}" for many in range(marks, marks + len(question.options) + 1))
    return next(form for form in forms if set(labelled(question, form)) <= {place})


def picked(question: Question, word: str) -> str:
    """Return the label that a word after `/choose` means; a word that matches none is returned for the caller to
    resolve or refuse.
    """
    found = labelled(question, word)
    place = numbered(question, word)
    meant = sorted({*found, *([] if place is None else [place])})
    if len(meant) > 1:
        raise BadAnswer(could_be(question, word, meant))
    if meant:
        return question.labels[meant[0]]
    return f"#{word.lstrip('#')}" if re.fullmatch(NUMBER, word) else word


def answered(question: Question, word: str) -> str:
    """Return the label that a word after `/answer` means. A bare number counts only as a label, as it may be a
    quantity. A word that matches no label is returned unchanged.
    """
    if word.startswith("#"):
        return picked(question, word)
    found = labelled(question, word)
    place = numbered(question, word)
    near = match_option(question, word) if place is not None and not found else None
    meant = {*found, *([question.labels.index(near)] if near is not None else [])}
    if len(meant) > 1 or (meant and place is not None and place not in meant):
        raise BadAnswer(could_be(question, word, sorted({*meant, *([] if place is None else [place])})))
    return question.labels[found[0]] if found else word


def could_be(question: Question, word: str, places: Sequence[int]) -> str:
    ways = [
        f"/choose {sure_number(question, place)} for {one_line(question.labels[place], 40)}"
        for place in places
    ]
    return f"{one_line(word, 40)} could be more than one option: write {', or '.join(ways)}"


def several_picked(question: Question, text: str) -> list[str]:
    """Return the options of a list after `/choose`, by number or label; a label may itself contain a comma."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    whole = labelled(question, text.strip())
    if not whole:
        return [picked(question, part) for part in parts]
    if len(parts) > 1 and all(
        labelled(question, part) or numbered(question, part) is not None for part in parts
    ):
        raise BadAnswer(
            f"{one_line(text, 40)} is one option, and a list of others: name them by #number, such as #1, #2"
        )
    return [question.labels[whole[0]]]


def several_answered(question: Question, text: str) -> list[str]:
    """Return the options of a list after `/answer`. A text that is one whole label, commas included, is that option."""
    whole = labelled(question, text)
    if whole:
        return [question.labels[whole[0]]]
    return [answered(question, part.strip()) for part in text.split(",") if part.strip()]
