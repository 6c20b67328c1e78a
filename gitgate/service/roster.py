"""Service: the agents that asked, and how each of them is doing, from its gates and from what this machine knows of it.

resuming: one of its gates is being acted on · waiting: one has no answer yet, or nobody acted on it · active: its process
runs, and nothing is open · idle: nothing is open, and its process is not ours to see · gone: its process ended here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..core.summary import Summary
from . import presence
from .desk import Desk

UNACTED = ("awaiting", "answered", "failed")


@dataclass
class Known:
    """One agent. `pid` is 0 where its process is unknown."""

    agent: str
    state: str = "idle"
    pid: int = 0
    last_seen: str = ""
    questions: int = 0
    waiting: list[str] = field(default_factory=list)
    resuming: list[str] = field(default_factory=list)
    program: str = ""
    directory: str = ""
    alive: bool = False
    here: bool = False


def roster(desk: Desk, found: Iterable[Summary]) -> list[Known]:
    """Every agent that has a gate here, those that need something first."""
    agents: dict[str, Known] = {}
    seen = {present.gate: present for present in presence.everyone(desk)}
    for summary in found:
        known = agents.setdefault(summary.agent, Known(summary.agent))
        known.questions += 1
        known.last_seen = max(known.last_seen, summary.at)
        if summary.state == "resuming":
            known.resuming.append(summary.id)
        elif summary.state in UNACTED and not summary.closed:
            known.waiting.append(summary.id)
        if summary.id in seen:
            meet(known, seen[summary.id])
    for known in agents.values():
        known.state = state_of(known)
        if known.resuming:
            known.pid = resumed_pid(desk, known.resuming[-1]) or known.pid
    order = ("resuming", "waiting", "active", "idle", "gone")
    return sorted(agents.values(), key=lambda known: (order.index(known.state), known.agent))


def meet(known: Known, present: presence.Presence) -> None:
    """What this machine remembers of it; the process that still runs says most."""
    known.here = True
    alive = present.alive
    if alive or not known.alive:
        known.pid, known.program, known.directory = present.pid, present.program, present.directory
    known.alive = known.alive or alive


def state_of(known: Known) -> str:
    if known.resuming:
        return "resuming"
    if known.waiting:
        return "waiting"
    if known.alive:
        return "active"
    return "gone" if known.here else "idle"


def resumed_pid(desk: Desk, gate: str) -> int:
    """The process of an agent that was resumed on this machine, while it runs."""
    try:
        run = json.loads((desk.repo.state_dir / "places" / f"{gate}.json").read_text(encoding="utf-8")).get(
            "run"
        )
        said = json.loads(
            (desk.repo.state_dir / "runs" / gate / str(run) / "started.json").read_text(encoding="utf-8")
        )
        return int(said["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
