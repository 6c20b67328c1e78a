"""Looking `.gitgate.yml` over: what of it holds, what refuses everything, and what nobody reads."""

from __future__ import annotations

import pytest

from gitgate.service.checkup import examine
from gitgate.service.finding import Finding
from resuming import Seat
from signing import publish_policy
from testbed.command import Command
from testbed.repositories import Clone


def found(seat: Seat) -> dict[str, Finding]:
    return {one.name: one for one in examine(seat.desk)}


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("policy: {rulez: []}\n", "policy", "origin/HEAD:.gitgate.yml, line 1: policy.rulez"),
        ("policy:\n  who: [nobody]\n", "policy", "origin/HEAD:.gitgate.yml, line 2: policy.who"),
        ("approvals: Bash(x)\n", "approvals", "origin/HEAD:.gitgate.yml, line 1: approvals"),
        ("approvals:\n  - {call: Bash, timeout: 5q}\n", "approvals", "line 2: approvals[0].timeout"),
    ],
)
def test_what_refuses_everything_is_wrong(ann: Seat, bare: Clone, text: str, name: str, words: str) -> None:
    """With its place on the protected branch; in the working tree nothing need be wrong."""
    publish_policy(bare, text)
    ann.clone.git("fetch", "-q", "origin")
    one = found(ann)[name]
    assert one.state == "wrong"
    assert words in one.words
    assert "mend" in one.mend


def test_a_broken_policy_fails_the_command(repo: Clone, cli: Command) -> None:
    """A script hears of it too, before an agent asks and is refused."""
    repo.write(".gitgate.yml", "policy: {rulez: []}\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Rules")
    assert "!!  policy: the policy is broken" in cli.quick("doctor", code=1).out
    cli.quick("ask", "Which?", code=4)


def test_what_holds_is_said(ann: Seat, bare: Clone) -> None:
    """Where the policy is from, and that there are rules; nothing where there are neither."""
    assert not {"policy", "approvals"} & set(found(ann))
    publish_policy(bare, "policy: {quorum: 2}\napprovals: ['Bash(x)']\n")
    ann.clone.git("fetch", "-q", "origin")
    ann.clone.git("config", "gitgate.requireSigned", "true")
    said = [one for one in examine(ann.desk) if one.name in ("policy", "approvals")]
    assert {one.state for one in said} == {"good"}
    assert ["origin/HEAD:.gitgate.yml" in one.words for one in said] == [True, False, False]
    assert "git config" in said[1].words
