"""Agents: one adapter for each program that asks and is resumed, and what all of them together say.

A new agent is one file beside these and one line in `AGENTS`: by what it is known, what configures it, how it is started.
Everything else about agents is derived from that. Whether we run inside one is asked in the order of `AGENTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model.gate import SessionRef
from ..store.git import reaches
from .agent import Agent, EndedCommand
from .claude import Claude
from .codex import Codex
from .command import Command, Qwen
from .copilot import Copilot
from .flow import FlowRun
from .gemini import Gemini
from .opencode import OpenCode

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        Claude(),
        Codex(),
        Gemini(),
        OpenCode(),
        Copilot(),
        Qwen(),
        FlowRun(),  # after the programs: what one of its steps asks in its shell is that agent's
        Command(),  # any other program
    )
}

# Of a CI job: what our own steps log in with, and the files that steer the steps after this one.
LOGIN, GITLAB_LOGIN = "GITGATE_GITHUB_TOKEN", "GITGATE_GITLAB_TOKEN"
OF_THE_JOB = (
    LOGIN,
    GITLAB_LOGIN,
    "CI_JOB_TOKEN",
    "CI_BUILD_TOKEN",
    "CI_REPOSITORY_URL",
    "CI_REGISTRY_PASSWORD",
    "CI_DEPENDENCY_PROXY_PASSWORD",
    "CI_DEPLOY_PASSWORD",
    "TRIGGER_PAYLOAD",
    "GITGATE_WEBHOOK_SECRET",
    "GITGATE_SESSION_KEY",
    "GITHUB_ENV",
    "GITHUB_PATH",
)
# What configures several programs, or any of them.
FOLDERS, FILES = (".agents",), ("agents.md", "agents.override.md")


def adapter(name: str) -> Agent:
    """The adapter for an agent of that name: one of its own, or the one for any program."""
    return AGENTS.get(name) or AGENTS["command"]


def mark_in(env: Mapping[str, str]) -> str:
    """The mark of an agent's program that an environment has; empty when it has none."""
    return next((mark for agent in AGENTS.values() if (mark := own_mark(agent, env))), "")


def own_mark(agent: Agent, env: Mapping[str, str]) -> str:
    """The variable by which an environment is this program's; one that is empty says nothing."""
    for mark in agent.all_marks:
        name, equals, value = mark.partition("=")
        said = env.get(name)
        if said and (not equals or said == value):
            return name
    return ""


def program_in(env: Mapping[str, str]) -> Agent | None:
    """The program whose shell an environment is; one that only says that it is an agent's is none that we know."""
    known = (agent for agent in AGENTS.values() if agent.name != "command")
    return next((agent for agent in known if own_mark(agent, env)), None)


def program_of_process(called: str, words: Sequence[str]) -> Agent | None:
    """The program that a process is, by what the system calls it and by its command line."""
    return next((agent for agent in AGENTS.values() if agent.is_process(called, words)), None)


def detect(env: Mapping[str, str]) -> SessionRef | None:
    """The conversation that this process runs inside, if any."""
    return next((found for agent in AGENTS.values() if (found := agent.detect(env))), None)


def without_conversation(env: Mapping[str, str]) -> dict[str, str]:
    """An environment that names no conversation: for who asks on behalf of another program than the one it runs inside."""
    named = {name for agent in AGENTS.values() for name in agent.sessions}
    return {name: value for name, value in env.items() if name not in named}


def is_agents(variable: str) -> bool:
    """Return whether an agent's program leaves this variable to the programs that it starts."""
    return any(agent.leaves(variable) for agent in AGENTS.values())


def scrubbed(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without what belongs to the git command, the agent or the gate that this process was started from."""

    def is_inherited(name: str) -> bool:
        return name.startswith("GIT_") or name in OF_THE_JOB or is_agents(name)

    return {name: value for name, value in env.items() if not is_inherited(name)}


CALLER = ("GITGATE_AGENT", "GITGATE_GATE")


def without_caller(env: Mapping[str, str]) -> dict[str, str]:
    """An environment for a runner: nothing in it tells of the push, the agent or the gate that it was started by.

    How git reaches the remote it does tell: what the runner's agent made has to get there. The agent itself is started
    without that (`scrubbed`).
    """
    kept = {name: value for name, value in env.items() if reaches(name)}
    return {name: value for name, value in {**kept, **scrubbed(env)}.items() if name not in CALLER}


def read_end(argv: Sequence[str], out: bytes) -> EndedCommand | None:
    """Return the end of somebody's command, if its output is that of a program that we know; None otherwise."""
    return next((ended for agent in AGENTS.values() if (ended := agent.read_end(argv, out))), None)


def configuration() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of folders and of files that configure agents in a repository, in lower case."""
    folders = (name for agent in AGENTS.values() for name in agent.folders)
    files = (name for agent in AGENTS.values() for name in agent.files)
    return tuple(dict.fromkeys((*folders, *FOLDERS))), tuple(dict.fromkeys((*files, *FILES)))


def seen_by_git(env: Mapping[str, str]) -> Mapping[str, str]:
    """`env` as git should see it: without what the shell of an agent's program put there so that git finds nothing of the person's.

    Our own git asks on the person's behalf, as it does inside of the other programs. A setting that has another value than
    the program gives it is somebody's own, and stays.
    """
    hidden = {
        said
        for agent in AGENTS.values()
        if agent.hides_from_git and own_mark(agent, env)
        for said in agent.hides_from_git
    }
    return uncovered(env, hidden) if hidden else env


def uncovered(env: Mapping[str, str], hidden: set[str]) -> dict[str, str]:
    """`env` without these variables, and without these of git's settings (`GIT_CONFIG_KEY_0` and so on, counted anew)."""
    count = env.get("GIT_CONFIG_COUNT", "")
    numbers = range(int(count) if count.isdecimal() and len(count) < 5 else 0)
    pairs = [(env.get(f"GIT_CONFIG_KEY_{n}", ""), env.get(f"GIT_CONFIG_VALUE_{n}", "")) for n in numbers]
    kept = [(key, value) for key, value in pairs if f"{key.lower()}={value}" not in hidden]
    rest = {
        name: value
        for name, value in env.items()
        if f"{name}={value}" not in hidden
        and not (numbers and name.startswith(("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_COUNT")))
    }
    for number, (key, value) in enumerate(kept):
        rest |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**rest, "GIT_CONFIG_COUNT": str(len(kept))} if kept else rest
