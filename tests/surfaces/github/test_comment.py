"""The comment: what it shows, how long it gets, and that nothing that somebody wrote acts in it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.model.gate import (
    Answer,
    Asker,
    Claim,
    Conversation,
    Counted,
    Entry,
    Gate,
    Opened,
    Option,
    Outcome,
    Question,
    Remark,
    Talk,
    Work,
)
from gitgate.record.events import begin
from gitgate.surfaces.forge.comment import CommentMark, View, read_mark, render
from gitgate.surfaces.forge.words import block, clipped, size, span

from .pages import rendered

ONE = "7k2fw9c3ab"
SITE = "https://github.com/team/project"
DIRTY = Work("a" * 40, "b" * 40, "c" * 40, "feature", True, 3, 10, 2, ((".env", "looks secret"),))
HOSTILE = [
    "@everyone look", "see #12 and team/project#3", "![x](https://evil.example/beacon.png)", "<img src=https://evil.example/x>",
    "</details>", "<!-- gitgate gate=7k2fw9c3ab seen=" + "d" * 40 + " -->", "```\n# out of the fence\n```", "````", "`" * 30,
    "\u202egnp.exe", "\x1b[31mred", "a\u200bb", "[click](javascript:alert(1))", "https://evil.example/x", "~~~\nx\n~~~",
    "line\r\n\r\n### heading", "$(id) ${{ secrets.X }}", "|a|b|\n|-|-|", "\\`", "- [x] done", "\n\n\n", "` @octocat `",
]  # fmt: skip


def gate_of(**fields: object) -> Gate:
    opened = Opened(
        str(fields.pop("title", "Which database?")),
        fields.pop("questions", (Question("db", "Which database?", "text"),)),  # type: ignore[arg-type]
        Asker(str(fields.pop("agent", "backend/91fe")), "2026-01-01T00:00:00Z", "Ada <ada@example.org>"),
        DIRTY,
        "nonce",
        **fields,  # type: ignore[arg-type]
    )
    return begin(ONE, Entry("e" * 40, "opened", opened), opened)


def outside(body: str) -> str:
    """What a forge would read as markup: neither fenced blocks nor code spans, as CommonMark tells them."""
    kept: list[str] = []
    fence = ""
    for line in body.split("\n"):
        mark = re.match(r" {0,3}(`{3,})([^`]*)$", line)
        if fence:
            if mark and len(mark.group(1)) >= len(fence) and not mark.group(2).strip():
                fence = ""
            continue
        if mark:
            fence = mark.group(1)
            continue
        kept.append(re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "CODE", line))
    assert not fence, "a block is left open"
    return "\n".join(kept)


def test_it_says_all_that_a_person_needs() -> None:
    """Question, options, context, work, who may answer, how, and until when."""
    question = Question(
        "db", "Which database?", "choice", (Option("Postgres"), Option("SQLite", "one file")), other=True
    )
    gate = gate_of(
        questions=(question,), context="We need one.", deadline="2026-02-01T00:00:00Z", to=("@ada",)
    )
    body = render(View(gate, " a | 2 +-", "+new line\n", SITE))
    for words in ("Which database?", "Postgres", "one file", "We need one.", "3 files changed, +10 −2", "+new line", "@ada",
                  "2026-02-01T00:00:00Z", "/choose 1", "/answer other: something else", "/stop", "left out", "backend/91fe"):  # fmt: skip
        assert words in body
    assert read_mark(body) == CommentMark(ONE, "e" * 40)


def test_a_step_of_a_run_says_of_which() -> None:
    """Each word of it in a code span, whatever an agent put there."""
    config = {"run": "abcdefghjk", "flow": "@everyone `x`", "step": "run:coder#1"}
    body = render(View(gate_of(config=config), site=SITE))
    assert "run `abcdefghjk` of flow `` @everyone `x` `` at step `run:coder#1`" in body
    assert "@everyone" not in outside(body)
    assert " of flow" not in render(View(gate_of(), site=SITE))


def test_the_page_shows_it_as_it_is() -> None:
    """The example in docs/github.md, letter by letter."""
    prompt = "Which **database**? Sessions have to survive a restart, see `docs/sessions.md`."
    options = (Option("Postgres"), Option("SQLite", "one file, no server"))
    opened = Opened(
        "The store of the sessions",
        (Question("db", prompt, "choice", options),),
        Asker("claude/91fe", "2026-01-01T09:00:00Z", "ada", logins=("ada",)),
        DIRTY,
        "nonce",
        context="The app runs on two machines.",
        deadline="2026-01-01T11:00:00Z",
        timeout=7200,
        to=("@grace",),
        config={"job_run": 4711},
    )
    gate = begin(ONE, Entry("e" * 40, "opened", opened), opened)
    body = render(View(gate, " login.py | 12 ++++++++++--\n", "", SITE, called=("grace",)))
    page = (Path(__file__).parents[3] / "docs/github.md").read_text(encoding="utf-8")
    assert f"\n````markdown\n{body.partition(chr(10))[2]}````\n" in page


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_somebody_wrote_acts(text: str) -> None:
    """Row 13: wherever it stands, it is inside code: no mention, link, picture, HTML, mark, escape or reversal."""
    question = Question(
        "db",
        text,
        "choice",
        (Option(text.strip() or "x", text), Option("other one")),
        default=None,
        other=True,
    )
    gate = gate_of(
        title=text.strip() or "x", questions=(question,), context=text, agent=text.strip() or "x", to=(text,)
    )
    for each in (gate, *afterwards(gate, text)):
        body = render(View(each, text, text, SITE))
        assert read_mark(body) == CommentMark(ONE, "e" * 40)
        assert_harmless(body)


def afterwards(gate: Gate, text: str) -> list[Gate]:
    """Every end that it may come to, and whatever others wrote into its record on the way there."""
    at = "2026-01-02T00:00:00Z"
    held = Conversation("completed", 5, "DONE", text, text, text, transcript=text)
    said = Answer(ONE, {"db": text, text: text}, "answered", at, "e" * 40, text, text, text, session=held)
    said = replace(said, evidence={"url": text, "login": text, "commit": text})
    counted, late = Counted("f" * 40, said, "f" * 40), Counted("d" * 40, said, "d" * 40)
    claim = Entry("c" * 40, "claimed", Claim(at, "f" * 40, text, text, text, 1, 60, text))
    over = replace(gate, answer=counted, votes=(counted,), late=(late,), claim=claim)
    ended = Outcome(at, "c" * 40, "resumed", text, text, text, text, ("a" * 40, text, "b" * 10 + text))
    ended = replace(ended, said=text, denied=(text, text), left=(text, text), place=text, meant=f"{text}x")
    bare = replace(ended, result="failed", commits=())
    closing = Remark(at, text, text, text, replace(held, outcome="cancelled"))
    return [
        replace(over, state="answered"),
        replace(over, state="resuming"),
        replace(over, state="resumed", outcome=ended),
        replace(over, state="failed", outcome=ended),
        replace(over, state="failed", outcome=bare),
        *(replace(gate, state=state, closing=closing) for state in ("stopped", "withdrawn", "expired")),
    ]


def assert_harmless(body: str) -> None:
    """On the page there is our heading, our folds, our links, and of somebody's words what they wrote as a link."""
    page = rendered(body)
    assert page.acting() == []
    assert all(link.startswith((f"{SITE}/commit/", f"{SITE}/compare/")) for link in page.links)
    assert page.tags.count("details") == page.tags.count("/details")
    assert [tag for tag in page.tags if re.fullmatch("h[1-6]", tag)] == ["h3"]
    for bad in ("\x1b", "\u202e"):
        assert bad not in body


