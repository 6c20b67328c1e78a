"""Surfaces: replies ready to copy: pure. Each reads back to what it says, whatever the options are called; else it is not shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from ....errors import BadAnswer
from ....model.gate import Gate
from ....questions.answers import read_answer
from ....questions.types import type_of
from ....text.display import one_line
from .replies import ReplySaid, parse_reply, read_reply


def examples(gate: Gate, named: str = "", gates: Collection[str] = ()) -> list[str]:
    """Only words of ours and the options' own labels, neutral and on one line. `gates`: all that the thread shows."""
    known = tuple(dict.fromkeys((gate.id, *gates)))
    said = [*ways(gate, known), "/stop why the agent should not go on"]
    found = [line for way in said if (line := sure(way, gate, named, known))]
    return [part for line in found for part in ([line, ""] if "\n" in line else [line])]


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
        return parse_reply(line, list(gates))
    except BadAnswer:
        return None


def means(way: str, gate: Gate, gates: Collection[str], labels: Collection[str]) -> bool:
    """Whether this reply is an answer of these very options."""
    said = said_by(sure(way, gate, "", gates), gates)
    try:
        values, _ = read_answer(gate.opened.questions, read_reply(said, gate)[0]) if said else ({}, "")
    except BadAnswer:
        return False
    value = values.get(gate.opened.questions[0].key)
    return (value if isinstance(value, list) else [value]) == list(labels)


def ways(gate: Gate, gates: Collection[str]) -> Iterator[str]:
    questions = gate.opened.questions
    if len(questions) > 1:
        lines = [f"{one_line(each.key)}: {type_of(each).reply_part(each)}" for each in questions]
        yield "/answer " + "\n".join(lines)
        return
    for alternatives in type_of(questions[0]).reply_ways(questions[0]):
        fitting = (way for way, labels in alternatives if labels is None or means(way, gate, gates, labels))
        yield from islice(fitting, 1)
