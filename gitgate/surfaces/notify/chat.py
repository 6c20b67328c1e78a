"""Surfaces: the chats, mailboxes and telephones that Apprise knows, by its addresses. Apprise is in the extra `notify`."""

from __future__ import annotations

import re
from typing import Any

from . import Endpoint, Notification, NotSent

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30})://\S+", re.ASCII)
INSTALL = "pip install 'git-gate[notify]'"
# Apprise gives up after 4 s by itself, often with the message received: it would be sent once more.
LONGEST = 20.0


class ChatChannel:
    kind = "apprise"

    def misfit(self, target: Endpoint) -> str:
        return "" if ADDRESS.fullmatch(target.words) else "an Apprise address, such as slack://…"

    def lacks(self, target: Endpoint) -> str:
        try:
            known = service(target)
        except ImportError:
            return f"{self.shown(target)} takes Apprise, which is not installed: {INSTALL}"
        return "" if known is not None else f"Apprise cannot read the address {self.shown(target)}"

    def shown(self, target: Endpoint) -> str:
        """Return the scheme alone: everything behind it may be a secret."""
        return f"{target.words.partition(':')[0]}://…"

    def send(self, target: Endpoint, notification: Notification) -> None:
        why = self.lacks(target)
        if why:
            raise NotSent(why, hint="git gate doctor")
        known = service(target)
        known.socket_read_timeout = known.socket_connect_timeout = LONGEST
        try:
            sent = known.notify(body=notification.text, title=notification.title, body_format="text")
        except Exception as failed:
            raise NotSent(f"{self.shown(target)} failed: {type(failed).__name__}") from failed
        if not sent:
            raise NotSent(f"{self.shown(target)} did not take it", hint="git gate notify test")


def service(target: Endpoint) -> Any:
    """Return Apprise's service for the address; None if it knows none. Its log names tokens, so it is silenced."""
    import logging

    from apprise import Apprise, AppriseAsset

    logging.getLogger("apprise").disabled = True
    asset = AppriseAsset(app_id="git gate", plugin_paths=[], async_mode=False)
    return Apprise.instantiate(target.words, asset=asset, suppress_exceptions=True)
