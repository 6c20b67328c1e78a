"""Agents: a command for Claude Code given our settings besides the person's own, and the hooks in them.

The program takes one `--settings`: of several the last counts, and the others are as if nobody had said them. So ours and
theirs become one. What is in `.claude/settings.json` is no substitute: the program reads that file only in the folder where it
was started, not at the top of the repository; and in a folder that nobody trusted, as every job's checkout is, it leaves out
what that file allows.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from ...document import dataclass
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


@dataclass(frozen=True)
class Launcher:
    """Program that starts another one: its flags that take a word, and how many words of its own stand before that program."""

    takes: tuple[str, ...] = ()
    words: int = 0
    assigns: bool = False


RUNS_PACKAGES = Launcher(("-p", "--package", "-w", "--workspace"))
LAUNCHERS = {
    **dict.fromkeys(("npx", "bunx", "pnpx"), RUNS_PACKAGES),
    **dict.fromkeys(("pnpm", "yarn", "bun"), Launcher(("-p", "--package"), 1)),  # dlx, x, exec
    "env": Launcher(("-u", "--unset", "-C", "--chdir"), assigns=True),
    "sudo": Launcher(("-u", "--user", "-g", "--group", "-h", "-p", "-C", "-D", "-R", "-T"), assigns=True),
    "nice": Launcher(("-n", "--adjustment")),
    "ionice": Launcher(("-c", "-n")),
    "stdbuf": Launcher(("-i", "-o", "-e")),
    "timeout": Launcher(("-k", "--kill-after", "-s", "--signal"), 1),
    "nsenter": Launcher(("-t", "--target")),
    **dict.fromkeys(("node", "nohup", "setsid", "caffeinate"), Launcher()),
}
MOST_LAUNCHERS = 8
PROGRAM = r"claude(?:\.exe|\.cmd)?"
PACKAGE = r"@anthropic-ai/claude-code(?:@[^/]+)?|.*/claude-code/cli\.m?js"


def claude_at(words: Sequence[str]) -> int | None:
    """Return where Claude Code stands in a command line: first, by any path, or behind what starts it; None where it does not."""
    at = 0
    for _ in range(MOST_LAUNCHERS):
        if at >= len(words):
            return None
        name = PurePath(words[at]).name
        if re.fullmatch(PROGRAM, name) or re.fullmatch(PACKAGE, words[at]):
            return at
        if name not in LAUNCHERS:
            return None
        at = behind_launcher(words, at + 1, LAUNCHERS[name])
    return None


def behind_launcher(words: Sequence[str], at: int, launcher: Launcher) -> int:
    """Return where the program stands that a launcher starts."""
    left = launcher.words
    while at < len(words):
        word = words[at]
        if word.startswith("-"):
            at += 2 if word in launcher.takes else 1
        elif launcher.assigns and "=" in word:
            at += 1
        elif left:
            left, at = left - 1, at + 1
        else:
            break
    return at


def is_claude(words: Sequence[str]) -> bool:
    """Return whether a command line starts Claude Code."""
    return claude_at(words) is not None


def own_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command line from Claude Code on; all of it where that is not found."""
    return tuple(words[claude_at(words) or 0 :])


def assigned(words: Sequence[str]) -> dict[str, str]:
    """Return the variables that stand before Claude Code in its command line, as `env` takes them."""
    before = words[: claude_at(words) or 0]
    pairs = (word.partition("=") for word in before if not word.startswith("-") and "=" in word)
    return {name: value for name, _, value in pairs}


def lasting_flags(words: Sequence[str]) -> tuple[str, ...]:
    """Return the permissions and prohibitions of a command line, its mode and its model, each flag once."""
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


# A command line as the system shows it where it keeps no words apart. Each flag that may stand in it takes one word or none.
STARTS = re.compile(r"(?:\S+ )?(?:\S*/)?(?:claude|claude-code/cli\.js)(?= |$)")
ALONE = frozenset(("-p", "--print", "--verbose", "--strict-mcp-config", "-c", "--continue", "--fork-session"))
WITH_WORD = frozenset(
    ("--output-format", "--input-format", "--permission-prompt-tool", "--session-id", "--resume", "-r")
) | frozenset(("--setting-sources", "--max-turns", "--fallback-model", *SINGLE))
WORD = re.compile(r"[\w@:./-]+")
RULES = re.compile(r"[\w*-]+(?:\([^()]*\))?(?:,[\w*-]+(?:\([^()]*\))?)*")
NEWLINES = ("\n", "\\012", "?", " ")


