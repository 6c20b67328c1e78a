"""Text: the words of a shell line, letter by letter: quotes, escapes, and what a dollar sign or a backquote begins.

A word is the text that a shell would make of it. What only the run could tell stands in it as a mark.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass

from .expansion import BRACKET, BREAK, CLOSE, COMMA, MADE, MADE_SPLIT, MARKS, ONE, OPEN, SPLIT

MOST_TEXT = 60_000
MOST_WORK = 5 * MOST_TEXT
MOST_DEPTH = 30
META = frozenset(" \t\n;&|()<>")
PLAIN = re.compile(r"""[^ \t\n;&|()<>"'\\$`*?\[{},~\0]+""")
IN_DOUBLE = re.compile(r'[^"\\$`]+')
IN_BRACES = re.compile(r"""[^}'"\\$`]+""")
IN_NUMBERS = re.compile(r"""[^()\[\]'"\\$`]+""")
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
PARAMETER = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!-]", re.ASCII)
INSIDE = re.compile(r"([#!]?)(\w+|[@*#?$!-])", re.ASCII)
BARE_NAMES = re.compile(r"(?<![\w${])[A-Za-z_]\w*|(?<=\$\{)[A-Za-z_]\w*(?=:?=)", re.ASCII)
# A shell sets these by itself.
IMPLICIT = frozenset(("REPLY", "MAPFILE", "OPTARG", "COPROC", "BASH_REMATCH", "BASH_COMMAND", "DIRSTACK"))
NUMBERS = frozenset("?$#!-")
ESCAPES = {
    "a": "\a", "b": "\b", "e": "\033", "E": "\033", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)


class Unreadable(Exception):
    """Error for a line that no shell would take, or that is not read here: too long, too deep, or ambiguous."""


@dataclass
class Budget:
    """Limit on how much of the line may still be read, and the names that the line mentions without a dollar sign."""

    text: str
    left: int
    names: Counter[str]

    def spend(self, letters: int) -> None:
        self.left -= letters
        if self.left < 0:
            raise Unreadable("too much")


def budget_for(text: str) -> Budget:
    """Return the limits within which a line is read."""
    if len(text) > MOST_TEXT:
        raise Unreadable("too long")
    if MARKS.search(text):
        raise Unreadable("characters that are none")
    names = Counter(BARE_NAMES.findall(crude(text)))
    names["IFS"] -= len(re.findall(r"\bIFS=\S* read\b", text))  # there it is of no use to other commands
    return Budget(text, MOST_WORK, names)


def crude(text: str) -> str:
    """Return a line without its quotes and backslashes."""
    return re.sub(r"\\\n|[\"'\\]", "", text)


