"""Answers that are left to a job: it finds what is shared, so that they are shared first, or nobody is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gitgate
from gitgate.cli import CONFLICT
from support.resuming import Agent, Seat
from support.testbed.command import Outcome

from .conftest import Team

LEFT = [("resume", "{gate}", "--runner", "github"), ("github", "dispatch", "{gate}")]


@pytest.fixture
def run(team: Team) -> Callable[..., Outcome]:
    """At the terminal of whoever answers, in the clone of the agents."""

    def run(*words: str, code: int = 0) -> Outcome:
        return team.cli.quick(*words, cwd=team.agents.path, code=code)

    return run


def sent(team: Team) -> list[tuple[str, str]]:
    return [(one["inputs"]["gate"], one["inputs"]["commit"]) for one in team.forge.dispatched]


def accept(team: Team, number: int = 0) -> None:
    """The job that was asked for."""
    event = {
        "inputs": team.forge.dispatched[number]["inputs"],
        "repository": {"full_name": team.forge.repository},
        "sender": team.forge.accounts["ada"].shape,
    }
    team.cli.quick("github", "accept", str(team.event_file(event)), "--resume", cwd=team.job().path, code=0)


@pytest.mark.slow
@pytest.mark.parametrize("words", LEFT, ids=["resume", "dispatch"])
def test_an_answer_that_stayed_here_is_shared_first(
    team: Team, agent: Agent, run: Callable[..., Outcome], words: tuple[str, ...]
) -> None:
    """Else the job would find a gate that waits, and end as if all were well."""
    gate = team.ask("Which?")
    run("respond", gate, "Postgres", "--no-push")
    assert team.gate(gate)["state"] == "awaiting"
    run(*(word.format(gate=gate) for word in words))
    assert sent(team) == [(gate, team.gate(gate)["answer"]["commit"])]
    accept(team)
    assert agent.starts == [gate]


@pytest.mark.usefixtures("agent")
@pytest.mark.slow
@pytest.mark.parametrize("words", LEFT, ids=["resume", "dispatch"])
def test_no_job_is_asked_for_what_cannot_be_shared(
    team: Team, run: Callable[..., Outcome], words: tuple[str, ...]
) -> None:
    """It says so, and how to go on."""
    gate = team.ask("Which?")
    run("respond", gate, "Postgres", "--no-push")
    hook = team.bare.path / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho closed today >&2; exit 1\n")
    hook.chmod(0o755)
    said = team.cli.quick(*(word.format(gate=gate) for word in words), cwd=team.agents.path)
    assert said.code != 0
    assert f"gate {gate} is safe here, but not pushed" in said.err
    assert "resuming" not in said.err
    assert team.forge.dispatched == []


@pytest.mark.usefixtures("agent")
def test_nobody_vouches_for_an_answer_that_came_first(team: Team, run: Callable[..., Outcome]) -> None:
    """Another person's was shared meanwhile: whoever asks for a job has not seen it."""
    gate = team.ask("Which?")
    bob = team.job()
    team.cli.quick("sync", cwd=bob.path, code=0)
    team.cli.quick("respond", gate, "MySQL", "--no-resume", cwd=bob.path, code=0)
    run("respond", gate, "Postgres", "--no-push")
    assert "another answer to gate" in run("github", "dispatch", gate, code=CONFLICT).err
    assert team.forge.dispatched == []
    run("github", "dispatch", gate)
    assert sent(team) == [(gate, team.gate(gate)["answer"]["commit"])]


@pytest.mark.usefixtures("agent")
def test_no_job_goes_on_for_a_program_that_waits(team: Team, run: Callable[..., Outcome]) -> None:
    """It would find nothing to be started. Of all, it is none."""
    with Seat(team.agents) as seat:
        gate = seat.ask(wait=True).id
    run("respond", gate, "Postgres", "--no-resume")
    assert "waits for the answer where it was asked" in run("github", "dispatch", gate, code=CONFLICT).err
    assert "nothing is to be resumed" in run("resume", "--all", "--runner", "github").err
    assert team.forge.dispatched == []


@pytest.mark.slow
def test_all_are_asked_for_one_by_one(team: Team, agent: Agent, run: Callable[..., Outcome]) -> None:
    """Each with its answer, which nobody has signed: a sweep would act on none. What waits is left alone."""
    gates = [team.ask(f"Which {number}?") for number in range(2)]
    team.ask("What else?")
    for gate in gates:
        run("respond", gate, "Postgres", "--no-resume")
    said = run("resume", "--all", "--runner", "github", "--json")
    commits = {gate: team.gate(gate)["answer"]["commit"] for gate in gates}
    assert sorted(sent(team)) == sorted(commits.items())
    assert sorted(one["gate"] for one in said.json["gates"]) == sorted(gates)
    for number in range(2):
        accept(team, number)
    assert sorted(agent.starts) == sorted(gates)
    assert "nothing is to be resumed" in run("resume", "--all", "--runner", "github").err
    assert len(team.forge.dispatched) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_all_are_those_that_are_shared(team: Team, run: Callable[..., Outcome]) -> None:
    """Of one that was kept here it says so, by name, and fails; the other is asked for. So does the Python interface."""
    kept, other = team.ask("Which?"), team.ask("What else?")
    run("respond", kept, "Postgres", "--no-push")
    run("respond", other, "Postgres", "--no-resume")
    said = run("resume", "--all", "--runner", "github", code=1).err
    assert f"gate {kept}: its answer is not shared; git gate resume {kept} --runner github" in said
    assert f"gate {other}: resuming by github" in said
    assert [gate for gate, _ in sent(team)] == [other]
    found = gitgate.resume(all=True, runner="github", directory=team.agents.path)
    assert {one.gate: one.result for one in found} == {kept: "failed", other: "started"}
    assert [gate for gate, _ in sent(team)] == [other, other]


def test_all_of_a_repository_that_is_not_shared(team: Team, run: Callable[..., Outcome]) -> None:
    """No other machine sees it; and no runner has another name than those there are."""
    assert "nobody" in run("resume", "--all", "--runner", "nobody", code=2).err
    team.agents.git("remote", "remove", "origin")
    assert "there is no remote" in run("resume", "--all", "--runner", "github", code=1).err
    assert team.forge.dispatched == []
