"""Question types: what makes an answer fit, and what is said when it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer
from gitgate.model.gate import Option, Question
from gitgate.questions import kind_of, match_option
from gitgate.questions.types import (
    TYPES,
    aliases,
    expected,
    read_other,
    read_value,
    type_name,
)
from support.histories import APPROVAL, CHOICE, TEXT

AUTH = Question(
    "auth", "Which?", "choice", (Option("JWT"), Option("Session cookie"), Option("Session store")), other=True
)
STRICT = Question("auth", "Which?", "choice", AUTH.options)
SEVERAL = Question(
    "regions", "Where?", "choices", (Option("eu"), Option("us, east"), Option("asia")), other=True
)
FORM = Question(
    "f", "Fill in", "form", schema={"properties": {"count": {"type": "integer"}}, "required": ["count"]}
)
SESSION = Question("s", "Talk", "session")


@pytest.mark.parametrize("word", [*TYPES, *aliases(), " Choice ", "YESNO"])
def test_types_and_aliases_have_a_name(word: str) -> None:
    """Ours and other systems', in any case."""
    assert type_name(word) in TYPES


@pytest.mark.parametrize("word", ["", "poem", "choice,text", "__class__"])
def test_a_strange_type_has_none(word: str) -> None:
    """It is told elsewhere what there is."""
    assert type_name(word) is None


@pytest.mark.parametrize(
    ("question", "given", "value"),
    [
        (TEXT, "words", "words"),
        (TEXT, "\n  two\nlines \n", "  two\nlines "),
        (SESSION, "done", "done"),
        (APPROVAL, True, True),
        (APPROVAL, False, False),
        (APPROVAL, " YES ", True),
        (APPROVAL, "lgtm", True),
        (APPROVAL, "n", False),
        (APPROVAL, "Denied", False),
        (AUTH, "JWT", "JWT"),
        (AUTH, "jwt", "JWT"),
        (AUTH, "j", "JWT"),
        (AUTH, " session c ", "Session cookie"),
        (AUTH, "#3", "Session store"),
        (SEVERAL, "eu", ["eu"]),
        (SEVERAL, "eu,ASIA", ["eu", "asia"]),
        (SEVERAL, "us, east", ["us, east"]),
        (SEVERAL, "#1,#3,#1", ["eu", "asia"]),
        (SEVERAL, ["us", "eu"], ["us, east", "eu"]),
        (SEVERAL, ("eu",), ["eu"]),
        (FORM, {"count": 3}, {"count": 3}),
        (FORM, '{"count": 3}', {"count": 3}),
    ],
)
def test_an_answer_that_fits(question: Question, given: object, value: object) -> None:
    """Labels in any case, by a unique beginning, by number; words for yes and no; forms as JSON."""
    assert read_value(question, given) == value


@pytest.mark.parametrize(
    ("question", "given", "words"),
    [
        (TEXT, "", "an empty answer is not an answer"),
        (TEXT, " \n\t", "an empty answer is not an answer"),
        (TEXT, 3, "expected text, found a number"),
        (TEXT, None, "expected text, found nothing"),
        (SESSION, "", "an empty answer"),
        (APPROVAL, "", "an empty answer"),
        (APPROVAL, None, "an empty answer"),
        (APPROVAL, "yes please", 'expected yes or no, found "yes please"'),
        (APPROVAL, "maybe " * 30, "…"),
        (AUTH, "", "an empty answer"),
        (AUTH, True, "expected one of the options, found a yes/no value"),
        (AUTH, "session", '"session" could be Session cookie or Session store'),
        (AUTH, "JTW", "did you mean JWT?"),
        (AUTH, "#0", "numbered #1 to #3"),
        (AUTH, "#4", "numbered #1 to #3"),
        (AUTH, "#" + "9" * 5000, "numbered #1 to #3"),
        (AUTH, "#²", "numbered #1 to #3"),
        (AUTH, "zzz", "not one of the options: JWT, Session cookie, Session store"),
        (SEVERAL, "", "an empty answer"),
        (SEVERAL, [], "an empty answer"),
        (SEVERAL, ",,", "an empty answer"),
        (SEVERAL, [3], "expected one of the options, found a number"),
        (SEVERAL, {"eu": True}, "expected a list of options, found an object"),
        (SEVERAL, "eu,mars", '"mars" is not one of the options'),
        (FORM, "", "an empty answer"),
        (FORM, "{", "expected a form as JSON"),
        (FORM, "[" * 100_000, "expected a form as JSON"),
        (FORM, "3", "expected an object with the form's fields, found a number"),
        (FORM, {}, "does not fit its schema"),
        (FORM, {"count": "three"}, "does not fit its schema"),
    ],
)
def test_an_answer_that_does_not_fit(question: Question, given: object, words: str) -> None:
    """Refused with what was expected, and the question's key."""
    with pytest.raises(BadAnswer) as refused:
        read_value(question, given)
    assert words in refused.value.message
    assert refused.value.message.startswith(f"{question.key}: ")


