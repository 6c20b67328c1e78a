"""The fold: what a gate's events amount to, and what is refused although the table has a row for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gitgate.errors import BrokenRecord, IllegalEvent
from gitgate.model.gate import Claim, Edit, Entry, Outcome
from gitgate.record.events import fold, stages, told_commit
from support.histories import (
    ADA,
    APPROVAL,
    BOB,
    CHOICE,
    DUE,
    GATE,
    LATER,
    TEXT,
    History,
    oid,
    opened,
    remark,
)


def history(**terms: object) -> History:
    return History.begin(opened(**terms))


def due(how: str, **terms: object) -> History:
    """A gate whose deadline is at DUE."""
    return history(deadline=DUE, timeout=60, on_timeout=how, **terms)


def test_one_answer_decides() -> None:
    """It becomes the gate's answer, claimed and told to the agent once."""
    gate = history()
    gate.answer("Postgres")
    assert gate.gate.state == "answered"
    assert gate.gate.actionable
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.values == {"answer": "Postgres"}
    gate.claim()
    assert (gate.gate.state, gate.gate.attempts) == ("resuming", 1)
    gate.end("resumed")
    assert gate.gate.state == "resumed"
    assert gate.gate.closed
    assert gate.names == ["opened", "answered", "claimed", "resumed"]


@pytest.mark.parametrize("delivery", ["none", "wait", "resume"])
def test_with_nobody_to_tell_answered_is_final(delivery: str) -> None:
    """`none` is closed by its answer; the others by telling it."""
    gate = history(delivery=delivery)
    gate.answer()
    assert gate.gate.closed is (delivery == "none")
    if delivery == "none":
        with pytest.raises(IllegalEvent, match="nobody to tell"):
            gate.claim()
    else:
        assert gate.claim().state == "resuming"


def test_a_lapsed_claim_is_taken_over_and_the_old_one_is_fenced() -> None:
    """The outcome of a claim that is not the current one changes nothing."""
    gate = history()
    gate.answer()
    old = gate.claim().claim
    assert old is not None
    gate.claim()
    assert gate.gate.attempts == 2
    before = gate.gate
    with pytest.raises(BrokenRecord, match="not the current one"):
        gate.add("outcome", Outcome(LATER, old.commit, "resumed"))
    assert gate.gate == before


def test_a_failed_start_is_tried_again_and_given_up() -> None:
    """Released is answered again; failed waits for a person, who may try again or stop it."""
    gate = history()
    gate.answer()
    gate.claim()
    assert gate.end("released").state == "answered"
    gate.claim()
    assert gate.end("failed").state == "failed"
    assert not gate.gate.actionable
    assert not gate.gate.closed
    other = gate.copy()
    assert gate.claim().state == "resuming"
    assert other.add("stopped", remark()).state == "stopped"
    assert other.gate.closed


def test_a_claim_is_for_the_answer_that_counts() -> None:
    """Not for one that was amended away."""
    gate = history()
    gate.answer()
    first = gate.tip
    gate.answer("SQLite", amends=first)
    with pytest.raises(BrokenRecord, match="an answer that does not count"):
        gate.add("claimed", Claim(LATER, first, "n", "local", "host", 1, 60))


@pytest.mark.parametrize(("how", "actionable"), [("stuck", False), ("fail", True), ("default", False)])
def test_an_expired_gate_tells_its_agent_only_with_fail(how: str, actionable: bool) -> None:
    """Stuck means: expired, and nobody is resumed."""
    gate = due(how)
    gate.expire()
    assert gate.gate.expired
    assert (gate.gate.state, gate.gate.actionable, gate.gate.closed) == (
        "expired",
        actionable,
        not actionable,
    )
    if not actionable:
        with pytest.raises(IllegalEvent, match="nobody to tell"):
            gate.claim()
        return
    assert told_commit(gate.gate) == gate.tip
    gate.claim()
    assert gate.end("released").state == "expired"
    gate.claim()
    assert gate.end("resumed").state == "resumed"
    assert gate.gate.answer is None


def test_expiry_is_told_by_its_own_commit_although_words_came_after() -> None:
    """A late answer does not become what the agent is told."""
    gate = due("fail")
    gate.expire()
    expiry = gate.tip
    late = replace(gate.said(), seen=gate.entries[0].commit)
    away = Entry(oid(90), "answered", late, (gate.entries[0].commit,), "answers/late.yaml")
    gate.repeat(away)
    assert gate.names[-1] == "late"
    assert told_commit(gate.gate) == expiry
    assert gate.claim().state == "resuming"


