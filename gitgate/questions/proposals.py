"""Questions: what a session proposes as its outcome: the fields of a command, a tool or a file, or the object that ends its last message.

Only what is said as data is looked at: no words of a conversation are read for a decision. And nothing here decides: it is
a proposal until a person has confirmed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NoReturn

from ..document.values import dataclass, replace
from ..errors import BadAnswer, GateError, Usage
from ..model.conversation import MOST_WORDS, STATUS
from ..model.gate import Question, Value
from ..text.times import parse_time
from .base import NOTES, WORDS
from .prompts import MARK
from .types import type_of

ASSISTANT, PERSON = "assistant", "person"

# What the program says in the person's name: commands typed to it, their output, its own reminders.
MACHINERY = re.compile(
    r"\s*(?:<(?:command-|local-command-|bash-|system-reminder|user-prompt-submit)|\[Request interrupted|Caveat: The messages below)"
)


@dataclass(frozen=True)
class Utterance:
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


def spoken(transcript: bytes, before: Collection[str] = ()) -> list[Utterance]:
    """What was said, in order, apart from records that were there `before`."""
    said = []
    for found in records(transcript):
        if found.get("uuid") in before or found.get("isSidechain") is True or found.get("isMeta") is True:
            continue
        message, kind = found.get("message"), found.get("type")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            continue
        text = message_text(message.get("content")).strip()
        machinery = kind == "user" and (text.startswith(MARK) or MACHINERY.match(text) is not None)
        summary = found.get("isCompactSummary") is True or found.get("isApiErrorMessage") is True
        if text and not machinery and not summary:
            said.append(Utterance(PERSON if kind == "user" else ASSISTANT, text, moment(found)))
    return said


def moment(found: Mapping[str, object]) -> float:
    try:
        return parse_time(str(found.get("timestamp") or ""))
    except Usage:
        return 0.0


def message_text(content: object) -> str:
    """The text of a message; results of tools are nobody's words."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def transcript_text(said: Collection[Utterance]) -> str:
    """The conversation as a text that people read."""
    return "\n\n".join(f"{each.role}: {each.text}" for each in said)


MOST_JSON = 256 * 1024
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)")


@dataclass(frozen=True)
class Understood:
    """What a session proposes. `at`: when it said so, where that is known."""

    value: Value | None
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    at: float = 0.0


def signalled(data: Mapping[str, object], question: Question, source: str = "command") -> Understood:
    """What an explicit signal says: a value, a status, words. BadAnswer says what does not fit."""
    status = data.get("status") or ""
    if not isinstance(status, str) or (status and not STATUS.fullmatch(status)):
        raise BadAnswer(f"{question.key}: expected a status such as DONE or NEEDS_REVIEW")
    said = {name: words_under(question, data, name) for name in WORDS}
    said["message"] = said["message"] or next((w for n in NOTES if (w := words_under(question, data, n))), "")
    value = type_of(question).proposed(question, data, said)
    if value == data:
        said = {}  # the fields of a form are not words about it
    summary, reason, message = (said.get(name, "") for name in WORDS)
    return Understood(value, status, summary, reason, message, source)


def words_under(question: Question, data: Mapping[str, object], name: str) -> str:
    found = data.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise BadAnswer(f"{question.key}: {name}: expected text")
    return found.replace("\0", "").encode("utf-8", "replace").decode().strip()[:MOST_WORDS]


# The last message of a conversation


def ended(spoken: Sequence[Utterance], question: Question) -> Understood | None:
    """What the fenced object says that ends the assistant's last message; None where there is none that fits."""
    said = next((message for message in reversed(spoken) if message.role == ASSISTANT), None)
    body = last_object(said.text) if said is not None else None
    if said is None or body is None:
        return None
    try:
        found = signalled(parse_block(body), question, "json")
    except (GateError, ValueError, RecursionError):
        return None
    return replace(found, at=said.at) if found.value is not None or found.status else None


def last_object(text: str) -> str | None:
    """The last fenced block, as Markdown has them: closed, JSON, and with nothing after it."""
    mark, info, body = "", "", list[str]()
    last: str | None = None
    for line in text.rstrip().splitlines():
        edge = FENCE.fullmatch(line.rstrip())
        if not mark:
            last = None
            if edge:
                mark, info, body = edge.group(1), edge.group(2).strip().casefold(), []
        elif edge and not edge.group(2).strip() and edge.group(1).startswith(mark):
            whole = "\n".join(body)
            last = whole if info == "json" or (not info and whole.lstrip().startswith("{")) else None
            mark = ""
        else:
            body.append(line)
    return None if mark else last


def parse_block(body: str) -> Mapping[str, object]:
    """The object in a block; a key that is there twice could be read as either."""
    if len(body) > MOST_JSON:
        raise ValueError("too long")
    value = json.loads(body, object_pairs_hook=once, parse_constant=refuse)
    return value if isinstance(value, dict) else refuse("another value than an object")


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def refuse(name: str) -> NoReturn:
    raise ValueError(f"expected an object of JSON values, found {name}")


def last_word(spoken: Sequence[Utterance]) -> Utterance | None:
    """What the person said last."""
    return next((message for message in reversed(spoken) if message.role == PERSON), None)


def may_differ(said: Understood, spoken: Sequence[Utterance]) -> bool:
    """Whether the person said something after it was proposed, or nobody knows which came first."""
    last = last_word(spoken)
    if last is None:
        return False
    if said.source == "json":
        return last is spoken[-1]
    return not (last.at and said.at) or last.at > said.at
