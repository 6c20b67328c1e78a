"""Service: how many agents run at once on this machine, over all its repositories and whoever starts them.

A slot is a locked file: it is free again when its holder lets go, or ends in whatever way.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path


def state_home(env: Mapping[str, str]) -> Path | None:
    """Where this person's programs keep what outlives them, on this machine; None where there is no home."""
    if env.get("XDG_STATE_HOME"):
        return Path(env["XDG_STATE_HOME"]) / "gitgate"
    return Path(env["HOME"]) / ".local" / "state" / "gitgate" if env.get("HOME") else None


@contextlib.contextmanager
def slot(env: Mapping[str, str], most: int) -> Iterator[bool]:
    """Whether one of `most` slots was free; it is ours until this is left."""
    home = state_home(env)
    if home is None or most <= 0:
        yield most > 0
        return
    number = taken(home / "slots", most)
    try:
        yield number is not None
    finally:
        if number is not None:
            os.close(number)


def taken(folder: Path, most: int) -> int | None:
    """The open file of the first free slot."""
    try:
        import fcntl
    except ImportError:  # Without such locks every start is let through; the claims still keep each to one.
        return os.open(os.devnull, os.O_RDONLY)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for place in range(most):
        number = os.open(folder / str(place), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
        else:
            return number
    return None
