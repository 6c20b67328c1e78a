"""What somebody who may push tries on the journal of a run: told by the judge of a push, from the objects that it brings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gitgate.context import Desk, open_desk
from gitgate.flows.journal import HeldRun, begin_run
from gitgate.record.runs import MOST_SPARE, Run, RunEvent, dump_run_event, fold_run, path_of
from gitgate.sharing import lease_rules, refusals
from gitgate.store.git.refs import LEASES, RUNS, Update
from gitgate.store.records import Signature, journal
from gitgate.store.records.journal import MOST_FILE, Journals
from support.testbed.repositories import Clone

BY = Signature("mallory <mallory@example.org>", 1_780_000_000)
AT = "2026-06-01T00:00:00Z"
STEP = {"step": "step:a#1", "kind": "step", "name": "a"}


@dataclass
class Victim:
    """The shared repository: somebody goes on with a run there. Mallory pushes to it."""

    clone: Clone
    desk: Desk
    held: HeldRun

    @property
    def run(self) -> Run:
        return self.held.run

    def with_events(self, *events: tuple[str, dict[str, Any]]) -> Run:
        """The run as Mallory would have it."""
        forged = fold_run(self.run.id, self.run.events)
        for name, said in events:
            Journals(self.desk.repo, self.desk.records).write_event(forged, name, AT, said, BY)
        return forged

    def commit(self, files: dict[str, bytes], *parents: str, mode: str = "100644") -> str:
        """A commit with these files, on these parents."""
        git = self.clone.git
        blobs = {name: git("hash-object", "-w", "--stdin", input=data) for name, data in files.items()}
        tree = git("mktree", input="".join(f"{mode} blob {oid}\t{name}\n" for name, oid in blobs.items()))
        named = [part for parent in parents for part in ("-p", parent)]
        return git("commit-tree", tree, *named, "-m", "x")

    def push(self, new: str | None, *, run: str = "", old: str | None = "") -> str:
        """Why it is refused; empty where it would be taken."""
        ref = RUNS + (run or self.run.id)
        before = self.run.tip if old == "" else old
        return " · ".join(refusals(self.desk, [Update(before, new, ref)]).values())


@pytest.fixture
def victim(repo: Clone) -> Iterator[Victim]:
    desk = open_desk(repo.path, dict(os.environ))
    held = begin_run(desk, {"flow": "feature"})
    held.append("begun", **STEP)
    yield Victim(repo, desk, held)
    held.over.set()
    desk.close()


def file_of(event: str, n: int, **said: Any) -> dict[str, bytes]:
    data = dump_run_event(RunEvent(event, n, AT, said))
    return {path_of(event, data): data}


@pytest.mark.parametrize(
    "events",
    [
        [("done", {"step": "step:a#1", "result": "mine"})],
        [("raised", {"step": "step:a#1", "error": {"class": "a:B", "message": "no"}})],
        [("begun", {**STEP, "step": "step:b#1"})],
        [("asked", {"step": "step:a#1", "gate": "abcdefghjk"})],
        [("completed", {"result": "mine"})],
        [("completed", {"result": "mine", "reveal": "0" * 64})],
        [("waiting", {"gates": [], "reveal": "0" * 64}), ("noted", {"text": "x"})],
        [("noted", {"text": "x"}), ("done", {"step": "step:a#1", "result": "mine"})],
        [("stopping", {"reason": "x"}), ("stopped", {"reason": "x"})],
    ],
    ids=lambda events: "+".join(name for name, _ in events),
)
def test_nobody_else_says_what_a_step_came_to(
    victim: Victim, events: list[tuple[str, dict[str, Any]]]
) -> None:
    """Nor that the run is over: only its holder has the next link of its lease."""
    said = victim.push(victim.with_events(*events).tip)
    assert "only the holder of run" in said or "nobody goes on with it" in said, said


def test_a_journal_under_another_name_is_refused(victim: Victim) -> None:
    """A run's id is that of its start, so that no run is replayed as another one."""
    assert "belongs to run" in victim.push(victim.run.tip, run="abcdefghjk", old=None)


