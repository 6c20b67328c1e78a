"""Surfaces: words on a thread: somebody's Markdown as Markdown that does nothing but be read; whose reply counts; and replies to those whose word did not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ...context import Desk
from ...errors import GateError, MissingExtra
from ...model.gate import Gate
from ...policy import Person, RuleTerms, load_book
from ...policy.addressees import addressees
from ...policy.permit import case
from ...policy.ruling import deciding
from ...text import format_duration, neutral, one_line, wrap
from . import examples
from .hosts import Comment

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

# Somebody's Markdown as Markdown that does nothing but be read: pure.
#
# Paragraphs, lists, quotes, code, emphasis and links stay. Mentions, references, images, HTML and bare
# addresses become words. It is parsed, and written anew: what is not known here is text, and text is
# escaped.


DEEPEST = 12  # levels of lists and quotes; what is nested deeper is shown as its lines
MOST_MARKS = (
    4000  # brackets and stars: a text with more of them is shown as its lines, since reading it takes long
)
MARKS = re.compile(r"[\[\]*_`]")
ACTS = re.compile(r"[\\`*_\[\]|~$]|!\Z")  # a link of ours behind `!` would be a picture
HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# A line that begins so would be a heading, a list, or another program's command.
BEGINS = re.compile(r"^([ \t]*)(?:([#+=/-])|([0-9]{1,9})([.)]))", re.MULTILINE)
# A forge looks for these in what was rendered, so that no backslash helps: a character that nobody sees stands in them.
UNSEEN = "&#8203;"
MENTION = re.compile(
    r"([@#]|\b(?:GH|GL|CVE|GHSA)-)(?=\w|\Z)|([!%]|&amp;|\\[~$])(?=[\w\"{])"
    r"|\\\*(?=iteration:)|\\\[(?=\\\[|(?:\w|\\_){1,60}:|TOC\\\])"  # GitLab's; and names of pictures
    r"|:(?![0-9]{1,2}Z?:)(?=(?:[\w+-]|\\_){1,60}:)",
    re.IGNORECASE,
)
# An address that is not whole would become one with what is written behind it.
BEGUN = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)
# Of those that people copy nothing may be changed: addresses and commits' ids are shown as code.
COPIED = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|\bwww\.)[^\s<>`]+|(?<![0-9A-Za-z])[0-9a-f]{7,64}(?![0-9A-Za-z])",
    re.IGNORECASE,
)
TRAILING = ".,;:!?)]'\""  # behind an address it ends the sentence
ADDRESS = re.compile(r"https?://[A-Za-z0-9.:-]+(?:[/?#][\w.~:/?#\[\]@!$&'()*+,;=%-]*)?", re.ASCII)
WEB = re.compile(r"https?://", re.IGNORECASE)
REFERRED = re.compile(
    r"/(?:issues|pulls?|discussions|commits?|compare|advisories|merge_requests|work_items|epics|snippets|milestones)(?:/|$)"
)
PORT = re.compile(r":(?:443|80)?\Z")  # the one that everybody means
LANGUAGE = re.compile(r"[A-Za-z0-9+#-]{1,20}", re.ASCII)
# Of these a forge makes more than code.
DRAWN = frozenset(
    "mermaid geojson topojson stl math suggestion plantuml graphviz dot d2 ditaa erd nomnoml pikchr svgbob vega vegalite "
    "wavedrom bytefield dbml excalidraw blockdiag seqdiag actdiag nwdiag packetdiag rackdiag tikz umlet structurizr".split()
)
MOST_ADDRESS = 1000


def prose(text: str, most: int, site: str = "") -> str:
    """Return inert Markdown of `most` characters of a text. `site`: the forge, to which links may be references."""
    words = clipped(neutral(text).strip("\n"), most)
    if len(MARKS.findall(words)) > MOST_MARKS:
        return lines_as_words(words)
    tokens = markdown().parse(words)  # which says what is missing where it is
    from markdown_it.tree import SyntaxTreeNode

    if any(token.level >= DEEPEST for token in tokens):
        return lines_as_words(words)
    return blocks(SyntaxTreeNode(tokens).children, host_of(site)) or lines_as_words(words)


def phrase(text: str, most: int, site: str = "") -> str:
    """Return one line of a text as inert Markdown."""
    words = one_line(text, most) or "(nothing)"
    if len(MARKS.findall(words)) > MOST_MARKS:
        return as_words(words)
    tokens = markdown().parseInline(words)
    from markdown_it.tree import SyntaxTreeNode

    inner = SyntaxTreeNode(tokens).children
    written = inline(inner[0].children, host_of(site)) if inner else as_words(words)
    return written.replace("\n", " ")  # `&#10;` is a new line once it is read


def quoted(markup: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in markup.split("\n"))


@cache
def markdown() -> MarkdownIt:
    """Return an engine without HTML and without definitions of links, since these hide words from a reader."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as missing:
        raise MissingExtra(
            "comments are written with the markdown-it-py package", hint="pip install 'git-gate[forge]'"
        ) from missing
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * DEEPEST}).disable(
        ["html_block", "html_inline", "reference"]
    )


