"""Text: commands: patterns that they and paths are held against, and what a shell command would run, as far as that can be told."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache

# Patterns with `*`, for commands and for paths. None of them can take long, whatever it is held against.


PARTS = r"\*\*/|\*+|\?"
# The wildcards of a path: `*` and `?` stay within a folder; `**/` is any folders, or none.
STAR, ONE, DEEP, FOLDERS = "*", "?", "**", "**/"


@cache
def of_text(pattern: str) -> re.Pattern[str]:
    """`*` is anything at all, `?` one character; `x:*` is `x*`, as Claude Code writes it."""
    plain = pattern[:-2] + "*" if pattern.endswith(":*") else pattern
    first, *rest = [re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", plain)]
    if not rest:
        return re.compile(first, re.DOTALL)
    # What follows a star is looked for once, where it comes first: a later place would fit no better.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{between}.*{rest[-1]}", re.DOTALL)


def fits_path(pattern: str, path: str) -> bool:
    """Whether a path is one that the pattern names, or lies in a folder that it names."""
    tokens = path_tokens(pattern.removeprefix("./").rstrip("/"))
    states = entered({0}, tokens)
    for letter in path:
        if letter == "/" and len(tokens) in states:
            return True
        states = entered({after for state in states for after in moves(state, letter, tokens)}, tokens)
    return len(tokens) in states


@cache
def path_tokens(pattern: str) -> tuple[str, ...]:
    """A pattern cut into wildcards and single letters."""
    tokens: list[str] = []
    last = 0
    for found in re.finditer(PARTS, pattern):
        tokens += pattern[last : found.start()]
        tokens.append(found.group() if found.group() in (FOLDERS, STAR, ONE) else DEEP)
        last = found.end()
    # A letter that looks like a wildcard cannot be left over: each was taken out above.
    return (*tokens, *pattern[last:])


def entered(states: set[int], tokens: tuple[str, ...]) -> set[int]:
    """The places in the pattern that these lead to without a letter. Inside `**/` a place is counted below zero."""
    todo = list(states)
    found = set(states)
    while todo:
        state = todo.pop()
        if 0 <= state < len(tokens) and tokens[state] in (STAR, DEEP, FOLDERS) and state + 1 not in found:
            found.add(state + 1)
            todo.append(state + 1)
    return found


def moves(state: int, letter: str, tokens: tuple[str, ...]) -> tuple[int, ...]:
    """The places that one more letter leads to."""
    if state < 0:
        return (state, -state) if letter == "/" else (state,)
    if state == len(tokens):
        return ()
    token = tokens[state]
    if token == FOLDERS:
        inside = -(state + 1)
        return (inside, state + 1) if letter == "/" else (inside,)
    if token == DEEP:
        return (state,)
    if token == STAR:
        return () if letter == "/" else (state,)
    if token == ONE:
        return () if letter == "/" else (state + 1,)
    return (state + 1,) if token == letter else ()


# What a shell command would run, as far as that can be told without running it.
#
# Best effort, and on the side of seeing too much: a command that is built at run time, or run by a
# script, is not seen.


MOST_TEXT = 60_000
MOST_DEPTH = 4
SEPARATORS = ";&|()<>`\n"
ASSIGNMENT = r"(?s)[A-Za-z_]\w*\+?=.*"
# What runs the words after it, with options of its own between.
WRAPPERS = frozenset(
    "sudo doas env command exec nohup time nice ionice timeout xargs stdbuf setsid builtin watch unbuffer chronic".split()
)
KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "for", "case", "in")
)
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
INNER = r"\$\(|`"
# Options of git itself that take the next word along.
GIT_OPTIONS = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
)
GATE_OPTIONS = frozenset(("-C", "--color"))

Words = tuple[str, ...]


def commands(text: str, depth: int = 0) -> Iterator[Words]:
    """The simple commands in `text`, each as its words with the program's bare name first; nested ones too."""
    for words in simple(text):
        if depth < MOST_DEPTH:
            for inner in nested(words):
                yield from commands(inner, depth + 1)
        yield from unwrapped(words)


def simple(text: str) -> Iterator[Words]:
    """`text` cut where one command ends and the next begins."""
    try:
        tokens = tokens_of(text)
    except ValueError:
        tokens = re.findall(r"[;&|()<>`\n]+|[^\s;&|()<>`\n]+", text.replace('"', " ").replace("'", " "))
    words: list[str] = []
    for token in tokens:
        if token and not token.strip(SEPARATORS):
            if words:
                yield tuple(words)
            words = []
        else:
            words.append(token)
    if words:
        yield tuple(words)


def tokens_of(text: str) -> list[str]:
    """As a shell reads words; ValueError where quotes do not close, or where it is too long to be read so."""
    if len(text) > MOST_TEXT:
        raise ValueError("too long")
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=SEPARATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    return list(lexer)


# Outside of quotes a shell may make something else of these: a command, a file, a list of files, another word.
NOT_PLAIN = frozenset(";&|<>()$`*?[]{}^\\\n\r\0")
NOT_FIRST = frozenset("~#!=")
PLAIN = (
    r"""'(?P<single>[^'\0]*)'|"(?P<double>(?:[^"$`\\\0]|\\[^\n\0])*)"|(?P<bare>[^\s'"]+)|(?P<blank>[ \t]+)"""
)


