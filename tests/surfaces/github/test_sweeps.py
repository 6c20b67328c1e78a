"""What sweeps do again and again: statuses, deadlines that passed while nobody listened, places where nothing can be said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitgate.surfaces.forge import sweeping
from gitgate.text import format_time
from support.forges.routes import ROBOT
from support.forges.standin import Fault
from support.resuming import Agent
from support.testbed.command import Outcome

from .conftest import THREAD, Team
from .test_whose import publish_policy

pytestmark = pytest.mark.slow  # each takes a second or more


def sweep(team: Team, *flags: str, code: int = 0, **env: str) -> Any:
    return team.cli.quick("github", "sweep", "--json", *flags, cwd=team.job().path, env=env, code=code).json


def said_of(team: Team, thread: int) -> list[str]:
    """The states that the pull request's head was given, one after the other."""
    sha = team.forge.pulls[thread]["head"]["sha"]
    return [one["state"] for one in team.forge.statuses if one["sha"] == sha]


def outcomes(said: Any) -> list[str]:
    return [one["outcome"] for one in said["accepted"]]


# statuses


def test_no_gate_is_no_reason_to_wait(team: Team) -> None:
    """Where the status is required, pull requests that nobody asks on get it too, a fork's among them; each once."""
    team.forge.open_pull(8, "other", "e" * 40, home="stranger/project")
    team.forge.open_pull(9, "third", "d" * 40)
    for _ in range(3):
        sweep(team)
    assert [said_of(team, number) for number in (THREAD, 8, 9)] == [["success"]] * 3
    assert team.forge.statuses[0]["description"] == "no gate waits"


def test_the_job_of_a_pull_request_looks_at_that_one(team: Team) -> None:
    """Its new head has the status at once, and no other is asked about."""
    team.forge.open_pull(8, "other", "e" * 40)
    sweep(team, GITHUB_REF="refs/pull/8/merge")
    assert (said_of(team, THREAD), said_of(team, 8)) == ([], ["success"])


def test_a_status_that_stands_is_not_said_again(team: Team) -> None:
    """A forge takes a thousand of a name and commit, and then none."""
    team.ask("Which?")
    for _ in range(3):
        sweep(team)
    assert said_of(team, THREAD) == ["pending"]
    team.reply("/answer Postgres")
    sweep(team)
    assert said_of(team, THREAD) == ["pending", "success"]


def test_a_later_gate_makes_up_for_one_that_was_stopped(team: Team) -> None:
    """Of one branch the newest says how it stands."""
    team.ask("Which?")
    team.reply("/stop no")
    team.pass_time(1)  # gates are asked in a second each
    team.ask("And which then?")
    team.reply("/answer Postgres")
    assert said_of(team, THREAD) == ["failure", "success"]


def test_a_stopped_gate_holds_what_was_there_when_it_asked(team: Team) -> None:
    """A sweep does not forget it; whoever pushes more has gone on without the answer, and archiving settles it too."""
    team.ask("Which?")
    team.reply("/stop no")
    sweep(team)
    assert said_of(team, THREAD)[-1] == "failure"
    old = team.forge.pulls[THREAD]["head"]["sha"]
    team.agents.write("more", "m")
    for words in (("add", "-A"), ("commit", "-qm", "More"), ("push", "-q", "origin", "feature")):
        team.agents.git(*words)
    team.forge.pulls[THREAD]["head"]["sha"] = team.agents.git("rev-parse", "HEAD")
    sweep(team)
    assert said_of(team, THREAD) == ["success"]
    team.forge.pulls[THREAD]["head"]["sha"] = old
    job = team.job().path
    for verb in (("sync",), ("archive", "--older-than", "0s")):
        team.cli.quick(*verb, cwd=job, code=0)
    sweep(team)
    assert said_of(team, THREAD) == ["failure", "success"]


def test_of_many_pull_requests_each_has_its_turn(monkeypatch: pytest.MonkeyPatch, team: Team) -> None:
    """A sweep asks about few, the newest first, and about others each time."""
    monkeypatch.setattr(sweeping, "NEWEST", 1)
    monkeypatch.setattr(sweeping, "OTHERS", 1)
    for number in range(10, 13):
        team.forge.open_pull(number, f"b{number}", f"{number}" * 20)
    sweep(team)
    assert len(team.forge.statuses) == 2
    for _ in range(90):
        if len(team.forge.statuses) == 4:
            break
        team.pass_time(1)
        sweep(team)
    assert {one["sha"] for one in team.forge.statuses} >= {"12" * 20, "11" * 20, "10" * 20}


