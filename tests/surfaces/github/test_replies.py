"""What a comment says as a reply: the grammar, and all that is not meant as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer
from gitgate.model.gate import Asker, Entry, Gate, Opened, Option, Question, Work
from gitgate.questions import Given
from gitgate.questions.answers import read_answer
from gitgate.record.events import begin
from gitgate.surfaces.forge import ReplySaid, may_answer, parse_reply, read_reply

ONE, TWO = "7k2fw9c3ab", "beef23cdez"
NOWHERE = Work(None, None, None)


def gate_of(*questions: Question) -> Gate:
    opened = Opened("title", questions, Asker("agent", "2026-01-01T00:00:00Z"), NOWHERE, "nonce")
    return begin(ONE, Entry("a" * 40, "opened", opened), opened)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/approve", ReplySaid("approve", "")),
        ("/approve after 18:00 only", ReplySaid("approve", "after 18:00 only")),
        ("/APPROVE", ReplySaid("approve", "")),
        ("/reject not yet\nand not so", ReplySaid("reject", "not yet\nand not so")),
        ("/answer Postgres", ReplySaid("answer", "Postgres")),
        ("/answer\nfirst\nsecond", ReplySaid("answer", "first\nsecond")),
        ("/choose 2", ReplySaid("choose", "2")),
        ("/stop we do it differently", ReplySaid("stop", "we do it differently")),
        ("Thanks!\r\n\r\n/answer Postgres\r\n", ReplySaid("answer", "Postgres")),
        ("   /answer Postgres", ReplySaid("answer", "Postgres")),
        (f"/approve {ONE} ship it", ReplySaid("approve", "ship it", ONE)),
        (f"/approve `{ONE}`", ReplySaid("approve", "", ONE)),
        (f"/approve {ONE[:6]} ship it", ReplySaid("approve", "ship it", ONE)),
        ("/answer beef", ReplySaid("answer", "beef")),
        ("/answer use\n/usr/bin/env", ReplySaid("answer", "use\n/usr/bin/env")),
        ("/answer\n```\nSELECT 1;\n```", ReplySaid("answer", "```\nSELECT 1;\n```")),
        (f"> gate **{ONE}** · asked\n\nPostgres, please", ReplySaid("answer", "Postgres, please", ONE)),
        (f"> gate **{ONE}**\n\n/approve", ReplySaid("approve", "", ONE)),
        (f"{ONE}: eu", ReplySaid("answer", "eu", ONE)),
        (f"gate `{ONE}`: eu", ReplySaid("answer", "eu", ONE)),
        ("/approve\n\nOn Tue Ada wrote:\n> /reject", ReplySaid("approve", "On Tue Ada wrote:")),
    ],
)  # fmt: skip
def test_what_is_said(body: str, said: ReplySaid) -> None:
    """One command at the start of a line, with its words; or a gate that is quoted or named."""
    assert parse_reply(body, [ONE]) == said
    assert may_answer(body)


def test_a_whole_name_and_a_colon_is_a_name_where_no_gate_is_shown() -> None:
    """If it can be no word; a quote counts only where its gate is shown, and goes before what may be a number."""
    said = parse_reply(f"gate {ONE}: eu", [])
    assert said == ReplySaid("answer", "eu", ONE)
    assert said is not None
    assert said.plain
    assert parse_reply("abcdefghjk: eu", []) is None
    assert parse_reply(f"> {ONE}\n\neu", []) is None
    assert parse_reply(f"> gate **{ONE}**\n\n2026102012: eu", [ONE]) == ReplySaid(
        "answer", "2026102012: eu", ONE
    )


@pytest.mark.parametrize(
    "body",
    [
        "", "I think so.", "> /approve", ">/approve\n", "`/approve`", "/approve-it", "//approve",
        "```\n/approve\n```", "~~~sh\n/approve\n~~~", "````\n```\n/approve\n````", "```\n/approve", "<!-- /approve -->",
        "<!--\n/approve\n-->", "<!--\n/approve", "    /approve", "\t/approve", "/ approve", "／approve", f"> {ONE}", f"> {ONE} {TWO}\n\nyes", f"x{ONE}: eu", "- [x] Postgres",
        "<details>\n> /approve\n</details>",
    ],
)  # fmt: skip
def test_what_is_only_talk(body: str) -> None:
    """Quoted, fenced, indented, hidden, or something else that looks like it."""
    assert parse_reply(body, [ONE, TWO]) is None


@pytest.mark.parametrize("body", ["/approve\n/reject", "/answer a\n\n/answer b", "/approve\n/stop no"])
def test_two_replies_in_one_comment_are_none(body: str) -> None:
    """Nobody could tell which counts."""
    with pytest.raises(BadAnswer, match="one reply"):
        parse_reply(body, [ONE])


def test_a_short_name_counts_where_several_wait() -> None:
    """Four letters then, a digit among them; and where one waits, a short word is an answer."""
    assert parse_reply("/answer 7k2f stew", [ONE, TWO]) == ReplySaid("answer", "stew", ONE)
    assert parse_reply("/answer beef2, stew", [ONE, TWO]) == ReplySaid("answer", "stew", TWO)
    assert parse_reply("/answer beef stew", [TWO]) == ReplySaid("answer", "beef stew")
    assert parse_reply("/answer beef stew", [ONE]) == ReplySaid("answer", "beef stew")
    assert parse_reply("/answer 7k2 stew", [ONE, TWO]) == ReplySaid("answer", "7k2 stew")


@pytest.mark.parametrize(
    ("words", "gates"),
    [
        ("thanks a lot", [ONE, "thanks23ab"]),  # whoever asks can have such a name
        ("beef", [ONE, TWO]),
        ("beef2", [TWO, "beef2yyyyy"]),
        ("thanks", ["thanks23ab", ONE]),
    ],
)
def test_a_word_that_could_be_a_name_is_neither(words: str, gates: list[str]) -> None:
    """It is refused, and the whole name is told: nothing that is said ever comes to mean another gate."""
    with pytest.raises(BadAnswer, match="a whole name is sure"):
        parse_reply(f"/approve {words}", gates)
    assert parse_reply(f"/approve {gates[-1]} {words}", gates) == ReplySaid("approve", words, gates[-1])
    assert parse_reply("/approve thanks23 a lot", ["thanks23ab"]) == ReplySaid(
        "approve", "a lot", "thanks23ab"
    )
    assert parse_reply("/approve thanksab", ["thanksabcd"]) == ReplySaid("approve", "", "thanksabcd")


@pytest.mark.parametrize(
    "body",
    [
        "{}: eu",
        "gate {}: eu",
        "Gate `{}`: eu",
        "/answer {} eu",
        "> gate **{}**\n\neu",
        "/ANSWER\n{}\neu",
        "**{}**: eu",
    ],
)
def test_a_name_is_typed_in_any_case(body: str) -> None:
    """As people do, on a telephone."""
    for name in (ONE, ONE.upper(), ONE.title()):
        assert parse_reply(body.format(name), [ONE, TWO]) == ReplySaid("answer", "eu", ONE)
        assert may_answer(body.format(name))


@pytest.mark.parametrize(
    "body", ["/ſtop it", "/chooſe 2", "/anſwer x", "/ＳＴＯＰ it", "/ѕtop it", "/rej\u0435ct"]
)
def test_a_letter_that_only_looks_alike_is_no_command(body: str) -> None:
    """Nor is it one in another case: what is neither of our verbs is talk."""
    assert parse_reply(body, [ONE]) is None
    assert not may_answer(body)


def test_a_letter_that_only_looks_alike_is_in_no_name() -> None:
    """The Kelvin sign becomes a k in small letters, and is none; a name with it is a word like any other."""
    alike = ONE.replace("k", "\u212a")
    assert parse_reply(f"/answer {alike} eu", [ONE]) == ReplySaid("answer", f"{alike} eu")
    assert parse_reply(f"{alike}: eu", [ONE]) is None
    assert parse_reply(f"> gate **{alike}**\n\neu", [ONE]) is None
    assert parse_reply("/answer be\u017f423 eu", ["bes423cdez"]) == ReplySaid("answer", "be\u017f423 eu")


def test_any_blank_ends_a_command() -> None:
    """Telephones and word processors type blanks of their own."""
    assert parse_reply("/approve\u00a0ship it", [ONE]) == ReplySaid("approve", "ship it")
    assert parse_reply("/answer\u2003eu", [ONE]) == ReplySaid("answer", "eu")


@pytest.mark.parametrize("body", ["a management statement", "see src/approve", "> quoted\n\nyes", ""])
def test_talk_is_not_worth_a_request(body: str) -> None:
    """The forge is not asked about every comment that holds a word of ten letters."""
    assert not may_answer(body)


def test_a_whole_name_of_another_thread_counts() -> None:
    """Whoever types all of it means that gate."""
    assert parse_reply(f"/approve {ONE}", []) == ReplySaid("approve", "", ONE)


CHOICE = Question("db", "Which?", "choice", (Option("Postgres"), Option("SQLite"), Option("7")), other=True)
CHOICES = Question("dbs", "Which?", "choices", (Option("a"), Option("b"), Option("c, d")))
FORM = Question(
    "f",
    "Fill",
    "form",
    schema={"type": "object", "properties": {"n": {"type": "integer"}, "t": {"type": "string"}}},
)


@pytest.mark.parametrize(
    ("said", "questions", "values", "note"),
    [
        (ReplySaid("choose", "2"), (CHOICE,), {"db": "SQLite"}, ""),
        (ReplySaid("choose", "7"), (CHOICE,), {"db": "7"}, ""),
        (ReplySaid("choose", "postgres\nbecause we have it"), (CHOICE,), {"db": "Postgres"}, "because we have it"),
        (ReplySaid("answer", "post"), (CHOICE,), {"db": "Postgres"}, ""),
        (ReplySaid("answer", "other: MySQL"), (CHOICE,), {"db": "MySQL"}, ""),
        (ReplySaid("choose", "1, 3"), (CHOICES,), {"dbs": ["a", "c, d"]}, ""),
        (ReplySaid("choose", "c, d"), (CHOICES,), {"dbs": ["c, d"]}, ""),
        (ReplySaid("answer", "n: 3\nt: two\nlines"), (FORM,), {"f": {"n": 3, "t": "two\nlines"}}, ""),
        (ReplySaid("answer", '{"n": 3}'), (FORM,), {"f": {"n": 3}}, ""),
        (ReplySaid("answer", "t: other: x"), (Question("t", "?", "text"),), {"t": "other: x"}, ""),
        (ReplySaid("answer", "other: x"), (Question("t", "?", "text"),), {"t": "other: x"}, ""),
        (ReplySaid("answer", "db: 7\nok: yes"), (CHOICE, Question("ok", "?", "approval")), {"db": "7", "ok": True}, ""),
        (ReplySaid("answer", "yes"), (Question("ok", "?", "approval"),), {"ok": True}, ""),
        (ReplySaid("reject", "no time"), (Question("ok", "?", "approval"),), {"ok": False}, "no time"),
    ],
)  # fmt: skip
def test_what_it_means(
    said: ReplySaid, questions: tuple[Question, ...], values: dict[str, object], note: str
) -> None:
    """As an answer to the gate's questions."""
    meant, words = read_reply(said, gate_of(*questions))
    assert read_answer(questions, meant)[0] == values
    assert words == note


