"""Words that people type elsewhere: told what counts, once; an answer where the protected branch says `replies: plain`; and thumbs."""

from __future__ import annotations

import pytest

from gitgate.model.gate import Asker, Entry, Gate, Opened, Option, Question, Work
from gitgate.record.events import begin
from gitgate.surfaces.forge import is_common_word, may_answer, parse_reply, word_of, word_reply
from support.resuming import Agent
from support.testbed.repositories import Clone

from .conftest import THREAD, Team

ONE = "7k2fw9c3ab"
OPTIONS = ("Postgres", "SQLite", "3", "yes")


def gate_of(*questions: Question) -> Gate:
    opened = Opened("title", questions, Asker("agent", "2026-01-01T00:00:00Z"), Work(None, None, None), "n")
    return begin(ONE, Entry("a" * 40, "opened", opened), opened)


APPROVAL = gate_of(Question("ok", "Deploy?", "approval"))
CHOICE = gate_of(Question("db", "Which?", "choice", tuple(Option(label) for label in OPTIONS)))
TEXT = gate_of(Question("q", "Why?", "text"))
BOTH = gate_of(Question("a", "Why?", "text"), Question("ok", "Deploy?", "approval"))


@pytest.mark.parametrize(
    ("gate", "body", "verb"),
    [
        *((APPROVAL, word, "approve") for word in ("approve", "Approved", "LGTM", "lgtm!", "yes.", "/lgtm", " yes ")),
        *((APPROVAL, word, "reject") for word in ("no", "No.", "NO!")),
        *((CHOICE, word, "choose") for word in ("postgres", "SQLite", "1", "#2", "yes", "#3")),
        *((CHOICE, word, "") for word in ("lgtm", "no", "approved")),
        *((gate, word, "") for gate in (TEXT, BOTH) for word in ("yes", "no", "LGTM")),
        *((gate, word, None) for gate in (APPROVAL, CHOICE, TEXT, BOTH) for word in (
            "thanks", "yes please do it", "yes\nno", "> yes", "`yes`", "~~~\nyes", "    yes\n\nx", "", "👍", "yes?", "no way", "Post", "9", "0", "<b>yes</b>",
            "<!-- x -->yes", "[yes](x)", "y" * 200, "approve approve", "nope", "1, 2", "other: x", "- yes\n- no", "# yes\nx", "#", "１",
        )),
    ],
)  # fmt: skip
def test_a_whole_comment_is_such_a_word(gate: Gate, body: str, verb: str | None) -> None:
    """And nothing that is more, or that is quoted, code, or hidden; a command is read as ever."""
    said = word_reply(body, gate)
    assert (said.verb if said is not None else None) == verb
    if said is not None:
        assert word_of(body)
        assert may_answer(body) is is_common_word(word_of(body))
        assert parse_reply(body, [ONE]) is None


def test_a_number_that_may_be_two_options_is_none() -> None:
    """One by its place, another by its name: nobody can tell."""
    two = gate_of(Question("n", "How many?", "choice", tuple(Option(label) for label in ("2", "1"))))
    assert word_reply("1", two) is None


@pytest.mark.slow
@pytest.mark.parametrize("word", ["LGTM", "approve", "/lgtm"])
def test_a_word_is_told_what_counts_once(team: Team, word: str) -> None:
    """Each person, by an event or a sweep; a stranger hears nothing, and talk is left alone."""
    gate = team.ask("Deploy?", "--type", "approval")
    assert team.reply(word, "eve")["outcome"] == "ignored"
    assert team.reply("sounds good to me")["outcome"] == "ignored"
    assert team.reply(word)["outcome"] == "unclear"
    (told,) = team.told()
    assert "this is no answer yet" in told
    assert "\n/approve\n" in told
    assert "\n/reject why not\n" in told
    assert team.reply("yes")["outcome"] == "unclear"
    team.forge.write(THREAD, "grace", "yes")
    team.forge.write(THREAD, "grace", "no")
    for _ in range(2):
        team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert len(team.told()) == 2
    assert team.gate(gate)["state"] == "awaiting"
    assert team.reply("/approve")["outcome"] == "answered"
    assert team.reply("lgtm", "grace")["outcome"] == "ignored"  # nothing waits


@pytest.mark.slow
def test_an_option_is_told_and_talk_asks_nothing_of_the_forge(team: Team) -> None:
    """What options are called the gates say, which are here: of other short comments no question is asked."""
    team.ask("Which?", "-o", "Postgres", "-o", "SQLite", "--no-other")
    before = len(team.forge.asked)
    assert team.reply("thanks")["outcome"] == "ignored"
    assert [one for one in team.forge.asked[before:] if "/comments" in one] == []
    assert team.reply("postgres")["outcome"] == "unclear"
    assert "\n/choose 1\n" in team.told()[0]


