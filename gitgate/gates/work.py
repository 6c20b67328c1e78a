"""Gates: the partial work of a gate, looked at; and which gate came of which, and goes on with its work."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..context import Desk
from ..context.targets import remote_of, summaries
from ..document import dataclass, replace
from ..errors import Failure, GateError
from ..model import file_name, is_id
from ..model.gate import Gate, Work
from ..record import Summary, by_pressure, summary_of
from ..store import read_local_note
from ..store.git import Repository
from ..store.git.refs import OPEN, RUNS, WORK
from .agency import asker_place

if TYPE_CHECKING:
    from ..record.runs import Run
    from ..store.work.restore import Worktree

# The partial work of a gate, looked at: fetched when it is not here yet, as a diff, as a worktree.


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
    from ..text import neutral

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
    """Return the paths that a restore of the work brings back only in the index, or in conflict; None where the work
    is not here. Nothing is fetched for it.
    """
    from ..store.work import beneath, decoded

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
    from ..render import paint

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
    """Return the default directory for looking at a gate's work; refuse if it exists."""
    place = desk.repo.place.parent / f"{desk.repo.place.name}-{gate.id[:6]}"
    if place.exists():
        raise Failure(f"{place} is already there", hint=f"git gate worktree {gate.id[:6]} DIR")
    return place


def tree_on_branch(desk: Desk, branch: str) -> Path:
    """A working tree of its own on this branch, which is made where there is none; the one that is there, if there is one."""
    git = desk.repo.git
    listed = git.text("worktree", "list", "--porcelain", "-z").split("\0")
    there = next((at for at, line in enumerate(listed) if line == f"branch refs/heads/{branch}"), None)
    if there is not None:
        return Path(next(line for line in reversed(listed[:there]) if line.startswith("worktree "))[9:])
    if not git.ok("check-ref-format", "--branch", branch):
        raise Failure(f"{branch!r} is not the name of a branch", hint="--branch feature/login")
    place = worktrees(desk) / f"run-{file_name(branch.encode())}"
    place.parent.mkdir(parents=True, exist_ok=True)
    desk.refs.check_out(place, branch)
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
    name = f"{desk.repo.common_dir.parent.name}-{file_name(os.fsencode(desk.repo.common_dir))[:8]}"
    return Path(home).absolute() / "gitgate" / "worktrees" / name


def made_by_us(desk: Desk, directory: Path) -> bool:
    """Return whether the directory is one of the working trees in which agents are resumed, and no person's own."""
    return directory.resolve().is_relative_to(worktrees(desk).resolve())


# Which gate came of which. A resumed agent that asks again opens a gate that names the one it follows.
#
# Such a gate goes on with the branch of the one that it follows, whatever branch its agent was put on
# meanwhile, and stands on commits that are as they will be published: they are tied to their decision
# before it is opened, since a record cannot change.


MOST_STEPS = 100
FOLLOWED = "GITGATE_GATE"
SERVED = "gitgate-serves"


@dataclass(frozen=True)
class Stand:
    """Place where a runner of this machine started the agent of a gate. `known`: the branches' tips at that time."""

    gate: str
    directory: Path
    branch: str | None
    known: tuple[str, ...] = ()
    trusted: bool = False


def took_place(desk: Desk, gate: str) -> Path:
    """The file in which a runner notes where it put the agent."""
    return desk.repo.state_dir / "places" / f"{gate}.json"


