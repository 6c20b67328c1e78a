"""Service: who asks: the agent's name, its process, and the conversation that the question belongs to."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.drafts import Draft
from ..core.model import Gate
from ..core.session import SavedSession
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
