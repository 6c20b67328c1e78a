"""Lab: a machine on which Claude Code works in a repository with our hooks, and a person who answers beside it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gitgate.agents.claude.command import hooks
from support.testbed.command import Command, Outcome
from support.testbed.repositories import Clone

from .claude import Machine

HEADLESS = ("-p", "--output-format", "json", "--permission-prompt-tool", "stdio")
PERSON = "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"


@dataclass
class Office:
    """One home, one repository, one agent, one person."""

    machine: Machine
    clone: Clone
    cli: Command = field(default_factory=Command)
    hooks: Mapping[str, object] = field(default_factory=hooks)

    def __post_init__(self) -> None:
        (self.machine.home / ".gitconfig").write_text(PERSON, "utf-8")
        program = json.dumps([*self.machine.model.reach, str(self.machine.binary)])
        self.clone.git("config", "gitgate.agent.claude.program", program)

    @property
    def env(self) -> dict[str, str]:
        """The machine's environment alone: what a test's process has besides is not the agent's."""
        return self.machine.env

    def command(self, *arguments: str) -> list[str]:
        settings = ["--settings", json.dumps({"hooks": self.hooks})] if self.hooks else []
        return [*self.machine.model.reach, str(self.machine.binary), *HEADLESS, *settings, *arguments]

    def run(self, prompt: str, *arguments: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The agent works until it ends; its result."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.clone.path,
            env={**self.env, **(env or {})},
            input=prompt.encode(),
            capture_output=True,
            timeout=60,
        )
        assert done.stdout, done.stderr.decode("utf-8", "replace")
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    def gate(self, *arguments: str, code: int | None = 0, clone: Clone | None = None) -> Outcome:
        """The command line, as the person or their machine types it."""
        absent = set(os.environ) - set(self.env)
        env = {**self.env, **dict.fromkeys(absent & {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID"}, "")}
        return self.cli(*arguments, cwd=(clone or self.clone).path, env=env, code=code, timeout=60)

    def gates(self) -> list[dict[str, Any]]:
        """Every gate, the oldest first."""
        found = self.gate("list", "--all", "--json").json["gates"]
        return sorted(found, key=lambda gate: (gate["asked"]["at"], gate["id"]))

    def only(self) -> dict[str, Any]:
        (gate,) = self.gates()
        return self.show(gate["id"])

    def show(self, gate: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.gate("show", gate, "--json").json
        return shown

    def waiting(self) -> dict[str, Any]:
        (gate,) = [gate for gate in self.gates() if gate["state"] == "awaiting"]
        return self.show(gate["id"])

    def respond(self, gate: str, *answer: str) -> None:
        self.gate("respond", gate, *answer, "--no-resume")

    def resume(self, gate: str) -> Outcome:
        return self.gate("resume", gate)

    @property
    def shown(self) -> str:
        """What the model was shown last."""
        return self.machine.model.shown()


def rules(clone: Clone, text: str) -> None:
    """Put rules on the protected branch of a repository without a remote."""
    clone.commit("rules", **{".gitgate.yml": text})
