"""Rounds of bad luck: in each, an answer's runners are killed at a moment that is drawn, and the remote is out of reach for a while,
also in the middle of a push. One start at a time, each answer acted on once, nothing lost.

`GITGATE_TEST_ROUNDS=60` plays so many; `GITGATE_TEST_SEED` draws others than the usual ones.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone

ROUNDS = int(os.environ.get("GITGATE_TEST_ROUNDS", "0"))  # read before a test's seal takes it away
SEED = int(os.environ.get("GITGATE_TEST_SEED", "1"))
TERM = 2
LONGEST = 120.0  # until a round has come to its end
KINDS = ("hook", "worker", "clone")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + 60 * max(ROUNDS, 20))]

# The only way to the server. Who is on it is known, so that an outage cuts them off.
SSH = """#!/bin/sh
[ -e "{door}" ] || {{ echo "Connection refused" >&2; exit 255; }}
for command; do :; done
: > "{here}/$$"
cat | sh -c "$command" | cat
"""
# It says so if another one is at work on the same gate: a process that is there, and no zombie.
WORK = """
for other in $(sed -n "s/^start \\([0-9]*\\) $GITGATE_ID .*/\\1/p" "{log}"); do
  [ "$other" = $$ ] || ! grep -q '^State:.[^ZX]' "/proc/$other/status" 2>/dev/null ||
    ! grep -q agent.sh "/proc/$other/cmdline" || echo "overlap $other $$" >> "{log}"
done
echo done > "file-$GITGATE_ID"
sleep {seconds}
git add -A
git diff --cached --quiet || git commit -qm "done $GITGATE_ID"
"""


@dataclass
class Way:
    """The way to the server: a door, and those who are on the way."""

    folder: Path
    outages: list[threading.Thread] = field(default_factory=list)

    @property
    def door(self) -> Path:
        return self.folder / "door"

    def build(self) -> str:
        (self.folder / "here").mkdir()
        self.door.touch()
        program = self.folder / "ssh-of-mine"
        program.write_text(SSH.format(door=self.door, here=self.folder / "here"))
        program.chmod(0o755)
        return f"'{program}'"

    def fail(self, after: float, seconds: float) -> None:
        """From then on nobody gets through, and who is on the way is cut off; until it is open again."""

        def outage() -> None:
            time.sleep(after)
            self.door.unlink()
            for place in (self.folder / "here").iterdir():
                cut_off(int(place.name))
                place.unlink()
            time.sleep(seconds)
            self.door.touch()

        self.outages.append(threading.Thread(target=outage))
        self.outages[-1].start()

    def is_over(self) -> None:
        while self.outages:
            self.outages.pop().join()


def cut_off(number: int) -> None:
    """The connection, not the server: what had begun there goes on, as far as it can without anybody to talk to."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
            if name == "cat" and int(rest.split()[1]) == number:
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


