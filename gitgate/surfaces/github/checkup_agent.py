"""Surfaces: whether the agent that a job starts can ask and work there, read from its command and the project's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...agents.claude import Claude
from ...agents.claude_command import is_claude
from ...service import bylaws
from ...service.desk import Desk
from ...service.finding import GOOD, MISSING, WRONG, Finding

CALLED = "/.github/workflows/agent.yml@"
# What the command needs so that a question is asked, heard and told apart from an end. Each with what is missed without it.
FLAGS = (
    (("-p", "--print"), "-p", "it waits for somebody at a terminal"),
    (
        ("--permission-prompt-tool",),
        "--permission-prompt-tool stdio",
        "it is not offered to ask (AskUserQuestion)",
    ),
    (
        ("--output-format",),
        "--output-format json",
        "nobody sees that it ended by asking, nor which session to save",
    ),
)
WORK = ("Edit", "Write", "Bash", "AskUserQuestion")


def runs_agent(job: Mapping[str, Any]) -> bool:
    return CALLED in str(job.get("uses", ""))


def given_to(job: Mapping[str, Any], what: str = "with") -> Mapping[str, Any]:
    """Nothing where it is empty, or no mapping."""
    said = job.get(what)
    return said if isinstance(said, dict) else {}


def examine_agent(desk: Desk, name: str, job: Mapping[str, Any]) -> Iterator[Finding]:
    """One job's."""
    given = given_to(job)
    words = words_of(given.get("command"))
    about = f"agent of the job {name}"
    if words is None:
        yield Finding(about, WRONG, "command is no JSON list of words", '["claude", "-p", …, "--", "{task}"]')
    elif is_claude(words):
        yield from examine_claude(desk, about, words)
    elif any("claude" in word for word in words):
        yield Finding(
            about,
            MISSING,
            f"{words[0]} starts Claude Code by itself, which is given git gate's hooks only as a command named claude: "
            "its questions are refused",
            'let the command begin with "claude"; or: git gate init --claude',
        )
    elif not (given.get("agent-name") and given.get("agent-resume")):
        said = f"nobody knows how {words[0]} is started again with an answer"
        yield Finding(about, MISSING, said, "agent-name and agent-resume, in both files")
    else:
        yield Finding(about, GOOD, f"{words[0]}, started again as {given['agent-name']}")


def words_of(command: object) -> list[str] | None:
    try:
        words = json.loads(str(command))
    except (ValueError, RecursionError):
        return None
    return (
        words if isinstance(words, list) and words and all(isinstance(word, str) for word in words) else None
    )


def examine_claude(desk: Desk, about: str, words: list[str]) -> Iterator[Finding]:
    flags = {word.partition("=")[0] for word in words}
    lacking = [(flag, missed) for names, flag, missed in FLAGS if not flags.intersection(names)]
    for flag, missed in lacking:
        yield Finding(about, WRONG, f"Claude Code without {flag}: {missed}", f"{flag} in its command")
    rules = bylaws.permissions(desk, "claude")
    forbidden = [rule for rule in rules.get("deny", ()) if rule in WORK]
    if forbidden:
        said = f"{Claude.rules_file} of the default branch forbids {', '.join(forbidden)}"
        yield Finding(about, MISSING, said, "take it from permissions.deny there, unless that is meant")
    if not lacking and not forbidden:
        more = len(rules.get("allow", ()))
        besides = f", and what {more} rules of {Claude.rules_file} permit" if more else ""
        yield Finding(about, GOOD, f"Claude Code asks, edits files and commits there{besides}")
