"""Surfaces: the pull request. A question is a comment there, a reply is the answer.

Here is what a comment says as a reply: pure. `/approve`, `/answer TEXT`, …, or plain words that quote or name a gate;
what was nearly one, of which its author is told; and replies ready to copy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from ...errors import BadAnswer
from ...model import ALPHABET, LENGTH, is_prefix
from ...model.gate import Gate, Question
from ...questions import Given, lines_of, sure_number
from ...questions.answers import read_answer
from ...questions.types import type_of
from ...text import one_line
from .shown import SeenLine, see

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
    """Text that may be a reply, or mere talk.

    `names`: the gates that it mentions. `command`: it has what is almost a command.
    """

    def __init__(self, why: str, names: Sequence[str], *, command: bool) -> None:
        super().__init__(why)
        self.names = tuple(names)
        self.command = command

    def meant(self, waiting: Sequence[str]) -> list[str]:
        """Return the waiting gates that the text names; if none, all of them where it is almost a command."""
        found = [name for name in self.names if name in waiting]
        return found or (list(waiting) if self.command else [])


def refuse_near_replies(lines: Iterable[str], gates: Collection[str]) -> None:
    """Refuse, with `Near`, what is nearly a reply to one of `gates`. `lines`: the author's own visible words."""
    words = list(own_words(lines))
    found = (name for line in words for name in map(str.lower, MENTION.findall(line)) if name in gates)
    names = list(dict.fromkeys(found))
    wrong = next(filter(None, map(near_command, words)), "")
    if wrong or names:
        why = wrong or f"it names gate {names[0]}, and may be mere talk about it"
        raise Near(why, names, command=bool(wrong))


def may_be_near(lines: Iterable[str]) -> bool:
    """Return whether these lines may be nearly a reply, so that it is worth looking up which gates there are."""
    return any(near_command(line) or is_naming(line) for line in own_words(lines))


def own_words(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with a slash or a possible gate's name, without quotations and links. Most lines have none."""
    return (ANOTHERS.sub("“”", line) for line in lines if HINT.search(line))


def is_naming(line: str) -> bool:
    numbered = any(not name.isalpha() for name in MENTION.findall(line))
    return numbered or NAMING.search(line) is not None


def near_command(line: str) -> str:
    """Return what is wrong with text in this line that is almost a command; empty where no command was meant."""
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
    """Return whether a word is a slip of a command, or a synonym of one. Synonyms count only at the beginning of a
    line, since within a line they may mean anything. A plural counts only there too, since within a line it may be a
    path.
    """
    if begins and word in OTHER_WORDS:
        return True
    slip = word in FORMS or any(is_slip(word, verb) for verb in LONG)
    return slip and (begins or not word.endswith("s"))


def is_slip(word: str, verb: str) -> bool:
    """Return whether the word is the verb with one letter too many, too few or different, or with two swapped."""
    same = next(
        (n for n, (a, b) in enumerate(zip(word, verb, strict=False)) if a != b), min(len(word), len(verb))
    )
    mine, its = word[same:], verb[same:]
    swapped = len(mine) > 1 and mine[1::-1] + mine[2:] == its
    return swapped or mine[1:] == its or mine == its[1:] or mine[1:] == its[1:]


# Letters that only look alike are no command and no name: without regard to case for these alone. Blanks may be any. What people
# put right behind a word is no part of it, where no word of an answer could begin so; a question mark makes it none.
SURELY = r"(?=(?ai:approve|reject|stop)|(?ai:answer|choose)(?:\s|:|$))"
COMMAND = re.compile(rf" {{0,3}}/{SURELY}((?ai:{'|'.join(VERBS)}))(?:[,.;:]|!{{1,3}})?(?=\s|$)[ \t]*(.*)")
NAMED = re.compile(rf"(?ai:(?<![a-z0-9])([{ALPHABET}]{{{LENGTH}}})(?![a-z0-9]))")
BEGINS = re.compile(rf"\s*(?:(?ai:gate)\s+)?[`*]*((?ai:[{ALPHABET}]{{{LENGTH}}}))[`*]*\s*:\s*")
SEVERAL = 4  # so many letters of an id name one of several gates
SURE = 6  # so many are no word that an answer begins with by chance
UNSURE = "not everybody sees it as words of their own: write it below an empty line, outside of quotes, tags, links and comments of HTML"
AROUND = "`*_:,;."  # what people write around a name


@dataclass(frozen=True)
class ReplySaid:
    """Reply: its action, the gate if the reply names one, and the words that go with it. `plain`: it has no command."""

    verb: str
    text: str
    gate: str | None = None
    plain: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Lines:
    """Lines of a comment: those that its author wrote, as everybody sees them, and those that its author quoted."""

    own: tuple[SeenLine, ...]
    quoted: str

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.own).strip()

    @property
    def sure(self) -> list[str]:
        """Lines that are certainly the author's own words, with inline code covered."""
        return [row.bare for row in self.own if not (row.code or row.unsure)]

    @property
    def first(self) -> SeenLine | None:
        return next((row for row in self.own if row.text.strip()), None)


