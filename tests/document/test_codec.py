"""Codec: documents are read strictly, with file, line and field in every error, and written so that all readers agree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.document.codec import Field
from gitgate.errors import BadDocument
from gitgate.text import one_line

CORPUS = Path(__file__).parents[1] / "corpus"

# file: line, field, how the sentence begins
REFUSED: dict[str, tuple[int, str, str]] = {
    "alias-alone.yaml": (2, "copy", "expected no alias; found *base"),
    "alias.yaml": (2, "base", "expected no anchor; found &base"),
    "anchor-on-complex-key.yaml": (2, "?", "expected no anchor; found &key"),
    "anchor-on-key.yaml": (2, "title", "expected no anchor; found &key"),
    "bom-inside.yaml": (2, "", "expected text; found the character U+FEFF"),
    "bom-twice.yaml": (1, "", "expected text; found the character U+FEFF"),
    "bomb.yaml": (1, "a", "expected no anchor; found &a"),
    "carriage-return.yaml": (2, "title", "expected text; found the character U+000D"),
    "colon.yaml": (2, "prompt", "expected YAML or JSON; found a second `: ` on this line"),
    "comment.yaml": (1, "", "expected a mapping"),
    "deep-block.yaml": (33, ".".join(["a"] * 32), "expected at most 32 levels; found more"),
    "deep.yaml": (2, "a" + "[0]" * 31, "expected at most 32 levels; found more"),
    "delete.yaml": (2, "title", "expected text; found the character U+007F"),
    "directive.yaml": (1, "", "expected no directive"),
    "duplicate-spelt-apart.yaml": (3, "gate", "expected each key once; found it again"),
    "duplicate.json": (3, "gate", "expected each key once; found it again"),
    "duplicate.yaml": (5, "questions[0].key", "expected each key once; found it again"),
    "empty.yaml": (1, "", "expected a mapping"),
    "escape.yaml": (2, "title", "expected text; found the character U+001B"),
    "infinity.yaml": (2, "confidence", "expected a finite number; found .inf"),
    "key-empty.yaml": (2, "", "expected YAML or JSON; did not find expected key"),
    "key-list.yaml": (2, "?", "expected a key that is text; found a mapping or a list"),
    "key-mapping.yaml": (2, "?", "expected a key that is text; found a mapping or a list"),
    "key-null.yaml": (2, '["~"]', "expected a key that is text; found nothing"),
    "key-number.yaml": (2, "2", "expected a key that is text; found the number 2"),
    "key-true.yaml": (2, "true", "expected a key that is text; found true"),
    "large-hexadecimal.yaml": (1, "hitl", "expected a whole number of at most 64 bits; found a larger one"),
    "large-integer.yaml": (1, "hitl", "expected a whole number of at most 64 bits; found a larger one"),
    "line-separator.yaml": (2, "title", "expected text; found the character U+2028"),
    "list.yaml": (1, "", "expected a mapping"),
    "long-number.yaml": (
        2,
        "confidence",
        "expected a number that a double holds; found a larger or longer one",
    ),
    "marker.yaml": (1, "", "expected a mapping"),
    "merge.yaml": (3, 'q["<<"]', "expected no merge key; write the fields out"),
    "minus-infinity.yaml": (2, "confidence", "expected a finite number; found -.Inf"),
    "nan.yaml": (2, "confidence", "expected a finite number; found .NaN"),
    "next-line.yaml": (2, "title", "expected text; found the character U+0085"),
    "nul-escaped.yaml": (2, "title", "expected text; found the character U+0000"),
    "nul.yaml": (2, "title", "expected text; found the character U+0000"),
    "overflow.json": (1, "confidence", "expected a number that a double holds; found a larger or longer one"),
    "several.yaml": (2, "", "expected one document; found another"),
    "surrogate.json": (2, "title", "expected YAML or JSON; found invalid Unicode character escape code"),
    "tab.yaml": (3, "", "expected YAML or JSON; found a tab, or text that starts with @, ` or %"),
    "tag-bare.yaml": (2, "title", "expected no tag; found !"),
    "tag-directive.yaml": (1, "", "expected no directive"),
    "tag-local.yaml": (2, "title", "expected no tag; found !secret"),
    "tag-on-key.yaml": (2, "title", "expected no tag; found tag:yaml.org,2002:str"),
    "tag.yaml": (3, "questions[0].prompt", "expected no tag; found tag:yaml.org,2002:python/object/apply:o…"),
    "text.yaml": (1, "", "expected a mapping"),
    "trailing.json": (1, "hitl", "expected YAML or JSON; did not find expected <document start>"),
    "unclosed-quote.yaml": (2, "title", "expected YAML or JSON; found unexpected end of stream"),
    "unclosed.json": (2, "title", "expected YAML or JSON; did not find expected ',' or '}'"),
    "utf-16.yaml": (1, "", "expected UTF-8; found UTF-16"),
    "utf-8-in-block.yaml": (6, "context", "expected UTF-8; found the byte 0xe9"),
    "utf-8-overlong.yaml": (2, "title", "expected UTF-8; found the byte 0xc0"),
    "utf-8-surrogate.yaml": (2, "title", "expected UTF-8; found the byte 0xed"),
    "utf-8.yaml": (2, "title", "expected UTF-8; found the byte 0xe9"),
}
ACCEPTED: dict[str, object] = {
    "bom.yaml": {"hitl": 1},
    "booleans.yaml": {"a": True, "b": True, "c": False, "d": "true"},
    "crlf.yaml": {"hitl": 1, "context": "one\ntwo\n"},
    "emoji.json": {"a": "😀", "b": "\\ud83d\\ude00", "c": "\\😀"},
    "empty-values.yaml": {"a": None, "b": None, "c": None, "d": None, "e": "", "f": [], "g": {}},
    "folded.yaml": {"a": "one two\nthree\n"},
    "literal-pair.yaml": {"a": "\\ud83d\\ude00"},
    "markers.yaml": {"hitl": 1},
    "numbers.yaml": {
        "a": 10, "b": 8, "c": 31, "d": -7, "e": 7, "f": 1000.0, "g": 0.5, "h": 5.0, "i": -0.0,
        "j": 9223372036854775807, "k": -9223372036854775808,
    },
    "quoted-merge.yaml": {"<<": 1, "1": 2, "": 3},
    "right-to-left.yaml": {"a": "שלום \u202e"},
    "tabs.json": {"a": [1, "/"]},
    "words.yaml": {
        "y": "no", "n": "on", "null-ish": "nil", "date": "2030-01-31", "time": "12:30:45", "under": "1_000",
        "binary": "0b1", "version": "1.2.3", "merge": "<<",
    },
}  # fmt: skip

# Texts that some reader is known to take for something else, or to change.
NASTY = (
    "no", "On", "y", "NULL", "~", "1", "1e3", "1.5", "0x1F", "0o7", "010", "1_000", "12:30:45", "2030-01-31", ".inf",
    ".nan", "<<", "=", "-", "?", ":", "- a", "a: b", "a #b", "#a", "&a", "*a", "!a", "!!str a", "%a", "@a", "`a", "|",
    ">", "'", '"', "\\", "\\n", "{", "}", "[", "]", ",", "---", "...", "a:", "a ", " a", "\ta", "a\t", "\n", "\n\n",
    "a\n", "a\n\n", "a\nb", " a\nb", "a\n b\n", "\na", "a\n\n\nb\n", "a \nb", "a\n ", "a\n\t", "a\n#b", "---\na\n---",
    "a\r", "a\r\nb", "a\x85b", "a\u2028b", "a\u2029b", "a\x0bb", "\x1b[31m", "\x7f", "\ufeffa", "a\xa0", "a\u3000\nb",
    "😀", "👨\u200d👩\u200d👧", "é", "e\u0301", "שלום", "\u202ea", "\U000e0041", "\ufffe", "\U0001ffff", "a" * 2000,
)  # fmt: skip
TEXT = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.lists(st.sampled_from([*NASTY, " ", "\n", "  ", "a", ": "]), max_size=6).map("".join),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(TEXT, VALUES, max_size=5)

QUESTION = b"""\
hitl: 1
title: Which library?
questions:
  - key: auth
    prompt: Which one?
    type: chioce
    options:
      - label: JWT
        description: |
          no state
          on the server
      - label: Sessions
