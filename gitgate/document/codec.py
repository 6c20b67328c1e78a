"""Document: the only reader and writer of documents.

A document is YAML's plain subset: mappings with text keys, lists, texts, numbers, true, false, null. Whatever two
readers could understand differently, or a small file could make large, is refused with file, line and field: anchors,
aliases, tags, merge keys, directives, several documents, duplicate keys, keys that are not text, deep nests. JSON is
such a document as it is. Plain words mean what YAML 1.2 says: `no`, `on` and dates are text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from ..errors import BadDocument
from ..text.display import one_line
from . import yamltext
from .field import LIMITS, Field, Limits, Plain, field_of, found, step
from .yamltext import resolve

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
    """The document for `value`, by `yamlwrite`; a hook that judges what others wrote does without."""
    from .yamltext import write_yaml as written

    return written(value, source=source)


def parse_document(data: bytes, source: str, *, limits: Limits = LIMITS) -> Field:
    """The document in `data`, whose top must be a mapping; `source` is what errors call it."""
    text = _decoded(data, source, limits)
    ours = yamltext.read_yaml(text, source, limits)
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
    """`data` decoded, with nothing in it that readers would treat differently or a terminal would obey."""
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
    """The parser's error in our words: it does not know fields, and speaks of tokens."""
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
    """Parsers place what is missing at the end on a line that is not there."""
    return max(text.count("\n") + (not text.endswith("\n")), 1)


def _nearest(before: str) -> str:
    """The key under which a place stands where nothing could be parsed: on its line, or above and further left."""
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
    r"""Two things that JSON may do and YAML, or PyYAML's own parser, may not: emoji written as two escapes
    (`"\ud83d\ude00"`), and tabs between values. Mended only if this is JSON: elsewhere both mean something else.
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
    """Takes a parser's events one by one and stops at the first that the plain subset does not have."""

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
            never = re.search(yamltext.NEVER, event.value)
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