@dataclass
class Scene:
    """A server that is reached by one way alone, who asks and answers there, and the agent."""

    kind: str
    server: Clone
    ann: Clone
    bob: Clone
    agent: Agent
    cli: Command
    way: Way
    luck: random.Random
    workers: list[subprocess.Popen[str]] = field(default_factory=list)
    killed: int = 0
    struck: int = 0

    def set_up(self) -> None:
        for clone in (self.ann, self.bob):
            clone.git("remote", "set-url", "origin", f"ssh://nowhere.invalid{self.server.path}")
            for name, value in (("session", "push"), ("retryAfter", "0s"), ("maxAttempts", "9")):
                clone.git("config", f"gitgate.{name}", value)
            clone.git("config", "gitgate.leaseTerm", f"{TERM}s")
            resumes = clone is self.ann and self.kind == "clone"
            self.cli.quick("init", *([] if resumes else ["--no-resume"]), cwd=clone.path, code=0)
        for name, value in (("leaseTerm", f"{TERM}s"), ("retryAfter", "0s"), ("maxAttempts", "9")):
            self.server.git("config", f"gitgate.{name}", value)
        if self.kind != "hook":
            self.server.git("config", "gitgate.resumeHere", "false")

    @property
    def runs_in(self) -> Clone:
        return {"hook": self.server, "worker": self.bob, "clone": self.ann}[self.kind]

    def begin_workers(self) -> None:
        """As a service that is started again when it ends."""
        if self.kind == "worker":
            self.bury()
            while len(self.workers) < 2:
                self.workers.append(self.cli.start("worker", "-q", cwd=self.bob.path))

    def kill(self) -> None:
        """Every runner of this repository, outright."""
        for number in runners(self.runs_in.path):
            try:
                os.kill(number, signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                continue

    def bury(self) -> None:
        for one in self.workers:
            if one.poll() is not None:
                one.communicate()
        self.workers = [one for one in self.workers if one.returncode is None]

    def end(self) -> None:
        self.way.is_over()
        self.kill()
        until(lambda: not any(runners(one.path) for one in (self.server, self.ann, self.bob)))
        for one in self.workers:
            one.communicate(timeout=PATIENCE)

    def look(self, gate: str) -> None:
        """What people do, and what is started again, when nothing happens."""
        self.begin_workers()
        self.cli("sync", "-q", cwd=self.bob.path)
        self.cli("sync", "-q", cwd=self.ann.path)
        if self.kind == "clone" and not runners(self.ann.path):
            self.bury()
            self.workers.append(self.cli.start("resume", gate, cwd=self.ann.path))

    def is_over(self, gate: str) -> bool:
        said = self.server.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}", check=False)
        return said.startswith("resumed")

    def play(self, number: int) -> str:
        """One round; the gate that it was about."""
        name = f"round-{number}"
        self.ann.git("checkout", "-q", "-f", "-b", name, "origin/main")
        self.ann.git("push", "-q", "origin", name)
        pause = self.luck.uniform(0.1, 1.5)
        self.agent.does(WORK.format(log=self.agent.log, seconds=f"{pause:.2f}"))
        gate = self.cli("ask", "Which?", "--agent", "scripted", cwd=self.ann.path, code=0).line
        self.cli("sync", "-q", cwd=self.bob.path, code=0)
        self.begin_workers()
        who = self.ann if self.kind == "clone" else self.bob
        self.way.fail(self.luck.uniform(0, 2.5), self.luck.uniform(0.3, 3))
        before, delay = self.killed, self.luck.uniform(0, pause + 0.8)
        answering = self.cli.start("respond", gate, "Postgres", cwd=who.path)
        end, looking = time.monotonic() + LONGEST, threading.Thread()
        while not self.is_over(gate):
            assert time.monotonic() < end, self.story(gate)
            if self.killed == before and (self.kind == "worker" or runners(self.runs_in.path)):
                time.sleep(delay)
                self.kill()
            elif answering.poll() is not None and not looking.is_alive():
                # Beside us: on a slow machine a runner comes and goes meanwhile, and would never be struck.
                looking = threading.Thread(target=self.look, args=(gate,))
                looking.start()
            time.sleep(0.05)
        if looking.ident is not None:
            looking.join()
        answering.communicate(timeout=60)
        self.way.is_over()
        self.struck += self.killed > before
        return gate

    def check(self, number: int, gate: str) -> None:
        """What others see of it, and what the runners wrote down."""
        self.cli("sync", "-q", cwd=self.bob.path, code=0)
        shown = self.cli("show", gate, "--json", cwd=self.bob.path, code=0).json
        names = [event["event"] for event in shown["history"]]
        assert (names.count("answered"), names.count("resumed"), names[-1]) == (1, 1, "resumed"), names
        assert shown["answer"]["values"] == {"answer": "Postgres"}
        made = self.server.git("log", "--format=%s", f"round-{number}").splitlines()
        assert made == [f"done {gate}", "start"], self.story(gate)
        assert self.finished(gate) == 1, self.story(gate)
        assert "overlap" not in self.agent.log.read_text(), self.story(gate)
        assert f"refs/hitl/leases/{gate}" not in self.server.refs()
        assert not self.server.refs("refs/hitl/wake")
        # One that was killed when all was recorded, or its agent when it had committed and not come to its end, leaves the branch of
        # its own that the agent worked on: with that commit, and nothing else on it. One that was killed after it had made the working
        # tree, and before it had noted that, leaves the branch as it began: the next one cannot tell whether work is in that tree.
        until(lambda: self.kind == "worker" or not runners(self.runs_in.path))
        fits = [made, made[1:]] if names.count("claimed") > self.agent.starts.count(gate) else [made]
        left = {oid for ref, oid in self.server.refs("refs/heads").items() if gate in ref}
        for oid in left:
            assert self.server.git("log", "--format=%s", oid).splitlines() in fits, self.story(gate)

    def finished(self, gate: str) -> int:
        """How often the agent came to its own end, wherever it ran."""
        count = 0
        for clone in (self.server, self.ann, self.bob):
            for state in (clone.path / "gitgate", clone.path / ".git/gitgate"):
                for place in state.glob(f"runs/{gate}/*/ended.json"):
                    count += json.loads(place.read_text())["ending"] == "exited"
        return count

    def story(self, gate: str) -> str:
        logs = [
            place.read_text()
            for clone in (self.server, self.ann, self.bob)
            for name in (gate, "runner")
            for place in clone.path.glob(f"**/gitgate/logs/{name}.log")
        ]
        record = self.server.git("log", "--format=%h %s", f"refs/hitl/open/{gate}", check=False)
        return "\n".join([f"{self.kind}: {gate}", record, *logs, self.agent.log.read_text()])


