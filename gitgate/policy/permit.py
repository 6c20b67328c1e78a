"""Policy: whether the policy allows what somebody is about to do, and accepts what a record says was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from .. import text
from ..context import Desk
from ..document import dataclass, replace
from ..errors import GateError, GitFailed, NotAllowed, Usage
from ..model import ANSWERED, address, has_address, same_person
from ..model.gate import Answer, Counted, Entry, Gate, Opened, Work
from ..questions.types import type_of
from ..record import Summary
from ..record.events import fold, knew
from ..store.git.protected import protected_tip
from ..store.git.signatures import BAD, GOOD, Verdict, verify
from . import Book, Policy, load_book, protected_refs, ruling, signers_of
from .addressees import addressees, held_to, is_of_gate, keys_of, way_to_answer
from .ruling import Kind, Ruling, RulingCase, SaidHow, Who, people_behind, who_kind

POLICY = "policy"


def who_said(answer: Answer, verdict: Verdict | None) -> Who:
    """Return who stands behind an answer: a good signature's owner, a forge's login recorded with it, or only a
    name.
    """
    if verdict is not None and verdict.word == GOOD:
        return Who(answer.by, verdict.key, verdict.signer)
    login = answer.evidence.get("login")
    return Who(answer.by, login=login if isinstance(login, str) else "")


def said_by(answer: Answer) -> SaidHow:
    """Return how and when an answer was given. For a reply on a forge, that is when it was written there, as it may
    be recorded late.
    """
    return SaidHow(written_at(answer.evidence) or answer.at, answer.via)


def written_at(evidence: Mapping[str, object]) -> str:
    """Return the time when a reply was written on its forge; empty where it came from none."""
    at = evidence.get("at")
    try:
        return at if isinstance(at, str) and text.parse_time(at) else ""
    except Usage:
        return ""


def load_book_of(desk: Desk, gate: Gate) -> Book:
    """Return the book that decides who may answer this gate: the policy's, else one of whom the question is for."""
    return held_to(load_book(desk), gate)


def verdict_on(desk: Desk, book: Book, commit: str) -> Verdict | None:
    """Return the verdict on a commit's signature; None where it carries none."""
    if not desk.records.commit(commit).signed:
        return None
    return verify(desk.repo.git, [commit], signers_of(desk, book))[commit]


# what a gate is, and what is asked of it


def case(desk: Desk, book: Book, gate: Gate) -> RulingCase:
    """Return the facts that the rules examine; git is asked for paths only where a rule is about paths."""
    return ruling.case_of(gate, paths_of(desk, book, gate.opened.work))


def paths_of(desk: Desk, book: Book, work: Work) -> tuple[str, ...] | None:
    if not any(policy.by_path for policy in book.policies):
        return ()
    if work.commit is None:
        return None  # where there is a policy there is a commit: a question that names none says nothing of its work
    from ..store.work import touched  # whoever answers loads this module, and few policies have paths

    start = protected_tip(desk.refs, desk.records.objects, [book.ref] if book.ref else protected_refs(desk))
    return touched(desk.repo, start, work.base, work.commit, work.staged)


def tightened(desk: Desk, opened: Opened) -> Opened:
    """Return the question with the quorum and the refusals that the policy wants; the question may itself want more."""
    book = load_book(desk)
    if not book.policies:
        return opened
    facts = ruling.case_of_question("", opened, opened.priority, opened.to, paths_of(desk, book, opened.work))
    agree, refuse = ruling.needed(book.policies, facts)
    return replace(opened, quorum=max(opened.quorum, agree), refusals=refuse)


def approvals_may_default(desk: Desk) -> bool:
    """Return whether some rule allows defaults for approvals; the rule that decides is found when the deadline has
    passed.
    """
    return any(term.defaults for term in load_book(desk).terms)


def on_answer(desk: Desk, book: Book, gate: Gate, counted: Counted) -> Ruling:
    """Return the ruling on one recorded answer: whether the policy accepts it, and why."""
    verdict = verdict_on(desk, book, counted.signed_commit)
    if verdict is not None and verdict.word == BAD:
        return Ruling(False, "signature", "its signature is bad")
    who, said = who_said(counted.answer, verdict), said_by(counted.answer)
    return ruling.rule_on_recorded(book.policies, case(desk, book, gate), who, said)


