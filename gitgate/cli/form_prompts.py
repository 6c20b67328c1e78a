"""Command line: a form on a terminal, field by field."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.answers import read_mapping
from ..core.model import Question
from ..errors import BadAnswer
from .keyboard import read_word
from .screen import Screen
from .turns import heed

# What a part of a schema may lean on elsewhere in the whole.
SHARED = ("$schema", "$defs", "definitions")
# What a prompt says of a field in its few words.
TOLD = frozenset({"type", "enum", "minimum", "maximum", "title", "description", "default"})


def ask_form(screen: Screen, question: Question) -> dict[str, object] | str:
    """The form once it fits its schema. A field is checked when it is given, the whole at the end."""
    schema = question.schema or {}
    fields = schema.get("properties")
    while True:
        if isinstance(fields, Mapping) and fields:
            value: dict[str, object] | str = ask_each(screen, question, schema, fields)
            if not value:  # an empty line to each is one to the form
                heed(screen, question, "")
        else:
            value = read_word("the form, as JSON on one line: ")
            if heed(screen, question, value):
                continue
        try:
            read_mapping([question], {question.key: value})
        except BadAnswer as wrong:
            screen.tell(f"  {wrong.message.removeprefix(question.key + ': ')}; once more")
        else:
            return value


def ask_each(
    screen: Screen, question: Question, schema: Mapping[str, object], fields: Mapping[str, object]
) -> dict[str, object]:
    needed = schema.get("required")
    required = needed if isinstance(needed, list) else []
    found: dict[str, object] = {}
    for name, detail in fields.items():
        value = ask_field(screen, question, (schema, name, detail), needed=name in required)
        if value is not None:
            found[name] = value[0]
    return found


def ask_field(
    screen: Screen, question: Question, field: tuple[Mapping[str, object], str, object], *, needed: bool
) -> tuple[object] | None:
    """The field's value, wrapped so that null is one too; None when it was left out."""
    schema, name, detail = field
    from ..core.text import one_line
    from ..render.letter import field_kind

    words = field_kind(detail)
    while True:
        text = read_word(f"{one_line(name)} ({words}{'' if needed else ', optional'}): ")
        if heed(screen, question, text, empty=needed):
            continue
        if not text.strip() and not needed:
            return None
        value, problem = fitting(schema, name, detail, text)
        if not text.strip():
            problem = "it is needed"
        if not problem:
            return (value,)
        if text.strip() and is_told(detail):
            problem = f"{quoted(text)} does not fit; expected {words}"
        screen.tell(f"  {problem.removeprefix(f'{name}: ')}")


def is_told(detail: object) -> bool:
    """Whether the words in the prompt are all that the field is held to."""
    return isinstance(detail, Mapping) and set(detail) <= TOLD


def quoted(text: str) -> str:
    from ..core.text import one_line

    return f'"{one_line(text, 40)}"'


def fitting(schema: Mapping[str, object], name: str, detail: object, text: str) -> tuple[object, str]:
    """What was typed as the field's value, and what is wrong with it, judged by this field's part of the schema."""
    from ..core import forms

    value = forms.coerce(schema, {name: text.strip()})[name]
    part = {key: schema[key] for key in SHARED if key in schema}
    problems = forms.validate({**part, "type": "object", "properties": {name: detail}}, {name: value})
    return value, "; ".join(problems[:2])
