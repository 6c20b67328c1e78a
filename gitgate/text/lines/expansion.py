"""Text: what a shell makes of one word: by its braces, by its sets of letters, and where a value is cut at its blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

MOST_BRACES = 64
SEQUENCE = re.compile(r"[\w-]+\.\.[\w-]+(?:\.\.-?\d+)?")

# A part of a word that is known when the line runs. None of these is a character (Unicode reserves them), so that no text has one.
# Of the environment or of the names of files: one word, or any number of words.
ONE, SPLIT = "\ufdd0", "\ufdd1"
# Of what the line itself makes, sets or is given: one word, or any number of words.
MADE, MADE_SPLIT = "\ufdd2", "\ufdd3"
GAPS = frozenset((ONE, SPLIT, MADE, MADE_SPLIT))
SPLITS = frozenset((SPLIT, MADE_SPLIT))
# Of use while a word is read, and gone afterwards.
OPEN, COMMA, CLOSE, BRACKET, BREAK = "\ufdd4", "\ufdd5", "\ufdd6", "\ufdd7", "\ufdd8"
MARKS = re.compile("[\ufdd0-\ufdef]")


def unmarked(word: str) -> str:
    """Return a word in which nothing is expanded by braces, and nothing is cut."""
    return whole(unmarked_braces(word)).replace(BREAK, " ")


def whole(word: str) -> str:
    """Return a word with its sets of letters replaced by a gap."""
    first = word.find(BRACKET)
    if first < 0:
        return word
    last = word.rfind("]")
    if last < first:
        return word.replace(BRACKET, "[")
    return word[:first] + SPLIT + word[last + 1 :].replace(BRACKET, "[")


def expand(word: str) -> list[str]:
    """Return the words that a shell makes of one: by its braces, and where a value is cut at its blanks."""
    made = map(unmarked_braces, braced(word) if OPEN in word and CLOSE in word else (word,))
    return [whole(part) for each in made for part in each.split(BREAK) if part or BREAK not in each]


def unmarked_braces(word: str) -> str:
    for mark, letter in ((OPEN, "{"), (COMMA, ","), (CLOSE, "}")):
        word = word.replace(mark, letter)
    return word


def braced(word: str) -> Iterator[str]:
    """Return the words of a brace expansion, or one with a gap where they are too many."""
    tree, rest = alternatives(word, 0, 0)
    if rest < len(word) or len(tree) > MOST_BRACES:
        yield SPLIT
        return
    yield from tree


def alternatives(word: str, place: int, depth: int) -> tuple[list[str], int]:
    """Return the texts that a word may be from this place on; at a depth, up to the comma or brace that ends it."""
    made = [""]
    while place < len(word):
        letter = word[place]
        if depth and letter in (COMMA, CLOSE):
            break
        if letter != OPEN or depth > 8:
            next_place = next(
                (n for n in range(place, len(word)) if word[n] in (OPEN, COMMA, CLOSE)), len(word)
            )
            next_place = max(next_place, place + 1)
            part = word[place:next_place]
            made = [each + part for each in made]
            place = next_place
            continue
        choices, place = choices_of(word, place, depth)
        if len(made) * len(choices) > MOST_BRACES:
            return [SPLIT], len(word)
        made = [first + second for first, second in product(made, choices)]
    return made, place


def choices_of(word: str, place: int, depth: int) -> tuple[list[str], int]:
    """Return the alternatives between two braces, and the place behind them; the brace itself where it is none."""
    start, found, several = place, [], False
    place += 1
    while True:
        texts, place = alternatives(word, place, depth + 1)
        found += texts
        if place >= len(word):
            return ["{"], start + 1
        place += 1
        if word[place - 1] == CLOSE:
            break
        several = True
    if several:
        return found, place
    inner = word[start + 1 : place - 1]
    return ([SPLIT] if SEQUENCE.search(inner) else [f"{{{text}}}" for text in found]), place
