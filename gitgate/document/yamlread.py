"""Document: reads back what `yamlwrite` writes, without a YAML library: importing one costs more than reading a gate.

It knows the one style that is written: block mappings with plain keys, lists two columns in, plain and double-quoted
words on one line, literal blocks. Of anything else, also of every mistake, it says nothing (None), and the library reads
it and finds the words. The tests hold it against the library: what it does read, both read alike, places included.
"""

from __future__ import annotations

import re
from math import isfinite

from .field import Field, Limits, step

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


# A dash for an item, a key with its colon, and what follows on the line.
LINE = re.compile(
    r"^( *)(- )?(?:([A-Za-z_][A-Za-z0-9_-]{0,63}):(?: (?=[^ \n])|$))?(.*)$", re.ASCII | re.MULTILINE
)
SHORT = 40  # A key of so many letters is a step of a path as it is.
ESCAPE = re.compile(r'\\(?:([\\"ntr])|u([0-9a-f]{4})|U(000[1-9a-f][0-9a-f]{4}|0010[0-9a-f]{4}))')
SIMPLE = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
STARTS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
BLOCKS = {"|": 1, "|-": 0, "|+": 2}


class _Other(Exception):
    """Not the style that we write."""


def read_yaml(text: str, source: str, limits: Limits) -> Field | None:
    """The document, or None where the library has to look."""
    if "\t" in text or "\r" in text or not text.endswith("\n"):
        return None
    try:
        return _Reader(text, source, limits).document()
    except _Other:
        return None


class _Reader:
    def __init__(self, text: str, source: str, limits: Limits) -> None:
        self.lines = text.split("\n")
        self.parts: list[tuple[str, str, str, str]] = LINE.findall(text)
        if len(self.parts) != len(self.lines):
            raise _Other
        self.last = len(self.lines) - 1  # after the last newline stands nothing
        self.at = 0
        self.source = source
        self.left = limits.nodes
        self.depth = limits.depth

    def document(self) -> Field:
        self.count(1)
        top = Field(None, self.source, "", 1)
        self.mapping(top, 0, 1, "")
        if self.at != self.last:
            raise _Other
        return top

    def count(self, nodes: int) -> None:
        self.left -= nodes
        if self.left < 0:
            raise _Other

    def mapping(self, field: Field, indent: int, depth: int, lead: str) -> None:
        """The keys at `indent`; `lead` is the dash before the first of them, in a list."""
        if depth > self.depth:
            raise _Other
        entries: dict[str, Field] = {}
        field.value = entries
        while self.at < self.last:
            blanks, dash, key, rest = self.parts[self.at]
            if len(blanks) + len(dash) != indent or dash != lead:
                break
            if not key or key in WORDS or key in entries:
                raise _Other
            self.count(2)
            entry = Field(
                None, self.source, f".{key}" if len(key) <= SHORT else step(key), self.at + 1, field
            )
            entries[key] = entry
            self.at += 1
            self.value(entry, rest, indent, depth + 1)
            lead = ""
        if not entries:
            raise _Other

    def value(self, field: Field, rest: str, indent: int, depth: int) -> None:
        """What follows a key: on its line, or on the lines below, two columns further in."""
        if rest:
            self.word(field, rest, indent, depth)
            return
        deeper = indent + 2
        blanks, dash, key, _ = self.parts[self.at]
        if len(blanks) != deeper:
            raise _Other
        if dash:
            self.sequence(field, deeper, depth)
        elif key:
            self.mapping(field, deeper, depth, "")
        else:
            raise _Other

    def sequence(self, field: Field, indent: int, depth: int) -> None:
        if depth > self.depth:
            raise _Other
        entries: list[Field] = []
        field.value = entries
        while self.at < self.last:
            blanks, dash, key, rest = self.parts[self.at]
            if len(blanks) != indent or not dash:
                break
            self.count(1)
            item = Field(None, self.source, f"[{len(entries)}]", self.at + 1, field)
            entries.append(item)
            if key:
                self.mapping(item, indent + 2, depth + 1, dash)
            else:
                self.at += 1
                self.word(item, rest, indent, depth + 1)

    def word(self, field: Field, rest: str, indent: int, depth: int) -> None:
        """A value on one line, or a block that begins there."""
        if rest in BLOCKS:
            field.value = self.block(indent + 2, BLOCKS[rest])
        elif rest in ("[]", "{}"):
            if depth > self.depth:
                raise _Other
            field.value = [] if rest == "[]" else {}
        elif rest[:1] == '"':
            field.value = unquoted(rest)
        else:
            field.value = read_bare(rest, field)

    def block(self, indent: int, kept: int) -> str:
        """The lines of a literal block, and of its last newlines none, one or all (0, 1, 2)."""
        lead = " " * indent
        found: list[str] = []
        while self.at < self.last:
            line = self.lines[self.at]
            if line and not line.startswith(lead):
                break
            if line and not line.strip(" "):
                raise _Other  # blanks alone: whether they count is not for us to say
            found.append(line[indent:])
            self.at += 1
        body = "\n".join(found).rstrip("\n")
        if not found or not found[0] or found[0].startswith(" "):
            raise _Other
        if self.at < self.last and self.lines[self.at].startswith(lead[:-1]) and indent > 1:
            raise _Other
        ends = len(found) - body.count("\n")
        return body + "\n" * (0 if kept == 0 else 1 if kept == 1 else ends)


def unquoted(rest: str) -> str:
    """A double-quoted text on one line, with the escapes that we write."""
    body = rest[1:-1]
    if len(rest) < 2 or rest[-1] != '"':
        raise _Other
    if "\\" not in body and '"' not in body:
        return body
    left = ESCAPE.sub("", body)
    if "\\" in left or '"' in left:
        raise _Other
    text = ESCAPE.sub(unescaped, body)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise _Other
    return text


def unescaped(found: re.Match[str]) -> str:
    return SIMPLE[found[1]] if found[1] else chr(int(found[2] or found[3], 16))


def read_bare(rest: str, field: Field) -> object:
    """A word without quotes: a text that starts with a letter, or a number."""
    if ": " in rest or " #" in rest or rest[-1:] in (":", " ", ""):
        raise _Other
    if rest[0] in STARTS:
        return WORDS.get(rest, rest)
    digits = rest.removeprefix("-")
    if (
        not digits[:1].isdigit()
        or not digits.isascii()
        or not digits.replace(".", "", 1).isdigit()
        or len(rest) > 18
    ):
        raise _Other
    return resolve(rest, field) if rest[0] in NUMBER_STARTS else rest
