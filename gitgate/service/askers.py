"""Service: who asks: the agent's name, its process, and the conversation that the question belongs to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..core.drafts import Draft
from ..core.model import Gate
from ..core.people import is_robot, login_of
from ..core.session import SavedSession
from ..core.values import dataclass
from ..errors import GateError
from ..store.refs import OPEN
from .desk import Desk

MESSENGERS = frozenset(("git", "git-gate", "sh", "bash", "dash", "zsh", "fish", "timeout", "env"))


def session_of(desk: Desk, draft: Draft) -> SavedSession | None:
    """The conversation that the question belongs to: given, or found by itself inside an agent."""
    from .agency import current_session

    found = current_session(desk, draft.agent, draft.session)
    if found is None:
        return None
    from .sessions import collect

    return collect(desk, found)


def remember_asker(desk: Desk, gate: Gate, saved: SavedSession | None) -> None:
    """What this machine alone knows of the asker, so that it can be resumed in its place, and told from others."""
    from .presence import Presence, note

    note(
        desk,
        Presence(
            gate=gate.id,
            agent=gate.opened.asked.agent,
            program=saved.agent if saved else "",
            session=saved.id if saved else "",
            directory=str(desk.repo.place),
            work=gate.opened.work.commit or "",
            pid=asking_pid(desk),
            started="",
            boot="",
            at=gate.opened.asked.at,
        ),
    )


@dataclass(frozen=True)
class Requester:
    """Whose agent asks: `by` as git knows them, and the accounts of a forge that started its job, theirs first."""

    by: str = ""
    logins: tuple[str, ...] = ()


def requester(desk: Desk) -> Requester:
    """Whoever started the job; else the person at this machine. A question that follows another is asked for the same
    person as that one: who answered only let their agent go on.
    """
    here, started = desk.settings.identity(), started_by(desk)
    followed = followed_by(desk, desk.settings.env.get("GITGATE_GATE", ""))
    if followed is not None:
        asked = followed.opened.asked
        nobody = not here or is_robot(here) or started  # what commits there is no person
        return Requester((asked.by if nobody else "") or here, asked.logins)
    return Requester(started[0], logins_of(started)) if started else Requester(here)


def started_by(desk: Desk) -> tuple[str, ...]:
    """As `git gate github prepare` wrote it down, in git's own form of a person."""
    return tuple(part.strip() for part in desk.settings.text("requester").split(",") if login_of(part))


def logins_of(people: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(person.partition(" <")[0] for person in people))


def followed_by(desk: Desk, gate: str) -> Gate | None:
    """The gate whose agent was resumed, and asks again."""
    tip = desk.refs.get(OPEN + gate) if gate else None
    if tip is None:
        return None
    try:
        return desk.records.load(gate, tip)
    except GateError:
        return None


def asked_for_others(desk: Desk, remote: str, logins: Sequence[str]) -> list[str]:
    """The questions of this clone that the remote does not have, and that do not name all who started what asked them.

    An agent can set up its own git as it likes, and name whom it likes.
    """
    wanted, found = {login.casefold() for login in logins}, []
    for ref, tip in desk.refs.under(OPEN).items():
        gate = ref.removeprefix(OPEN)
        if desk.tracked(remote, gate) is None:
            said = desk.records.load(gate, tip).opened.asked.logins
            if not wanted <= {login.casefold() for login in said}:
                found.append(gate)
    return found


def asking_pid(desk: Desk) -> int:
    said = desk.settings.env.get("CLAUDE_PID", "")
    return int(said) if said.isdecimal() else asking_program()[1]


def agent_name(desk: Desk, draft: Draft, session_id: str) -> str:
    if draft.agent:
        return draft.agent
    if session_id:
        return f"{readable(desk.repo.place.name)}/{session_id[:4]}"
    program, pid = asking_program()
    return f"agent-{program}-{pid}"


def asking_program() -> tuple[str, int]:
    """The program that called us: git and shells between it and us are only messengers."""
    pid = first = os.getppid()
    for _ in range(8):
        try:
            head, _, tail = (
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            )
        except OSError:
            break
        program = plain(head.partition("(")[2])
        if program not in MESSENGERS:
            return program or "process", pid
        pid = int(tail.split()[1])
    return "process", first


def plain(program: str) -> str:
    """A program's name as a part of an agent's. The system's own may be anything: `memfd:x` is a program without a file."""
    kept = "".join(c if c.isalnum() or c in "._+-" else " " for c in program.rpartition(":")[2])
    return "-".join(kept.split())


def readable(name: str) -> str:
    """A path as a document can hold it: not every name is UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")
