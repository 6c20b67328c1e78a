"""Questions: which JSON Schemas a form may have.

A schema is a program that somebody else wrote and that is run on whoever answers. Refused here, when the gate is
opened: whatever would be fetched, whatever can loop, patterns that are not matched in one pass (see `patterns`), and
the keywords whose evaluation the library does not bound. A form needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn
from urllib.parse import unquote

from ..document import Field, NamedTuple, field_of, nearest
from ..text import one_line

DIALECTS = {
    "json-schema.org/draft-07/schema": "Draft7Validator",
    "json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
NEWEST = "Draft202012Validator"
MOST_NODES = 2000
MOST_TEXT = 65_536
MOST_DEPTH = 32

LISTS = frozenset("allOf anyOf oneOf prefixItems items".split())
NAMED = frozenset("properties $defs definitions dependentSchemas dependencies".split())
SINGLE = frozenset(
    """items additionalItems additionalProperties contains propertyNames contentSchema
    not if then else""".split()
)
# Those that are asked of the same value again: a circle of them never ends.
SAME_VALUE = frozenset("allOf anyOf oneOf not if then else dependentSchemas dependencies".split())
REFUSED = frozenset(
    """patternProperties unevaluatedProperties unevaluatedItems $dynamicRef $recursiveRef $anchor
    $dynamicAnchor $recursiveAnchor $vocabulary""".split()
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


class SchemaPlace(NamedTuple):
    """A schema within the schema: its steps from the top, and whether it is asked of the same value as its parent."""

    steps: tuple[str, ...]
    schema: object
    same_value: bool


def check_schema(schema: Mapping[str, object], source: str, field: Field | None = None) -> None:
    """Raise BadDocument unless `schema` can be asked safely; `field`, if given, is where it was read."""
    top = field or field_of(schema, source, "schema")
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
    """A keyword that JSON Schema does not have counts for nothing: `propertys` would let any answer through."""
    top = field_of(schema, source, "schema")
    for place in walk(schema):
        for keyword in place.schema if isinstance(place.schema, Mapping) else ():
            meant = nearest(keyword, KEYWORDS, SLIP) if keyword not in KEYWORDS else ""
            if meant:
                refuse(
                    top, (*place.steps, keyword), f"JSON Schema has no such keyword; did you mean {meant}?"
                )


def measure(schema: object, top: Field) -> None:
    """Count before anything else looks: what follows may then recurse."""
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
            refuse(
                top,
                (),
                f"expected at most {MOST_NODES} values and {MOST_TEXT} characters in a schema; found more",
            )
        level = below
    if level:
        refuse(top, (), f"expected at most {MOST_DEPTH} levels in a schema; found more")


def dialect(schema: Mapping[str, object], top: Field) -> str:
    """The name of the library's class for this schema's version."""
    named = schema.get("$schema")
    if named is None:
        return NEWEST
    found = DIALECTS.get(str(named).removesuffix("#").removeprefix("https://").removeprefix("http://"))
    if not found:
        refuse(top, ("$schema",), f"expected one of {', '.join(DIALECTS)}; found {short_quote(named)}")
    return found


def walk(schema: object) -> Iterator[SchemaPlace]:
    """Every schema within `schema`, itself first. What stands under unknown keywords is no schema."""
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


def references(
    places: Mapping[tuple[str, ...], SchemaPlace], top: Field
) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """From each schema to those that are asked of the same value: its inner ones and what its $ref names."""
    edges: dict[tuple[str, ...], list[tuple[str, ...]]] = {steps: [] for steps in places}
    for place in places.values():
        edges[place.steps] += [inner.steps for inner in within(place) if inner.same_value]
        named = place.schema.get("$ref") if isinstance(place.schema, Mapping) else None
        if named is None:
            continue
        where = (*place.steps, "$ref")
        if not isinstance(named, str) or not named.startswith("#"):
            refuse(
                top,
                where,
                f'expected a reference within this schema such as "#/$defs/name"; found {short_quote(named)}',
            )
        target = pointed(named)
        if target not in places:
            refuse(top, where, f"expected a reference to a schema that is there; found {short_quote(named)}")
        edges[place.steps].append(target)
    return edges


def pointed(reference: str) -> tuple[str, ...]:
    """The steps of `#/$defs/name`."""
    parts = unquote(reference.removeprefix("#")).split("/")
    if parts[0]:
        return (parts[0], "")  # the name of an anchor: no place has an empty last step after a keyword
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts[1:])


def check_circles(edges: Mapping[tuple[str, ...], list[tuple[str, ...]]], top: Field) -> None:
    """Take away, again and again, what leads nowhere; what is left leads back to itself."""
    comes_from: dict[tuple[str, ...], list[tuple[str, ...]]] = {steps: [] for steps in edges}
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


def refuse(top: Field, steps: tuple[str, ...], words: str) -> NoReturn:
    """Fail at the field that `steps` lead to, with its line where the schema was read from a file."""
    field = top
    for step in steps:
        inner = field.value
        if isinstance(inner, dict) and step in inner:
            field = inner[step]
        elif isinstance(inner, list) and step.isdigit() and int(step) < len(inner):
            field = inner[int(step)]
    field.fail(words)


def short_quote(value: object) -> str:
    return f'"{one_line(str(value)[:160], 40)}"'
