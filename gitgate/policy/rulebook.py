"""Policy: which calls of an agent wait for a person: the rules that count, and those of a working tree, which do not yet.

Rules count as the protected branch and this machine's own file have them. Where an agent works it can write the file, so that
nothing there may loosen a rule, or choose who is asked: of a rule that is new there, the call alone holds. What cannot be read
of a file that counts holds every call; of one that does not, it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..config import FILE, IN_FILE, read_regular
from ..context import Desk
from ..document import Field, Plain, dataclass, is_blank, near
from ..errors import GateError
from ..questions.call_rules import (
    SECTION,
    Allowance,
    CallRule,
    RuleSource,
    TreeRules,
    is_near,
    parse_allowances,
    parse_rules,
    parse_tree_rules,
    strange_tools,
)
from ..questions.calls import RuleBook, hold_all
from ..store.git.protected import MOST_FILE, read_protected
from ..text import counted, one_line
from . import read_machine_file, read_rules_file

HEAD = "HEAD"
OTHERS_TOOL = "it holds a tool of that name alone"
MOST_NAMED = 5


@dataclass(frozen=True)
class RuleStanding:
    """State of the rules of a repository. `source` is that of the rules that count on the protected branch, where
    there is one. `strange`: fields and tools that nobody knows; `unread`: what of a working tree's rules cannot be
    read; `unheard`: what a working tree would allow.
    """

    book: RuleBook = RuleBook()
    source: RuleSource = RuleSource()
    strange: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    unheard: tuple[Allowance, ...] = ()


@dataclass(frozen=True)
class CountedFile:
    """Content of one file that counts: rules, allowances, and why they cannot be read where `broken`."""

    source: RuleSource
    rules: tuple[CallRule, ...] = ()
    entries: tuple[Plain, ...] = ()
    data: bytes = b""
    broken: str = ""
    strange: tuple[str, ...] = ()
    allowances: tuple[Allowance, ...] = ()


def load_standing(desk: Desk, *others: Desk) -> RuleStanding:
    """Return the rules that count for this repository, and those of these desks' working trees that do not yet."""
    branch, machine = read_branch(desk), read_machine(desk)
    counting = [one for one in (branch, machine) if one is not None]
    rules = tuple(rule for one in counting for rule in one.rules)
    broken = next((hold_all(one.broken, one.source) for one in counting if one.broken), None)
    strange = [words for one in counting for words in one.strange]
    strange += [f"{SECTION}, {words}; {OTHERS_TOOL}" for words, _ in strange_tools(rules)]
    known = [entry for one in counting for entry in one.entries]
    pending: list[CallRule] = []
    unread: list[str] = []
    unheard: list[Allowance] = []
    for data, source in tree_files([desk, *others], {branch.data if branch else b"", b""}):
        found = read_pending(data, source, known)
        pending += found.rules
        unheard += found.allowances
        unread += found.unread
    allowances = tuple(each for one in counting for each in one.allowances)
    return RuleStanding(
        RuleBook(rules, tuple(pending), broken, allowances),
        branch.source if branch else RuleSource(),
        tuple(strange),
        tuple(dict.fromkeys(unread)),
        tuple(unheard),
    )


def has_rules(desk: Desk) -> bool:
    """Return whether any call may have to wait here."""
    book = load_standing(desk).book
    return bool(book.rules or book.pending or book.broken)


# Files that count


def read_branch(desk: Desk) -> CountedFile | None:
    """Return the rules of the protected branch; None where there is no such branch, or it has no such file."""
    try:
        found = read_rules_file(desk)
    except GateError as wrong:
        return CountedFile(RuleSource(f"{FILE} of the protected branch"), broken=wrong.message)
    if found is None:
        return None
    return read_counting(found.data, RuleSource(found.source, found.commit or ""))


def read_machine(desk: Desk) -> CountedFile | None:
    """Return the rules of this machine's own file; None where its configuration names none."""
    file = desk.settings.text("policyFile")
    if not file:
        return None
    try:
        return read_counting(read_machine_file(desk, Path(file)), RuleSource(file))
    except GateError as wrong:
        return CountedFile(RuleSource(file), broken=wrong.message)


def read_counting(data: bytes, source: RuleSource) -> CountedFile:
    """Return the rules of a file that counts; `broken` says why they cannot be read."""
    if is_blank(data):
        return CountedFile(source)
    from ..document.codec import parse_document

    try:
        root = parse_document(data, source.file)
        listed = root.get(SECTION)
        rules, allowances = parse_rules(root, source), parse_allowances(root, source)
    except GateError as wrong:
        return CountedFile(source, data=data, broken=wrong.message)
    entries = tuple(item.plain() for item in listed.items()) if listed is not None else ()
    strange = tuple(unknown_fields(root))
    return CountedFile(source, rules, entries, data, strange=strange, allowances=allowances)


