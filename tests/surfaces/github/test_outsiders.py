"""Who may not write costs one word; and a reply in another thread counts where its gate is shown."""

from __future__ import annotations

import pytest

from support.resuming import Agent

from .conftest import THREAD, Team

pytestmark = pytest.mark.slow  # each takes a second or more

OTHER = 8


@pytest.mark.parametrize(
    "body", ["/approve", "/approve\n/reject", "/stop it", "/choose 3", "/answer thanks2345 x"]
)
@pytest.mark.parametrize("gates", [1, 2])
def test_an_outsider_costs_one_word(team: Team, body: str, gates: int) -> None:
    """Whatever they write, however often, edited or not, waiting or late: seen each time, told once."""
    names = [team.ask(f"Deploy {number}?", "--type", "approval") for number in range(gates)]
    for _ in range(2):
        assert team.reply(body, "eve")["outcome"] == "refused"
    edited = dict(team.forge.write(THREAD, "eve", body))
    team.forge.edit(edited["id"], f"{body} please")
    team.hear(edited)
    assert len(team.told()) == 1
    assert team.posts() == gates + 1
    assert "may write" in team.told()[0]
    assert [word for _, word, _ in team.forge.reactions].count("eyes") == 3
    assert {team.gate(name)["state"] for name in names} == {"awaiting"}


def test_an_outsider_who_is_late_costs_one_word(team: Team) -> None:
    """They do not hear who was first, each time."""
    team.ask("Which?")
    team.reply("/answer Postgres")
    for _ in range(3):
        assert team.reply("/answer MySQL", "eve")["outcome"] == "refused"
    assert len(team.told()) == 1
    assert team.posts() == 2


def test_an_outsider_who_names_gates_that_are_not_costs_one_word(team: Team) -> None:
    """A name that nobody has is no way to another word."""
    team.ask("Which?")
    for name in ("2222222222", "3333333333", "4444444444"):
        team.reply(f"/answer {name} x", "eve")
    assert len(team.told()) == 1
    assert team.posts() == 2


def test_whoever_may_write_is_seen_at_once(team: Team) -> None:
    """Also when the reply cannot be taken."""
    team.ask("Which?")
    team.ask("Deploy?", "--type", "approval")
    for body in ("/approve", "/approve\n/reject"):
        comment = team.forge.write(THREAD, "ada", body)
        assert team.hear(comment).json["outcome"] == "unclear"
        assert [word for number, word, _ in team.forge.reactions if number == comment["id"]] == [
            "eyes",
            "confused",
        ]


def test_talk_costs_no_request_whoever_wrote_it(team: Team) -> None:
    """An event may say something else than the comment does; then that is the only request."""
    team.ask("Which?")
    comment = team.forge.write(THREAD, "eve", "I would say that it is fine, a statement of management")
    before = len(team.forge.asked)
    assert team.hear({**comment, "body": "/approve"}).json["outcome"] == "ignored"
    assert len(team.forge.asked) == before + 1


@pytest.fixture
def other(team: Team) -> int:
    team.forge.open_pull(OTHER, "other", "e" * 40)
    team.forge.issues.add(OTHER)
    return OTHER


def test_a_reply_in_another_thread_counts_where_its_gate_is_shown(
    team: Team, agent: Agent, other: int
) -> None:
    """One comment a gate, and it says who answered; its status moves; and there is a word where the reply was written."""
    gate = team.ask("Which?")
    said = team.hear(team.forge.write(other, "ada", f"/answer {gate} Postgres"), "--resume")
    assert '"answered"' in said.out
    assert agent.starts == [gate]
    assert "Answered" in team.shown(gate)
    assert team.forge.statuses[-1]["state"] == "success"
    assert team.forge.statuses[-1]["sha"] == team.forge.pulls[THREAD]["head"]["sha"]
    (word,) = team.told()
    assert f"counts for gate **{gate}**" in word
    assert f"/pull/{THREAD}#" in word or f"/issues/{THREAD}#" in word


def test_a_sweep_hears_it_where_another_gate_waits(team: Team, other: int) -> None:
    """And once only."""
    gate = team.ask("Which?")
    team.agents.git("checkout", "-q", "-b", "other")
    team.ask("What?")
    team.forge.write(other, "ada", f"/answer {gate} Postgres")
    for outcomes in (["answered"], []):
        said = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
        assert [one["outcome"] for one in said["accepted"]] == outcomes
    assert list(team.gate(gate)["answer"]["values"].values()) == ["Postgres"]
    assert len([c for c in team.forge.by("github-actions[bot]") if f"gate={gate} seen=" in c["body"]]) == 1


def test_a_gate_that_was_shown_nowhere_yet_is_shown_at_home(team: Team, other: int) -> None:
    """Its first comment goes to its own thread, and the word where it was answered leads there."""
    gate = team.ask("Which?", show=False)
    team.cli.quick("sync", cwd=team.agents.path, code=0)
    assert team.reply(f"/answer {gate} Postgres", thread=other)["outcome"] == "answered"
    (ours,) = [c for c in team.forge.by("github-actions[bot]") if f"gate={gate} seen=" in c["body"]]
    assert ours["issue_url"].endswith(f"/{THREAD}")
    assert ours["html_url"] in team.told()[0]


def test_a_stop_that_is_delivered_twice_is_one(team: Team, other: int) -> None:
    """Its author is not told that they were too late for themselves."""
    gate = team.ask("Which?")
    comment = team.forge.write(other, "ada", f"/stop {gate} we do it differently")
    assert team.hear(comment).json["outcome"] == "stopped"
    assert team.hear(comment).json["outcome"] == "again"
    assert len(team.told()) == 1
    assert team.posts() == 2


def test_what_does_not_fit_is_told_where_it_was_written(team: Team, other: int) -> None:
    """With examples that name the gate: in that thread nothing else would say which is meant."""
    gate = team.ask("Which?", "-o", "Postgres", "-o", "SQLite", "--no-other")
    assert team.reply(f"/choose {gate} 9", thread=other)["outcome"] == "unclear"
    assert f"/choose {gate} 1" in team.told()[0]
    assert team.reply("/choose 1", thread=other)["outcome"] == "ignored"
    assert team.gate(gate)["state"] == "awaiting"


def test_an_outsider_costs_a_sweep_no_more_the_more_they_write(team: Team) -> None:
    """Whether they may write by now is asked once; and what others wrote is heard."""
    gate = team.ask("Which?")
    team.reply("/answer MySQL", "eve")
    for number in range(6):
        team.forge.write(THREAD, "eve", f"/answer MySQL {number}")
    team.forge.write(THREAD, "ada", "/answer Postgres")
    before = len(team.forge.asked)
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    asked = [one for one in team.forge.asked[before:] if "eve/permission" in one]
    assert len(asked) == 1
    assert len(team.told()) == 1
    assert team.posts() == 2
    assert list(team.gate(gate)["answer"]["values"].values()) == ["Postgres"]
