"""Test bed: brokers on loopback (Redis, RabbitMQ) and workers of Celery's, each for as long as a `with` lasts."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from . import PATIENCE
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
    host: str = "127.0.0.1"
    reach: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def begin(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise AssertionError("redis-server is missing: apt-get install redis-server")
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self.folder / "log"
        with place.open("wb") as log:
            flags = {"bind": self.host, "port": str(self.port), "save": "", "dir": str(self.folder)}
            flags["protected-mode"] = (
                "no"  # It asks for a password where it listens on anything but loopback.
            )
            command = [*self.reach, program, *(word for name in flags for word in (f"--{name}", flags[name]))]
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
        until(
            lambda: "Starting broker... completed" in (folder / "log").read_text("utf-8", "replace"),
            3 * PATIENCE,
        )
        yield f"amqp://guest:guest@127.0.0.1:{port}//"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(10)
        names_server.kill()
        names_server.wait(10)


@dataclass
class QueueWorker:
    """A worker of Celery's with a home of its own for repositories; `Popen` of its main process.

    `reach`: what leads into the network, or onto the disk, that it is to have; `env`: what else is in its environment.
    """

    folder: Path
    words: tuple[str, ...] = ()
    app: str = "gitgate.queue"
    reach: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
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
                [*self.reach, *command, *quick, *self.words],
                cwd=self.folder,
                env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **self.env},
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


def small_disk(place: Path, size: str) -> tuple[str, ...]:
    """What starts a program that has, at this place, a disk of its own of so many bytes; it is gone with the program."""
    place.mkdir(parents=True)
    mounts = f'mount -t tmpfs -o size={size} tmpfs "{place}" && exec "$@"'
    return ("unshare", "-m", "sh", "-c", mounts, "sh")


def clock_ahead(by: str) -> dict[str, str]:
    """The environment of a program whose clock, and that of all that it starts, is off by so much (`+1h`)."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        raise AssertionError("libfaketime is missing: apt-get install libfaketime")
    # As on a machine that is set wrong: what counts from the start of the machine is right, and its files' times are wrong alike.
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": by,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


NEAR, FAR = "192.0.2.1", "192.0.2.2"
NOBODY = "02:00:00:00:00:99"


@dataclass
class Wire:
    """Two networks with a wire between them, and nothing else: `near` and `far` are what leads into each.

    While it is cut each side sends into the void and hears nothing, as when a switch fails: nobody is refused.
    """

    holders: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        if shutil.which("ip") is None:
            raise AssertionError("ip is missing: apt-get install iproute2")
        for _ in range(2):
            command = ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep 3600"]
            holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.holders.append(holder)
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"up\n"
        other = str(self.holders[1].pid)
        self.ip(self.near, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", other)
        for side, address in ((self.near, NEAR), (self.far, FAR)):
            self.ip(side, "addr", "add", f"{address}/24", "dev", "wire")
            self.ip(side, "link", "set", "wire", "up")
        self.ends = [self.own_name(side) for side in (self.near, self.far)]
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self.holders:
            holder.kill()
            holder.wait(10)
            if holder.stdout is not None:
                holder.stdout.close()

    @property
    def near(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self.holders[0].pid}/ns/net")

    @property
    def far(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self.holders[1].pid}/ns/net")

    def cut(self) -> None:
        self.send_to([NOBODY, NOBODY])

    def mend(self) -> None:
        self.send_to(self.ends)

    def send_to(self, ends: Sequence[str]) -> None:
        """Whom each side takes for the other one."""
        for side, address, end in ((self.near, FAR, ends[1]), (self.far, NEAR, ends[0])):
            self.ip(side, "neigh", "replace", address, "lladdr", end, "dev", "wire", "nud", "permanent")

    def own_name(self, side: Sequence[str]) -> str:
        return self.ip(side, "-br", "link", "show", "wire").split()[2]

    def ip(self, side: Sequence[str], *words: str) -> str:
        return subprocess.run([*side, "ip", *words], check=True, capture_output=True, text=True).stdout


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def messages(address: str, queue: str = "gitgate") -> list[dict[str, object]]:
    """What waits in a queue of Redis, of whichever priority, as it stands there."""
    return [json.loads(raw) for _, raw in waiting(address, queue)]


def waiting(address: str, queue: str = "gitgate") -> list[tuple[bytes, bytes]]:
    import redis

    with redis.Redis.from_url(address) as client:
        own = queue.encode()
        keys = [key for key in client.keys("*") if key == own or key.startswith(own + b"\x06")]
        return [(key, raw) for key in sorted(keys) for raw in client.lrange(key, 0, -1)]


def take_out(address: str) -> list[tuple[bytes, bytes]]:
    """What waits, held back from everybody, to be put in again."""
    import redis

    held = waiting(address)
    with redis.Redis.from_url(address) as client:
        return [one for one in held if client.lrem(one[0], 1, one[1])]


def put_in(address: str, held: Sequence[tuple[bytes, bytes]]) -> None:
    import redis

    with redis.Redis.from_url(address) as client:
        for key, raw in held:
            client.lpush(key, raw)


def empty(address: str) -> None:
    """Lose all messages."""
    import redis

    with redis.Redis.from_url(address) as client:
        client.flushall()
