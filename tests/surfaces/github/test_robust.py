"""What a forge, its people and the time may do to a gate's comment: removed, doubled, edited, cut off, delayed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gitgate.surfaces.forge.hosts.github import GitHub, headers
from gitgate.surfaces.forge.hosts.web import ForgeFailed, Unclear, Web
from gitgate.surfaces.forge.posting import load_board, post_once
from support.forges.routes import ROBOT
from support.forges.standin import START, Fault, Forge
from support.resuming import Agent

from .conftest import THREAD, Team


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def hub(forge: Forge, pauses: list[float]) -> GitHub:
    web = Web(forge.api, "job-token", headers=headers(), pause=pauses.append, clock=lambda: START)
    return GitHub(web, forge.repository, forge.site, job=True)


# the way there


def test_an_answer_that_breaks_off_is_asked_for_again(hub: GitHub, forge: Forge, pauses: list[float]) -> None:
    """Half a list is no short list: a page that was cut off would hide what is on it."""
    for number in range(3):
        forge.write(THREAD, "ada", f"talk {number}")
    forge.faults = [Fault(200, done=True, short=True)]
    assert len(hub.fetch_comments(THREAD)) == 3
    assert pauses == [1.0]


def test_a_comment_whose_answer_breaks_off_is_looked_for(hub: GitHub, forge: Forge) -> None:
    """It may be there; it is posted once."""
    forge.faults = [Fault(200, done=True, short=True, methods=("POST",))]
    with pytest.raises(Unclear):
        hub.post_comment(THREAD, "hello")
    forge.faults = [Fault(200, done=True, short=True, methods=("POST",))]
    post_once(hub, load_board(hub, THREAD), "<!-- gitgate told=c1 -->\nhello")
    assert len(forge.comments) == 2


def test_what_is_no_list_is_no_empty_list(hub: GitHub, forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else everything would be said again on a thread that seems to be empty."""
    forge.write(THREAD, "ada", "talk")
    monkeypatch.setattr(hub.web, "get", lambda *_: type("Reply", (), {"value": {"message": "hm"}}))
    with pytest.raises(ForgeFailed, match="sent no list"):
        hub.fetch_comments(THREAD)


def test_a_second_limit_that_names_no_time_is_waited_for(
    hub: GitHub, forge: Forge, pauses: list[float]
) -> None:
    """A minute, as GitHub asks; a comment was not posted then, so it is posted after it."""
    forge.faults = [Fault(403, words="You have exceeded a secondary rate limit.")]
    hub.post_comment(THREAD, "hello")
    assert pauses == [60.0]
    assert len(forge.comments) == 1


# our comment


def shown(team: Team, gate: str) -> list[dict[str, Any]]:
    return [c for c in team.forge.by(ROBOT) if f"gate={gate} seen=" in c["body"]]


def sweep(team: Team, *flags: str) -> Any:
    return team.cli.quick("github", "sweep", "--json", *flags, cwd=team.job().path, code=0).json


@pytest.mark.slow
def test_a_comment_that_somebody_removed_comes_back_once(team: Team) -> None:
    """While its gate is open; and a reply to the new one counts."""
    gate = team.ask("Which?")
    (ours,) = shown(team, gate)
    del team.forge.comments[ours["id"]]
    for _ in range(2):
        sweep(team)
        assert len(shown(team, gate)) == 1
    assert team.reply("/answer Postgres")["outcome"] == "answered"
    del team.forge.comments[shown(team, gate)[0]["id"]]
    team.cli.quick("stop", gate, "--reason", "over", cwd=team.agents.path, code=0)
    sweep(team)
    assert shown(team, gate) == []


def test_a_question_that_stands_twice_stands_once_again(team: Team) -> None:
    """Whatever left two of them: the first stays, with the replies below it."""
    gate = team.ask("Which?")
    (first,) = shown(team, gate)
    team.forge.write(THREAD, ROBOT, first["body"])
    sweep(team)
    assert [c["id"] for c in shown(team, gate)] == [first["id"]]


@pytest.mark.slow
def test_what_others_write_is_never_removed(team: Team) -> None:
    """Our marks in somebody else's comment are their words."""
    gate = team.ask("Which?")
    (first,) = shown(team, gate)
    copied = team.forge.write(THREAD, "eve", first["body"])
    sweep(team)
    assert copied["id"] in team.forge.comments


@pytest.mark.parametrize("rounds", [0, *(pytest.param(more, marks=pytest.mark.slow) for more in (1, 2))])
def test_who_posts_at_the_same_time_leaves_one(forge: Forge, rounds: int) -> None:
    """Eight jobs, one comment; it is the first."""
    body = f"<!-- gitgate gate=7k2fw9c3a{rounds + 2} seen={'a' * 40} -->\nWhich?"

    def post(_: int) -> int:
        web = Web(forge.api, "job-token", headers=headers())
        hub = GitHub(web, forge.repository, forge.site)
        return post_once(hub, load_board(hub, THREAD), body).number

    with ThreadPoolExecutor(8) as jobs:
        told = set(jobs.map(post, range(8)))
    assert {c["id"] for c in forge.by(ROBOT)} == told
    assert len(told) == 1


@pytest.mark.slow
def test_two_sweeps_at_once_leave_one_comment(team: Team) -> None:
    """Each in a clone of its own, as jobs are."""
    gate = team.ask("Which?", show=False)
    folders = [team.job().path for _ in range(4)]
    sweeps = [team.cli.start("github", "sweep", cwd=folder) for folder in folders]
    for running in sweeps:
        running.communicate(timeout=50)
    assert [running.returncode for running in sweeps] == [0] * 4
    assert len(shown(team, gate)) == 1


# people


