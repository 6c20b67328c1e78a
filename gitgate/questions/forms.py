"""Questions: answers to `form` questions, held against their JSON Schema.

The `jsonschema` library does the work and is imported here alone, late: it is an extra, and it costs start-up time.
Around it stand three bounds. Nothing is fetched: references stay within the schema and the library's registry is
empty. No pattern runs away: `patterns` matches them. And every keyword that is asked costs some of a budget, so that a
schema whose references multiply ends with an error rather than never.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from math import isfinite
from typing import Any

from ..document.field import Field, field_of, scalar, step
from ..document.yamlread import HIGHEST, LOWEST
from ..errors import BadDocument, MissingExtra, Usage
from ..text.display import one_line
from ..text.times import parse_time
from . import schemas
from .patterns import Pattern
from .schemas import MOST_TEXT, pointed

NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,3})?", re.ASCII)
INTEGER = re.compile(r"[-+]?\d{1,19}", re.ASCII)
SPOKEN = {
    "true": True, "yes": True, "y": True, "on": True, "false": False, "no": False, "n": False, "off": False,
}  # fmt: skip


def coerce(schema: Mapping[str, object], pairs: Mapping[str, str]) -> dict[str, object]:
    """KEY=VALUE as typed, made what the schema's fields expect. What cannot be stays text; `validate` then says so."""
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
    """`field`, or what its references lead to; a circle leads to nothing."""
    for _ in range(8):
        if not isinstance(field, Mapping):
            return {}
        if not isinstance(field.get("$ref"), str):
            return field
        target: object = schema
        for part in pointed(field["$ref"]):
            target = target.get(part) if isinstance(target, Mapping) else None
        field = target
    return {}


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
    """A JSON list, or the parts between commas."""
    if text.strip().startswith("["):
        value = _json(text)
        return value if isinstance(value, list) else NOTHING
    items = _resolved(schema, field.get("items"))
    inner = {key: value for key, value in items.items() if key in ("type", "enum", "const")}
    if "array" in inner.get("type", ""):
        return NOTHING
    return [_coerced({}, inner, part.strip()) for part in text.split(",") if part.strip()]


def _chosen(choices: list[Any], text: str) -> object:
    """The one of `choices` that is spelt like `text`: 3 for `3`, but the text where both are there."""
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


BUDGET = 50_000
MOST_NODES = 2000
MOST_PROBLEMS = 20
FORMATS = ("date", "email", "ipv4", "ipv6", "uuid")


def check_schema(schema: Mapping[str, object], source: str, *, field: Field | None = None) -> None:
    """Raise BadDocument unless `schema` is one that a form may have. `field` is where it was read, for its lines."""
    schemas.check_schema(schema, source, field)
    top = field or field_of(schema, source, "schema")
    validator = _validator(schemas.dialect(schema, top))
    library = _library()
    try:
        # No format checker: among the library's is one that compiles patterns.
        validator.check_schema(schema, format_checker=library.FormatChecker(formats=()))
    except library.SchemaError as wrong:
        steps = tuple(str(part) for part in wrong.absolute_path)
        schemas.refuse(top, steps, f"expected a JSON Schema; {one_line(wrong.message, 200)}")


def validate(schema: Mapping[str, object], value: object) -> list[str]:
    """What is wrong with `value`, each problem with its path; empty if it fits. The schema is checked as well."""
    check_schema(schema, "question")
    try:
        budget = _Budget(_sizes(value))
    except _Unfit as unfit:
        return [str(unfit)]
    asked = {key: inner for key, inner in schema.items() if key != "$id"}
    name = schemas.dialect(schema, field_of(schema, "schema"))
    try:
        errors = list(islice(_bounded(name, budget, asked).iter_errors(value), MOST_PROBLEMS))
    except (_Exhausted, RecursionError) as endless:
        words = "expected a schema that is checked in a moment; this one multiplies its own references"
        raise BadDocument("question", 0, "schema", words) from endless
    return [_problem(error) for error in sorted(errors, key=lambda error: [str(part) for part in error.path])]


# The library, and the bounds around it


def _library() -> Any:
    try:
        import jsonschema
    except ImportError as missing:
        raise MissingExtra(
            "a question of type form needs the jsonschema package", hint="pip install 'git-gate[forms]'"
        ) from missing
    return jsonschema


