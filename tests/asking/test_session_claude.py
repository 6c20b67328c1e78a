"""Sessions about a question, with the real Claude Code in a real terminal: a scripted model, typed keys, captured screens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.lab.model import Reply
from support.lab.office import Office
from support.resuming import until
from support.testbed.command import COMMAND
from support.testbed.tmux import Tmux

from .conftest import MakeOffice

pytestmark = [pytest.mark.claude, pytest.mark.slow, pytest.mark.timeout(240)]

BEGIN = Reply("IT-ADDS-AN-INDEX. What do you think?", when="Shall we migrate")
TOLD = Reply("THE-TABLE-HAS-40000-ROWS.", when="HOW-MANY-ROWS")
BY_TOOL = Reply(
    "I note it.",
    [("mcp__gitgate__outcome", {"value": "approve", "summary": "Sound, ran in staging."})],
    when="WE-DO-IT",
)
BY_COMMAND = Reply(
    "I note it.",
    [("Bash", {"command": "git gate outcome approve --summary 'Sound, ran in staging.'"})],
    when="WE-DO-IT",
)
NOTED = Reply("NOTED. Leave with /exit.", when="(It counts when the person|shown this when they leave)")
WRONG = Reply("Hm.", [("mcp__gitgate__outcome", {"value": "maybe"})], when="PERHAPS")
REFUSED = Reply("YOU-HAVE-TO-SAY-YES-OR-NO.", when="(?i)(expected yes or no|not one of|invalid|must be)")
OVER = Reply("Over.", repeat=True)


@pytest.fixture
def window() -> Iterator[Callable[..., Tmux]]:
    with ExitStack() as open_windows:

        def start(here: Office, *args: str) -> Tmux:
            made = Tmux(str(COMMAND), *args, cwd=here.clone.path, env=here.env)
            return open_windows.enter_context(made)

        yield start


Window = Callable[..., Tmux]


def settle_in(here: Office) -> None:
    """Somebody who used the program before, and trusts the repository and the worktrees that are made of it."""
    trusted = {"hasTrustDialogAccepted": True}
    said: dict[str, Any] = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [here.env["ANTHROPIC_API_KEY"][-20:]]},
        "projects": {str(here.clone.path): trusted, str(here.machine.home / ".local"): trusted},
    }
    place = here.machine.home / ".claude" / ".claude.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(place.read_text("utf-8")) if place.exists() else {}
    place.write_text(json.dumps({**known, **said}), "utf-8")


def asked(here: Office, *args: str) -> str:
    """A gate of a script, without a session: it is decided in a conversation."""
    here.clone.write("draft.py", "half = 1\n")
    settle_in(here)
    session = ("--type", "session", "--outcome", "approval")
    return here.gate("ask", "Shall we migrate?", *session, *args, "-q").line


def held(here: Office, gate: str) -> Mapping[str, Any]:
    import yaml

    names = here.clone.git("ls-tree", "-r", "--name-only", f"refs/hitl/open/{gate}").splitlines()
    name = next(name for name in names if name.startswith(("answers/", "stops/")))
    said: dict[str, Any] = yaml.safe_load(here.clone.git("show", f"refs/hitl/open/{gate}:{name}"))["session"]
    return said


@pytest.mark.parametrize(("way", "source"), [(BY_TOOL, "mcp"), (BY_COMMAND, "command")])
def test_they_decide_together_and_the_workflow_goes_on(
    office: MakeOffice, window: Window, way: Reply, source: str
) -> None:
    """The question first; they talk; the agent says what was decided; the person leaves, confirms, and whoever waits hears."""
    here = office(BEGIN, TOLD, way, NOTED, OVER)
    gate = asked(here)
    terminal = window(here, "join", gate)
    shown = terminal.until("IT-ADDS-AN-INDEX")
    assert "Shall we migrate?" in shown
    terminal.line("HOW-MANY-ROWS")
    terminal.until("THE-TABLE-HAS-40000-ROWS")
    terminal.line("good, WE-DO-IT")
    terminal.until("NOTED. Leave with")
    assert here.show(gate)["state"] == "awaiting"
    terminal.line("/exit")
    shown = terminal.until("is that your answer?")
    assert "Sound, ran in staging." in shown
    assert shown.index("Shall we migrate?") < shown.index("opening a new session with claude")
    terminal.line("y")
    terminal.ended(0)
    answer = here.show(gate)["answer"]
    assert (answer["values"], answer["via"]) == ({"answer": True}, "join")
    said = held(here, gate)
    assert (said["outcome"], said["source"], said["summary"]) == (
        "completed",
        source,
        "Sound, ran in staging.",
    )
    assert here.gate("wait", gate).line == "approved"


def test_a_value_that_does_not_fit_comes_back_to_the_agent(office: MakeOffice, window: Window) -> None:
    """It hears what was expected and asks the person; nothing was said, so that the person is asked at the end."""
    here = office(BEGIN, WRONG, REFUSED, OVER)
    gate = asked(here)
    terminal = window(here, "join", gate)
    terminal.until("IT-ADDS-AN-INDEX")
    terminal.line("PERHAPS")
    terminal.until("YOU-HAVE-TO-SAY-YES-OR-NO")
    terminal.line("/exit")
    assert "understood" not in terminal.until("[y/n]:")
    terminal.line("n later")
    terminal.ended(0)
    assert here.show(gate)["answer"]["verdict"] == "rejected"
    assert held(here, gate)["source"] == "person"


def test_its_time_runs_out(office: MakeOffice, window: Window) -> None:
    """The warning is to be seen over the program's own screen; then it is ended, the terminal is usable, and it is a timeout."""
    here = office(BEGIN, OVER)
    gate = asked(here, "--session-timeout", "8s", "--grace", "6s")
    terminal = window(here, "join", gate)
    terminal.until("IT-ADDS-AN-INDEX")
    terminal.until("this session is over in 6 s")
    assert gate[:6] in terminal.title
    shown = terminal.ended(9, timeout=60)
    assert "the session's time was over" in shown
    assert here.show(gate)["state"] == "stopped"
    assert held(here, gate)["outcome"] == "timeout"
    assert "IT-ADDS-AN-INDEX" in here.clone.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl")
    here.gate("wait", gate, code=9)


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_killed_terminal_loses_nothing(office: MakeOffice, window: Window, how: str) -> None:
    """The gate waits; joined again, what was said is there and goes on, in the same conversation."""
    here = office(BEGIN, TOLD, BY_TOOL, NOTED, OVER)
    gate = asked(here, "--save-every", "2s")
    terminal = window(here, "join", gate)
    terminal.until("IT-ADDS-AN-INDEX")
    terminal.line("HOW-MANY-ROWS")
    terminal.until("THE-TABLE-HAS-40000-ROWS")
    (pane,) = terminal.tmux("list-panes", "-F", "#{pane_pid}").split()
    (joined,) = children(int(pane))
    if how == "killed":
        until(lambda: "40000" in saved(here, gate), seconds=30)
        os.kill(joined, 9)
    terminal.close()
    until(lambda: not Path(f"/proc/{joined}").exists())
    assert here.show(gate)["state"] == "awaiting"
    again = window(here, "join", gate)
    again.until("THE-TABLE-HAS-40000-ROWS")
    again.line("WE-DO-IT")
    again.until("NOTED. Leave with")
    assert "HOW-MANY-ROWS" in here.shown
    again.line("/exit")
    assert "the session that was begun earlier" in again.until("is that your answer?")
    again.line("y")
    again.ended(0)


