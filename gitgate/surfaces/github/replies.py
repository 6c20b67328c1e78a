"""Surfaces: what a comment says as a reply: pure. `/approve`, `/answer TEXT`, …, or plain words that quote or name a gate.

What is quoted, fenced before the command, or hidden in an HTML comment is nobody's word: others have to see what was said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...core.answers import Given, lines_of
from ...core.ids import ALPHABET, LENGTH, is_prefix
from ...core.model import Gate, Question
from ...errors import BadAnswer
from .picking import answered, labelled, picked, several_answered, several_picked

VERBS = ("answer", "approve", "reject", "choose", "stop")
# Letters that only look alike are no command and no name: without regard to case for these alone. Blanks may be any.
COMMAND = re.compile(rf" {{0,3}}/((?ai:{'|'.join(VERBS)}))(?=\s|$)[ \t]*(.*)")
HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
NAMED = re.compile(rf"(?ai:(?<![a-z0-9])([{ALPHABET}]{{{LENGTH}}})(?![a-z0-9]))")
BEGINS = re.compile(rf"\s*(?:(?ai:gate)\s+)?[`*]*((?ai:[{ALPHABET}]{{{LENGTH}}}))[`*]*\s*:\s*")
SEVERAL = 4  # so many letters of an id name one of several gates
SURE = 6  # so many are no word that an answer begins with by chance
AROUND = "`*_:,;."  # what people write around a name


@dataclass(frozen=True)
class Said:
    """A reply: what is to be done, to which gate if it names one, and the words that go with it. `plain`: without a command."""

    verb: str
    text: str
    gate: str | None = None
    plain: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Lines:
    """A comment's lines: what its author wrote, and what they quoted. `fenced`: which of the first are in a code block."""

    own: tuple[str, ...]
    fenced: tuple[bool, ...]
    quoted: str


def may_answer(body: str) -> bool:
    """Whether it is worth asking the forge about this comment: a cheap look, by which nothing is decided."""
    lines = split(body)
    if any(not fenced and COMMAND.match(line) for line, fenced in zip(lines.own, lines.fenced, strict=True)):
        return True
    text = "\n".join(lines.own).strip()
    return bool(BEGINS.match(text)) or (bool(text) and NAMED.search(lines.quoted) is not None)


def parse(body: str, gates: Sequence[str]) -> Said | None:
    """What the comment says to one of `gates` (those of its thread), or None when it is only talk."""
    lines = split(body)
    found = [
        (place, command)
        for place, line in enumerate(lines.own)
        if not lines.fenced[place] and (command := COMMAND.match(line))
    ]
    if len(found) > 1:
        raise BadAnswer("a comment holds one reply; this one has several")
    if not found:
        return plain_reply(lines, gates)
    place, command = found[0]
    text = "\n".join([command.group(2), *lines.own[place + 1 :]]).strip()
    gate, text = take_name(text, gates)
    return Said(command.group(1).lower(), text, gate or quoted_gate(lines, gates))


def split(body: str) -> Lines:
    own: list[str] = []
    fenced: list[bool] = []
    quoted: list[str] = []
    fence = ""
    for line in HIDDEN.sub("", body.replace("\r\n", "\n")).split("\n"):
        mark = FENCE.match(line)
        inside = bool(fence)
        if mark and not fence:
            fence, inside = mark.group(1), True
        elif mark and fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        if not inside and line.lstrip().startswith(">"):
            quoted.append(line)
            continue
        own.append(line)
        fenced.append(inside)
    return Lines(tuple(own), tuple(fenced), "\n".join(quoted))


def take_name(text: str, gates: Sequence[str]) -> tuple[str | None, str]:
    """The gate that the first word names, and the rest. Where one gate waits a short word is rather an answer.

    A short one of several has to hold a digit: whoever asks can see to it that a gate's name begins with `thanks`.
    """
    word, rest = [*re.split(r"\s+", text, maxsplit=1), ""][:2]
    name = word.strip(AROUND).lower()
    if not (word.isascii() and is_prefix(name)):
        return None, text
    if len(name) == LENGTH and (name in gates or any(c.isdigit() for c in name)):
        return name, rest.strip()
    matching = [gate for gate in gates if gate.startswith(name)]
    if len(name) < (SEVERAL if len(gates) > 1 else SURE) or not matching:
        return None, text
    if len(matching) > 1 or (len(gates) > 1 and name.isalpha()):
        raise BadAnswer(f"{name} could be gate {' or '.join(matching)}, or a word: a whole name is sure")
    return matching[0], rest.strip()


