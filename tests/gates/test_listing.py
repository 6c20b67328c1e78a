"""Listing: many gates from their tips alone, most pressing first, and only those that were asked for."""

from __future__ import annotations

from typing import Any

import pytest

from gitgate.acts import answering
from gitgate.context.targets import never_synced, summaries
from gitgate.exchange.syncing import sync
from gitgate.gates import Filter, archived, by_branch, is_meant_for, list_gates, settled_summary
from gitgate.model.gate import Question
from gitgate.record import Summary
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.refs import OPEN
from support.deciding import DB, GO, TEXT, gate_of, say
from support.histories import BOB
from support.resuming import Clock, Seat

ADA = "Ada Lovelace <ada@example.org>"


def ids(seat: Seat, **chosen: object) -> list[str]:
    return [summary.id for summary in list_gates(seat.desk, Filter(**chosen))]  # type: ignore[arg-type]


def test_a_summary_says_what_the_record_says(alone: Seat) -> None:
    """All of it from the tip's message."""
    terms: dict[str, Any] = {"title": "T", "to": ("bob@example.org", "@carl"), "priority": "high", "key": "k"}
    why = Question("why", "Why?", "text")
    gate = gate_of(alone, GO, why, timeout=60, on_timeout="remind", **terms)
    (found,) = list_gates(alone.desk, Filter())
    assert (found.id, found.tip, found.state, found.title, found.question) == (
        gate.id,
        gate.tip,
        "awaiting",
        "T",
        "Deploy?",
    )
    assert (found.type, found.questions, found.agent, found.by, found.at) == (
        "approval,text",
        "2",
        "coder",
        ADA,
        gate.opened.asked.at,
    )
    assert (found.branch, found.priority, found.delivery, found.deadline) == (
        "main",
        "high",
        "none",
        gate.deadline,
    )
    assert (found.on_timeout, found.to, found.key, found.verdict) == (
        "remind",
        "bob@example.org, @carl",
        "k",
        "",
    )
    assert not found.closed
    assert found.agent == "coder"
    other = gate_of(alone)
    say(alone, other)
    done = next(s for s in list_gates(alone.desk, Filter(all=True)) if s.id == other.id)
    assert (done.verdict, bool(done.closed), done.deadline) == ("answered", True, "")


def test_most_pressing_first(alone: Seat, clock: Clock) -> None:
    """By priority, then the one that waits longest."""
    late_low = gate_of(alone, priority="low")
    clock.pass_by(10)
    normal = gate_of(alone)
    clock.pass_by(10)
    urgent, high, again = (gate_of(alone, priority=name) for name in ("urgent", "high", "normal"))
    assert ids(alone) == [urgent.id, high.id, normal.id, again.id, late_low.id]
    answering.edit(alone.desk, late_low, priority="urgent")
    assert ids(alone)[:2] == [late_low.id, urgent.id]


def test_what_waits_is_listed_and_all_on_demand(alone: Seat) -> None:
    """By state, by several; an answered one needs nobody."""
    waiting, answered, stopped = gate_of(alone), gate_of(alone), gate_of(alone)
    say(alone, answered)
    answering.stop(alone.desk, stopped, "no")
    assert ids(alone) == [waiting.id]
    assert set(ids(alone, all=True)) == {waiting.id, answered.id, stopped.id}
    assert set(ids(alone, states=("answered", "stopped"))) == {answered.id, stopped.id}
    assert ids(alone, all=True, states=("stopped",)) == [stopped.id]


