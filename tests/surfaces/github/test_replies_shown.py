"""What a comment says is what everybody sees of it: code, quotes and hidden parts, as the forge shows them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer, MissingExtra
from gitgate.surfaces.forge import ReplySaid, may_answer, parse_reply
from gitgate.surfaces.forge.shown import markdown, see

ONE = "7k2fw9c3ab"
LONGEST = 65_536  # characters of a comment
FENCE = "```"


@pytest.mark.parametrize(
    "body",
    [
        f"Write one of these:\n\n* {FENCE}\n  /approve\n  {FENCE}",
        f"1. {FENCE}\n   /approve\n   {FENCE}",
        f"1) {FENCE}sh\n\n   x\n   /approve",
        "+ ~~~sh ` x\n  /approve\n  ~~~",
        f"- * {FENCE}\n   /approve\n    {FENCE}\n\nthat is it".replace("\n   /", "\n    /"),
        f"-\n  {FENCE}\n  /approve\n  {FENCE}",
        f"{FENCE}\n/approve\n``\n/approve\n{FENCE} x\n/approve\n~~~\n/approve",
        f"a\r{FENCE}\r/approve\r{FENCE}",
        f"> a\n{FENCE}\n/approve\n{FENCE}",
        f"- a\n\n- {FENCE}\n  - b\n  /approve",
        "see `\n/approve\n` there",
        "see ``a`\n/approve\n`` there",
        "x <!-- a\n/approve\n--> y",
        "- <!--\n  /approve\n  -->",
        '<a title="\n/approve\n">x</a>',
    ],
)
def test_code_and_hidden_words_are_no_command(body: str) -> None:
    """In an item of a list, in a span over several lines, or in a tag; only a whole fence ends one."""
    assert parse_reply(body, [ONE]) is None


@pytest.mark.parametrize(
    "body",
    [
        f"- {FENCE}\n  make\n  {FENCE}\n\n/approve",
        f"1. so:\n2. {FENCE}sh\n   make\n   {FENCE}\n/approve",
        f"- {FENCE}\n  never closed\n\n/approve",
        f"> {FENCE}\n> quoted\n\n/approve",
        f"> {FENCE}\n/approve",
        f"> - {FENCE}\n>   quoted\n>   {FENCE}\n\n/approve",
        f"{FENCE}Postgres{FENCE} looks right.\n\n/approve",
        f"{FENCE}Postgres{FENCE} looks right.\n/approve",
        f"{FENCE}{FENCE} a\n{FENCE}\n{FENCE}{FENCE}`\n\n/approve",
        "~~~ a ` b\ncode\n~~~~~ \n/approve",
        "a lone ` and `` here\n/approve",
        "The `<!--` of index.html is never closed.\n\n/approve",
        "\\<!-- and <!-- are shown\n\n/approve",
        f"{FENCE}html\n<!-- begin\n{FENCE}\n\n/approve",
        "    <!-- begin\n\n/approve",
        "<!-- told -->\n/approve",
        "<!--> shown -->\n/approve",
        "- a\n- b\n/approve",
        "<details>\n<summary>x</summary>\n</details>\n\n/approve",
        "see [this](https://example.org/x)\n/approve",
        "see [this](https://example.org/x_(y) 'z')\n/approve",
        "- so:\n  <img width='200' src='x'>\n\n/approve",
        "- see\n  <https://example.org/x>\n\n/approve",
        "call `f[0](x, y)`\n/approve",
        "[x]: y\n\n/approve",
        "---\n/approve",
        "a\u00a0?\n\u00a0\n/approve",
    ],
)
def test_a_command_below_code_is_heard(body: str) -> None:
    """It stands there as a line of its own, whatever stands above."""
    assert may_answer(body)
    assert parse_reply(body, [ONE]) == ReplySaid("approve", "")


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ("keep `<!-- x -->` as the mark", None),
        ("never write `<!--`. Keep the tests; do not delete the table", None),
        (f"\n{FENCE}html\n<!-- keep -->\n<p>\n{FENCE}", None),
        ("\n- ~~~\n  <!-- keep\n  ~~~\nand this", None),
        ("\n\n    <!-- keep -->", None),
        ("never <!-- this, unless", None),
        ("\\<!-- kept -->", None),
        ("a <!-- gone --> b", "a  b"),
        ("a <!-- gone `--> b` c", "a  b` c"),
        ("a\n<!--\ngone `\n--> b\n\nand `<!--` c", "a\n b\n\nand `<!--` c"),
        ("a\n<!-- gone", "a"),
        ("a <!-- gone\ngone --> b\nc", "a  b\nc"),
        ("a\n> quoted\n\nb", "a\n\nb"),
    ],
)
def test_an_answer_is_what_is_seen_of_it(words: str, seen: str | None) -> None:
    """Code holds its comments; outside of it they are gone, and nothing else is."""
    expected = (words if seen is None else seen).strip()
    assert parse_reply(f"/answer {words}", [ONE]) == ReplySaid("answer", expected)


@pytest.mark.parametrize(
    "body",
    [
        "> You may write\n/approve",  # shown in the quote
        "1. > You may write\n/approve",
        "<div>\n/approve\n</div>",
        "<details>\n\n/approve\n\n</details>",
        "<pre>\n\n/approve\n\n</pre>",
        "a <code>\n/approve\n</code>",
        "a <details>\n\\</details>\n/approve",
        'a <details>\n<b title="</details>">\n/approve',
        "<blockquote>\n\n/approve",
        "<div>\n<!-- the block ends, the comment does not\n\n/approve",
        "- <!-- nor here\n\n/approve",
        "/answer yes\n\n<div>\n<!-- x\n\nand no",
        '<div title="\n\n/approve\n\n">',
        "> <?x\n>\n\n/approve",
        "[x]:\n/approve",
        "[x]: y '\n/approve\n'",
        "[x](y '\n/approve\n')",
        "[^1]: a note\n/approve",
        "a `\n/approve\n` | b\n--|--",
        "a | b `\n--|--\n/approve\n` | c",
        "x <!-- a ---> b\n/approve\n-->",
        "> " * 40 + "a\n\n/approve",
        f"> gate **{ONE}**\nlazy words",
    ],
)
def test_in_doubt_it_is_none_and_told(body: str) -> None:
    """Where programs differ, or it takes a page's whole HTML to know: its author hears how to write it."""
    assert may_answer(body)
    with pytest.raises(BadAnswer, match="below an empty line"):
        parse_reply(body, [ONE])


