"""Core: a conversation on its way to becoming part of a question, from flags or keyword arguments.

It is held against the same rules as one that a question file describes; what is wrong is told by the name under which
it was given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from ..errors import BadDocument, Usage
from .field import Field, field_of
from .model import Question
from .questions import type_name
from .talks import Talk, parse_talk

MOST_CONTEXT = 256 * 1024  # bytes of JSON: a record is read by everybody who looks at the gate
# What only an agent could make use of.
OF_AN_AGENT = ("system", "model", "cwd", "mcp", "transcript", "save_every", "resume")


def talk_of(
    given: Mapping[str, object], flag: Callable[[str], str], *, options: bool = False, schema: bool = False
) -> Talk:
    """The conversation that was described by `given`, by the names of Talk's fields; `flag` says how each was called.

    Options make it a selection and a schema makes it structured, where no outcome was named.
    """
    said = {name: value for name, value in given.items() if value is not None and value is not False}
    if said.get("checkpoint"):
        refuse_beside_checkpoint(said, flag)
    if "outcome" not in said and not said.get("checkpoint"):
        said["outcome"] = "selection" if options else "structured" if schema else "freeform"
    fields = {name: field_of(value, flag(name)) for name, value in said.items()}
    return parse_talk(Field(fields, flag("type")))


def refuse_beside_checkpoint(said: Mapping[str, object], flag: Callable[[str], str]) -> None:
    beside = [flag(name) for name in OF_AN_AGENT if name in said]
    if beside:
        raise Usage(
            f"{beside[0]} is for an agent, and a checkpoint has none",
            hint=f"leave out {flag('checkpoint')}, or {' and '.join(beside)}",
        )
    if said.get("outcome") not in (None, "approval"):
        raise Usage(
            f"a checkpoint is an approval; found {flag('outcome')} {said['outcome']}",
            hint=f"leave out {flag('outcome')}",
        )


def refuse_elsewhere(type: str | None, said: Mapping[str, object], flag: Callable[[str], str]) -> None:
    """What belongs to a conversation has no meaning for another question."""
    first = next((name for name, value in said.items() if value is not None and value is not False), None)
    if first is not None and (type is None or type_name(type) != "session"):
        raise Usage(
            f"{flag(first)} is for a question that is decided in a session",
            hint=f"add {flag('type')}, or leave out {flag(first)}",
        )


def parse_json(data: bytes | str, source: str) -> object:
    """JSON as it is written by hand; what is wrong is named with line and column."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        found: object = json.loads(text, parse_constant=refuse_constant)
        return found
    except json.JSONDecodeError as wrong:
        words = f"column {wrong.colno}: expected JSON; {wrong.msg[:1].lower()}{wrong.msg[1:]}"
        raise BadDocument(source, wrong.lineno, "", words) from None
    except UnicodeDecodeError as wrong:
        line = wrong.object.count(b"\n", 0, wrong.start) + 1
        raise BadDocument(source, line, "", "expected UTF-8 text") from None
    except (ValueError, RecursionError) as wrong:
        raise BadDocument(source, 0, "", f"expected JSON; {wrong}") from None


def as_json(value: object, source: str) -> object:
    """A value of Python's as JSON has it; what JSON does not have is refused rather than turned into text."""
    try:
        found: object = json.loads(json.dumps(value, allow_nan=False))
        return found
    except (TypeError, ValueError, RecursionError) as wrong:
        raise BadDocument(source, 0, "", f"expected values that JSON has; {wrong}") from None


def refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def check_context(question: Question) -> None:
    """A record holds what is needed to decide, not the evidence itself."""
    talk = question.talk
    if talk is None or talk.context is None:
        return
    size = len(json.dumps(talk.context, ensure_ascii=False).encode("utf-8", "replace"))
    if size > MOST_CONTEXT:
        raise Usage(
            f"the session's context: expected at most {MOST_CONTEXT:,} bytes; found {size:,}",
            hint="attach what is large: --attach FILE",
        )
