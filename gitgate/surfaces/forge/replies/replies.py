"""Surfaces: what a comment says as a reply: pure. `/approve`, `/answer TEXT`, …, or plain words that quote or name a gate.

What is quoted, shown as code, or hidden in an HTML comment is nobody's word: others have to see what was said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ....errors import BadAnswer
from ....model.gate import Gate, Question
from ....model.ids import ALPHABET, LENGTH, is_prefix
from ....questions.answers import read_answer
from ....questions.base import Given, lines_of
from ....questions.types import type_of
from . import nearly
from .nearly import VERBS
from .shown import SeenLine, see

# Letters that only look alike are no command and no name: without regard to case for these alone. Blanks may be any. What people
# put right behind a word is no part of it, where no word of an answer could begin so; a question mark makes it none.
SURELY = r"(?=(?ai:approve|reject|stop)|(?ai:answer|choose)(?:\s|:|$))"
COMMAND = re.compile(rf" {{0,3}}/{SURELY}((?ai:{'|'.join(VERBS)}))(?:[,.;:]|!{{1,3}})?(?=\s|$)[ \t]*(.*)")
NAMED = re.compile(rf"(?ai:(?<![a-z0-9])([{ALPHABET}]{{{LENGTH}}})(?![a-z0-9]))")
BEGINS = re.compile(rf"\s*(?:(?ai:gate)\s+)?[`*]*((?ai:[{ALPHABET}]{{{LENGTH}}}))[`*]*\s*:\s*")
SEVERAL = 4  # so many letters of an id name one of several gates
SURE = 6  # so many are no word that an answer begins with by chance
UNSURE = "not everybody sees it as words of their own: write it below an empty line, outside of quotes, tags, links and comments of HTML"
AROUND = "`*_:,;."  # what people write around a name


@dataclass(frozen=True)
class ReplySaid:
    """A reply: what is to be done, to which gate if it names one, and the words that go with it. `plain`: without a command."""

    verb: str
    text: str
    gate: str | None = None
    plain: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Lines:
    """A comment's lines: what its author wrote, as everybody sees it, and what they quoted."""

    own: tuple[SeenLine, ...]
    quoted: str

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.own).strip()

    @property
    def sure(self) -> list[str]:
        """The lines that are certainly their author's own words, without code."""
        return [row.bare for row in self.own if not (row.code or row.unsure)]

    @property
    def first(self) -> SeenLine | None:
        return next((row for row in self.own if row.text.strip()), None)


def may_answer(body: str) -> bool:
    """Whether it is worth asking the forge about this comment: a cheap look, by which nothing is decided."""
    if not nearly.HINT.search(body) and "<!--" not in body:  # what such a comment cuts in two is seen as one
        return False
    lines = split(body)
    if any(command_of(row) for row in lines.own):
        return True
    if BEGINS.match(lines.text) or (lines.text and NAMED.search(lines.quoted)):
        return True
    return not body.startswith(nearly.OURS) and nearly.may_be_near(lines.sure)


def parse_reply(body: str, gates: Sequence[str]) -> ReplySaid | None:
    """What the comment says to one of `gates` (those of its thread), or None when it is only talk; what is neither is refused."""
    lines = split(body)
    found = [(place, command) for place, row in enumerate(lines.own) if (command := command_of(row))]
    if len(found) > 1:
        raise BadAnswer("a comment holds one reply; this one has several")
    if not found:
        said = plain_reply(lines, gates)
        if said is None and not body.startswith(nearly.OURS):
            nearly.refuse_near_replies(lines.sure, gates)
        return said
    place, command = found[0]
    row, *below = lines.own[place:]
    check_seen([row, *below], row.unsure)
    text = "\n".join([row.text[command.start(2) :], *(other.text for other in below)]).strip()
    gate, text = take_name(text, gates)
    return ReplySaid(command.group(1).lower(), text, gate or quoted_gate(lines, gates))


def command_of(row: SeenLine) -> re.Match[str] | None:
    """The command at its start. What might be code is looked at, too: its author is to hear that nobody can tell."""
    return None if row.code else COMMAND.match(row.text if row.unsure else row.bare)


@lru_cache(maxsize=4)  # the same comment is asked about several times in a row
def split(body: str) -> Lines:
    rows = see(body)
    own = tuple(row for row in rows if not row.quoted)
    return Lines(own, "\n".join(row.text for row in rows if row.quoted))


def check_seen(rows: Sequence[SeenLine], unsure: bool) -> None:
    """Nobody's word is what might be code, another's, or not seen at all."""
    if unsure or any(row.lost and row.text.strip() for row in rows):
        raise BadAnswer(UNSURE)


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


def plain_reply(lines: Lines, gates: Sequence[str]) -> ReplySaid | None:
    """Words without a command answer a gate only when they quote it where it is shown, or begin with its name and a colon:
    elsewhere too, where the name can be no word.
    """
    text, first = lines.text, lines.first
    named = BEGINS.match(text) if first is not None and not first.code else None
    name = named.group(1).lower() if named else ""
    gate = quoted_gate(lines, gates)
    if first is not None and (named or gate):
        check_seen(lines.own, first.lazy)
    if named and (name in gates or (gate is None and any(c.isdigit() for c in name))):
        return ReplySaid("answer", text[named.end() :].strip(), name, plain=True)
    return ReplySaid("answer", text, gate, plain=True) if gate and text else None


def quoted_gate(lines: Lines, gates: Sequence[str]) -> str | None:
    """The one gate of this thread that is quoted."""
    found = {name for name in map(str.lower, NAMED.findall(lines.quoted)) if name in gates}
    return found.pop() if len(found) == 1 else None


def read_reply(said: ReplySaid, gate: Gate) -> tuple[Given, str]:
    """The reply as an answer to this gate, and the note beside it; whether it fits is checked when it is given."""
    if said.verb in ("approve", "reject"):
        return yes_or_no(said, gate.opened.questions), said.text
    questions = gate.opened.questions
    if len(questions) > 1:
        if said.verb == "choose":
            raise BadAnswer(each_of(questions))
        return several(said.text, questions), ""
    return (
        choose(said.text, questions[0])
        if said.verb == "choose"
        else (type_of(questions[0]).replied(questions[0], said.text), "")
    )


def yes_or_no(said: ReplySaid, questions: Sequence[Question]) -> Given:
    """What does not fit is refused here, in the words of replies."""
    given = Given(approve=said.verb == "approve")
    try:
        read_answer(questions, given)
    except BadAnswer as unfit:
        if len(questions) > 1:
            raise BadAnswer(each_of(questions)) from unfit
        raise BadAnswer(f"/{said.verb} is for approvals; this is {type_of(questions[0]).noun}") from unfit
    return given


def each_of(questions: Sequence[Question]) -> str:
    return f"this gate has {len(questions)} questions, and each needs its answer"


def several(text: str, questions: Sequence[Question]) -> Given:
    """`key: value` lines; what they say of options is read as after `/answer`."""
    named: dict[str, object] = {**lines_of(questions, text)}
    for question in questions:
        words = named.get(question.key)
        if isinstance(words, str):
            named[question.key] = type_of(question).part_replied(question, words)
    return Given(values=named)


def choose(text: str, question: Question) -> tuple[Given, str]:
    """A number or a label; what stands on further lines is a note."""
    first, _, note = text.partition("\n")
    words = first.strip()
    chosen = type_of(question).chosen(question, words)
    return Given(values={question.key: chosen}) if words else Given(text=""), note.strip()
