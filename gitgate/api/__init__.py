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
from .gates import (
    ask,
    check,
    comment,
    complete,
    diff,
    edit,
    list,  # noqa: A004 - the verb's name
    log,
    respond,
    search,
    show,
    signal,
    status,
    stop,
    sync,
    tree,
    verify,
    wait,
    watch,
    why,
    withdraw,
    worktree,
)
from .interactive import Checkpoint, Interactive, SessionResult, ask_interactive, pause
from .keeper import archive, compare, doctor, export, fork, init, policy_check, resume, session_drop
from .terms import Event, Status
from .terms import ShownAnswer as Answer
from .terms import ShownGate as Gate

if TYPE_CHECKING:
    from ..acts.alternatives import Comparison, GateOutcome
    from ..acts.sessions import Dropped
    from ..audit import Problem, Verified
    from ..audit.bundle import Exported
    from ..audit.earlier import FoundDecision, Origin
    from ..audit.policies import Explained as Ruling
    from ..audit.policies import PolicyInForce as Policy
    from ..exchange import PutAside, Synced
    from ..flows.agents import AgentFailed, AgentSignal
    from ..flows.endings import ChildStopped, Diverged, RunStuck, RunWaits, StepFailed
    from ..flows.phases import Flow, FlowEvent, FlowState, Human, Phase
    from ..flows.steps import auto_approve, cli_prompt
    from ..model.gate import Conversation
    from ..resumption.run import Resumed
    from ..setup import Step
    from ..setup.checkup import Finding
    from ..sharing.archiving import Archived
    from ..store.work.restore import Worktree
    from .flows import (
        ReceivedSignal,
        again,
        first,
        flow,
        note,
        now,
        parallel,
        patched,
        random,
        receive,
        run,
        sleep,
        soon,
        step,
        step_id,
        stuck,
        until,
        uuid,
        workdir,
    )

# What functions give back, and what flows are written with, by the module that has it and its name there: loaded when somebody names the class.
RESULTS = {
    "AgentFailed": ("flows.agents", "AgentFailed"),
    "AgentSignal": ("flows.agents", "AgentSignal"),
    "Archived": ("sharing.archiving", "Archived"),
    "Comparison": ("acts.alternatives", "Comparison"),
    "Conversation": ("model.gate", "Conversation"),
    "Diverged": ("flows.endings", "Diverged"),
    "Dropped": ("acts.sessions", "Dropped"),
    "Exported": ("audit.bundle", "Exported"),
    "Finding": ("setup.checkup", "Finding"),
    "Flow": ("flows.phases", "Flow"),
    "FlowEvent": ("flows.phases", "FlowEvent"),
    "FlowState": ("flows.phases", "FlowState"),
    "FoundDecision": ("audit.earlier", "FoundDecision"),
    "GateOutcome": ("acts.alternatives", "GateOutcome"),
    "Human": ("flows.phases", "Human"),
    "Origin": ("audit.earlier", "Origin"),
    "Phase": ("flows.phases", "Phase"),
    "Policy": ("audit.policies", "PolicyInForce"),
    "Problem": ("audit", "Problem"),
    "PutAside": ("exchange", "PutAside"),
    "ReceivedSignal": ("api.flows", "ReceivedSignal"),
    "Resumed": ("resumption.run", "Resumed"),
    "Ruling": ("audit.policies", "Explained"),
    "RunStuck": ("flows.endings", "RunStuck"),
    "RunWaits": ("flows.endings", "RunWaits"),
    "Step": ("setup", "Step"),
    "ChildStopped": ("flows.endings", "ChildStopped"),
    "StepFailed": ("flows.endings", "StepFailed"),
    "Synced": ("exchange", "Synced"),
    "Verified": ("audit", "Verified"),
    "Worktree": ("store.work.restore", "Worktree"),
    "auto_approve": ("flows.steps", "auto_approve"),
    "cli_prompt": ("flows.steps", "cli_prompt"),
    "again": ("api.flows", "again"),
    "first": ("api.flows", "first"),
    "flow": ("api.flows", "flow"),
    "note": ("api.flows", "note"),
    "now": ("api.flows", "now"),
    "parallel": ("api.flows", "parallel"),
    "patched": ("api.flows", "patched"),
    "random": ("api.flows", "random"),
    "receive": ("api.flows", "receive"),
    "run": ("api.flows", "run"),
    "sleep": ("api.flows", "sleep"),
    "soon": ("api.flows", "soon"),
    "step": ("api.flows", "step"),
    "step_id": ("api.flows", "step_id"),
    "stuck": ("api.flows", "stuck"),
    "until": ("api.flows", "until"),
    "uuid": ("api.flows", "uuid"),
    "workdir": ("api.flows", "workdir"),
}

__all__ = [
    "AgentFailed",
    "AgentSignal",
    "Answer",
    "Archived",
    "Checkpoint",
    "ChildStopped",
    "Comparison",
    "Conversation",
    "Diverged",
    "Dropped",
    "Event",
    "Exported",
    "Finding",
    "Flow",
    "FlowEvent",
    "FlowState",
    "FoundDecision",
    "Gate",
    "GateError",
    "GateOutcome",
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
    "compare",
    "complete",
    "diff",
    "doctor",
    "edit",
    "errors",
    "export",
    "first",
    "flow",
    "fork",
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
    if name not in RESULTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, there = RESULTS[name]
    return getattr(import_module(f"gitgate.{module}"), there)
