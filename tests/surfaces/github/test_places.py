"""Where a gate is shown: a pull request however it is found, a closed one, a fork's, an issue, a commit; and Gitea's."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.surfaces.forge.hosts import Commented
from gitgate.surfaces.forge.webhook import Receiver, Seen
from support.forges import gitea
from support.forges.routes import ROBOT
from support.forges.standin import Fault, forge_server
from support.resuming import Agent
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import THREAD, Team

pytestmark = pytest.mark.slow  # each takes a second or more


def head_of(team: Team) -> str:
    return team.agents.git("rev-parse", "HEAD")


def shown_on(team: Team, gate: str) -> list[int]:
    """The numbers of the threads where we show it."""
    ours = [c for c in team.forge.by(ROBOT) if f"gate={gate} seen=" in c["body"]]
    return [int(c["issue_url"].rpartition("/")[2]) for c in ours]


def sweep(team: Team, *flags: str, code: int = 0) -> object:
    return team.cli.quick("github", "sweep", "--json", *flags, cwd=team.job().path, code=code).json


def test_a_branch_without_one_has_its_commits(team: Team) -> None:
    """The agent works on a branch of its own, on top of what a pull request brings: it is shown there, and its status waits."""
    team.agents.git("checkout", "-q", "-b", "of-its-own")
    team.forge.commits[head_of(team)] = [THREAD]
    gate = team.ask("Which?")
    assert shown_on(team, gate) == [THREAD]
    sweep(team)
    assert team.forge.statuses[-1]["state"] == "pending"
    assert team.reply("/answer Postgres")["outcome"] == "answered"
    assert team.forge.statuses[-1]["state"] == "success"


def test_of_several_with_a_commit_none_is_guessed(team: Team) -> None:
    """Unless it is the head of exactly one of them."""
    team.agents.git("checkout", "-q", "-b", "of-its-own")
    team.forge.open_pull(8, "other", "e" * 40)
    team.forge.open_pull(9, "third", "d" * 40)
    team.forge.commits[head_of(team)] = [8, 9]
    gate = team.ask("Which?", show=False)
    assert "no pull request" in team.cli.quick("github", "comment", gate, cwd=team.agents.path, code=1).err
    team.forge.commits[head_of(team)] = [8, 9, THREAD]
    team.cli.quick("github", "comment", gate, cwd=team.agents.path, code=0)
    assert shown_on(team, gate) == [THREAD]


def test_a_fork_that_brings_the_commit_shows_nothing(team: Team) -> None:
    """Whoever forks has every commit that they saw: a question does not go where they write."""
    team.agents.git("checkout", "-q", "-b", "of-its-own")
    team.forge.open_pull(8, "patch-1", head_of(team), home="stranger/project")
    team.forge.commits[head_of(team)] = [8]
    gate = team.ask("Which?", show=False)
    sweep(team)
    assert shown_on(team, gate) == []
    team.forge.commits[head_of(team)] = [8, THREAD]
    sweep(team)
    assert shown_on(team, gate) == [THREAD]


@pytest.mark.parametrize("merged", [False, True])
def test_a_pull_request_that_was_closed_goes_on_being_the_place(
    team: Team, agent: Agent, merged: bool
) -> None:
    """Closed or merged while it waits: the reply counts, is proven, and is acted on; a new gate is not shown there."""
    gate = team.ask("Which?")
    team.forge.pulls[THREAD] |= {"state": "closed", "merged": merged}
    sweep(team)
    team.forge.write(THREAD, "ada", "/answer Postgres")
    said = sweep(team, "--resume")
    assert [one["outcome"] for one in said["accepted"]] == ["answered"]  # type: ignore[index]
    assert agent.starts == [gate]
    assert shown_on(team, gate) == [THREAD]
    assert "acted on" in team.shown(gate)
    later = team.ask("And now?", show=False)
    sweep(team)
    assert shown_on(team, later) == []


def test_a_draft_is_a_pull_request(team: Team) -> None:
    """It is where people look, too."""
    team.forge.pulls[THREAD]["draft"] = True
    gate = team.ask("Which?")
    assert team.reply("/answer Postgres")["outcome"] == "answered"
    assert shown_on(team, gate) == [THREAD]


@pytest.mark.parametrize("owner", ["stranger/project", None])
def test_a_forks_branch_of_the_same_name_is_not_ours(team: Team, owner: str | None) -> None:
    """Whoever opens it decides its branch's name; nothing of a gate is shown there, and its status waits for none."""
    team.forge.pulls.clear()
    team.forge.open_pull(8, "feature", "e" * 40, home=owner)
    gate = team.ask("Which?", show=False)
    sweep(team)
    assert shown_on(team, gate) == []
    assert [(one["sha"], one["state"]) for one in team.forge.statuses] == [("e" * 40, "success")]


