"""Agents: the lab's fixtures, for the tests that drive the real Claude Code, and the real programs of others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping

import pytest

from support.lab.fixtures import claude_binary, machine, scripted
from support.lab.programs import NOT_SET, PROGRAMS

__all__ = ["claude_binary", "machine", "program", "scripted", "sh"]


@pytest.fixture(params=sorted(PROGRAMS) or ("",), ids=str)
def program(request: pytest.FixtureRequest) -> str:
    """Each program that is to be tried; none is a failure, never a test passed over."""
    if not request.param:
        pytest.fail(NOT_SET)
    return str(request.param)


@pytest.fixture
def sh() -> Callable[[str, Mapping[str, str]], None]:
    """Type a line into a shell."""

    def run(line: str, env: Mapping[str, str]) -> None:
        subprocess.run(["sh", "-c", line], env=dict(env), check=True, timeout=30)

    return run
