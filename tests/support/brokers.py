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


@dataclass
class Redis:
    """A Redis that keeps nothing: what was in it when it was killed is lost."""

    folder: Path
    port: int
    running: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def begin(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise AssertionError("redis-server is missing: apt-get install redis-server")
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self.folder / "log"
        with place.open("wb") as log:
            command = [
                program,
                "--bind",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--save",
                "",
                "--dir",
                str(self.folder),
            ]
            self.running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: "Ready to accept connections" in place.read_text("utf-8"))

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.wait(10)


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Its address."""
    redis = Redis(folder, free_port())
    redis.begin()
    try:
        yield redis.address
    finally:
        redis.kill()


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
    app: str = "gitgate.queue"
    running: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "celery", "-A", self.app, "worker", "-l", "INFO"]
        quick = ["--without-mingle", "--without-gossip", "-n", f"{self.folder.name}@%h"]
        before = len(self.said) if self.log.exists() else 0
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
        until(lambda: "ready." in self.said[before:] or self.running.poll() is not None)
        assert self.running.poll() is None, self.said

    def end(self) -> None:
        """In good order, as far as it can."""
        if self.running.poll() is None:
            self.running.terminate()
            try:
                self.running.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """The main process, and nothing else: what becomes of its children is its own business."""
        self.running.kill()
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
