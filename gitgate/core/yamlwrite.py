"""Core: writes documents so that every YAML reader, of 1.1 or 1.2, reads the same values.

Written by hand because opening a gate must not pay 15 ms for importing a YAML library, and because the bytes should
not depend on which version of it a machine has. The tests hold it against several readers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import NoReturn

from ..errors import BadDocument
from .text import HIDDEN, one_line

# Words that some reader takes for something else than text.
MISREAD = frozenset("y n yes no on off true false null nan inf".split())
SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
MOST_DEPTH = 32
LONGEST_KEY = 120  # readers look at most 1024 characters ahead for the colon


def dump(value: Mapping[str, object], *, source: str = "document") -> bytes:
    """The document for `value`: block style, keys in the order given, ending with a newline."""
    lines: list[str] = []
    if value:
        _mapping(value, "", lines, _Place(source, "", 1))
    else:
        lines.append("{}")
    lines.append("")
    return "\n".join(lines).encode("utf-8")


class _Place:
    """Where the writer is, for errors only."""

    __slots__ = ("depth", "path", "source")

    def __init__(self, source: str, path: str, depth: int) -> None:
        self.source = source
        self.path = path
        self.depth = depth

    def at(self, name: str) -> _Place:
        place = _Place(self.source, f"{self.path}{name}", self.depth + 1)
        if place.depth > MOST_DEPTH + 1:
            place.fail(f"expected at most {MOST_DEPTH} levels; found more")
        return place

    def fail(self, words: str) -> NoReturn:
        raise BadDocument(one_line(self.source), 0, one_line(self.path.removeprefix("."), 200), words)


def _mapping(value: Mapping[str, object], indent: str, lines: list[str], place: _Place, first: str = "") -> None:
    """Append `value`; `first` is what stands before its first key (`- ` in a list) instead of `indent`."""
    lead = first or indent
    for key, child in value.items():
        if not isinstance(key, str):
            raise TypeError(f"a document's keys are text, not {type(key).__name__}")
        inner = place.at(f".{key[:100]}")
        name = _inline(key, inner)
        if len(name) > LONGEST_KEY:
            lines.append(f"{lead}? {name}")
            _value(child, f"{indent}:", indent, lines, inner)
        else:
            _value(child, f"{lead}{name}:", indent, lines, inner)
        lead = indent


def _value(child: object, lead: str, indent: str, lines: list[str], place: _Place) -> None:
    """Append what follows a key."""
    deeper = f"{indent}  "
    if isinstance(child, str):
        lines.append(f"{lead} {_text(child, deeper, place)}")
    elif isinstance(child, Mapping) and child:
        lines.append(lead)
        _mapping(child, deeper, lines, place)
    elif isinstance(child, (list, tuple)) and child:
        lines.append(lead)
        _sequence(child, deeper, lines, place)
    else:
        lines.append(f"{lead} {_scalar(child, place)}")


def _sequence(value: Sequence[object], indent: str, lines: list[str], place: _Place, first: str = "") -> None:
    lead = f"{first or indent}- "
    deeper = f"{indent}  "
    for index, child in enumerate(value):
        inner = place.at(f"[{index}]")
        if isinstance(child, str):
            lines.append(f"{lead}{_text(child, deeper, inner)}")
        elif isinstance(child, Mapping) and child:
            _mapping(child, deeper, lines, inner, lead)
        elif isinstance(child, (list, tuple)) and child:
            _sequence(child, deeper, lines, inner, lead)
        else:
            lines.append(f"{lead}{_scalar(child, inner)}")
        lead = f"{indent}- "


def _scalar(value: object, place: _Place) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            place.fail("expected a whole number of at most 64 bits; found a larger one")
        return int.__repr__(value)
    if isinstance(value, float):
        if not isfinite(value):
            place.fail(f"expected a finite number; found {value}")
        digits = float.__repr__(value)
        return digits if "." in digits else digits.replace("e", ".0e")  # YAML 1.1 wants the dot
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    raise TypeError(f"a document cannot hold {type(value).__name__}")


def _text(value: str, indent: str, place: _Place) -> str:
    """A text after a key or a dash: as a block where it has lines and a block is exact, else on one line."""
    if "\n" in value and _forms().block.fullmatch(value):
        body = value.rstrip("\n")
        chomp = ("-", "", "+")[min(len(value) - len(body), 2)]
        shift = "2" if value[0] == " " else ""
        kept = value.removesuffix("\n").split("\n")
        return "\n".join([f"|{shift}{chomp}", *(f"{indent}{line}" if line else "" for line in kept)])
    return _inline(value, place)


def _inline(value: str, place: _Place) -> str:
    forms = _forms()
    if forms.plain.fullmatch(value) and value.lower() not in MISREAD:
        return str.__str__(value)
    if forms.never.search(value):
        character = forms.never.search(value)
        assert character
        place.fail(f"expected text; found the character U+{ord(character.group()):04X}, which UTF-8 text cannot hold")
    return f'"{forms.escape.sub(_escaped, value)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


class _Forms:
    """The expressions, compiled once when first needed."""

    def __init__(self) -> None:
        control = "\\x00-\\x1f\\x7f-\\x9f"
        odd = f"{control}{HIDDEN}"
        spaces = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
        shy = f"[^{odd}{spaces}]"  # any character that neither hides nor counts as a blank somewhere
        # A letter first; no `: ` nor ` #` within; no colon nor blank last.
        self.plain = re.compile(f"(?![\\x00-\\x40\\x5b-\\x5e\\x60\\x7b-\\x7f]){shy}(?:(?!: | #){shy})*(?<![: ])")
        # A first and a last line that are not blank; in between anything that is seen, and tabs.
        seen = f"[^{odd}]"
        line = f"(?:{seen}|\\t)*"
        self.block = re.compile(f" *[^ {odd}{spaces}]{line}(?:\\n{line})*(?<![ \\t\\n{spaces}])\\n*")
        self.escape = re.compile(f'[\\\\"{odd}]')
        self.never = re.compile("[\\x00\\ud800-\\udfff]")


@cache
def _forms() -> _Forms:
    return _Forms()
