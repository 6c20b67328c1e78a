"""What is almost a reply: counted where it can mean nothing else, told where it may be meant as one, and left alone as talk."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer
from gitgate.model.gate import Asker, Entry, Gate, Opened, Option, Question, Work
from gitgate.record.events import begin
from gitgate.surfaces.forge import Near, ReplySaid, may_answer, parse_reply, read_reply, split

ONE, TWO = "7k2fw9c3ab", "beef23cdez"
LETTERS = "thanksabcd"  # a name without a digit


def gate_of(*questions: Question) -> Gate:
    opened = Opened(
        "title", questions, Asker("agent", "2026-01-01T00:00:00Z"), Work(None, None, None), "nonce"
    )
    return begin(ONE, Entry("a" * 40, "opened", opened), opened)


# commands


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/approve, looks good", ReplySaid("approve", "looks good")),
        ("/Approve.", ReplySaid("approve", "")),
        ("/approve!", ReplySaid("approve", "")),
        ("/approve!!! ship it", ReplySaid("approve", "ship it")),
        ("/approve;\nlater more", ReplySaid("approve", "later more")),
        ("/reject: too risky", ReplySaid("reject", "too risky")),
        ("/stop.", ReplySaid("stop", "")),
        ("/stop: we do it differently", ReplySaid("stop", "we do it differently")),
        ("/answer: x", ReplySaid("answer", "x")),
        ("/answer:\nx: y", ReplySaid("answer", "x: y")),
        ("/answer: : x", ReplySaid("answer", ": x")),
        ("/choose: 2", ReplySaid("choose", "2")),
        (f"/approve, {ONE} fine", ReplySaid("approve", "fine", ONE)),
    ],
)
def test_punctuation_behind_a_command_is_no_part_of_it(body: str, said: ReplySaid) -> None:
    """Where no word of an answer could begin so; before a word that is one, a colon alone."""
    assert parse_reply(body, [ONE]) == said
    assert may_answer(body)


@pytest.mark.parametrize(
    "body",
    [
        "/approve?", "/approve? or not", "/approve...", "/approve…", "/approve,looks good", "/answer, x", "/answer. x", "/choose, 2",
        "/choose! 2", "/answer:x", "/reject?!", "/approved", "/Aprove", "/approv", "/appprove", "/apporve", "/accept", "/rejected", "/anwser x",
        "/chose 2", "/stopped", "/yes", "LGTM /approve", "LGTM\n\nand so I /approve it", "Great. /approve, thanks", "LGTM /aproved",
        "@bot /approve", "@bot, /accept", "- /approve", "# /approve", "**/approve**", "I like it. /answer is how one would say it.",
    ],
)  # fmt: skip
def test_what_is_near_a_command_is_told_and_is_none(body: str) -> None:
    """A slip, a question, another word for it, or one within a line."""
    assert may_answer(body)
    for gates in ([ONE], [ONE, TWO]):
        with pytest.raises(Near) as told:
            parse_reply(body, gates)
        assert told.value.command
        assert told.value.meant(gates) == gates
        assert told.value.meant([]) == []


@pytest.mark.parametrize(
    "body",
    [
        "/approve/it", "/answer.md", "see /answer.md", "see /approve/ there", "src/approve", "https://example.org/approve", "cd /usr/answer",
        "/retest", "/assign @ada", "/hold", "/close", "/ok-to-test", "/react", "/approve-it", "/approve_it", "/approve=1", "/prove\u00eb",
        "`/approved`", "use `LGTM /approve`", "> LGTM /approve", "    /approved", "```\n/approved\n```", "<!-- /approved -->",
        'write "ok /approve" there', "write “ok /approve” there", "[LGTM /approve](https://example.org)", "GET /answer gives 404",
        "the /answers endpoint", "the /select route", "<details>\n\n/approved\n\n</details>", "a /b /c /d", "and/or",
    ],
)  # fmt: skip
def test_paths_and_others_commands_stay_talk(body: str) -> None:
    """As do code and what somebody else said."""
    assert parse_reply(body, [ONE]) is None
    assert not may_answer(body)


def test_a_real_reply_counts_beside_what_is_near_one() -> None:
    """Whoever says it rightly is heard."""
    assert parse_reply("/approve\n\nI tried /approved before", [ONE]) == ReplySaid(
        "approve", "I tried /approved before"
    )
    assert parse_reply(f"{ONE}: as with /approved", [ONE]) == ReplySaid("answer", "as with /approved", ONE)


def test_our_own_words_are_near_nothing() -> None:
    """They name gates, and may stand there in the name of a person whose token we have."""
    body = f"<!-- gitgate told=c1 -->\nthis counts for gate **{ONE}**: /approved"
    assert parse_reply(body, [ONE]) is None
    assert not may_answer(body)


@pytest.mark.parametrize(
    ("said", "question", "words"),
    [
        (ReplySaid("approve", ""), Question("db", "Which?", "choice", (Option("a"), Option("b"))), "/approve is for approvals; this is a choice"),
        (ReplySaid("reject", "no"), Question("t", "What?", "text"), "/reject is for approvals; this is a text question"),
        (ReplySaid("choose", "1"), Question("ok", "Go?", "approval"), "/choose is for questions with options; this is an approval"),
    ],
)  # fmt: skip
def test_a_command_that_does_not_fit_is_told_in_the_words_of_replies(
    said: ReplySaid, question: Question, words: str
) -> None:
    """A terminal's flags are nothing to whoever writes a comment."""
    with pytest.raises(BadAnswer, match=words) as told:
        read_reply(said, gate_of(question))
    assert "--" not in told.value.message
    with pytest.raises(BadAnswer, match="2 questions, and each needs its answer"):
        read_reply(said, gate_of(question, Question("more", "More?", "text")))


