"""Clones of one server, with a gate that was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from resuming import Clock, Seat
from testbed.repositories import Clone


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ann(bare: Clone, clone_of: Callable[..., Clone], clock: Clock) -> Iterator[Seat]:
    with Seat(clone_of(bare, "ann"), clock) as seat:
        yield seat


@pytest.fixture
def bob(bare: Clone, clone_of: Callable[..., Clone], clock: Clock) -> Iterator[Seat]:
    with Seat(clone_of(bare, "bob"), clock) as seat:
        yield seat


@pytest.fixture
def alone(repo: Clone, clock: Clock) -> Iterator[Seat]:
    """A repository without any remote."""
    with Seat(repo, clock) as seat:
        yield seat
