"""Core: whether a document may have a field, at a glance, for those who need not read it where it surely has none."""

from __future__ import annotations


def may_have(data: bytes, key: str) -> bool:
    """An escape can spell a key otherwise, and what is no UTF-8 may be anything: only a reader can say what that holds."""
    if key.encode() in data or b"\\" in data or b"\0" in data:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False
