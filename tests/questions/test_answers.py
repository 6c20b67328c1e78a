"""The grammar of an answer: what was typed becomes values and a verdict, or an error that says what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer
from gitgate.model.gate import Answer, Option, Question
from gitgate.questions import Given
from gitgate.questions.answers import misfit, printed, read_answer, value_words, verdict_of
from gitgate.questions.types import type_of
from support.histories import ADA, APPROVAL, CHOICE, EARLY, GATE, TEXT, oid, opened

DB = Question("db", "Which database?", "choice", (Option("Postgres"), Option("SQLite")), other=True)
REGION = Question("region", "Where?", "choices", (Option("eu"), Option("us")), other=True)
GO = Question("go", "Deploy?", "approval")
WHY = Question("why", "Why?", "text")
FORM = Question(
    "f", "Fill in", "form", schema={"properties": {"count": {"type": "integer"}, "on": {"type": "boolean"}}}
)
PROCEED = Question("answer", "Go on?", "choice", (Option("Proceed"), Option("Cancel")))
ALL = (DB, REGION, GO, WHY)


@pytest.mark.parametrize(
    ("question", "given", "value", "verdict"),
    [
        (TEXT, Given(text="words"), "words", "answered"),
        (CHOICE, Given(text="post"), "Postgres", "answered"),
        (CHOICE, Given(other="MySQL"), "MySQL", "answered"),
        (CHOICE, Given(pairs=(("answer", "sqlite"),)), "SQLite", "answered"),
        (APPROVAL, Given(approve=True), True, "approved"),
        (APPROVAL, Given(approve=False), False, "rejected"),
        (APPROVAL, Given(text="no"), False, "rejected"),
        (PROCEED, Given(approve=True), "Proceed", "answered"),
        (PROCEED, Given(approve=False), "Cancel", "answered"),
        (FORM, Given(pairs=(("count", "3"), ("on", "yes"))), {"count": 3, "on": True}, "answered"),
        (FORM, Given(pairs=(("f", '{"count": 3}'),)), {"count": 3}, "answered"),
        (FORM, Given(text='{"count": 3}'), {"count": 3}, "answered"),
        (TEXT, Given(values={"answer": "words"}), "words", "answered"),
    ],
)
def test_one_question(question: Question, given: Given, value: object, verdict: str) -> None:
    """Each way to say it."""
    assert read_answer([question], given) == ({question.key: value}, verdict)


@pytest.mark.parametrize(
    ("question", "given", "words"),
    [
        (TEXT, Given(), "no answer given"),
        (TEXT, Given(text=""), "an empty answer"),
        (TEXT, Given(text="a", other="b"), "give the answer once"),
        (APPROVAL, Given(text="yes", approve=True), "give the answer once"),
        (TEXT, Given(approve=True), "--approve answers an approval; this is a text question"),
        (CHOICE, Given(approve=False), "--reject answers an approval; this is a choice question"),
        (
            replace(PROCEED, options=(Option("Yes"), Option("OK"))),
            Given(approve=True),
            "--approve answers an approval",
        ),
        (CHOICE, Given(pairs=(("db", "x"),)), "there is no question 'db'; the question is answer"),
        (CHOICE, Given(pairs=(("answer", "a"), ("answer", "b"))), "answer is answered twice"),
        (FORM, Given(pairs=(("count", "1"), ("count", "2"))), "count is answered twice"),
        (APPROVAL, Given(other="well"), "--other is for choices"),
        (TEXT, Given(values={}), "no answer for answer"),
        (TEXT, Given(values={"answer": "a", "more": "b"}), "there is no question 'more'"),
    ],
)
def test_one_question_answered_wrongly(question: Question, given: Given, words: str) -> None:
    """Twice, not at all, for another question, with another type's flag."""
    with pytest.raises(BadAnswer, match=words):
        read_answer([question], given)


SAID = {"db": "Postgres", "region": ["eu"], "go": True, "why": "because\nof this"}


@pytest.mark.parametrize(
    "given",
    [
        Given(pairs=(("db", "post"), ("region", "eu"), ("go", "yes"), ("why", "because\nof this"))),
        Given(approve=True, pairs=(("db", "#1"), ("region", "EU"), ("why", "because\nof this"))),
        Given(text="db: postgres\nregion: eu\ngo: yes\nwhy: because\nof this\n"),
        Given(text="\n db : Postgres\nwhy:\nbecause\nof this", pairs=(("region", "eu"),), approve=True),
        Given(values={"db": "Postgres", "region": ["eu"], "go": True, "why": "because\nof this"}),
    ],
)
def test_several_questions(given: Given) -> None:
    """By pairs, by lines, by values, or mixed."""
    assert read_answer(ALL, given) == (SAID, "approved")


def test_free_text_among_several_questions() -> None:
    """`other:` tells it from a mistyped label; a label that begins so is a label."""
    pairs = (("db", "other:MySQL"), ("region", "other:the moon"), ("go", "no"), ("why", "other:x"))
    values, verdict = read_answer(ALL, Given(pairs=pairs))
    assert values == {"db": "MySQL", "region": ["the moon"], "go": False, "why": "other:x"}
    assert verdict == "rejected"
    odd = replace(DB, options=(Option("other:worldly"), Option("B")))
    assert read_answer([odd, WHY], Given(pairs=(("db", "other:w"), ("why", "x"))))[0]["db"] == "other:worldly"


