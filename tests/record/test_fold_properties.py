"""The fold: what always holds, whatever anybody tries on a gate and in whichever order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import GateError
from gitgate.model import TABLE
from gitgate.model.gate import Edit
from gitgate.record.events import stages
from support.histories import (
    ADA,
    BOB,
    DUE,
    EARLY,
    EVE,
    GATE,
    LATER,
    History,
    opened,
    refold,
    remark,
)


def history(**terms: object) -> History:
    return History.begin(opened(**terms))


def due(how: str, **terms: object) -> History:
    """A gate whose deadline is at DUE."""
    return history(deadline=DUE, timeout=60, on_timeout=how, **terms)


VALUES = st.sampled_from(["Postgres", "SQLite", "MySQL"])
PEOPLE = st.sampled_from([ADA, BOB, EVE, ""])


@st.composite
def step(draw: st.DrawFn) -> Callable[[History], object]:
    """Something that somebody might try on a gate, fitting or not."""
    value, by = draw(VALUES), draw(PEOPLE)
    at = draw(st.sampled_from([EARLY, DUE, LATER]))
    back = draw(st.integers(0, 5))
    steps: list[Callable[[History], object]] = [
        lambda h: h.answer(value, by),
        lambda h: h.answer(value, by, amends=h.entries[-1 - back % len(h.entries)].commit),
        lambda h: h.answer(value, by, seen=h.entries[-1 - back % len(h.entries)].commit, note=at),
        lambda h: h.answer(value, by, verdict="approved"),
        lambda h: h.default(value, at),
        lambda h: h.expire(at),
        lambda h: h.add("reminded", Edit(at, deadline=LATER)),
        lambda h: h.add("withdrawn", remark(at, by)),
        lambda h: h.add("stopped", remark(at, by)),
        lambda h: h.add("commented", remark(at, by, value)),
        lambda h: h.edit(priority="high", to=(by,), deadline=at),
        lambda h: h.claim(),
        lambda h: h.end("resumed"),
        lambda h: h.end("released"),
        lambda h: h.end("failed"),
    ]
    return draw(st.sampled_from(steps))


def try_all(gate: History, steps: list[Callable[[History], object]]) -> None:
    """Each of them; a refused one changes nothing."""
    for attempt in steps:
        before = gate.gate
        try:
            attempt(gate)
        except GateError:
            assert gate.gate == before


TERMS = st.fixed_dictionaries(
    {
        "quorum": st.integers(1, 3),
        "delivery": st.sampled_from(["resume", "wait", "none"]),
        "on_timeout": st.sampled_from(["stuck", "fail", "remind", "default"]),
        "deadline": st.sampled_from([None, DUE]),
    }
)


@given(TERMS, st.lists(step(), max_size=14))
def test_the_same_events_are_the_same_gate(
    terms: dict[str, object], steps: list[Callable[[History], object]]
) -> None:
    """Whoever folds them, from the beginning or one by one; every step was a row of the table."""
    gate = history(**terms)
    try_all(gate, steps)
    assert refold(gate.entries) == gate.gate
    found = list(stages(GATE, [replace(e, name=e.name) for e in refold(gate.entries).history]))
    rows = {(row.state, row.event, row.to) for row in TABLE}
    moves = zip(
        [None, *(stage.state for stage in found)], gate.names, [stage.state for stage in found], strict=False
    )
    assert all(move in rows for move in moves)


@given(TERMS, st.lists(step(), max_size=14))
def test_what_always_holds(terms: dict[str, object], steps: list[Callable[[History], object]]) -> None:
    """Nobody's word is no answer, a default has no name, and a decision has the people that it needs."""
    gate = history(**terms)
    try_all(gate, steps)
    after = gate.gate
    counted = after.answer
    if after.state in ("answered", "resuming", "resumed", "failed") and not after.expired:
        assert counted is not None
    if counted is not None:
        assert bool(counted.answer.by) is (counted.answer.verdict != "defaulted")
        alike = {v.answer.by for v in after.votes if v.answer.values == counted.answer.values and v.answer.by}
        assert counted.answer.verdict == "defaulted" or len(alike) >= after.opened.quorum
    assert (after.claim is not None) or after.state != "resuming"
    assert after.attempts == gate.names.count("claimed")
    assert not (after.closed and after.actionable)
    assert len({vote.answer.by for vote in after.votes}) == len(after.votes)
