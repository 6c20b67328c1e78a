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

from .asker import ask, check, wait, withdraw
from .person import comment, edit, respond, signal, stop
from .reader import list, log, show, status, sync, verify  # noqa: A004 - the verb's name
from .values import Answer, Event, Gate, Problem, Status, Synced, Verified

__all__ = [
    "Answer",
    "Event",
    "Gate",
    "Problem",
    "Status",
    "Synced",
    "Verified",
    "ask",
    "check",
    "comment",
    "edit",
    "list",
    "log",
    "respond",
    "show",
    "signal",
    "status",
    "stop",
    "sync",
    "verify",
    "wait",
    "withdraw",
]
