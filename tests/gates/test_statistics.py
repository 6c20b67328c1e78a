"""How many wait, how long people take, who answers and what comes of it; reckoned from Git, and held to the records."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gitgate.acts.answering import Manner, respond
from gitgate.acts.asking import AskWishes, ask
from gitgate.gates.history import GateFacts, Statistics, reckon, statistics
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question
from gitgate.questions import Given
from gitgate.questions.drafts import Draft
from gitgate.sharing.archiving import fold_closed
from support.resuming import Clock, Seat
from support.testbed.command import Command


def asked(seat: Seat, kind: str = "text", **fields: object) -> Gate:
    given = {"agent": "scripted", **fields}
    draft = Draft((Question("answer", "Which?", kind),), **given)  # type: ignore[arg-type]
    return ask(seat.desk, draft, AskWishes(push=False, work=False)).gate


def answered(seat: Seat, gate: Gate, clock: Clock, seconds: float, via: str = "cli", **said: object) -> None:
    clock.pass_by(seconds)
    desk = seat.desk
    respond(desk, reload(desk, gate.id), Given(**said), Manner(push=False, via=via))  # type: ignore[arg-type]


def of(seat: Seat, by: str = "", since: float = 0.0) -> Statistics:
    return statistics(seat.desk, since, by)


def test_nothing_was_asked(alone: Seat) -> None:
    whole = of(alone).whole
    assert (whole.gates, whole.waiting, whole.answered, whole.median_seconds, whole.p90_seconds) == (
        0,
        0,
        0,
        None,
        None,
    )


def test_what_waits_and_how_long_people_take(alone: Seat, clock: Clock) -> None:
    """From the question to the answer that counts; what waits takes no part in it."""
    asked(alone)
    for seconds in (10, 20, 30, 1000):
        answered(alone, asked(alone), clock, seconds, text="x")
    whole = of(alone).whole
    assert (whole.gates, whole.waiting, whole.answered) == (5, 1, 4)
    assert (whole.median_seconds, whole.p90_seconds, whole.seconds) == (25, 1000, 1060)


@pytest.mark.parametrize(
    ("took", "median", "ninety"),
    [
        ([], None, None),
        ([5], 5, 5),
        ([1, 3], 2, 3),
        ([1, 2, 9], 2, 9),
        (list(range(1, 11)), 5, 9),
        (list(range(1, 101)), 50, 90),
    ],
)
def test_the_middle_and_nine_in_ten(took: list[int], median: int | None, ninety: int | None) -> None:
    """By the nearest rank: nine in ten took no longer."""
    found = reckon([GateFacts(state="answered", seconds=one) for one in reversed(took)])
    assert (found.median_seconds, found.p90_seconds) == (median, ninety)


def test_who_answers_and_through_what(alone: Seat, clock: Clock) -> None:
    """As the answers' files say it: a name with quotes too, and what a record does not say is the command line."""
    for _ in range(2):
        answered(alone, asked(alone), clock, 1, text="x")
    alone.clone.git("config", "user.name", 'Bob "the: builder"')
    alone.clone.git("config", "user.email", "bob@example.org")
    answered(alone, asked(alone), clock, 1, via="github", text="x")
    whole = of(alone).whole
    assert next(iter(whole.people.items())) == ("Ada Lovelace <ada@example.org>", 2)
    (bob,) = list(whole.people)[1:]
    assert bob == 'Bob "the: builder" <bob@example.org>'
    assert whole.via == {"cli": 2, "github": 1}


def test_yes_no_late_and_expired(alone: Seat, clock: Clock) -> None:
    """A default is nobody's answer; a gate that was resumed for its expiry has expired all the same."""
    answered(alone, asked(alone, "approval"), clock, 5, approve=True)
    answered(alone, asked(alone, "approval"), clock, 5, approve=False)
    defaulted = ask(
        alone.desk,
        Draft(
            (Question("answer", "Which?", "text", default="x"),), timeout=60, on_timeout="default", agent="a"
        ),
        AskWishes(push=False, work=False),
    ).gate
    asked(alone, timeout=60)
    clock.pass_by(61)
    from gitgate.gates import Filter, list_gates

    list_gates(alone.desk, Filter())
    whole = of(alone).whole
    assert (whole.approved, whole.rejected, whole.defaulted, whole.expired) == (1, 1, 1, 1)
    assert (whole.answered, whole.waiting) == (2, 0)
    assert alone.now(defaulted).defaulted


