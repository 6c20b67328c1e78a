"""Text: a rule's pattern, held against what a shell line would run.

A rule names a command by its words; `*` stands for anything. It holds a line where one of the commands is named by it, or could
be, because a word that the rule looks at is known only when the line runs.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

from ..patterns import of_text
from .expansion import GAPS, MADE_SPLIT, SPLITS
from .programs import GAP, Doubt, Line, LineCommand, Words, command_starts, read_line, rough, wrapper
from .words import MOST_TEXT

# Options of programs with verbs that take the next word along; those of others may.
VERBS_BEHIND = {
    "git": wrapper("-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source"),
    "terraform": wrapper(), "tofu": wrapper(),
    **dict.fromkeys(("kubectl", "oc"), wrapper("-n -s -v --namespace --context --kubeconfig --server --cluster --user --as --as-group --token --request-timeout "
                       "--certificate-authority --client-certificate --client-key --cache-dir --tls-server-name --profile --profile-output --password --username")),
    **dict.fromkeys(("docker", "podman"), wrapper("-c -H -l --config --context --host --log-level --tlscacert --tlscert --tlskey")),
    "helm": wrapper("-n --namespace --kube-context --kubeconfig --registry-config --repository-cache --repository-config --kube-token --kube-apiserver --burst-limit --qps"),
    "gh": wrapper("-R --repo"),
    **dict.fromkeys(("npm", "pnpm", "yarn"), wrapper("-C -F -w --prefix --workspace --filter --dir --cwd --registry --loglevel --userconfig --cache --tag")),
    "aws": wrapper("--profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout"),
    "make": wrapper("-C -f -I -o -W --directory --file --makefile"),
    "cargo": wrapper("-C -Z --config --color"),
    "systemctl": wrapper("-H -M -t -p -n -o --host --machine --type --property --state --lines --output --job-mode --root --signal"),
}  # fmt: skip
OTHERS = wrapper(closed=False)
# A command with more words that may be its verb is taken for the one that is named.
MOST_READINGS = 12


def names(pattern: str, text: str) -> bool:
    """Return whether a pattern names, or could name, a command that a line runs."""
    if of_text(pattern).fullmatch(" ".join(text.split())):
        return True
    line = read_line(text)
    wanted = parse_pattern(pattern)
    if any(wanted.fits(run) for run in line.runs):
        return True
    return bool(line.unclear or line.open) and wanted.mentioned(line)


def names_elsewhere(pattern: str, text: str) -> bool:
    """Return whether a pattern may name a command in a line for another shell, whose grammar is not read here."""
    wanted = parse_pattern(pattern)
    plain = re.sub("[`^]", "", text)
    runs = tuple(rough(plain)) if len(text) <= MOST_TEXT else ()
    return any(wanted.fits(run) for run in runs) or wanted.mentioned(Line(plain, runs))


def find_doubts(text: str) -> tuple[Doubt, ...]:
    """Return, for each command of a line of which nobody can say what it runs, why; nothing where it can be said."""
    return read_line(text).doubts


def is_written(pattern: str, doubt: Doubt) -> bool:
    """Return whether a pattern fits a command as written, up to its blanks. ` *` at the end also fits no words."""
    spelt = " ".join(doubt.spelt.replace("\\\n", "").split())
    wholes = (pattern, pattern[:-2]) if pattern.endswith(" *") else (pattern,)
    return bool(spelt) and any(of_text(whole).fullmatch(spelt) for whole in wholes)


class Pattern:
    """Pattern of one rule, in its parts."""

    def __init__(self, text: str) -> None:
        self.first, blank, rest = text.partition(" ")
        folder, slash, name = self.first.rpartition("/")
        if slash and not re.search(r"[*?]", folder):
            self.first = name
        text = f"{self.first}{blank}{rest}"
        # Empty where it is not said in full.
        self.program = "" if re.search(r"[*?]", self.first) else self.first.casefold()
        if self.program:
            text = f"{self.program}{blank}{rest}"
        # A star behind a blank stands for any words, and for none.
        self.wholes = [text, text[:-2]] if text.endswith(" *") else [text]
        self.has_verb = bool(self.program) and re.match(r"\s*[^\s*?:-]", rest) is not None
        self.literal = re.sub(r":\*$", "", self.first)

    def fits(self, run: LineCommand) -> bool:
        """Return whether the pattern names this command, or could, also where options precede the command's verb."""
        if not run.words or (self.program and not self.is_called(run.words[0])):
            return False
        words = (self.program, *run.words[1:]) if self.program else run.words
        readings = self.readings(words)
        if len(readings) > MOST_READINGS:
            return True
        return any(could_be(whole, joined(each)) for each in readings for whole in self.wholes)

    def is_called(self, word: str) -> bool:
        """Return whether this word may call the pattern's program. Some systems ignore capital letters."""
        return MADE_SPLIT in word or could_be(self.program, word.rpartition("/")[2].casefold())

    def readings(self, words: Words) -> list[Words]:
        if (
            not self.has_verb
            or not words[1:2]
            or not (words[1].startswith("-") or GAPS.intersection(words[1]))
        ):
            return [words]
        starts = command_starts(words, VERBS_BEHIND.get(words[0], OTHERS))
        return [words, *((words[0], *words[start:]) for start in islice(starts, MOST_READINGS))]

    def mentioned(self, line: Line) -> bool:
        """Return whether a line's text, without quotes and backslashes, holds the pattern's first word."""
        if self.program:
            return re.search(rf"(?i)(?<!\w){re.escape(self.literal)}(?!\w)", line.crude) is not None
        return of_text(f"*{self.literal}*").fullmatch(line.crude) is not None


@cache
def parse_pattern(text: str) -> Pattern:
    return Pattern(text)


def joined(words: Words) -> str:
    """Return words as one text. A word that may be none at all, or several, also stands for the blanks around it."""
    parts: list[str] = []
    for word in words:
        vanishing = bool(SPLITS.intersection(word)) and not GAP.sub("", word)
        parts += [word] if vanishing or not parts or parts[-1] in SPLITS else [" ", word]
    return "".join(parts)


def could_be(pattern: str, text: str) -> bool:
    """Return whether a text fits a pattern, for some content of its gaps. The time is proportional to the text."""
    if GAP.search(text) is None:
        return of_text(pattern).fullmatch(text) is not None
    letters, anything, stars, last = states_of(pattern)
    states = 1
    for letter in text:
        if letter in GAPS:
            # Whatever a gap holds, any later place may be reached.
            states = (last << 1) - (states & -states)
        else:
            states = ((states & (letters.get(letter, 0) | anything)) << 1) | (states & stars)
        if not states:
            return False
    return bool(states & last)


@cache
def states_of(pattern: str) -> tuple[dict[str, int], int, int, int]:
    """Return a pattern as bit sets of places: where a letter leads on, any letter does, one may stay; and the end."""
    plain = pattern[:-2] + "*" if pattern.endswith(":*") else pattern
    letters: dict[str, int] = {}
    place, anything, stars = 1, 0, 0
    for letter in plain:
        if letter == "*":
            stars |= place
            continue
        if letter == "?":
            anything |= place
        else:
            letters[letter] = letters.get(letter, 0) | place
        place <<= 1
    return letters, anything, stars, place
