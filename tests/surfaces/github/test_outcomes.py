"""What people are told in a comment of their own: whom it is for, what came of an answer, and how it is tried again."""

from __future__ import annotations

import pytest

from support.resuming import Agent
from support.testbed.repositories import Clone

from .conftest import THREAD, Team
from .pages import rendered
from .test_jobs import COMMITS
from .test_whose import publish_policy

pytestmark = pytest.mark.slow  # each takes a second or more

SAYS = "printf '%s' '{\"result\": \"Done, see #12 and @eve\"}'"


def ends(team: Team, gate: str) -> list[str]:
    return [
        c["body"]
        for c in team.forge.by("github-actions[bot]")
        if f" gate={gate} -->" in c["body"] and "came=" in c["body"]
    ]


def sweep(team: Team) -> None:
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)


def test_an_outcome_is_a_comment_of_its_own_once(team: Team, agent: Agent, bare: Clone) -> None:
    """Since nobody is notified of an edited one: the commits, where, and a link that compares them."""
    agent.does(COMMITS)
    gate = team.ask("Which database?")
    team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"), "--resume")
    tip = bare.git("rev-parse", "feature")
    (told,) = ends(team, gate)
    assert (
        f"Gate **{gate}**: ✅ the agent went on and ended: [`{tip[:10]}`]({team.forge.site}/commit/{tip}) on `feature`"
        in told
    )
    assert f"on `feature`. **To review:** [compare]({team.forge.site}/compare/{tip}%5E...{tip})" in told
    assert "It had asked: Which database?\nThe answer: `Postgres`, by `ada`\n" in told + "\n"
    for _ in range(2):
        sweep(team)
    assert ends(team, gate) == [told]
    assert team.posts() == 2


def test_a_failure_is_told_with_the_way_to_try_again(
    team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 34: a person starts the workflow with what the comment names; a job that nobody asked for it starts nobody."""
    monkeypatch.setenv("GITGATE_MAX_ATTEMPTS", "1")
    agent.does("exit 3")
    gate = team.ask("Which database?")
    team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"), "--resume", code=1)
    assert team.gate(gate)["state"] == "failed"
    (told,) = ends(team, gate)
    answer = team.gate(gate)["answer"]["commit"]
    page = f"{team.forge.site}/actions/workflows/gitgate.yml"
    assert "⚠️ the agent failed" in told
    assert "It is not tried again by itself, and its answer is kept:" in told
    assert (
        f"[the workflow's page]({page}), its button **Run workflow**: leave the branch, give the gate `{gate}` and the commit `{answer}`"
        in told
    )
    assert f"`git gate resume {gate}`" in told
    assert rendered(told).links == [page]

    agent.does(COMMITS)
    starts = len(agent.starts)
    for login, commit in (("eve", answer), ("ada", ""), ("ada", "f" * 40)):
        event = team.event_file(team.forge.run_event("gitgate.yml", login, gate=gate, commit=commit))
        team.cli.quick("github", "resume", gate, "--event", str(event), cwd=team.job().path)
        assert len(agent.starts) == starts
    event = team.event_file(team.forge.run_event("gitgate.yml", "ada", gate=gate, commit=answer))
    team.cli.quick("github", "resume", gate, "--event", str(event), cwd=team.job().path, code=0)
    assert len(agent.starts) == starts + 1
    assert team.gate(gate)["state"] == "resumed"
    assert len(ends(team, gate)) == 2


def test_a_failure_is_ended_by_a_reply(team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its comment says; by somebody who may write."""
    monkeypatch.setenv("GITGATE_MAX_ATTEMPTS", "1")
    agent.does("exit 3")
    gate = team.ask("Which database?")
    team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"), "--resume", code=1)
    (told,) = ends(team, gate)
    assert f"`/stop {gate} WHY`" in told
    team.hear(team.forge.write(THREAD, "eve", f"/stop {gate} not mine"))
    assert team.gate(gate)["state"] == "failed"
    team.hear(team.forge.write(THREAD, "ada", f"/stop {gate} no database after all"))
    assert team.gate(gate)["state"] == "stopped"
    assert "no database after all" in team.shown(gate)


def test_those_whom_it_is_for_are_mentioned(team: Team) -> None:
    """Row 34: and nobody else: neither who may not write, nor a team, nor whoever the agent's words name."""
    publish_policy(
        team, "policy: {}\n"
    )  # without one nobody is asked by a name that says nothing of who they are
    gate = team.ask(
        "Deploy, @grace?",
        "--type",
        "approval",
        *("--to", "@ada"),
        *("--to", "@eve"),
        *("--to", "@team/all"),
        *("--to", "@ghost"),
    )
    first = team.shown(gate)
    assert [word for word in rendered(first).words if "@" in word and "\u200b" not in word] == ["For @ada"]
    asked = sum("/collaborators/" in one for one in team.forge.asked)
    sweep(team)
    assert team.shown(gate) == first
    assert sum("/collaborators/" in one for one in team.forge.asked) == asked
    team.forge.join("eve", permission="write").permission = "write"
    sweep(team)
    assert team.shown(gate) == first


def test_the_job_that_asks_is_linked(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its number, which the job says and no question file."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_RUN_ID", "4711")
    gate = team.ask("Which database?")
    assert f"started by [a job]({team.forge.site}/actions/runs/4711)" in team.shown(gate)
