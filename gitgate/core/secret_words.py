"""Core: secrets that no shape tells, only the name beside them: `password = …`. And what stands there and is none.

Pure: the rules are text that somebody hands in. Used for files that would leave the machine, not to redact a conversation:
there a wrong guess would garble an agent's source text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_LINE = 1000
LEAST_VALUE = 4
# Files that a shell, an editor or a person reads, in which no value needs quotes.
SCRIPTS = frozenset((".sh", ".bash", ".zsh", ".env", ".envrc", ".service", ".http"))
PROSE = frozenset(("", ".txt", ".md", ".rst", ".adoc", ".log", ".org"))
HINTS = ("pass", "pwd", "secret", "key", "contrase")
# What follows the word where a name is of something about a secret.
ABOUT = re.compile(
    r"(?i)(?:file|path|dir|folder|name|names|id|ids|field|header|label|hint|prompt|placeholder|type|kind|len|length|min|max|"
    r"policy|reset|url|uri|env|var|variable|param|class|selector|regex|pattern|format|ref|refs|store|manager|provider|"
    r"version|error|errors|message|text|title|input|prefix|suffix|algorithm|encoding|strength|count|ttl|age|expiry|"
    r"required|enabled|ary|aries|ion|ly)\d?$"
)
NOTHING = frozenset(
    """string str text password passwd pwd secret none null nil true false yes no required optional hidden input object
    integer number boolean bool bytes any undefined changeme change-me changeit invalid missing wrong unknown redacted todo
    tbd default disabled enabled empty confirm reset forgot your-password prompt value""".split()
)
TEMPLATE = re.compile(
    r"(?i)^(?:[x*.…•-]+|<.*>?|\$.*|%.*%?|\{.*|\[.*|@.*@|_+.*_+|.*(?:example|placeholder|change[-_]?me|your[-_]|dummy|redacted|"
    r"not[-_]a[-_]|insert[-_]|replace[-_]|todo|fixme|xxxx|\.\.\.).*)$"
)
READ_FROM = re.compile(
    r"[\[(]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|::|->|^[a-z][a-z0-9+.-]{1,15}://|^(?:~|\.{0,2})/"
)
WORDS = re.compile(r"_?[A-Za-z]+(?:[-_./: ][A-Za-z]+)*")
UUID = re.compile(r"(?i)[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}")
TRIED_OUT = re.compile(
    r"(?i)(?:^|[/_.-])(?:tests?|specs?|fixtures?|mocks?|examples?|samples?|testdata|stories)(?:[/_.-]|$)"
)
IN_A_ROW = ("0123456789" * 2 + "abcdefghijklmnopqrstuvwxyz" * 2, "0123456789abcdef" * 2, "qwertyuiop")


@dataclass(frozen=True)
class Token:
    kind: str
    hint: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class WordRules:
    """Names beside which a secret stands, the endings of files that need no quotes, and shapes of tokens."""

    named: re.Pattern[str]
    keyword: re.Pattern[str]
    unquoted: frozenset[str]
    tokens: tuple[Token, ...]


def parse_rules(text: str) -> WordRules:
    """The rules as they stand in a file: sections of lines; a line that begins with # is for people."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            lines = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    words = "|".join(sections["keywords"])
    tokens = (line.split("\t", 2) for line in sections["tokens"])
    return WordRules(
        named=re.compile(
            rf"(?i)(?P<name>(?:{words})[\w-]{{0,40}})[\]'\"]{{0,2}}[ \t]{{0,4}}(?P<how>:=|=>|={{1,3}}|!==?|:)[ \t]{{0,4}}@?"
            r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`]{1,300})(?P=quote)|(?P<bare>[^\s\"'`#;,][^\s\"'`;,]{0,300})[ \t]{0,4}[;,]?[ \t]{0,4}(?:[#;].*)?$)"
        ),
        keyword=re.compile(f"(?i){words}"),
        unquoted=frozenset(sections["unquoted"]) | SCRIPTS,
        tokens=tuple(Token(kind, hint, re.compile(pattern)) for kind, hint, pattern in tokens),
    )


def named_secret(text: str, path: str, rules: WordRules) -> str:
    """The kind of a secret that a file holds by these rules; empty where it seems to hold none."""
    lowered = text.lower()
    for token in rules.tokens:
        if token.hint in lowered and token.pattern.search(text):
            return token.kind
    for line in suspicious_lines(text if len(lowered) == len(text) else lowered, lowered):
        for match in rules.named.finditer(line):
            if is_secret(match, path, rules):
                return f"a value named {match['name'][:40]}"
    return ""


def suspicious_lines(text: str, lowered: str) -> Iterator[str]:
    """Lines that may hold one of the names, found by parts of them, which is quick. A longer line is made by a program."""
    for hint in HINTS:
        done = 0
        while (at := lowered.find(hint, done)) >= 0:
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            done = end = len(text) if end < 0 else end
            line = text[start:end]
            if len(line) <= MOST_LINE and (":" in line or "=" in line):
                yield line.rstrip("\r")


def is_secret(match: re.Match[str], path: str, rules: WordRules) -> bool:
    value = match["quoted"] if match["bare"] is None else match["bare"]
    if ABOUT.search(match["name"]) or is_none(value, rules):
        return False
    if TRIED_OUT.search(path):  # A made-up one belongs to a test as much as the rest of it.
        return len(value) >= 20 and is_mixed(value)
    kind = ending(path)
    if match["bare"] is not None:
        return kind in rules.unquoted or (kind in PROSE and (match["how"] == "=" or is_mixed(value)))
    return is_mixed(value) or not value.istitle()


def is_none(value: str, rules: WordRules) -> bool:
    """Whether it is nothing, a placeholder, a kind of value, read from elsewhere, or words about a secret."""
    low = value.lower()
    return (
        len(value) < LEAST_VALUE
        or low in NOTHING
        or not any(letter.isalpha() for letter in value)
        or " " in value.strip()
        or any(low in row for row in IN_A_ROW)
        or bool(TEMPLATE.match(value) or READ_FROM.search(value) or UUID.fullmatch(value))
        or bool(WORDS.fullmatch(value) and rules.keyword.search(value))
    )


def is_mixed(value: str) -> bool:
    return len(value) >= 6 and any(c.isalpha() for c in value) and not value.replace("-", "").isalpha()


def ending(path: str) -> str:
    name = path.rsplit("/", 1)[-1].lower()
    stem, dot, last = name.rpartition(".")
    if not stem:
        return f".{last}" if dot else ""
    return f"{dot}{last}"
