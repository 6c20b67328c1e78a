"""Killing a verb at any step loses nothing, and a repeat succeeds.

A `git` in front of the real one counts its calls and, at the chosen one, kills the verb that made it: before git runs,
or after it has. Every write of a verb goes through git or is an object without a ref, so this is every step there is.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone, make_bare, make_clone

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(600)]

MOST_STEPS = 80
SHIM = """#!{python} -IS
import os, signal, subprocess, sys
count = {counter!r}
with open(count, "ab", buffering=0) as file:
    file.write(b".")
    number = file.tell()  # its own place, also when two are started at once
deadly = number == int(os.environ["KILL_AT"])
if deadly and os.environ["KILL_WHEN"] == "before":
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(1)
if not deadly:
    os.execv({git!r}, ["git", *sys.argv[1:]])
status = subprocess.run([{git!r}, *sys.argv[1:]]).returncode
os.kill(os.getppid(), signal.SIGKILL)
sys.exit(status)
"""


@dataclass(frozen=True)
class Room:
    """A server, an agent's clone and a person's, and a git that kills."""

    server: Clone
    agent: Clone
    person: Clone
    shim: Path
    counter: Path

    def run(
        self, clone: Clone, *args: str, at: int = 0, when: str = "before"
    ) -> subprocess.CompletedProcess[str]:
        """Run the command; with `at`, as a process that dies at its at-th call of git."""
        if not at:
            said = Command().quick(*args, cwd=clone.path)
            return subprocess.CompletedProcess(args, said.code, said.out, said.err)
        self.counter.write_bytes(b"")
        # What is killed saves no coverage, and would only be slower for it.
        env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        path = f"{self.shim}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [str(COMMAND), *args],
            cwd=clone.path,
            env={**env, "PATH": path, "KILL_AT": str(at), "KILL_WHEN": when},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def steps(self, verb: Callable[[int, str], bool], when: str) -> Iterator[int]:
        """Every step of a verb: it is tried until it runs to its end without being killed."""
        for at in range(1, MOST_STEPS):
            killed = verb(at, when)
            yield at
            if not killed:
                return
        pytest.fail(f"more than {MOST_STEPS} steps")


either = pytest.mark.parametrize("when", ["before", "after"])
# What dies after one call of git has written no more than what dies before the next: for the long verbs that is enough.
before = pytest.mark.parametrize("when", ["before"])


@pytest.fixture
def room(tmp_path: Path, person: object) -> Room:
    start = make_clone(tmp_path / "start")
    server = make_bare(tmp_path / "server.git")
    start.git("push", "-q", str(server.path), "HEAD:refs/heads/main")
    agent, person_s = Clone(tmp_path / "agent"), Clone(tmp_path / "person")
    for clone in (agent, person_s):
        server.git("clone", "-q", str(server.path), str(clone.path))
    shim, counter = tmp_path / "bin", tmp_path / "count"
    shim.mkdir()
    git = shutil.which("git")
    script = shim / "git"
    script.write_text(SHIM.format(python=sys.executable, counter=str(counter), git=git))
    script.chmod(0o755)
    return Room(server, agent, person_s, shim, counter)


def was_killed(done: subprocess.CompletedProcess[str]) -> bool:
    if done.returncode == -signal.SIGKILL:
        return True
    assert done.returncode == 0, done.stderr
    return False


def healthy(room: Room, clone: Clone) -> list[dict[str, object]]:
    """Every gate of this clone, each whole: verify finds nothing, and the list reads them all."""
    checked = room.run(clone, "verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return listed_by(room, clone)


def listed_by(room: Room, clone: Clone) -> list[dict[str, object]]:
    """Every gate of this clone that can be read: one whose record were broken would be missing."""
    import json

    listed = json.loads(room.run(clone, "list", "--all", "--json").stdout)
    gates: list[dict[str, object]] = listed["gates"]
    return gates


@either
def test_ask(room: Room, when: str) -> None:
    """A killed ask leaves the working tree as it was and a whole gate or none; the same key then gives one gate."""
    room.agent.write("README", "changed\n")
    room.agent.write("new", "untracked\n")
    room.agent.git("config", "gitgate.publishWork", "true")
    before = room.agent.git("status", "--porcelain=v2", "--branch"), room.agent.git("rev-parse", "HEAD")
    for at in room.steps(
        lambda at, when: was_killed(
            room.run(room.agent, "ask", "Which way?", "--key", f"{at}-{when}", at=at, when=when)
        ),
        when,
    ):
        assert (
            room.agent.git("status", "--porcelain=v2", "--branch"),
            room.agent.git("rev-parse", "HEAD"),
        ) == before
        repeat = room.run(room.agent, "ask", "Which way?", "--key", f"{at}-{when}")
        assert repeat.returncode == 0, repeat.stderr
        gates = [gate for gate in healthy(room, room.agent) if gate["key"] == f"{at}-{when}"]
        assert [gate["id"] for gate in gates] == [repeat.stdout.strip()]
    assert room.run(room.agent, "sync").returncode == 0
    here = room.agent.refs("refs/hitl/open")
    assert here == room.server.refs("refs/hitl/open")


@either
def test_respond(room: Room, when: str) -> None:
    """A killed respond leaves the gate waiting or answered, never in between; repeated, there is one answer."""
    for at in room.steps(
        lambda at, when: was_killed(
            room.run(room.person, "respond", asked(room, f"{at}-{when}"), "left", at=at, when=when)
        ),
        when,
    ):
        gate = asked(room, f"{at}-{when}")
        repeat = room.run(room.person, "respond", gate, "left")
        assert repeat.returncode in (0, 5), repeat.stderr
        assert room.run(room.person, "sync").returncode == 0
        found = {str(one["id"]): one for one in healthy(room, room.person)}[gate]
        assert found["state"] == "answered"
        answers = found["answers"]
        assert isinstance(answers, list)
        assert len(answers) == 1
        assert found["late"] == []
    assert room.person.refs("refs/hitl/open") == room.server.refs("refs/hitl/open")


def asked(room: Room, key: str) -> str:
    """The gate with this key, opened by the agent and known to the person."""
    opened = room.run(room.agent, "ask", "Which way?", "--key", key)
    assert opened.returncode == 0, opened.stderr
    gate = opened.stdout.strip()
    if f"refs/hitl/open/{gate}" not in room.person.refs("refs/hitl/open"):
        assert room.run(room.person, "sync").returncode == 0
    return gate


@before
def test_sync(room: Room, when: str) -> None:
    """A killed sync, with gates to bring, to send and to bring together, is finished by the next one."""
    number = 0

    def prepared(at: int, when: str) -> bool:
        nonlocal number
        number += 1
        both = asked(room, f"both {number}")
        assert room.run(room.agent, "respond", both, "agent's person").returncode == 0
        assert room.run(room.person, "respond", both, "the other", "--no-push").returncode == 0
        assert room.run(room.person, "ask", f"Mine {number}?", "--no-push").returncode == 0
        assert room.run(room.agent, "ask", f"Theirs {number}?").returncode == 0
        return was_killed(room.run(room.person, "sync", at=at, when=when))

    for _ in room.steps(prepared, when):
        assert room.run(room.person, "sync").returncode == 0
        gates = listed_by(room, room.person)
        assert len(gates) == 3 * number
        late = [gate for gate in gates if gate["late"]]
        assert len(late) == number
        assert room.person.refs("refs/hitl/open") == room.server.refs("refs/hitl/open")
    healthy(room, room.person)
    healthy(room, room.agent)


@before
def test_archive(room: Room, when: str) -> None:
    """A killed fold loses no gate: each is open or archived, here and on the server, and the next fold finishes."""
    number = 0

    def prepared(at: int, when: str) -> bool:
        nonlocal number
        number += 1
        gate = asked(room, f"closed {number}")
        assert room.run(room.agent, "respond", gate, "done").returncode == 0
        return was_killed(room.run(room.agent, "archive", at=at, when=when))

    for _ in room.steps(prepared, when):
        assert len(listed_by(room, room.agent)) == number
        done = room.run(room.agent, "archive")
        assert done.returncode == 0, done.stderr
        assert not room.agent.refs("refs/hitl/open")
        assert not room.server.refs("refs/hitl/open")
        assert room.run(room.person, "sync").returncode == 0
        assert not room.person.refs("refs/hitl/open")
        assert len(listed_by(room, room.agent)) == number
    healthy(room, room.agent)
