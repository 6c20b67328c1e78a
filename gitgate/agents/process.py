"""Agents: runs what an adapter wants run. Bounded in time, in a process group of its own, with nothing of our stdio.

`begin` gives a `Running` that its runner looks at between renewals of its claim; when the runner stops or dies, the
keeper ends the agent.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import Conflict
from ..store.git.permissions import write_private
from . import keeper
from .agent import Finished, Launch, ProcessEnding

GRACE = 10.0
PS_WITHIN = 3.0
KEEPER_MARGIN = 10.0
# The end of the output is where a program says what came of it; all of it stays in the folder.
OUT_MOST, ERR_MOST = 4_000_000, 64_000


@dataclass
class Running:
    """An agent that was started. Whoever holds it holds its lifeline: closed, the agent ends."""

    folder: Path
    keeper: subprocess.Popen[bytes] = field(repr=False)
    lifeline: int = -1
    grace: float = GRACE

    def wait(self, seconds: float | None = None) -> Finished | None:
        """How it ended; None if it still runs after `seconds`."""
        try:
            self.keeper.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._let_go()
        return recall(self.folder) or self._orphaned()

    def stop(self) -> Finished:
        """End it, politely first, and everything that it left running."""
        self._let_go()
        ended = self.wait(self.grace + KEEPER_MARGIN)
        if ended is None:
            self.keeper.kill()
            self.keeper.wait()
            ended = recall(self.folder) or self._orphaned()
        return ended

    def _let_go(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def _orphaned(self) -> Finished:
        """The keeper itself was killed: end what it kept."""
        if pid := _read_json(self.folder / keeper.STARTED).get("pid"):
            keeper.signal_group(int(pid), signal.SIGKILL)
        return _finished(self.folder, ProcessEnding.STOPPED, 128 + signal.SIGKILL)


def begin(launch: Launch, grace: float = GRACE) -> Running:
    """Start it; its folder is new, and only ours to read."""
    try:
        launch.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        (launch.folder / keeper.ORDER).touch(mode=0o600, exist_ok=False)
    except FileExistsError as taken:
        raise Conflict(
            f"something was already started in {launch.folder}", hint="every start takes a new folder"
        ) from taken
    for name, content in {**launch.files, **({keeper.STDIN: launch.stdin} if launch.stdin else {})}.items():
        write_private(launch.folder / name, content)
    lifeline, ours = os.pipe()
    order = {
        "argv": launch.argv,
        "cwd": str(launch.cwd),
        "timeout": launch.timeout,
        "grace": grace,
        "lifeline": lifeline,
    }
    (launch.folder / keeper.ORDER).write_text(json.dumps(order), encoding="utf-8")
    try:
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(launch.folder / keeper.ORDER)],
            env=dict(launch.env),
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lifeline,),
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(lifeline)
    return Running(launch.folder, started, ours, grace)


def run_launch(launch: Launch, grace: float = GRACE) -> Finished:
    """Start it and wait for its end, which the launch's timeout bounds; an interruption ends it too."""
    running = begin(launch, grace)
    try:
        return running.wait(launch.timeout + grace + KEEPER_MARGIN) or running.stop()
    except BaseException:
        running.stop()
        raise


def recall(folder: Path) -> Finished | None:
    """How the agent of that folder ended, also for one who did not start it; None if it was never told."""
    told = _read_json(folder / keeper.ENDED)
    return _finished(folder, ProcessEnding(told["ending"]), int(told["code"])) if told else None


def shown_by_ps(pid: int) -> tuple[int, str]:
    """The process above this one and the line that started it, as POSIX has them told; (0, "") where nobody tells."""
    argv = ["ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", str(pid)]
    try:
        said = subprocess.run(argv, capture_output=True, timeout=PS_WITHIN, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, ""
    parent, _, line = said.decode("utf-8", "replace").strip().partition(" ")
    return (int(parent), line.strip()) if parent.isdecimal() else (0, "")


def _finished(folder: Path, ending: ProcessEnding, code: int) -> Finished:
    return Finished(
        ending, code, _tail(folder / keeper.STDOUT, OUT_MOST), _tail(folder / keeper.STDERR, ERR_MOST), folder
    )


def _tail(place: Path, most: int) -> bytes:
    with contextlib.suppress(FileNotFoundError), place.open("rb") as source:
        source.seek(max(0, place.stat().st_size - most))
        return source.read(most)
    return b""


def _read_json(place: Path) -> dict[str, Any]:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}
