"""Command line: `git gate list --everywhere`: the lists of every repository that `git gate init` was run in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.text import counted
from ..errors import GateError
from .lists import gates_of, gather, lines_of
from .screen import Screen


def list_everywhere(screen: Screen, flags: dict[str, Any]) -> None:
    """One list a repository, each under its place. One that cannot be read is said, and the others go on."""
    from ..service.registry import places

    parts: list[str] = []
    gates: list[dict[str, object]] = []
    known = places(screen.env)
    for place in known:
        try:
            desk = replace(screen, directory=str(place)).desk(bulk=screen.as_json)
            found = gather(screen, desk, flags)
            if screen.as_json:
                gates += [{**gate, "repository": str(place)} for gate in gates_of(screen, desk, found)]
            elif found:
                parts.append(
                    "\n".join([name_of(place), *lines_of(screen, desk, found, verbose=flags["verbose"])])
                )
        except GateError as unreadable:
            screen.warn(f"{place}: {unreadable.message}")
    screen.emit("list", {"gates": gates}, "")
    if parts:
        screen.page("\n\n".join(parts))
    elif not screen.as_json:
        screen.say(
            f"nothing waits for you in {counted(len(known), 'repository')}"
            if known
            else "no repository is known: git gate init in each"
        )


def name_of(place: Path) -> str:
    from ..core.text import one_line

    return one_line(str(place))
