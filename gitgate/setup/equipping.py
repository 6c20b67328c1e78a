"""Setup: what an agent is given so that it can ask and work: our hooks, and what it may do without being asked.

A job's home is empty and its folder is trusted by nobody, so that without them Claude Code neither asks nor edits there, and
nobody sees that it wanted to. The checkout is the job's own and is gone after it; what gets out is commits on the agent's
branch, and gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..context.desk import Desk
from ..errors import Usage
from ..policy import project

MOST_CHARACTERS = 1 << 20


def in_job(env: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub's Actions, or of Gitea's, which say the same."""
    return env.get("GITHUB_ACTIONS") == "true"


def permissions(desk: Desk, program: str) -> dict[str, list[str]]:
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
    may = permissions(desk, "claude")
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

    if not command.is_claude(words) or not (names(words, "-p") or names(words, "--print")):
        return tuple(words)
    given = tuple(words)
    if names(words, SOURCES) or not has_hooks(desk):
        ours = {"hooks": command.hooks()}
        given = command.with_settings(given, ours, lambda name: text_of_settings(desk, name))
    program, *rest = given
    prompts = () if names(words, PROMPTS[0]) else PROMPTS
    called = () if any(names(words, flag) for flag in GOES_ON) else (SESSION, session)
    return (program, *prompts, *called, *rest)


def has_hooks(desk: Desk) -> bool:
    """Whether our hooks stand in the project's own settings, where `git gate init --claude` puts them."""
    from .claude import MARK, SETTINGS
    from .steps import text_of

    return desk.repo.top is not None and MARK in text_of(desk.repo.top / SETTINGS)


def held_back(words: Sequence[str]) -> tuple[str, ...]:
    """The flags by which Claude Code loads nothing of the folder's own, as far as its command does not say otherwise."""
    sources = () if names(words, SOURCES) else (SOURCES, "user")
    return (*sources, *(() if names(words, SERVERS) else (SERVERS,)))


def names(words: Sequence[str], flag: str) -> bool:
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
