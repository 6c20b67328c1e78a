"""Lab: starts the scripted model and tells what it was shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from support import PATIENCE

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True)
class Reply:
    """What the model says once (or, with `repeat`, whenever it fits): a text, then tool calls by name and input."""

    text: str = ""
    tools: Sequence[tuple[str, Mapping[str, object]]] = ()
    when: str = ""
    repeat: bool = False
    status: int = 0
    delay: float = 0

    def plain(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if value}


@dataclass
class Model:
    """A running scripted model. `reach` is what to put before a command so that it can reach this model, and only it."""

    directory: Path
    url: str
    process: subprocess.Popen[bytes]
    reach: list[str] = field(default_factory=list)

    def requests(self) -> list[dict[str, Any]]:
        """What it was asked, oldest first; probes and titles (no tools offered) left out."""
        log = self.directory / "log.jsonl"
        rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
        return [row for row in rows if row["tools"] and row["dialect"]]

    def shown(self) -> str:
        """The messages of the last request, as JSON text."""
        return json.dumps(self.requests()[-1]["messages"], ensure_ascii=False)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@cache
def can_isolate() -> bool:
    """Whether a network with nothing but loopback can be made here (root on Linux)."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    return (
        subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True).returncode
        == 0
    )


def start_model(directory: Path, replies: Sequence[Reply]) -> Model:
    """Start a model that follows `replies`; where possible in a network of its own, with no other route."""
    directory.mkdir(parents=True)
    script, log, port = (directory / name for name in ("script.json", "log.jsonl", "port"))
    script.write_text(json.dumps([reply.plain() for reply in replies]), "utf-8")
    command = [sys.executable, "-I", str(SERVER), str(script), str(log), str(port)]
    if can_isolate():
        # exec keeps the pid: the namespace is reached through the server's own process.
        command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE
    while not port.exists():
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise RuntimeError(f"the scripted model did not start: {process.wait()}")
        time.sleep(0.02)
    reach = ["nsenter", f"--net=/proc/{process.pid}/ns/net"] if can_isolate() else []
    return Model(directory, f"http://127.0.0.1:{port.read_text()}", process, reach)
