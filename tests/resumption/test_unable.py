"""A shared repository that answers, and cannot take the outcome for the moment: it waits, and no agent is started twice."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.errors import GitFailed, LostRace, PushRefused, RemoteUnable
from gitgate.model.gate import Gate
from gitgate.resumption import run
from gitgate.resumption.run import Errand, Resumed, may_pass, resume_gate
from support import PATIENCE
from support.resuming import Agent, Seat, claimant, until
from support.sharing import hook
from support.testbed.command import Command
from support.testbed.repositories import Clone

COMMITS = "echo done > result; git add -A; git commit -qm done"
WAITS = "the claim is held and the outcome waits"
# What root may do in spite of a file's mode, given up: then a folder that is not writable refuses as it does anybody else.
BOUND = f"""#!{sys.executable}
import ctypes, os, sys
if os.geteuid() == 0:
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
os.execvp("git-receive-pack", ["git-receive-pack", *sys.argv[1:]])
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SAYS_LATER", (0.1,))


@pytest.fixture
def seat(ann: Clone) -> Iterator[Seat]:
    ann.git("config", "gitgate.publishWork", "true")
    with Seat(ann) as seat:
        yield seat


def resumed(
    seat: Seat, gate: Gate, say: Callable[[str], None], stopping: threading.Event | None = None
) -> Resumed:
    """The gate acted on in this process; `say` hears what its runner tells."""
    errand = Errand(lambda: seat.desk, claimant(), say, stopping=stopping or threading.Event())
    return resume_gate(errand, seat.desk, seat.now(gate))


def lock(name: str) -> tuple[Callable[[Path], str], Callable[[Path], None]]:
    return lambda server: f"touch '{server}/{name}.lock'", lambda server: (server / f"{name}.lock").unlink()


def shut(name: str) -> tuple[Callable[[Path], str], Callable[[Path], None]]:
    return lambda server: f"chmod 555 '{server}/{name}'", lambda server: (server / name).chmod(0o755)


def put_hook(words: str) -> tuple[Callable[[Path], str], Callable[[Path], None]]:
    def put(server: Path) -> str:
        place = f"'{server}/hooks/pre-receive'"
        return f"printf '{words}' > {place}; chmod +x {place}"

    return put, lambda server: (server / "hooks/pre-receive").unlink()


TROUBLE = {
    "packed refs are locked": lock("packed-refs"),
    "the branch is locked": lock("refs/heads/main"),
    "the lease's folder is not writable": shut("refs/hitl/leases"),
    "the branches' folder is not writable": shut("refs/heads"),
    "nothing can be stored": shut("objects"),
    "its disk is full": put_hook(r"#!/bin/sh\necho fatal: No space left on device >&2; exit 1\n"),
    "its hook cannot be started": put_hook(r"#!/nowhere/sh\n"),
    "its hook has gone": put_hook(r"#!/bin/sh\nexec /nowhere/git-gate\n"),
    "git gate is installed anew": put_hook(
        r"#!/bin/sh\necho git-gate is not installed where x can start it, and so on >&2; exit 1\n"
    ),
    "its hook was killed": put_hook(r"#!/bin/sh\nkill -9 $$\n"),
    "its own service is away": put_hook(r"#!/bin/sh\necho Gitea: Internal Server Error >&2; exit 1\n"),
}


# Of each kind one in every run: a lock, a folder, a hook.
ALWAYS = ("nothing can be stored",)


@pytest.mark.parametrize(
    "what", [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in TROUBLE]
)
@pytest.mark.usefixtures("quick")
def test_what_passes_is_waited_for(seat: Seat, bare: Clone, agent: Agent, tmp_path: Path, what: str) -> None:
    """The agent has been started once, its commits are on their branch, and whoever watches was told what it waits for."""
    begin, end = TROUBLE[what]
    bound = tmp_path / "receive"
    bound.write_text(BOUND)
    bound.chmod(0o755)
    seat.clone.git("config", "remote.origin.receivepack", str(bound))
    agent.does(f"{COMMITS}; {begin(bare.path)}")
    heard: list[str] = []

    def say(words: str) -> None:
        heard.append(words)
        if "over" not in heard and sum(WAITS in each for each in heard) == 2:
            heard.append("over")
            end(bare.path)

    gate = seat.answer(seat.ask())
    assert resumed(seat, gate, say).result == "resumed"
    assert "over" in heard
    assert agent.starts == [gate.id]
    assert bare.git("log", "-1", "--format=%s", "main") == "done"
    assert not bare.refs("refs/hitl/leases/")
    assert not [name for name in bare.refs() if name.startswith("refs/heads/gate/")]


