"""Sharing: moves of refs that git was killed in the middle of. The locks of those that were still to come are left, and each says
what its ref was to become: an outcome that was recorded without its branch is brought to its end, the others are free again.

A lock is made only after every check and hook has agreed, and while it stands nobody else moves its ref. So what it says can be
done later as well, and is done once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ..context.desk import Desk
from ..context.find import summaries
from ..errors import GateError
from ..store.git.refs import BESIDE, OPEN, CutOff

HEADS = "refs/heads/"
OURS = "refs/hitl/"
AGE = 600.0
"""So old is no lock that somebody still holds."""


def cut_off(desk: Desk) -> list[CutOff]:
    """What stands in the way of gates, since longer than any move takes: records first, since they tell of the branches."""
    found = [lock for lock in desk.refs.cut_off(desk.clock() - AGE) if concerns_gates(desk, lock)]
    return sorted(found, key=lambda lock: not lock.ref.startswith(OPEN))


def concerns_gates(desk: Desk, lock: CutOff) -> bool:
    if lock.ref.startswith(HEADS):
        return bool(outcome_for(desk, lock))
    return lock.ref.startswith(OURS) or lock.ref in BESIDE


def finish_cut_off(desk: Desk, say: Callable[[str], None]) -> list[str]:
    """Bring to its end what was recorded, and free the rest; the refs that this was about."""
    done: list[str] = []
    # A record that comes to its end here may be what names a branch.
    for _ in range(2):
        for lock in cut_off(desk):
            with suppress(OSError, GateError):
                say(finish_one(desk, lock))
                done.append(lock.ref)
    return done


def finish_one(desk: Desk, lock: CutOff) -> str:
    gate = outcome_for(desk, lock) if lock.ref.startswith(HEADS) else ""
    if gate or goes_on(desk, lock):
        desk.refs.finish(lock)
        return f"{lock.ref} is at {str(lock.new)[:10]} now: git was killed before it got there{gate and f' (gate {gate})'}"
    desk.refs.give_up(lock)
    return f"{lock.ref} can be moved again: a git that was killed had left it locked"


def goes_on(desk: Desk, lock: CutOff) -> bool:
    """Whether it is an open gate's record, which goes on from where it is."""
    if not lock.ref.startswith(OPEN) or lock.new is None:
        return False
    tip = desk.refs.get(lock.ref)
    try:
        gate = desk.records.load(lock.ref.removeprefix(OPEN), lock.new)
    except GateError:
        return False
    return tip != lock.new and any(entry.commit == tip for entry in gate.history)


def outcome_for(desk: Desk, lock: CutOff) -> str:
    """The gate whose outcome says that this branch has what its lock holds; none where nobody recorded that."""
    for summary in summaries(desk):
        if summary.state != "resumed":
            continue
        with suppress(GateError):
            said = desk.records.load(summary.id, summary.tip).outcome
            if said is not None and HEADS + said.branch == lock.ref and said.commits[-1:] == (lock.new,):
                return summary.id
    return ""
