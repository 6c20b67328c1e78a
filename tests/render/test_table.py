"""The table: what is reckoned for a whole column is what each cell would say by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitgate.core.times import format_time
from gitgate.render.table import age, ages

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
