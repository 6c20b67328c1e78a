"""A worker stays: it acts on answers and deadlines in many repositories, and hands back what it holds when it is stopped."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gitgate.claims import claim, release
from gitgate.exchange.syncing import sync
from gitgate.resumption.pool import pause_left
from support import PATIENCE
from support.resuming import Agent, Clock, Seat, claimant, until
from support.testbed.command import Command
from support.testbed.repositories import Clone, make_clone

pytestmark = pytest.mark.slow  # each takes a second or more


def ask(cli: Command, clone: Clone, *flags: str) -> str:
    return cli.quick("ask", "Which?", "--agent", "scripted", *flags, cwd=clone.path, code=0).line


def state(cli: Command, clone: Clone, gate: str) -> str:
    return str(cli.quick("show", gate, "--json", cwd=clone.path, code=0).json["state"])


@pytest.fixture
def two(person: object, tmp_path: Path) -> list[Clone]:
    return [make_clone(tmp_path / name) for name in ("one", "two")]


def test_it_acts_in_every_repository(two: list[Clone], agent: Agent, cli: Command) -> None:
    """Answers that come while it runs are acted on, whichever repository they are in; SIGTERM ends it with 0."""
    worker = cli.start("worker", *(str(clone.path) for clone in two))
    gates = [ask(cli, clone) for clone in two]
    for clone, gate in zip(two, gates, strict=True):
        cli.quick("respond", gate, "Postgres", cwd=clone.path, code=0)
    until(lambda: all(state(cli, clone, gate) == "resumed" for clone, gate in zip(two, gates, strict=True)))
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0, said
    assert sorted(agent.starts) == sorted(gates)


def test_stopped_it_hands_back_what_it_holds(repo: Clone, agent: Agent, cli: Command) -> None:
    """The agent is ended, the gate is answered again at once, and the attempt does not count."""
    agent.does("sleep 30")
    gate = ask(cli, repo)
    cli.quick("respond", gate, "Postgres", code=0)
    worker = cli.start("worker")
    until(lambda: agent.starts == [gate])
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0
    assert state(cli, repo, gate) == "answered"
    assert not repo.refs("refs/hitl/leases/")
    agent.does("")
    cli.quick("worker", "--once", code=0)
    shown = cli.quick("show", gate, "--json", code=0).json
    assert (shown["state"], shown["resume"]["attempt"]) == ("resumed", 1)


def test_it_acts_on_deadlines(ann: Clone, bare: Clone, agent: Agent, cli: Command) -> None:
    """A deadline that passes is recorded and pushed; with `fail` the agent is resumed to hear that nobody answered."""
    agent.does(
        f'echo "$GITGATE_VERDICT/$GITGATE_BY" > {agent.folder}/told; cp "$GITGATE_PROMPT_FILE" {agent.folder}/prompt'
    )
    gate = ask(cli, ann, "--timeout", "1s", "--on-timeout", "fail")
    worker = cli.start("worker", cwd=ann.path)
    until(lambda: state(cli, ann, gate) == "resumed")
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE)
    assert (agent.folder / "told").read_text() == "expired/\n"
    assert "Nobody answered before the deadline" in (agent.folder / "prompt").read_text()
    assert "expired" in bare.git("log", "--format=%s", f"refs/hitl/open/{gate}")


def test_it_hears_answers_that_were_given_elsewhere(
    ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """A server without hooks will do: the worker fetches."""
    gate = ask(cli, ann)
    cli.quick("sync", cwd=bob.path, code=0)
    cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
    cli.quick("worker", "--once", cwd=ann.path, code=0)
    assert state(cli, ann, gate) == "resumed"


def test_everywhere_is_where_init_was_run(two: list[Clone], agent: Agent, cli: Command) -> None:
    """One inbox and one worker for all of them."""
    for clone in two:
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    gates = [ask(cli, clone) for clone in two]
    found = cli.quick("list", "--everywhere", "--json", code=0).json["gates"]
    assert sorted(gate["id"] for gate in found) == sorted(gates)
    for clone, gate in zip(two, gates, strict=True):
        cli.quick("respond", gate, "Postgres", cwd=clone.path, code=0)
    cli.quick("worker", "--everywhere", "--once", code=0)
    assert sorted(agent.starts) == sorted(gates)
    cli.quick("init", "--remove", cwd=two[0].path, code=0)
    cli.quick("worker", "--everywhere", "--once", code=0)
    assert cli.quick("worker", "--everywhere", "--once", "--json", code=0).json["gates"] == []


def test_status_tells_how_each_agent_does(repo: Clone, agent: Agent, cli: Command) -> None:
    """Waiting for an answer, resuming with its process, and gone when all is done."""
    agent.is_held()
    gate = ask(cli, repo)
    (known,) = cli.quick("status", "--json", code=0).json["agents"]
    assert (known["agent"], known["state"], known["questions"], known["waiting"]) == (
        "scripted",
        "waiting",
        1,
        [gate],
    )
    assert known["started_at"] == known["last_seen"] == cli.quick("show", gate, "--json").json["asked"]["at"]
    cli.quick("respond", gate, "Postgres", code=0)
    running = cli.start("resume", gate)
    until(lambda: agent.starts == [gate])
    said = ("resuming", int(agent.log.read_text().split()[1]))

    def is_told() -> bool:
        (known,) = cli.quick("status", "--json", code=0).json["agents"]
        return (known["state"], known["pid"]) == said

    until(is_told)  # an agent's process is noted when it has begun
    agent.let_go()
    running.communicate(timeout=PATIENCE)
    assert cli.quick("status", "--json", code=0).json["agents"][0]["state"] in ("active", "gone")
    assert "1 asked" in cli.quick("status", code=0).out


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_nobody_waits_for_the_clock_of_who_failed(ann: Clone, bob: Clone, clock: Clock, ahead: int) -> None:
    """The pause before the next attempt is as long as it is, or is over, whatever time it was where the last one failed."""
    with Seat(ann, clock) as here, Seat(bob, Clock(clock.at + ahead)) as there:
        gate = here.answer(here.ask())
        sync(there.desk)
        release(there.desk, claim(there.desk, there.now(gate), claimant("off")), "its model was away")
        sync(here.desk)
        assert pause_left(here.desk, here.now(gate)) == min(30, 30 + ahead)