def test_plain_words_are_what_is_seen_of_them() -> None:
    """Of a reply without a command, too."""
    words = "never write `<!--`. Keep <!-- not --> the tests"
    said = ReplySaid("answer", "never write `<!--`. Keep  the tests", ONE)
    assert parse_reply(f"> gate **{ONE}**\n\n{words}", [ONE]) == said
    assert parse_reply(f"{ONE}: {words}", [ONE]) == said


def test_what_quotes_hide_names_no_gate() -> None:
    """A name has to be seen, too."""
    assert parse_reply(f"> x <!-- gate {ONE} --> y\n\nwords", [ONE]) is None
    assert parse_reply(f"> `<!--` gate {ONE} `-->`\n\nwords", [ONE]) == ReplySaid("answer", "words", ONE)
    assert parse_reply(f"    {ONE}: words", [ONE]) is None


HOSTILE = [
    "`", "` ", "`\n", "``x`", "```\n", "- ```\n", "~~~\n", "<!--", "<!-- ", "<!--\n", "<!-- x --->", "--> ", "- ", "-\n", "1. ", "> ",
    ">\n", "> - ", "> a\nb\n", "\n", " ", "\t", "\t\n", "<", "<a ", "<a b='", '<a b="<c d=\'', "<?", "<![CDATA[", "<div>\n<!--", "\\`",
    "](", '](x "', "[^1]:\n", "|-|\n", "- - -", "* a\n", "/approve\n", "- " * 19 + "x\n", "7k2fw9c3ab ", "\r", "/aprove ", "**/", "“", '"', "[a](", "[a][", "@a ", "gate ", "/yes",
    "[", "![", "*a ", "a*_", "**", "[a]: b\n", "[a][b", "[[](a)", "](<", "<a/", "&", "a\n- ", "<!-- a -- ", "a <!-- x ---> ", "x <!--x--", "a\n[^1]: \n", "<div>\n\n", "\v",
]  # fmt: skip


