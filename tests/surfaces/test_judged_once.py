"""The same hook may be a project's, a plugin's and the command line's: one event of one run is judged once, whoever is told of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gitgate.agents.claude.command import SHIM, plugin_folder
from support import PATIENCE
from support.testbed.command import Command

from .conftest import Agent, new_call, question

# As Claude Code starts hooks: side by side, each given the event; with PAUSE one after the other, the second when that file is there.
PROGRAM = """#!/bin/sh
number=0
for shim in "$@"; do
  number=$((number + 1))
  sh "$shim" "$EVENT" "$PYTHON" -P -m gitgate <"$FOLDER/event" >"$FOLDER/said.$number" 2>"$FOLDER/told.$number" &
  [ -z "$PAUSE" ] || { wait; touch "$FOLDER/paused"; until [ -e "$PAUSE" ]; do sleep 0.05; done; }
done
wait
"""


def told(
    agent: Agent,
    name: str,
    event: Mapping[str, object],
    folder: Path,
    between: Callable[[], object] | None = None,
) -> tuple[list[str], list[str]]:
    """Return what each of three hooks of a run says on both outputs. They have paths of their own, as a project's and a plugin's."""
    folder.mkdir()
    (folder / "event").write_text(json.dumps(event))
    shims = [folder / f"shim-{number}" for number in range(3)]
    for shim in shims:
        shim.write_text((plugin_folder() / SHIM).read_text())
    program = folder / "claude"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    pause = str(folder / "go") if between else ""
    env = {
        **os.environ,
        **agent.env,
        "EVENT": name,
        "FOLDER": str(folder),
        "PYTHON": sys.executable,
        "PAUSE": pause,
    }
    del env["PYTHONPATH"]  # What is there hides the processes above.
    with subprocess.Popen([program, *shims], cwd=agent.clone.path, env=env) as run:
        if between:
            wait_for(folder / "paused")
            between()
            Path(pause).touch()
        assert run.wait(3 * PATIENCE) == 0
    said, words = ([(folder / f"{kind}.{n}").read_text() for n in (1, 2, 3)] for kind in ("said", "told"))
    return said, words


def wait_for(place: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not place.exists():
        assert time.monotonic() < until, place
        time.sleep(0.05)


def decisions(said: list[str]) -> list[str]:
    return [json.loads(one)["hookSpecificOutput"]["permissionDecision"] if one else "" for one in said]


def asking(agent: Agent, call: str) -> dict[str, object]:
    given = {"questions": [question()]}
    return agent.event("PreToolUse", tool_name="AskUserQuestion", tool_use_id=call, tool_input=given)


@pytest.mark.slow
def test_a_question_that_three_hooks_are_told_of_is_one_gate(agent: Agent, tmp_path: Path) -> None:
    """Side by side, and one after the other: each says the same."""
    said, _ = told(agent, "pre-tool-use", asking(agent, new_call()), tmp_path / "first")
    assert decisions(said) == ["defer"] * 3
    assert len(agent.gates()) == 1


@pytest.mark.slow
def test_an_answer_between_two_hooks_of_an_event_changes_nothing(agent: Agent, tmp_path: Path) -> None:
    """The run that asked ends, as the first hook said; the run that is started again is another, and hears the answer, once."""
    event, cli = asking(agent, new_call()), Command()

    def respond() -> None:
        (gate,) = agent.gates()
        cli("respond", gate, "SQLite", "--no-resume", cwd=agent.clone.path, env=agent.env)
        assert cli("show", gate, "--json", cwd=agent.clone.path).json["state"] == "answered"

    said, _ = told(agent, "pre-tool-use", event, tmp_path / "first", respond)
    assert decisions(said) == ["defer"] * 3
    said, _ = told(agent, "pre-tool-use", event, tmp_path / "again")
    assert decisions(said) == ["allow"] * 3
    answers = [json.loads(one)["hookSpecificOutput"]["updatedInput"]["answers"] for one in said]
    assert answers == [{"Which database?": "SQLite"}] * 3
    assert sum("additionalContext" in one for one in said) == 1


@pytest.mark.slow
def test_words_at_the_end_are_told_once(agent: Agent, tmp_path: Path) -> None:
    """Whoever started the run reads them once."""
    agent.ask(question())
    _, words = told(agent, "session-end", agent.event("SessionEnd"), tmp_path / "end")
    assert sorted("to answer: git gate respond" in one for one in words) == [False, False, True]


@pytest.mark.slow
def test_last_words_that_ask_open_one_gate(agent: Agent, tmp_path: Path) -> None:
    """A run's end that three hooks are told of."""
    event = agent.event("Stop", last_assistant_message="NEEDS_HUMAN: Which way?")
    said, _ = told(agent, "stop", event, tmp_path / "stop")
    assert len(agent.gates()) == 1
    assert sum(bool(one) for one in said) == 1


def test_what_was_judged_is_kept_in_a_few_files(agent: Agent) -> None:
    """Without a program above, each hook judges by itself and nothing is kept."""
    for _ in range(3):
        agent.before("Read", file_path="x")
    assert not (agent.clone.path / ".git/gitgate/judged").exists()


@pytest.mark.slow
def test_where_nothing_can_be_kept_each_judges_by_itself(agent: Agent, tmp_path: Path) -> None:
    """As on a disk that is read-only: no call is refused for that."""
    (agent.clone.path / ".git/gitgate").mkdir()
    (agent.clone.path / ".git/gitgate/judged").write_text("in the way")
    read = agent.event("PreToolUse", tool_name="Read", tool_use_id=new_call(), tool_input={"file_path": "x"})
    said, words = told(agent, "pre-tool-use", read, tmp_path / "read")
    assert (said, words) == ([""] * 3, [""] * 3)
    said, _ = told(agent, "pre-tool-use", asking(agent, new_call()), tmp_path / "ask")
    assert decisions(said) == ["defer"] * 3
    assert len(agent.gates()) == 1
