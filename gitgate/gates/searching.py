"""Gates: earlier decisions by their words: of questions, contexts, answers and remarks, whatever state the gate is in.

Of a record that was read before, the index has the words, under the commit that it ends at: they are looked through one after the
other, which takes a few milliseconds for ten thousand. What is found is read from its record again before it is shown. A session, and
what was put aside, is no part of a gate's record, and is not looked through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .. import text as times
from ..context import Desk
from ..document import NamedTuple, dataclass
from ..errors import GateError, Usage
from ..model import is_id
from ..model.gate import Answer, Gate, Option, Remark
from ..questions.answers import value_words
from ..store.git.refs import OPEN

# What is looked through, and what a word is worth there. A word that is there as it was typed is worth one more.
WEIGHTS = {"title": 8, "question": 8, "answer": 6, "note": 4, "context": 2, "remarks": 1}
WHOLE = 1
# Chinese and Japanese have no blanks between words: each character stands for itself.
TOKEN = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
MOST_KEPT = 1 << 16  # bytes: longer ones are read again each time
FEW = 20  # so many records are read sooner than the index is loaded
EVERY = 500


@dataclass(frozen=True)
class SearchTerms:
    """What is searched for: each word, or words that stand together; and what narrows it."""

    words: tuple[str, ...]
    type: str | None = None
    by: str | None = None
    since: float = 0.0
    limit: int = 20


@dataclass(frozen=True)
class FoundDecision:
    """A gate that has all the words, and where: names of `WEIGHTS`."""

    gate: Gate
    archived: bool
    matched: tuple[str, ...]


class Ending(NamedTuple):
    """Where a gate's record ends."""

    gate: str
    tip: str
    archived: bool


class Text(NamedTuple):
    """What is looked through of one record. Who answered is as it was written; the others are words alone, with a blank before each."""

    gate: str
    tip: str
    at: str
    types: str
    by: str
    title: str
    question: str
    answer: str
    note: str
    context: str
    remarks: str


def search(desk: Desk, wanted: SearchTerms) -> tuple[list[FoundDecision], int]:
    """The most fitting first, then the newest; and how many there are in all."""
    needles = read_needles(wanted.words)
    ends = {(one.gate, one.tip): one for one in endings(desk)}
    fitting = []
    for text in texts(desk, list(ends.values()), needles):
        worth = fit(text, needles)
        if worth and keeps(wanted, text):
            fitting.append((-worth, text.at, text))
    fitting.sort(key=lambda one: (one[1], one[2].gate), reverse=True)
    fitting.sort(key=lambda one: one[0])
    found, none = confirmed(desk, wanted, needles, ends, (text for _, _, text in fitting))
    return found, len(fitting) - none


def confirmed(
    desk: Desk,
    wanted: SearchTerms,
    needles: Sequence[str],
    ends: Mapping[tuple[str, str], Ending],
    found: Iterable[Text],
) -> tuple[list[FoundDecision], int]:
    """The first of them, as their records have it: what the index says is not shown. And how many turned out to be none."""
    shown: list[FoundDecision] = []
    none = 0
    for one in found:
        if len(shown) == wanted.limit:
            break
        try:
            gate = desk.records.load(one.gate, one.tip)
        except GateError as broken:
            # It was whole when the index learnt its words.
            desk.told.append(f"{one.gate} is left out: {broken.message}")
            none += 1
            continue
        text = searched_text(gate)
        if fit(text, needles) and keeps(wanted, text):
            shown.append(FoundDecision(gate, ends[one.gate, one.tip].archived, matched_in(text, needles)))
        else:
            none += 1
    return shown, none


def endings(desk: Desk) -> Iterator[Ending]:
    """Every gate, open ones first. One that is both open and archived is looked at where it is open."""
    from .history import archived_tips

    here = {ref.removeprefix(OPEN): tip for ref, tip in desk.refs.under(OPEN).items()}
    yield from (Ending(gate, tip, archived=False) for gate, tip in here.items() if is_id(gate))
    yield from (
        Ending(gate, tip, archived=True) for gate, tip in archived_tips(desk) if tip and gate not in here
    )


def texts(desk: Desk, ends: Sequence[Ending], needles: Sequence[str]) -> Iterator[Text]:
    """Of each gate, or at least of each that has the words: those that the index has and that lack one are left out."""
    if len(ends) < FEW or not has_index():
        yield from read_texts(desk, ends)
        return
    from ..store.index import TEXTS

    kept = desk.index.known(TEXTS)
    rows = {one: row for one in ends if (row := kept.get(f"{one.gate}\t{one.tip}".encode()))}
    wanted = [word.encode() for word in needles]
    for row in rows.values():
        if all(word in row for word in wanted):
            yield Text(*row.decode().split("\t"))
    fresh = list(read_texts(desk, [one for one in ends if one not in rows]))
    desk.index.learn(TEXTS, [row for text in fresh if len(row := row_of_text(text)) <= MOST_KEPT])
    desk.index.drop_dead(TEXTS, list(rows.values()))
    yield from fresh


