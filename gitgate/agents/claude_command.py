"""Agents: a person's own command for Claude Code, given settings of ours besides theirs.

The program takes one `--settings`: of several the last counts, and the others are as if nobody had said them. So ours and
theirs become one. What is in `.claude/settings.json` is no substitute: in a folder that nobody trusted, as every job's
checkout is, the program leaves out what that file allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ..errors import Usage

FLAG, END = "--settings", "--"


def is_claude(words: Sequence[str]) -> bool:
    return bool(words) and PurePath(words[0]).name == "claude"


def with_settings(
    words: Sequence[str], ours: Mapping[str, Any], read: Callable[[str], str]
) -> tuple[str, ...]:
    """The command with both; `read` gives the text of a file that theirs names."""
    rest, given = parted(words[1:])
    theirs = parsed(given if given.lstrip().startswith("{") else read(given)) if given else {}
    return (words[0], FLAG, json.dumps(merged(theirs, ours)), *rest)


def parted(words: Sequence[str]) -> tuple[list[str], str]:
    """The words without `--settings`, and what it said last."""
    rest: list[str] = []
    given, left = "", list(words)
    while left:
        word = left.pop(0)
        if word == END:
            return [*rest, word, *left], given
        if word == FLAG and left:
            given = left.pop(0)
        elif word.startswith(f"{FLAG}="):
            given = word.partition("=")[2]
        else:
            rest.append(word)
    return rest, given


def parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Usage(
            "--settings of the agent's command is no JSON object", hint="a file of it, or the object itself"
        )
    return found


def merged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of both, one after the other; of anything else, theirs stays where we say nothing."""
    found = dict(theirs)
    for name, value in ours.items():
        there = found.get(name)
        if isinstance(there, Mapping) and isinstance(value, Mapping):
            found[name] = merged(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            found[name] = [*there, *(item for item in value if item not in there)]
        else:
            found[name] = value
    return found
