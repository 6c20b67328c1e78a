"""Document: writes documents so that every YAML reader, of 1.1 or 1.2, reads the same values.

Written by hand because opening a gate must not pay 15 ms for importing a YAML library, and because the bytes should
not depend on which version of it a machine has. The tests hold it against several readers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import NamedTuple, NoReturn

from ..errors import BadDocument
from ..text.display import HIDDEN, one_line
from .field import LIMITS
from .yamlread import HIGHEST, LOWEST

# Words that some reader takes for something else than text.
MISREAD = frozenset("y n yes no on off true false null nan inf".split())
SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
CONTROL = "\\x00-\\x1f\\x7f-\\x9f"
SPACES = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
NEVER = re.compile("[\\x00\\ud800-\\udfff]")
LONGEST_KEY = 120  # readers look at most 1024 characters ahead for the colon


def write_yaml(value: Mapping[str, object], *, source: str = "document") -> bytes:
    """The document for `value`: block style, keys in the order given, ending with a newline."""
    lines: list[str] = []
    top = _Place(source, "", 1, [1])
    if value:
        _mapping(value, "", lines, top)
    else:
        lines.append("{}")
    lines.append("")
    written = "\n".join(lines).encode("utf-8")
    if top.count[0] > LIMITS.nodes:
        top.fail(f"expected at most {LIMITS.nodes:,} values and keys in a document; found {top.count[0]:,}")
    if len(written) > LIMITS.size:
        top.fail(f"expected at most {LIMITS.size:,} bytes; found {len(written):,}")
    return written


class _Place:
    """Where the writer is, for errors and limits: what is written must be readable again."""

    __slots__ = ("count", "depth", "path", "source")

    def __init__(self, source: str, path: str, depth: int, count: list[int]) -> None:
        self.source = source
        self.path = path
        self.depth = depth
        self.count = count

    def at(self, name: str, nodes: int) -> _Place:
        self.count[0] += nodes
        return _Place(self.source, f"{self.path}{name}", self.depth + 1, self.count)

    def enter(self) -> None:
        if self.depth > LIMITS.depth:
            self.fail(f"expected at most {LIMITS.depth} levels; found more")

    def fail(self, words: str) -> NoReturn:
        raise BadDocument(one_line(self.source), 0, one_line(self.path.removeprefix("."), 200), words)


def _mapping(
    value: Mapping[str, object], indent: str, lines: list[str], place: _Place, first: str = ""
) -> None:
    """Append `value`; `first` is what stands before its first key (`- ` in a list) instead of `indent`."""
    place.enter()
    lead = first or indent
    for key, child in value.items():
        if not isinstance(key, str):
            raise TypeError(f"a document's keys are text, not {type(key).__name__}")
        inner = place.at(f".{key[:100]}", 2)
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
    place.enter()
    lead = f"{first or indent}- "
    deeper = f"{indent}  "
    for index, child in enumerate(value):
        inner = place.at(f"[{index}]", 1)
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
        if not LOWEST <= value <= HIGHEST:
            place.fail("expected a whole number of at most 64 bits; found a larger one")
        return int.__repr__(value)
    if isinstance(value, float):
        if not isfinite(value):
            place.fail(f"expected a finite number; found {value}")
        digits = float.__repr__(value)
        return digits if "." in digits else digits.replace("e", ".0e")  # YAML 1.1 wants the dot
    if isinstance(value, (Mapping, list, tuple)):  # an empty one: the others take lines of their own
        place.enter()
        return "{}" if isinstance(value, Mapping) else "[]"
    raise TypeError(f"a document cannot hold {type(value).__name__}")


def _text(value: str, indent: str, place: _Place) -> str:
    """A text after a key or a dash: as a block where it has lines and a block is exact, else on one line."""
    if "\n" in value and _forms(value).block.fullmatch(value):
        body = value.rstrip("\n")
        chomp = ("-", "", "+")[min(len(value) - len(body), 2)]
        shift = "2" if value[0] == " " else ""
        kept = value.removesuffix("\n").split("\n")
        return "\n".join([f"|{shift}{chomp}", *(f"{indent}{line}" if line else "" for line in kept)])
    return _inline(value, place)


def _inline(value: str, place: _Place) -> str:
    forms = _forms(value)
    if forms.plain.fullmatch(value) and value.lower() not in MISREAD:
        return str.__str__(value)
    never = NEVER.search(value)
    if never:
        place.fail(
            f"expected text; found the character U+{ord(never.group()):04X}, which no document can hold"
        )
    return f'"{forms.escape.sub(_escaped, value)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


class _Forms(NamedTuple):
    plain: re.Pattern[str]
    block: re.Pattern[str]
    escape: re.Pattern[str]


def _forms(value: str) -> _Forms:
    """The ones for ASCII cost a tenth to compile, and most documents need no others."""
    return _compiled(CONTROL, "") if value.isascii() else _compiled(f"{CONTROL}{HIDDEN}", SPACES)


@cache
def _compiled(odd: str, spaces: str) -> _Forms:
    """`odd` is what must be escaped, `spaces` what some reader may trim from the end of a plain word."""
    shown = f"[^{odd}{spaces}]"
    # A letter first; no `: ` nor ` #` within; no colon nor blank last.
    plain = f"(?![\\x00-\\x40\\x5b-\\x5e\\x60\\x7b-\\x7f]){shown}(?:(?!: | #){shown})*(?<![: ])"
    # A first and a last line that are not blank; in between anything that is seen, and tabs.
    line = f"(?:[^{odd}]|\\t)*"
    block = f" *[^ {odd}{spaces}]{line}(?:\\n{line})*(?<![ \\t\\n{spaces}])\\n*"
    return _Forms(re.compile(plain), re.compile(block), re.compile(f'[\\\\"{odd}]'))
