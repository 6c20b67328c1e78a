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
    """Failure of a message that did not arrive, or of which nobody knows. `after`: seconds for which the other side
    wants to be left alone; `gone`: for ever.
    """

    code = "not_sent"

    def __init__(self, message: str, *, hint: str = "", after: float = 0.0, gone: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.after = after
        self.gone = gone


@dataclass(frozen=True)
class Notification:
    """Words on one event: `title` one line, `text` some more, `shape` all of it as JSON. The words are inert.

    `id` is equal in every attempt to send it to one address, so that a receiver can recognise a second one.
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
    """Address of a channel: the words after its kind, its secret, and the environment in which programs start.

    `own`: this machine's configuration names it, and not the protected branch, which others write. `tree`: the working
    tree, where agents write, if there is one.
    """

    words: str
    secret: str = field(default="", repr=False)
    own: bool = True
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    tree: Path | None = None


class Channel(Protocol):
    """Way to notify somebody."""

    @property
    def kind(self) -> str:
        """First word of the channel's addresses; `apprise` for chats."""
        ...

    def misfit(self, target: Endpoint) -> str:
        """Return what was expected where the address is none of this kind; else nothing. Only its words are read."""
        ...

    def lacks(self, target: Endpoint) -> str:
        """Return why the channel cannot be used on this machine, with what mends it; else nothing."""
        ...

    def shown(self, target: Endpoint) -> str:
        """Return the address without what is secret in it."""
        ...

    def send(self, target: Endpoint, notification: Notification) -> None:
        """Send a notification, within a bounded time. Raise `NotSent` where that failed."""
        ...
