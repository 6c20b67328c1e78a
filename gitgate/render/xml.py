"""Render: one gate as an XML document, for systems that speak it. Well-formed whatever the gate says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from ..errors import Usage
from ..text.display import neutral
from ..text.times import parse_time

# What XML 1.0 has no way to write, not even escaped.
IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
STATUS = {"awaiting": "pending", "withdrawn": "cancelled", "stopped": "cancelled", "expired": "timeout"}
WORK = ("branch", "base", "commit", "dirty", "files", "insertions", "deletions")
ANSWER = ("verdict", "approved", "confirmed", "by", "via", "at", "signed", "commit")
PROPOSAL = ("approved", "agent", "at", "status", "source", "summary")
HELD = ("status", "summary", "reason", "message")
OUTCOME = {"answered": "completed"}


def document(shape: Mapping[str, object]) -> str:
    """`shape` is what `show --json` prints. One element a question, in the order they were asked."""
    questions = mappings_in(shape.get("questions"))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    head = attributes(
        id=shape.get("id"), state=shape.get("state"), status=status(shape), title=shape.get("title")
    )
    lines.append(f"<gate{head}>")
    lines += ["  " + line for question in questions for line in interaction(question, shape)]
    lines += ["  " + line for line in circumstance_elements(shape)]
    lines.append("</gate>")
    return "\n".join(lines)


def interaction(question: Mapping[str, object], shape: Mapping[str, object]) -> Iterator[str]:
    said = mapping(shape.get("answer"))
    values = mapping(said.get("values"))
    kind = "interactive_session" if question.get("type") == "session" else question.get("type")
    yield f"<human-interaction{attributes(key=question.get('key'), type=kind, status=status(shape))}>"
    yield "  " + element("prompt", question.get("prompt"))
    for option in mappings_in(question.get("options")):
        yield "  " + element("option", option.get("description") or "", label=option.get("label"))
    yield from ("  " + line for line in config(question, shape))
    held = conversation_element(shape) if question.get("type") == "session" else {}
    if said:
        yield "  " + element("outcome", OUTCOME.get(str(said.get("verdict")), said.get("verdict")))
    elif held:
        yield "  " + element("outcome", held.get("outcome"))
    if (spent := in_milliseconds(held.get("seconds")) if held else duration(shape)) is not None:
        yield "  " + element("duration", spent)
    if question.get("key") in values:
        yield "  " + element("response", values[str(question.get("key"))])
    yield from ("  " + element(name, held.get(name)) for name in HELD if held.get(name))
    if not said and not held.get("message"):
        yield "  " + element("message", message(shape, question))
    yield "</human-interaction>"


def conversation_element(shape: Mapping[str, object]) -> Mapping[str, object]:
    """How the conversation was held that ended the gate, with an answer or without."""
    return mapping(mapping(shape.get("answer") or shape.get("closing")).get("session"))


def config(question: Mapping[str, object], shape: Mapping[str, object]) -> Iterator[str]:
    """What was set about the question: its terms, apart from what it asks."""
    said = {
        "priority": shape.get("priority"),
        "deadline": shape.get("deadline"),
        "on-timeout": shape.get("on_timeout") if shape.get("deadline") else None,
        "delivery": shape.get("delivery"),
        "confidence": shape.get("confidence"),
        "default": question.get("default"),
        "schema": question.get("schema"),
        **talk_config(mapping(question.get("talk"))),
    }
    yield "<config>"
    for name, value in said.items():
        if value is not None:
            yield "  " + element(name, value)
    yield "</config>"


def talk_config(talk: Mapping[str, object]) -> dict[str, object]:
    """The terms of a conversation that were set, durations in milliseconds as they are elsewhere in this form."""
    lasts = talk.get("timeout")
    said = {
        "outcome-type": talk.get("outcome"),
        "model": talk.get("model"),
        "cwd": talk.get("cwd"),
        "timeout": in_milliseconds(lasts),
        "grace": in_milliseconds(talk.get("grace")) if lasts else None,
        "system-prompt": talk.get("system"),
        "session-context": talk.get("context"),
        "mcp-config": talk.get("mcp"),
        "resume-session": talk.get("resume"),
        "capture-transcript": talk.get("transcript") or None,
        "checkpoint": talk.get("checkpoint") or None,
    }
    return {name: value for name, value in said.items() if value != ""}


def in_milliseconds(seconds: object) -> int | None:
    return seconds * 1000 if isinstance(seconds, int) else None


def circumstance_elements(shape: Mapping[str, object]) -> Iterator[str]:
    asked, work, said = mapping(shape.get("asked")), mapping(shape.get("work")), mapping(shape.get("answer"))
    if shape.get("context"):
        yield element("context", shape["context"])
    yield f"<asked{attributes(by=asked.get('by') or None, agent=asked.get('agent'), at=asked.get('at'))}/>"
    yield f"<work{attributes(**{name: work.get(name) for name in WORK})}/>"
    if said:
        yield element("answer", said.get("note") or "", **{name: said.get(name) for name in ANSWER})
    if proposed := mapping(shape.get("proposal")):
        yield element("proposal", proposed.get("value"), **{name: proposed.get(name) for name in PROPOSAL})
    if closing := mapping(shape.get("closing")):
        yield element("closing", closing.get("reason"), by=closing.get("by"), at=closing.get("at"))
    for event in mappings_in(shape.get("history")):
        names = {
            "name": event.get("event"),
            "at": event.get("at"),
            "by": event.get("by"),
            "commit": event.get("commit"),
        }
        yield element("event", event.get("text") or "", **names)


def status(shape: Mapping[str, object]) -> str:
    held = mapping(mapping(shape.get("closing")).get("session"))
    return str(held["outcome"]) if held.get("outcome") else STATUS.get(str(shape.get("state")), "completed")


def message(shape: Mapping[str, object], question: Mapping[str, object]) -> str:
    state = str(shape.get("state"))
    if state != "awaiting":
        why = mapping(shape.get("closing")).get("reason") if question.get("type") == "session" else ""
        return f"Closed without an answer: {state}{f': {why}' if why else '.'}"
    if question.get("type") == "session":
        return f"Waiting for the session to be held: git gate join {str(shape.get('id'))[:6]}"
    return "Waiting for an answer."


def duration(shape: Mapping[str, object]) -> int | None:
    """Milliseconds from the question to its answer."""
    asked, said = mapping(shape.get("asked")), mapping(shape.get("answer"))
    try:
        return max(0, int((parse_time(str(said.get("at"))) - parse_time(str(asked.get("at")))) * 1000))
    except Usage:
        return None


def element(name: str, value: object, /, **given: object) -> str:
    body = escaped(text_or_json(value))
    return f"<{name}{attributes(**given)}>{body}</{name}>" if body else f"<{name}{attributes(**given)}/>"


def attributes(**given: object) -> str:
    return "".join(
        f' {name.replace("_", "-")}="{escaped(text_or_json(value), attribute=True)}"'
        for name, value in given.items()
        if value is not None
    )


def text_or_json(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def escaped(text: str, *, attribute: bool = False) -> str:
    r"""Text as XML: what cannot be there is spelt out (`\x1b`); what hides or acts is a reference, exact and harmless."""
    text = IMPOSSIBLE.sub(lambda found: spelt(ord(found.group())), text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    if neutral(text) != text:
        text = "".join(
            character if character == neutral(character) else f"&#{ord(character)};" for character in text
        )
    if attribute:
        text = text.replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return text


def spelt(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def mappings_in(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else []
