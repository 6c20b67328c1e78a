"""A scripted agent, and repositories where it works."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.resuming import scripted_agent
from support.testbed.command import Command
from support.testbed.repositories import Clone

__all__ = ["scripted_agent"]


@pytest.fixture
def ann(bare: Clone, clone_of: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch) -> Clone:
    clone = clone_of(bare, "ann")
    monkeypatch.chdir(clone.path)
    return clone


@pytest.fixture
def bob(bare: Clone, clone_of: Callable[..., Clone]) -> Clone:
    return clone_of(bare, "bob")


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    """The bare repository with its hooks, as `init --server` leaves it."""
    cli.quick("init", "--server", cwd=bare.path, code=0)
    return bare