def saved(here: Office, gate: str) -> str:
    return here.clone.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl", check=False)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_ctrl_c_belongs_to_the_program_and_the_person_chooses(office: MakeOffice, window: Window) -> None:
    """Twice it ends the program; then the gate may wait, or be cancelled."""
    here = office(BEGIN, OVER)
    gate = asked(here)
    terminal = window(here, "join", gate)
    terminal.until("IT-ADDS-AN-INDEX")
    interrupt(terminal)
    terminal.until("[y/n]:")
    terminal.line("")
    terminal.ended(8)
    assert here.show(gate)["state"] == "awaiting"
    again = window(here, "join", gate)
    again.until("IT-ADDS-AN-INDEX")
    interrupt(again)
    again.until("[y/n]:")
    again.line(":c")
    again.until("why, if you want to say:")
    again.line("not this quarter")
    again.ended(9)
    said = held(here, gate)
    assert (said["outcome"], said["reason"]) == ("cancelled", "not this quarter")


def interrupt(terminal: Tmux) -> None:
    """Ctrl-C stops what the program does; when it does nothing, it wants to be told twice."""
    for _ in range(5):
        terminal.press("C-c")
        if terminal.shows("again to exit", seconds=2):
            break
    terminal.press("C-c")


def test_a_second_one_at_once_is_told_of_the_first(office: MakeOffice, window: Window) -> None:
    """One conversation at a time for a person in a clone; the other gate can still be answered."""
    here = office(BEGIN, OVER)
    first, second = asked(here), asked(here)
    terminal = window(here, "join", first)
    terminal.until("IT-ADDS-AN-INDEX")
    shown = window(here, "join", second).ended(5)
    assert f"you are in a session already: gate {first}" in " ".join(shown.split())
    assert f"git gate respond {second[:6]}" in shown
