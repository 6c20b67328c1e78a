"""Audit: which decisions the lines of a file came of: git's own blame, and what agents' commits say of the gate behind them.

    Gate: 7k2fw9c3ab
    Decided-by: Ada Lovelace <ada@example.org>

A commit's trailers are anybody's claim. It is verified where the gate's own record names that commit as what came of it, and the
record holds as `verify` checks it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from ..context import Desk
from ..document import dataclass, replace
from ..errors import Failure, GateError, Usage
from ..model import UNSIGNED, VERIFIED, SignatureMark, is_id, trailer_values
from ..model.gate import Gate, Outcome
from ..questions.answers import printed
from ..store.git import Started, failure
from ..store.git.refs import OPEN
from . import Verified

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
    """Which lines are asked about: of a file as git names it, at a commit or as it is here. `typed`: the file as it was named."""

    path: str
    lines: tuple[int, int] | None = None
    rev: str | None = None
    typed: str = ""


@dataclass(frozen=True)
class Standing:
    """What the records say of a gate that a commit names. `trouble` is what does not hold."""

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
    """What was typed in the directory `start`, as git means it."""
    if "\0" in given or "\0" in (rev or ""):
        raise Usage(
            "neither a file nor a commit has a null byte in its name", hint="git gate why FILE[:LINE[,LINE]]"
        )
    name, lines = read_place(given, is_there(start / given, Path.is_file))
    if desk.repo.top is None and rev is None:
        raise Usage(
            "there are no files here, only commits: name one", hint=f"git gate why --rev HEAD {quote(given)}"
        )
    commit = None if rev is None else desk.refs.get(f"{rev}^{{commit}}")
    if rev is not None and commit is None:
        raise Failure(f"there is no commit {rev} here", hint="git log --oneline --all")
    return LinesAsked(path_in(desk, start, name), lines, commit, name)


def is_there(place: Path, kind: Callable[[Path], bool]) -> bool:
    """Whether there is such a file or directory; of a name that no file can have there is none."""
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
    """Why git knows nothing of these lines, in words that say what to do."""
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
    """By commit, the gates that its trailers name."""
    objects = desk.records.objects
    asked = list(commits)
    objects.ahead(asked)
    found = {}
    for oid in asked:
        _, payload = objects.read(oid)
        if b"Gate: " in payload:
            message = payload.partition(b"\n\n")[2].decode("utf-8", "replace")
            found[oid] = [one for one in dict.fromkeys(trailer_values(message, "Gate")) if is_id(one)]
    objects.forget()
    return found


def standings(desk: Desk, gates: Iterable[str]) -> dict[str, Standing]:
    """What the records of these gates say, open ones and archived ones, and whether they hold."""
    ids = list(gates)
    if not ids:
        return {}
    from ..policy.ruling import marks
    from .auditing import Checked, check_record, check_signatures
    from .policies import check_policies

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
    """What the signature of the answer is worth; none where nobody gave one."""
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
    """Where the records of these gates end, and which are open and otherwise in the archive: those are looked at where they are open."""
    from ..store.records.archive import find_archived, shelves

    refs = desk.records.objects.find([OPEN + gate for gate in gates])
    tips = {gate: one.oid for gate, one in zip(gates, refs, strict=True) if one is not None}
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
    """The same lines with what is known of each gate that their commit names."""
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
