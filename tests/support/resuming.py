"""Test bed: gates that were asked and answered, in clones of one server, and an agent that is a small program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from gitgate.acts.answering import Manner, respond
from gitgate.acts.asking import AskWishes, ask
from gitgate.claims import Claimant
from gitgate.context import Desk, open_desk
from gitgate.gates import leases
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question
from gitgate.questions import Given
from gitgate.questions.drafts import Draft
from support import PATIENCE
from support.testbed.repositories import Clone, run_git

TERM = 60


@dataclass
class Clock:
    """A clock that a test turns; every desk of it sees the same time."""

    at: float = 1_780_000_000.0

    def __call__(self) -> float:
        return self.at

    def pass_by(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class Seat:
    """Somebody at a clone."""

    clone: Clone
    clock: Callable[[], float] = field(default_factory=lambda: time.time)
    desks: list[Desk] = field(default_factory=list)

    @property
    def desk(self) -> Desk:
        """A fresh one each time, as each command has its own."""
        self.desks.append(open_desk(self.clone.path, os.environ, clock=self.clock))
        return self.desks[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nobody sits there any more; whoever asks for a desk gets another one."""
        while self.desks:
            self.desks.pop().close()

    def ask(self, prompt: str = "Which?", **wishes: bool) -> Gate:
        draft = Draft((Question("answer", prompt, "text"),), agent="scripted", session="session-1")
        return ask(self.desk, draft, AskWishes(**wishes)).gate  # type: ignore[arg-type]

    def answer(self, gate: Gate, text: str = "Postgres", *, push: bool | None = None) -> Gate:
        desk = self.desk
        return respond(desk, reload(desk, gate.id), Given(text=text), Manner(push=push)).gate

    def now(self, gate: Gate) -> Gate:
        return reload(self.desk, gate.id)


def claimant(
    name: str = "local", *, monotonic: Callable[[], float] = leases.boottime, term: int = TERM
) -> Claimant:
    return Claimant(name, term=term, host=name, monotonic=monotonic)


def stand_still(seat: Seat, gate: Gate, clock: Clock, seconds: float = TERM) -> None:
    """So much time passes, and all the while somebody at this seat looks at the gate's lease, which does not move."""
    for _ in range(4):
        desk = seat.desk
        leases.watch_lease(
            desk, reload(desk, gate.id), leases.shared_at(desk, gate.id), leases.sightings(desk, clock)
        )
        clock.pass_by(seconds / 4)


AGENT = """#!/bin/sh
# A scripted agent: says what it was told, and does what the test wants.
{{ echo "start $$ $GITGATE_ID $GITGATE_ANSWER"; }} >> "{log}"
{body}
echo "end $$ $GITGATE_ID" >> "{log}"
"""


@dataclass(frozen=True)
class Agent:
    """A scripted agent, set up in this machine's configuration. Everything it does is in its log."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    def does(self, body: str) -> None:
        """From now on it does this, in the directory that it is resumed in."""
        script = self.folder / "agent.sh"
        script.write_text(AGENT.format(log=self.log, body=body), encoding="utf-8")
        script.chmod(0o755)

    def is_held(self, body: str = "") -> None:
        """From now on it works until it is let go, and then does this: what it does meanwhile takes as long as it takes."""
        self.does(f'for _ in $(seq 1500); do [ -e "{self.folder}/go" ] && break; sleep 0.05; done; {body}')

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def set_up(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.does("")
        run_git(
            "config",
            "--global",
            "gitgate.agent.scripted.resume",
            f'["{self.folder}/agent.sh"]',
            cwd=self.folder,
        )

    @property
    def starts(self) -> list[str]:
        """The gates that it was started for, in order."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line.split()[2] for line in lines if line.startswith("start")]

    @property
    def ends(self) -> list[str]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line.split()[2] for line in lines if line.startswith("end")]


def until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something that another process does; fail when it does not come."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.03)


@pytest.fixture(name="agent")
def scripted_agent(person: object, tmp_path: Path) -> Agent:
    """Set up on this machine by its git configuration alone."""
    scripted = Agent(tmp_path / "agent")
    scripted.set_up()
    return scripted
