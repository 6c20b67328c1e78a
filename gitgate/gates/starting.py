"""Gates: whether the agent of an answered gate can be started in this repository, and who is told when it cannot.

A shared repository says so to whoever pushes the answer, and writes it into the gate. That is a remark and no outcome:
the gate stays answered, so that any other machine, one that has the session, may still claim it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..context.desk import Desk
from ..errors import Failure, GateError, IllegalEvent
from ..model.gate import Asker, Event, Gate, Remark
from ..model.states import ANSWERED, EXPIRED
from ..store.git.refs import SESSIONS

if TYPE_CHECKING:
    from ..store.git.refs import Update


VIA = "runner"
STARTS = "its agent is resumed here"
STAYS = "its agent is not resumed here: "
_HEARD = re.compile(rf"gate: ([2-9a-z]+): ({re.escape(STARTS)}|{re.escape(STAYS)}[^·]*)")


class CannotStart(Failure):
    """Nothing that passes by itself: this machine does not have the session, or does not know the agent."""

    code = "cannot_start"


def place_of(asked: Asker) -> str:
    """Machine and directory, as the asker told them."""
    where = " in ".join(word for word in (asked.host, asked.directory) if word)
    return f" (on {where})" if where else ""


def stayed(gate: Gate, how: str) -> CannotStart:
    """Only where it was asked can this gate be resumed."""
    asked = gate.opened.asked
    return CannotStart(
        f"the session of gate {gate.id} is not {how}: it stayed where {asked.agent} asked{place_of(asked)}",
        hint="resume it there, or share sessions from there: git config gitgate.session push",
    )


def kept_back(desk: Desk, gates: Iterable[Gate]) -> frozenset[str]:
    """The gates whose session stayed where they were asked, so that nobody elsewhere, and no job, can go on with it.

    The shared repository is asked about those that it is not known to have; whoever cannot ask it does not know, and names none.
    """
    from ..context.remotes import remote_of
    from ..store.remote.fetch import ask_refs, have

    wanted = [SESSIONS + gate.id for gate in gates if gate.opened.session is not None]
    remote = remote_of(desk) if wanted else None
    if remote is None:
        return frozenset()
    known = have(desk.repo, remote, wanted)
    unsure = [ref for ref in wanted if ref not in known]
    try:
        there = ask_refs(desk.repo, remote, unsure, timeout=desk.settings.seconds("networkTimeout") or 60)
    except GateError:
        return frozenset()
    return frozenset(ref.removeprefix(SESSIONS) for ref in unsure if ref not in there)


# said to whoever pushes


def foretold(desk: Desk, gates: Iterable[Gate], updates: Sequence[Update]) -> list[str]:
    """A line for each gate of a push that is to be resumed: whether it will be, and if not, why."""
    wanted = [gate for gate in gates if gate.actionable and gate.opened.delivery == "resume"]
    if not wanted:
        return []
    refs = [SESSIONS + gate.id for gate in wanted]
    coming = {update.ref for update in updates if update.new}
    here = {*desk.refs.under(*refs), *coming}
    everybody = no_runner(desk)
    unknown: dict[str, str] = {}
    lines = []
    for gate in wanted:
        why = everybody or ("" if SESSIONS + gate.id in here else "its session is not here")
        why = why or no_agent(desk, gate, unknown)
        lines.append(f"gate: {gate.id}: {STAYS}{why}" if why else f"gate: {gate.id}: {STARTS}")
    return lines


def no_runner(desk: Desk) -> str:
    """Why a push to this repository starts nothing at all."""
    if not desk.settings.flag("resumeHere"):
        return "git gate init did not allow it"
    from ..store.git.permissions import may_keep
    from .hookshims import hooks_folder

    folder = hooks_folder(desk.repo)
    if folder is not None and not os.access(folder / "post-receive", os.X_OK):
        return "it has no post-receive hook"
    return (
        ""
        if may_keep(desk.repo.state_dir)
        else "the account that pushes may not write into the repository's folder"
    )


def no_agent(desk: Desk, gate: Gate, known: dict[str, str]) -> str:
    """Why this machine cannot start the agent of a gate, looked up once for each agent."""
    session = gate.opened.session
    if session is None:
        return "it was asked without a session"
    if session.agent not in known:
        from .agency import cannot_start

        try:
            known[session.agent] = cannot_start(desk, session.agent)
        except GateError as broken:
            known[session.agent] = broken.message
    return known[session.agent]


def heard(words: str, gate: str) -> str | None:
    """What a server said of a gate as it took a push: empty, it resumes it; else why it does not; None: nothing."""
    for name, said in _HEARD.findall(words):
        if name == gate:
            return "" if said == STARTS else str(said).removeprefix(STAYS).strip()
    return None


# written into the gate


def note_inability(desk: Desk, gate: str, why: str) -> None:
    """Once for an answer, and only where all can see it: what one of many clones cannot do says nothing."""
    import socket

    from ..context.recording import NOBODY, record, reload
    from ..context.remotes import remote_of

    if remote_of(desk) is not None:
        return
    event = Remark(at=desk.now, text=f"not resumed on {socket.gethostname()}: {why}", via=VIA)

    def decide(current: Gate) -> tuple[str, Event]:
        if current.state != ANSWERED or noted(current):
            raise IllegalEvent(f"gate {gate} has moved on")
        return "commented", event

    try:
        record(desk, reload(desk, gate), decide, who=NOBODY)
    except IllegalEvent:
        return


def noted(gate: Gate) -> bool:
    """Whether a runner has said, since the answer that counts, that it cannot start the agent."""
    for entry in reversed(gate.history):
        if gate.answer is not None and entry.commit == gate.answer.commit:
            return False
        if isinstance(entry.event, Remark) and entry.event.via == VIA and entry.name == "commented":
            return True
    return False


def unbegun(gate: Gate) -> bool:
    """Something is to be told to an asker, and nobody has begun with it."""
    return gate.actionable and gate.state in (ANSWERED, EXPIRED)
