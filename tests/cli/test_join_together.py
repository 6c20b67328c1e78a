"""Several people decide in one conversation: the next one goes on from it as it was saved last, and says a word of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitgate.agents.claude.transcript import project_folder
from support.talking import Meeting, meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Pty = Callable[..., Terminal]
SESSION = "0b9c4f0e-0000-4000-8000-000000000000"
ASKED = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "go ahead"}}


@dataclass(frozen=True)
class Team:
    """Two people, each in a clone and at a machine of their own, with one shared repository."""

    bare: Clone
    clones: dict[str, Clone]
    desk: Meeting
    pty_cli: Pty
    cli: Command
    folder: Path

    def env(self, name: str) -> dict[str, str]:
        """A home of their own: no conversation of the other one lies in it."""
        home = self.folder / name
        if not home.exists():
            home.mkdir()
            (home / ".gitconfig").write_bytes((Path(os.environ["HOME"]) / ".gitconfig").read_bytes())
        return {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}

    def ask(self, *args: str, session: bool) -> str:
        clone = self.clones["ada"]
        named = ("--agent", "claude", "--session", SESSION) if session else ()
        if session:
            place = project_folder(self.env("ada"), clone.path)
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{SESSION}.jsonl").write_text(json.dumps(ASKED) + "\n", encoding="utf-8")
        done = self.cli("ask", *args, *named, "-q", cwd=clone.path, env=self.env("ada"), code=0)
        return done.line

    def join(self, name: str, gate: str) -> Terminal:
        self.cli("sync", cwd=self.clones[name].path, env=self.env(name), code=0)
        return self.pty_cli("join", gate, cwd=self.clones[name].path, env=self.env(name))

    def state(self, gate: str) -> Any:
        self.cli("sync", cwd=self.clones["bob"].path, env=self.env("bob"), code=0)
        return self.cli("show", gate, "--json", cwd=self.clones["bob"].path, env=self.env("bob"), code=0).json

    def saved(self, gate: str) -> str:
        return self.bare.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl")


@pytest.fixture
def team(bare: Clone, clone_of: Callable[..., Clone], cli: Command, pty_cli: Pty, tmp_path: Path) -> Team:
    clones = {name: clone_of(bare, name) for name in ("ada", "bob")}
    for name, clone in clones.items():
        clone.git("config", "user.name", name.capitalize())
        clone.git("config", "user.email", f"{name}@example.org")
    for setting in ("gitgate.session push", "gitgate.publishWork true"):
        clones["ada"].git("config", "--global", *setting.split())
    desk = meet(clones["ada"], cli, tmp_path / "claude")
    homes = tmp_path / "homes"
    homes.mkdir()
    return Team(bare, clones, desk, pty_cli, cli, homes)


def talk(terminal: Terminal, said: str, earlier: int) -> str:
    shown = terminal.expect(f"{earlier} earlier messages")
    terminal.line(f"say {said}")
    terminal.expect("claude: say done")
    terminal.line("leave")
    return shown


@pytest.mark.parametrize("session", [True, False], ids=["the agent's own", "a new one"])
def test_the_next_one_goes_on_and_votes_for_themselves(team: Team, session: bool) -> None:
    """From what the first one said, told who that was; two alike decide, and each has their own name on their own word."""
    gate = team.ask("Shall we migrate?", "--type", "session", "--quorum", "2", session=session)
    first = team.join("ada", gate)
    talk(first, "the-index-is-what-is-slow", int(session))
    first.expect("your answer")
    first.line("migrate")
    assert "one of the 2 answers alike that are needed" in first.finish(code=0)
    second = team.join("bob", gate)
    shown = talk(second, "and-the-backup-is-there", 2)
    assert "Ada talked in it before, and answered: migrate" in shown
    assert "2 answers alike are needed; the one that you confirm afterwards is your own" in " ".join(
        shown.split()
    )
    second.expect("your answer")
    second.line("migrate")
    second.finish(code=0)
    state = team.state(gate)
    assert state["state"] in ("answered", "resuming")
    assert sorted(one["by"] for one in state["answers"]) == ["Ada <ada@example.org>", "Bob <bob@example.org>"]
    saved = team.saved(gate)
    assert saved.index("the-index-is-what-is-slow") < saved.index("and-the-backup-is-there")


@pytest.mark.parametrize("session", [True, False], ids=["the agent's own", "a new one"])
def test_whoever_comes_back_goes_on_from_what_others_said_meanwhile(team: Team, session: bool) -> None:
    """Not from the conversation as this machine left it; nothing that the other one said is lost."""
    gate = team.ask("Shall we migrate?", "--type", "session", "--quorum", "2", session=session)
    first = team.join("ada", gate)
    talk(first, "let-me-think", int(session))
    first.expect("your answer")
    first.line()
    first.finish(code=8)
    second = team.join("bob", gate)
    talk(second, "i-am-for-it", 2)
    second.expect("your answer")
    second.line("migrate")
    second.finish(code=0)
    again = team.join("ada", gate)
    shown = talk(again, "so-am-i", 3)
    assert "Bob talked in it before, and answered: migrate" in shown
    again.expect("your answer")
    again.line("migrate")
    again.finish(code=0)
    saved = team.saved(gate)
    assert saved.index("let-me-think") < saved.index("i-am-for-it") < saved.index("so-am-i")
    assert team.state(gate)["state"] in ("answered", "resuming")
