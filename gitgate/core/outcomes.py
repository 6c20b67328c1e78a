"""Core: how a conversation ended: what was signalled, else its last JSON object, else plain words. Unclear is None.

Nothing here decides: a person confirms what was understood. All the same no ending may read as an approval that is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from ..errors import GateError
from .model import Question, Value
from .questions import read_value
from .signals import Understood, given_value, signalled
from .stances import (
    APPROVE,
    REJECT,
    Fence,
    Stance,
    approval_mentions,
    approval_sides,
    fences,
    is_courtesy,
    is_troubled,
    plain,
    readable,
    selection_mentions,
    selection_sides,
    stance,
)
from .values import dataclass

__all__ = ["ASSISTANT", "PERSON", "Spoken", "Understood", "read", "signalled"]

ASSISTANT, PERSON = "assistant", "person"
LAST = 4
MOST_JSON = 256 * 1024
LED = re.compile(
    r"(?:(?:so )?(?:here is|here's) )?(?:(?:the|my|our|final|recorded) )*(?:decision|outcome|verdict|result|answer)"
    r"(?: is| as json| in json)*:"
)
# The line before a block: somebody else's words, or none that are meant.
INTRODUCED = re.compile(
    r"\b(?:file|files|contains?|content|reads|output|printed|returned|response|log|config|configuration"
    r"|like|such as|shape|structure|syntax)\b|\.(?:json|ya?ml|toml|md|txt|log)\b"
    r"|datei|fichier|archivo|ficheiro|arquivo|bestand|ファイル|文件"
)


@dataclass(frozen=True)
class Spoken:
    """One message of a conversation, by the assistant or by the person. What tools said is none."""

    role: str
    text: str


def read(spoken: Sequence[Spoken], question: Question) -> Understood | None:
    """What the last messages say, where no signal was given; None where that is unclear."""
    last = [message for message in spoken if message.text.strip()][-LAST:]
    deciding = question.kind in ("approval", "choice")
    place = last_json(last)
    found = None if place is None else read_json(last, place, question)
    if found is not None:
        return found
    if deciding:
        # An object in the very last message should have been the decision: words beside it are no other.
        shown = place is not None and place == last_said(last)
        return None if shown else read_decision(last, question)
    if place is not None:
        return None
    return read_last_words(last, question) if question.kind == "text" else None


def last_json(last: Sequence[Spoken]) -> int | None:
    """Where the last message of the assistant with a JSON object is."""
    places = (p for p in range(len(last) - 1, -1, -1) if last[p].role == ASSISTANT and blocks(last[p].text))
    return next(places, None)


def last_said(last: Sequence[Spoken]) -> int | None:
    """Where the assistant's last message is."""
    return next((p for p in range(len(last) - 1, -1, -1) if last[p].role == ASSISTANT), None)


def blocks(text: str) -> list[Fence]:
    """The fenced blocks that are JSON, or are said to be."""
    return [
        fence
        for fence in fences(text)
        if fence.info.casefold() == "json" or (not fence.info and fence.body.lstrip().startswith("{"))
    ]


def read_json(last: Sequence[Spoken], place: int, question: Question) -> Understood | None:
    """What the last object of that message says, where it is meant as the end of the conversation."""
    text = last[place].text
    found = blocks(text)
    try:
        each = [signalled(parse(block), question, "json") for block in found]
    except (GateError, ValueError, RecursionError):
        return None
    lines = text.splitlines()
    before, after = lines[: found[-1].first], lines[found[-1].last + 1 :]
    if introduced(before):
        return None
    agreed = all(other.value == each[-1].value for other in each)
    ended = agreed and not "".join(after).strip() and readable(text)
    if question.kind in ("approval", "choice"):
        prose = stance_of("\n".join(before), question, assistant=True)
        fits = ended and is_led(before) and fits_talk(last, place, question, prose, each[-1].value)
        return replace(each[-1], sure=each[-1].sure and is_backed(last, question)) if fits else None
    if question.kind == "text" and each[-1].value is None and not each[-1].status:
        return read_last_words(last, question)
    meant = question.kind != "text" or given_value(parse(found[-1])) is not None
    alone = all(message.role == ASSISTANT for message in last[place + 1 :]) and not is_troubled(lead(before))
    return replace(each[-1], sure=each[-1].sure and meant and ended and alone)


