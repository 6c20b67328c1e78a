"""What a sweep costs: requests, counted where they arrive. A quiet one asks for everything at once; and nothing is missed for that."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import Any

import pytest

from gitgate.context import open_desk
from gitgate.surfaces.forge.hosts.connect import connect
from gitgate.surfaces.forge.hosts.web import Known
from gitgate.surfaces.forge.sweeping import sweep as sweep_once
from support.forges import graph
from support.forges.standin import START, Fault, Forge

from .conftest import THREAD, Team
from .test_sweeps import outcomes, said_of, sweep

pytestmark = pytest.mark.slow  # each takes a second or more

GATES = 23


@pytest.fixture(autouse=True)
def same_clock(team: Team) -> None:
    """The forge's clock is this machine's."""
    team.forge.ticks = int(time.time()) - START


@pytest.fixture
def busy(team: Team) -> list[str]:
    """So many gates, each on a pull request of its own, shown and with their status."""
    return ask_on_each(team, GATES)


def ask_on_each(team: Team, count: int) -> list[str]:
    gates = []
    for number in range(10, 10 + count):
        team.agents.git("checkout", "-q", "-b", f"b{number}")
        team.agents.git("commit", "-q", "--allow-empty", "-m", f"{number}")
        team.forge.open_pull(number, f"b{number}", team.agents.git("rev-parse", "HEAD"))
        gates.append(team.ask(f"Which {number}?", show=False))
    sweep(team)
    assert len(team.forge.checks) == count
    return gates


def asked(team: Team) -> list[str]:
    """What one sweep asks for."""
    team.forge.asked.clear()
    said = sweep(team)
    assert (said["accepted"], said["shown"], said["trouble"]) == ([], [], [])
    return list(team.forge.asked)


def test_a_quiet_sweep_asks_for_everything_at_once(team: Team, busy: list[str]) -> None:
    """Over 23 gates five requests, and none that writes but the question about all heads."""
    found = asked(team)
    assert len(found) == 5, found
    assert [one for one in found if not one.startswith("GET ")] == ["POST /graphql"]
    assert len(busy) == GATES


def test_without_graphql_it_is_two_for_each_gate(team: Team, busy: list[str]) -> None:
    """Its status and its check; where a token may not ask by GraphQL, too."""
    team.forge.graphql = False
    found = asked(team)
    assert len(found) <= 2 * len(busy) + 8, Counter(found)


def test_a_single_gate_costs_little(team: Team) -> None:
    """Who we are, the pull requests, its thread and diff, its status and check."""
    team.ask("Which?")
    sweep(team)
    assert len(asked(team)) <= 6


def test_nothing_is_missed_for_it(team: Team) -> None:
    """A reply in one of many threads, one on a diff, one that names a gate elsewhere, and a removed comment: all are seen."""
    gates = ask_on_each(team, 5)
    team.forge.write(10, "ada", "/answer Postgres")
    team.forge.write_on_diff(11, "ada", "/answer SQLite")
    team.forge.write(THREAD, "ada", f"/answer {gates[2]} MySQL")
    (removed,) = [n for n, c in team.forge.comments.items() if f"gate={gates[3]} seen=" in c["body"]]
    del team.forge.comments[removed]
    (changed,) = [c for c in team.forge.comments.values() if f"gate={gates[4]} seen=" in c["body"]]
    changed |= {
        "body": changed["body"].replace("Which 14?", "Which of yours?"),
        "updated_at": team.forge.now(),
    }
    said = sweep(team)
    assert outcomes(said) == ["answered"] * 3
    assert [team.gate(gate)["state"] for gate in gates[:3]] == ["answered"] * 3
    assert "Which 13?" in team.shown(gates[3])
    assert "Which 14?" in team.shown(gates[4])
    assert asked(team)


def test_a_status_that_somebody_overwrote_is_put_right(team: Team) -> None:
    """What is asked at once is what stands there, not what we said last."""
    ask_on_each(team, 3)
    head = team.forge.pulls[11]["head"]["sha"]
    team.forge.statuses.append({"sha": head, "context": "gitgate", "state": "success", "description": "fine"})
    team.forge.checks[:] = [one for one in team.forge.checks if one["head_sha"] != head]
    sweep(team)
    assert said_of(team, 11)[-1] == "pending"
    assert [one["conclusion"] for one in team.forge.checks if one["head_sha"] == head] == ["action_required"]


def test_a_reply_at_the_last_moment_is_heard_before_the_deadline(team: Team) -> None:
    """Where a deadline is near, its thread is read anew right before it passes."""
    ask_on_each(team, 3)
    team.agents.git("checkout", "-q", "feature")
    gate = team.ask("In time?", "--timeout", "1h")
    team.pass_time(3600)
    team.forge.asked.clear()
    sweep(team)
    assert f"GET /repos/team/project/issues/{THREAD}/comments?per_page=100" in team.forge.asked
    assert team.gate(gate)["state"] != "awaiting"


@pytest.mark.parametrize(
    "fault", [Fault(500, path="/issues/comments"), Fault(403, path="/issues/comments", words="no")]
)
def test_where_all_cannot_be_asked_for_each_thread_is(team: Team, fault: Fault) -> None:
    """More requests, and the same outcome."""
    gates = ask_on_each(team, 3)
    team.forge.write(11, "ada", "/answer Postgres")
    team.forge.faults += [fault] * (5 if fault.status == 500 else 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gitgate.surfaces.forge.hosts.web.PAUSES", (0.0,) * 4)
        assert outcomes(sweep(team)) == ["answered"]
    assert team.gate(gates[1])["state"] == "answered"


def test_of_too_much_talk_only_the_threads_are_read(team: Team) -> None:
    """A page for each two threads is looked back at, no more."""
    ask_on_each(team, 4)
    for _ in range(201):
        team.forge.write(99, "grace", "talk")
    found = asked(team)
    assert sum("/issues/comments?" in one for one in found) == 2
    assert sum("/comments?per_page=100" in one and "/issues/1" in one for one in found) == 4


def test_what_did_not_change_is_not_sent_again(team: Team) -> None:
    """Where one process sweeps again and again, as `git gate serve` does: GitHub counts no such request."""
    team.ask("Which?")
    sweep(team)
    desk, known = open_desk(team.job().path, os.environ), Known()
    sweep_once(desk, connect(desk, known))
    team.forge.asked.clear()
    team.forge.unchanged = 0
    done = sweep_once(desk, connect(desk, known))
    assert (done.accepted, done.trouble) == ([], [])
    reads = [one for one in team.forge.asked if one.startswith("GET ") and one != "GET /user"]
    assert team.forge.unchanged == len(reads) >= 4
    team.forge.write(THREAD, "ada", "/answer Postgres")
    assert [one.outcome for one in sweep_once(desk, connect(desk, known)).accepted] == ["answered"]
    desk.close()


# the question about all heads


def test_a_strange_field_is_seen() -> None:
    """The rule that the tests above rely on."""
    good = {
        "query": 'query($o: String!) { repository(owner: $o, name: "x") { pullRequests(first: 1) { nodes { headRefOid } } } }'
    }
    graph.hold({**good, "variables": {"o": "team"}})
    for old, new in (("headRefOid", "headRef"), ("(first: 1)", ""), ("name: \"x\"", "nom: \"x\""), ("String!", "Int!")):  # fmt: skip
        with pytest.raises(AssertionError):
            graph.hold({"query": good["query"].replace(old, new), "variables": {"o": "team"}})
    with pytest.raises(AssertionError):
        graph.hold({**good, "variables": {}})


def test_of_many_heads_all_pages_are_read(forge: Forge, team: Team) -> None:
    """A hundred a page."""
    for number in range(100, 230):
        forge.open_pull(number, f"x{number}", f"{number:040x}")
    sweep(team)
    assert forge.asked.count("POST /graphql") == 2


def test_another_commit_than_the_head_tells_nothing() -> None:
    """Of a pull request of very many commits, say: its head is asked about by itself."""
    from gitgate.surfaces.forge.hosts.github import head_in

    commit: dict[str, Any] = {"oid": "a" * 40, "status": None, "checkSuites": {"nodes": []}}
    pull = {"headRefOid": "b" * 40, "commits": {"nodes": [{"commit": commit}]}}
    assert head_in(pull)[0] == ""
    assert json.dumps(head_in({**pull, "headRefOid": "a" * 40})) == json.dumps(["a" * 40, [["", ""], None]])
