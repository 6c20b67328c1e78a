"""Sharing: who pushes, as their server vouches for it, and whether the policy lets them say what they push. Loaded where there is a
policy: whoever pushes waits.

An unsigned answer is only a name; here somebody stands behind it, because the server let them in. A signed one may
travel with anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..context import Desk
from ..document import dataclass, field
from ..errors import FINAL
from ..exchange import entering
from ..model import has_address, same_person, traits
from ..model.gate import Answer, Claim, Edit, Entry, Gate, Opened, Outcome, Remark
from ..policy import Book, Person, ruling
from ..policy.addressees import held_to, is_of_gate
from ..policy.permit import alike, case, default_ruling, enough_people, said_by, verdict_on, who_said
from ..policy.ruling import Ruling, RulingCase, SaidHow, Who
from ..store.git.signatures import BAD, GOOD, Verdict

# Where a server says who logged in: the first that is set counts.
LOGINS = ("GITGATE_ACTOR", "GL_USER", "GL_USERNAME", "REMOTE_USER")


@dataclass(frozen=True)
class Actor:
    """Whoever pushes: by a login, or by the key that a push certificate was signed with. `how`: who vouches for it."""

    login: str = ""
    key: str = ""
    signer: str = ""
    how: str = ""

    def named(self, by: str) -> Who:
        return Who(by, self.key, self.signer) if self.key else Who(by, login=self.login)

    @property
    def words(self) -> str:
        return f"{self.signer or self.login or 'nobody known'} ({self.how})"


def actor_of(env: Mapping[str, str], account: str) -> Actor:
    """Who a receiving hook runs for. A certificate that is good by nobody is none."""
    signer = env.get("GIT_PUSH_CERT_SIGNER", "").strip()
    good = env.get("GIT_PUSH_CERT_STATUS") == "G" and env.get("GIT_PUSH_CERT_NONCE_STATUS") in ("OK", "SLOP")
    if good and signer and env.get("GIT_PUSH_CERT_KEY"):
        return Actor(key=env["GIT_PUSH_CERT_KEY"], signer=signer, how="push certificate")
    for name in LOGINS:
        if env.get(name, "").strip():
            return Actor(env[name].strip(), how=name)
    return Actor(account, how="account")


@dataclass(frozen=True)
class Doorkeeper:
    """Judges what is new in each gate of a push."""

    desk: Desk
    book: Book
    actor: Actor
    cases: dict[str, RulingCase] = field(default_factory=dict)

    def case(self, gate: Gate) -> RulingCase:
        """Looked up once for each gate, however many events it brings."""
        if gate.tip not in self.cases:
            self.cases[gate.tip] = case(self.desk, self.book, gate)
        return self.cases[gate.tip]

    def against(self, gate: Gate, old: str | None) -> str:
        """What speaks against the events after `old`; empty when nothing does."""
        why = entering.against_events(self.desk, gate, old)
        for entry in () if why else entering.fresh(gate, old):
            said = self.against_event(gate, entry)
            if said:
                return entering.at(entry, said + (f" ({FINAL})" if self.is_final(gate, entry) else ""))
        return why or self.against_strangers(gate, old)

    def against_strangers(self, gate: Gate, old: str | None) -> str:
        """Say what others than those whom it is for have said or changed; empty where a policy says who may, or nobody did."""
        for entry in entering.fresh(gate, old) if is_of_gate(held_to(self.book, gate)) else ():
            if said := self.against_stranger(gate, entry):
                return entering.at(entry, said)
        return self.against_count(gate, old)

    def against_stranger(self, gate: Gate, entry: Entry) -> str:
        """Where no policy says who may answer: what somebody says or changes whom the question is not for.

        An address is that of the name or of a good signature: nothing says here whose login is whose. A login that an
        answer brings counts where whoever pushes has logged in with it.
        """
        event, by = entry.event, getattr(entry.event, "by", "")
        requester = gate.opened.asked.by
        if isinstance(event, Answer):
            verdict = self.verdict(entry) if by else None
            if verdict is not None and verdict.word == BAD:
                return "its signature is bad"
            who, said = self.logged_in(who_said(event, verdict)), said_by(event)
            free = not by  # a default, which nobody says
        else:
            who, said = Who(by if has_address(by) else requester), SaidHow(self.desk.now)
            free = not changes_gate(entry) or same_person(who.by, requester)
        if free:
            return ""
        book = held_to(self.book, gate)
        facts = case(self.desk, book, gate)
        return ruling_words(ruling.rule_on_recorded(book.policies, facts, who, said))

    def logged_in(self, who: Who) -> Who:
        """Somebody without the login that their words bring, unless they push them."""
        same = who.login.casefold() == self.actor.login.casefold()
        return who if same or not who.login else Who(who.by, who.key, who.signer)

    def is_final(self, gate: Gate, entry: Entry) -> bool:
        """Whether what is refused is so for want of a signature: that nobody can add to it."""
        if not isinstance(entry.event, Answer | Edit | Remark) or not entry.event.by:
            return False
        verdict = self.verdict(entry)
        if verdict is not None:
            return verdict.word == BAD
        return any(term.require_signed for term in ruling.deciding(self.book.policies, self.case(gate)))

    def against_count(self, gate: Gate, old: str | None) -> str:
        """An answer that decides has to be acted on by somebody: as many people as it takes stand behind it."""
        decided = any(entry.name in ("answered", "amended") for entry in entering.fresh(gate, old))
        book = held_to(self.book, gate)
        if not decided or not book.policies or gate.answer is None or not gate.answer.answer.by:
            return ""
        return ruling_words(enough_people(self.desk, book, gate)) if len(alike(gate)) > 1 else ""

    def against_event(self, gate: Gate, entry: Entry) -> str:
        """By the policy, as it is here now."""
        event = entry.event
        if isinstance(event, Answer):
            return self.against_answer(gate, entry, event)
        if isinstance(event, Opened):
            return self.against_question(gate, event)
        if isinstance(event, Claim | Outcome):
            return self.against_runner()
        kind = traits(entry.name)
        if kind.silent:
            return ""
        if isinstance(event, Remark) and kind.said and kind.harmless:
            return self.against_name(entry, event.by)
        return self.against_change(gate, entry, getattr(event, "by", ""))

    def against_answer(self, gate: Gate, entry: Entry, answer: Answer) -> str:
        if not answer.by:
            return ruling_words(default_ruling(self.desk, self.book, gate))
        who, why = self.speaker(gate, entry, answer.by)
        if why:
            return why
        facts = self.case(gate)
        return ruling_words(ruling.rule_on_recorded(self.book.policies, facts, who, said_by(answer)))

    def speaker(self, gate: Gate, entry: Entry, by: str) -> tuple[Who, str]:
        """Who stands behind a name: a good signature of theirs, or whoever pushes; else the reason why nobody does."""
        verdict = self.verdict(entry)
        if verdict is not None and verdict.word == BAD:
            return Who(by), "its signature is bad"
        if verdict is not None and verdict.word == GOOD:
            return Who(by, verdict.key, verdict.signer), ""
        terms = ruling.deciding(self.book.policies, self.case(gate))
        if any(term.require_signed for term in terms):
            return Who(by), ""  # the ruling says that it has to be signed, and by which rule
        who = self.actor.named(by)
        if ruling.needs_names(terms) and not ruling.is_named(self.book.policies, who):
            return who, self.not_theirs(by)
        return who if ruling.needs_names(terms) else Who(by), ""

    def verdict(self, entry: Entry) -> Verdict | None:
        said = entry.parents[1] if len(entry.parents) > 1 else entry.commit
        return verdict_on(self.desk, self.book, said)

    def not_theirs(self, by: str) -> str:
        return (
            f"it is in the name of {by}, and {self.actor.words} pushes it: sign it, or let them push it, or have the policy "
            "say under `people` whose login that is"
        )

    def against_name(self, entry: Entry, by: str) -> str:
        """Words in somebody's name are theirs; an agent's have no address."""
        if not has_address(by) or not ruling.needs_names(self.book.terms) or self.is_theirs(by):
            return ""
        verdict = self.verdict(entry)
        if verdict is None or verdict.word != GOOD:
            return self.not_theirs(by)
        who = Who(by, verdict.key, verdict.signer)
        named = ruling.is_named(self.book.policies, who)
        return "" if named else f"it is signed by {ruling.who_words(who)}, but in the name of {by}"

    def against_question(self, gate: Gate, opened: Opened) -> str:
        """It asks for as many as the policy wants, and is in the name of whoever pushes it where that decides something."""
        facts = self.case(gate)
        terms = ruling.deciding(self.book.policies, facts)
        for term in terms:
            why = ruling.against_terms(term, facts, SaidHow(opened.asked.at))
            if why:
                return ruling_words(Ruling(False, term.name, why, term.source))
        why = self.unless_among([policy.askers for policy in self.book.policies], "one who may ask")
        if why or all(term.requester_may_answer for term in terms):
            return why
        who = self.actor.named(opened.asked.by)
        return (
            "" if ruling.is_named(self.book.policies, who) else self.not_theirs(opened.asked.by or "nobody")
        )

    def against_change(self, gate: Gate, entry: Entry, by: str) -> str:
        """To end, take back or change a gate is for whose agent asked, and for who may answer."""
        facts = self.case(gate)
        terms = ruling.deciding(self.book.policies, facts)
        if not ruling.needs_names(terms) and not any(term.require_signed for term in terms):
            return ""
        requester = gate.opened.asked.by
        if entry.name == "stopped" and not has_address(by):
            return f"it is by {by!r}, without an address, and so by nobody"
        name = by if has_address(by) else requester
        asker = same_person(name, requester)
        if asker and self.is_theirs(requester):
            return ""
        who, why = self.speaker(gate, entry, name)
        if asker and not why and who.key and ruling.is_named(self.book.policies, who):
            return ""
        return why or ruling_words(ruling.rule_on(self.book.policies, facts, who, SaidHow(self.desk.now)))

    def against_runner(self) -> str:
        """Claims, their leases and what came of them: from whom the policy lets act."""
        return self.unless_among([policy.runners for policy in self.book.policies], "a runner")

    def is_theirs(self, by: str) -> bool:
        """Whether whoever pushes is the one with this name."""
        return ruling.is_named(self.book.policies, self.actor.named(by))

    def unless_among(self, lists: Sequence[Sequence[Person] | None], what: str) -> str:
        """Whoever pushes has to be on every list that there is."""
        who = self.actor.named(self.actor.signer)
        if all(listed is None or ruling.among(self.book.policies, listed, who) for listed in lists):
            return ""
        return f"{self.actor.words} is not {what}, by the policy"


def changes_gate(entry: Entry) -> bool:
    """Whether an event answers, ends or changes a gate in somebody's name; a question, a comment and what runners write do not."""
    kind = traits(entry.name)
    if isinstance(entry.event, Opened | Claim | Outcome) or kind.silent:
        return False
    return not (isinstance(entry.event, Remark) and kind.said and kind.harmless)


def ruling_words(said: Ruling) -> str:
    """Why it is not allowed, with the rule; empty when it is."""
    if said.of_gate:
        return "" if said.allowed else said.why
    where = f" ({said.source})" if said.source else ""
    return "" if said.allowed else f"the policy's rule {said.rule!r} does not allow it: {said.why}{where}"
