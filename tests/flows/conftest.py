"""Flows: a clone with its runs, and agents that say what a test gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.flowing import Actors, FlowBench
from support.testbed.repositories import Clone


@pytest.fixture
def bench(repo: Clone) -> Iterator[FlowBench]:
    found = FlowBench(repo)
    yield found
    found.close()


@pytest.fixture
def actors(repo: Clone, tmp_path: Path) -> Actors:
    return Actors(repo, tmp_path / "agents")
