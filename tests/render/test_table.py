"""The table: what is reckoned for a whole column is what each cell would say by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.record import Summary
from gitgate.render import age, ages, table
from gitgate.text import format_time

NOW = 1_800_000_000.0
# Around the borders of each unit: seconds, minutes, hours, days, years.
UNITS = st.sampled_from([1, 60, 3600, 86_400, 365 * 86_400])
AGO = st.builds(lambda unit, count, more: unit * count + more, UNITS, st.integers(0, 3), st.integers(-1, 1))
WRITTEN = AGO.map(lambda seconds: format_time(NOW - seconds))
STRANGE = st.sampled_from(["", "yesterday", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00+01:00"])


@given(st.lists(WRITTEN), st.floats(0, 1))
def test_the_ages_of_many_are_those_of_each(moments: list[str], fraction: float) -> None:
    """In the order of the rows, also of two at the same moment and of one that is still to come."""
    assert ages(moments, NOW + fraction) == [age(at, NOW + fraction) for at in moments]


@given(st.lists(WRITTEN | STRANGE))
def test_a_strange_time_takes_no_neighbour_with_it(moments: list[str]) -> None:
    """What is no time has no age; an offset is reckoned with."""
    assert ages(moments, NOW) == [age(at, NOW) for at in moments]


@pytest.mark.parametrize("cells", [72, 80, 100])
def test_the_readme_shows_the_list_as_it_is(cells: int) -> None:
    """What a stranger sees first is what they get, in a terminal of any usual width."""
    at = format_time(NOW - 120)
    asked = Summary(
        "7k2fw9c3ab",
        "",
        "opened",
        "awaiting",
        question="Which database?",
        agent="backend/91fe",
        at=at,
        branch="login",
    )
    shown = "\n".join(table([asked], NOW, cells))
    assert f"\n\n{shown}\n\n" in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
