"""Audit: earlier decisions: those that the lines of a file came of, and those that have words.

Of a file's lines, git's own blame and what agents' commits say of the gate behind them:

    Gate: 7k2fw9c3ab
    Decided-by: Ada Lovelace <ada@example.org>

A commit's trailers are anybody's claim. It is verified where the gate's own record names that commit as what came of it, and the
record holds as `verify` checks it.

Words are those of questions, contexts, answers and remarks, whatever state the gate is in.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from .. import text as times
from ..context import Desk
from ..document import NamedTuple, dataclass, replace
from ..errors import BrokenRecord, Failure, GateError, Usage
from ..model import UNSIGNED, VERIFIED, SignatureMark, is_id, trailer_values
from ..model.gate import Answer, Gate, Option, Outcome, Remark
from ..questions.answers import printed, value_words
from ..store.git import Started, failure
from ..store.git.refs import OPEN
from . import Verified, check_policies

# Of blame's porcelain form: commit, line in the file as it is now. What a line says stands behind a tab.
BLAMED = re.compile(rb"^([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$", re.MULTILINE)
PLACE = re.compile(r"(?s)(.+?):(\d{1,9})(?:,(\d{1,9}))?")


@dataclass(frozen=True)
class Origin:
    """Consecutive lines of one commit, with a gate that it names, if it names one.

    `commit` is None where they are not committed yet. `verified` is about the commit and the record, `signed` about the person who
    answered: `signature` is what theirs is worth. `doubt` says why a named gate is not verified, or what is not known.
    """

    first: int
    last: int
    commit: str | None
    gate: str | None = None
    question: str | None = None
    answer: str | None = None
    verdict: str | None = None
    by: str | None = None
    at: str | None = None
    confirmed: bool = False
    signed: bool = False
    signature: SignatureMark | None = None
    verified: bool = False
    doubt: str = ""


@dataclass(frozen=True)
class LinesAsked:
    """Lines that are asked about: of a file as git names it, at a commit or as it is here. `typed`: the file as it was
    named.
    """

    path: str
    lines: tuple[int, int] | None = None
    rev: str | None = None
    typed: str = ""


@dataclass(frozen=True)
class Standing:
    """Evidence that the records give of a gate that a commit names. `trouble` names what does not hold."""

    gate: Gate | None
    trouble: str
    commits: Collection[str] = ()
    mark: SignatureMark | None = None


def origins(desk: Desk, asked: LinesAsked) -> list[Origin]:
    """All lines that were asked about, in order; those of a commit that names two gates are told of for each."""
    blamed = begin_blame(desk, asked)
    try:
        spans = read_blame(desk, asked, blamed)
    finally:
        blamed.close()
    named = gates_named(desk, dict.fromkeys(one.commit for one in spans if one.commit))
    known = standings(desk, dict.fromkeys(gate for gates in named.values() for gate in gates))
    cut = cut_off(desk)
    return [told for one in spans for told in with_gates(one, named.get(one.commit or "", ()), known, cut)]


def read_place(given: str, is_file: bool) -> tuple[str, tuple[int, int] | None]:
    """`FILE`, `FILE:12` or `FILE:12,20`. `is_file`: there is a file of exactly that name."""
    found = None if is_file else PLACE.fullmatch(given)
    if found is None:
        return given, None
    first, last = int(found[2]), int(found[3] or found[2])
    if not 1 <= first <= last:
        raise Usage(
            f"lines {found[2]},{found[3] or found[2]}: expected the first one, 1 or more, and the last one",
            hint=f"git gate why {quote(found[1])}:1,20",
        )
    return found[1], (first, last)


def read_asked(desk: Desk, start: Path, given: str, rev: str | None) -> LinesAsked:
    """Read the file, lines and revision that were typed in the directory `start`, as git means them."""
    if "\0" in given or "\0" in (rev or ""):
        raise Usage(
            "neither a file nor a commit has a null byte in its name", hint="git gate why FILE[:LINE[,LINE]]"
        )
    name, lines = read_place(given, is_there(start / given, Path.is_file))
    if desk.repo.top is None and rev is None:
        raise Usage(
            "there are no files here, only commits: name one", hint=f"git gate why --rev HEAD {quote(given)}"
        )
    commit = None if rev is None else desk.refs.revision(f"{rev}^{{commit}}")
    if rev is not None and commit is None:
        raise Failure(f"there is no commit {rev} here", hint="git log --oneline --all")
    return LinesAsked(path_in(desk, start, name), lines, commit, name)


def is_there(place: Path, kind: Callable[[Path], bool]) -> bool:
    """Return whether such a file or directory exists; False for a name that no file can have."""
    with suppress(OSError):
        return kind(place)
    return False


def path_in(desk: Desk, start: Path, name: str) -> str:
    """A file as git names it, from the top. A bare repository's have no directory that they could be named from."""
    if desk.repo.top is None:
        return os.path.normpath(name)
    given = start / os.path.normpath(name)
    folder = given.parent.resolve()
    path = os.path.relpath(folder / given.name, desk.repo.top.resolve())
    if Path(path).parts[:1] == (os.pardir,):
        raise Failure(
            f"{name} is outside of this repository",
            hint=f"git -C {quote(str(folder))} gate why {quote(given.name)}",
        )
    return path


