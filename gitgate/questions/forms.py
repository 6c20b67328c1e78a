"""Questions: answers to `form` questions, held against their JSON Schema; and which schemas a form may have.

The library `jsonschema-rs` does the work and is imported here alone, late: it is an extra, and it costs start-up time.
Around it stand three bounds. Nothing is fetched: references stay within the schema, and the library is given nothing to
fetch with. No pattern runs away: its engine never tries a second way, and a pattern that needs that is refused. And the
library cannot be stopped, so that its work is counted before: a schema whose references multiply is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, NoReturn
from urllib.parse import unquote

from ..document import Field, NamedTuple, field_of, nearest, scalar, step
from ..document.codec import HIGHEST, LOWEST
from ..errors import BadDocument, MissingExtra, Usage
from ..text import one_line, parse_time

NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,3})?", re.ASCII)
INTEGER = re.compile(r"[-+]?\d{1,19}", re.ASCII)
SPOKEN = {
    "true": True, "yes": True, "y": True, "on": True, "false": False, "no": False, "n": False, "off": False,
}  # fmt: skip


def coerce(schema: Mapping[str, object], pairs: Mapping[str, str]) -> dict[str, object]:
    """Return the `KEY=VALUE` pairs as the types that the schema expects; `validate` reports what has to stay text."""
    fields = schema.get("properties")
    known = fields if isinstance(fields, Mapping) else {}
    return {key: _coerced(schema, known.get(key), text) for key, text in pairs.items()}


def _coerced(schema: Mapping[str, object], field: object, text: str) -> object:
    field = _resolved(schema, field)
    types = field.get("type")
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    choices = field.get("enum", [field["const"]] if "const" in field else [])
    if not names and isinstance(choices, list):
        return _chosen(choices, text)
    for name in ("null", "boolean", "integer", "number", "array", "object"):
        if name in names:
            value = _as_list(schema, field, text) if name == "array" else READ[name](text)
            if value is not NOTHING:
                return value
    return text


def _resolved(schema: Mapping[str, object], field: object) -> Mapping[str, Any]:
    """Return `field`, or what its references lead to; a circle leads to nothing."""
    for _ in range(8):
        if not isinstance(field, Mapping):
            return {}
        if not isinstance(field.get("$ref"), str):
            return field
        field = _pointed(schema, field["$ref"])
    return {}


def _pointed(schema: Mapping[str, object], reference: str) -> object:
    """Return what a reference within `schema` leads to; None where it leads nowhere."""
    target: object = schema
    for part in pointed(reference):
        if isinstance(target, list):
            target = target[int(part)] if part.isdecimal() and int(part) < len(target) else None
        else:
            target = target.get(part) if isinstance(target, Mapping) else None
    return target


NOTHING = object()


def _as_null(text: str) -> object:
    return None if text.strip().lower() in ("", "null", "none") else NOTHING


def _as_boolean(text: str) -> object:
    return SPOKEN.get(text.strip().lower(), NOTHING)


def _as_integer(text: str) -> object:
    return int(text) if INTEGER.fullmatch(text.strip()) else NOTHING


def _as_number(text: str) -> object:
    whole = _as_integer(text)
    if whole is not NOTHING or not NUMBER.fullmatch(text.strip()):
        return whole
    number = float(text)
    return number if isfinite(number) else NOTHING


def _as_object(text: str) -> object:
    value = _json(text) if text.strip().startswith("{") else NOTHING
    return value if isinstance(value, dict) else NOTHING


READ: Mapping[str, Callable[[str], object]] = {
    "null": _as_null,
    "boolean": _as_boolean,
    "integer": _as_integer,
    "number": _as_number,
    "object": _as_object,
}


def _as_list(schema: Mapping[str, object], field: Mapping[str, Any], text: str) -> object:
    """Return a JSON list, or the parts between commas."""
    if text.strip().startswith("["):
        value = _json(text)
        return value if isinstance(value, list) else NOTHING
    items = _resolved(schema, field.get("items"))
    inner = {key: value for key, value in items.items() if key in ("type", "enum", "const")}
    if "array" in inner.get("type", ""):
        return NOTHING
    return [_coerced({}, inner, part.strip()) for part in text.split(",") if part.strip()]


def _chosen(choices: list[Any], text: str) -> object:
    """Return the one of `choices` that is spelt like `text`: 3 for `3`, but the text where both are there."""
    if text in [choice for choice in choices if isinstance(choice, str)]:
        return text
    for choice in choices:
        if (choice is None or isinstance(choice, (bool, int, float))) and scalar(choice) == text.strip():
            return choice
    return text


def _json(text: str) -> object:
    import json

    if len(text) > MOST_TEXT:
        return NOTHING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING


BUDGET = 600_000
MOST_NODES, MOST_LEVELS = 2000, 150
MOST_PROBLEMS, MOST_PATTERN, MOST_WEIGHT = 20, 500, 1000
SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
FORMATS = ("date", "date-time", "email", "ipv4", "ipv6", "uuid")
UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
UNASKED = ("$id", "$schema", "contentMediaType", "contentEncoding")


def check_schema(schema: Mapping[str, object], source: str, *, field: Field | None = None) -> None:
    """Raise BadDocument unless `schema` is one that a form may have. `field` is where it was read, for its lines."""
    top = field or field_of(schema, source, "schema")
    check_bounds(schema, top)
    weight = 0
    for place in walk(schema):
        pattern = place.schema.get("pattern") if isinstance(place.schema, Mapping) else None
        if isinstance(pattern, str):
            where = (*place.steps, "pattern")
            try:
                weight += _weight(pattern)
            except _Unfit as unfit:
                words = f"expected a pattern that is matched in one pass: {one_line(str(unfit), 160)}"
                refuse(top, where, f"{words}; found {short_quote(pattern)}")
            if weight > MOST_WEIGHT:
                refuse(top, where, "expected fewer or smaller patterns in a schema")
    _compiled(schema, top)


def validate(schema: Mapping[str, object], value: object) -> list[str]:
    """Return the problems of `value`, each with its path; empty if it fits. The schema is checked as well."""
    check_schema(schema, "question")
    try:
        sizes = _sizes(value)
    except _Unfit as unfit:
        return [str(unfit)]
    if not _affordable(schema, value, sizes):
        words = "expected a schema that is checked in a moment; this one multiplies its own references"
        raise BadDocument("question", 0, "schema", words)
    errors = list(_compiled(schema, field_of(schema, "schema")).iter_errors(value))
    errors.sort(key=lambda error: [str(part) for part in error.instance_path])
    return [_problem(schema, error) for error in errors[:MOST_PROBLEMS]]


# The library, and what is asked of it


def _library() -> Any:
    try:
        import jsonschema_rs
    except ImportError as missing:
        raise MissingExtra(
            "a question of type form needs the jsonschema-rs package", hint="pip install 'git-gate[forms]'"
        ) from missing
    return jsonschema_rs


def _compiled(schema: Mapping[str, object], top: Field) -> Any:
    """Return the library's validator, with nothing to fetch from, and the engine whose patterns never try again."""
    library = _library()
    try:
        return getattr(library, dialect(schema, top))(
            _asked(schema),
            validate_formats=True,
            formats=OWN_FORMATS,
            retriever=_fetch_nothing,
            pattern_options=library.RegexOptions(size_limit=SIZES[-1]),
        )
    except library.ValidationError as wrong:
        steps = tuple(str(part) for part in wrong.instance_path)
        refuse(top, steps, f"expected a JSON Schema; {one_line(wrong.message, 200)}")
    except (ValueError, TypeError) as wrong:
        refuse(top, (), f"expected a JSON Schema; {one_line(str(wrong), 200)}")


