"""A server, workers of a queue, people who ask and answer, an archive and a sweep, all at once, while workers and the broker are killed,
stopped and started, and messages are doubled, lost and held back. In the middle the queue is emptied by hand. What has to hold
is looked at throughout, and at the end.

By hand for longer, and with figures: GITGATE_SOAK="gates=500 workers=8 seconds=3000" pytest -m "" -n 0 -s tests/soak
About an hour with two workers beside the one in peace: GITGATE_SOAK="gates=1500 workers=3 seconds=3600". With `seed=2` other faults are drawn.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gitgate.context import machine_settings, open_desk
from gitgate.context.targets import summaries
from gitgate.errors import GateError
from gitgate.runners.celery import SWEEP, TASK, make_app
from support.brokers import QueueWorker, Redis, clock_ahead, empty, messages, put_in, take_out
from support.resuming import Agent, Seat, until
from support.servers import free_port
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

GIVEN = dict(word.split("=") for word in os.environ.get("GITGATE_SOAK", "").split())
GATES, WORKERS = int(GIVEN.get("gates", 12)), int(GIVEN.get("workers", 2))
SECONDS, SEED = float(GIVEN.get("seconds", 40)), int(GIVEN.get("seed", 0))
AFTERWARDS = 300.0 + SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(SECONDS + 2 * AFTERWARDS + 300)]

# A lock of the system ends with its holder: two agents of one gate at once are seen.
BODY = """exec 9> "{locks}/$GITGATE_ID"; flock -n 9 || echo "overlap $GITGATE_ID" >> "{locks}/overlaps"
sleep 0.5; echo "$GITGATE_ANSWER" > "made-$GITGATE_ID"; git add -A; git commit -qm "$GITGATE_ID"
"""


@dataclass
class Fleet:
    """Workers and their broker, and what is done to them. The first worker is left in peace, and measured; the clock of the second
    is an hour ahead.
    """

    folder: Path
    broker: Redis
    server: Clone
    chance: random.Random
    workers: list[QueueWorker] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    late: list[tuple[bytes, bytes]] = field(default_factory=list)

    def start(self, number: int) -> None:
        env = clock_ahead("+1h") if number == 1 and WORKERS > 2 else {}
        worker = QueueWorker(self.folder / f"worker-{number}", ("-c", "1"), env=env)
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
            self.delay,
            self.hang,
        ]
        fault = self.chance.choice(faults)
        self.done[fault.__name__] += 1
        fault()

    def kill_child(self) -> None:
        with suppress(ProcessLookupError):
            for child in self.workers[self.victim()].children:
                os.kill(child, signal.SIGKILL)

    def kill_worker(self) -> None:
        number = self.victim()
        self.workers[number].kill()
        self.start(number)

    def victim(self) -> int:
        return self.chance.randrange(1, len(self.workers))

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

    def delay(self) -> None:
        """What was held back comes now, and what waits is held back."""
        put_in(self.broker.address, self.late)
        self.late = take_out(self.broker.address)

    def hang(self) -> None:
        """For longer than a lease's term: somebody takes over, and the agent that was left is ended when it goes on."""
        group = os.getpgid(self.workers[self.victim()].running.pid)
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
        make_app(machine_settings(os.environ)).send_task(SWEEP, queue="gitgate", expires=86400)


@dataclass
class People:
    """One asks for agents and answers, one who is somewhere else brings everything home and folds away what is over: both until all
    are asked, and without waiting for anybody.
    """

    asks: Seat
    keeps: Clone
    server: Clone
    cli: Command
    asked: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    archived: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self.ask, daemon=True),
            threading.Thread(target=self.keep, daemon=True),
        ]
        for thread in threads:
            thread.start()
        return threads

    def ask(self) -> None:
        pause = SECONDS / GATES / 4
        while len(self.asked) < GATES and not self.over.is_set():
            try:
                gate = self.asks.ask(f"Which, {len(self.asked)}?")
                self.asks.answer(gate)
                self.asked.append(gate.id)
            except GateError as failed:
                self.trouble.append(f"asking: {failed}")
            for desk in self.asks.desks:
                desk.close()
            self.asks.desks.clear()
            self.over.wait(pause)

    def keep(self) -> None:
        while not self.over.wait(5):
            for words, where in (
                (("archive", "--older-than", "5s"), self.server),
                (("sync",), self.keeps),
                (("list", "--all"), self.keeps),
            ):
                done = self.cli(*words, cwd=where.path)
                if done.code:
                    self.trouble.append(f"{words[0]}: {done.err}")


@dataclass
class Measured:
    """What a worker that nobody disturbs has, now and then: memory of its processes in MiB, open files, processes below it."""

    worker: QueueWorker
    memory: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)

    def look(self) -> None:
        own = [self.worker.running.pid, *self.worker.children]
        with suppress(OSError):
            pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in own)
            self.files.append(sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in own))
            self.memory.append(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20))
            self.processes.append(len(own))

    def grew(self, what: Sequence[float]) -> float:
        """By how much more there is of it in the last third than in the second one, as a share; the first one loads and warms up."""
        third = len(what) // 3
        return max(what[2 * third :]) / max(what[third : 2 * third]) - 1 if third else 0.0


