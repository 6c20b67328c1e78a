"""Python: the verbs of the command line as functions, typed; keyword arguments are the long flags' names.

    import gitgate

    gate = gitgate.ask("Which database?", type="choice", options=["Postgres", "SQLite=one file"], timeout="2h")
    answer = gitgate.wait(gate.id, for_="30m").answer
    if answer is not None and answer.value == "Postgres":
        ...

Every function takes `directory`: it works as if started there, like `git -C`. What goes wrong is a `gitgate.errors.GateError`
with a message, a stable `code` and a `hint`. Nothing is printed, and nothing is asked. Here is all that is offered, and what looks
after a repository; what is done with gates, flows and conversations stands beside it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, overload

from .. import errors
from ..errors import GateError, Usage
from .gates import (
    ask,
    check,
    comment,
    complete,
    delivery,
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
from .terms import Directory, Event, Status, absolute_directory, given_in_python, open_desk, published_gate
from .terms import ShownAnswer as Answer
from .terms import ShownGate as Gate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..acts.alternatives import Comparison, GateOutcome
    from ..acts.sessions import Dropped
    from ..audit import Explained as Ruling
    from ..audit import PolicyInForce as Policy
    from ..audit import Problem, Verified
    from ..audit.bundle import Exported
    from ..audit.earlier import FoundDecision, Origin
    from ..context import Desk
    from ..exchange import PutAside, Synced
    from ..flows.agents import AgentFailed, AgentSignal
    from ..flows.endings import ChildStopped, Diverged, RunStuck, RunWaits, StepFailed
    from ..flows.phases import Flow, FlowEvent, FlowState, Human, Phase
    from ..flows.steps import auto_approve, cli_prompt
    from ..model.gate import Conversation, Value
    from ..model.gate import Gate as Folded
    from ..resumption.run import Resumed
    from ..setup.checkup import Finding
    from ..setup.managed import Step
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
    "Policy": ("audit", "PolicyInForce"),
    "Problem": ("audit", "Problem"),
    "PutAside": ("exchange", "PutAside"),
    "ReceivedSignal": ("api.flows", "ReceivedSignal"),
    "Resumed": ("resumption.run", "Resumed"),
    "Ruling": ("audit", "Explained"),
    "RunStuck": ("flows.endings", "RunStuck"),
    "RunWaits": ("flows.endings", "RunWaits"),
    "Step": ("setup.managed", "Step"),
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


# What looks after a repository: setting it up, checking it, acting on answers, folding and erasing.


def init(
    *,
    server: bool = False,
    publish_work: bool | None = None,
    resume: bool | None = None,
    claude: bool = False,
    agents: bool = False,
    script: bool = False,
    github: bool = False,
    gitlab: bool = False,
    flows: bool = False,
    mcp: Sequence[str] = (),
    package: str | None = None,
    package_index: str | None = None,
    dry_run: bool = False,
    remove: bool = False,
    purge: bool = False,
    directory: Directory = None,
) -> tuple[Step, ...]:
    """Set up the clone: settings, hooks, and what git fetch brings along. Running it is consent to what the steps say.

    `mcp` names the clients that get git gate's tools. `package` and `package_index` say what the jobs of `github` install. `remove` undoes it; with `purge` all that is kept besides gates goes, too.

    `sync()` afterwards brings what waits already.
    """
    from ..setup import parts

    flags = {"claude": claude, "agents": agents, "script": script}
    flags |= {"github": github, "gitlab": gitlab, "flows": flows}
    named = [part for part in parts.PARTS if flags[part.flag]]
    if purge and (named or mcp or not remove):
        raise Usage(
            "purge takes away everything, together with remove", hint="gitgate.init(remove=True, purge=True)"
        )
    said = {name: word for name, word in (("package", package), ("packageIndex", package_index)) if word}
    if said and not github:
        raise Usage(
            "package and package_index say what the jobs of github install",
            hint="gitgate.init(github=True, …)",
        )
    with open_desk(directory, said) as desk:
        desk.refuse_agents("init")
        chosen = parts.InitChoice(server, publish_work, resume, named, mcp)
        found = (
            parts.planned_removal(desk, named, clients=mcp, purge=purge)
            if remove
            else parts.wanted(desk, chosen)
        )
        return tuple(found if dry_run else parts.take_steps(found))


def doctor(*, online: bool = False, claude: bool = False, directory: Directory = None) -> tuple[Finding, ...]:
    """Return what is set up, what is missing, and the command that mends it. Changes nothing.

    `online` asks GitHub too, `claude` rehearses with the real Claude Code.

    >>> [found.mend for found in gitgate.doctor() if found.state == "wrong"]
    """
    from ..setup.checkup import examine
    from ..setup.hooks_here import examine_hooks
    from ..surfaces.forge.checkup import examine_github

    with open_desk(directory) as desk:
        here = Path(directory) if directory is not None else Path.cwd()
        found = [*examine(desk), *examine_hooks(desk, here), *examine_github(desk, online=online)]
        if claude:
            from ..setup.checkup import rehearse

            found.extend(rehearse(desk))
        return tuple(found)


@overload
def policy_check(*, directory: Directory = None) -> Policy: ...
@overload
def policy_check(id: str | Gate, *, who: str | None = None, directory: Directory = None) -> Ruling: ...


def policy_check(
    id: str | Gate | None = None, *, who: str | None = None, directory: Directory = None
) -> Policy | Ruling:
    """Return who may answer a gate, by which rule, and why; without a gate, the rules. BrokenPolicy: one is unreadable.

    >>> gitgate.policy_check("7k2f", who="@grace").allowed
    """
    from ..acts import find_gate
    from ..audit import explain_gate, in_force
    from ..policy import load_book

    with open_desk(directory) as desk:
        book = load_book(desk)
        if id is None:
            if who is not None:
                raise Usage(
                    "who may answer what is asked of one gate", hint='policy_check("7k2f", who="@ada")'
                )
            return in_force(book)
        return explain_gate(desk, book, find_gate(desk, str(id)).gate, who)


def resume(
    id: str | Gate | None = None,
    *,
    all: bool = False,
    runner: str | None = None,
    detach: bool = False,
    directory: Directory = None,
) -> tuple[Resumed, ...]:
    """Claim what is answered and start its agent again; stays until the agent is done, unless `detach` or another runner
    than the local one is to do it. A gate that was named and is not resumed is an error.

    >>> gitgate.resume("7k2f")[0].commits
    """
    from ..acts import open_gate
    from ..resumption.calls import call, refuse_waiting

    if (id is None) == (not all):
        raise Usage("name a gate, or all=True", hint='gitgate.list(state="answered")')
    with open_desk(directory) as desk:
        name = runner or desk.settings.text("runner")
        gate = None if id is None else open_gate(desk, str(id))
        if gate is not None:
            refuse_waiting(gate)
        if gate is None and name != "local":
            return every_one_elsewhere(desk, name)
        if detach or name != "local":
            from ..resumption.run import Resumed

            which = gate.id if gate else ""
            return (Resumed(which, "started", log=call(desk, which, name)),)
        return every_one(desk) if gate is None else (only(desk, gate),)


def only(desk: Desk, gate: Folded) -> Resumed:
    from ..resumption.calls import pool_of, refuse_failed

    done = pool_of(desk, desk.progress, threading.Event(), insist=True).act(gate.id)
    refuse_failed(done)
    return done


def every_one_elsewhere(desk: Desk, runner: str) -> tuple[Resumed, ...]:
    """Leave to the other runner each gate that it can act on. Return a result for each."""
    from ..resumption.calls import leave_all
    from ..resumption.run import Resumed

    left = leave_all(desk, runner)
    failed = [Resumed(gate, "failed", error.message) for gate, error in left.failed.items()]
    return (*(Resumed(gate, "started", log=log) for gate, log in left.logs.items()), *failed)


def every_one(desk: Desk) -> tuple[Resumed, ...]:
    """Act on all that can be acted on. Interrupted, this process hands back what it has claimed."""
    from ..resumption.calls import pool_of
    from ..resumption.pool import PoolGroup
    from ..resumption.run import Resumed

    stopping = threading.Event()
    group = PoolGroup([pool_of(desk, desk.progress, stopping)], desk.settings.number("maxAgents"), stopping)
    try:
        group.drain()
    except BaseException:
        stopping.set()
        group.end()
        raise
    failed = [Resumed(gate, "failed", error.message) for gate, error in group.failed.items()]
    return (*group.done, *failed)


def archive(*, older_than: str | int | None = None, directory: Directory = None) -> Archived:
    """Fold closed gates away, month by month. They stay readable: `list(all=True)`, `show`, `log`."""
    from ..sharing.archiving import fold_closed
    from ..text import parse_duration

    with open_desk(directory) as desk:
        usual = desk.settings.seconds("archiveAfter") or 0
        least = usual if older_than is None else parse_duration(str(older_than))
        return fold_closed(desk, older_than=least)


def session_drop(id: str | Gate, *, directory: Directory = None) -> Dropped:
    """Erase a gate's saved session, here and on the remote. The record stays whole; copies in other clones remain."""
    from ..acts import find_gate
    from ..acts.sessions import drop

    with open_desk(directory) as desk:
        desk.refuse_agents("session drop")
        return drop(desk, find_gate(desk, str(id)).gate.id)


