"""Python: the verbs of the command line as functions, typed; keyword arguments are the long flags' names.

    import gitgate

    gate = gitgate.ask("Which database?", type="choice", options=["Postgres", "SQLite=one file"], timeout="2h")
    answer = gitgate.wait(gate.id, for_="30m").answer
    if answer is not None and answer.value == "Postgres":
        ...

Every function takes `directory`: it works as if started there, like `git -C`. What goes wrong is a `gitgate.errors.GateError`
with a message, a stable `code` and a `hint`. Nothing is printed, and nothing is asked.
"""

from __future__ import annotations

from .. import errors
from ..errors import GateError
from .asker import ask, check, wait, withdraw
from .interactive import Checkpoint, Interactive, SessionResult, ask_interactive, pause
from .keeper import archive, doctor, init, policy_check, resume, session_drop
from .looker import diff, tree, watch, worktree
from .person import comment, edit, respond, signal, stop
from .reader import list, log, show, status, sync, verify  # noqa: A004 - the verb's name
from .values import (
    Answer,
    Archived,
    Conversation,
    Dropped,
    Event,
    Finding,
    Gate,
    Policy,
    Problem,
    PutAside,
    Resumed,
    Ruling,
    Status,
    Step,
    Synced,
    Verified,
    Worktree,
)

__all__ = [
    "Answer",
    "Archived",
    "Checkpoint",
    "Conversation",
    "Dropped",
    "Event",
    "Finding",
    "Gate",
    "GateError",
    "Interactive",
    "Policy",
    "Problem",
    "PutAside",
    "Resumed",
    "Ruling",
    "SessionResult",
    "Status",
    "Step",
    "Synced",
    "Verified",
    "Worktree",
    "archive",
    "ask",
    "ask_interactive",
    "check",
    "comment",
    "diff",
    "doctor",
    "edit",
    "errors",
    "init",
    "list",
    "log",
    "pause",
    "policy_check",
    "respond",
    "resume",
    "session_drop",
    "show",
    "signal",
    "status",
    "stop",
    "sync",
    "tree",
    "verify",
    "wait",
    "watch",
    "withdraw",
    "worktree",
]