def runners(place: Path) -> list[int]:
    """The processes in this repository that start agents."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if (process / "cwd").readlink() == place.resolve():
                mine = {b"post-receive", b"runner", b"worker", b"resume"} & set(words)
                found += [int(process.name)] if mine and b"\n".join(words).count(b"git") else []
        except OSError:
            continue
    return found


@pytest.fixture
def scene(
    request: pytest.FixtureRequest,
    server: Clone,
    ann: Clone,
    bob: Clone,
    agent: Agent,
    cli: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scene]:
    """By kind: the server's hook starts the agent, one of two workers does, or the clone where the agent ran."""
    kind = str(request.param)
    monkeypatch.setenv("GIT_SSH_COMMAND", (way := Way(tmp_path)).build())
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    here = Scene(kind, server, ann, bob, agent, cli, way, random.Random(f"{SEED} {kind}"))  # noqa: S311
    here.set_up()
    try:
        yield here
    finally:
        here.end()


def play(scene: Scene, rounds: int, note: Callable[[str, object], None]) -> None:
    gates: list[str] = []
    # In some the agent was done before the moment had come: those are played besides.
    while scene.struck < rounds and len(gates) < 3 * rounds:
        gates.append(scene.play(len(gates) + 1))
        scene.check(len(gates), gates[-1])
    assert scene.struck == rounds
    assert [gate for gate in gates if gate not in scene.agent.starts] == []
    note("rounds", len(gates))
    note("rounds in which a runner was killed", scene.struck)
    note("runners killed", scene.killed)
    note("agents started once more", len(scene.agent.starts) - len(gates))


@pytest.mark.parametrize("scene", KINDS, indirect=True)
def test_a_few_rounds(scene: Scene, record_property: Callable[[str, object], None]) -> None:
    """So many as fit beside the other slow tests."""
    play(scene, 2, record_property)


@pytest.mark.thorough
@pytest.mark.parametrize("scene", KINDS, indirect=True)
def test_many_rounds(scene: Scene, record_property: Callable[[str, object], None]) -> None:
    """Drawn as they come, sixty in all where so many are asked for; `--junitxml` keeps the figures."""
    play(scene, -(-ROUNDS // len(KINDS)) or 5, record_property)
