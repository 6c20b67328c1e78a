"""Asking: the lab's fixtures, and an office in which an agent and a person work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.lab.fixtures import MakeMachine, MakeModel, claude_binary, machine, scripted
from support.lab.model import Reply
from support.lab.office import Office
from support.testbed.repositories import Clone

__all__ = ["claude_binary", "machine", "office", "scripted"]

MakeOffice = Callable[..., Office]


@pytest.fixture
def office(machine: MakeMachine, scripted: MakeModel, repo: Clone) -> MakeOffice:
    """Make an office whose model follows these replies."""

    def make(*replies: Reply) -> Office:
        return Office(machine("home", scripted(*replies)), repo)

    return make