def check_heard(desk: Desk, gate: Gate, *, given_here: str = "") -> None:
    """Refuse to hand an answer to a reader where the policy does not accept it. A gate that was acted on already is
    history and passes, whatever the policy is now.
    """
    if gate.state == ANSWERED:
        check_told(desk, gate, given_here=given_here)


def check_told(desk: Desk, gate: Gate, *, given_here: str = "") -> None:
    """Refuse to act on a gate whose answer the policy does not accept.

    `given_here`: the way in which the asker's own program answers its questions. Without a policy such an answer
    counts for this program alone.
    """
    ruled = load_book(desk)
    if gate.answer is None:
        return
    book = held_to(ruled, gate)
    if not ruled.policies and (not given_here or gate.answer.answer.via != given_here):
        refuse_unconfirmed(gate, gate.answer.answer.via)
    if not book.policies:
        return
    check_agent(book, gate)
    if gate.defaulted:
        # Nobody's answer: whom it is for has no part in that.
        refuse_unless(gate, default_ruling(desk, ruled, gate)) if ruled.policies else None
        return
    refuse_unless(gate, enough_people(desk, book, gate))


def enough_people(desk: Desk, book: Book, gate: Gate) -> Ruling:
    """Return the ruling on whether as many people as the policy wants gave the gate's answer. The agent is told its
    words, so the answer itself has to be one that the policy accepts.
    """
    if gate.answer is not None and not (own := on_answer(desk, book, gate, gate.answer)).allowed:
        return own
    facts = case(desk, book, gate)
    agree, refuse = ruling.needed(book.policies, facts)
    accepted, refused = last_words(desk, book, gate)
    told = gate.answer.answer.verdict if gate.answer is not None else ""
    enough = refuse if told == "rejected" else agree
    names = ", ".join(term.name for term in ruling.deciding(book.policies, facts))
    people = people_behind(book.policies, accepted)
    if people >= enough:
        return Ruling(True, names, f"{people} agree")
    return refused or replace(too_few(names, enough, people, len(accepted)), of_gate=is_of_gate(book))


def last_words(desk: Desk, book: Book, gate: Gate) -> tuple[list[Who], Ruling | None]:
    """Return the people behind the gate's answer, and the ruling against the first refused answer that says the
    same.

    Somebody who gave different answers under two addresses is counted for the last one alone.
    """
    heard = without_forged(desk, book, gate)
    same = {vote.commit for vote in (*alike(gate), *alike(gate, heard))}
    entries = {entry.commit: entry for entry in gate.history}
    standing: dict[Kind, tuple[Counted, Who]] = {}
    refused: Ruling | None = None
    for vote in gate.votes if heard is gate else (*heard.votes, *forged_votes(gate, heard)):
        said = on_answer(desk, book, gate, vote)
        if not said.allowed:
            refused = refused or (said if vote.commit in same else None)
            continue
        who = who_said(vote.answer, verdict_on(desk, book, vote.signed_commit))
        kind = who_kind(book.policies, who)
        before = standing.get(kind)
        if before is None or knew(gate, entries[vote.commit], before[0]):
            standing[kind] = (vote, who)
    return [who for vote, who in standing.values() if vote.commit in same], refused


def too_few(rule: str, enough: int, people: int, answers: int) -> Ruling:
    doubt = ""
    if answers > people:
        doubt = f"; of {answers} answers some are one person's, or could be: list addresses and logins under `people`"
    return Ruling(False, rule, f"{enough} have to agree, and {people} do whom it accepts{doubt}")


