"""Context: which agents asked from this clone: the process, the directory, the conversation.

Kept beside the repository and never pushed: it is how this machine knows that a gate is its own, whatever a record says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..document.values import dataclass, names_of, replace
from ..model.states import is_id
from ..store.git.permissions import private_folder
from .desk import Desk


@dataclass(frozen=True)
class Presence:
    """One gate that was asked here. `session` is the conversation's id, which no record holds.

    `branch` is the one that its directory was on; empty where that is the work's own. Not `trusted`: the agent had been
    resumed here with work that came from elsewhere. `flags` are those of its command line that a run of the same
    conversation needs again.
    """

    gate: str
    agent: str
    program: str
    session: str
    directory: str
    work: str
    pid: int
    started: str
    boot: str
    at: str
    branch: str = ""
    trusted: bool = True
    flags: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        """Whether that very process still runs: a number alone may be another one's by now."""
        return (
            self.pid > 0
            and self.boot == boot_id()
            and bool(self.started)
            and started(self.pid) == self.started
        )


def presence_folder(desk: Desk) -> Path:
    return desk.repo.state_dir / "asked"


def note(desk: Desk, present: Presence) -> None:
    """Write down who asked; a disk that is full is no reason to fail a question that was asked already."""
    present = replace(present, started=started(present.pid), boot=boot_id())
    with suppress(OSError):
        private_folder(presence_folder(desk))
        place = presence_folder(desk) / present.gate
        with os.fdopen(
            os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as out:
            json.dump({name: getattr(present, name) for name in names_of(present)}, out)


def find_presence(desk: Desk, gate: str) -> Presence | None:
    """Who asked this gate from here; None when it was asked elsewhere."""
    try:
        said = json.loads((presence_folder(desk) / gate).read_text(encoding="utf-8"))
        return Presence(**{**said, "flags": tuple(map(str, said.get("flags", ())))})
    except (OSError, ValueError, TypeError):
        return None


def everyone(desk: Desk) -> Iterator[Presence]:
    with suppress(OSError):
        for place in sorted(presence_folder(desk).iterdir()):
            found = find_presence(desk, place.name) if is_id(place.name) else None
            if found is not None:
                yield found


def started(pid: int) -> str:
    """When a process began, as the kernel counts; empty when it is gone or nobody can tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """One clock runs from one start of the machine to the next; without a name for that, only within one process."""
    try:
        return BOOT.read_text("ascii").strip() or f"process-{os.getpid()}"
    except OSError:
        return f"process-{os.getpid()}"
