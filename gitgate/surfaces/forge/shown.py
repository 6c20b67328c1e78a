"""Surfaces: what everybody sees of a comment, line by line: pure. A command hidden from them, or shown as code, is none.

`markdown-it-py` divides the comment; it is an extra of the jobs, and is imported here alone, late. It says which lines are a
block, and where in a paragraph code, tags and links are. Where it and the forge's engine may differ, a line is `unsure`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...document import NamedTuple
from ...errors import MissingExtra

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


DEEPEST = 40  # levels, of which an item of a list takes two: nested deeper nobody reads it

# Nothing in it is tried twice: every part takes all that it can, for good.
NAME = r"[A-Za-z][A-Za-z0-9-]*+"
VALUE = r"""(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+")"""
TAG = re.compile(
    rf"<(?:{NAME}(?:\s++[A-Za-z_:][\w.:-]*+(?:\s*+=\s*+{VALUE})?+)*+\s*+/?+>|/{NAME}\s*+>"
    r"|[A-Za-z][A-Za-z0-9+.-]{1,31}+:[^\s<>]*+>)",
    re.ASCII,
)
ALONE = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*+(?=[\s/>])")  # below a list's words it is a block for GitHub
TAG_NAME = re.compile(r"</?[A-Za-z0-9-]*+")
TORN = re.compile(r"""<[A-Za-z/][^<]*["']|<[A-Za-z/?!](?![^<>]*>)""")  # it takes in what comes below
VISIBLE = re.compile(r"[^\n]")
MARK = re.compile(r"[`<\[\]|:]")  # without one there is nothing to find
# What may be a table, or define a link, for one engine and not for another; or HTML that is not shown.
TABLE = re.compile(r"^[ \t>]*+(?=[^\n]*[|:])[|:-][|: \t-]*+$", re.MULTILINE)
ODD = re.compile(r"<[?!](?!--)|\]\(|\x01")
BOGUS = re.compile(r"<[?!](?!--)")  # a comment for browsers
# Engines differ in what is blank to them, and may cut it off: the first are put aside, the second doubted.
BLANKS = re.compile(r"[^\S \t\n\v\f]|[\0\ufeff]")
FEEDS = re.compile(r"[\v\f]")
MARKS = " \t>-+*.)0123456789"
QUOTED = re.compile(r"(?:[ \t]|[-+*]|[0-9]{1,9}[.)])*+>")
FOOTNOTE = re.compile(r"(?:[ \t>]|[-+*]|[0-9]{1,9}[.)])*+\[\^[^\]\s]++\]:")
SHORTEST = ("<!--->", "<!-->")  # comments with nothing in them
# What stands in such a tag is folded, quoted, code, or not shown at all, however far below it ends.
FRAME = re.compile(
    r"<(?:(/)(?=[^<>`]*[>`]))?(pre|code|samp|kbd|tt|blockquote|q|details|script|style|textarea|title|template|noscript|iframe|xmp|plaintext"
    r"|noembed|noframes|select|object|svg|math)(?![A-Za-z0-9-])",
    re.ASCII | re.IGNORECASE,
)


class SeenLine(NamedTuple):
    """Line as readers see it. `bare`: the line with its code covered, in which commands are looked for.

    `unsure`: it could be code, quoted or hidden. `lazy`: it is shown in the quote above. `lost`: perhaps nobody sees
    it.
    """

    text: str
    bare: str
    quoted: bool = False
    code: bool = False
    unsure: bool = False
    lazy: bool = False
    lost: bool = False


class CommentLine(NamedTuple):
    """Line as it was written. `read`: the line with characters replaced that only some engines take for blanks.

    `lazy`: it continues the quote above without a mark of its own. `noted`: it may be part of a footnote.
    """

    text: str
    read: str
    quoted: bool
    lazy: bool
    noted: bool


class ReadBlock(NamedTuple):
    """Lines that are read together. `how`: words, html, code, indented code, or gap for lines of no block (empty lines
    and definitions of links).

    `inner`: the block is part of a list or a quote.
    """

    first: int
    last: int
    how: str
    content: str = ""
    inner: bool = False


@dataclass(frozen=True)
class Cut:
    """Part of a text that is no words. Nobody sees it if it is `gone`; else it is code or a tag."""

    start: int
    end: int
    gone: bool


@dataclass
class FoundParts:
    """Parts that were found in a block. `lost`: the rest of the page may be in an unclosed comment; `torn`: so may
    these lines.

    `vague`: the place from which a line may belong to a link, or to something else that is not shown.
    """

    cuts: list[Cut] = field(default_factory=list)
    lost: bool = False
    torn: bool = False
    vague: int | None = None

    def doubt(self, place: int) -> None:
        self.vague = place if self.vague is None else min(self.vague, place)


def see(body: str) -> list[SeenLine]:
    """Return the lines as readers see them. Text around an HTML comment of several lines becomes one line."""
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    divided = divide(text)
    rows: list[SeenLine] = []
    lost = defined = False
    frames: dict[str, int] = {}
    for block in divided.blocks:
        mine = divided.lines[block.first : block.last]
        if block.how == "gap":
            rows.extend(gap(mine, lost or block.last > divided.deep))
            defined = bool(mine[-1].text.strip(MARKS))
            continue
        found = READ[block.how](block, mine, divided.links)
        lost = lost or found.torn or block.last > divided.deep or (defined and block.how == "indented")
        if lost:
            found = FoundParts()
        elif defined:
            found.doubt(-1)  # for some it goes on with the same paragraph
        for row in lay_out(block, mine, found):
            if lost:
                rows.append(row._replace(unsure=True, lost=True, code=False))
            else:
                rows.append(row._replace(unsure=row.unsure or any(frames.values())))
            if "<" in row.bare and not row.code:
                count_frames(row.bare, frames)
        lost, defined = lost or found.lost, False
    return rows


def gap(lines: Sequence[CommentLine], lost: bool) -> Iterator[SeenLine]:
    for line in lines:
        unsure = bool(line.text.strip(" \t")) and not line.quoted
        yield SeenLine(line.text, line.text, line.quoted, unsure=unsure, lost=lost and unsure)


def count_frames(text: str, frames: dict[str, int]) -> None:
    for tag in FRAME.finditer(text):
        name = tag.group(2).lower()
        frames[name] = max(0, frames.get(name, 0) + (-1 if tag.group(1) else 1))


def lay_out(block: ReadBlock, lines: Sequence[CommentLine], found: FoundParts) -> Iterator[SeenLine]:
    """Yield the block's lines without the parts that nobody sees."""
    doubtful = block.how == "html"
    if not found.cuts and found.vague is None:
        for line in lines:
            yield SeenLine(
                line.text,
                line.text,
                line.quoted,
                block.how in ("code", "indented"),
                line.lazy or doubtful,
                line.lazy,
            )
        return
    text = "\n".join(line.text for line in lines)
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
    starts = [0, *accumulate(len(line.text) + 1 for line in lines)]
    for owner, row, words in zip(owners, "".join(seen).split("\n"), "".join(bare).split("\n"), strict=True):
        line = lines[owner]
        vague = found.vague is not None and starts[owner] > found.vague
        yield SeenLine(row, words, line.quoted, unsure=line.lazy or doubtful or vague, lazy=line.lazy)


def covered(part: str) -> str:
    """Return a text of the same length, line by line, in which nothing but a tag's name can be read."""
    name = TAG_NAME.match(part)
    return part[: name.end()] + VISIBLE.sub("`", part[name.end() :]) if name else VISIBLE.sub("`", part)


# The blocks

BLOCKS = {
    "inline": "words",
    "hr": "words",
    "table_open": "table",
    "html_block": "html",
    "fence": "code",
    "code_block": "indented",
}


@dataclass(frozen=True)
class Divided:
    """Blocks of a comment, its lines, the links that it defines, and the line from which it is nested too deep."""

    blocks: list[ReadBlock]
    lines: list[CommentLine]
    links: object
    deep: int


def divide(text: str) -> Divided:
    engine = markdown()
    tokens: list[Token] = []
    env: dict[str, Any] = {}
    read = FEEDS.sub("\x01", BLANKS.sub("\ufffd", text))
    engine.block.parse(read, engine, env, tokens)
    lines = text.split("\n")
    quotes: set[int] = set()
    for token in tokens:
        if token.type == "blockquote_open" and token.map and token.map[0] not in quotes:
            quotes.update(range(*token.map))
    deep = (
        token.map[0]
        for token in tokens
        if token.map and token.level >= DEEPEST - 1 and token.type in ("blockquote_open", "list_item_open")
    )
    blocks = list(with_gaps(tokens, len(lines)))
    return Divided(
        blocks,
        mark_lines(lines, read.split("\n"), blocks, quotes),
        env.get("references", {}),
        min(deep, default=len(lines)),
    )


def with_gaps(tokens: Iterable[Token], count: int) -> Iterator[ReadBlock]:
    """Yield the blocks, with gaps for the lines between them, so that every line belongs to one."""
    end = 0
    for token in tokens:
        how = BLOCKS.get(token.type)
        if how is None or token.map is None or token.map[0] < end:
            continue
        first, last = token.map
        if first > end:
            yield ReadBlock(end, first, "gap")
        yield ReadBlock(first, last, how, token.content, inner=token.level > 1)
        end = last
    if count > end:
        yield ReadBlock(end, count, "gap")


def mark_lines(
    lines: list[str], read: list[str], blocks: Iterable[ReadBlock], quotes: Collection[int]
) -> list[CommentLine]:
    """Return the lines with their marks. The engine does not know footnotes: a footnote ends at an empty line that is
    followed by a line without its indentation.
    """
    found: list[CommentLine] = []
    noted = False
    before = ""
    for block in blocks:
        for number in range(block.first, block.last):
            text = lines[number]
            if block.how in ("words", "gap") and FOOTNOTE.match(text):
                noted = True
            elif noted and not before and text.strip(" \t") and not text.expandtabs(4).startswith("    "):
                noted = False
            marked = text.lstrip(" \t").startswith(">")
            within = number in quotes
            lazy = within and not marked and QUOTED.match(text) is None
            found.append(CommentLine(text, read[number], within and marked, lazy, noted))
            before = text.strip(" \t")
    return found


# What stands in them


def no_parts(_block: ReadBlock, _lines: Sequence[CommentLine], _links: object) -> FoundParts:
    return FoundParts()


def words(block: ReadBlock, lines: Sequence[CommentLine], links: object) -> FoundParts:
    """Return the parts of a paragraph or a heading, at their places in the comment's own lines."""
    if any(line.noted for line in lines):
        torn = any(line.noted and "<" in line.text for line in lines)
        return FoundParts(vague=-1 if lines[0].noted else 0, torn=torn)
    content = block.content
    if MARK.search(content) is None:
        return FoundParts()
    found = FoundParts()
    spans: list[Cut] = []
    engine = markdown()
    env = {"references": links, "content": content, "found": found, "links": spans}
    engine.inline.parse(content, engine, env, [])
    found.cuts.sort(key=START)
    divided = TABLE.search(content) is not None or (content.startswith("[") and "]:" in content)
    if divided:
        found.doubt(0)
    odd = ODD.search(blanked(content, sorted([*found.cuts, *spans], key=START)))
    if odd is not None:
        found.doubt(odd.start())
    found.torn = found.torn or is_torn(block, lines, divided=divided)
    return placed(found, content, lines)


def is_torn(block: ReadBlock, lines: Sequence[CommentLine], *, divided: bool) -> bool:
    """Return whether engines may disagree on where HTML in the block ends. For some, a comment reaches over table cells
    or a link's definition. For some, a tag has blanks that are none for us, or begins a block.
    """
    content = block.content
    return (
        (divided and "<!--" in content)
        or ("\x01" in content and "<" in content)
        or (block.inner and "\n" in content and has_lazy_tag(content.split("\n"), lines))
    )


def has_lazy_tag(inner: Sequence[str], lines: Sequence[CommentLine]) -> bool:
    """Return whether a line that continues the list or quote above, indented less than it, begins with a tag."""
    columns = [
        len(line.read.expandtabs(4).rstrip()) - len(words.strip())
        for words, line in zip(inner, lines, strict=False)
    ]
    return any(
        column < columns[0] and ALONE.match(words.lstrip()) is not None
        for words, column in zip(inner, columns, strict=False)
    )


START = attrgetter("start")


def blanked(text: str, cuts: Iterable[Cut]) -> str:
    """Return a text of the same length, with blanks in place of these parts. One part may contain another."""
    kept: list[str] = []
    place = 0
    for cut in cuts:
        if cut.end > place:
            kept += [text[place : cut.start], " " * (cut.end - max(place, cut.start))]
            place = cut.end
    return "".join([*kept, text[place:]])


def placed(found: FoundParts, content: str, lines: Sequence[CommentLine]) -> FoundParts:
    """Return the parts with their places in the lines as written, which have marks of quotes and lists in front."""
    starts = [0, *accumulate(len(line) + 1 for line in content.split("\n"))]
    moved: list[
        tuple[int, int, int]
    ] = []  # where the line begins, where its words do, and where they do in the content
    begin = 0
    for line, inner in zip(lines, content.split("\n"), strict=False):
        stripped = inner.strip()
        whole = line.read.rstrip()
        at = len(whole) - len(stripped) if whole.endswith(stripped) else max(0, whole.find(stripped))
        moved.append((begin, at, len(inner) - len(inner.lstrip())))
        begin += len(line.text) + 1

    def place(there: int) -> int:
        number = bisect_right(starts, there) - 1
        first, at, lead = moved[number]
        return first + min(max(0, at + there - starts[number] - lead), len(lines[number].text))

    cuts = [Cut(place(cut.start), place(cut.end), cut.gone) for cut in found.cuts]
    vague = found.vague if found.vague is None or found.vague < 0 else place(found.vague)
    return FoundParts(cuts, found.lost, found.torn, vague)


def html(block: ReadBlock, lines: Sequence[CommentLine], _links: object) -> FoundParts:
    """Return the comments in an HTML block, where neither code nor backslashes have a meaning."""
    text, found, place = block.content.removesuffix("\n"), FoundParts(), 0
    if BOGUS.search(text) or "\x01" in text:
        return FoundParts(torn=True)
    kept: list[str] = []
    while (start := text.find("<!--", place)) >= 0:
        kept.append(text[place:start])
        end = end_of_comment(text, start)
        found.lost = end < 0
        place = len(text) if end < 0 else end
        found.cuts.append(Cut(start, place, gone=True))
    kept.append(text[place:])
    rest = "".join(kept)
    if TORN.search(TAG.sub("", rest)) or (found.lost and "<" in rest):
        return FoundParts(torn=True)  # the comment may be none
    found.lost = found.lost or any(line.noted for line in lines)
    return placed(found, text, lines)


def end_of_comment(text: str, start: int) -> int:
    """Return where a comment ends for browsers and the newest CommonMark; -1 where it is not closed."""
    for short in SHORTEST:
        if text.startswith(short, start):
            return start + len(short)
    end = text.find("-->", start + 4)
    return end + 3 if end >= 0 else -1


READ: dict[str, Callable[[ReadBlock, Sequence[CommentLine], object], FoundParts]] = {
    "words": words,
    "html": html,
    "code": no_parts,
    "indented": no_parts,
}


# The engine


@cache
def markdown() -> MarkdownIt:
    """Return the CommonMark engine. It reads a table as a paragraph, and reports where code, tags and links are."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as missing:
        raise MissingExtra(
            "comments are read with the markdown-it-py package", hint="pip install 'git-gate[forge]'"
        ) from missing
    from markdown_it.rules_inline import autolink, backtick, escape, image, link

    engine = MarkdownIt("commonmark", {"maxNesting": DEEPEST})
    engine.disable(["entity", "emphasis"])
    engine.validateLink = any_link  # type: ignore[method-assign]
    engine.normalizeLink = as_it_stands  # type: ignore[method-assign]
    rules = {"backticks": (backtick, code), "escape": (escape, escaped), "autolink": (autolink, tag)}
    rules |= {"link": (link, linked), "image": (image, linked), "html_inline": (inline_html, tag)}
    for name, (rule, tell) in rules.items():
        engine.inline.ruler.at(name, telling(rule, tell))
    return engine


def any_link(url: str) -> bool:
    """Accept every address: whether an address is good does not decide what is a link."""
    del url
    return True


def as_it_stands(url: str) -> str:
    return url


Rule = Callable[["StateInline", bool], bool]


def telling(rule: Rule, tell: Callable[[StateInline, int], None]) -> Rule:
    def told(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rule(state, silent):
            return False
        if not silent and is_whole(state):
            tell(state, start)
        return True

    return told


def is_whole(state: StateInline) -> bool:
    """Return whether the engine reads the block itself, and not the words of an image, which it reads separately."""
    return state.env.get("content") is state.src


def code(state: StateInline, start: int) -> None:
    if state.src[start : state.pos].strip("`"):
        state.env["found"].cuts.append(Cut(start, state.pos, gone=False))


def escaped(state: StateInline, start: int) -> None:
    if state.src.startswith("<", start + 1):
        state.env["found"].cuts.append(Cut(start, state.pos, gone=False))


def tag(state: StateInline, start: int) -> None:
    """Record a tag or a comment. A declaration makes the rest doubtful, since some engines show it as words. A comment
    within a tag makes the lines torn, since browsers differ.
    """
    found, part = state.env["found"], state.src[start : state.pos]
    gone = part.startswith("<!--")
    if not gone and part.startswith(("<!", "<?")):
        found.doubt(start)
        return
    found.cuts.append(Cut(start, state.pos, gone))
    found.torn = found.torn or (not gone and "<!--" in part)


def linked(state: StateInline, start: int) -> None:
    """Record a link or an image. One over several lines may hide a line: the text from its start is doubtful."""
    state.env["links"].append(Cut(start, state.pos, gone=False))
    if "\n" in state.src[start : state.pos]:
        state.env["found"].doubt(start)


def inline_html(state: StateInline, silent: bool) -> bool:
    """Read a comment here: the engine's own pattern takes time that grows with the square of its length."""
    from markdown_it.rules_inline import html_inline

    if not state.src.startswith("<!--", state.pos):
        return html_inline(state, silent)
    start = state.pos
    if not state.src.startswith(SHORTEST, start) and state.html_terminator_last("-->") < start + 4:
        return False
    end = end_of_comment(state.src, start)
    inner = state.src[start + 4 : end - 3]
    if end > state.posMax or "--" in inner or inner.endswith("-") or inner.startswith((">", "->")):
        if is_whole(state):
            state.env["found"].doubt(start)  # a comment for some, and shown by others
        return False
    state.pos = end
    return True