def without_forged(desk: Desk, book: Book, gate: Gate) -> Gate:
    """Return the gate without forged answers, where rules want answers signed. An answer that its author's signature
    does not vouch for is not theirs: it replaces none of their votes, and makes none late.
    """
    if not any(term.require_signed for term in ruling.deciding(book.policies, case(desk, book, gate))):
        return gate
    said = {
        entry.commit: entry for entry in gate.history if isinstance(entry.event, Answer) and entry.event.by
    }
    source = {
        commit: entry.parents[1] if len(entry.parents) > 1 else commit for commit, entry in said.items()
    }
    signed = [oid for oid in source.values() if desk.records.commit(oid).signed]
    verdicts = verify(desk.repo.git, signed, signers_of(desk, book))
    forged = frozenset(
        commit for commit in said if not vouched(book, said[commit], verdicts.get(source[commit]))
    )
    return fold(gate.id, [answers_alone(entry, forged) for entry in gate.history]) if forged else gate


def vouched(book: Book, entry: Entry, verdict: Verdict | None) -> bool:
    """Return whether an answer is signed by the person in whose name it is."""
    if verdict is None or verdict.word != GOOD or not isinstance(entry.event, Answer):
        return False
    return ruling.is_named(book.policies, Who(entry.event.by, verdict.key, verdict.signer))


def answers_alone(entry: Entry, forged: frozenset[str]) -> Entry:
    """Return an event as it counts for who answered what: every event but an answer is neutralised, and each forged
    answer.
    """
    event = entry.event
    if isinstance(event, Opened):
        return entry
    if not isinstance(event, Answer) or entry.commit in forged:
        return replace(entry, repeats=entry.repeats or entry.commit)
    return replace(entry, event=replace(event, amends=None)) if event.amends in forged else entry


def forged_votes(gate: Gate, heard: Gate) -> list[Counted]:
    """Return the votes that count in the record but not under the policy, so that an error can give the reason."""
    known = {vote.commit for vote in heard.votes}
    return [vote for vote in gate.votes if vote.commit not in known]


def alike(gate: Gate, heard: Gate | None = None) -> list[Counted]:
    """Return the answers that say the same as the one that counts."""
    if gate.answer is None:
        return []
    told = gate.answer.answer
    both = told.verdict == "rejected"
    return [
        vote
        for vote in (heard or gate).votes
        if vote.answer.values == told.values or (both and vote.answer.verdict == "rejected")
    ]


def may_be_automatic(desk: Desk, gate: Gate) -> Ruling:
    """Return the ruling on whether an answer counts here that nobody has confirmed."""
    book = load_book(desk)
    return ruling.may_be_automatic(book.policies, case(desk, book, gate))


def default_ruling(desk: Desk, book: Book, gate: Gate) -> Ruling:
    plain = all(not type_of(question).approves for question in gate.opened.questions)
    if not book.policies:
        return Ruling(plain, "defaults", ruling.NO_DEFAULT)
    return ruling.may_default(book.policies, case(desk, book, gate), otherwise=plain)


def refuse_unconfirmed(gate: Gate, via: str) -> None:
    """Refuse an answer that no person gave: without a policy, no rule says that such an answer counts."""
    if via in ruling.NOBODYS:
        raise NotAllowed(
            f"gate {gate.id}: nobody has confirmed its answer ({via})",
            hint=f"git gate respond {gate.id[:6]} --amend",
        )


def check_agent(book: Book, gate: Gate) -> None:
    """Refuse to start an agent again that the policy does not list."""
    session = gate.opened.session
    for policy in book.policies:
        if session is not None and policy.agents is not None and session.agent not in policy.agents:
            listed = ", ".join(policy.agents) or "none"
            why = f"{session.agent!r} is no agent that may be started again; there are {listed}"
            refuse_unless(gate, Ruling(False, "agents", why, policy.source))


def refuse_unless(gate: Gate, said: Ruling) -> None:
    if not said.allowed and said.of_gate:
        raise NotAllowed(f"gate {gate.id}: {said.why}", hint=way_to_answer(gate))
    if not said.allowed:
        where = f" ({said.source})" if said.source else ""
        raise NotAllowed(
            f"gate {gate.id}: the policy's rule {said.rule!r} does not allow it: {said.why}{where}",
            hint=f"git gate policy check {gate.id[:6]}",
        )


