"""Exchange: a gate on its way to the shared repository. The first answer to reach it counts; nothing local is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..context import Desk
from ..context.targets import no_remote, remote_of, work_moves
from ..document import dataclass
from ..errors import FINAL, Failure, GateError, PushRefused
from ..model import RESUMING
from ..store.git.refs import OPEN, SESSIONS
from ..store.remote import RefFate, RefMove

if TYPE_CHECKING:
    from ..model.gate import Gate


TRIES = 6
# Its claim and its lease are here: elsewhere it would look as if whoever holds it were gone.
ACTED_ON = "an agent acts on it here; it goes when that is done"


@dataclass(frozen=True)
class Published:
    """Where a gate went. `pushed` is False with a `reason` when it stayed here; `log` tells of its agent, started here.

    `told`: what the remote said as it took an answer: empty, it resumes the agent; else why it does not; None: nothing.
    """

    gate: Gate
    remote: str | None = None
    pushed: bool = False
    reason: str = ""
    work: bool = False
    session: bool = False
    log: str = ""
    archived: bool = False
    told: str | None = None


def publish(desk: Desk, gate: Gate, *, push: bool | None = None, work: bool = False) -> Published:
    """Send a gate's record, with its work when `work` is wanted and permitted, in one atomic push.

    `push`: True insists (a failure is an error), False stays local, None does what the settings say.
    """
    if push is False or (push is None and not desk.settings.flag("push")):
        return Published(gate, reason="not asked to push")
    remote = remote_of(desk)
    if remote is None:
        why, mend = no_remote(desk)
        if push:
            raise Failure(
                f"gate {gate.id} is safe here, but not pushed: {why}", hint=f"{mend}, then: git gate sync"
            )
        return Published(gate, reason=why)
    try:
        return send(desk, gate, remote, work=work)
    except GateError as failed:
        if FINAL in failed.message:
            raise type(failed)(
                f"gate {gate.id} is not pushed: {failed.message}",
                hint=f"put it aside, and push the rest: git gate sync {remote}",
            ) from failed
        if push or desk.settings.in_ci:
            raise type(failed)(
                f"gate {gate.id} is safe here, but not pushed: {failed.message}", hint=failed.hint
            ) from failed
        return Published(gate, remote, reason=failed.message)


def send(desk: Desk, gate: Gate, remote: str, *, work: bool) -> Published:
    desk.progress(f"pushing gate {gate.id} to {remote}")
    extra = work_moves(desk, gate.id, remote) if work else []
    reason = ""
    for _ in range(TRIES):
        known = desk.tracked(remote, gate.id)
        if known is None and len(gate.history) > 1 and (closed := in_archive(desk, gate, remote)):
            return Published(closed, remote, True, "it was closed and archived there", archived=True)
        if known is None and gate.state == RESUMING:
            return Published(gate, remote, reason=ACTED_ON)
        if not stands_on(gate, known):
            gate = catch_up(desk, gate, remote)
            continue
        record = RefMove(OPEN + gate.id, gate.tip, known)
        if known == gate.tip and not extra:
            return Published(gate, remote, pushed=True)
        fates = push_moves(desk, remote, [record, *extra])
        if all(fate.ok for fate in fates):
            session = any(move.ref.startswith(SESSIONS) for move in extra)
            told = told_of(fates, gate.id)
            return Published(gate, remote, True, reason, bool(extra), session, told=told)
        refused = next((fate for fate in fates if fate.reason.startswith("refused")), None)
        if refused is not None and extra:
            reason, extra = f"the work was not taken: {refused.reason}", []
        elif refused is not None:
            raise PushRefused(f"{remote} {refused.reason}", hint=f"git gate sync {remote}")
        else:
            gate, extra = catch_up(desk, gate, remote), [] if known else extra
    raise Failure(f"{remote} keeps changing gate {gate.id}", hint=f"git gate sync {remote}")


def told_of(fates: Sequence[RefFate], gate: str) -> str | None:
    if not any(fate.words for fate in fates):
        return None
    from ..gates.agency import said_of_push

    return said_of_push(fates[0].words, gate)


def stands_on(gate: Gate, known: str | None) -> bool:
    """Whether the record goes on from what the remote has. The lease of a push would not save it: another command of this
    clone may have heard meanwhile of what somebody recorded there, and so have moved what the push expects.
    """
    return known is None or any(entry.commit == known for entry in gate.history)


def catch_up(desk: Desk, gate: Gate, remote: str) -> Gate:
    """After a lost race: what the remote has now, with what was said here recorded again on top of it."""
    from ..gates.recording import reload
    from .syncing import bring_home

    bring_home(desk, remote)
    return reload(desk, gate.id)


def in_archive(desk: Desk, gate: Gate, remote: str) -> Gate | None:
    """The gate as the remote archived it, if it did: a gate is never opened there a second time."""
    from ..gates.history import load_archived, settle_archived

    settled = settle_archived(desk, remote, {gate.id: gate.tip})
    return load_archived(desk, gate.id) if gate.id in (*settled.gates, *settled.kept) else None


def push_moves(desk: Desk, remote: str, moves: Sequence[RefMove]) -> list[RefFate]:
    from ..store.remote.push import push

    return push(desk.repo, remote, moves, timeout=desk.network_timeout)