# Text


def as_words(text: str) -> str:
    """Return a text with nothing in it that a forge acts on."""
    parts, place = [], 0
    for found in COPIED.finditer(text):
        copied = found.group().rstrip(TRAILING)
        parts += [inert(text[place : found.start()]), code(copied)]
        place = found.start() + len(copied)
    return BEGINS.sub(unbegun, "".join([*parts, inert(text[place:])]))


def inert(text: str) -> str:
    words = ACTS.sub(r"\\\g<0>", re.sub("[&<>]", lambda found: HTML[found.group()], text))
    # `&lt;` and the like hold no mark of these, and nothing stands in front of a mention that would hide it.
    return BEGUN.sub(rf"\g<0>{UNSEEN}", MENTION.sub(rf"\g<0>{UNSEEN}", words))


def unbegun(found: re.Match[str]) -> str:
    lead, sign, number, dot = found.groups()
    return f"{lead}\\{sign}" if sign else f"{lead}{number}\\{dot}"


def lines_as_words(text: str) -> str:
    """Return a text line by line, with no line indented so far that it would be code."""
    return "\n".join(as_words(line.strip()) for line in text.split("\n")).strip("\n")


def code(text: str) -> str:
    """Return a text unchanged on one line, as code."""
    fence = "`" * (longest_run(text) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


# Inline


def inline(nodes: Sequence[SyntaxTreeNode], host: str, *, bare: bool = False) -> str:
    """Return nodes as inert Markdown. `bare`: without emphasis, for words that have some already."""
    parts: list[str] = []
    words: list[str] = []  # neighbours are escaped as one: a mention may lie across them
    for node in nodes:
        if node.type in ("text", "text_special"):
            words.append(neutral(node.content))  # `&#x202e;` is a character once it is read
        elif node.type in ("softbreak", "hardbreak"):
            words.append("\n")
        else:
            parts += [words_within("".join(words), parts), other_inline(node, host, bare=bare)]
            words = []
    return "".join([*parts, words_within("".join(words), parts)])


def words_within(text: str, before: Sequence[str]) -> str:
    """Return a text as words. Only what begins a line could begin a block, and is escaped."""
    return as_words(f"\0{text}").removeprefix("\0") if any(before) else as_words(text)


def other_inline(node: SyntaxTreeNode, host: str, *, bare: bool) -> str:
    if node.type == "code_inline":
        return code(one_line(node.content)) if node.content.strip() else ""
    if node.type == "image":
        return f"{as_words(one_line(node.content)) or 'an image'} (image: {code(address_of(node, 'src'))})"
    if node.type == "link":
        return link(inline(node.children, host, bare=bare), address_of(node, "href"), host)
    mark = "" if bare else {"strong": "**", "em": "*"}.get(node.type, "")
    inner = inline(node.children, host, bare=bare) if node.children else as_words(neutral(node.content))
    return f"{mark}{inner}{mark}" if inner.strip() else ""


def address_of(node: SyntaxTreeNode, name: str) -> str:
    return one_line(str(node.attrs.get(name, "")), MOST_ADDRESS) or "(nowhere)"


def link(words: str, address: str, host: str) -> str:
    """Return a link that a person may follow, with the host that it leads to. A reference to another thread would be
    announced there, so it becomes text.
    """
    if not ADDRESS.fullmatch(address) or is_reference(address, host):
        return f"{words} ({code(address)})"
    there, shown = host_of(address), words.strip("`")
    said = "" if there == host_of(shown if WEB.match(shown) else f"//{shown}") else f" ({code(there)})"
    return f"[{words or code(there)}](<{address.replace('&', '&amp;')}>){said}"


def host_of(address: str) -> str:
    try:
        return (urlsplit(address).netloc or "").lower()
    except ValueError:
        return ""


def is_reference(address: str, host: str) -> bool:
    there = PORT.sub("", host_of(address).removeprefix("www."))
    path = unquote(urlsplit(address).path)
    return there in ("", PORT.sub("", host), "github.com") and REFERRED.search(path) is not None


# Blocks


def blocks(nodes: Iterable[SyntaxTreeNode], host: str, between: str = "\n\n") -> str:
    return between.join(part for node in nodes if (part := block_of(node, host)))


def block_of(node: SyntaxTreeNode, host: str) -> str:
    if node.type in ("fence", "code_block"):
        return fenced(node)
    if node.type in ("bullet_list", "ordered_list"):
        return list_block(node, host)
    if node.type == "blockquote":
        return quoted(blocks(node.children, host))
    if node.type == "hr":
        return "---"
    if node.type == "heading":
        words = inline(node.children[0].children, host, bare=True)
        return f"**{words}**" if words.strip() else ""
    return "".join(inline(part.children, host) for part in node.children)  # a paragraph


def fenced(node: SyntaxTreeNode) -> str:
    words = node.content.rstrip("\n")
    named = node.info.split(" ", 1)[0]
    language = named if LANGUAGE.fullmatch(named) and named.lower() not in DRAWN else "text"
    fence = "`" * max(3, longest_run(words) + 1)
    return f"{fence}{language}\n{words}\n{fence}"


def list_block(node: SyntaxTreeNode, host: str) -> str:
    """Return a list. A tight one, without empty lines, stays tight."""
    between = "\n" if is_tight(node) else "\n\n"
    first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
    items = []
    for place, item in enumerate(node.children):
        mark = f"{first + place}{node.markup} " if node.type == "ordered_list" else f"{node.markup} "
        inner = blocks(item.children, host, between)
        items.append(mark + inner.replace("\n", "\n" + " " * len(mark)))
    return between.join(items)


def is_tight(node: SyntaxTreeNode) -> bool:
    return all(part.hidden for item in node.children for part in item.children if part.type == "paragraph")


# The words on a thread besides the gate's comment: whose reply counts, and replies to those whose word
# did not.
#
# On a forge, text acts: it mentions people, links issues, loads pictures, hides behind HTML. So what
# somebody else wrote stands in a code span or a fence that it cannot close.


COLUMNS = 100
CUT = "… (cut here)"


def longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def span(text: str, most: int = 200) -> str:
    """Return one line of somebody's words as a code span."""
    line = one_line(text, most) or "(nothing)"
    fence = "`" * (longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(text: str, most: int, *, kind: str = "text", fold: bool = True) -> str:
    """Return several lines of somebody's words, as a fenced block of at most `most` characters."""
    words = neutral(text).strip("\n")
    shown = clipped(wrap(words, COLUMNS) if fold else words, most)
    fence = "`" * max(3, longest_run(shown) + 1)
    return f"{fence}{kind}\n{shown}\n{fence}"


def clipped(text: str, most: int) -> str:
    """Return the beginning of a text, up to a whole line where there is one, and a word that something is missing."""
    if size(text) <= most:
        return text
    kept = text[:most]
    while size(kept) > most:
        kept = kept[: len(kept) - (size(kept) - most)]
    lines, newline, _ = kept.rpartition("\n")
    return f"{lines if newline else kept}\n{CUT}"


def size(text: str) -> int:
    """Return the length as the strictest forge counts it: in units of UTF-16."""
    return len(text) + sum(character > "\uffff" for character in text)


MOST_NAMES = 20
WRITE = "the right to write to this repository"
Groups = Mapping[str, Sequence[Person]]


@dataclass(frozen=True)
class Whose:
    """Words on whose reply counts. `closed`: why nobody's does, and what does."""

    words: str = "anybody who may write to this repository"
    closed: str = ""


ANYBODY = Whose()


def whose_reply(desk: Desk, gate: Gate) -> Whose:
    """Return whose reply counts, by the policy as it is now. A policy that cannot be read allows nobody's."""
    try:
        book = load_book(desk)
        terms = deciding(book.policies, case(desk, book, gate)) if book.policies else None
    except GateError as broken:
        return Whose(
            closed=f"**Nobody can answer** while the policy cannot be read: {span(broken.message, 300)}"
        )
    if terms is None:
        return unruled(gate)
    groups: dict[str, Sequence[Person]] = {}
    for policy in book.policies:
        groups.update(policy.groups or {})
    return in_words(gate, terms, groups)


def unruled(gate: Gate) -> Whose:
    """Return whose reply counts without a policy: that of the people whom the gate is for. An older question only names
    the people who were asked, and takes replies of others, too.
    """
    if gate.holds_to:
        reply = f"{addressed(gate)} (with {WRITE})"
        if any(person.logins for person in addressees(gate.to)):
            return Whose(reply)
        return Whose(
            closed=f"**It is for {addressed(gate)}**, whom no `@login` names here: `git gate respond {gate.id[:6]}` answers it"
        )
    return Whose(f"{ANYBODY.words}, asked of {addressed(gate)}") if gate.to else ANYBODY


def takes_plain(desk: Desk) -> bool:
    """Return whether the policy allows replies without a command. A policy that cannot be read allows nothing."""
    try:
        return any(policy.replies == "plain" for policy in load_book(desk).policies)
    except GateError:
        return False


def logins_of(desk: Desk, gate: Gate) -> list[str]:
    """Return the accounts of those whom the gate is for, by the question's names and the policy's people and groups."""
    try:
        policies = load_book(desk).policies
    except GateError:
        policies = ()
    known: dict[str, list[Person]] = {}
    for policy in policies:
        for person in policy.people:
            known.setdefault(person.name.casefold(), []).append(person)
        for name, members in (policy.groups or {}).items():
            known.setdefault(name.casefold(), []).extend(members)
    found: list[str] = []
    for who in gate.to:
        name = who.removeprefix("@")
        theirs = [login for one in known.get(name.casefold(), []) for login in sorted(one.logins)]
        found += theirs or [name]
    return list(dict.fromkeys(found))


def addressed(gate: Gate) -> str:
    return ", ".join(span(who, 60) for who in gate.to)


def in_words(gate: Gate, terms: Sequence[RuleTerms], groups: Groups) -> Whose:
    """Return in words whose reply counts: one rule in a line, or several, which all have to agree."""
    if any(term.require_signed for term in terms):
        return Whose(closed=signed_words(gate, terms, groups))
    to = f", of those whom it is for: {addressed(gate)}" if gate.to else ""
    rules = list(dict.fromkeys(rule_words(gate, term, groups) for term in terms))
    said = [rule for rule in rules if rule]
    if not said:
        return Whose(f"{addressed(gate)} (with {WRITE})") if gate.to else ANYBODY
    if len(said) == 1:
        return Whose(f"{said[0]}, with {WRITE}{to}")
    return Whose(f"whoever fits all of this, with {WRITE}: {'; and '.join(said)}{to}")


def signed_words(gate: Gate, terms: Sequence[RuleTerms], groups: Groups) -> str:
    said = "; and ".join(dict.fromkeys(rule for term in terms if (rule := rule_words(gate, term, groups))))
    who = f" It counts from {said}." if said else ""
    return (
        "**Answer in a terminal**: the policy takes signed answers only, and a comment carries no signature. "
        f"In a clone of this repository: `git gate respond {gate.id}`.{who}"
    )


def rule_words(gate: Gate, term: RuleTerms, groups: Groups) -> str:
    """Return what one rule asks of people; empty where it leaves the gate to everybody."""
    said = [
        people_line(term.who, groups) if term.who is not None else "",
        f"{term.quorum} of them have to agree" if term.quorum > 1 else "",
        "" if term.requester_may_answer else f"not {asker(gate)}, whose agent asked",
        f"no later than {format_duration(term.within)} after it was asked" if term.within is not None else "",
    ]
    if not any(said):
        return ""
    return ", ".join(part for part in (said[0] or "anybody", *said[1:]) if part)


def asker(gate: Gate) -> str:
    logins = gate.opened.asked.logins
    if logins:
        return " and not ".join(span(f"@{login}", 60) for login in logins)
    return span(gate.opened.asked.by.partition(" <")[0] or "the person", 60)


def people_line(who: Sequence[Person], groups: Groups) -> str:
    """Return people in words: groups by name with their members, everybody else by name."""
    left = list(who)
    said: list[str] = []
    for name, members in groups.items():
        if members and set(members) <= set(who):
            said.append(f"the group {span(name, 60)} ({several(members)})")
            left = [person for person in left if person not in members]
    return " or ".join([*said, *([several(left)] if left else [])])


def several(people: Sequence[Person]) -> str:
    names = [person_words(person) for person in people]
    more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(dict.fromkeys(names[:MOST_NAMES])) + more


def person_words(person: Person) -> str:
    """Return a person's name, and the login if that is another word: only by the login is a reply known."""
    logins = sorted(person.logins)
    if person.name.removeprefix("@").casefold() in logins:
        return span(person.name, 60)
    if logins:
        return f"{span(person.name, 60)} ({', '.join(span(f'@{login}', 60) for login in logins[:5])})"
    return f"{span(person.name, 60)} (in a terminal: the policy names no login)"


@dataclass(frozen=True)
class ReplyNote:
    """Note of ours on a thread. `mark`: its first line; where the thread has it, the note was posted before."""

    mark: str
    text: str

    @property
    def body(self) -> str:
        return f"{self.mark}\n{self.text}\n"


def about(comment: Comment) -> str:
    return f"<!-- gitgate told={numbered(comment)} -->"


def numbered(comment: Comment) -> str:
    """Return the comment's number with its kind: comments on a diff have numbers of their own."""
    return f"{'r' if comment.review else 'c'}{comment.number}"


def person(comment: Comment) -> str:
    return f"<!-- gitgate told=p{comment.author.number}"


def counted(comment: Comment) -> str:
    return f"<!-- gitgate told={numbered(comment)} counted -->"


def hinted(comment: Comment, gate: str) -> str:
    return f"<!-- gitgate told=h{comment.author.number} gate={gate} -->"


def was_hinted(comment: Comment, gate: str, ours: Sequence[Comment]) -> bool:
    return any(said.body.startswith(hinted(comment, gate)) for said in ours)


def worded(comment: Comment, gate: str) -> str:
    return f"<!-- gitgate told=w{comment.author.number} gate={gate} -->"


def was_worded(comment: Comment, gate: str, ours: Sequence[Comment]) -> bool:
    """Return whether the author had a note that words without a command are no answer to this gate."""
    return any(said.body.startswith(worded(comment, gate)) for said in ours)


def was_told(comment: Comment, ours: Sequence[Comment]) -> bool:
    """Return whether a note of ours is about this comment, or refused its author's word after it was written."""
    return any(
        said.body.startswith((about(comment), counted(comment)))
        or (said.body.startswith(f"{person(comment)} ") and said.created >= comment.created)
        for said in ours
    )


def who(comment: Comment) -> str:
    return f"[{span(comment.author.login, 60)}]({comment.url})"


def unpermitted(comment: Comment, gate: str) -> ReplyNote:
    """Return the note that somebody may not answer. It is posted once for each person and gate."""
    mark = f"{person(comment)} gate={gate} -->"
    return ReplyNote(
        mark, f"{who(comment)}: this is no answer. It takes somebody who may write to this repository."
    )


def edited(comment: Comment) -> ReplyNote:
    words = "this comment was edited, so nobody can tell what was said. Please reply with a new one."
    return ReplyNote(about(comment), f"{who(comment)}: {words}")


def unclear(
    comment: Comment,
    why: str,
    gates: Sequence[Gate],
    waiting: Sequence[str] = (),
    taken: Collection[str] = (),
) -> ReplyNote:
    """Return the note on a reply that was not understood. It shows every way to answer the gate that the reply was
    about, or one way for each of several gates.
    """
    lines = [f"{who(comment)}: this could not be taken as an answer: {span(why, 300)}"]
    if gates:
        lines.append(
            "One of these would be:\n\n" + block("\n".join(ways(gates, waiting, taken)), 2000, fold=False)
        )
    return ReplyNote(about(comment), "\n\n".join(lines))


def ways(gates: Sequence[Gate], waiting: Sequence[str], taken: Collection[str]) -> list[str]:
    if len(gates) == 1:
        return examples(gates[0], "" if list(waiting) == [gates[0].id] else gates[0].id, waiting, taken)
    return [next(iter(examples(gate, gate.id, waiting, taken)), f"/answer {gate.id} …") for gate in gates]


def hint(comment: Comment, gate: Gate, waiting: Sequence[str], taken: Collection[str] = ()) -> ReplyNote:
    """Return the note on talk that may be an answer. Once for each person and gate, since threads are for talking."""
    return ReplyNote(
        hinted(comment, gate.id),
        f"{who(comment)}: this names gate **{gate.id}**, and nobody can tell whether it was to be its answer. "
        f"An answer begins with `{gate.id}:`, or is one of these:\n\n"
        + block("\n".join(examples(gate, gate.id, waiting, taken)), 2000, fold=False),
    )


def word_hint(comment: Comment, gate: Gate, whose: Whose, taken: Collection[str] = ()) -> ReplyNote:
    """Return the note on a word that answers elsewhere, but not here. It is posted once for each person and gate."""
    counts = whose.closed or "A comment that begins with one of these is one:\n\n" + block(
        "\n".join(examples(gate, taken=taken)), 2000, fold=False
    )
    return ReplyNote(worded(comment, gate.id), f"{who(comment)}: this is no answer yet. {counts}")


def reacted(gate: Gate, whose: Whose, taken: Collection[str] = ()) -> ReplyNote:
    """Return the note on a thumb at our comment: the forge gives only the number of thumbs. Once for each gate."""
    counts = whose.closed or "A new comment that begins with one of these is one:\n\n" + block(
        "\n".join(examples(gate, taken=taken)), 2000, fold=False
    )
    words = f"Gate **{gate.id}**: a reaction is no answer, since nobody is told whose it is. {counts}"
    return ReplyNote(f"<!-- gitgate told=t gate={gate.id} -->", words)


def too_late(comment: Comment, why: str) -> ReplyNote:
    return ReplyNote(
        about(comment), f"{who(comment)}: this came too late and has no effect: {span(why, 300)}"
    )


def ending_words(gate: Gate) -> str:
    """Return why the gate no longer waits."""
    if gate.answer is not None:
        by = gate.answer.answer.by.partition(" <")[0] or "a default"
        return f"{by} was first, at {gate.answer.answer.at}"
    return f"gate {gate.id} is {gate.state}"


def changed(comment: Comment, why: str) -> ReplyNote:
    words = "the question changed after it was read. Please look again, and reply with a new comment"
    return ReplyNote(about(comment), f"{who(comment)}: {words}: {span(why, 300)}")


def elsewhere(comment: Comment, gate: str, place: str) -> ReplyNote:
    """Return the note on a reply that counts for a gate that is shown on another thread."""
    where = f"is asked [there]({place})" if place else "is shown in no thread"
    return ReplyNote(counted(comment), f"{who(comment)}: this counts for gate **{gate}**, which {where}.")


def not_acted_on(gate: str, answer: str, why: str) -> ReplyNote:
    """Return the note that an answer is recorded, and that it starts nobody by itself. Posted once for each answer."""
    mark = f"<!-- gitgate told=d{answer} gate={gate} -->"
    return ReplyNote(
        mark,
        f"Gate **{gate}** is answered, and no job acts on that by itself: {span(why, 300)}. "
        "Somebody who may write to this repository and has looked at it can start the agent:\n\n"
        + block(f"git gate github dispatch {gate}", 200, fold=False),
    )


def kept_back(gate: str, answer: str, agent: str) -> ReplyNote:
    """Return the note that an answer is recorded, and that no job can act on it, whoever asks for one."""
    mark = f"<!-- gitgate told=d{answer} gate={gate} -->"
    return ReplyNote(
        mark,
        f"Gate **{gate}** is answered, and no job can act on that: its session stayed where {span(agent, 60)} asked. "
        "There, whoever asked can start the agent:\n\n" + block(f"git gate resume {gate}", 200, fold=False),
    )


def left(what: str, branch: str, tip: str, why: str, compare: str) -> ReplyNote:
    """Return the note that an agent's commits are on a branch of ours, which somebody has to merge or delete. It is
    posted once for each tip.
    """
    because = f": {span(why, 300)}" if why else ""
    return ReplyNote(
        f"<!-- gitgate told=b{tip} -->",
        f"{what} the agent made is on {span(branch, 100)}{because}. [Compare, and merge it]({compare}); "
        f"or delete {span(branch, 100)}, and it is left.",
    )


def refused(comment: Comment, why: str) -> ReplyNote:
    return ReplyNote(about(comment), f"{who(comment)}: this is no answer here: {span(why, 300)}")
