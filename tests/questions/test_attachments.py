"""Attachments: a name stays inside the record on every system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadDocument
from gitgate.questions.file import MOST_ATTACHMENTS, check_name, check_names, folded_name


@pytest.mark.parametrize(
    "name", ["a.png", "shots/before.png", ".gitignore", "a b.txt", "日本/語.md", "x.git", "con1", "a" * 200]
)
def test_a_plain_name_is_kept(name: str) -> None:
    """Relative, printable, not too long: as it is."""
    assert check_name(name, "question.yaml") == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "the path of a file"), ("/etc/passwd", "a relative path"), ("~/x", "a relative path"),
        ("../x", "without `..`"), ("a/../x", "without `..`"), ("a/..", "without `..`"), ("a//b", "without empty parts"),
        ("a/", "without empty parts"), ("./a", "without empty parts"), ("a\\b", "without `\\`"), ("C:x", "without `:`"),
        ("a:stream", "without `:`"), ("a?", "without `?`"), ("-rf", "does not start with a dash"), ("a\nb", "without control"),
        ("a\x1b[2J", "without control"), ("a\u202eb", "without control"), ("a\u200bb", "without control"), ("a\0", "without control"),
        ("\udcffx", "without control"), (" a", "without control"), ("a ", "without control"), ("a/ b", "begin or end with a blank"),
        ("a.", "end with a dot"), ("a./b", "end with a dot"), ("...", "end with a dot"), (".git/config", "outside .git"),
        ("a/.GIT/x", "outside .git"), ("git~1", "outside .git"), ("GIT~2/x", "outside .git"), (".ｇｉｔ/x", "outside .git"),
        ("NUL", "Windows"), ("a/com1.txt", "Windows"), ("aux.h", "Windows"), ("a" * 201, "at most 200 bytes"),
        ("é" * 101, "at most 200 bytes"), ("a/" * 8 + "a", "at most 8 parts"),
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(name: str, expected: str) -> None:
    """The error names the file, the line, the field, what was expected and the name, harmlessly."""
    with pytest.raises(BadDocument) as caught:
        check_name(name, "question.yaml", line=3, field="attachments[0]")
    assert caught.value.message.startswith("question.yaml, line 3: attachments[0]: expected ")
    assert expected in caught.value.message
    assert caught.value.message.isprintable()


@given(st.text(st.characters(), max_size=40))
def test_an_accepted_name_stays_inside(name: str) -> None:
    """Whatever is accepted is relative, goes nowhere up, and can be written."""
    try:
        check_name(name, "x")
    except BadDocument:
        return
    parts = name.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert not any(folded_name(part) == ".git" for part in parts)
    assert name.encode()


@pytest.mark.parametrize(
    "names",
    [["a", "a"], ["a.png", "A.PNG"], ["x/é", "X/e\u0301"], ["straße", "STRASSE"], ["a", "a/b"], ["A/b", "a"]],
)
def test_names_that_meet_are_refused(names: list[str]) -> None:
    """Two names that some system takes for one, or a file that is also a folder, would overwrite each other."""
    with pytest.raises(BadDocument, match=r"expected (names that differ|no file that is also a folder)"):
        check_names(names, "question.yaml")


def test_names_are_few() -> None:
    """As many as allowed, and not one more."""
    names = [f"{n}.txt" for n in range(MOST_ATTACHMENTS)]
    assert check_names(names, "question.yaml") == tuple(names)
    with pytest.raises(BadDocument, match=f"at most {MOST_ATTACHMENTS} files"):
        check_names([*names, "more.txt"], "question.yaml")
