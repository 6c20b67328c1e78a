"""Model: a gate's name. Ten characters that are easy to read out, made from what the gate says."""

from __future__ import annotations

ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"  # base32 without the look-alikes 0 o 1 l
LENGTH = 10
SHORTEST_PREFIX = 4
_LETTERS = frozenset(ALPHABET)


def gate_id(opened: bytes) -> str:
    """The id of the gate that this `question.yaml` opens; the document holds a nonce, so that ids never repeat."""
    from hashlib import sha256  # late: a list makes no names

    number = int.from_bytes(sha256(opened).digest()[:8], "big")
    return "".join(ALPHABET[(number >> (5 * place)) & 31] for place in range(LENGTH))


def no_word(gate: str) -> bool:
    """Whether the letters that people type of this name hold a digit: it can then be no word of a reply."""
    return any(letter.isdigit() for letter in gate[:SHORTEST_PREFIX])


def is_id(text: str) -> bool:
    return len(text) == LENGTH and _LETTERS.issuperset(text)


def is_prefix(text: str) -> bool:
    return SHORTEST_PREFIX <= len(text) <= LENGTH and _LETTERS.issuperset(text)


def file_name(contents: bytes) -> str:
    """The unique part of an event's file: the same words said again are the same file, so a repeat adds nothing."""
    from hashlib import sha256

    return sha256(contents).hexdigest()[:16]
