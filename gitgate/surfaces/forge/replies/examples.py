"""Surfaces: replies ready to copy: pure. Each reads back to what it says, whatever the options are called; else it is not shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ....errors import BadAnswer
from ....model.gate import Gate, Question
from ....questions.answers import read_answer
from ....text.display import one_line
from .picking import answered, sure_number
from .replies import ReplySaid, parse, read

LONGEST = 80


def examples(gate: Gate, named: str = "", gates: Collection[str] = ()) -> list[str]:
    """Only words of ours and the options' own labels, neutral and on one line. `gates`: all that the thread shows."""
    known = tuple(dict.fromkeys((gate.id, *gates)))
    ways = [*WAYS[kind_of(gate)](gate, known), "/stop why the agent should not go on"]
    found = [line for way in ways if (line := sure(way, gate, named, known))]
    return [part for line in found for part in ([line, ""] if "\n" in line else [line])]


def kind_of(gate: Gate) -> str:
    return "several" if len(gate.opened.questions) > 1 else gate.opened.questions[0].kind


def sure(way: str, gate: Gate, named: str, gates: Collection[str]) -> str:
    """The example, with the gate's name where it is needed or its first word could be another one's; empty if that is no help."""
    verb, _, words = way.partition(" ")
    for name in dict.fromkeys((named.strip(), gate.id)):
        line = " ".join(part for part in (verb, name, words) if part)
        if said_by(line, gates) == ReplySaid(verb[1:], words.strip(), name or None):
            return line
    return ""


def said_by(line: str, gates: Collection[str]) -> ReplySaid | None:
    try:
        return parse(line, list(gates))
    except BadAnswer:
        return None


def means(way: str, gate: Gate, gates: Collection[str], labels: Collection[str]) -> bool:
    """Whether this reply is an answer of these very options."""
    said = said_by(sure(way, gate, "", gates), gates)
    try:
        values, _ = read_answer(gate.opened.questions, read(said, gate)[0]) if said else ({}, "")
    except BadAnswer:
        return False
    value = values.get(gate.opened.questions[0].key)
    return (value if isinstance(value, list) else [value]) == list(labels)


def choice_ways(gate: Gate, gates: Collection[str]) -> Iterator[str]:
    question = gate.opened.questions[0]
    first = f"/choose {sure_number(question, 0)}"
    if question.kind == "choices" and len(question.options) > 1:
        both = f"{first}, {sure_number(question, 1)}"
        first = both if means(both, gate, gates, question.labels[:2]) else first
    yield first
    named = f"/choose {one_line(question.options[0].label)}"
    if len(named) <= LONGEST and means(named, gate, gates, question.labels[:1]):
        yield named
    own = "something else"
    if question.other and means(f"/answer other: {own}", gate, gates, [own]):
        yield f"/answer other: {own}"


def several_ways(gate: Gate, _gates: Collection[str]) -> Iterator[str]:
    lines = [f"{one_line(question.key)}: {sample(question)}" for question in gate.opened.questions]
    yield "/answer " + "\n".join(lines)


def sample(question: Question) -> str:
    if question.kind == "approval":
        return "yes"
    if not question.options:
        return "{}" if question.kind == "form" else "…"
    label = one_line(question.options[0].label)
    try:
        sure_word = answered(question, label) == question.options[0].label
    except BadAnswer:
        sure_word = False
    hidden = len(label) > LONGEST or "<!--" in label or "," in label or label.startswith("other:")
    return label if sure_word and not hidden else sure_number(question, 0, marks=1)


WAYS: dict[str, Callable[[Gate, Collection[str]], Iterator[str]]] = {
    "several": several_ways,
    "approval": lambda _gate, _gates: iter(("/approve", "/approve with a note", "/reject why not")),
    "choice": choice_ways,
    "choices": choice_ways,
    "form": lambda _gate, _gates: iter(("/answer field: value\nother field: value",)),
    "text": lambda _gate, _gates: iter(("/answer your words",)),
}