def test_what_the_agent_made_is_linked() -> None:
    """Each commit by its id; what is none stands there as words. Nothing is a link where the site is not known."""
    made = Outcome(
        "2026-01-02T00:00:00Z", "c" * 40, "resumed", branch="feature", commits=("a" * 40, "b" * 64, "b" * 12)
    )
    gate = replace(gate_of(), state="resumed", outcome=made)
    links = [f"[`{oid[:10]}`]({SITE}/commit/{oid})" for oid in made.commits[:2]]
    assert f"What the agent made of it on `feature`: {', '.join(links)}, `bbbbbbbbbbbb`\n" in render(
        View(gate, site=SITE)
    )
    assert "on `feature`: `aaaaaaaaaa`, `bbbbbbbbbb`, `bbbbbbbbbbbb`\n" in render(View(gate))


def ended(text: str, state: str = "resumed") -> Gate:
    came = Outcome(
        *("2026-01-02T00:00:00Z", "c" * 40, state),
        reason=text,
        branch=text,
        said=text,
        denied=(text,),
        left=(text,),
        place=text,
        meant=text + "x",
    )
    return replace(gate_of(), state=state, outcome=came)


def test_what_the_agent_left_is_told() -> None:
    """Its last words, the calls that it was refused, what it did not commit and where, and the branch that its commits missed."""
    body = render(View(ended("the words")))
    assert "Its commits are not on `the wordsx`." in body
    assert "Not committed, in `the words`: `the words`" in body
    assert "Refused to it:\n\n```text\nthe words\n```" in body
    assert "Its last words:\n\n> the words\n" in body
    assert "git gate stop" not in body


