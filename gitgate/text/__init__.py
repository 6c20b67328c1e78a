"""Text: words as they may be shown, and moments and durations as people and documents write them. Pure: a moment is handed in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from operator import add
from time import gmtime

from ..errors import Usage

# Text as it may be shown.
#
# What comes out of a gate was written by somebody else. Shown as it is, it could move the cursor,
# recolour the screen, reverse what is read or hide words. `neutral` spells such characters out (`\x1b`,
# `\u202e`) and leaves every other one as it is. Spelt in ASCII, so that it is seen on every terminal and
# neutralising twice changes nothing.
#
# Kept although invisible, because they change what is seen and cannot hide a word: a joiner between two
# emoji, a single presentation selector after an emoji or a keycap's base, and a joiner or non-joiner
# between letters of the Arabic and Indic scripts, whose spelling needs it. Everywhere else the same
# characters are spelt out.


# Format, bidirectional, zero-width, filler, selector and tag characters, line separators, private use,
# noncharacters and surrogates; a fixed list, so that the result does not depend on Python's Unicode version.
HIDDEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff"
)
CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
JOINING = "\u0600-\u06ff\u0700-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u1800-\u180a\u1810-\u18af"
MARKS = "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"

ASCII_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127)}
ASCII_CONTROLS[13] = "\\r"
ELLIPSIS = "…"


@cache
def _suspect() -> re.Pattern[str]:
    """Return the pattern of suspect characters, compiled at the first text that is not ASCII to keep start-up fast."""
    kept = (
        f"(?<=[{EMOJI}])\u200d(?=[{EMOJI}])|(?<=[{EMOJI}]\ufe0f)\u200d(?=[{EMOJI}])"
        f"|(?<=[{EMOJI}0-9#*])[\ufe0e\ufe0f]|(?<=[{JOINING}])[\u200c\u200d](?=[{JOINING}])"
    )
    # More than four marks on one letter draw over the neighbouring lines.
    return re.compile(f"({kept})|[{CONTROL}{HIDDEN}]|(?<=[{MARKS}]{{4}})[{MARKS}]")


def _spelt(found: re.Match[str]) -> str:
    if found.group(1):
        return found.group(1)
    code = ord(found.group())
    if code < 0x100:
        return "\\r" if code == 13 else f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def neutral(text: str) -> str:
    """Return `text` with newline and tab kept, CRLF made a newline, and other acting or hidden characters spelt out."""
    if text.isascii():
        if text.isprintable():
            return text
        return text.replace("\r\n", "\n").translate(ASCII_CONTROLS)
    return _suspect().sub(_spelt, text.replace("\r\n", "\n"))


def one_line(text: str, most: int | None = None) -> str:
    """Return `text` neutral and on one line, each run of blanks a single space, clipped to `most` cells."""
    if not (text.isascii() and text.isprintable()):
        text = neutral(text)
    text = " ".join(text.split())
    return text if most is None else clip(text, most)


def width(text: str) -> int:
    """Return the most cells that one line of neutral text takes: terminals disagree about joined pictures."""
    return len(text) if text.isascii() else sum(_cells(text))


def clip(text: str, cells: int) -> str:
    """Return `text` if it fits into `cells`, else its beginning and an ellipsis, with no composed character cut."""
    if text.isascii():
        if len(text) <= cells:
            return text
        return text[: cells - 1].rstrip() + ELLIPSIS if cells > 0 else ""
    sizes = _cells(text)
    if sum(sizes) <= cells:
        return text
    return text[: _fitting(text, sizes, cells - 1)].rstrip() + ELLIPSIS if cells > 0 else ""


def _fitting(text: str, sizes: list[int], cells: int) -> int:
    """Return how many characters of `text` fit into `cells`; `sizes` are their cells."""
    used = 0
    start = 0  # of the composed character that this one belongs to
    for index, each in enumerate(sizes):
        if each and not _belongs(text, index):
            start = index
        if used + each > cells:
            return start
        used += each
    return len(text)


def _belongs(text: str, index: int) -> bool:
    """Return whether the picture at `index` forms one picture with the character before it."""
    return text[index - 1 : index] == "\u200d" or "\U0001f3fb" <= text[index] <= "\U0001f3ff"


def _cells(text: str) -> list[int]:
    """Return the most cells of each character; characters that join, mark or select take none of their own.

    Pictures that are joined, or have a skin's colour, are one picture on some terminals and several on others. All
    of them are counted: a line that ends early is still a line, but one that is too long breaks the table.
    """
    cells: list[int] = []
    for character in text:
        if character == "\ufe0f" and cells and cells[-1] == 1:
            cells[-1] = 2  # shown as a picture
        cells.append(_cell(character))
    return cells


@lru_cache(maxsize=4096)
def _cell(character: str) -> int:
    from unicodedata import category, east_asian_width  # not loaded for ASCII

    if category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def indent(text: str, prefix: str) -> str:
    """Return the text with `prefix` before every line that is not blank."""
    return "\n".join(f"{prefix}{line}" if line.strip() else "" for line in text.split("\n"))


def wrap(text: str, cells: int, prefix: str = "") -> str:
    """Return neutral `text` in lines of at most `cells`, prefix included; line breaks and leading blanks are kept.

    An address is never cut: the terminal breaks it at its edge, and it can still be clicked and copied whole.
    """
    room = max(cells - width(prefix), 8)
    lines: list[str] = []
    for line in text.split("\n"):
        lines += _wrapped(line.expandtabs(4).rstrip(), room)
    return indent("\n".join(lines), prefix)


def hang(text: str, cells: int, prefix: str = "", deeper: str = "    ") -> str:
    """Return one line of neutral text, wrapped; further lines are indented deeper than the first."""
    first, *rest = wrap(text, cells, prefix).split("\n")
    if not rest:
        return first
    left = text.lstrip()[len(first.strip()) :].lstrip()
    return f"{first}\n{wrap(left, cells, prefix + deeper)}"


def _wrapped(line: str, room: int) -> list[str]:
    if width(line) <= room:
        return [line]
    body = line.lstrip(" ")
    lead = " " * min(len(line) - len(body), room // 2)
    lines: list[str] = []
    current, used = lead, len(lead)
    for word in body.split(" "):
        for piece in _pieces(word, room - len(lead)):
            size = width(piece)
            if used + size > room and current.strip():
                lines.append(current.rstrip())
                current, used = lead, len(lead)
            current += piece
            used += size
        current += " "
        used += 1
    return [*lines, current.rstrip()]


def clipped_text(value: object, most: int) -> str:
    """Return text as a record can hold it; empty for a value that is no text."""
    if not isinstance(value, str):
        return ""
    return (
        value.encode("utf-8", "replace")
        .decode()
        .replace("\0", "")
        .replace("\r\n", "\n")
        .strip()[:most]
        .strip()
    )


def spelled(text: str) -> str:
    """Return text as valid UTF-8: what is no character, as in a file's name that is not UTF-8, is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def counted(count: int, what: str) -> str:
    """Return a number with its noun: `1 gate`, `2 gates`, `3 repositories`."""
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else many}"


