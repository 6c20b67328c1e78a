"""Benchmarks: flows: a replay of many steps, and what a step costs beside the opening of a gate."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gitgate.context import open_desk
from gitgate.flows.journal import begin_run, journals
from gitgate.store.git.refs import RUNS
from gitgate.store.records import Signature
from gitgate.store.remote import RefMove

from . import scenes
from .measure import Row, figure, ratio, run

STEPS = 10_000
FLOW = (
    "import gitgate\n"
    "@gitgate.flow(name='bench')\n"
    "def bench(count):\n"
    "    return sum(gitgate.step(abs, 1, name='count') for _ in range(count))\n"
)


def with_run(place: Path, steps: int) -> str:
    """A run of that flow that was let go after its last step, written by the product's own code; its id."""
    desk = open_desk(place, dict(os.environ), bulk=True)
    written, by = journals(desk), Signature(scenes.PERSON, scenes.AT)
    held = begin_run(desk, {"flow": "bench", "given": {"args": [steps], "kwargs": {}}}, push=False)
    made, before = held.run, held.run.tip
    with desk.records.objects.together():
        for number in range(1, steps + 1):
            step = f"step:count#{number}"
            written.write_event(made, "begun", desk.now, {"step": step, "kind": "step", "name": "count"}, by)
            written.write_event(made, "done", desk.now, {"step": step, "result": 1}, by)
    desk.refs.update([RefMove(RUNS + made.id, made.tip, before)])
    written.pack(made.tip, None)
    held.leave("released", reason="measured")
    desk.close()
    return made.id


def replay_many(room: Path) -> list[Row]:
    """From the journal on the disk to the first step that is not recorded, in a process that has loaded the package."""
    place = scenes.repository(room / "replay")
    made = with_run(place, STEPS)
    code = FLOW + (
        "import sys, time\n"
        "from gitgate import testing\n"
        "times = []\n"
        "for _ in range(5):\n"
        "    start = time.perf_counter()\n"
        "    found = testing.replay(bench, sys.argv[1])\n"
        "    times.append(time.perf_counter() - start)\n"
        "    assert found.same, found\n"
        "print(min(times))\n"
    )
    taken = float(run([sys.executable, "-c", code, made], place))
    return [figure(f"replay of {STEPS:,} steps", taken, "s", 2)]


def step_cost(room: Path) -> list[Row]:
    """One step of a flow, with its two events, in the process in which gates are opened as well, in turn."""
    place = scenes.repository(room / "steps")
    code = (
        "import gitgate, os, pathlib, statistics, time\n"
        "from gitgate.acts.asking import AskWishes, ask\n"
        "from gitgate.context import open_desk\n"
        "from gitgate.questions.drafts import Draft, question\n"
        "desk = open_desk(pathlib.Path('.'), dict(os.environ), bulk=True)\n"
        "steps, gates = [], []\n"
        "@gitgate.flow\n"
        "def bench():\n"
        "    for _ in range(60):\n"
        "        start = time.perf_counter()\n"
        "        gitgate.step(abs, 1, name='count')\n"
        "        middle = time.perf_counter()\n"
        "        ask(desk, Draft((question('Which way?'),)), AskWishes(push=False))\n"
        "        steps.append(middle - start)\n"
        "        gates.append(time.perf_counter() - middle)\n"
        "bench()\n"
        "print(statistics.median(steps[10:]) * 1000, statistics.median(gates[10:]) * 1000)\n"
    )
    ours, theirs = map(float, run([sys.executable, "-c", code], place).split())
    return [ratio("one step of a flow", ours, theirs, 3, "opening one gate, in process")]


def flow_steps(room: Path) -> list[Row]:
    return [*replay_many(room), *step_cost(room)]