def test_an_app_that_speaks_for_a_person_is_no_person(team: Team) -> None:
    """It has their name, not their word."""
    gate = team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", "/approve")
    comment["performed_via_github_app"] = {"id": 1, "slug": "helper"}
    assert team.hear(comment).json["outcome"] == "ignored"
    assert team.gate(gate)["state"] == "awaiting"


@pytest.mark.slow
def test_an_account_that_is_gone_vouches_for_nothing(team: Team, agent: Agent) -> None:
    """Neither before the answer nor after it: what it said is there, and nobody can be asked."""
    first = team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", "/approve")
    event = team.forge.event(comment)
    comment["user"] = None
    place = str(team.event_file(event))
    said = team.cli.quick("github", "accept", place, "--json", cwd=team.job().path, code=0).json
    assert said["outcome"] == "ignored"
    reply = team.forge.write(THREAD, "grace", "/approve")
    team.hear(reply)
    reply["user"] = None
    said = sweep(team, "--resume")
    assert "a program wrote" in said["doubts"][first]
    assert agent.starts == []


@pytest.mark.slow
@pytest.mark.parametrize("words", ["/approve, and drop the tables", "/reject"])
def test_a_comment_that_was_edited_after_the_answer_starts_nobody(
    team: Team, agent: Agent, words: str
) -> None:
    """What was recorded stays; that nobody acts on it is said on the thread, once, with what to do."""
    gate = team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", "/approve")
    team.hear(comment)
    team.forge.edit(comment["id"], words)
    for _ in range(2):
        assert "edited" in sweep(team, "--resume")["doubts"][gate]
    assert agent.starts == []
    assert team.gate(gate)["answer"]["verdict"] == "approved"
    (told,) = team.told()
    assert "edited" in told
    assert f"git gate github dispatch {gate}" in told


@pytest.mark.slow
def test_an_answer_from_a_terminal_that_waits_is_said_on_the_thread(
    team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks there sees why nothing happens; not while its author may be about to ask for a job."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    sweep(team, "--resume")
    assert team.told() == []
    monkeypatch.setattr("gitgate.surfaces.forge.sweeping.PATIENCE", 0)
    for _ in range(2):
        sweep(team, "--resume")
    (told,) = team.told()
    assert "not signed" in told
    assert f"git gate github dispatch {gate}" in told
    assert agent.starts == []


@pytest.mark.slow
def test_a_long_question_and_a_long_answer_fit(team: Team) -> None:
    """Beyond what a comment takes; the forge refuses longer ones, and the way to answer stays."""
    gate = team.ask("?" * 150 + " " + "\U0001f600 long " * 5000, "--context", "c" * 60_000)
    (ours,) = shown(team, gate)
    assert "/answer" in ours["body"]
    assert team.reply("/answer " + "\U0001f600" * 32_000)["outcome"] == "answered"
    assert len(shown(team, gate)[0]["body"]) <= 65_536


# the order of events


def values(team: Team, gate: str) -> list[str]:
    return list(team.gate(gate)["answer"]["values"].values())


@pytest.mark.slow
def test_events_in_any_order_change_nothing(team: Team) -> None:
    """The second comment's comes first: what was written before it counts, and each author is told what holds, once."""
    gate = team.ask("Which?")
    first = team.forge.write(THREAD, "ada", "/answer Postgres")
    second = team.forge.write(THREAD, "grace", "/answer SQLite")
    assert team.hear(second).json["outcome"] == "late"
    assert {(first["id"], "eyes", ROBOT), (first["id"], "+1", ROBOT)} <= set(team.forge.reactions)
    assert values(team, gate) == ["Postgres"]
    assert team.hear(first).json["outcome"] == "again"
    assert "told before" in team.hear(second).json["words"]
    assert values(team, gate) == ["Postgres"]
    (told,) = team.told()
    assert "grace" in told
    assert "ada was first" in told


@pytest.mark.slow
def test_a_gate_that_is_over_has_no_others_heard(team: Team) -> None:
    """One of twenty that come at once hears itself, and no other; the thread is listed once for the first of them."""
    team.ask("Which?")
    team.forge.asked.clear()
    team.reply("/answer Postgres")
    assert team.forge.asked.count(f"GET /repos/team/project/issues/{THREAD}/comments?per_page=100") == 1
    unheard = team.forge.write(THREAD, "grace", "/answer SQLite")
    assert team.reply("/answer MySQL")["outcome"] == "late"
    assert not [one for one in team.forge.reactions if one[0] == unheard["id"]]


@pytest.mark.slow
def test_of_the_answers_that_are_needed_each_counts_once(team: Team) -> None:
    """The first of two was not heard before; its own event changes nothing."""
    gate = team.ask("Deploy?", "--type", "approval", "--quorum", "2")
    first = team.forge.write(THREAD, "ada", "/approve")
    assert team.hear(team.forge.write(THREAD, "grace", "/approve")).json["outcome"] == "answered"
    assert team.gate(gate)["answer"]["verdict"] == "approved"
    assert team.hear(first).json["outcome"] == "again"
    assert team.told() == []


@pytest.mark.slow
def test_a_reply_elsewhere_does_not_overtake_one_where_the_gate_is(team: Team) -> None:
    """It names the gate in another pull request; whoever may not write is told once and overtakes nobody either."""
    team.forge.open_pull(8, "other", "e" * 40)
    gate = team.ask("Which?")
    for words in ("MySQL", "Oracle"):
        team.forge.write(THREAD, "eve", f"/answer {words}")
    first = team.forge.write(THREAD, "ada", "/answer Postgres")
    assert team.reply(f"/answer {gate} SQLite", "grace", 8)["outcome"] == "late"
    assert values(team, gate) == ["Postgres"]
    assert team.hear(first).json["outcome"] == "again"
    assert ["eve" in one for one in team.told()] == [True, False]
