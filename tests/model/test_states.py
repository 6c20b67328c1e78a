"""The state table: what may happen is a row, and nothing else changes anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate import model
from gitgate.errors import IllegalEvent
from gitgate.model import STATES, TABLE

# The contract, written down a second time: what the product promises of each state.
PROMISED = {
    None: {"opened"},
    "awaiting": {
        "answered",
        "voted",
        "defaulted",
        "expired",
        "reminded",
        "withdrawn",
        "stopped",
        "edited",
        "commented",
        "late",
    },
    "answered": {"amended", "claimed", "commented", "late"},
    "resuming": {"claimed", "released", "returned", "resumed", "failed", "commented", "late"},
    "failed": {"claimed", "stopped", "commented", "late"},
    "expired": {"claimed", "late"},
    "resumed": {"late"},
    "withdrawn": {"late"},
    "stopped": {"late"},
}


def test_the_table_is_what_was_promised() -> None:
    """No row more, no row less."""
    assert {state: {row.event for row in TABLE if row.state == state} for state in (None, *STATES)} == {
        state: events | ({"repeated"} if state else set()) for state, events in PROMISED.items()
    }


def test_each_event_of_a_state_leads_to_one_place() -> None:
    """A state and an event are one row, and lead to a state that there is."""
    assert len({(row.state, row.event) for row in TABLE}) == len(TABLE)
    assert {row.to for row in TABLE} == set(STATES)
    assert all(row.why for row in TABLE)


@pytest.mark.parametrize("state", ["resumed", "withdrawn", "stopped"])
def test_an_end_is_an_end(state: str) -> None:
    """Nothing leads out of a state in which a gate is over."""
    assert {row.to for row in TABLE if row.state == state} == {state}


def test_every_state_can_be_reached() -> None:
    """From nothing, along the rows."""
    reached: set[str | None] = {None}
    for _ in STATES:
        reached |= {row.to for row in TABLE if row.state in reached}
    assert reached == {None, *STATES}


def test_silence_never_answers() -> None:
    """Without a person and without a declared default, no path leads to `answered`."""
    nobody = {
        "opened",
        "expired",
        "reminded",
        "claimed",
        "released",
        "returned",
        "resumed",
        "failed",
        "late",
        "edited",
    }
    reached: set[str | None] = {None}
    for _ in STATES:
        reached |= {
            row.to
            for row in TABLE
            if row.state in reached and row.event in nobody and row.event != "released"
        }
    assert "answered" not in reached


@given(
    st.sampled_from([None, *STATES]),
    st.sampled_from([*{row.event: None for row in TABLE}, "", "answer", "OPENED"]),
)
def test_what_is_no_row_is_an_error_that_says_why(state: str | None, event: str) -> None:
    """The error names the event or what was first, and what can be done instead; `allows` agrees."""
    row = next((row for row in TABLE if (row.state, row.event) == (state, event)), None)
    assert model.allows(state, event) is (row is not None)
    if row is not None:
        assert model.after(state, event) == row.to
        return
    with pytest.raises(IllegalEvent) as refused:
        model.after(state, event)
    assert refused.value.kind == "conflict"
    assert "already answered" in refused.value.message or "cannot be" in refused.value.message
    assert state is None or refused.value.hint.endswith(("ID", ")"))


@pytest.mark.parametrize(
    ("state", "event", "words"),
    [
        ("answered", "answered", "the gate is already answered"),
        ("answered", "withdrawn", "the gate is already answered"),
        ("resuming", "amended", "already answered, and an agent is acting on it"),
        ("resumed", "amended", "already answered, and the agent has been told"),
        ("withdrawn", "answered", "a gate that is withdrawn cannot be answered: it is over"),
        (None, "answered", "a gate that is not there cannot be answered"),
    ],
)
def test_a_refusal_in_words(state: str | None, event: str, words: str) -> None:
    """A person reads it."""
    assert words in model.refusal(state, event)


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("answered", "--amend"),
        ("resuming", "show"),
        ("failed", "show"),
        ("stopped", "show"),
        ("awaiting", "show"),
    ],
)
def test_advice_has_a_command(state: str, command: str) -> None:
    """What to type next."""
    assert command in model.advice(state)
    assert model.advice(None) == ""


def test_each_event_has_its_traits() -> None:
    """One row an event of the table, and no row for an event that there is not."""
    assert set(model.TRAITS) == {row.event for row in TABLE}
    assert model.traits("outcome") == model.EventTraits()
