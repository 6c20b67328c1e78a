"""Records: what is written is read, and every way to slip something in or out is refused in words."""

from __future__ import annotations

import pytest

from forging import BY, Bench
from gitgate.errors import BadDocument, BrokenRecord, Failure, IllegalEvent
from gitgate.store import records
from gitgate.store.objects import (
    COMMIT,
    FOLDER,
    Objects,
    TreeEntry,
    dump_commit,
    open_objects,
)
from gitgate.store.records import Records
from histories import TEXT, opened, remark
from testbed.memory import MemoryObjects
from testbed.repositories import Clone


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
    """In one second, by one person: neither is lost, and the record stays readable."""
    for _ in range(3):
        bench.add("commented", remark())
    assert [entry.event for entry in bench.records.load(bench.gate.id, bench.gate.tip).history[1:]] == [
        remark()
    ] * 3
    assert len({entry.path for entry in bench.gate.history}) == 4


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
