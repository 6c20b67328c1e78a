"""Drafts: a question from flags or from a file, in our words or in other systems'."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.errors import BadDocument, GateError, Usage
from gitgate.model.gate import Option, Question
from gitgate.questions.drafts import Draft, option, option_list, question, read_draft
from gitgate.record.events import dump_event, parse_event
from support.histories import opened


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({}, "text"),
        ({"options": [Option("A"), Option("B")]}, "choice"),
        ({"schema": {"type": "object"}}, "form"),
        ({"type": "yesno"}, "approval"),
        ({"type": "choices", "options": [Option("A")]}, "choices"),
        ({"type": "session"}, "session"),
    ],
)
def test_a_type_is_said_or_follows(how: dict[str, object], kind: str) -> None:
    """Options make a choice, a schema a form, nothing a text."""
    assert question("Which?", **how).type == kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"type": "poem"}, "'poem' is not a type of question"),
        ({"type": "choice"}, "a choice question needs options"),
        ({"type": "text", "options": [Option("A")]}, "a text question has no options"),
        ({"type": "approval", "options": [Option("A")]}, "an approval question has no options"),
        ({"type": "form"}, "a form question needs a schema"),
        ({"type": "text", "schema": {}}, "a text question has no schema"),
        ({"options": [Option("A"), Option(" a")]}, "the option 'A' is there twice"),
        ({"options": [Option(" ")]}, "an option needs a label"),
        ({"options": [Option("A"), Option("B")], "default": "C"}, "the default does not fit the question"),
        ({"type": "approval", "default": "perhaps"}, "the default does not fit"),
        ({"options": [Option("A")]}, "a choice of one option is none"),
        ({"other": False}, "--no-other is for questions with options; this one is of type text"),
        ({"type": "approval", "other": False}, "--no-other is for questions with options"),
    ],
)
def test_what_cannot_be_asked(how: dict[str, object], words: str) -> None:
    """A usage error, before anything is written."""
    with pytest.raises(Usage, match=words):
        question("Which?", **how)  # type: ignore[arg-type]


def test_a_question_needs_words() -> None:
    """With an example in the hint."""
    with pytest.raises(Usage) as refused:
        question(" \n")
    assert "git gate ask" in refused.value.hint


def test_free_text_is_for_choices() -> None:
    """Allowed unless it is switched off; elsewhere it means nothing."""
    two = [Option("A"), Option("B")]
    assert question("?", options=two).other
    assert not question("?", options=two, other=False).other
    assert not question("?").other


def test_a_default_is_kept_as_it_is_meant() -> None:
    """The label, the truth, the list; false and nothing are not the same."""
    assert question("?", options=[Option("Postgres"), Option("SQLite")], default="post").default == "Postgres"
    assert question("?", type="approval", default="no").default is False
    assert question("?", type="choices", options=[Option("A"), Option("B")], default="a,b").default == [
        "A",
        "B",
    ]
    assert question("?").default is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", Option("A")),
        ("A=one file", Option("A", "one file")),
        (" A = one = two ", Option("A", "one = two")),
        ("a\\=b=c", Option("a=b", "c")),
        ("a\\=b", Option("a=b")),
        ("A=b\\=c", Option("A", "b=c")),
        ("=x", Option("", "x")),
    ],
)
def test_an_option_and_its_description(text: str, expected: Option) -> None:
    """The first `=` splits; an escaped one is itself."""
    assert option(text) == expected


def test_options_in_one_list() -> None:
    """Blanks and empty parts do not count."""
    assert option_list(" A, B ,,C") == (Option("A"), Option("B"), Option("C"))


def draft(text: str) -> Draft:
    return read_draft(codec.parse_document(text.encode(), "q.yaml"))


def test_a_file_in_our_own_form() -> None:
    """Several questions and all terms."""
    found = draft(
        """
        title: Storage
        context: We need one
        priority: high
        confidence: 0.4
        timeout: 2h
        on_timeout: fail
        to: [ada, bob]
        quorum: 2
        gate_key: storage
        agent: coder
        session: abc
        attach: [a.png]
        config: {ticket: 3}
        questions:
          - {key: db, prompt: "Which?", options: [Postgres, {label: SQLite, description: one file}], default: SQLite}
          - {key: why, prompt: "Why?"}
        """
    )
    assert found == Draft(
        (
            Question("db", "Which?", "choice", (Option("Postgres"), Option("SQLite", "one file")), "SQLite", True),
            Question("why", "Why?", "text"),
        ),
        "Storage", "We need one", "high", 0.4, 7200, "fail", ("ada", "bob"), 2, "storage", "coder", "abc", ("a.png",),
        {"ticket": 3},
    )  # fmt: skip


@pytest.mark.parametrize("word", ["prompt", "question", "content", "message"])
def test_one_question_written_flat(word: str) -> None:
    """In our words or in those of other systems."""
    found = draft(
        f'{word}: "Deploy?"\ntype: yesno\nsummary: S\nquestionContext: C\ntimeout: 90\nagent_name: coder'
    )
    assert found.questions == (Question("answer", "Deploy?", "approval"),)
    assert (found.title, found.context, found.timeout, found.agent) == ("S", "C", 90, "coder")
    assert (found.priority, found.quorum, found.config, found.key) == (None, 1, None, None)


def test_two_words_for_one_thing_say_the_same() -> None:
    """Else one of them would be lost."""
    assert draft("message: ours\nprompt: ours\nkey: k").questions[0] == Question("k", "ours", "text")
    with pytest.raises(
        BadDocument, match="line 1: message: prompt is another word for it, and says otherwise"
    ):
        draft("message: theirs\nprompt: ours\nkey: k")


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("title: x", "", "expected a prompt, or a list of questions"),
        ("prompt: x\nkey: a b", "key", "letters, digits"),
        ("prompt: x\ntype: poem", "type", "expected one of text"),
        ("prompt: x\ntimeout: soon", "timeout", "soon"),
        ("prompt: x\ntimeout: 0", "timeout", "a whole number from 1"),
        ("prompt: x\ntimeout: true", "timeout", "expected text"),
        ("prompt: x\nquorum: 0", "quorum", "a whole number"),
        ("prompt: x\non_timeout: never", "on_timeout", "expected one of"),
        ("prompt: x\nconfidence: 7", "confidence", "a number from 0 to 1"),
        ("prompt: x\nto: ada", "to", "a list"),
        ("prompt: x\nconfig: y", "config", "a mapping"),
        ("prompt: [x]", "prompt", "expected text"),
        ("prompt: ' '", "prompt", "some text"),
        ("questions: []", "questions", "1 to 20"),
        ("prompt: x\noptions: [A]\ndefault: B", "default", "not one of the options"),
    ],
)
def test_a_file_that_cannot_be_asked(text: str, field: str, words: str) -> None:
    """File, line and field."""
    with pytest.raises(BadDocument) as refused:
        draft(text)
    assert (refused.value.source, refused.value.field) == ("q.yaml", field)
    assert words in refused.value.message


@pytest.mark.parametrize("name", ["deferred", "need", "pull_request", '"deferred"', "Deferred", '" need "'])
@pytest.mark.parametrize("value", ["{tool: Bash, id: x, digest: y}", "true", "null", "12"])
def test_a_file_says_nothing_in_our_hooks_name(name: str, value: str) -> None:
    """It would steer how an answered call is let through, or where the question is shown: whatever stands beside it."""
    plain = name.strip('"')
    for text in (
        f"prompt: Which?\nconfig:\n  {name}: {value}\n",
        f"questions: [{{key: a, prompt: Which?}}]\nconfig:\n  {name}: {value}\n  ticket: 3\n",
    ):
        with pytest.raises(BadDocument, match="a name of your own") as wrong:
            draft(text)
        assert (wrong.value.source, wrong.value.line) == ("q.yaml", 3)
        assert wrong.value.field in (f"config.{plain}", 'config["need"]')
    said = json.dumps({"prompt": "Which?", "config": {plain: value}})
    with pytest.raises(BadDocument, match="a name of your own"):
        draft(said)


@given(
    st.text(max_size=20),
    st.sampled_from([None, "text", "approval", "choice", "choices", "session"]),
    st.lists(st.builds(Option, st.text(max_size=8), st.text(max_size=8)), max_size=4),
    st.none() | st.text(max_size=8) | st.booleans(),
    st.booleans(),
)
def test_what_can_be_asked_can_be_read(
    prompt: str, kind: str | None, options: list[Option], default: object, other: bool
) -> None:
    """A question from flags is refused, or the same after it was written and read."""
    try:
        asked = question(prompt, type=kind, options=options, default=default, other=other)
        data = dump_event(opened(asked))
    except GateError:
        return
    assert parse_event(None, data, "x") == opened(asked)
