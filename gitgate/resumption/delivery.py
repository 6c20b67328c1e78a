"""Resumption: what the agent made, on its way to its branch: by fast-forward, in a job also merged with what others brought
there; or on a branch of its own that is named.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from .. import model
from ..acts.needs import publish_sessions, save_sessions
from ..claims import BranchMoved, HeldClaim, claim_outcome, finish
from ..context import Desk
from ..context.targets import may_publish_work
from ..document import dataclass, field, replace
from ..errors import GateError, LostRace, PushRefused
from ..exchange.syncing import publish, push_moves
from ..gates.history import keep_beside
from ..gates.recording import reload
from ..gates.work import before, bring_work, work_of
from ..model import ENDED
from ..model.gate import Gate, Remark, SessionRef
from ..questions.prompts import LATE, trailers
from ..sharing.branches import Joined, join_commits, tip_there, withheld
from ..store.git.refs import OPEN
from ..store.records import NOBODY, Signature
from ..store.remote import RefMove
from ..store.work import commits
from ..store.work.restore import list_worktrees
from ..text import counted
from . import Course, Situation, remove_place

HEADS = "refs/heads/"
TRIES = 4


@dataclass(frozen=True)
class Made:
    """The agent's commits, oldest first, the branch that they are on here, and the one that they are for."""

    commits: tuple[str, ...] = ()
    branch: str | None = None
    wanted: str | None = None
    course: Course = field(default_factory=Course)

    @property
    def tip(self) -> str:
        return self.commits[-1]


@dataclass(frozen=True)
class Target:
    """Destination of the commits: a branch, and the moves that bring them there, if any are needed."""

    branch: str
    moves: tuple[RefMove, ...] = ()
    why: str = ""
    commits: tuple[str, ...] = ()
    """As they are there, where they had to be joined with others'."""


@dataclass(frozen=True)
class Told:
    """Report of an agent's end: its last words, its denied calls, and which of its work is not committed, and where."""

    said: str = ""
    denied: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    place: str = ""


NOTHING_TOLD = Told()


@dataclass(frozen=True)
class Delivered:
    """The outcome as it was recorded, and where the commits went."""

    gate: Gate
    target: Target
    commits: tuple[str, ...]


def gather(desk: Desk, held: HeldClaim, place: Situation, later: Sequence[Gate] = ()) -> Made:
    """Return the agent's commits, each with trailers that name the gate and who decided.

    Commits that a question of its own (`later`) stands on stay as they are, because that question names them.
    """
    there = place.there(desk)
    made = commits.made_since(there.git, before(held.gate, place.known))
    named = [gate.opened.work.base for gate in later if gate.opened.work.base]
    keep = set(commits.new_commits(there.git, named, place.known)) if named else set()
    done = commits.add_trailers(there.git, made, trailers(held.gate), keep) if made else []
    branch = commits.head_branch(there.git)
    begun = place.course.branch or work_of(desk, held.gate).branch
    return Made(tuple(done), branch, begun if branch in (place.branch, None) else branch, place.course)


def gather_named(desk: Desk, held: HeldClaim, later: Sequence[Gate], course: Course = Course()) -> Made:
    """Return the agent's commits where its directory is not here: those that its own questions (`later`) stand on."""
    gate = held.gate
    for one in later:
        with contextlib.suppress(GateError):
            bring_work(desk, one)
    named = [one.opened.work.base for one in later if one.opened.work.base]
    made = commits.new_commits(desk.repo.git, named, before(gate, commits.known_tips(desk.repo)))
    return Made(tuple(made), None, course.branch or work_of(desk, gate).branch, course)


def deliver(
    desk: Desk,
    held: HeldClaim,
    made: Made,
    *,
    log: str,
    remark: str = "",
    told: Told = NOTHING_TOLD,
    cause: str = ENDED,
) -> Delivered:
    """Record that the agent heard the answer, and bring its commits along in the same move."""
    own_only = False
    for _ in range(TRIES):
        target = aim(desk, held, made, own_only=own_only)
        said = claim_outcome(
            desk,
            held,
            "resumed",
            reason="; ".join(part for part in (remark, target.why) if part),
            log=log,
            branch=target.branch if made.commits else "",
            commits=target.commits or made.commits,
            cause=cause,
        )
        said = replace(
            said, **vars(told), meant=meant_branch(desk, held, made, target) if made.commits else ""
        )
        try:
            after = finish(desk, held, said, target.moves)
            return Delivered(after, target, target.commits or made.commits)
        except BranchMoved:
            continue
        except PushRefused as refused:
            if not target.moves:
                raise
            remark = "; ".join(part for part in (remark, f"{target.branch}: {refused.message}") if part)
            if own_only:
                made = replace(made, commits=())
            own_only = True
    said = claim_outcome(
        desk,
        held,
        "resumed",
        reason=f"{remark}; its branch kept moving",
        log=log,
        commits=made.commits,
        cause=cause,
    )
    return Delivered(finish(desk, held, replace(said, **vars(told))), Target(""), made.commits)