# names


@pytest.mark.parametrize("name", [ONE, ONE.upper()])
@pytest.mark.parametrize(
    "body",
    [
        "for {}: use Postgres", "use Postgres (gate {})", "{} Postgres", "gate {} Postgres", "gate **{}** looks odd", "use Postgres ({}).",
        "{}, Postgres", "{} - yes", "see {}", "Postgres\nfor {}", "Postgres for _{}_!",
    ],
)  # fmt: skip
def test_a_name_without_a_colon_may_be_talk(body: str, name: str) -> None:
    """It is no answer, and its author can be told how to write one; of the gates that wait."""
    words = body.format(name)
    assert may_answer(words)
    with pytest.raises(Near, match=ONE) as told:
        parse_reply(words, [TWO, ONE])
    assert not told.value.command
    assert told.value.meant([TWO, ONE]) == [ONE]
    assert told.value.meant([TWO]) == []
    assert parse_reply(words, [TWO]) is None


def test_a_name_and_a_colon_is_the_answer_with_the_word_gate_or_without() -> None:
    """What counted goes on counting."""
    for body in (f"gate {ONE}: Postgres", f"{ONE}: Postgres"):
        assert parse_reply(body, [ONE]) == ReplySaid("answer", "Postgres", ONE)


@pytest.mark.parametrize(
    "body",
    [
        "> {}", "`{}` Postgres", "(gate `{}`)", "see https://example.org/{}", "refs/hitl/open/{}", "[x]({})", "[gate {}](https://example.org)",
        "[gate {}][x]", "{}.md", "x{} y", "{}x y", "gate-{}/x", "#{} x", 'it said "gate {} waits"', "    {} x", "<!-- {} --> x", "<b title='{}'>x</b>",
    ],
)  # fmt: skip
def test_a_name_in_a_quote_code_or_link_is_talk(body: str) -> None:
    """As is one that is part of something else."""
    assert parse_reply(body.format(ONE), [ONE]) is None


@pytest.mark.parametrize(
    "body", ["for {}: Postgres", "use Postgres (gate {})", "{} Postgres", "gate **{}** x"]
)
def test_a_name_that_could_be_a_word_is_looked_at_where_names_stand(body: str) -> None:
    """And nowhere else: the forge is not asked about every word of ten letters."""
    assert may_answer(body.format(LETTERS))
    with pytest.raises(Near):
        parse_reply(body.format(LETTERS), [LETTERS])
    assert not may_answer(f"I say {LETTERS} to that")


def test_a_command_within_a_line_is_about_the_gate_that_it_names() -> None:
    """Of several that wait."""
    with pytest.raises(Near) as told:
        parse_reply(f"LGTM /approve {TWO}", [ONE, TWO])
    assert told.value.command
    assert told.value.meant([ONE, TWO]) == [TWO]


@given(st.lists(st.sampled_from([ONE, TWO, "/approve", "/approved", "/aprove", "LGTM", "@bot", "\n", ":", ",", "?", "!", ".", " ", " ", "`", "(", ")", '"']), max_size=14))  # fmt: skip
def test_only_a_command_or_a_name_with_its_colon_is_an_answer(parts: list[str]) -> None:
    """Whatever else may be meant as one is unclear at the most; and whatever is told was worth asking about."""
    body = "".join(parts)
    try:
        said = parse_reply(body, [ONE, TWO])
    except BadAnswer:
        assert may_answer(body)
        return
    if said is not None:
        begins = [line.lstrip(" ") for line in body.split("\n")]
        plain = body.lstrip(" \n`").startswith((ONE, TWO)) and ":" in body
        assert plain or any(
            line.startswith("/approve") and not line.startswith("/approved") for line in begins
        )


LINES = [
    "/aprove ", "/x ", "**/", "“", '"', "[a](", "[a][", "[", "@a ", "- ", "gate ", "for ", "(", ONE, f"{ONE} ", f"{ONE}*", "/yes", "GET /x ",
]  # fmt: skip


# Many, and seconds are counted: not with every run.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.no_cover
@pytest.mark.usefixtures("no_garbage_collected")
@pytest.mark.parametrize("part", LINES)
def test_the_longest_line_costs_little(part: str) -> None:
    """Four times as much takes about four times as long, whatever is repeated, on one line or below each other."""
    for end in ("", "\n"):

        def seconds(length: int, end: str = end) -> float:
            body = ("x " + (part + end) * (length // len(part + end) + 1))[:length]
            split.cache_clear()
            start = time.thread_time()
            may_answer(body)
            with contextlib.suppress(BadAnswer):
                parse_reply(body, [TWO])
            return time.thread_time() - start

        seconds(1000)
        short = min(seconds(16_384) for _ in range(2))
        # What else the machine does only adds to it: one of five looks suffices, and no square fits into any.
        assert any(seconds(65_536) < max(10 * short, 0.1) for _ in range(5))