# requests


LISTING = f"GET /repos/team/project/issues/{THREAD}/comments?per_page=100"


def test_a_thread_is_listed_once_however_many_gates_it_had(team: Team) -> None:
    """Of a merged pull request, too; a day after their end they cost that, and no status is asked for."""
    for number in range(3):
        team.ask(f"Which {number}?")
        team.reply("/stop no")
    team.forge.pulls[THREAD]["state"] = "closed"
    team.forge.asked.clear()
    sweep(team)
    assert team.forge.asked.count(LISTING) == 1
    team.pass_time(25 * 3600)
    team.forge.asked.clear()
    sweep(team)
    assert team.forge.asked.count(LISTING) == 1
    assert not [one for one in team.forge.asked if "/status" in one or one.endswith(f"/pulls/{THREAD}")]
    team.forge.asked.clear()
    sweep(team, GITHUB_REF="refs/pull/8/merge")
    assert LISTING not in team.forge.asked


def test_gates_that_closed_long_ago_cost_so_much_and_no_more(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each on a pull request of its own: a sweep looks at the latest and at some of the others; in time at all."""
    monkeypatch.setattr(sweeping, "ENDED", 1)
    monkeypatch.setattr(sweeping, "LONG_ENDED", 1)
    for number in range(8, 12):
        team.agents.git("checkout", "-q", "-b", f"b{number}")
        team.forge.open_pull(number, f"b{number}", "e" * 40)
        gate = team.ask(f"Which {number}?")
        team.cli.quick("stop", gate, "--reason", "no", cwd=team.agents.path, code=0)
        team.pass_time(1)
    team.pass_time(25 * 3600)
    for turn in range(90):
        team.forge.asked.clear()
        said = sweep(team)
        assert len([one for one in team.forge.asked if one.startswith("GET") and "/comments?" in one]) <= 2
        assert len(said["shown"]) == 2 if turn == 0 else len(said["shown"]) <= 1
        if not [c for c in team.forge.by(ROBOT) if "An agent asks" in c["body"]]:
            break
        team.pass_time(1)
    assert [c["body"].count("⏹️ Stopped") for c in team.forge.by(ROBOT)] == [1] * 4


# after sweeps were away for long


@pytest.mark.parametrize("away", [25 * 3600, 60 * 86_400])
def test_what_ended_while_no_sweep_ran_is_shown(team: Team, agent: Agent, away: int) -> None:
    """One was answered in a terminal and acted on there, another ran out; who replied after the end is told, once."""
    first = team.ask("Which?")
    team.cli.quick("respond", first, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    team.cli.quick("resume", first, cwd=team.agents.path, code=0)
    assert agent.starts == [first]
    second = team.ask("And which?", "--timeout", "1h")
    team.pass_time(3700)
    team.cli.quick("list", cwd=team.agents.path)
    team.cli.quick("sync", cwd=team.agents.path, code=0)
    assert "An agent asks" in team.shown(second)
    late(team, "grace", f"/answer {first} SQLite")
    team.pass_time(away)
    assert outcomes(sweep(team)) == ["late"]
    assert "acted on" in team.shown(first)
    assert "Nobody answered in time" in team.shown(second)
    assert ["grace" in one for one in team.told()] == [True]
    assert (outcomes(sweep(team)), len(team.told())) == ([], 1)


# deadlines


def test_a_reply_in_time_counts_although_it_is_heard_late(team: Team) -> None:
    """No job ran between the reply and the deadline, nor for a while after it."""
    gate = team.ask("Which?", "--timeout", "1h", "--default", "SQLite", "--on-timeout", "default")
    team.forge.write(THREAD, "ada", "/answer Postgres")
    team.pass_time(3600)
    assert outcomes(sweep(team)) == ["answered"]
    answer = team.gate(gate)["answer"]
    assert (answer["verdict"], list(answer["values"].values())) == ("answered", ["Postgres"])


def late(team: Team, login: str, body: str) -> dict[str, Any]:
    """Written now; the stand-in's own clock is behind."""
    comment = team.forge.write(THREAD, login, body)
    comment["created_at"] = comment["updated_at"] = format_time(team.clock())
    return comment


@pytest.mark.parametrize(
    ("reply", "after", "outcome"),
    [("/approve", 0, "answered"), ("/stop no", 0, "stopped"), ("/approve", 3700, "refused"), ("/stop no", 3700, "refused")],
)  # fmt: skip
def test_a_reply_is_in_time_for_the_policy_by_its_writing(
    team: Team, agent: Agent, reply: str, after: int, outcome: str
) -> None:
    """The event's job was lost; the sweep that hears it, and whoever acts on it, go by the comment's time."""
    publish_policy(team, "policy:\n  within: 1h\n")
    gate = team.ask("Deploy?", "--type", "approval")
    team.pass_time(after)
    late(team, "ada", reply)
    team.pass_time(2 * 3600)
    said = team.cli.quick("github", "sweep", "--resume", "--json", cwd=team.job().path, code=0)
    assert outcomes(json.loads(said.out.splitlines()[0])) == [outcome]
    assert agent.starts == ([gate] if outcome == "answered" else [])
    assert ["its time is over" in one for one in team.told()] == [True] * (outcome == "refused")


def test_a_reply_after_the_deadline_is_told_so_once(team: Team) -> None:
    """By a sweep that finds it, before or after the gate's end was recorded."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.pass_time(3600)
    late(team, "ada", "/answer Postgres")
    assert outcomes(sweep(team)) == ["late"]
    assert team.gate(gate)["state"] == "expired"
    late(team, "grace", "/answer SQLite")
    assert outcomes(sweep(team)) == ["late"]
    assert outcomes(sweep(team)) == []
    assert [("ada" in one, "grace" in one) for one in team.told()] == [(True, False), (False, True)]
    assert all("too late" in one for one in team.told())


def test_an_event_of_a_late_reply_first_hears_the_one_in_time(team: Team) -> None:
    """Whoever looks first after the deadline, a job of an event or a sweep, judges each by the time of its writing."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.forge.write(THREAD, "grace", "/answer Postgres")
    team.pass_time(3600)
    assert team.hear(late(team, "ada", "/answer SQLite")).json["outcome"] == "late"
    assert list(team.gate(gate)["answer"]["values"].values()) == ["Postgres"]


def test_an_event_that_comes_late_tells_of_a_reply_in_time(team: Team) -> None:
    """A delivery may wait for long."""
    gate = team.ask("Which?", "--timeout", "1h")
    comment = team.forge.write(THREAD, "ada", "/answer Postgres")
    team.pass_time(3600)
    assert team.hear(comment).json["outcome"] == "answered"
    assert team.gate(gate)["state"] == "answered"


def test_what_was_recorded_stays(team: Team) -> None:
    """Somebody's clone found the deadline passed and shared that; the reply is told that it came too late."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.forge.write(THREAD, "ada", "/answer Postgres")
    team.pass_time(3600)
    team.cli.quick("list", cwd=team.agents.path)
    team.cli.quick("sync", cwd=team.agents.path, code=0)
    assert outcomes(sweep(team)) == ["late"]
    assert team.gate(gate)["state"] == "expired"


def test_a_stop_by_a_comment_is_no_late_reply(team: Team) -> None:
    """Its comment is what ended the gate, and nobody is told anything."""
    team.ask("Which?")
    team.reply("/stop no")
    assert outcomes(sweep(team)) == []
    assert team.told() == []


def test_a_deadline_waits_for_a_thread_that_cannot_be_read(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be a reply in it."""
    monkeypatch.setattr("gitgate.surfaces.forge.hosts.web.PAUSES", ())
    gate = team.ask("Which?", "--timeout", "1h")
    team.pass_time(3600)
    team.forge.faults = [Fault(503, path=f"/issues/{THREAD}/comments")]
    sweep(team, code=1)
    tip = team.bare.git("for-each-ref", "--format=%(contents)", f"refs/hitl/open/{gate}")
    assert "Hitl-State: awaiting" in tip


# where nothing can be said


LOCKED = "Unable to create comment because issue is locked."
READ_ONLY = "Resource not accessible by integration"


def forbidden(words: str, status: int = 403, path: str = f"/issues/{THREAD}/comments") -> list[Fault]:
    return [Fault(status, words=words, methods=("POST", "PATCH"), path=path)] * 9


def test_a_locked_thread_is_noted_once_and_green(team: Team) -> None:
    """Two questions cannot be shown; that is no mistake of anybody's, and nothing else stands still for it."""
    team.ask("Which?", show=False)
    team.ask("And which?", show=False)
    team.forge.faults = forbidden(LOCKED)
    said = sweep(team)
    assert (len(said["noted"]), said["trouble"]) == (1, [])
    assert "locked" in said["noted"][0]
    assert said_of(team, THREAD) == ["pending"]


def test_a_reply_on_a_locked_thread_counts(team: Team) -> None:
    """Whoever may write may comment there, and we may not."""
    gate = team.ask("Which?")
    unclear = team.forge.write(THREAD, "ada", "/answer A\n/answer B")
    reply = team.forge.write(THREAD, "ada", "/answer Postgres")
    team.forge.faults = forbidden(LOCKED) + forbidden(LOCKED, path="/reactions")
    assert team.hear(unclear).json["outcome"] == "untold"
    assert team.hear(reply).json["outcome"] == "answered"
    assert team.gate(gate)["state"] == "answered"


def test_what_cannot_be_said_to_one_keeps_no_other_from_being_heard(team: Team) -> None:
    """An event after the deadline, on a locked thread: the reply in time is found first, then an unclear one before it."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.forge.write(THREAD, "ada", "/answer A\n/answer B")
    team.forge.write(THREAD, "grace", "/answer Postgres")
    team.pass_time(3600)
    team.forge.faults = forbidden(LOCKED)
    assert team.hear(late(team, "ada", "/answer SQLite")).json["outcome"] == "untold"
    assert team.gate(gate)["state"] == "answered"


def test_a_deleted_thread_is_noted_and_its_deadlines_pass(team: Team) -> None:
    """Nobody can answer there any more."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.pass_time(3600)
    team.forge.faults = [Fault(410, words="This issue was deleted", path=f"/issues/{THREAD}/comments")]
    said = sweep(team)
    assert ("deleted" in said["noted"][0], said["trouble"]) == (True, [])
    assert team.gate(gate)["state"] == "expired"


@pytest.mark.parametrize("event", ["pull_request", "schedule"])
def test_a_token_that_may_only_read_is_a_mistake_where_it_need_not_be(team: Team, event: str) -> None:
    """Dependabot's own runs have such a token, and stay green; a scheduled sweep with one is red."""
    team.ask("Which?", show=False)
    team.forge.faults = forbidden(READ_ONLY, path="") * 2
    env = {"GITHUB_EVENT_NAME": event, "GITHUB_ACTOR": "dependabot[bot]"}
    said = sweep(team, code=0 if event == "pull_request" else 1, **env)
    assert bool(said["noted"]) is (event == "pull_request")
    assert bool(said["trouble"]) is (event == "schedule")


def test_a_run_without_secrets_hands_no_agent_on(team: Team, agent: Agent) -> None:
    """Of Dependabot's pull request; the next scheduled sweep does."""
    gate = team.ask("Which?")
    team.forge.write(THREAD, "ada", "/answer Postgres")
    said = sweep(team, "--resume", GITHUB_EVENT_NAME="pull_request", GITHUB_ACTOR="dependabot[bot]")
    assert (outcomes(said), said["resume"], agent.starts) == (["answered"], [], [])
    assert sweep(team)["resume"] == [gate]


def test_any_other_refusal_stays_red(team: Team) -> None:
    """Somebody has to look at it."""
    team.ask("Which?", show=False)
    team.forge.faults = forbidden("You do not belong here.")
    assert sweep(team, code=1)["noted"] == []


# who we are


@pytest.fixture
def app(team: Team, monkeypatch: pytest.MonkeyPatch) -> Team:
    """Jobs that have the token of an App of somebody's own, which may not ask for its name."""
    team.forge.join("helper[bot]", "Bot", "none", token="app-token")
    monkeypatch.setenv("GITHUB_TOKEN", "app-token")
    return team


def test_another_apps_token_posts_one_comment(app: Team, agent: Agent) -> None:
    """Whose it is shows in what it wrote, in this job or an earlier one; a reply to it counts and is acted on."""
    gate = app.ask("Which?")
    writes = len(app.forge.comments)
    for _ in range(2):
        sweep(app)
    assert (writes, app.forge.made) == (1, 1)
    assert app.hear(app.forge.write(THREAD, "ada", "/answer Postgres"), "--resume").code == 0
    assert agent.starts == [gate]
    ours, end = app.forge.by("helper[bot]")
    assert "acted on" in ours["body"]
    assert "the agent went on" in end["body"]
    assert app.forge.by(ROBOT) == []


def test_another_apps_marks_are_not_ours(team: Team) -> None:
    """A program that repeats what people write would repeat our marks as well."""
    gate = team.ask("Which?")
    team.forge.join("echo[bot]", "Bot", "none")
    copied = team.forge.write(THREAD, "echo[bot]", team.shown(gate))
    sweep(team)
    assert team.forge.comments[copied["id"]] == copied
    assert team.reply("/answer Postgres")["outcome"] == "answered"


@pytest.mark.parametrize("state", ["active", "disabled_inactivity"])
def test_a_person_leaves_the_comment_to_the_jobs(
    team: Team, terminal: Callable[..., Outcome], state: str
) -> None:
    """Where the repository has them: they are asked, one comment is posted, it is theirs, and a reply to it counts."""
    team.forge.workflows["gitgate.yml"] = state
    gate = team.ask("Which?", show=False)
    said = terminal("comment", gate, "--json").json
    assert (said["asked"], said["comment"], said["url"]) == (True, None, f"{team.forge.site}/actions/runs/7")
    swept = terminal("sweep", "--json").json
    assert said["job"] == said["url"] == swept["asked"] == swept["job"]
    assert (len(team.forge.dispatched), team.forge.comments) == (2, {})
    (event, _) = team.forge.dispatched
    event = {"inputs": event["inputs"], "repository": {"full_name": team.forge.repository}}
    sender = {"sender": team.forge.accounts["ada"].shape}
    place = str(team.event_file({**event, **sender}))
    team.cli.quick("github", "accept", place, cwd=team.job().path, code=0)
    assert terminal("comment", gate, "--json").json["comment"] is not None
    assert [c["user"]["login"] for c in team.forge.comments.values()] == [ROBOT]
    assert team.reply("/answer Postgres")["outcome"] == "answered"


def test_a_person_posts_where_there_are_no_jobs(team: Team, terminal: Callable[..., Outcome]) -> None:
    """Then whoever has the same token hears the replies."""
    gate = team.ask("Which?", show=False)
    for _ in range(2):
        assert terminal("comment", gate, "--json").json["comment"] is not None
    assert [c["user"]["login"] for c in team.forge.comments.values()] == ["ada"]
    team.forge.write(THREAD, "grace", "/answer Postgres")
    assert outcomes(terminal("sweep", "--json").json) == ["answered"]


# after an answer in a terminal


def test_a_dispatched_answer_is_shown_before_the_agent_is_done(
    team: Team, agent: Agent, tmp_path: Path
) -> None:
    """The comment asks no more, the status says it, and the job of the agent has a summary."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    commit = team.gate(gate)["answer"]["commit"]
    event = {
        "inputs": {"gate": gate, "commit": commit},
        "repository": {"full_name": team.forge.repository},
        "sender": team.forge.accounts["ada"].shape,
    }
    place = str(team.event_file(event))
    team.cli.quick("github", "accept", place, cwd=team.job().path, code=0)
    assert agent.starts == []
    assert "### ✅ Answered" in team.shown(gate)
    page = tmp_path / "summary"
    env = {"GITHUB_STEP_SUMMARY": str(page)}
    team.cli.quick("github", "resume", gate, "--event", place, cwd=team.job().path, env=env, code=0)
    assert re.search(rf"^- \W+resumed\W+ {gate} `Which\?`", page.read_text(), re.MULTILINE)