def meant_branch(desk: Desk, held: HeldClaim, made: Made, target: Target) -> str:
    """Return the branch that the commits were to go to, where they went to another one."""
    wanted = made.course.branch or work_of(desk, held.gate).branch or ""
    return wanted if wanted != target.branch else ""


def keep_late(desk: Desk, held: HeldClaim, made: Made, left: str) -> str:
    """Keep the work of an agent whose runner was cut off until another had taken over, and tell that runner.

    It moves neither the record's state nor the agent's branch. Its commits get a branch of their own, here and where
    the gate is shared.
    """
    host = held.said.host or "another machine"
    words = f"the agent on {host} was done after its runner had been cut off and another one had taken over"
    if not made.commits:
        return note_late(
            desk, held, f"{words}; it made no commits{f'; what it left is in {left} there' if left else ''}"
        )
    name = late_branch(desk, held, made)
    shared = False
    if held.remote is not None and may_publish_work(desk):
        with contextlib.suppress(GateError):
            shared = all(
                fate.ok for fate in push_moves(desk, held.remote, [RefMove(HEADS + name, made.tip, None)])
            )
    count = counted(len(made.commits), "commit")
    return note_late(
        desk, held, f"{words}; {count}, not merged: branch {name}{'' if shared else f' on {host}'}"
    )


def late_branch(desk: Desk, held: HeldClaim, made: Made) -> str:
    """Make a branch with these commits, under a name that nobody uses yet, and return the name."""
    name = f"gate/{held.gate.id}-{LATE}-{held.claim[:8]}"
    if desk.refs.get(HEADS + name) != made.tip:
        desk.refs.update([RefMove(HEADS + name, made.tip, desk.refs.get(HEADS + name))])
    return name


def note_late(desk: Desk, held: HeldClaim, words: str) -> str:
    """Record these words as a late remark, for people and for the runner that took over, even where the gate is over.

    For a gate that is archived they are kept next to its record.
    """
    with contextlib.suppress(GateError):
        by = Signature(NOBODY, desk.at)
        remark = Remark(at=desk.now, text=words, via=LATE)
        if desk.refs.get(OPEN + held.gate.id) is not None:
            publish(desk, with_late_remark(desk, held.gate, remark, by))
        else:
            said = desk.records.write_event(held.gate, "commented", remark, by)
            desk.records.objects.flush()
            keep_beside(desk, said.id, said.tip, held.remote)
    return words


def with_late_remark(desk: Desk, claimed: Gate, remark: Remark, by: Signature) -> Gate:
    """Record the remark on the gate, and return the gate with it.

    Where the gate takes no remarks any more, the remark is written on the gate as its runner had it, and repeated here.
    """
    for _ in range(TRIES):
        gate = reload(desk, claimed.id)
        if model.allows(gate.state, "commented"):
            after = desk.records.write_event(gate, "commented", remark, by)
        else:
            said = desk.records.write_event(claimed, "commented", remark, by)
            after = desk.records.repeat(gate, said.history[-1], by, said.tip)
        with contextlib.suppress(LostRace):
            desk.refs.update([RefMove(OPEN + gate.id, after.tip, gate.tip)])
            return after
    raise LostRace(f"gate {claimed.id} keeps being changed by others", hint=f"git gate show {claimed.id}")


def share_session(desk: Desk, ref: SessionRef) -> None:
    """Publish the conversation of an agent that asked again, as it ended.

    The agent's own hook pushes in the background, and what it left running ended with it. Where this push fails, the
    remote still has the conversation from when the agent asked.
    """
    with contextlib.suppress(GateError):
        publish_sessions(desk, save_sessions(desk, ref))