def test_each_answer_is_acted_on_once(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gate is resumed, once, with one agent at a time; nothing is left of any that was killed; the audit finds nothing."""
    ann, bob = clone_of(bare, "ann"), clone_of(bare, "bob")
    monkeypatch.chdir(ann.path)
    agent = Agent(tmp_path / "agent")
    agent.set_up()
    locks = tmp_path / "locks"
    locks.mkdir()
    agent.does(BODY.format(locks=locks))
    broker = Redis(tmp_path / "redis", free_port())
    settings = {
        "gitgate.queue.broker": broker.address,
        "gitgate.queue.repositories": str(bare.path),
        "gitgate.leaseTerm": "6s",
        "gitgate.retryAfter": "1s",
        "gitgate.maxAttempts": "100",
        "gitgate.maxAgents": str(WORKERS),
    }
    for name, value in settings.items():
        run_git("config", "--global", name, value, cwd=tmp_path)
    cli.quick("init", "--server", cwd=bare.path, code=0)
    bare.git("config", "gitgate.runner", "celery")
    ann.git("config", "gitgate.session", "push")
    for clone in (ann, bob):
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    fleet = Fleet(tmp_path, broker, bare, random.Random(SEED))  # noqa: S311
    broker.begin()
    began = time.monotonic()
    with Seat(ann) as seat:
        people = People(seat, bob, bare, cli)
        threads = people.begin()
        try:
            for number in range(WORKERS):
                fleet.start(number)
            calm = Measured(fleet.workers[0])
            end = began + SECONDS
            while (len(people.asked) < GATES or fleet.waiting()) and time.monotonic() < end:
                fleet.trouble()
                if len(people.asked) >= GATES / 2 and not fleet.done["emptied by hand"]:
                    fleet.done["emptied by hand"] = len(messages(broker.address))
                    empty(broker.address)
                fleet.sweep()
                calm.look()
                assert not (locks / "overlaps").exists()
                assert calm.worker.running.poll() is None
                time.sleep(fleet.chance.uniform(1, 4))
            # In peace the rest comes to its end, what was held back included.
            until(lambda: len(people.asked) == GATES, AFTERWARDS)
            put_in(broker.address, fleet.late)
            until(fleet.is_done, AFTERWARDS)
            calm.look()
        finally:
            people.over.set()
            for thread in threads:
                thread.join(60)
            for worker in fleet.workers:
                worker.end()
            broker.kill()
    took = time.monotonic() - began
    sys.stderr.write(
        f"\n{GATES} gates, {WORKERS} workers, {took:.0f} s: {dict(fleet.done)}; {len(agent.starts)} agents started;"
        f" a worker in peace: memory {calm.memory[0]:.0f} to {max(calm.memory):.0f} MiB ({calm.grew(calm.memory):+.0%} in the last third),"
        f" open files {min(calm.files)} to {max(calm.files)}; people's trouble: {people.trouble}\n"
    )
    check_records(people, agent, bare, cli)
    assert not (locks / "overlaps").exists()
    assert people.trouble == []
    assert agents_alive(agent) == []
    assert calm.grew(calm.memory) < 0.2
    assert calm.grew(calm.files) < 0.4
    assert max(calm.processes) <= 2
    for worker in fleet.workers:
        for place in worker.repositories:
            assert run_git("for-each-ref", "refs/hitl/sessions", cwd=place) == b""
    check_nothing_is_left(fleet.workers[0], set(people.asked))


def check_records(people: People, agent: Agent, server: Clone, cli: Command) -> None:
    """Each is resumed, by one outcome, wherever it is kept by now."""
    shown = [cli.quick("show", gate, "--json", cwd=server.path, code=0).json for gate in people.asked]
    assert Counter(one["state"] for one in shown) == {"resumed": GATES}
    ends = [[event["event"] for event in one["history"]].count("resumed") for one in shown]
    assert set(ends) == {1}
    assert set(agent.starts) == set(people.asked)
    assert server.refs("refs/hitl/leases") == {}
    cli.quick("verify", cwd=server.path, code=0)


def check_nothing_is_left(worker: QueueWorker, gates: set[str]) -> None:
    """Of what a worker did that was never killed: no working tree, and no ref but what everybody has."""
    for place in worker.repositories:
        assert list((place / "gitgate" / "worktrees").glob("*")) == []
        refs = run_git("for-each-ref", "--format=%(refname)", cwd=place).decode()
        kept = re.findall(r"refs/(?:hitl/(?:sessions|leases|work)|heads/gate)/\S+", refs)
        assert [ref for ref in kept if ref.rpartition("/")[2] in gates] == []


def agents_alive(agent: Agent) -> list[str]:
    said = subprocess.run(
        ["pgrep", "-f", str(agent.folder / "agent.sh")], capture_output=True, text=True, check=False
    )
    return said.stdout.split()