def test_what_went_before_stays_as_it_was(victim: Victim) -> None:
    """No earlier commit, no other history with the same start, no second parent."""
    first, second = victim.run.events[0].commit, victim.run.events[1].commit
    assert "only grows" in victim.push(second)
    assert "only grows" in victim.push(victim.commit(file_of("noted", 1, text="x"), first))
    merged = victim.commit(file_of("noted", 3, text="x"), victim.run.tip, first)
    assert "has other parents" in victim.push(merged)
    assert "is kept" in victim.push(None)


@pytest.mark.parametrize(
    ("files", "mode", "why"),
    [
        ({**file_of("noted", 3, text="x"), "more.json": b"{}"}, "100644", "other files than its event's"),
        (file_of("noted", 3, text="x"), "100755", "holds no event's file"),
        (file_of("noted", 3, text="x"), "120000", "holds no event's file"),
        ({"noted-0123456789abcdef.json": b"{}"}, "100644", "reads version"),
        ({"noted-0123456789abcdef.json": next(iter(file_of("noted", 3, text="x").values()))}, "100644", "calls"),
        ({"../x.json": b"{}"}, "100644", ""),
        (file_of("noted", 7, text="x"), "100644", "is number 7 where 3 comes"),
        (file_of("started", 3, flow="x", nonce="y"), "100644", "cannot be started"),
        ({"noted-0123456789abcdef.json": b"[" * 100_000}, "100644", "expected JSON"),
        ({"noted-0123456789abcdef.json": b'{"n": NaN}'}, "100644", "expected JSON"),
    ],
)  # fmt: skip
def test_a_commit_holds_its_event_and_nothing_else(
    victim: Victim, files: dict[str, bytes], mode: str, why: str
) -> None:
    if not why:  # git itself makes no such tree
        with pytest.raises(Exception, match="slash"):
            victim.commit(files, victim.run.tip, mode=mode)
        return
    assert why in victim.push(victim.commit(files, victim.run.tip, mode=mode))


def test_a_journal_has_bounds(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of an event, of all of them, and their number: judged before anything of them is read into memory."""
    large = json.dumps({"hitl": 1, "event": "noted", "n": 3, "at": AT, "text": "x" * MOST_FILE}).encode()
    tip = victim.commit({"noted-0123456789abcdef.json": large}, victim.run.tip)
    assert "is larger than that of any journal" in victim.push(tip)
    several = victim.with_events(*[("noted", {"text": "x" * 1000})] * 3).tip
    monkeypatch.setattr(journal, "MOST_TOGETHER", 2000)
    assert "is larger than that of any journal" in victim.push(several)
    monkeypatch.undo()
    monkeypatch.setattr(journal, "MOST_EVENTS", 5)
    assert "has more than 5 events" in victim.push(several)


def test_nobody_fills_a_journal_from_beside(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    """What anybody may say leaves room for its holder: in size, all together, and in number."""
    assert victim.push(victim.with_events(("signalled", {"topic": "t", "value": "x" * 1000})).tip) == ""
    large = victim.with_events(("signalled", {"topic": "t", "value": "x" * 100_000}))
    assert "at most 65,536 bytes each" in victim.push(large.tip)
    several = victim.with_events(*[("noted", {"text": "x" * 1000})] * 4)
    monkeypatch.setattr(lease_rules, "MOST_TALK", 4000)
    assert "has no room for more" in victim.push(several.tip)
    monkeypatch.undo()
    monkeypatch.setattr(lease_rules, "MOST_EVENTS", 2 * MOST_SPARE + 5)
    assert "has no room for more" in victim.push(several.tip)


def test_a_run_that_is_over_says_nothing_more(victim: Victim) -> None:
    """Not by its last holder either, and nobody claims it again."""
    ended = victim.held.leave("completed", result="x")
    for name, said in (("noted", {"text": "x"}), ("stopping", {"reason": "x"})):
        tip = victim.commit(file_of(name, len(ended.events), **said), ended.tip)
        assert "it is over" in victim.push(tip)
    assert "is kept" in victim.push(None)


def test_the_lease_of_a_run_is_its_holders(victim: Victim) -> None:
    """It is neither taken away while somebody goes on, nor put back at an earlier link."""
    ref = LEASES + victim.run.id
    before = victim.clone.refs(LEASES)[ref]
    victim.held.renew()
    now = victim.clone.refs(LEASES)[ref]
    assert now != before
    for new in (None, before):
        said = refusals(victim.desk, [Update(now, new, ref)])
        assert said, new