def test_a_fork_is_answered_where_its_work_is_looked_at(team: Team) -> None:
    """A job on the fork's pull request asked: it is shown there, and only people of this repository answer."""
    team.forge.open_pull(8, "patch-1", "e" * 40, home="stranger/project")
    team.forge.join("stranger", permission="read")
    env = {"GITHUB_REF": "refs/pull/8/merge"}
    gate = team.cli.quick(
        "ask", "Run the tests?", "--type", "approval", cwd=team.agents.path, env=env, code=0
    ).line
    team.cli.quick("github", "comment", gate, cwd=team.agents.path, code=0)
    assert shown_on(team, gate) == [8]
    assert team.reply("/approve", "stranger", thread=8)["outcome"] == "refused"
    assert team.reply("/approve", thread=8)["outcome"] == "answered"
    assert (team.forge.statuses[-1]["sha"], team.forge.statuses[-1]["state"]) == ("e" * 40, "success")


def test_without_a_pull_request_it_is_an_issue_by_setting(team: Team) -> None:
    """The replies there count."""
    team.forge.pulls.clear()
    team.forge.issues.add(12)
    team.agents.git("config", "gitgate.forgeIssue", "12")
    gate = team.ask("Which?")
    assert shown_on(team, gate) == [12]
    assert team.reply("/answer Postgres", thread=12)["outcome"] == "answered"


