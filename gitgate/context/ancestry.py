"""Context: the processes that started this one, and whether an agent is among them. What it clears from its children's
environment is still in its own, and its name and its command line stay: where the system shows them (`/proc`), they are
looked at.

Best effort: a process that cuts itself off from its parents, or plain git, is not seen here. What stops those are signed
answers and the server's rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..agents import mark_in, program_of_process
from ..document import NamedTuple

ALL = PROC = Path("/proc")  # of the second only what is above this process is asked
MOST = 64
LONGEST = 65_536


class Process(NamedTuple):
    """One of the processes above: its number, what the system calls it, and its command line."""

    pid: int
    called: str
    words: tuple[str, ...]
    place: Path

    @property
    def agent(self) -> str:
        """The name of the agent's program that it is; empty when it is none."""
        found = program_of_process(self.called, self.words)
        return found.name if found else ""


def above(pid: int | None = None, proc: Path | None = None) -> Iterator[Process]:
    """This process and those above it, the nearest first, as far as they can be seen."""
    place = PROC if proc is None else proc
    here = os.getpid() if pid is None else pid
    for _ in range(MOST):
        try:
            head, _, tail = (place / str(here) / "stat").read_text("utf-8", "replace").rpartition(")")
        except OSError:
            return
        yield Process(here, head.partition("(")[2], command_line(place / str(here)), place / str(here))
        here = int(tail.split()[1])
        if here <= 1:
            return


def agent_above(pid: int | None = None, proc: Path | None = None) -> str:
    """What tells of an agent among this process and those above it; empty when nothing does."""
    for process in above(pid, proc):
        mark = marker_of(process.place)
        if mark:
            return f"{mark} is set in process {process.pid}, {process.called}"
        if agent := process.agent:
            return f"process {process.pid} is {agent}"
    return ""


def is_agent(pid: int) -> bool:
    """Whether the process of that number is an agent's program."""
    found = next(above(pid, ALL), None)
    return found is not None and bool(found.agent)


def command_line(place: Path) -> tuple[str, ...]:
    try:
        with (place / "cmdline").open("rb") as source:
            said = source.read(LONGEST)
    except OSError:
        return ()
    return tuple(word.decode("utf-8", "replace") for word in said.split(b"\0")[:-1])


def marker_of(place: Path) -> str:
    """The mark in the environment that a process was started with, if it has one and may be read."""
    try:
        said = (place / "environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    pairs = (entry.partition("=") for entry in said.split("\0"))
    return mark_in({name: value for name, _, value in pairs})
