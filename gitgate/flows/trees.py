"""Flows: branches that run at once, each in a working tree of its own, and how what they did becomes one again.

A branch has its tree from the first agent on that runs in it: a Git branch at the commit where the run stands, with the
run's uncommitted work. When all are through, what each did is merged in their order, as objects; then it is brought into
the run's own tree by one step, which may be killed at any file. Two that changed the same lines are a question to a person.

Which trees there are lies in a folder of this machine, beside what the run's agents said. A run that ends before its
branches are joined leaves what each did on its Git branch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..acts.asking import AskWishes, own_files, take_work
from ..context import Desk
from ..context.machine import host_name
from ..errors import Conflict, GateError
from ..gates.agency import claims_here
from ..gates.work import on_its_branch, served_in, tie_commits, worktrees
from ..model import file_name
from ..model.gate import Work
from ..questions.drafts import Draft, question
from ..questions.drafts import option as option_of
from ..record.runs import OF_A_STEP, OWN, RESTS, taken_by
from ..sharing.branches import deliver_run
from ..store import read_local_note
from ..store.git import Repository, discover
from ..store.git.refs import HEAD, Refs
from ..store.records import NOBODY
from ..store.remote import RefMove
from ..store.work.commits import (
    MergedWork,
    bring_in,
    commit_of,
    head_branch,
    is_ancestor,
    merge_commits,
    merge_trees,
    with_paths_of,
)
from ..store.work.restore import open_worktree, remove_worktree, without_place
from ..store.work.snapshot import Snapshot
from . import BRANCH, Branch
from .agents import RunStalled
from .endings import RunStuck
from .engine import Engine
from .journal import HeldRun, folder_of

KEPT = "refs/gitgate/+branches/"  # `+` is in no remote's folder there
BRANCHES = "gitgate/"
MARKS = re.compile(rb"^(?:<{7}|>{7}|={7})(?: |$)", re.MULTILINE)
MOST_DIFF = 200_000
CHOICES = {
    "keep first": "those files as the earlier branches have them",
    "keep second": "those files as this branch has them",
    "resolved": "as they are now in the tree that is named below",
    "stop": "end the run; what each branch did stays on a Git branch",
}


@dataclass(frozen=True)
class BranchTree:
    """A working tree that was made for a branch: where it is, on which Git branch, and what stood there at first."""

    place: Path
    name: str
    head: str
    work: str

    def save(self, mark: Path) -> None:
        said = {"place": str(self.place), "name": self.name, "head": self.head, "work": self.work}
        new = mark.with_suffix(".new")
        new.write_text(json.dumps(said), encoding="utf-8")
        new.replace(mark)


def tree_at(mark: Path) -> BranchTree | None:
    try:
        said = read_local_note(mark, place=str, **dict.fromkeys(("name", "head", "work"), (str, type(None))))
    except (OSError, ValueError):
        return None
    return BranchTree(Path(said["place"]), said["name"], said["head"], said["work"])


def desk_at(desk: Desk, place: Path) -> Desk:
    """Return a desk with the settings of this one, in another working tree of the repository."""
    repo = discover(place, without_place(dict(desk.settings.env)))
    return Desk(repo, desk.settings, Refs(repo), desk.clock, desk.bulk, desk.entropy, desk.progress)


@dataclass
class BranchTrees:
    """The trees of one `parallel`: `path` is the id of its line, `count` how many branches it has."""

    engine: Engine
    path: str
    above: Branch
    count: int
    line: Branch = field(init=False)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.line = Branch(self.path, above=self.above)
        self.desk = self.engine.desk
        self.known: Mapping[str, Any] | None = None
        self.host = ""
        """Where the branches went on last, if that was in another clone: what is in trees of theirs here is not what is so."""
        self.brought: Mapping[str, Mapping[str, str]] = {}
        """By their lines, what their trees had when the run was let go there."""
        self.kept_as = ""
        self.engine.trees.append(self.as_they_are)
        if self.are_begun and not self.engine.held.recorded:
            self.look_elsewhere()

    @contextmanager
    def in_line(self) -> Iterator[None]:
        """Steps that belong to all branches together, and to none of them."""
        token = BRANCH.set(self.line)
        try:
            yield
        finally:
            BRANCH.reset(token)

    # making

    @property
    def folder(self) -> Path:
        found = folder_of(self.desk, self.engine.run_id) / "trees" / file_name(self.path.encode())
        found.mkdir(parents=True, exist_ok=True, mode=0o700)
        return found

    def mark(self, which: object) -> Path:
        return self.folder / f"{which}.json"

    def keep(self, word: str, commit: str) -> None:
        self.desk.refs.update(
            [RefMove(f"{self.kept}{word}", commit, self.desk.refs.get(f"{self.kept}{word}"))]
        )

    @property
    def kept(self) -> str:
        return f"{KEPT}{self.engine.run_id}/{file_name(self.path.encode())}/"

    def base(self) -> Mapping[str, Any]:
        """Return the commits that the branches begin with. They are taken once, by the first branch that needs a tree."""
        with self.engine.turn, self.in_line():
            if self.known is None:
                self.settle_above()
                self.engine.perform("trees", "", lambda _: self.take(), brief=True)
                self.known = self.base_of_record()
            if self.known["head"] and (self.host or not self.mark("base").exists()):
                raise self.elsewhere()
            return self.known

    def settle_above(self) -> None:
        """Branches of a branch begin in its tree, and are joined there."""
        token = BRANCH.set(self.above)
        try:
            self.engine.settle()
            self.desk = self.engine.desk
        finally:
            BRANCH.reset(token)

    def take(self) -> dict[str, Any]:
        if self.desk.repo.top is None:
            return {"head": ""}
        taken = take_work(self.desk, AskWishes())
        if not taken.base:
            return {"head": ""}
        if taken.operation:
            raise Conflict(
                f"{self.desk.repo.place} is in the middle of a {taken.operation}, and branches begin where it stands",
                hint=f"finish it: git {taken.operation} --continue",
            )
        self.keep("base", taken.work)
        self.mark("base").write_text("{}", encoding="utf-8")
        return {
            "head": taken.base,
            "staged": taken.staged,
            "work": taken.work,
            "branch": branch_of(self.desk, taken),
            "host": host_name(),
            "at": self.desk.at,
        }

    # gone on with elsewhere

    def as_they_are(self) -> list[dict[str, str]]:
        """Return the present commits of the branches' trees, and the run's own, for whoever goes on in another clone."""
        if not self.are_begun or self.host or not self.mark("base").exists():
            return []
        base, found = self.base_of_record(), []
        for number in range(self.count):
            known = tree_at(self.mark(number))
            if known is not None and known.place.is_dir():
                taken = taken_at(desk_at(self.desk, known.place))
                head = taken.base or str(base["head"])
                line = {"line": f"{self.path}/{number}", "head": head}
                found.append({**line, "staged": taken.staged, "work": taken.work})
        own = {key: str(base[key]) for key in ("head", "staged", "work")}
        return [{"line": self.path, **own}, *found] if base["head"] else []

    def look_elsewhere(self) -> None:
        """Unless the branches are merged, find out which other clone went on with them last, and what it left."""
        run, below = self.engine.held.run, f"{self.path}/"
        merge = run.steps.get(f"{below}merge#1")
        if (merge is not None and merge.is_over) or not self.base_of_record()["head"]:
            return
        claim, holder, rest = None, None, None
        for entry in run.events:
            event = entry.event
            if event.name == "claimed":
                claim = entry
            elif event.name in OF_A_STEP and f"{event.said['step']}/".startswith(below):
                holder, rest = claim, None
            elif event.name in RESTS and any(one["line"] == self.path for one in event.said.get("trees", ())):
                rest = event
        if holder is None or holder.commit in claims_here(self.desk, run.id):
            return
        self.host = str(holder.event.said["claim"].get("host") or "the clone that went on with it")
        if rest is not None:
            self.brought = {one["line"]: one for one in rest.said["trees"]}
            self.kept_as = rest.text("work")

    def bring(self) -> None:
        """Make the trees as they were elsewhere when the run was let go there."""
        if not self.brought or not self.is_here():
            return
        self.settle_above()
        base = self.base_of_record()
        self.stand_at(base)
        for number in range(self.count):
            left, said = tree_at(self.mark(number)), self.brought.get(f"{self.path}/{number}")
            if left is not None:
                self.set_aside(number, left)
            if said is not None:
                name = self.branch_name(number)
                self.made(number, name, said["head"], said["staged"], said["work"], base, trusted=False)
        self.keep("base", str(base["work"]))
        self.mark("base").write_text("{}", encoding="utf-8")
        self.brought, self.host = {}, ""

    def is_here(self) -> bool:
        """Return whether the commits of the trees are here. Published ones came with the journal."""
        return self.desk.repo.git.ok("cat-file", "-e", f"{self.kept_as}^{{commit}}")

    def stand_at(self, base: Mapping[str, Any]) -> None:
        """The run's own tree as the branches began with it: they are joined there."""
        stalled = stand_at(
            self.desk.repo, str(base["head"]), str(base["work"]), self.engine.run_id, later=False
        )
        if stalled is not None:
            raise self.engine.broken_by(stalled)

    def set_aside(self, number: int, left: BranchTree) -> None:
        """A tree that the branch had here before it went on elsewhere. What nobody else has of it stays, on a Git branch."""
        kept = [
            one
            for entry in self.engine.held.run.events
            for one in entry.event.said.get("trees", ())
            if one["line"] == f"{self.path}/{number}"
        ]
        taken = taken_at(desk_at(self.desk, left.place)) if left.place.is_dir() else None
        known = taken is None or any(
            one["head"] == taken.base and same_tree(self.desk, one["work"], taken.work) for one in kept
        )
        told = put_away(self.desk, self.mark(number), left, keep=not known)
        ref = f"refs/heads/{left.name}"
        tip = self.desk.refs.get(ref)
        if told and tip is not None:
            self.engine.say(f"{told}-left")
            before = self.desk.refs.get(f"{ref}-left")
            self.desk.refs.update([RefMove(f"{ref}-left", tip, before), RefMove(ref, None, tip)])

    def elsewhere(self) -> BaseException:
        host = self.host or (self.known or {}).get("host", "the machine that began it")
        return self.engine.broken_by(
            RunStalled(
                f"needs {host}: the working trees of {self.path} are there{', and were not published' if self.brought else ''}",
                hint=f"on {host}: git gate resume {self.engine.run_id[:6]}",
            )
        )

    def line_of(self, number: int) -> Branch:
        """A branch, which gets its tree when it needs one; at once where it has one."""
        branch = Branch(f"{self.path}/{number}", above=self.above)
        self.bring()
        known = tree_at(self.mark(number)) if not self.host else None
        if known is not None and known.place.is_dir():
            branch.desk = desk_at(self.desk, known.place)
        else:
            branch.settle = lambda: self.settle(branch, number)
        return branch

    def settle(self, branch: Branch, number: int) -> None:
        """Make its tree. One after the other: git gives up over a tree that another git just makes."""
        with self.engine.turn:
            base = self.base()
            if not base[
                "head"
            ]:  # a repository without a commit, or without files: there is one place for all
                return
            made = self.made(
                number, self.branch_name(number), base["head"], base["staged"], base["work"], base
            )
            branch.desk = desk_at(self.desk, made.place)

    def branch_name(self, number: int) -> str:
        return f"{BRANCHES}{self.engine.run_id}/{branch_name_part(self.path)}-{number}"

    def made(
        self,
        which: object,
        name: str,
        head: str,
        staged: str,
        work: str,
        base: Mapping[str, Any],
        *,
        trusted: bool = True,
    ) -> BranchTree:
        """A tree that was made in part is made anew: nobody has worked in it before its mark is there."""
        known = tree_at(self.mark(which))
        if known is not None and known.place.is_dir():
            return known
        place = worktrees(self.desk) / f"run-{self.engine.run_id[:10]}-{file_name(name.encode())[:8]}"
        if place.exists():
            remove_worktree(self.desk.repo, place, force=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        self.desk.repo.git.run("worktree", "prune")
        if (old := self.desk.refs.get(f"refs/heads/{name}")) not in (None, head):
            self.desk.refs.update([RefMove(f"refs/heads/{name}", None, old)])
        tree = open_worktree(
            self.desk.repo, base=head, staged=staged, work=work, directory=place, branch=name, fallback_branch=name, trusted=trusted
        )  # fmt: skip
        found = BranchTree(tree.directory, name, str(base["head"]), str(base["work"]))
        found.save(self.mark(which))
        return found

    # joining

    def join(self, came: Sequence[object]) -> None:
        """Merge what the branches did, in their order. What one did that failed stays on its Git branch."""
        passing = any(isinstance(one, BaseException) and not isinstance(one, Exception) for one in came)
        order = self.engine.held.run.order.get(self.path, [])
        if passing or not self.are_begun:
            return
        with self.in_line():
            base, merge = self.base_of_record(), self.engine.held.run.steps.get(f"{self.path}/merge#1")
            if merge is not None and merge.is_over:
                self.line.at = len(order)
            elif base["head"]:
                self.merge(self.base(), came)
            if base["head"]:
                self.clean(came)

    @property
    def are_begun(self) -> bool:
        """Return whether any branch had a tree, in this process or in an earlier one."""
        return f"{self.path}/trees#1" in self.engine.held.run.steps

    def base_of_record(self) -> Mapping[str, Any]:
        return taken_by(self.engine.held.run.steps[f"{self.path}/trees#1"]) or {"head": ""}

    def merge(self, base: Mapping[str, Any], came: Sequence[object]) -> None:
        head, work = str(base["head"]), str(base["work"])
        works = {number: self.work_of(number) for number in range(self.count)}
        for number, did in works.items():
            if did["head"] and not isinstance(came[number], BaseException):
                work = self.merged(base, number, work, did["work"], head)
                head = self.joined(base, number, head, did["head"], work)
        tree = commit_of(self.desk.repo.git, work, head)
        self.keep("merged", tree)

        def act(doing: Any) -> None:
            wanted = doing.again.begun if doing.again is not None else None
            to, after = (wanted.text("head"), wanted.text("work")) if wanted is not None else (head, tree)
            with self.engine.turn:
                changed = bring_in(
                    self.desk.repo, before=base["work"], after=after, head=base["head"], new_head=to
                )
            if changed:
                raise self.engine.broken_by(
                    RunStalled(
                        f"the branches of {self.path} cannot be brought into {self.desk.repo.place}: "
                        f"changed there meanwhile: {', '.join(changed[:5])}",
                        hint=f"put those changes away, then: git gate resume {self.engine.run_id[:6]}",
                    )
                )

        self.engine.perform("merge", "", act, head=head, work=tree)

    def work_of(self, number: int) -> Mapping[str, Any]:
        """Record and return the work of a branch: its last commit, and a commit of what it left uncommitted."""

        def act(_doing: object) -> dict[str, str]:
            known = tree_at(self.mark(number))
            if known is None:
                return {"head": "", "work": ""}
            taken = taken_at(desk_at(self.desk, known.place))
            self.keep(str(number), taken.work)
            return {"head": taken.base or "", "work": taken.work}

        found = self.engine.perform("work", str(number), act, brief=True)
        return found if isinstance(found, dict) else {"head": "", "work": ""}

    def joined(self, base: Mapping[str, Any], number: int, head: str, theirs: str, work: str) -> str:
        """The commits of this branch and of those before it. Those of the run's own branch stay where they are."""
        who = self.desk.settings.identity() or NOBODY
        name, _, email = who.rpartition(" <")
        date = f"@{base['at']} +0000"
        said = {"NAME": name, "EMAIL": email.removesuffix(">"), "DATE": date}
        env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in said.items()}
        message = f"Join branch {number} of {self.path} of run {self.engine.run_id}"
        return merge_commits(self.desk.repo.git, head, theirs, work, message, env)

    # conflicts

    def merged(self, base: Mapping[str, Any], number: int, ours: str, theirs: str, head: str) -> str:
        """The work so far and that of this branch. Where both changed the same lines a person says what is right."""
        git = self.desk.repo.git
        found = merge_trees(git, base["work"], ours, theirs)
        if not found.conflicting:
            return found.tree
        while True:
            said = self.asked(base, number, ours, theirs, found, head)
            if said == "stop":
                raise self.engine.broken_by(RunStuck(f"the branches of {self.path} were not joined"))
            if said != "resolved":
                side = ours if said == "keep first" else theirs
                return with_paths_of(self.desk.repo, found.tree, side, found.conflicting)
            tree = self.engine.perform("resolved", str(number), lambda _: self.resolved(found), brief=True)
            if tree:
                return str(tree)

    def asked(
        self, base: Mapping[str, Any], number: int, ours: str, theirs: str, found: MergedWork, head: str
    ) -> str:
        """A gate like any other, with both diffs. Only a person answers it."""
        git, paths = self.desk.repo.git, [path.decode("utf-8", "replace") for path in found.conflicting]
        name = f"{BRANCHES}{self.engine.run_id}/{branch_name_part(self.path)}-join"
        marked = commit_of(git, found.tree, head)
        with self.engine.turn:
            self.keep("marked", marked)
            place = self.made("join", name, head, head, marked, {"head": head, "work": marked}).place
        listed = ", ".join(paths[:8]) + (" …" if len(paths) > 8 else "")
        asked = question(
            f"Branch {number} of {self.path} changed the same lines as the branches before it: {listed}. What is right?",
            type="choice",
            options=[option_of(f"{label}={meaning}") for label, meaning in CHOICES.items()],
            other=False,
        )
        diffs = {
            f"{word}.diff": git.out("diff", base["work"], side, "--", *paths)[:MOST_DIFF]
            for word, side in (("first", ours), ("second", theirs))
        }
        context = (
            f"Both changes are attached. To resolve it by hand, edit these files in {place} "
            f"on {host_name()}, where the conflict is marked in them; then answer: resolved"
        )
        draft = Draft((asked,), context=context, title=f"Join branch {number} of {self.path}")
        gate = self.engine.ask(
            draft, AskWishes(work=False), diffs, kind="conflict", name=str(number), by_handler=False
        )
        if gate.answer is None:
            raise self.engine.broken_by(RunStuck(f"nobody answered gate {gate.id}"))
        return str(gate.answer.answer.values["answer"])

    def resolved(self, found: MergedWork) -> str:
        """The tree as a person left it; nothing where a file of it still has the marks of the conflict."""
        known = tree_at(self.mark("join"))
        if known is None:
            raise self.elsewhere()
        taken = taken_at(desk_at(self.desk, known.place))
        git = self.desk.repo.git
        for path in found.conflicting:
            said = git.run(
                "cat-file", "blob", f"{taken.work}:{path.decode('utf-8', 'surrogateescape')}", check=False
            )
            if said.code == 0 and MARKS.search(said.out):
                self.engine.say(
                    f"{known.place}: {path.decode('utf-8', 'replace')} has the marks of the conflict"
                )
                return ""
        return git.text("rev-parse", f"{taken.work}^{{tree}}")

    # afterwards

    def clean(self, came: Sequence[object]) -> None:
        """The trees are removed, once what was done in them is elsewhere; so are their Git branches, where that is joined."""
        for which in (*range(self.count), "join"):
            known = tree_at(self.mark(which))
            if known is None:
                continue
            with self.engine.turn:
                failed = isinstance(which, int) and isinstance(came[which], BaseException)
                told = put_away(self.desk, self.mark(which), known, keep=failed)
            if told:
                self.engine.say(told)
        with self.engine.turn:
            drop_kept(self.desk, self.kept)


