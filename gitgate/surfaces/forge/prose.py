"""Surfaces: somebody's Markdown as Markdown that does nothing but be read: pure.

Paragraphs, lists, quotes, code, emphasis and links stay. Mentions, references, images, HTML and bare addresses become words.
It is parsed, and written anew: what is not known here is text, and text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ...errors import MissingExtra
from ...text.display import neutral, one_line
from .telling import clipped, longest_run

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

DEEPEST = 12  # levels of lists and quotes; what is nested deeper is shown as its lines
MOST_MARKS = (
    4000  # brackets and stars: a text with more of them is shown as its lines, since reading it takes long
)
MARKS = re.compile(r"[\[\]*_`]")
ACTS = re.compile(r"[\\`*_\[\]|~$]|!\Z")  # a link of ours behind `!` would be a picture
HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# A line that begins so would be a heading, a list, or another program's command.
BEGINS = re.compile(r"^([ \t]*)(?:([#+=/-])|([0-9]{1,9})([.)]))", re.MULTILINE)
# A forge looks for these in what was rendered, so that no backslash helps: a character that nobody sees stands in them.
UNSEEN = "&#8203;"
MENTION = re.compile(
    r"([@#]|\b(?:GH|GL|CVE|GHSA)-)(?=\w|\Z)|([!%]|&amp;|\\[~$])(?=[\w\"{])"
    r"|\\\*(?=iteration:)|\\\[(?=\\\[|(?:\w|\\_){1,60}:|TOC\\\])"  # GitLab's; and names of pictures
    r"|:(?![0-9]{1,2}Z?:)(?=(?:[\w+-]|\\_){1,60}:)",
    re.IGNORECASE,
)
# An address that is not whole would become one with what is written behind it.
BEGUN = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)
# Of those that people copy nothing may be changed: addresses and commits' ids are shown as code.
COPIED = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|\bwww\.)[^\s<>`]+|(?<![0-9A-Za-z])[0-9a-f]{7,64}(?![0-9A-Za-z])",
    re.IGNORECASE,
)
TRAILING = ".,;:!?)]'\""  # behind an address it ends the sentence
ADDRESS = re.compile(r"https?://[A-Za-z0-9.:-]+(?:[/?#][\w.~:/?#\[\]@!$&'()*+,;=%-]*)?", re.ASCII)
REFERRED = re.compile(
    r"/(?:issues|pulls?|discussions|commits?|compare|advisories|merge_requests|work_items|epics|snippets|milestones)(?:/|$)"
)
PORT = re.compile(r":(?:443|80)?\Z")  # the one that everybody means
LANGUAGE = re.compile(r"[A-Za-z0-9+#-]{1,20}", re.ASCII)
# Of these a forge makes more than code.
DRAWN = frozenset(
    "mermaid geojson topojson stl math suggestion plantuml graphviz dot d2 ditaa erd nomnoml pikchr svgbob vega vegalite "
    "wavedrom bytefield dbml excalidraw blockdiag seqdiag actdiag nwdiag packetdiag rackdiag tikz umlet structurizr".split()
)
MOST_ADDRESS = 1000


def prose(text: str, most: int, site: str = "") -> str:
    """As Markdown, of at most `most` characters before it is escaped. `site`: of the forge, to which links may be references."""
    words = clipped(neutral(text).strip("\n"), most)
    if len(MARKS.findall(words)) > MOST_MARKS:
        return lines_as_words(words)
    tokens = markdown().parse(words)  # which says what is missing where it is
    from markdown_it.tree import SyntaxTreeNode

    if any(token.level >= DEEPEST for token in tokens):
        return lines_as_words(words)
    return blocks(SyntaxTreeNode(tokens).children, host_of(site)) or lines_as_words(words)


def phrase(text: str, most: int, site: str = "") -> str:
    """One line of it."""
    words = one_line(text, most) or "(nothing)"
    if len(MARKS.findall(words)) > MOST_MARKS:
        return as_words(words)
    tokens = markdown().parseInline(words)
    from markdown_it.tree import SyntaxTreeNode

    inner = SyntaxTreeNode(tokens).children
    written = inline(inner[0].children, host_of(site)) if inner else as_words(words)
    return written.replace("\n", " ")  # `&#10;` is a new line once it is read


def quoted(markup: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in markup.split("\n"))


@cache
def markdown() -> MarkdownIt:
    """Without HTML and without definitions of links, which hide words from a reader."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as missing:
        raise MissingExtra(
            "comments are written with the markdown-it-py package", hint="pip install 'git-gate[forge]'"
        ) from missing
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * DEEPEST}).disable(
        ["html_block", "html_inline", "reference"]
    )


# Text


def as_words(text: str) -> str:
    """Words, with nothing in them that a forge acts on."""
    parts, place = [], 0
    for found in COPIED.finditer(text):
        copied = found.group().rstrip(TRAILING)
        parts += [inert(text[place : found.start()]), code(copied)]
        place = found.start() + len(copied)
    return BEGINS.sub(unbegun, "".join([*parts, inert(text[place:])]))