def plain_reply(lines: Lines, gates: Sequence[str]) -> Said | None:
    """Words without a command answer a gate only when they quote it where it is shown, or begin with its name and a colon:
    elsewhere too, where the name can be no word.
    """
    text = "\n".join(lines.own).strip()
    named = BEGINS.match(text)
    name = named.group(1).lower() if named else ""
    gate = quoted_gate(lines, gates)
    if named and (name in gates or (gate is None and any(c.isdigit() for c in name))):
        return Said("answer", text[named.end() :].strip(), name, plain=True)
    return Said("answer", text, gate, plain=True) if gate and text else None


def quoted_gate(lines: Lines, gates: Sequence[str]) -> str | None:
    """The one gate of this thread that is quoted."""
    found = {name for name in map(str.lower, NAMED.findall(lines.quoted)) if name in gates}
    return found.pop() if len(found) == 1 else None


def read(said: Said, gate: Gate) -> tuple[Given, str]:
    """The reply as an answer to this gate, and the note beside it; whether it fits is checked when it is given."""
    if said.verb in ("approve", "reject"):
        return Given(approve=said.verb == "approve"), said.text
    questions = gate.opened.questions
    if len(questions) > 1:
        if said.verb == "choose":
            raise BadAnswer(f"this gate has {len(questions)} questions, and each needs its answer")
        return several(said.text, questions), ""
    return choose(said.text, questions[0]) if said.verb == "choose" else (answer(said.text, questions[0]), "")


def several(text: str, questions: Sequence[Question]) -> Given:
    """`key: value` lines; what they say of options is read as after `/answer`."""
    named: dict[str, object] = {**lines_of(questions, text)}
    for question in questions:
        words = named.get(question.key)
        if isinstance(words, str) and words.strip() and question.kind in ("choice", "choices"):
            named[question.key] = option_words(question, words)
    return Given(values=named)


def option_words(question: Question, words: str) -> object:
    if words.startswith("other:") and not labelled(question, words):
        return words
    return answered(question, words) if question.kind == "choice" else several_answered(question, words)


def choose(text: str, question: Question) -> tuple[Given, str]:
    """A number or a label; what stands on further lines is a note."""
    first, _, note = text.partition("\n")
    if question.kind not in ("choice", "choices"):
        raise BadAnswer(f"/choose is for questions with options; this is a {question.kind} question")
    words = first.strip()
    if not words:
        return Given(text=""), note.strip()
    value: object = picked(question, words) if question.kind == "choice" else several_picked(question, words)
    return Given(values={question.key: value}), note.strip()


def answer(text: str, question: Question) -> Given:
    if question.kind in ("choice", "choices"):
        return answer_options(text, question)
    if question.kind == "form" and not text.lstrip().startswith("{"):
        return Given(pairs=tuple(fields(text)))
    return Given(text=without_key(text, question))


def answer_options(text: str, question: Question) -> Given:
    if labelled(question, text.strip()):
        return Given(values={question.key: option_words(question, text.strip())})
    key, colon, rest = text.partition(":")
    if colon and key.strip().lower() == "other":
        return Given(other=rest.strip())
    words = without_key(text, question).strip()
    return Given(values={question.key: option_words(question, words)}) if words else Given(text="")


def without_key(text: str, question: Question) -> str:
    key, colon, rest = text.partition(":")
    return rest.strip() if colon and key.strip() == question.key else text


def fields(text: str) -> list[tuple[str, str]]:
    """`field: value` lines; a line without a colon goes on with the one before."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and re.fullmatch(r"[\w.-]+", key.strip()):
            found.append((key.strip(), value.strip()))
        elif found and line.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line.strip()}")
        elif line.strip():
            raise BadAnswer("the form is answered by lines of `field: value`")
    return found
