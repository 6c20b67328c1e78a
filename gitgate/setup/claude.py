"""Setup: Claude Code's part of a project: hooks in its settings, the shim that they call, and the skill.

They stand in the project, to be committed, so that every clone's agents ask. Settings of the project's own are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..agents.claude.command import SHIM, hook_settings, plugin_folder
from ..context.desk import Desk
from ..errors import Failure
from .steps import Step, put_text, take_away, text_of, top_of

SETTINGS, PLACED, SKILL = (
    ".claude/settings.json",
    ".claude/gitgate-hook",
    ".claude/skills/asking-a-person/SKILL.md",
)
MARK = "gitgate-hook"
PROGRAM = "gitgate.program"


def claude_steps(desk: Desk) -> list[Step]:
    top = top_of(desk)
    here = load_json(top / SETTINGS)
    wanted = with_hooks(here, hook_settings(f'sh "$CLAUDE_PROJECT_DIR"/{PLACED}'))
    plugin = plugin_folder()
    return [
        program(desk),
        copied(
            top,
            PLACED,
            plugin / SHIM,
            "the hooks call it; without git gate it denies questions instead of passing them",
        ),
        Step(
            f"hooks in {SETTINGS}",
            "Claude Code's questions, and calls that .gitgate.yml names, become gates (commit it with the two others)",
            here == wanted,
            lambda: save(top / SETTINGS, wanted),
        ),
        copied(
            top,
            SKILL,
            plugin / "skills/asking-a-person/SKILL.md",
            "teaches when to ask, and what a good question has",
        ),
    ]


def claude_removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    top = desk.repo.top
    here = load_json(top / SETTINGS)
    without = with_hooks(here, {})

    def take() -> None:
        if without:
            save(top / SETTINGS, without)
        else:
            take_away(top / SETTINGS, top)

    gone = [Step(name, "taken away", not (top / name).exists(), away(top, name)) for name in (PLACED, SKILL)]
    known = PROGRAM in desk.settings.git
    forget = Step(
        f"config {PROGRAM}", "forgotten", not known, lambda: configure(desk, "--unset-all", PROGRAM)
    )
    return [
        Step(f"hooks in {SETTINGS}", "taken away; other settings stay", here == without, take),
        *gone,
        forget,
    ]


def away(top: Path, name: str) -> Callable[[], None]:
    return lambda: take_away(top / name, top)


def program(desk: Desk) -> Step:
    """Where git-gate is, for a hook that does not find it on PATH."""
    place = str(Path(sys.executable).parent / "git-gate")
    said = desk.settings.git.get(PROGRAM)
    return Step(
        f"config {PROGRAM} {place}",
        "where hooks find git gate when it is not on PATH",
        said == place,
        lambda: configure(desk, "--replace-all", PROGRAM, place),
    )


def configure(desk: Desk, *args: str) -> None:
    desk.repo.git.run("config", "--local", *args)


def copied(top: Path, name: str, source: Path, words: str) -> Step:
    text = text_of(source)
    if not text:
        raise Failure(
            "the plugin is not part of this installation", hint="pip install --force-reinstall git-gate"
        )
    current = text_of(top / name) == text
    return Step(name, words, current, lambda: put_text(top / name, text, executable=name == PLACED))


def load_json(place: Path) -> dict[str, Any]:
    text = text_of(place)
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as wrong:
        raise Failure(f"{place} is not JSON: {wrong}", hint="mend it, and run this again") from wrong
    if not isinstance(found, dict) or not isinstance(found.get("hooks", {}), dict):
        raise Failure(
            f"{place} is not in the form of Claude Code's settings", hint="mend it, and run this again"
        )
    return found


def save(place: Path, value: dict[str, Any]) -> None:
    put_text(place, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def with_hooks(here: dict[str, Any], ours: dict[str, object]) -> dict[str, Any]:
    """The settings with our hooks and no older ones of ours; every other hook stays where it was."""
    hooks: dict[str, Any] = {}
    for event in dict.fromkeys((*here.get("hooks", {}), *ours)):
        before = here.get("hooks", {}).get(event, [])
        others = (
            [kept for entry in before if (kept := without_ours(entry))]
            if isinstance(before, list)
            else before
        )
        mine = ours.get(event, [])
        if others or mine:
            hooks[event] = [*others, *mine] if isinstance(mine, list) else others
    rest = {name: value for name, value in here.items() if name != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def without_ours(entry: Any) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("hooks"), list):
        return entry
    kept = [
        hook
        for hook in entry["hooks"]
        if MARK not in str(hook.get("command") if isinstance(hook, dict) else "")
    ]
    if len(kept) == len(entry["hooks"]):
        return entry
    return {**entry, "hooks": kept} if kept else None