@pytest.mark.parametrize(
    ("said", "questions"),
    [
        (ReplySaid("approve", ""), (CHOICE,)),
        (ReplySaid("choose", "1"), (Question("t", "?", "text"),)),
        (ReplySaid("choose", ""), (CHOICE,)),
        (ReplySaid("choose", "0"), (CHOICE,)),
        (ReplySaid("answer", ""), (Question("t", "?", "text"),)),
        (ReplySaid("answer", "perhaps"), (Question("ok", "?", "approval"),)),
        (ReplySaid("answer", "just words"), (FORM,)),
        (ReplySaid("answer", "db: 7"), (CHOICE, Question("ok", "?", "approval"))),
        (ReplySaid("choose", "1"), (CHOICE, Question("ok", "?", "approval"))),
    ],
)  # fmt: skip
def test_what_does_not_fit(said: ReplySaid, questions: tuple[Question, ...]) -> None:
    """Silence, near misses and the wrong command are no answers."""
    with pytest.raises(BadAnswer):
        read_answer(questions, read_reply(said, gate_of(*questions))[0])


@given(st.text(max_size=400))
def test_any_text_is_read_without_harm(body: str) -> None:
    """Whatever somebody writes is a reply, talk, or a plain refusal."""
    try:
        said = parse_reply(body, [ONE, TWO])
    except BadAnswer:
        return
    if said is not None:
        assert may_answer(body)
        assert Given(text=said.text) is not None


@given(st.text(alphabet="`~>/ \n<!-aprove", max_size=120))
def test_an_approval_can_be_seen(body: str) -> None:
    """What is taken for one stands at the start of a line that is not quoted."""
    try:
        said = parse_reply(body, [ONE])
    except BadAnswer:
        return
    if said is not None and said.verb == "approve":
        assert any(line.lstrip(" ").lower().startswith("/approve") for line in body.split("\n"))
