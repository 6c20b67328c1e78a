"""Documents: each event as a file and back, and what no file may say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.document.codec import NEVER
from gitgate.errors import BadDocument
from gitgate.model import DELIVERIES, ON_TIMEOUT, OUTCOMES, PRIORITIES, VERDICTS
from gitgate.model.gate import (
    Answer,
    Asker,
    Claim,
    Edit,
    Event,
    Opened,
    Option,
    Outcome,
    Question,
    Remark,
    Session,
    Work,
)
from gitgate.record.events import BY_FOLDER, FOLDER_OF, KINDS, dump_event, parse_event
from support.histories import ADA, APPROVAL, CHOICE, DUE, EARLY, GATE, LATER, TEXT, oid, opened

# What a document can hold at all; the codec's own tests try the rest.
WRITABLE = st.text(max_size=30).filter(lambda text: not re.search(NEVER, text))
SAID = WRITABLE.filter(str.strip)
MAYBE = st.none() | SAID
TIMES = st.sampled_from([EARLY, DUE, LATER])
OIDS = st.integers(0, 99).map(oid)
PLAIN = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WRITABLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WRITABLE, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(SAID, PLAIN, max_size=3)
LABELS = st.lists(SAID.map(str.strip), min_size=1, max_size=4, unique_by=str.casefold)
COUNTS = st.integers(0, 10**12)
KEYS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,9}", fullmatch=True)


@st.composite
def questions(draw: st.DrawFn, key: str) -> Question:
    kind = draw(st.sampled_from(["text", "approval", "choice", "choices", "session"]))
    options = (
        tuple(Option(label, draw(WRITABLE)) for label in draw(LABELS)) if kind.startswith("choice") else ()
    )
    default: object = None
    if draw(st.booleans()):
        default = {
            "approval": draw(st.booleans()),
            "choice": options[-1].label if options else "",
            "choices": [option.label for option in options],
        }.get(kind, draw(SAID.map(str.strip)))
    return Question(key, draw(SAID), kind, options, default, bool(options) and draw(st.booleans()))  # type: ignore[arg-type]


@st.composite
def questions_files(draw: st.DrawFn) -> Opened:
    deadline = draw(st.none() | TIMES)
    dirty = draw(st.booleans())
    left_out = st.lists(st.tuples(SAID, WRITABLE), max_size=2).map(tuple)
    work = Work(
        draw(st.none() | OIDS),
        draw(st.none() | OIDS),
        draw(st.none() | OIDS),
        draw(MAYBE),
        dirty,
        draw(COUNTS),
        draw(COUNTS),
        draw(COUNTS),
        draw(left_out),
        tuple(draw(st.lists(SAID, max_size=2))),
        draw(MAYBE),
    )
    session = Session(draw(SAID), draw(SAID), draw(SAID), draw(st.booleans()))
    return Opened(
        title=draw(SAID),
        questions=tuple(
            draw(questions(key)) for key in draw(st.lists(KEYS, min_size=1, max_size=3, unique=True))
        ),
        asked=Asker(draw(WRITABLE), draw(TIMES), draw(WRITABLE), draw(WRITABLE), draw(WRITABLE)),
        work=work,
        nonce=draw(SAID),
        context=draw(WRITABLE),
        session=draw(st.none() | st.just(session)),
        delivery=draw(st.sampled_from(DELIVERIES)),
        priority=draw(st.sampled_from(PRIORITIES)),
        confidence=draw(st.none() | st.floats(0, 1)),
        deadline=deadline,
        timeout=draw(st.none() | st.integers(1, 10**10)),
        on_timeout=draw(st.sampled_from(ON_TIMEOUT)),
        to=tuple(draw(st.lists(WRITABLE, max_size=2))),
        quorum=draw(st.integers(1, 100)),
        key=draw(MAYBE),
        key_for=draw(st.none() | st.integers(1, 10**10)),
        follows=draw(MAYBE),
        attachments=draw(st.sampled_from([(), ("a.png",), ("logs/a.txt", "b.txt")])),
        config=draw(OBJECTS),
    )


VALUES = st.booleans() | WRITABLE | st.lists(WRITABLE, min_size=1, max_size=3) | OBJECTS
ANSWERS = st.builds(
    Answer,
    st.just(GATE),
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=3),
    st.sampled_from(VERDICTS),
    TIMES,
    OIDS,
    WRITABLE,
    SAID,
    WRITABLE,
    st.none() | OIDS,
    OBJECTS,
)
REMARKS = st.builds(Remark, TIMES, WRITABLE, WRITABLE, SAID)
EDITS = st.builds(
    Edit,
    TIMES,
    WRITABLE,
    st.none() | st.lists(WRITABLE, max_size=2).map(tuple),
    st.none() | st.sampled_from(PRIORITIES),
    st.none() | st.just("") | TIMES,
    st.none() | st.integers(0, 10**10),
)
REMINDERS = st.builds(Edit, TIMES, deadline=TIMES)
CLAIMS = st.builds(
    Claim, TIMES, OIDS, SAID, SAID, WRITABLE, st.integers(1, 10**6), st.integers(1, 10**7), WRITABLE
)
OUTCOME = st.builds(
    Outcome,
    TIMES,
    OIDS,
    st.sampled_from(OUTCOMES),
    WRITABLE,
    WRITABLE,
    WRITABLE,
    WRITABLE,
    st.lists(OIDS, max_size=2).map(tuple),
    said=WRITABLE,
    denied=st.lists(WRITABLE, max_size=2).map(tuple),
    left=st.lists(WRITABLE, max_size=2).map(tuple),
    place=WRITABLE,
    meant=WRITABLE,
)
EVENTS = st.one_of(
    st.tuples(st.none(), questions_files()),
    st.tuples(st.just("answers"), ANSWERS),
    st.tuples(st.sampled_from(["comments", "stops", "withdrawals", "expiries"]), REMARKS),
    st.tuples(st.just("edits"), EDITS),
    st.tuples(st.just("reminders"), REMINDERS),
    st.tuples(st.just("claims"), CLAIMS),
    st.tuples(st.just("outcomes"), OUTCOME),
)


@given(EVENTS)
def test_what_is_written_is_read(event: tuple[str | None, Event]) -> None:
    """Every event, whatever people put into it; and writing it again gives the same bytes."""
    folder, said = event
    data = dump_event(said)
    again = parse_event(folder, data, "x")
    assert again == said
    assert dump_event(again) == data


def test_every_event_has_its_folder() -> None:
    """One row an event, and no folder twice."""
    assert len(BY_FOLDER) == len(FOLDER_OF) == len(KINDS)
    assert {kind.folder for kind in KINDS}.isdisjoint({"question.yaml", "attachments", "work", ".git"})


def test_the_version_comes_first() -> None:
    """Whoever reads a file knows by its first line whether they can."""
    assert dump_event(opened()).startswith(b"hitl: 1\n")


@pytest.mark.parametrize("version", ["2", "0", "true", "1.0", '"1"', "one", "[1]"])
def test_another_version_is_refused_with_a_clear_word(version: str) -> None:
    """Not misread."""
    with pytest.raises(BadDocument, match="this gitgate reads version 1 of the format; upgrade it"):
        parse_event("comments", f"hitl: {version}\nat: {EARLY}\n".encode(), "x")


def test_without_a_version_it_is_no_document_of_ours() -> None:
    """The field is named."""
    with pytest.raises(BadDocument, match="hitl"):
        parse_event("comments", f"at: {EARLY}\n".encode(), "x")


def test_an_unknown_folder_and_an_unknown_field() -> None:
    """The one is refused; the other is ignored: a later version may say more."""
    with pytest.raises(BadDocument, match="secrets/ is not a folder of events"):
        parse_event("secrets", b"hitl: 1\n", "x")
    assert parse_event("comments", f"hitl: 1\nat: {EARLY}\nmood: fine\n".encode(), "x") == Remark(EARLY)


QUESTION = "questions:\n  - key: a\n    prompt: Which?\n"


@pytest.mark.parametrize(
    ("folder", "text", "field", "words"),
    [
        ("answers", "seen: HEAD", "seen", "expected a full commit id"),
        ("answers", "seen: abc123", "seen", "expected a full commit id"),
        ("answers", "values: {}\nverdict: maybe", "verdict", "expected one of answered"),
        ("answers", "values: {a: 3}", "values.a", "expected text, true or false, a list of labels"),
        ("answers", "values: {a: [1]}", "values.a", "expected text, true or false"),
        ("answers", "values: no", "values", "expected a mapping"),
        ("answers", "evidence: words", "evidence", "expected a mapping"),
        ("comments", "at: yesterday", "at", "expected a time in UTC"),
        ("comments", "at: 2030-01-01T00:00:00+01:00", "at", "expected a time in UTC"),
        ("comments", "at: 2030-01-01T00:00:00.5Z", "at", "expected a time in UTC"),
        ("comments", "at: 2030-13-01T00:00:00Z", "at", "expected a time in UTC"),
        ("comments", "by: [ada]", "by", "expected text"),
        ("edits", "priority: soon", "priority", "expected one of"),
        ("edits", "to: ada", "to", "expected a list"),
        ("edits", "deadline: soon", "deadline", "expected a time in UTC"),
        ("edits", "timeout: -1", "timeout", "expected a whole number"),
        ("reminders", "by: ada", "deadline", "it is missing"),
        ("claims", "term: 0", "term", "expected a whole number"),
        ("outcomes", "result: fine", "result", "expected one of resumed"),
        ("outcomes", "commits: abc", "commits", "expected a list"),
        ("outcomes", "commits: [abc]", "commits[0]", "expected a full commit id"),
        (
            "outcomes",
            f"commits: ['{oid(1)}', 'x](https://evil.example)']",
            "commits[1]",
            "expected a full commit id",
        ),
        ("outcomes", f"commits: ['{oid(1)}\\n']", "commits[0]", "expected a full commit id"),
    ],
)
def test_an_event_that_does_not_say_what_it_should(folder: str, text: str, field: str, words: str) -> None:
    """File, line and field are in the error."""
    whole = {
        "hitl": 1,
        "gate": GATE,
        "values": {"a": "b"},
        "verdict": "answered",
        "seen": oid(1),
        "at": EARLY,
        "answer": oid(1),
        "nonce": "n",
        "runner": "r",
        "attempt": 1,
        "term": 1,
        "claim": oid(1),
        "result": "resumed",
    }
    said = codec.parse_document(text.encode(), "x").plain()
    assert isinstance(said, dict)
    with pytest.raises(BadDocument) as refused:
        parse_event(folder, codec.dump_document({**whole, **said}), "gate:file.yaml")
    assert (refused.value.source, refused.value.field) == ("gate:file.yaml", field)
    assert words in refused.value.message
    assert refused.value.line > 0 or "missing" in words


@pytest.mark.parametrize("name", ["answer", "claim", "seen"])
def test_a_needed_commit_is_needed(name: str) -> None:
    """A claim without its answer, an outcome without its claim, an answer that saw nothing."""
    events: dict[str, tuple[str, Event]] = {
        "answer": ("claims", Claim(EARLY, oid(1), "n", "r", "h", 1, 1)),
        "claim": ("outcomes", Outcome(EARLY, oid(1), "resumed")),
        "seen": ("answers", Answer(GATE, {"a": "b"}, "answered", EARLY, oid(1), ADA)),
    }
    folder, event = events[name]
    data = b"".join(
        line for line in dump_event(event).splitlines(True) if not line.startswith(f"{name}:".encode())
    )
    with pytest.raises(BadDocument, match="expected the commit"):
        parse_event(folder, data, "x")


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"title": " "}, "title", "expected some text"),
        ({"title": "x" * 1001}, "title", "at most 1,000"),
        ({"deadline": "soon"}, "deadline", "a time in UTC"),
        ({"confidence": 2.0}, "confidence", "a number from 0 to 1"),
        ({"timeout": 0}, "timeout", "a whole number from 1"),
        ({"quorum": 101}, "quorum", "a whole number from 1 to 100"),
        ({"priority": "soon"}, "priority", "expected one of"),
        ({"delivery": "mail"}, "delivery", "expected one of"),
        ({"attachments": ("../x",)}, "attachments", "without `..`"),
        ({"attachments": ("/etc/passwd",)}, "attachments", "a relative path"),
        ({"attachments": ("a", "A")}, "attachments", "names that differ"),
        ({"questions": (TEXT, TEXT)}, "questions[1].key", "'answer' is there twice"),
        (
            {"questions": tuple(replace(TEXT, key=f"k{n}") for n in range(21))},
            "questions",
            "1 to 20 questions",
        ),
        ({"questions": (replace(TEXT, key="a b"),)}, "questions[0].key", "letters, digits"),
        ({"questions": (replace(TEXT, key="x" * 65),)}, "questions[0].key", "at most 64"),
        ({"questions": (replace(TEXT, prompt=" \n"),)}, "questions[0].prompt", "some text"),
        ({"questions": (replace(TEXT, type="poem"),)}, "questions[0].type", "expected one of"),
        ({"questions": (replace(CHOICE, options=()),)}, "questions[0]", "a choice question needs options"),
        (
            {"questions": (replace(CHOICE, type="text"),)},
            "questions[0].options",
            "a text question has no options",
        ),
        ({"questions": (replace(TEXT, type="form"),)}, "questions[0]", "a form question needs a schema"),
        (
            {"questions": (replace(APPROVAL, default="perhaps"),)},
            "questions[0].default",
            "expected yes or no",
        ),
        (
            {"questions": (replace(CHOICE, options=(Option("A"), Option(" a "))),)},
            "questions[0].options[1]",
            "found 'a' twice",
        ),
        (
            {
                "questions": (
                    replace(CHOICE, default=None, options=tuple(Option(f"o{n}") for n in range(101))),
                )
            },
            "questions[0].options",
            "at most 100 options",
        ),
        ({"work": Work("HEAD", None, None)}, "work.base", "a full commit id"),
    ],
)
def test_a_question_that_cannot_be_asked(change: dict[str, object], field: str, words: str) -> None:
    """Each limit and each contradiction names its field."""
    with pytest.raises(BadDocument) as refused:
        parse_event(None, dump_event(replace(opened(), **change)), "question.yaml")  # type: ignore[arg-type]
    assert refused.value.field == field
    assert words in refused.value.message


def test_a_question_in_few_words() -> None:
    """What is not said has its plain meaning: options make a choice, a label may stand alone, free text is allowed."""
    text = f"hitl: 1\ntitle: T\nnonce: n\nasked: {{at: {EARLY}}}\n{QUESTION}    options: [A, {{label: B}}]\n"
    found = parse_event(None, text.encode(), "x")
    assert isinstance(found, Opened)
    assert found.questions == (Question("a", "Which?", "choice", (Option("A"), Option("B")), other=True),)
    assert found.work == Work(None, None, None)
    assert (found.delivery, found.priority, found.on_timeout, found.quorum) == ("none", "normal", "stuck", 1)


@pytest.mark.parametrize(("word", "kind"), [("yesno", "approval"), ("select", "choice"), ("input", "text")])
def test_other_systems_words_are_understood(word: str, kind: str) -> None:
    """On input; what is written is ours."""
    options = "    options: [A]\n" if kind == "choice" else ""
    text = f"hitl: 1\ntitle: T\nnonce: n\nasked: {{at: {EARLY}}}\n{QUESTION}    type: {word}\n{options}"
    found = parse_event(None, text.encode(), "x")
    assert isinstance(found, Opened)
    assert found.questions[0].type == kind


def test_an_empty_form_and_an_empty_default_are_kept() -> None:
    """They say something: any object will do, and nothing is filled in."""
    form = Question("a", "Fill in", "form", default={}, schema={})
    assert parse_event(None, dump_event(opened(form)), "x") == opened(form)


def test_what_a_deadline_is_to_bring_is_kept_without_one() -> None:
    """A deadline that is set later has the end that was asked for."""
    asked = opened(on_timeout="fail", deadline=None)
    assert parse_event(None, dump_event(asked), "x") == asked


def test_an_edit_tells_nobody_from_not_said() -> None:
    """No `to` leaves it, an empty one is `anyone`, and a person may be called that."""
    for to in (None, (), ("anyone",), ("ada",)):
        assert parse_event("edits", dump_event(Edit(EARLY, to=to)), "x") == Edit(EARLY, to=to)
    for later in (None, "", DUE):
        assert parse_event("edits", dump_event(Edit(EARLY, later=later)), "x") == Edit(EARLY, later=later)
    for deadline in (None, "", DUE):
        assert parse_event("edits", dump_event(Edit(EARLY, deadline=deadline)), "x") == Edit(
            EARLY, deadline=deadline
        )


def test_a_reminder_wishes_nothing() -> None:
    """Whatever else its file says, it moves the deadline alone."""
    data = dump_event(Edit(EARLY, ADA, ("eve",), "urgent", DUE, 5))
    assert parse_event("reminders", data, "x") == Edit(EARLY, deadline=DUE)
