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
    """Who stands behind an answer: a good signature's owner, a forge's login that came with it, or only a name."""
    if verdict is not None and verdict.word == GOOD:
        return Who(answer.by, verdict.key, verdict.signer)
    login = answer.evidence.get("login")
    return Who(answer.by, login=login if isinstance(login, str) else "")


def said_by(answer: Answer) -> SaidHow:
    """How and when an answer was said, which on a forge is when it was written there: whoever records it may hear it late."""
    return SaidHow(written_at(answer.evidence) or answer.at, answer.via)


def written_at(evidence: Mapping[str, object]) -> str:
    """When a forge says that it was written; empty where it came from none."""
    at = evidence.get("at")
    try:
        return at if isinstance(at, str) and text.parse_time(at) else ""
    except Usage:
        return ""


def load_book_of(desk: Desk, gate: Gate) -> Book:
    """Load what decides who may answer this gate: the policy, else whom it is for."""
    return held_to(load_book(desk), gate)


def verdict_on(desk: Desk, book: Book, commit: str) -> Verdict | None:
    """What the signature on a commit is worth; None where it carries none."""
    if not desk.records.commit(commit).signed:
        return None
    return verify(desk.repo.git, [commit], signers_of(desk, book))[commit]


# what a gate is, and what is asked of it


def case(desk: Desk, book: Book, gate: Gate) -> RulingCase:
    """What the rules look at; git is asked for paths only where a rule is about paths."""
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
    """A question with as many who have to agree, or to refuse, as the policy wants; it may itself want more."""
    book = load_book(desk)
    if not book.policies:
        return opened
    facts = ruling.case_of_question("", opened, opened.priority, opened.to, paths_of(desk, book, opened.work))
    agree, refuse = ruling.needed(book.policies, facts)
    return replace(opened, quorum=max(opened.quorum, agree), refusals=refuse)


def approvals_may_default(desk: Desk) -> bool:
    """Whether some rule allows it; which one holds is seen when the deadline has passed."""
    return any(term.defaults for term in load_book(desk).terms)


def on_answer(desk: Desk, book: Book, gate: Gate, counted: Counted) -> Ruling:
    """Whether one recorded answer is one that the policy accepts."""
    verdict = verdict_on(desk, book, counted.signed_commit)
    if verdict is not None and verdict.word == BAD:
        return Ruling(False, "signature", "its signature is bad")
    who, said = who_said(counted.answer, verdict), said_by(counted.answer)
    return ruling.rule_on_recorded(book.policies, case(desk, book, gate), who, said)


def check_heard(desk: Desk, gate: Gate, *, given_here: str = "") -> None:
    """The same for who only reads the answer; what was acted on already is history, whatever the policy is now."""
    if gate.state == ANSWERED:
        check_told(desk, gate, given_here=given_here)


def check_told(desk: Desk, gate: Gate, *, given_here: str = "") -> None:
    """Whether what a gate's asker would be told is something that the policy accepts: else nobody acts on it.

    `given_here`: how the asker's own program answers its questions. Where nobody made rules that counts for this program alone.
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
    """Whether as many people as the policy wants said what the gate's answer says. Its words are told to the agent, so that it
    has to be one of those that the policy accepts.
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
    """Who stands behind the gate's answer, and why the first of the others who say the same does not.

    Somebody who said one thing under one address and another under another is behind the last of it alone.
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
    """The gate as it is where rules want answers signed: what no signature of its author's vouches for is not their word, so
    that it takes the place of none, and makes none late.
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
    """Whether an answer is signed by the one in whose name it is."""
    if verdict is None or verdict.word != GOOD or not isinstance(entry.event, Answer):
        return False
    return ruling.is_named(book.policies, Who(entry.event.by, verdict.key, verdict.signer))


def answers_alone(entry: Entry, forged: frozenset[str]) -> Entry:
    """An event as it counts for who said what: nothing but answers does, and of them none that is forged."""
    event = entry.event
    if isinstance(event, Opened):
        return entry
    if not isinstance(event, Answer) or entry.commit in forged:
        return replace(entry, repeats=entry.repeats or entry.commit)
    return replace(entry, event=replace(event, amends=None)) if event.amends in forged else entry


def forged_votes(gate: Gate, heard: Gate) -> list[Counted]:
    """What counts in the record alone: for the reason why it does not here."""
    known = {vote.commit for vote in heard.votes}
    return [vote for vote in gate.votes if vote.commit not in known]


