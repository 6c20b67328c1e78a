"""Agents: the keeper, a small program of its own that stands between a runner and the agent it started.

It ends the agent (its whole process group) when its time is up, when it is told to, and when the runner is gone,
however that died: the runner holds the other end of a pipe, and no agent outlives the one who has the right to run it.
Run as `python -I -S keeper.py ORDER`; ORDER is a JSON file, and what came of it is written beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ORDER, STARTED, ENDED = "order.json", "started.json", "ended.json"
STDIN, STDOUT, STDERR = "stdin", "stdout.log", "stderr.log"
DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
ROUNDS = 50


def write_json(place: Path, value: dict[str, Any]) -> None:
    """All of it or nothing."""
    new = place.with_suffix(".new")
    new.write_text(json.dumps(value), encoding="utf-8")
    new.replace(place)


def control(option: int, value: int) -> None:
    """Linux only; elsewhere the process group and the pipe have to do."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def tie_to_keeper() -> None:
    """Make the child die if the keeper is killed outright; called in the child."""
    control(DIE_WITH_PARENT, signal.SIGKILL)


def start_child(order: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    stdin = folder / STDIN
    with (
        (stdin if stdin.exists() else Path(os.devnull)).open("rb") as source,
        (folder / STDOUT).open("ab") as out,
        (folder / STDERR).open("ab") as err,
    ):
        return subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            stdin=source,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=tie_to_keeper,  # noqa: PLW1509  this program has one thread
        )


def signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def wake_on_child() -> int:
    """The end of a pipe that becomes readable when a child ends or the keeper is told to stop."""
    wake, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return wake


def watch_child(child: subprocess.Popen[bytes], lifeline: int, wake: int, seconds: float) -> str:
    """Wait until the child has ended or must; say which."""
    until = time.monotonic() + seconds
    while child.poll() is None:
        left = until - time.monotonic()
        if left <= 0:
            return "timed out"
        ready, _, _ = select.select([lifeline, wake], [], [], left)
        if lifeline in ready or (wake in ready and set(os.read(wake, 64)) - {signal.SIGCHLD}):
            return "stopped" if child.poll() is None else "exited"
    return "exited"


def end(child: subprocess.Popen[bytes], grace: float) -> int:
    """End the child and everything of its group; its exit code, 128 + n for signal n."""
    if child.poll() is None:
        signal_group(child.pid, signal.SIGTERM)
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            signal_group(child.pid, signal.SIGKILL)
    code = child.wait()
    # What it left running in the background ends with it: nothing runs while a question waits.
    signal_group(child.pid, signal.SIGKILL)
    end_strays()
    return 128 - code if code < 0 else code


def end_strays() -> None:
    """Kill descendants that left the group: as orphans they became children of the keeper."""
    for _ in range(ROUNDS):
        strays = children()
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0 if strays else os.WNOHANG)[0]:
                pass
        if not strays:
            return


def children() -> list[int]:
    """Processes whose parent is this one; none where there is no /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name stands in parentheses and may hold anything, so what follows is read from the last one.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


def main() -> None:
    folder = Path(sys.argv[1]).parent
    order = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    wake = wake_on_child()
    control(ADOPT_ORPHANS, 1)
    try:
        child = start_child(order, folder)
    except OSError as error:
        (folder / STDERR).write_text(f"{order['argv'][0]}: {error.strerror or error}\n", encoding="utf-8")
        write_json(folder / ENDED, {"ending": "not started", "code": 127})
        return
    write_json(folder / STARTED, {"pid": child.pid, "keeper": os.getpid()})
    ending = watch_child(child, order["lifeline"], wake, order["timeout"])
    write_json(folder / ENDED, {"ending": ending, "code": end(child, order["grace"])})


if __name__ == "__main__":
    main()
