"""The page of a check run beside the status: the question while it waits, notes on the lines of the work, and its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.model.gate import Option, Question
from gitgate.surfaces.forge.comment import MOST_NOTES, View, page_of, touched
from support.forges.standin import Forge
from support.resuming import Agent
from support.testbed.repositories import Clone

from .conftest import THREAD, Team
from .pages import rendered
from .test_comment import HOSTILE, SITE, gate_of
from .test_prose import texts
from .test_sweeps import said_of, sweep

URL = f"{SITE}/pull/7"
slow = pytest.mark.slow  # each takes a second or more


def ends(forge: Forge) -> list[tuple[object, object]]:
    return [(one["status"], one["conclusion"]) for one in forge.checks]


@slow
def test_a_question_is_a_page_beside_the_status(team: Team, agent: Agent) -> None:
    """Action is required while it waits, with the question, its options and the work; once, however often it is looked at."""
    team.agents.write("login.py", "one\ntwo\n")
    team.agents.git("add", "-A")
    team.agents.git("commit", "-qm", "Login")
    team.agents.git("push", "-q", "origin", "feature")
    team.forge.pulls[THREAD]["head"]["sha"] = team.agents.git("rev-parse", "HEAD")
    team.agents.write("login.py", "one\nTWO\n")
    gate = team.ask("Which **database**?", "-o", "Postgres", "-o", "SQLite", "--context", "Two machines")
    sweep(team)
    check = team.forge.checks[-1]
    assert ends(team.forge) == [("completed", "action_required")]
    assert check["head_sha"] == team.forge.pulls[THREAD]["head"]["sha"]
    output = check["output"]
    assert isinstance(output, dict)
    assert "Which **database**?" in output["summary"]
    assert "1. **Postgres** → `/choose 1`" in output["summary"]
    assert f"[the conversation]({team.forge.site}/pull/{THREAD})" in output["summary"]
    assert "1 file changed" in output["text"]
    assert [(one["path"], one["start_line"], one["end_line"]) for one in output["annotations"]] == [
        ("login.py", 2, 2)
    ]
    assert gate in output["annotations"][0]["message"]
    sweep(team)
    assert len(team.forge.checks) == 1
    team.reply("/choose 2")
    assert ends(team.forge) == [("completed", "action_required"), ("in_progress", None)]
    assert said_of(team, THREAD)[-1] == "pending"
    team.cli.quick("github", "resume", gate, cwd=team.job().path, code=0)
    assert agent.ends == [gate]
    assert ends(team.forge)[0] == ("completed", "action_required")


@slow
def test_a_decided_question_is_a_check_that_is_completed(team: Team) -> None:
    """As its status says: a failure where it was stopped, success where somebody answered and nobody has to go on."""
    team.ask("Which?")
    team.reply("/stop no")
    assert ends(team.forge) == [("completed", "failure")]
    team.pass_time(1)
    team.ask("And now?")
    sweep(team)
    assert ends(team.forge)[-1] == ("completed", "action_required")
    team.reply("/answer Postgres")
    assert said_of(team, THREAD)[-1] == "success"
    assert ends(team.forge)[-1] == ("completed", "success")


@slow
def test_a_token_that_may_not_write_checks_says_so_once(team: Team) -> None:
    """A person's may not, by GitHub's own rule: the status stays, and nothing fails."""
    team.ask("Which?", show=False)
    here = team.job()
    person = {"GITGATE_GITHUB_TOKEN": "ada-token"}
    said = [
        team.cli.quick("github", "sweep", "--json", cwd=here.path, env=person, code=0).json for _ in range(2)
    ]
    assert team.forge.checks == []
    assert said_of(team, THREAD) == ["pending"]
    assert [[word for word in one["noted"] if "Checks: write" in word] != [] for one in said] == [True, False]
    assert [one["trouble"] for one in said] == [[], []]


@slow
def test_no_check_where_nothing_was_asked(team: Team) -> None:
    """The status alone may be required there."""
    sweep(team)
    assert said_of(team, THREAD) == ["success"]
    assert team.forge.checks == []


@given(st.one_of(st.sampled_from(HOSTILE), texts))
def test_nothing_in_a_check_acts(text: str) -> None:
    """What an agent writes, and what its files hold, is as inert as in the comment; the rest of the page stays below it."""
    question = Question("db", text or "?", "choice", (Option(text or "a", text), Option("b")))
    gate = gate_of(questions=(question,), title=text or "?", agent=text)
    page = page_of([View(gate, text, text, SITE)], "pending", "waits", URL, "a" * 40)
    assert "\n" not in page.title
    shown = rendered(f"<!-- ours -->\n{page.summary}")
    assert shown.acting() == []
    assert shown.links[0] == URL
    assert "github.com" not in "".join(shown.links[1:])
    work = rendered(f"<!-- ours -->\n{page.text}")
    assert (work.acting(), work.links) == ([], [])


# the lines that a diff changes


@pytest.mark.parametrize(
    ("diff", "lines"),
    [
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", [("x", 2, 2)]),
        ("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a", [("x", 1, 1)]),
        ("--- a/x\n+++ b/x\n@@ -5,0 +6,2 @@\n+a\n+b", [("x", 5, 5)]),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b", []),
        ("--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b", [("x", 1, 2)]),
        ('--- "a/\\303\\274"\n+++ "b/\\303\\274"\n@@ -1 +1 @@\n-a\n+b', []),
        ("--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b", [("x y", 1, 1)]),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/evil\n+++ b/evil\n c\n@@ -9 +9 @@\n-a\n+b", [("x", 1, 1), ("x", 9, 9)]),
        ("--- a/x\n+++ b/x\n@@ -1,5 +1,3 @@\n-a\n b\n c\n-d\n-e\n+f", [("x", 1, 1), ("x", 4, 5)]),
    ],
)  # fmt: skip
def test_the_lines_that_a_diff_changes(diff: str, lines: list[tuple[str, int, int]]) -> None:
    """By their numbers before it; a line that looks like the diff's own words is none of them."""
    assert list(touched(diff)) == lines


@given(st.one_of(texts, st.text(alphabet="@-+ \n0123456789,a/\\", max_size=300)))
def test_any_text_is_a_diff_or_none(text: str) -> None:
    """It ends, and what it finds are lines."""
    for _, first, last in touched(text):
        assert 1 <= first <= last


def old_new(repo: Clone, before: list[str], after: list[str]) -> list[tuple[int, int]]:
    repo.write("x", "".join(f"{line}\n" for line in before))
    repo.git("add", "-A")
    repo.git("commit", "-qm", "x")
    repo.write("x", "".join(f"{line}\n" for line in after))
    return [(first, last) for _, first, last in touched(repo.git("diff", "HEAD"))]


def test_as_git_tells_them(repo: Clone) -> None:
    """A real diff with its context."""
    before = [str(number) for number in range(1, 41)]
    after = [*before[:4], "five", *before[5:20], "new", *before[20:29], *before[31:]]
    assert old_new(repo, before, after) == [(5, 5), (20, 20), (30, 31)]


def test_of_many_lines_so_many_are_noted(repo: Clone) -> None:
    """As many as one request takes."""
    diff = "--- a/x\n+++ b/x\n" + "".join(f"@@ -{n} +{n} @@\n-a\n+b\n" for n in range(1, 200))
    page = page_of([View(gate_of(), "", diff)], "pending", "waits", URL, "a" * 40)
    assert len(page.notes) == MOST_NOTES
    other = page_of([View(gate_of(), "", diff)], "pending", "waits", URL, "c" * 40)
    assert other.notes == ()  # the head has other lines
