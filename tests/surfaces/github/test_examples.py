"""Replies that the comment suggests: whatever options are called, each reads back to what it says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer
from gitgate.model import ALPHABET
from gitgate.model.gate import Asker, Entry, Gate, Opened, Option, Question, Work
from gitgate.questions.answers import read_answer
from gitgate.record.events import begin
from gitgate.surfaces.forge import MOST_REPLIES, ReplySaid, examples, option_replies, parse_reply, read_reply
from gitgate.surfaces.forge.comment import View, render
from gitgate.surfaces.forge.words import span

ONE, TWO = "7k2fw9c3ab", "beef23cdez"
ODD = [
    "1", "2", "3", "#1", "#2", "##1", "1, 2", "#1, #2", "other: x", "other: something else", "a `b` c", "```sh", "````", "x\u200by",
    "x\\u200by", "a\tb", "a b", "<!-- x -->", "<!--", "> quoted", "*bold*", "7k2fw9c3ab", "beef", "beef23", "beef23cdez", "beef23cdez yes",
    "management", "2345", "yes, no", "yes", "no", "café", "Cafe\u0301", "x" * 79, "y" * 500, "/approve", "@ada", "one\ntwo", "db: 1", "İ",
]  # fmt: skip


def gate_of(*questions: Question) -> Gate:
    opened = Opened(
        "title", questions, Asker("agent", "2026-01-01T00:00:00Z"), Work(None, None, None), "nonce"
    )
    return begin(ONE, Entry("a" * 40, "opened", opened), opened)


def read_back(line: str, gate: Gate, gates: list[str]) -> object:
    said = parse_reply(line, gates)
    assert said is not None
    assert said.gate in (None, gate.id)
    values, _ = read_answer(gate.opened.questions, read_reply(said, gate)[0])
    return values


labels = (
    st.lists(
        st.one_of(
            st.sampled_from(ODD),
            st.integers(0, 12).map(str),
            st.text(alphabet=ALPHABET, min_size=4, max_size=10),
            st.text(alphabet="ab 1,#`\t<>!-\u200b:/\\", min_size=1, max_size=8),
            st.text(min_size=1, max_size=100),
        ).map(lambda label: label.strip()),
        min_size=1,
        max_size=6,
        unique_by=lambda label: label.casefold(),
    )
    .map(lambda found: tuple(label for label in found if label))
    .filter(bool)
)


@given(
    labels, st.sampled_from(["choice", "choices"]), st.booleans(), st.sampled_from(["", ONE]), st.booleans()
)
def test_a_suggested_option_is_that_option(
    called: tuple[str, ...], kind: str, other: bool, named: str, several: bool
) -> None:
    """The first one, or the first two; by number there is always a way. A name stands where a word could be another's."""
    gate = gate_of(Question("db", "Which?", kind, tuple(Option(label) for label in called), other=other))
    gates = [ONE, TWO] if several else [ONE]
    found = examples(gate, named, gates)
    chosen = [line for line in found if line.startswith("/choose")]
    assert chosen
    for line in chosen:
        value = read_back(line, gate, gates)
        wanted = [called[:1], called[:2]] if kind == "choices" else [called[0]]
        got = value["db"]  # type: ignore[index]
        assert (tuple(got) if isinstance(got, list) else got) in wanted
    for line in (line for line in found if line.startswith("/answer")):
        assert read_back(line, gate, gates) in ({"db": "something else"}, {"db": ["something else"]})
    assert parse_reply(found[-1], gates) == ReplySaid("stop", "why the agent should not go on", named or None)


@given(labels, st.sampled_from(["choice", "choices"]))
def test_a_suggested_answer_to_several_questions_is_one(called: tuple[str, ...], kind: str) -> None:
    """A line each; the option is the first one, whatever it is called."""
    gate = gate_of(
        Question("db", "Which?", kind, tuple(Option(label) for label in called)),
        Question("ok", "Deploy?", "approval"),
        Question("why", "Why?", "text"),
    )
    line = next(line for line in examples(gate) if line.startswith("/answer"))
    first = called[0] if kind == "choice" else [called[0]]
    assert read_back(line, gate, [ONE]) == {"db": first, "ok": True, "why": "…"}


