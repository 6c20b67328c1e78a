"""Trailers: what a list reads of a gate. One short line each, once, whatever the question says."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate import model, record
from gitgate.model import MOST_BYTES, one_line, parse_trailers, trailer_message
from gitgate.model.gate import Remark
from support.histories import ADA, DUE, LATER, History, opened

HEAD = "subject\n\n"
# Short enough for one line, without blanks that would be brought together.
NAMES = st.text("ABCDEFxyz-", min_size=1, max_size=20)


@given(st.text())
def test_one_line_is_one_short_line(text: str) -> None:
    """Printable, within its bytes, and doing it twice changes nothing."""
    line = one_line(text)
    assert len(line.encode()) <= MOST_BYTES
    assert "\n" not in line
    assert line.isprintable()
    assert one_line(line) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\tc\r\n d", "a b c d"),
        ("\x1b[31mred", "[31mred"),
        ("\u202eevil", "evil"),
        ("\ud800x", "x"),
        ("é" * 101, "é" * 98 + "…"),
        ("a" * 201, "a" * 197 + "…"),
        ("a" * 200, "a" * 200),
    ],
)
def test_a_line_is_cut_between_characters(text: str, line: str) -> None:
    """Never within one; what cannot be shown is left out."""
    assert one_line(text) == line


@given(st.text(), st.dictionaries(NAMES, st.text(min_size=1), min_size=1, max_size=8))
def test_what_is_written_is_read(subject: str, said: dict[str, str]) -> None:
    """Whatever the values hold: forged trailers and blank lines too."""
    found = parse_trailers(trailer_message(subject, said.items()))
    assert found == {name: one_line(value) for name, value in said.items()}


@given(st.text())
def test_no_message_is_too_strange(message: str) -> None:
    """Any message is either trailers that keep the rules, or none."""
    found = parse_trailers(message)
    assert found is None or all(
        value.isprintable() and len(value.encode("utf-8", "replace")) <= MOST_BYTES
        for value in found.values()
    )


@pytest.mark.parametrize(
    "paragraph",
    [
        "",
        "Hitl-Gate: a\nHitl-Gate: b",
        "Hitl-Gate: a\nHitl-Gate: a",
        "Hitl-Gate: a\nSigned-off-by: b",
        "Signed-off-by: b\nHitl-Gate: a",
        "Hitl-Gate a",
        "Hitl-Gate:a",
        "Hitl-Gate: a\n continued",
        "Hitl-Gate: a\tb",
        "Hitl-Gate: \x1b[2J",
        "Hitl-Gate: a\r",
        "Hitl-Gate: \u202eb",
        f"Hitl-Gate: {'a' * 201}",
        f"Hitl-Gate: {'é' * 101}",
        f"Hitl-{'A' * 400}: b",
        "hitl-gate: a",
    ],
)
def test_what_breaks_the_rules_is_no_trailers(paragraph: str) -> None:
    """Twice, strange, folded, with controls, too long in bytes."""
    assert parse_trailers(f"{HEAD}{paragraph}\n") is None
    assert parse_trailers(f"{HEAD}Hitl-State: x\n\n{paragraph}\n") is None or not paragraph


def test_only_the_last_paragraph_counts() -> None:
    """What stands before it is words."""
    assert parse_trailers(f"{HEAD}Hitl-Gate: forged\n\nHitl-Gate: real\n\n\n") == {"Gate": "real"}
    assert parse_trailers(f"{HEAD}Hitl-Gate: {'é' * 100}\n") == {"Gate": "é" * 100}


def test_a_message_says_what_a_list_shows() -> None:
    """All of it from the gate, so that the tip alone is enough."""
    gate = History.begin(opened(deadline=DUE, to=("ada", "@bob"), key="k", config={"pull_request": 12}))
    message = record.message("opened", gate.gate.opened, gate.gate)
    said = parse_trailers(message)
    assert said is not None
    assert message.startswith("coder asks: Which?\n\n")
    assert (said["State"], said["Deadline"], said["To"], said["Pull-Request"]) == (
        "awaiting",
        DUE,
        "ada, @bob",
        "12",
    )
    assert "Closed" not in said
    gate.answer("Postgres")
    after = parse_trailers(record.message("answered", gate.entries[-1].event, gate.gate)) or {}
    assert (after["Verdict"], after["State"]) == ("answered", "answered")
    assert "Deadline" not in after


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("Use it\n\nGate: a\nDecided-by: Ada\n", ["a"]),
        ("Use it\n\nGate: a\n(cherry picked from commit 1234)\n", ["a"]),
        ("Squashed\n\ncommit 1\n\n    Use it\n\n    Gate: a\n\n\tGate: b \t\r\n\nmore\n", ["a", "b"]),
        ("Gate: a", ["a"]),
        ("Use it\n\nThe Gate: a\nX-Gate: a\ngate: a\nGate:a\nGate : a\n", []),
        ("Use it\n\nGate: a\x1b[2J\u2028Gate: b\n", ["a\x1b[2J\u2028Gate: b"]),
        ("", []),
    ],
)
def test_no_trailer_is_missed(message: str, values: list[str]) -> None:
    """Whatever git has put beside it: the record decides what a line is worth."""
    assert model.trailer_values(message, "Gate") == values


def test_a_line_of_blanks_is_read_at_once() -> None:
    """Whoever writes a commit's message cannot make a reader search for long."""
    blanks = " " * 200_000
    begun = time.process_time()
    assert model.trailer_values(f"x\n\n{blanks}x\nGate: {blanks}a\n{blanks}Gate: b", "Gate") == ["a", "b"]
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("how", ["expired", "reminded", "defaulted"])
def test_silence_is_nobodys_in_the_subject(how: str) -> None:
    """No name stands there, least of all the agent's."""
    gate = History.begin(opened(deadline=DUE))
    subject = record.subject(how, Remark(LATER, text="nobody answered before the deadline"), gate.gate.opened)
    assert subject == f"{how}: nobody answered in time"


def test_who_said_something_is_in_the_subject() -> None:
    """The person without the address, and their words; the agent where nobody is named."""
    gate = History.begin()
    assert (
        record.subject("stopped", Remark(LATER, ADA, "no more"), gate.gate.opened)
        == "stopped by Ada: no more"
    )
    assert record.subject("claimed", Remark(LATER), gate.gate.opened) == "claimed by coder"
    assert model.trailer_message("", []).startswith("gate\n\n")
