"""Agents: what every adapter is asked, and the values that go in and out.

An adapter knows one program: how to tell that we run inside it, which files hold a conversation, how the program is
started again, and how its ending is read. It decides nothing about gates and starts nothing itself: `start` gives a
`Launch`, which `process` runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from ..core.secrets import redact
from ..core.session import SavedSession, SessionRef
from ..core.text import one_line
from ..errors import Failure, Usage

SESSION_MOST = 4_000_000
REASON_CELLS = 300
SIX_HOURS = 6 * 3600.0
# An id becomes a file's name and an argument: it starts with neither a dot nor a dash, and names no folder.
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{3,127}")


@dataclass(frozen=True)
class AgentSettings:
    """How this machine starts an agent. From its git config or the protected branch: never from a gate or a session."""

    program: tuple[str, ...] = ()  # what to run instead of the agent's usual name
    arguments: tuple[
        str, ...
    ] = ()  # the agent's own flags; a program forgets them, so every start passes all
    start_template: tuple[str, ...] = ()  # `command` only
    resume_template: tuple[str, ...] = ()  # `command` only
    join_template: tuple[str, ...] = ()  # `command` only: how a person's conversation with it is opened
    stdin: str = "answer"  # `command` only: answer, prompt or none
    project_settings: bool = False  # let the worktree's own settings take part: they may run code
    project_servers: bool = False  # let the worktree's own MCP servers start: they run code
    timeout: float = SIX_HOURS


@dataclass(frozen=True)
class Meeting:
    """What a conversation that a person takes part in is given. The program forgets all of it: every start passes it anew.

    With `id` a conversation of that id begins; if there is a session as well, it branches off from that one.
    """

    id: str = ""
    system: str = ""
    model: str = ""
    servers: Mapping[str, object] = field(default_factory=dict)  # MCP servers by name
    allowed: tuple[str, ...] = ()  # tools that it uses without asking


@dataclass(frozen=True)
class Start:
    """What is to be started where. Without `session` a new conversation begins.

    `deferred`: the conversation stopped at a tool call that waits for its answer from our hook, so that nothing is said
    to it; without that hook the call would simply be made. `hooks` are ours, in the program's own form: they ask and they
    answer. `permissions` are the project's rules on tools, from its protected branch. `folder` is new and private to this
    start: files for the agent and its output go there. `answer` is the answer as a document, `told` the same as plain texts
    (verdict, answer, note, by). The environment is made from `env`, scrubbed, and `extra_env`, which is not.
    """

    gate: str
    cwd: Path
    folder: Path
    prompt: str = ""
    session: SessionRef | None = None
    deferred: bool = False
    hooks: Mapping[str, object] = field(default_factory=dict)
    permissions: Mapping[str, object] = field(default_factory=dict)
    answer: bytes = b""
    told: Mapping[str, str] = field(default_factory=dict)
    settings: AgentSettings = AgentSettings()
    env: Mapping[str, str] = field(default_factory=dict)
    extra_env: Mapping[str, str] = field(default_factory=dict)
    meeting: Meeting = Meeting()


@dataclass(frozen=True)
class Launch:
    """A process to run. `files` are written into `folder` first; stdin is these bytes and then ends."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    folder: Path
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    timeout: float = SIX_HOURS


class Ending(StrEnum):
    """How a process came to its end."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    STOPPED = "stopped"  # by us, or because the runner that started it died
    UNSTARTABLE = "not started"


@dataclass(frozen=True)
class Finished:
    """An ended process: `code` is its exit code, 128 + n after signal n; the ends of its output; its folder."""

    ending: Ending
    code: int
    out: bytes
    err: bytes
    folder: Path


class Result(StrEnum):
    """What an agent's run came to."""

    DONE = "done"
    ASKED = "asked"  # it stopped by itself because it has asked again
    DEFERRED = "deferred"  # it stopped at a tool call that waits for an answer
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """`retry`: another attempt may go better (the network, a kill), as opposed to one that would end the same."""

    result: Result
    session: str = ""
    text: str = ""
    reason: str = ""
    retry: bool = False
    call: Mapping[str, object] | None = None


