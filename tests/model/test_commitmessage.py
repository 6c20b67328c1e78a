"""Trailers of commits: added once, in the last paragraph, whatever the message looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.model import with_trailers

WANTED = (("Gate", "7k2fabcdef"), ("Decided-by", "Ada <ada@example.org>"))
ADDED = "Gate: 7k2fabcdef\nDecided-by: Ada <ada@example.org>\n"


@pytest.mark.parametrize(
    ("message", "after"),
    [
        ("subject\n", f"subject\n\n{ADDED}"),
        ("subject", f"subject\n\n{ADDED}"),
        ("subject\n\nbody: with a colon\nand more\n", f"subject\n\nbody: with a colon\nand more\n\n{ADDED}"),
        (
            "subject\n\nbody\n\nSigned-off-by: B <b@x>\n",
            f"subject\n\nbody\n\nSigned-off-by: B <b@x>\n{ADDED}",
        ),
        ("subject\n\nGate: other\n", f"subject\n\nGate: other\n{ADDED}"),
        ("Fix: subject\n", f"Fix: subject\n\n{ADDED}"),
        ("", f"\n\n{ADDED}"),
        ("s\n\nKey: a\n continued\n", f"s\n\nKey: a\n continued\n{ADDED}"),
        (f"subject\n\n{ADDED}", f"subject\n\n{ADDED}"),
        ("subject\n\nGate: 7k2fabcdef\n", f"subject\n\n{ADDED}"),
    ],
)
def test_trailers_are_added(message: str, after: str) -> None:
    """As a paragraph of their own, or to the trailers that are there; a subject is never taken for one."""
    assert with_trailers(message, WANTED) == after


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r")))
def test_adding_them_again_changes_nothing(message: str) -> None:
    """Whatever was written, the second time finds them there."""
    once = with_trailers(message, WANTED)
    assert with_trailers(once, WANTED) == once
    assert once.startswith(message.rstrip("\n"))
