"""Exchange: the journals of runs, brought together with the remote's. One only grows, so that the longer one is the one.

Whoever goes on with a run that the remote knows writes there as well; here it is only carried.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..context.desk import Desk
from ..errors import GateError, LostRace
from ..store.git.refs import LEASES, RUNS
from ..store.remote.push import push
from ..store.remote.remote import RefMove
from .synced import Synced

Differing = Mapping[str, tuple[str | None, str | None]]


def bring_runs(desk: Desk, done: Synced, runs: Differing) -> None:
    """What the remote has and this clone has not."""
    for run, (mine, theirs) in runs.items():
        if theirs is None or (mine is not None and not goes_on_from(desk, theirs, mine)):
            continue
        try:
            desk.refs.update([RefMove(RUNS + run, theirs, mine)])
        except LostRace:
            continue  # whoever goes on with it here brings it together
        done.new, done.updated = (
            ((*done.new, run), done.updated) if mine is None else (done.new, (*done.updated, run))
        )


def send_runs(desk: Desk, done: Synced, remote: str, runs: Differing) -> None:
    """What this clone has and the remote has not. A run that is gone on with here alone stays, as its lease does."""
    for run, (mine, theirs) in runs.items():
        if mine is None or (theirs is None and desk.refs.get(LEASES + run) is not None):
            continue
        if theirs is not None and not goes_on_from(desk, mine, theirs):
            continue
        try:
            move = RefMove(RUNS + run, mine, theirs)
            (fate,) = push(desk.repo, remote, [move], timeout=desk.settings.seconds("networkTimeout") or 60)
        except GateError as failed:
            done.refused[run] = failed.message
            continue
        if fate.ok:
            done.pushed = (*done.pushed, run)
        elif fate.reason.startswith("refused"):
            done.refused[run] = fate.reason


def goes_on_from(desk: Desk, new: str, old: str) -> bool:
    return desk.repo.git.ok("merge-base", "--is-ancestor", old, new)
