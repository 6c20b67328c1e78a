"""Deadlines: what silence brings is what was asked for, in nobody's name, once, and never before its time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.acts import answering, find_gate
from gitgate.errors import GateError
from gitgate.gates import Filter, list_gates, recording
from gitgate.gates.recording import act, append, past_due
from gitgate.model.gate import Edit, Gate
from gitgate.store.git.refs import OPEN
from gitgate.text import format_time, parse_time
from support.deciding import DB, GO, gate_of, say
from support.histories import BOB
from support.racing import race
from support.resuming import Clock, Seat

WITH_DEFAULT = replace(DB, default="SQLite")


def names(gate: Gate) -> list[str]:
    return [entry.name for entry in gate.history[1:]]


def looked_at(seat: Seat, gate: Gate) -> Gate:
    """As any verb looks at it."""
    return find_gate(seat.desk, gate.id).gate


@pytest.mark.parametrize("how", ["stuck", "fail", "remind", "default"])
def test_nothing_happens_before_the_deadline(alone: Seat, clock: Clock, how: str) -> None:
    """To the second."""
    gate = gate_of(alone, WITH_DEFAULT if how == "default" else DB, timeout=60, on_timeout=how)
    clock.pass_by(59)
    assert looked_at(alone, gate) == gate
    clock.pass_by(1)
    assert looked_at(alone, gate) != gate


def test_stuck_is_expired_and_nobody_is_resumed(alone: Seat, clock: Clock) -> None:
    """What happens unless something else was asked for."""
    gate = gate_of(alone, timeout=60, session="session-1")
    clock.pass_by(60)
    after = looked_at(alone, gate)
    assert (after.state, after.actionable, after.closed, after.answer) == ("expired", False, True, None)
    assert after.closing is not None
    assert after.closing.by == ""


def test_fail_resumes_the_agent_to_hear_that_nobody_answered(alone: Seat, clock: Clock) -> None:
    """Expired, and told so."""
    gate = gate_of(alone, timeout=60, on_timeout="fail", session="session-1")
    clock.pass_by(60)
    after = looked_at(alone, gate)
    assert (after.state, after.actionable, after.closed, after.answer) == ("expired", True, False, None)


def test_fail_without_anybody_to_tell_is_over(alone: Seat, clock: Clock) -> None:
    """Delivery `none`: it is read when wanted."""
    gate = gate_of(alone, timeout=60, on_timeout="fail")
    clock.pass_by(60)
    assert looked_at(alone, gate).closed


def test_defer_puts_it_aside_and_brings_it_back(alone: Seat, clock: Clock) -> None:
    """For a term; then it waits as before for another one. It stays open, and is not hidden."""
    gate = gate_of(alone, timeout=60, on_timeout="defer")
    clock.pass_by(1)
    other = gate_of(alone)
    clock.pass_by(59)
    first = looked_at(alone, gate)
    assert (first.state, names(first)) == ("awaiting", ["reminded"])
    assert first.later == format_time(clock() + 60)
    assert first.deadline == format_time(clock() + 120)
    assert [one.id for one in list_gates(alone.desk, Filter())] == [other.id, gate.id]
    clock.pass_by(61)
    assert [one.id for one in list_gates(alone.desk, Filter())] == [gate.id, other.id]
    assert looked_at(alone, gate) == first
    clock.pass_by(60)
    assert names(looked_at(alone, gate)) == ["reminded", "reminded"]


@pytest.mark.parametrize("how", ["stuck", "remind"])
def test_what_is_put_aside_comes_to_the_same_end(alone: Seat, clock: Clock, how: str) -> None:
    """Its deadline counts; a reminder is not due before the moment until which it was put aside."""
    gate = gate_of(alone, timeout=60, on_timeout=how)
    aside = answering.edit(alone.desk, gate, later="1d").gate
    until = format_time(clock() + 86_400)
    assert (aside.state, aside.later, aside.deadline) == ("awaiting", until, gate.deadline)
    clock.pass_by(60)
    after = looked_at(alone, gate)
    assert after.state == ("expired" if how == "stuck" else "awaiting")
    assert how == "stuck" or after.deadline == format_time(parse_time(until) + 60)


def test_no_reminder_puts_aside_what_nobody_asked_to(alone: Seat, clock: Clock) -> None:
    """Nobody judges what a passed deadline brings, so that the record itself says what that may be."""
    gate = gate_of(alone, timeout=60, on_timeout="remind")
    clock.pass_by(60)
    with pytest.raises(GateError, match="nobody asked for that"):
        append(
            alone.desk,
            gate,
            "reminded",
            Edit(alone.desk.now, deadline="2999-01-01T00:00:00Z", later="2998-01-01T00:00:00Z"),
        )


def test_remind_announces_again_with_a_new_deadline(alone: Seat, clock: Clock) -> None:
    """Each time one passes; it stays open, also after a long absence."""
    gate = gate_of(alone, timeout=60, on_timeout="remind")
    clock.pass_by(60)
    first = looked_at(alone, gate)
    assert (first.state, names(first)) == ("awaiting", ["reminded"])
    assert first.deadline == "2026-05-28T20:28:40Z"
    clock.pass_by(10_000)
    second = looked_at(alone, gate)
    assert names(second) == ["reminded", "reminded"]
    assert not past_due(alone.desk, second)
    assert say(alone, gate).counted


def test_who_never_looks_is_not_reminded_without_end(
    alone: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record's room is for answers."""
    monkeypatch.setattr(recording, "MOST_REMINDERS", 3)
    gate = gate_of(alone, timeout=60, on_timeout="remind")
    for _ in range(4):
        clock.pass_by(86_400)
        looked_at(alone, gate)
    assert names(alone.now(gate)) == ["reminded", "reminded", "expired"]