def plain_words(text: str) -> Words:
    """The words of a line that is one command, and of which a shell makes nothing but these words; empty where it may be more.

    On the side of seeing too little, unlike the rest of this module: what is plain may be let through.
    """
    words: list[str] = []
    plain = re.compile(PLAIN)
    text, place, begun = text.strip(" \t\n"), 0, False
    while place < len(text):
        found = plain.match(text, place) if len(text) <= MOST_TEXT else None
        if found is None:
            return ()
        place, bare = found.end(), found["bare"] or ""
        if found["blank"] is not None:
            begun = False
            continue
        if not NOT_PLAIN.isdisjoint(bare) or (bare and not begun and bare[0] in NOT_FIRST):
            return ()
        part = found["single"] if found["single"] is not None else bare
        if found["double"] is not None:
            part = re.sub(r'\\(["\\$`])', r"\1", found["double"])
        if begun:
            words[-1] += part
        else:
            words.append(part)
        begun = True
    return tuple(words)


def nested(words: Words) -> Iterator[str]:
    """Texts that a command runs as commands: what a shell is given, `eval`, and substitutions."""
    for word in words:
        if re.search(INNER, word):
            yield re.sub(INNER, ";", word).replace(")", ";")
    for place, word in enumerate(words):
        name = bare(word)
        if name == "eval":
            yield " ".join(words[place + 1 :])
        elif name in SHELLS:
            yield from (
                words[after + 1]
                for after in range(place + 1, len(words) - 1)
                if re.fullmatch(r"-[a-z]*c[a-z]*", words[after])
            )


def unwrapped(words: Words) -> Iterator[Words]:
    """The command itself, without assignments before it; behind a wrapper, every place where it may begin."""
    start = 0
    while start < len(words) and (re.fullmatch(ASSIGNMENT, words[start]) or words[start] in KEYWORDS):
        start += 1
    if start == len(words):
        return
    yield (bare(words[start]), *words[start + 1 :])
    if bare(words[start]) in WRAPPERS:
        for later in range(start + 1, min(len(words), start + 12)):
            yield (bare(words[later]), *words[later + 1 :])


def bare(word: str) -> str:
    """A program's name without its folder."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def gate_verb(words: Words) -> Words:
    """The verb of `git gate` that a command runs, with its arguments; empty when it runs none."""
    if not words:
        return ()
    if words[0] == "git-gate":
        return skip_options(words[1:], GATE_OPTIONS)
    if words[0] == "git":
        rest = skip_options(words[1:], GIT_OPTIONS)
        return skip_options(rest[1:], GATE_OPTIONS) if rest[:1] == ("gate",) else ()
    if words[0].startswith("python") and "-m" in words[:-1]:
        rest = words[words.index("-m") + 1 :]
        return skip_options(rest[1:], GATE_OPTIONS) if rest[0] == "gitgate" else ()
    return ()


def git_verb(words: Words) -> Words:
    """The verb of git that a command runs, with its arguments; empty when it runs none."""
    return skip_options(words[1:], GIT_OPTIONS) if words[:1] == ("git",) else ()


def skip_options(words: Words, with_value: frozenset[str]) -> Words:
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in with_value else 1
    return words[place:]


# What people do. `edit` moves a deadline, at which a default may apply; `session` erases.
FOR_PEOPLE = frozenset(("respond", "signal", "join", "continue", "stop", "edit", "session", "fork"))
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
RECORDS = r"refs[/\\]+(?:hitl|gitgate)\b"
# Files of git's own folder that hold records, or say who may do what.
KEPT = r"(?:^|[/\\\s'\"=>])\.git[/\\](?:.*[/\\])?(?:refs[/\\](?:hitl|gitgate)\b|packed-refs$|gitgate\b|config$|hooks[/\\])"
PYTHON = r"\bgitgate\s*\.\s*(?:respond|signal|stop|edit)\b|\bfrom\s+gitgate\b.*\bimport\b.*\b(?:respond|signal|stop)\b"
REDIRECTED = r">[>|]?\s*([^\s;&|<>]+)"
WRITERS = frozenset(("Write", "Edit", "MultiEdit", "NotebookEdit"))
ASK_INSTEAD = "Leave it to the person: ask with `git gate ask`, and read answers with `git gate check ID`."


def why_not_run(tool: str, given: Mapping[str, object]) -> str:
    """Why this call is not to be made; empty when nothing speaks against it."""
    if tool in ("Bash", "PowerShell"):
        command = given.get("command")
        return refused_command(command) if isinstance(command, str) else ""
    if tool in WRITERS:
        path = given.get("file_path") or given.get("notebook_path")
        if isinstance(path, str) and re.search(KEPT, path):
            return f"{path} belongs to git, and is not to be written by hand. {ASK_INSTEAD}"
    return ""


def refused_command(text: str) -> str:
    if not any(word in text for word in ("gate", "hitl", ".git/")):
        return ""
    if re.search(PYTHON, text):
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
        touches = any(re.search(RECORDS, word) or re.search(KEPT, word) for word in words)
        verb = git_verb(words)
        if touches and not (verb and verb[0] in READS) and words[0] not in READERS:
            return f"Gates are changed through `git gate` alone. {ASK_INSTEAD}"
    # Named, but not as a word of a command: given on standard input, redirected to, or hidden in a script.
    if re.search(RECORDS, text) and re.search(r"update-ref|\bpush\b|symbolic-ref", text):
        return f"Gates are changed through `git gate` alone. {ASK_INSTEAD}"
    if any(re.search(RECORDS, target) or re.search(KEPT, target) for target in re.findall(REDIRECTED, text)):
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
ONE_OUTPUT = r"[ \t]2>&1[ \t\n]*\Z"
TEXTS = frozenset(("--context", "--session-context", "--system-prompt"))


def plain_asking(text: str) -> Words:
    """The verb and arguments of a line that is one plain call of `git gate` to ask or to hear the answer; else empty.

    Nothing stands before it (a variable, another setting of git) and nothing beside it. That both of its outputs are to go
    to one place, as agents often say, changes nothing.
    """
    words = plain_words(re.sub(ONE_OUTPUT, "", text))
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