def test_a_failed_one_says_what_can_be_done() -> None:
    """The way on, and the way out."""
    body = render(View(ended("the words", "failed")))
    assert f"`git gate resume {ONE}`" in body
    assert f"`git gate stop {ONE} --reason WHY`" in body


REPLY = f"{SITE}/pull/7#issuecomment-5000000001"


def answered(evidence: dict[str, object]) -> Gate:
    said = Answer(
        ONE, {"db": "Postgres"}, "answered", "2026-01-02T00:00:00Z", "e" * 40, "Ada <a@b>", "github"
    )
    counted = Counted("f" * 40, replace(said, evidence=evidence), "f" * 40)
    return replace(gate_of(), state="answered", answer=counted)


@pytest.mark.parametrize(
    "place", [REPLY, f"{SITE}/issues/7#issuecomment-5", f"{SITE}/commit/{'a' * 40}#commitcomment-5"]
)
def test_the_reply_is_linked(place: str) -> None:
    """Where the forge has it; and nowhere as long as nobody knows which forge that is."""
    gate = answered({"url": place})
    assert f"`Ada` said ([the reply]({place})), at" in render(View(gate, site=SITE))
    assert "`Ada` said by `github`, at" in render(View(gate))


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/pull/7#issuecomment-5", f"{SITE}.evil.example/pull/7", f"{SITE}@evil.example/pull/7",
        SITE, f"{SITE}/", f"{SITE}/pull/7) @everyone [x](https://evil.example/x", f"{SITE}/pull/7)", f"{SITE}/pull/7(x",
        f"{SITE}/pull/7 'a title'", f'{SITE}/pull/7"x', f"{SITE}/pull/7\n\n# x", f"{SITE}/pull/7\n", f"{SITE}/pull/7><img",
        f"{SITE}/pull/7]", f"{SITE}/pull/7?x=1", f"{SITE}/../../evil/pull/7", f"{SITE}/pull/é", f"{SITE}/" + "x" * 201,
        "javascript:alert(1)", f"javascript:alert(1)//{SITE}/pull/7", "data:text/html,x", "/pull/7", "", None, 7, ["x"],
    ],
)  # fmt: skip
def test_a_forged_address_is_no_link(place: object) -> None:
    """A record is written by whoever may push: an address of theirs leads nowhere, and stands nowhere."""
    for site in (SITE, ""):
        body = render(View(answered({"url": place}), site=site))
        assert "`Ada` said by `github`, at" in body
        for bad in ("](", SITE, "evil.example", "javascript", "@everyone"):
            assert bad not in body


@given(st.text(max_size=300))
def test_a_span_and_a_block_hold_whatever_is_in_them(text: str) -> None:
    """Nothing gets out of either, and neither stays open."""
    assert outside(f"a {span(text)} b\n") == "a CODE b\n"
    assert outside(f"a\n\n{block(text, 1000)}\n\nb") == "a\n\n\nb"


