"""Resumption: a worker stays, and acts on answers and deadlines as they come, in one repository or in many."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..claims.claiming import Claimant
from ..context.desk import Desk, open_desk
from ..context.find import summaries
from ..context.remotes import remote_of
from ..errors import GateError
from ..exchange.publishing import publish
from ..exchange.syncing import sync
from ..gates.deadlines import act
from ..gates.leases import boottime
from ..sharing.unfinished import finish_cut_off
from ..text.display import counted
from .crew import Crew, Shift
from .run import log_of

LOOK_EVERY = 1.0
SYNC_EVERY = 15.0


@dataclass
class Station:
    """One repository that a worker looks after: the desk that it looks from, and the crew that acts."""

    desk: Desk
    crew: Crew
    say: Callable[[str], None]
    synced: float = field(default=-SYNC_EVERY)
    silent: bool = False

    def look(self) -> None:
        """What came in, and what is due; trouble with one repository is no other one's."""
        try:
            self.listen()
            self.keep_deadlines()
        except GateError as trouble:
            self.say(f"{self.desk.repo.place}: {trouble.message}")

    def listen(self) -> None:
        if time.monotonic() - self.synced < SYNC_EVERY:
            return
        self.synced = time.monotonic()
        finish_cut_off(self.desk, self.say)
        remote = remote_of(self.desk)
        if remote is None:
            return
        try:
            sync(self.desk, remote)
        except GateError as silent:
            if not self.silent:
                self.say(f"{self.desk.repo.place}: {silent.message}")
            self.silent = True
        else:
            self.silent = False

    def keep_deadlines(self) -> None:
        now = self.desk.now
        late = [s for s in summaries(self.desk) if s.state == "awaiting" and s.deadline and s.deadline <= now]
        for summary in late:
            before = self.desk.records.load(summary.id, summary.tip)
            after = act(self.desk, before)
            if after.tip != before.tip:
                self.say(f"the deadline of gate {summary.id} has passed: {after.history[-1].name}")
                publish(self.desk, after)


@dataclass(frozen=True)
class WorkerPlan:
    """What a worker looks after, and how much it does at once."""

    places: Sequence[Path]
    env: Mapping[str, str]
    most: int | None = None
    runner: str = "worker"


def station(plan: WorkerPlan, place: Path, say: Callable[[str], None], stopping: threading.Event) -> Station:
    flags = {"maxAgents": str(plan.most)} if plan.most is not None else {}
    env = dict(plan.env)

    def opener() -> Desk:
        return open_desk(place, env, flags=flags)

    desk = opener()
    term = desk.settings.seconds("leaseTerm") or 120
    who = Claimant(plan.runner, term=term, monotonic=boottime)
    return Station(desk, Crew(opener, who, say, stopping, log=lambda gate: log_of(desk, gate)), say)


def work_shift(
    plan: WorkerPlan, say: Callable[[str], None], stopping: threading.Event, *, once: bool = False
) -> Shift:
    """Act until told to stop, then hand back what is held; with `once`, until nothing is left."""
    stations = [station(plan, place, say, stopping) for place in plan.places]
    most = plan.most or max(one.desk.settings.number("maxAgents") for one in stations)
    shift = Shift([one.crew for one in stations], most, stopping)
    say(f"working in {counted(len(stations), 'repository')}, at most {counted(most, 'agent')} at once")
    try:
        while not stopping.is_set():
            for one in stations:
                one.look()
            shift.look()
            if once and not shift.busy:
                break
            stopping.wait(LOOK_EVERY if not shift.busy else LOOK_EVERY / 4)
            shift.collect()
    finally:
        shift.end()
        for one in stations:
            one.desk.close()
    return shift
