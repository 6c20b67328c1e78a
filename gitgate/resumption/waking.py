"""Resumption: a run that slept goes on, with no gate's answer to tell it: its flow is started again, and finds in its journal what
it waited for.

Where it began in this clone it goes on in the directory that it began in. Elsewhere it has a working tree of its own, as the
run was let go, on a branch that only serves that; what is committed there is brought to the run's branch each time it rests.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..claims import claiming
from ..context.desk import Desk
from ..context.targets import remote_of
from ..errors import Conflict, GateError, WorkFailed
from ..gates import agency
from ..gates.lineage import Served, note_served, served_in
from ..gates.starting import began_here
from ..gates.work import worktrees
from ..model.conversation import SessionRef
from ..policy import project as bylaws
from ..record.runs import OF_A_TREE, Run
from ..sharing.branches import HEADS, tip_of
from ..store.git import commits
from ..store.git.permissions import private_folder
from ..store.git.refs import RUNS, WORK
from ..store.git.repository import Repository
from ..store.records.journal import Journals
from ..store.remote.fetch import fetch_refs
from ..store.remote.remote import RefMove
from ..store.work.restore import matches, open_worktree, remove_worktree
from . import place
from .run import POLL, Errand, Resumed, log_of, tell_ending


def wake_run(errand: Errand, desk: Desk, run: str) -> Resumed:
    """Start a run's flow again; stay until it waits or ends."""
    tip = desk.refs.get(RUNS + run)
    if tip is None or began_here(desk, run):
        return start_flow(errand, desk, run, desk.repo.place, {})
    known = Journals(desk.repo, desk.records).load(run, tip)
    with contextlib.ExitStack() as held:
        directory = worktrees(desk) / f"run-{run}"
        if not place.lock(desk, directory, held):
            raise Conflict(
                f"another runner of this clone goes on with run {run}", hint=f"git gate show {run[:6]}"
            )
        there = take_tree(errand, desk, known, directory)
        if there is None:
            return start_flow(
                errand, desk, run, desk.repo.place, {}
            )  # it says itself that its code is not here
        errand.say(f"in {directory}")
        place.free(desk, there)
        with bylaws.in_force(desk, there, say=errand.say) as project:
            by = known.started.text("by") or "agent <agent@gitgate.invalid>"
            env = place.around_program(
                desk, "flow", by, place.settings_without_programs(there), project.settings
            )
            done = start_flow(errand, desk, run, directory, env, project)
        remains = put_tree_away(desk, run, there)
        if remains:
            errand.say(remains)
        return done


def start_flow(
    errand: Errand,
    desk: Desk,
    run: str,
    directory: Path,
    env: dict[str, str],
    project: bylaws.InForce | None = None,
) -> Resumed:
    """Its flow, in a process of its own, to where that ends."""
    from ..agents import process, scrubbed
    from ..agents.agent import AgentResult, Start

    program, log = agency.adapter("flow"), str(log_of(desk, run))
    begun = f"{desk.now}-{desk.entropy(4)}".replace(":", "")
    settings = agency.settings_for_start(desk, "flow")
    started = Start(
        gate=run,
        cwd=directory,
        folder=desk.repo.state_dir / "runs" / run / begun,
        session=SessionRef("flow", run),
        settings=settings if project is None else bylaws.without_doubt(settings, project),
        env=scrubbed(desk.settings.env),
        extra_env=env,
    )
    running = process.begin(program.start(started))
    try:
        while (ended := running.wait(POLL)) is None:
            if errand.stopping.is_set():
                running.stop()
                return Resumed(run, "released", claiming.HANDED_BACK, log)
    except BaseException:
        running.stop()
        raise
    tell_ending(errand, ended)
    outcome = program.read_outcome(ended)
    if outcome.result is AgentResult.FAILED:
        return Resumed(run, "failed", outcome.reason or "it could not go on", log)
    errand.say(f"run {run}: {outcome.text}")
    return Resumed(run, "resumed", "", log)


def take_tree(errand: Errand, desk: Desk, run: Run, directory: Path) -> Repository | None:
    """A working tree as the run was let go; one that its process was killed in is gone on with as it is."""
    left = left_by(errand, desk, run)
    if left is None:
        return None
    there = place.repository_of(desk, directory)
    if there is not None and (run.rest is None or is_as_left(there, left)):
        return there
    private_folder(desk.repo.state_dir)
    if (
        directory.exists()
    ):  # an answer took the run further since, in another place: this one is what it was before
        remove_worktree(desk.repo, directory, force=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    own = f"run/{run.id}"
    drop_served(desk, own, left["head"])
    made = open_worktree(
        desk.repo,
        base=left["head"],
        staged=left["staged"],
        work=left["work"],
        directory=directory,
        branch=own,
        fallback_branch=own,
    )
    there = place.repository_of(desk, made.directory)
    if there is not None:
        note_served(there, Served(made.branch or own, left["branch"], left["head"]))
    return there


def left_by(errand: Errand, desk: Desk, run: Run) -> dict[str, str] | None:
    """What the run's own tree was when it was let go; else the commit of its code. None where nothing of it is here."""
    own = run.own_tree
    if own is not None:
        if has_commits(desk, own) or (bring_tree(desk, run.id) and has_commits(desk, own)):
            return {"branch": "", **own}
        errand.say(
            f"what run {run.id} did was not published: git gate init, and git gate sync, where it was let go"
        )
    code = run.started.text("code")
    if not code or not desk.repo.git.ok("cat-file", "-e", f"{code}^{{commit}}"):
        return None
    return {"head": code, "staged": code, "work": code, "branch": ""}


def has_commits(desk: Desk, own: dict[str, str]) -> bool:
    return all(desk.repo.git.ok("cat-file", "-e", f"{own[key]}^{{commit}}") for key in OF_A_TREE)


def bring_tree(desk: Desk, run: str) -> bool:
    """What the run's trees were, from where it is shared; whether that was there."""
    remote = remote_of(desk)
    if remote is None:
        return False
    try:
        return WORK + run in fetch_refs(desk.repo, remote, [WORK + run], timeout=desk.network_timeout)
    except GateError:
        return False


def is_as_left(there: Repository, left: dict[str, str]) -> bool:
    try:
        return there.git.text("rev-parse", "HEAD") == left["head"] and matches(
            there, left["work"], left["staged"]
        )
    except GateError:
        return False


def put_tree_away(desk: Desk, run: str, there: Repository) -> str:
    """Once the run is over its tree goes; one with changes that were not committed stays, and is named."""
    tip = desk.refs.get(RUNS + run)
    if tip is None or not Journals(desk.repo, desk.records).load(run, tip).closed:
        return ""
    served = served_in(there)
    try:
        remove_worktree(desk.repo, there.place)
    except WorkFailed:
        return f"changes that were not committed remain in {there.place}"
    if served is not None and served.branch:
        with contextlib.suppress(GateError):  # it is told apart from what nobody else has, or stays
            drop_served(desk, served.own, tip_of(desk, remote_of(desk), served.branch))
    return ""


def drop_served(desk: Desk, own: str, above: str | None) -> None:
    """The branch that only served a run goes where another one has what was committed on it."""
    tip = desk.refs.get(HEADS + own)
    if tip is not None and above is not None and commits.is_ancestor(desk.repo.git, tip, above):
        desk.refs.update([RefMove(HEADS + own, None, tip)])
