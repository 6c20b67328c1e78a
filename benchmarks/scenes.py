"""Benchmarks: the repositories that are measured. Gates are composed by the product's own code; git writes them in bulk."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gitgate.context import open_desk
from gitgate.document import replace
from gitgate.model import gate_id
from gitgate.model.gate import (
    Answer,
    Asker,
    Claim,
    Entry,
    Event,
    Gate,
    Opened,
    Option,
    Outcome,
    Question,
    Remark,
    Work,
)
from gitgate.record import events, message
from gitgate.record.events import apply, begin
from gitgate.store.records import Beside, Signature
from gitgate.text import format_time

from .measure import run

PERSON = "Bench Person <bench@example.invalid>"
AT = 1_800_000_000


def seal(home: Path) -> None:
    """Nothing of the person's own configuration may change a figure."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITGATE_", "CLAUDE", "XDG_"))]:
        del os.environ[name]
    os.environ.update(HOME=str(home), GIT_CONFIG_NOSYSTEM="1", LC_ALL="C.UTF-8", NO_COLOR="1")
    os.environ.pop("CI", None)
    (home / ".gitconfig").write_text(
        "[user]\n name = Bench Person\n email = bench@example.invalid\n[init]\n defaultBranch = main\n"
        "[gc]\n auto = 0\n[maintenance]\n auto = false\n[safe]\n directory = *\n"
    )


def repository(place: Path, *, bare: bool = False, words: Sequence[str] = ()) -> Path:
    run(["git", "init", "-q", *words, *(["--bare"] if bare else []), str(place)], place.parent)
    if not bare:
        (place / "file").write_text("one\n")
        run(["git", "add", "file"], place)
        run(["git", "commit", "-q", "-m", "start"], place)
    return place


def opened(number: int, base: str | None) -> Opened:
    return Opened(
        title=f"Which way for part {number}?",
        questions=(
            Question(
                key="answer",
                prompt=f"Which way for part {number}? There are two, and both have their price.",
                type="choice",
                options=(Option("Left", "shorter"), Option("Right", "prettier")),
                other=True,
            ),
        ),
        asked=Asker(agent=f"worker/{number % 97:04x}", at=format_time(AT - 601 * number), by=PERSON),
        work=Work(base, base, base, branch=f"topic-{number % 50}"),
        nonce=f"bench-{number}",
        context="The part was split yesterday, and nobody wrote down why.",
    )


def with_gates(place: Path, count: int, *, packed: bool = False) -> list[str]:
    """Open `count` gates by one `git fast-import`; give back their ids."""
    base = run(["git", "rev-parse", "--verify", "-q", "HEAD"], place, code=None).decode().strip() or None
    ids: list[str] = []

    def stream() -> Iterator[bytes]:
        for number in range(count):
            question = opened(number, base)
            data = events.dump_event(question)
            gate = gate_id(data)
            ids.append(gate)
            folded = begin(gate, Entry("", "opened", question), question)
            words = message("opened", question, folded).encode()
            yield (
                (
                    f"commit refs/hitl/open/{gate}\nauthor {PERSON} {AT} +0000\ncommitter {PERSON} {AT} +0000\n"
                    f"data {len(words)}\n"
                ).encode()
                + words
                + f"M 100644 inline question.yaml\ndata {len(data)}\n".encode()
                + data
                + b"\n"
            )

    run(["git", "fast-import", "--quiet"], place, input=b"".join(stream()))
    if packed:
        run(["git", "pack-refs", "--all"], place)
    return ids


def with_answers(place: Path, count: int) -> None:
    """So many gates that were asked, answered by one of seven people, claimed, and resumed: four commits each."""
    base = run(["git", "rev-parse", "--verify", "-q", "HEAD"], place, code=None).decode().strip() or None
    marks = itertools.count(1)

    def commit(gate: Gate, name: str, event: Event, path: str, by: str, at: int) -> bytes:
        words, data = message(name, event, gate).encode(), events.dump_event(event)
        head = f"commit refs/hitl/open/{gate.id}\nmark :{next(marks)}\nauthor {by} {at} +0000\ncommitter {by} {at} +0000\n"
        file = f"M 100644 inline {path}\ndata {len(data)}\n".encode()
        return head.encode() + f"data {len(words)}\n".encode() + words + file + data + b"\n"

    def stream() -> Iterator[bytes]:
        for number in range(count):
            question = replace(opened(number, base), delivery="resume")
            gate = begin(gate_id(events.dump_event(question)), Entry("0" * 40, "opened", question), question)
            asked = AT - 601 * number
            yield commit(gate, "opened", question, "question.yaml", PERSON, asked)
            person, at = f"Person {number % 7} <p{number % 7}@example.invalid>", asked + 60 + number % 5000
            said = Answer(gate.id, {"answer": "Left"}, "answered", format_time(at), "0" * 40, person)
            gate = apply(gate, Entry("1" * 40, "answered", said))
            yield commit(gate, "answered", said, f"answers/{number}.yaml", person, at)
            claim = Claim(format_time(at + 1), "1" * 40, "nonce", "local", "host", 1, 120, PERSON)
            gate = apply(gate, Entry("2" * 40, "claimed", claim))
            yield commit(gate, "claimed", claim, f"claims/{number}.yaml", PERSON, at + 1)
            outcome = Outcome(format_time(at + 9), "2" * 40, "resumed", PERSON)
            gate = apply(gate, Entry("3" * 40, "resumed", outcome))
            yield commit(gate, "resumed", outcome, f"outcomes/{number}.yaml", PERSON, at + 9)

    run(["git", "fast-import", "--quiet"], place, input=b"".join(stream()))
    run(["git", "pack-refs", "--all"], place)


def with_decisions(place: Path, lines: int, commits: int) -> None:
    """A file of so many lines by so many commits; every fifth came of a gate, whose record names it."""
    desk = open_desk(place, dict(os.environ), bulk=True)
    records, by = desk.records, Signature(PERSON, AT)
    gates = [
        records.write_opened(replace(opened(number, None), delivery="wait"), {}, by)
        for number in range(0, commits, 5)
    ]
    text = [f"line {number}, as it was first\n" for number in range(lines)]

    def stream() -> Iterator[bytes]:
        for number in range(commits):
            for line in range(number % lines, lines, commits) if number else ():
                text[(line * 7 + number) % lines] = f"line {line}, by commit {number}\n"
            decided = (
                f"Gate: {gates[number // 5].id}\nDecided-by: {PERSON}" if number % 5 == 0 else "As planned."
            )
            words, data = f"Change {number}\n\n{decided}\n".encode(), "".join(text).encode()
            begin_at = "" if number else "from refs/heads/main^0\n"
            head = f"commit refs/heads/main\ncommitter {PERSON} {AT + number} +0000\ndata {len(words)}\n"
            file = f"M 100644 inline long.py\ndata {len(data)}\n"
            yield head.encode() + words + begin_at.encode() + file.encode() + data + b"\n"

    run(["git", "fast-import", "--quiet"], place, input=b"".join(stream()))
    run(["git", "reset", "-q", "--hard"], place)
    made = run(["git", "rev-list", "--reverse", f"--max-count={commits}", "main"], place).decode().split()
    moves = []
    for number, gate in enumerate(gates):
        at = format_time(AT + 60)
        said = Answer(gate.id, {"answer": "Left"}, "answered", at, gate.tip, PERSON)
        after = records.write_event(gate, "answered", said, by)
        claim = Claim(at, after.tip, "nonce", "local", "host", 1, 120, PERSON)
        after = records.write_event(after, "claimed", claim, by)
        outcome = Outcome(at, after.tip, "resumed", PERSON, commits=(made[5 * number],))
        moves.append(
            f"create refs/hitl/open/{gate.id} {records.write_event(after, 'outcome', outcome, by).tip}\n"
        )
    desk.close()
    run(["git", "update-ref", "--stdin"], place, input="".join(moves).encode())
    run(["git", "repack", "-adq"], place)


def with_closed(place: Path, count: int) -> None:
    """So many gates that were asked and answered, and that nobody has to be told of: records that hold, packed."""
    desk = open_desk(place, dict(os.environ))
    records, moves = desk.records, []
    with records.objects.together():
        for number in range(count):
            asked, person = AT - 601 * number, f"Person {number % 7} <p{number % 7}@example.invalid>"
            gate = records.write_opened(opened(number, None), {}, Signature(PERSON, asked))
            at, note = format_time(asked + 60), f"Part {number}."
            said = Answer(gate.id, {"answer": "Left"}, "answered", at, gate.tip, person, note=note)
            gate = records.write_event(gate, "answered", said, Signature(person, asked + 60))
            moves.append(f"create refs/hitl/open/{gate.id} {gate.tip}\n")
    desk.close()
    run(["git", "update-ref", "--stdin"], place, input="".join(moves).encode())
    run(["git", "pack-refs", "--all"], place)
    run(["git", "repack", "-adq"], place)


def with_files(place: Path, count: int) -> None:
    """A clone with many tracked files, in folders of a thousand."""
    for number in range(count):
        folder = place / f"d{number // 1000:03d}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}").write_text(f"{number}\n")
    run(["git", "add", "-A"], place)
    run(["git", "commit", "-q", "-m", "many"], place)


def change_files(place: Path, count: int, mark: str) -> None:
    for number in range(count):
        (place / f"d{number // 1000:03d}" / f"f{number}").write_text(f"{number} {mark}\n")


def with_sides(place: Path, main: int, side: int) -> tuple[str, str]:
    """A record with so many events of its own, and as many votes as `side` recorded again on top of them; its id and tip."""
    desk = open_desk(place, dict(os.environ), bulk=True)
    records, by = desk.records, Signature(PERSON, AT)
    gate = left = records.write_opened(replace(opened(0, None), quorum=100), {}, by)
    for number in range(1, main):
        said = Remark(at=format_time(AT + number), by=PERSON, text=f"Remark {number}.")
        gate = records.write_event(gate, "commented", said, by)
    for number in range(side):
        voter = f"Voter {number} <voter-{number}@example.invalid>"
        vote = Answer(
            gate.id, {"answer": f"free {number}"}, "answered", format_time(AT + number), left.tip, voter
        )
        left = records.write_event(left, "answered", vote, by)
    beside = Beside(records, gate.id, gate.history)
    for entry in left.history[1:]:
        gate = records.repeat(gate, entry, by, entry.commit, beside)
    desk.close()
    run(["git", "update-ref", f"refs/hitl/open/{gate.id}", gate.tip], place)
    return gate.id, gate.tip
