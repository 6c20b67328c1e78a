"""Counting: an address and a login that could be one person's are never two people."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.policy import Policy, parse_policy
from gitgate.policy.ruling import Who, cautions, people_behind

PEOPLE = """
policy:
  people:
    ada: {email: [ada@example.org, ada@home.example], login: ada}
    bob: {email: bob@example.org, login: bob-gh}
    cy: {email: cy@example.org}
    dee: {login: dee}
"""
ADA, ADA_HOME, ADA_GH = (
    Who("A <ada@example.org>"),
    Who("A <ada@home.example>"),
    Who("ada <1+ada@x>", login="Ada"),
)
BOB, BOB_GH = Who("B <bob@example.org>"), Who("b <2+bob-gh@x>", login="bob-gh")
CY, DEE = Who("C <cy@example.org>"), Who("d <4+dee@x>", login="dee")
EVE, EVE_GH, FAY_GH = Who("E <eve@example.org>"), Who("e <5+eve@x>", login="eve"), Who("f <6+f@x>", login="f")
EVERYBODY = (ADA, ADA_HOME, ADA_GH, BOB, BOB_GH, CY, DEE, EVE, EVE_GH, FAY_GH)


def policies(text: str = PEOPLE) -> list[Policy]:
    found = parse_policy(codec.parse_document(text.encode(), "policy.yml"))
    assert found is not None
    return [found]


@pytest.mark.parametrize(
    ("answers", "people"),
    [
        ([], 0),
        ([ADA, ADA_HOME, ADA_GH], 1),
        ([ADA, BOB_GH], 2),
        ([ADA_GH, BOB_GH], 2),
        ([EVE, EVE_GH], 1),
        ([EVE, FAY_GH], 1),
        ([EVE_GH, FAY_GH], 2),
        ([EVE, EVE_GH, FAY_GH], 2),
        ([CY, DEE], 2),
        ([CY, EVE_GH], 1),
        ([DEE, EVE], 1),
        ([CY, DEE, EVE, EVE_GH], 2),
        ([ADA, BOB, CY, EVE], 4),
        ([ADA, EVE_GH], 2),
    ],
)
def test_the_fewest_people_that_it_can_be(answers: list[Who], people: int) -> None:
    """Whom the policy lists with both is one; it tells apart whom it lists; strangers may be anybody on the other side."""
    assert people_behind(policies(), answers) == people


def test_a_signed_answer_is_its_keys_owner() -> None:
    """Whatever login came with it."""
    signed = Who("E <eve@example.org>", key="SHA256:x", signer="eve@example.org", login="eve")
    assert people_behind(policies(), [signed, EVE]) == 1
    assert people_behind([], [signed, Who("F <f@example.org>")]) == 2


@given(st.lists(st.sampled_from(EVERYBODY), max_size=8))
def test_more_answers_are_never_fewer_people(answers: list[Who]) -> None:
    """And never more than there are answers, nor than another order would make of them."""
    counts = [people_behind(policies(), answers[:size]) for size in range(len(answers) + 1)]
    assert all(0 <= later - before <= 1 for before, later in itertools.pairwise(counts))
    assert people_behind(policies(), answers[::-1]) == counts[-1]


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ("  quorum: 1\n", []),
        ("  quorum: 2\n  who: [ada, bob]\n", []),
        ("  quorum: 2\n  who: [ada@example.org, '@bob-gh']\n", []),
        (
            "  quorum: 2\n  who: [ada, cy]\n",
            ["rule default: cy: known by an address or by a login, not by both"],
        ),
        (
            "  refusals: 2\n  who: [ada, eve@example.org, '@eve']\n",
            ["rule default: eve@example.org, @eve: known"],
        ),
        ("  rules: [{name: two, quorum: 2}]\n", ["rule two: cy, dee: known"]),
    ],
)
def test_where_a_policy_does_not_say_who_is_who(terms: str, words: list[str]) -> None:
    """Only where it counts people."""
    found = cautions(policies(PEOPLE + terms))
    assert [line[: len(word)] for line, word in zip(found, words, strict=True)] == words


def test_anyone_is_not_told_apart() -> None:
    """A rule without a list counts strangers by one of the two."""
    (found,) = cautions(policies("policy: {quorum: 2}\n"))
    assert found.startswith("rule default: anyone may answer; whoever is not listed")
