"""Setup: Claude Code's part of a project: hooks in its settings, the shim that they call, and the skill. They stand in the project,
to be committed, so that every clone's agents ask. Settings of the project's own are kept.

And what a command of Claude Code is given so that it can ask and work: our hooks, and what it may do without being asked. A job's
home is empty and its folder is trusted by nobody, so that without them it neither asks nor edits there, and nobody sees that
it wanted to. The checkout is the job's own and is gone after it; what gets out is commits on the agent's branch, and gates.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..agents.claude.command import SHIM, hook_settings, plugin_folder
from ..context import Desk
from ..errors import Failure, Usage
from ..policy import project
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


MOST_CHARACTERS = 1 << 20


def in_job(env: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub's Actions, or of Gitea's, which say the same; or of GitLab's CI."""
    return "true" in (env.get("GITHUB_ACTIONS"), env.get("GITLAB_CI"))


def permissions_of(desk: Desk, program: str) -> dict[str, list[str]]:
    """What the project permits and forbids, as its protected branch says; in a job what work takes besides. To forbid wins."""
    found = dict(project.permissions(desk, program))
    from ..agents import adapter

    besides = adapter(program).job_rules if in_job(desk.settings.env) else ()
    if besides:
        found["allow"] = list(dict.fromkeys((*found.get("allow", ()), *besides)))
    return found


# What a project's folder says of settings and servers, left out as it is for a resumed agent.
SOURCES, SERVERS = "--setting-sources", "--strict-mcp-config"


def equipped(desk: Desk, words: Sequence[str], doubt: str = "") -> tuple[str, ...]:
    """The command of a program that takes hooks, with them; any other as it is.

    Where there is a `doubt` about what the folder says, nothing of that takes part, unless the command itself says what does.
    """
    from ..agents.claude import command

    if not command.is_claude(words):
        return tuple(words)
    ours: dict[str, object] = {"hooks": command.hooks()}
    may = permissions_of(desk, "claude")
    if may:
        ours["permissions"] = may
    program, *rest = command.with_settings(words, ours, lambda name: text_of_settings(desk, name))
    return (program, *(held_back(words) if doubt else ()), *rest)


PROMPTS, SESSION = ("--permission-prompt-tool", "stdio"), "--session-id"
GOES_ON = ("--resume", "-r", "--continue", "-c", SESSION)


def able_to_ask(desk: Desk, words: Sequence[str], session: str) -> tuple[str, ...]:
    """A person's own `claude -p …` with what it takes to ask, as far as it does not say otherwise; any other command as it is.

    Its own tool for questions is offered only where somebody could be asked. A new conversation is called `session`, so that
    it is known whatever form its output has.
    """
    from ..agents.claude import command

    if not command.is_claude(words) or not (names_flag(words, "-p") or names_flag(words, "--print")):
        return tuple(words)
    given = tuple(words)
    if names_flag(words, SOURCES) or not has_hooks(desk):
        ours = {"hooks": command.hooks()}
        given = command.with_settings(given, ours, lambda name: text_of_settings(desk, name))
    program, *rest = given
    prompts = () if names_flag(words, PROMPTS[0]) else PROMPTS
    called = () if any(names_flag(words, flag) for flag in GOES_ON) else (SESSION, session)
    return (program, *prompts, *called, *rest)


def has_hooks(desk: Desk) -> bool:
    """Whether our hooks stand in the project's own settings, where `git gate init --claude` puts them."""
    from .steps import text_of

    return desk.repo.top is not None and MARK in text_of(desk.repo.top / SETTINGS)


def held_back(words: Sequence[str]) -> tuple[str, ...]:
    """The flags by which Claude Code loads nothing of the folder's own, as far as its command does not say otherwise."""
    sources = () if names_flag(words, SOURCES) else (SOURCES, "user")
    return (*sources, *(() if names_flag(words, SERVERS) else (SERVERS,)))


def names_flag(words: Sequence[str], flag: str) -> bool:
    from ..agents.claude.command import END

    flags = words[: words.index(END)] if END in words else words
    return any(word.partition("=")[0] == flag for word in flags)


def text_of_settings(desk: Desk, name: str) -> str:
    try:
        with (desk.repo.place / name).open(encoding="utf-8-sig") as file:
            return file.read(MOST_CHARACTERS)
    except (OSError, ValueError) as unreadable:
        raise Usage(
            f"--settings of the agent's command cannot be read: {name}",
            hint="a file of the repository, or JSON",
        ) from unreadable
