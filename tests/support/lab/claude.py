"""Lab: machines on which the real Claude Code runs, each with a home of its own and nothing in its environment.

Which binaries: GITGATE_TEST_CLAUDE, their paths joined as in PATH. It is read when this module is, before a test's
environment is sealed.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gitgate.agents import AGENTS, scrubbed
from gitgate.agents.agent import AgentOutcome, AgentSettings, Start
from gitgate.agents.process import run_launch
from gitgate.model.gate import SavedSession, SessionRef

from .model import Model

NOT_SET = "GITGATE_TEST_CLAUDE is not set: the path of a Claude Code binary, or several, joined as in PATH"
BINARIES = tuple(filter(None, os.environ.get("GITGATE_TEST_CLAUDE", "").split(os.pathsep)))
HOOK = Path(__file__).with_name("hook.py")
CLAUDE = AGENTS["claude"]
RUN_WITHIN = 60.0


@dataclass
class Machine:
    """A home with Claude Code in it, in reach of one scripted model and of nothing else."""

    home: Path
    binary: Path
    model: Model
    starts: int = 0

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin", "/usr/sbin"]),
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy-not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            **dict.fromkeys(("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING"), "1"),
        }

    @property
    def hooks(self) -> Path:
        """Where this machine's hook notes events, and finds what to say."""
        folder = self.home / "hooks"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def say(self, event: str, value: object) -> None:
        """From now on the hook says this at that event; None: nothing."""
        (self.hooks / event).write_text("" if value is None else json.dumps(value), "utf-8")

    def decide(self, decision: str | None, **more: object) -> None:
        """From now on the hook decides so before a tool is used."""
        said = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
        self.say("PreToolUse", {"hookSpecificOutput": said} if decision else None)

    @property
    def hooking(self) -> dict[str, object]:
        command = shlex.join([sys.executable, "-I", str(HOOK), str(self.hooks)])
        entry = [{"hooks": [{"type": "command", "command": command}]}]
        return dict.fromkeys(("PreToolUse", "PostToolUse", "SessionStart", "Stop"), entry)

    @property
    def settings(self) -> AgentSettings:
        return AgentSettings((*self.model.reach, str(self.binary)), timeout=RUN_WITHIN)

    def run(
        self,
        cwd: Path,
        prompt: str = "",
        session: str = "",
        *,
        env: Mapping[str, str] | None = None,
        permissions: Mapping[str, object] | None = None,
        **changes: object,
    ) -> AgentOutcome:
        """One run through the adapter: a new conversation, or a resumed one, with a prompt or without."""
        cwd.mkdir(parents=True, exist_ok=True)
        self.starts += 1
        request = Start(
            gate="7k2fw3x9ab",
            cwd=cwd,
            folder=self.home / f"start-{self.starts}",
            prompt=prompt,
            session=SessionRef("claude", session) if session else None,
            deferred=not prompt,
            hooks=self.hooking,
            permissions=permissions or {},
            settings=replace(self.settings, **changes),  # type: ignore[arg-type]
            env=scrubbed({**self.env, **(env or {})}),
        )
        return CLAUDE.read_outcome(run_launch(CLAUDE.start(request)))

    def collect(self, session: str, env: Mapping[str, str] | None = None) -> SavedSession:
        return CLAUDE.collect(SessionRef("claude", session), {**self.env, **(env or {})})

    def place(self, saved: SavedSession, cwd: Path) -> None:
        cwd.mkdir(parents=True, exist_ok=True)
        CLAUDE.place(saved, cwd, self.env)
