"""What would be overlooked: whose token posts, replies where no question stands, what is heard beside an event's own comment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.text import format_time
from support.forges.routes import ROBOT
from support.forges.standin import Fault
from support.resuming import Agent
from support.testbed.command import Outcome

from .conftest import THREAD, Team
from .test_sweeps import READ_ONLY, forbidden, late, outcomes, said_of, sweep

pytestmark = pytest.mark.slow  # each takes a second or more

WORKFLOW = ".github/workflows/gitgate.yml"


def publish_workflow(team: Team) -> None:
    """On the default branch, as the agents' clone has fetched it."""
    seed = team.clone_of(team.bare, "writer")
    seed.write(WORKFLOW, "on: issue_comment\n")
    for words in (("add", "-A"), ("commit", "-qm", "Answer"), ("push", "-q", "origin", "main")):
        seed.git(*words)
    team.agents.git("fetch", "-q", "origin")


def authors(team: Team) -> list[str]:
    return [comment["user"]["login"] for comment in team.forge.comments.values()]


# whose token posts


@pytest.mark.parametrize("published", [True, False])
def test_a_token_that_may_not_ask_actions_looks_at_the_default_branch(
    team: Team, terminal: Callable[..., Outcome], published: bool
) -> None:
    """Where the workflow is there, a person's comment would be one that no job knows."""
    if published:
        publish_workflow(team)
    gate = team.ask("Which?", show=False)
    words = "Resource not accessible by personal access token"
    team.forge.faults = [Fault(403, words=words, path="/actions/workflows/gitgate.yml")]
    said = terminal("comment", gate, "--json").json
    assert (said["asked"], authors(team)) == ((True, []) if published else (False, ["ada"]))


@pytest.mark.parametrize(
    ("token", "published", "warned"),
    [("ada-token", True, True), ("app-token", True, True), ("job-token", True, False), ("ada-token", False, False)],
)  # fmt: skip
def test_another_token_in_a_job_of_ones_own_is_warned_of(
    team: Team, monkeypatch: pytest.MonkeyPatch, token: str, published: bool, warned: bool
) -> None:
    """The repository's other jobs know only what the jobs' own token wrote."""
    team.forge.join("helper[bot]", "Bot", "none", token="app-token")
    if published:
        publish_workflow(team)
    team.ask("Which?", show=False)
    monkeypatch.setenv("GITHUB_TOKEN", token)
    said = team.cli.quick("github", "publish", cwd=team.job().path, code=0)
    assert ("give this step the job's own token" in said.err) is warned
    assert len(authors(team)) == 1


def test_a_sweep_outside_jobs_asks_for_one_once_a_gate(team: Team, terminal: Callable[..., Outcome]) -> None:
    """A gate that cannot be shown is no reason for a job each time; one that was refused is asked for again."""
    team.forge.workflows["gitgate.yml"] = "active"
    team.ask("Which?", show=False)
    team.forge.faults = [Fault(422, words="disabled", methods=("POST",), path="/dispatches")]
    assert terminal("sweep", "--json", code=1).json["asked"] is None
    asked = [terminal("sweep", "--json").json["asked"] for _ in range(3)]
    assert (bool(asked[0]), asked[1:], len(team.forge.dispatched)) == (True, [None, None], 1)
    team.ask("And which?", show=False)
    assert terminal("sweep", "--json").json["asked"]


# replies where no question stands


def elsewhere(team: Team, body: str) -> None:
    """Ada writes on a pull request that shows nothing; no event tells of it."""
    team.forge.open_pull(8, "other", "e" * 40)
    comment = team.forge.write(8, "ada", body)
    comment["created_at"] = comment["updated_at"] = format_time(team.clock())
    team.forge.pulls[8]["updated_at"] = comment["updated_at"]


@pytest.mark.parametrize("words", ["/answer {} Postgres", "{}: Postgres"])
def test_a_sweep_finds_a_reply_on_another_pull_request(team: Team, words: str) -> None:
    """Once; and the gate's own comment shows it."""
    gate = team.ask("Which?")
    elsewhere(team, words.format(gate))
    assert outcomes(sweep(team, GITHUB_REF=f"refs/pull/{THREAD}/merge")) == []
    assert outcomes(sweep(team)) == ["answered"]
    assert "### ✅ Answered" in team.shown(gate)
    assert (outcomes(sweep(team)), team.gate(gate)["answer"]["verdict"]) == ([], "answered")


@pytest.mark.parametrize(
    "body", ["/approve 2026102012 is the build", "2026102012: built", "> deadbeef12\n\nyes"]
)
def test_what_looks_like_a_name_elsewhere_is_left_alone(team: Team, body: str) -> None:
    """Other programs have commands and numbers, too."""
    team.ask("Which?")
    elsewhere(team, body)
    assert outcomes(sweep(team)) == []
    assert team.told() == []


def test_nothing_older_than_the_question_is_read(team: Team) -> None:
    """What changed on a pull request before it cannot be a reply to it."""
    team.forge.open_pull(8, "other", "e" * 40)
    team.ask("Which?")
    team.forge.asked.clear()
    sweep(team)
    assert not [one for one in team.forge.asked if "/issues/8/comments" in one]