def fork(
    id: str | Gate,
    answer: Value | None = None,
    *,
    approve: bool = False,
    reject: bool = False,
    answers: Mapping[str, object] | None = None,
    other: str | None = None,
    note: str = "",
    sign: bool | None = None,
    resume: bool = True,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate:
    """Ask a gate's question again, to have it answered otherwise: a new gate with that question, work and conversation.

    With an answer, as `respond` takes it, it is answered at once; else it waits.

    >>> other = gitgate.fork("7k2f", "SQLite"); print(gitgate.compare("7k2f", other).diff)
    """
    from ..acts import answering, find_gate
    from ..acts.alternatives import fork_gate

    if approve and reject:
        raise Usage("approve or reject, not both")
    with open_desk(directory) as desk:
        said = True if approve else False if reject else None
        if all(one is None for one in (answer, answers, other, said)):
            return published_gate(desk, fork_gate(desk, str(id), push=push).published)
        first = find_gate(desk, str(id)).gate
        given = given_in_python(first, answer, answers, other, approve=said)
        asked = fork_gate(desk, first.id, given, push=push)
        manner = answering.Manner(
            note=note,
            via="python",
            seen=asked.gate.tip,
            sign=sign,
            push=push,
            deliver=delivery(desk, resume=resume),
        )
        return published_gate(desk, answering.respond(desk, asked.gate, given, manner).published)


def compare(
    id: str | Gate, other: str | Gate, *, patch: bool = False, directory: Directory = None
) -> Comparison:
    """Compare two gates: what was asked and answered, what came of each, and how the outcomes differ.

    >>> print(gitgate.compare("7k2f", "c3ab", patch=True).diff)
    """
    from ..acts.alternatives import compare_gates

    with open_desk(directory) as desk:
        return compare_gates(desk, str(id), str(other), patch=patch)


def export(
    *ids: str | Gate,
    since: str | None = None,
    output: str | Path = "gates.tar.gz",
    force: bool = False,
    directory: Directory = None,
) -> Exported:
    """Write an auditor's bundle: all gates and runs, or those named, in one file that plain git and sha256sum check.

    >>> print(gitgate.export(since="90d", output="audit.tar.gz").sha256)
    """
    from ..audit.bundle import ExportWishes, check_narrowed, export_gates
    from ..text import parse_since

    check_narrowed(tuple(map(str, ids)), since)
    place = absolute_directory(directory) / output
    with open_desk(directory) as desk:
        moment = 0.0 if since is None else parse_since(since, desk.clock())
        return export_gates(desk, ExportWishes(tuple(map(str, ids)), moment), place, force=force)
