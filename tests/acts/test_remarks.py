"""Remarks: what is said about a gate without answering it, by whom, and what it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gitgate.acts import answering
from gitgate.errors import Conflict, Failure, IllegalEvent, NotAllowed, Usage
from gitgate.exchange.syncing import Published
from gitgate.model.gate import Gate, Remark
from gitgate.store.git.refs import OPEN
from support.deciding import gate_of, say
from support.resuming import Clock, Seat
from support.signing import publish_policy
from support.testbed.repositories import Clone

ADA = "Ada Lovelace <ada@example.org>"
Verb = Callable[..., Published]


def last(seat: Seat, gate: Gate) -> tuple[str, str, str]:
    """What the last event is, and by whom."""
    entry = seat.now(gate).history[-1]
    return entry.name, getattr(entry.event, "by", ""), getattr(entry.event, "text", "")


@pytest.mark.parametrize(
    ("verb", "event", "state"),
    [
        (answering.comment, "commented", "awaiting"),
        (answering.stop, "stopped", "stopped"),
        (answering.withdraw, "withdrawn", "withdrawn"),
    ],
)
def test_words_are_recorded_with_who_said_them(alone: Seat, verb: Verb, event: str, state: str) -> None:
    """And what they bring about."""
    gate = gate_of(alone)
    done = verb(alone.desk, gate, " which region? \n")
    assert done.gate == alone.now(gate)
    assert done.gate.state == state
    assert last(alone, gate) == (event, ADA, "which region?")


@pytest.mark.parametrize("verb", [answering.comment, answering.stop, answering.withdraw])
def test_no_words_are_no_remark(alone: Seat, verb: Verb) -> None:
    """With an example of some."""
    gate = gate_of(alone)
    with pytest.raises(Usage) as refused:
        verb(alone.desk, gate, " \n")
    assert "git gate " in refused.value.hint
    assert alone.now(gate) == gate


@pytest.mark.parametrize("verb", [answering.stop, answering.withdraw])
def test_an_answered_gate_is_not_ended(alone: Seat, verb: Verb) -> None:
    """Somebody was first; a remark has its place still."""
    gate = gate_of(alone)
    say(alone, gate)
    with pytest.raises(Conflict, match="already answered"):
        verb(alone.desk, alone.now(gate), "too late")
    answering.comment(alone.desk, alone.now(gate), "thanks")
    assert alone.now(gate).state == "answered"


def test_a_gate_that_is_over_takes_no_remark(alone: Seat) -> None:
    """Nothing more happens to it."""
    gate = gate_of(alone)
    answering.stop(alone.desk, gate, "no more")
    for verb in (answering.comment, answering.stop, answering.withdraw):
        with pytest.raises(IllegalEvent):
            verb(alone.desk, alone.now(gate), "x")
    with pytest.raises(IllegalEvent):
        answering.edit(alone.desk, alone.now(gate), priority="low")


@pytest.mark.parametrize("verb", [answering.stop, answering.withdraw])
def test_the_deadline_acts_first(alone: Seat, clock: Clock, verb: Verb) -> None:
    """What is overdue has ended already."""
    gate = gate_of(alone, timeout=60)
    clock.pass_by(60)
    with pytest.raises(IllegalEvent):
        verb(alone.desk, gate, "x")
    with pytest.raises(IllegalEvent):
        answering.edit(alone.desk, alone.now(gate), timeout="1h")
    assert alone.now(gate).state == "expired"


# Agents


def test_an_agent_never_stops_a_gate(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person ends it."""
    gate = gate_of(alone)
    monkeypatch.setenv("GITGATE_AGENT", "coder")
    with pytest.raises(NotAllowed):
        answering.stop(alone.desk, gate, "x")
    assert alone.now(gate) == gate


def test_stopping_needs_a_name(alone: Seat, nobody: None) -> None:
    """Taking back does not: an agent may have no identity."""
    gate = gate_of(alone)
    with pytest.raises(Failure, match="needs a name"):
        answering.stop(alone.desk, gate, "x")
    answering.withdraw(alone.desk, gate, "found it")
    assert last(alone, gate) == ("withdrawn", "coder", "found it")


