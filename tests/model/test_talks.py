"""Conversations: how one is to be held and how one was, as fields of a document and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.errors import BadAnswer, BadDocument, Usage
from gitgate.model.gate import (
    KINDS,
    MOST_TRANSCRIPT,
    OUTCOMES,
    SOURCES,
    Answer,
    Conversation,
    Opened,
    Option,
    Question,
    Remark,
    Talk,
    kept,
    parse_talk,
)
from gitgate.policy.ruling import types_of
from gitgate.questions.answers import misfit, verdict_of
from gitgate.questions.drafts import question, read_draft
from gitgate.questions.types import TYPES, expected, read_value, type_of
from gitgate.record.events import dump_event, parse_event
from support.histories import ADA, EARLY, GATE, oid, opened

SCHEMA = {"type": "object", "properties": {"notes": {"type": "string"}}, "required": ["notes"]}
ASKED = {
    "approval": Question("s", "Talk", "session", talk=Talk("approval")),
    "selection": Question("s", "Talk", "session", (Option("Red"), Option("Blue")), talk=Talk("selection")),
    "freeform": Question("s", "Talk", "session", talk=Talk()),
    "structured": Question("s", "Talk", "session", schema=SCHEMA, talk=Talk("structured")),
}
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co")), max_size=40)
TALKS = st.builds(
    Talk,
    outcome=st.sampled_from(["approval", "freeform"]),
    system=WORDS,
    context=st.none() | st.booleans() | WORDS | st.lists(WORDS, max_size=3) | st.dictionaries(WORDS, WORDS),
    model=st.sampled_from(["", "sonnet", "claude-opus-4-1[1m]"]),
    cwd=st.sampled_from(["", "services/api", "a b/ü"]),
    mcp=st.none() | st.just({"mcpServers": {"notes": {"command": "notes-server", "args": ["--quiet"]}}}),
    timeout=st.none() | st.integers(1, 10**7),
    grace=st.integers(0, 10**7),
    transcript=st.booleans(),
    save_every=st.integers(0, 10**7),
    resume=st.sampled_from(["", "7k2f", "7k2fabcdmn"]),
)
HELD = st.builds(
    Conversation,
    outcome=st.just("completed"),
    seconds=st.integers(0, 10**9),
    status=st.sampled_from(["", "DONE", "NEEDS_REVIEW"]),
    summary=WORDS,
    reason=WORDS,
    message=WORDS,
    source=st.sampled_from(["", *SOURCES]),
    confirmed=st.booleans(),
    transcript=WORDS,
)


def answer(value: object, session: Conversation | None = None, verdict: str = "answered") -> Answer:
    return Answer(GATE, {"s": value}, verdict, EARLY, oid(1), ADA, session=session)  # type: ignore[dict-item]


def with_talk(talk: str) -> Question:
    """The question that a document with these lines below `talk:` asks."""
    lines = "\n".join(f"  {line}" for line in talk.splitlines())
    data = f"prompt: Talk\ntype: session\ntalk:\n{lines}\n"
    (only,) = read_draft(codec.parse_document(data.encode(), "ask.yaml")).questions
    return only


@given(TALKS)
def test_how_a_conversation_is_to_be_held_survives_its_document(talk: Talk) -> None:
    """Whatever was set comes back; what was not stands nowhere."""
    asked = opened(questions=(Question("s", "Talk", "session", talk=talk),))
    data = dump_event(asked)
    assert parse_event(None, data, "question.yaml") == asked


@given(HELD)
def test_how_a_conversation_was_held_survives_its_document(held: Conversation) -> None:
    """In an answer; and in a stop, where it ended otherwise."""
    said = answer("words", held)
    assert parse_event("answers", dump_event(said), "a.yaml") == said
    stopped = Remark(EARLY, ADA, "nobody decided", session=replace(held, outcome="timeout"))
    assert parse_event("stops", dump_event(stopped), "s.yaml") == stopped


def test_whose_time_ran_out_confirmed_nothing() -> None:
    """Also as older records have it, which do not say so."""
    held = Conversation("timeout", 60, confirmed=False)
    data = dump_event(Remark(EARLY, ADA, "the time was up", session=held))
    older = data.replace(b"  confirmed: false\n", b"")
    assert older != data
    for record in (data, older):
        said = parse_event("stops", record, "s.yaml")
        assert isinstance(said, Remark)
        assert said.session == held


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_question_of_each_outcome_survives_its_document(outcome: str) -> None:
    """Its options and its schema with it."""
    asked = opened(questions=(ASKED[outcome],))
    assert parse_event(None, dump_event(asked), "question.yaml") == asked


def test_only_what_was_set_is_written() -> None:
    """A plain conversation takes two words in its file."""
    text = dump_event(opened(questions=(ASKED["approval"],))).decode()
    assert "    talk:\n      outcome: approval\n" in text
    assert "grace" not in text
    assert "mcp" not in text


@pytest.mark.parametrize(
    ("outcome", "given", "value"),
    [
        ("approval", "yes", True),
        ("approval", "no", False),
        ("selection", "blu", "Blue"),
        ("selection", "#1", "Red"),
        ("freeform", "As we said.", "As we said."),
        ("structured", '{"notes": "fine"}', {"notes": "fine"}),
    ],
)
def test_an_answer_is_read_by_its_outcome(outcome: str, given: str, value: object) -> None:
    """And is then one that a record may hold."""
    read = read_value(ASKED[outcome], given)
    assert read == value
    assert type_of(ASKED[outcome]).is_possible(ASKED[outcome], read)


@pytest.mark.parametrize(
    ("outcome", "given"),
    [("approval", "perhaps"), ("selection", "Green"), ("freeform", " "), ("structured", '{"notes": 3}')],
)
def test_what_does_not_fit_the_outcome_is_refused(outcome: str, given: str) -> None:
    """With what was expected."""
    with pytest.raises(BadAnswer):
        read_value(ASKED[outcome], given)
    assert expected(ASKED[outcome])


def test_a_session_without_terms_takes_words() -> None:
    """As every session question did before there were terms."""
    plain = Question("s", "Talk", "session")
    assert read_value(plain, "yes") == "yes"
    assert verdict_of([plain], {"s": "yes"}) == "answered"


def test_an_approval_by_conversation_is_an_approval() -> None:
    """Its verdict says so, a record that says otherwise does not fit, and rules for approvals hold for it."""
    asked = opened(questions=(ASKED["approval"],))
    assert verdict_of(asked.questions, {"s": True}) == "approved"
    assert verdict_of(asked.questions, {"s": False}) == "rejected"
    assert misfit(asked, answer(True, verdict="approved")) == ""
    assert "approved" in misfit(asked, answer(False, verdict="approved"))
    assert misfit(asked, answer("approved", verdict="approved"))
    assert types_of(asked) == ("session", "approval")
    assert set(types_of(asked)) <= set(TYPES)
    assert types_of(opened(questions=(ASKED["selection"],))) == ("session",)


def test_the_outcome_says_what_a_question_is_read_as() -> None:
    """Each one has a type of its own."""
    assert set(KINDS) == set(OUTCOMES)
    assert {name: q.kind for name, q in ASKED.items()} == dict(KINDS)


@pytest.mark.parametrize(
    ("lines", "field", "words"),
    [
        ("outcome: poem", "talk.outcome", "expected one of approval"),
        ("outcome: selection", "", "needs options"),
        ("outcome: structured", "", "needs a schema"),
        ("model: --dangerous", "talk.model", "a model's name"),
        ("cwd: ../elsewhere", "talk.cwd", "within the worktree"),
        ("cwd: /etc", "talk.cwd", "within the worktree"),
        ("cwd: 'C:/x'", "talk.cwd", "within the worktree"),
        ('cwd: "a\\\\..\\\\b"', "talk.cwd", "within the worktree"),
        ("cwd: a/.git/hooks", "talk.cwd", "within the worktree"),
        ("cwd: ~/x", "talk.cwd", "within the worktree"),
        ("mcp: servers.json", "talk.mcp", "not the name of its file"),
        ("mcpConfig: {a: 1}", "talk.mcpConfig.mcpServers", "missing"),
        ("mcp: {mcpServers: {a: run}}", "talk.mcp.mcpServers.a", "a mapping"),
        ("timeout: soon", "talk.timeout", "duration"),
        ("timeout: 0", "talk.timeout", "1 to"),
        ("timeout: true", "talk.timeout", "1 to"),
        ("grace: -1", "talk.grace", "0 to"),
        ("transcript: perhaps", "talk.transcript", "true or false"),
        ("resume: ../x", "talk.resume", "an earlier gate"),
        ("system: [a]", "talk.system", "text"),
        ("checkpoint: true\noutcome: freeform", "talk.checkpoint", "is an approval"),
    ],
)
def test_wrong_terms_name_their_field(lines: str, field: str, words: str) -> None:
    """With the file, and what was expected."""
    with pytest.raises(BadDocument) as caught:
        with_talk(lines)
    assert caught.value.message.startswith("ask.yaml")
    assert field in caught.value.message
    assert words in caught.value.message


def test_the_line_of_a_wrong_term_is_named() -> None:
    """As of every other field."""
    with pytest.raises(BadDocument, match=r"ask\.yaml, line 5: talk\.model"):
        with_talk("outcome: approval\nmodel: -x")


def test_other_systems_words_are_understood() -> None:
    """Their names for our terms, in a file that asks."""
    asked = with_talk(
        "systemPrompt: Be kind.\ncaptureTranscript: true\nmcpConfig: {mcpServers: {}}\ntimeout: 30m\n"
        "resumeSession: 7k2f\noutcomeSchema: {type: selection, options: [A, B]}"
    )
    assert asked.labels == ("A", "B")
    assert asked.talk == Talk(
        "selection", system="Be kind.", transcript=True, mcp={"mcpServers": {}}, timeout=1800, resume="7k2f"
    )
    assert with_talk("outcomeSchema: {type: structured, schema: {type: object}}").schema == {"type": "object"}


def test_a_strange_term_is_ignored_in_a_record() -> None:
    """As every field is that a reader does not know; whoever asks is told."""
    terms = "mood: gentle\noutcome: approval"
    assert parse_talk(codec.parse_document(terms.encode(), "q.yaml")) == Talk("approval")
    with pytest.raises(BadDocument, match="mood: there is no such field"):
        with_talk(terms)


def test_a_checkpoint_is_an_approval_unless_said() -> None:
    """Nothing else could go on or stop."""
    assert with_talk("checkpoint: true").talk == Talk("approval", checkpoint=True)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"type": "text", "talk": Talk()}, "not a conversation"),
        ({"type": "session", "talk": Talk("selection")}, "needs options"),
        ({"type": "session", "talk": Talk("structured")}, "needs a schema"),
        ({"type": "session", "talk": Talk("approval"), "options": [Option("A")]}, "has no options"),
        ({"type": "session", "talk": Talk(), "schema": {"type": "object"}}, "has no schema"),
        ({"type": "session", "options": [Option("A")]}, "has no options"),
    ],
)
def test_a_draft_that_does_not_hang_together_is_refused(how: dict[str, object], words: str) -> None:
    """Before anything is written."""
    with pytest.raises(Usage, match=words):
        question("Talk", **how)  # type: ignore[arg-type]


def test_a_draft_keeps_what_belongs_to_its_outcome() -> None:
    """Options with a selection, a schema with a structured one."""
    chosen = question("Talk", type="session", talk=Talk("selection"), options=[Option("A"), Option("B")])
    assert (chosen.labels, chosen.other) == (("A", "B"), False)
    assert question("Talk", type="session", talk=Talk("structured"), schema=SCHEMA).schema == SCHEMA


def test_only_a_conversation_has_such_terms() -> None:
    """Another question with them is a mistake, and says so."""
    data = b"prompt: Which?\ntype: text\ntalk: {outcome: approval}\n"
    with pytest.raises(BadDocument, match="not a conversation"):
        read_draft(codec.parse_document(data, "ask.yaml"))


@pytest.mark.parametrize(
    ("folder", "ending"), [("answers", "timeout"), ("answers", "cancelled"), ("stops", "completed")]
)
def test_an_ending_stands_where_it_belongs(folder: str, ending: str) -> None:
    """An answer completes a conversation, a stop does not: neither may say otherwise."""
    event = answer("words") if folder == "answers" else Remark(EARLY, ADA, "words")
    data = dump_event(event) + f"session:\n  outcome: {ending}\n  seconds: 3\n".encode()
    with pytest.raises(BadDocument, match=r"session\.outcome"):
        parse_event(folder, data, "e.yaml")


@pytest.mark.parametrize(
    "line", ["seconds: -1", "status: '<b>'", "source: rumour", "confirmed: 1", f"summary: {'x' * 40_000}"]
)
def test_a_wrong_word_about_a_conversation_is_refused(line: str) -> None:
    """Wherever it comes from, a record says it in our words."""
    said = {"outcome": "completed", "seconds": "3"}
    name, _, value = line.partition(": ")
    lines = "".join(f"  {n}: {v}\n" for n, v in {**said, name: value}.items())
    with pytest.raises(BadDocument, match=f"session.{name}"):
        parse_event("answers", dump_event(answer("words")) + f"session:\n{lines}".encode(), "a.yaml")


@given(st.text(max_size=200), st.integers(0, 3))
def test_a_transcript_is_kept_within_its_bounds(text: str, times: int) -> None:
    """Its end is kept, and what acts on a terminal made visible: any transcript goes into a document and back."""
    whole = text * (times * 500 + 1)
    short = kept(whole)
    assert len(short.encode()) <= MOST_TRANSCRIPT
    said = answer("words", Conversation("completed", 1, transcript=short))
    assert parse_event("answers", dump_event(said), "a.yaml") == said


def test_words_longer_than_a_record_takes_are_cut() -> None:
    """A record that is written can be read."""
    said = parse_event(
        "answers", dump_event(answer("words", Conversation("completed", 1, summary="x" * 40_000))), "a.yaml"
    )
    assert isinstance(said, Answer)
    assert said.session is not None
    assert said.session.summary == "x" * 32 * 1024


def test_the_end_of_a_long_transcript_is_kept() -> None:
    """What was decided stands there."""
    short = kept("\x1b[31mfirst " + "ü" * MOST_TRANSCRIPT + " last")
    assert short.endswith("ü last")
    assert short.startswith("[…")
    assert len(short.encode()) <= MOST_TRANSCRIPT
    assert kept("\x1b[2Jhello\n") == "\\x1b[2Jhello"


def test_the_terms_may_be_written_otherwise() -> None:
    """Another program's order and style of the fields is read as well."""
    data = dump_event(opened(questions=(ASKED["approval"],)))
    again = parse_event(
        None, data.replace(b"      outcome: approval\n", b"      {outcome: approval}\n"), "q.yaml"
    )
    assert isinstance(again, Opened)
    assert again.questions == (ASKED["approval"],)


def test_a_request_of_another_system_is_understood() -> None:
    """Flat, with its terms under `session_config`."""
    data = b"type: interactive_session\nprompt: Review\nsession_config: {model: opus, timeout: 1800}\n"
    (only,) = read_draft(codec.parse_document(data, "ask.yaml")).questions
    assert only.talk == Talk(model="opus", timeout=1800)