def aim(desk: Desk, held: HeldClaim, made: Made, *, own_only: bool) -> Target:
    """Return the destination of the commits: their branch, moved from where it is now."""
    here, course = made.branch or "", made.course
    if not made.commits:
        return Target(here)
    begun, wanted = course.branch or work_of(desk, held.gate).branch, made.wanted
    own = f"gate/{held.gate.id}"
    if held.remote is None:
        found = aim_here(desk, made, wanted, begun=begun or own)
        return found if found.branch else aim_at_own(desk, held, made, found.why)
    if not may_publish_work(desk):
        return Target(here)
    why = course.gone if wanted == begun else ""
    if wanted and not why and (wanted == own or not own_only):
        found = aim_at(desk, held, made, wanted, begun=begun or own)
        if found.branch:
            return found
        why = found.why
    found = aim_at_own(desk, held, made, why)
    return found if found.branch else Target(here, why=why)


def aim_at_own(desk: Desk, held: HeldClaim, made: Made, why: str) -> Target:
    """Return a branch named after the gate as the destination, for commits that no other branch can take."""
    own = f"gate/{held.gate.id}"
    for name in (own, *(f"{own}-{number}" for number in range(2, 10))):
        ref = HEADS + name
        tip = desk.refs.get(ref) if held.remote is None else tip_there(desk, held.remote, name)
        if tip == made.tip:
            return Target(name, why=why)
        if tip is None or commits.is_ancestor(desk.repo.git, tip, made.tip):
            return Target(name, (RefMove(ref, made.tip, tip),), why)
    return Target("", why=why)


def aim_at(desk: Desk, held: HeldClaim, made: Made, wanted: str, *, begun: str) -> Target:
    """Return the branch that the commits are meant for as their destination; no branch, and why, if it cannot be that."""
    tip = tip_there(desk, str(held.remote), wanted)
    if tip == made.tip:
        return Target(wanted)
    if tip is None and made.course.found and wanted == begun:
        return Target("", why=f"branch {wanted} was deleted meanwhile")
    joined = Joined(made.commits)
    if tip is not None and not commits.is_ancestor(desk.repo.git, tip, made.tip):
        if not made.course.joins:
            return Target("")
        lines = "\n".join(f"{name}: {value}" for name, value in trailers(held.gate))
        joined = join_commits(desk, wanted, tip, made.commits, work_of(desk, held.gate).base, lines)
    new = joined.commits[-1] if joined.commits else ""
    how = [part for part in (joined.how, made.course.note) if part]
    why = joined.why or withheld(desk, wanted, tip, new, begun=begun)
    return (
        Target("", why=why)
        if why
        else Target(wanted, (RefMove(HEADS + wanted, new, tip),), "; ".join(how), joined.commits)
    )


def aim_here(desk: Desk, made: Made, wanted: str | None, *, begun: str) -> Target:
    """Return the destination in a repository of its own: the agent's branch.

    Not so where somebody has that branch checked out, or where it went another way.
    """
    if wanted is None or wanted == made.branch:
        return Target(made.branch or "")
    tip = desk.refs.get(f"{HEADS}{wanted}")
    held = {tree.branch for tree in list_worktrees(desk.repo) if tree.branch} if not desk.repo.bare else set()
    if tip is None or wanted in held or not commits.is_ancestor(desk.repo.git, tip, made.tip):
        return Target(made.branch or "")
    why = withheld(desk, wanted, tip, made.tip, begun=begun)
    return (
        Target(made.branch or "", why=why)
        if why
        else Target(wanted, (RefMove(HEADS + wanted, made.tip, tip),))
    )


def clean_up(desk: Desk, place: Situation, done: Delivered, *, asked_again: bool) -> str:
    """Remove the place and the branch that only served it, unless the agent asked again and will go on there."""
    if asked_again:
        return ""
    gate, target = done.gate.id, done.target
    remains = remove_place(desk, gate, place)
    own = place.branch if place.new_branch else None
    if not remains and own and own.startswith("gate/") and target.moves and target.branch != own:
        drop_branch(desk, own, [*(move.new for move in target.moves), *done.commits])
    return remains


def drop_branch(desk: Desk, branch: str, tips: Sequence[str | None]) -> None:
    tip = desk.refs.get(HEADS + branch)
    if tip is not None and tip in tips:
        try:
            desk.refs.update([RefMove(HEADS + branch, None, tip)])
        except GateError as kept:
            desk.progress(f"branch {branch} stays: {kept.message}")
