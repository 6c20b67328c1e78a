"""Many answers over several workers of a queue, while workers and the broker are killed, stopped and started, and messages are
doubled and lost. By hand for longer: GITGATE_SOAK="gates=500 workers=8 seconds=3000" pytest -m "" -n 0 tests/resumption/test_queue_soak.py
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gitgate.context.desk import machine_settings, open_desk
from gitgate.context.find import summaries
from gitgate.runners.celery import SWEEP, TASK, make_app
from support.brokers import QueueWorker, Redis, empty
from support.resuming import Agent, Seat, until
from support.servers import free_port
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

GIVEN = dict(word.split("=") for word in os.environ.get("GITGATE_SOAK", "").split())
GATES, WORKERS = int(GIVEN.get("gates", 12)), int(GIVEN.get("workers", 2))
SECONDS, SEED = float(GIVEN.get("seconds", 40)), int(GIVEN.get("seed", 0))

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(SECONDS + 200)]

# A lock of the system ends with its holder: two agents of one gate at once are seen.
BODY = """exec 9> "{locks}/$GITGATE_ID"; flock -n 9 || echo "overlap $GITGATE_ID" >> "{locks}/overlaps"
sleep 0.5; echo "$GITGATE_ANSWER" > "made-$GITGATE_ID"; git add -A; git commit -qm "$GITGATE_ID"
"""


@dataclass
class Fleet:
    """Workers and their broker, and what is done to them."""

    folder: Path
    broker: Redis
    server: Clone
    chance: random.Random
    workers: list[QueueWorker] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def start(self, number: int) -> None:
        worker = QueueWorker(self.folder / f"worker-{number}", ("-c", "1"))
        worker.begin()
        self.workers[number : number + 1] = [worker]

    def trouble(self) -> None:
        """One thing that goes wrong."""
        faults: list[Callable[[], None]] = [
            self.kill_child,
            self.kill_worker,
            self.kill_broker,
            self.double,
            self.lose,
            self.hang,
        ]
        fault = self.chance.choice(faults)
        self.done[fault.__name__] += 1
        fault()

    def kill_child(self) -> None:
        for child in self.chance.choice(self.workers).children:
            os.kill(child, signal.SIGKILL)

    def kill_worker(self) -> None:
        number = self.chance.randrange(len(self.workers))
        self.workers[number].kill()
        self.start(number)

    def kill_broker(self) -> None:
        self.broker.kill()
        time.sleep(self.chance.uniform(0, 1))
        self.broker.begin()

    def double(self) -> None:
        app = make_app(machine_settings(os.environ))
        for gate, tip in self.waiting():
            app.send_task(TASK, (str(self.server.path), gate, tip, False), queue="gitgate")

    def lose(self) -> None:
        empty(self.broker.address)

    def hang(self) -> None:
        """For longer than a lease's term: somebody takes over, and the agent that was left is ended when it goes on."""
        group = os.getpgid(self.chance.choice(self.workers).running.pid)
        os.killpg(group, signal.SIGSTOP)
        time.sleep(8)
        os.killpg(group, signal.SIGCONT)

    def waiting(self) -> list[tuple[str, str]]:
        desk = open_desk(self.server.path, os.environ)
        try:
            return [(one.id, one.tip) for one in summaries(desk) if one.state in ("answered", "resuming")]
        finally:
            desk.close()

    def is_done(self) -> bool:
        self.sweep()
        time.sleep(2)
        return not self.waiting()

    def sweep(self) -> None:
        """As beat does, but more often."""
        make_app(machine_settings(os.environ)).send_task(SWEEP, queue="gitgate", expires=5)


def test_each_answer_is_acted_on_once(
    server: Clone, ann: Clone, cli: Command, agent: Agent, tmp_path: Path
) -> None:
    """Each gate is resumed, once, with one agent at a time; nothing is left of any that was killed; the audit finds nothing."""
    locks = tmp_path / "locks"
    locks.mkdir()
    agent.does(BODY.format(locks=locks))
    broker = Redis(tmp_path / "redis", free_port())
    settings = {
        "gitgate.queue.broker": broker.address,
        "gitgate.queue.repositories": str(server.path),
        "gitgate.leaseTerm": "6s",
        "gitgate.retryAfter": "1s",
        "gitgate.maxAttempts": "100",
        "gitgate.maxAgents": str(WORKERS),
    }
    for name, value in settings.items():
        run_git("config", "--global", name, value, cwd=tmp_path)
    server.git("config", "gitgate.runner", "celery")
    ann.git("config", "gitgate.session", "push")
    cli.quick("init", "--no-resume", cwd=ann.path, code=0)
    fleet = Fleet(tmp_path, broker, server, random.Random(SEED))  # noqa: S311
    broker.begin()
    try:
        with Seat(ann) as seat:
            gates = [seat.ask(f"Which, {number}?", push=False) for number in range(GATES)]
            for gate in gates:
                seat.answer(gate, push=False)
        for number in range(WORKERS):
            fleet.start(number)
        cli.quick("sync", cwd=ann.path, code=0)
        end = time.monotonic() + SECONDS
        while fleet.waiting() and time.monotonic() < end:
            fleet.trouble()
            fleet.sweep()
            time.sleep(fleet.chance.uniform(1, 4))
        # In peace the rest comes to its end.
        until(fleet.is_done, 120)
    finally:
        for worker in fleet.workers:
            worker.end()
        broker.kill()
    sys.stderr.write(
        f"{GATES} gates, {WORKERS} workers: {dict(fleet.done)}; {len(agent.starts)} agents started\n"
    )
    ids = {gate.id for gate in gates}
    shown = [cli.quick("show", gate, "--json", cwd=server.path, code=0).json for gate in ids]
    assert {one["state"] for one in shown} == {"resumed"}
    ends = [[event["event"] for event in one["history"]].count("resumed") for one in shown]
    assert set(ends) == {1}
    assert not (locks / "overlaps").exists()
    assert set(agent.starts) == ids
    cli.quick("verify", cwd=server.path, code=0)
    assert agents_alive(agent) == []
    for worker in fleet.workers:
        for place in worker.repositories:
            assert run_git("for-each-ref", "refs/hitl/sessions", cwd=place) == b""


def agents_alive(agent: Agent) -> list[str]:
    said = subprocess.run(
        ["pgrep", "-f", str(agent.folder / "agent.sh")], capture_output=True, text=True, check=False
    )
    return said.stdout.split()
