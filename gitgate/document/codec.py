"""Document: the only reader and writer of documents, and the YAML that records are written in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any, NoReturn

from ..errors import BadDocument
from ..text import HIDDEN, one_line
from . import LIMITS, Field, Limits, Plain, dataclass, field_of, found, step

# YAML as records have it: written so that every reader, of 1.1 or 1.2, reads the same; read back without
# a library.
#
# Importing a library costs more than reading a gate. The reader here knows the one style that is written:
# block mappings with plain keys, lists two columns in, plain and double-quoted words on one line, literal
# blocks. Of anything else it says nothing (None), and the library reads it and finds the words. Tests
# hold the two together, places included.


WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
NUMBER_STARTS = frozenset("+-.0123456789")
INTEGER = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
NOT_FINITE = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
MOST_DIGITS = (
    400  # the longest form that Python gives a finite number is shorter; reading digits costs their square
)


def resolve(word: str, field: Field) -> str | int | float | bool | None:
    """Return the value of a plain, unquoted word; `field` is its place, for errors."""
    if word in WORDS:
        return WORDS[word]
    if word[0] not in NUMBER_STARTS:
        return word
    if re.fullmatch(INTEGER, word):
        return _integer(word, field)
    if re.fullmatch(FLOAT, word):
        number = float(word) if len(word) <= MOST_DIGITS else float("inf")
        if not isfinite(number):
            field.fail(
                "expected a number that a double holds; found a larger or longer one (in quotes it is text)"
            )
        return number
    if re.fullmatch(NOT_FINITE, word):
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


# Blanks and a dash for an item, a key with its colon, and what follows on the line.
LINE = re.compile(
    r"^( *(?:- )?)(?:([A-Za-z_][A-Za-z0-9_-]{0,63}):(?: (?=[^ \n])|$))?(.*)$", re.ASCII | re.MULTILINE
)
MOST_NODES = 3  # on one line: an item, a key, its value
SHORT_LINE = 40  # A key of so many letters is a step of a path as it is.
ESCAPE = r'\\(?:([\\"ntr])|u([0-9a-f]{4})|U(000[1-9a-f][0-9a-f]{4}|0010[0-9a-f]{4}))'
SIMPLE = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
STARTS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
BLOCKS = {"|": 1, "|-": 0, "|+": 2}


class _Other(Exception):
    """Signal that a document is not in the style that we write."""


def read_yaml(text: str, source: str, limits: Limits) -> Field | None:
    """Return the document, or None where the library has to read it."""
    if "\t" in text or "\r" in text or not text.endswith("\n"):
        return None
    try:
        return _Reader(text, source, limits).document()
    except _Other:
        return None


class _Reader:
    def __init__(self, text: str, source: str, limits: Limits) -> None:
        self.lines = text.split("\n")
        self.parts: list[tuple[str, str, str]] = LINE.findall(text)
        if len(self.parts) != len(self.lines) or self.may_exceed(limits.nodes):
            raise _Other
        self.last = len(self.lines) - 1  # after the last newline stands nothing
        self.at = 0
        self.source = source
        self.depth = limits.depth

    def may_exceed(self, nodes: int) -> bool:
        """Return whether there may be more than `nodes` values and keys. Lines of a text that look like keys count too;
        the library then counts without them.
        """
        if MOST_NODES * len(self.parts) <= nodes:
            return False
        return 1 + sum(2 * bool(key) + before.endswith("- ") for before, key, _ in self.parts) > nodes

    def document(self) -> Field:
        top = Field(None, self.source, "", 1)
        self.mapping(top, "", 1, "")
        if self.at != self.last:
            raise _Other
        return top

    def mapping(self, field: Field, indent: str, depth: int, lead: str) -> None:
        """Read the keys behind `indent`; before the first of them is `lead`, which has a dash in a list."""
        if depth > self.depth:
            raise _Other
        entries: dict[str, Field] = {}
        field.value = entries
        while self.at < self.last:
            before, key, rest = self.parts[self.at]
            if before != lead:
                break
            if not key or key in WORDS or key in entries:
                raise _Other
            name = f".{key}" if len(key) <= SHORT_LINE else step(key)
            self.at += 1
            entries[key] = entry = Field(None, self.source, name, self.at, field)
            self.value(entry, rest, indent, depth + 1)
            lead = indent
        if not entries:
            raise _Other

    def value(self, field: Field, rest: str, indent: str, depth: int) -> None:
        """Read the value of a key: on its line, or on the lines below, indented by two more columns."""
        if rest:
            self.word(field, rest, indent, depth)
            return
        deeper = indent + "  "
        before, key, _ = self.parts[self.at]
        if before == deeper and key:
            self.mapping(field, deeper, depth, deeper)
        elif before == deeper + "- ":
            self.sequence(field, deeper, depth)
        else:
            raise _Other

    def sequence(self, field: Field, indent: str, depth: int) -> None:
        if depth > self.depth:
            raise _Other
        entries: list[Field] = []
        field.value = entries
        lead = indent + "- "
        while self.at < self.last:
            before, key, rest = self.parts[self.at]
            if before != lead:
                break
            item = Field(None, self.source, f"[{len(entries)}]", self.at + 1, field)
            entries.append(item)
            if key:
                self.mapping(item, indent + "  ", depth + 1, lead)
            else:
                self.at += 1
                self.word(item, rest, indent, depth + 1)

    def word(self, field: Field, rest: str, indent: str, depth: int) -> None:
        """Read a value on one line, or a block that begins there."""
        if rest in BLOCKS:
            field.value = self.block(indent + "  ", BLOCKS[rest])
        elif rest in ("[]", "{}"):
            if depth > self.depth:
                raise _Other
            field.value = [] if rest == "[]" else {}
        elif rest[:1] == '"':
            field.value = unquoted(rest)
        else:
            field.value = read_bare(rest, field)

    def block(self, lead: str, kept: int) -> str:
        """Read the lines of a literal block. Of its last newlines none, one or all are kept (0, 1, 2)."""
        found: list[str] = []
        while self.at < self.last:
            line = self.lines[self.at]
            if line and not line.startswith(lead):
                break
            if line and not line.strip(" "):
                raise _Other  # blanks alone: whether they count is not for us to say
            found.append(line[len(lead) :])
            self.at += 1
        body = "\n".join(found).rstrip("\n")
        if not found or not found[0] or found[0].startswith(" "):
            raise _Other
        if self.at < self.last and self.lines[self.at].startswith(lead[:-1]) and len(lead) > 1:
            raise _Other
        ends = len(found) - body.count("\n")
        return body + "\n" * (0 if kept == 0 else 1 if kept == 1 else ends)


def unquoted(rest: str) -> str:
    """Return a double-quoted text on one line, with the escapes that we write."""
    body = rest[1:-1]
    if len(rest) < 2 or rest[-1] != '"':
        raise _Other
    if "\\" not in body and '"' not in body:
        return body
    left = re.sub(ESCAPE, "", body)
    if "\\" in left or '"' in left:
        raise _Other
    text = re.sub(ESCAPE, unescaped, body)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise _Other
    return text


def unescaped(found: re.Match[str]) -> str:
    return SIMPLE[found[1]] if found[1] else chr(int(found[2] or found[3], 16))


def read_bare(rest: str, field: Field) -> object:
    """Return the value of a word without quotes: a text that starts with a letter, or a number."""
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


# Words that some reader takes for something else than text.
MISREAD = frozenset("y n yes no on off true false null nan inf".split())
SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
CONTROL = "\\x00-\\x1f\\x7f-\\x9f"
SPACES = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
NEVER = "[\\x00\\ud800-\\udfff]"
LONGEST_KEY = 120  # readers look at most 1024 characters ahead for the colon


def write_yaml(value: Mapping[str, object], *, source: str = "document") -> bytes:
    """Return the document for `value`: block style, keys in the order given, ending with a newline."""
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
    """Place of the writer in the document, for errors and limits: what is written must be readable again."""

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
    """Append the mapping `value`; `first` precedes its first key (`- ` in a list) instead of `indent`."""
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
    """Append the value of a key."""
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
    """Append a text after a key or a dash: as a block where it has lines and a block is exact, else on one line."""
    if "\n" in value and re.fullmatch(_forms(value).block, value):
        body = value.rstrip("\n")
        chomp = ("-", "", "+")[min(len(value) - len(body), 2)]
        shift = "2" if value[0] == " " else ""
        kept = value.removesuffix("\n").split("\n")
        return "\n".join([f"|{shift}{chomp}", *(f"{indent}{line}" if line else "" for line in kept)])
    return _inline(value, place)


def _inline(value: str, place: _Place) -> str:
    forms = _forms(value)
    if re.fullmatch(forms.plain, value) and value.lower() not in MISREAD:
        return str.__str__(value)
    never = re.search(NEVER, value) if "\0" in value or not value.isascii() else None
    if never:
        place.fail(
            f"expected text; found the character U+{ord(never.group()):04X}, which no document can hold"
        )
    return f'"{re.sub(forms.escape, _escaped, value)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


@dataclass(frozen=True)
class _Forms:
    plain: str
    block: str
    escape: str


def _forms(value: str) -> _Forms:
    """Return the patterns for scalars. Those for ASCII compile in a tenth of the time, and most documents need no
    others.
    """
    return _forms_of(CONTROL, "") if value.isascii() else _forms_of(f"{CONTROL}{HIDDEN}", SPACES)


@cache
def _forms_of(odd: str, spaces: str) -> _Forms:
    """Compile the patterns. `odd`: characters to escape; `spaces`: those that a reader may trim from a plain word's
    end.
    """
    shown = f"[^{odd}{spaces}]"
    # A letter first; no `: ` nor ` #` within; no colon nor blank last.
    plain = f"(?![\\x00-\\x40\\x5b-\\x5e\\x60\\x7b-\\x7f]){shown}(?:(?!: | #){shown})*(?<![: ])"
    # A first and a last line that are not blank; in between anything that is seen, and tabs.
    line = f"(?:[^{odd}]|\\t)*"
    block = f" *[^ {odd}{spaces}]{line}(?:\\n{line})*(?<![ \\t\\n{spaces}])\\n*"
    return _Forms(plain, block, f'[\\\\"{odd}]')


# The only reader and writer of documents.
#
# A document is YAML's plain subset: mappings with text keys, lists, texts, numbers, true, false, null.
# Whatever two readers could understand differently, or a small file could make large, is refused with
# file, line and field: anchors, aliases, tags, merge keys, directives, several documents, duplicate keys,
# keys that are not text, deep nests. JSON is such a document as it is. Plain words mean what YAML 1.2
# says: `no`, `on` and dates are text.


__all__ = ["LIMITS", "Field", "Limits", "Plain", "dump_document", "field_of", "parse_document"]


# What YAML calls printable, without the line breaks on which YAML 1.1 and 1.2 disagree (NEL, LS, PS), without a byte
# order mark inside, and without a carriage return that is not the first half of CRLF.
# These are compiled by whoever meets a text that needs them: most are plain.
REFUSED = "[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
PAIR = r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
KEY = r"""(?:^|(?<=[\s{,]))["']?([A-Za-z][\w.-]{0,39})["']?:(?=\s|$)"""
PLAIN = b"\t\n" + bytes(range(ord(" "), ord("~") + 1))
SAID = {
    "mapping values are not allowed": "found a second `: ` on this line (text that holds one needs double quotes)",
    "found character that cannot start any token": "found a tab, or text that starts with @, ` or %",
}
QUOTE = "put text that holds `: ` or ` #`, or starts with one of []{}&*!|>'\"%@`?-#, in double quotes"


def dump_document(value: Mapping[str, object], *, source: str = "document") -> bytes:
    """Return the document for `value`, written by `yamlwrite`; a hook that judges what others wrote does without."""
    return write_yaml(value, source=source)


def parse_document(data: bytes, source: str, *, limits: Limits = LIMITS) -> Field:
    """Return the document in `data`, whose top must be a mapping; `source` is its name in errors."""
    text = _decoded(data, source, limits)
    ours = read_yaml(text, source, limits)
    if ours is not None:
        return ours
    import yaml  # 15 ms to import: whoever only lists gates does without

    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = loader_class(_json_as_yaml(text))
    try:
        return _Builder(loader, yaml, source, limits, _last_line(text)).document()
    except yaml.YAMLError as wrong:
        raise _misspelt(wrong, text, source) from wrong
    finally:
        loader.dispose()


def _decoded(data: bytes, source: str, limits: Limits) -> str:
    """Return `data` decoded; refuse characters that readers would treat differently or a terminal would obey."""
    if len(data) > limits.size:
        _refuse(source, 0, f"expected at most {limits.size:,} bytes; found {len(data):,}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            _refuse(source, 1, "expected UTF-8; found UTF-16")
        before = data[: wrong.start].decode("utf-8")
        words = f"expected UTF-8; found the byte 0x{data[wrong.start]:02x}"
        _refuse(source, before.count("\n") + 1, words, _nearest(before))
    text = text.removeprefix("\ufeff")  # some editors on Windows write one; anywhere else it hides
    bad = re.search(REFUSED, text) if data.translate(None, PLAIN) else None
    if bad:
        before = text[: bad.start()]
        code = ord(bad.group())
        escape = f' (write it as "\\u{code:04x}" in quotes)' if code else ""
        words = f"expected text; found the character U+{code:04X}{escape}"
        _refuse(source, before.count("\n") + 1, words, _nearest(before))
    return text


def _misspelt(wrong: Any, text: str, source: str) -> BadDocument:
    """Return the parser's error in our words: the parser does not know fields, and its errors name tokens."""
    problem = str(getattr(wrong, "problem", None) or "this is neither")
    said = next((ours for start, ours in SAID.items() if problem.startswith(start)), one_line(problem, 160))
    mark = getattr(wrong, "problem_mark", None)
    if mark is None:
        return BadDocument(one_line(source), 0, "", f"expected YAML or JSON; {said}", hint=QUOTE)
    line = min(mark.line + 1, _last_line(text))
    lines = text.split("\n")[:line]
    if line == mark.line + 1:
        lines[-1] = lines[-1][: mark.column]
    words = f"expected YAML or JSON; {said}"
    return BadDocument(one_line(source), line, _nearest("\n".join(lines)), words, hint=QUOTE)


def _last_line(text: str) -> int:
    """Return the line for an error. Parsers place what is missing at the end on a line that does not exist."""
    return max(text.count("\n") + (not text.endswith("\n")), 1)


def _nearest(before: str) -> str:
    """Return the key above a place where nothing could be parsed: on its line, or above and further left."""
    here, *above = reversed(before.rsplit("\n", 200))
    keys = re.findall(KEY, here)
    if keys:
        return step(keys[-1]).removeprefix(".")
    left = len(here) - len(here.lstrip())
    for line in above:
        found = re.search(KEY, line)
        if found and found.start(1) < left:
            return step(found[1]).removeprefix(".")
    return ""


def _json_as_yaml(text: str) -> str:
    r"""Mend two things that JSON may do, and YAML or PyYAML's own parser may not: emoji written as two escapes
    (`"\ud83d\ude00"`), and tabs between values. Leave other texts unchanged: there both mean something else.
    """
    if not text.lstrip().startswith("{") or not ("\t" in text or re.search(PAIR, text)):
        return text
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return re.sub(PAIR, _joined, text.replace("\t", " "))  # within a string JSON has no raw tab


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _refuse(source: str, line: int, words: str, field: str = "") -> NoReturn:
    raise BadDocument(one_line(source), line, field, words)


class _Builder:
    """Builder of a document from a parser's events. It stops at the first event that the plain subset does not have."""

    def __init__(self, loader: Any, yaml: Any, source: str, limits: Limits, last: int) -> None:
        self.next = loader.get_event
        self.yaml = yaml
        self.source = source
        self.limits = limits
        self.last = last
        self.count = 0

    def line(self, event: Any) -> int:
        return int(min(event.start_mark.line + 1, self.last))

    def document(self) -> Field:
        yaml = self.yaml
        self.next()  # the stream's start
        start = self.next()
        if type(start) is yaml.StreamEndEvent:
            _refuse(self.source, 1, "expected a mapping (lines of `key: value`); the document is empty")
        if start.version or start.tags:
            _refuse(self.source, self.line(start), "expected no directive (a line that starts with %)")
        first = self.next()
        top = Field(None, self.source, "", self.line(first))
        self.fill(top, first, 1)
        if not isinstance(top.value, dict):
            top.fail(f"expected a mapping (lines of `key: value`); found {found(top.value)}")
        self.next()  # the document's end
        more = self.next()
        if type(more) is not yaml.StreamEndEvent:
            _refuse(self.source, self.line(more), "expected one document; found another (`---`)")
        return top

    def fill(self, field: Field, event: Any, depth: int) -> None:
        """Give `field` the value that begins with `event`."""
        self.count += 1
        if self.count > self.limits.nodes:
            field.fail(f"expected at most {self.limits.nodes:,} values and keys in a document; found more")
        if event.anchor is not None:
            self.refuse_anchor(field, event)
        if event.tag is not None:
            field.fail(f"expected no tag; found {one_line(event.tag, 40)}")
        kind = type(event)
        if kind is self.yaml.ScalarEvent:
            field.value = resolve(event.value, field) if event.implicit[0] else event.value
            never = re.search(NEVER, event.value)
            if never:
                field.fail(f"expected text; found the character U+{ord(never.group()):04X}")
        elif depth > self.limits.depth:
            field.fail(f"expected at most {self.limits.depth} levels; found more")
        elif kind is self.yaml.MappingStartEvent:
            self.fill_mapping(field, depth)
        else:
            self.fill_sequence(field, depth)

    def fill_mapping(self, field: Field, depth: int) -> None:
        end, scalar = self.yaml.MappingEndEvent, self.yaml.ScalarEvent
        entries: dict[str, Field] = {}
        field.value = entries
        while type(event := self.next()) is not end:
            key = Field(None, self.source, "", self.line(event), field)
            if type(event) is not scalar:
                key.name = ".?"
                if event.anchor is not None:
                    self.refuse_anchor(key, event)
                key.fail("expected a key that is text; found a mapping or a list")
            key.name = step(event.value)
            self.fill(key, event, depth)
            name = key.value
            if not isinstance(name, str):
                key.fail(f"expected a key that is text; found {found(name)} (put it in quotes)")
            if name == "<<" and event.implicit[0]:
                key.fail("expected no merge key; write the fields out")
            if name in entries:
                key.fail(f"expected each key once; found it again (first on line {entries[name].line})")
            key.value = None
            entries[name] = key
            self.fill(key, self.next(), depth + 1)

    def fill_sequence(self, field: Field, depth: int) -> None:
        end = self.yaml.SequenceEndEvent
        entries: list[Field] = []
        field.value = entries
        while type(event := self.next()) is not end:
            item = Field(None, self.source, f"[{len(entries)}]", self.line(event), field)
            entries.append(item)
            self.fill(item, event, depth + 1)

    def refuse_anchor(self, field: Field, event: Any) -> NoReturn:
        name = one_line(event.anchor, 40)
        if type(event) is self.yaml.AliasEvent:
            field.fail(
                f"expected no alias; found *{name} (write the value out; text that starts with * needs quotes)"
            )
        field.fail(f"expected no anchor; found &{name} (text that starts with & needs quotes)")
