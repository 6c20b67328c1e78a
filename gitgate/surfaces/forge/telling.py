"""Surfaces: the words on a thread besides the gate's comment: whose reply counts, and replies to those whose word did not.

On a forge, text acts: it mentions people, links issues, loads pictures, hides behind HTML. So what somebody else wrote
stands in a code span or a fence that it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...context.desk import Desk
from ...errors import GateError
from ...model.gate import Gate
from ...policy.permit import case
from ...policy.rules import Person, RuleTerms, load_book
from ...policy.ruling import deciding
from ...text.display import neutral, one_line, wrap
from ...text.times import format_duration
from .hosts.forge import Comment
from .reply import examples

COLUMNS = 100
CUT = "… (cut here)"


def longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def span(text: str, most: int = 200) -> str:
    """One line of somebody's, as a code span."""
    line = one_line(text, most) or "(nothing)"
    fence = "`" * (longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(text: str, most: int, *, kind: str = "text", fold: bool = True) -> str:
    """Several lines of somebody's, as a fenced block of at most `most` characters."""
    words = neutral(text).strip("\n")
    shown = clipped(wrap(words, COLUMNS) if fold else words, most)
    fence = "`" * max(3, longest_run(shown) + 1)
    return f"{fence}{kind}\n{shown}\n{fence}"


def clipped(text: str, most: int) -> str:
    """The beginning, up to a whole line where there is one, and a word that something is missing."""
    if size(text) <= most:
        return text
    kept = text[:most]
    while size(kept) > most:
        kept = kept[: len(kept) - (size(kept) - most)]
    lines, newline, _ = kept.rpartition("\n")
    return f"{lines if newline else kept}\n{CUT}"


def size(text: str) -> int:
    """As a forge counts at the worst: in units of UTF-16."""
    return len(text) + sum(character > "\uffff" for character in text)


MOST_NAMES = 20
WRITE = "the right to write to this repository"
Groups = Mapping[str, Sequence[Person]]


@dataclass(frozen=True)
class Whose:
    """Whose reply counts. `closed`: why nobody's does, and what does."""

    words: str = "anybody who may write to this repository"
    closed: str = ""


ANYBODY = Whose()


def whose_reply(desk: Desk, gate: Gate) -> Whose:
    """As the policy is now; one that cannot be read allows nothing."""
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
    """Without a policy nothing binds, not even whom it is for: that says who was asked, and no more."""
    return Whose(f"{ANYBODY.words}, asked of {addressed(gate)}") if gate.to else ANYBODY


def takes_plain(desk: Desk) -> bool:
    """Whether the policy says so; one that cannot be read allows nothing."""
    try:
        return any(policy.replies == "plain" for policy in load_book(desk).policies)
    except GateError:
        return False


def logins_of(desk: Desk, gate: Gate) -> list[str]:
    """The accounts that those may have whom it is for: as it names them, and as the policy knows them and its groups."""
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
    """One rule in a line; of several, which all have to agree, each by its name."""
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
    """What one rule asks of people; empty when it leaves it to all."""
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
    """Groups by their name with who is in them, everybody else by name."""
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
    """By name, and by login where that is another word: a reply is known by it alone."""
    logins = sorted(person.logins)
    if person.name.removeprefix("@").casefold() in logins:
        return span(person.name, 60)
    if logins:
        return f"{span(person.name, 60)} ({', '.join(span(f'@{login}', 60) for login in logins[:5])})"
    return f"{span(person.name, 60)} (in a terminal: the policy names no login)"


@dataclass(frozen=True)
class ReplyNote:
    """A reply of ours. `mark` is its first line; where that stands already, it was said."""

    mark: str
    text: str

    @property
    def body(self) -> str:
        return f"{self.mark}\n{self.text}\n"


def about(comment: Comment) -> str:
    return f"<!-- gitgate told={numbered(comment)} -->"


def numbered(comment: Comment) -> str:
    """Those on a diff have numbers of their own."""
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
    """Whether its author was told that words without a command are no answer to this gate."""
    return any(said.body.startswith(worded(comment, gate)) for said in ours)


def was_told(comment: Comment, ours: Sequence[Comment]) -> bool:
    """Whether one of ours is about this comment, or told its author after it that their word does not count."""
    return any(
        said.body.startswith((about(comment), counted(comment)))
        or (said.body.startswith(f"{person(comment)} ") and said.created >= comment.created)
        for said in ours
    )


def who(comment: Comment) -> str:
    return f"[{span(comment.author.login, 60)}]({comment.url})"


def unpermitted(comment: Comment, gate: str) -> ReplyNote:
    """Once for each person and gate, however often they try."""
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
    """What was not understood, and what would be: every way to answer the gate that it was about, or one for each of several."""
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
    """What names a gate and may be talk about it. Once for each person and gate: threads are for talking."""
    return ReplyNote(
        hinted(comment, gate.id),
        f"{who(comment)}: this names gate **{gate.id}**, and nobody can tell whether it was to be its answer. "
        f"An answer begins with `{gate.id}:`, or is one of these:\n\n"
        + block("\n".join(examples(gate, gate.id, waiting, taken)), 2000, fold=False),
    )


def word_hint(comment: Comment, gate: Gate, whose: Whose, taken: Collection[str] = ()) -> ReplyNote:
    """What people type elsewhere. Once for each person and gate."""
    counts = whose.closed or "A comment that begins with one of these is one:\n\n" + block(
        "\n".join(examples(gate, taken=taken)), 2000, fold=False
    )
    return ReplyNote(worded(comment, gate.id), f"{who(comment)}: this is no answer yet. {counts}")


def reacted(gate: Gate, whose: Whose, taken: Collection[str] = ()) -> ReplyNote:
    """A thumb at our comment, of which the forge tells us the number alone. Once for each gate."""
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
    """Why it waits no more."""
    if gate.answer is not None:
        by = gate.answer.answer.by.partition(" <")[0] or "a default"
        return f"{by} was first, at {gate.answer.answer.at}"
    return f"gate {gate.id} is {gate.state}"


def changed(comment: Comment, why: str) -> ReplyNote:
    words = "the question changed after it was read. Please look again, and reply with a new comment"
    return ReplyNote(about(comment), f"{who(comment)}: {words}: {span(why, 300)}")


def elsewhere(comment: Comment, gate: str, place: str) -> ReplyNote:
    """A reply that counts for a gate that is shown in another thread."""
    where = f"is asked [there]({place})" if place else "is shown in no thread"
    return ReplyNote(counted(comment), f"{who(comment)}: this counts for gate **{gate}**, which {where}.")


def not_acted_on(gate: str, answer: str, why: str) -> ReplyNote:
    """Once for each answer: it is in the record, and nobody will be started by it."""
    mark = f"<!-- gitgate told=d{answer} gate={gate} -->"
    return ReplyNote(
        mark,
        f"Gate **{gate}** is answered, and no job acts on that by itself: {span(why, 300)}. "
        "Somebody who may write to this repository and has looked at it can start the agent:\n\n"
        + block(f"git gate github dispatch {gate}", 200, fold=False),
    )


def kept_back(gate: str, answer: str, agent: str) -> ReplyNote:
    """The same where no job can act on it, whoever asks for one."""
    mark = f"<!-- gitgate told=d{answer} gate={gate} -->"
    return ReplyNote(
        mark,
        f"Gate **{gate}** is answered, and no job can act on that: its session stayed where {span(agent, 60)} asked. "
        "There, whoever asked can start the agent:\n\n" + block(f"git gate resume {gate}", 200, fold=False),
    )


def left(what: str, branch: str, tip: str, why: str, compare: str) -> ReplyNote:
    """What an agent made is on a branch of ours, and somebody has to bring it to its own, or to leave it. Once for each tip."""
    because = f": {span(why, 300)}" if why else ""
    return ReplyNote(
        f"<!-- gitgate told=b{tip} -->",
        f"{what} the agent made is on {span(branch, 100)}{because}. [Compare, and merge it]({compare}); "
        f"or delete {span(branch, 100)}, and it is left.",
    )


def refused(comment: Comment, why: str) -> ReplyNote:
    return ReplyNote(about(comment), f"{who(comment)}: this is no answer here: {span(why, 300)}")