confidence: 0.5
"""


def read(data: bytes | str) -> Field:
    return codec.parse_document(data.encode() if isinstance(data, str) else data, "question.yaml")


def same(left: object, right: object) -> bool:
    """Equal in types too: 1, 1.0 and true are three values."""
    return repr(left) == repr(right)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_hostile_document_is_refused_with_its_place(name: str) -> None:
    """Every file of the corpus is refused with the file's name, the line, the field and what was expected."""
    line, field, words = REFUSED[name]
    with pytest.raises(BadDocument) as caught:
        codec.parse_document((CORPUS / "refused" / name).read_bytes(), name)
    wrong = caught.value
    assert (wrong.source, wrong.line, wrong.field) == (name, line, field)
    assert wrong.expected.startswith(words)
    assert one_line(wrong.message) == wrong.message


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_a_plain_document_is_read_as_yaml_1_2(name: str) -> None:
    """Plain words mean what YAML 1.2's core schema says; JSON is read as it is."""
    value = codec.parse_document((CORPUS / "accepted" / name).read_bytes(), name).plain()
    assert same(value, ACCEPTED[name])
    assert isinstance(value, dict)
    assert same(read(codec.dump_document(value)).plain(), value)


def test_the_corpus_has_no_file_without_an_expectation() -> None:
    """A file that nobody expects anything of would test nothing."""
    assert {path.name for path in (CORPUS / "refused").iterdir()} == set(REFUSED)
    assert {path.name for path in (CORPUS / "accepted").iterdir()} == set(ACCEPTED)


