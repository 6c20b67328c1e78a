"""A reply on a line of the diff: read by sweeps and by our own receiver, never in a job of its event; and whom it asks for a review."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitgate.surfaces.forge.hosts import Commented
from gitgate.surfaces.forge.webhook import Receiver, Seen
from support.forges.standin import Fault
from support.resuming import Agent
from support.servers import WEBHOOK_SECRET as SECRET

from .conftest import THREAD, Team
from .pages import rendered
from .test_serve import headers
from .test_sweeps import outcomes, sweep

pytestmark = pytest.mark.slow  # each takes a second or more


def test_a_reply_on_the_diff_is_an_answer_and_starts_the_agent(team: Team, agent: Agent) -> None:
    """A sweep finds it, once; its author sees that there; and the job that goes on reads it once more as the proof."""
    gate = team.ask("Which?")
    comment = team.forge.write_on_diff(THREAD, "ada", "/answer Postgres")
    said = sweep(team)
    assert (outcomes(said), said["resume"]) == (["answered"], [gate])
    assert (comment["id"], "+1", "github-actions[bot]") in team.forge.reactions
    assert f"[the reply]({comment['html_url']})" in team.shown(gate)
    assert outcomes(sweep(team)) == []
    team.cli.quick("github", "resume", gate, cwd=team.job().path, code=0)
    assert agent.ends == [gate]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"updated_at": "2027-01-01T00:00:00Z"}, "edited"),
        ({"user": {"login": "grace", "id": 7, "type": "User"}}, "by grace"),
        ({"body": "/answer MySQL"}, "says something else"),
        ({"pull_request_review_id": 4711}, "not there"),
    ],
)
def test_a_reply_on_the_diff_that_is_another_by_now_proves_nothing(
    team: Team, agent: Agent, change: dict[str, Any], why: str
) -> None:
    """Whoever may write can edit anybody's comment."""
    gate = team.ask("Which?")
    comment = team.forge.write_on_diff(THREAD, "ada", "/answer Postgres")
    sweep(team)
    comment |= change
    done = team.cli.quick("github", "resume", gate, cwd=team.job().path)
    assert done.code != 0
    assert why in done.err
    assert agent.starts == []


@pytest.mark.parametrize(
    ("login", "body", "outcome"),
    [
        ("eve", "/answer Postgres", ["refused"]),
        ("ada", "```suggestion\n/answer Postgres\n```", []),
        ("ada", "Postgres", []),
        ("ada", "yes", []),
        ("github-actions[bot]", "/answer Postgres", []),
    ],
)
def test_what_is_no_reply_on_a_diff(team: Team, login: str, body: str, outcome: list[str]) -> None:
    """A stranger's, a suggested line, and a word, which is about the line there."""
    gate = team.ask("Which?", "-o", "Postgres", "-o", "SQLite")
    team.forge.write_on_diff(THREAD, login, body)
    assert outcomes(sweep(team)) == outcome
    assert team.gate(gate)["state"] == "awaiting"


def test_a_reply_that_was_begun_before_the_question_answers_none(team: Team) -> None:
    """It was sent afterwards, with its review; one that names the gate can only have been written for it."""
    before = team.forge.now()
    gate = team.ask("Deploy?", "--type", "approval")
    team.forge.write_on_diff(THREAD, "ada", "/approve", begun=before)
    assert outcomes(sweep(team)) == []
    assert team.gate(gate)["state"] == "awaiting"
    team.forge.write_on_diff(THREAD, "ada", f"/approve {gate}", begun=before)
    assert outcomes(sweep(team)) == ["answered"]


def test_a_reply_counts_from_when_its_review_was_sent(team: Team) -> None:
    """One that only its author sees is no answer yet, and one that was edited since everybody saw it is refused, in words."""
    gate = team.ask("Which?")
    comment = team.forge.write_on_diff(THREAD, "ada", "/answer Postgres", sent=False)
    sweep(team)
    assert team.gate(gate)["state"] == "awaiting"
    team.forge.reviews[comment["pull_request_review_id"]] |= {"submitted_at": comment["updated_at"]}
    comment["updated_at"] = "2027-01-01T00:00:00Z"
    assert outcomes(sweep(team)) == ["refused"]
    assert any("this comment was edited" in said for said in team.told())
    assert outcomes(sweep(team)) == []