@pytest.mark.parametrize(
    ("variables", "own"),
    [
        ({"GITGATE_AGENT": "coder"}, True),
        ({"GITGATE_AGENT": "other"}, False),
        ({"CLAUDECODE": "1"}, False),
        ({"CLAUDECODE": "1", "GITGATE_AGENT": "coder"}, True),
    ],
)
def test_an_agent_withdraws_only_its_own(
    alone: Seat, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], own: bool
) -> None:
    """By its name, where it has no session; and in its own name, not its person's."""
    gate = gate_of(alone)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if own:
        answering.withdraw(alone.desk, gate, "found it")
        assert last(alone, gate) == ("withdrawn", "coder", "found it")
        return
    with pytest.raises(NotAllowed, match="withdraws only its own"):
        answering.withdraw(alone.desk, gate, "found it")
    assert alone.now(gate) == gate


def test_a_session_tells_whose_gate_it_is(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an agent calls itself."""
    gate, other = gate_of(alone, session="session-1"), gate_of(alone, session="session-2")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "session-1")
    monkeypatch.setenv("GITGATE_AGENT", "coder")
    with pytest.raises(NotAllowed):
        answering.withdraw(alone.desk, other, "x")
    answering.withdraw(alone.desk, gate, "found it")
    assert alone.now(gate).state == "withdrawn"


@pytest.mark.parametrize(
    ("variables", "by"),
    [
        ({}, ADA),
        ({"GITGATE_AGENT": "coder"}, "coder"),
        ({"GITGATE_AGENT": "reviewer"}, "reviewer"),
        ({"CLAUDECODE": "1"}, "an agent (CLAUDECODE)"),
    ],
)
def test_an_agents_remark_does_not_look_like_a_persons(
    alone: Seat, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], by: str
) -> None:
    """Although its shell has the person's identity."""
    gate = gate_of(alone)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    answering.comment(alone.desk, gate, "hm")
    assert last(alone, gate)[1] == by


@pytest.mark.parametrize(
    ("variables", "terms", "why"),
    [
        ({"GITGATE_AGENT": "other"}, {"priority": "urgent"}, "changes only its own"),
        ({"CLAUDECODE": "1"}, {"priority": "urgent"}, "changes only its own"),
        ({"GITGATE_AGENT": "coder"}, {"priority": "low"}, "less pressing: it is normal"),
        (
            {"GITGATE_AGENT": "coder"},
            {"to": ()},
            "does not give it to others: it is for ann@example.org, bob@example.org",
        ),
        ({"GITGATE_AGENT": "coder"}, {"to": ("eve@example.org",)}, "does not give it to others"),
        (
            {"GITGATE_AGENT": "coder"},
            {"to": ("ann@example.org", "eve@example.org")},
            "does not give it to others",
        ),
        ({"GITGATE_AGENT": "coder"}, {"timeout": "1m"}, "moves no deadline"),
        ({"GITGATE_AGENT": "coder"}, {"timeout": "never"}, "moves no deadline"),
        ({"GITGATE_AGENT": "coder"}, {"priority": "urgent", "timeout": "9h"}, "moves no deadline"),
    ],
)
def test_an_agent_does_not_loosen_a_gate(
    alone: Seat, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], terms: dict[str, Any], why: str
) -> None:
    """Not its own, and no other: whom it is for, how pressing it is and until when are what a person relies on."""
    gate = gate_of(alone, to=("ann@example.org", "bob@example.org"), timeout=3600, on_timeout="fail")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NotAllowed, match=why):
        answering.edit(alone.desk, gate, **terms)
    assert alone.now(gate) == gate


