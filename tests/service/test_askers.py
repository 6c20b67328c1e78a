"""The name of an agent that gave none: of the program that called, in words that a list can show."""

from __future__ import annotations

import pytest

from gitgate.service.askers import plain


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("coder", "coder"),
        ("memfd:sealed", "sealed"),
        ("my agent (2)", "my-agent-2"),
        ("g++ 4_2.x", "g++-4_2.x"),
        ("агент", "агент"),
        ("\x1b[2J\u202e", "2J"),
        (":;", ""),
    ],
)
def test_a_programs_name_as_a_part_of_an_agents(named: str, shown: str) -> None:
    """Whatever it calls itself: no escapes, blanks or marks of the system's get into the name."""
    assert plain(named) == shown
