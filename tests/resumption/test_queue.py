"""Answers handed out by Celery with real brokers: a message is a doorbell, and the claim in Git decides."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.context import machine_settings
from gitgate.resumption.cache import CacheTerms, open_cache
from gitgate.runners.celery import EXPIRES, SWEEP, TASK, make_app
from support import PATIENCE
from support.brokers import (
    NEAR,
    QueueWorker,
    Redis,
    Wire,
    clock_ahead,
    empty,
    is_gone,
    messages,
    put_in,
    rabbit_server,
    redis_server,
    small_disk,
    take_out,
)
from support.racing import race
from support.readme import fenced
from support.resuming import Agent, until
from support.servers import free_port, git_daemon
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone, run_git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMMITS = 'echo "$GITGATE_ANSWER" > db.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'


def set_up(server: Clone, clone: Clone, cli: Command, broker: str, home: Path) -> None:
    """As docs/scale.md has it: the server hands out, this machine's settings say what a worker may."""
    for name, value in {
        "gitgate.queue.broker": broker,
        "gitgate.queue.repositories": str(server.path),
        "gitgate.leaseTerm": "8s",
        "gitgate.retryAfter": "1s",
    }.items():
        run_git("config", "--global", name, value, cwd=home)
    server.git("config", "gitgate.runner", "celery")
    clone.git("config", "gitgate.session", "push")
    cli.quick("init", "--no-resume", cwd=clone.path, code=0)


@pytest.fixture
def broker(server: Clone, ann: Clone, cli: Command, tmp_path: Path, agent: Agent) -> Iterator[str]:
    agent.does(COMMITS)
    with redis_server(tmp_path / "redis") as address:
        set_up(server, ann, cli, address, tmp_path)
        yield address


@pytest.fixture
def answered(ann: Clone, cli: Command) -> Callable[..., str]:
    """A gate that is asked and answered; its id."""

    def ask_and_answer(*flags: str) -> str:
        gate = cli.quick("ask", "Which?", "--agent", "scripted", *flags, cwd=ann.path, code=0).line
        cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
        return gate

    return ask_and_answer


def state(cli: Command, server: Clone, gate: str) -> str:
    return str(cli.quick("show", gate, "--json", cwd=server.path, code=0).json["state"])


def attempts(cli: Command, server: Clone, gate: str) -> int:
    return int(cli.quick("show", gate, "--json", cwd=server.path, code=0).json["resume"]["attempt"])


def sweeps() -> bool:
    """Have a worker look, as its clock does every minute; not more often than a look takes."""
    make_app(machine_settings(os.environ)).send_task(SWEEP, queue="gitgate", expires=EXPIRES)
    time.sleep(2)
    return True


def handed_out(server: Clone, gate: str) -> bool:
    log = server.path / "gitgate/logs/runner.log"
    return log.exists() and f"{gate}: handed out by celery" in log.read_text("utf-8")


def test_a_message_holds_an_address_and_nothing_of_the_question(
    broker: str, server: Clone, ann: Clone, cli: Command, answered: Callable[..., str]
) -> None:
    """No content, no command, no secret; the urgent one stands in front."""
    ann.write("partial", "password = hunter2")
    calm, urgent = (
        answered("--priority", "low", "--context", "the secret plan"),
        answered("--priority", "urgent"),
    )
    until(lambda: handed_out(server, calm) and handed_out(server, urgent))
    waiting = messages(broker)
    tips = {
        gate: cli.quick("show", gate, "--json", cwd=server.path).json["answer"]["commit"]
        for gate in (calm, urgent)
    }
    bodies = [json.loads(base64.b64decode(str(one["body"]))) for one in waiting]
    assert [body[0] for body in bodies] == [
        [str(server.path), gate, tips[gate], False] for gate in (urgent, calm)
    ]
    raw = json.dumps([*waiting, *bodies])
    for words in ("Which?", "Postgres", "secret plan", "hunter2", "scripted", "ann@", "agent.sh"):
        assert words not in raw


