"""Text: durations and moments as people and documents write them. No clock here; a moment is handed in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import add
from time import gmtime

from ..errors import Usage

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 3650 * 86_400
DURATION = r"(?a)(?:\d{1,9}[wdhms])+"
TIME = r"(?a)(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:([Zz])|([+-])(\d\d):(\d\d))"
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
OWN = "0000-00-00T00:00:00Z"  # the form that we write ourselves
LAST = 253_402_300_800  # the first second of the year 10000
EXPECTED_DURATION = "expected a duration such as 90s, 30m, 2h, 1h30m, 3d or 1w"
EXPECTED_TIME = "expected a time such as 2030-01-31T14:05:00Z"


def parse_duration(text: str) -> int:
    """The seconds in `2h`, `30m`, `1h30m`, `3d`, `1w`; a bare number is seconds. Each unit once, largest first."""
    word = text.strip().lower()
    if word.isascii() and word.isdigit() and len(word) <= 9:
        return _bounded(int(word), text)
    if not re.fullmatch(DURATION, word):
        raise Usage(f"{EXPECTED_DURATION}; found {_quoted(text)}")
    total, digits, smallest = 0, "", LONGEST
    for character in word:
        if character.isdigit():
            digits += character
            continue
        unit = UNITS[character]
        if unit >= smallest:
            raise Usage(f"{EXPECTED_DURATION} (each unit once, the largest first); found {_quoted(text)}")
        total += int(digits) * unit
        digits, smallest = "", unit
    return _bounded(total, text)


def parse_since(text: str, now: float) -> float:
    """The moment that `30d` (so long before now), `2030-01-31` or a time names."""
    try:
        return now - parse_duration(text)
    except Usage:
        return parse_time(text if "T" in text else f"{text}T00:00:00Z")


def _bounded(seconds: int, text: str) -> int:
    if seconds > LONGEST:
        raise Usage(f"expected a duration of at most ten years (3650d); found {_quoted(text)}")
    return seconds


def format_duration(seconds: int) -> str:
    """The shortest form that `parse_duration` reads back as `seconds`."""
    parts = []
    for letter, unit in reversed(UNITS.items()):
        if letter != "w" and seconds >= unit:
            parts.append(f"{seconds // unit}{letter}")
            seconds %= unit
    return "".join(parts) or "0s"


def ago(seconds: float) -> str:
    """An age in one unit, rounded down: `45s`, `3m`, `2h`, `5d`, `3y`; a moment ahead of this clock is `0s`."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 86_400:
        return f"{whole // 3600}h"
    days = whole // 86_400
    return f"{days}d" if days < 730 else f"{days // 365}y"


def format_time(epoch: float) -> str:
    """RFC 3339 in UTC with whole seconds, rounded down: `2030-01-31T14:05:00Z`."""
    if not -62_167_219_200 <= epoch < LAST:  # also not a number
        raise Usage(f"expected a time in the years 0 to 9999; found {epoch}")
    if epoch < 0:
        epoch = int(epoch // 1)  # gmtime cuts towards zero
    at = gmtime(epoch)
    return f"{at[0]:04d}-{at[1]:02d}-{at[2]:02d}T{at[3]:02d}:{at[4]:02d}:{at[5]:02d}Z"


def parse_time(text: str) -> float:
    """The moment that an RFC 3339 time names: an offset is needed, a fraction is kept."""
    if len(text) == 20 and text[10] == "T" and text[19] == "Z":
        quick = _parse_own(text)
        if quick is not None:
            return quick
    found = re.fullmatch(TIME, text)
    if not found:
        raise Usage(f"{EXPECTED_TIME}; found {_quoted(text)}")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    leap_second = second == 60
    fits = (
        1 <= month <= 12
        and 1 <= day <= _days(year, month)
        and hour < 24
        and minute < 60
        and second < 60 + leap_second
        and int(found[10] or 0) < 24
        and int(found[11] or 0) < 60
    )
    if not fits:
        raise Usage(f"{EXPECTED_TIME}; found {_quoted(text)}, which is on no calendar or clock")
    offset = (int(found[10] or 0) * 60 + int(found[11] or 0)) * (-60 if found[9] == "-" else 60)
    whole = (_since_1970(year, month, day) * 24 + hour) * 3600 + minute * 60 + second - offset
    return whole + float(found[7] or 0)


def _parse_own(text: str) -> float | None:
    """A time in the form OWN, of which a list has thousands; None leaves the verdict to the full grammar."""
    hour, minute, second = _TWO.get(text[11:13]), _TWO.get(text[14:16]), _TWO.get(text[17:19])
    if hour is None or minute is None or second is None or hour > 23 or text[13] != ":" or text[16] != ":":
        return None
    start = _midnight(text[:10])
    return None if start is None else start + hour * 3600 + minute * 60 + second


def _midnight(day: str) -> float | None:
    """When this day began; None when it is on no calendar."""
    if day not in _MIDNIGHTS:
        if len(_MIDNIGHTS) > 4096:
            _MIDNIGHTS.clear()
        year, month, of_month = day[:4], _TWO.get(day[5:7], 0), _TWO.get(day[8:], 0)
        if not (year.isascii() and year.isdigit() and day[4:5] == day[7:8] == "-" and 1 <= month <= 12):
            return None
        if not 1 <= of_month <= _days(int(year), month):
            return None
        _MIDNIGHTS[day] = _since_1970(int(year), month, of_month) * 86400.0
    return _MIDNIGHTS[day]


def are_our_own(moments: Sequence[str]) -> bool:
    """Whether each is a time as `format_time` writes it, so that they are ordered as their texts are. One column of all of
    them is looked at after the other: moment by moment it would take longer than what a list saves by knowing.
    """
    whole, width = "".join(moments), len(OWN)
    if whole.translate(_ZEROS) != OWN * len(moments):
        return False
    hours = max(map(add, whole[11::width], whole[12::width]), default="")
    in_a_day = hours < "24" and max({*whole[14::width], *whole[17::width]}, default="") < "6"
    return in_a_day and all(_midnight(day) is not None for day in {at[:10] for at in moments})


_ZEROS = str.maketrans(dict.fromkeys("123456789", "0"))
_MIDNIGHTS: dict[str, float] = {}
_TWO = {f"{number:02d}": number for number in range(60)}


def _days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else MONTHS[month - 1]


def _since_1970(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01; by hand because importing datetime costs more than all of this."""
    if month <= 2:
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719_469


def _quoted(text: str) -> str:
    from .display import one_line

    return f'"{one_line(text[:160], 40)}"'
