"""Benchmarks: how a figure is taken. Ours and the yardstick alternate, so that a busy machine troubles both alike."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "git-gate")
START_UP = [sys.executable, "-c", "import click"]


@dataclass(frozen=True)
class Row:
    """One measured line. `limit` is what `value` has to stay at or below; `ours` and `theirs` are in `unit`."""

    name: str
    ours: float
    theirs: float | None
    unit: str
    value: float
    limit: float
    yardstick: str

    @property
    def met(self) -> bool:
        return self.value <= self.limit

    def as_json(self) -> dict[str, object]:
        return {**self.__dict__, "met": self.met}


@dataclass(frozen=True)
class Table:
    """Figures that have no limit: what they are of, the heads of the columns, the lines."""

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[object]]

    def __str__(self) -> str:
        cells = [self.heads, *([shown(cell) for cell in line] for line in self.lines)]
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rows = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, wide, strict=True))
            )
            for line in cells
        ]
        return "\n".join([self.title, *(f"  {row.rstrip()}" for row in rows)])

    def as_json(self) -> dict[str, object]:
        return {"title": self.title, "heads": list(self.heads), "lines": [list(line) for line in self.lines]}


def shown(cell: object) -> str:
    """Three digits that count, and no more."""
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else str(cell)
    return f"{cell:,.0f}" if cell >= 100 else f"{cell:.1f}" if cell >= 10 else f"{cell:.2f}"


def ratio(name: str, ours: float, theirs: float, limit: float, yardstick: str) -> Row:
    """A row whose value is a ratio of two times in milliseconds."""
    return Row(name, ours, theirs, "ms", ours / theirs, limit, yardstick)


def figure(name: str, value: float, unit: str, limit: float, yardstick: str = "") -> Row:
    """A row whose value stands for itself."""
    return Row(name, value, None, unit, value, limit, yardstick)


def run(command: Sequence[str], cwd: Path, *, input: bytes = b"", code: int | None = 0) -> bytes:
    done = subprocess.run(command, cwd=cwd, input=input, capture_output=True, check=False, timeout=600)
    if code is not None and done.returncode != code:
        raise RuntimeError(
            f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.decode(errors='replace')}"
        )
    return done.stdout


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def busy(action: Callable[[], object]) -> float:
    """Milliseconds of processor time, of this process and of all that it waited for: what else runs has no part in it."""

    def spent() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    before = spent()
    action()
    return (spent() - before) * 1000


def side_by_side(actions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median time in milliseconds of each action, taken in turns after one round to warm up."""
    for action in actions:
        action()
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for place, action in enumerate(actions):
            times[place].append(timed(action))
    return [statistics.median(taken) for taken in times]


PEAK = (
    "import os, sys\n"
    "nowhere = os.open(os.devnull, os.O_WRONLY)\n"
    "child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere, 1)])\n"
    "_, status, usage = os.wait4(child, 0)\n"
    "print(usage.ru_maxrss)\n"
    "sys.exit(os.waitstatus_to_exitcode(status))\n"
)


def peak_memory(command: Sequence[str], cwd: Path) -> float:
    """The largest resident size, in megabytes, that a command reached. A small process starts it: Linux counts the size of
    the process that a command was started from as its own.
    """
    return int(run([sys.executable, "-c", PEAK, *command], cwd)) / 1024


def machine() -> str:
    """What the figures were taken on."""
    import platform

    git = run(["git", "--version"], Path.cwd()).decode().strip()
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {git}"