def may_answer(body: str) -> bool:
    """Return whether a comment may be a reply, so that the forge has to be asked. Nothing else depends on this."""
    if is_common_word(word_of(body)):
        return True
    if not HINT.search(body) and "<!--" not in body:  # what such a comment cuts in two is seen as one
        return False
    lines = split(body)
    if any(command_of(row) for row in lines.own):
        return True
    if BEGINS.match(lines.text) or (lines.text and NAMED.search(lines.quoted)):
        return True
    return not body.startswith(OURS) and may_be_near(lines.sure)


def parse_reply(body: str, gates: Sequence[str]) -> ReplySaid | None:
    """Return the reply in a comment, or None for mere talk. Refuse what is neither. `gates`: those of its thread."""
    lines = split(body)
    found = [(place, command) for place, row in enumerate(lines.own) if (command := command_of(row))]
    if len(found) > 1:
        raise BadAnswer("a comment holds one reply; this one has several")
    if not found:
        said = plain_reply(lines, gates)
        if said is None and not body.startswith(OURS):
            refuse_near_replies(lines.sure, gates)
        return said
    place, command = found[0]
    row, *below = lines.own[place:]
    check_seen([row, *below], row.unsure)
    text = "\n".join([row.text[command.start(2) :], *(other.text for other in below)]).strip()
    gate, text = take_name(text, gates)
    return ReplySaid(command.group(1).lower(), text, gate or quoted_gate(lines, gates))


def command_of(row: SeenLine) -> re.Match[str] | None:
    """Return the command at the start of a line, also of one that may be code: its author has to hear of the doubt."""
    return None if row.code else COMMAND.match(row.text if row.unsure else row.bare)


@lru_cache(maxsize=4)  # the same comment is asked about several times in a row
def split(body: str) -> Lines:
    rows = see(body)
    own = tuple(row for row in rows if not row.quoted)
    return Lines(own, "\n".join(row.text for row in rows if row.quoted))


def check_seen(rows: Sequence[SeenLine], unsure: bool) -> None:
    """Refuse lines that may be code, somebody else's words, or invisible: they are nobody's answer."""
    if unsure or any(row.lost and row.text.strip() for row in rows):
        raise BadAnswer(UNSURE)


def take_name(text: str, gates: Sequence[str]) -> tuple[str | None, str]:
    """Return the gate that the first word names, and the remaining text. Where one gate waits, a short word is rather
    an answer.

    An abbreviated name of one of several gates must have a digit: an asker can choose a gate's id that begins with
    `thanks`.
    """
    word, rest = [*re.split(r"\s+", text, maxsplit=1), ""][:2]
    name = word.strip(AROUND).lower()
    if not (word.isascii() and is_prefix(name)):
        return None, text
    if len(name) == LENGTH and (name in gates or any(c.isdigit() for c in name)):
        return name, rest.strip()
    matching = [gate for gate in gates if gate.startswith(name)]
    if len(name) < (SEVERAL if len(gates) > 1 else SURE) or not matching:
        return None, text
    if len(matching) > 1 or (len(gates) > 1 and name.isalpha()):
        raise BadAnswer(f"{name} could be gate {' or '.join(matching)}, or a word: a whole name is sure")
    return matching[0], rest.strip()