# Many, and seconds are counted: not with every run.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.no_cover
@pytest.mark.usefixtures("no_garbage_collected")
@pytest.mark.parametrize("part", HOSTILE)
def test_the_longest_comment_costs_little(part: str) -> None:
    """Whatever is repeated in it: four times as much takes about four times as long, not sixteen."""
    assert grows_no_faster(lambda length: "/answer x\n" + (part * (length // len(part) + 1))[: length - 10])


def grows_no_faster(body: Callable[[int], str], least: float = 0.1) -> bool:
    """Four times as much takes less than ten times as long, or less than `least` seconds."""

    def seconds(length: int) -> float:
        text = body(length)
        start = time.thread_time()
        see(text)
        return time.thread_time() - start

    seconds(1000)
    short = min(seconds(LONGEST // 4) for _ in range(2))
    # What else the machine does only adds to it: one of five looks suffices, and no square fits into any.
    return any(seconds(LONGEST) < max(10 * short, least) for _ in range(5))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.no_cover
@pytest.mark.usefixtures("no_garbage_collected")
@pytest.mark.parametrize("rest", ["\n", " ", "\t", " \n", "x\n"])
@pytest.mark.parametrize(
    "first", ["- " * 19 + "x\n", "> - " * 200 + "\n", " ".join("`" * n for n in range(1, 250))]
)
def test_nesting_and_blanks_cost_little(first: str, rest: str) -> None:
    """Every line is held against all that is open: so many levels are counted, and no more. (The last beginning is longer
    than a quarter of a comment: where it ends, what follows is read at all, within a fifth of a second.)
    """
    assert grows_no_faster(lambda length: (first + rest * length)[:length], least=1.0)


@given(st.lists(st.sampled_from(["- ", "> ", "1. ", "  ", "    ", "```", "`", "~~~", "<!--", "-->", "<b>", "\n", "\n", "\n\n", "w", "[^1]: "]), max_size=40))  # fmt: skip
def test_nothing_is_made_up(parts: list[str]) -> None:
    """Every word that is recorded stands in the comment, in its order, and none of a command before it."""
    body = "".join(parts)
    try:
        said = parse_reply(f"/answer {body}", [ONE])
    except BadAnswer:
        return
    assert said is not None
    left = iter(f" {body}")
    assert all(letter in left for letter in said.text)


@pytest.mark.parametrize(
    "body",
    [
        "> [x]:\n/approve",  # GitHub finds links after it has found paragraphs
        "- a\n</pre>\n```\n/approve",
        "[x]: y](y<!--1.\n/approve `\n)<!-->",
        "<p\n\n/approve",
        "<div>\n<?x <!--\n\n/approve",
        "<a\vtitle='\n/approve\n'>",
        "[a](`\n/approve\n`)",
        "a `\n/approve\n[^1]: ` b",
        "a <!-- b -- c -->\n/approve",
        "> a\n>\n> [^1]: b\n/approve",
    ],
)
def test_where_two_engines_differ_it_is_told(body: str) -> None:
    """Each was found by comparing them."""
    with pytest.raises(BadAnswer, match="below an empty line"):
        parse_reply(body, [ONE])


def test_a_link_that_holds_a_backtick_begins_no_code() -> None:
    """What follows it is what it seems."""
    assert parse_reply("[a](b`c) `\n/approve\n` d", [ONE]) is None
    assert parse_reply("[a](b`c)\n/approve", [ONE]) == ReplySaid("approve", "")


def test_without_the_engine_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    markdown.cache_clear()
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(MissingExtra, match="markdown-it-py") as caught:
        see("/approve")
    assert caught.value.hint == "pip install 'git-gate[forge]'"
