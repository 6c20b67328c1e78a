"""A remote that is away, or that only the person's own configuration reaches: no agent is started in vain, or twice."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gitgate.agents import without_caller
from gitgate.resumption.pool import REACH_AGAIN
from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = pytest.mark.slow  # leases have to lapse

# An ssh of the person's: it reaches the server where nobody else does, as long as the door is open.
SSH = """#!/bin/sh
[ -e "{door}" ] || {{ echo "Connection refused" >&2; exit 255; }}
for command; do :; done
exec sh -c "$command"
"""


def state(cli: Command, clone: Clone, gate: str) -> str:
    return str(cli.quick("show", gate, "--json", cwd=clone.path, code=0).json["state"])


def ask(cli: Command, clone: Clone) -> str:
    return cli.quick(
        "ask", "Which?", "--agent", "scripted", "--session", "session-1", cwd=clone.path, code=0
    ).line


def by_ssh(bare: Clone, folder: Path) -> dict[str, str]:
    program = folder / "ssh-of-mine"
    program.write_text(SSH.format(door=folder / "door"))
    program.chmod(0o755)
    (folder / "door").touch()
    return {"GIT_SSH_COMMAND": f"'{program}'", "GIT_SSH_VARIANT": "simple"}


def by_settings(bare: Clone, folder: Path) -> dict[str, str]:
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{bare.path}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"ssh://nowhere.invalid{bare.path}",
    }


def by_command_line(bare: Clone, folder: Path) -> dict[str, str]:
    """As `git -c url….insteadOf=… gate respond` leaves it."""
    setting = f"url.{bare.path}.insteadof"
    return {"GIT_CONFIG_PARAMETERS": f"'{setting}'='ssh://nowhere.invalid{bare.path}'"}


def by_global_file(bare: Clone, folder: Path) -> dict[str, str]:
    """Another file than ~/.gitconfig."""
    place = folder / "elsewhere.gitconfig"
    place.write_text(
        f"[include]\npath = {os.environ['HOME']}/.gitconfig\n"
        f'[url "{bare.path}"]\ninsteadOf = ssh://nowhere.invalid{bare.path}\n'
    )
    return {"GIT_CONFIG_GLOBAL": str(place)}


@pytest.fixture
def allowed(ann: Clone, cli: Command) -> Clone:
    cli.quick("init", cwd=ann.path, code=0)
    return ann


@pytest.mark.parametrize("way", [by_ssh, by_settings, by_command_line, by_global_file])
def test_the_runner_reaches_the_remote_as_its_caller_did(
    way: Callable[[Clone, Path], dict[str, str]],
    allowed: Clone,
    bare: Clone,
    agent: Agent,
    cli: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the agent made arrives; the agent itself is started without any of it."""
    agent.does(f"env > {agent.folder}/env; echo done > result; git add -A; git commit -qm done")
    gate = ask(cli, allowed)
    allowed.git("remote", "set-url", "origin", f"ssh://nowhere.invalid{bare.path}")
    for name, value in way(bare, tmp_path).items():
        monkeypatch.setenv(name, value)
    cli("respond", gate, "Postgres", cwd=allowed.path, code=0)
    until(lambda: agent.ends == [gate])
    until(lambda: bare.git("log", "-1", "--format=%s", "main") == "done")
    until(lambda: bare.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}").startswith("resumed"))
    inside = (agent.folder / "env").read_text().splitlines()
    assert [line for line in inside if line.startswith("GIT_")] == []


