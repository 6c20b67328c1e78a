"""Test bed: flows, the small programs that are their agents, and processes that are killed at a chosen moment."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitgate.context import Desk, open_desk
from gitgate.flows import program
from gitgate.flows.endings import FlowEnding
from gitgate.flows.journal import HeldRun, load_run, take_run
from gitgate.flows.program import FlowFunction, Surroundings
from gitgate.record.runs import Run
from gitgate.testing import Crash
from support.testbed.command import Command, Outcome
from support.testbed.repositories import Clone

DEAD = "its process is dead"
# An agent: says the next of its files, the last one again and again, and notes how it was started.
AGENT = """#!/bin/sh
name=$1 how=$2 session=$3
cd "$4" || exit 1
echo "$how $name $session" >> starts.log
number=0
[ -f "$name.said" ] && read -r number < "$name.said"
echo $((number + 1)) > "$name.said"
while [ ! -f "$name.$number" ]; do number=$((number - 1)); done
cat > "$name.prompt"
cat "$name.$number"
"""

# Runs the command, and kills its own process at the n-th event of the journal: before it is written, or after.
KILLER = """
import os, signal, sys
from gitgate.flows.journal import HeldRun
number, when = int(sys.argv[1]), sys.argv[2]
count, plain = 0, HeldRun.append

def append(self, event, /, **said):
    global count
    count += 1
    if count == number and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    found = plain(self, event, **said)
    if count == number and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return found

HeldRun.append = append
sys.argv = ["git-gate", *sys.argv[3:]]
from gitgate.cli.process import run
run()
"""


@dataclass
class Actors:
    """The agents of a test's flows, each a list of what it says, one thing a start."""

    clone: Clone
    folder: Path

    def says(self, name: str, *said: Mapping[str, object]) -> None:
        """What the agent of that name says the first time, the second time, and so on."""
        self.folder.mkdir(exist_ok=True)
        agent = self.folder / "agent.sh"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        known = (self.folder / f"{name}.0").exists()
        for old in self.folder.glob(f"{name}.*"):
            old.unlink()
        for number, words in enumerate(said):
            (self.folder / f"{name}.{number}").write_text(json.dumps(words) + "\n")
        if not known:
            self.set_up(name, agent)

    def set_up(self, name: str, agent: Path) -> None:
        """Tell git's configuration how it is started and resumed; three processes of git's for each were many."""
        settings = {"stdin": "prompt"}
        for how in ("start", "resume"):
            settings[how] = json.dumps([str(agent), name, how, "{session}", str(self.folder)])
        lines = [f'[gitgate "agent.{name}"]', *(f"\t{key} = {quoted(v)}" for key, v in settings.items())]
        inner = self.clone.path / ".git"
        with ((inner if inner.exists() else self.clone.path) / "config").open(
            "a", encoding="utf-8"
        ) as config:
            config.write("\n".join(lines) + "\n")

    @property
    def starts(self) -> list[str]:
        """How agents were started, in order: `start coder`, `resume coder`."""
        log = self.folder / "starts.log"
        return [line.rpartition(" ")[0] for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def sessions(self) -> dict[str, set[str]]:
        """By agent, the sessions that it was started in."""
        found: dict[str, set[str]] = {}
        for line in (self.folder / "starts.log").read_text().splitlines():
            _, name, session = line.split(" ")
            found.setdefault(name, set()).add(session)
        return found

    def prompt(self, name: str) -> str:
        """What it was told last."""
        return (self.folder / f"{name}.prompt").read_text()


def quoted(value: str) -> str:
    """A value as git's configuration has it."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass
class FlowBench:
    """Runs of one clone, in this process."""

    clone: Clone
    desks: list[Desk] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def desk(self) -> Desk:
        self.desks.append(open_desk(self.clone.path, dict(os.environ)))
        return self.desks[-1]

    def around(self, **how: Any) -> Surroundings:
        return Surroundings(self.desk, self.lines.append, **how)

    def begin(self, flow: FlowFunction[..., Any], *args: object, **how: Any) -> FlowEnding:
        return program.begin_flow(flow, args, {}, self.around(**how))

    def again(self, flow: FlowFunction[..., Any], run: str, **how: Any) -> FlowEnding:
        """The same run in a fresh replay, as a new process would make it."""
        held = take_run(self.desk(), run)
        given = held.run.started.said["given"]
        return program.play(
            held, self.around(**how), flow.terms, lambda: program.called(flow.function, given["args"], {})
        )

    def load(self, run: str) -> Run:
        return load_run(self.desk(), run)

    def close(self) -> None:
        while self.desks:
            self.desks.pop().close()


def die(*family: HeldRun) -> None:
    """Nothing is released: no lease, no claim. Only what the system takes back with a process: its locks."""
    for held in family:
        held.over.set()
        held.lost = DEAD  # other branches of it, too
        if held.lock >= 0:
            os.close(held.lock)
            held.lock = -1
    raise Crash


def killed_command(clone: Clone, number: int, when: str, *words: str) -> Outcome:
    """`git gate …` that kills itself with SIGKILL at the n-th event that it writes."""
    return Command().scripted(KILLER, str(number), when, *words, cwd=clone.path, timeout=120)


def was_killed(done: Outcome) -> bool:
    return done.code == -signal.SIGKILL
