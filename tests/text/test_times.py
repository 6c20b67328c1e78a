"""Times: durations and moments, strict on input and exact on output."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import Usage
from gitgate.text import ago, are_our_own, format_duration, format_time, parse_duration, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("90", 90), ("45s", 45), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("3d", 259_200),
        ("1w", 604_800), ("1d2h3m4s", 93_784), (" 2H ", 7200), ("3650d", 315_360_000),
    ],
)  # fmt: skip
def test_a_duration_is_read(text: str, seconds: int) -> None:
    """Units from seconds to weeks, combined from large to small; a bare number is seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "soon", "-1h", "+1h", "1.5h", "h", "1h 30m", "30m1h", "1h1h", "1y", "1e3", "٣h", "²", "1_0s", "0x10",
        "9" * 5000, "9" * 5000 + "s", "3651d", "999999999w", "\x1b[2J",
    ],
)  # fmt: skip
def test_a_wrong_duration_is_refused(text: str) -> None:
    """The error says what was expected, with examples, and shows what was found harmlessly."""
    with pytest.raises(Usage, match="expected a duration") as caught:
        parse_duration(text)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200


@given(st.integers(0, 315_360_000))
def test_a_duration_is_written_as_it_is_read(seconds: int) -> None:
    """What is written is read back."""
    assert parse_duration(format_duration(seconds)) == seconds


def test_a_duration_is_written_short() -> None:
    """Only the units that count."""
    assert [format_duration(n) for n in (0, 90, 5400, 86_400, 604_800)] == [
        "0s",
        "1m30s",
        "1h30m",
        "1d",
        "7d",
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"), (0.9, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86_399, "23h"),
        (86_400, "1d"), (729 * 86_400, "729d"), (730 * 86_400, "2y"),
    ],
)  # fmt: skip
def test_an_age_has_one_unit(seconds: float, shown: str) -> None:
    """Rounded down; a moment that another clock puts in the future is now."""
    assert ago(seconds) == shown


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_times_agree_with_the_standard_library(at: dt.datetime) -> None:
    """Written as the standard library writes it, and read back to the second."""
    epoch = (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)
    written = format_time(epoch)
    assert written == at.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    assert parse_time(written) == epoch


@given(st.floats(-62_167_219_200, 253_402_300_799))
def test_a_fraction_is_rounded_down(epoch: float) -> None:
    """Before 1970 as well."""
    assert parse_time(format_time(epoch)) == epoch // 1


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01T01:30:00+01:30", 0),
        ("1969-12-31T22:30:00-01:30", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-01T00:00:01.25Z", 1.25),
        ("2000-02-29T00:00:00Z", 951_782_400),
        ("2016-12-31T23:59:60Z", 1_483_228_800),
    ],
)
def test_a_time_is_read(text: str, epoch: float) -> None:
    """RFC 3339 with offsets, fractions, leap days and leap seconds."""
    assert parse_time(text) == epoch


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2030-01-31", "2030-01-31T14:05:00", "2030-1-31T14:05:00Z", "2030-13-01T00:00:00Z",
        "2030-00-01T00:00:00Z", "2030-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2030-01-32T00:00:00Z",
        "2030-01-00T00:00:00Z", "2030-01-01T24:00:00Z", "2030-01-01T00:60:00Z", "2030-01-01T00:00:61Z",
        "2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00+01:60", "2030-01-01T00:00:00+0100",
        "2030-01-01T00:00:00.Z", "2030-01-01T00:00:00.1234567890Z", "2030-01-01T00:00:00Z\n", "٢030-01-01T00:00:00Z",
        "20300101T000000Z", " 2030-01-01T00:00:00Z", "x" * 100_000,
    ],
)  # fmt: skip
def test_a_wrong_time_is_refused(text: str) -> None:
    """Anything else is named, with an example of what was expected."""
    with pytest.raises(Usage, match="expected a time such as 2030-01-31T14:05:00Z"):
        parse_time(text)


@pytest.mark.parametrize("epoch", [float("nan"), float("inf"), -1e18, 253_402_300_800])
def test_a_moment_outside_the_calendar_is_refused(epoch: float) -> None:
    """A date out of a commit may be anything."""
    with pytest.raises(Usage, match="expected a time in the years 0 to 9999"):
        format_time(epoch)


@given(st.lists(st.integers(0, 253_402_300_799)))
def test_our_own_times_are_ordered_as_text(moments: list[int]) -> None:
    """Those that we write are known as such, all at once."""
    assert are_our_own([format_time(moment) for moment in moments])


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-02-03T24:00:00Z", "2026-02-03T29:00:00Z",
        "2026-02-03T23:60:00Z", "2026-02-03T23:00:60Z", "2026-02-03T23:00:00z", "2026-02-03 23:00:00Z",
        "2026-02-03T23:00:00.5Z", "2026-02-03T23:00:00+00:00", "2026-02-03T23:00:0", "٢026-02-03T23:00:00Z",
    ],
)  # fmt: skip
def test_any_other_time_is_not_our_own(text: str) -> None:
    """One among many is enough: its text may stand elsewhere than its moment."""
    good = "2026-02-03T23:00:00Z"
    assert not are_our_own([text])
    assert not are_our_own([good, text, good])
