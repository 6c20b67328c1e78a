"""Flows: a clone with its runs, and agents that say what a test gives them."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitgate.testing import Crash
from support.flowing import Actors, FlowBench
from support.testbed.command import Command, ForkedCommand
from support.testbed.repositories import Clone


@pytest.fixture(autouse=True)
def _dead_close_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a process had open that is only cut off within a test goes at its end, and is not laid to the charge of another."""
    crashed: list[Crash] = []
    plain = Crash.__init__

    def count(self: Crash, *said: object) -> None:
        plain(self, *said)
        crashed.append(self)

    monkeypatch.setattr(Crash, "__init__", count)
    yield
    if crashed:
        crashed.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture
def cli() -> Command:
    """A run needs a process, which it ends where it waits; none of these tests is about how one starts."""
    return ForkedCommand()


@pytest.fixture
def bench(repo: Clone) -> Iterator[FlowBench]:
    found = FlowBench(repo)
    yield found
    found.close()


@pytest.fixture
def actors(repo: Clone, tmp_path: Path) -> Actors:
    return Actors(repo, tmp_path / "agents")
