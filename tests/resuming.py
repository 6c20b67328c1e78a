"""Test bed: gates that were asked and answered, in clones of one server, and an agent that is a small program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from gitgate.core.answers import Given
from gitgate.core.drafts import Draft
from gitgate.core.model import Gate, Question
from gitgate.service.answering import Manner, respond
from gitgate.service.asking import Wishes, ask
from gitgate.service.claiming import Claimant
from gitgate.service.desk import Desk, open_desk
from gitgate.service.recording import reload
from testbed.repositories import Clone

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
        for desk in self.desks:
            desk.close()

    def ask(self, prompt: str = "Which?", **wishes: bool) -> Gate:
        draft = Draft((Question("answer", prompt, "text"),), agent="scripted", session="session-1")
        return ask(self.desk, draft, Wishes(**wishes)).gate  # type: ignore[arg-type]

    def answer(self, gate: Gate, text: str = "Postgres", *, push: bool | None = None) -> Gate:
        desk = self.desk
        return respond(desk, reload(desk, gate.id), Given(text=text), Manner(push=push)).gate

    def now(self, gate: Gate) -> Gate:
        return reload(self.desk, gate.id)


def claimant(
    name: str = "local", *, monotonic: Callable[[], float] = time.monotonic, term: int = TERM
) -> Claimant:
    return Claimant(name, term=term, host=name, monotonic=monotonic)
