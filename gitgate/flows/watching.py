"""Flows: a run as whoever watches it sees it: its journal as it grows, and what its agents and people said. Read-only.

`agent:completed`, `input:requested` and `input:received` hold what a program's own `on` is told of phases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..claims.attending import hear_remote
from ..context.desk import Desk
from ..context.targets import remote_of
from ..errors import GateError
from ..model.gate import Gate
from ..model.states import AWAITING
from ..record.runs import Run, RunEvent
from ..render.runs import run_details, run_trail
from ..store.git.refs import RUNS
from .checking import with_children
from .handlers import shown_labels
from .journal import load_run

POLL = 0.5
FETCH_EVERY = 10.0
TO_PROGRAMS = ("agent:completed", "input:requested")
"""What the journal's own lines say already, to people."""
Json = dict[str, Any]


@dataclass
class RunWatch:
    """One run, watched until it is over. `waited`: called when what it waits for has come, once for each wait."""

    desk: Desk
    run: str
    waited: Callable[[Run], None] | None = None
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asked: dict[str, bool] = field(default_factory=dict)
    """Each gate that the run asked, and whether its end was told."""
    told: dict[str, int] = field(default_factory=dict)
    """Of each run, how many of its events were told."""
    called_at: str = ""

    def events(self, seconds: float | None = None) -> Iterator[Json]:
        """Each event, from the run's first one on, and those of the runs that it has called."""
        start = self.monotonic()
        remote, heard = remote_of(self.desk), start
        while True:
            run = load_run(self.desk, self.run)
            for one, event, line in self.news(run):
                yield line
                yield from self.more(one, event, line)
            yield from self.received()
            if run.closed or (seconds is not None and self.monotonic() - start >= seconds):
                return
            self.call(run)
            if remote is not None and self.monotonic() - heard >= FETCH_EVERY:
                hear_remote(self.desk, remote)
                heard = self.monotonic()
            self.sleep(POLL)

    def news(self, run: Run) -> list[tuple[Run, RunEvent, Json]]:
        """What the run and those below it say that was not told yet, in the order of time."""
        found: list[tuple[Run, RunEvent, Json]] = []
        for one in with_children(self.desk, run):
            count, trail = self.told.get(one.id, 0), list(reversed(run_trail(one)))
            new = zip(one.events[count:], trail[count:], strict=True)
            found += [(one, entry.event, line) for entry, line in new]
            self.told[one.id] = len(one.events)
        return sorted(found, key=lambda each: each[1].at)

    def more(self, run: Run, event: RunEvent, line: Json) -> Iterator[Json]:
        """What an event of the journal means to programs."""
        step = run.steps.get(event.text("step"))
        if event.name == "asked":
            self.asked.setdefault(event.text("gate"), False)
            gate = self.gate(event.text("gate"))
            if gate is not None:
                yield {**line, **requested(gate)}
        elif event.name in ("done", "raised") and step is not None and step.begun.text("agent"):
            said = {"output": event.said.get("result"), "error": event.said.get("error")}
            yield {**line, "event": "agent:completed", "by": None, "agent": step.begun.text("agent"), **said}

    def received(self) -> Iterator[Json]:
        """Gates that are decided by now."""
        for name in [name for name, told in self.asked.items() if not told]:
            gate = self.gate(name)
            if gate is not None and gate.state != AWAITING:
                self.asked[name] = True
                yield {**said_of(gate), "run": gate.opened.run or self.run, "commit": gate.tip}

    def gate(self, name: str) -> Gate | None:
        from ..acts.reading import find_gate

        try:
            return find_gate(self.desk, name).gate
        except GateError:
            return None  # it is at the remote alone so far

    def call(self, run: Run) -> None:
        """Whoever wants to go on hears when the wait is over."""
        over = any(self.asked.get(gate) for gate in run.waits_for) or "" < run.wakes <= self.desk.now
        if self.waited is not None and over and self.called_at != run.tip:
            self.called_at = run.tip
            self.waited(run)


def asked_at(desk: Desk, gates: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """What is asked at these gates, and whether it is decided."""
    from ..acts.reading import find_gate

    found = {}
    for gate in gates:
        try:
            loaded = find_gate(desk, gate).gate
            found[gate] = loaded.opened.title, loaded.state != AWAITING
        except GateError:
            found[gate] = gate, False
    return found


def details_of(desk: Desk, run: Run) -> dict[str, object]:
    """A run with its input and its steps, as JSON has it."""
    archived = desk.refs.get(RUNS + run.id) is None
    return {**run_details(run, asked_at(desk, run.waits_for)), "archived": archived}


def requested(gate: Gate) -> Json:
    asked = gate.opened.questions[0]
    said: Json = {"event": "input:requested", "id": gate.id, "prompt": asked.prompt, "type": asked.kind}
    return said if asked.kind == "approval" else {**said, "options": shown_labels(asked)}


def said_of(gate: Gate) -> Json:
    """What came of a question. Approved only where somebody said yes."""
    answer = gate.answer.answer if gate.answer is not None else None
    value = answer.values.get(gate.opened.questions[0].key) if answer is not None else None
    word = ("yes" if value else "no") if isinstance(value, bool) else value
    return {
        "gate": gate.id,
        "event": "input:received",
        "id": gate.id,
        "at": answer.at if answer is not None else str(getattr(gate.history[-1].event, "at", "")),
        "by": (answer.by or None) if answer is not None else None,
        "value": word,
        "approved": answer is not None and answer.verdict == "approved",
        "state": gate.state,
        "text": "" if word is None else str(word),
    }
