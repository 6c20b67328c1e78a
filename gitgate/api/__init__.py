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

from typing import TYPE_CHECKING

from .. import errors
from ..errors import GateError
from .acts import ask, check, comment, edit, respond, signal, stop, wait, withdraw
from .door import Event, Status
from .door import ShownAnswer as Answer
from .door import ShownGate as Gate
from .interactive import Checkpoint, Interactive, SessionResult, ask_interactive, pause
from .keeper import archive, doctor, init, policy_check, resume, session_drop
from .reader import diff, list, log, show, status, sync, tree, verify, watch, worktree  # noqa: A004 - the verb's name

if TYPE_CHECKING:
    from ..acts.sessions import Dropped
    from ..audit.gate_checks import Problem, Verified
    from ..exchange.synced import PutAside, Synced
    from ..gates.explained import Explained as Ruling
    from ..gates.explained import PolicyInForce as Policy
    from ..model.conversation import Conversation
    from ..resumption.run import Resumed
    from ..setup.checkup import Finding
    from ..setup.steps import Step
    from ..sharing.archiving import Archived
    from ..store.work.restore import Worktree

# What functions give back, by the module that has it and its name there: loaded when somebody names the class.
RESULTS = {
    "Archived": ("sharing.archiving", "Archived"),
    "Conversation": ("model.conversation", "Conversation"),
    "Dropped": ("acts.sessions", "Dropped"),
    "Finding": ("setup.checkup", "Finding"),
    "Policy": ("gates.explained", "PolicyInForce"),
    "Problem": ("audit.gate_checks", "Problem"),
    "PutAside": ("exchange.synced", "PutAside"),
    "Resumed": ("resumption.run", "Resumed"),
    "Ruling": ("gates.explained", "Explained"),
    "Step": ("setup.steps", "Step"),
    "Synced": ("exchange.synced", "Synced"),
    "Verified": ("audit.gate_checks", "Verified"),
    "Worktree": ("store.work.restore", "Worktree"),
}

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


def __getattr__(name: str) -> object:
    if name not in RESULTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, there = RESULTS[name]
    return getattr(import_module(f"gitgate.{module}"), there)
