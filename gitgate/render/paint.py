"""Render: colour and nothing else. Off, every function gives its text back."""

from __future__ import annotations

CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
STATE_COLORS = {
    "awaiting": "yellow",
    "answered": "cyan",
    "resuming": "blue",
    "resumed": "green",
    "failed": "red",
    "stalled": "red",
    "broken": "red",
}
PRIORITY_COLORS = {"urgent": "red", "high": "yellow"}


def paint(text: str, *names: str, on: bool) -> str:
    codes = ";".join(CODES[name] for name in names if name in CODES)
    return f"\x1b[{codes}m{text}\x1b[0m" if on and codes else text
