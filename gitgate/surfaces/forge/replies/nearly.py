"""Surfaces: what is no reply, and may have been meant as one: pure. Nobody takes it for an answer; its author is told what would be.

Each line costs what it is long: what is looked for further on is never looked for twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ....errors import BadAnswer
from ....model.ids import ALPHABET, LENGTH

VERBS = ("answer", "approve", "reject", "choose", "stop")
OURS = (
    "<!-- gitgate "  # what we say ourselves, perhaps in the name of a person whose token we have, begins so
)
WORD = re.compile(r"(?<!\S)[*_]{0,3}/([A-Za-z]{2,12})(?:([^\w\s/\\]{0,9})(?=\s|$)|[,:;!](?=\w))")
# What stands before a command that somebody meant to write first.
FIRST = re.compile(r"\s*+(?:(?:[-*+>]|[0-9]{1,9}[.)])\s++)*+(?:@[\w\[\]/-]++[,:]?+\s++)*+")
METHOD = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s{1,3}$")  # a path comes after it
# Words in quotation marks, and links with what they lead to, are not said by whoever writes them.
ANOTHERS = re.compile(r'"[^"\n]*"|“[^“”\n]*”|\[[^\[\]\n]*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])')
NAME = rf"(?ai:([{ALPHABET}]{{{LENGTH}}}))"
BEFORE, BEHIND = r"(?<![^\s(*_,;:–—])(?<!\]\()", r"(?=[*_),;:.!?–—]{0,6}(?:\s|$))"
HINT = re.compile(f"/|{NAME}")
MENTION = re.compile(f"{BEFORE}{NAME}{BEHIND}")
# One without a digit might be any word of that length, unless it stands where people write names.
NAMING = re.compile(
    rf"(?:^\s*+|(?ai:\b(?:gate|for))\s++)[(*_]{{0,4}}{NAME}{BEHIND}|{BEFORE}{NAME}[*_)]{{0,4}}:"
)
OTHER_WORDS = frozenset(
    "accept accepted agree agreed confirm confirmed yes ok okay no deny denied decline declined refuse refused disapprove "
    "choice select pick reply respond response".split()
)
FORMS = frozenset(
    "approved approval approving rejected rejecting answered answering chosen chose choosing stopped stopp stops sotp stpo".split()
)
# Those of four letters are like too many words.
LONG = ("answer", "approve", "reject", "choose", "approved", "rejected", "answered")


class Near(BadAnswer):
    """It may be a reply, and mere talk. `names`: the gates that it speaks of; `command`: it has more of a reply than that."""

    def __init__(self, why: str, names: Sequence[str], *, command: bool) -> None:
        super().__init__(why)
        self.names = tuple(names)
        self.command = command

    def meant(self, waiting: Sequence[str]) -> list[str]:
        """Of the gates that wait those that it may be about."""
        found = [name for name in self.names if name in waiting]
        return found or (list(waiting) if self.command else [])


def refuse_near_replies(lines: Iterable[str], gates: Collection[str]) -> None:
    """Refuse what is near a reply to one of these gates; `lines` are those that somebody wrote, as everybody sees them."""
    words = list(own_words(lines))
    found = (name for line in words for name in map(str.lower, MENTION.findall(line)) if name in gates)
    names = list(dict.fromkeys(found))
    wrong = next(filter(None, map(near_command, words)), "")
    if wrong or names:
        why = wrong or f"it names gate {names[0]}, and may be mere talk about it"
        raise Near(why, names, command=bool(wrong))


def may_be_near(lines: Iterable[str]) -> bool:
    """Whether it is worth asking which gates there are."""
    return any(near_command(line) or is_naming(line) for line in own_words(lines))


def own_words(lines: Iterable[str]) -> Iterator[str]:
    """Of the lines in which there is anything to find: most have nothing."""
    return (ANOTHERS.sub("“”", line) for line in lines if HINT.search(line))


def is_naming(line: str) -> bool:
    numbered = any(not name.isalpha() for name in MENTION.findall(line))
    return numbered or NAMING.search(line) is not None


def near_command(line: str) -> str:
    """What is wrong with what is almost a command here; nothing where none was meant."""
    first = FIRST.match(line)
    begin = first.end() if first is not None else 0
    for found in WORD.finditer(line):
        word, behind = found.group(1).lower(), found.group(2) or ""
        if METHOD.search(line, max(0, found.start() - 12), found.start()):
            continue
        if word in VERBS:
            if "?" in behind:
                return f"/{word}? is a question"
            return f"/{word} counts where a line begins with it and a blank comes next"
        if is_like(word, begins=found.start() <= begin):
            return f"/{word} is no command here"
    return ""


def is_like(word: str, *, begins: bool) -> bool:
    """A slip, or another word for the same; within a line such a word may be anything, and one in the plural a path."""
    if begins and word in OTHER_WORDS:
        return True
    slip = word in FORMS or any(is_slip(word, verb) for verb in LONG)
    return slip and (begins or not word.endswith("s"))


def is_slip(word: str, verb: str) -> bool:
    """One letter too many, too few, another, or two that changed places."""
    same = next(
        (n for n, (a, b) in enumerate(zip(word, verb, strict=False)) if a != b), min(len(word), len(verb))
    )
    mine, its = word[same:], verb[same:]
    swapped = len(mine) > 1 and mine[1::-1] + mine[2:] == its
    return swapped or mine[1:] == its or mine == its[1:] or mine[1:] == its[1:]