@pytest.mark.parametrize(
    ("questions", "given", "words"),
    [
        (ALL, Given(), "no answer for db, region, go, why"),
        (ALL, Given(other="x"), "--other answers one question; this gate has 4"),
        (ALL, Given(pairs=(("db", "x"), ("db", "y"))), "db is answered twice"),
        (ALL, Given(text="db: a\ndb: b"), "db is answered twice"),
        (ALL, Given(text="just words"), "this gate has 4 questions"),
        (ALL, Given(pairs=(("color", "red"),)), "there is no question 'color'"),
        ((DB, WHY), Given(approve=True), "exactly one approval"),
        ((GO, replace(GO, key="more")), Given(approve=True), "exactly one approval"),
        (ALL, Given(text="db: MySQL\nregion: eu\ngo: yes\nwhy: x"), "is not one of the options"),
    ],
)
def test_several_questions_answered_wrongly(
    questions: tuple[Question, ...], given: Given, words: str
) -> None:
    """All of them, each once."""
    with pytest.raises(BadAnswer, match=words):
        read_answer(questions, given)


def test_what_is_missing_is_told_with_the_command() -> None:
    """To be typed."""
    with pytest.raises(BadAnswer) as refused:
        read_answer((DB, WHY), Given(text="db: Postgres"))
    assert refused.value.hint == "git gate respond ID -a db=… -a why=…"


def test_own_words_among_several_questions() -> None:
    """The hint is one that works there: `--other` does not, and what it says is taken."""
    with pytest.raises(BadAnswer) as refused:
        read_answer((DB, WHY), Given(pairs=(("db", "MySQL"), ("why", "x"))))
    assert refused.value.hint == 'to answer it in your own words: -a "db=other:MySQL"'
    values, _ = read_answer((DB, WHY), Given(pairs=(("db", "other:MySQL"), ("why", "x"))))
    assert values["db"] == "MySQL"


def test_nothing_is_nothing() -> None:
    """An empty word, or a no, is something."""
    assert Given().nothing
    for said_something in (
        Given(text=""),
        Given(approve=False),
        Given(pairs=(("a", ""),)),
        Given(other=""),
        Given(values={}),
    ):
        assert not said_something.nothing


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"db": "x"}, "answered"),
        ({"go": True}, "approved"),
        ({"go": False}, "rejected"),
        ({"go": "yes"}, "rejected"),
        ({"go": 1}, "rejected"),
    ],
)
def test_only_a_plain_yes_approves(values: Mapping[str, object], verdict: str) -> None:
    """Nothing that merely looks true."""
    assert verdict_of(ALL, values) == verdict  # type: ignore[arg-type]


def test_one_no_among_approvals_rejects() -> None:
    """Both have to be given."""
    both = (GO, replace(GO, key="more"))
    assert verdict_of(both, {"go": True, "more": False}) == "rejected"
    assert verdict_of(both, {"go": True, "more": True}) == "approved"


def said(question: Question, value: object, **changes: object) -> Answer:
    plain = Answer(GATE, {question.key: value}, "answered", EARLY, oid(1), ADA)  # type: ignore[dict-item]
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "value", "text"),
    [
        (TEXT, "words", "words"),
        (CHOICE, "Postgres", "Postgres"),
        (REGION, ["eu", "us"], "eu, us"),
        (APPROVAL, True, "approved"),
        (APPROVAL, False, "rejected"),
        (FORM, {"count": 3, "word": "é"}, '{"count": 3, "word": "é"}'),
    ],
)
def test_what_an_answer_prints_as(question: Question, value: object, text: str) -> None:
    """Scripts and agents read it: the text, the label, a word; a note on the next line."""
    assert printed([question], said(question, value)) == text
    assert printed([question], said(question, value, note="but\nlater")) == f"{text}\nbut\nlater"


def test_several_answers_print_as_lines() -> None:
    """`key: value` each."""
    answer = Answer(GATE, {"db": "Postgres", "go": True}, "approved", EARLY, oid(1), ADA)
    assert printed([DB, GO, WHY], answer) == "db: Postgres\ngo: approved\nwhy: "
    assert value_words(None) == ""


@pytest.mark.parametrize(
    ("question", "value", "possible"),
    [
        (APPROVAL, True, True),
        (APPROVAL, "yes", False),
        (TEXT, "words", True),
        (TEXT, " ", False),
        (TEXT, ["words"], False),
        (replace(CHOICE, other=False), "Postgres", True),
        (replace(CHOICE, other=False), "postgres", False),
        (CHOICE, "MySQL", True),
        (CHOICE, True, False),
        (REGION, ["eu", "mars"], True),
        (replace(REGION, other=False), ["eu", "mars"], False),
        (REGION, [], False),
        (REGION, "eu", False),
        (FORM, {}, True),
        (FORM, "{}", False),
    ],
)
def test_what_a_record_may_hold(question: Question, value: object, possible: bool) -> None:
    """A recorded value is what the question's type has, as it is written down."""
    assert type_of(question).is_possible(question, value) is possible  # type: ignore[arg-type]
    assert (
        misfit(opened(question), said(question, value)).startswith(f"{question.key}: expected")
    ) is not possible


@given(st.data())
def test_whatever_is_read_fits(data: st.DataObject) -> None:
    """What the grammar lets through, a record may hold, with the verdict that it gave."""
    questions = tuple(
        data.draw(
            st.lists(st.sampled_from([*ALL, replace(DB, key="strict", other=False)]), min_size=1, unique=True)
        )
    )
    words = st.sampled_from(["yes", "no", "eu", "us,eu", "Postgres", "other:x", "#2", "", "p"]) | st.text(
        max_size=5
    )
    pairs = tuple((question.key, data.draw(words)) for question in questions)
    ways = [Given(pairs=pairs), Given(text=pairs[0][1]), Given(text="\n".join(f"{k}: {v}" for k, v in pairs))]
    try:
        values, verdict = read_answer(questions, data.draw(st.sampled_from(ways)))
    except BadAnswer:
        return
    assert misfit(opened(*questions), Answer(GATE, values, verdict, EARLY, oid(1), ADA)) == ""
