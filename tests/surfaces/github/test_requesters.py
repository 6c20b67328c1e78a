"""Whose request a job's question is: recorded, shown and linked, and kept from answering it where the policy wants another's word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitgate.surfaces.forge.hosts import started_by
from support.resuming import Agent
from support.testbed.command import Outcome
from support.testbed.repositories import Clone

from .conftest import THREAD, Team
from .test_whose import publish_policy

FOUR_EYES = "policy:\n  requester_may_answer: false\n"
ACTOR = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "ada",
    "GITHUB_ACTOR_ID": "1001",
    "GITHUB_SERVER_URL": "https://github.com",
}
ASK = "git-gate ask 'Deploy?' --type approval --agent scripted --session session-1"


@pytest.mark.parametrize(
    ("env", "event", "found"),
    [
        ({}, {}, ["ada <1001+ada@users.noreply.github.com>"]),
        ({}, {"sender": {"login": "Ada", "id": 1001}}, ["Ada <1001+Ada@users.noreply.github.com>", "ada <1001+ada@users.noreply.github.com>"]),
        ({"GITHUB_TRIGGERING_ACTOR": "bob"}, {"sender": {"login": "ada", "id": 1001}},
         ["ada <1001+ada@users.noreply.github.com>", "bob <bob@users.noreply.github.com>"]),
        ({"GITHUB_ACTOR": "renovate[bot]", "GITHUB_ACTOR_ID": "7"}, {}, ["renovate[bot] <7+renovate[bot]@users.noreply.github.com>"]),
        ({"GITHUB_EVENT_NAME": "schedule"}, {"sender": {"login": "ada", "id": 1}}, []),
        ({"GITHUB_EVENT_NAME": "schedule", "GITHUB_TRIGGERING_ACTOR": "ada"}, {}, []),
        ({"GITHUB_EVENT_NAME": "schedule", "GITHUB_TRIGGERING_ACTOR": "ada", "GITHUB_RUN_ATTEMPT": "2"}, {},
         ["ada <ada@users.noreply.github.com>"]),
        ({"GITHUB_ACTOR": "x <e@x>, y"}, {"sender": "nobody"}, []),
    ],
    ids=["actor", "capitals", "run again", "program", "schedule", "schedule's actor", "schedule, run again", "no login"],
)  # fmt: skip
def test_who_started_a_job(env: dict[str, str], event: dict[str, Any], found: list[str]) -> None:
    """The event's sender and the runner's word, each once; who ran it again as well; on a schedule nobody."""
    assert list(started_by({**ACTOR, **env}, event)) == found


def asked_in_job(team: Team, command: str = ASK, code: int = 0, **env: str) -> tuple[Outcome, Clone]:
    """The first run of an agent, as its workflow does it: prepared, run without a token, then pushed and shown."""
    team.jobs += 1
    job = team.clone_of(team.bare, f"first{team.jobs}", "-b", "feature")
    runner = {**ACTOR, "GITHUB_SERVER_URL": team.forge.env["GITHUB_SERVER_URL"], **env}
    team.cli.quick("github", "prepare", cwd=job.path, env=runner, code=0)
    given = {**runner, "GITGATE_AGENT_COMMAND": json.dumps(["sh", "-c", command]), "GITGATE_PUSH": "false"}
    team.cli.quick("github", "run", cwd=job.path, env=given, code=0)
    return team.cli.quick("github", "publish", cwd=job.path, env=runner, code=code), job


def only_gate(job: Clone) -> str:
    (ref,) = job.git("for-each-ref", "--format=%(refname)", "refs/hitl/open").split()
    return ref.rpartition("/")[2]


@pytest.mark.slow
@pytest.mark.parametrize("login", ["ada", "ADA"])
def test_who_dispatched_does_not_answer_their_own_request(team: Team, agent: Agent, login: str) -> None:
    """Nor under capitals. Somebody else does. The comment names and links whose request it is."""
    publish_policy(team, FOUR_EYES)
    _, job = asked_in_job(team, GITHUB_ACTOR=login)
    gate = only_gate(job)
    asked = team.gate(gate)["asked"]
    assert asked["logins"] == [login]
    assert asked["by"] == f"{login} <1001+{login}@users.noreply.127.0.0.1>"
    server = team.forge.env["GITHUB_SERVER_URL"]
    assert f"(of [`@{login}`]({server}/{login}))" in team.shown(gate)
    assert f"not `@{login}`, whose agent asked" in team.shown(gate)
    assert team.reply("/approve", "ada")["outcome"] == "refused"
    assert "whose agent asked may not answer" in team.told()[0]
    assert team.reply("/approve", "grace")["outcome"] == "answered"


@pytest.mark.slow
def test_who_ran_it_again_does_not_answer_either(team: Team) -> None:
    """The run is both persons': the third one's word counts."""
    team.forge.join("bob")
    publish_policy(team, FOUR_EYES)
    _, job = asked_in_job(team, GITHUB_TRIGGERING_ACTOR="bob", GITHUB_RUN_ATTEMPT="2")
    assert team.gate(only_gate(job))["asked"]["logins"] == ["ada", "bob"]
    outcomes = [team.reply("/approve", login)["outcome"] for login in ("ada", "bob", "grace")]
    assert outcomes == ["refused", "refused", "answered"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "env", [{"GITHUB_ACTOR": "renovate[bot]"}, {"GITHUB_EVENT_NAME": "schedule"}], ids=["program", "schedule"]
)
def test_a_program_or_a_schedule_is_nobodys_request(team: Team, env: dict[str, str]) -> None:
    """Whoever changed the schedule last asked for nothing; a program's word is nobody's, so that any person may answer."""
    publish_policy(team, FOUR_EYES)
    asked_in_job(team, ASK, 0, **env)
    assert team.reply("/approve", "ada")["outcome"] == "answered"


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        f"git config gitgate.requester 'bob <1+bob@users.noreply.github.com>'; {ASK}; git config --unset gitgate.requester",
        f"git -c gitgate.requester= {ASK.replace('git-gate', 'gate')}",
        f"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gitgate.requester GIT_CONFIG_VALUE_0=x env -u GITHUB_ACTOR {ASK}",
        f"GITGATE_GATE=EARLIER {ASK}",
    ],
    ids=["configured", "for one command", "in the environment", "as a later one"],
)
def test_an_agent_that_names_somebody_else_is_not_pushed(team: Team, way: str) -> None:
    """It works for who started it, who could have told it to: nothing of that job gets out."""
    publish_policy(team, FOUR_EYES)
    earlier = team.ask("Earlier?")
    before = team.bare.git("for-each-ref")
    fetch = f"git fetch -q origin 'refs/hitl/open/*:refs/hitl/open/*' 'refs/hitl/open/*:refs/gitgate/origin/open/*'; {way}"
    said, _ = asked_in_job(team, fetch.replace("EARLIER", earlier), code=4)
    assert "does not name @ada, for whom it was asked; nothing was pushed" in said.err
    assert team.bare.git("for-each-ref") == before


@pytest.mark.slow
def test_a_later_question_is_for_the_same_person(team: Team, agent: Agent) -> None:
    """Grace, who answered, let the agent go on; what it asks then is still Ada's request, and Grace may answer it."""
    publish_policy(team, FOUR_EYES)
    _, job = asked_in_job(team, ASK)
    gate = only_gate(job)
    agent.does('git-gate ask "And now?" --type approval --agent scripted')
    event = team.event_file(team.forge.event(team.forge.write(THREAD, "grace", "/approve")))
    env = {
        **ACTOR,
        "GITHUB_ACTOR": "grace",
        "GITHUB_EVENT_PATH": str(event),
        "GITGATE_GITHUB_TOKEN": "job-token",
    }
    second = team.clone_of(team.bare, "second")
    team.cli.quick("github", "prepare", cwd=second.path, env=env, code=0)
    team.cli.quick("github", "accept", str(event), "--resume", cwd=second.path, env=env, code=0)
    (later,) = [one for one in listed(team) if one["follows"] == gate]
    assert later["asked"]["logins"] == ["ada"]
    assert later["asked"]["by"].startswith("ada <")
    assert team.reply("/approve", "ada")["outcome"] == "refused"
    assert team.reply("/approve", "grace")["outcome"] == "answered"


