"""Text: what others wrote is shown without what a terminal obeys or an eye misses."""

from __future__ import annotations

import subprocess
import sys
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.text import clip, hang, indent, neutral, one_line, width, wrap

FAMILY = "👨\u200d👩\u200d👧"
ANY = st.text(st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]8;;http://evil\x07click", "\\x1b]8;;http://evil\\x07click"),
        ("a\rb\r\nc", "a\\rb\nc"),
        ("é\rb\r\nc", "é\\rb\nc"),
        ("a\x00\x08\x7f", "a\\x00\\x08\\x7f"),
        ("a\x9b31m\x85", "a\\x9b31m\\x85"),
        ("a\u202egpj.exe", "a\\u202egpj.exe"),
        ("\u2066a\u2069\u200e\u200f\u061c", "\\u2066a\\u2069\\u200e\\u200f\\u061c"),
        ("pass\u200bword\u2060\ufeff\xad\u034f", "pass\\u200bword\\u2060\\ufeff\\xad\\u034f"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("a\U000e0041\U000e007f", "a\\U000e0041\\U000e007f"),
        ("\ue000\U000f0000\U0010ffff", "\\ue000\\U000f0000\\U0010ffff"),
        ("\ud800a\udcff", "\\ud800a\\udcff"),
        ("\u3164\uffa0\u115f", "\\u3164\\uffa0\\u115f"),
        ("\ufdd0\ufffe\U0001ffff", "\\ufdd0\\ufffe\\U0001ffff"),
        ("a\ufe0f", "a\\ufe0f"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f\\ufe0f"),
        ("❤\ufe0f 1\ufe0f\u20e3", "❤\ufe0f 1\ufe0f\u20e3"),
        (FAMILY, FAMILY),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("a\u200db", "a\\u200db"),
        ("👨\u200d", "👨\\u200d"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क\u094d\u200dष", "क\u094d\u200dष"),
        ("ad\u200cmin", "ad\\u200cmin"),
        ("e\u0301", "e\u0301"),
        ("z" + "\u0301" * 6, "z" + "\u0301" * 4 + "\u0301".encode("unicode_escape").decode() * 2),
        ("日本語 שלום", "日本語 שלום"),
    ],
)
def test_what_acts_or_hides_is_spelt_out(text: str, shown: str) -> None:
    """Controls, escapes, bidi and invisible characters become ASCII; what is only written otherwise stays."""
    assert neutral(text) == shown


@given(ANY)
def test_nothing_invisible_is_left(text: str) -> None:
    """Whatever comes in, no control and no format character comes out but line breaks, tabs and kept joiners."""
    left = neutral(text)
    kept = set("\n\t\u200c\u200d")
    assert not [c for c in left if category(c) in ("Cc", "Cs", "Co", "Zl", "Zp") and c not in kept]
    assert not set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\ufeff"
    ) & set(left)
    assert neutral(left) == left
    left.encode()


@given(ANY)
def test_one_line_is_one_line(text: str) -> None:
    """No break and no run of blanks is left; clipped it is as narrow as was asked."""
    line = one_line(text)
    assert line.splitlines() in ([], [line])
    assert line == one_line(line)
    assert width(one_line(text, 7)) <= 7


def test_one_line_joins_lines() -> None:
    """Breaks and tabs become single spaces."""
    assert one_line("  Which\r\n\tone?\n\n") == "Which one?"
    assert one_line("a  b") == "a b"
    assert one_line("Which library is it?", 10) == "Which lib…"


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0), ("abc", 3), ("é", 1), ("e\u0301", 1), ("日本", 4), ("ｱ", 1), ("Ａ", 2), ("😀", 2), (FAMILY, 6),
        ("👍🏽", 4), ("1\ufe0f\u20e3", 2), ("👩\u200d💻", 4), ("❤", 1), ("❤\ufe0f", 2), ("🇩🇪", 2), ("한", 2), ("\u1112\u1161\u11ab", 2), ("שלום", 4),
    ],
)  # fmt: skip
def test_width_counts_cells(text: str, cells: int) -> None:
    """Wide characters take two cells, marks and joiners none, joined pictures as many as on the terminal that parts them."""
    assert width(text) == cells


@pytest.mark.parametrize(
    ("text", "cells", "clipped"),
    [
        ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abcd", 1, "…"), ("abcd", 0, ""), ("a bc", 3, "a…"), ("", 0, ""),
        ("日本語", 6, "日本語"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("日本", 1, "…"), ("日", 0, ""),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"), (FAMILY + "ab", 7, FAMILY + "…"), (FAMILY + "ab", 6, "…"), ("a" + FAMILY, 2, "a…"),
    ],
)  # fmt: skip
def test_clip_cuts_between_characters(text: str, cells: int, clipped: str) -> None:
    """What does not fit ends with an ellipsis, never within a composed character."""
    assert clip(text, cells) == clipped


@given(ANY, st.integers(0, 40))
def test_clip_always_fits(text: str, cells: int) -> None:
    """Clipped text fits, and text that fits is not touched."""
    line = one_line(text)
    assert width(clip(line, cells)) <= cells
    if width(line) <= cells:
        assert clip(line, cells) == line


def test_wrap_writes_a_letter() -> None:
    """Lines break at blanks, keep their own indent and the prefix; too long words are cut; empty lines stay empty."""
    text = "The quick brown fox jumps.\n\n    indented line that is long\n" + "x" * 25
    assert wrap(text, 20, "| ").split("\n") == [
        "| The quick brown",
        "| fox jumps.",
        "",
        "|     indented line",
        "|     that is long",
        "| " + "x" * 18,
        "| " + "x" * 7,
    ]
    assert wrap("日本語日本語日本語", 8) == "日本語日\n本語日本\n語"
    assert wrap("日本語日。本語「日本」、語", 8) == "日本語\n日。本語\n「日\n本」、語"
    assert wrap("。" * 6, 8) == "。。\n。。。。"
    assert indent("a\n\nb", "  ") == "  a\n\n  b"


@given(
    st.text(st.characters(categories=["L", "Zs", "N", "P"], include_characters="\n\t"), max_size=200),
    st.integers(8, 40),
)
def test_wrap_loses_nothing(text: str, cells: int) -> None:
    """Every word is still there, in order, and every line fits."""
    wrapped = wrap(text, cells)
    assert "".join(wrapped.split()) == "".join(text.split())
    assert all(width(line) <= cells for line in wrapped.split("\n"))


def test_an_address_is_not_cut() -> None:
    """It stands on a line of its own, whole, so that it can be clicked and copied; any other long word is cut."""
    address = "https://example.org/" + "x" * 40
    assert wrap(f"See {address} or <{address}>.", 20, "  ").split("\n") == [
        "  See",
        f"  {address}",
        "  or",
        f"  <{address}>.",
    ]
    assert (
        hang("a name: some more words that go on", 20, "  ")
        == "  a name: some more\n      words that go\n      on"
    )
    assert hang("short", 20, "  ") == "  short"


def test_plain_text_loads_no_tables() -> None:
    """A list of ASCII rows needs neither Unicode tables nor the expressions for them."""
    code = (
        "import sys; from gitgate import text; text.one_line('a\\x1b b', 3); text.wrap('a b c', 8)\n"
        "print('unicodedata' in sys.modules, text._suspect.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 0\n"
