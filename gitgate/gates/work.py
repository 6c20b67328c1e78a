"""Gates: the partial work of a gate, looked at: fetched when it is not here yet, as a diff, as a worktree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..context.desk import Desk
from ..context.targets import remote_of
from ..document.values import replace
from ..errors import Failure, GateError
from ..model.gate import Gate, Work
from ..store.git.refs import RUNS, WORK
from .starting import asker_place

if TYPE_CHECKING:
    from ..record.runs import Run
    from ..store.work.restore import Worktree

MOST_CALLERS = 8


def bring_work(desk: Desk, gate: Gate, work: Work | None = None) -> str:
    """The work's commit, fetched if this clone does not have it. `work`: what else an answer to the gate goes on with."""
    commit = (work or gate.opened.work).commit
    if commit is None:
        raise Failure(f"gate {gate.id} has no work", hint=f"git gate show {gate.id[:6]}")
    if desk.repo.git.ok("cat-file", "-e", f"{commit}^{{commit}}"):
        return commit
    remote = remote_of(desk)
    if remote is not None:
        from ..store.remote.fetch import fetch_refs

        fetch_refs(desk.repo, remote, [WORK + (gate.id if work is None else gate.opened.run)])
        if desk.repo.git.ok("cat-file", "-e", f"{commit}^{{commit}}"):
            return commit
    asked = gate.opened.asked
    raise Failure(
        f"the work of gate {gate.id} is not here: it stayed where {asked.agent} asked{asker_place(asked)}",
        hint="publish it there: git gate init, then git gate sync",
    )


def run_of_work(desk: Desk, gate: Gate) -> tuple[Run, Mapping[str, Any]] | None:
    """The run that an answer goes on with, and its own tree, where the question was asked in another: in that of one of several
    branches that run at once. None for any other gate.
    """
    from ..record.runs import begun_with
    from ..store.records.journal import Journals

    run, step = gate.opened.run, str(gate.opened.config.get("step") or "")
    found = None
    for _ in range(MOST_CALLERS):
        tip = desk.refs.get(RUNS + run) if run else None
        if tip is None:
            break
        loaded = Journals(desk.repo, desk.records).load(run, tip)
        began = begun_with(loaded, step)
        found = (loaded, began) if began else found  # of the run furthest up
        run, step = loaded.called_by
    return found


def work_of(desk: Desk, gate: Gate) -> Work:
    """The work that an answer goes on with: the gate's own, or the run's where the question was asked in a branch of it."""
    found = run_of_work(desk, gate) if gate.opened.run else None
    if found is None:
        return gate.opened.work
    began = found[1]
    commit, base, branch = str(began["work"]), str(began["head"]), str(began.get("branch") or "")
    return Work(base, str(began["staged"]), commit, branch or None, dirty=commit != base)


def diff_of(desk: Desk, gate: Gate, *, stat: bool = False, cells: int = 80, color: bool = False) -> str:
    """The partial work against its base, what is only staged first. A stat is a courtesy: without the work it is empty."""
    work = gate.opened.work
    if work.commit is None or not work.changed:
        return ""
    from ..store.work.restore import diff_whole
    from ..text.display import neutral

    try:
        commit = bring_work(desk, gate)
    except GateError:
        if stat:
            return ""
        raise
    raw = diff_whole(desk.repo, work.base, work.staged, commit, stat=stat, cells=cells)
    text = raw.decode("utf-8", "replace")
    return painted(neutral(text)) if color and not stat else neutral(text)


def comes_back(desk: Desk, work: Work) -> dict[str, tuple[str, ...]] | None:
    """What restoring the work brings back beside its files; None where it is not here. Nothing is fetched for it."""
    from ..store.work.saved import beneath, decoded

    if work.commit is None:
        return {"staged_only": (), "in_conflict": ()}
    try:
        found = beneath(desk.repo.git, work.base, work.staged or work.commit, work.commit)
    except GateError:
        return None
    return {
        "staged_only": tuple(map(decoded, found.staged)),
        "in_conflict": tuple(map(decoded, found.conflicting)),
    }


def painted(text: str) -> str:
    """Colour by line, after neutralising: git's own colours could not be told from planted ones."""
    from ..render.table import paint

    colors = {"+": "green", "-": "red", "@": "cyan"}
    lines = text.split("\n")
    return "\n".join(
        paint(line, colors.get(line[:1], ""), on=line[:1] in colors and bool(line)) for line in lines
    )


def open_place(desk: Desk, gate: Gate, directory: Path) -> Worktree:
    """A worktree with the work uncommitted in it, on a branch of its own, for a person to look around in."""
    from ..store.work.restore import open_worktree

    commit = bring_work(desk, gate)
    work = gate.opened.work
    made = open_worktree(
        desk.repo,
        base=work.base,
        staged=work.staged or commit,
        work=commit,
        directory=directory,
        branch=None,
        fallback_branch=f"gate/{gate.id}",
        detach=True,
    )
    return replace(made, gate=gate.id)


def beside(desk: Desk, gate: Gate) -> Path:
    """Where a gate's work is looked at, unless somebody says where."""
    place = desk.repo.place.parent / f"{desk.repo.place.name}-{gate.id[:6]}"
    if place.exists():
        raise Failure(f"{place} is already there", hint=f"git gate worktree {gate.id[:6]} DIR")
    return place


def tree_on_branch(desk: Desk, branch: str) -> Path:
    """A working tree of its own on this branch, which is made where there is none; the one that is there, if there is one."""
    from ..model.states import file_name

    git = desk.repo.git
    listed = git.text("worktree", "list", "--porcelain", "-z").split("\0")
    there = next((at for at, line in enumerate(listed) if line == f"branch refs/heads/{branch}"), None)
    if there is not None:
        return Path(next(line for line in reversed(listed[:there]) if line.startswith("worktree "))[9:])
    if not git.ok("check-ref-format", "--branch", branch):
        raise Failure(f"{branch!r} is not the name of a branch", hint="--branch feature/login")
    place = worktrees(desk) / f"run-{file_name(branch.encode())}"
    place.parent.mkdir(parents=True, exist_ok=True)
    known = git.ok("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
    new = (str(place), branch) if known else ("-b", branch, "--no-track", str(place), "HEAD")
    git.run("worktree", "add", "-q", *new)
    return place


def worktrees(desk: Desk) -> Path:
    """The folder where agents are resumed that do not find the directory which they left.

    Claude Code refuses to write anywhere below a `.git`, so in a clone it is one of the person's own; on a server, whose
    repository goes by another name, it is inside.
    """
    named = desk.settings.text("worktrees")
    if named:
        return Path(named).absolute()
    env = desk.settings.env
    home = env.get("XDG_STATE_HOME") or (f"{env['HOME']}/.local/state" if env.get("HOME") else "")
    if ".git" not in desk.repo.common_dir.parts or not home:
        return desk.repo.state_dir / "worktrees"
    from ..model.states import file_name

    name = f"{desk.repo.common_dir.parent.name}-{file_name(os.fsencode(desk.repo.common_dir))[:8]}"
    return Path(home).absolute() / "gitgate" / "worktrees" / name


def made_by_us(desk: Desk, directory: Path) -> bool:
    """Whether it is one of the working trees that agents are resumed in, and no person's own."""
    return directory.resolve().is_relative_to(worktrees(desk).resolve())
