"""Surfaces: people hear of a gate: on the desktop, by a program of theirs, by a webhook, by any chat that Apprise knows.

Here is what every way has in common: what is sent, where to, and what may go wrong. `addresses` reads who is told, of what and
how, `outbox` remembers what was sent, `sending` sends. A way to tell somebody is one file and one line in `addresses.IN_ORDER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...errors import Failure


class NotSent(Failure):
    """It did not arrive, or nobody knows. `after`: seconds that the other side wants to be left alone; `gone`: for ever."""

    code = "not_sent"

    def __init__(self, message: str, *, hint: str = "", after: float = 0.0, gone: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.after = after
        self.gone = gone


@dataclass(frozen=True)
class Notification:
    """What is said of one event: `title` one line, `text` some more, `shape` all of it as JSON. The words are inert.

    `id` is the same in every attempt to say it to the same address, so that whoever gets it twice can tell.
    """

    id: str
    event: str
    gate: str
    title: str
    text: str
    urgent: bool
    shape: Mapping[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """Where to: what stands behind the kind of an address, its secret, and the environment that programs start in.

    `own`: this machine's configuration says so, and not the protected branch, which others write. `tree`: the working
    tree, where agents write, if there is one.
    """

    words: str
    secret: str = field(default="", repr=False)
    own: bool = True
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    tree: Path | None = None


class Channel(Protocol):
    """One way to tell somebody."""

    @property
    def kind(self) -> str:
        """The first word of its address; for a chat's, `apprise`."""
        ...

    def misfit(self, target: Endpoint) -> str:
        """What was expected where the address is none of this kind; else nothing. Looks at the words alone."""
        ...

    def lacks(self, target: Endpoint) -> str:
        """Why it cannot be used on this machine, with what mends it; else nothing."""
        ...

    def shown(self, target: Endpoint) -> str:
        """The address without what is secret in it."""
        ...

    def send(self, target: Endpoint, notification: Notification) -> None:
        """Say it; NotSent where that failed. Bounded in time."""
        ...
