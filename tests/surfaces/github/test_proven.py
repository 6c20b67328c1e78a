"""What was taken for an answer is proven to be one, however the gate was named; and what was not, never is, whatever is shown later."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gitgate import document as readers
from gitgate.context import open_desk
from gitgate.gates.recording import append, reload
from gitgate.model.gate import Claim, Outcome
from gitgate.text import format_time
from support.resuming import Agent

from .conftest import THREAD, Team
from .test_jobs import forged
from .test_whose import publish_policy

pytestmark = pytest.mark.slow  # each takes a second or more

APPROVAL = ("--type", "approval")


def short(gate: str, least: int = 4) -> str:
    """As few letters of a gate's name as name it."""
    return next((gate[:most] for most in range(least, 10) if re.search(r"\d", gate[:most])), gate)


def shown_too(team: Team, gate: str) -> str:
    """Another gate's comment of ours, whose name begins with the same letters."""
    other = gate[:5] + "z" * 5
    team.forge.write(THREAD, "github-actions[bot]", f"<!-- gitgate gate={other} seen={'a' * 40} -->\nasks")
    return other


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("/approve {short} it is fine", APPROVAL),
        ("/APPROVE `{capitals}` it is fine\nmore", APPROVAL),
        ("/reject {short}: not yet", APPROVAL),
        ("/answer {short} Postgres", ()),
        ("{capitals}: Postgres", ()),
        ("> gate **{gate}** x\n\nPostgres", ()),
        ("/choose {short} #2\nbecause", ("-o", "2", "-o", "5")),
        ("/choose {gate} 2, 1", ("--type", "choices", "-o", "A", "-o", "B")),
        ("/answer {short} other: C", ("-o", "A", "-o", "B")),
    ],
    ids=range(9),
)
def test_whatever_is_taken_starts_the_agent(
    team: Team, agent: Agent, tmp_path: Path, reply: str, question: tuple[str, ...]
) -> None:
    """Three gates in a thread, one of them over: the job that takes the reply hands it on, and the next one acts on it."""
    over = team.ask("Earlier?")
    team.reply("/stop no")
    team.ask("Another?")
    gate = team.ask("Which?", *question)
    words = reply.format(gate=gate, short=short(gate), capitals=gate.upper())
    place = str(team.event_file(team.forge.event(team.forge.write(THREAD, "ada", words))))
    output = tmp_path / "output"
    env = {"GITHUB_OUTPUT": str(output)}
    team.cli.quick("github", "accept", place, cwd=team.job().path, env=env, code=0)
    assert f'resume=["{gate}"]' in output.read_text().splitlines()
    shown_too(team, gate)
    team.cli.quick("github", "resume", gate, "--event", place, cwd=team.job().path, code=0)
    assert agent.starts == [gate]
    assert team.gate(over)["state"] == "stopped"
    assert team.told() == []


def test_a_sweep_starts_what_a_short_name_answered(team: Team, agent: Agent) -> None:
    """The job that took it went no further."""
    team.ask("Another?")
    gate = team.ask("Deploy?", *APPROVAL)
    team.reply(f"/approve {short(gate)} go")
    said = team.cli.quick("github", "sweep", "--resume", cwd=team.job().path, code=0)
    assert agent.starts == [gate], said.err


def test_a_short_name_of_two_is_no_proof_when_one_is_gone(team: Team, agent: Agent) -> None:
    """It was refused; whoever removes the other gate's comment, and writes the answer themselves, starts nobody."""
    gate = team.ask("Deploy?", *APPROVAL)
    other = shown_too(team, gate)
    comment = team.forge.write(THREAD, "ada", f"/approve {gate[:5]}")
    assert team.hear(comment).json["outcome"] == "unclear"
    assert gate in team.told()[0]
    for ours in [c for c in team.forge.by("github-actions[bot]") if f"gate={other} " in c["body"]]:
        del team.forge.comments[ours["id"]]
    forged(team, gate, comment=comment["id"])
    found = doubts(team)
    assert list(found) == [gate]
    assert "refused" in found[gate]
    assert agent.starts == []


def test_what_was_refused_is_no_answer_when_fewer_wait(team: Team, agent: Agent) -> None:
    """`/approve` where two gates wait means neither: not later, not by another delivery, not by an answer that names it."""
    first, second = team.ask("Deploy to staging?", *APPROVAL), team.ask("Deploy to production?", *APPROVAL)
    comment = team.forge.write(THREAD, "ada", "/approve")
    assert team.hear(comment).json["outcome"] == "unclear"
    team.reply(f"/approve {first}")
    assert team.hear(comment).json["outcome"] == "refused"
    assert team.gate(second)["state"] == "awaiting"
    assert len(team.told()) == 1
    forged(team, second, comment=comment["id"])
    said = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert "refused" in said["doubts"][second]


def test_a_pushed_answer_has_the_login_of_its_comment(team: Team, agent: Agent) -> None:
    """Ada may write, and the policy wants Grace: her own comment is no proof of an answer that says it is Grace's."""
    publish_policy(team, "policy:\n  people: {grace: {login: grace, email: g@example.org}}\n  who: [grace]\n")
    gate = team.ask("Deploy?", *APPROVAL)
    comment = team.forge.write(THREAD, "ada", "/approve")
    forged(team, gate, comment=comment["id"], login="grace")
    assert doubts(team) == {gate: f"gate {gate}: the comment has another login than the answer says"}
    assert team.hear(comment, "--resume", code=4).json["outcome"] == "again"
    assert agent.starts == []