@pytest.mark.parametrize("unit", ["a", "é", "\U0001f600", "`", "word ", "\n"])
@pytest.mark.slow
def test_it_is_never_too_long(unit: str) -> None:
    """Within 65,536 characters however much there is; what is cut is said to be, and the way to answer stays."""
    much = unit * (200_000 // len(unit))
    questions = tuple(Question(f"q{n}", much[:20_000] or "?", "text") for n in range(20))
    for asked in ((Question("q", "?" + much[:60_000], "text"),), questions):
        body = render(View(gate_of(questions=asked, context=much), much, much, SITE))
        assert size(body) <= 65_536
        assert "/answer" in body
        outside(body)


@pytest.mark.parametrize(
    "body",
    ["", "x\n<!-- gitgate gate=7k2fw9c3ab seen=" + "d" * 40 + " -->", "<!-- gitgate gate=7k2f seen=1 -->"],
)
def test_a_mark_is_the_first_line_or_none(body: str) -> None:
    """Further down it is somebody's text."""
    assert read_mark(body) is None


def test_a_cut_is_at_a_line() -> None:
    """The rest is where the record is."""
    assert clipped("one\ntwo\nthree", 9) == "one\ntwo\n… (cut here)"
    assert size(clipped("\U0001f600" * 50, 21)) < 21 + 20


TALKED = Question("s", "Approve the schema?", "session", talk=Talk("approval", timeout=1800, system="Help."))
HELD = Conversation("completed", 342, "DONE", "@everyone looks good", transcript="secret talk")


def test_a_conversation_says_how_to_join_and_that_words_do_too() -> None:
    """The command, how long it may take, and replies by its outcome."""
    body = render(View(gate_of(questions=(TALKED,))))
    for words in (
        f"`git gate join {ONE}`",
        "It lasts 30m at most",
        "one typed here is an answer too",
        "/approve",
        "/reject why not",
    ):
        assert words in body
    assert "git gate join" not in render(View(gate_of()))


@pytest.mark.parametrize(
    ("talk", "options", "reply"),
    [
        (None, (), "/answer your words"),
        (Talk("selection"), (Option("Blue"), Option("Green")), "/choose Blue"),
        (Talk("structured"), (), "/answer field: value"),
    ],
)
def test_every_outcome_has_its_reply(talk: Talk | None, options: tuple[Option, ...], reply: str) -> None:
    """As a question of that type has."""
    asked = Question("s", "Which?", "session", options, schema={"type": "object"}, talk=talk)
    assert reply in render(View(gate_of(questions=(asked,))))


def test_an_ended_conversation_is_told_without_what_was_said() -> None:
    """Outcome, duration and summary, in code; the transcript never."""
    said = Answer(
        ONE, {"s": True}, "approved", "2026-01-02T00:00:00Z", "e" * 40, "Ada <a@b>", "join", session=HELD
    )
    gate = replace(gate_of(questions=(TALKED,)), state="answered", answer=Counted("f" * 40, said, "f" * 40))
    body = render(View(gate))
    for words in ("Approved", "conversation of 5m42s · DONE", "@everyone looks good"):
        assert words in body
    assert "secret talk" not in body
    assert rendered(body).acting() == []
    assert "git gate join" not in body


def test_a_conversation_that_ran_out_is_told() -> None:
    """As a timeout, with how long it took."""
    ended = Remark(
        "2026-01-02T00:00:00Z",
        "Ada <a@b>",
        "the time was up",
        "join",
        Conversation("timeout", 1860, transcript="whispers"),
    )
    body = render(View(replace(gate_of(questions=(TALKED,)), state="stopped", closing=ended)))
    assert "Stopped" in body
    assert "timeout, conversation of 31m" in body
    assert "whispers" not in body


def vote(by: str, *, approved: bool, **evidence: object) -> Counted:
    said = Answer(
        ONE, {"ok": approved}, "approved", "2026-01-02T00:00:00Z", "e" * 40, by, "github", evidence=evidence
    )
    return Counted("f" * 40, said, "f" * 40)


@pytest.mark.parametrize("state", ["awaiting", "answered"])
def test_where_several_decide_each_vote_is_named_and_linked(state: str) -> None:
    """While it waits and afterwards, to the reply that it was; a link that leads elsewhere is none."""
    reply = f"{SITE}/pull/7#issuecomment-1"
    votes = (
        vote("ada <1+ada@users.noreply.github.com>", approved=True, url=reply),
        vote("@everyone <x@y>", approved=False, url="https://evil.example/x"),
    )
    asked = gate_of(questions=(Question("ok", "Deploy?", "approval"),), quorum=2)
    body = render(View(replace(asked, state=state, votes=votes), site=SITE))
    assert f"- `ada` said `approved` ([the reply]({reply})), at 2026-01-02T00:00:00Z" in body
    assert "- `@everyone` said `rejected` by `github`" in body
    assert "evil" not in body
    assert "@everyone" not in outside(body)
    alone = replace(gate_of(questions=(Question("ok", "Deploy?", "approval"),)), votes=votes)
    assert "- `ada`" not in render(View(alone, site=SITE))


@pytest.mark.parametrize(
    ("log", "words"), [("", "the agent could not be started"), ("/x/7k2f.log", "the agent failed")]
)
def test_an_agent_that_ran_and_failed_was_started(log: str, words: str) -> None:
    """Nothing was written down of one that was not."""
    ended = Outcome("2026-01-02T00:00:00Z", "c" * 40, "failed", "runner", "exit code 3", log)
    body = render(View(replace(gate_of(), state="failed", outcome=ended)))
    assert f"### ⚠️ Answered, but {words}\n" in body
    assert "exit code 3" in body
