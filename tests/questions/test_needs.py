"""Needs: an agent's last words that ask."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.questions.file import plain_question
from gitgate.questions.signals import TERMS, draft_of, find_need, read_need

NEED = {"status": "needs_input", "question": "JWT or sessions?", "summary": "Auth", "questionContext": "No auth yet.", "details": "Did users.", "issues": ["a", "b"], "reason": "unclear"}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [json.dumps(NEED), json.dumps(NEED, indent=2), f"I did it.\n\n{json.dumps(NEED)}", f"So:\n```json\n{json.dumps(NEED, indent=1)}\n```\n", f"{{not json}} {json.dumps(NEED)}  \n"],
)  # fmt: skip
def test_an_object_at_the_end_asks(text: str) -> None:
    """Alone, after words, fenced."""
    found = find_need(text)
    assert found is not None
    assert (found.question, found.summary, found.issues) == ("JWT or sessions?", "Auth", ("a", "b"))
    draft = draft_of(found)
    assert draft.title == "Auth"
    assert draft.questions[0].type == "text"
    for words in ("No auth yet.", "Did users.", "Reason: unclear", "- a", "- b"):
        assert words in draft.context


@pytest.mark.parametrize(
    "text",
    ["", "Done.", '{"status": "completed"}', json.dumps(NEED) + "\nbut then I decided it myself.", '{"a": {"status": "needs_input"}}', "I handle NEEDS_HUMAN now.", "The status needs_input is returned.", "[1]", "{", "}", '{"status": 3}'],
)  # fmt: skip
def test_other_words_do_not(text: str) -> None:
    """Words about asking, an object in the middle, another status."""
    assert find_need(text) is None


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("NEEDS_HUMAN: which auth?", "which auth?"), ("I tried.\nNEEDS_HUMAN\nWhich auth?", "Which auth?"),
        ("**NEEDS_HUMAN** - which auth?", "which auth?"), ("status: NEEDS_HUMAN", "The agent needs a person"),
        ('{"status": "NEEDS_HUMAN", "reason": "which auth?"}', "which auth?"),
    ],
)  # fmt: skip
def test_needs_human(text: str, question: str) -> None:
    """On a line of its own, or as a status; the reason is the question."""
    found = find_need(text)
    assert found is not None
    assert found.question.startswith(question)


def test_the_summary_is_the_question_when_there_is_none() -> None:
    """And the question is the summary, in its turn."""
    only = read_need({"status": "needs_input", "summary": "Which auth?"})
    assert only is not None
    assert only.question == "Which auth?"
    bare = read_need({"status": "needs_input", "question": "Which auth?"})
    assert bare is not None
    assert draft_of(bare).title == "Which auth?"


def test_options_make_a_choice() -> None:
    """With labels, and with what each means; a type that is said holds."""
    found = read_need({**NEED, "options": ["JWT", {"label": "Sessions", "description": "revocable"}, "jwt"]})
    assert found is not None
    (question,) = draft_of(found).questions
    assert (question.type, question.labels) == ("choice", ("JWT", "Sessions"))
    approval = read_need({**NEED, "type": "yesno"})
    assert approval is not None
    assert draft_of(approval).questions[0].type == "approval"


def test_a_request_may_say_all_that_a_question_file_may() -> None:
    """On what terms it is asked; several questions, too."""
    terms = {
        "confidence": 0.4,
        "priority": "high",
        "timeout": "2h",
        "on_timeout": "default",
        "default": "jwt",
        "to": ["@ada"],
    }
    found = read_need({**NEED, **terms, "options": ["JWT", "Sessions"], "other": False})
    assert found is not None
    draft = draft_of(found)
    assert (draft.confidence, draft.priority, draft.timeout, draft.to) == (0.4, "high", 7200, ("@ada",))
    (question,) = draft.questions
    assert (question.default, question.other, draft.title) == ("JWT", False, "Auth")
    assert "Not understood" not in draft.context
    several = read_need(
        {
            "status": "needs_input",
            "questions": [{"key": "a", "prompt": "One?"}, {"key": "b", "prompt": "Two?"}],
        }
    )
    assert several is not None
    assert [question.prompt for question in draft_of(several).questions] == ["One?", "Two?"]
    form = read_need({**NEED, "type": "form", "schema": {"required": ["x"]}})
    assert form is not None
    assert draft_of(form).questions[0].type == "form"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("confidence", 80, "confidence: expected a number from 0 to 1"),
        ("timeout", "soon", "timeout: expected a duration"),
        ("priority", "asap", "priority: expected one of"),
        ("optoins", ["a"], "optoins: there is no such field (did you mean options?)"),
        ("prioritiy", "high", "prioritiy: there is no such field (did you mean priority?)"),
        ("files_changed", 3, "files_changed: there is no such field"),
        ("default", "Maybe", "default: "),
        ("type", "form", "a form question needs a schema"),
    ],
)
def test_a_field_that_does_not_fit_is_named_and_the_rest_counts(
    field: str, value: object, words: str
) -> None:
    """No question is lost by it."""
    found = read_need({**NEED, "options": ["JWT", "Sessions"], "to": ["@ada"], field: value})
    assert found is not None
    draft = draft_of(found)
    assert draft.questions[0].prompt == "JWT or sessions?"
    assert words in draft.context
    assert draft.to == ("@ada",)


VALUES = st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=20) | st.lists(st.text(max_size=5) | st.integers() | st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=3)  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from([*NEED, "options", "type", "context", "prompt", *sorted(TERMS)]), VALUES
    ).map(lambda d: {**d, "status": "needs_input"})
)
def test_any_object_that_asks_can_be_asked(value: dict[str, object]) -> None:
    """Whatever its fields hold."""
    found = read_need(value)
    assert found is not None
    draft = draft_of(found)
    codec.dump_document(
        {
            "title": draft.title,
            "context": draft.context,
            "questions": [plain_question(q) for q in draft.questions],
        }
    )
    assert draft.questions[0].prompt
    assert draft.title


@given(st.text(max_size=200) | st.text('{}[]"status:NEEDS_HUMAN\n` ', max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    """It asks or it does not."""
    found = find_need(text)
    assert found is None or found.question


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"options": [{"label": "A", "descripton": "x"}, "B"]},
            "options[0].descripton: there is no such field (did",
        ),
        ({"options": "A,B"}, 'options: expected a list; found "A,B"'),
        ({"options": {"A": "x"}}, "options: expected a list; found a mapping"),
        ({"type": "choise", "options": ["A", "B"]}, 'found "choise" (did you mean choice?)'),
        ({"hitl": 9}, "hitl: this gitgate reads version 1; found the number 9"),
        ({"type": "approval", "options": ["A", "B"]}, "options: an approval question has no options"),
        ({"confidence": 80}, "confidence: expected a number from 0 to 1; found the number 80"),
        ({"defualt": "A"}, "defualt: there is no such field (did you mean default?)"),
    ],
)
def test_what_is_not_understood_is_told(said: dict[str, object], words: str) -> None:
    """The question is asked without it; it stands in its context, where a person sees it."""
    found = find_need("I am stuck.\n" + json.dumps({"status": "needs_input", "question": "Which?", **said}))
    assert found is not None
    draft = draft_of(found)
    assert draft.questions[0].prompt == "Which?"
    assert draft.context.startswith("I am stuck.\n\nNot understood of the request:\n- ")
    assert words in draft.context


def test_objects_within_the_last_one_are_part_of_it() -> None:
    """What stands before it is what stands before all of it."""
    given = {"status": "needs_input", "question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}
    found = find_need("Before it.\n```json\n" + json.dumps(given) + "\n```")
    assert found is not None
    assert found.context == "Before it."
