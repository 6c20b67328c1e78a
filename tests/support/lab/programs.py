"""Lab: machines on which the real Codex, Gemini CLI, opencode or Copilot CLI runs, each with a home of its own, nothing in its
environment, and no other way out than to a scripted model.

Which programs: GITGATE_TEST_AGENTS, `NAME=PATH` of each, joined as in PATH. It is read when this module is, before a test's
environment is sealed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gitgate.agents import AGENTS, scrubbed
from gitgate.agents.agent import Agent, AgentOutcome, AgentSettings, Meeting, Start
from gitgate.agents.process import run_launch
from gitgate.model.gate import SavedSession, SessionRef
from support.testbed.command import COMMAND, Outcome, checked
from support.testbed.repositories import Clone

from .model import Model
from .office import PERSON

NAMES = ("codex", "copilot", "gemini", "opencode")
NOT_SET = "GITGATE_TEST_AGENTS is not set: NAME=PATH of codex, copilot, gemini or opencode, several joined as in PATH"
PROGRAMS = dict(
    entry.split("=", 1) for entry in os.environ.get("GITGATE_TEST_AGENTS", "").split(os.pathsep) if entry
)
# They are scripts of Node's, but for Codex and opencode, which only begin as one.
NODE = shutil.which("node")
RUN_WITHIN = 150.0
MODEL = "lab"


def environment(name: str, url: str) -> dict[str, str]:
    """What it takes to reach the model, and to reach nobody else."""
    return {
        "codex": {"LAB_KEY": "dummy-not-a-key"},
        "copilot": {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_MODEL": MODEL,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
        "gemini": {"GEMINI_API_KEY": "dummy-not-a-key", "GOOGLE_GEMINI_BASE_URL": url},
        "opencode": {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    }[name]


CODEX = """\
model = "lab"
model_provider = "lab"
[analytics]
enabled = false
[model_providers.lab]
name = "lab"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LAB_KEY"
request_max_retries = 1
"""


def settings_files(name: str, url: str) -> dict[str, str]:
    """What the program's own settings say on such a machine, by place below its home."""
    model = {"name": MODEL, "limit": {"context": 100_000, "output": 8_000}}
    options = {"baseURL": f"{url}/v1", "apiKey": "dummy-not-a-key"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: model}}
    gemini = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"sessionRetention": {"enabled": False}},
    }
    rule = 'prefix_rule(pattern=["git","gate","ask"], decision="allow")\n'
    return {
        "codex": {".codex/config.toml": CODEX.format(url=url), ".codex/rules/default.rules": rule},
        "copilot": {},
        "gemini": {".gemini/settings.json": json.dumps(gemini)},
        "opencode": {
            ".config/opencode/opencode.json": json.dumps(
                {"model": f"lab/{MODEL}", "provider": {"lab": provider}}
            )
        },
    }[name]


# How a person starts it headless, with what it takes to run a command in its shell; and how its shell is called there.
HEADLESS: dict[str, tuple[str, ...]] = {
    "codex": ("exec", "-s", "workspace-write", "-c", "allow_login_shell=false", "--json", "-"),
    "copilot": ("--output-format", "json", "--allow-all-tools"),
    "gemini": ("--skip-trust", "-o", "stream-json", "-m", "gemini-2.5-pro", "--yolo"),
    "opencode": ("run", "--format", "json"),
}
# The same in its plainest form, to which the prompt is added.
WRAPPED: dict[str, tuple[str, ...]] = {
    "codex": ("exec",),
    "copilot": (),
    "gemini": ("--skip-trust", "-m", "gemini-2.5-pro"),
    "opencode": ("run",),
}
PROMPTED = {"copilot": ("-p",), "gemini": ("-p",)}
# What its machine says of it, so that a resumed one may write and run commands.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "codex": ("-s", "danger-full-access"),
    "copilot": ("--allow-all-tools",),
    "gemini": ("-m", "gemini-2.5-pro", "--yolo"),
    "opencode": (),
}


def shell(name: str, command: str) -> tuple[str, Mapping[str, object]]:
    """A call of the program's own shell, as its model makes one."""
    return {
        "codex": ("exec_command", {"cmd": command}),
        "copilot": ("bash", {"command": command, "description": "run it"}),
        "gemini": ("run_shell_command", {"command": command}),
        "opencode": ("bash", {"command": command, "description": "run it"}),
    }[name]


