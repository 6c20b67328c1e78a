"""A forge on loopback, a bare repository behind it, and people in clones of their own."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gitgate.context import open_desk
from support.forges.standin import Forge, forge_server
from support.forges.team import ForgeTeam
from support.lab.fixtures import claude_binary, machine, scripted
from support.resuming import scripted_agent
from support.testbed.command import Command, Outcome
from support.testbed.repositories import Clone

__all__ = ["claude_binary", "machine", "scripted", "scripted_agent"]

THREAD = 7


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    """GitHub, with Ada who may write and Eve who may only read."""
    with forge_server() as running:
        running.join("ada", token="ada-token")
        running.join("grace")
        running.join("eve", permission="read")
        running.issues.add(THREAD)
        for name, value in running.env.items():
            monkeypatch.setenv(name, value)
        yield running


@dataclass
class Team(ForgeTeam):
    """With a pull request of the branch."""

    in_job: ClassVar[Mapping[str, str]] = {"CI": "true"}

    forge: Forge
    ahead: float = 0

    def open_change(self, branch: str, head: str) -> None:
        self.forge.open_pull(THREAD, branch, head)

    def clock(self) -> float:
        """What the clocks of all commands that run in this process say."""
        return time.time() + self.ahead

    def pass_time(self, seconds: float) -> None:
        """A deadline that is far enough away for a slow machine passes at once."""
        self.ahead += seconds

    def event_file(self, event: dict[str, Any]) -> Path:
        place = self.folder / f"event{len(list(self.folder.glob('event*')))}.json"
        place.write_text(json.dumps(event), encoding="utf-8")
        return place

    def reply(self, body: str, login: str = "ada", thread: int = THREAD, **how: Any) -> dict[str, Any]:
        """Somebody comments, and a job hears of it: what the job said."""
        return self.hear(self.forge.write(thread, login, body), **how).json  # type: ignore[no-any-return]

    def hear(self, comment: dict[str, Any], *flags: str, code: int = 0, action: str = "created") -> Outcome:
        place = self.event_file(self.forge.event(comment, action))
        return self.cli.quick(
            "github", "accept", str(place), "--json", *flags, cwd=self.job().path, code=code
        )

    def shown(self, gate: str) -> str:
        """Our comment about a gate."""
        (only,) = [c for c in self.forge.by("github-actions[bot]") if f"gate={gate} seen=" in c["body"]]
        return str(only["body"])

    def told(self) -> list[str]:
        """Our short replies."""
        return [str(c["body"]) for c in self.forge.by("github-actions[bot]") if "told=" in c["body"]]

    def posts(self) -> int:
        """How many comments were posted: people are notified of each, also of one that is taken back at once."""
        return sum(one.startswith("POST ") and one.endswith("/comments") for one in self.forge.asked)


@pytest.fixture
def team(
    forge: Forge,
    bare: Clone,
    clone_of: Callable[..., Clone],
    cli: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Team:
    team = Team(forge, bare, clone_of, cli, tmp_path)
    own = open_desk.__kwdefaults__
    assert own is not None
    monkeypatch.setitem(own, "clock", team.clock)
    return team


@pytest.fixture
def terminal(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Ada's own clone and token, on a machine that is no job; the remote is a host that ssh alone knows."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f'#!/bin/sh\nfor last; do :; done\nlast="${{last%% *}}"\nexec git "${{last#git-}}" "{team.bare.path}"\n'
    )
    ssh.chmod(0o755)
    own = {"gitgate.forge": "github", "gitgate.forgeApi": team.forge.api}
    for key, value in {"remote.origin.url": "git@work:team/project", **own}.items():
        team.agents.git("config", key, value)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")

    def run(*words: str, code: int = 0) -> Outcome:
        with monkeypatch.context() as here:
            for name in team.forge.env:
                here.delenv(name)
            here.setenv("GITGATE_GITHUB_TOKEN", "ada-token")
            return team.cli.quick("github", *words, cwd=team.agents.path, code=code)

    return run


@pytest.fixture
def no_garbage_collected() -> Iterator[None]:
    """What other tests left in memory is not looked through while seconds are counted."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