def test_a_label_that_looks_like_a_number_is_a_label() -> None:
    """What somebody wrote out in full is what they mean."""
    odd = Question("n", "Which?", "choice", (Option("#2"), Option("two")))
    assert read_value(odd, "#2") == "#2"
    assert read_value(odd, "#1") == "#2"


def test_a_whole_label_is_no_beginning_of_another() -> None:
    """`Go` is Go, although Golang is there too; case tells labels apart where it has to."""
    assert match_option(Question("l", "Which?", "choice", (Option("Golang"), Option("Go"))), "go") == "Go"
    assert match_option(AUTH, "") is None


@pytest.mark.parametrize("question", [AUTH, SEVERAL])
def test_free_text_where_it_is_allowed(question: Question) -> None:
    """As a person wrote it; nothing is no text."""
    kept = read_other(question, "  MySQL, we have it ")
    assert kept == ("MySQL, we have it" if question.type == "choice" else ["MySQL, we have it"])
    with pytest.raises(BadAnswer, match="empty"):
        read_other(question, "  ")


@pytest.mark.parametrize(
    ("question", "words"), [(STRICT, "only the options are allowed"), (TEXT, "is for choices")]
)
def test_free_text_where_it_is_not(question: Question, words: str) -> None:
    """Told why."""
    with pytest.raises(BadAnswer, match=words):
        read_other(question, "anything")


def test_a_near_miss_is_told_how_to_say_it_otherwise() -> None:
    """The command is in the hint; where free text is not allowed, how to name an option."""
    with pytest.raises(BadAnswer) as refused:
        read_value(AUTH, "OAuth")
    assert refused.value.hint.endswith('--other "OAuth"')
    with pytest.raises(BadAnswer) as refused:
        read_value(STRICT, "OAuth")
    assert "#1" in refused.value.hint


@pytest.mark.parametrize("question", [TEXT, APPROVAL, AUTH, SEVERAL, FORM, SESSION])
def test_what_is_expected_is_said(question: Question) -> None:
    """In a few words, for every type."""
    assert expected(question).startswith("expected ")


def test_kinds_have_names() -> None:
    """Also what no document can hold."""
    values: list[object] = [None, True, 1, 1.5, "x", [], {}, b""]
    words = "nothing, a yes/no value, a number, a number, text, a list, an object, bytes"
    assert ", ".join(map(kind_of, values)) == words


@given(
    st.sampled_from([TEXT, APPROVAL, AUTH, STRICT, SEVERAL, SESSION]),
    st.text() | st.lists(st.text()) | st.booleans(),
)
def test_reading_what_was_read_changes_nothing(question: Question, given: object) -> None:
    """An answer either fits or is refused as one; what fits, fits again and stays what it is."""
    try:
        value: object = read_value(question, given)
    except BadAnswer:
        return
    assert read_value(question, value) == value


@given(st.text(max_size=6))
def test_what_is_picked_is_a_label(text: str) -> None:
    """And one that the text begins, names or numbers, with `#` or where no label begins so."""
    label = match_option(CHOICE, text)
    if label is not None:
        assert label in CHOICE.labels
        number = text.removeprefix("#")
        numbered = number.isdecimal() and CHOICE.labels.index(label) == int(number) - 1
        assert numbered or label.casefold().startswith(text.casefold())
