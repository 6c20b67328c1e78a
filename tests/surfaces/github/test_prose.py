"""Somebody's Markdown in our comment: what stays of it, and that nothing of it acts, as GitHub's own engine shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gitgate.errors import MissingExtra
from gitgate.surfaces.forge.words import markdown, phrase, prose

from .pages import rendered

SITE = "https://github.com/team/project"
ACTING = [
    "@ada", "@team/people", "a@example.org", "#1", "team/project#1", "GH-1", "gh-12", "CVE-2020-1", "deadbeef", "a" * 40, "@deadbeef1",
    "https://evil.example/x", "www.evil.example", "ftp://evil.example", "mailto:a@b.example", "![x](https://evil.example/x.png)",
    "![x][r]", "[r]: https://evil.example/r", "[r]", "<img src=x>", "<script>", "</details>", "<!--", "-->", "<https://evil.example/y>",
    "<a@b.example>", "[a](javascript:x)", "[a](/relative)", "[a](https://github.com/o/r/issues/1)", "[a](//evil.example)", "&#64;ada",
    "&commat;ada", "&#35;1", "\\@ada", "\\#1", "@\\ada", "[^1]", "[^1]: note", "- [x] done", "> [!NOTE]", "```mermaid", "```", "~~~", "`",
    "``", "*", "**", "_", "~~", "|a|b|", "|-|-|", "$x$", "# h", "===", "---", "1. ", "- ", "> ", "    ", "\t", "\n", "\n\n", " ", "words",
    "\\", "(", ")", "[", "]", "![", "](", "<", ">", "&", "https://", "@", "#", "GH-", "ada", "1", "/approve", "\u200b", "é", "\r\n", "<b>", "`@ada`",
    "[good](https://good.example/a_b*c?d=1&copy=2#3)", "&#10;", "&#13;", "&#x202e;", "&#8203;", "&#x2028;", ":tada:", ":white_check_mark:",
    ":", "GL-1", "GL-", "[issue:1]", "[work_item:1]", "[[Home]]", "*iteration:1", "\\!", "&excl;", "[a](https://github.com:443/o/r/issues/1)",
]  # fmt: skip
texts = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(ACTING), max_size=14).map("".join),
    st.lists(st.sampled_from(ACTING), max_size=14).map(" ".join),
    st.lists(st.sampled_from(ACTING), max_size=14).map("\n".join),
)


@given(texts)
@example("HTTP://![]()")
@example("\\![](https://evil.example/b.png)")
@example("Look&excl;[x](https://evil.example/b.png)")
@example("HTTP://[]()")
@example("www.![]()a.example")
@example("www.*evil.example*")
def test_nothing_acts_however_it_is_put_together(text: str) -> None:
    """Row 34: no mention, reference, picture, HTML, task, table or footnote; a link only where one was written, to the web."""
    for shown in (prose(text, 5000, SITE), phrase(text, 500, SITE)):
        page = rendered(f"<!-- ours -->\n{shown}\n")
        assert page.acting() == []
        for link in page.links:
            assert link.startswith(("https://good.example/", "https://evil.example/")) or link in text
            assert "github.com" not in link
        assert "](" in text or "<http" in text or not page.links


@given(texts)
def test_it_does_not_reach_what_stands_below(text: str) -> None:
    """No fence, fold, quote or list of it goes on."""
    page = rendered(
        f"<!-- ours -->\n<details><summary>x</summary>\n\n{prose(text, 5000)}\n\n</details>\n\n### ours\n"
    )
    assert page.tags.count("details") == page.tags.count("/details") == 1
    assert page.tags.count("h3") == 1
    assert page.words[-2].strip() == "ours" or page.words[-1].strip() == "ours"


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("one\n\ntwo **strong** *em*", ["p", "/p", "p", "strong", "/strong", "em", "/em", "/p"]),
        ("- a\n- b", ["ul", "li", "/li", "li", "/li", "/ul"]),
        ("3. a\n4. b", ["ol", "li", "/li", "li", "/li", "/ol"]),
        ("- a\n  - b\n\n    c", [*("ul", "li") * 2, *("p", "/p") * 2, *("/li", "/ul") * 2]),
        ("> said", ["blockquote", "p", "/p", "/blockquote"]),
        ("```py\nx = 1\n```", ["pre", "code", "/code", "/pre"]),
        ("use `x`", ["p", "code", "/code", "/p"]),
        ("# Title", ["p", "strong", "/strong", "/p"]),
        ("[docs](https://docs.example/a)", ["p", "a", "/a", "code", "/code", "/p"]),
    ],
)  # fmt: skip
def test_what_is_good_to_read_stays(text: str, tags: list[str]) -> None:
    """Paragraphs, lists, quotes, code, emphasis and links."""
    assert rendered(prose(text, 5000)).tags == tags


def test_it_wraps_and_is_read_as_it_was_written() -> None:
    """As a paragraph, not as code; where a link leads stands beside it; what people copy is not changed."""
    text = (
        "Shall I use [this](https://docs.example/a)? See https://docs.example/b, #12 and 1f3a9c2b, says @ada."
    )
    assert prose(text, 5000, SITE) == (
        "Shall I use [this](<https://docs.example/a>) (`docs.example`)? See `https://docs.example/b`, #&#8203;12 and `1f3a9c2b`, "
        "says @&#8203;ada."
    )
    assert prose("[one](https://github.com/a/b/pull/3)", 99, SITE) == "one (`https://github.com/a/b/pull/3`)"


@pytest.mark.parametrize(
    "unit", ["[", "![", "*a", "_", "`", "> ", "- ", "<", "[a](", "**a ", "1. ", "[a](b", "*_", "&", "\\", "@", "a.b/", "www.", "abcdef0 ", ":", ":a", "[a:", "a_"]
)  # fmt: skip
def test_it_is_read_in_time(unit: str) -> None:
    """However many marks there are."""
    start = time.process_time()
    prose((unit * 40_000)[:40_000], 40_000)
    assert time.process_time() - start < 3


def test_what_was_escaped_stays_words() -> None:
    """What was no heading, list or command of another program when it was written is none in our comment either."""
    page = rendered(prose("\\# h\n\n\\- x\n\n1\\. y\n\n\\> z\n\n\\+ a\nb\n\\---\n\n\\=\n\n/retest", 500))
    assert set(page.tags) <= {"p", "/p", "br", "/br"}
    assert "\\/retest" in prose("/retest", 500)


@pytest.mark.parametrize("write", [prose, phrase])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("&#x202e;evorppa", "\\\\u202eevorppa"),
        ("a&#8203;b&ZeroWidthSpace;", "a\\\\u200bb\\\\u200b"),
        ("yes&#13;# Approved", "yes\\\\r# Approved"),
        ("**b &#x2028;**", "**b \\\\u2028**"),
    ],
)
def test_no_entity_hides_or_acts(write: Callable[[str, int], str], text: str, shown: str) -> None:
    """What an entity stands for is spelt out, as the character itself would be."""
    assert write(text, 500) == shown


def test_a_line_stays_one() -> None:
    """A title that has a new line as an entity begins no paragraph of ours."""
    assert phrase("Which?&#10;&#10;For @ada&#10;/close", 500) == "Which?  For @&#8203;ada \\/close"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (":tada: :+1: :100:", ":&#8203;tada: :&#8203;+1: :&#8203;100:"),
        (":white_check_mark: done", ":&#8203;white\\_check\\_mark: done"),
        ("at 09:30:00, std::vector", "at 09:30:00, std::vector"),
    ],
)
def test_names_of_pictures_are_words(text: str, shown: str) -> None:
    """A forge draws `:shipit:`, which is no word of the agent then; times and names of code stay as they are."""
    assert prose(text, 500) == shown


@pytest.mark.parametrize(
    "text", ["GL-12", "[issue:12]", "[work_item:12]", "[epic:12]", "[vulnerability:team/x/12]", "[contact:a@b.example]", "[[Home]]", "*iteration:12", "^alert#12"]
)  # fmt: skip
def test_gitlabs_own_references_are_words(text: str) -> None:
    """Row 35: GitLab links them in what was rendered, and tells the other thread, so that no backslash helps."""
    words = "".join(rendered(prose(f"see {text} there", 500)).words)
    assert text not in words
    assert words.replace("\u200b", "").strip() == f"see {text} there"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[good.example/evil.example](https://evil.example/x)", "[good.example/evil.example](<https://evil.example/x>) (`evil.example`)"),
        ("[evil.example.good.example](https://evil.example)", "[evil.example.good.example](<https://evil.example>) (`evil.example`)"),
        ("[docs.example/a](https://docs.example/a)", "[docs.example/a](<https://docs.example/a>)"),
        ("[docs.example://evil.example](https://evil.example)", "[`docs.example://evil.example`](<https://evil.example>) (`evil.example`)"),
        ("<https://docs.example/a>", "[`https://docs.example/a`](<https://docs.example/a>)"),
        ("[x](https://github.com:443/o/r/issues/1)", "x (`https://github.com:443/o/r/issues/1`)"),
        ("[x](https://github.com/o/r/%69ssues/1)", "x (`https://github.com/o/r/%69ssues/1`)"),
    ],
)  # fmt: skip
def test_where_a_link_leads_is_told(written: str, shown: str) -> None:
    """Words that only hold the server's name do not; an address that means another thread's is one, however it is spelt."""
    assert prose(written, 500, SITE) == shown


def test_nothing_is_hidden() -> None:
    """Whoever decides sees all that the agent wrote: what defines links, comments of HTML, and what a name leads to."""
    shown = "".join(
        rendered(
            prose("[//]: # (delete all)\n\n<!-- drop it -->\n\n[a]: https://x.example 'so'\n\nsee [a]", 500)
        ).words
    )
    for words in ("delete all", "drop it", "so", "see [a]"):
        assert words in shown


@pytest.mark.parametrize("write", [prose, phrase])
def test_without_the_engine_the_extra_is_named(
    write: Callable[[str, int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to install, also where no part of it was loaded before."""
    markdown.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "markdown_it"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(MissingExtra, match="markdown-it-py") as caught:
        write("words", 100)
    assert caught.value.hint == "pip install 'git-gate[forge]'"
