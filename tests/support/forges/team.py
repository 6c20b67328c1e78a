"""Test bed: the team of a project at a forge: a clone that its agent works in, and jobs in fresh clones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from support.testbed.command import Command
from support.testbed.repositories import Clone


@dataclass
class ForgeTeam:
    """The agent is on the branch `feature`; a kind of forge says how a change is opened, and how its job hears of a comment."""

    in_job: ClassVar[Mapping[str, str]] = {}

    forge: Any
    bare: Clone
    clone_of: Callable[..., Clone]
    cli: Command
    folder: Path
    jobs: int = 0

    def __post_init__(self) -> None:
        self.agents = self.clone_of(self.bare, "agents")
        self.agents.git("checkout", "-q", "-b", "feature")
        self.agents.git("push", "-q", "origin", "feature")
        for key in ("initialised", "publishWork"):
            self.agents.git("config", f"gitgate.{key}", "true")
        self.agents.git("config", "gitgate.session", "push")
        self.open_change("feature", self.agents.git("rev-parse", "HEAD"))

    def open_change(self, branch: str, head: str) -> None:
        raise NotImplementedError

    def ask(self, *words: str, show: bool = True) -> str:
        """The agent asks, and its question is shown."""
        gate = self.cli.quick("ask", *words, "--agent", "scripted", cwd=self.agents.path, code=0).line
        if show:
            self.cli.quick("github", "comment", gate, cwd=self.agents.path, code=0)
        return gate

    def job(self) -> Clone:
        """A fresh clone, as a job's checkout after its first step."""
        self.jobs += 1
        clone = self.clone_of(self.bare, f"job{self.jobs}")
        self.cli.quick("github", "prepare", cwd=clone.path, env={**self.in_job}, code=0)
        return clone

    def gate(self, gate: str) -> Any:
        """As the shared repository has it."""
        clone = self.job()
        self.cli.quick("sync", cwd=clone.path, code=0)
        return self.cli.quick("show", gate, "--json", cwd=clone.path, code=0).json
