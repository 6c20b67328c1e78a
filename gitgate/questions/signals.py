"""Questions: what an agent says of itself: that it needs a person, or what it proposes that a conversation decided.

Understood are a last object `{"status": "needs_input", "question": …}`, the status `NEEDS_HUMAN` in an object or on a
line of its own, and the field names of either convention. Prose is never read for consent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from ..document import dataclass, field, field_of, found, near, nearest, replace
from ..errors import BadAnswer, BadDocument, GateError, Usage
from ..model.gate import MOST_WORDS, STATUS, Option, Question, Value
from ..text import clipped_text, one_line, parse_time
from . import NOTES, WORDS
from .drafts import FIELD_ALIASES, OF_GATE, OF_OPTION, OF_OTHERS, OF_QUESTION, Draft, read_draft
from .prompts import MARK
from .types import TYPES, type_name, type_of

STATUSES = frozenset(("needs_input", "needs-input", "needs_human", "needs-human", "awaiting_input"))
LINE = re.compile(r"^[\s>*_#`-]*+(?:status\s*[:=]\s*)?[\"'`*]*+NEEDS_HUMAN\b[\"'`*]*(.*)$", re.MULTILINE)
MOST_TEXT, MOST_FIELD, LAST_LINES = 400_000, 60_000, 30


@dataclass(frozen=True)
class Need:
    """Request of an agent for a person: a question, and what the person should know to answer it."""

    question: str
    summary: str = ""
    context: str = ""
    details: str = ""
    reason: str = ""
    issues: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    type: str = ""
    given: Mapping[str, object] = field(default_factory=dict)
    """The whole object, whose other fields are those of a question file."""

    @property
    def digest(self) -> str:
        said = [self.question, self.summary, self.context, self.details, self.reason, *self.issues]
        return hashlib.sha256("\0".join(said).encode("utf-8", "replace")).hexdigest()[:16]


def find_need(text: str) -> Need | None:
    """Return the request that a text ends with, if it does: one in the middle of the text is only words."""
    text = text[-MOST_TEXT:].strip()
    value, start = last_object(text)
    if value is not None:
        return read_need(value, before=text[:start])
    tail = "\n".join(text.splitlines()[-LAST_LINES:])
    found = list(LINE.finditer(tail))
    if not found:
        return None
    reason = clipped_field(found[-1][1].strip(" \t:.—–-"))
    rest = clipped_field(tail[found[-1].end() :])
    before = clipped_field(tail[: found[-1].start()])
    question = reason or rest or "The agent needs a person (NEEDS_HUMAN), and gave no reason."
    return Need(question, context=before, details=rest if reason else "", reason=reason)


def last_object(text: str) -> tuple[Mapping[str, object] | None, int]:
    """Return the JSON object that a text ends with, also when it is fenced, and where it begins."""
    text = text.rstrip()
    if text.endswith(("```", "~~~")):
        text = text[:-3].rstrip()
    if not text.endswith("}"):
        return None, 0
    start = len(text)
    for _ in range(400):
        start = text.rfind("{", 0, start)
        if start < 0:
            return None, 0
        try:
            value = json.loads(text[start:])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and ("status" in value or start == 0):
            return value, start
    return None, 0


def read_need(value: Mapping[str, object], before: str = "") -> Need | None:
    """Return the request in an object whose status says that a person is needed; None for any other object."""
    status = value.get("status")
    if not isinstance(status, str) or status.strip().lower() not in STATUSES:
        return None
    summary, details, reason = (clipped_field(value.get(name)) for name in ("summary", "details", "reason"))
    question = (
        clipped_field(value.get("question"))
        or clipped_field(value.get("prompt"))
        or clipped_field(value.get("message"))
    )
    context = next(
        (text for name in CONTEXT if (text := clipped_field(value.get(name)))), ""
    ) or clipped_field(before.rstrip("`json \n"))
    told = question or summary or reason or one_line(details, 400)
    kind = value.get("type")
    return Need(
        question=told or "The agent needs a person, and did not say for what.",
        summary=summary or told,
        context=context,
        details=details,
        reason=reason,
        issues=texts_in(value.get("issues")),
        options=signalled_options(value.get("options")),
        type=type_name(kind) or "" if isinstance(kind, str) else "",
        given=value,
    )


CONTEXT = ("questionContext", "question_context", "context")


def texts_in(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (clipped_field(value),) if clipped_field(value) else ()
    items = value if isinstance(value, list) else []
    return tuple(
        text
        for item in items[:100]
        if (text := clipped_field(item if isinstance(item, str) else json.dumps(item)))
    )


def signalled_options(value: object) -> tuple[Option, ...]:
    found: dict[str, Option] = {}
    for item in (value if isinstance(value, list) else [])[:100]:
        said = item if isinstance(item, Mapping) else {"label": item}
        label = one_line(clipped_field(said.get("label")), 900).strip()
        if label:
            found.setdefault(label.casefold(), Option(label, clipped_field(said.get("description"))))
    return tuple(found.values())


def clipped_field(value: object) -> str:
    return clipped_text(value, MOST_FIELD)


def draft_of(need: Need) -> Draft:
    """Return the draft of the question on the terms given with it. A field that does not fit is named, and loses no
    question.
    """
    plain = plain_draft(need)
    terms, unused = read_terms(need)
    context = "\n\n".join(part for part in (plain.context, unused_words(unused)) if part)
    if terms is None:
        return replace(plain, context=context)
    (own,) = plain.questions
    single = own.type == "choice" and len(own.options) == 1
    return replace(
        terms,
        questions=plain.questions if single else terms.questions,
        title=terms.title or plain.title,
        context=context,
        key=None,
        agent=None,
        session=None,
        config=None,
    )


# What is read above, and what an agent says of itself.
SAID = frozenset(
    (
        *("status", "summary", "details", "reason", "issues", "options", "type", "context", "prompt"),
        *(word for words in FIELD_ALIASES.values() for word in words),
        *("agent", "agent_name", "session", "session_id"),
        *OF_OTHERS,
    )
)
TERMS = frozenset((*OF_GATE, *OF_QUESTION, "questions")) - SAID - {"key", "gate_key", "config"}


def read_terms(need: Need) -> tuple[Draft | None, list[str]]:
    """Return the draft as a question file would give it, without the fields that do not fit; and what is wrong with
    those.
    """
    kept = {name: value for name, value in need.given.items() if name in TERMS and value is not None}
    unused = [unknown(name) for name in need.given if name not in TERMS and name not in SAID]
    unused += [*misread(need.given)]
    if "questions" not in kept:
        options = [{"label": o.label, "description": o.description} for o in need.options]
        own = {"prompt": need.question, "type": need.type, "options": options if len(options) > 1 else []}
        kept = {**{name: value for name, value in own.items() if value}, **kept}
    for _ in range(len(kept) + 1):
        try:
            return read_draft(field_of(kept, "the request")), unused
        except BadDocument as wrong:
            # A form without its schema is wrong as a whole: what is left then is its words.
            name = re.match(r"\w*", wrong.field)[0] or "type"  # type: ignore[index]
            if kept.pop(name, None) is None:
                break
            unused.append(f"{wrong.field or name}: {wrong.expected}")
        except Usage as wrong:
            unused.append(wrong.message)
            break
    return None, unused


def misread(given: Mapping[str, object]) -> Iterator[str]:
    """Yield the problems of fields that could not be read; the question is asked without them."""
    version, kind, options = given.get("hitl"), given.get("type"), given.get("options")
    if version is not None and version != 1:
        yield f"hitl: this gitgate reads version 1; found {found(version)}"
    if kind is not None and (not isinstance(kind, str) or type_name(kind) is None):
        yield f"type: expected one of {', '.join(TYPES)}; found {found(kind)}{near(kind, tuple(TYPES))}"
    if options is not None and not isinstance(options, list):
        yield f"options: expected a list; found {found(options)}"
    for index, one in enumerate(options if isinstance(options, list) else ()):
        for name in one if isinstance(one, Mapping) else ():
            if name not in OF_OPTION:
                yield f"options[{index}].{unknown(str(name), OF_OPTION)}"


def unknown(name: str, names: Iterable[str] = ()) -> str:
    meant = nearest(name, sorted(names or TERMS | SAID))
    return f"{one_line(name, 60)}: there is no such field{f' (did you mean {meant}?)' if meant else ''}"


def unused_words(unused: list[str]) -> str:
    return (
        "Not understood of the request:\n" + "\n".join(f"- {words}" for words in unused[:20])
        if unused
        else ""
    )


def plain_draft(need: Need) -> Draft:
    """Return the draft of the question from its words alone. The summary is its title; the rest is its context."""
    asked = TYPES.get(need.type)
    kind = "" if asked is None or asked.has_options or asked.has_schema else asked.name
    choosing = bool(need.options) and not kind
    question = Question(
        "answer",
        need.question,
        (need.type if asked is not None and asked.has_options else "choice") if choosing else kind or "text",
        need.options if choosing else (),
        other=choosing,
    )
    return Draft((question,), title=one_line(need.summary or need.question, 72), context=context_of(need))


def context_of(need: Need) -> str:
    parts = [need.context, need.details]
    parts += [f"Reason: {need.reason}"] if need.reason and need.reason != need.question else []
    parts += ["Issues:\n" + "\n".join(f"- {issue}" for issue in need.issues)] if need.issues else []
    return "\n\n".join(part for part in parts if part)


ASSISTANT, PERSON = "assistant", "person"

# What the program says in the person's name: commands typed to it, their output, its own reminders.
MACHINERY = re.compile(
    r"\s*(?:<(?:command-|local-command-|bash-|system-reminder|user-prompt-submit)|\[Request interrupted|Caveat: The messages below)"
)


@dataclass(frozen=True)
class Utterance:
    """Message of a conversation, by the assistant or by the person, and when it was said, where that is known. Output
    of tools is none.
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
    """Return the ids of a transcript's records, which distinguish them from later ones."""
    return frozenset(str(found["uuid"]) for found in records(transcript) if "uuid" in found)


