"""Core: what a shell command would run, as far as that can be told without running it.

Best effort, and on the side of seeing too much: a command that is built at run time, or run by a script, is not seen.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

MOST_TEXT = 60_000
MOST_DEPTH = 4
SEPARATORS = ";&|()<>`\n"
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
# What runs the words after it, with options of its own between.
WRAPPERS = frozenset(
    "sudo doas env command exec nohup time nice ionice timeout xargs stdbuf setsid builtin watch unbuffer chronic".split()
)
KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "for", "case", "in")
)
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
INNER = re.compile(r"\$\(|`")
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
PLAIN = re.compile(
    r"""'(?P<single>[^'\0]*)'|"(?P<double>(?:[^"$`\\\0]|\\[^\n\0])*)"|(?P<bare>[^\s'"]+)|(?P<blank>[ \t]+)"""
)


def plain_words(text: str) -> Words:
    """The words of a line that is one command, and of which a shell makes nothing but these words; empty where it may be more.

    On the side of seeing too little, unlike the rest of this module: what is plain may be let through.
    """
    words: list[str] = []
    text, place, begun = text.strip(" \t\n"), 0, False
    while place < len(text):
        found = PLAIN.match(text, place) if len(text) <= MOST_TEXT else None
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
        if INNER.search(word):
            yield INNER.sub(";", word).replace(")", ";")
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
    while start < len(words) and (ASSIGNMENT.fullmatch(words[start]) or words[start] in KEYWORDS):
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
