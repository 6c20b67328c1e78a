"""Core: calls by which an agent would answer its own gate, or grant itself power. They are refused before they are made.

Best effort: it keeps an agent from a mistake and from the plain ways, not from every way there is. What holds where it
matters are signatures and the server's rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .shell import Words, commands, gate_verb, git_verb, plain_words

# What people do. `edit` moves a deadline, at which a default may apply; `session` erases.
FOR_PEOPLE = frozenset(("respond", "signal", "join", "continue", "stop", "edit", "session"))
READS = frozenset(
    (
        "log",
        "show",
        "for-each-ref",
        "cat-file",
        "rev-parse",
        "ls-remote",
        "diff",
        "ls-tree",
        "rev-list",
        "show-ref",
    )
)
READERS = frozenset("ls cat head tail less more grep rg wc stat file find tree echo printf".split())
RECORDS = re.compile(r"refs[/\\]+(?:hitl|gitgate)\b")
# Files of git's own folder that hold records, or say who may do what.
KEPT = re.compile(
    r"(?:^|[/\\\s'\"=>])\.git[/\\](?:.*[/\\])?(?:refs[/\\](?:hitl|gitgate)\b|packed-refs$|gitgate\b|config$|hooks[/\\])"
)
PYTHON = re.compile(
    r"\bgitgate\s*\.\s*(?:respond|signal|stop|edit)\b|\bfrom\s+gitgate\b.*\bimport\b.*\b(?:respond|signal|stop)\b"
)
REDIRECTED = re.compile(r">[>|]?\s*([^\s;&|<>]+)")
WRITERS = frozenset(("Write", "Edit", "MultiEdit", "NotebookEdit"))
ASK_INSTEAD = "Leave it to the person: ask with `git gate ask`, and read answers with `git gate check ID`."


def refusal(tool: str, given: Mapping[str, object]) -> str:
    """Why this call is not to be made; empty when nothing speaks against it."""
    if tool in ("Bash", "PowerShell"):
        command = given.get("command")
        return refused_command(command) if isinstance(command, str) else ""
    if tool in WRITERS:
        path = given.get("file_path") or given.get("notebook_path")
        if isinstance(path, str) and KEPT.search(path):
            return f"{path} belongs to git, and is not to be written by hand. {ASK_INSTEAD}"
    return ""


def refused_command(text: str) -> str:
    if not any(word in text for word in ("gate", "hitl", ".git/")):
        return ""
    if PYTHON.search(text):
        return f"An agent does not answer or end gates. {ASK_INSTEAD}"
    found = next((reason for words in commands(text) if (reason := refused_words(words))), "")
    return found or refused_records(text)


def refused_words(words: Words) -> str:
    verb = gate_verb(words)
    if verb and verb[0] in FOR_PEOPLE:
        return f"`git gate {verb[0]}` is for people; an agent does not answer, end or change gates. {ASK_INSTEAD}"
    if any("gate" in word for word in words if word.startswith("alias.")):
        return f"An alias for `git gate` would hide what it does. {ASK_INSTEAD}"
    git = git_verb(words)
    if git[:1] == ("config",) and sets_power(git[1:]):
        return "Settings of git gate grant power, and are a person's to change."
    return ""


def sets_power(words: Words) -> bool:
    """Whether `git config` with these words changes a setting of ours."""
    named = [place for place, word in enumerate(words) if word.lower().startswith(("gitgate.", "alias.gate"))]
    reading = any(
        word in ("get", "--get", "--get-all", "--get-regexp", "list", "--list", "-l") for word in words
    )
    setting = words[:1] and words[0] in (
        "set",
        "unset",
        "--unset",
        "--add",
        "--replace-all",
        "--unset-all",
        "remove-section",
    )
    return (
        bool(named)
        and not reading
        and (bool(setting) or named[0] + 1 < len(words) or words[0] == "--remove-section")
    )


def refused_records(text: str) -> str:
    """A command that names the records, or git's own files, in any way but to read them."""
    for words in commands(text):
        touches = any(RECORDS.search(word) or KEPT.search(word) for word in words)
        verb = git_verb(words)
        if touches and not (verb and verb[0] in READS) and words[0] not in READERS:
            return f"Gates are changed through `git gate` alone. {ASK_INSTEAD}"
    # Named, but not as a word of a command: given on standard input, redirected to, or hidden in a script.
    if RECORDS.search(text) and re.search(r"update-ref|\bpush\b|symbolic-ref", text):
        return f"Gates are changed through `git gate` alone. {ASK_INSTEAD}"
    if any(RECORDS.search(target) or KEPT.search(target) for target in REDIRECTED.findall(text)):
        return f"Gates are changed through `git gate` alone. {ASK_INSTEAD}"
    return ""


def asks(text: str) -> bool:
    """Whether a command asks through `git gate ask`, and exits before there is an answer."""
    for words in commands(text):
        verb = gate_verb(words)
        waits = any(word == "--wait" or word.startswith("--wait-for") for word in verb)
        if verb[:1] == ("ask",) and not waits and not {"-h", "--help"} & set(verb):
            return True
    return False


# What an agent may always do: ask, and hear the answer. With these options it would reach further than its own words.
ASKING = frozenset(("ask", "check", "wait"))
REACHES = ("--include", "--mcp-config", "--cwd", "-C")
FILES = frozenset(("--attach", "--file", "--schema"))
ONE_OUTPUT = re.compile(r"[ \t]2>&1[ \t\n]*\Z")
TEXTS = frozenset(("--context", "--session-context", "--system-prompt"))


def plain_asking(text: str) -> Words:
    """The verb and arguments of a line that is one plain call of `git gate` to ask or to hear the answer; else empty.

    Nothing stands before it (a variable, another setting of git) and nothing beside it. That both of its outputs are to go
    to one place, as agents often say, changes nothing.
    """
    words = plain_words(ONE_OUTPUT.sub("", text))
    rest = words[1:] if words[:1] == ("git-gate",) else words[2:] if words[:2] == ("git", "gate") else ()
    reaches = any(word.partition("=")[0] in REACHES or word.startswith("-C") for word in rest)
    return rest if rest and rest[0] in ASKING and not reaches else ()


def files_read(words: Words) -> list[str]:
    """The files whose content such a call would make part of a question."""
    found = []
    for word, after in zip(words, (*words[1:], ""), strict=True):
        flag, equals, value = word.partition("=")
        said = value if equals else after
        if flag in FILES:
            found.append(said)
        elif flag in TEXTS and said.startswith("@"):
            found.append(said[1:])
    return found