@pytest.mark.parametrize(
    ("name", "word"),
    [("login", None), ("login", ""), ("account", 1), ("at", ""), ("at", "2026-01-01T00:00:00Z"), ("commit", "a" * 40)],
)  # fmt: skip
def test_a_pushed_answer_says_of_its_comment_what_the_forge_does(
    team: Team, agent: Agent, name: str, word: object
) -> None:
    """Nothing of it is made up, or left out: whoever asked, and may not answer, has a login."""
    gate = team.ask("Deploy?", *APPROVAL)
    comment = team.forge.write(THREAD, "ada", "/approve")
    forged(team, gate, comment=comment["id"], **{name: word})
    assert list(doubts(team)) == [gate]
    assert agent.starts == []


@pytest.mark.parametrize(("ahead", "starts"), [(60, True), (3600, False)])
def test_a_pushed_answer_is_no_older_than_its_comment(
    team: Team, agent: Agent, ahead: int, starts: bool
) -> None:
    """But for clocks that differ a little."""
    gate = team.ask("Deploy?", *APPROVAL)
    comment = team.forge.write(THREAD, "ada", "/approve")
    comment["created_at"] = comment["updated_at"] = format_time(team.clock() + ahead)
    forged(team, gate, comment=comment["id"])
    assert ("given before" in doubts(team).get(gate, "")) is not starts
    assert agent.starts == [gate] * starts


def test_a_comment_from_too_late_proves_no_answer_in_time(team: Team, agent: Agent) -> None:
    """The policy goes by the comment's time, whatever time the pushed answer gives."""
    publish_policy(team, "policy:\n  within: 1m\n")
    gate = team.ask("Deploy?", *APPROVAL)
    comment = team.forge.write(THREAD, "ada", "/approve")
    comment["created_at"] = comment["updated_at"] = format_time(team.clock() + 200)
    forged(team, gate, comment=comment["id"], at=format_time(team.clock()))
    assert "another time" in doubts(team)[gate]
    assert agent.starts == []


@pytest.mark.parametrize("login", ["eve", "grace"])
def test_a_comment_by_somebody_else_is_no_proof(team: Team, agent: Agent, login: str) -> None:
    """Whether they may write or not: all that it says of the comment is true, and the answer is in Ada's name all the same."""
    gate = team.ask("Deploy?", *APPROVAL)
    comment = team.forge.write(THREAD, login, "/approve")
    forged(team, gate, comment=comment["id"], login=login, account=team.forge.accounts[login].number)
    assert doubts(team) == {gate: f"gate {gate}: the comment is by {login}"}
    assert team.hear(comment, "--resume", code=0 if login == "eve" else 4).json["outcome"] != "answered"
    assert agent.starts == []


def test_whoever_lost_the_right_to_write_starts_nobody(team: Team, agent: Agent) -> None:
    """It was an answer when it was taken; before an agent is started the forge is asked again, and it is once they may again."""
    gate = team.ask("Deploy?", *APPROVAL)
    ada = team.forge.accounts["ada"]
    assert team.reply("/approve")["outcome"] == "answered"
    ada.permission = "read"
    assert doubts(team) == {gate: f"gate {gate}: ada may not write to this repository"}
    team.cli.quick("github", "resume", gate, cwd=team.job().path, code=4)
    assert agent.starts == []
    ada.permission = "write"
    assert doubts(team) == {}
    assert agent.starts == [gate]


def test_an_outcome_whose_commits_are_none_is_a_broken_record(
    team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may push can write one, by hand or with a program that takes anything: it is named, by a sweep too, and nobody is told of it."""
    gate = team.ask("Which?")
    team.reply("/answer Postgres")
    team.cli.quick("sync", cwd=team.agents.path, code=0)
    before = team.shown(gate)
    with monkeypatch.context() as patched:
        patched.setattr(readers, "commit_id", lambda field: field.text())
        claim_and_end(team, gate, commits=("a`](https://evil.example/x) @everyone **merge this** [`b",))
    where, wrong = team.agents.path, "commits[0]: expected a full commit id"
    assert wrong in team.cli.quick("show", gate, cwd=where, code=1).err
    assert wrong in team.cli.quick("verify", cwd=where, code=1).out
    assert gate in team.cli.quick("list", "--all", cwd=where, code=0).out
    assert wrong in team.cli.quick("sync", cwd=team.job().path, code=1).err
    swept = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=1).json
    assert [wrong in one for one in swept["trouble"]] == [True]
    assert (swept["doubts"], swept["resume"], team.shown(gate), agent.starts) == ({}, [], before, [])


def claim_and_end(team: Team, gate: str, **said: Any) -> None:
    """What a runner records, in the shared repository."""
    desk = open_desk(team.agents.path, os.environ)
    now = reload(desk, gate)
    assert now.answer is not None
    now = append(
        desk, now, "claimed", Claim(desk.now, now.answer.commit, "n" * 20, "local", "host", 1, 60, "eve")
    )
    now = append(desk, now, "outcome", Outcome(desk.now, now.tip, "resumed", branch="feature", **said))
    team.agents.git("push", "-q", "origin", f"refs/hitl/open/{gate}")
    desk.close()


def test_a_login_is_the_same_in_capitals(team: Team, agent: Agent) -> None:
    """As forges have it; and what the record says truly of a comment is an answer, whoever wrote it there."""
    gate = team.ask("Deploy?", *APPROVAL)
    forged(team, gate, comment=team.forge.write(THREAD, "ada", "/approve")["id"], login="Ada")
    assert doubts(team) == {}
    assert agent.starts == [gate]


def doubts(team: Team) -> dict[str, str]:
    """Those of a sweep that starts the agents of what is proven."""
    said = team.cli.quick("github", "sweep", "--resume", "--json", cwd=team.job().path, code=0)
    return dict(json.loads(said.out.splitlines()[0])["doubts"])
