"""Flows: a run's journal: one event a commit, one holder at a time, and nothing believed that it does not bear out."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.context import Desk, open_desk
from gitgate.errors import AmbiguousGate, BadDocument, BrokenRecord, Conflict, IllegalEvent, UnknownGate
from gitgate.exchange.syncing import bring_home
from gitgate.flows import journal
from gitgate.flows.journal import (
    HeldRun,
    RunTaken,
    begin_run,
    find_run,
    load_run,
    signal_run,
    stop_run,
    take_run,
)
from gitgate.model import RUN_STATES, RUN_TABLE
from gitgate.record.runs import MOST_EVENTS, NEEDED, Run, RunEvent, dump_run_event, parse_run_event, path_of
from gitgate.store.git.canonical import REGULAR, TreeEntry
from gitgate.store.git.objects import BLOB
from gitgate.store.records import Signature
from gitgate.store.records.journal import Journals
from gitgate.store.remote import RefMove
from support import PATIENCE
from support.testbed.repositories import Clone

BY = Signature("ada <ada@example.org>", 1_780_000_000)
AT = "2026-06-01T00:00:00Z"


DESKS: list[Desk] = []


def desk_at(clone: Clone) -> Desk:
    """A fresh one each time, as each command has its own."""
    DESKS.append(open_desk(clone.path, dict(os.environ)))
    return DESKS[-1]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while DESKS:
        DESKS.pop().close()


def killed(held: HeldRun) -> None:
    """What the end of a process does, however it comes: no renewals, and no lock."""
    held.over.set()
    os.close(held.lock)


@pytest.fixture
def held(repo: Clone) -> Iterator[HeldRun]:
    found = begin_run(desk_at(repo), {"flow": "feature"})
    yield found
    found.over.set()


def test_the_table_of_runs_is_whole() -> None:
    """Each state is reached, an event has one row in it, each event has a shape, and what is over stays over."""
    assert {row.to for row in RUN_TABLE} == set(RUN_STATES)
    assert len({(row.state, row.event) for row in RUN_TABLE}) == len(RUN_TABLE)
    assert {row.event for row in RUN_TABLE} == set(NEEDED)
    for over in ("completed", "stuck", "failed", "stopped"):
        assert not [row for row in RUN_TABLE if row.state == over]


def test_each_commit_holds_its_own_file_alone(repo: Clone, held: HeldRun) -> None:
    """A tree that grew with each step would cost more with each."""
    held.append("begun", step="step:a#1", kind="step", name="a")
    held.append("done", step="step:a#1", result={"ok": True})
    for commit in repo.git("rev-list", f"refs/hitl/runs/{held.run.id}").split():
        assert len(repo.git("ls-tree", "-r", "--name-only", commit).splitlines()) == 1
    read = load_run(desk_at(repo), held.run.id)
    assert read.steps["step:a#1"].ended is not None
    assert read.steps["step:a#1"].ended.said["result"] == {"ok": True}
    assert read.state == "running"


def test_what_is_read_is_what_was_written(repo: Clone, held: HeldRun) -> None:
    """The fold of the commits is the run that its holder has in memory."""
    held.append("begun", step="step:a#1", kind="step", name="a")
    held.append("raised", step="step:a#1", error={"class": "ValueError", "message": "ä \u2028 no"})
    held.append("noted", text="something")
    held.leave("waiting", gates=["abcdefghjk"])
    read = load_run(desk_at(repo), held.run.id)
    assert [entry.commit for entry in read.events] == [entry.commit for entry in held.run.events]
    assert [entry.event for entry in read.events] == [entry.event for entry in held.run.events]
    assert (read.state, read.waits_for, read.claim) == ("waiting_human", ["abcdefghjk"], None)


def test_two_processes_do_not_go_on_with_one_run(repo: Clone, held: HeldRun) -> None:
    """The second one is refused, and writes nothing."""
    before = repo.refs()
    with pytest.raises(RunTaken, match="another process"):
        take_run(desk_at(repo), held.run.id)
    assert repo.refs() == before


def test_a_killed_process_is_gone_on_with_at_once(repo: Clone, held: HeldRun) -> None:
    """The next process of this clone knows that it is gone, and goes on with the very same claim."""
    held.append("begun", step="step:a#1", kind="step", name="a")
    killed(held)
    again = take_run(desk_at(repo), held.run.id)
    assert again.run.attempts == 1
    assert again.run.steps["step:a#1"].state == "begun"
    again.append("done", step="step:a#1", result=1)
    again.over.set()


@pytest.mark.slow
def test_another_clone_waits_for_the_lease(repo: Clone, held: HeldRun, git: Callable[..., str]) -> None:
    """Who cannot know that the holder is gone watches its lease for its whole term, and takes over with a claim."""
    git("config", "gitgate.leaseTerm", "1s")
    held.leave("released", reason="handed back")
    short = take_run(desk_at(repo), held.run.id)
    killed(short)
    journal.place_of(short.desk, short.run.id).unlink()
    with pytest.raises(RunTaken) as refused:
        take_run(desk_at(repo), held.run.id)
    assert 0 < refused.value.left <= 1
    until = time.monotonic() + PATIENCE
    again = None
    while again is None:
        time.sleep(0.2)
        with contextlib.suppress(RunTaken):
            again = take_run(desk_at(repo), held.run.id)
        assert time.monotonic() < until
    assert again.run.attempts == 3
    again.over.set()
    with pytest.raises(Conflict, match="no longer ours"):
        short.append("noted", text="too late")


@pytest.fixture
def places(bare: Clone, clone_of: Callable[..., Clone]) -> tuple[Clone, Clone]:
    """Two clones of one server; what is claimed in one of them lapses soon."""
    found = clone_of(bare, "here"), clone_of(bare, "there")
    for clone in found:
        clone.git("config", "gitgate.leaseTerm", "1s")
    return found


def cut_off(clone: Clone) -> HeldRun:
    """Of a run that is shared, its holder was killed before it had shared the end of a step."""
    held = begin_run(desk_at(clone), {"flow": "feature"})
    held.append("begun", step="step:a#1", kind="step", name="a")
    held.share()
    held.append("done", step="step:a#1", result=1)
    killed(held)
    return held


@pytest.mark.slow
def test_what_others_said_and_what_was_not_shared_are_brought_together(
    bare: Clone, places: tuple[Clone, Clone]
) -> None:
    """Somebody sent it a word elsewhere, and somebody here: nothing is lost, and no step is done again."""
    here, there = places
    run = cut_off(here).run.id
    bring_home(desk_at(there), "origin")
    signal_run(desk_at(there), load_run(desk_at(there), run), "from there")
    signal_run(desk_at(here), load_run(desk_at(here), run), "from here")
    bring_home(desk_at(here), "origin")
    assert load_run(desk_at(here), run).steps["step:a#1"].is_over
    again = take_run(desk_at(here), run)
    again.leave("released", reason="handed back")
    assert here.refs("refs/hitl/runs") == bare.refs("refs/hitl/runs")
    names = [entry.event.name for entry in load_run(desk_at(here), run).events]
    assert names == ["started", "claimed", "begun", "signalled", "signalled", "done", "released"]


@pytest.mark.slow
def test_a_sync_brings_the_journal_of_whoever_took_the_run_over(
    bare: Clone, places: tuple[Clone, Clone]
) -> None:
    """What its killed holder had not shared counts no more, also where nobody goes on with the run again."""
    here, there = places
    run = cut_off(here).run.id
    bring_home(desk_at(there), "origin")
    until, taken = time.monotonic() + PATIENCE, None
    while taken is None:
        with contextlib.suppress(RunTaken):
            taken = take_run(desk_at(there), run)
        assert time.monotonic() < until
        time.sleep(0.1)
    taken.append("noted", text="over there")
    taken.leave("released", reason="handed back")
    bring_home(desk_at(here), "origin")
    assert here.refs("refs/hitl/runs") == bare.refs("refs/hitl/runs") == there.refs("refs/hitl/runs")


def test_a_renewal_moves_the_lease_and_proves_its_holder(repo: Clone, held: HeldRun) -> None:
    """Each reveals the next link of the chain that the claim names the end of."""
    journals = repo.refs("refs/hitl/runs")
    before = repo.refs("refs/hitl/leases")
    held.renew()
    held.renew()
    assert repo.refs("refs/hitl/runs") == journals
    assert repo.refs("refs/hitl/leases") != before
    assert held.held.said.beat == 2


def test_a_stop_is_heard_before_the_next_step(repo: Clone, held: HeldRun) -> None:
    """Somebody else writes it; whoever goes on reads it first, and may only end what had begun."""
    held.append("begun", step="step:a#1", kind="step", name="a")
    stop_run(desk_at(repo), load_run(desk_at(repo), held.run.id), "not wanted")
    with pytest.raises(IllegalEvent, match="stopping"):
        held.append("begun", step="step:b#1", kind="step", name="b")
    held.append("done", step="step:a#1", result=None)
    assert held.leave("stopped", reason="not wanted").state == "stopped"
    assert repo.refs("refs/hitl/leases") == {}
    with pytest.raises(IllegalEvent, match="is over"):
        take_run(desk_at(repo), held.run.id)


def test_a_run_is_found_by_the_beginning_of_its_id(repo: Clone, held: HeldRun) -> None:
    """Four characters are enough where only one begins so."""
    desk = desk_at(repo)
    assert find_run(desk, held.run.id[:4]).id == held.run.id
    for wrong in ("2222", "no id", "abc"):
        with pytest.raises(UnknownGate):
            find_run(desk, wrong)
    other = held.run.id[:4] + "222222"
    desk.refs.update([RefMove(f"refs/hitl/runs/{other}", held.run.tip, None)])
    with pytest.raises(AmbiguousGate):
        find_run(desk, held.run.id[:4])


def step_twice(run: Run) -> RunEvent:
    return RunEvent("begun", len(run.events), AT, {"step": "step:a#1", "kind": "step", "name": "a"})


FORGED: dict[str, Callable[[Run], RunEvent]] = {
    "its number": lambda _run: RunEvent("noted", 7, AT, {"text": "out of turn"}),
    "a step twice": step_twice,
    "an end before its beginning": lambda run: RunEvent("done", len(run.events), AT, {"step": "step:a#1"}),
    "without a claim": lambda run: RunEvent("completed", len(run.events), AT, {}),
    "two starts": lambda run: RunEvent("started", len(run.events), AT, {"flow": "f", "nonce": "n"}),
}


@pytest.mark.parametrize("how", FORGED)
def test_an_event_that_cannot_be_is_refused(repo: Clone, held: HeldRun, how: str) -> None:
    """Whoever writes the objects by hand makes a journal that nobody goes on with."""
    held.append("begun", step="step:a#1", kind="step", name="a")
    held.append("done", step="step:a#1")
    if how == "without a claim":
        held.leave("released", reason="handed back")
    desk = desk_at(repo)
    data = dump_run_event(FORGED[how](held.run))
    tip = written(desk, [(path_of(data.split(b'"')[5].decode(), data), data)], held.run.tip)
    with pytest.raises(BrokenRecord, match=held.run.id):
        Journals(desk.repo, desk.records).load(held.run.id, tip)


def written(desk: Desk, files: list[tuple[str, bytes]], *parents: str) -> str:
    records = desk.records
    entries = [TreeEntry(REGULAR, name.encode(), records.objects.write(BLOB, body)) for name, body in files]
    return records.write_commit(records.write_tree(entries), parents, BY, "forged\n")


ID = "a" * 40
OWN_TREE = {"line": ".", "head": ID, "staged": ID, "work": ID, "branch": "main"}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("waiting", {"trees": [OWN_TREE | {key: name}]})
        for key in ("head", "staged", "work")
        for name in ("main", "HEAD", "refs/heads/private", "a" * 39, f"{ID}\n")
    ]
    + [
        ("waiting", {"trees": [OWN_TREE | {"branch": ["main"]}]}),
        ("waiting", {"work": "private"}),
        ("started", {"code": "main"}),
    ],
)
def test_a_journal_names_commits_by_their_full_ids(event: str, said: dict[str, object]) -> None:
    """A name is another commit in each clone: there it could be one that its owner has shown to nobody."""
    plain = {"gates": [], "flow": "f", "nonce": "n", "trees": [OWN_TREE], "work": ID, "code": ID}
    assert parse_run_event(dump_run_event(RunEvent(event, 1, AT, plain)), "journal").said == plain
    with pytest.raises(BadDocument, match="|".join(said)):
        parse_run_event(dump_run_event(RunEvent(event, 1, AT, plain | said)), "journal")


def test_a_commit_with_another_file_is_refused(repo: Clone, held: HeldRun) -> None:
    """Beside its event it has nothing, keeps nothing of the one before, and has no second parent."""
    desk = desk_at(repo)
    data = dump_run_event(RunEvent("noted", len(held.run.events), AT, {"text": "x"}))
    good = (path_of("noted", data), data)
    last = repo.git("ls-tree", "--name-only", held.run.tip)
    kept = (last, repo.git("cat-file", "blob", f"{held.run.tip}:{last}").encode())
    loads = Journals(desk.repo, desk.records).load
    assert loads(held.run.id, written(desk, [good], held.run.tip)).state == "running"
    forged = [
        written(desk, [good, ("more.json", b"{}")], held.run.tip),
        written(desk, [good, kept], held.run.tip),
        written(desk, [("noted-0000000000000000.json", data)], held.run.tip),
        written(desk, [good], held.run.tip, held.run.events[0].commit),
        written(desk, [("noted-0000000000000000.json", b"not JSON")], held.run.tip),
        written(desk, [good]),
    ]
    for tip in forged:
        with pytest.raises(BrokenRecord, match=held.run.id):
            loads(held.run.id, tip)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"flow": "f"}, "nonce"),
        ({"flow": "", "nonce": "n"}, "flow"),
        ({"flow": "f\n", "nonce": "n"}, "flow"),
        ({"flow": "f", "nonce": "n", "gates": "abc"}, "gates"),
    ],
)
def test_an_event_says_what_it_has_to(repo: Clone, said: dict[str, object], field: str) -> None:
    """What is missing or of the wrong type is named; nothing is written."""
    desk = desk_at(repo)
    with pytest.raises(Exception, match=field):
        Journals(desk.repo, desk.records).write_started(AT, said, BY)


def claim_on(run: Run) -> dict[str, object]:
    return {
        "at": AT,
        "answer": run.tip,
        "nonce": "n",
        "runner": "flow",
        "host": "here",
        "attempt": 1,
        "term": 60,
        "anchor": "ab" * 32,
    }


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(900)  # writing them takes longer than what is measured
def test_ten_thousand_steps_are_read_in_two_seconds(tmp_path: Path, repo: Clone) -> None:
    """Of processor time, ours and git's; reading grows with the length, and no faster."""
    desk = desk_at(repo)
    journals = Journals(desk.repo, desk.records)
    run = journals.write_started(AT, {"flow": "long", "nonce": "n"}, BY)
    journals.write_event(run, "claimed", AT, {"claim": claim_on(run)}, BY)
    middle = ""
    with desk.records.objects.together():
        for number in range(10_000):
            step = f"step:f#{number}"
            journals.write_event(run, "begun", AT, {"step": step, "kind": "step", "name": "f"}, BY)
            journals.write_event(run, "done", AT, {"step": step, "result": {"n": number}}, BY)
            middle = run.tip if number == 4_999 else middle
    journals.pack(run.tip, None)
    assert len(run.events) < MOST_EVENTS

    def reading(tip: str) -> float:
        before = os.times()
        journals.load(run.id, tip)
        after = os.times()
        return sum(after[:4]) - sum(before[:4])

    half, whole = min(reading(middle) for _ in range(3)), min(reading(run.tip) for _ in range(3))
    assert whole < 2.0
    assert whole < 3 * half
