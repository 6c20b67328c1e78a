"""Flows: a clone with its runs, and agents that say what a test gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.flowing import Actors, FlowBench
from support.testbed.command import Command, ForkedCommand
from support.testbed.repositories import Clone


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
