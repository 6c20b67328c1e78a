"""Eight machines resume the same answer at once: one agent starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.resuming import Agent
from support.testbed.command import Command
from support.testbed.repositories import Clone

RACERS = 8


def race(rounds: int, ann: Clone, others: list[Clone], agent: Agent, cli: Command) -> None:
    for clone in (ann, *others):
        clone.git("config", "gitgate.session", "push")
        clone.git("config", "gitgate.publishWork", "true")
        clone.git("config", "gitgate.maxAgents", str(RACERS))
    for number in range(1, rounds + 1):
        gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
        cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
        for clone in others:
            cli.quick("sync", cwd=clone.path, code=0)
        running = [cli.start("resume", gate, cwd=clone.path) for clone in (ann, *others)]
        codes = []
        for process in running:
            process.communicate(timeout=60)
            codes.append(process.returncode)
        assert sorted(codes) == [0] + [5] * (RACERS - 1)
        assert len(agent.starts) == len(agent.ends) == number


@pytest.mark.slow
def test_one_agent_starts(
    ann: Clone, bare: Clone, clone_of: Callable[..., Clone], agent: Agent, cli: Command
) -> None:
    """Real processes, real pushes: one exits with 0, the others with 5."""
    race(1, ann, [clone_of(bare, f"racer{n}") for n in range(RACERS - 1)], agent, cli)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_one_agent_starts_in_each_of_25_rounds(
    ann: Clone, bare: Clone, clone_of: Callable[..., Clone], agent: Agent, cli: Command
) -> None:
    """The same, often."""
    race(25, ann, [clone_of(bare, f"racer{n}") for n in range(RACERS - 1)], agent, cli)