def _fetch_nothing(address: str) -> NoReturn:
    """Refuse to fetch a reference. Without this the library reads `file://` and asks `http://`."""
    raise ValueError(f"a form's schema fetches nothing, and not {address}")


def _is_time(text: str) -> bool:
    try:
        return parse_time(text) is not None
    except Usage:
        return False


# What the library reads more narrowly than records that are there, or in some versions of JSON Schema only.
OWN_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _is_time,
    "email": lambda text: "@" in text,
    "uuid": lambda text: UUID.fullmatch(text) is not None,
}


def _asked(schema: Mapping[str, object]) -> object:
    """Return a copy of the schema without keywords that test no answer, its patterns spelt for the library."""
    copy = _copied(schema)
    for place in walk(copy):
        if isinstance(place.schema, dict):
            for keyword in [word for word in UNASKED if isinstance(place.schema.get(word), str)]:
                del place.schema[keyword]
            if isinstance(place.schema.get("pattern"), str):
                place.schema["pattern"] = _spelt(place.schema["pattern"])
            if isinstance(place.schema.get("format"), str) and place.schema["format"] not in FORMATS:
                del place.schema["format"]
    return copy


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _problem(schema: Mapping[str, object], error: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else step(part) for part in error.instance_path)
    said = error.message
    for place in walk(schema):
        pattern = place.schema.get("pattern") if isinstance(place.schema, Mapping) else None
        if isinstance(pattern, str) and _spelt(pattern) != pattern:
            said = said.replace(f'"{_spelt(pattern)}"', f'"{pattern}"')
            said = said.replace(_quoted(_spelt(pattern)), _quoted(pattern))
    said = one_line(said[:1000], 200)
    return f"{path.removeprefix('.')}: {said}" if path else said


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


