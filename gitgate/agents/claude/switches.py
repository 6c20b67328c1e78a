"""Agents: what keeps our hooks, or our questions, from Claude Code: its flags, its variables, its settings. All of it was measured.

Hooks that come by `--settings` run whatever the folder and its settings are, but where one of these switches them off.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...document import dataclass
from ...errors import Failure
from .command import END, assigned, own_words, parted
from .transcript import config_home

# No hook but an administrator's runs with these, from wherever it comes.
OFF_FLAGS = ("--safe-mode", "--bare")
OFF_VARIABLES = ("CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE")
OFF_SETTING = "disableAllHooks"
# Hooks run, but nobody can be asked: the tool for questions is not offered, or there is no shell to ask in.
PROMPTS, NO_PROMPTS = "--permission-prompts", "none"
RESTRICTED, RESTRICTED_VARIABLE = "--restricted", "CLAUDE_CODE_RESTRICTED"
DENIES = "denyInsteadOfPrompting"
SOURCES = "--setting-sources"
EVERY_SOURCE = "user,project,local"
TRUE = frozenset(("1", "true", "yes", "on"))
MOST_SETTINGS = 1 << 20
GIVEN = "--settings"


@dataclass(frozen=True)
class Switches:
    """Hooks and questions that a command of Claude Code switches off, each as a person would name it; empty where
    there are none.
    """

    hooks: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


def read_switches(words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Switches:
    """Return what the command, its environment and the settings that it would read in `cwd` switch off."""
    own = own_words(words)
    flags = own[: own.index(END)] if END in own else own
    variables = {**env, **assigned(words)}
    settings = list(settings_in_order(flags, cwd, variables))
    return Switches(
        tuple(without_hooks(flags, variables, settings)), tuple(without_questions(flags, variables, settings))
    )


def without_hooks(
    flags: Sequence[str], env: Mapping[str, str], settings: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[str]:
    yield from (flag for flag in OFF_FLAGS if flag in flags)
    yield from (f"{name}={env[name]}" for name in OFF_VARIABLES if is_set(env, name))
    for place, said in settings:
        theirs = said.get("env")
        given = (
            {str(name): str(value) for name, value in theirs.items()} if isinstance(theirs, Mapping) else {}
        )
        yield from (f"{name} in {place}" for name in OFF_VARIABLES if is_set(given, name))
    for place, said in settings:
        if isinstance(said.get(OFF_SETTING), bool):
            if said[OFF_SETTING]:
                yield f"{OFF_SETTING} in {place}"
            return  # what comes first counts alone, also where it says false


def without_questions(
    flags: Sequence[str], env: Mapping[str, str], settings: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[str]:
    if value_of(flags, PROMPTS) == NO_PROMPTS:
        yield f"{PROMPTS} {NO_PROMPTS}"
    if RESTRICTED in flags or is_set(env, RESTRICTED_VARIABLE):
        yield f"{RESTRICTED} (it has no shell to ask in)"
    for place, said in settings:
        permissions = said.get("permissions")
        if isinstance(permissions, Mapping) and isinstance(permissions.get(DENIES), bool):
            if permissions[DENIES]:
                yield f"permissions.{DENIES} in {place}"
            return


def is_set(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").strip().lower() in TRUE


def value_of(flags: Sequence[str], name: str, otherwise: str = "") -> str:
    """Return what a flag is given last, apart or behind `=`."""
    found = otherwise
    for word, after in zip(flags, (*flags[1:], ""), strict=False):
        flag, equals, value = word.partition("=")
        if flag == name:
            found = value if equals else after
    return found


def settings_in_order(
    flags: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the settings that count, the strongest first, each with where it stands."""
    given = parted(flags)[1]
    if given:
        yield GIVEN, parse_settings(given if given.lstrip().startswith("{") else settings_text(cwd / given))
    taken = [name.strip() for name in value_of(flags, SOURCES, EVERY_SOURCE).split(",")]
    folder = cwd / ".claude"
    places = {"local": folder / "settings.local.json", "project": folder / "settings.json"}
    with contextlib.suppress(Failure):  # there is no home, and so nothing in it
        places["user"] = config_home(env) / "settings.json"
    for name, place in places.items():
        if name in taken:
            yield str(place), parse_settings(settings_text(place))


def settings_text(place: Path) -> str:
    """Return a file's text; nothing where it cannot be read: then the program reads nothing of it either."""
    try:
        with place.open(encoding="utf-8-sig") as file:
            return file.read(MOST_SETTINGS)
    except (OSError, ValueError):
        return ""


def parse_settings(text: str) -> Mapping[str, Any]:
    """Return the settings in a text; none where it is no JSON object."""
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
