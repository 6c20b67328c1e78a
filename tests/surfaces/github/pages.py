"""A comment as GitHub shows it: rendered by its own engine, and looked through for what acts on people or leads somewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_HARDBREAKS
# What GitHub looks for in the words of a page, outside of code and links.
ACTS = re.compile(
    r"(?<![A-Za-z0-9_])@[A-Za-z0-9]|[\w.+-]@[\w-]+\.\w|#[0-9]|\b(?:GH|GL|CVE|GHSA)-\w|:(?!\d\d?Z?:)[\w+-]+:|[\u200e\u200f\u2028-\u202e\u2066-\u2069]|\b[0-9a-f]{7,40}\b|https?://|\bwww\.",
    re.IGNORECASE,
)
OURS = {
    *("p", "br", "h3", "sub", "strong", "em", "code", "pre", "ul", "ol", "li", "blockquote", "details", "summary", "hr", "a")
}  # fmt: skip


@dataclass
class Page(HTMLParser):
    """`words`: what stands outside of code and links, a part each; `links`: where they lead; `tags`: in their order."""

    words: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    within: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "a":
            self.links.append(dict(attrs).get("href") or "")
        if tag in ("a", "code", "pre"):
            self.within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")
        if tag in self.within:
            self.within.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.within:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def acting(self) -> list[str]:
        """Mentions, references, bare addresses, strange tags, and comments of HTML behind our mark."""
        words = [found.group() for part in self.words for found in ACTS.finditer(part)]
        tags = [tag for tag in self.tags if tag.removeprefix("/") not in OURS]
        return [*words, *tags, *self.comments[1:]]


def rendered(body: str) -> Page:
    page = Page()
    page.feed(cmarkgfm.github_flavored_markdown_to_html(body, OPTIONS))
    page.close()
    return page