def begin_blame(desk: Desk, asked: LinesAsked) -> Started:
    """Lines as they are in the file: no textconv. Of the working tree git runs what `.gitattributes` and its configuration name as
    clean filters, as for every `git diff`.
    """
    lines = [] if asked.lines is None else ["-L", f"{asked.lines[0]},{asked.lines[1]}"]
    rev = [] if asked.rev is None else [asked.rev]
    return desk.repo.git.begin("blame", "--porcelain", "--no-textconv", *lines, *rev, "--", asked.path)


def read_blame(desk: Desk, asked: LinesAsked, blamed: Started) -> list[Origin]:
    """The file's lines by commit, consecutive ones together."""
    said = blamed.result()
    if said.code:
        raise unblamed(desk, asked, said.err) or failure("blame", said)
    spans: list[Origin] = []
    nowhere = desk.repo.zero.encode()
    # A commit stands at the head of each line. Where it stays the same, one span goes on.
    last: bytes | None = None
    for oid, number in BLAMED.findall(said.out):
        line = int(number)
        if oid == last:
            spans[-1] = replace(spans[-1], last=line)
        else:
            spans.append(Origin(line, line, None if oid == nowhere else oid.decode()))
        last = oid
    return spans


def unblamed(desk: Desk, asked: LinesAsked, said: str) -> GateError | None:
    """Return an error that says why git knows nothing of these lines, and what to do."""
    from ..text import counted, one_line

    name, again = one_line(asked.path), quote(asked.typed or asked.path)
    long = re.search(r"has only (\d+) lines?", said)
    if long:
        return Usage(
            f"{name} has only {counted(int(long[1]), 'line')}", hint=f"all of them: git gate why {again}"
        )
    if asked.rev is None and desk.repo.top is not None:
        here = desk.repo.top / asked.path
        if is_there(here, Path.is_dir):
            return Usage(f"{name} is a directory", hint="name one file of it: git gate why FILE")
        if is_there(here, Path.exists):
            return Failure(
                f"{name} was never committed: no decision is known of it", hint=f"git log --all -- {again}"
            )
    if "no such path" in said or "no such ref" in said or "Cannot lstat" in said or "cannot stat" in said:
        where = f" at {asked.rev[:12]}" if asked.rev else ""
        return Failure(f"there is no file {name}{where}", hint="git ls-files lists those that there are")
    return None


def gates_named(desk: Desk, commits: Iterable[str]) -> dict[str, list[str]]:
    """Return by commit the gates that its trailers name."""
    objects = desk.records.objects
    asked = list(commits)
    objects.ahead(asked)
    found = {}
    for oid in asked:
        message = ""
        with suppress(BrokenRecord):  # nothing of ours was ever said in such a commit
            message = desk.records.history(oid).message
        if "Gate: " in message:
            found[oid] = [one for one in dict.fromkeys(trailer_values(message, "Gate")) if is_id(one)]
    objects.forget()
    return found


def standings(desk: Desk, gates: Iterable[str]) -> dict[str, Standing]:
    """Return the evidence of these gates, open ones and archived ones, and whether their records hold."""
    ids = list(gates)
    if not ids:
        return {}
    from ..policy.ruling import marks
    from .auditing import Checked, check_record, check_signatures

    done, found = Verified(), dict[str, Standing]()
    checked: list[Checked] = []
    tips, twice = tips_of(desk, ids)
    desk.records.read_ahead(tips.values())
    for gate in ids:
        if gate not in tips:
            found[gate] = Standing(None, f"there is no gate {gate} here: git gate sync")
            continue
        try:
            one, problems = check_record(desk, gate, tips[gate], archived=False)
        except GateError as broken:
            found[gate] = Standing(None, broken.message)
            continue
        checked.append(one)
        done.problems += tuple(problems)
    check_signatures(desk, done, checked)
    check_policies(desk, done, [one.gate for one in checked])
    wrong = {problem.gate: problem.words for problem in reversed(done.problems)}
    wrong |= dict.fromkeys(twice, "it is archived, and open again: git gate sync")
    signed = marks(desk, [one.gate for one in checked])
    for one in checked:
        said, mark = frozenset(commits_of(one.gate)), mark_of_answer(one.gate, signed)
        found[one.gate.id] = Standing(one.gate, wrong.get(one.gate.id, ""), said, mark)
    return found