def test_ten_megabytes_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text over the limit never reaches a parser."""
    monkeypatch.setattr(yaml, "CSafeLoader", None)
    monkeypatch.setattr(yaml, "SafeLoader", None)
    with pytest.raises(BadDocument, match="expected at most 1,048,576 bytes; found 10,000,003"):
        read(b"a: " + b"x" * 10_000_000)


@pytest.mark.parametrize("opened", ["[", "{a: ", "- ", "? ", "\n"])
def test_a_thousand_levels_are_refused(opened: str) -> None:
    """Depth is counted while reading, in flow and in block style."""
    block = "".join(" " * level + "a:\n" for level in range(1000))
    with pytest.raises(BadDocument, match="expected"):
        read(block if opened == "\n" else "a:\n  " + opened * 1000)


def test_the_limits_are_met_exactly() -> None:
    """32 levels and 20,000 values are read and written; one more of either is neither."""
    nest: object = "x"
    for _ in range(31):
        nest = [nest]
    assert read(codec.dump_document({"a": nest})).plain() == {"a": nest}
    wide = {"a": [1] * (20_000 - 3)}
    assert read(codec.dump_document(wide)).plain() == wide
    deeper, wider = {"a": [nest]}, {"a": [1] * (20_000 - 2)}
    for value, words in ((deeper, "at most 32 levels"), (wider, "at most 20,000 values")):
        with pytest.raises(BadDocument, match=words):
            codec.dump_document(value)
        with pytest.raises(BadDocument, match=words):
            read(json.dumps(value))
    hollow: object = []
    for _ in range(31):
        hollow = [hollow]
    with pytest.raises(BadDocument, match="at most 32 levels"):
        codec.dump_document({"a": hollow})
    with pytest.raises(BadDocument, match="bytes"):
        codec.dump_document({"a": "x" * (1 << 20)})


@given(DOCUMENTS)
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    """`parse(dump(x))` is x, for every value that a document can hold."""
    assert same(read(codec.dump_document(value)).plain(), value)


@given(DOCUMENTS)
def test_other_readers_agree(value: dict[str, Any]) -> None:
    """A reader of YAML 1.1 reads the same values from what we write."""
    written = codec.dump_document(value)
    assert same(yaml.safe_load(written), value)


@given(DOCUMENTS, st.booleans())
def test_json_is_read_as_it_is(value: dict[str, Any], ascii_only: bool) -> None:
    """What `json.dumps` writes is a document, escaped emoji included, unless a text has raw separators in it."""
    written = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    if re.search(codec.REFUSED, written):
        return  # readers of YAML would see line breaks in it, or nothing
    if any(len(key) > 100 for key in keys_of(value)):
        return  # YAML looks 1024 characters ahead for a colon
    assert same(read(written).plain(), value)


def keys_of(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for inner in value.values() for key in keys_of(inner))]
    return [key for inner in value for key in keys_of(inner)] if isinstance(value, list) else []


@given(st.binary(max_size=300))
def test_bytes_are_read_or_refused(data: bytes) -> None:
    """No input at all makes the reader fail in another way."""
    outcome(data)


@given(st.lists(st.sampled_from([*NASTY, "\n", " ", "a: ", "- ", "\n  ", "? "]), max_size=40).map("".join))
def test_pieces_of_yaml_are_read_or_refused(text: str) -> None:
    """Nor does any sequence of YAML's own signs."""
    outcome(text.encode())


