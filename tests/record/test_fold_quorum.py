"""The fold: who decides, where several have to agree, and who may change what was said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitgate.errors import BrokenRecord, IllegalEvent
from gitgate.model.gate import Entry
from support.histories import (
    ADA,
    APPROVAL,
    BOB,
    DUE,
    EVE,
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


@pytest.mark.parametrize("needed", [2, 3])
def test_a_quorum_counts_people_who_agree(needed: int) -> None:
    """The same person twice is one; other words do not add up."""
    gate = history(quorum=needed)
    gate.answer("Postgres", ADA)
    gate.answer("Postgres", "Ada Lovelace <ADA@example.org>")
    gate.answer("SQLite", EVE)
    assert gate.gate.state == "awaiting"
    assert gate.gate.answer is None
    for number in range(needed - 1):
        assert gate.gate.state == "awaiting"
        gate.answer("Postgres", f"P{number} <p{number}@example.org>")
    assert gate.gate.state == "answered"
    assert gate.names.count("voted") == needed + 1


def test_one_refusal_is_enough() -> None:
    """However many have to agree."""
    gate = History.begin(opened(APPROVAL, quorum=5))
    gate.answer(True, ADA)
    assert gate.answer(False, BOB).state == "answered"
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.verdict == "rejected"


def test_a_vote_may_be_changed_while_more_are_needed() -> None:
    """The later one stands; the earlier does not count any more."""
    gate = history(quorum=2)
    gate.answer("Postgres", ADA)
    first = gate.tip
    gate.answer("SQLite", ADA, amends=first)
    assert len(gate.gate.votes) == 1
    gate.answer("Postgres", BOB)
    assert gate.gate.state == "awaiting"
    assert gate.answer("SQLite", EVE).state == "answered"


def test_one_of_a_quorum_cannot_change_alone_what_all_decided() -> None:
    """Who answered last is not more than the others."""
    gate = history(quorum=2)
    gate.answer("Postgres", ADA)
    gate.answer("Postgres", BOB)
    before = gate.gate
    with pytest.raises(IllegalEvent, match="needs 2 who agree"):
        gate.answer("SQLite", BOB, amends=gate.tip)
    assert gate.gate == before


def test_a_refusal_is_not_turned_into_consent_by_amending() -> None:
    """The others still have to agree."""
    gate = History.begin(opened(APPROVAL, quorum=2))
    gate.answer(False, ADA)
    with pytest.raises(IllegalEvent, match="needs 2 who agree"):
        gate.answer(True, ADA, amends=gate.tip)
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.verdict == "rejected"


# Amending


def test_an_author_amends_until_an_agent_takes_it() -> None:
    """Then it has been told."""
    gate = history()
    gate.answer("Postgres")
    gate.answer("SQLite", amends=gate.tip)
    assert gate.names[-1] == "amended"
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.values == {"answer": "SQLite"}
    gate.answer("Postgres", amends=gate.tip)
    answer = gate.tip
    gate.claim()
    with pytest.raises(IllegalEvent, match="acting on it"):
        gate.answer("SQLite", amends=answer)


@pytest.mark.parametrize("by", [BOB, "Ada <eve@example.org>"])
def test_nobody_amends_anothers_answer(by: str) -> None:
    """A name alone makes nobody the author."""
    gate = history()
    gate.answer("Postgres")
    with pytest.raises(BrokenRecord, match="own answer"):
        gate.answer("SQLite", by, amends=gate.tip)


def test_nobody_amends_a_default() -> None:
    """It is nobody's, also not for somebody without a name."""
    gate = due("default")
    gate.default()
    for by in ("", ADA):
        with pytest.raises(BrokenRecord):
            gate.answer("Postgres", by, amends=gate.tip)


@pytest.mark.parametrize(("after", "became"), [("claim", "late"), ("nothing", "amended"), ("amend", "late")])
def test_an_amendment_recorded_again(after: str, became: str) -> None:
    """It counts while the answer does and nobody acted on it; else it is late."""
    gate = history()
    gate.answer("Postgres")
    away = gate.copy()
    away.answer("SQLite", amends=away.tip)
    if after == "claim":
        gate.claim()
    elif after == "amend":
        gate.answer("MySQL", amends=gate.tip)
    else:
        gate.add("commented", remark())
    gate.repeat(away.entries[-1])
    assert gate.names[-1] == became


def test_an_amendment_of_a_late_answer_is_late() -> None:
    """And one that would overrule a quorum alone as well."""
    gate = history(quorum=2)
    gate.answer("Postgres", ADA)
    away = gate.copy()
    gate.answer("Postgres", BOB)
    away.answer("Postgres", EVE)
    away.answer("Postgres", EVE, amends=away.tip, note="really")
    for entry in away.entries[-2:]:
        gate.repeat(entry, away.entries)
    assert gate.names[-2:] == ["late", "late"]
    other = gate.copy()
    other.gate = replace(other.gate, late=())
    with pytest.raises(BrokenRecord, match="own answer"):
        other.answer("SQLite", EVE, amends=oid(66))


def test_an_amendment_that_one_of_a_quorum_gave_offline_is_late() -> None:
    """Recorded again it must not decide either."""
    gate = history(quorum=2)
    gate.answer("Postgres", ADA)
    gate.answer("Postgres", BOB)
    said = gate.said("SQLite", BOB, amends=gate.tip)
    away = Entry(oid(95), "answered", said, (gate.tip,), "answers/away.yaml")
    gate.add("commented", remark())
    gate.repeat(away)
    assert gate.names[-1] == "late"
    assert gate.gate.answer is not None
    assert gate.gate.answer.answer.values == {"answer": "Postgres"}