def branch_name_part(path: str) -> str:
    """A line's id as a part of a Git branch's name."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")[:40]
    return f"{words}-{file_name(path.encode())[:6]}"


def stand_at(repo: Repository, head: str, work: str, run: str, *, later: bool) -> RunStalled | None:
    """Bring a working tree to where the run was, or say why not. `later`: it may be ahead of that. Nobody's changes are lost."""
    git, see = repo.git, f"git gate resume {run[:6]}"
    before, at = head, Refs(repo).get(HEAD) or ""
    to = at if later and is_ancestor(git, head, at) else head
    if to == head:
        before = at
        if head_branch(git) is not None and not is_ancestor(git, at, head):
            return RunStalled(
                f"run {run} stood at {head[:10]}, and {repo.place} does not lead there",
                hint=f"git switch -c NAME {head[:10]}   and then: {see}",
            )
    changed = bring_in(repo, before=before, after=work, head=at, new_head=to)
    if not changed:
        return None
    return RunStalled(
        f"run {run} stood with files that are others in {repo.place}: {', '.join(changed[:5])}",
        hint=f"put those changes away: git stash   and then: {see}",
    )


def own_line(desk: Desk) -> list[dict[str, str]]:
    """Return the present commits of the run's own tree, as a list of one entry; empty where it has none."""
    if desk.repo.top is None:
        return []
    tie_commits(desk)  # before they are named
    with own_files(desk):
        taken = take_work(desk, AskWishes())
    said = {"head": taken.base or "", "staged": taken.staged, "work": taken.work}
    branch = branch_of(desk, taken)
    return [{"line": OWN, **said, **({"branch": branch} if branch else {})}] if all(said.values()) else []


