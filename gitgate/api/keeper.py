"""Python: what looks after a repository: setting it up, checking it, acting on answers, folding and erasing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, overload

from ..errors import Usage
from .terms import Directory, absolute_directory, given_in_python, open_desk, published_gate
from .terms import ShownGate as Gate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..acts.alternatives import Comparison
    from ..acts.sessions import Dropped
    from ..audit.bundle import Exported
    from ..audit.policies import Explained as Ruling
    from ..audit.policies import PolicyInForce as Policy
    from ..context import Desk
    from ..model.gate import Gate as Folded
    from ..model.gate import Value
    from ..resumption.run import Resumed
    from ..setup import Step
    from ..setup.checkup import Finding
    from ..sharing.archiving import Archived


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
    """What is set up, what is missing, and the command that mends it. Changes nothing; `online` asks GitHub too, `claude`
    rehearses with the real Claude Code.

    >>> [found.mend for found in gitgate.doctor() if found.state == "wrong"]
    """
    from ..setup.checkup import examine
    from ..surfaces.forge.checkup import examine_github

    with open_desk(directory) as desk:
        found = [*examine(desk), *examine_github(desk, online=online)]
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
    """Who may answer a gate, by which rule, and why; without a gate, the rules. BrokenPolicy: one cannot be read.

    >>> gitgate.policy_check("7k2f", who="@grace").allowed
    """
    from ..acts import find_gate
    from ..audit.policies import explain_gate, in_force
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
    """Each that the other runner can act on, by itself."""
    from ..resumption.calls import leave_all
    from ..resumption.run import Resumed

    left = leave_all(desk, runner)
    failed = [Resumed(gate, "failed", error.message) for gate, error in left.failed.items()]
    return (*(Resumed(gate, "started", log=log) for gate, log in left.logs.items()), *failed)


def every_one(desk: Desk) -> tuple[Resumed, ...]:
    """All that can be acted on. Interrupted, it hands back what it holds."""
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
    """The same question answered otherwise: a new gate with the question, the work and the conversation of another.

    With an answer, as `respond` takes it, it is answered at once; else it waits.

    >>> other = gitgate.fork("7k2f", "SQLite"); print(gitgate.compare("7k2f", other).diff)
    """
    from ..acts import answering, find_gate
    from ..acts.alternatives import fork_gate
    from .gates import delivery

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
    """Two gates side by side: what was asked and answered, what came of each, and how the outcomes differ.

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
    """An auditor's bundle: all gates and runs, or those named, in one file that is checked by plain git and sha256sum.

    >>> print(gitgate.export(since="90d", output="audit.tar.gz").sha256)
    """
    from ..audit.bundle import ExportWishes, check_narrowed, export_gates
    from ..text import parse_since

    check_narrowed(tuple(map(str, ids)), since)
    place = absolute_directory(directory) / output
    with open_desk(directory) as desk:
        moment = 0.0 if since is None else parse_since(since, desk.clock())
        return export_gates(desk, ExportWishes(tuple(map(str, ids)), moment), place, force=force)
