r"""Core: text as it may be shown.

What comes out of a gate was written by somebody else. Shown as it is, it could move the cursor, recolour the screen,
reverse what is read or hide words. `neutral` spells such characters out (`\x1b`, `\u202e`) and leaves every other one
as it is. Spelt in ASCII, so that it is seen on every terminal and neutralising twice changes nothing.

Kept although invisible, because they change what is seen and cannot hide a word: a joiner between two emoji, a single
presentation selector after an emoji or a keycap's base, and a joiner or non-joiner between letters of the Arabic and
Indic scripts, whose spelling needs it. Everywhere else the same characters are spelt out.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

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
    """Compiled at the first text that is not ASCII: start-up should not pay for it."""
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
    """`text` with newline and tab kept, CRLF made a newline, and every other character that acts or hides spelt out."""
    if text.isascii():
        if text.isprintable():
            return text
        return text.replace("\r\n", "\n").translate(ASCII_CONTROLS)
    return _suspect().sub(_spelt, text.replace("\r\n", "\n"))


def one_line(text: str, most: int | None = None) -> str:
    """`text` neutral and on one line, each run of blanks a single space, clipped to `most` cells."""
    if not (text.isascii() and text.isprintable()):
        text = neutral(text)
    text = " ".join(text.split())
    return text if most is None else clip(text, most)


def width(text: str) -> int:
    """How many cells one line of neutral text takes at most, on whichever terminal: they disagree about joined pictures."""
    return len(text) if text.isascii() else sum(_cells(text))


def clip(text: str, cells: int) -> str:
    """`text` if it fits into `cells`, else its beginning and an ellipsis, never cut inside a composed character."""
    if text.isascii():
        if len(text) <= cells:
            return text
        return text[: cells - 1].rstrip() + ELLIPSIS if cells > 0 else ""
    sizes = _cells(text)
    if sum(sizes) <= cells:
        return text
    return text[: _fitting(text, sizes, cells - 1)].rstrip() + ELLIPSIS if cells > 0 else ""


def _fitting(text: str, sizes: list[int], cells: int) -> int:
    """How many characters of `text` fit into `cells`; `sizes` are their cells."""
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
    """Whether the picture there is one with what stands before it."""
    return text[index - 1 : index] == "\u200d" or "\U0001f3fb" <= text[index] <= "\U0001f3ff"


def _cells(text: str) -> list[int]:
    """The most cells of each character; those that join, mark or select take none of their own.

    Pictures that are joined, or have a skin's colour, are one picture on some terminals and several on others. All of
    them are counted: a line that ends early is still a line, one that is too long breaks the table.
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
    """`prefix` before every line that is not blank."""
    return "\n".join(f"{prefix}{line}" if line.strip() else "" for line in text.split("\n"))


def wrap(text: str, cells: int, prefix: str = "") -> str:
    """Neutral `text` in lines of at most `cells`, prefix included; line breaks and leading blanks are kept.

    An address is never cut: the terminal breaks it at its edge, and it can still be clicked and copied whole.
    """
    room = max(cells - width(prefix), 8)
    lines: list[str] = []
    for line in text.split("\n"):
        lines += _wrapped(line.expandtabs(4).rstrip(), room)
    return indent("\n".join(lines), prefix)


def hang(text: str, cells: int, prefix: str = "", deeper: str = "    ") -> str:
    """One line of neutral text, wrapped; what goes on in further lines stands deeper than its beginning."""
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
    """Text as a record can hold it; what is no text is nothing."""
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
    """Text as UTF-8 has it: what is no character, as in the name of a file that is not UTF-8, stands there spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def counted(count: int, what: str) -> str:
    """`1 gate`, `2 gates`, `3 repositories`."""
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else many}"


# In scripts without blanks a mark that closes something goes with what is before it.
NEVER_FIRST = frozenset("、。，．！？：；）」』】〕〉》〟’”・ー…々ぁぃぅぇぉっゃゅょァィゥェォッャュョ")


def _pieces(word: str, room: int) -> list[str]:
    """`word`, cut where it is longer than a line."""
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
