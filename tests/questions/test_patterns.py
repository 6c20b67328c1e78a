"""Patterns of a form's fields: matched as in ECMA-262, in bounded time, and refused where they cannot be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadDocument
from gitgate.questions.forms import check_schema, validate


def found(pattern: str, text: str) -> bool:
    return not validate({"properties": {"a": {"pattern": pattern}}}, {"a": text})


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
        (r"^[\d-z]+$", ["1-z"], ["5a"]),
        (r"^[[a&&b~~]+$", ["[a&~b"], ["]"]),
        (r"^\<[^]\>$", ["<\n>"], ["a"]),
        (r"^\0\cA\ \é$", ["\0\x01 é"], []),
        (r"\bb\B.", ["a bb", "éba"], ["ab", "b"]),
        (r"^(?<year>\d{4})-\p{Lu}$", ["2030-É"], ["2030-é"]),
    ],
)
def test_a_pattern_matches_as_in_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    """Anywhere in the text unless anchored; `$` is the very end; digits are ASCII."""
    assert [text for text in [*yes, *no] if found(pattern, text)] == yes


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", r"no `\\1`"), (r"(?<n>a)\k<n>", r"no `\\k`"), (r"\Aa\z", r"no `\\A`"), ("(?=a)", r"no lookaround or flag `\(\?=a`"),
        ("a(?!b)", "no lookaround"), ("(?<=a)b", "no lookaround"), ("(?<!a)b", "no lookaround"), ("(?i)a", "no lookaround or flag"),
        ("(?P<n>a)", "no lookaround"), ("(?", "no lookaround"), ("(a", "well formed"), ("a)", "well formed"), ("[a", r"a `\[` without"),
        ("[", r"a `\[` without"), ("[]", "some character fits"), ("[]a]", "some character fits"), ("*a", "well formed"), ("a{", "well formed"),
        ("a{x}", "well formed"), ("a{2,1}", "well formed"), ("[z-a]", "well formed"), (r"[a-\d]", "well formed"), ("a\\", "well formed"),
        (r"\x4", "well formed"), (r"\u12 4", "well formed"), ("a" * 501, "at most 500 characters"), ("(a{1000}){1000}", "small once"),
        ("((((a{99}){99}){99}){99}){99}", "small once"), ("(" * 240 + ")" * 239, "well formed"), ("\ud800", "well formed"),
    ],
)  # fmt: skip
def test_an_unfit_pattern_is_refused_when_it_is_asked(pattern: str, words: str) -> None:
    """What cannot be matched in one pass, or is no pattern, is named with its file, line and field."""
    schema = {"properties": {"a": {"items": {"pattern": pattern}}}}
    with pytest.raises(BadDocument, match=words) as refused:
        check_schema(schema, "question.yaml")
    where = (
        "question.yaml: schema.properties.a.items.pattern: expected a pattern that is matched in one pass: "
    )
    assert str(refused.value).startswith(where)
    with pytest.raises(BadDocument, match=words):
        check_schema({"$defs": {"unused": {"pattern": pattern}}}, "question.yaml")


@pytest.mark.slow
def test_many_large_patterns_are_refused() -> None:
    """Each is compiled before it is asked, and together they may not take long."""
    fields = {f"a{i}": {"pattern": f"^.{{1,500}}{i}$"} for i in range(200)}
    with pytest.raises(
        BadDocument, match=r"schema.properties.a\d+.pattern: expected fewer or smaller patterns"
    ):
        check_schema({"properties": fields}, "question.yaml")
    check_schema({"properties": dict(list(fields.items())[:40])}, "question.yaml")


def test_a_problem_shows_the_pattern_as_it_was_written() -> None:
    """The library's engine spells some of it otherwise."""
    schema = {"properties": {"a": {"pattern": r"^.[\w-.]$"}, "b": {"not": {"pattern": r"^.[\w-.]$"}}}}
    assert validate(schema, {"a": "", "b": "ab"}) == [
        r'a: "" does not match "^.[\w-.]$"',
        r'b: {"pattern":"^.[\\w-.]$"} is not allowed for "ab"',
    ]


PIECES = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\d", r"\b", "1", ""]),
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
    assert found(pattern, text) == (re.search(pattern, text, re.ASCII) is not None)


@given(st.text("ab(|)[]^-*+?{},0123\\dwxu.$", max_size=30), st.text("ab1", max_size=20))
def test_any_pattern_is_read_or_refused(pattern: str, text: str) -> None:
    """No pattern at all makes reading or matching fail in another way."""
    try:
        problems = validate({"properties": {"a": {"pattern": pattern}}}, {"a": text})
    except BadDocument as refused:
        problems = [refused.message]
    assert len(problems) <= 1
