"""A GitLab on loopback, a bare repository behind it, an agent's clone, and jobs in fresh clones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.forges.gitlab import REPORTER, GitLabForge, gitlab_server
from support.forges.team import ForgeTeam
from support.resuming import scripted_agent
from support.testbed.command import Command, Outcome
from support.testbed.repositories import Clone

__all__ = ["scripted_agent"]

THREAD = 7


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLabForge]:
    """With Ada and Grace, who are developers, Eve, a reporter, and Mallory, who is nobody there."""
    with gitlab_server() as running:
        running.join("ada", token="ada-token")
        running.join("grace.h")
        running.join("eve", REPORTER)
        running.join("mallory", 0)
        for name, value in running.env.items():
            monkeypatch.setenv(name, value)
        yield running


@dataclass
class Team(ForgeTeam):
    """With a merge request of the branch."""

    forge: GitLabForge

    def open_change(self, branch: str, head: str) -> None:
        self.forge.open_merge(THREAD, branch, head)

    def hear(self, note: dict[str, Any], *flags: str, action: str = "create") -> Outcome:
        """A job that GitLab's own webhook started hears of a note."""
        place = self.folder / f"payload{self.jobs}.json"
        place.write_text(json.dumps(self.forge.event(note, action)), encoding="utf-8")
        return self.cli.quick("github", "accept", str(place), "--json", *flags, cwd=self.job().path, code=0)

    def reply(self, body: str, username: str = "ada", **more: Any) -> Any:
        """Somebody comments, and a job hears of it: what the job said."""
        return self.hear(self.forge.write(THREAD, username, body, **more)).json

    def sweep(self, *flags: str, code: int = 0) -> Outcome:
        return self.cli.quick("github", "sweep", *flags, cwd=self.job().path, code=code)

    def ours(self) -> list[str]:
        return [str(note["body"]) for note in self.forge.by("project_42_bot_1a2b")]

    def shown(self, gate: str) -> str:
        """Our note about a gate."""
        (only,) = [body for body in self.ours() if f"gate={gate} seen=" in body]
        return only


@pytest.fixture
def team(
    forge: GitLabForge, bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> Team:
    return Team(forge, bare, clone_of, cli, tmp_path)
