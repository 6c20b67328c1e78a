"""Setup: which of our hooks Claude Code would run if it were started in one folder, for `git gate doctor`.

The program reads a project's settings only in the folder where it is started; a plugin and a person's own settings count in every one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from ..agents.claude.command import plugin_folder
from ..agents.claude.switches import read_switches, settings_in_order
from ..context import Desk
from ..document import dataclass
from ..policy.rulebook import has_rules
from . import MARK, SETTINGS, settings_with_mark
from .checkup import GOOD, MISSING, WRONG, Finding

NAME = "Claude Code here"
PLUGIN = "gitgate@"
WRAPPED = 'git gate wrap -- claude -p "The task"'
EVERYWHERE = (
    "the plugin's hooks run in every folder: questions become gates, and calls that need approval wait"
)
OWN = "your own settings have the hooks, for every folder: questions become gates, and calls that need approval wait"
AT_THE_TOP = "the project's hooks run where it is started here; in a folder below only the plugin's do, and those of `git gate wrap`"
NOT_HERE = "plain `claude` started here runs no hook of git gate, so that nothing waits and nothing is asked: {why}. `git gate wrap` gives the hooks by itself"
ELSEWHERE = "it reads the project's settings only where it is started, and they stand in {top}"
NOWHERE = "neither this folder nor your own settings have them"


@dataclass(frozen=True)
class HooksHere:
    """Places where hooks of ours are found for a folder: the plugin, a person's own settings, the project's. `off`
    names what would keep them from running.
    """

    plugin: bool = False
    own: bool = False
    project: bool = False
    off: tuple[str, ...] = ()


def look_for_hooks(folder: Path, env: Mapping[str, str]) -> HooksHere:
    """Return which hooks the settings name that Claude Code would read in that folder."""
    here = folder / ".claude"
    plugin = own = project = False
    for place, said in settings_in_order((), folder, env):
        plugin = plugin or has_plugin(said)
        ours = MARK in str(said.get("hooks", ""))
        project = project or (ours and Path(place).parent == here)
        own = own or (ours and Path(place).parent != here)
    return HooksHere(plugin, own, project, read_switches((), folder, env).hooks)


def has_plugin(said: Mapping[str, Any]) -> bool:
    enabled = said.get("enabledPlugins")
    names = enabled.items() if isinstance(enabled, Mapping) else ()
    return any(str(name).startswith(PLUGIN) and bool(on) for name, on in names)


def examine_hooks(desk: Desk, folder: Path) -> Iterator[Finding]:
    """Say what holds for Claude Code where a person stands; nothing where it is neither installed nor set up."""
    env, top = desk.settings.env, desk.repo.top
    if top is None:
        return
    at_top = settings_with_mark(top)
    if not at_top and shutil.which("claude", path=env.get("PATH")) is None:
        return
    found = look_for_hooks(folder, env)
    if found.off:
        words = f"its hooks are switched off: {', '.join(found.off)}"
        yield Finding(NAME, WRONG if has_rules(desk) else MISSING, words, "take that out")
    elif found.plugin:
        yield Finding(NAME, GOOD, EVERYWHERE)
    elif found.own:
        yield Finding(NAME, GOOD, OWN)
    elif found.project:
        yield Finding(NAME, GOOD, AT_THE_TOP)
    elif at_top or has_rules(desk):
        why = ELSEWHERE.format(top=top / SETTINGS) if at_top else NOWHERE
        yield Finding(NAME, MISSING, NOT_HERE.format(why=why), installing())


def installing() -> str:
    """Return the command that gives the hooks to every folder; from an installation without a marketplace, to one run."""
    source = plugin_folder().parent
    if (source / ".claude-plugin" / "marketplace.json").is_file():
        return f"claude plugin marketplace add {quote(str(source))} && claude plugin install gitgate@gitgate"
    return f"claude --plugin-dir {quote(str(plugin_folder()))}, or: {WRAPPED}"
