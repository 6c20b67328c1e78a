"""Surfaces: what everybody sees of a comment, line by line: pure. A command hidden from them, or shown as code, is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, groupby
from operator import attrgetter
from typing import NamedTuple

from . import blocks
from .blocks import CommentLine, Cut, FoundBlocks, covered, divide

# What stands in such a tag is folded, quoted, code, or not shown at all, however far below it ends.
FRAME = re.compile(
    r"<(?:(/)(?=[^<>`]*[>`]))?(pre|code|samp|kbd|tt|blockquote|q|details|script|style|textarea|title|template|noscript|iframe|xmp|plaintext"
    r"|noembed|noframes|select|object|svg|math)(?![A-Za-z0-9-])",
    re.ASCII | re.IGNORECASE,
)

READ: dict[str, Callable[[str], FoundBlocks]] = {"words": blocks.read_paragraph, "html": blocks.html}


def as_it_stands(_text: str) -> FoundBlocks:
    return FoundBlocks()


class SeenLine(NamedTuple):
    """A line as it is seen. `bare`: the same with its code covered, where a command would be one.

    `unsure`: it could be code, quoted or hidden. `lazy`: it is shown in the quote above. `lost`: perhaps nobody sees it.
    """

    text: str
    bare: str
    quoted: bool = False
    code: bool = False
    unsure: bool = False
    lazy: bool = False
    lost: bool = False


EMPTY = SeenLine("", "")
GROUP = attrgetter("group")


def see(body: str) -> list[SeenLine]:
    """All that is seen; what stands around a comment of HTML that goes over several lines is one."""
    lines = divide(body.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    rows: list[SeenLine] = []
    lost = False
    frames: dict[str, int] = {}
    for _, group in groupby(lines, key=GROUP):
        block = list(group)
        if block[0].how == "blank":
            rows.extend(SeenLine(line.text, line.text, line.quoted) if line.text else EMPTY for line in block)
            continue
        text = "\n".join(line.text for line in block)
        found = READ.get(block[0].how, as_it_stands)(text)
        lost = lost or any(line.deep for line in block) or found.torn
        for row in lay_out(block, text, found):
            rows.append(
                row._replace(unsure=True, lost=lost) if lost or (frames and any(frames.values())) else row
            )
            if "<" in row.bare and not row.code:
                count_frames(row.bare, frames)
        lost = lost or found.lost
    return rows


def count_frames(text: str, frames: dict[str, int]) -> None:
    for tag in FRAME.finditer(text):
        name = tag.group(2).lower()
        frames[name] = max(0, frames.get(name, 0) + (-1 if tag.group(1) else 1))


def lay_out(block: list[CommentLine], text: str, found: FoundBlocks) -> Iterator[SeenLine]:
    """The block's lines without what nobody sees."""
    if not found.cuts and found.vague is None:
        how = block[0].how
        for line in block:
            unsure = line.lazy or how == "html"
            yield SeenLine(line.text, line.text, line.quoted, how == "code", unsure, line.lazy)
        return
    seen: list[str] = []
    bare: list[str] = []
    owners = [0]  # the line on which each row begins
    place, number = 0, 0
    for cut in (*found.cuts, Cut(len(text), len(text), gone=True)):
        part = text[place : cut.start]
        inner = text[cut.start : cut.end]
        kept = part if cut.gone else part + inner
        seen.append(kept)
        bare.append(part if cut.gone else part + covered(inner))
        owners.extend(range(number + 1, number + 1 + kept.count("\n")))
        number += part.count("\n") + inner.count("\n")
        place = cut.end
    starts = [0, *accumulate(len(line.text) + 1 for line in block)]
    for owner, row, words in zip(owners, "".join(seen).split("\n"), "".join(bare).split("\n"), strict=True):
        line = block[owner]
        vague = found.vague is not None and starts[owner] > found.vague
        unsure = line.lazy or line.how == "html" or vague
        yield SeenLine(row, words, quoted=line.quoted, unsure=unsure, lazy=line.lazy)