# In scripts without blanks a mark that closes something goes with what is before it.
NEVER_FIRST = frozenset("、。，．！？：；）」』】〕〉》〟’”・ー…々ぁぃぅぇぉっゃゅょァィゥェォッャュョ")


def _pieces(word: str, room: int) -> list[str]:
    """Return the pieces of `word`, cut where it is longer than a line."""
    if width(word) <= room or word.lstrip("(<").startswith(("https://", "http://")):
        return [word]
    pieces: list[str] = []
    sizes = [1] * len(word) if word.isascii() else _cells(word)
    at = 0
    while at < len(word):
        # At most `room` characters with cells are looked at, however long the word is.
        taken = max(_fitting(word[at : at + 8 * room], sizes[at : at + 8 * room], room), 1)
        while taken > 1 and word[at + taken : at + taken + 1] in NEVER_FIRST:
            taken -= 1
        pieces.append(word[at : at + taken])
        at += taken
    return pieces


# Durations and moments as people and documents write them. No clock here; a moment is handed in.


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 3650 * 86_400
DURATION = r"(?a)(?:\d{1,9}[wdhms])+"
TIME = r"(?a)(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:([Zz])|([+-])(\d\d):(\d\d))"
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
OWN = "0000-00-00T00:00:00Z"  # the form that we write ourselves
LAST = 253_402_300_800  # the first second of the year 10000
A_DURATION = "a duration such as 90s, 30m, 2h, 1h30m, 3d or 1w"