# Patterns: ECMA-262's, which the library's engine spells a little otherwise

PIECE = re.compile(
    r"\[(?P<not>\^?)(?P<members>(?:\\.|[^\]\\])*)\]|(?P<open>\[)|\\(?P<escaped>.)|(?P<any>\.)"
    r"|\(\?(?!:|<[A-Za-z_])(?P<odd>.?.?)",
    re.DOTALL,
)
MEMBER = re.compile(r"\\(?P<escaped>.)(?P<dash>-?)|[\[&~]", re.DOTALL)
ESCAPES = frozenset("dDwWsStnrfvxupPc")
SIGNS = frozenset(r"\^$.|?*+()[]{}-&~")


@lru_cache(maxsize=256)
def _weight(pattern: str) -> int:
    """Return a compiled pattern's size as a multiple of the least limit; matching costs that for each character."""
    library = _library()
    if len(pattern) > MOST_PATTERN:
        raise _Unfit(f"at most {MOST_PATTERN} characters, not {len(pattern)}")
    spelt = _spelt(pattern)
    for size in SIZES:
        try:
            library.Draft202012Validator(
                {"pattern": spelt}, pattern_options=library.RegexOptions(size_limit=size)
            )
        except ValueError:
            continue
        return size // SIZES[0]
    raise _Unfit("one that is well formed, and small once its counts are written out")


@lru_cache(maxsize=256)
def _spelt(pattern: str) -> str:
    r"""Return the pattern for the library's engine.

    There `.` takes more ends of lines, `\b` knows other letters, `\<` is an edge, `[]a]` is a class, and `[\w-.]` is
    refused. What JSON Schema's patterns do not have is refused here.
    """
    return PIECE.sub(_respelt, pattern)


def _respelt(piece: re.Match[str]) -> str:
    if piece["members"] is not None:
        return _respelt_class(piece["not"], piece["members"])
    if piece["open"]:
        raise _Unfit("a `[` without its `]`")
    if piece["any"]:
        return r"[^\n\r\u2028\u2029]"
    if piece["odd"] is not None:
        raise _Unfit(f"no lookaround or flag `(?{piece['odd']}`; a group is `(…)`, `(?:…)` or `(?<name>…)`")
    if piece["escaped"] in "bB":
        return rf"(?-u:\{piece['escaped']})"
    return _escape(piece["escaped"])


def _respelt_class(negated: str, members: str) -> str:
    if not members:
        if negated:
            return r"[\s\S]"
        raise _Unfit("a `[…]` that some character fits")
    return f"[{negated}{MEMBER.sub(_respelt_member, members)}]"


def _respelt_member(member: re.Match[str]) -> str:
    letter = member["escaped"]
    if letter is None:
        return f"\\{member[0]}"
    if letter in "dDwWsS":
        return f"\\{letter}\\-" if member["dash"] else f"\\{letter}"
    return (r"\x08" if letter == "b" else _escape(letter)) + member["dash"]