class Agent(Protocol):
    """One program that asks and is resumed."""

    name: str

    def detect(self, env: Mapping[str, str]) -> SessionRef | None:
        """The conversation that this process runs inside, by the marks that the program leaves in the environment."""
        ...

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        """The conversation's files, small and without secrets; what could not be kept is named in `left_out`."""
        ...

    def place(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:
        """Put the files where the program looks for them when it runs in `cwd`."""
        ...

    def start(self, request: Start) -> Launch:
        """How to start or resume it."""
        ...

    def join(self, request: Start) -> Launch:
        """How a person opens the conversation at a terminal; what stdin and the timeout say does not count."""
        ...

    def read_outcome(self, finished: Finished) -> Outcome:
        """What its exit and its output mean."""
        ...


def need_session_id(text: str) -> str:
    """A conversation's id that is safe as a file name and as an argument."""
    if not SESSION_ID.fullmatch(text):
        raise Usage(f"not a session id: {text[:80]!r}", hint="an id is 4 to 128 letters, digits, - and _")
    return text


def home_of(env: Mapping[str, str]) -> Path:
    home = env.get("HOME") or env.get("USERPROFILE")
    if not home:
        raise Failure("HOME is not set, so the agent's own files cannot be found", hint="set HOME")
    return Path(home)


# Left in the environment by an agent for what it starts: inherited, a resumed agent would take itself for a part of it.
MARKS = (
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_PID",
    "CLAUDE_EFFORT",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
)
# What `command` tells a program; a program started from it must not take it for its own.
TOLD = tuple(
    f"GITGATE_{name}" for name in "ID SESSION VERDICT ANSWER NOTE BY ANSWER_FILE PROMPT_FILE OUTCOME".split()
)
# Of a CI job: what our own steps log in with, and the files that steer the steps after this one.
LOGIN = "GITGATE_GITHUB_TOKEN"
OF_THE_JOB = (LOGIN, "GITGATE_WEBHOOK_SECRET", "GITGATE_SESSION_KEY", "GITHUB_ENV", "GITHUB_PATH")
# Of the variables under this prefix, what a person sets to configure the program: the way to its model, and limits.
CLAUDE_CONFIGURED = re.compile(
    r"CLAUDE_CODE_(?:OAUTH_TOKEN|USE_|SKIP_|DISABLE_|ENABLE_|MAX_|API_|CLIENT_|CERT_STORE|PROXY_|SUBAGENT_MODEL|GIT_BASH_PATH|SHELL"
    r"|AUTO_COMPACT|EFFORT_LEVEL|FILE_READ_|GLOB_|TMPDIR|OTEL_|RETRY_|OVERLOADED_|NONSTREAMING_)\w*"
)


def scrubbed(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without what belongs to the git command, the agent or the gate that this process was started from."""
    return {name: value for name, value in env.items() if not _is_inherited(name)}


def _is_inherited(name: str) -> bool:
    if name.startswith("CLAUDE_CODE_"):
        return not CLAUDE_CONFIGURED.fullmatch(name)
    return name.startswith("GIT_") or name in (*MARKS, *TOLD, *OF_THE_JOB)


def last_words(finished: Finished) -> str:
    """Why a process that said nothing readable ended: its last line of talk, or its exit code."""
    lines = [line.strip() for line in finished.err.decode("utf-8", "replace").splitlines() if line.strip()]
    ended = f"exit {finished.code}" if finished.ending is Ending.EXITED else str(finished.ending)
    return brief(f"{ended}: {lines[-1]}") if lines else ended


def brief(text: str) -> str:
    """A reason in one line without secrets: it is recorded, and others read it."""
    return one_line(redact(text), REASON_CELLS)


def killed(finished: Finished) -> bool:
    """Ended from outside rather than by its own decision, so that another attempt may go better."""
    return finished.ending is not Ending.EXITED or finished.code > 128