def words_of_line(line: str, said: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line that is one text. `said`: what a person said to the agent, one of which stands in it.

    All of it has to be understood, or nothing is taken: a prompt may hold the words of a flag, and would permit something.
    """
    start = STARTS.match(line)
    if start is None:
        return ()
    rest = without_settings(without_prompt(f"{line[start.end() :]} ", said)).partition(f" {END} ")[0]
    found, at = ["claude"], 0
    while rest[at:].strip():
        at += len(rest[at:]) - len(rest[at:].lstrip())
        name = WORD.match(rest, at)
        if name is None or not name[0].startswith("-"):
            return ()
        flag, at = name[0], name.end()
        taken = values_after(flag, rest, at)
        if taken is None:
            return ()
        values, at = taken
        found += [flag, *values]
    return tuple(found)


def values_after(flag: str, rest: str, at: int) -> tuple[list[str], int] | None:
    """Return the values of a flag, and where they end; None for an unknown flag, or a value of another shape."""
    if flag in ALONE:
        return [], at
    mark = rest[at : at + 1]
    pattern = RULES if flag in LISTS else WORD if flag in WITH_WORD else None
    if pattern is None or mark not in (" ", "="):
        return None
    values: list[str] = []
    while not (values and (mark == "=" or flag not in LISTS)):
        value = pattern.match(rest, at + 1)
        if value is None or value[0].startswith("-") or rest[value.end()] != " ":
            break
        values.append(value[0])
        at = value.end()
    return (values, at) if values else None


def without_prompt(line: str, said: Sequence[str]) -> str:
    """The line without the prompt, where that stands in it once and nothing else can be meant."""
    for text in filter(None, (one.strip() for one in said)):
        for newline in NEWLINES:
            shown = f" {text.replace(chr(10), newline)} "
            if line.count(shown) == 1:
                return line.replace(shown, " ")
    return line


def without_settings(line: str) -> str:
    """The line without `--settings` and its object, as git gate itself gives it."""
    before, flag, after = line.partition(f" {FLAG} ")
    if not flag or not after.startswith("{"):
        return line
    try:
        _, end = json.JSONDecoder().raw_decode(after)
    except (ValueError, RecursionError):
        return line
    return before + after[end:]


def remaining_flags(kept: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the flags with their values that this machine does not set itself: where it does, only its value counts."""
    named = {LISTS.get(word.partition("=")[0], word.partition("=")[0]) for word in given}
    pairs = zip(kept[::2], kept[1::2], strict=True)
    return tuple(word for flag, value in pairs if flag not in named for word in (flag, value))


@dataclass(frozen=True)
class SettingsFiles:
    """Ways to the files of settings: `read` gives the text of one that a command names; `keep` puts one where the account alone
    reads it, and gives its path.
    """

    read: Callable[[str], str]
    keep: Callable[[str], str]


def with_settings(words: Sequence[str], ours: Mapping[str, Any], files: SettingsFiles) -> tuple[str, ...]:
    """Return the command with both, given to Claude Code before everything else, so that nothing can swallow them."""
    at = claude_at(words) or 0
    rest, given = parted(words[at + 1 :])
    return (*words[: at + 1], FLAG, joined_settings(given, ours, files), *rest)


def joined_settings(given: str, ours: Mapping[str, Any], files: SettingsFiles) -> str:
    """Return the value of `--settings` that says both.

    A file of theirs is not changed; what it holds is kept in a file again, as it may be secret, and a command line is not.
    """
    if not given:
        return json.dumps(ours)
    if given.lstrip().startswith("{"):
        return json.dumps(merged(parse_settings_flag(given), ours))
    return files.keep(json.dumps(merged(parse_settings_flag(files.read(given)), ours)))


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


def parse_settings_flag(text: str) -> dict[str, Any]:
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


SHIM = "hooks/gitgate-hook"
# Event: what it is called for, and for how many seconds. Beyond them the program goes on as if nothing had been said.
EVENTS: dict[str, tuple[str, str, int]] = {
    "SessionStart": ("session-start", "", 120),
    "PreToolUse": ("pre-tool-use", "*", 180),
    "PostToolUse": ("post-tool-use", "*", 60),
    "Stop": ("stop", "", 120),
    "SessionEnd": ("session-end", "", 30),
}


def plugin_folder() -> Path:
    """The plugin as it is installed: in a wheel inside the package, in a working copy at its top."""
    package = Path(__file__).parents[2]
    inside = package / "plugin"
    return inside if inside.is_dir() else package.parent / "plugin"


def hook_settings(command: str, program: Sequence[str] = ()) -> dict[str, object]:
    """The hooks in the form of Claude Code's settings: each runs `command`, the event's name and `program` in a shell."""
    found: dict[str, object] = {}
    for event, (name, matcher, seconds) in EVENTS.items():
        line = " ".join([command, name, *map(shlex.quote, program)])
        # A shim that is not there exits otherwise, and then the call would be made.
        line += " || exit 2" if event == "PreToolUse" else ""
        entry = {"hooks": [{"type": "command", "command": line, "timeout": seconds}]}
        found[event] = [{"matcher": matcher, **entry} if matcher else entry]
    return found


def hooks(program: Sequence[str] = ()) -> dict[str, object]:
    """The hooks for an agent that this machine starts: the shim in its place, and this very installation behind it."""
    from ...store.git.programs import our_command

    shim = shlex.quote(str(plugin_folder() / SHIM))
    return hook_settings(f"sh {shim}", program or our_command())