def test_a_name_and_a_colon_is_a_reply_anywhere(team: Team) -> None:
    """A number and a colon is talk."""
    gate = team.ask("Which?")
    team.forge.open_pull(8, "other", "e" * 40)
    assert team.reply("2026102012: built", thread=8)["outcome"] == "ignored"
    assert team.reply(f"{gate}: Postgres", thread=8)["outcome"] == "answered"
    assert len(team.told()) == 1


# threads that nobody has


def test_a_draft_names_no_pull_request(team: Team) -> None:
    """Whoever writes the question does not choose where it is shown: it is the branch's, and its deadline passes."""
    file = "prompt: Which?\nagent: scripted\nconfig: {pull_request: 4711, x: 1}\ntimeout: 1h\n"
    team.agents.write("q.yaml", file)
    said = team.cli.quick("ask", "--file", "q.yaml", cwd=team.agents.path, code=2)
    assert "q.yaml, line 3: config.pull_request" in said.err
    team.agents.write("q.yaml", file.replace("pull_request: 4711, ", ""))
    gate = team.cli.quick("ask", "--file", "q.yaml", cwd=team.agents.path, code=0).line
    sweep(team)
    assert "An agent asks" in team.shown(gate)
    team.pass_time(3600)
    sweep(team)
    assert team.gate(gate)["state"] == "expired"


def test_a_pull_request_that_an_agent_made_up_is_none(team: Team) -> None:
    """Its environment may say what it likes: sweeps stay green, and the gate is its branch's."""
    words = ("ask", "Which?", "--agent", "scripted", "--timeout", "1h")
    env = {"GITHUB_REF": "refs/pull/4711/merge"}
    gates = [team.cli.quick(*words, cwd=team.agents.path, env=env, code=0).line for _ in range(2)]
    team.forge.asked.clear()
    assert sweep(team)["trouble"] == []
    assert len([one for one in team.forge.asked if one.endswith("/pulls/4711")]) == 1
    assert ["An agent asks" in team.shown(gate) for gate in gates] == [True, True]
    assert team.reply(f"/answer {gates[0]} Postgres")["outcome"] == "answered"
    team.pass_time(3600)
    assert sweep(team)["trouble"] == []
    assert [team.gate(gate)["state"] for gate in gates] == ["answered", "expired"]


def test_deadlines_pass_where_the_settings_name_an_issue_that_is_not_there(team: Team) -> None:
    """Somebody has to mend that, so the sweep is red; nobody can have answered there."""
    team.forge.pulls.clear()
    gate = team.ask("Which?", "--timeout", "1h", show=False)
    team.pass_time(3600)
    (trouble,) = sweep(team, code=1, GITGATE_FORGE_ISSUE="12")["trouble"]
    assert "thread 12" in trouble
    assert team.gate(gate)["state"] == "expired"


# jobs that may only read


@pytest.mark.parametrize(
    ("head", "excused"), [("stranger/project", True), (None, True), ("team/project", False)]
)
def test_a_job_of_a_forks_pull_request_may_only_read(team: Team, head: str | None, excused: bool) -> None:
    """By GitHub's own rule, and nobody's mistake: green. In a job of the repository's own branch somebody has to look at it."""
    team.ask("Which?", show=False)
    repo = {"full_name": team.forge.repository}
    sides = {"head": {"repo": {"full_name": head} if head else None}, "base": {"repo": repo}}
    event = team.event_file({"action": "opened", "pull_request": sides, "repository": repo})
    team.forge.faults = forbidden(READ_ONLY, path="") * 2
    env = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(event), "GITHUB_ACTOR": "ada"}
    said = sweep(team, code=0 if excused else 1, **env)
    assert (bool(said["noted"]), bool(said["trouble"])) == (excused, not excused)


# beside the event's own comment


def test_whoever_was_heard_before_a_late_reply_starts_the_agent(
    team: Team, agent: Agent, tmp_path: Path
) -> None:
    """The job of the late one hands the gate on."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.forge.write(THREAD, "grace", "/answer Postgres")
    team.pass_time(3600)
    place = str(team.event_file(team.forge.event(late(team, "ada", "/answer SQLite"))))
    output = tmp_path / "output"
    env = {"GITHUB_OUTPUT": str(output)}
    said = team.cli.quick("github", "accept", place, "--json", cwd=team.job().path, env=env, code=0)
    assert said.json["outcome"] == "late"
    assert f'resume=["{gate}"]' in output.read_text().splitlines()
    assert "answered: " in said.err


# statuses


def test_a_failed_agent_holds_what_was_there(team: Team, agent: Agent) -> None:
    """Whoever pushes more has gone on without it."""
    gate = team.ask("Which?")
    agent.does("exit 3")
    team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"), "--resume", code=1)
    assert (team.gate(gate)["state"], said_of(team, THREAD)[-1]) == ("failed", "failure")
    team.agents.write("more", "m")
    for words in (("add", "-A"), ("commit", "-qm", "More"), ("push", "-q", "origin", "feature")):
        team.agents.git(*words)
    team.forge.pulls[THREAD]["head"]["sha"] = team.agents.git("rev-parse", "HEAD")
    sweep(team)
    assert said_of(team, THREAD) == ["success"]
    assert authors(team) == [ROBOT, "ada", ROBOT]  # the last says that it failed, once