def test_what_a_runner_is_told() -> None:
    """How git reaches others, and nothing of the hook, the repository or the agent that it was started from."""
    reaching = {
        **dict.fromkeys(
            ("GIT_SSH", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_SSL_CERT", "GIT_PROXY_COMMAND"), "x"
        ),
        **dict.fromkeys(("GIT_HTTP_PROXY_AUTHMETHOD", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH"), "x"),
        **dict.fromkeys(("SSH_ASKPASS", "SSH_AUTH_SOCK", "https_proxy", "no_proxy", "HOME"), "x"),
    }
    leaks = (
        "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_PUSH_OPTION_COUNT GIT_PUSH_CERT "
        "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_PREFIX GIT_NAMESPACE CLAUDECODE GITGATE_GATE GITGATE_AGENT"
    )
    assert without_caller({**reaching, **dict.fromkeys(leaks.split(), "x")}) == reaching


def test_no_agent_before_the_remote_answers(
    allowed: Clone,
    bare: Clone,
    agent: Agent,
    cli: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The way that the runner's push will take is tried first; where it stays shut nothing is started."""
    gate = ask(cli, allowed)
    allowed.git("config", "gitgate.leaseTerm", "4s")
    allowed.git("remote", "set-url", "origin", f"ssh://nowhere.invalid{bare.path}")
    for name, value in by_ssh(bare, tmp_path).items():
        monkeypatch.setenv(name, value)
    shutting = tmp_path / "ssh-of-mine"
    words = shutting.read_text()
    # It opens for the answer and its claim, and not once more.
    shutting.write_text(
        words.replace("exec sh", f'case "$command" in *receive-pack*) rm "{tmp_path}/door";; esac\nexec sh')
    )
    cli("respond", gate, "Postgres", cwd=allowed.path, code=0)
    log = allowed.path / f".git/gitgate/logs/{gate}.log"
    until(lambda: log.exists() and "the claim could not be renewed" in log.read_text())
    assert "the agent is not started before it answers" in log.read_text()
    assert agent.starts == []
    shutting.write_text(words)
    (tmp_path / "door").touch()
    until(lambda: cli.quick("resume", gate, cwd=allowed.path).code == 0)
    assert agent.starts == agent.ends == [gate]


def shared(ann: Clone, bob: Clone, cli: Command, term: str) -> str:
    """A gate that both can act on."""
    for clone in (ann, bob):
        clone.git("config", "gitgate.leaseTerm", term)
        clone.git("config", "gitgate.session", "push")
        clone.git("config", "gitgate.publishWork", "true")
    gate = ask(cli, ann)
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    cli.quick("sync", cwd=bob.path, code=0)
    return gate


def test_an_outage_after_the_agent_was_done(
    ann: Clone, bob: Clone, bare: Clone, agent: Agent, cli: Command
) -> None:
    """However long it lasts, the claim is held; who watches has seen nothing meanwhile, and starts nothing."""
    away = bare.path.with_name("away.git")
    agent.does(f"echo done > result; git add -A; git commit -qm done; mv '{bare.path}' '{away}'")
    gate = shared(ann, bob, cli, "4s")
    running = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.ends == [gate])
    codes = [cli.quick("resume", gate, cwd=bob.path).code for _ in range(12)]
    assert 0 not in codes
    away.rename(bare.path)
    for _ in range(6):
        cli.quick("resume", gate, cwd=bob.path)
    assert running.wait(PATIENCE) == 0
    running.communicate()
    assert agent.starts == [gate]
    assert bare.git("log", "-1", "--format=%s", "main") == "done"
    assert bare.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}").startswith("resumed")


def test_an_outcome_that_comes_too_late(
    ann: Clone, bob: Clone, bare: Clone, agent: Agent, cli: Command
) -> None:
    """Only one side was cut off, and the other took over: the late commits move nothing, are kept, and are told."""
    agent.does(
        f"echo late > late; git add -A; git commit -qm late; git remote set-url origin {bare.path}/gone"
    )
    gate = shared(ann, bob, cli, "4s")
    late = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.ends == [gate])
    agent.does(
        f"until [ -e {agent.folder}/go ]; do sleep 0.1; done; echo next > next; git add -A; git commit -qm next"
    )
    taken: list[subprocess.Popen[str]] = []

    def taken_over() -> bool:
        if not taken or taken[-1].poll() is not None:
            [one.communicate() for one in taken[-1:]]
            taken.append(cli.start("resume", gate, cwd=bob.path))
        return len(agent.starts) == 2

    until(taken_over)
    ann.git("remote", "set-url", "origin", str(bare.path))
    out, err = late.communicate(timeout=PATIENCE)
    assert late.returncode == 5
    (branch,) = [name for name in bare.refs() if name.startswith(f"refs/heads/gate/{gate}-late-")]
    assert branch.removeprefix("refs/heads/") in out + err
    assert bare.git("log", "-1", "--format=%s", branch) == "late"
    (agent.folder / "go").touch()
    assert taken[-1].wait(PATIENCE) == 0
    taken[-1].communicate()
    assert bare.git("log", "--format=%s", "main").splitlines() == ["next", "start"]
    cli.quick("sync", cwd=bob.path, code=0)
    history = cli.quick("show", gate, "--json", cwd=bob.path, code=0).json["history"]
    assert [event["event"] for event in history][2:] == ["claimed", "claimed", "commented", "resumed"]
    assert branch.removeprefix("refs/heads/") in history[-2]["text"]


OVER = {
    "resumed": ("exit 0", ()),
    "failed": ("exit 3", ()),
    "stopped": ("exit 3", (("stop", "--reason", "we do it differently"),)),
    "archived": ("exit 0", (("archive",),)),
    "archived after it failed": ("exit 3", (("stop", "--reason", "enough"), ("archive",))),
}


@pytest.mark.parametrize(
    ("over", "made"),
    [
        *((over, "a commit") for over in OVER),
        *(
            (over, made)
            for over in ("resumed", "archived")
            for made in ("nothing", "a commit, past our hook")
        ),
    ],
)
def test_an_outcome_that_comes_when_the_other_one_has_ended(
    ann: Clone, bob: Clone, bare: Clone, agent: Agent, cli: Command, over: str, made: str
) -> None:
    """Whatever came of the other attempt: it is named in the gate, also in an archived one, and the other clone is told once."""
    if made == "a commit, past our hook":
        cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    committed = "" if made == "nothing" else "echo late > late; git add -A; git commit -qm late;"
    agent.does(f"{committed} git remote set-url origin {bare.path}/gone")
    gate = shared(ann, bob, cli, "4s")
    late = cli.start("resume", gate, cwd=ann.path)
    until(lambda: agent.ends == [gate])
    ends, then = OVER[over]
    agent.does(f"echo next > next; git add -A; git commit -qm next; {ends}")
    until(lambda: cli.quick("resume", gate, cwd=bob.path).code is not None and len(agent.starts) == 2)
    for verb, *words in then:
        cli.quick(verb, *([gate] if verb == "stop" else []), *words, cwd=bob.path, code=0)
    before = {ref: oid for ref, oid in bare.refs().items() if "/gate/" not in ref}
    ann.git("remote", "set-url", "origin", str(bare.path))
    out, err = late.communicate(timeout=PATIENCE)
    assert late.returncode == 5
    named = "the agent on"
    if committed:
        (branch,) = [name for name in bare.refs() if name.startswith(f"refs/heads/gate/{gate}-late-")]
        named = branch.removeprefix("refs/heads/")
        assert bare.git("log", "-1", "--format=%s", branch) == "late"
    assert named in out + err
    assert named in cli.quick("show", gate, cwd=ann.path, code=0).out
    told = [cli.quick("sync", cwd=bob.path, code=0).err for _ in range(2)]
    assert [named in words for words in told] == [True, False]
    shown = cli.quick("show", gate, "--json", cwd=bob.path, code=0).json
    assert shown["state"] == over.partition(" ")[0].replace(
        "archived", "stopped" if "failed" in over else "resumed"
    )
    assert named in shown["history"][-1]["text"]
    assert named in cli.quick("show", gate, cwd=bob.path, code=0).out
    assert named not in cli.quick("sync", cwd=ann.path, code=0).err
    cli.quick("verify", cwd=ann.path, code=0)
    cli.quick("verify", cwd=bob.path, code=0)
    moved = {ref for ref, oid in before.items() if bare.refs().get(ref) != oid}
    assert moved <= {f"refs/hitl/open/{gate}", *(ref for ref in before if "/archive/" in ref)}


def test_a_worker_that_met_an_outage(ann: Clone, bare: Clone, agent: Agent, cli: Command) -> None:
    """It goes on within seconds after the remote is back, and has said once that it was away."""
    away = bare.path.with_name("away.git")
    gate = shared(ann, ann, cli, "2s")
    bare.path.rename(away)
    worker = cli.start("worker", cwd=ann.path)
    log = ann.path / f".git/gitgate/logs/{gate}.log"
    until(lambda: log.exists() and "it is tried again until that answers" in log.read_text())
    time.sleep(REACH_AGAIN + 1)
    away.rename(bare.path)
    until(lambda: agent.ends == [gate], REACH_AGAIN + 10)
    until(lambda: bare.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate}").startswith("resumed"))
    worker.terminate()
    worker.communicate(timeout=PATIENCE)
    assert log.read_text().count("it is tried again until that answers") == 1


KILL = """#!/bin/sh
[ "$1" = prepared ] || exit 0
case $(cat) in *refs/heads/*) ;; *) exit 0 ;; esac
rm "$0"
kill -9 $PPID
"""


def test_a_server_that_was_killed_while_it_moved_the_outcome(
    server: Clone, ann: Clone, agent: Agent, cli: Command
) -> None:
    """Its refs are locked until a later push frees them: the runner waits for that, and its agent is not started again."""
    server.git("config", "gitgate.resumeHere", "false")
    agent.does("echo done > made; git add -A; git commit -qm made")
    cli.quick("init", "--no-resume", cwd=ann.path, code=0)
    ann.git("checkout", "-q", "-b", "topic")
    ann.git("push", "-q", "origin", "topic")
    gate = ask(cli, ann)
    cli.quick("respond", gate, "x", "--no-resume", cwd=ann.path, code=0)
    hook = server.path / "hooks/reference-transaction"
    hook.write_text(KILL)
    hook.chmod(0o755)
    locked: list[Path] = []
    over = threading.Event()

    def grow_old() -> None:
        """As if ten minutes had passed, after the runner has tried it again in vain."""
        while not over.wait(11):
            found = [*server.path.glob("refs/**/*.lock"), *server.path.glob("*.lock")]
            for lock in found if not hook.exists() else ():
                locked.append(lock)
                with suppress(FileNotFoundError):
                    os.utime(lock, (time.time() - 700,) * 2)

    watch = threading.Thread(target=grow_old)
    watch.start()
    try:
        cli.quick("resume", gate, cwd=ann.path, code=0)
    finally:
        over.set()
        watch.join()
    assert locked
    assert agent.starts == [gate]
    assert state(cli, ann, gate) == "resumed"
    assert server.git("log", "-1", "--format=%s", "topic") == "made"
    assert not list(server.path.glob("refs/**/*.lock"))
