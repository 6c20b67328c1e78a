"""What a sweep costs on GitLab: requests, counted where they arrive. A quiet one asks for all notes at once; and nothing is missed for that."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from support.forges.gitlab import START, GitLabForge, complexity

from .conftest import THREAD, Team

pytestmark = [pytest.mark.usefixtures("agent"), pytest.mark.slow]

GATES = 23
NOTES = "POST /api/graphql"


@pytest.fixture(autouse=True)
def same_clock(forge: GitLabForge) -> None:
    """The forge's clock is this machine's."""
    forge.ticks = int(time.time()) - START


def ask_on_each(team: Team, count: int) -> dict[int, str]:
    """So many gates, each on a merge request of its own, shown and with its status; by its number."""
    gates = {}
    for number in range(10, 10 + count):
        team.agents.git("checkout", "-q", "-b", f"b{number}")
        team.agents.git("commit", "-q", "--allow-empty", "-m", f"{number}")
        team.agents.git("push", "-q", "origin", f"b{number}")
        team.forge.open_merge(number, f"b{number}", team.agents.git("rev-parse", "HEAD"))
        gates[number] = team.ask(f"Which {number}?", show=False)
    team.sweep()
    assert len(team.forge.statuses) == count + 1
    return gates


def swept(team: Team) -> tuple[Any, list[str]]:
    """One sweep: what it said, and what it asked for."""
    team.forge.asked.clear()
    said = team.sweep("--json").json
    assert said["trouble"] == []
    return said, list(team.forge.asked)


def notes_read(asked: list[str]) -> list[int]:
    """The merge requests whose notes were asked for one by one."""
    return [
        int(one.split("/notes?")[0].rpartition("/")[2])
        for one in asked
        if one.startswith("GET ") and "/notes?" in one
    ]


def test_a_sweep_over_many_gates(team: Team, forge: GitLabForge) -> None:
    """Over 23 gates and 24 merge requests a quiet one takes who we are, the merge requests, all notes at once, and each status. One
    in which people talk and give emoji on each takes no more, and where GraphQL does not tell, it is two for each gate.
    """
    gates = ask_on_each(team, GATES)
    said, asked = swept(team)
    assert (said["accepted"], said["shown"]) == ([], [])
    assert len(asked) == GATES + 1 + 3 <= 30, Counter(asked)
    assert [one for one in asked if not one.startswith("GET ")] == [NOTES]

    for number in gates:
        note = forge.write(number, "ada", "I would look at the tests first.")
        forge.award(note["id"], "grace.h", "tada")
        forge.write(number, "grace.h", "By the way.", type="DiffNote")
    said, asked = swept(team)
    assert (said["accepted"], said["shown"]) == ([], [])
    assert len(asked) <= 30, Counter(asked)

    forge.older = True
    said, asked = swept(team)
    assert (said["accepted"], said["shown"]) == ([], [])
    assert sorted(notes_read(asked)) == [THREAD, *gates]
    assert len(asked) <= 2 * GATES + 5, Counter(asked)


def test_nothing_is_missed_for_it(team: Team, forge: GitLabForge) -> None:
    """A reply in one of many, one on a diff, one that names a gate elsewhere, a removed note and a changed one: all are seen."""
    gates = ask_on_each(team, 5)
    forge.write(10, "ada", "/answer Postgres")
    forge.write(11, "ada", "/answer SQLite", type="DiffNote")
    forge.write(THREAD, "ada", f"/answer {gates[12]} MySQL")
    (removed,) = [n for n, one in forge.notes.items() if f"gate={gates[13]} seen=" in one["body"]]
    del forge.notes[removed]
    (changed,) = [n for n, one in forge.notes.items() if f"gate={gates[14]} seen=" in one["body"]]
    forge.edit(changed, forge.notes[changed]["body"].replace("Which 14?", "Which of yours?"))
    said, _ = swept(team)
    assert [one["outcome"] for one in said["accepted"]] == ["answered"] * 3
    assert [team.gate(gates[one])["state"] for one in (10, 11, 12)] == ["answered"] * 3
    assert "Which 13?" in team.shown(gates[13])
    assert "Which 14?" in team.shown(gates[14])


def test_an_answer_costs_no_other_gate_anything(team: Team, forge: GitLabForge) -> None:
    """Fourteen requests where it stands, and three for who may write; one for each of the others, and three for all."""
    ask_on_each(team, 5)
    for number in (11, 12):
        forge.write(number, "ada", "/answer Postgres")
    said, asked = swept(team)
    assert [one["outcome"] for one in said["accepted"]] == ["answered"] * 2
    assert len(asked) <= 2 * 14 + 3 + (5 + 1 - 2) + 3, Counter(asked)


def test_only_where_something_may_be_a_reply_notes_are_read(team: Team, forge: GitLabForge) -> None:
    """And what is taken is what stands there then: of a reply that was edited, and of an internal one, nothing is."""
    gates = ask_on_each(team, 4)
    note = forge.write(11, "ada", "/answer MySQL")
    forge.edit(note["id"], "/answer Oracle")
    forge.write(12, "ada", "/answer Redis", internal=True)
    forge.write(13, "mallory", "/answer Redis")
    said, asked = swept(team)
    assert {one["outcome"] for one in said["accepted"]} == {"refused"}
    assert set(notes_read(asked)) == {11, 13}
    assert {team.gate(gate)["state"] for gate in gates.values()} == {"awaiting"}
    said, asked = swept(team)
    assert (said["accepted"], notes_read(asked)) == ([], [])


def test_an_answer_that_is_edited_afterwards_is_not_acted_on(team: Team, forge: GitLabForge) -> None:
    """Its note is asked for anew each time, by itself."""
    gates = ask_on_each(team, 3)
    note = forge.write(11, "ada", "/answer MySQL")
    assert swept(team)[0]["resume"] == [gates[11]]
    forge.edit(note["id"], "/answer Oracle")
    said, _ = swept(team)
    assert (said["resume"], "edited afterwards" in said["doubts"][gates[11]]) == ([], True)


def test_a_long_talk_is_read_by_itself(team: Team, forge: GitLabForge) -> None:
    """An answer on a later page counts as any other; so does one beside a note whose author GitLab does not tell by GraphQL."""
    gates = ask_on_each(team, 4)
    forge.graph_page = 5
    forge.write(11, "ada", "/answer Postgres")
    for number in range(4):
        forge.write(11, "grace.h", f"talk {number}")
    nameless = forge.write(12, "grace.h", "talk")
    forge.nameless.add(nameless["id"])
    forge.write(12, "ada", "/answer SQLite")
    said, asked = swept(team)
    assert {one["gate"] for one in said["accepted"]} == {gates[11], gates[12]}
    assert set(notes_read(asked)) == {11, 12}
    _, asked = swept(team)
    assert set(notes_read(asked)) == {11, 12}


def test_a_reply_at_the_last_moment_is_heard_before_the_deadline(team: Team, forge: GitLabForge) -> None:
    """Where a deadline is near, its notes are read anew right before it passes."""
    ask_on_each(team, 3)
    team.agents.git("checkout", "-q", "feature")
    gate = team.ask("In time?", "--timeout", "59s")
    _, asked = swept(team)
    assert notes_read(asked) == [THREAD]
    assert team.gate(gate)["state"] == "awaiting"


@pytest.mark.parametrize("gone", ["errors", "project", "denied"])
def test_where_graphql_does_not_tell_each_is_read(
    team: Team, forge: GitLabForge, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More requests, and the same outcome."""
    gates = ask_on_each(team, 3)
    monkeypatch.setattr("gitgate.surfaces.forge.hosts.web.PAUSES", (0.0,))
    forge.older = gone == "errors"
    forge.hidden = gone == "project"
    forge.graphql = gone != "denied"
    forge.write(11, "ada", "/answer Postgres")
    forge.asked.clear()
    said = team.sweep("--json").json
    assert [one["gate"] for one in said["accepted"]] == [gates[11]]
    assert {10, 11, 12} <= set(notes_read(forge.asked))