class WordReader(ABC):
    """Reader of one text, letter by letter. Classes that build on it find the commands in it."""

    def __init__(self, text: str, work: Budget, depth: int = 0) -> None:
        if "\0" in text:
            raise Unreadable("a null byte")
        work.spend(len(text))
        self.text, self.work, self.depth = text, work, depth
        self.place = 0
        self.nested = 0
        # Values that are sure at this place.
        self.values: dict[str, str] = {}

    @abstractmethod
    def end_line(self) -> None:
        """Step over the end of a line, and over what follows it there."""

    @abstractmethod
    def read_group(self) -> None:
        """Read commands up to their `)`."""

    @abstractmethod
    def read_apart(self, text: str) -> None:
        """Read the commands of a text that stands between backquotes."""

    @abstractmethod
    def mark(self) -> int:
        """Return how many commands were found so far."""

    @abstractmethod
    def forget(self, mark: int) -> None:
        """Take back the commands that were found since."""

    # Letters

    def peek(self) -> str:
        while self.text.startswith("\\\n", self.place):
            self.place += 2
        return self.text[self.place : self.place + 1]

    def take(self, word: str) -> bool:
        """Step over this operator, if it stands here; a continued line may cut it."""
        start = self.place
        for letter in word:
            if self.peek() != letter:
                self.place = start
                return False
            self.place += 1
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            raise Unreadable(f"expected {word}")

    def stands(self, word: str) -> bool:
        start = self.place
        found = self.take(word)
        self.place = start
        return found

    def skip_blank(self, *, lines: bool = False) -> None:
        """Step over blanks and comments, and where it says so over ends of lines."""
        while True:
            letter = self.peek()
            if letter == "#":
                end = self.text.find("\n", self.place)
                self.place = len(self.text) if end < 0 else end
            elif letter and letter in " \t":
                self.place += 1
            elif letter == "\n" and lines:
                self.end_line()
            else:
                return

    def descend(self) -> None:
        self.nested += 1
        if self.nested + self.depth > MOST_DEPTH:
            raise Unreadable("too deep")

    def go_back(self, start: int, mark: int) -> None:
        """Read again from here as something else: what was found meanwhile is forgotten."""
        self.work.spend(self.place - start)
        self.forget(mark)
        self.place = start

    # Words

    def read_word(self, *, subscript: bool = False) -> tuple[str, int]:
        """Read one word with its marks; return it with the place from which quotes take part in it."""
        parts: list[str] = []
        size, quoted_from = 0, -1
        while True:
            letter = self.peek()
            if not letter or (letter in META and not self.at_process(letter)):
                break
            before = self.place
            part = self.read_piece(letter, first=not size)
            if (
                subscript
                and letter == "["
                and quoted_from < 0
                and len(parts) < 4
                and NAME.fullmatch("".join(parts))
            ):
                self.place = before
                part = self.read_subscript()
            if quoted_from < 0 and (letter in "\"'\\" or self.text.startswith(('$"', "$'"), before)):
                quoted_from = size
            parts.append(part)
            size += len(part)
        if self.place < len(self.text) and size == 0 and quoted_from < 0 and letter not in META:
            raise Unreadable("nothing where a word was expected")
        return "".join(parts), size + 1 if quoted_from < 0 else quoted_from

    def at_process(self, letter: str) -> bool:
        return letter in "<>" and (self.stands("<(") or self.stands(">("))

    def read_piece(self, letter: str, *, first: bool) -> str:
        found = PLAIN.match(self.text, self.place)
        if found:
            self.place = found.end()
            return found[0]
        if letter in "\"'\\$`":
            return self.read_special()
        if letter in "<>":
            self.place += 1
            self.need("(")
            self.read_group()
            return MADE
        if letter == "~" and first:
            self.place += 1
            while (self.peek() or "/") not in META | set("/\"'\\$`"):
                self.place += 1
            return ONE
        self.place += 1
        return {"*": SPLIT, "?": SPLIT, "[": BRACKET, "{": OPEN, ",": COMMA, "}": CLOSE}.get(letter, letter)

    def read_special(self, *, document: bool = False, double: bool = False) -> str:
        """Read what a quote, a backslash, a dollar sign or a backquote begins."""
        letter, inside = self.text[self.place], document or double
        self.place += 1
        if letter == "$":
            return self.read_dollar(quoted=inside)
        if letter == "`":
            return self.read_backquotes(quoted=inside, double=double)
        if letter == "\\":
            return self.read_escape('$`\\"' if double else "$`\\" if document else "")
        return self.read_single() if letter == "'" else self.read_double()

    def read_escape(self, only: str) -> str:
        after = self.text[self.place : self.place + 1]
        if after == "\n":
            self.place += 1
            return ""
        if only and after not in only:
            return "\\"
        self.place += 1
        return after or "\\"

    def read_single(self) -> str:
        end = self.text.find("'", self.place)
        if end < 0:
            raise Unreadable("a quote that is not closed")
        found, self.place = self.text[self.place : end], end + 1
        return found

    def read_double(self) -> str:
        parts: list[str] = []
        self.descend()
        while True:
            if found := IN_DOUBLE.match(self.text, self.place):
                self.place = found.end()
                parts.append(found[0])
            letter = self.text[self.place : self.place + 1]
            if not letter:
                raise Unreadable("a quote that is not closed")
            if letter == '"':
                self.place += 1
                self.nested -= 1
                return "".join(parts)
            parts.append(self.read_special(double=True))

    def read_backquotes(self, *, quoted: bool, double: bool) -> str:
        parts: list[str] = []
        while (letter := self.text[self.place : self.place + 1]) != "`":
            if not letter:
                raise Unreadable("a backquote that is not closed")
            self.place += 1
            if letter == "\\":
                after = self.text[self.place : self.place + 1]
                if after and after in ('$`\\"' if double else "$`\\"):
                    letter = after
                    self.place += 1
            parts.append(letter)
        self.place += 1
        self.read_apart("".join(parts))
        return MADE if quoted else MADE_SPLIT

    def read_dollar(self, *, quoted: bool) -> str:
        letter = self.peek()
        if letter == "'" and not quoted:
            self.place += 1
            return self.read_escaped()
        if letter == '"' and not quoted:
            self.place += 1
            return self.read_double()
        if letter == "(":
            self.read_substitution()
            return MADE if quoted else MADE_SPLIT
        if letter == "{":
            self.place += 1
            return self.read_braces(quoted=quoted)
        if letter == "[":
            self.place += 1
            self.read_numbers("]")
            return ONE
        found = PARAMETER.match(self.text, self.place)
        if found is None:
            return "$"
        self.place = found.end()
        if self.text.startswith("\\\n", self.place) and NAME.fullmatch(found[0]):
            raise Unreadable("a name that goes on in the next line")
        return self.value(found[0], quoted=quoted)

    def read_escaped(self) -> str:
        """Read `$'…'` to its end, with the letters that it means."""
        start = self.place
        while (letter := self.text[self.place : self.place + 1]) != "'":
            if not letter:
                raise Unreadable("a quote that is not closed")
            self.place += 2 if letter == "\\" else 1
        found = self.text[start : self.place]
        self.place += 1
        decoded = ESCAPE.sub(meant, found)
        return decoded.partition("\0")[0]

    def read_substitution(self) -> None:
        start, mark = self.place, self.mark()
        if self.take("(("):
            if self.read_numbers(")"):
                return
            self.go_back(start, mark)
        self.need("(")
        self.read_group()

    def read_numbers(self, closing: str) -> bool:
        """Read arithmetic up to its end, `))` or `]`; False where it is none after all."""
        self.descend()
        open_ = 0
        while True:
            if found := IN_NUMBERS.match(self.text, self.place):
                self.place = found.end()
            letter = self.peek()
            if not letter:
                self.nested -= 1
                return False
            if letter == closing and not open_:
                self.place += 1
                self.nested -= 1
                return closing == "]" or self.take(")")
            if letter == "'":
                raise Unreadable("a quote among numbers")
            if letter in '"\\$`':
                self.read_special(double=letter == "\\")
                continue
            open_ += (letter == ("(" if closing == ")" else "[")) - (letter == closing)
            self.place += 1

    def read_braces(self, *, quoted: bool) -> str:
        """Read `${…}` to its end; its own words may run commands."""
        if self.peek() in (" ", "\t", "\n", "|", ""):
            raise Unreadable("commands in braces")
        found = INSIDE.match(self.text, self.place)
        if found is None:
            raise Unreadable("an odd parameter")
        self.place = found.end()
        start = self.place
        self.descend()
        while self.peek() != "}":
            self.read_brace_part(quoted=quoted)
        self.nested -= 1
        change = self.text[start : self.place]
        self.place += 1
        if "@P" in change:
            raise Unreadable("a value that is run")
        if not change and not found[1]:
            return self.value(found[2], quoted=quoted)
        if found[1] == "#" and not change:
            return ONE
        if found[1] or not re.fullmatch(r"[#%^,]{1,2}[^$`]*|:\d.*|\[\w+\]", change, re.DOTALL):
            return MADE if quoted and not change.startswith("[@") else MADE_SPLIT
        self.values.pop(found[2], None)
        return self.value(found[2], quoted=quoted)

    def read_brace_part(self, *, quoted: bool) -> None:
        if part := IN_BRACES.match(self.text, self.place):
            self.place = part.end()
            return
        letter = self.text[self.place : self.place + 1]
        if not letter:
            raise Unreadable("a brace that is not closed")
        if letter == "'" and quoted:
            raise Unreadable("a quote in braces in quotes")
        self.read_special(double=quoted and letter != '"')

    def value(self, name: str, *, quoted: bool) -> str:
        """Return the value of a parameter where the line sets it; else a mark."""
        known = self.values.get(name)
        if known is not None and quoted:
            return known
        if known is not None and not re.search(r"[*?\[]", known):
            return re.sub(r"[ \t\n]+", BREAK, known)
        if name in NUMBERS:
            return ONE
        made = not NAME.fullmatch(name) or name in IMPLICIT or name == "_" or self.work.names[name] > 0
        if name == "@":
            return MADE_SPLIT
        return (MADE if made else ONE) if quoted else (MADE_SPLIT if made else SPLIT)

    def read_subscript(self) -> str:
        """Read `[…]` after a name: it may hold blanks."""
        start = self.place
        self.place += 1
        self.read_numbers("]")
        text = self.text[start : self.place]
        if re.search(r"[;&|\n<>]", text):
            raise Unreadable("an odd subscript")
        return BRACKET + text[1:]


def meant(found: re.Match[str]) -> str:
    """Return the letter that an escape in `$'…'` means."""
    two, four, eight, octal, control, other = found.groups()
    number = two or four or eight
    if number or octal:
        code = int(number, 16) if number else int(octal, 8) & 255
        return chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else ONE
    if control:
        return chr(ord(control) & 31)
    return ESCAPES.get(other, f"\\{other}")
