"""Comments read by us and by GitHub's own engine: what counts is shown plainly, and nothing shown plainly is passed over."""

from __future__ import annotations

import os
import random
import re
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from gitgate.errors import BadAnswer
from gitgate.surfaces.forge import parse_reply

ONE = "7k2fw9c3ab"
PARTS = (
    *("- ", "- ", "> ", "> ", "1. ", "2) ", "* ", "  ", "    ", "   ", "\t", "# ", "\\"),
    *("```", "```", "~~~", "`", "`", "``", "````", "<!--", "<!--", "-->", "--->", "<!-->", "--", "<b>", "</b>", "<div>", "</div>", "<a title=\"", "\">", "<pre>", "</pre>"),
    *("<details>", "</details>", "<code>", "</code>", "<p", "<?x", "?>", "<!X", "<![CDATA[", "]]>", "<br>", "<", ">", "<script>", "</script>"),
    *("[^1]: ", "[^1]", "[x]: y", "[x]:", "[x", "](y", "](", ")", "'", '"', "[a](b)", "![", "]", "[", "<http://x>", "|", "|-|", "a|b", "-|-", "---", "===", "***"),
    *("w", "w", "words", " ", " ", "*", "_", "&lt;", "\u00a0", "\f", "\v", "é"),
)  # fmt: skip
HIDING = {"pre", "code", "samp", "kbd", "tt", "blockquote", "q", "details", "script", "style", "textarea", "title", "template", "noscript", "iframe", "xmp", "plaintext", "noembed", "noframes", "select", "object", "svg", "math"}  # fmt: skip
BREAKS = {"p", "br", "li", "ul", "ol", "div", "td", "th", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "section", "thead", "tbody"}  # fmt: skip
VOID = {"br", "hr", "img", "input", "link"}
OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_HARDBREAKS
TAG = r"""<[A-Za-z/](?:[^>"']|"[^"]*"|'[^']*')*>"""  # may hold what is a comment elsewhere
UNSEEN = re.compile(rf"({TAG})|<!--(?:-?>|.*?(?:--!?>|\Z))|<[?!](?!--)[^>]*(?:>|\Z)", re.DOTALL)


class Shown(HTMLParser):
    """The lines of a page that stand in nothing which folds, quotes or hides them, and are no code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.within: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section" and ("class", "footnotes") in attrs:
            self.within.append("blockquote")  # at the end of the page, and without its reference nowhere
        elif tag in HIDING and tag not in VOID:
            self.within.append(tag)
        self.text += "\n" if tag in BREAKS else "\0" if tag == "img" else ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self.within:
            del self.within[len(self.within) - 1 - self.within[::-1].index(tag)]
        self.text += "\n" if tag in BREAKS else ""

    def handle_data(self, data: str) -> None:
        self.text += "\0" * len(data) if self.within else data


def shown_by_github(body: str) -> set[str]:
    """The words of the commands that begin a line of what is plainly seen."""
    page = UNSEEN.sub(lambda found: found[1] or "", cmarkgfm.github_flavored_markdown_to_html(body, OPTIONS))
    reader = Shown()
    reader.feed(page)
    reader.close()
    return set(re.findall(r"^[ \t]*/approve (c\d+)\b", reader.text, re.MULTILINE))


def comment(chance: random.Random) -> str:
    """Some lines of marks and words, and a command or two at the beginning of one, or of what belongs to a list."""
    lines = ["".join(chance.choices(PARTS, k=chance.randint(0, 4))) for _ in range(chance.randint(1, 7))]
    command = (
        " " * chance.choice((0, 0, 0, 0, 1, 2, 3))
        + "/approve c1"
        + chance.choice(("", "", " `", " -->", " <!--"))
    )
    lines.insert(chance.randint(0, len(lines)), command)
    return "\n".join(line for part in lines for line in ([part, ""] if chance.random() < 0.25 else [part]))


def differing(body: str) -> str:
    """What is wrong with how we read it, if anything; `told` where its author hears that nobody can tell."""
    plain = shown_by_github(body)
    try:
        said = parse_reply(body, [ONE])
    except BadAnswer:
        return "told" if plain else "told too much"
    if said is not None and said.verb == "approve" and said.text.split()[:1] != ["c1"]:
        return f"another text: {said.text!r}"
    if said is not None:
        return "" if plain else "counts, and is not shown plainly"
    return "shown plainly, and passed over" if plain else ""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_counts_is_what_github_shows(seed: int) -> None:
    """Each takes its own comments: REPLY_COMMENTS says how many."""
    chance = random.Random(seed)  # noqa: S311
    most = int(os.environ.get("REPLY_COMMENTS", "3000" if seed else "500"))
    wrong = [
        (found, body)
        for body in (comment(chance) for _ in range(most))
        if (found := differing(body)) and not found.startswith("told")
    ]
    assert not wrong