def test_without_a_pull_request_it_is_the_commit_by_setting(
    team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event tells a job of a reply there: the sweep finds it, once, and it is proven by that comment alone."""
    monkeypatch.setenv("GITGATE_FORGE_COMMIT", "true")
    team.forge.pulls.clear()
    head = head_of(team)
    team.forge.commits[head] = []
    gate = team.ask("Which?")
    other = team.forge.write(THREAD, "ada", "/answer MySQL")  # of the same number as the one on the commit
    (ours,) = team.forge.on_commits.values()
    assert (ours["commit_id"], other["id"]) == (head, ours["id"])
    assert "found by the next sweep" in ours["body"]
    team.forge.write_on(head, "eve", "/answer MySQL")
    reply = team.forge.write_on(head, "ada", "/answer Postgres")
    said = sweep(team, "--resume")
    assert [one["outcome"] for one in said["accepted"]] == ["refused", "answered"]  # type: ignore[index]
    assert agent.starts == [gate]
    answer = team.gate(gate)["answer"]
    assert (answer["evidence"]["comment"], answer["evidence"]["commit"]) == (reply["id"], head)
    assert "acted on" in next(iter(team.forge.on_commits.values()))["body"]
    assert (reply["id"], "+1", ROBOT) in team.forge.reactions
    before = len(team.forge.on_commits)
    again = sweep(team)
    assert (again["accepted"], again["shown"], len(team.forge.on_commits)) == ([], [], before)  # type: ignore[index]


def test_a_webhook_tells_of_a_commits_comment(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever receives webhooks hears it at once; its number is looked up among those of commits."""
    monkeypatch.setenv("GITGATE_FORGE_COMMIT", "true")
    team.forge.pulls.clear()
    team.forge.commits[head_of(team)] = []
    gate = team.ask("Which?")
    comment = team.forge.write_on(head_of(team), "ada", "/answer Postgres")
    event = {"action": "created", "comment": comment, "sender": comment["user"], "repository": {"full_name": team.forge.repository}}  # fmt: skip
    place = str(team.event_file(event))
    said = team.cli.quick("github", "accept", place, "--json", cwd=team.job().path, code=0).json
    assert (said["outcome"], said["gate"]) == ("answered", gate)


def test_a_commit_that_was_never_pushed_has_no_comments(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and the other gates of the sweep are shown."""
    monkeypatch.setenv("GITGATE_FORGE_COMMIT", "true")
    team.agents.git("checkout", "-q", "-b", "of-its-own")
    hidden = team.ask("Which?", show=False)
    team.agents.git("checkout", "-q", "feature")
    seen = team.ask("And which?", show=False)
    said = sweep(team, code=1)
    assert "No commit found" in said["trouble"][0]  # type: ignore[index]
    assert shown_on(team, seen) == [THREAD]
    assert shown_on(team, hidden) == []


# other addresses


@pytest.fixture
def enterprise(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Team]:
    """Enterprise Server: the API is below the site's own address."""
    with forge_server("enterprise") as forge:
        forge.join("ada")
        for name, value in forge.env.items():
            monkeypatch.setenv(name, value)
        yield Team(forge, bare, clone_of, cli, tmp_path)


def test_enterprise_server_is_asked_at_its_own_address(enterprise: Team) -> None:
    """As the job names it; pages and links too."""
    for number in range(130):
        enterprise.forge.write(THREAD, "ada", f"talk {number}")
    gate = enterprise.ask("Which?")
    assert enterprise.reply("/answer Postgres")["outcome"] == "answered"
    assert f"[the reply]({enterprise.forge.site}/pull/" in enterprise.shown(gate)


def test_a_repository_that_was_renamed_is_found(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its old name here, by its new one in events; comments are posted where it is now."""
    team.forge.old_name = "team/before"
    monkeypatch.setenv("GITHUB_REPOSITORY", "team/before")
    gate = team.ask("Which?")
    assert team.reply("/answer Postgres")["outcome"] == "answered"
    assert "Answered" in team.shown(gate)
    event = team.forge.event(team.forge.write(THREAD, "ada", "/answer SQLite"))
    event["repository"]["full_name"] = "team/another"
    place = str(team.event_file(event))
    said = team.cli.quick("github", "accept", place, "--json", cwd=team.job().path, code=0)
    assert said.json["outcome"] == "ignored"


def test_a_repository_that_went_to_another_owner_is_found(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its branches go by the new owner's name."""
    team.forge.old_name = "before/project"
    monkeypatch.setenv("GITHUB_REPOSITORY", "before/project")
    gate = team.ask("Which?")
    assert shown_on(team, gate) == [THREAD]


@pytest.fixture
def tea(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Team]:
    """Gitea, whose shapes are its own; whatever it does not know of a request fails the test."""
    with forge_server("gitea") as forge:
        forge.join("keeper", permission="admin", token="tea-token")
        forge.join("ada", permission="owner")
        forge.join("eve", permission="read")
        for name, value in {**forge.env, "GITHUB_TOKEN": "tea-token", "GITEA_ACTIONS": "true"}.items():
            monkeypatch.setenv(name, value)
        yield Team(forge, bare, clone_of, cli, tmp_path)


def test_gitea_is_spoken_to_through_the_same_seam(tea: Team, agent: Agent) -> None:
    """Another forge, another API: the question is shown there, a reply is the answer, proven and acted on."""
    gate = tea.ask("Which?")
    assert tea.reply("/answer MySQL", "eve")["outcome"] == "refused"
    tea.forge.write(THREAD, "ada", "/answer Postgres")
    said = sweep(tea, "--resume")
    assert [one["outcome"] for one in said["accepted"]] == ["answered"]  # type: ignore[index]
    assert agent.starts == [gate]
    assert tea.gate(gate)["answer"]["via"] == "gitea"
    (shown,) = [c for c in tea.forge.by("keeper") if "seen=" in c["body"]]
    assert "acted on" in shown["body"]
    assert tea.forge.statuses[-1]["state"] == "success"


def test_gitea_is_spoken_to_at_its_plain_address(tea: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is set up by default: http, at a port of its own, with a person's token and clone. A token goes so to this machine
    alone: elsewhere it would travel in the open.
    """
    gate = tea.ask("Which?", show=False)
    for name in (*tea.forge.env, "GITEA_ACTIONS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GITGATE_GITHUB_TOKEN", "tea-token")
    for name, value in {
        "forge": "gitea",
        "forgeAt": f"http://localhost:{tea.forge.port}/team/project",
    }.items():
        tea.agents.git("config", f"gitgate.{name}", value)
    tea.cli.quick("github", "comment", gate, cwd=tea.agents.path, code=0)
    (shown,) = [c for c in tea.forge.by("keeper") if f"gate={gate} seen=" in c["body"]]
    assert "Which?" in shown["body"]
    tea.forge.write(THREAD, "ada", "/answer Postgres")
    said = tea.cli.quick("github", "sweep", "--json", cwd=tea.agents.path, code=0).json
    assert [one["outcome"] for one in said["accepted"]] == ["answered"]
    tea.agents.git("config", "gitgate.forgeAt", "http://git.example.org:3000/team/project")
    refused = tea.cli.quick("github", "sweep", cwd=tea.agents.path, code=1)
    assert "git.example.org:3000 is not https: a token would travel in the open" in refused.err
    assert "git config gitgate.forgeApi https://HOST/api/v1" in refused.err


def test_giteas_webhook_is_read(tea: Team, tmp_path: Path) -> None:
    """It is signed as GitHub's is and names GitHub's event, too; its sender has no type."""
    gate = tea.ask("Which?")
    comment = tea.forge.write(THREAD, "ada", "/answer Postgres")
    event = gitea.shaped(tea.forge.event(comment), tea.forge.site, tea.forge.pulls) | {"is_pull": True}
    body = json.dumps(event).encode()
    signature = "sha256=" + hmac.new(b"s" * 32, body, hashlib.sha256).hexdigest()
    receiver = Receiver("s" * 32, Seen(tmp_path / "seen"))
    said = {
        "x-github-event": "issue_comment",
        "x-hub-signature-256": signature,
        "content-type": "application/json",
    }
    assert receiver.take(said, body) == (202, "taken")
    assert receiver.events.get() == Commented(comment["id"], tea.forge.repository)
    assert tea.gate(gate)["state"] == "awaiting"


@pytest.mark.parametrize("number", [-1, -2])
def test_giteas_nobodies_are_nobody(tea: Team, number: int) -> None:
    """Neither an account that is gone nor a job's has a type there; their numbers tell."""
    gate = tea.ask("Deploy?", "--type", "approval")
    tea.forge.accounts["ada"].number = number
    assert tea.reply("/approve")["outcome"] == "ignored"
    assert tea.gate(gate)["state"] == "awaiting"


def test_gitea_has_no_comments_on_commits(tea: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to do instead."""
    monkeypatch.setenv("GITGATE_FORGE_COMMIT", "true")
    tea.forge.pulls.clear()
    gate = tea.ask("Which?", show=False)
    assert "forgeIssue" in tea.cli.quick("github", "comment", gate, cwd=tea.agents.path, code=1).err


def test_gitea_that_does_not_tell_who_may_write_refuses_nobody(tea: Team) -> None:
    """The job fails with what to do; the author is not told that they may not."""
    gate = tea.ask("Which?")
    comment = tea.forge.write(THREAD, "ada", "/answer Postgres")
    place = str(tea.event_file(tea.forge.event(comment)))
    job = tea.job()
    tea.forge.faults = [Fault(403, path="/permission")]
    assert "administrators" in tea.cli.quick("github", "accept", place, cwd=job.path, code=1).err
    assert tea.gate(gate)["state"] == "awaiting"
    assert not [c for c in tea.forge.comments.values() if "told=" in c["body"]]