def test_the_limits_of_a_query_are_kept() -> None:
    """As GitLab counts them; and the rule that the tests above rely on sees one that is over."""
    from gitgate.surfaces.forge.hosts.gitlab import AT_ONCE, EDITS, TALK
    from support.forges import graph
    from support.forges.gitlab import GRAPH, LONGEST_QUERY, MOST_COMPLEX

    given: dict[str, Any] = {"project": "a/b", "numbers": [str(one) for one in range(AT_ONCE)]}
    tree = graph.hold({"query": TALK, "variables": given}, GRAPH)
    assert complexity(tree) < MOST_COMPLEX // 2
    assert len(TALK) < LONGEST_QUERY
    assert f"first: {AT_ONCE})" in TALK
    graph.hold({"query": EDITS, "variables": {"project": "a/b", "number": "7"}}, GRAPH)
    deep = tree["project"][1]["mergeRequests"][1]
    assert complexity({f"m{number}": ({}, deep) for number in range(9)}) > MOST_COMPLEX
    for old, new in (("ONLY_COMMENTS", "COMMENTS"), ("[String!]", "String"), ("iids:", "iid:"), ("body", "text")):  # fmt: skip
        with pytest.raises(AssertionError):
            graph.hold({"query": TALK.replace(old, new), "variables": given}, GRAPH)
