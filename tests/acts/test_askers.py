"""The name of an agent that gave none: of the program that called, in words that a list can show."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate import context
from gitgate.acts.askers import agent_name, asks_itself, plain_program
from gitgate.context import Process
from gitgate.questions.drafts import Draft
from support.deciding import TEXT
from support.resuming import Seat


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("coder", "coder"),
        ("memfd:sealed", "sealed"),
        ("my agent (2)", "my-agent-2"),
        ("g++ 4_2.x", "g++-4_2.x"),
        ("агент", "агент"),
        ("\x1b[2J\u202e", "2J"),
        (":;", ""),
    ],
)
def test_a_programs_name_as_a_part_of_an_agents(named: str, shown: str) -> None:
    """Whatever it calls itself: no escapes, blanks or marks of the system's get into the name."""
    assert plain_program(named) == shown


@pytest.mark.parametrize(
    ("called", "line", "name"),
    [
        ("bash", "bash agent.sh", "agent.sh"),
        ("bash", "/bin/bash -eu -o pipefail /opt/agents/coder.sh x", "coder.sh"),
        ("sh", "sh -c agent.sh", ""),
        ("bash", "bash -lc agent.sh", ""),
        ("bash", "bash --norc -c x", ""),
        ("zsh", "-zsh", "zsh"),
        ("bash", "bash -i", "bash"),
        ("bash", "bash --rcfile x", "bash"),
        ("sh", "sh -", "sh"),
        ("bash", "bash /dev/fd/63 x", "bash"),
        ("sh", "sh /proc/self/fd/3", "sh"),
        ("sh", "", ""),
        ("git", "git gate ask x", ""),
        ("timeout", "timeout 3 git gate ask x", ""),
        ("coder", "coder -c x", "coder"),
        ("sh", "sh scripts/ask-human.sh Which?", ""),
        ("ask-human.sh", "/bin/sh ./scripts/ask-human.sh Which?", ""),
    ],
)
def test_who_asks_for_itself(called: str, line: str, name: str) -> None:
    """A shell that runs a script, or that somebody types into, is an asker; one that runs a line for somebody is none."""
    assert asks_itself(Process(1, called, tuple(line.split()), Path("/nowhere"))) == name


Row = tuple[int, int, str, str, Path]


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """The processes above us as the system would show them: number, the one above, name, command line, directory."""

    def show(caller: int, *rows: Row) -> None:
        for pid, parent, called, line, place in rows:
            folder = tmp_path / "proc" / str(pid)
            folder.mkdir(parents=True)
            (folder / "stat").write_text(f"{pid} ({called}) S {parent} " + "0 " * 20, encoding="utf-8")
            (folder / "cmdline").write_text("".join(f"{word}\0" for word in line.split()), encoding="utf-8")
            (folder / "cwd").symlink_to(place)
        monkeypatch.setattr(context, "PROC", tmp_path / "proc")
        monkeypatch.setattr(os, "getppid", lambda: caller)

    return show


def test_askers_below_one_program_are_told_apart(
    alone: Seat, processes: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three scripts of one program are three, each of them one however often it asks. A program's own line is the program's;
    where it stands outside of the working tree, that is named: it may drive an agent in each of several.
    """
    here = alone.clone.path
    scripts: list[Row] = [(n, 9, "bash", "bash run/coder.sh", here) for n in (11, 12, 13)]
    messengers: list[Row] = [(n + 10, n, "git", "git gate ask x", here) for n in (11, 12, 13)]
    lines: list[Row] = [(31, 9, "sh", "sh -c true;git.gate.ask", here), (41, 8, "sh", "sh -c x", here)]
    above: list[Row] = [(9, 1, "boss", "boss", here), (8, 1, "boss", "boss", tmp_path)]
    processes(21, *scripts, *messengers, *lines, *above)
    found = []
    for caller in (21, 22, 23, 21, 31, 41):
        monkeypatch.setattr(os, "getppid", lambda caller=caller: caller)
        found.append(agent_name(alone.desk, Draft((TEXT,)), ""))
    assert found == [
        *("agent-coder.sh-11", "agent-coder.sh-12", "agent-coder.sh-13", "agent-coder.sh-11"),
        *("agent-boss-9", f"agent-boss-8-{here.name}"),
    ]