def mark_of_answer(gate: Gate, signed: Mapping[str, SignatureMark]) -> SignatureMark | None:
    """Return the result of checking the answer's signature; None where nobody answered."""
    counted = gate.answer
    if counted is None or not counted.answer.by:
        return None
    return signed.get(counted.signed_commit, UNSIGNED)


def commits_of(gate: Gate) -> Iterator[str]:
    """The commits that its record names as what came of it."""
    for entry in gate.events:
        if isinstance(entry.event, Outcome):
            yield from entry.event.commits


def tips_of(desk: Desk, gates: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    """Return the ends of these gates' records, and the gates whose open record differs from their archived one; the
    open one is used.
    """
    from ..store.records.archive import find_archived, shelves

    tips = {gate: tip for gate in gates if (tip := desk.refs.get(OPEN + gate)) is not None}
    folded = {
        gate: one.tip for gate, one in find_archived(desk.repo, shelves(desk.repo), gates).items() if one.tip
    }
    return {**folded, **tips}, {gate for gate in tips if folded.get(gate, tips[gate]) != tips[gate]}


def cut_off(desk: Desk) -> frozenset[str]:
    """The commits at which a shallow clone's history ends: lines that are older are said to be theirs."""
    if not desk.repo.shallow:
        return frozenset()
    return frozenset((desk.repo.common_dir / "shallow").read_text(encoding="ascii").split())


def with_gates(
    one: Origin, gates: Sequence[str], known: Mapping[str, Standing], cut: Collection[str]
) -> list[Origin]:
    """Add to the lines of a commit what is known of each gate that the commit names."""
    if one.commit in cut:
        return [
            replace(
                one,
                doubt="this clone's history ends here, and these lines may be older: git fetch --unshallow",
            )
        ]
    return [with_gate(one, gate, known[gate]) for gate in gates] or [one]


def with_gate(one: Origin, gate: str, known: Standing) -> Origin:
    named = one.commit in known.commits
    doubt = known.trouble or ("" if named else "its record does not name this commit")
    told = replace(one, gate=gate, verified=not doubt, doubt=doubt)
    if known.gate is None:
        return told
    opened, counted = known.gate.opened, known.gate.answer
    told = replace(told, question=opened.questions[0].prompt if len(opened.questions) == 1 else opened.title)
    if counted is None:
        return told
    said = counted.answer
    answer = printed(opened.questions, said)
    mark = known.mark
    signed = mark is not None and mark.word == VERIFIED
    told = replace(told, answer=answer, verdict=said.verdict, by=said.by or None, at=said.at)
    return replace(told, confirmed=said.confirmed, signed=signed, signature=mark)


# Earlier decisions by their words.
#
# Of a record that was read before, the index has the words, under the commit that it ends at: they are looked through one after
# the other, which takes a few milliseconds for ten thousand. What is found is read from its record again before it is shown. A
# session, and what was put aside, is no part of a gate's record, and is not looked through.


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
    """Terms of a search: words, or phrases whose words stand together, and the conditions that narrow it."""

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
    """End of a gate's record."""

    gate: str
    tip: str
    archived: bool


class Text(NamedTuple):
    """Searchable text of one record. The answerer is as it was written; the other fields are words alone, with a blank
    before each.
    """

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
    from ..gates.history import archived_tips

    here = {ref.removeprefix(OPEN): tip for ref, tip in desk.refs.under(OPEN).items()}
    yield from (Ending(gate, tip, archived=False) for gate, tip in here.items() if is_id(gate))
    yield from (
        Ending(gate, tip, archived=True) for gate, tip in archived_tips(desk) if tip and gate not in here
    )


def texts(desk: Desk, ends: Sequence[Ending], needles: Sequence[str]) -> Iterator[Text]:
    """Yield the texts of the gates, at least of those that have the words; gates that lack one by the index are left
    out.
    """
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
    """Yield the texts from the records. A broken record is reported and left out: nothing can be said of what it
    decided.
    """
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
    """Return the words to search for, normalized; refuse a word without a letter or a digit."""
    needles = [needle(word) for word in words]
    if not all(needles) or not needles:
        raise Usage("there is no word to search for", hint='git gate search "which database"')
    return needles


def needle(word: str) -> str:
    """A word, or several that stand together; the last one may be a beginning."""
    return search_words(word).rstrip(" ")


def fit(text: Text, needles: Sequence[str]) -> int:
    """Score a record by the words, each at the field where it counts most; 0 where one of them is missing."""
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
    """Yield the fields that contain the words, with the line around each first match: (a name of `WEIGHTS`, text as it
    was written).
    """
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
