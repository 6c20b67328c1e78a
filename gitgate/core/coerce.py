"""Core: what a person typed into a form's fields (KEY=VALUE), made what the schema's fields expect."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from .field import scalar
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
