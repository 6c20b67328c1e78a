"""Policy: whether answers are verified, unverified or invalid, and by whom: for showing, all in one batch."""

from __future__ import annotations

from collections.abc import Iterable

from ..context.desk import Desk
from ..errors import GateError
from ..model.gate import Answer, Entry, Gate
from ..model.people import INVALID, UNVERIFIED, VERIFIED, SignatureMark
from ..store.git.signatures import BAD, GOOD, Verdict, load_verdicts
from .book import Book, load_book, signers_of
from .ruling import Who, is_named


def marks(desk: Desk, gates: Iterable[Gate]) -> dict[str, SignatureMark]:
    """By commit, for each answer in these gates that carries a signature."""
    said = {
        commit: entry.event.by
        for gate in gates
        for entry in gate.history
        if isinstance(entry.event, Answer) and is_signed(desk, commit := spoken_at(entry))
    }
    if not said:
        return {}
    try:
        book = load_book(desk)
        signers = signers_of(desk, book)
    except GateError:
        book, signers = Book(), b""  # nobody can say whose keys count
    found = load_verdicts(desk.repo, list(said), signers)
    return {commit: mark_of(book, by, found[commit]) for commit, by in said.items()}


def spoken_at(entry: Entry) -> str:
    """The commit in which its author said it; recorded again, it is the second parent."""
    return entry.parents[1] if len(entry.parents) > 1 else entry.commit


def is_signed(desk: Desk, commit: str) -> bool:
    try:
        return desk.records.commit(commit).signed
    except GateError:
        return False


def mark_of(book: Book, by: str, verdict: Verdict) -> SignatureMark:
    """A good signature by somebody else than the name says is worse than none."""
    if verdict.word == BAD:
        return SignatureMark(INVALID, verdict.signer, verdict.key)
    if verdict.word != GOOD:
        return SignatureMark(UNVERIFIED, "", verdict.key)
    named = is_named(book.policies, Who(by, verdict.key, verdict.signer))
    # A distinguished name has no address that could be held against the answer's.
    otherwise = UNVERIFIED if verdict.signer.startswith("/") else INVALID
    return SignatureMark(VERIFIED if named else otherwise, verdict.signer, verdict.key)
