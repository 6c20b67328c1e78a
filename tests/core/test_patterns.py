"""Patterns: matched like Python's own where both mean the same, in bounded time, and refused where they cannot be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.questions.patterns import Pattern, UnfitPattern


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", ["", "a"], []),
        ("a", ["a", "bab"], ["", "b"]),
        ("^a$", ["a"], ["a\n", "ba", "aa"]),
        ("a|^b$|", ["x"], []),
        ("^(?:a|bc)+$", ["a", "abc", "bcbc"], ["", "ab", "b"]),
        ("^a{2}$", ["aa"], ["a", "aaa"]),
        ("^a{2,}$", ["aa", "aaaa"], ["a"]),
        ("^a{1,3}?$", ["a", "aaa"], ["", "aaaa"]),
        (r"^\d\D\w\W\s\S$", ["1a_- x"], ["aaaaaa", "٣a_- x"]),
        (r"^[a-c\d_.-]+$", ["a1_.-"], ["d", ""]),
        (r"^[\w-.]+$", ["a-.b"], ["/"]),
        ("^[^a-c]$", ["d", "\n"], ["a", ""]),
        ("^[^]$", ["a", "\n"], [""]),
        (r"^[\b\-\]]+$", ["\b-]"], ["b"]),
        ("^.$", ["a", "é", "😀"], ["\n", "\u2028"]),
        (r"^\x41\u00e9\t\.\/$", ["Aé\t./"], ["Aé\t.x"]),
        ("^(a?){3}$", ["", "aaa"], ["aaaa"]),
        ("^(){99}(^)*b$", ["b"], ["c"]),
        ("a{0}b", ["b"], ["a"]),
        ("$^", [""], ["a"]),
        ("^((a*)*)*$", ["", "aaaa"], ["b"]),
        ("]}", ["]}"], ["]"]),
    ],
)
def test_a_pattern_matches_as_in_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    """Anywhere in the text unless anchored; `$` is the very end; digits are ASCII."""
    compiled = Pattern(pattern)
    assert [text for text in [*yes, *no] if compiled.found_in(text)] == yes


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", r"no `\\1`"), (r"\bword", r"no `\\b`"), (r"\p{L}", r"no `\\p`"), ("(?=a)", "no lookaround"),
        ("(?<n>a)", "no lookaround"), ("(?i)a", "no lookaround"), ("(a", r"a `\(` without"), ("a)", r"a `\)` without"),
        ("[a", r"a `\[` without"), ("[]", "some character fits"), (r"[^\s\S]", "some character fits"), ("*a", "nothing to repeat"),
        ("a**", "repetition of a repetition"), ("a+{2}", "nothing to repeat"), ("^*", "nothing to repeat"), ("a{", "without a count"),
        ("a{x}", "without a count"), ("a{2,1}", "ends before it begins"), ("a{99999}", "without a count"),
        ("[z-a]", "a range"), (r"[a-\d]", "a range"), ("a\\", "at the end"), (r"\x4", "2 hexadecimal digits"),
        (r"\u12 4", "4 hexadecimal digits"), ("a" * 501, "at most 500 characters"), ("(a{1000}){1000}", "at most 1000 places"),
        ("((((a{9}){9}){9}){9}){9}", "at most 1000 places"), ("(" * 30 + ")" * 30, "at most 20 groups"), ("(?", "no lookaround"),
        ("{2}", "nothing to repeat"), ("|+", "nothing to repeat"), ("(){0,9999}", "at most 1000 places"),
    ],
)  # fmt: skip
def test_an_unfit_pattern_is_refused(pattern: str, words: str) -> None:
    """What cannot be matched in one pass, or is no pattern, is named."""
    with pytest.raises(UnfitPattern, match=words):
        Pattern(pattern)


PIECES = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\d", "1", ""]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PIECES, st.text("ab1", max_size=6))
def test_patterns_agree_with_python(pattern: str, text: str) -> None:
    """Where both know the syntax they find the same, on texts short enough for Python."""
    assert Pattern(pattern).found_in(text) == (re.search(pattern, text) is not None)


@given(st.text("ab(|)[]^-*+?{},0123\\dwxu.$", max_size=30), st.text("ab1", max_size=20))
def test_any_pattern_is_read_or_refused(pattern: str, text: str) -> None:
    """No pattern at all makes reading or matching fail in another way."""
    try:
        compiled = Pattern(pattern)
    except UnfitPattern:
        return
    assert compiled.found_in(text) in (True, False)
    assert compiled.weight >= len(compiled.states)