def parse(block: Fence) -> Mapping[str, object]:
    """The object in a block; a key that is there twice could be read as either."""
    if not block.closed or len(block.body) > MOST_JSON:
        raise ValueError("not a whole object")
    value = json.loads(block.body, object_pairs_hook=once, parse_constant=refuse)
    return value if isinstance(value, dict) else refuse("another value than an object")


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def refuse(name: str) -> NoReturn:
    raise ValueError(f"expected an object of JSON values, found {name}")


def introduced(before: Sequence[str]) -> bool:
    """Whether the line before the block says that it holds somebody else's words, or an example."""
    return INTRODUCED.search(lead(before).casefold()) is not None


def is_led(before: Sequence[str]) -> bool:
    """Whether a line that announces the block calls it the decision: `To approve:` does not."""
    line = plain(lead(before))
    return not line.endswith(":") or LED.fullmatch(line) is not None


def is_backed(last: Sequence[Spoken], question: Question) -> bool:
    """Whether the person's own last words decide the same way: an agent alone does not make it sure."""
    said = list(last_person(last, [taken(message, question) for message in last]))
    return bool(said) and bool(said[0].side)


def lead(before: Sequence[str]) -> str:
    return next((line for line in reversed(before) if line.strip()), "")


def fits_talk(
    last: Sequence[Spoken], place: int, question: Question, prose: Stance, value: Value | None
) -> bool:
    """Whether nothing around the object speaks against its decision. With a no, doubts before it are to be expected."""
    stances = [taken(message, question) for message in last]
    earlier, later = [prose, *last_person(last[:place], stances)], stances[place + 1 :]
    side = side_of(value)
    agreed = all(one.side in ("", side) for one in earlier) and is_quiet(last, stances, place, side)
    weighed = later if value is False else [*earlier, *later]
    return agreed and not any(one.troubled for one in weighed)


def side_of(value: Value | None) -> str:
    if isinstance(value, bool):
        return APPROVE if value else REJECT
    return str(value or "")


def value_of(side: str, question: Question) -> Value:
    return side == APPROVE if question.kind == "approval" else side


def taken(message: Spoken, question: Question) -> Stance:
    return stance_of(message.text, question, assistant=message.role == ASSISTANT)


def stance_of(text: str, question: Question, *, assistant: bool) -> Stance:
    if question.kind == "approval":
        return stance(text, assistant=assistant, sides=approval_sides, mentions=approval_mentions)
    labels = question.labels
    return stance(
        text, assistant=assistant, sides=selection_sides(labels), mentions=selection_mentions(labels)
    )


def is_quiet(last: Sequence[Spoken], stances: Sequence[Stance], place: int, side: str) -> bool:
    """Whether nobody took another side after it, and the person said nothing more than thanks, or the same again."""
    after = zip(last[place + 1 :], stances[place + 1 :], strict=True)
    return all(
        one.side == side or (not one.side and (message.role == ASSISTANT or is_courtesy(message.text)))
        for message, one in after
    )


def last_person(last: Sequence[Spoken], stances: Sequence[Stance]) -> Iterator[Stance]:
    """What the person said last, if anything."""
    said = [one for message, one in zip(last, stances, strict=False) if message.role != ASSISTANT]
    yield from said[-1:]


def read_decision(last: Sequence[Spoken], question: Question) -> Understood | None:
    """A decision in plain words: the last one taken, if nothing said with it or after it speaks against it."""
    stances = [taken(message, question) for message in last]
    places = [place for place, one in enumerate(stances) if one.side]
    if not places:
        return None
    place = places[-1]
    side, by = stances[place].side, last[place].role
    others = [*stances[place + 1 :], *(last_person(last[:place], stances) if by == ASSISTANT else ())]
    quiet = is_quiet(last, stances, place, side)
    weighed = [] if value_of(side, question) is False else [stances[place], *others]
    opposed = (
        not quiet or any(one.side not in ("", side) for one in others) or any(one.troubled for one in weighed)
    )
    if opposed or stances[place].mentions:
        return None
    both = {last[p].role == ASSISTANT for p in places if stances[p].side == side}
    return Understood(value_of(side, question), source="words", sure=len(both) == 2)


def read_last_words(last: Sequence[Spoken], question: Question) -> Understood | None:
    """Free text is what the assistant said last; never surely, for nobody called that the answer."""
    said = next((message.text for message in reversed(last) if message.role == ASSISTANT), "")
    return Understood(read_value(question, said[:MOST_JSON]), source="words") if said.strip() else None