@given(labels, st.integers(0, 14), st.sampled_from(["", "#"]), st.sampled_from(["choose", "answer"]))
def test_a_number_is_never_one_of_two(called: tuple[str, ...], number: int, mark: str, verb: str) -> None:
    """The label of one option and the place of another is refused, and what it says instead is neither."""
    gate = gate_of(Question("db", "Which?", "choice", tuple(Option(label) for label in called)))
    word = f"{mark}{number}"
    by_label = [place for place, label in enumerate(called) if label == word]
    by_place = [number - 1] if 1 <= number <= len(called) else []
    try:
        value = read_back(f"/{verb} {word}", gate, [ONE])
    except BadAnswer as refused:
        for way in re.findall(r"write (.*)$", refused.message):
            for line in re.findall(r"/choose #*\d+", way):
                assert read_back(line, gate, [ONE])["db"] in called  # type: ignore[index]
        return
    meant = {called[place] for place in (*by_label, *by_place)}
    got = value["db"]  # type: ignore[index]
    assert len(meant) <= 1
    assert got in meant or got.casefold().startswith(word)


def test_an_ambiguous_number_is_told_what_would_not_be() -> None:
    """Both options, each by a number that nothing else is called."""
    gate = gate_of(Question("n", "How many?", "choice", tuple(Option(label) for label in ("3", "5", "1"))))
    with pytest.raises(BadAnswer, match=re.escape("write /choose #1 for 3, or /choose #3 for 1")) as refused:
        read_reply(ReplySaid("choose", "1"), gate)
    assert "more than one" in refused.value.message
    assert examples(gate)[0] == "/choose #1"
    assert read_back("/choose #1", gate, [ONE]) == {"n": "3"}
    assert read_back("/choose 5", gate, [ONE]) == {"n": "5"}
    with pytest.raises(BadAnswer, match="more than one"):
        read_reply(ReplySaid("answer", "1"), gate)


@pytest.mark.parametrize("label", ODD)
def test_what_is_suggested_stays_in_its_block(label: str) -> None:
    """No label closes the fence, and none opens a mark. What chooses an option stands beside it, and not once more below."""
    many = tuple(Option(f"no. {number} of many") for number in range(MOST_REPLIES))
    for others, chooses in (((Option("another one"),), False), (many, True)):
        gate = gate_of(Question("db", "Which?", "choice", (Option(label), *others)))
        body = render(View(gate))
        fence = re.findall(r"^(`{3,})text\n(/.*?)\n\1$", body, re.MULTILINE | re.DOTALL)
        assert len(fence) == 1
        own = option_replies(gate)
        shown = [way for way in examples(gate) if way not in own]
        assert fence[0][1].split("\n") == [way for way in shown if chooses or not way.startswith("/choose ")]
        assert all(span(way, 100) in body for way in own)
        assert own[:2] == ["/choose 1", "/choose 2"] or label in ("1", "2", "3", "#1", "#2", "##1")


@given(labels)
def test_each_option_has_a_reply_of_its_own(called: tuple[str, ...]) -> None:
    """Whatever the others are called."""
    gate = gate_of(Question("db", "Which?", "choice", tuple(Option(label) for label in called)))
    for label, line in zip(called, option_replies(gate), strict=True):
        assert read_back(line, gate, [ONE]) == {"db": label}


def test_digits_of_other_scripts_are_no_place_in_a_list() -> None:
    """They look alike, and some mean another number than they seem to."""
    options = (Option("a"), Option("b"), Option("c"))
    for word in ("２", "#２", "٢"):
        question = Question("db", "Which?", "choice", options)
        with pytest.raises(BadAnswer):
            read_answer((question,), read_reply(ReplySaid("choose", word), gate_of(question))[0])
