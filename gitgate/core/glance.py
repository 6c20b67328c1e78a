"""Core: what can be told of a document at a glance, for those who need not read it where it surely has nothing for them."""

from __future__ import annotations


def may_have(data: bytes, key: str) -> bool:
    """Whether it may have a field. An escape can spell a key otherwise, and what is no UTF-8 may be anything: only a reader
    can say what that holds.
    """
    if key.encode() in data or b"\\" in data or b"\0" in data:
        return not is_blank(data)
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def is_blank(data: bytes) -> bool:
    """Whether it holds comments alone, or nothing, by whatever any reader takes for the end of a line."""
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data and all(line.strip(" \t")[:1] in ("", "#") for line in lines)