def test_reminders_come_ever_more_rarely(alone: Seat, clock: Clock) -> None:
    """Whoever asks for one each second gets a dozen, and then one a day: each is a commit."""
    gate = gate_of(alone, timeout=1, on_timeout="remind")
    clock.pass_by(1)
    terms = []
    for _ in range(14):
        deadline = looked_at(alone, gate).deadline
        assert deadline is not None
        terms.append(parse_time(deadline) - clock())
        clock.pass_by(terms[-1])
    assert terms == [*(60 * 2**n for n in range(11)), 86_400, 86_400, 86_400]


def test_a_new_term_begins_anew(alone: Seat, clock: Clock) -> None:
    """A person who wants to be reminded in an hour is, however often it was before; a week stays a week."""
    gate = gate_of(alone, timeout=1, on_timeout="remind")
    for _ in range(5):
        clock.pass_by(86_400)
        looked_at(alone, gate)
    for term in (3600, 7 * 86_400):
        later = format_time(clock() + term)
        append(alone.desk, alone.now(gate), "edited", Edit(alone.desk.now, BOB, deadline=later, timeout=term))
        clock.pass_by(term)
        assert looked_at(alone, gate).deadline == format_time(clock() + term)


def test_remind_without_a_term_comes_again_next_day(alone: Seat, clock: Clock) -> None:
    """Whoever took the term away left the deadline."""
    gate = gate_of(alone, timeout=60, on_timeout="remind")
    edited = append(alone.desk, gate, "edited", Edit(alone.desk.now, BOB, timeout=0))
    clock.pass_by(60)
    assert act(alone.desk, edited).deadline == "2026-05-29T20:27:40Z"


def test_a_default_is_the_declared_one_in_nobodys_name(alone: Seat, clock: Clock) -> None:
    """It never carries a name, and its author is nobody."""
    gate = gate_of(alone, WITH_DEFAULT, timeout=60, on_timeout="default", session="session-1")
    clock.pass_by(60)
    after = looked_at(alone, gate)
    assert after.answer is not None
    said = after.answer.answer
    assert (said.values, said.verdict, said.by, said.via) == (
        {"answer": "SQLite"},
        "defaulted",
        "",
        "deadline",
    )
    assert after.actionable
    author = alone.clone.git("log", "-1", "--format=%an %ae %s", after.tip)
    assert author == "gitgate nobody@gitgate.invalid defaulted: nobody answered in time"
    assert "Ada" not in alone.clone.git("show", "--format=", after.tip)


