"""Render: the commands that answer a gate, ready to type."""

from __future__ import annotations

from shlex import quote

from ..core.model import Gate, Question
from ..core.text import one_line

MOST_FIELDS = 8


def ways(gate: Gate) -> list[str]:
    """What is decided in a conversation may be typed all the same."""
    questions = gate.opened.questions
    joined = [join_line(gate)] if any(question.type == "session" for question in questions) else []
    return [*joined, *typed(gate)]


def join_line(gate: Gate) -> str:
    """How to hold the conversation."""
    checkpoint = any(q.talk is not None and q.talk.checkpoint for q in gate.opened.questions)
    words = "it asks whether to go on" if checkpoint else "talk it over with the agent, then decide"
    return f"git gate join {gate.id[:6]}    ({words})"


def after_failure(gate: Gate) -> list[str]:
    """What a person can do about an agent that could not be resumed, or that failed."""
    short = gate.id[:6]
    return [
        f"git gate resume {short}    (try again)",
        f"git gate stop {short} --reason WHY    (the agent does not go on)",
    ]


def fields_to_give(question: Question) -> list[str]:
    """An option for each field that has to be there; without any, how one is given."""
    needed = (question.schema or {}).get("required")
    named = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    return [f"-a {quote(one_line(name))}=…" for name in named[:MOST_FIELDS]] or ["-a FIELD=VALUE …"]


def typed(gate: Gate) -> list[str]:
    questions = gate.opened.questions
    start = f"git gate respond {gate.id[:6]}"
    if len(questions) > 1:
        return [start + " " + " ".join(f"-a {question.key}=…" for question in questions)]
    only = questions[0]
    if only.kind == "approval":
        return [f"{start} --approve", f"{start} --reject --note WHY"]
    if only.kind in ("choice", "choices"):
        example = quote(one_line(only.options[0].label))
        return [f"{start} {example}    (or '#1')", *([f"{start} --other TEXT"] if only.other else [])]
    if only.kind == "form":
        return [" ".join([start, *fields_to_give(only)])]
    return [f"{start} TEXT    (or --edit, to write it in your editor)"]