class NoDuration(Usage):
    """Error for a text that is no duration; `expected` says what would be one."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}; found {_quoted(found)}")
        self.expected = expected


EXPECTED_TIME = "expected a time such as 2030-01-31T14:05:00Z"


def parse_duration(text: str) -> int:
    """Return the seconds in `2h`, `1h30m`, `3d`, `1w`; a bare number is seconds. Each unit once, largest first."""
    word = text.strip().lower()
    if word.isascii() and word.isdigit() and len(word) <= 9:
        return _bounded(int(word), text)
    if not re.fullmatch(DURATION, word):
        raise NoDuration(A_DURATION, text)
    total, digits, smallest = 0, "", LONGEST
    for character in word:
        if character.isdigit():
            digits += character
            continue
        unit = UNITS[character]
        if unit >= smallest:
            raise NoDuration(f"{A_DURATION} (each unit once, the largest first)", text)
        total += int(digits) * unit
        digits, smallest = "", unit
    return _bounded(total, text)


def parse_since(text: str, now: float) -> float:
    """Return the moment that `30d` (so long before now), `2030-01-31` or a time names."""
    try:
        return now - parse_duration(text)
    except Usage:
        return parse_time(text if "T" in text else f"{text}T00:00:00Z")


def _bounded(seconds: int, text: str) -> int:
    if seconds > LONGEST:
        raise NoDuration("a duration of at most ten years (3650d)", text)
    return seconds


def format_duration(seconds: int) -> str:
    """Return the shortest form that `parse_duration` reads back as `seconds`."""
    parts = []
    for letter, unit in reversed(UNITS.items()):
        if letter != "w" and seconds >= unit:
            parts.append(f"{seconds // unit}{letter}")
            seconds %= unit
    return "".join(parts) or "0s"


def ago(seconds: float) -> str:
    """Return an age in one unit, rounded down: `45s`, `3m`, `2h`, `5d`, `3y`; a moment ahead of this clock is `0s`."""
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
    """Return RFC 3339 in UTC with whole seconds, rounded down: `2030-01-31T14:05:00Z`."""
    if not -62_167_219_200 <= epoch < LAST:  # also not a number
        raise Usage(f"expected a time in the years 0 to 9999; found {epoch}")
    if epoch < 0:
        epoch = int(epoch // 1)  # gmtime cuts towards zero
    at = gmtime(epoch)
    return f"{at[0]:04d}-{at[1]:02d}-{at[2]:02d}T{at[3]:02d}:{at[4]:02d}:{at[5]:02d}Z"


def parse_time(text: str) -> float:
    """Return the moment that an RFC 3339 time names: an offset is needed, a fraction is kept."""
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
    """Return the moment of a time in the form OWN, as lists have by thousands; None leaves it to the full grammar."""
    hour, minute, second = _TWO.get(text[11:13]), _TWO.get(text[14:16]), _TWO.get(text[17:19])
    if hour is None or minute is None or second is None or hour > 23 or text[13] != ":" or text[16] != ":":
        return None
    start = _midnight(text[:10])
    return None if start is None else start + hour * 3600 + minute * 60 + second


def _midnight(day: str) -> float | None:
    """Return the moment when a day began; None when it is on no calendar."""
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
    """Return whether each moment is written as `format_time` writes it, so that they sort as texts do. All moments are
    checked together, one column after the other: one moment at a time would take longer than the check saves a
    list.
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
    """Return the days from 1970-01-01, computed here because importing datetime costs more than all of this."""
    if month <= 2:
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719_469


def _quoted(text: str) -> str:

    return f'"{one_line(text[:160], 40)}"'