def branch_of(desk: Desk, taken: Snapshot) -> str:
    """The branch that what is done here is for, whatever branch the tree itself was put on."""
    work = Work(taken.base or None, taken.staged, taken.work, taken.branch)
    return on_its_branch(desk, work).branch or ""


def deliver_committed(desk: Desk, held: HeldRun) -> None:
    """Bring the commits of a tree that was made for the run to their branch. If that fails, the journal says why."""
    try:
        said = deliver_run(desk)
    except GateError as failed:
        said = f"what was committed stays where the run went on: {failed.message}"
    if said and all(entry.event.text("text") != said for entry in held.run.events):
        held.append("noted", text=said)


def left_elsewhere(desk: Desk, held: HeldRun, say: Callable[[str], None]) -> RunStalled | None:
    """Bring the tree here to where another clone left the run, if one went on with it last. Return what prevents that."""
    run = held.run
    claims = [entry for entry in run.events if entry.event.name == "claimed"][:-1]
    rest = next((entry.event for entry in reversed(run.events) if entry.event.name in RESTS), None)
    own = next((one for one in rest.said.get("trees", ()) if one["line"] == OWN), None) if rest else None
    if served_in(desk.repo) is not None:
        return None  # whoever made this tree has seen to that
    if not claims or rest is None or own is None or claims[-1].commit in claims_here(desk, run.id):
        return None
    if desk.repo.top is None:
        return None
    if not desk.repo.git.ok("cat-file", "-e", f"{rest.text('work')}^{{commit}}"):
        host = str(claims[-1].event.said["claim"].get("host") or "the clone that it was in")
        say(
            f"what run {run.id} did is on {host}, and was not published: git gate init, and git gate sync, there"
        )
        return None
    return stand_at(desk.repo, own["head"], own["work"], run.id, later=True)