def check_program(desk: Desk, gate: Gate, by: str, via: str) -> None:
    """Refuse a program's answer to its own question, in nobody's name, where the policy does not allow it."""
    book = load_book_of(desk, gate)
    if book.policies:
        facts = case(desk, book, gate)
        refuse_unless(gate, ruling.rule_on(book.policies, facts, Who(by), SaidHow(desk.now, via)))


# what somebody is about to say


@dataclass(frozen=True)
class Permit:
    """Permission to write an event: whether to sign it, the last check, made once it is written and before it
    counts, and the commit of the policy that gave the permission. `rule` is the one that wants a signature, where
    one does.
    """

    sign: bool
    approve: Callable[[Gate], None] | None = None
    policy: str | None = None
    rule: str = ""

    @property
    def evidence(self) -> dict[str, object]:
        """Evidence for the answer: the commit of the policy, so that a later check can judge the answer by that policy."""
        return {POLICY: self.policy} if self.policy else {}


def permit(desk: Desk, gate: Gate, who: Who, said: SaidHow, *, sign: bool | None) -> Permit:
    """Return permission to answer or end a gate. Raise NotAllowed at once where no signature could change that; else
    the check follows once there is one.
    """
    book = load_book_of(desk, gate)
    wanted = desk.settings.flag("sign") or only_keys(book, gate) if sign is None else sign
    if not book.policies or is_of_gate(book):
        refuse_unconfirmed(gate, said.via)
    if not book.policies:
        return Permit(wanted)
    facts = case(desk, book, gate)
    rule = next((term.name for term in ruling.deciding(book.policies, facts) if term.require_signed), "")
    needed = bool(rule)
    if not (wanted or (needed and sign is None)):
        refuse_unless(gate, ruling.rule_on(book.policies, facts, who, said))
        return Permit(sign=False, approve=partial(approve_count, desk, book), policy=book.commit)

    def approve(after: Gate) -> None:
        verdict = verdict_on(desk, book, after.tip)
        good = verdict is not None and verdict.word == GOOD
        signed = replace(who, key=verdict.key, signer=verdict.signer) if verdict and good else who
        if needed and not good:
            raise unknown_key(gate, verdict, book)
        refuse_unless(gate, ruling.rule_on(book.policies, facts, signed, said))
        approve_count(desk, book, after)

    return Permit(sign=True, approve=approve, policy=book.commit, rule=rule)


def permit_change(desk: Desk, gate: Gate, by: str) -> Permit:
    """Return permission to end, withdraw or change a gate, or to comment on it in one's own name. It is for the
    person whose agent asked, and for those who may answer, as in a server's hook. Where the policy wants answers
    signed, this is signed as well.
    """
    wanted = desk.settings.flag("sign")
    book = load_book_of(desk, gate)
    facts = case(desk, book, gate)
    terms = ruling.deciding(book.policies, facts)
    rule = next((term.name for term in terms if term.require_signed), "")
    if not rule and not ruling.needs_names(terms):
        return Permit(wanted)
    who = Who(by if has_address(by) else gate.opened.asked.by)
    if not same_person(who.by, gate.opened.asked.by):
        return permit(desk, gate, who, SaidHow(desk.now), sign=None)
    return signed_as(desk, book, gate, who, rule) if rule else Permit(wanted)


def permit_words(desk: Desk, gate: Gate, by: str) -> Permit:
    """Return permission to comment. Anybody may; where identity matters and answers are signed, a person's comments
    are too.
    """
    book = load_book(desk)
    terms = ruling.deciding(book.policies, case(desk, book, gate)) if has_address(by) else ()
    rule = next((term.name for term in terms if term.require_signed), "")
    if not rule or not ruling.needs_names(book.terms):
        return Permit(desk.settings.flag("sign"))
    return signed_as(desk, book, gate, Who(by), rule)


def signed_as(desk: Desk, book: Book, gate: Gate, who: Who, rule: str) -> Permit:
    """Return permission to write an event that has to be signed by the person in whose name it is."""

    def approve(after: Gate) -> None:
        verdict = verdict_on(desk, book, after.tip)
        if verdict is None or verdict.word != GOOD:
            raise unknown_key(gate, verdict, book)
        signed = replace(who, key=verdict.key, signer=verdict.signer)
        if not ruling.is_named(book.policies, signed):
            why = f"it is signed by {verdict.signer or verdict.key}, but in the name of {who.by}"
            refuse_unless(gate, Ruling(False, rule, why))

    return Permit(sign=True, approve=approve, policy=book.commit, rule=rule)