def test_filters(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type, branch, pull request, who asked; together they all have to hold."""
    text = gate_of(alone, TEXT)
    alone.clone.git("checkout", "-q", "-b", "feature")
    monkeypatch.setenv("GITHUB_REF", "refs/pull/7/merge")
    choice = gate_of(alone, DB, agent="reviewer")
    assert ids(alone, type="text") == [text.id]
    assert ids(alone, type="choice") == [choice.id]
    assert ids(alone, type="form") == []
    assert ids(alone, branch="feature") == [choice.id]
    assert ids(alone, pull_request=7) == [choice.id]
    assert ids(alone, pull_request=8) == []
    assert ids(alone, asked_by="REVIEW") == [choice.id]
    assert set(ids(alone, asked_by="ada@example")) == {text.id, choice.id}
    assert ids(alone, branch="feature", type="text") == []
    tree = by_branch(list_gates(alone.desk, Filter()))
    assert {branch: [s.id for s in found] for branch, found in tree.items()} == {
        "main": [text.id],
        "feature": [choice.id],
    }


@pytest.mark.parametrize(
    ("to", "mine"),
    [
        ("", True),
        ("ada lovelace", True),
        ("ADA@example.org", True),
        ("@ada", True),
        ("bob, Ada", True),
        ("bob", False),
        ("ad", False),
        ("example.org", False),
    ],
)
def test_whom_it_is_for(to: str, mine: bool) -> None:
    """Anybody, or a name, an address, a login; never a part of one."""
    assert is_meant_for(Summary("abcdefghjk", "1" * 40, to=to), ADA) is mine


def test_mine(alone: Seat) -> None:
    """Those that name me, or nobody."""
    anyone, ada, bob = (
        gate_of(alone),
        gate_of(alone, to=("ada@example.org",)),
        gate_of(alone, to=("bob@example.org",)),
    )
    assert set(ids(alone, mine=ADA)) == {anyone.id, ada.id}
    assert set(ids(alone, mine=BOB)) == {anyone.id, bob.id}


@pytest.mark.parametrize(
    "message", ["nothing", "Hitl-Gate: kkkkkkkkkk\nHitl-State: answered", "Hitl-Gate: x\nHitl-Gate: y"]
)
def test_a_broken_gate_is_shown_as_broken(alone: Seat, message: str) -> None:
    """Among those that need a person, whatever is asked for; the others are not hidden by it."""
    gate, broken = gate_of(alone), gate_of(alone)
    tip = alone.clone.git("commit-tree", f"{broken.tip}^{{tree}}", "-m", "subject", "-m", message)
    alone.clone.git("update-ref", OPEN + broken.id, tip)
    found = {summary.id: summary for summary in list_gates(alone.desk, Filter())}
    assert found[gate.id].state == "awaiting"
    assert found[broken.id].state == "broken"
    assert "git gate verify" in found[broken.id].title
    assert settled_summary(alone.desk, found[broken.id]._replace(tip="1" * 40)).state == "broken"


@pytest.mark.parametrize("odd", ["", " é", " \\x1b[31m"])
@pytest.mark.slow
def test_many_gates_are_read_alike(alone: Seat, odd: str) -> None:
    """By the quick way, and one by one where an unusual one is among them."""
    from gitgate.acts.asking import AskWishes

    for number in range(70):
        prompt = f"Question {number}{odd if number == 40 else ''}?"
        gate_of(alone, Question("answer", prompt, "text"), wishes=AskWishes(work=False))
    found = {summary.id: summary for summary in summaries(alone.desk)}
    desk = alone.desk
    desk.work_in_bulk()
    assert len(found) == 70
    for gate, summary in found.items():
        loaded = desk.records.load(gate, summary.tip)
        assert (summary.question, summary.state) == (loaded.opened.questions[0].prompt, loaded.state)


def test_the_archive_is_listed_apart(alone: Seat, clock: Clock) -> None:
    """Each gate once, also while a fold was cut short."""
    gate, waiting = gate_of(alone), gate_of(alone)
    closed = say(alone, gate).gate
    clock.pass_by(5)
    fold_closed(alone.desk)
    assert ids(alone, all=True) == [waiting.id]
    assert [summary.id for summary in archived(alone.desk, Filter(all=True))] == [gate.id]
    assert archived(alone.desk, Filter(type="form")) == []
    alone.clone.git("update-ref", OPEN + gate.id, closed.tip)
    assert archived(alone.desk, Filter(all=True)) == []


def test_a_clone_that_never_synced_knows_it(bob: Seat, alone: Seat) -> None:
    """An empty list there would be a guess."""
    assert never_synced(bob.desk) == "origin"
    sync(bob.desk)
    assert never_synced(bob.desk) is None
    assert never_synced(alone.desk) is None
