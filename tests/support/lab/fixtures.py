"""Lab: fixtures for tests that drive the real Claude Code. Import them into a conftest: they are not for everybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .claude import BINARIES, NOT_SET, Machine
from .model import Model, Reply, start_model

__all__ = ["claude_binary", "machine", "scripted"]

MakeModel = Callable[..., Model]
MakeMachine = Callable[[str, Model], Machine]


def version(binary: str) -> str:
    """A short name for a test's id: the version, where the path tells it."""
    return next(
        (part.removeprefix("claude-") for part in Path(binary).parts if part.startswith("claude-2")), "claude"
    )


@pytest.fixture(params=BINARIES or ("",), ids=version)
def claude_binary(request: pytest.FixtureRequest) -> Path:
    """Each Claude Code that is to be tried; none is a failure, never a test passed over."""
    if not request.param:
        pytest.fail(NOT_SET)
    return Path(request.param)


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[MakeModel]:
    """Start models that follow their replies; they end with the test."""
    with ExitStack() as ends:
        count = 0

        def start(*replies: Reply) -> Model:
            nonlocal count
            count += 1
            model = start_model(tmp_path / f"model-{count}", replies)
            ends.callback(model.stop)
            return model

        yield start


@pytest.fixture
def machine(tmp_path: Path, claude_binary: Path) -> MakeMachine:
    """Make a machine by name, in reach of a model."""

    def make(name: str, model: Model) -> Machine:
        home = tmp_path / name
        home.mkdir()
        return Machine(home, claude_binary, model)

    return make