@dataclass
class ProgramMachine:
    """A home with one of the programs in it, in reach of one scripted model and of nothing else."""

    name: str
    home: Path
    model: Model
    starts: int = 0

    def __post_init__(self) -> None:
        (self.home / "tmp").mkdir(parents=True, exist_ok=True)
        (self.home / ".gitconfig").write_text(PERSON, "utf-8")
        for place, text in settings_files(self.name, self.model.url).items():
            file = self.home / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")

    @property
    def adapter(self) -> Agent:
        return AGENTS[self.name]

    @property
    def program(self) -> tuple[str, ...]:
        return (*self.model.reach, PROGRAMS[self.name])

    @property
    def env(self) -> dict[str, str]:
        places = [str(Path(sys.executable).parent), *([str(Path(NODE).parent)] if NODE else [])]
        path = os.pathsep.join([*places, "/usr/bin", "/bin", "/usr/sbin"])
        plain = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "SHELL": "/bin/bash"}
        # Codex makes no sandbox where its home is below the folder for temporary files, which ours is.
        elsewhere = {"TMPDIR": str(self.home / "tmp")}
        return {**plain, **elsewhere, **environment(self.name, self.model.url)}

    def call(self, command: str) -> tuple[str, Mapping[str, object]]:
        return shell(self.name, command)

    def run(
        self,
        cwd: Path,
        prompt: str,
        session: str = "",
        *,
        meeting: str = "",
        env: Mapping[str, str] | None = None,
        **changes: object,
    ) -> AgentOutcome:
        """One run through the adapter: a new conversation, or a resumed one."""
        cwd.mkdir(parents=True, exist_ok=True)
        if not (cwd / ".git").exists():
            subprocess.run(["git", "init", "-q", str(cwd)], check=True)
        self.starts += 1
        settings = AgentSettings(self.program, ARGUMENTS[self.name], timeout=RUN_WITHIN)
        request = Start(
            gate="7k2fw3x9ab",
            cwd=cwd,
            folder=self.home / f"start-{self.starts}",
            prompt=prompt,
            session=SessionRef(self.name, session) if session else None,
            meeting=Meeting(meeting),
            settings=replace(settings, **changes),  # type: ignore[arg-type]
            env=scrubbed({**self.env, **(env or {})}),
        )
        return self.adapter.read_outcome(run_launch(self.adapter.start(request)))

    def collect(self, session: str, env: Mapping[str, str] | None = None) -> SavedSession:
        return self.adapter.collect(SessionRef(self.name, session), {**self.env, **(env or {})})

    def place(self, saved: SavedSession, cwd: Path) -> None:
        cwd.mkdir(parents=True, exist_ok=True)
        if not (cwd / ".git").exists():
            subprocess.run(["git", "init", "-q", str(cwd)], check=True)
        self.adapter.place(saved, cwd, self.env, self.program)

    def erase(self, saved: SavedSession, cwd: Path) -> None:
        here = f"{Path(PROGRAMS[self.name]).parent}{os.pathsep}{self.env['PATH']}"
        self.adapter.erase(saved, cwd, {**self.env, "PATH": here})

    def said(self) -> str:
        """What the last start printed, both ways."""
        folder = self.home / f"start-{self.starts}"
        return "".join((folder / name).read_text("utf-8", "replace") for name in ("stdout.log", "stderr.log"))


@dataclass
class ProgramOffice:
    """One machine, one repository, one agent of that program, one person."""

    machine: ProgramMachine
    clone: Clone

    def __post_init__(self) -> None:
        section = f"gitgate.agent.{self.machine.name}"
        self.clone.git("config", f"{section}.program", json.dumps(self.machine.program))
        self.clone.git("config", f"{section}.arguments", json.dumps(ARGUMENTS[self.machine.name]))

    def run(self, prompt: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """The agent works until it ends, started by a person without our help."""
        return subprocess.run(
            [*self.machine.program, *HEADLESS[self.machine.name], *arguments],
            cwd=self.clone.path,
            env=self.machine.env,
            input=prompt.encode(),
            capture_output=True,
            timeout=RUN_WITHIN,
            check=False,
        )

    def wrap(self, prompt: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """The same through `git gate wrap`, by its plain name, and with no permission but those that this gives."""
        name = self.machine.name
        here = f"{Path(PROGRAMS[name]).parent}{os.pathsep}{self.machine.env['PATH']}"
        words = (*WRAPPED[name], *arguments, *PROMPTED.get(name, ()), prompt)
        return subprocess.run(
            [*self.machine.model.reach, str(COMMAND), "wrap", "--", name, *words],
            cwd=self.clone.path,
            env={**self.machine.env, "PATH": here},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_WITHIN,
            check=False,
        )

    def gate(self, *arguments: str, code: int | None = 0) -> Outcome:
        """The command line, as the person or their machine types it; nothing of the test's own surroundings is in its."""
        done = subprocess.run(
            [str(COMMAND), *arguments],
            cwd=self.clone.path,
            env=self.machine.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_WITHIN,
            check=False,
        )
        said = Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
        return checked(arguments, said, code)

    def only(self) -> dict[str, Any]:
        (found,) = self.gate("list", "--all", "--json").json["gates"]
        shown: dict[str, Any] = self.gate("show", found["id"], "--json").json
        return shown
