"""Core: what a plain word of a document means, by YAML 1.2's core schema, and which words YAML 1.1 would misread."""

from __future__ import annotations

import re
from math import isfinite

from .field import Field

WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
NUMBER_STARTS = frozenset("+-.0123456789")
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
MOST_DIGITS = (
    400  # the longest form that Python gives a finite number is shorter; reading digits costs their square
)


def resolve(word: str, field: Field) -> str | int | float | bool | None:
    """The value of a plain, unquoted word; `field` is its place, for errors."""
    if word in WORDS:
        return WORDS[word]
    if word[0] not in NUMBER_STARTS:
        return word
    if INTEGER.fullmatch(word):
        return _integer(word, field)
    if FLOAT.fullmatch(word):
        number = float(word) if len(word) <= MOST_DIGITS else float("inf")
        if not isfinite(number):
            field.fail(
                "expected a number that a double holds; found a larger or longer one (in quotes it is text)"
            )
        return number
    if NOT_FINITE.fullmatch(word):
        field.fail(f"expected a finite number; found {word} (in quotes it is text)")
    return word


def _integer(word: str, field: Field) -> int:
    number = HIGHEST + 1
    if len(word) <= MOST_DIGITS:
        base = {"0o": 8, "0x": 16}.get(word[:2], 10)
        number = int(word, base)
    if not LOWEST <= number <= HIGHEST:
        field.fail("expected a whole number of at most 64 bits; found a larger one (in quotes it is text)")
    return number
