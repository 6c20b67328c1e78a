"""Surfaces: the ways of telling somebody, by the first word of their address. A new one is a file, and a line here."""

from __future__ import annotations

from .channel import Channel
from .chat import ChatChannel
from .command import CommandChannel
from .desktop import DesktopChannel
from .webhook import WebhookChannel

CHATS = ChatChannel()
IN_ORDER: tuple[Channel, ...] = (
    DesktopChannel(),
    CommandChannel(),
    WebhookChannel(),
    CHATS,
)
CHANNELS: dict[str, Channel] = {one.kind: one for one in IN_ORDER}


def split_address(text: str) -> tuple[Channel | None, str]:
    """The way that an address names, and what stands behind that word; a chat's address is all of it."""
    word, _, rest = text.strip().partition(" ")
    if "://" in word:
        return CHATS, text.strip()
    return (CHANNELS.get(word) if word != CHATS.kind else None), rest.strip()
