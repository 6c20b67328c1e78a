"""Service: the repositories that `git gate init` was run in, on this machine, by this person."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from .slots import state_home

MOST = 10_000


def places(env: Mapping[str, str]) -> list[Path]:
    """Where they are; those that are gone are left out."""
    return [place for place in listed(env) if place.is_dir()]


def listed(env: Mapping[str, str]) -> list[Path]:
    home = state_home(env)
    if home is None:
        return []
    try:
        lines = (home / "repositories").read_text("utf-8", "surrogateescape").split("\n")
    except OSError:
        return []
    return list(dict.fromkeys(Path(line) for line in lines[:MOST] if line))


def add(env: Mapping[str, str], place: Path) -> None:
    change(env, lambda known: [*(p for p in known if p != place and p.is_dir()), place])


def remove(env: Mapping[str, str], place: Path) -> None:
    change(env, lambda known: [p for p in known if p != place])


def change(env: Mapping[str, str], to: Callable[[list[Path]], list[Path]]) -> None:
    """Read and write the list while nobody else does."""
    home = state_home(env)
    if home is None:
        return
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(home / "repositories.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            import fcntl
        except ImportError:
            pass
        else:
            fcntl.flock(lock, fcntl.LOCK_EX)
        lines = "".join(f"{place}\n" for place in to(listed(env)) if "\n" not in str(place))
        new = home / "repositories.new"
        new.write_text(lines, "utf-8", "surrogateescape")
        new.replace(home / "repositories")
    finally:
        os.close(lock)