def _escape(letter: str) -> str:
    if letter == "0":
        return r"\x00"
    if letter.isascii() and letter.isalnum():
        if letter not in ESCAPES:
            raise _Unfit(f"no `\\{letter}`")
        return f"\\{letter}"
    return f"\\{letter}" if letter in SIGNS else letter


# The bounds


class _Unfit(Exception):
    """Error for a pattern that is not asked, or a value that no document could hold or that is too large."""


def _affordable(schema: Mapping[str, object], value: object, sizes: Mapping[int, int]) -> bool:
    """Return whether validation ends in a moment. Its work is counted first, as the library cannot be interrupted.

    Each level counts as many times as its depth: the library validates it again at each level to report errors.
    """
    left = BUDGET
    waiting: list[tuple[object, object, int]] = [(schema, value, 1)]
    while waiting:
        part, asked, level = waiting.pop()
        if isinstance(part, Mapping):
            inner = list(_asked_within(schema, part, asked))
            left -= level * _cost(part, asked, sizes) + len(inner)
            if left < 0 or level > MOST_LEVELS:
                return False
            waiting += [(schema, value, level + 1) for schema, value in inner]
    return True


def _asked_within(
    schema: Mapping[str, object], part: Mapping[str, object], value: object
) -> Iterator[tuple[object, object]]:
    """Yield the schemas that validating `value` against `part` applies next, each with its value."""
    if isinstance(part.get("$ref"), str):
        yield _pointed(schema, str(part["$ref"])), value
    for inner in within(SchemaPlace((), part, same_value=True)):
        for asked in [value] if inner.same_value else _parts(inner.steps, value):
            yield inner.schema, asked


def _parts(steps: tuple[str, ...], value: object) -> Iterable[object]:
    """Return the parts of `value` that the schema at `steps` applies to."""
    if isinstance(value, Mapping):
        if steps[0] == "properties":
            return [value[steps[1]]] if steps[1] in value else []
        if steps[0] == "propertyNames":
            return value
        return value.values() if steps[0] == "additionalProperties" else []
    if isinstance(value, list) and steps[0] in ("items", "prefixItems", "additionalItems", "contains"):
        return value[int(steps[1]) :][:1] if len(steps) > 1 else value
    return []


def _cost(part: Mapping[str, object], value: object, sizes: Mapping[int, int]) -> int:
    """Return the cost of the keywords of `part` applied to `value`, without the schemas nested in them."""
    each = 1 + sizes.get(id(value), 1) // 50
    cost = 1 + each * len(part)
    for keyword, argument in part.items():
        if isinstance(argument, (list, Mapping)):
            cost += len(argument) * (each if keyword == "enum" else 1)
    if isinstance(value, list) and part.get("uniqueItems"):
        cost += len(value) ** 2 // 10
    if isinstance(value, str) and isinstance(part.get("pattern"), str):
        cost += 3 * _weight(str(part["pattern"])) * len(value)
    return cost


def _sizes(value: object) -> dict[int, int]:
    """Return the size of each part of `value`, by identity; refuse what is no plain value, or is too large."""
    sizes: dict[int, int] = {}
    counted = 0

    def measure(part: object, depth: int) -> int:
        nonlocal counted
        counted += 1
        if counted > MOST_NODES or depth > MOST_DEPTH:
            raise _Unfit(f"expected at most {MOST_NODES} values and {MOST_DEPTH} levels; found more")
        if isinstance(part, str):
            size = _text_size(part)
        elif isinstance(part, dict):
            if not all(isinstance(key, str) for key in part):
                raise _Unfit("expected keys that are text; found another")
            size = sum(_text_size(key) + measure(inner, depth + 1) for key, inner in part.items())
        elif isinstance(part, list):
            size = sum(measure(inner, depth + 1) for inner in part)
        else:
            size = _scalar_size(part)
        if size > MOST_TEXT:
            raise _Unfit(f"expected at most {MOST_TEXT} characters; found more")
        sizes[id(part)] = size + 1
        return size + 1

    measure(value, 1)
    return sizes


def _text_size(text: str) -> int:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Unfit("expected text of whole characters; found half of one") from None
    return len(text)


