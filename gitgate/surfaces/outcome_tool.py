"""Surfaces: a tool by which the agent in a joined session says what was decided: the Model Context Protocol over lines of JSON.

One tool, made from the question. It speaks as little of the protocol as that takes, so that it needs no library and starts
at once. A value that does not answer the question comes back as the tool's error, with what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..errors import GateError
from ..model.gate import Question
from ..questions.answers import value_words
from ..questions.prompts import SERVER, TOOL
from ..questions.types import expected, type_of
from ..resumption import meeting
from ..version import VERSION

# What is spoken here is the same in all of them, the latest first; batches of requests belong to one alone, and are taken.
PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NO_METHOD, NO_REQUEST, NOT_JSON, NO_PARAMETERS = -32601, -32600, -32700, -32602
WHEN = (
    "Say what the person decided in this conversation. Call it when they have decided, and only then; never decide for them. "
    "Nothing is recorded before they have left the session and confirmed it. The last call counts."
)
SPOKEN = {
    "status": "CONTINUE or STOP for an approval; DONE, NEEDS_REVIEW or another word where nothing was decided yet",
    "summary": "What was decided, or done, in a few sentences",
    "reason": "Why; for a refusal what speaks against it",
    "message": "What the person wants to have told to whoever asked",
}


def reply(line: bytes, place: Path) -> str | None:
    """What is answered to one line of the client's; None to what wants no answer."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return failed(None, NOT_JSON, "this line is not JSON")
    if isinstance(message, list) and message:
        replies = [said for one in message if (said := reply_to(one, place)) is not None]
        return f"[{', '.join(replies)}]" if replies else None
    return reply_to(message, place)


def reply_to(message: object, place: Path) -> str | None:
    """The same for one request."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        # An answer to something that we never asked, or nothing that we know.
        return None if isinstance(message, dict) else failed(None, NO_REQUEST, "expected one request")
    if "id" not in message:
        return None
    number, given = message["id"], message.get("params")
    parameters = given if isinstance(given, dict) else {}
    method = message["method"]
    if method == "initialize":
        return done(number, hello(parameters))
    if method == "ping":
        return done(number, {})
    if method == "tools/list":
        return done(number, {"tools": [described(meeting.question_of(place))]})
    if method == "tools/call":
        if parameters.get("name") != TOOL:
            return failed(number, NO_PARAMETERS, f"there is one tool here: {TOOL}")
        return done(number, call_result(parameters.get("arguments"), place))
    return failed(number, NO_METHOD, f"{method} is nothing that is done here")


def hello(parameters: Mapping[str, object]) -> dict[str, object]:
    version = parameters.get("protocolVersion")
    return {
        "protocolVersion": version if version in PROTOCOLS else PROTOCOLS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": SERVER, "version": VERSION},
        "instructions": WHEN,
    }


def described(question: Question) -> dict[str, object]:
    """The tool, its value as narrow as the question allows."""
    fields = {name: {"type": "string", "description": words} for name, words in SPOKEN.items()}
    value = {
        **type_of(question).value_schema(question),
        "description": f"What they decided: {expected(question)}",
    }
    schema = {"type": "object", "properties": {"value": value, **fields}, "additionalProperties": False}
    return {"name": TOOL, "description": WHEN, "inputSchema": schema}


def call_result(arguments: object, place: Path) -> dict[str, object]:
    """The result of a call. It names no gate: a hook would take that for a question that was just asked."""
    given = arguments if isinstance(arguments, dict) else {}
    try:
        understood = meeting.say(place, given, "mcp")
    except GateError as refused:
        said = f"Not written: {refused.message}; {expected(meeting.question_of(place))}"
        return result(said, wrong=True)
    what = "no value yet" if understood.value is None else value_words(understood.value)
    status = f" ({understood.status})" if understood.status else ""
    return result(
        f"Written: {what}{status}. It counts when the person has left the session (/exit) and confirmed it."
    )


def result(text: str, *, wrong: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": wrong}


def done(number: object, value: Mapping[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": value}, ensure_ascii=True)


def failed(number: object, code: int, words: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}})