def plain_reply(lines: Lines, gates: Sequence[str]) -> ReplySaid | None:
    """Return the answer in words without a command, or None. Such words answer a gate only where they quote it in its
    thread, or begin with its name and a colon. In another thread, that name must have a digit, so that it can be no
    word.
    """
    text, first = lines.text, lines.first
    named = BEGINS.match(text) if first is not None and not first.code else None
    name = named.group(1).lower() if named else ""
    gate = quoted_gate(lines, gates)
    if first is not None and (named or gate):
        check_seen(lines.own, first.lazy)
    if named and (name in gates or (gate is None and any(c.isdigit() for c in name))):
        return ReplySaid("answer", text[named.end() :].strip(), name, plain=True)
    return ReplySaid("answer", text, gate, plain=True) if gate and text else None


SAYS_YES = frozenset(("approve", "approved", "lgtm", "/lgtm", "yes"))
MOST_OF_A_WORD, MOST_WORDS = 80, 8
PLACE = re.compile(r"#{0,3}[0-9]{1,3}", re.ASCII)


def word_of(body: str) -> str:
    """Return the whole comment where it is a few plainly visible words; empty where it is more, or unclear."""
    words = body.strip("\r\n")
    if (
        not 0 < len(words) <= MOST_OF_A_WORD
        or len(words.split()) > MOST_WORDS
        or re.search(r"[\n\r<>`\[\]]", words)
    ):
        return ""
    rows = split(body).own
    return words.strip() if len(rows) == 1 and not (rows[0].code or rows[0].unsure or rows[0].lost) else ""


def is_common_word(word: str) -> bool:
    """Return whether people anywhere type this word to agree, to refuse, or to choose by number. Options' labels are
    not meant: each gate has its own.
    """
    return bool(word) and (common(word) in (*SAYS_YES, "no") or PLACE.fullmatch(word) is not None)


def common(word: str) -> str:
    return word.rstrip(".! ").casefold()


def word_reply(body: str, gate: Gate) -> ReplySaid | None:
    """Return the reply that a customary word of agreement, or an option by itself, is to this gate. Return a reply with
    an empty verb where the word does not answer this question, and None for mere talk. The caller decides whether the
    reply counts.
    """
    word, questions = word_of(body), gate.opened.questions
    if not word:
        return None
    if len(questions) == 1 and is_option_alone(word, questions[0]):
        return ReplySaid("choose", word, plain=True)
    plain = common(word)
    if plain not in SAYS_YES and plain != "no":
        return None
    if len(questions) > 1 or questions[0].kind != "approval":
        return ReplySaid("", word, plain=True)
    return ReplySaid("reject" if plain == "no" else "approve", "", plain=True)


def is_option_alone(word: str, question: Question) -> bool:
    """Return whether the word is the whole label, or the number, of an option."""
    labels = [one_line(label).casefold() for label in question.labels]
    if one_line(word).casefold() not in labels and not PLACE.fullmatch(word):
        return False
    try:
        read_answer((question,), choose(word, question)[0])
    except BadAnswer:
        return False
    return bool(labels)


def quoted_gate(lines: Lines, gates: Sequence[str]) -> str | None:
    """Return the only gate of this thread that the comment quotes; None where it quotes none or several."""
    found = {name for name in map(str.lower, NAMED.findall(lines.quoted)) if name in gates}
    return found.pop() if len(found) == 1 else None


def read_reply(said: ReplySaid, gate: Gate) -> tuple[Given, str]:
    """Return the reply as an answer to this gate, and its note. Its values are checked when it is recorded."""
    if said.verb in ("approve", "reject"):
        return yes_or_no(said, gate.opened.questions), said.text
    questions = gate.opened.questions
    if len(questions) > 1:
        if said.verb == "choose":
            raise BadAnswer(each_of(questions))
        return several(said.text, questions), ""
    return (
        choose(said.text, questions[0])
        if said.verb == "choose"
        else (type_of(questions[0]).replied(questions[0], said.text), "")
    )


