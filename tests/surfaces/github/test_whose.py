"""Whose reply counts: the comment says it in the words of the policy, and notifies nobody by that."""

from __future__ import annotations

import re

import pytest

from gitgate.document.codec import parse_document
from gitgate.model.gate import Asker, Entry, Gate, Opened, Question, Work
from gitgate.policy import parse_policy
from gitgate.policy.ruling import case_of, deciding
from gitgate.record.events import begin
from gitgate.surfaces.forge.comment import View, render
from gitgate.surfaces.forge.words import ANYBODY, Whose, in_words, unruled

from .conftest import Team

WRITE = "with the right to write to this repository"
PEOPLE = """
  people:
    ada: {email: ada@example.org, login: ada}
    Grace Hopper: {email: grace@example.org, login: [grace, hopper]}
    paul: {email: paul@example.org}
  groups:
    dba: [ada, Grace Hopper]
"""


def gate_of(to: tuple[str, ...] = ()) -> Gate:
    asked = Asker("agent", "2026-01-01T00:00:00Z", "Eve <eve@example.org>")
    opened = Opened(
        "title", (Question("ok", "Deploy?", "approval"),), asked, Work(None, None, None), "nonce", to=to
    )
    return begin("7k2fw9c3ab", Entry("a" * 40, "opened", opened), opened)


def said(policy: str, *to: str) -> Whose:
    """What is said of a gate under the policy that these lines are."""
    read = parse_policy(parse_document(f"policy:\n{policy}".encode(), ".gitgate.yml"))
    assert read is not None
    gate = gate_of(to)
    return in_words(gate, deciding([read], case_of(gate, ())), read.groups or {})


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("  who: anyone", ANYBODY.words),
        ("  who: ['@grace']", f"`@grace`, {WRITE}"),
        ("  who: [ops@example.org]", f"`ops@example.org` (in a terminal: the policy names no login), {WRITE}"),
        ("  who: [dba]" + PEOPLE, f"the group `dba` (`ada`, `Grace Hopper` (`@grace`, `@hopper`)), {WRITE}"),
        ("  who: [dba, paul]" + PEOPLE,
         f"the group `dba` (`ada`, `Grace Hopper` (`@grace`, `@hopper`)) or `paul` (in a terminal: the policy names no login), {WRITE}"),
        ("  who: [ada]\n  quorum: 2" + PEOPLE, f"`ada`, 2 of them have to agree, {WRITE}"),
        ("  quorum: 2", f"anybody, 2 of them have to agree, {WRITE}"),
        ("  requester_may_answer: false", f"anybody, not `Eve`, whose agent asked, {WRITE}"),
        ("  within: 2h", f"anybody, no later than 2h after it was asked, {WRITE}"),
        ("  rules:\n    - {name: deploys, types: [approval], who: ['@grace']}", f"`@grace`, {WRITE}"),
        ("  rules:\n    - {name: texts, types: [text], who: ['@grace']}", ANYBODY.words),
    ],
    ids=range(11),
)  # fmt: skip
def test_the_rules_that_decide_are_told(policy: str, words: str) -> None:
    """People by the names that they are known by here, groups with who is in them, and how many it takes."""
    assert said(policy) == Whose(words)


def test_who_it_is_for_is_told_with_it() -> None:
    """Both have to hold."""
    assert said("  who: ['@grace', '@ada']", "@ada").words == (
        f"`@grace`, `@ada`, {WRITE}, of those whom it is for: `@ada`"
    )
    assert said("  who: anyone", "@ada").words == f"`@ada` ({WRITE})"


def test_rules_of_two_policies_have_to_agree() -> None:
    """Whoever fits only one of them would be refused."""
    gate = gate_of()
    read = [
        parse_policy(parse_document(f"policy:\n  {words}".encode(), "x"))
        for words in ("who: ['@grace']", "requester_may_answer: false")
    ]
    terms = deciding([policy for policy in read if policy is not None], case_of(gate, ()))
    assert in_words(gate, terms, {}).words == (
        f"whoever fits all of this, {WRITE}: `@grace`; and anybody, not `Eve`, whose agent asked"
    )


def test_signed_answers_are_given_in_a_terminal() -> None:
    """A comment carries no signature, so that none is suggested."""
    whose = said("  who: ['@grace']\n  require_signed: true")
    body = render(View(gate_of(), whose=whose))
    assert "**Answer in a terminal**" in body
    assert "git gate respond 7k2fw9c3ab" in body
    assert "`@grace`" in body
    assert "/approve" not in body


@pytest.mark.parametrize(
    "name", ["@octocat", "<!-- x -->", "`@octocat`", "a\u202eb", "[x](https://evil.example)", "#12"]
)
def test_no_name_acts(name: str) -> None:
    """Wherever it comes from, it is in a code span."""
    gate = gate_of((name,))
    said = in_words(gate, (), {}).words + unruled(gate).words
    outside = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "CODE", said)
    for bad in ("@", "<!--", "\u202e", "evil", "#12"):
        assert bad not in outside


def publish_policy(team: Team, policy: str) -> None:
    seed = team.clone_of(team.bare, f"policy{len(list(team.folder.glob('policy*')))}")
    seed.write(".gitgate.yml", policy)
    seed.git("add", "-A")
    seed.git("commit", "-qm", "Say who may answer")
    seed.git("push", "-q", "origin", "main")
    team.agents.git("fetch", "-q")


@pytest.mark.slow
def test_the_comment_says_whom_the_policy_accepts(team: Team) -> None:
    """And so it is: who is not among them is told so, and who is may answer."""
    publish_policy(team, "policy:\n  people: {grace: {login: grace, email: g@example.org}}\n  who: [grace]\n")
    gate = team.ask("Deploy?", "--type", "approval")
    assert f"it counts from `grace`, {WRITE}." in team.shown(gate)
    printed = team.cli.quick("github", "show", gate, cwd=team.agents.path, code=0).out
    assert "it counts from `grace`" in printed
    assert team.reply("/approve", "ada")["outcome"] == "refused"
    assert "grace" in team.told()[0]
    assert team.reply("/approve", "grace")["outcome"] == "answered"


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["", "policy: {}\n"])
def test_whom_it_is_for_binds(team: Team, policy: str) -> None:
    """With a policy and without one: the comment says so, and so it is."""
    if policy:
        publish_policy(team, policy)
    gate = team.ask("Deploy?", "--type", "approval", "--to", "@grace")
    assert "it counts from `@grace` (with the right to write to this repository)." in team.shown(gate)
    assert team.reply("/approve", "ada")["outcome"] == "refused"
    assert team.gate(gate)["state"] == "awaiting"
    assert team.reply("/approve", "grace")["outcome"] == "answered"


@pytest.mark.slow
def test_whom_no_login_names_is_told(team: Team) -> None:
    """Without a policy nothing says whose login is whose: no reply counts for an address, and none is suggested."""
    gate = team.ask("Deploy?", "--type", "approval", "--to", "grace@example.org")
    assert "whom no `@login` names here" in team.shown(gate)
    assert "/approve" not in team.shown(gate)
    assert team.reply("/approve", "grace")["outcome"] == "refused"


@pytest.mark.slow
def test_a_policy_that_cannot_be_read_is_told(team: Team) -> None:
    """Nobody's reply would count; nothing is suggested."""
    gate = team.ask("Deploy?", "--type", "approval", show=False)
    publish_policy(team, "policy:\n  whoever: [grace]\n")
    team.cli.quick("github", "comment", gate, cwd=team.job().path, code=0)
    assert "**Nobody can answer**" in team.shown(gate)
    assert "/approve" not in team.shown(gate)
