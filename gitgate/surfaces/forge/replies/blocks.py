"""Surfaces: the blocks of a comment, as CommonMark divides it: pure. Which lines are quoted, code, HTML or words.

Only so far as it matters for what is a command: links and emphasis are no business of it. Each line costs what it is long.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

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
class FoundBlocks:
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


def read_paragraph(text: str) -> FoundBlocks:
    """A paragraph: what begins first counts, and a backslash takes the meaning from a mark."""
    if MARK.search(text) is None:
        return FoundBlocks()
    found, ends, place = FoundBlocks(vague=unsure(text)), Ends(text), 0
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


def markup(text: str, start: int, ends: Ends, found: FoundBlocks) -> Cut | None:
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


def html(text: str) -> FoundBlocks:
    """HTML as it stands: neither code nor backslashes mean anything."""
    found, ends, place = FoundBlocks(), Ends(text), 0
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


QUOTE, NOTE = 0, -1  # among what is open; every other number is how far the lines of a list's item stand in
NOTE_INDENT = 4
DEEPEST = 20  # nested deeper than that nobody reads it, and each line would cost as much again
FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
ITEM = re.compile(r"(?:[-+*]|(\d{1,9})[.)])(?= |$)", re.ASCII)
FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:")
HEADING = re.compile(r"#{1,6}(?= |$)")
UNDERLINE = re.compile(r"(?:=+|-+) *$")
LETTERS = "A-Za-z"
RAW = re.compile(r"<(?:script|pre|style|textarea)(?=[ >]|$)", re.ASCII | re.IGNORECASE)
RAW_END = re.compile(r"</(?:script|pre|style|textarea)>", re.ASCII | re.IGNORECASE)
NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|"
    "figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|"
    "noframes|ol|optgroup|option|p|param|search|section|source|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
BLOCK = re.compile(rf"</?(?:{NAMES})(?=[ >]|/>|$)", re.ASCII | re.IGNORECASE)
DECLARED = re.compile(rf"<![{LETTERS}]")


class CommentLine(NamedTuple):
    """One line. Those of one `group` are read together: a paragraph, or a block of HTML. `how`: words, code, html or blank.

    `lazy`: it goes on with a quote, or a note, above without a mark of its own. `deep`: nobody can tell.
    """

    text: str
    group: int
    how: str
    quoted: bool = False
    lazy: bool = False
    deep: bool = False


@dataclass
class BlockReader:
    """What is open where the next line begins."""

    open: list[int] = field(default_factory=list)
    leaf: str = ""  # words, fence, html, blank, or nothing that the next line could go on with
    end: str = ""  # what closes the fence or the HTML; HTML without it ends with an empty line
    group: int = 0
    fresh: bool = False  # the last line began an item, and nothing stands in it
    defines: bool = False  # these words may say where a link leads, and no line below makes a heading of that

    def read(self, text: str) -> CommentLine:
        if not text and self.leaf == "blank":  # nothing changes: some comments are nothing else
            return CommentLine(text, self.group, "blank")
        if not self.open and self.leaf in ("words", "blank", "") and text[:1].isalpha():
            self.group += self.leaf != "words"  # a letter begins nothing else, and most lines begin with one
            self.leaf, self.defines = "words", self.defines and self.leaf == "words"
            return CommentLine(text, self.group, "words")
        line = text.expandtabs(4)
        place, kept = self.match(line)
        self.fresh = False
        if kept == len(self.open) and self.leaf in ("fence", "html"):
            return self.go_on(text, line[place:])
        if place == len(line):
            return self.empty(text, kept)
        return self.begin(text, line, place, kept)

    def match(self, line: str) -> tuple[int, int]:
        """How far into the line, and how many of the open quotes and items it goes on with."""
        place = 0
        if not line.strip(" "):
            kept = self.open.index(QUOTE) if QUOTE in self.open else len(self.open)
            return len(line), min(kept, len(self.open) - self.fresh)
        for number, width in enumerate(self.open):
            indent = blanks(line, place)
            if width == QUOTE:
                if indent > 3 or not line.startswith(">", place + indent):
                    return place, number
                place = behind_mark(line, place + indent)
            elif indent >= (NOTE_INDENT if width == NOTE else width):
                place += NOTE_INDENT if width == NOTE else width
            elif place + indent == len(line):  # nothing but quotes: as good as empty
                place = len(line)
            else:
                return place, number
        return place, len(self.open)

    def go_on(self, text: str, rest: str) -> CommentLine:
        """Within a fence or HTML, whose end is looked for, and nothing else."""
        how = "code" if self.leaf == "fence" else "html"
        if how == "code":
            mark = rest.strip(" ")
            closed = blanks(rest) < 4 and mark.startswith(self.end) and not mark.strip(self.end[0])
        else:
            closed = ends_html(rest, self.end)
        self.leaf = "" if closed else self.leaf
        return self.line(text, how)

    def empty(self, text: str, kept: int) -> CommentLine:
        """Several of them are one group: some comments are nothing else."""
        self.open = self.open[:kept]
        self.group += self.leaf != "blank"
        self.leaf = "blank"
        return self.line(text, "blank")

    def begin(self, text: str, line: str, place: int, kept: int) -> CommentLine:
        """Any other line: it may open quotes and items, and stands in the last of them."""
        goes_on = self.leaf == "words"
        whole = kept == len(self.open)
        inner, place, deep = open_blocks(line, place, DEEPEST - kept, after_words=goes_on and whole)
        indent = blanks(line, place)
        rest = line[place + indent :]
        code = indent > 3
        kind = "" if code else leaf_of(rest, after_words=goes_on and whole and not inner)
        if goes_on and not whole and not inner and rest and not kind:
            return self.line(text, "words", lazy=not {QUOTE, NOTE}.isdisjoint(self.open[kept:]), deep=deep)
        self.open = [*self.open[:kept], *inner]
        self.fresh = bool(inner) and inner[-1] > QUOTE and not rest
        if goes_on and whole and not inner and rest and not kind:
            under = UNDERLINE.match(rest) and not code and not self.defines
            self.leaf = "" if under else "words"
            return self.line(text, "words", deep=deep)
        self.group += 1
        return self.line(text, self.start(kind, rest, code=code), deep=deep)

    def start(self, kind: str, rest: str, *, code: bool) -> str:
        """A block of its own; how its lines are read."""
        if kind == "fence":
            self.leaf, self.end = "fence", fence(rest)
            return "code"
        if kind == "html":
            self.end = html_end(rest)
            self.leaf = "" if ends_html(rest, self.end) else "html"
            return "html"
        self.leaf = "words" if rest and not code and not kind else ""
        self.defines = rest.startswith("[")
        return "code" if code and rest else "words"

    def line(self, text: str, how: str, *, lazy: bool = False, deep: bool = False) -> CommentLine:
        marked = text.lstrip(" \t").startswith(">")
        quoted = marked and QUOTE in self.open
        return CommentLine(text, self.group, how, quoted, lazy and not quoted, deep)


def divide(lines: list[str]) -> list[CommentLine]:
    reader = BlockReader()
    return [reader.read(line) for line in lines]


def blanks(line: str, place: int = 0) -> int:
    """How many blanks stand there."""
    here = place
    while line.startswith("    ", here):
        here += 4
    while line.startswith(" ", here):
        here += 1
    return here - place


def behind_mark(line: str, place: int) -> int:
    return place + (2 if line.startswith(" ", place + 1) else 1)


def open_blocks(line: str, place: int, most: int, *, after_words: bool) -> tuple[list[int], int, bool]:
    """The quotes, notes and items that begin on this line, where the rest of it is, and whether there are more than are counted."""
    found: list[int] = []
    while True:
        indent = blanks(line, place)
        here = place + indent
        if indent > 3 or here == len(line):
            return found, place, False
        width, behind = container(line, here, after_words=after_words and not found)
        if width is None:
            return found, place, False
        if len(found) >= most:
            return found, place, True
        found.append(indent + width if width > 0 else width)
        place = behind


def container(line: str, place: int, *, after_words: bool) -> tuple[int | None, int]:
    """The quote, note or item that begins here, and where its words do."""
    if line[place] == ">":
        return QUOTE, behind_mark(line, place)
    if note := FOOTNOTE.match(line, place):
        return NOTE, note.end()
    width = item(line, place, after_words=after_words)
    return width, min(place + (width or 0), len(line))


def item(line: str, place: int, *, after_words: bool) -> int | None:
    """How far the item that begins here stands in behind its own mark. An empty one, or one not numbered 1, ends no paragraph."""
    mark = ITEM.match(line, place)
    if mark is None or is_rule(line[place:]):
        return None
    behind = blanks(line, mark.end())
    empty = mark.end() + behind == len(line)
    if after_words and (empty or (mark.group(1) and int(mark.group(1)) != 1)):
        return None
    return mark.end() - place + (1 if empty or behind > 4 else behind)


def is_rule(rest: str) -> bool:
    marks = rest.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "*-_" and not marks.strip(marks[0])


def leaf_of(rest: str, *, after_words: bool) -> str:
    """The block that begins so; nothing where it is words."""
    if FENCE.match(rest):
        return "fence"
    if rest.startswith("<") and (html_end(rest) or BLOCK.match(rest) or (not after_words and is_tag(rest))):
        return "html"
    if HEADING.match(rest):
        return "heading"
    return "rule" if is_rule(rest) and not (after_words and UNDERLINE.match(rest)) else ""


def fence(rest: str) -> str:
    found = FENCE.match(rest)
    return (found.group(1) or found.group(2)) if found else ""


def html_end(rest: str) -> str:
    """What ends this block of HTML."""
    if RAW.match(rest):
        return "raw"
    for begin, end in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")):
        if rest.startswith(begin):
            return end
    return ">" if DECLARED.match(rest) else ""


def ends_html(rest: str, end: str) -> bool:
    if not end:
        return not rest.strip(" ")
    return RAW_END.search(rest) is not None if end == "raw" else end in rest


def is_tag(rest: str) -> bool:
    """A tag alone on its line."""
    tag = TAG.match(rest)
    return tag is not None and not rest[tag.end() :].strip(" ")
