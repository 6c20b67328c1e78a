"""What is read without the YAML library is read exactly as with it, places included; everything else is left to it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitgate.document import LIMITS, Field, codec
from gitgate.document.codec import read_yaml
from gitgate.errors import BadDocument

CORPUS = sorted((Path(__file__).parents[1] / "corpus").rglob("*.*"))
WORDS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet='ab :#-|>"\\\n\t\'[]{}&*!%@`?,~=01.+_é😀\u2028\x85\x1b', max_size=10),
    st.sampled_from(["null", "true", "no", "~", "yes", "1", "1.0", "0x1", "---", "<<", "a: b", "a #b", "line\nline\n", "x\n\n"]),
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    WORDS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(
    st.one_of(WORDS, st.from_regex(r"[a-z_]{1,6}", fullmatch=True)), VALUES, min_size=1, max_size=5
)
PIECES = st.sampled_from(
    [" ", "  ", "- ", "-", ":", ": ", "#", " #", "|", "|-", "|+", ">", '"', "'", "\\", "\n", "\n\n", "\n  ", "[]", "{}", "[", "}", "&a ",
     "*a", "!t ", "%", "?", "? ", "~", "a", "b: c", "0", "-1", "1.5", "null", "true", "---\n", "...", "\\u0041", "\\x41", ",", "é", "<<"]
)  # fmt: skip


def by_library(data: bytes) -> Field | str:
    """What the library makes of it: the document, or its complaint."""
    with mock.patch.object(codec, "read_yaml", return_value=None):
        try:
            return codec.parse_document(data, "q.yaml")
        except BadDocument as wrong:
            return str(wrong)


def shape(field: Field) -> object:
    """Everything that a reader can see of a field: value and its type, place and path, all the way down."""
    value = field.value
    if isinstance(value, dict):
        inner: object = {name: shape(item) for name, item in value.items()}
    elif isinstance(value, list):
        inner = [shape(item) for item in value]
    else:
        inner = (type(value).__name__, repr(value))
    return (inner, field.line, field.path, field.source)


def check(text: str) -> bool:
    """Whether it was read here; if it was, the library agrees."""
    ours = read_yaml(text, "q.yaml", LIMITS)
    if ours is None:
        return False
    theirs = by_library(text.encode())
    assert isinstance(theirs, Field), f"{theirs}\n{text}"
    assert shape(ours) == shape(theirs), text
    return True


@given(DOCUMENTS)
def test_what_is_written_is_read_alike(value: dict[str, object]) -> None:
    """Whatever a document holds."""
    try:
        text = codec.dump_document(value).decode()
    except BadDocument:
        return  # not everything can be written
    check(text)


@settings(max_examples=settings().max_examples * 5)
@given(DOCUMENTS, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), PIECES), min_size=1, max_size=4))
@example({"a": "x\ny\n"}, [(0.5, 0, " ")])
@pytest.mark.slow
def test_a_damaged_document_is_read_alike_or_left(
    value: dict[str, object], damages: list[tuple[float, int, str]]
) -> None:
    """Any character put in, taken out or replaced: no mistake is read as something else."""
    try:
        text = codec.dump_document(value).decode()
    except BadDocument:
        return
    for where, cut, piece in damages:
        at = int(where * len(text))
        text = text[:at] + piece + text[at + cut :]
    if not re.search(codec.REFUSED, text) and not text.startswith("\ufeff"):
        check(text)


@settings(max_examples=settings().max_examples * 5)
@given(st.lists(PIECES, max_size=14))
def test_any_text_is_read_alike_or_left(pieces: list[str]) -> None:
    """Pieces of YAML in any order."""
    check("a: b\n" + "".join(pieces) + "\n")
    check("".join(pieces) + "\n")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_corpus_is_read_alike_or_left(path: Path) -> None:
    """Every hostile file too."""
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if not re.search(codec.REFUSED, text):
        check(text.removeprefix("\ufeff"))


@pytest.mark.parametrize(
    "text",
    [
        'hitl: 1\ntitle: Which?\nquestions:\n  - key: a\n    prompt: |-\n      one\n\n        two\n    options:\n      - label: A\n    other: true\n',
        'at: "2026-11-18T10:15:40Z"\nvalues:\n  a: "x\\ny \\"z\\" \\u202e"\nlist:\n  - one\n  - "2"\nnone: null\nempty: []\nmore: {}\n',
        "n: -5\nf: 0.75\nb: |\n  x\nc: |+\n  y\n\nd: |-\n  z\n\n",
    ],
)  # fmt: skip
def test_our_own_documents_are_read_here(text: str) -> None:
    """A question and an answer as they are written need no library."""
    assert check(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a: b", "a:\n", "a: b\n\nc: d\n", "a:  b\n", "a: b \n", "a: b: c\n", "a: b #c\n", "a: 'b'\n", "a: [b]\n", "a: &b c\n", "a: *b\n",
        "a: !t b\n", "a: b\n  c\n", "a: b\n  c: d\n", "a:\n- b\n", "a:\n    b: c\n", "a: b\na: c\n", "null: a\n", "? a\n: b\n", "---\na: b\n",
        "a: |2\n   b\n", "a: |\n\n  b\n", "a: |\n   b\n", "a: >\n  b\n", 'a: "b\n  c"\n', 'a: "\\x41"\n', 'a: "\\ud800"\n', 'a: "\\u0000"\n', "a: 0x1\n",
        "a: 1e3\n", "a: - b\n", "a:\n  - - b\n", "a: b\r\n", "a:\tb\n", "# a\nb: c\n", "a: b\n---\n", "<<: a\n", "a: -\n", "a: @b\n", "a.b: c\n",
    ],
)  # fmt: skip
def test_anything_else_is_left_to_the_library(text: str) -> None:
    """Also where it would be easy: one reader of the whole language is enough."""
    assert read_yaml(text, "q.yaml", LIMITS) is None


def test_limits_are_the_librarys_business() -> None:
    """Too many values or levels: the library says so, with its place."""
    wide = "".join(f"k{number}: 1\n" for number in range(LIMITS.nodes))
    deep = (
        "".join(f"{'  ' * level}k:\n" for level in range(LIMITS.depth + 2))
        + "  " * (LIMITS.depth + 2)
        + "k: 1\n"
    )
    assert (read_yaml(wide, "q", LIMITS), read_yaml(deep, "q", LIMITS)) == (None, None)


def test_reading_a_gate_loads_no_library() -> None:
    """That is what it is for."""
    program = "import sys; from gitgate.document import codec; codec.parse_document(b'hitl: 1\\na:\\n  - b: c\\n', 'q'); print('yaml' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )
