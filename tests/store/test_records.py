"""Records: what is written is read, and every way to slip something in or out is refused in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import pytest

from gitgate.errors import BadDocument, BrokenRecord, Failure, IllegalEvent
from gitgate.model.gate import Answer, Edit, Gate
from gitgate.record.events import fold
from gitgate.store import records
from gitgate.store.git.canonical import FOLDER, TreeEntry, dump_commit
from gitgate.store.git.objects import COMMIT, Objects, open_objects
from gitgate.store.records import Beside, Records
from support.forging import BY, Bench
from support.histories import ADA, EARLY, TEXT, opened, remark
from support.testbed.memory import MemoryObjects, memory_records
from support.testbed.repositories import Clone


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_record_is_read_as_it_was_written(bench: Bench) -> None:
    """The gate that writing gives is the one that reading gives; each event is one commit that adds one file."""
    bench.add("commented", remark())
    bench.add("answered", bench.said())
    assert bench.records.load(bench.gate.id, bench.gate.tip) == bench.gate
    assert [entry.name for entry in bench.gate.history] == ["opened", "commented", "answered"]
    assert bench.records.commit(bench.gate.tip).parents == (bench.gate.history[1].commit,)


def test_the_same_words_twice_are_two_events(bench: Bench) -> None:
    """In one second, by one person: each is dated a second later, since the same bytes would be one event."""
    for _ in range(3):
        bench.add("commented", remark(at="2030-01-03T00:00:00Z"))
    loaded = bench.records.load(bench.gate.id, bench.gate.tip)
    assert loaded == bench.gate
    assert [entry.name for entry in loaded.events] == ["opened", "commented", "commented", "commented"]
    assert [getattr(entry.event, "at", "") for entry in loaded.history[1:]] == [
        f"2030-01-03T00:00:0{second}Z" for second in range(3)
    ]
    assert len({entry.path for entry in loaded.history}) == 4


def test_nothing_is_written_that_cannot_be_read(bench: Bench) -> None:
    """A word over the reader's limits is refused, not recorded to break the gate."""
    assert isinstance(bench.objects, MemoryObjects)
    before = dict(bench.objects.known)
    for event in (
        remark(text="x" * (256 * 1024 + 1)),
        remark(by="x" * 1001),
        remark(at="soon"),
        remark(text="\0"),
    ):
        with pytest.raises(BadDocument):
            bench.add("commented", event)
    with pytest.raises(BadDocument):
        bench.add("answered", bench.said(note="x" * (256 * 1024 + 1)))
    with pytest.raises(BadDocument):
        bench.records.write_opened(opened(TEXT, title="x" * 1001), {}, BY)
    assert bench.objects.known == before


def test_an_event_that_the_table_does_not_have_writes_nothing(bench: Bench) -> None:
    """Not even objects."""
    bench.add("answered", bench.said())
    assert isinstance(bench.objects, MemoryObjects)
    before = dict(bench.objects.known)
    with pytest.raises(IllegalEvent):
        bench.add("stopped", remark())
    assert bench.objects.known == before


def test_attachments_are_read_from_the_record_alone(bench: Bench) -> None:
    """Folders too; one that is not there is an error of ours."""
    files = {"a.txt": b"one", "logs/b.bin": bytes(range(256))}
    found = Bench(opened(TEXT, attachments=tuple(files)), files)
    loaded = found.records.load(found.gate.id, found.gate.tip)
    assert {name: found.records.attachment(loaded, name) for name in files} == files
    for name in ("c.txt", "logs", "logs/c", "a.txt/b", "nothing/at/all"):
        with pytest.raises(BrokenRecord, match="holds no file"):
            found.records.attachment(loaded, name)


def test_an_attachment_that_is_a_link_is_none(bench: Bench) -> None:
    """Whatever it would lead to."""
    top = bench.top(bench.gate.tip)
    top[b"attachments"] = TreeEntry(
        FOLDER, b"attachments", bench.folder(("a", b"/etc/passwd"), mode="120000")
    )
    tip = bench.commit(top)
    with pytest.raises(BrokenRecord, match="holds no file attachments/a"):
        bench.records.attachment(bench.records.load(bench.gate.id, tip), "a")


def test_the_real_stores_keep_records_alike(repo: Clone) -> None:
    """The same commits by git's plumbing, by the library and in memory; git itself finds nothing wrong with them."""
    tips = []
    for bulk in (False, True):
        objects: Objects = open_objects(repo.repository, bulk=bulk)
        real = Records(repo.repository, objects)
        gate = real.write_opened(opened(TEXT), {"a/b.txt": b"x"}, BY)
        gate = real.write_event(gate, "commented", remark(), BY)
        assert real.load(gate.id, gate.tip) == gate
        tips.append(gate.tip)
        objects.close()
    bench = Bench(opened(TEXT), {"a/b.txt": b"x"})
    assert {*tips, bench.add("commented", remark()).tip} == {tips[0]}
    repo.git("update-ref", "refs/hitl/open/x", tips[0])
    assert repo.git("fsck", "--strict", "--no-dangling") == ""


# The room of a record