@pytest.fixture
def plain(team: Team) -> Clone:
    """The default branch says that words count."""
    return protected(team, "policy:\n  replies: plain\n")


def protected(team: Team, text: str) -> Clone:
    clone = team.clone_of(team.bare, f"maintainer{team.jobs}")
    clone.git("checkout", "-q", "main")
    clone.commit("Say what counts", **{".gitgate.yml": text})
    clone.git("push", "-q", "origin", "main")
    team.agents.git("fetch", "-q", "origin")
    return clone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "word", "value"),
    [("approval", "lgtm", True), ("approval", "No.", False), ("choice", "sqlite", "SQLite"), ("choice", "1", "Postgres")],
)  # fmt: skip
def test_a_word_is_the_answer_where_the_protected_branch_says_so(
    team: Team, agent: Agent, plain: Clone, kind: str, word: str, value: object
) -> None:
    """Row 35: of whoever may write, alone; and the next job believes it, reading the comment once more."""
    options = ("-o", "Postgres", "-o", "SQLite") if kind == "choice" else ()
    gate = team.ask("Which?", "--type", kind, *options)
    assert "A comment that is only" in team.shown(gate)
    assert team.reply(word, "eve")["outcome"] == "ignored"
    assert team.reply(word)["outcome"] == "answered"
    now = team.gate(gate)
    assert list(now["answer"]["values"].values()) == [value]
    assert now["answer"]["evidence"]["login"] == "ada"
    said = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert (said["resume"], said["doubts"]) == ([gate], {})
    protected(team, "policy: {}\n")
    said = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert list(said["doubts"]) == [gate]
    assert agent.starts == []


@pytest.mark.slow
def test_a_word_counts_for_one_gate_alone(team: Team, plain: Clone) -> None:
    """Row 35: where several wait it is talk; and what came before the question, or was edited, is no answer."""
    team.forge.write(THREAD, "ada", "yes")
    first = team.ask("Deploy?", "--type", "approval")
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert team.gate(first)["state"] == "awaiting"
    edited = dict(team.forge.write(THREAD, "grace", "no"))
    team.forge.edit(edited["id"], "yes")
    assert team.hear(edited).json["outcome"] == "refused"
    second = team.ask("And the docs?", "--type", "approval")
    assert team.reply("yes")["outcome"] == "ignored"
    assert [team.gate(one)["state"] for one in (first, second)] == ["awaiting", "awaiting"]


@pytest.mark.slow
def test_a_branch_does_not_make_words_count(team: Team) -> None:
    """Row 35: what the agent's own branch says of it is nobody's word; and what was told to be no answer is none later."""
    team.agents.commit("Sneak", **{".gitgate.yml": "policy:\n  replies: plain\n"})
    team.agents.git("push", "-q", "origin", "feature")
    gate = team.ask("Deploy?", "--type", "approval")
    job = team.job()
    job.git("checkout", "-q", "feature")
    event = team.event_file(team.forge.event(team.forge.write(THREAD, "ada", "yes")))
    said = team.cli.quick("github", "accept", str(event), "--json", cwd=job.path, code=0)
    assert said.json["outcome"] == "unclear"
    protected(team, "policy:\n  replies: plain\n")
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert team.gate(gate)["state"] == "awaiting"
    assert team.reply("yes", "grace")["outcome"] == "answered"


@pytest.mark.slow
def test_the_policy_decides_whose_word_it_is(team: Team) -> None:
    """Row 35: as of any reply."""
    protected(team, "policy:\n  replies: plain\n  who: ['@grace']\n")
    gate = team.ask("Deploy?", "--type", "approval")
    assert team.reply("lgtm")["outcome"] == "refused"
    assert team.reply("lgtm", "grace")["outcome"] == "answered"
    assert team.gate(gate)["answer"]["evidence"]["login"] == "grace"


@pytest.mark.slow
def test_a_thumb_is_no_answer_and_is_told_so_once(team: Team) -> None:
    """The forge says how many there are, and not whose; so nobody's counts."""
    gate = team.ask("Deploy?", "--type", "approval")
    (ours,) = [one for one in team.forge.comments.values() if f"gate={gate}" in one["body"]]
    ours["reactions"] = {"+1": 1, "-1": 0, "total_count": 1}
    for _ in range(2):
        team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    (told,) = team.told()
    assert "a reaction is no answer" in told
    assert team.gate(gate)["state"] == "awaiting"
