"""Gates: the hooks that git starts, put in place beside whatever was there, and taken away again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

from ..errors import Conflict, Failure
from ..store.git.machineconfig import machine_values
from ..store.git.repository import Repository

NAMES = ("pre-receive", "post-receive")
MARK = "# git-gate hook: "
BEFORE = ".before-git-gate"
PACKAGE = Path(__file__).resolve().parents[1]


def shim(name: str) -> str:
    """The text of a hook for this machine: where git-gate is installed is written into it, since a server's PATH is bare."""
    for folder in (PACKAGE / "shims", PACKAGE.parent / "hooks"):
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8")
            program, command = ourselves()
            return text.replace("@COMMAND@", command).replace("@PROGRAM@", program)
    raise Failure(
        "the hook shims are not part of this installation", hint="pip install --force-reinstall git-gate"
    )


def ourselves() -> tuple[str, str]:
    """The program that a hook starts, and the whole command. -P: no directory takes part in finding our own code."""
    return quote(sys.executable), f"{quote(sys.executable)} -P -m gitgate.cli.receive"


def needed_files() -> tuple[Path, ...]:
    """What whoever pushes has to be able to read."""
    return (Path(sys.executable), PACKAGE / "__init__.py")


def hooks_folder(repo: Repository) -> Path | None:
    """Where this repository's hooks are; None where they are shared with others or belong to the working tree."""
    # Our own git runs without hooks: the last value is ours.
    said = machine_values(repo, r"^core\.hookspath$").get("core.hookspath", [])[:-1]
    if not said or not said[-1]:
        return repo.common_dir / "hooks"
    folder = Path(os.path.normpath((repo.top or repo.git_dir) / said[-1]))
    return folder if folder.resolve().is_relative_to(repo.common_dir.resolve()) else None


def is_ours(place: Path) -> bool:
    try:
        return MARK in place.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return False


def state(folder: Path, name: str) -> str:
    """`missing`, `current`, `old`, or `foreign`: somebody else's hook."""
    place = folder / name
    if not os.path.lexists(place):
        return "missing"
    if not is_ours(place):
        return "foreign"
    current = place.read_text(encoding="utf-8", errors="replace") == shim(name) and os.access(place, os.X_OK)
    return "current" if current else "old"


def install(folder: Path, name: str) -> None:
    """Put the hook in place. One that is there goes on working: it is kept beside it, and runs first."""
    place, before = folder / name, folder / (name + BEFORE)
    folder.mkdir(parents=True, exist_ok=True)
    if state(folder, name) == "foreign":
        if os.path.lexists(before):
            raise Conflict(
                f"there are two foreign hooks: {place} and {before}",
                hint="remove the one that is not needed any more",
            )
        place.rename(before)
    new = folder / f".{name}.new"
    new.write_text(shim(name), encoding="utf-8")
    new.chmod(0o755)
    new.replace(place)


def remove(folder: Path, name: str) -> None:
    """Take the hook away, and put back what was there before."""
    place, before = folder / name, folder / (name + BEFORE)
    if is_ours(place):
        place.unlink()
        if os.path.lexists(before):
            before.rename(place)