def test_a_worker_acts_on_it_and_keeps_nothing(
    broker: str, server: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """In a bare repository of its own that it makes; its commits come home, and its copy of the conversation is erased."""
    del broker
    with QueueWorker(tmp_path / "first") as worker:
        gate = answered()
        until(lambda: worker.results() == ["resumed"])
    assert state(cli, server, gate) == "resumed"
    assert agent.starts == [gate]
    assert server.git("log", "-1", "--format=%s", "main") == "Use Postgres"
    (place,) = worker.repositories
    kept = run_git("for-each-ref", "--format=%(refname)", cwd=place).decode()
    assert gate not in kept
    assert not (place / "gitgate/worktrees" / gate).exists()
    assert place.stat().st_mode & 0o077 == 0 or place.parent.stat().st_mode & 0o077 == 0


def test_tripled_foreign_and_old_messages_do_nothing(
    broker: str, server: Clone, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """Three of one answer start one agent; one of a repository that is not served, one that is no gate's, and one of a gate that
    is closed are refused, each in a word.
    """
    del broker
    app = make_app(machine_settings(os.environ))
    agent.does(f"sleep 1; {COMMITS}")
    gate = answered()
    until(lambda: handed_out(server, gate))
    tip = server.git("rev-parse", f"refs/hitl/open/{gate}")
    elsewhere = tmp_path / "elsewhere.git"
    for words in [
        (str(server.path), gate, tip, False),
        (str(server.path), gate, tip, False),
        (str(elsewhere), gate, tip, False),
        (f"ext::touch {tmp_path}/pwned", gate, tip, False),
        (str(server.path), "../../etc", tip, False),
        (str(server.path), gate, "--upload-pack=touch", True),
    ]:
        app.send_task(TASK, words, queue="gitgate")
    with QueueWorker(tmp_path / "first", ("-c", "2")) as worker:
        until(lambda: len(worker.results()) == 7)
        app.send_task(TASK, (str(server.path), gate, tip, False), queue="gitgate")
        until(lambda: len(worker.results()) == 8)
    results = worker.results()
    assert results.count("resumed") == 1
    assert results.count("refused") == 4
    assert set(results) <= {"resumed", "refused", "taken", "not possible here"}
    assert agent.starts == [gate]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("how", ["child", "main", "terminated", "revoked"])
def test_a_worker_that_ends_hands_over(
    broker: str,
    server: Clone,
    cli: Command,
    answered: Callable[..., str],
    agent: Agent,
    tmp_path: Path,
    how: str,
) -> None:
    """Killed, in its child or in its main process, revoked, or told to end: its agent is gone, and another worker goes on, once."""
    del broker
    agent.does("sleep 600")
    with QueueWorker(tmp_path / "first", ("-c", "1")) as first:
        gate = answered()
        until(lambda: agent.starts == [gate])
        pid = int(agent.log.read_text("utf-8").split()[1])
        agent.does(COMMITS)
        if how == "child":
            os.kill(first.children[0], signal.SIGKILL)
        elif how == "main":
            first.running.kill()
        elif how == "terminated":
            first.running.terminate()
        else:
            revoke(first)
        until(lambda: is_gone(pid))
        if how in ("main", "terminated"):
            first.running.wait(30)
        with QueueWorker(tmp_path / "second", ("-c", "1")):
            until(lambda: sweeps() and state(cli, server, gate) == "resumed", 180)
    assert agent.starts == [gate, gate]
    # What is handed back in good order was no attempt.
    assert attempts(cli, server, gate) == (1 if how == "terminated" else 2)


@pytest.mark.parametrize("by", ["+1h", pytest.param("-1h", marks=pytest.mark.thorough)])
def test_a_worker_whose_clock_is_wrong_harms_nobody(
    broker: str,
    server: Clone,
    cli: Command,
    answered: Callable[..., str],
    agent: Agent,
    tmp_path: Path,
    by: str,
) -> None:
    """It acts on what it is told of, sweeps included, keeps its lease while others look, and when it is killed its gate is taken
    over as soon as any other's; nobody waits for its clock.
    """
    del broker
    agent.is_held(COMMITS)
    app = make_app(machine_settings(os.environ))
    off = QueueWorker(tmp_path / "off", ("-c", "2"), env=clock_ahead(by))
    with off:
        gate = answered()
        until(lambda: agent.starts == [gate])
        until(lambda: sweeps() and "gitgate.sweep" in off.said.partition("ready.")[2])
        # Those that look for longer than its term see that it goes on, whatever they are told.
        with QueueWorker(tmp_path / "right", ("-c", "1")) as right:
            tip = server.git("rev-parse", f"refs/hitl/open/{gate}")
            app.send_task(TASK, (str(server.path), gate, tip, True), queue="gitgate")
            app.send_task(TASK, (str(server.path), gate, tip, True), queue="gitgate")
            for _ in range(6):
                sweeps()
            assert "taken" in [*right.results(), *off.results()]
        assert attempts(cli, server, gate) == 1
        agent.let_go()
        until(lambda: state(cli, server, gate) == "resumed")
        (agent.folder / "go").unlink()
        second = answered()
        until(lambda: agent.starts == [gate, second])
        agent.does(COMMITS)
        off.kill()
        with QueueWorker(tmp_path / "next", ("-c", "1")):
            until(lambda: sweeps() and state(cli, server, second) == "resumed", 120)
    assert "Discarding" not in off.said
    assert agent.starts == [gate, second, second]


@pytest.mark.machine
def test_a_full_disk_leaves_the_gate_to_another_worker(
    broker: str, server: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """Nothing is claimed there; it says what to do, and works again when there is room."""
    del broker
    disk = tmp_path / "small" / "cache"
    with QueueWorker(tmp_path / "small", ("-c", "1"), reach=small_disk(disk, "96m")) as small:
        filler = Path(f"/proc/{small.running.pid}/root{disk}/filler")
        fill(filler, 0)
        gate = answered()
        until(lambda: "no room here" in small.results())
        assert f"the disk is full: {disk}/gitgate/repositories has " in small.said
        assert f"make room: du -sh {disk}/gitgate/repositories/*" in small.said
        assert agent.starts == []
        with QueueWorker(tmp_path / "roomy", ("-c", "1")) as roomy:
            until(lambda: roomy.results() == ["resumed"])
        filler.unlink()
        other = answered()
        until(lambda: state(cli, server, other) == "resumed")
        assert agent.starts == [gate, other]
        assert attempts(cli, server, gate) == attempts(cli, server, other) == 1


@pytest.mark.machine
@pytest.mark.thorough
def test_work_that_does_not_fit_goes_where_there_is_room(
    broker: str,
    server: Clone,
    ann: Clone,
    cli: Command,
    answered: Callable[..., str],
    agent: Agent,
    tmp_path: Path,
) -> None:
    """The disk fills while the working tree is written: the claim is handed back, which is no attempt, and nothing is left of it."""
    del broker
    (ann.path / "big").write_bytes(os.urandom(50 << 20))
    ann.git("add", "big")
    ann.git("commit", "-qm", "Something big")
    ann.git("push", "-q", "origin", "main")
    disk = tmp_path / "small" / "cache"
    with QueueWorker(tmp_path / "small", ("-c", "1"), reach=small_disk(disk, "96m")) as small:
        gate = answered()
        until(lambda: "no room here" in small.results(), 120)
        assert f"{gate} is left to another worker: " in small.said
        assert f"make room: du -sh {disk}/gitgate/repositories/*" in small.said
        assert agent.starts == []
        inside = Path(f"/proc/{small.running.pid}/root{disk}")
        assert list(inside.glob("gitgate/repositories/*.git/gitgate/worktrees/*")) == []
        with QueueWorker(tmp_path / "roomy", ("-c", "1")) as roomy:
            until(lambda: roomy.results() == ["resumed"], 120)
    assert agent.starts == [gate]
    assert attempts(cli, server, gate) == 1


@pytest.mark.machine
@pytest.mark.thorough
def test_a_worker_that_is_cut_off_ends_its_agent_and_comes_back(
    server: Clone, ann: Clone, cli: Command, agent: Agent, tmp_path: Path
) -> None:
    """In a network of its own whose wire is cut: before anybody takes over, its agent is gone. When the wire is whole again it
    works as before, and acts on nothing twice.
    """
    agent.does("sleep 600")
    port = free_port()
    with Wire() as wire, git_daemon(tmp_path, port, wire.near), contextlib.ExitStack() as held:
        redis = Redis(tmp_path / "redis", free_port(), host=NEAR, reach=wire.near)
        redis.begin()
        held.callback(redis.kill)
        set_up(server, ann, cli, redis.address, tmp_path)
        address = f"git://{NEAR}:{port}/{server.path.name}"
        server.git("config", "gitgate.runnerAddress", address)
        for name, value in {"queue.repositories": address, "networkTimeout": "4s"}.items():
            run_git("config", "--global", f"gitgate.{name}", value, cwd=tmp_path)

        def near(*command: str) -> str:
            done = subprocess.run([*wire.near, *command], cwd=ann.path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        def answered() -> str:
            gate = near(str(COMMAND), "ask", "Which?", "--agent", "scripted")
            near(str(COMMAND), "respond", gate, "Postgres")
            return gate

        def looked() -> bool:
            near(sys.executable, "-c", SWEEPS)
            time.sleep(2)
            return True

        with QueueWorker(tmp_path / "far", ("-c", "1"), reach=wire.far) as far:
            gate = answered()
            until(lambda: agent.starts == [gate])
            pid = int(agent.log.read_text("utf-8").split()[1])
            agent.does(f"! kill -0 {pid} 2>/dev/null || echo overlap >> '{tmp_path}/overlap'; {COMMITS}")
            wire.cut()
            with QueueWorker(tmp_path / "near", ("-c", "1"), reach=wire.near):
                until(lambda: looked() and state(cli, server, gate) == "resumed", 180)
            assert is_gone(pid)
            assert agent.starts == [gate, gate]
            wire.mend()
            second = answered()
            until(lambda: looked() and state(cli, server, second) == "resumed", 180)
            until(lambda: "resumed" in far.results())
    assert agent.starts == [gate, gate, second]
    assert not (tmp_path / "overlap").exists()
    assert attempts(cli, server, gate) == 2


SWEEPS = """
import os
from gitgate.context import machine_settings
from gitgate.runners.celery import SWEEP, make_app

make_app(machine_settings(os.environ)).send_task(SWEEP, queue="gitgate")
"""


def test_a_message_that_comes_late_does_nothing(
    broker: str, server: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """Held back until the sweep has told of the gate again: it finds somebody at work, or the gate closed."""
    agent.is_held(COMMITS)
    gate = answered()
    until(lambda: handed_out(server, gate))
    late = take_out(broker)
    with QueueWorker(tmp_path / "first", ("-c", "2")) as worker:
        until(lambda: sweeps() and agent.starts == [gate])
        put_in(broker, late)
        until(lambda: worker.results() == ["taken"])
        agent.let_go()
        until(lambda: worker.results() == ["taken", "resumed"])
        put_in(broker, late)
        until(lambda: worker.results() == ["taken", "resumed", "taken"])
    assert agent.starts == [gate]
    assert attempts(cli, server, gate) == 1


def fill(place: Path, leave: int) -> None:
    """Until so many bytes are left on its disk."""
    with place.open("wb") as out, contextlib.suppress(OSError):
        while room(place.parent) > leave:
            out.write(bytes(min(1 << 16, max(1, room(place.parent) - leave))))
            out.flush()


def room(folder: Path) -> int:
    there = os.statvfs(folder)
    return there.f_bavail * there.f_frsize


def revoke(worker: QueueWorker) -> None:
    """As an operator ends a task, and its process with it."""
    app = make_app(machine_settings(os.environ))
    (task,) = [
        line.partition("gitgate.resume[")[2].partition("]")[0]
        for line in worker.said.splitlines()
        if "received" in line
    ]
    app.control.revoke(task, terminate=True)


def test_what_no_message_tells_of_is_found(
    broker: str, server: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """The queue is emptied by hand; the sweep finds every gate, and a deadline that passed."""
    gates = [answered() for _ in range(3)]
    until(lambda: all(handed_out(server, gate) for gate in gates))
    empty(broker)
    with QueueWorker(tmp_path / "first", ("-B", "-s", str(tmp_path / "beat"))):
        sweeps()
        until(lambda: all(state(cli, server, gate) == "resumed" for gate in gates), 90)
    assert sorted(agent.starts) == sorted(gates)


def test_a_silent_broker_loses_nothing(
    broker: str, server: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """The push is through, the log says who does not answer, without the password; when the broker is back, the next push tells it."""
    port = free_port()
    run_git(
        "config", "--global", "gitgate.queue.broker", f"redis://:hunter2@127.0.0.1:{port}/0", cwd=tmp_path
    )
    gate = answered()
    log = server.path / "gitgate/logs/runner.log"
    until(lambda: log.exists() and "does not answer" in log.read_text("utf-8"))
    assert "hunter2" not in log.read_text("utf-8")
    run_git("config", "--global", "gitgate.queue.broker", broker, cwd=tmp_path)
    other = answered()
    with QueueWorker(tmp_path / "first"):
        until(lambda: state(cli, server, gate) == state(cli, server, other) == "resumed")
    assert sorted(agent.starts) == sorted([gate, other])


BRINGS = """
from gitgate.resumption.cache import bring_policy

bring_policy(desk)
print(desk.refs.get("refs/heads/main"))
"""


def test_workers_of_one_machine_do_not_send_each_other_away(bare: Clone, tmp_path: Path) -> None:
    """Those that begin with a repository at once each have its own branch as it is."""
    terms = CacheTerms(tmp_path / "cache", 0, 0)
    place = open_cache(terms, str(bare.path), os.environ)
    for word in ("first", "second"):
        tip = bare.git("commit-tree", "-p", "main", "-m", word, "main^{tree}")
        bare.git("update-ref", "refs/heads/main", tip)
        assert race(place, BRINGS, 6) == [[tip]] * 6


def test_the_machine_says_what_it_would_run(broker: str, cli: Command, tmp_path: Path) -> None:
    """The lines that start a worker, whose answers it takes and whether the broker answers; each thing that is missing, with its line."""
    said = cli.quick("worker", "--queue", "--json", cwd=tmp_path, code=0).json["queue"]
    assert (said["answers"], said["queues"], said["agents"]) == (True, ["gitgate"], 2)
    assert said["worker"][:4] == ["celery", "-A", "gitgate.queue", "worker"]
    assert said["broker"].endswith(broker.partition("127.0.0.1")[2])

    def setting(name: str, value: str) -> str:
        run_git("config", "--global", f"gitgate.queue.{name}", value, cwd=tmp_path)
        said = cli.quick("worker", "--queue", cwd=tmp_path, code=1 if name != "route" else 2)
        return said.out + said.err

    assert "it does not answer" in setting("broker", f"redis://:hunter2@127.0.0.1:{free_port()}/0")
    assert "hunter2" not in cli.quick("worker", "--queue", "--json", cwd=tmp_path).out
    assert "'codex' is no rule" in setting("route", "codex")
    assert "no repository is named" in setting("repositories", "")
    run_git("config", "--global", "--unset-all", "gitgate.queue.broker", cwd=tmp_path)
    assert (
        "git config --global gitgate.queue.broker" in cli.quick("worker", "--queue", cwd=tmp_path, code=2).err
    )


@pytest.mark.plain_names
def test_the_servers_doctor_asks_the_broker(broker: str, server: Clone, cli: Command, tmp_path: Path) -> None:
    """One that is there is good; of one that does not answer the address is told, without its password."""
    assert "ok  runner: answers are handed out" in cli.quick("doctor", cwd=server.path, code=0).out
    port = free_port()
    run_git(
        "config", "--global", "gitgate.queue.broker", f"redis://:hunter2@127.0.0.1:{port}/0", cwd=tmp_path
    )
    said = cli.quick("doctor", cwd=server.path, code=1).out
    assert f"127.0.0.1:{port}/0, and it does not answer" in said
    assert "hunter2" not in said


def test_the_page_sets_a_worker_up(broker: str, cli: Command, tmp_path: Path) -> None:
    """docs/scale.md's lines for a worker's machine, as they are typed; the last one says that it could work."""
    del broker
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
    lines = fenced(page.partition("On each worker's machine")[2], "sh").splitlines()
    address = run_git("config", "--global", "gitgate.queue.broker", cwd=tmp_path).decode().strip()
    for line in lines[:-1]:
        words = shlex.split(line.replace("redis://127.0.0.1:6379/0", address))
        run_git(*words[1:], cwd=tmp_path)
    assert shlex.split(lines[-1], comments=True) == ["git", "gate", "worker", "--queue"]
    said = cli.quick("worker", "--queue", cwd=tmp_path, code=0).out
    assert "ssh://git@git.example.org/srv/*" in said
    assert "4 agents" in said
    for unit in re.findall(r"ExecStart=/opt/git-gate/bin/(celery -A gitgate.queue \w+)", page):
        assert unit in said


def test_the_pages_script_starts_a_broker_and_two_workers(
    server: Clone, ann: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """As it stands in docs/scale.md: both workers act on answers, and Ctrl-C ends all that it started."""
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
    (text,) = (
        one
        for one in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        if "# two-workers" in one
    )
    script = tmp_path / "two-workers"
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    ann.git("config", "gitgate.session", "push")
    cli.quick("init", "--no-resume", cwd=ann.path, code=0)
    agent.is_held(COMMITS)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    log, port = tmp_path / "log", free_port()
    with log.open("wb") as said:
        running = subprocess.Popen(
            [script, str(server.path), str(port)],
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        until(lambda: log.read_text("utf-8").count(" ready.") == 2 or running.poll() is not None)
        assert running.poll() is None, log.read_text("utf-8")
        gates = [answered() for _ in range(2)]
        until(lambda: sorted(agent.starts) == sorted(gates))  # each worker has one
        agent.let_go()
        until(lambda: all(state(cli, server, gate) == "resumed" for gate in gates))
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        assert running.wait(PATIENCE) == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(running.pid, 0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)


def test_rabbit_hands_out_as_well(
    server: Clone, ann: Clone, cli: Command, answered: Callable[..., str], agent: Agent, tmp_path: Path
) -> None:
    """The most urgent first, by the queue of its agent, with one worker that acts on one at a time."""
    agent.does(COMMITS)
    with rabbit_server(tmp_path / "rabbit") as address:
        set_up(server, ann, cli, address, tmp_path)
        run_git(
            "config", "--global", "gitgate.queue.route", "agent:codex=codex agent:scr*=scripts", cwd=tmp_path
        )
        gates = [answered("--priority", priority) for priority in ("low", "high", "urgent")]
        until(lambda: all(handed_out(server, gate) for gate in gates))
        with QueueWorker(tmp_path / "first", ("-c", "1", "-Q", "scripts")) as worker:
            until(lambda: worker.results() == ["resumed"] * 3)
    assert agent.starts == gates[::-1]