def stand_of(desk: Desk, gate: str) -> Stand | None:
    if not is_id(gate):
        return None
    try:
        said = read_local_note(
            took_place(desk, gate), directory=str, branch=(str, type(None)), known=list, trusted=(bool, int)
        )
        return Stand(
            gate, Path(said["directory"]), said["branch"], tuple(said["known"]), bool(said["trusted"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stands_here(desk: Desk) -> Iterator[Stand]:
    """The gates whose agents were put into this very directory: one that asked again may be in it for several."""
    with suppress(OSError):
        for note in sorted((desk.repo.state_dir / "places").glob("*.json")):
            stand = stand_of(desk, note.stem)
            if stand is not None and is_here(desk, stand):
                yield stand


def is_here(desk: Desk, stand: Stand) -> bool:
    return stand.directory.resolve() == desk.repo.place.resolve()


def followed(desk: Desk) -> Gate | None:
    """The gate that this process was resumed for."""
    named = desk.settings.env.get(FOLLOWED, "")
    tip = desk.refs.get(OPEN + named) if is_id(named) else None
    with suppress(GateError):
        return desk.records.load(named, tip) if tip else None
    return None


def tie_commits(desk: Desk) -> None:
    """End the commits that a resumed agent made so far with the trailers of what was decided, before it asks again.

    Best effort: in the middle of a rebase, say, they stay as they are, and so they do when the agent has ended.
    """
    gate = followed(desk)
    stand = stand_of(desk, gate.id) if gate is not None else None
    if gate is None or stand is None or desk.repo.top is None or not is_here(desk, stand):
        return
    from ..questions.prompts import trailers
    from ..store.work import commits
    from ..store.work.snapshot import operation_in

    if operation_in(desk.repo.git_dir) is not None:
        return
    with suppress(GateError):
        made = commits.made_since(desk.repo.git, before(gate, stand.known))
        if made:
            commits.add_trailers(desk.repo.git, made, trailers(gate))


def before(gate: Gate, known: Sequence[str]) -> list[str]:
    """The commits below which an agent made nothing since the answer: the branches, and what its own question stood on."""
    base = gate.opened.work.base
    return [*known, *([base] if base else [])]


def on_its_branch(desk: Desk, work: Work) -> Work:
    """The work of a question as it is recorded: one that follows is on the branch of the gate that it follows, and one in a tree
    that was made for a run on the run's.

    Not where the agent went to another branch itself. One that is on none, as after `git checkout --detach`, went to no other.
    """
    gate = followed(desk)
    stand = stand_of(desk, gate.id) if gate is not None else None
    placed = gate is not None and stand is not None and is_here(desk, stand)
    if gate is not None and stand is not None and placed and work.branch in (stand.branch, None):
        return replace(work, branch=gate.opened.work.branch or work.branch)
    served = served_in(desk.repo)
    if served is not None and served.own == work.branch:
        return replace(work, branch=served.branch or work.branch)
    return work


@dataclass(frozen=True)
class Served:
    """Purpose of a working tree made for a run that did not begin here: commits on `own` are meant for `branch`, empty
    where the run was on none. `began`: its commit when it was last brought up to the run.
    """

    own: str
    branch: str
    began: str


def note_served(there: Repository, served: Served) -> None:
    """Beside what git keeps of this working tree, so that it goes with it."""
    place = there.git_dir / SERVED
    new = place.with_suffix(".new")
    new.write_text(json.dumps(vars(served)), encoding="utf-8")
    new.replace(place)


def served_in(there: Repository) -> Served | None:
    try:
        return Served(**read_local_note(there.git_dir / SERVED, own=str, branch=str, began=str))
    except (OSError, ValueError, TypeError):
        return None


def followers(desk: Desk, gate: Gate, since: str = "") -> list[Gate]:
    """The gates that the agent of this one opened since it was resumed, and that go on in its stead.

    Not one that it took back itself, nor another program's, which it may have started, nor one whose waiter heard the answer:
    that run went on. Asked `since` a time, where one clock is known to have told both.
    """
    found: list[Gate] = []
    for one in summaries(desk):
        if one.at and one.at < since:
            continue
        with suppress(GateError):
            later = desk.records.load(one.id, one.tip)
            if later.opened.follows == gate.id and continues_gate(later, gate):
                found.append(later)
    return found


def continues_gate(later: Gate, gate: Gate) -> bool:
    ours, theirs = gate.opened.session, later.opened.session
    if ours is None or theirs is None or ours.agent != theirs.agent or later.state == "withdrawn":
        return False
    return later.opened.delivery == "resume" or (later.opened.delivery == "wait" and not later.closed)


@dataclass(frozen=True)
class Lineage:
    """Gates of a branch, and by gate the one that it follows; `found` has those that are followed, too."""

    found: tuple[Summary, ...]
    follows: dict[str, str]

    def children(self, of: str) -> list[Summary]:
        return [one for one in self.found if self.follows.get(one.id) == of]

    @property
    def first(self) -> list[Summary]:
        """Those that follow none of the others."""
        return [one for one in self.found if one.id not in self.follows]


def families(desk: Desk, branches: dict[str, list[Summary]]) -> dict[str, Lineage]:
    return {branch: family(desk, branch, found) for branch, found in branches.items()}


def family(desk: Desk, branch: str, found: Sequence[Summary]) -> Lineage:
    """With what each of them follows on the same branch, over or not; what is archived is left out."""
    members = {one.id: one for one in found}
    follows: dict[str, str] = {}
    for one in found:
        current = one
        for _ in range(MOST_STEPS):  # who writes records may close a circle; a gate is entered once
            before = predecessor(desk, current)
            if (
                before is None
                or before.branch != branch
                or current.id in follows
                or circular(follows, current.id, before.id)
            ):
                break
            follows[current.id] = before.id
            members.setdefault(before.id, before)
            current = before
    return Lineage(tuple(by_pressure(members.values())), follows)


def circular(follows: dict[str, str], gate: str, before: str) -> bool:
    seen: str | None = before
    while seen is not None and seen != gate:
        seen = follows.get(seen)
    return seen == gate


def predecessor(desk: Desk, one: Summary) -> Summary | None:
    try:
        name = desk.records.load(one.id, one.tip).opened.follows
        tip = desk.refs.get(OPEN + name) if name else None
        return summary_of(name, tip, desk.records.commit(tip).message) if name and tip else None
    except GateError:
        return None
