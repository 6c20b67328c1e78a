"""Fuzz: how an input becomes another. What costs more than it should shows in long ones, which libFuzzer seldom tries."""

from __future__ import annotations

import random
from collections.abc import Callable

LONGEST = 1 << 16
# Where texts break: what ends a line for some readers and not for others, what hides, what is half of something.
ODD = (
    *("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\u202e", "\ufeff", "\u200b", "\U000e0041", "\x00"),
    *("²", "٣", "Ⅷ", "ſ", "İ", "ß", "\ud83d".encode("utf-8", "surrogatepass").decode("latin-1"), "１"),
    *('"', "'", "\\", "\\u0000", "\\ud800", "{", "[", "]", "}", ": ", "- ", "#", "&a", "*a", "!!", "<<: ", "---\n", "%", "`"),
    *("9" * 5000, "1e999", "-1", "0x", "1_0", "NaN", "true", "null", "~", "../", "refs/hitl/open/", "Hitl-Gate: ", "*" * 40),
)  # fmt: skip


def mutated(data: bytes, most: int, seed: int, usual: Callable[[bytes, int], bytes]) -> bytes:
    """Mostly as libFuzzer does it; now and then with an odd text put in, or a part of it repeated many times."""
    dice = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    way = dice.randrange(32)
    if way == 0 and data:
        return stretched(data, most if dice.randrange(4) == 0 else min(most, 4_000), dice)
    if way < 6:
        place = dice.randrange(len(data) + 1)
        odd = dice.choice(ODD).encode("utf-8", "surrogatepass")
        return (data[:place] + odd + data[place + dice.randrange(3) :])[:most]
    return usual(data, most)


def stretched(data: bytes, most: int, dice: random.Random) -> bytes:
    """A part of it over and over; nested where it opens something."""
    start = dice.randrange(len(data))
    part = data[start : start + dice.choice((1, 2, 3, 8, 40, 400))]
    many = dice.choice((50, 1_000, most)) // len(part) + 1
    return (data[:start] + part * min(many, most // len(part) + 1) + data[start:])[:most]
