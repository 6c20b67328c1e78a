"""Service: whether an agent is among the processes that started this one. What it clears from its children's environment
is still in its own, and its name stays: where the system shows them (`/proc`), they are looked at.

Best effort: a process that cuts itself off from its parents, or plain git, is not seen here. What stops those are signed
answers and the server's rules.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..config import AGENT_MARKERS

PROC = Path("/proc")
MOST = 64
# Programs that are agents, by the name that they go by; what runs them (node, bun) goes by many others.
PROGRAMS = frozenset(("claude", "codex"))
MARKS = tuple(f"{name}=".encode() for name in AGENT_MARKERS)


def agent_above(pid: int | None = None, proc: Path | None = None) -> str:
    """What tells of an agent among this process and those above it; empty when nothing does."""
    place = PROC if proc is None else proc
    here = os.getpid() if pid is None else pid
    for _ in range(MOST):
        mark = marker_of(place / str(here))
        try:
            head, _, tail = (place / str(here) / "stat").read_text("utf-8", "replace").rpartition(")")
        except OSError:
            return ""
        program = head.partition("(")[2]
        if mark:
            return f"{mark} is set in process {here}, {program}"
        if program in PROGRAMS:
            return f"process {here} is {program}"
        here = int(tail.split()[1])
        if here <= 1:
            break
    return ""


def marker_of(place: Path) -> str:
    """The marker in the environment that a process was started with, if it has one and may be read."""
    try:
        said = (place / "environ").read_bytes()
    except OSError:
        return ""
    for entry in said.split(b"\0"):
        mark = next((mark for mark in MARKS if entry.startswith(mark) and len(entry) > len(mark)), None)
        if mark is not None:
            return mark[:-1].decode()
    return ""