def inert(text: str) -> str:
    words = ACTS.sub(r"\\\g<0>", re.sub("[&<>]", lambda found: HTML[found.group()], text))
    # `&lt;` and the like hold no mark of these, and nothing stands in front of a mention that would hide it.
    return BEGUN.sub(rf"\g<0>{UNSEEN}", MENTION.sub(rf"\g<0>{UNSEEN}", words))


def unbegun(found: re.Match[str]) -> str:
    lead, sign, number, dot = found.groups()
    return f"{lead}\\{sign}" if sign else f"{lead}{number}\\{dot}"


def lines_as_words(text: str) -> str:
    """Line by line, and none so far to the right that it would be code."""
    return "\n".join(as_words(line.strip()) for line in text.split("\n")).strip("\n")


def code(text: str) -> str:
    """As it is, on one line."""
    fence = "`" * (longest_run(text) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


# Inline


def inline(nodes: Sequence[SyntaxTreeNode], host: str, *, bare: bool = False) -> str:
    """`bare`: without emphasis, where it stands in some."""
    parts: list[str] = []
    words: list[str] = []  # neighbours are escaped as one: a mention may lie across them
    for node in nodes:
        if node.type in ("text", "text_special"):
            words.append(neutral(node.content))  # `&#x202e;` is a character once it is read
        elif node.type in ("softbreak", "hardbreak"):
            words.append("\n")
        else:
            parts += [words_within("".join(words), parts), other_inline(node, host, bare=bare)]
            words = []
    return "".join([*parts, words_within("".join(words), parts)])


def words_within(text: str, before: Sequence[str]) -> str:
    """Only what begins a line could begin a block."""
    return as_words(f"\0{text}").removeprefix("\0") if any(before) else as_words(text)


def other_inline(node: SyntaxTreeNode, host: str, *, bare: bool) -> str:
    if node.type == "code_inline":
        return code(one_line(node.content)) if node.content.strip() else ""
    if node.type == "image":
        return f"{as_words(one_line(node.content)) or 'an image'} (image: {code(address_of(node, 'src'))})"
    if node.type == "link":
        return link(inline(node.children, host, bare=bare), address_of(node, "href"), host)
    mark = "" if bare else {"strong": "**", "em": "*"}.get(node.type, "")
    inner = inline(node.children, host, bare=bare) if node.children else as_words(neutral(node.content))
    return f"{mark}{inner}{mark}" if inner.strip() else ""


def address_of(node: SyntaxTreeNode, name: str) -> str:
    return one_line(str(node.attrs.get(name, "")), MOST_ADDRESS) or "(nowhere)"


def link(words: str, address: str, host: str) -> str:
    """One that a person may follow, with where it leads; a reference to another thread would be told there, and is none."""
    if not ADDRESS.fullmatch(address) or is_reference(address, host):
        return f"{words} ({code(address)})"
    there, shown = host_of(address), words.strip("`")
    said = "" if there == host_of(shown if "://" in shown else f"//{shown}") else f" ({code(there)})"
    return f"[{words or code(there)}](<{address.replace('&', '&amp;')}>){said}"


def host_of(address: str) -> str:
    try:
        return (urlsplit(address).netloc or "").lower()
    except ValueError:
        return ""


def is_reference(address: str, host: str) -> bool:
    there = PORT.sub("", host_of(address).removeprefix("www."))
    path = unquote(urlsplit(address).path)
    return there in ("", PORT.sub("", host), "github.com") and REFERRED.search(path) is not None


# Blocks


def blocks(nodes: Iterable[SyntaxTreeNode], host: str, between: str = "\n\n") -> str:
    return between.join(part for node in nodes if (part := block_of(node, host)))


def block_of(node: SyntaxTreeNode, host: str) -> str:
    if node.type in ("fence", "code_block"):
        return fenced(node)
    if node.type in ("bullet_list", "ordered_list"):
        return list_block(node, host)
    if node.type == "blockquote":
        return quoted(blocks(node.children, host))
    if node.type == "hr":
        return "---"
    if node.type == "heading":
        words = inline(node.children[0].children, host, bare=True)
        return f"**{words}**" if words.strip() else ""
    return "".join(inline(part.children, host) for part in node.children)  # a paragraph


def fenced(node: SyntaxTreeNode) -> str:
    words = node.content.rstrip("\n")
    named = node.info.split(" ", 1)[0]
    language = named if LANGUAGE.fullmatch(named) and named.lower() not in DRAWN else "text"
    fence = "`" * max(3, longest_run(words) + 1)
    return f"{fence}{language}\n{words}\n{fence}"


def list_block(node: SyntaxTreeNode, host: str) -> str:
    """Tight where it was: then no empty line stands in it."""
    between = "\n" if is_tight(node) else "\n\n"
    first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
    items = []
    for place, item in enumerate(node.children):
        mark = f"{first + place}{node.markup} " if node.type == "ordered_list" else f"{node.markup} "
        inner = blocks(item.children, host, between)
        items.append(mark + inner.replace("\n", "\n" + " " * len(mark)))
    return between.join(items)


def is_tight(node: SyntaxTreeNode) -> bool:
    return all(part.hidden for item in node.children for part in item.children if part.type == "paragraph")
