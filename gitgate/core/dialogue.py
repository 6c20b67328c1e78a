"""Core: a conversation as two people would tell it: what the person said and what the agent said, without its machinery. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from ..errors import Usage
from .briefing import MARK
from .times import parse_time
from .values import dataclass

ASSISTANT, PERSON = "assistant", "person"

# What the program says in the person's name: commands typed to it, their output, its own reminders.
MACHINERY = re.compile(
    r"\s*(?:<(?:command-|local-command-|bash-|system-reminder|user-prompt-submit)|\[Request interrupted|Caveat: The messages below)"
)


@dataclass(frozen=True)
class Spoken:
    """One message of a conversation, by the assistant or by the person, and when it was said, where that is known. What
    tools said is none.
    """

    role: str
    text: str
    at: float = 0.0


def records(transcript: bytes) -> Iterator[Mapping[str, object]]:
    for line in transcript.splitlines():
        try:
            found = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def known(transcript: bytes) -> frozenset[str]:
    """The ids of what is in it, so that what is said later can be told from it."""
    return frozenset(str(found["uuid"]) for found in records(transcript) if "uuid" in found)


def spoken(transcript: bytes, before: Collection[str] = ()) -> list[Spoken]:
    """What was said, in order, apart from records that were there `before`."""
    said = []
    for found in records(transcript):
        if found.get("uuid") in before or found.get("isSidechain") is True or found.get("isMeta") is True:
            continue
        message, kind = found.get("message"), found.get("type")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            continue
        text = words(message.get("content")).strip()
        machinery = kind == "user" and (text.startswith(MARK) or MACHINERY.match(text) is not None)
        summary = found.get("isCompactSummary") is True or found.get("isApiErrorMessage") is True
        if text and not machinery and not summary:
            said.append(Spoken(PERSON if kind == "user" else ASSISTANT, text, moment(found)))
    return said


def moment(found: Mapping[str, object]) -> float:
    try:
        return parse_time(str(found.get("timestamp") or ""))
    except Usage:
        return 0.0


def words(content: object) -> str:
    """The text of a message; results of tools are nobody's words."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def told(said: Collection[Spoken]) -> str:
    """The conversation as a text that people read."""
    return "\n\n".join(f"{each.role}: {each.text}" for each in said)
