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
    """Person or account that pushes, known by a login, or by the key that signed the push certificate.

    `how`: who vouches for the login or the key.
    """

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
    """Return the actor that a receiving hook runs for.

    A push certificate counts only where its signature is good and names a signer and a key.
    """
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
    """Judge of the new events in each gate of a push, by the policy."""

    desk: Desk
    book: Book
    actor: Actor
    cases: dict[str, RulingCase] = field(default_factory=dict)

    def case(self, gate: Gate) -> RulingCase:
        """Return the facts of a gate that rulings need, computed once however many events the gate brings."""
        if gate.tip not in self.cases:
            self.cases[gate.tip] = case(self.desk, self.book, gate)
        return self.cases[gate.tip]

    def against(self, gate: Gate, old: str | None) -> str:
        """Return why the events after `old` are refused; empty when they are accepted."""
        why = entering.against_events(self.desk, gate, old)
        for entry in () if why else entering.fresh(gate, old):
            said = self.against_event(gate, entry)
            if said:
                return entering.at(entry, said + (f" ({FINAL})" if self.is_final(gate, entry) else ""))
        return why or self.against_strangers(gate, old)

    def against_strangers(self, gate: Gate, old: str | None) -> str:
        """Return why words or changes are refused that come from others than those whom the question is for.

        Empty where a policy says who may answer, or where there is nothing of the kind.
        """
        for entry in entering.fresh(gate, old) if is_of_gate(held_to(self.book, gate)) else ():
            if said := self.against_stranger(gate, entry):
                return entering.at(entry, said)
        return self.against_count(gate, old)

    def against_stranger(self, gate: Gate, entry: Entry) -> str:
        """Return why an event is refused because the question is not for its author. Used where no policy says
        who may answer.

        An address counts by the event's name or by a good signature: nothing says here whose login is whose. A
        login that an answer brings counts only where whoever pushes has logged in with it.
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
        """Return a person without the login that their words bring, unless whoever pushes has that login."""
        same = who.login.casefold() == self.actor.login.casefold()
        return who if same or not who.login else Who(who.by, who.key, who.signer)

    def is_final(self, gate: Gate, entry: Entry) -> bool:
        """Return whether an event is refused because its signature is bad or missing. Nobody can add one to it
        later.
        """
        if not isinstance(entry.event, Answer | Edit | Remark) or not entry.event.by:
            return False
        verdict = self.verdict(entry)
        if verdict is not None:
            return verdict.word == BAD
        return any(term.require_signed for term in ruling.deciding(self.book.policies, self.case(gate)))

    def against_count(self, gate: Gate, old: str | None) -> str:
        """Return why too few people stand behind the answer that decides; empty when there are enough.

        A runner acts on such an answer, so that as many people as the gate requires must stand behind it.
        """
        decided = any(entry.name in ("answered", "amended") for entry in entering.fresh(gate, old))
        book = held_to(self.book, gate)
        if not decided or not book.policies or gate.answer is None or not gate.answer.answer.by:
            return ""
        return ruling_words(enough_people(self.desk, book, gate)) if len(alike(gate)) > 1 else ""

    def against_event(self, gate: Gate, entry: Entry) -> str:
        """Return why the policy, as it is here now, refuses an event; empty when it allows it."""
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
        """Return who vouches for a name, with an empty text; else the name alone, with the reason why nobody
        does.

        A good signature vouches for a name, else whoever pushes.
        """
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
        """Return why words are refused that are in the name of somebody else. An agent's name has no address,
        and is not checked.
        """
        if not has_address(by) or not ruling.needs_names(self.book.terms) or self.is_theirs(by):
            return ""
        verdict = self.verdict(entry)
        if verdict is None or verdict.word != GOOD:
            return self.not_theirs(by)
        who = Who(by, verdict.key, verdict.signer)
        named = ruling.is_named(self.book.policies, who)
        return "" if named else f"it is signed by {ruling.who_words(who)}, but in the name of {by}"

    def against_question(self, gate: Gate, opened: Opened) -> str:
        """Return why the policy refuses a question; empty when it allows it.

        The question must ask for as many answers as the policy wants. It must be in the name of whoever pushes
        it where that name decides something.
        """
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
        """Return why the policy refuses to end, withdraw or change a gate.

        That is for the person whose agent asked, and for those who may answer.
        """
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
        """Return why the policy does not let whoever pushes act as a runner: write claims, their leases and
        outcomes.
        """
        return self.unless_among([policy.runners for policy in self.book.policies], "a runner")

    def is_theirs(self, by: str) -> bool:
        """Return whether the name is that of whoever pushes."""
        return ruling.is_named(self.book.policies, self.actor.named(by))

    def unless_among(self, lists: Sequence[Sequence[Person] | None], what: str) -> str:
        """Return why whoever pushes is refused; empty when they are on every list that there is. `what`: a word
        for who is listed.
        """
        who = self.actor.named(self.actor.signer)
        if all(listed is None or ruling.among(self.book.policies, listed, who) for listed in lists):
            return ""
        return f"{self.actor.words} is not {what}, by the policy"


def changes_gate(entry: Entry) -> bool:
    """Return whether an event answers, ends or changes a gate in somebody's name.

    A question, a comment and the events of runners do not.
    """
    kind = traits(entry.name)
    if isinstance(entry.event, Opened | Claim | Outcome) or kind.silent:
        return False
    return not (isinstance(entry.event, Remark) and kind.said and kind.harmless)


def ruling_words(said: Ruling) -> str:
    """Return why a ruling does not allow something, with its rule; empty when it does."""
    if said.of_gate:
        return "" if said.allowed else said.why
    where = f" ({said.source})" if said.source else ""
    return "" if said.allowed else f"the policy's rule {said.rule!r} does not allow it: {said.why}{where}"