def test_an_agent_may_tighten_its_own(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """For fewer people, and more pressing; in its own name."""
    gate = gate_of(alone, to=("ann@example.org", "bob@example.org"))
    monkeypatch.setenv("GITGATE_AGENT", "coder")
    after = answering.edit(alone.desk, gate, to=("ann@example.org",), priority="high").gate
    assert (after.to, after.priority, last(alone, gate)[1]) == (("ann@example.org",), "high", "coder")
    anyones = gate_of(alone)
    assert answering.edit(alone.desk, anyones, to=("bob@example.org",)).gate.to == ("bob@example.org",)


def test_an_agent_that_cleared_its_marker_changes_nothing(
    alone: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes tell, as with the verbs of a person; and its words do not look like a person's."""
    gate = gate_of(alone)
    monkeypatch.setattr("gitgate.context.agent_above", lambda: "process 5 is claude")
    with pytest.raises(NotAllowed, match="changes only its own"):
        answering.edit(alone.desk, gate, priority="high")
    with pytest.raises(NotAllowed, match="withdraws only its own"):
        answering.withdraw(alone.desk, gate, "x")
    answering.comment(alone.desk, gate, "hm")
    assert last(alone, gate)[1] == "an agent (by its processes)"


def test_another_priority_only_adds_rules(ann: Seat, bare: Clone) -> None:
    """Else it would be a way to choose the rule that decides."""
    rules = "{name: calm, priorities: [normal, low], who: bob@example.org}, {name: pressing, priorities: [urgent], who: anyone}"
    publish_policy(bare, f"policy: {{rules: [{rules}]}}\n")
    ann.clone.git("fetch", "-q", "origin")
    gate = answering.edit(ann.desk, gate_of(ann), priority="urgent").gate
    with pytest.raises(NotAllowed, match="'calm'"):
        say(ann, gate)
    assert say(ann, gate_of(ann, priority="urgent")).gate.state == "answered"


# Terms


def test_terms_are_changed_one_by_one(alone: Seat, clock: Clock) -> None:
    """What is not named stays."""
    gate = gate_of(alone, to=("bob@example.org",), priority="low")
    answering.edit(alone.desk, gate, priority="urgent")
    answering.edit(alone.desk, alone.now(gate), to=("ann@example.org", "@carl"))
    after = answering.edit(alone.desk, alone.now(gate), timeout="1h30m").gate
    assert (after.priority, after.to, after.timeout) == ("urgent", ("ann@example.org", "@carl"), 5400)
    assert after.deadline == "2026-05-28T21:56:40Z"
    freed = answering.edit(alone.desk, after, to=(), timeout=" Never ").gate
    assert (freed.to, freed.deadline, freed.timeout) == ((), None, None)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "nothing to change"),
        ({"priority": "soon"}, "expected one of"),
        ({"timeout": "0s"}, "in the future"),
        ({"timeout": "soon"}, "soon"),
    ],
)
def test_terms_that_are_none(alone: Seat, terms: dict[str, str], words: str) -> None:
    """Usage, and nothing is written."""
    gate = gate_of(alone)
    with pytest.raises(Usage, match=words):
        answering.edit(alone.desk, gate, **terms)  # type: ignore[arg-type]
    assert alone.now(gate) == gate


def test_remarks_are_pushed_unless_told_otherwise(ann: Seat, bare: Clone) -> None:
    """Like every verb that writes."""
    gate = gate_of(ann)
    done = answering.comment(ann.desk, gate, "one")
    assert done.pushed
    assert bare.refs("refs/hitl/open") == {OPEN + gate.id: done.gate.tip}
    local = answering.edit(ann.desk, done.gate, priority="low", push=False)
    assert not local.pushed
    assert bare.refs("refs/hitl/open") == {OPEN + gate.id: done.gate.tip}


def test_a_remark_is_what_was_said(alone: Seat) -> None:
    """As data, whatever it holds."""
    words = "\x1b[31m $(id) `id` --help\n\nHitl-State: answered"
    gate = gate_of(alone)
    answering.comment(alone.desk, gate, words)
    event = alone.now(gate).history[-1].event
    assert isinstance(event, Remark)
    assert event.text == words