def unknown_fields(root: Field) -> Iterator[str]:
    """Yield in words each field of a file that nobody reads."""
    for name, field in root.mapping().items():
        if name not in IN_FILE and not is_near(name):
            meant = near(name, IN_FILE)
            yield f"{one_line(field.source)}, line {field.line}: nobody reads {field.path}{meant}"


# Files of working trees


def tree_files(desks: Sequence[Desk], seen: set[bytes]) -> Iterator[tuple[bytes | GateError, RuleSource]]:
    """Yield the file of each working tree, as committed on its branch and as it is there, unless it was seen."""
    by_top = {desk.repo.top: desk for desk in desks if desk.repo.top is not None}
    for desk in by_top.values():
        for read in (read_checked_out, read_tree):
            data, source = read(desk)
            if isinstance(data, GateError) or data not in seen:
                yield data, source
            if not isinstance(data, GateError):
                seen.add(data)


def read_checked_out(desk: Desk) -> tuple[bytes | GateError, RuleSource]:
    """Return the file as committed on the branch that an agent is on; the working tree may lack it."""
    try:
        found = read_protected(desk.refs, desk.records.objects, FILE, [HEAD])
    except GateError as wrong:
        return wrong, RuleSource(f"{HEAD}:{FILE}", counts=False)
    if found is None:
        return b"", RuleSource()
    return found.data, RuleSource(found.source, found.commit or "", counts=False)


def read_tree(desk: Desk) -> tuple[bytes | GateError, RuleSource]:
    """Return the file in the working tree of an agent."""
    source = RuleSource(f"{FILE} of the working tree", counts=False)
    try:
        return read_regular(desk.repo.place / FILE, MOST_FILE), source
    except FileNotFoundError:
        return b"", source
    except GateError as wrong:
        return wrong, source


def read_pending(data: bytes | GateError, source: RuleSource, known: list[Plain]) -> TreeRules:
    """Return the rules of a working tree's file that are not `known`, and what of it cannot be read. The file's
    entries join the `known` ones.
    """
    if isinstance(data, GateError):
        return TreeRules(unread=(data.message,))
    if is_blank(data):
        return TreeRules()
    from ..document.codec import parse_document

    try:
        root = parse_document(data, source.file)
    except GateError as wrong:
        return TreeRules(unread=(wrong.message,))
    found = parse_tree_rules(root, source, known)
    listed = root.get(SECTION)
    known += (
        [item.plain() for item in listed.value]
        if listed is not None and isinstance(listed.value, list)
        else []
    )
    return found


# In words


def standing_words(standing: RuleStanding) -> list[str]:
    """Return in words which rules count, from which commit, which do not yet, and what cannot be read; empty if
    nothing.
    """
    book, broken = standing.book, []
    if book.broken is not None:
        broken = [
            f"no call of an agent is made, but reading and asking, until this is mended: {book.broken.why}"
        ]
    unread = [f"it holds nothing, since it cannot be read: {words}" for words in standing.unread]
    waiting = [*counting_words(book), *pending_words(standing)]
    return [*broken, *waiting, *unread, *standing.strange]


def counting_words(book: RuleBook) -> list[str]:
    allowed = [
        f"{named(allowances)} of {source.words} {'allows' if len(allowances) == 1 else 'allow'} a command as it is written. {ALLOWS}"
        for source, allowances in by_source(book.allowances).items()
    ]
    counted_rules = [
        f"{counted(len(rules), 'rule')} of {source.words} {'says' if len(rules) == 1 else 'say'} which calls wait for a person"
        for source, rules in by_source(book.rules).items()
    ]
    return [*counted_rules, *allowed]


def pending_words(standing: RuleStanding) -> list[str]:
    """Return in words which rules and allowances of a working tree do not count."""
    rules = [
        f"{named(rules)} of {source.words} {'does' if len(rules) == 1 else 'do'} not count yet. {HOLDS}"
        for source, rules in by_source(standing.book.pending).items()
    ]
    allowances = [
        f"{named(found)} of {source.words} {'does' if len(found) == 1 else 'do'} not count. {ALLOWED_WHERE}"
        for source, found in by_source(standing.unheard).items()
    ]
    return [*rules, *allowances]


Entry = TypeVar("Entry", CallRule, Allowance)


def by_source(rules: Sequence[Entry]) -> dict[RuleSource, list[Entry]]:
    found: dict[RuleSource, list[Entry]] = {}
    for rule in rules:
        found.setdefault(rule.source, []).append(rule)
    return found


ALLOWS = "Where a rule names that command, or could, it waits all the same"
ALLOWED_WHERE = "An agent can write that file: commands are allowed by the protected branch"
HOLDS = "Such a call waits all the same, but for anybody and without a deadline, until the rule is on the protected branch"


def named(rules: Sequence[Entry]) -> str:
    more = f" and {len(rules) - MOST_NAMED} more" if len(rules) > MOST_NAMED else ""
    return f"{', '.join(one_line(rule.text) for rule in rules[:MOST_NAMED])}{more}"
