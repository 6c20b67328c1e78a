"""Surfaces: where an approved call is made. It was approved for files of one directory, and its agent may go on in another.

A file that a known tool names is the same file below the new place. What a text means, a command above all, nobody can say:
one that names the old place is not made. Nothing else is written than what is below the place where the agent is now.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...questions import calls
from ...questions.calls import WRITERS, CallPlace, Placed
from ...questions.calls import texts_in as texts_of
from .event import HookEvent

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...model.gate import Gate

MOVED_ON = (
    "{path} is below {old}, where you worked before. You go on in {new} now: make the call for {there}. Nothing of {old} is "
    "yours to change here."
)
IN_ANOTHER_PLACE = "If it is resumed in another place, the call is made for {} there."
HERE_ALONE = "If it is resumed in another place, the call is not made there{}, and the agent is told so."


def here_of(desk: Desk) -> str:
    """The folder of the repository that the agent is in, links followed."""
    return os.path.realpath(desk.repo.place)


def place_of(event: HookEvent, desk: Desk) -> CallPlace:
    """Where paths are read from, and where links lead."""
    top = str(desk.repo.place)
    paths = [str(path) for name in ("file_path", "notebook_path", "path") if (path := event.given.get(name))]
    real = {path: os.path.realpath(event.cwd / path) for path in paths if "\0" not in path}
    return CallPlace(top, str(event.cwd), {**real, top: os.path.realpath(top)})


def placed_here(event: HookEvent, desk: Desk) -> Placed:
    """Where the call is to be made."""
    place = place_of(event, desk)
    real = place.real or {}
    root, cwd = real[place.top], os.path.realpath(event.cwd)
    spelt = [place.top]
    for name in ("PWD", "CLAUDE_PROJECT_DIR"):
        # Through a link the folder has another name, which the agent may have been told.
        logical = Path(event.env.get(name) or root)
        spelt += [str(path) for path in (logical, *logical.parents) if os.path.realpath(path) == root]
    return calls.place_call(event.tool, event.given, root, cwd, real, spelt, event.env.get("HOME", ""))


def elsewhere_words(event: HookEvent, placed: Placed) -> str:
    """What is done with the call where the agent is resumed in another directory."""
    if placed.files:
        return IN_ANOTHER_PLACE.format(", ".join(placed.files.values()))
    if event.tool in calls.FILES:
        return HERE_ALONE.format(": its file is outside of the repository")
    return HERE_ALONE.format(": it names this one") if placed.named else ""


def left_behind(event: HookEvent, desk: Desk) -> str:
    """Why a file is not written: the agent still names the folder that it worked in before it was resumed elsewhere."""
    from ...acts.calling import named_gate

    path = event.given.get(calls.FILES.get(event.tool, ""))
    known = event.tool in WRITERS and isinstance(path, str) and "\0" not in path
    gate = named_gate(desk) if known and event.env.get("GITGATE_GATE") else None
    if gate is None or not gate.opened.asked.directory:
        return ""
    real, here = os.path.realpath(event.cwd / str(path)), here_of(desk)
    old = os.path.realpath(gate.opened.asked.directory)
    at = calls.below(real, old)
    if at is None or calls.below(real, here) is not None:
        return ""
    return MOVED_ON.format(path=path, old=old, new=here, there=Path(here, at))


def in_this_place(event: HookEvent, desk: Desk, gate: Gate) -> tuple[Mapping[str, object], str]:
    """An approved call as it is to be made in this folder, or why it is not to be."""
    from ...context import presence

    placed, here = calls.placed_of(gate), here_of(desk)
    if placed is None:
        return event.given, against_unplaced(event, gate, here)
    stayed = here == placed.root and presence.find_presence(desk, gate.id) is not None
    name = calls.FILES.get(event.tool, "")
    given = event.given.get(name)
    if not isinstance(given, str):
        return event.given, against_text(event, placed, here)
    if stayed and Path(given).is_absolute():
        return event.given, ""
    if name not in placed.files:
        return event.given, f"{given} is not below {placed.root}, where it was approved"
    found = calls.moved(event.given, placed, here)
    if calls.below(os.path.realpath(str(found[name])), here) is None:
        return event.given, f"{placed.files[name]} leads out of {here}"
    return found, ""


def against_unplaced(event: HookEvent, gate: Gate, here: str) -> str:
    """The same for a gate that does not say where its call was to be made; nothing where it may be made as it is."""
    old = gate.opened.asked.directory
    if here == os.path.realpath(old or here):
        return ""
    if event.tool in calls.FILES or any(calls.names_folder(text, [old]) for text in texts_of(event.given)):
        return f"it was approved for {old}"
    return ""


def against_text(event: HookEvent, placed: Placed, here: str) -> str:
    """Why a call that is a text, a command above all, is not made here; nothing where it may be."""
    if placed.named and here != placed.root:
        return f"it names {placed.root}, where it was approved"
    cwd = os.path.realpath(event.cwd)
    now = calls.below(cwd, here) or cwd
    return "" if now == placed.cwd else f"it was approved in {placed.cwd}, and would be made in {now}"
