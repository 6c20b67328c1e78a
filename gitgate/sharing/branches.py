"""Sharing: the branch that an agent worked on, on its way to the shared repository; by fast-forward only. What others brought
there meanwhile is merged, or the agent's commits are on a branch of their own.

What is pushed here is pushed with a person's rights, or a job's token, which the agent itself may not have.

Where git was killed while it moved refs, the locks of those that were still to come are left, and each says what its ref was
to become: an outcome that was recorded without its branch is brought to its end, the others are free again. A lock is made
only after every check and hook has agreed, and while it stands nobody else moves its ref: what it says can be done later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from ..config import FILE
from ..context import Desk
from ..context.targets import may_publish_work, remote_of, summaries
from ..document import dataclass, replace
from ..errors import BrokenPolicy, Failure, GateError, LostRace
from ..exchange.syncing import push_moves
from ..gates.work import followed, note_served, served_in
from ..policy import SIGNERS, load_book, policy_remote, protected_refs
from ..policy.project import configures
from ..store.git.refs import BESIDE, OPEN, CutOff
from ..store.records import NOBODY
from ..store.remote import RefMove
from ..store.work import between, commits, printable
from ..text import counted

HEADS = "refs/heads/"
SAID = 3  # so many files are named


@dataclass(frozen=True)
class Pushed:
    """Push of an agent's commits: the branch that got them.

    `why`: the reason why that is another branch than the agent was on, if it is. `how`: how the commits came to
    the branch, where that was by more than a fast-forward.
    """

    branch: str
    why: str = ""
    how: str = ""
    moved: bool = False
    """True where the reason is what others did to the branch meanwhile."""


@dataclass(frozen=True)
class Gained:
    """Branch of an agent and its last commit. `began`: where the branch was; `begun`: the branch that the agent
    was put on.
    """

    branch: str
    tip: str
    began: str
    begun: str


def gained_here(desk: Desk, remote: str) -> Gained:
    """Return the branch of this checkout and its last commit. It began where this clone last saw the remote's
    branch.
    """
    branch = head_branch(desk)
    began = desk.refs.get(f"refs/remotes/{remote}/{branch}") if branch else None
    tip = desk.refs.get("HEAD")
    return Gained(branch, tip or "", began or "", desk.settings.text("jobBranch"))


def publish_branch(desk: Desk, made: Gained | None = None) -> Pushed | None:
    """Push what a branch gained, by default that of this checkout; None where there is nothing to push."""
    remote = remote_of(desk)
    if remote is None or not may_publish_work(desk):
        return None
    made = made or gained_here(desk, remote)
    branch, tip, began = made.branch, made.tip, made.began or None
    if not tip or not branch:
        return None
    there = tip_there(desk, remote, branch)
    if there == tip or (there is not None and commits.is_ancestor(desk.repo.git, tip, there)):
        return None
    new, how, why = tip, "", ""
    if there is None and began is not None:
        why = f"{branch} was deleted meanwhile, and is not made again"
    elif there is not None and not commits.is_ancestor(desk.repo.git, there, tip):
        joined = join_commits(desk, branch, there, gained(desk, began, tip), began)
        new, how, why = (joined.commits or (tip,))[-1], joined.how, joined.why
    moved = bool(why)
    why = why or withheld(desk, branch, there, new, begun=made.begun)
    if why:
        branch, new, how = f"gate/{tip[:10]}", tip, ""
        there = tip_there(desk, remote, branch)
        if there == tip:
            return None
    for fate in push_moves(desk, remote, [RefMove(HEADS + branch, new, there)]):
        if not fate.ok:
            raise Failure(
                f"{branch} was not pushed to {remote}: {fate.reason}", hint=f"git push {remote} {branch}"
            )
    return Pushed(branch, why, how, moved)


TRIES = 4


def deliver_run(desk: Desk) -> str:
    """Bring the commits made in a run's own worktree to the run's branch, where this desk is in such a
    worktree.

    The branch is moved by fast-forward alone. Else the commits stay on the branch that serves the run, and the
    text that is returned says why.
    """
    served = served_in(desk.repo)
    tip = desk.refs.get("HEAD") or ""
    if served is None or followed(desk) is not None or tip in ("", served.began):
        return ""  # what came of an answer is delivered with the gate's outcome
    remote, why = remote_of(desk), "" if served.branch else "the run was on no branch"
    if remote is not None and not may_publish_work(desk):
        return f"{tip[:10]} stays here, on {served.own}: git gate init permits that work is published"
    for _ in range(TRIES):
        branch = served.own if why else served.branch
        there = tip_of(desk, remote, branch)
        if there != tip and not (there and commits.is_ancestor(desk.repo.git, tip, there)):
            if not why:
                astray = there is not None and not commits.is_ancestor(desk.repo.git, there, tip)
                why = f"{branch} went another way meanwhile" if astray else ""
                why = why or withheld(desk, branch, there, tip, begun=branch)
                if why:
                    continue
            refused = move_branch(desk, remote, RefMove(HEADS + branch, tip, there))
            if refused is not None:
                why = why or refused
                continue
        note_served(desk.repo, replace(served, began=tip))
        return f"{tip[:10]} is on {branch}: {why}" if why else ""
    return f"{tip[:10]} stays here, on {served.own}: {why or 'its branch kept moving'}"


def tip_of(desk: Desk, remote: str | None, branch: str) -> str | None:
    return desk.refs.get(HEADS + branch) if remote is None else tip_there(desk, remote, branch)


def move_branch(desk: Desk, remote: str | None, move: RefMove) -> str | None:
    """Move a branch, on the remote or here, and return None where it was moved.

    Else return why the shared repository refuses it, or an empty text where somebody else moved the branch
    first.
    """
    if remote is None:
        try:
            desk.refs.update([move])
        except LostRace:
            return ""
        return None
    (fate,) = push_moves(desk, remote, [move])
    if fate.ok:
        return None
    return f"{remote} {fate.reason}" if fate.refused else ""


def gained(desk: Desk, began: str | None, tip: str) -> list[str]:
    """Return the commits of `tip` since `began`, oldest first; all of them where `began` is not known."""
    since = (f"^{began}",) if began else ()
    return desk.repo.git.text("rev-list", "--topo-order", "--reverse", tip, *since).split()


@dataclass(frozen=True)
class Joined:
    """Commits of an agent, joined with what others brought to their branch. `how` they were joined, else `why`
    they are not.
    """

    commits: tuple[str, ...] = ()
    how: str = ""
    why: str = ""


def join_commits(
    desk: Desk, branch: str, there: str, made: Sequence[str], base: str | None, trailers: str = ""
) -> Joined:
    """Join an agent's commits with a branch that is at `there` and was at `base` when the agent began.

    They are merged where the branch only went on: the commits stay what they are, so that a later question is
    based on one of them. They are replayed where the branch was rewritten, since a merge would bring back all
    that was taken out. They are not joined where the branch is another one than before a rebase.
    """
    git = desk.repo.git
    if base is None:
        return Joined(why=f"{branch} went another way meanwhile")
    if commits.is_ancestor(git, base, there):
        count = counted(int(git.text("rev-list", "--count", f"{base}..{there}")), "commit")
        message = f"Merge what reached {branch} meanwhile{trailers and chr(10) * 2 + trailers}"
        who = desk.settings.identity() or NOBODY
        tip = commits.write_merge(git, there, made[-1], message, who, desk.at)
        if tip is not None:
            return Joined((*made, tip), f"merged with {count} that reached {branch} meanwhile")
        clashes = commits.conflicts(git, there, made[-1])
        more = f" and {len(clashes) - SAID} more" if len(clashes) > SAID else ""
        named = ", ".join(map(printable, (clash.encode() for clash in clashes[:SAID])))
        return Joined(why=f"{branch} went on by {count} meanwhile, and conflicts in {named}{more}")
    replayed = commits.replay(git, made, there) if commits.only_replayed(git, base, there) else None
    if replayed:
        return Joined(tuple(replayed), f"rebased onto {branch}, which was rewritten meanwhile")
    return Joined(why=f"{branch} was rewritten meanwhile")


def head_branch(desk: Desk) -> str:
    """Return the branch of this checkout; empty where it is on none."""
    said = desk.repo.git.run("symbolic-ref", "-q", "HEAD", check=False).out.decode("utf-8", "replace").strip()
    return said.removeprefix(HEADS) if said.startswith(HEADS) else ""


def tip_there(desk: Desk, remote: str, branch: str) -> str | None:
    from ..store.remote.fetch import fetch_branch

    return fetch_branch(desk.repo, remote, branch, timeout=desk.network_timeout)


def withheld(desk: Desk, branch: str, there: str | None, tip: str, *, begun: str) -> str:
    """Return why an agent's commits are not brought to a branch that is at `there`; empty where they may be.

    The agent was put on the branch `begun`, and no other branch that exists is moved for it. The protected
    branch has the files that say who decides and what the project's agents may do: commits that change them are
    brought there by people alone.
    """
    if there is None:
        return ""
    if begun and branch != begun:
        return f"the agent was put on {begun}, and {branch} is not moved for it"
    if branch != protected_branch(desk):
        return ""
    changed = between(desk.repo, there, tip)
    if changed is None:
        return f"what it changed on {branch} cannot be told"
    deciding = {FILE, signers_path(desk)}
    paths = [path.encode("utf-8", "surrogateescape") for path in changed]
    named = [path for path in paths if configures(path) or printable(path) in deciding]
    more = f" and {len(named) - SAID} more" if len(named) > SAID else ""
    listed = ", ".join(map(printable, named[:SAID]))
    return f"on {branch} people alone change {listed}{more}" if named else ""


def signers_path(desk: Desk) -> str:
    """Return the path of the file with the keys whose signatures count."""
    try:
        return load_book(desk).signers_path
    except BrokenPolicy:
        return SIGNERS


def protected_branch(desk: Desk) -> str:
    """Return the name of the branch that the policy is read from; empty where this clone has none."""
    for ref in protected_refs(desk):
        full = desk.refs.target(ref) if desk.refs.get(ref) is not None else ""
        if full.startswith(HEADS):
            return full.removeprefix(HEADS)
        if full.startswith("refs/remotes/"):
            return full.removeprefix("refs/remotes/").removeprefix(f"{policy_remote(desk)}/")
    return ""


OURS = "refs/hitl/"
AGE = 600.0
"""Age in seconds; no lock that somebody still holds is so old."""


def cut_off(desk: Desk) -> list[CutOff]:
    """List the locks left by a killed git that block the refs of gates, and are older than any move takes.

    Records come first, since they name the branches.
    """
    found = [lock for lock in desk.refs.cut_off(desk.clock() - AGE) if concerns_gates(desk, lock)]
    return sorted(found, key=lambda lock: not lock.ref.startswith(OPEN))


def concerns_gates(desk: Desk, lock: CutOff) -> bool:
    if lock.ref.startswith(HEADS):
        return bool(outcome_for(desk, lock))
    return lock.ref.startswith(OURS) or lock.ref in BESIDE


def finish_cut_off(desk: Desk, say: Callable[[str], None]) -> list[str]:
    """Finish the moves that are recorded and free the other locks. Return the refs of these locks."""
    done: list[str] = []
    # A record that comes to its end here may be what names a branch.
    for _ in range(2):
        for lock in cut_off(desk):
            with suppress(OSError, GateError):
                say(finish_lock(desk, lock))
                done.append(lock.ref)
    return done


def finish_lock(desk: Desk, lock: CutOff) -> str:
    gate = outcome_for(desk, lock) if lock.ref.startswith(HEADS) else ""
    if gate or record_goes_on(desk, lock):
        desk.refs.finish(lock)
        return f"{lock.ref} is at {str(lock.new)[:10]} now: git was killed before it got there{gate and f' (gate {gate})'}"
    desk.refs.give_up(lock)
    return f"{lock.ref} can be moved again: a git that was killed had left it locked"


def record_goes_on(desk: Desk, lock: CutOff) -> bool:
    """Return whether a lock is of an open gate's record, and would move that record on from where it is."""
    if not lock.ref.startswith(OPEN) or lock.new is None:
        return False
    tip = desk.refs.get(lock.ref)
    try:
        gate = desk.records.load(lock.ref.removeprefix(OPEN), lock.new)
    except GateError:
        return False
    return tip != lock.new and any(entry.commit == tip for entry in gate.history)


def outcome_for(desk: Desk, lock: CutOff) -> str:
    """Return the gate whose outcome says that this branch is at the commit in its lock; empty where no outcome
    says so.
    """
    for summary in summaries(desk):
        if summary.state != "resumed":
            continue
        with suppress(GateError):
            said = desk.records.load(summary.id, summary.tip).outcome
            if said is not None and HEADS + said.branch == lock.ref and said.commits[-1:] == (lock.new,):
                return summary.id
    return ""