@given(st.data())
def test_mutated_documents_are_read_or_refused(data: st.DataObject) -> None:
    """Nor does a document with a few bytes changed; what is accepted can be written and read again."""
    text = bytearray(QUESTION)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        text = text or bytearray(b"a")
    outcome(bytes(text))


def outcome(data: bytes) -> None:
    wrong, value = None, None
    try:
        value = read(data).plain()
    except BadDocument as refused:
        wrong = refused
    if wrong is not None:
        assert wrong.source == "question.yaml"
        assert wrong.line <= data.count(b"\n") + 1
        assert one_line(wrong.message) == wrong.message
        return
    assert isinstance(value, dict)
    assert same(read(codec.dump_document(value)).plain(), value)


def test_the_parser_in_python_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML has no C extension its own parser is used, with the same values and the same refusals."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    for name, value in ACCEPTED.items():
        assert same(codec.parse_document((CORPUS / "accepted" / name).read_bytes(), name).plain(), value), (
            name
        )
    for name, (line, _, _) in REFUSED.items():
        with pytest.raises(BadDocument) as caught:
            codec.parse_document((CORPUS / "refused" / name).read_bytes(), name)
        assert abs(caught.value.line - line) <= 1, name


def test_a_document_is_written_for_people() -> None:
    """Block style, keys as given, lines of text as lines; quotes only where a reader would misread."""
    value = read(QUESTION).plain()
    assert isinstance(value, dict)
    assert codec.dump_document(value) == QUESTION
    odd = {
        "on": "no",
        "when": "2030-01-31",
        "rows": [[1, 2], []],
        "text": " a\n\n",
        "long " * 40: {"a": None},
    }
    assert codec.dump_document(odd).decode() == (
        '"on": "no"\nwhen: "2030-01-31"\nrows:\n  - - 1\n    - 2\n  - []\n'
        f'text: |2+\n   a\n\n? "{"long " * 40}"\n:\n  a: null\n'
    )
    assert codec.dump_document({}) == b"{}\n"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": ["x", "\ud800"]}, r"a\[1\]: expected text; found the character U\+D800"),
        ({"a": {"b": "x\0"}}, r"a.b: expected text; found the character U\+0000"),
        ({"\udcff": 1}, r"found the character U\+DCFF"),
        ({"a": float("nan")}, "expected a finite number; found nan"),
        ({"a": 1 << 63}, "at most 64 bits"),
    ],
)
def test_what_no_document_can_hold_is_not_written(value: dict[str, Any], words: str) -> None:
    """The error names the field, and nothing is written."""
    with pytest.raises(BadDocument, match=words):
        codec.dump_document(value)


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": b"x"}, {1: "a"}])
def test_a_wrong_type_is_the_programs_fault(value: Any) -> None:
    """What is no plain value at all is no user's error."""
    with pytest.raises(TypeError, match="a document"):
        codec.dump_document(value)


def test_a_near_miss_is_named() -> None:
    """The sentence of an error is complete: file, line, field, what was expected, what was found, what was meant."""
    kind = read(QUESTION).need("questions").items()[0].need("type")
    with pytest.raises(BadDocument) as caught:
        kind.one_of(["text", "approval", "choice"])
    assert caught.value.message == (
        "question.yaml, line 6: questions[0].type: expected one of text, approval, choice; "
        'found "chioce" (did you mean choice?)'
    )


FIELDS = """\
text: abc
blank: " "
number: 3
half: 0.5
yes: true
nothing:
list: [1]
map: {a: 1, "b\\e]c": 2}
"""