def alike(gate: Gate, heard: Gate | None = None) -> list[Counted]:
    """The answers that say the same as the one that counts."""
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
    """Whether an answer counts here that nobody has confirmed."""
    book = load_book(desk)
    return ruling.may_be_automatic(book.policies, case(desk, book, gate))


def default_ruling(desk: Desk, book: Book, gate: Gate) -> Ruling:
    plain = all(not type_of(question).approves for question in gate.opened.questions)
    if not book.policies:
        return Ruling(plain, "defaults", ruling.NO_DEFAULT)
    return ruling.may_default(book.policies, case(desk, book, gate), otherwise=plain)


def refuse_unconfirmed(gate: Gate, via: str) -> None:
    """Where nobody made rules, nobody said that an answer counts which no person gave."""
    if via in ruling.NOBODYS:
        raise NotAllowed(
            f"gate {gate.id}: nobody has confirmed its answer ({via})",
            hint=f"git gate respond {gate.id[:6]} --amend",
        )


def check_agent(book: Book, gate: Gate) -> None:
    """Only agents that the policy knows are started again."""
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
    """Whether a program may answer its own question here, in nobody's name."""
    book = load_book_of(desk, gate)
    if book.policies:
        facts = case(desk, book, gate)
        refuse_unless(gate, ruling.rule_on(book.policies, facts, Who(by), SaidHow(desk.now, via)))


# what somebody is about to say


@dataclass(frozen=True)
class Permit:
    """Leave to say something: whether to sign it, the last check, once it is written and before it counts, and by which
    commit's policy it was given. `rule`: the one that wants it signed, where one does.
    """

    sign: bool
    approve: Callable[[Gate], None] | None = None
    policy: str | None = None
    rule: str = ""

    @property
    def evidence(self) -> dict[str, object]:
        """What the answer says of it, so that it can be judged by the same policy when that is no longer the latest."""
        return {POLICY: self.policy} if self.policy else {}


def permit(desk: Desk, gate: Gate, who: Who, said: SaidHow, *, sign: bool | None) -> Permit:
    """Leave to answer or end a gate. NotAllowed at once where no signature could change it; else once there is one."""
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
    """Leave to end, take back or change a gate, or to say something about it in one's name: for whose agent asked, and for
    who may answer, as a server's hook has it. Where the policy wants answers signed, this is signed as well.
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
    """Leave to comment. Anybody may; where it matters who somebody is, and answers are signed, a person's words are too."""
    book = load_book(desk)
    terms = ruling.deciding(book.policies, case(desk, book, gate)) if has_address(by) else ()
    rule = next((term.name for term in terms if term.require_signed), "")
    if not rule or not ruling.needs_names(book.terms):
        return Permit(desk.settings.flag("sign"))
    return signed_as(desk, book, gate, Who(by), rule)


def signed_as(desk: Desk, book: Book, gate: Gate, who: Who, rule: str) -> Permit:
    """Leave to say something that has to be signed, by the one in whose name it is."""

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
    """Without a key nothing is written; the error says which rule wants one."""
    try:
        yield
    except GitFailed as failed:
        if leave.sign and leave.rule:
            failed.message = (
                f"gate {gate.id}: the policy's rule {leave.rule!r} wants this signed: {failed.message}"
            )
        raise


def approve_count(desk: Desk, book: Book, after: Gate) -> None:
    """An answer that would decide, and that nobody could act on, is not taken: the gate would wait for nobody any more."""
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
    """Of these, what the person at this desk may answer, if they sign where that is asked."""
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
    """The ruling on somebody who is only named: as if they signed, where that is needed and could be theirs."""
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
    """The same person with the key that a question is for: whoever has it signs."""
    people = addressees(gate.to)
    key = next(iter(keys_of(people)), "")
    if who.key or not key or any(ruling.matches(person, who) for person in people):
        return who
    return replace(who, key=key, signer=who.by)


def only_keys(book: Book, gate: Gate) -> bool:
    """Whether a question is for the owners of keys alone, so that an answer to it is signed by itself."""
    return is_of_gate(book) and all(person.keys for person in addressees(gate.to))


def pretend(policies: Sequence[Policy], who: Who) -> Who:
    """The same person with a key of theirs, as the policy knows it."""
    known = [p for policy in policies for p in policy.people if address(who.by) in p.emails and p.keys]
    key = next((key for person in known for key in sorted(person.keys)), "a key of theirs")
    return replace(who, key=key, signer=who.by)