def same_tree(desk: Desk, one: str, other: str) -> bool:
    git = desk.repo.git
    trees = [
        git.run("rev-parse", "-q", "--verify", f"{commit}^{{tree}}", check=False).out
        for commit in (one, other)
    ]
    return trees[0] == trees[1] != b""


def taken_at(desk: Desk) -> Snapshot:
    try:
        with own_files(desk):
            return take_work(desk, AskWishes())
    finally:
        desk.close()


def put_away(desk: Desk, mark: Path, known: BranchTree, *, keep: bool) -> str:
    """Remove a tree. `keep`: what was done in it stays on its Git branch, if anything was. What to tell of it."""
    told = ""
    ref = f"refs/heads/{known.name}"
    if known.place.is_dir():
        taken = taken_at(desk_at(desk, known.place))
        if taken.left_out:
            names = ", ".join(item.path for item in taken.left_out[:5])
            return f"{known.place} stays: Git does not keep {names}"
        work = taken.work
    else:
        work = desk.refs.get(ref) or known.head
    git = desk.repo.git
    changed = work != known.head and git.text("rev-parse", f"{work}^{{tree}}") != git.text(
        "rev-parse", f"{known.work}^{{tree}}"
    )
    if keep and changed:
        desk.refs.update([RefMove(ref, work, desk.refs.get(ref))])
        told = f"what {known.name} did is kept: git diff {known.head[:10]} {known.name}"
    if known.place.is_dir():
        remove_worktree(desk.repo, known.place, force=True)
    if not told and (tip := desk.refs.get(ref)) is not None:
        desk.refs.update([RefMove(ref, None, tip)])
    mark.unlink(missing_ok=True)
    return told


def drop_kept(desk: Desk, folder: str) -> None:
    desk.refs.update([RefMove(ref, None, tip) for ref, tip in desk.refs.under(folder).items()])


def keep_all(desk: Desk, run: str) -> list[str]:
    """At the end of a run whose branches were not joined: what each did is on its Git branch, and no tree is left."""
    told = []
    for mark in sorted((folder_of(desk, run) / "trees").glob("*/*.json")):
        known = tree_at(mark) if mark.name != "base.json" else None
        if known is not None and (words := put_away(desk, mark, known, keep=True)):
            told.append(words)
    drop_kept(desk, f"{KEPT}{run}/")
    return told
