"""Core: when two names are one person. A quorum counts people, and only an answer's author amends it."""

from __future__ import annotations


def address(by: str) -> str:
    """What tells people apart in `Name <email>`: the address, else all of it. The name alone may be spelt anyhow."""
    _, mark, rest = by.rpartition("<")
    email = rest.partition(">")[0] if mark else ""
    return (email.strip() or by.strip()).casefold()


def same(one: str, other: str) -> bool:
    """Whether both are the same person; nobody is not even the same as nobody."""
    return bool(one) and address(one) == address(other)
