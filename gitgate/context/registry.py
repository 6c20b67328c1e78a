"""Context: the repositories that `git gate init` was run in, on this machine, by this person."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
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
    number = take_slot(home / "slots", most)
    try:
        yield number is not None
    finally:
        if number is not None:
            os.close(number)


def take_slot(folder: Path, most: int) -> int | None:
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


MOST = 10_000


def places(env: Mapping[str, str]) -> list[Path]:
    """Where they are; those that are gone are left out."""
    return [place for place in read_registry(env) if place.is_dir()]


def read_registry(env: Mapping[str, str]) -> list[Path]:
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
        lines = "".join(f"{place}\n" for place in to(read_registry(env)) if "\n" not in str(place))
        new = home / "repositories.new"
        new.write_text(lines, "utf-8", "surrogateescape")
        new.replace(home / "repositories")
    finally:
        os.close(lock)
