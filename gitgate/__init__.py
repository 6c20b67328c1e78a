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
    from . import errors, testing
    from .api import (
        AgentFailed,
        AgentSignal,
        Answer,
        Archived,
        Checkpoint,
        ChildStopped,
        Conversation,
        Diverged,
        Dropped,
        Event,
        Finding,
        Flow,
        FlowEvent,
        FlowState,
        FoundDecision,
        Gate,
        Human,
        Interactive,
        Origin,
        Phase,
        Policy,
        Problem,
        PutAside,
        ReceivedSignal,
        Resumed,
        Ruling,
        RunStuck,
        RunWaits,
        SessionResult,
        Status,
        Step,
        StepFailed,
        Synced,
        Verified,
        Worktree,
        again,
        archive,
        ask,
        ask_interactive,
        auto_approve,
        check,
        cli_prompt,
        comment,
        complete,
        diff,
        doctor,
        edit,
        first,
        flow,
        init,
        list,  # noqa: A004 - the verb's name
        log,
        note,
        now,
        parallel,
        patched,
        pause,
        policy_check,
        random,
        receive,
        respond,
        resume,
        run,
        search,
        session_drop,
        show,
        signal,
        sleep,
        soon,
        status,
        step,
        step_id,
        stop,
        stuck,
        sync,
        tree,
        until,
        uuid,
        verify,
        wait,
        watch,
        why,
        withdraw,
        workdir,
        worktree,
    )
    from .errors import GateError

__all__ = [
    "AgentFailed",
    "AgentSignal",
    "Answer",
    "Archived",
    "Checkpoint",
    "ChildStopped",
    "Conversation",
    "Diverged",
    "Dropped",
    "Event",
    "Finding",
    "Flow",
    "FlowEvent",
    "FlowState",
    "FoundDecision",
    "Gate",
    "GateError",
    "Human",
    "Interactive",
    "Origin",
    "Phase",
    "Policy",
    "Problem",
    "PutAside",
    "ReceivedSignal",
    "Resumed",
    "Ruling",
    "RunStuck",
    "RunWaits",
    "SessionResult",
    "Status",
    "Step",
    "StepFailed",
    "Synced",
    "Verified",
    "Worktree",
    "again",
    "archive",
    "ask",
    "ask_interactive",
    "auto_approve",
    "check",
    "cli_prompt",
    "comment",
    "complete",
    "diff",
    "doctor",
    "edit",
    "errors",
    "first",
    "flow",
    "init",
    "list",
    "log",
    "note",
    "now",
    "parallel",
    "patched",
    "pause",
    "policy_check",
    "random",
    "receive",
    "respond",
    "resume",
    "run",
    "search",
    "session_drop",
    "show",
    "signal",
    "sleep",
    "soon",
    "status",
    "step",
    "step_id",
    "stop",
    "stuck",
    "sync",
    "testing",
    "tree",
    "until",
    "uuid",
    "verify",
    "wait",
    "watch",
    "why",
    "withdraw",
    "workdir",
    "worktree",
]


def __getattr__(name: str) -> object:
    if name == "testing":
        from importlib import import_module

        return import_module("gitgate.testing")
    if name in __all__:
        from . import api

        return getattr(api, name)
    if name == "__version__":
        from .version import VERSION

        return VERSION
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> tuple[str, ...]:
    return (*__all__, "__version__")
