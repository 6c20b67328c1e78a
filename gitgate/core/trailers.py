"""Core: the commit message of an event. A subject for people, trailers for lists; no decision is taken from them."""

from __future__ import annotations

from collections.abc import Iterable

PREFIX = "Hitl-"
MOST_BYTES = 200


def one_line(text: str, most: int = MOST_BYTES) -> str:
    """One line of UTF-8 without control characters, at most `most` bytes, cut between characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    raw = line.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return raw[: most - 3].decode("utf-8", "ignore").rstrip() + "…"


def dump(subject: str, trailers: Iterable[tuple[str, str]]) -> str:
    lines = [f"{PREFIX}{name}: {one_line(value)}" for name, value in trailers if value]
    return f"{one_line(subject, 120) or 'gate'}\n\n" + "\n".join(lines) + "\n"


def parse(message: str) -> dict[str, str] | None:
    """The trailers of the last paragraph, or None when they break the rules (duplicate, overlong, not one of ours).

    Git's own trailer formats mix values and obey the user's settings, so we read the paragraph ourselves.
    """
    found: dict[str, str] = {}
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        name, colon, value = line.partition(": ")
        if not colon or not name.startswith(PREFIX) or name in found or len(value) > MOST_BYTES:
            return None
        found[name] = value
    return {name.removeprefix(PREFIX): value for name, value in found.items()}