def test_talk_leaves_room_for_an_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comments without end cannot keep anybody from answering."""
    monkeypatch.setattr(records, "MOST_EVENTS", 8)
    monkeypatch.setattr(records, "SPARE", 3)
    for _ in range(4):
        bench.add("commented", remark())
    with pytest.raises(Failure, match="no more can be commented"):
        bench.add("commented", remark())
    bench.add("answered", bench.said())
    assert bench.gate.state == "answered"


def test_a_chain_of_three_thousand_events_is_not_read(bench: Bench) -> None:
    """Refused before its documents are: reading it would cost every list."""
    tip = bench.gate.tip
    tree = bench.records.commit(tip).tree
    for _ in range(3000):
        tip = bench.objects.write(COMMIT, dump_commit(tree, (tip,), BY.who, BY.at, "x\n"))
    bench.refused(tip, "has more than 2000 events")


# what lies beside a record


class Counting(MemoryObjects):
    """Counts what is asked of it."""

    reads = 0

    def read(self, oid: str) -> tuple[str, bytes]:
        self.reads += 1
        return super().read(oid)


def two_sided(store: MemoryObjects, side: int, main: int, forks: int = 1) -> tuple[Records, Gate]:
    """Events on two sides of one record, those of the one recorded again on the other; `forks`: as many lines."""
    written = memory_records(store)
    gate = written.write_opened(opened(TEXT), {}, BY)
    lines = [gate]
    for number in range(main):
        gate = written.write_event(gate, "commented", remark(text=f"main {number}"), BY)
    again = []
    for number in range(side):
        grown = written.write_event(lines[-1], "commented", remark(text=f"side {number}"), BY)
        lines = [*lines[-forks + 1 :], grown] if forks > 1 and number % 2 else [*lines[:-1], grown]
        again.append(grown.history[-1])
    beside = Beside(written, gate.id, gate.history)
    for entry in again:
        gate = written.repeat(gate, entry, BY, entry.commit, beside)
    return written, gate


def test_reading_is_linear() -> None:
    """Twice as many events on both sides take twice as many objects, not four times; so does writing them."""
    taken = []
    for size in (20, 40):
        store = Counting()
        _, gate = two_sided(store, size, size)
        wrote, store.reads = store.reads, 0
        assert memory_records(store).load(gate.id, gate.tip) == gate
        taken.append((wrote, store.reads))
    assert all(more <= 2.2 * less for less, more in zip(*taken, strict=True))


def calls_of(action: Callable[[], object]) -> int:
    """How many functions of Python an action calls: what it costs, on however busy a machine."""
    count = 0

    def called(_frame: object, event: str, _what: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["votes", "terms"])
def test_what_many_people_said_is_read_in_time(kind: str) -> None:
    """Who voted before, who agrees and who changed which terms is looked up: it is not searched for with each event."""
    taken = []
    for size in (100, 200):
        written = memory_records()
        gate = left = written.write_opened(opened(TEXT, quorum=100), {}, BY)
        for number in range(size):
            gate = written.write_event(gate, "commented", remark(text=f"main {number}"), BY)
        for number in range(size):
            by = f"P{number} <p{number}@example.org>"
            said = (
                Answer(gate.id, {"answer": f"free {number}"}, "answered", EARLY, left.tip, by)
                if kind == "votes"
                else Edit(EARLY, ADA, priority="high" if number % 2 else "low")
            )
            left = written.write_event(left, "answered" if kind == "votes" else "edited", said, BY)
        beside = Beside(written, gate.id, gate.history)
        for entry in left.history[1:]:
            gate = written.repeat(gate, entry, BY, entry.commit, beside)
        entries = written.entries(gate.id, gate.tip)
        assert len(entries) == 2 * size + 1
        folded = fold(gate.id, entries)
        assert (len(folded.votes), folded.late) == (size if kind == "votes" else 0, ())
        taken.append(calls_of(partial(fold, gate.id, entries)))
    assert taken[1] <= 2.3 * taken[0]


@pytest.mark.parametrize("forks", [1, 3])
def test_what_the_author_had_before_them(forks: int) -> None:
    """Of each event recorded again: the commits of its own side before it, whatever line of that it was on."""
    written, gate = two_sided(MemoryObjects(), 12, 2, forks)
    read = memory_records(written.objects).load(gate.id, gate.tip)  # type: ignore[arg-type]
    for entry in read.history[3:]:
        before, here = [], written.commit(entry.parents[1]).parents[0]
        while here != gate.history[0].commit:
            before.append(here)
            here = written.commit(here).parents[0]
        assert entry.fork == gate.history[0].commit
        assert (sorted(entry.saw), len(entry.saw)) == (sorted(before), len(before))
        others = {one.parents[1] for one in read.history[3:]} - set(before)
        assert all(one in entry.saw for one in before)
        assert not any(one in entry.saw for one in others)


def test_a_side_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """More beside a record than anybody says is not read."""
    written, gate = two_sided(MemoryObjects(), 12, 2)
    monkeypatch.setattr(records, "MOST_BESIDE", 5)
    with pytest.raises(BrokenRecord, match="of another gate"):
        written.load(gate.id, gate.tip)