def test_a_default_for_an_approval_only_while_it_is_allowed(
    alone: Seat, clock: Clock, tmp_path: Path
) -> None:
    """Permission is asked of the machine that acts; without it, silence is no consent: stuck."""
    file = tmp_path / "policy.yml"
    file.write_text("policy: {defaults: true}\n")
    alone.clone.git("config", "gitgate.policyFile", str(file))
    question = replace(GO, default=True)
    allowed, denied = (
        gate_of(alone, question, timeout=60, on_timeout="default", session="session-1") for _ in "12"
    )
    clock.pass_by(60)
    after = looked_at(alone, allowed)
    assert after.answer is not None
    assert (after.answer.answer.verdict, after.answer.answer.by) == ("defaulted", "")
    alone.clone.git("config", "--unset", "gitgate.policyFile")
    alone.clone.git(
        "config", "gitgate.approvalDefaults", "true"
    )  # which earlier versions took for a permission
    stuck = looked_at(alone, denied)
    assert (stuck.state, stuck.answer, stuck.actionable) == ("expired", None, False)


def test_votes_do_not_keep_a_deadline_away(alone: Seat, clock: Clock) -> None:
    """Half a quorum is no answer."""
    gate = gate_of(alone, timeout=60, quorum=2)
    say(alone, gate, who=BOB)
    clock.pass_by(60)
    after = looked_at(alone, gate)
    assert (after.state, after.answer, len(after.votes)) == ("expired", None, 1)


def test_a_list_acts_on_it_too(alone: Seat, clock: Clock) -> None:
    """Whoever looks; what is over is not listed as waiting."""
    gate_of(alone, timeout=60)
    waiting = gate_of(alone)
    clock.pass_by(60)
    assert [summary.id for summary in list_gates(alone.desk, Filter())] == [waiting.id]
    states = Counter(summary.state for summary in list_gates(alone.desk, Filter(all=True)))
    assert states == {"expired": 1, "awaiting": 1}


def test_one_that_cannot_be_acted_on_is_still_shown(
    alone: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that cannot be written to is no reason not to read it."""
    gate = gate_of(alone, timeout=60)
    clock.pass_by(60)

    def refuse(*_args: object) -> Gate:
        raise GateError("read-only")

    monkeypatch.setattr(recording, "append", refuse)
    desk = alone.desk
    said: list[str] = []
    desk.progress = said.append
    assert find_gate(desk, gate.id).gate == gate
    assert any("read-only" in words for words in said)
    assert [summary.state for summary in list_gates(alone.desk, Filter())] == ["awaiting"]


def test_an_answer_that_came_first_stands(alone: Seat, clock: Clock) -> None:
    """Although the one who looks had read the gate before it."""
    gate = gate_of(alone, timeout=60)
    say(alone, gate)
    clock.pass_by(60)
    assert act(alone.desk, gate).state == "answered"
    assert names(alone.now(gate)) == ["answered"]


LOOK = """
from gitgate.acts import find_gate
print(find_gate(desk, sys.argv[3]).gate.state)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "event", "state"), [("stuck", "expired", "expired"), ("remind", "reminded", "awaiting")]
)
def test_many_who_look_at_once_act_once(alone: Seat, clock: Clock, how: str, event: str, state: str) -> None:
    """One event, and all of them see the gate as it is after it."""
    clock.at = 1_000_000_000.0
    gate = gate_of(alone, timeout=86_400, on_timeout=how)
    said = race(alone.clone.path, LOOK, 6, gate.id)  # by the machine's own clock, which is past the deadline
    assert [line for lines in said for line in lines] == [state] * 6
    assert names(alone.now(gate)) == [event]


def test_a_deadline_that_was_moved_or_taken_away(alone: Seat, clock: Clock) -> None:
    """The new one counts."""
    from gitgate.acts import answering

    moved, freed = gate_of(alone, timeout=60), gate_of(alone, timeout=60)
    answering.edit(alone.desk, moved, timeout="1h")
    answering.edit(alone.desk, freed, timeout="never")
    clock.pass_by(3599)
    assert [looked_at(alone, gate).state for gate in (moved, freed)] == ["awaiting", "awaiting"]
    clock.pass_by(1)
    assert [looked_at(alone, gate).state for gate in (moved, freed)] == ["expired", "awaiting"]


def test_acting_gives_up_when_it_never_wins(
    alone: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is shown as it is."""
    from gitgate.errors import LostRace

    gate = gate_of(alone, timeout=60)
    clock.pass_by(60)

    def lose(*_args: object) -> Gate:
        raise LostRace("again")

    monkeypatch.setattr(recording, "append", lose)
    monkeypatch.setattr(recording, "TRIES", 3)
    assert act(alone.desk, gate) == gate
    assert alone.clone.refs("refs/hitl/open") == {OPEN + gate.id: gate.tip}