def has_index() -> bool:
    """Some builds of Python come without SQLite."""
    try:
        import sqlite3  # noqa: F401
    except ImportError:
        return False
    return True


def row_of_text(text: Text) -> bytes:
    return "\t".join(text).encode("utf-8", "replace")


def read_texts(desk: Desk, ends: Sequence[Ending]) -> Iterator[Text]:
    """From the records. One that is broken is reported and left out: nothing can be said of what it decided."""
    from ..store.records import AT_ONCE

    for count, one in enumerate(ends):
        if count % AT_ONCE == 0:
            desk.records.read_ahead(end.tip for end in ends[count : count + AT_ONCE])
        if count and count % EVERY == 0:
            desk.progress(f"reading records for the first time: {count} of {len(ends)}")
        try:
            yield searched_text(desk.records.load(one.gate, one.tip))
        except GateError as broken:
            desk.told.append(f"{one.gate} is left out: {broken.message}")
    desk.records.objects.forget()


def searched_text(gate: Gate) -> Text:
    opened, counted = gate.opened, gate.answer
    said = counted.answer if counted is not None else None
    votes = [vote.answer for vote in (*gate.votes, *gate.late)]
    asked = [part for one in opened.questions for part in (one.prompt, *each_option(one.options))]
    answers = dict.fromkeys(
        value_words(value) for one in (said, *votes) if one for value in one.values.values()
    )
    notes = dict.fromkeys(one.note for one in (said, *votes) if one)
    people = dict.fromkeys(one.by for one in (said, *votes) if one and one.by)
    remarks = [entry.event.text for entry in gate.events if isinstance(entry.event, Remark)]
    return Text(
        gate.id,
        gate.tip,
        opened.asked.at,
        ",".join(dict.fromkeys(one.type for one in opened.questions)),
        " ".join(" ".join(people).split()),
        title=search_words(opened.title),
        question=search_words(" ".join(asked)),
        answer=search_words(" ".join(answers)),
        note=search_words(" ".join(notes)),
        context=search_words(opened.context),
        remarks=search_words(" ".join(remarks)),
    )


def each_option(options: Iterable[Option]) -> Iterator[str]:
    return (f"{option.label} {option.description}".strip() for option in options)


def search_words(text: str) -> str:
    """Without capitals, accents and punctuation, a blank before and after each word. The same for what is searched for."""
    found = text.casefold()
    if not found.isascii():
        found = "".join(c for c in unicodedata.normalize("NFKD", found) if not unicodedata.combining(c))
    words = TOKEN.findall(unicodedata.normalize("NFC", found))
    return f" {' '.join(words)} " if words else ""


def read_needles(words: Sequence[str]) -> list[str]:
    """What is looked for; each of the words has to have a letter or a digit."""
    needles = [needle(word) for word in words]
    if not all(needles) or not needles:
        raise Usage("there is no word to search for", hint='git gate search "which database"')
    return needles


def needle(word: str) -> str:
    """A word, or several that stand together; the last one may be a beginning."""
    return search_words(word).rstrip(" ")


def fit(text: Text, needles: Sequence[str]) -> int:
    """What the words are worth, each where it counts most; 0 where one of them is not there."""
    worth = 0
    for word in needles:
        best = max((weight for name, weight in WEIGHTS.items() if word in getattr(text, name)), default=0)
        if not best:
            return 0
        worth += 2 * best + (WHOLE if any(f"{word} " in getattr(text, name) for name in WEIGHTS) else 0)
    return worth


def matched_in(text: Text, needles: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in WEIGHTS if any(word in getattr(text, name) for word in needles))


def keeps(wanted: SearchTerms, text: Text) -> bool:
    if wanted.type is not None and wanted.type not in text.types.split(","):
        return False
    if wanted.by is not None and wanted.by.casefold() not in text.by.casefold():
        return False
    return not wanted.since or moment_of(text.at) >= wanted.since


def moment_of(at: str) -> float:
    try:
        return times.parse_time(at)
    except GateError:
        return 0.0


def passages(gate: Gate, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Where the words stand, and the line around each first one: (a name of `WEIGHTS`, text as it was written)."""
    opened = gate.opened
    written = {
        "title": [opened.title],
        "question": [part for one in opened.questions for part in (one.prompt, *each_option(one.options))],
        "context": opened.context.split("\n"),
        "note": [entry.event.note for entry in gate.events if isinstance(entry.event, Answer)],
        "remarks": [entry.event.text for entry in gate.events if isinstance(entry.event, Remark)],
    }
    needles = [needle(word) for word in words]
    for name, parts in written.items():
        for part in parts:
            if any(one in search_words(part) for one in needles):
                yield name, part
                break
