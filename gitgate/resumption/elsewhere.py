"""Resumption: all that was answered, left to a runner on other machines. It sees what is shared, and is asked gate by gate."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import Conflict, Failure, GateError
from ..runners import find
from ..service.desk import Desk
from ..service.find import summaries
from ..service.remotes import no_remote, remote_of
from ..service.syncing import bring_home
from .calls import call
from .crew import is_candidate


@dataclass
class Left:
    """Where each gate's runner tells what it does, and why the others were not left to it."""

    logs: dict[str, str] = field(default_factory=dict)
    failed: dict[str, GateError] = field(default_factory=dict)


def leave_all(desk: Desk, runner: str) -> Left:
    """Every gate whose agent is to be started, and whose answer is where the runner finds it."""
    find(runner)
    remote, left = remote_of(desk), Left()
    if remote is None:
        why, mend = no_remote(desk)
        raise Failure(f"another machine sees no gate of this repository: {why}", hint=mend)
    bring_home(desk, remote)
    for gate in [one for one in summaries(desk) if is_candidate(one) and one.state != "resuming"]:
        if gate.delivery != "resume":
            continue
        try:
            if desk.tracked(remote, gate.id) != gate.tip:
                raise Conflict(
                    "its answer is not shared",
                    hint=f"git gate resume {gate.id} --runner {runner}, which shares it",
                )
            left.logs[gate.id] = call(desk, gate.id, runner)
        except GateError as refused:
            left.failed[gate.id] = refused
    return left