@contextmanager
def signing(gate: Gate, leave: Permit) -> Iterator[None]:
    """Add the rule that wants a signature to the error where signing fails; nothing is written without a key."""
    try:
        yield
    except GitFailed as failed:
        if leave.sign and leave.rule:
            failed.message = (
                f"gate {gate.id}: the policy's rule {leave.rule!r} wants this signed: {failed.message}"
            )
        raise


def approve_count(desk: Desk, book: Book, after: Gate) -> None:
    """Refuse an answer that would decide the gate but that nobody could act on: the gate would then wait for nobody."""
    several = after.opened.quorum > 1 or after.opened.refusals > 1
    if several and after.state == ANSWERED and len(alike(after)) > 1:
        refuse_unless(after, enough_people(desk, book, after))


def unknown_key(gate: Gate, verdict: Verdict | None, book: Book) -> NotAllowed:
    key = f" by {verdict.key}" if verdict is not None and verdict.key else ""
    return NotAllowed(
        f"gate {gate.id}: it has to be signed by a key that is known; the signature{key} is not",
        hint=f"have your key added to {book.signers_path} on the protected branch",
    )


def mine(desk: Desk, found: Sequence[Summary]) -> list[Summary]:
    """Return those of the gates that the person at this desk may answer, provided that they sign where a rule wants
    it.
    """
    book = load_book(desk)
    if not book.policies and not any(summary.to for summary in found):
        return list(found)
    who = Who(desk.person())
    return [
        summary for summary in found if not (book.policies or summary.to) or is_mine(desk, book, summary, who)
    ]


def is_mine(desk: Desk, book: Book, summary: Summary, who: Who) -> bool:
    try:
        return explain(desk, book, desk.records.load(summary.id, summary.tip), who).allowed
    except GateError:
        return True  # it is broken, and somebody has to see it


def explain(desk: Desk, book: Book, gate: Gate, who: Who, *, via: str = "cli") -> Ruling:
    """Return the ruling on somebody who is only named, as if they signed where a rule wants a signature and they
    could.
    """
    book = held_to(book, gate)
    if is_of_gate(book):
        return ruling.rule_on(
            book.policies, case(desk, book, gate), with_key(gate, who), SaidHow(desk.now, via)
        )
    if not book.policies:
        # Whom an older question is for is said to people, and holds nobody back: `permit` asks nothing either.
        meant = f"; the question is for {', '.join(gate.to)}" if gate.to else ""
        return Ruling(True, "", f"anyone may answer{meant}")
    facts = case(desk, book, gate)
    signing = any(term.require_signed for term in ruling.deciding(book.policies, facts))
    posed = pretend(book.policies, who) if signing and not who.key else who
    return ruling.rule_on(book.policies, facts, posed, SaidHow(desk.now, via))


def with_key(gate: Gate, who: Who) -> Who:
    """Return the person with the key that a question is for, where no addressee matches them without it: its owner
    signs with it.
    """
    people = addressees(gate.to)
    key = next(iter(keys_of(people)), "")
    if who.key or not key or any(ruling.matches(person, who) for person in people):
        return who
    return replace(who, key=key, signer=who.by)


def only_keys(book: Book, gate: Gate) -> bool:
    """Return whether a question is for the owners of keys alone; an answer to it is then signed by default."""
    return is_of_gate(book) and all(person.keys for person in addressees(gate.to))


def pretend(policies: Sequence[Policy], who: Who) -> Who:
    """Return the person with one of their keys as the policy lists it, or with a placeholder: a ruling as if they
    had signed.
    """
    known = [p for policy in policies for p in policy.people if address(who.by) in p.emails and p.keys]
    key = next((key for person in known for key in sorted(person.keys)), "a key of theirs")
    return replace(who, key=key, signer=who.by)
