"""Whether it may be merged: the worked example of docs/github.md, and a merge queue."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from gitgate.document import codec
from gitgate.surfaces.forge.hosts import queued_in
from support.forges.standin import Forge
from support.resuming import Agent

from .conftest import THREAD, Team
from .test_requesters import asked_in_job, only_gate
from .test_sweeps import sweep
from .test_whose import publish_policy

slow = pytest.mark.slow  # each takes a second or more
PAGE = Path(__file__).parents[3] / "docs/github.md"


def block(kind: str) -> str:
    """What the example says in this language."""
    part = PAGE.read_text(encoding="utf-8").partition("### A merge that waits for a person\n")[2]
    found = re.search(rf"```{kind}\n(.*?)```", part, re.DOTALL)
    assert found
    return textwrap.dedent(found.group(1))


def on_the_page(kind: str) -> dict[str, Any]:
    if kind == "json":
        return dict(json.loads(block(kind)))
    said = codec.parse_document(block(kind).encode(), "docs/github.md").plain()
    assert isinstance(said, dict)
    return said


def may_merge(forge: Forge, commit: str) -> bool:
    """As GitHub decides by the ruleset of the page: the latest of each required status is a success."""
    (rule,) = on_the_page("json")["rules"]
    required = [one["context"] for one in rule["parameters"]["required_status_checks"]]
    latest = {one["context"]: one["state"] for one in forge.statuses if one["sha"] == commit}
    return all(latest.get(name) == "success" for name in required)


@slow
def test_a_waiting_gate_holds_the_merge_and_a_decided_one_frees_it(team: Team, agent: Agent) -> None:
    """With the policy of the page: whoever started the agent's job does not decide, somebody else does."""
    publish_policy(team, block("yaml"))
    head = team.forge.pulls[THREAD]["head"]["sha"]
    assert not may_merge(team.forge, head)
    sweep(team)
    assert may_merge(team.forge, head)
    _, job = asked_in_job(team)
    gate = only_gate(job)
    sweep(team)
    assert not may_merge(team.forge, head)
    assert team.reply("/approve", "ada")["outcome"] == "refused"
    assert not may_merge(team.forge, head)
    assert team.reply("/approve", "grace")["outcome"] == "answered"
    assert not may_merge(team.forge, head)  # what the agent makes of it is to come
    team.cli.quick("github", "resume", gate, cwd=team.job().path, code=0)
    assert agent.ends == [gate]
    team.forge.pulls[THREAD]["head"]["sha"] = team.bare.git("rev-parse", "feature")
    sweep(team)
    assert may_merge(team.forge, team.forge.pulls[THREAD]["head"]["sha"])
    assert team.gate(gate)["answer"]["verdict"] == "approved"


def queue(number: int, commit: str) -> dict[str, str]:
    """What a job of a merge queue has in its environment."""
    ref = f"refs/heads/gh-readonly-queue/main/pr-{number}-{'0' * 40}"
    return {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF": ref, "GITHUB_SHA": commit}


def in_queue(team: Team, number: int, commit: str) -> None:
    team.cli.quick("github", "sweep", cwd=team.job().path, env=queue(number, commit), code=0)


@slow
def test_a_queue_hears_of_a_gate_that_waits(team: Team) -> None:
    """The pull request leaves the queue; once it is decided, the next try goes through. Others are not held up by it."""
    team.forge.open_pull(8, "other", "e" * 40)
    team.ask("Which?")
    first, second, third = ("1" * 40, "2" * 40, "3" * 40)
    in_queue(team, THREAD, first)
    assert [(one["sha"], one["state"]) for one in team.forge.statuses] == [(first, "failure")]
    in_queue(team, 8, second)
    team.reply("/answer Postgres")
    in_queue(team, THREAD, third)
    assert [may_merge(team.forge, one) for one in (first, second, third)] == [False, True, True]
    in_queue(team, 99, "4" * 40)
    assert not may_merge(team.forge, "4" * 40)


@pytest.mark.parametrize(
    "change",
    [
        {"GITHUB_EVENT_NAME": "push"},
        {"GITHUB_REF": "refs/heads/main"},
        {"GITHUB_REF": "refs/heads/gh-readonly-queue/main/pr-7"},
        {"GITHUB_SHA": "main"},
    ],
)
def test_what_is_no_job_of_a_queue(change: dict[str, str]) -> None:
    """Whatever else a branch is called."""
    assert queued_in(queue(7, "a" * 40)) == (7, "a" * 40)
    assert queued_in({**queue(7, "a" * 40), **change}) is None
