"""gitgate: questions from AI agents, answers from people, kept in Git.

    import gitgate

    gate = gitgate.ask("Which database?", type="choice", options=["Postgres", "SQLite"], timeout="2h")
    print(gitgate.wait(gate.id).text)

The verbs of the command line, typed, with the long flags' names as keyword arguments. They are loaded when they are
first used, so that `import gitgate` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import (
        Answer,
        Event,
        Gate,
        Problem,
        Status,
        Synced,
        Verified,
        ask,
        check,
        comment,
        edit,
        list,  # noqa: A004 - the verb's name
        log,
        respond,
        show,
        signal,
        status,
        stop,
        sync,
        verify,
        wait,
        withdraw,
    )

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


def __getattr__(name: str) -> object:
    if name in __all__:
        from . import api

        return getattr(api, name)
    if name == "__version__":
        from .version import VERSION

        return VERSION
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> tuple[str, ...]:
    return (*__all__, "__version__", "errors")