def listed(team: Team) -> list[Any]:
    clone = team.job()
    team.cli.quick("sync", cwd=clone.path, code=0)
    ids = [
        one["id"] for one in team.cli.quick("list", "--all", "--json", cwd=clone.path, code=0).json["gates"]
    ]
    return [team.cli.quick("show", gate, "--json", cwd=clone.path, code=0).json for gate in ids]


@pytest.mark.slow
def test_who_asked_does_not_vouch_for_a_name_they_wrote(team: Team, agent: Agent) -> None:
    """Any name may stand in an answer from a terminal. Ada wrote Grace's, and asks for it to be acted on; Grace may ask for that."""
    people = "  people:\n    grace: {email: grace@example.org, login: grace}\n    ada: {email: ada@example.org, login: ada}\n"
    publish_policy(team, FOUR_EYES + people)
    _, job = asked_in_job(team)
    gate = only_gate(job)
    team.cli.quick("sync", cwd=team.agents.path, code=0)
    as_grace = {"GIT_AUTHOR_NAME": "Grace", "GIT_AUTHOR_EMAIL": "grace@example.org"}
    team.cli.quick("respond", gate, "--approve", "--no-resume", cwd=team.agents.path, env=as_grace, code=0)
    commit = team.gate(gate)["answer"]["commit"]

    def dispatch(login: str, verb: str, code: int) -> None:
        place = str(team.event_file(team.forge.run_event("gitgate.yml", login, gate=gate, commit=commit)))
        words = {"accept": (place, "--resume"), "resume": (gate, "--event", place)}[verb]
        team.cli.quick("github", verb, *words, cwd=team.job().path, code=code)

    dispatch("ada", "accept", 4)
    dispatch("ada", "resume", 4)
    assert agent.starts == []
    dispatch("grace", "resume", 0)
    assert agent.starts == [gate]


@pytest.mark.slow
def test_an_address_that_may_be_the_requesters(team: Team) -> None:
    """Ada's job knows her by her login, her terminal by an address: without a word in the policy they may be one person."""
    publish_policy(team, FOUR_EYES)
    _, job = asked_in_job(team)
    gate = only_gate(job)
    team.cli.quick("sync", cwd=team.agents.path, code=0)
    said = team.cli.quick("respond", gate, "--approve", "--no-resume", cwd=team.agents.path, code=4)
    assert "is not @ada: list both, with address and login, under `people`" in said.err