def _scalar_size(part: object) -> int:
    if part is None or isinstance(part, bool) or (isinstance(part, int) and LOWEST <= part <= HIGHEST):
        return 0
    if isinstance(part, float) and isfinite(part):
        return 0
    raise _Unfit(f"expected values that JSON has, numbers of at most 64 bits; found {type(part).__name__}")


# Which JSON Schemas a form may have.
#
# A schema is a program that somebody else wrote and that is run on whoever answers. Refused here, when the gate is opened: whatever
# would be fetched, whatever can loop, and the keywords whose evaluation the library does not bound. A form needs none of them.

DIALECTS = {
    "json-schema.org/draft-07/schema": "Draft7Validator",
    "json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
NEWEST = "Draft202012Validator"
MOST_TEXT, MOST_DEPTH = 65_536, 32

LISTS = frozenset("allOf anyOf oneOf prefixItems items".split())
NAMED = frozenset("properties $defs definitions dependentSchemas dependencies".split())
SINGLE = frozenset(
    "items additionalItems additionalProperties contains propertyNames contentSchema not if then else".split()
)
# Those that are asked of the same value again: a circle of them never ends.
SAME_VALUE = frozenset("allOf anyOf oneOf not if then else dependentSchemas dependencies".split())
REFUSED = frozenset(
    """patternProperties unevaluatedProperties unevaluatedItems $dynamicRef $recursiveRef $anchor $dynamicAnchor $recursiveAnchor
    $vocabulary""".split()
)

# What else a schema may say. A word that is close to one of ours is taken for a slip when a question is asked; any other is nobody's.
OTHERS = frozenset(
    """type properties required enum const default title description examples example format pattern minimum
    maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems minContains
    maxContains minProperties maxProperties dependentRequired contentMediaType contentEncoding readOnly writeOnly
    deprecated id $id $schema $ref $defs $comment""".split()
)
KEYWORDS = tuple(sorted(LISTS | NAMED | SINGLE | SAME_VALUE | REFUSED | OTHERS))
SLIP = 0.8
Steps = tuple[str, ...]


class SchemaPlace(NamedTuple):
    """Schema within the schema: its steps from the top, and whether it applies to its parent's value."""

    steps: Steps
    schema: object
    same_value: bool


def check_bounds(schema: Mapping[str, object], top: Field) -> None:
    """Raise BadDocument unless `schema` can be asked safely."""
    measure(schema, top)
    if schema.get("type", "object") != "object":
        refuse(top, ("type",), "expected object: the answer to a form is a mapping of its fields")
    dialect(schema, top)
    places = {place.steps: place for place in walk(schema)}
    for place in places.values():
        if isinstance(place.schema, Mapping):
            check_keywords(place, top)
    check_circles(references(places, top), top)


def refuse_misspelt(schema: Mapping[str, object], source: str) -> None:
    """Refuse a probable slip for a keyword: it would count for nothing, and `propertys` let any answer through."""
    top = field_of(schema, source, "schema")
    for place in walk(schema):
        for keyword in place.schema if isinstance(place.schema, Mapping) else ():
            meant = nearest(keyword, KEYWORDS, SLIP) if keyword not in KEYWORDS else ""
            if meant:
                words = f"JSON Schema has no such keyword; did you mean {meant}?"
                refuse(top, (*place.steps, keyword), words)


def measure(schema: object, top: Field) -> None:
    """Refuse a schema that is too large or too deep, before any other check, so that the others may recurse."""
    nodes = size = 0
    level: list[object] = [schema]
    for _ in range(MOST_DEPTH + 1):
        below: list[object] = []
        for value in level:
            nodes += 1
            if isinstance(value, Mapping):
                below += value.values()
                size += sum(len(str(key)) for key in value)
            elif isinstance(value, (list, tuple)):
                below += value
            elif isinstance(value, str):
                size += len(value)
        if nodes + len(below) > MOST_NODES or size > MOST_TEXT:
            words = f"expected at most {MOST_NODES} values and {MOST_TEXT} characters in a schema"
            refuse(top, (), f"{words}; found more")
        level = below
    if level:
        refuse(top, (), f"expected at most {MOST_DEPTH} levels in a schema; found more")


def dialect(schema: Mapping[str, object], top: Field) -> str:
    """Return the name of the library's class for this schema's version."""
    named = schema.get("$schema")
    if named is None:
        return NEWEST
    found = DIALECTS.get(str(named).removesuffix("#").removeprefix("https://").removeprefix("http://"))
    if not found:
        refuse(top, ("$schema",), f"expected one of {', '.join(DIALECTS)}; found {short_quote(named)}")
    return found


def walk(schema: object) -> Iterator[SchemaPlace]:
    """Yield every schema within `schema`, itself first. The content of unknown keywords is no schema."""
    waiting = [SchemaPlace((), schema, same_value=False)]
    while waiting:
        place = waiting.pop()
        yield place
        if isinstance(place.schema, Mapping):
            waiting += within(place)


def within(place: SchemaPlace) -> Iterator[SchemaPlace]:
    schema = place.schema if isinstance(place.schema, Mapping) else {}
    for keyword, value in schema.items():
        same = keyword in SAME_VALUE
        if keyword in NAMED and isinstance(value, Mapping):
            for name, inner in value.items():
                yield SchemaPlace((*place.steps, keyword, str(name)), inner, same)
        elif keyword in LISTS and isinstance(value, list):
            for index, inner in enumerate(value):
                yield SchemaPlace((*place.steps, keyword, str(index)), inner, same)
        elif keyword in SINGLE:
            yield SchemaPlace((*place.steps, keyword), value, same)


def check_keywords(place: SchemaPlace, top: Field) -> None:
    schema = place.schema if isinstance(place.schema, Mapping) else {}
    for keyword in schema:
        if keyword in REFUSED or (keyword in ("$id", "$schema") and place.steps):
            refuse(top, (*place.steps, keyword), f"expected a form's schema without {keyword}")


def references(places: Mapping[Steps, SchemaPlace], top: Field) -> dict[Steps, list[Steps]]:
    """Return by schema those that apply to the same value: its inner ones and the one that its $ref names."""
    edges: dict[Steps, list[Steps]] = {steps: [] for steps in places}
    for place in places.values():
        edges[place.steps] += [inner.steps for inner in within(place) if inner.same_value]
        named = place.schema.get("$ref") if isinstance(place.schema, Mapping) else None
        if named is None:
            continue
        where = (*place.steps, "$ref")
        if not isinstance(named, str) or not named.startswith("#"):
            words = 'expected a reference within this schema such as "#/$defs/name"'
            refuse(top, where, f"{words}; found {short_quote(named)}")
        target = pointed(named)
        if target not in places:
            refuse(top, where, f"expected a reference to a schema that is there; found {short_quote(named)}")
        edges[place.steps].append(target)
    return edges


def pointed(reference: str) -> tuple[str, ...]:
    """Return the steps of `#/$defs/name`."""
    parts = unquote(reference.removeprefix("#")).split("/")
    if parts[0]:
        return (parts[0], "")  # the name of an anchor: no place has an empty last step after a keyword
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts[1:])


