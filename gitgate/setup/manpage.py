"""Setup: the manual page, which git opens for `git gate --help`: whether `man` finds it, and a link to it where it does not.

`man` looks beside each folder of PATH. A tool of `uv`, or a link to the command alone, is in PATH without its page.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..context import machine
from ..context.desk import Desk
from .steps import Step

PAGE = "man1/git-gate.1"
# Where `man` looks, seen from a folder of PATH; and wherever the PATH leads.
BESIDE = ("../share/man", "../man", "share/man", "man")
EVERYWHERE = ("/usr/local/share/man", "/usr/share/man")


def has_reader(env: Mapping[str, str]) -> bool:
    return shutil.which("man", path=search_path(env)) is not None


def is_found(env: Mapping[str, str]) -> bool:
    return any(page.is_file() for place in places(env) for page in (place / PAGE, place / f"{PAGE}.gz"))


def search_path(env: Mapping[str, str]) -> str:
    return env.get("PATH", os.defpath)


def folders(env: Mapping[str, str]) -> list[Path]:
    """Those of PATH that say where they are wherever one stands."""
    return [Path(one) for one in search_path(env).split(os.pathsep) if one.startswith("/")]


def places(env: Mapping[str, str]) -> list[Path]:
    """Where `man` looks. MANPATH stands in place of all others, unless it leaves room for them by an empty entry."""
    said = env.get("MANPATH", "")
    named = [Path(one) for one in said.split(os.pathsep) if one]
    if said and all(said.split(os.pathsep)):
        return named
    beside = [Path(os.path.normpath(folder / one)) for folder in folders(env) for one in BESIDE]
    return [*named, *beside, *map(Path, EVERYWHERE)]


def place_for(env: Mapping[str, str]) -> Path | None:
    """Where a link to the page would be found, and may be made: at home first, then beside the command."""
    beside = [folder for folder in folders(env) if os.access(folder / "git-gate", os.X_OK)]
    home = [Path(env["HOME"], ".local/bin")] if env.get("HOME") else []
    looked_at = places(env)
    for folder in (*home, *beside):
        place = Path(os.path.normpath(folder / BESIDE[0]))
        if place in looked_at and is_writable(place) and page_of() is not None:
            return place
    return None


def is_writable(place: Path) -> bool:
    """Whether it is there to write in, or could be made."""
    there = next((one for one in (place / PAGE, *(place / PAGE).parents) if one.is_dir()), place)
    return os.access(there, os.W_OK)


def page_of() -> Path | None:
    """Where an installation has it: beside its programs, in the package, or in the checkout."""
    package = Path(__file__).resolve().parents[1]
    found = (Path(sys.prefix, "share/man", PAGE), package / "git-gate.1", package.parent / "docs/git-gate.1")
    return next((one for one in found if one.is_file()), None)


def noted(env: Mapping[str, str]) -> Path | None:
    """Where it is written down that a link is ours: `pipx` makes one of its own, which is not ours to take away."""
    home = machine.state_home(env)
    return home / "manual" if home else None


def ours(env: Mapping[str, str]) -> Path | None:
    """The link that `init` made, as long as it is one."""
    note = noted(env)
    try:
        link = Path(note.read_text("utf-8", "surrogateescape")) if note else None
    except OSError:
        return None
    return link if link is not None and link.is_symlink() else None


def link_steps(desk: Desk) -> Iterator[Step]:
    """The link to it, where it is needed and helps: none where `man` is missing."""
    env = desk.settings.env
    note, place, found = noted(env), place_for(env), is_found(env)
    if note is None or place is None or not has_reader(env):
        return
    link = place / PAGE
    if not found or ours(env) == link:
        yield Step(f"manual page {link}", "git gate --help opens it", found, lambda: make(link, note))


def make(link: Path, note: Path) -> None:
    page = page_of()
    if page is None:
        return
    note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    note.write_text(str(link), "utf-8", "surrogateescape")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)  # one that leads nowhere: of an installation that is gone
    link.symlink_to(page)


def link_removal(desk: Desk) -> Iterator[Step]:
    """Our link, once this was the last repository of this person that is set up."""
    env = desk.settings.env
    note, link = noted(env), ours(env)
    if note is None or link is None or any(one != desk.repo.place for one in machine.repositories(env)):
        return

    def take() -> None:
        link.unlink(missing_ok=True)
        note.unlink(missing_ok=True)

    yield Step(f"manual page {link}", "taken away: no other repository is set up", False, take)