def test_of_two_answers_the_one_on_the_diff_may_be_the_first(team: Team) -> None:
    """An event tells of the second alone; the first is heard before it."""
    gate = team.ask("Which?")
    team.forge.write_on_diff(THREAD, "grace", "/answer SQLite")
    team.reply("/answer Postgres")
    assert team.gate(gate)["answer"]["values"] == {"answer": "SQLite"}
    assert any("came too late" in said for said in team.told())


def event_of(team: Team, comment: dict[str, Any]) -> bytes:
    """As much of its event as is read."""
    said = {"action": "created", "comment": comment, "pull_request": {"number": THREAD}}
    whose = {"sender": comment["user"], "repository": {"full_name": team.forge.repository}}
    return json.dumps({**said, **whose}).encode()


def test_its_event_counts_where_we_receive_it_ourselves(team: Team) -> None:
    """Signed by the webhook's secret; in a job it would run the workflow file of the pull request's own branch."""
    gate = team.ask("Which?")
    comment = team.forge.write_on_diff(THREAD, "ada", "/answer Postgres")
    body = event_of(team, comment)
    receiver = Receiver(SECRET, Seen(team.folder / "seen"))
    kind = {"x-github-event": "pull_request_review_comment"}
    assert receiver.take(headers(body, **kind), body) == (202, "taken")
    assert receiver.events.get() == Commented(comment["id"], "team/project", "diff")
    place = team.event_file(json.loads(body))
    said = team.cli.quick("github", "accept", str(place), "--json", cwd=team.job().path, code=0).json
    assert said["outcome"] == "ignored"
    assert "workflow file of the branch" in json.dumps(said)
    assert team.gate(gate)["state"] == "awaiting"


# whom it is for

TO = ("--to", "@ada", "--to", "@grace", "--to", "@eve")


def test_an_approval_asks_those_whom_it_is_for_for_a_review(team: Team) -> None:
    """Once, of those who may write, and not of the author of the pull request, who is mentioned all the same."""
    team.forge.open_pull(THREAD, "feature", team.agents.git("rev-parse", "HEAD"), author="ada")
    gate = team.ask("Deploy?", "--type", "approval", *TO)
    assert team.forge.requested == [(THREAD, "grace")]
    assert "For @ada, @grace\n" in team.shown(gate)
    assert "No review" not in team.shown(gate)
    sweep(team)
    assert team.forge.requested == [(THREAD, "grace")]


def test_a_question_asks_for_no_review(team: Team) -> None:
    """There is nothing to be reviewed."""
    team.ask("Which?", *TO)
    assert team.forge.requested == []


def test_who_cannot_be_asked_is_said(team: Team) -> None:
    """And keeps nobody else from being asked; the words stay where the comment is brought up to date."""
    team.forge.unasked.add("ada")
    gate = team.ask("Deploy?", "--type", "approval", *TO)
    assert team.forge.requested == [(THREAD, "grace")]
    words = "No review could be asked of `@ada`."
    assert words in team.shown(gate)
    assert [word for word in rendered(team.shown(gate)).words if word.startswith("For ")] == [
        "For @ada, @grace"
    ]
    team.ask("And when?")  # the first one's comment says now that it has to be named
    sweep(team)
    assert words in team.shown(gate)
    assert f"/approve {gate}" in team.shown(gate)


def test_a_token_that_may_not_ask_is_no_failure(team: Team) -> None:
    """The question is shown, and says it."""
    team.forge.faults += [Fault(403, path="/requested_reviewers", words="Resource not accessible")] * 3
    gate = team.ask("Deploy?", "--type", "approval", *TO)
    assert "No review could be asked of `@ada`, `@grace`." in team.shown(gate)