def check_circles(edges: Mapping[Steps, list[Steps]], top: Field) -> None:
    """Refuse references that form a circle: take away repeatedly what leads nowhere, until only circles are left."""
    comes_from: dict[Steps, list[Steps]] = {steps: [] for steps in edges}
    open_ends = {steps: len(targets) for steps, targets in edges.items()}
    for steps, targets in edges.items():
        for target in targets:
            comes_from[target].append(steps)
    done = [steps for steps, count in open_ends.items() if not count]
    while done:
        for steps in comes_from[done.pop()]:
            open_ends[steps] -= 1
            if not open_ends[steps]:
                done.append(steps)
    circle = [steps for steps, count in open_ends.items() if count]
    if circle:
        refuse(top, min(circle), "expected a schema that ends; it refers back to itself for the same value")


def refuse(top: Field, steps: Steps, words: str) -> NoReturn:
    """Fail at the field that `steps` lead to, with its line where the schema was read from a file."""
    field = top
    for name in steps:
        inner = field.value
        if isinstance(inner, dict) and name in inner:
            field = inner[name]
        elif isinstance(inner, list) and name.isdigit() and int(name) < len(inner):
            field = inner[int(name)]
    field.fail(words)


def short_quote(value: object) -> str:
    return f'"{one_line(str(value)[:160], 40)}"'
