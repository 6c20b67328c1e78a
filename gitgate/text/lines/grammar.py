"""Text: a shell line, read by the grammar of bash into its simple commands, without running any of it.

Each construct is read where it stands: lists, pipes, redirections, here-documents, substitutions, loops, functions. A line that
cannot be read as a shell reads it is refused by `Unreadable`, and never read halfway. Time is in proportion to the length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .expansion import GAPS, MARKS, expand, unmarked
from .words import META, NAME, Budget, Unreadable, WordReader

IN_DOCUMENT = re.compile(r"[^\\$`]+")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)([\[\ufdd7].*?\])?\+?=", re.ASCII | re.DOTALL)
DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_]\w*\}", re.ASCII)
REDIRECT = ("<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">")
ENDS_CASE = re.compile(r"esac(?=[\s;&|()<>]|\Z)")
# After each of these a command begins.
LEADERS = frozenset(("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"))
STARTERS = frozenset(
    ("{", "(", "((", "[[", "if", "while", "until", "for", "case", "select", "function", "time", "!")
)


@dataclass
class Simple:
    """Simple command: its words; the assignments before them; the files that it writes and reads, and the texts on its
    input.

    `spelt` is the command as it is in the text, where it was read there.
    """

    words: list[str] = field(default_factory=list)
    assigned: list[tuple[str, str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)
    spelt: str = ""

    @property
    def begun(self) -> bool:
        return bool(self.words or self.assigned or self.writes or self.reads or self.fed)


@dataclass
class Document:
    """Here-document whose text follows after the line."""

    command: Simple
    end: str
    plain: bool
    tabs: bool


def read(text: str, work: Budget, depth: int = 0) -> list[Simple]:
    """Return every simple command of a line, those in substitutions as well, in the order in which they are read."""
    reader = Reader(text, work, depth)
    reader.read_list("")
    reader.read_documents()
    return reader.commands


class Reader(WordReader):
    """Reader of one text from beginning to end: substitutions in place, backquotes by a reader of their own."""

    def __init__(self, text: str, work: Budget, depth: int = 0) -> None:
        super().__init__(text, work, depth)
        self.commands: list[Simple] = []
        self.documents: list[Document] = []
        # Names whose values are sure only until their chain of `&&` ends. `chain` is empty at the beginning of one, and `&&` while it
        # had no other operator.
        self.passing: list[str] = []
        self.unsure = 0
        self.chain = ""

    def end_line(self) -> None:
        self.place += 1
        self.read_documents()

    def read_apart(self, text: str) -> None:
        self.commands += read(text, self.work, self.depth + self.nested + 1)

    def mark(self) -> int:
        return len(self.commands)

    def forget(self, mark: int) -> None:
        del self.commands[mark:]

    # Lists and commands

    def read_list(self, closing: str) -> None:
        """Read commands up to `closing`, which is left standing: nothing, `)`, or `case` for the end of a case's part."""
        while True:
            self.skip_blank()
            letter = self.peek()
            if not letter or letter == ")":
                if letter != closing:
                    raise Unreadable("a bracket that is not closed, or not open")
                return
            if closing == "case" and (self.stands(";;") or self.stands(";&") or self.ends_case()):
                return
            if letter in ";&|\n":
                self.read_separator()
            else:
                self.read_command()

    def ends_case(self) -> bool:
        self.peek()
        return ENDS_CASE.match(self.text, self.place) is not None

    def read_separator(self) -> None:
        if self.take("&&"):
            self.chain = self.chain or "&&"
            return
        if self.peek() == "\n":
            self.end_line()
            self.chain = ""
        elif self.take("|"):
            self.take("|") or self.take("&")
            self.chain = "|"
        else:
            self.place += 1
            self.chain = ""
        for name in self.passing:
            self.values.pop(name, None)
        self.passing.clear()

    def read_command(self) -> None:
        if self.stands("(("):
            start, mark = self.place, self.mark()
            self.take("((")
            if self.read_numbers(")"):
                return
            self.go_back(start, mark)
        if self.take("("):
            self.read_group()
            return
        self.read_simple()

    def read_group(self) -> None:
        """Read a list up to its `)`: what is assigned in it stays there."""
        self.descend()
        waiting, kept, passing, chain = self.documents, dict(self.values), self.passing, self.chain
        self.documents, self.passing, self.chain = [], [], ""
        self.unsure += 1
        self.read_list(")")
        if self.documents:
            raise Unreadable("a here-document that its bracket cuts off")
        self.need(")")
        self.unsure -= 1
        self.documents, self.values, self.passing, self.chain = waiting, kept, passing, chain
        self.nested -= 1

    def read_simple(self) -> None:
        command, chain = Simple(), self.chain
        cuts: list[int] = []
        self.skip_blank()
        start = end = self.place
        while True:
            end = self.place
            self.skip_blank()
            letter = self.peek()
            if letter == "&" and (self.stands("&>")):
                cuts.append(len(command.words))  # some shells end the command here
                self.take("&")
            elif not letter or letter in "\n;&|)":
                break
            if self.read_redirection(command):
                continue
            if letter == "(":
                self.read_header(command)
                return
            if self.read_part(command):
                return
        self.note_values(command, chain)
        command.spelt = self.text[start:end]
        self.add(command)
        for cut in cuts:
            if cut < len(command.words):
                self.add(Simple(command.words[cut:]))

    def add(self, command: Simple) -> None:
        if command.begun:
            self.commands.append(command)

    def read_header(self, command: Simple) -> None:
        """Read the brackets of `name ()`: its body is read as any command."""
        if len(command.words) != 1 or command.assigned:
            raise Unreadable("a bracket in a command")
        self.take("(")
        self.skip_blank()
        self.need(")")
        self.skip_blank(lines=True)

    def read_part(self, command: Simple) -> bool:
        """Read a word of a command; True where it was a reserved one, so that the command is another."""
        first = not command.begun
        at_head = not command.words
        word, quoted_from = self.read_word(subscript=at_head)
        if first and quoted_from > len(word) and self.read_reserved(word):
            return True
        if quoted_from > len(word) and self.peek() in ("<", ">") and DESCRIPTOR.fullmatch(unmarked(word)):
            return False
        found = ASSIGNMENT.match(word)
        if found and found.end() <= quoted_from:
            rest = word[found.end() :]
            if not rest and self.peek() == "(":
                rest = self.read_array()
            if at_head:
                command.assigned.append((found[1], unmarked(rest)))
                return False
            word = word[: found.end()] + rest
        if word or quoted_from <= len(word):  # one that is nothing but an empty value is no word
            command.words += expand(word)
        return False

    def read_reserved(self, word: str) -> bool:
        """Read on after a reserved word, if this is one."""
        word = unmarked(word)
        if word in LEADERS:
            self.unsure += {
                "if": 1,
                "while": 1,
                "until": 1,
                "do": 0,
                "{": 1,
                "fi": -1,
                "done": -1,
                "}": -1,
            }.get(word, 0)
            self.chain = ""
            return True
        if word == "time":
            # With another option it is a program in some shells.
            start = self.place
            self.skip_blank()
            while self.take("-p") or self.take("--"):
                self.skip_blank()
            if self.peek() != "-":
                return True
            self.place = start
            return False
        found = {
            "for": self.read_loop,
            "select": self.read_loop,
            "case": self.read_case,
            "function": self.read_function,
            "coproc": self.read_coprocess,
            "[[": self.read_condition,
        }.get(word)
        if found is None:
            if word == "esac":
                raise Unreadable("esac without case")
            return False
        found()
        return True

    def note_values(self, command: Simple, chain: str) -> None:
        """Keep what an assignment is sure to have set: it stands alone, and nothing in the line sets that name again."""
        alone = not self.unsure and (self.peek() not in ("|", "&") or self.stands("&&"))
        if not alone or chain == "|" or command.words[:1] not in ([], ["export"]):
            return
        found = command.assigned
        for word in command.words[1:]:
            name, _, value = word.partition("=")
            found = [*found, (name, value)]
        for name, value in found:
            if self.work.names[name] == 1 and not MARKS.search(value) and not self.work.names["IFS"]:
                self.values[name] = value
                if chain:
                    self.passing.append(name)

    def read_loop(self) -> None:
        """Read the head of `for` and `select`."""
        self.unsure += 1
        self.chain = ""
        self.skip_blank()
        if self.take("(("):
            if not self.read_numbers(")"):
                raise Unreadable("a loop's numbers")
            return
        name, _ = self.read_word()
        if not NAME.fullmatch(name):
            raise Unreadable("a loop without a name")
        self.skip_blank(lines=True)
        if self.text.startswith("in", self.place) and self.text[self.place + 2 : self.place + 3] in META | {
            ""
        }:
            self.place += 2
            self.read_words("\n;")

    def read_words(self, until: str) -> list[str]:
        """Read words up to one of these letters, which is left standing."""
        found: list[str] = []
        while True:
            self.skip_blank(lines="\n" not in until)
            letter = self.peek()
            if not letter or letter in until:
                return found
            if letter in META and not (self.stands("<(") or self.stands(">(")):
                raise Unreadable("an operator among words")
            found.append(self.read_word()[0])

    def read_array(self) -> str:
        """Read the words of an array that is assigned."""
        self.take("(")
        self.descend()
        found = self.read_words(")")
        self.need(")")
        self.nested -= 1
        return " ".join(unmarked(word) for word in found)

    def read_case(self) -> None:
        self.descend()
        self.unsure += 1
        self.skip_blank()
        self.read_word()
        self.skip_blank(lines=True)
        self.need("in")
        while True:
            self.skip_blank(lines=True)
            if self.ends_case():
                self.place += 4
                break
            self.take("(")
            self.read_patterns()
            self.read_list("case")
            self.take(";;&") or self.take(";;") or self.take(";&")
        self.unsure -= 1
        self.nested -= 1

    def read_patterns(self) -> None:
        """Read the patterns of a part of a case, with their `)`."""
        while True:
            self.skip_blank(lines=True)
            if self.take(")"):
                return
            if not self.take("|"):
                if self.peek() in META or not self.peek():
                    raise Unreadable("a case's pattern")
                self.read_word()
                if self.stands("("):
                    raise Unreadable("a bracket in a pattern")

    def read_function(self) -> None:
        self.skip_blank()
        self.read_word()
        self.skip_blank()
        if self.take("("):
            self.skip_blank()
            self.need(")")
        self.skip_blank(lines=True)

    def read_coprocess(self) -> None:
        """Step over the name of a coprocess, where it has one."""
        self.skip_blank()
        start, mark = self.place, self.mark()
        if not self.peek() or self.peek() in META:
            return
        self.read_word()
        self.skip_blank()
        after = self.peek()
        if after == "(":
            return
        if after and after not in META:
            here = self.place
            word, _ = self.read_word()
            if unmarked(word) in STARTERS:
                self.place = here
                return
        self.go_back(start, mark)

    def read_condition(self) -> None:
        """Read `[[ … ]]`: a test runs nothing but what is substituted in it."""
        while True:
            self.skip_blank_in_condition()
            letter = self.peek()
            if not letter:
                raise Unreadable("[[ without ]]")
            if letter in META and not (self.stands("<(") or self.stands(">(")):
                if letter == ";":
                    raise Unreadable("an operator in a test")
                self.place += 1
                continue
            word, quoted_from = self.read_word()
            if unmarked(word) == "]]" and quoted_from > len(word):
                return

    def skip_blank_in_condition(self) -> None:
        while (letter := self.peek()) and letter in " \t\n":
            if letter == "\n":
                self.end_line()
            else:
                self.place += 1

    # Redirections

    def read_redirection(self, command: Simple) -> bool:
        """Read a redirection, if one stands here; its target is a file, or the text that the command is fed."""
        if self.peek() not in ("<", ">") or self.stands("<(") or self.stands(">("):
            return False
        found = next((sign for sign in REDIRECT if self.take(sign)), "")
        self.skip_blank()
        if not self.peek() or (self.peek() in META and not (self.stands("<(") or self.stands(">("))):
            raise Unreadable("a redirection to nothing")
        start = self.place
        word, quoted_from = self.read_word()
        if found in ("<<", "<<-"):
            if GAPS.intersection(word) or "`" in self.text[start : self.place]:
                raise Unreadable("an odd end of a here-document")
            document = Document(command, unmarked(word), quoted_from <= len(word), found == "<<-")
            self.documents.append(document)
        elif found == "<<<":
            command.fed.append(unmarked(word))
        elif found in ("<", "<>", "<&"):
            command.reads += expand(word)
        else:
            command.writes += expand(word)
        return True

    def read_documents(self) -> None:
        """Read the here-documents that were announced in the line that has just ended."""
        waiting, self.documents = self.documents, []
        for document in waiting:
            lines: list[str] = []
            while self.place < len(self.text):
                line = self.document_line(document)
                if line == document.end:
                    break
                if self.nested and line.startswith(document.end) and ")" in line:
                    raise Unreadable("an odd end of a here-document")
                lines.append(line)
            text = "\n".join(lines)
            document.command.fed.append(text if document.plain else self.read_within(text))

    def document_line(self, document: Document) -> str:
        parts: list[str] = []
        while True:
            end = self.text.find("\n", self.place)
            end = len(self.text) if end < 0 else end
            line = self.text[self.place : end]
            self.place = end + 1
            slashes = len(line) - len(line.rstrip("\\"))
            if document.plain or slashes % 2 == 0 or end >= len(self.text):
                parts.append(line)
                whole = "".join(parts)
                return whole.lstrip("\t") if document.tabs else whole
            parts.append(line[:-1])

    def read_within(self, text: str) -> str:
        """Read a here-document's text, in which a shell still substitutes."""
        if not re.search(r"[$`\\]", text):
            return text
        reader = Reader(text, self.work, self.depth + self.nested + 1)
        reader.values = self.values
        parts: list[str] = []
        while reader.place < len(text):
            if found := IN_DOCUMENT.match(text, reader.place):
                reader.place = found.end()
                parts.append(found[0])
            else:
                parts.append(reader.read_special(document=True))
        self.commands += reader.commands
        return "".join(parts)