def test_groups_add_up(alone: Seat, clock: Clock) -> None:
    """Each gate is in one group, the largest first; whoever answered nothing is nobody."""
    answered(alone, asked(alone, agent="one"), clock, 5, text="x")
    asked(alone, agent="two")
    asked(alone, "approval", agent="two")
    whole = of(alone).whole
    for by in ("agent", "person", "type", "branch"):
        groups = of(alone, by).groups
        assert sum(one.gates for one in groups.values()) == whole.gates
        assert sum(one.answered for one in groups.values()) == whole.answered
    assert list(of(alone, "agent").groups) == ["two", "one"]
    assert set(of(alone, "person").groups) == {"nobody", "Ada Lovelace <ada@example.org>"}
    assert of(alone, "type").groups["text"].gates == 2


def test_since_leaves_out_what_was_asked_before(alone: Seat, clock: Clock) -> None:
    """But not what waits."""
    old = asked(alone)
    answered(alone, asked(alone), clock, 5, text="x")
    clock.pass_by(1000)
    answered(alone, asked(alone), clock, 7, text="x")
    whole = of(alone, since=clock() - 500).whole
    assert (whole.waiting, whole.answered, whole.median_seconds) == (1, 1, 7)
    assert alone.now(old).state == "awaiting"


def test_archived_gates_count_as_before(alone: Seat, clock: Clock) -> None:
    for seconds in (3, 9):
        draft = Draft((Question("answer", "Which?", "text"),), agent="scripted")
        gate = ask(alone.desk, draft, AskWishes(push=False, work=False)).gate
        answered(alone, gate, clock, seconds, text="x")
    before = of(alone, "agent")
    desk = alone.desk
    desk.work_in_bulk()
    assert len(fold_closed(desk, older_than=0).folded) == 2
    assert of(alone, "agent") == before


def test_a_quorum_is_answered_by_who_completes_it(alone: Seat, clock: Clock) -> None:
    """One vote of two is no answer yet; one that comes afterwards is late."""
    gate = asked(alone, quorum=2)
    answered(alone, gate, clock, 5, text="x")
    assert of(alone).whole.answered == 0
    alone.clone.git("config", "user.name", "Bob")
    alone.clone.git("config", "user.email", "bob@example.org")
    answered(alone, gate, clock, 5, text="x")
    whole = of(alone).whole
    assert (whole.answered, whole.median_seconds) == (1, 10)
    assert list(whole.people) == ["Bob <bob@example.org>"]


def test_it_says_what_the_records_say(alone: Seat, clock: Clock) -> None:
    """The messages are read in place of the folded gates: for each gate they say the same."""
    kinds: list[tuple[str, dict[str, Any] | None]] = [
        ("text", {"text": "x"}),
        ("approval", {"approve": True}),
        ("approval", {"approve": False}),
        ("text", None),
    ]
    gates = []
    for number, (kind, said) in enumerate(kinds * 3):
        gate = asked(alone, kind)
        if said is not None:
            answered(alone, gate, clock, number, **said)
        gates.append(alone.now(gate))
    whole = of(alone).whole
    assert whole.waiting == sum(one.state == "awaiting" for one in gates)
    assert whole.approved == sum(
        one.answer is not None and one.answer.answer.verdict == "approved" for one in gates
    )
    assert whole.answered == sum(one.answer is not None for one in gates)


def test_the_command(alone: Seat, clock: Clock, cli: Command) -> None:
    """Text with a chart, and JSON of the contract's shape."""
    answered(alone, asked(alone, "approval"), clock, 90, approve=True)
    asked(alone, agent='odd"name\\')
    where = alone.clone.path
    text = cli.quick("stats", cwd=where, code=0).out
    assert text.startswith("1 wait · 1 answered, half within 1m, nine in ten within 1m\n1 approved\n")
    assert re.search(r"Ada Lovelace  █+ 1", text)
    shape = cli.quick("stats", "--by", "agent", "--json", cwd=where, code=0).json
    assert shape["schema"] == "gitgate.stats/v1"
    wanted = (
        "waiting",
        "answered",
        "median_seconds",
        "p90_seconds",
        "approved",
        "rejected",
        "expired",
        "late",
        "failed_resumes",
    )
    assert [shape[name] for name in wanted] == [1, 1, 90, 90, 1, 0, 0, 0, 0]
    assert {one["name"] for one in shape["groups"]} == {"scripted", 'odd"name\\'}
    assert cli.quick("stats", "--since", "1h", cwd=where, code=0).out.startswith("1 wait · 0 answered")
    assert (
        cli.quick("stats", "--since", "2020-01-01", "--format", "json", cwd=where, code=0).json["answered"]
        == 1
    )
    assert "a day such as" in cli.quick("stats", "--since", "yesterday", cwd=where, code=2).err
