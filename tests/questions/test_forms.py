"""Forms: a schema that somebody else wrote is checked before it runs, and run within bounds."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.errors import BadDocument, MissingExtra
from gitgate.questions.forms import check_schema, coerce, validate

DEPLOY: dict[str, Any] = {
    "type": "object",
    "required": ["count"],
    "additionalProperties": False,
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "slug": {"type": "string", "pattern": "^[a-z]+(-[a-z0-9]+)*$"},
        "when": {"type": "string", "format": "date-time"},
        "level": {"enum": ["low", 3, True, None, "3"]},
        "extra": {"type": ["null", "object"]},
        "again": {"$ref": "#/properties/count"},
    },
    "$defs": {"tag": {"type": "string", "minLength": 2}},
}


def multiplying(levels: int) -> dict[str, Any]:
    """A schema whose references double at each level."""
    defs: dict[str, Any] = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": {**defs, f"a{levels}": {}}, "$ref": "#/$defs/a0"}


def nested_choices(levels: int) -> dict[str, Any]:
    """A schema in which telling what is wrong leads deeper and deeper, again for each part of the answer."""
    defs: dict[str, Any] = {f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}]} for i in range(levels)}
    last = {"required": ["x"], "properties": {"a": {"$ref": "#/$defs/a0"}}}
    return {"$defs": {**defs, f"a{levels}": last}, "$ref": "#/$defs/a0"}


def nested(levels: int, keyword: str) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {keyword: schema}
    return schema


def test_a_fitting_answer_has_no_problem() -> None:
    """Types, references, patterns, formats: all hold."""
    value = {
        "count": 3,
        "on": True,
        "tags": ["aa"],
        "slug": "a-b2",
        "when": "2030-01-31T00:00:00Z",
        "level": None,
    }
    assert validate(DEPLOY, value) == []


def test_each_problem_names_its_path() -> None:
    """What does not fit is told in a fixed order, each with where it is."""
    value = {
        "count": 0,
        "on": "x",
        "tags": ["aa", "a"],
        "slug": "a--b",
        "when": "soon",
        "level": 4,
        "z\x1b": 1,
    }
    problems = validate(DEPLOY, value)
    assert [problem.partition(":")[0] for problem in problems[1:]] == [
        "count",
        "level",
        "on",
        "slug",
        "tags[1]",
        "when",
    ]
    assert problems[0].startswith("Additional properties are not allowed")
    assert all(problem.isprintable() and len(problem) < 250 for problem in problems)
    assert validate(DEPLOY, {}) == ['"count" is a required property']


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "http://evil.example/x"}, r"\$ref.*expected a reference within this schema"),
        ({"$ref": "other.json#/a"}, "expected a reference within this schema"),
        ({"$ref": 3}, "expected a reference within this schema"),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}}, r"schema.properties.a.*a schema that is there"),
        ({"default": {"pattern": "(a+)+$"}, "$ref": "#/default"}, "a schema that is there"),
        ({"$ref": "#name"}, "a schema that is there"),
        ({"$ref": "#"}, "expected a schema that ends"),
        ({"allOf": [{"$ref": "#"}]}, "expected a schema that ends"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
            "expected a schema that ends",
        ),
        ({"patternProperties": {"(a+)+$": {}}}, "schema.patternProperties: expected a form's schema without"),
        ({"unevaluatedProperties": False}, "without unevaluatedProperties"),
        ({"$dynamicRef": "#a"}, r"without \$dynamicRef"),
        ({"$defs": {"a": {"$id": "http://evil.example/"}}}, r"without \$id"),
        ({"$schema": "https://evil.example/"}, "expected one of json-schema.org/draft-07/schema"),
        ({"type": "array"}, "expected object"),
        (
            {"properties": {"a": {"pattern": "(?=a)"}}},
            "schema.properties.a.pattern: expected a pattern that is matched",
        ),
        ({"properties": {"a": {"type": "strin"}}}, "schema.properties.a.type: expected a JSON Schema"),
        ({"properties": 3}, "schema.properties: expected a JSON Schema"),
        ({"allOf": {}}, "schema.allOf: expected a JSON Schema"),
        ({"required": "a"}, "schema.required: expected a JSON Schema"),
        ({"$id": 3}, r"schema\[.\$id.\]: expected a JSON Schema"),
        ({"properties": {"a": {"pattern": 3}}}, "schema.properties.a.pattern: expected a JSON Schema"),
        (nested(40, "not"), "at most 32 levels"),
        (nested(5000, "not"), "at most 32 levels"),
        ({"enum": [0] * 3000}, "at most 2000 values"),
        ({"description": "x" * 70_000}, "at most 2000 values and 65536 characters"),
    ],
)
def test_a_hostile_schema_is_refused(schema: dict[str, Any], words: str) -> None:
    """What would fetch, loop, blow up, or is no schema is refused with its place, before it runs."""
    with pytest.raises(BadDocument, match=words):
        check_schema(schema, "question.yaml")
    with pytest.raises(BadDocument):
        validate(schema, {})


def test_a_refused_schema_names_file_and_line() -> None:
    """With the field it was read from, the error has the line too."""
    field = codec.parse_document(
        b"hitl: 1\nschema:\n  properties:\n    a:\n      type: strin\n", "question.yaml"
    ).need("schema")
    plain = field.plain()
    assert isinstance(plain, dict)
    with pytest.raises(
        BadDocument, match=r"^question.yaml, line 5: schema.properties.a.type: expected a JSON Schema"
    ):
        check_schema(plain, "question.yaml", field=field)


def test_words_of_the_schema_language_are_names_elsewhere() -> None:
    """A field may be called like a keyword, and what stands in a default or an enum is no schema."""
    schema = {
        "properties": {"$ref": {"type": "string"}, "patternProperties": {"type": "string"}, "pattern": {}},
        "default": {"$ref": "http://evil.example/"},
        "examples": [{"patternProperties": {}}],
    }
    check_schema(schema, "question.yaml")
    assert validate(schema, {"patternProperties": 1}) == ['patternProperties: 1 is not of type "string"']


def test_recursion_into_the_value_is_allowed() -> None:
    """A tree refers to itself for smaller and smaller parts, and that ends."""
    tree = {"properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}}
    assert validate(tree, {"children": [{"name": "a", "children": []}]}) == []
    assert validate(tree, {"children": [{"name": 1}]}) == ['children[0].name: 1 is not of type "string"']


def test_references_are_read_as_json_pointers() -> None:
    """Escapes of JSON pointers and of addresses are understood."""
    schema = {"$defs": {"a/b~c d": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a~1b~0c%20d"}}}
    assert validate(schema, {"a": 1}) == ['a: 1 is not of type "string"']


@pytest.mark.parametrize(
    "version", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]
)
def test_older_versions_are_understood(version: str) -> None:
    """A schema may say which version it is of, and have an address of its own."""
    schema = {
        "$schema": version,
        "$id": "https://example.org/x",
        "properties": {"a": {"$ref": "#/definitions/b"}},
    }
    schema = {**schema, "definitions": {"b": {"type": "string"}}}
    assert validate(schema, {"a": 1}) == ['a: 1 is not of type "string"']


@pytest.mark.parametrize("version", ["draft-07/schema#", "draft/2019-09/schema", "draft/2020-12/schema"])
@pytest.mark.parametrize(
    ("format", "fitting", "unfit"),
    [
        ("date", "2030-01-31", "2030-02-31"),
        ("date-time", "2030-01-31T00:00:00+01:00", "2030-01-31"),
        ("email", "ann@example.org", "ann"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "1"),
        ("uuid", "0b7bbbb7-6e0f-4f5e-9b0c-0b7bbbb76e0f", "0b7bbbb7"),
    ],
)
def test_formats_are_held_in_each_version(version: str, format: str, fitting: str, unfit: str) -> None:
    """Any other format is a hint for whoever shows the form."""
    schema = {"$schema": f"https://json-schema.org/{version}", "properties": {"a": {"format": format}}}
    assert validate(schema, {"a": fitting}) == []
    assert validate(schema, {"a": unfit}) == [f'a: "{unfit}" is not a "{format}"']
    assert validate({**schema, "properties": {"a": {"format": "uri"}}}, {"a": " "}) == []


class Listening:
    """A server on loopback that any schema could be had from, and what it was asked for."""

    def __init__(self) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self.asked = asked
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def listening() -> Iterator[Listening]:
    server = Listening()
    yield server
    server.server.shutdown()
    server.server.server_close()


ATTACKS: list[dict[str, Any]] = [
    {"$ref": "AT"},
    {"$ref": "AT#/properties"},
    {"properties": {"a": {"items": {"allOf": [{"$ref": "AT"}]}}}},
    {"$defs": {"a": {"$ref": "AT"}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
    {"definitions": {"a": {"$ref": "AT"}}},
    {"definitions": {"a": {"definitions": {"b": {"$ref": "AT"}}}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$ref": "AT"}}},
    {"$schema": "AT"},
    {"properties": {"a": {"$schema": "AT"}}},
    {"$id": "AT", "properties": {"a": {"$ref": "other"}}},
    {"$id": "AT/", "$ref": "."},
    {"properties": {"a": {"$id": "AT", "$ref": "#/other"}}},
    {"$dynamicRef": "AT"},
    {"$defs": {"a": {"$dynamicAnchor": "x", "$dynamicRef": "AT#x"}}},
    {"$recursiveRef": "AT"},
    {"$vocabulary": {"AT": True}},
    {"dependencies": {"a": {"$ref": "AT"}}},
    {"dependentSchemas": {"a": {"$ref": "AT"}}},
    {"prefixItems": [{"$ref": "AT"}]},
    {"contentSchema": {"$ref": "AT"}},
]


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_schema_that_would_fetch_is_refused_before_anything_is_read(
    listening: Listening, tmp_path: Path, attack: dict[str, Any], scheme: str
) -> None:
    """By network or from a file, however deep it stands: the error names the place, and nobody is asked."""
    place = tmp_path / "schema.json"
    place.write_text("{}")
    address = listening.address if scheme == "http" else place.as_uri()
    schema = json.loads(json.dumps(attack).replace("AT", address))
    with pytest.raises(BadDocument, match=r"^question.yaml: schema") as refused:
        check_schema(schema, "question.yaml")
    assert "expected" in str(refused.value)
    with pytest.raises(BadDocument):
        validate(schema, {"a": {}})
    assert listening.asked == []


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_library_has_nothing_to_fetch_with(
    listening: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """Not even past our own check. Left to itself it reads the file."""
    monkeypatch.setattr("gitgate.questions.forms.check_bounds", lambda *_: None)
    place = tmp_path / "schema.json"
    place.write_text("{}")
    address = f"{listening.address}/a" if scheme == "http" else place.as_uri()
    for schema in ({"$ref": address}, {"properties": {"a": {"$ref": address}}}):
        with pytest.raises(BadDocument, match="retrieving it failed"):
            validate(schema, {})
    assert listening.asked == []
    if scheme == "file":
        assert jsonschema_rs.Draft202012Validator({"$ref": address}).is_valid(3)
    else:
        urllib.request.urlopen(address).close()  # noqa: S310 - the address is ours
        assert listening.asked == ["/a"]


@pytest.mark.parametrize(
    "schema",
    [
        {"default": {"$ref": "AT"}},
        {"properties": {"a": {"enum": [{"$ref": "AT", "$id": "AT"}]}}},
        {"properties": {"a": {"const": {"$schema": "AT", "$ref": "AT"}}}},
        {"examples": [{"$dynamicRef": "AT"}], "unknown": {"$ref": "AT", "$id": "AT"}},
        {"$id": "AT", "properties": {"a": {"type": "object"}}},
    ],
    ids=str,
)
def test_an_address_that_is_no_reference_is_not_followed(
    listening: Listening, schema: dict[str, Any]
) -> None:
    """In a default, a choice or an unknown word it is text like any other."""
    validate(json.loads(json.dumps(schema).replace("AT", listening.address)), {"a": {}})
    assert listening.asked == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (multiplying(40), {}),
        (
            {"properties": {"a": {"allOf": [{"uniqueItems": True}] * 600}}},
            {"a": [{"x": i} for i in range(300)]},
        ),
        ({"properties": {"a": {"anyOf": [{"type": "string"}] * 900}}}, {"a": ["x" * 60_000]}),
        ({"properties": {"a": {"enum": [["x" * 10] * 3] * 400}}}, {"a": ["x" * 20_000] * 3}),
        ({"properties": {"a": {"pattern": "[ab]*a[ab]{1500}c[ab]*d"}}}, {"a": "ab" * 30_000}),
        (nested_choices(140), {"a": {"a": {}}}),
    ],
)
def test_a_schema_that_never_ends_is_stopped(schema: dict[str, Any], value: object) -> None:
    """Work is counted and bounded, whatever multiplies it."""
    with pytest.raises(BadDocument, match="checked in a moment"):
        validate(schema, value)


def test_a_chain_of_references_is_followed_or_refused() -> None:
    """However long, it ends in an answer or a clear error."""
    names = [f"a{i}" for i in range(600)]
    defs: dict[str, Any] = {a: {"$ref": f"#/$defs/{b}"} for a, b in pairwise(names)}
    schema = {"$defs": {**defs, names[-1]: {"required": ["x"]}}, "$ref": "#/$defs/a0"}
    try:
        problems = validate(schema, {})
    except BadDocument as wrong:
        problems = [wrong.message]
    assert problems in (['"x" is a required property'], [m for m in problems if "checked in a moment" in m])
    assert problems


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*)*$", r"^(\w+\s?)*$", "^(([a-z])+.)+[A-Z]$"]
)
def test_no_pattern_runs_away(pattern: str) -> None:
    """Patterns on which Python's own would try for years are matched at once."""
    schema = {"properties": {"a": {"pattern": pattern}}}
    assert len(validate(schema, {"a": "a" * 2000 + "\n!"})) == 1
    assert validate(schema, {"a": "aaaaZ"}) in ([], [f'a: "aaaaZ" does not match "{pattern}"'])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": float("nan")}, "found float"),
        ({"a": 1 << 63}, "found int"),
        ({"a": b"x"}, "found bytes"),
        ({"a": "\ud800"}, "found half of one"),
        ({"\udfff": 1}, "found half of one"),
        ({1: 2}, "keys that are text"),
        ({"a": [0] * 3000}, "at most 2000 values"),
        ({"a": "x" * 70_000}, "at most 65536 characters"),
        (nested(40, "a"), "32 levels"),
        (nested(5000, "a"), "32 levels"),
    ],
)
def test_an_answer_that_no_document_holds_is_a_problem(value: object, words: str) -> None:
    """Before the schema is asked at all."""
    (problem,) = validate({}, value)
    assert words in problem


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(MissingExtra, match="needs the jsonschema-rs package") as caught:
        check_schema({}, "question.yaml")
    assert caught.value.hint == "pip install 'git-gate[forms]'"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("count", "3", 3), ("count", " -7 ", -7), ("count", "3.5", "3.5"), ("count", "9" * 5000, "9" * 5000),
        ("count", "x", "x"), ("count", "1_0", "1_0"), ("share", "0.5", 0.5), ("share", "2", 2), ("share", "1e3", 1000.0),
        ("share", "nan", "nan"), ("share", "1e999", "1e999"), ("on", "true", True), ("on", "No", False), ("on", "1", "1"),
        ("tags", "a, b,,", ["a", "b"]), ("tags", '["a,b"]', ["a,b"]), ("tags", "[1", "[1"), ("tags", "", []),
        ("slug", "12", "12"), ("level", "low", "low"), ("level", "3", "3"), ("level", "true", True),
        ("level", "null", None), ("level", "4", "4"), ("extra", "", None), ("extra", '{"a": 1}', {"a": 1}),
        ("extra", "[1]", "[1]"), ("extra", "{" * 5000, "{" * 5000), ("again", "4", 4), ("unknown", "5", "5"),
    ],
)  # fmt: skip
def test_what_was_typed_becomes_what_is_expected(key: str, text: str, value: object) -> None:
    """A word becomes the type of its field; what cannot stays text, for `validate` to refuse."""
    coerced = coerce(DEPLOY, {key: text})
    assert repr(coerced) == repr({key: value})


