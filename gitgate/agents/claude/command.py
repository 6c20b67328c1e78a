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

from ...errors import Usage

FLAG, END = "--settings", "--"
# What a conversation forgets when it ends, by each spelling: whether it takes several words.
LISTS = {
    "--allowedTools": "--allowedTools",
    "--allowed-tools": "--allowedTools",
    "--disallowedTools": "--disallowedTools",
    "--disallowed-tools": "--disallowedTools",
}
SINGLE = ("--permission-mode", "--model")
# Who starts a run that asks for nothing sits beside it. A run that an answer starts again has nobody beside it.
UNWATCHED = ("bypassPermissions",)


def is_claude(words: Sequence[str]) -> bool:
    return bool(words) and PurePath(words[0]).name == "claude"


def lasting_flags(words: Sequence[str]) -> tuple[str, ...]:
    """What a command line permits and forbids, its mode and its model, each flag once."""
    lists: dict[str, list[str]] = {}
    single: dict[str, str] = {}
    current = ""
    for word in words[1 : words.index(END) if END in words else None]:
        name, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in LISTS or name in SINGLE:
            current = LISTS.get(name, name)
            said = [value] if mark else []
        elif word.startswith("-"):
            current, said = "", []
        else:
            said = [word]
        if current in SINGLE and said:
            single[current], current = said[0], ""
        elif current:
            lists[current] = list(dict.fromkeys([*lists.get(current, []), *said]))
    kept = [word for name, values in lists.items() if values for word in (name, ",".join(values))]
    kept += [word for name, value in single.items() if value not in UNWATCHED for word in (name, value)]
    return tuple(kept)


def beside(kept: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Of flags with their values, those whose flag is not among what this machine gives: there its word counts alone."""
    named = {LISTS.get(word.partition("=")[0], word.partition("=")[0]) for word in given}
    pairs = zip(kept[::2], kept[1::2], strict=True)
    return tuple(word for flag, value in pairs if flag not in named for word in (flag, value))


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
