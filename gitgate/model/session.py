"""Model: an agent's conversation, as it is named and as it is kept. Pure values; the adapters in `agents` fill them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..document.values import dataclass


@dataclass(frozen=True)
class SessionRef:
    """A conversation of one agent's program. `directory` is where it runs, `transcript` the file, where those are known."""

    agent: str
    id: str
    directory: str = ""
    transcript: str = ""


@dataclass(frozen=True)
class SavedSession:
    """A conversation that can be taken up elsewhere: small files by relative name, clean enough to leave the machine.

    `place` is the folder that the agent's program kept it in: the conversation may speak of files by that path.
    `left_out` says what is missing and why.
    """

    agent: str
    id: str
    directory: str = ""
    place: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))