@pytest.mark.parametrize(
    ("key", "how", "words"),
    [
        (
            "number",
            lambda f: f.text(),
            'line 3: number: expected text; found the number 3 (in quotes it is text: "3")',
        ),
        ("yes", lambda f: f.text(), 'line 5: yes: expected text; found true (in quotes it is text: "true")'),
        ("list", lambda f: f.text(), "line 7: list: expected text; found a list"),
        ("text", lambda f: f.text(most=2), "line 1: text: expected at most 2 characters; found 3"),
        ("text", lambda f: f.text(least=4), "line 1: text: expected at least 4 characters; found 3"),
        ("blank", lambda f: f.text(least=1), "line 2: blank: expected some text; it is empty"),
        (
            "number",
            lambda f: f.integer(1, 2),
            "line 3: number: expected a whole number from 1 to 2; found the number 3",
        ),
        ("yes", lambda f: f.integer(0, 9), "line 5: yes: expected a whole number from 0 to 9; found true"),
        (
            "half",
            lambda f: f.integer(0, 9),
            "line 4: half: expected a whole number from 0 to 9; found the number 0.5",
        ),
        (
            "half",
            lambda f: f.number(1, 2),
            "line 4: half: expected a number from 1 to 2; found the number 0.5",
        ),
        ("yes", lambda f: f.number(0, 1), "line 5: yes: expected a number from 0 to 1; found true"),
        ("number", lambda f: f.boolean(), "line 3: number: expected true or false; found the number 3"),
        (
            "text",
            lambda f: f.items(),
            'line 1: text: expected a list (lines that begin with `- `); found "abc"',
        ),
        (
            "list",
            lambda f: f.get("a"),
            "line 7: list: expected a mapping (lines of `key: value`); found a list",
        ),
        ("map", lambda f: f.need("z"), "line 8: map.z: expected a value; it is missing"),
        (
            "map",
            lambda f: f.need("b\x1b]c").text(),
            'line 8: map["b\\x1b]c"]: expected text; found the number 2',
        ),
        ("map", lambda f: f.one_of(["a"]), "line 8: map: expected one of a; found a mapping"),
    ],
)
def test_a_field_says_what_was_expected(key: str, how: Any, words: str) -> None:
    """Each accessor refuses what does not fit, with the place and both halves of the sentence."""
    with pytest.raises(BadDocument) as caught:
        how(read(FIELDS).need(key))
    assert caught.value.message.startswith(f"question.yaml, {words}")


def test_a_field_gives_what_it_has() -> None:
    """The accessors return plain values; null and missing are the same to `get` and refused by `need`."""
    top = read(FIELDS)
    assert top.keys() == ["text", "blank", "number", "half", "yes", "nothing", "list", "map"]
    assert top.need("text").text(least=1, most=3) == "abc"
    assert (top.need("number").integer(3, 3), top.need("number").number(0, 9)) == (3, 3.0)
    assert top.need("half").number(0, 1) == 0.5
    assert top.need("yes").boolean() is True
    assert top.need("text").one_of(["abc"]) == "abc"
    assert [item.plain() for item in top.need("list").items()] == [1]
    assert (top.get("nothing"), top.get("absent")) == (None, None)
    assert top.mapping()["nothing"].plain() is None
    assert repr(top.need("text")) == "Field('abc', 'question.yaml', 'text', 1)"
    with pytest.raises(BadDocument, match="line 6: nothing: expected a value; it is empty"):
        top.need("nothing")


def test_a_value_without_a_file_is_checked_alike() -> None:
    """What came from flags has paths and no lines, and the same limits."""
    field = codec.field_of({"a": [{"b": 1}]}, "the command line")
    with pytest.raises(BadDocument, match=r"^the command line: a\[0\].b: expected text; found the number 1"):
        field.need("a").items()[0].need("b").text()
    nest: object = 1
    for _ in range(5000):
        nest = [nest]
    with pytest.raises(BadDocument, match="at most 32 levels"):
        codec.field_of(nest, "x")
    with pytest.raises(BadDocument, match="at most 20,000 values"):
        codec.field_of([0] * 20_000, "x")
    with pytest.raises(BadDocument, match="keys that are text"):
        codec.field_of({1: 2}, "x")


@pytest.mark.slow
def test_long_keys_times_many_leaves_stay_small() -> None:
    """Paths are put together only for an error: kept with every field they would take hundreds of megabytes."""
    import tracemalloc

    nested = "".join(f'{{"{"k" * 900}": ' for _ in range(30)) + "[" + "1," * 10_000 + "1]" + "}" * 30
    tracemalloc.start()
    try:
        read(nested)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_an_answer_in_an_error_is_cut_and_harmless() -> None:
    """A found text is shown short and without what a terminal obeys."""
    field = read(b'a: "\\e[31m' + b"x" * 100_000 + b'"').need("a")
    with pytest.raises(BadDocument) as caught:
        field.one_of(["b"])
    assert len(caught.value.message) < 150
    assert "\\x1b[31m" in caught.value.message


def test_writing_needs_no_yaml_library() -> None:
    """Opening a gate does not pay for importing one."""
    code = "import sys; from gitgate.document import codec; codec.dump_document({'a': ['b\\nc']}); print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