@pytest.mark.parametrize("deadline", [None, LATER])
@pytest.mark.parametrize("event", ["expired", "reminded", "defaulted"])
def test_silence_before_the_deadline_is_made_up(deadline: str | None, event: str) -> None:
    """No deadline, or not yet: none of what a deadline brings can happen."""
    gate = history(deadline=deadline, on_timeout="default")
    act: dict[str, Callable[[], object]] = {
        "expired": lambda: gate.expire(DUE),
        "reminded": lambda: gate.add("reminded", Edit(DUE, deadline=LATER)),
        "defaulted": lambda: gate.default(at=DUE),
    }
    with pytest.raises(BrokenRecord, match=r"its deadline .* had not passed"):
        act[event]()
    assert gate.names == ["opened"]


def test_a_reminder_moves_the_deadline_and_stays_awaiting() -> None:
    """Announced again, with a new one."""
    gate = due("remind")
    gate.add("reminded", Edit(DUE, deadline=LATER))
    assert (gate.gate.state, gate.gate.deadline, gate.gate.timeout) == ("awaiting", LATER, 60)


def test_a_default_is_nobodys() -> None:
    """What was declared applies, in nobody's name."""
    gate = due("default")
    gate.default()
    assert gate.gate.defaulted
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.by == ""
    assert gate.gate.answer.answer.verdict == "defaulted"


@pytest.mark.parametrize(
    ("how", "changes", "words"),
    [
        ("default", {"by": ADA}, "a default is nobody's answer"),
        ("default", {"values": {"answer": "Postgres"}}, "not the default that was declared"),
        ("stuck", {}, "a default was not to apply"),
        ("default", {"values": {"other": "SQLite"}}, "it answers other; the questions are answer"),
        ("default", {"verdict": "answered"}, "it is nobody's"),
    ],
)
def test_a_default_that_is_none_is_refused(how: str, changes: dict[str, object], words: str) -> None:
    """With a name, with other words, where none was to apply, or posing as an answer."""
    gate = due(how)
    said = replace(gate.said("SQLite", ""), verdict="defaulted", at=DUE)
    with pytest.raises(BrokenRecord, match=words):
        gate.add("answered", replace(said, **changes))  # type: ignore[arg-type]
    assert gate.names == ["opened"]