REFUSALS = {
    "one branch": 'case "$1" in refs/heads/main) echo "error: you may not push to main: Permission denied"; exit 1;; esac',
    "whatever says so much": 'case "$1" in refs/heads/main) echo "no: a commit says: No space left on device"; exit 1;; esac',
}


@pytest.mark.parametrize(
    "what", ["one branch", pytest.param("whatever says so much", marks=pytest.mark.slow)]
)
def test_a_branch_that_is_refused_is_not_waited_for(seat: Seat, bare: Clone, agent: Agent, what: str) -> None:
    """A hook judged it: the commits go to a branch of their own, as ever."""
    hook(bare, "update", REFUSALS[what])
    agent.does(COMMITS)
    heard: list[str] = []
    gate = seat.answer(seat.ask())
    assert resumed(seat, gate, heard.append).branch == f"gate/{gate.id}"
    assert not [words for words in heard if WAITS in words]


@pytest.mark.slow
def test_an_outcome_that_is_refused_is_not_waited_for(seat: Seat, bare: Clone, agent: Agent) -> None:
    """The server takes no more of this gate: the runner ends, and says why."""
    place = f"'{bare.path}/hooks/pre-receive'"
    agent.does(f"printf '#!/bin/sh\\necho no more of this >&2; exit 1\\n' > {place}; chmod +x {place}")
    heard: list[str] = []
    gate = seat.answer(seat.ask())
    with pytest.raises(PushRefused, match="no more of this"):
        resumed(seat, gate, heard.append)
    assert not [words for words in heard if WAITS in words]


@pytest.mark.usefixtures("quick")
def test_a_runner_that_is_to_stop_leaves_the_gate_to_the_next(seat: Seat, bare: Clone, agent: Agent) -> None:
    """It does not hand back what its agent has done: whoever acts here next records that."""
    stopping = threading.Event()
    agent.does(f"{COMMITS}; touch '{bare.path}/refs/heads/main.lock'")
    gate = seat.answer(seat.ask())
    with pytest.raises(LostRace, match=r"main\.lock"):
        resumed(seat, gate, lambda words: stopping.set() if WAITS in words else None, stopping=stopping)
    assert seat.now(gate).state == "resuming"
    assert agent.starts == [gate.id]


def test_what_this_repository_cannot_do_passes_too() -> None:
    """Where it is shared itself, git says the same of it; what it says of anything else is no reason to wait."""
    for words in (
        "Unable to create '/x/a.lock': Permission denied",
        "insufficient permission for adding an object",
    ):
        assert may_pass(GitFailed("git failed", stderr=f"warning: x\nerror: {words}\n"))
    assert may_pass(RemoteUnable("not now"))
    assert not may_pass(GitFailed("git failed", stderr="fatal: bad object\n"))
    assert not may_pass(PushRefused("no"))


@pytest.mark.slow
def test_a_lock_that_stays_longer_than_the_lease(
    ann: Clone, bob: Clone, bare: Clone, agent: Agent, cli: Command
) -> None:
    """Only what is deleted needs the lock: renewals arrive, and a worker that watches takes nothing over."""
    for clone in (ann, bob):
        clone.git("config", "gitgate.leaseTerm", "4s")
        clone.git("config", "gitgate.session", "push")
        clone.git("config", "gitgate.publishWork", "true")
    locked = bare.path / "packed-refs.lock"
    agent.does(f"{COMMITS}; [ -e '{agent.folder}/once' ] || touch '{locked}' '{agent.folder}/once'")
    gate = cli.quick(
        "ask", "Which?", "--agent", "scripted", "--session", "session-1", cwd=ann.path, code=0
    ).line
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    cli.quick("sync", cwd=bob.path, code=0)
    running = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.ends == [gate])
    worker = cli.start("worker", cwd=bob.path)
    lease = f"refs/hitl/leases/{gate}"
    seen: set[str] = set()
    end = time.monotonic() + 10  # more than two terms
    while time.monotonic() < end or len(seen) < 4:
        seen.add(bare.refs()[lease])
        time.sleep(0.2)
    assert running.poll() is None
    locked.unlink()
    assert running.wait(PATIENCE) == 0
    running.communicate()
    worker.terminate()
    worker.communicate(timeout=PATIENCE)
    assert agent.starts == [gate]
    assert bare.git("log", "-1", "--format=%s", "main") == "done"
    log = ann.path / f".git/gitgate/logs/{gate}.log"
    assert "packed-refs.lock" in log.read_text()
    assert WAITS in log.read_text()
    cli.quick("sync", cwd=bob.path, code=0)
    history = cli.quick("show", gate, "--json", cwd=bob.path, code=0).json["history"]
    assert [event["event"] for event in history] == ["opened", "answered", "claimed", "resumed"]