def spoken(transcript: bytes, before: Collection[str] = ()) -> list[Utterance]:
    """Return the messages of a transcript in order, without records that were there `before`."""
    said = []
    for entry in records(transcript):
        if entry.get("uuid") in before or entry.get("isSidechain") is True or entry.get("isMeta") is True:
            continue
        message, kind = entry.get("message"), entry.get("type")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            continue
        text = message_text(message.get("content")).strip()
        machinery = kind == "user" and (text.startswith(MARK) or MACHINERY.match(text) is not None)
        summary = entry.get("isCompactSummary") is True or entry.get("isApiErrorMessage") is True
        if text and not machinery and not summary:
            said.append(Utterance(PERSON if kind == "user" else ASSISTANT, text, moment(entry)))
    return said


def moment(found: Mapping[str, object]) -> float:
    try:
        return parse_time(str(found.get("timestamp") or ""))
    except Usage:
        return 0.0


def message_text(content: object) -> str:
    """Return the text of a message; results of tools are nobody's words."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def transcript_text(said: Collection[Utterance]) -> str:
    """Return the conversation as a text that people read."""
    return "\n\n".join(f"{each.role}: {each.text}" for each in said)


MOST_JSON = 256 * 1024
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)")


@dataclass(frozen=True)
class Understood:
    """Outcome that a session proposes. `at` is the time when it did so, where that is known."""

    value: Value | None
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    at: float = 0.0


def signalled(data: Mapping[str, object], question: Question, source: str = "command") -> Understood:
    """Return the outcome in an explicit signal: a value, a status, words. BadAnswer says what does not fit."""
    status = data.get("status") or ""
    if not isinstance(status, str) or (status and not re.fullmatch(STATUS, status)):
        raise BadAnswer("expected a status such as DONE or NEEDS_REVIEW", about=question.key)
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
        raise BadAnswer(f"{name}: expected text", about=question.key)
    return found.replace("\0", "").encode("utf-8", "replace").decode().strip()[:MOST_WORDS]


# The last message of a conversation


def ended(spoken: Sequence[Utterance], question: Question) -> Understood | None:
    """Return the outcome in the fenced object that ends the assistant's last message; None where there is none that
    fits.
    """
    said = next((message for message in reversed(spoken) if message.role == ASSISTANT), None)
    body = last_body(said.text) if said is not None else None
    if said is None or body is None:
        return None
    try:
        found = signalled(parse_block(body), question, "json")
    except (GateError, ValueError, RecursionError):
        return None
    return replace(found, at=said.at) if found.value is not None or found.status else None


def last_body(text: str) -> str | None:
    """Return the last fenced block, as Markdown has them: closed, JSON, and with nothing after it."""
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
    """Return the object in a block; refuse a key that is there twice, which could be read as either."""
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
    """Return the person's last message; None if there is none."""
    return next((message for message in reversed(spoken) if message.role == PERSON), None)


def may_differ(said: Understood, spoken: Sequence[Utterance]) -> bool:
    """Return whether the person said something after the outcome was proposed, or the order of the two is unknown."""
    last = last_word(spoken)
    if last is None:
        return False
    if said.source == "json":
        return last is spoken[-1]
    return not (last.at and said.at) or last.at > said.at