def test_typing_into_a_strange_schema_is_harmless() -> None:
    """A schema that is wrong or circular leaves the text as it was."""
    for field in (
        3,
        None,
        {"$ref": "#/properties/a"},
        {"$ref": "#/nowhere"},
        {"type": 3},
        {"enum": 3},
        {"type": "odd"},
    ):
        assert coerce({"properties": {"a": field}}, {"a": "1"}) == {"a": "1"}
    assert coerce({"properties": 3}, {"a": "1"}) == {"a": "1"}
    numbers = {
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}},
            "b": {"enum": [3]},
            "c": {"const": True},
        }
    }
    assert coerce(numbers, {"a": "1,2", "b": "3", "c": "true"}) == {"a": [1, 2], "b": 3, "c": True}
    rows = {"properties": {"a": {"type": "array", "items": {"type": "array", "items": {}}}}}
    assert coerce(rows, {"a": "1,2"}) == {"a": "1,2"}


KEYWORDS = st.sampled_from(
    """type properties items allOf anyOf oneOf not if then else enum const pattern minimum multipleOf required $ref
    $defs additionalProperties uniqueItems contains format minLength dependentSchemas prefixItems""".split()
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["object", "string", "#", "#/$defs/a", "a", "^a*$", "date", "(", "integer"]),
)  # fmt: skip
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYWORDS, st.just("a")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(KEYWORDS, SCHEMAS, max_size=4),
    st.dictionaries(st.sampled_from("ab"), SCHEMAS, max_size=2),
)
def test_any_schema_is_refused_or_asked(schema: dict[str, Any], value: dict[str, Any]) -> None:
    """No schema at all makes checking fail in another way than with a clear error."""
    try:
        problems = validate(schema, value)
    except BadDocument as wrong:
        problems = [wrong.message]
    assert all(problem.isprintable() for problem in problems)
    coerce(schema, {"a": json.dumps(value)})
