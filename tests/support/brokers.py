"""Test bed: brokers on loopback (Redis, RabbitMQ) and workers of Celery's, each for as long as a `with` lasts."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .resuming import until
from .servers import free_port

# Debian's own `rabbitmq-server` gives up its rights to an account of its own; this is what it calls.
RABBIT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


@contextmanager
def redis_server(folder: Path, port: int = 0) -> Iterator[str]:
    """The address of a Redis that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        raise AssertionError("redis-server is missing: apt-get install redis-server")
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    with (folder / "log").open("ab") as log:
        command = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: "Ready to accept connections" in (folder / "log").read_text("utf-8"))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        running.kill()
        running.wait(10)


@contextmanager
def rabbit_server(folder: Path) -> Iterator[str]:
    """The address of a RabbitMQ of its own, with a name server of its own: nothing is left when it has ended."""
    if not RABBIT.exists():
        raise AssertionError("rabbitmq-server is missing: apt-get install rabbitmq-server")
    folder.mkdir(parents=True, exist_ok=True)
    port, names = free_port(), free_port()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"gate{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    with (folder / "log").open("wb") as log:
        names_server = subprocess.Popen(["epmd"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        running = subprocess.Popen(
            [RABBIT], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(lambda: "Starting broker... completed" in (folder / "log").read_text("utf-8", "replace"), 50)
        yield f"amqp://guest:guest@127.0.0.1:{port}//"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(10)
        names_server.kill()
        names_server.wait(10)


@dataclass
class QueueWorker:
    """A worker of Celery's with a home of its own for repositories; `Popen` of its main process."""

    folder: Path
    words: tuple[str, ...] = ()
    running: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "celery", "-A", "gitgate.queue", "worker", "-l", "INFO"]
        quick = ["--without-mingle", "--without-gossip", "-n", f"{self.folder.name}@%h"]
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                [*command, *quick, *self.words],
                cwd=self.folder,
                env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(lambda: "ready." in self.said or self.running.poll() is not None)
        assert self.running.poll() is None, self.said
        return self

    def __exit__(self, *_: object) -> None:
        if self.running.poll() is None:
            self.running.terminate()
            try:
                self.running.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.running.pid, signal.SIGKILL)
                self.running.wait(10)

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    @property
    def children(self) -> list[int]:
        place = Path(f"/proc/{self.running.pid}/task/{self.running.pid}/children")
        return [int(word) for word in place.read_text().split()]

    @property
    def repositories(self) -> list[Path]:
        return sorted((self.folder / "cache/gitgate/repositories").glob("*.git"))

    def results(self) -> list[str]:
        """What each task gave back, in order."""
        return re.findall(r"Task gitgate\.resume\[\S+\] succeeded in \S+: '([^']*)'", self.said)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def messages(address: str, queue: str = "gitgate") -> list[dict[str, object]]:
    """What waits in a queue of Redis, of whichever priority, as it stands there."""
    import redis

    with redis.Redis.from_url(address) as client:
        keys = [
            key
            for key in client.keys("*")
            if key == queue.encode() or key.startswith(queue.encode() + b"\x06")
        ]
        return [json.loads(raw) for key in sorted(keys) for raw in client.lrange(key, 0, -1)]


def empty(address: str) -> None:
    """Lose all messages."""
    import redis

    with redis.Redis.from_url(address) as client:
        client.flushall()
