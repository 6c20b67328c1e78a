"""People: told apart by their address, however the name is spelt."""

from __future__ import annotations

import pytest

from gitgate.model import address, same_person


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Ada <ada@example.org>", "Ada Lovelace <ADA@example.org>", True),
        ("Ada <ada@example.org>", "Ada <ada@example.com>", False),
        ("@ada", "@Ada", True),
        ("@ada", "@bob", False),
        ("", "", False),
        ("", "Ada <ada@example.org>", False),
        ("Ada <>", "Ada <>", True),
        ("Ada <>", "Bob <>", False),
    ],
)
def test_who_is_the_same(one: str, other: str, alike: bool) -> None:
    """Nobody is nobody, not even the same nobody."""
    assert same_person(one, other) is alike
    assert same_person(other, one) is alike


def test_an_address_is_the_last_in_brackets() -> None:
    """A name that holds a bracket gives nobody another address."""
    assert address("Eve <ada@example.org> <eve@example.org>") == "eve@example.org"
