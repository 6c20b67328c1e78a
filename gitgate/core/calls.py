"""Core: a tool call of an agent that waits for a person, as a gate's questions, and the answer as the call's outcome.

`config.deferred` of a gate names the call: by its id, and by a digest of exactly what was to be called, so that what is
let through is what was approved.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import Usage
from .answers import shown
from .model import Gate, Option, Question, Value
from .rules import WRITERS, Rule
from .text import one_line

ASK_TOOL = "AskUserQuestion"
MOST_QUESTIONS, MOST_OPTIONS = 20, 100
MOST_PROMPT, MOST_LABEL, MOST_SHOWN = 20_000, 900, 12_000
SHAPE = '{"questions": [{"question": "…?", "header": "…", "multiSelect": false, "options": [{"label": "…", "description": "…"}, …]}]}'
NOT_IN_A_KEY = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Call:
    """One call of a tool, by the id that its program gave it."""

    tool: str
    id: str
    digest: str


def digest_of_call(tool: str, given: object) -> str:
    """The same for the same tool with the same arguments, in whatever order they stand."""
    text = json.dumps([tool, given], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def config_of(call: Call, rule: Rule | None = None) -> dict[str, object]:
    """What a gate keeps of its call."""
    said = {"tool": call.tool[:200], "id": call.id[:200], "digest": call.digest}
    return {"deferred": {**said, **({"rule": rule.text} if rule else {})}}


def call_of(gate: Gate) -> Call | None:
    """The call that a gate stands for; None when it was asked in another way."""
    said = gate.opened.config.get("deferred")
    if not isinstance(said, Mapping):
        return None
    words = [said.get(name) for name in ("tool", "id", "digest")]
    return Call(*map(str, words)) if all(isinstance(word, str) for word in words) else None


# Questions


def questions_of(given: Mapping[str, object]) -> tuple[Question, ...]:
    """The questions of an `AskUserQuestion` call; Usage says what was expected."""
    listed = given.get("questions")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_QUESTIONS:
        raise Usage(f"expected 1 to {MOST_QUESTIONS} questions", hint=SHAPE)
    keys: list[str] = []
    found = []
    for number, item in enumerate(listed, 1):
        if not isinstance(item, Mapping):
            raise Usage(f"question {number} is not an object", hint=SHAPE)
        keys.append("answer" if len(listed) == 1 else key_of(item.get("header"), number, keys))
        found.append(question_of(item, number, keys[-1]))
    return tuple(found)


def question_of(item: Mapping[str, object], number: int, key: str) -> Question:
    prompt = said(item.get("question"), MOST_PROMPT)
    if not prompt:
        raise Usage(f"question {number} has no text", hint=SHAPE)
    options = options_of(item.get("options"), number)
    if not options:
        return Question(key, prompt, "text")
    several = item.get("multiSelect") is True
    return Question(key, prompt, "choices" if several else "choice", options, other=True)


def options_of(listed: object, number: int) -> tuple[Option, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list) or len(listed) > MOST_OPTIONS:
        raise Usage(f"question {number}: expected a list of at most {MOST_OPTIONS} options", hint=SHAPE)
    found: list[Option] = []
    taken: set[str] = set()
    for item in listed:
        option = item if isinstance(item, Mapping) else {"label": item}
        label = said(option.get("label"), MOST_LABEL)
        if not label:
            raise Usage(f"question {number} has an option without a label", hint=SHAPE)
        label = unique(label, taken)
        taken.add(label.casefold())
        found.append(Option(label, said(option.get("description"), MOST_PROMPT)))
    return tuple(found)


def unique(label: str, taken: set[str]) -> str:
    """Two labels that differ by case alone are two options all the same."""
    names = (label, *(f"{label} ({number})" for number in range(2, MOST_OPTIONS + 2)))
    return next(name for name in names if name.casefold() not in taken)


def key_of(header: object, number: int, taken: Sequence[str]) -> str:
    """A short name to answer by: from the header, where it has letters."""
    key = NOT_IN_A_KEY.sub("-", said(header, 40).lower()).strip("-")
    return key if key and key not in taken and not re.fullmatch(r"q\d+", key) else f"q{number}"


def said(value: object, most: int) -> str:
    """Text as a record can hold it; what is no text is nothing."""
    if not isinstance(value, str):
        return ""
    return (
        value.encode("utf-8", "replace")
        .decode()
        .replace("\0", "")
        .replace("\r\n", "\n")
        .strip()[:most]
        .strip()
    )


def previews(given: Mapping[str, object]) -> str:
    """What the options would look like, where the agent drew it: it goes into the context."""
    listed = given.get("questions")
    parts = [
        f"{said(option.get('label'), MOST_LABEL)}:\n\n{indented(said(option.get('preview'), 4000))}"
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping)
        for option in (item.get("options") if isinstance(item.get("options"), list) else [])  # type: ignore[union-attr]
        if isinstance(option, Mapping) and said(option.get("preview"), 1)
    ]
    return "\n\n".join(parts)


# Answers


def updated_input(
    given: Mapping[str, object], questions: Sequence[Question], values: Mapping[str, Value]
) -> dict[str, object]:
    """The call of `AskUserQuestion` again, with its answers in it."""
    asked = given.get("questions")
    texts = [
        item.get("question") if isinstance(item, Mapping) else None
        for item in (asked if isinstance(asked, list) else [])
    ]
    pairs = zip(texts, questions, strict=False)
    answers = {
        text: answer_text(values.get(question.key)) for text, question in pairs if isinstance(text, str)
    }
    return {**given, "answers": answers}


def answer_text(value: Value | None) -> str:
    """Several labels are told apart by commas, so that one which holds a comma stands in quotes."""
    if isinstance(value, list) and any("," in label for label in value):
        return ", ".join(json.dumps(label, ensure_ascii=False) if "," in label else label for label in value)
    return shown(value)


# Approvals


def approval(tool: str, given: Mapping[str, object]) -> Question:
    return Question(
        "answer", f"May the agent make this call?\n\n{indented(summary(tool, given))}", "approval"
    )


def title(tool: str, given: Mapping[str, object]) -> str:
    return one_line(f"Allow {summary(tool, given)}", 72)


def summary(tool: str, given: Mapping[str, object]) -> str:
    """The call in the words that matter most: the command, the file, the address."""
    for name in ("command", "file_path", "notebook_path", "url", "path"):
        text = said(given.get(name), MOST_SHOWN)
        if text:
            return f"{said(tool, 200)}: {text}"
    return said(tool, 200) or "a tool"


def exact(tool: str, given: Mapping[str, object]) -> str:
    """All of the call, to be read; texts of several lines as they are, instead of as one line full of escapes."""
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        text = text.encode("utf-8", "replace").decode()
        lines.append(f"{name}:\n{indented(text)}" if "\n" in text else f"{name}: {text}")
    head = f"{said(tool, 200)}{' (it writes a file)' if tool in WRITERS else ''}"
    return "\n".join([head, *lines])


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
