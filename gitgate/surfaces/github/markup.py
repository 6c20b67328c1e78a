"""Surfaces: what stands within a paragraph or HTML of a comment: pure. Spans of code, tags, and comments that nobody sees.

All of it is found in one pass, from left to right: what is looked for further on is never looked for twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

NAME = r"[A-Za-z][A-Za-z0-9-]*+"
VALUE = r"""(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+")"""
# Nothing in it is tried twice: every part takes all that it can, for good.
TAG = re.compile(
    rf"<(?:{NAME}(?:\s++[A-Za-z_:][\w.:-]*+(?:\s*+=\s*+{VALUE})?+)*+\s*+/?+>|/{NAME}\s*+>"
    r"|[A-Za-z][A-Za-z0-9+.-]{1,31}+:[^\s<>]*+>)",
    re.ASCII,
)
MARK = re.compile(r"[`<\[\]|:]")  # without one there is nothing to find
TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<")
RUN = re.compile(r"`+")
TAG_NAME = re.compile(r"</?[A-Za-z0-9-]*+")
VISIBLE = re.compile(r"[^\n]")
LINK = re.compile(r"""\]\(([^\s()<"'\\]*+(?: "[^"\n\\]*+")?+\))?+""")
TABLE = re.compile(r"^[ \t>]*+(?=[^\n]*[|:])[|:-][|: \t-]*+$", re.MULTILINE)
DEFINED = re.compile(r"[\s>*+\-0-9.)]*+\[")
ODD = re.compile(r"<[?!](?!--)")
TORN = re.compile(r"""<[A-Za-z/][^<]*["']|<[?!](?![^<>]*>)""")  # it takes in what comes below
QUOTED = re.compile(r"^[ \t]*+>[ \t>]*+", re.MULTILINE)  # the marks of quotes end no tag
SHORTEST = ("<!--->", "<!-->")  # comments with nothing in them


@dataclass(frozen=True)
class Cut:
    """A part that is no words: one that is `gone` nobody sees, any other is code or a tag."""

    start: int
    end: int
    gone: bool


@dataclass
class Found:
    """What was found. `lost`: the rest of the page is in a comment that was not closed where it had to be.

    `torn`: it may be a table, whose rows no comment joins. `vague`: from where a line may belong to a link or something else that is not shown.
    """

    cuts: list[Cut] = field(default_factory=list)
    lost: bool = False
    torn: bool = False
    vague: int | None = None


class Ends:
    """The ends of comments and spans of code. It is asked of places that only grow."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs: dict[int, list[int]] = defaultdict(list)
        for run in RUN.finditer(text):
            self.runs[run.end() - run.start()].append(run.start())
        for places in self.runs.values():
            places.reverse()
        self.comment = 0

    def of_code(self, length: int, after: int) -> int | None:
        places = self.runs.get(length, [])
        while places and places[-1] < after:
            places.pop()
        return places[-1] + length if places else None

    def of_comment(self, start: int) -> int | None:
        for short in SHORTEST:
            if self.text.startswith(short, start):
                return start + len(short)
        if 0 <= self.comment < start + 4:
            self.comment = self.text.find("-->", start + 4)
        return self.comment + 3 if self.comment >= 0 else None


def words(text: str) -> Found:
    """A paragraph: what begins first counts, and a backslash takes the meaning from a mark."""
    if MARK.search(text) is None:
        return Found()
    found, ends, place = Found(vague=unsure(text)), Ends(text), 0
    while token := TOKEN.search(text, place):
        place = token.end()
        if token.group().startswith("`"):
            end = ends.of_code(len(token.group()), place)
            cut = Cut(token.start(), end, gone=False) if end is not None else None
        else:
            cut = markup(text, token.start(), ends, found)
        if cut is not None:
            found.cuts.append(cut)
            place = cut.end
    found.torn = "<!--" in text and TABLE.search(text) is not None
    return found


def markup(text: str, start: int, ends: Ends, found: Found) -> Cut | None:
    """What begins with `<`, or a backslash that makes it none."""
    if text[start] == "\\":
        return Cut(start, start + 2, gone=False) if text.startswith("<", start + 1) else None
    if not text.startswith("<!--", start):
        tag = TAG.match(text, start)
        return Cut(start, tag.end(), gone=False) if tag is not None else None
    end = ends.of_comment(start)
    if end is None:
        return None
    if text.startswith("--->", end - 4) and end - start > len("<!--->"):
        found.vague = min(start, start if found.vague is None else found.vague)  # some see it, some do not
        return None
    return Cut(start, end, gone=True)


def unsure(text: str) -> int | None:
    """Where a link with a line of its own in it could begin, or a table, or a mark that is no HTML and not shown."""
    if (DEFINED.match(text) and "]:" in text) or TABLE.search(text):
        return 0
    first = (
        ODD.search(text),
        next((link for link in LINK.finditer(text) if not link.group(1)), None),
    )
    return min((found.start() for found in first if found is not None), default=None)


def html(text: str) -> Found:
    """HTML as it stands: neither code nor backslashes mean anything."""
    found, ends, place = Found(), Ends(text), 0
    kept: list[str] = []
    while (start := text.find("<!--", place)) >= 0:
        kept.append(text[place:start])
        end = ends.of_comment(start)
        found.lost = end is None
        place = len(text) if end is None else end
        found.cuts.append(Cut(start, place, gone=True))
    kept.append(text[place:])
    found.lost = found.lost or TORN.search(TAG.sub("", QUOTED.sub("", "".join(kept)))) is not None
    return found


def covered(part: str) -> str:
    """As long as it was, line by line, and nothing to read in it but a tag's name."""
    name = TAG_NAME.match(part)
    return part[: name.end()] + VISIBLE.sub("`", part[name.end() :]) if name else VISIBLE.sub("`", part)
