"""How a resumed agent is started: what is taken over from the run that asked."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gitgate.agents.agent import AgentSettings
from gitgate.context import machine, open_desk, presence_file
from gitgate.resumption import flags_before
from support.testbed.repositories import Clone

GATE = "7k2fw3x9ab"
MODEL = ("--model", "opus")
HERE = machine.Presence(
    GATE, "repo/1", "claude", "s-1", "/repo", "", 0, "", "", "2026-01-01T00:00:00Z", flags=MODEL
)


@pytest.mark.parametrize(
    ("changes", "trusted", "own", "kept"),
    [
        ({}, True, (), MODEL),
        ({}, True, ("--model", "haiku"), ()),
        ({}, False, (), ()),  # the work that it goes on with came from elsewhere
        ({"trusted": False}, True, (), ()),  # when it asked, it had been given work from elsewhere
        ({"session": "s-2"}, True, (), ()),
        ({"program": "codex"}, True, (), ()),
        ({"gate": "2222222222"}, True, (), ()),  # asked elsewhere: nothing is noted here
    ],
)
def test_flags_of_the_run_that_asked(
    repo: Clone, changes: dict[str, Any], trusted: bool, own: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    """Only what this machine noted itself, of this conversation, on work of its own."""
    desk = open_desk(repo.path, {"HOME": str(repo.path.parent)})
    machine.note_presence(desk, replace(HERE, **changes))
    gate: Any = SimpleNamespace(id=GATE)
    saved: Any = SimpleNamespace(agent="claude", id="s-1")
    found: Any = SimpleNamespace(trusted=trusted)
    assert flags_before(desk, gate, found, saved, AgentSettings(arguments=own)) == kept


def test_a_note_of_an_earlier_version_has_no_flags(repo: Clone) -> None:
    """It is read all the same."""
    desk = open_desk(repo.path, {"HOME": str(repo.path.parent)})
    machine.note_presence(desk, HERE)
    place = presence_file(desk)
    place.write_text(
        place.read_text(encoding="utf-8").replace('"flags": ["--model", "opus"]', '"pid": 0'), "utf-8"
    )
    found = machine.find_presence(desk, GATE)
    assert found is not None
    assert found.flags == ()