@cache
def _validator(name: str) -> Any:
    return getattr(_library(), name)


class _Exhausted(Exception):
    """The budget is spent."""


class _Budget:
    """Counts what evaluating costs; `sizes` are those of the answer's parts, by identity."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.left = BUDGET
        self.sizes = sizes

    def spend(self, keyword: str, argument: Any, instance: object) -> None:
        size = self.sizes.get(id(instance), 1)
        cost = 1 + size // 50
        if isinstance(argument, (list, Mapping)):
            cost += len(argument) * (cost if keyword == "enum" else 1)
        if keyword == "uniqueItems" and isinstance(instance, list):
            cost += len(instance) ** 2 // 10
        if keyword == "pattern" and isinstance(instance, str):
            cost += _pattern(argument).weight * len(instance) // 50
        self.left -= cost
        if self.left < 0:
            raise _Exhausted


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> Pattern:
    return Pattern(pattern)


def _bounded(name: str, budget: _Budget, schema: Mapping[str, object]) -> Any:
    """The library's validator for `schema`, with each keyword counted, our patterns, and nothing to fetch from."""
    from jsonschema import validators
    from referencing import Registry

    base = _validator(name)
    keywords = {k: _counted(k, ask, budget) for k, ask in base.VALIDATORS.items() if k not in schemas.REFUSED}
    keywords["pattern"] = _counted("pattern", _ask_pattern, budget)
    counted = validators.create(
        meta_schema=base.META_SCHEMA,
        validators=keywords,
        type_checker=base.TYPE_CHECKER,
        format_checker=base.FORMAT_CHECKER,
        id_of=base.ID_OF,
    )
    registry: Any = Registry()
    return counted(schema, registry=registry, format_checker=_formats())


def _counted(keyword: str, ask: Callable[..., Any], budget: _Budget) -> Callable[..., Any]:
    def counted(validator: Any, argument: Any, instance: object, schema: Any) -> Any:
        budget.spend(keyword, argument, instance)
        return ask(validator, argument, instance, schema)

    return counted


def _ask_pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[Any]:
    del validator, schema
    if isinstance(instance, str) and not _pattern(pattern).found_in(instance):
        yield _library().ValidationError(f"{instance!r} does not match {pattern!r}")


@cache
def _formats() -> Any:
    checker = _library().FormatChecker(formats=FORMATS)

    @checker.checks("date-time", raises=Usage)  # type: ignore[untyped-decorator]
    def is_time(text: object) -> bool:
        return not isinstance(text, str) or parse_time(text) is not None

    return checker


class _Unfit(Exception):
    """The value is none that a document could hold, or too large; says why."""


def _sizes(value: object) -> dict[int, int]:
    """The size of each part of `value`, by identity; refuses what is no plain value or too large to be checked."""
    sizes: dict[int, int] = {}
    counted = 0

    def measure(part: object, depth: int) -> int:
        nonlocal counted
        counted += 1
        if counted > MOST_NODES or depth > schemas.MOST_DEPTH:
            raise _Unfit(f"expected at most {MOST_NODES} values and {schemas.MOST_DEPTH} levels; found more")
        if isinstance(part, str):
            size = len(part)
        elif isinstance(part, dict):
            if not all(isinstance(key, str) for key in part):
                raise _Unfit("expected keys that are text; found another")
            size = sum(len(key) + measure(inner, depth + 1) for key, inner in part.items())
        elif isinstance(part, list):
            size = sum(measure(inner, depth + 1) for inner in part)
        else:
            size = _scalar_size(part)
        if size > schemas.MOST_TEXT:
            raise _Unfit(f"expected at most {schemas.MOST_TEXT} characters; found more")
        sizes[id(part)] = size + 1
        return size + 1

    measure(value, 1)
    return sizes


def _scalar_size(part: object) -> int:
    if part is None or isinstance(part, bool) or (isinstance(part, int) and LOWEST <= part <= HIGHEST):
        return 0
    if isinstance(part, float) and isfinite(part):
        return 0
    raise _Unfit(f"expected values that JSON has, numbers of at most 64 bits; found {type(part).__name__}")


def _problem(error: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else step(str(part)) for part in error.absolute_path)
    said = one_line(error.message[:1000], 200)
    return f"{path.removeprefix('.')}: {said}" if path else said


__all__ = ["check_schema", "coerce", "validate"]