def yes_or_no(said: ReplySaid, questions: Sequence[Question]) -> Given:
    """Return the answer of `/approve` or `/reject`. Refuse here what does not fit: the error then speaks of replies."""
    given = Given(approve=said.verb == "approve")
    try:
        read_answer(questions, given)
    except BadAnswer as unfit:
        if len(questions) > 1:
            raise BadAnswer(each_of(questions)) from unfit
        raise BadAnswer(f"/{said.verb} is for approvals; this is {type_of(questions[0]).noun}") from unfit
    return given


def each_of(questions: Sequence[Question]) -> str:
    return f"this gate has {len(questions)} questions, and each needs its answer"


def several(text: str, questions: Sequence[Question]) -> Given:
    """Return an answer of `key: value` lines. Their words about options are read as the words after `/answer`."""
    named: dict[str, object] = {**lines_of(questions, text)}
    for question in questions:
        words = named.get(question.key)
        if isinstance(words, str):
            named[question.key] = type_of(question).part_replied(question, words)
    return Given(values=named)


def choose(text: str, question: Question) -> tuple[Given, str]:
    """Return the option that a number or a label chooses, and the text of further lines as a note."""
    first, _, note = text.partition("\n")
    words = first.strip()
    chosen = type_of(question).chosen(question, words)
    return Given(values={question.key: chosen}) if words else Given(text=""), note.strip()


INSTEAD = {"/approve": "/answer yes", "/approve with a note": ""}


def examples(
    gate: Gate, named: str = "", gates: Collection[str] = (), taken: Collection[str] = ()
) -> list[str]:
    """Return replies ready to copy, made only of our own words and the options' labels, neutral and on one line.
    `gates`: all that the thread shows; `taken`: the commands that the forge itself obeys.
    """
    known = tuple(dict.fromkeys((gate.id, *gates)))
    said = [*ways(gate, known), "/stop why the agent should not go on"]
    said = [INSTEAD.get(way, way) if way.split(" ")[0] in taken else way for way in said]
    found = [line for way in said if way and (line := sure(way, gate, named, known))]
    return [part for line in found for part in ([line, ""] if "\n" in line else [line])]


MOST_REPLIES = 50


def option_replies(gate: Gate, named: str = "", gates: Collection[str] = ()) -> list[str]:
    """Return the reply for each option of an only question, in order, up to the first option that has none."""
    if len(gate.opened.questions) != 1:
        return []
    question, found = gate.opened.questions[0], []
    known = tuple(dict.fromkeys((gate.id, *gates)))
    for place, label in enumerate(question.labels[:MOST_REPLIES]):
        way = f"/choose {sure_number(question, place)}"
        if not means(way, gate, known, [label]):
            break
        found.append(sure(way, gate, named, known))
    return found


def sure(way: str, gate: Gate, named: str, gates: Collection[str]) -> str:
    """Return the example as a reply that is read as meant; empty if there is none. It has the gate's name where that is
    needed, or where its first word could be a name.
    """
    verb, _, words = way.partition(" ")
    for name in dict.fromkeys((named.strip(), gate.id)):
        line = " ".join(part for part in (verb, name, words) if part)
        if said_by(line, gates) == ReplySaid(verb[1:], words.strip(), name or None):
            return line
    return ""


def said_by(line: str, gates: Collection[str]) -> ReplySaid | None:
    try:
        return parse_reply(line, list(gates))
    except BadAnswer:
        return None


def means(way: str, gate: Gate, gates: Collection[str], labels: Collection[str]) -> bool:
    """Return whether this reply, read back, answers the gate with exactly these options."""
    said = said_by(sure(way, gate, "", gates), gates)
    try:
        values, _ = read_answer(gate.opened.questions, read_reply(said, gate)[0]) if said else ({}, "")
    except BadAnswer:
        return False
    value = values.get(gate.opened.questions[0].key)
    return (value if isinstance(value, list) else [value]) == list(labels)


def ways(gate: Gate, gates: Collection[str]) -> Iterator[str]:
    questions = gate.opened.questions
    if len(questions) > 1:
        lines = [f"{one_line(each.key)}: {type_of(each).reply_part(each)}" for each in questions]
        yield "/answer " + "\n".join(lines)
        return
    for alternatives in type_of(questions[0]).reply_ways(questions[0]):
        fitting = (way for way, labels in alternatives if labels is None or means(way, gate, gates, labels))
        yield from islice(fitting, 1)
