"""At a glance: nothing that a reader could find in a document is taken for nothing."""

from __future__ import annotations

import pytest

from gitgate.document import is_blank, may_have


@pytest.mark.parametrize(
    "text", ["", "\n \n", "# policy: {}\n", "\ufeff# policy:\r\n\r\n  # \\ approvals\n", "\t# policy"]
)
def test_comments_alone_are_nothing(text: str) -> None:
    """Whatever they speak of."""
    assert is_blank(text.encode())
    assert not may_have(text.encode(), "policy")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
def test_a_line_that_is_none_is_something(end: str) -> None:
    """A comment ends where any reader may end it."""
    data = f"# nothing{end}policy: {{}}\n".encode()
    assert not is_blank(data)
    assert may_have(data, "policy")


@pytest.mark.parametrize(
    "data",
    ["# a\npolicy:\n".encode("utf-16"), b"#\0", b"# \xe8\n", "\u00a0# policy".encode(), b"---"],
)
def test_what_only_a_reader_can_tell_is_read(data: bytes) -> None:
    """It may be a policy, or broken, and then nothing is allowed."""
    assert not is_blank(data)