def test_a_question_without_a_default_has_none() -> None:
    """However the deadline was to end."""
    gate = History.begin(opened(TEXT, deadline=DUE, on_timeout="default"))
    with pytest.raises(BrokenRecord, match="not the default"):
        gate.default("anything")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gate": "kkkkkkkkkk"}, "is for gate kkkkkkkkkk"),
        ({"seen": oid(77)}, "names a commit as seen that is not in the record"),
        ({"by": ""}, "it is nobody's"),
        ({"by": "  "}, "it is nobody's"),
        ({"values": {}}, "the questions are answer"),
        ({"values": {"answer": "Postgres", "more": "x"}}, "the questions are answer"),
        ({"values": {"answer": True}}, "expected one of: Postgres, SQLite"),
        ({"values": {"answer": "  "}}, "expected one of"),
        ({"verdict": "approved"}, "it says approved, but what it answers means answered"),
        ({"verdict": "rejected"}, "it says rejected"),
        ({"amends": oid(1)}, "does not follow its author's own answer"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(changes: dict[str, object], words: str) -> None:
    """Copied from another gate, in nobody's name, for other questions, with another verdict than its words."""
    gate = history()
    before = gate.gate
    with pytest.raises(BrokenRecord, match=words):
        gate.add("answered", replace(gate.said(), **changes))  # type: ignore[arg-type]
    assert gate.gate == before


@pytest.mark.parametrize(("value", "verdict"), [(True, "rejected"), (False, "approved"), (True, "answered")])
def test_a_verdict_is_what_was_said(value: bool, verdict: str) -> None:
    """A refusal cannot be recorded as an approval."""
    gate = History.begin(opened(APPROVAL))
    with pytest.raises(BrokenRecord, match="means"):
        gate.answer(value, verdict=verdict)


def test_free_text_only_where_it_is_allowed() -> None:
    """A choice without `other` has its labels alone."""
    strict = History.begin(opened(replace(CHOICE, other=False)))
    with pytest.raises(BrokenRecord, match="expected one of"):
        strict.answer("MySQL")
    assert history().answer("MySQL").state == "answered"


def test_a_second_answer_has_no_place_and_one_recorded_again_is_late() -> None:
    """Whoever was first counts; what was said elsewhere meanwhile is kept, without effect."""
    gate = history()
    away = gate.copy()
    gate.answer("Postgres", ADA)
    away.answer("SQLite", BOB)
    with pytest.raises(IllegalEvent, match="already answered"):
        gate.answer("SQLite", BOB)
    gate.repeat(away.entries[-1])
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.by == ADA
    assert [late.answer.by for late in gate.gate.late] == [BOB]
    assert gate.gate.late[0].signed_commit == away.tip


@pytest.mark.parametrize("end", ["withdrawn", "stopped"])
def test_a_late_answer_is_kept_whatever_the_end(end: str) -> None:
    """A gate that is over keeps what came too late."""
    gate = history()
    away = gate.copy()
    gate.add(end, remark())
    away.answer()
    gate.repeat(away.entries[-1])
    assert gate.gate.state == end
    assert len(gate.gate.late) == 1
    assert gate.gate.answer is None
    assert gate.gate.closing is not None


def test_an_answer_given_after_a_reminder_of_its_own_clone_counts() -> None:
    """What its author had before them is known from the commit that is recorded again."""
    gate = due("remind")
    away = gate.copy()
    away.add("reminded", Edit(DUE, deadline=LATER))
    away.answer("Postgres", BOB)
    gate.add("commented", remark())
    blind = gate.copy()
    with pytest.raises(BrokenRecord, match="seen"):
        blind.repeat(away.entries[-1])
    gate.repeat(away.entries[-1], away.entries[:-1])
    assert gate.gate.state == "answered"


# Terms and remarks


def test_terms_change_while_it_waits() -> None:
    """None leaves a term; an empty one takes it away."""
    gate = due("stuck", to=("ada",))
    gate.edit(priority="urgent")
    assert (gate.gate.priority, gate.gate.to, gate.gate.deadline) == ("urgent", ("ada",), DUE)
    gate.edit(to=(), deadline="", timeout=0)
    assert (gate.gate.to, gate.gate.deadline, gate.gate.timeout) == ((), None, None)
    gate.edit(to=("bob",), deadline=LATER, timeout=5)
    assert (gate.gate.to, gate.gate.deadline, gate.gate.timeout) == (("bob",), LATER, 5)
    gate.answer()
    with pytest.raises(IllegalEvent):
        gate.edit(priority="low")


def test_a_remark_decides_nothing() -> None:
    """Before and after the answer; recorded again after the end it is late."""
    gate = history()
    away = gate.copy()
    gate.add("commented", remark())
    assert gate.gate.state == "awaiting"
    gate.answer()
    assert gate.add("commented", remark(text="more")).state == "answered"
    gate.claim()
    gate.end("resumed")
    with pytest.raises(IllegalEvent):
        gate.add("commented", remark(text="too late"))
    away.add("commented", remark(text="from afar"))
    gate.repeat(away.entries[-1])
    assert gate.names[-1] == "late"
    assert gate.gate.closing is None
    assert gate.gate.late == ()


# What is no record


def test_a_record_begins_with_its_question() -> None:
    """Nothing, or something else first, is no record; and a question comes once."""
    first = History.begin().entries[0]
    with pytest.raises(BrokenRecord, match="does not begin with a question"):
        fold(GATE, [])
    with pytest.raises(BrokenRecord, match="does not begin with a question"):
        fold(GATE, [Entry(oid(1), "commented", remark(), (), "comments/x.yaml")])
    with pytest.raises(BrokenRecord):
        fold(GATE, [first, replace(first, commit=oid(2))])
    with pytest.raises(BrokenRecord, match="cannot follow"):
        fold(GATE, [first, Entry(oid(2), "commented", first.event, (oid(1),), "comments/x.yaml")])


def test_an_illegal_event_breaks_the_record_that_has_it() -> None:
    """Reading says which commit; nothing is decided from such a record."""
    gate = history()
    gate.answer()
    wrong = Entry(oid(50), "stopped", remark(), (gate.tip,), "stops/x.yaml")
    with pytest.raises(BrokenRecord, match=f"commit {oid(50)[:12]}: the gate is already answered"):
        fold(GATE, [*gate.entries, wrong])


def test_stages_are_the_gate_after_each_event() -> None:
    """The last of them is the fold."""
    gate = history()
    gate.answer()
    gate.claim()
    found = list(stages(GATE, gate.entries))
    assert [stage.state for stage in found] == ["awaiting", "answered", "resuming"]
    assert found[-1] == gate.gate
