"""Core: the only reader and writer of documents.

A document is YAML's plain subset: mappings with text keys, lists, texts, numbers, true, false, null. Whatever two
readers could understand differently, or a small file could make large, is refused with file, line and field: anchors,
aliases, tags, merge keys, directives, several documents, duplicate keys, keys that are not text, deep nests. JSON is
such a document as it is. Plain words mean what YAML 1.2 says: `no`, `on` and dates are text.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ..errors import BadDocument
from .field import LIMITS, Field, Limits, Plain, field_of, found, step
from .scalars import resolve
from .text import one_line
from .yamlwrite import dump

__all__ = ["LIMITS", "Field", "Limits", "Plain", "dump", "field_of", "parse"]


# What YAML calls printable, without the line breaks on which YAML 1.1 and 1.2 disagree (NEL, LS, PS), without a byte
# order mark inside, and without a carriage return that is not the first half of CRLF.
REFUSED = re.compile(
    "[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
)
PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
QUOTE = "put text that holds `: ` or ` #`, or starts with one of []{}&*!|>'\"%@`?-#, in double quotes"


def parse(data: bytes, source: str, *, limits: Limits = LIMITS) -> Field:
    """The document in `data`, whose top must be a mapping; `source` is what errors call it."""
    text = _text(data, source, limits)
    import yaml  # 15 ms to import: whoever only lists gates does without

    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = loader_class(_joined_pairs(text))
    try:
        return _Builder(loader, yaml, source, limits).document()
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        line = mark.line + 1 if mark else 0
        said = one_line(f"{wrong.problem or wrong.context or 'it is not YAML'}", 160)
        raise BadDocument(one_line(source), line, "", f"expected YAML or JSON; {said}", hint=QUOTE) from wrong
    except yaml.YAMLError as wrong:
        raise BadDocument(
            one_line(source), 0, "", f"expected YAML or JSON; {one_line(str(wrong), 160)}"
        ) from wrong
    finally:
        loader.dispose()


def _text(data: bytes, source: str, limits: Limits) -> str:
    """`data` decoded, with nothing in it that readers would treat differently or a terminal would obey."""
    if len(data) > limits.size:
        _refuse(source, 0, f"expected at most {limits.size:,} bytes; found {len(data):,}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            _refuse(source, 1, "expected UTF-8; found UTF-16")
        line = data.count(b"\n", 0, wrong.start) + 1
        _refuse(source, line, f"expected UTF-8; found the byte 0x{data[wrong.start]:02x}")
    text = text.removeprefix("\ufeff")  # some editors on Windows write one; anywhere else it hides
    bad = REFUSED.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        code = ord(bad.group())
        hint = f' (write it as "\\u{code:04x}" in quotes)' if code else ""
        _refuse(source, line, f"expected text; found the character U+{code:04X}{hint}")
    return text


def _joined_pairs(text: str) -> str:
    r"""JSON writes emoji as two escapes, `"\ud83d\ude00"`, which YAML does not know: joined, if this is JSON."""
    if not text.lstrip().startswith("{") or not PAIR.search(text):
        return text
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text  # in YAML the same letters may be no escape at all
    return PAIR.sub(_joined, text)


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _refuse(source: str, line: int, words: str, field: str = "") -> NoReturn:
    raise BadDocument(one_line(source), line, field, words)


class _Builder:
    """Takes a parser's events one by one and stops at the first that the plain subset does not have."""

    def __init__(self, loader: Any, yaml: Any, source: str, limits: Limits) -> None:
        self.next = loader.get_event
        self.yaml = yaml
        self.source = source
        self.limits = limits
        self.count = 0

    def document(self) -> Field:
        yaml = self.yaml
        self.next()  # the stream's start
        start = self.next()
        if type(start) is yaml.StreamEndEvent:
            _refuse(self.source, 1, "expected a mapping (lines of `key: value`); the document is empty")
        if start.version or start.tags:
            _refuse(
                self.source, start.start_mark.line + 1, "expected no directive (a line that starts with %)"
            )
        first = self.next()
        top = Field(None, self.source, "", first.start_mark.line + 1)
        self.fill(top, first, 1)
        if not isinstance(top.value, dict):
            top.fail(f"expected a mapping (lines of `key: value`); found {found(top.value)}")
        self.next()  # the document's end
        more = self.next()
        if type(more) is not yaml.StreamEndEvent:
            _refuse(self.source, more.start_mark.line + 1, "expected one document; found another (`---`)")
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
            if "\0" in event.value:
                field.fail("expected text; found the character U+0000")
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
            key = Field(None, self.source, "", event.start_mark.line + 1, field)
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
            item = Field(None, self.source, f"[{len(entries)}]", event.start_mark.line + 1, field)
            entries.append(item)
            self.fill(item, event, depth + 1)

    def refuse_anchor(self, field: Field, event: Any) -> NoReturn:
        name = one_line(event.anchor, 40)
        if type(event) is self.yaml.AliasEvent:
            field.fail(
                f"expected no alias; found *{name} (write the value out; text that starts with * needs quotes)"
            )
        field.fail(f"expected no anchor; found &{name} (text that starts with & needs quotes)")
