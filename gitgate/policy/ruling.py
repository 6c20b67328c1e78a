"""Policy: what the policy says of one gate and one person, and which rule says it; and how an answer's signature is marked.

For each path that the work touches, the first rule that fits decides (without any, the first one without paths); all the
rules that decide have to agree. So whoever touches more can only be held to more. A rule about what an agent says of its own
confidence holds beside those: it is the agent's word, and may not choose a milder rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import model, text
from ..context import Desk
from ..document import dataclass
from ..errors import GateError
from ..model import INVALID, UNVERIFIED, VERIFIED, SignatureMark, address
from ..model.gate import PROGRAMS, Answer, Entry, Gate, Opened
from ..questions.types import type_of
from ..store.git.signatures import BAD, GOOD, Verdict, load_verdicts
from . import Book, Person, Policy, PolicyRule, RuleTerms, load_book, person_of, signers_of

SCRIPTS = frozenset(("signal", "python"))
# An agent proposed it, or a program said it: nobody has confirmed it.
TO = "to"  # rule of a question without a policy; no file says it, so that it has no source
NOBODYS = frozenset(("join --yes", *PROGRAMS))


@dataclass(frozen=True)
class RulingCase:
    """Facts of a gate that rules examine. `paths` is None when it is unknown which paths the work touches: any may
    be touched. `asked_as`: the priority that the gate was asked with, where it was changed since. `logins`: who
    started the job that asked.
    """

    id: str
    types: tuple[str, ...]
    priority: str
    agent: str
    requester: str
    asked_at: str
    to: tuple[str, ...] = ()
    quorum: int = 1
    refusals: int = 1
    paths: tuple[str, ...] | None = ()
    asked_as: str = ""
    confidence: float | None = None
    logins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Who:
    """Person as they name themselves, as a good signature shows, or as a server vouches that they logged in."""

    by: str
    key: str = ""
    signer: str = ""
    login: str = ""


@dataclass(frozen=True)
class SaidHow:
    """Manner and time of an answer or another act."""

    at: str
    via: str = "cli"


@dataclass(frozen=True)
class Ruling:
    """Ruling of the policy: whether something is allowed, the rule that decides, and the reason in words for people."""

    allowed: bool
    rule: str
    why: str
    source: str = ""
    of_gate: bool = False  # no policy's: the question itself says whom it is for


def case_of(gate: Gate, paths: tuple[str, ...] | None) -> RulingCase:
    return case_of_question(gate.id, gate.opened, gate.priority, gate.to, paths)


def case_of_question(
    gate: str, opened: Opened, priority: str, to: tuple[str, ...], paths: tuple[str, ...] | None
) -> RulingCase:
    return RulingCase(
        id=gate,
        types=types_of(opened),
        priority=priority,
        agent=opened.asked.agent,
        requester=opened.asked.by,
        asked_at=opened.asked.at,
        to=to,
        quorum=opened.quorum,
        refusals=opened.refusals,
        paths=paths,
        asked_as=opened.priority,
        confidence=opened.confidence,
        logins=opened.asked.logins,
    )


def types_of(opened: Opened) -> tuple[str, ...]:
    """Return the types of a gate's questions. A conversation that ends in an approval counts as an approval too, so
    that no rule for approvals can be avoided by a conversation.
    """
    approving = ("approval",) if any(type_of(question).approves for question in opened.questions) else ()
    return tuple(dict.fromkeys((*(question.type for question in opened.questions), *approving)))


def deciding(policies: Sequence[Policy], case: RulingCase) -> tuple[RuleTerms, ...]:
    """Return the terms that hold for this gate, each once, in the order of the policies. A changed priority only
    adds rules.
    """
    found: dict[RuleTerms, None] = {}
    for policy in policies:
        for priority in dict.fromkeys((case.asked_as or case.priority, case.priority)):
            about = [rule for rule in policy.rules if fits(rule, case, priority)]
            fitting = [rule for rule in about if rule.confidence_below is None]
            unsure = [rule for rule in about if is_unsure(rule, case)]
            found.update((rule.terms, None) for rule in unsure if touches(rule, case))
            for path in case.paths or (None,):
                found[first(policy, fitting, path)] = None
            if case.paths is None:
                # What is touched is not known, so that it may be anything.
                found.update((rule.terms, None) for rule in fitting if rule.paths)
    return tuple(found)


def is_unsure(rule: PolicyRule, case: RulingCase) -> bool:
    """Return whether the agent's confidence is below the rule's limit; an agent that states none counts as below."""
    return rule.confidence_below is not None and (
        case.confidence is None or case.confidence < rule.confidence_below
    )


def touches(rule: PolicyRule, case: RulingCase) -> bool:
    """Return whether the work touches one of the rule's paths. A rule without paths fits any work, and unknown paths
    count as touched.
    """
    return not rule.paths or case.paths is None or has_one_of(rule, case.paths)


def has_one_of(rule: PolicyRule, paths: Iterable[str]) -> bool:
    from ..text.patterns import fits_path  # most policies name no path, and no agent

    return any(fits_path(pattern, path) for pattern in rule.paths for path in paths)


def names_agent(rule: PolicyRule, agent: str) -> bool:
    from ..text.patterns import of_text

    return any(of_text(word).fullmatch(agent) for word in rule.agents)


def first(policy: Policy, fitting: Sequence[PolicyRule], path: str | None) -> RuleTerms:
    for rule in fitting:
        if rule.paths and path is None:
            continue
        if not rule.paths or has_one_of(rule, [path or ""]):
            return rule.terms
    return policy.default


def fits(rule: PolicyRule, case: RulingCase, priority: str) -> bool:
    """Return whether a rule is about gates of this kind, apart from paths."""
    return (
        (not rule.types or any(kind in rule.types for kind in case.types))
        and (not rule.priorities or priority in rule.priorities)
        and (not rule.agents or names_agent(rule, case.agent))
    )


def needed(policies: Sequence[Policy], case: RulingCase) -> tuple[int, int]:
    """Return how many have to agree, and how many refusals it takes: the strictest of all deciding terms."""
    terms = deciding(policies, case)
    counted = [term.refusals for term in terms if term.refusals is not None]
    return max((term.quorum for term in terms), default=1), min(counted, default=1)


def rule_on(policies: Sequence[Policy], case: RulingCase, who: Who, said: SaidHow) -> Ruling:
    """Return the ruling on whether this person may answer or end this gate in this way; the first objection is the
    reason.
    """
    terms = deciding(policies, case)
    for term in terms:
        why = against_rule(policies, term, case, who, said)
        if why:
            return Ruling(False, term.name, why, term.source, of_gate=is_of_question(term))
    if said.via in NOBODYS:
        leave = may_be_automatic(policies, case)
        if not leave.allowed:
            return leave
    by_policy = not any(map(is_of_question, terms))
    if by_policy and case.to and not any(is_meant(policies, word, who) for word in case.to):
        return Ruling(False, "to", f"the question is for {', '.join(case.to)}")
    names = ", ".join(term.name for term in terms)
    last = terms[-1] if terms else RuleTerms()
    return Ruling(True, names, allowed_words(last, who), last.source)


def is_of_question(term: RuleTerms) -> bool:
    """Return whether these terms come from the question itself, which names its addressees, and not from a policy."""
    return term.name == TO and not term.source


def against_rule(
    policies: Sequence[Policy], term: RuleTerms, case: RulingCase, who: Who, said: SaidHow
) -> str:
    """Return the first objection under one rule; empty when there is none."""
    if term.closed:
        return term.closed
    if term.require_signed and not who.key:
        return "the answer has to be signed, by a key that the policy or its allowed signers name"
    if who.key and not is_named(policies, who):
        return f"it is signed by {who.signer or who.key}, but in the name of {who.by or 'nobody'}"
    requesting = "" if term.requester_may_answer else against_requester(policies, who, case)
    if requesting:
        return requesting
    if term.automatic is False and said.via in SCRIPTS | NOBODYS:
        return f"a script's answer ({said.via}) is not taken"
    if term.who is not None and not among(policies, term.who, who):
        listed = ", ".join(person.name for person in term.who[:8])
        return f"it is for {listed} to answer; {who_words(who)} is not among them"
    return against_terms(term, case, said)


def against_terms(term: RuleTerms, case: RulingCase, said: SaidHow) -> str:
    """Return the first objection to the question's own counts or to its age; empty when it fits the rule."""
    if case.quorum < term.quorum:
        return f"{term.quorum} have to agree, and the question wants {case.quorum}: it has to be asked again"
    if term.refusals is not None and case.refusals > term.refusals:
        return (
            f"{term.refusals} may refuse it, and the question wants {case.refusals}: it has to be asked again"
        )
    if term.within is not None and seconds_between(case.asked_at, said.at) > term.within:
        return f"its time is over: {text.format_duration(term.within)} after it was asked"
    return ""


def seconds_between(start: str, end: str) -> float:
    return text.parse_time(end) - text.parse_time(start)


def rule_on_recorded(policies: Sequence[Policy], case: RulingCase, who: Who, said: SaidHow) -> Ruling:
    """Return the ruling on a recorded answer. Under a policy, a name without an address is nobody's, unless it is
    the login recorded with the answer.
    """
    logged_in = bool(who.login) and who.by.casefold() == who.login.casefold()
    if policies and not model.has_address(who.by) and not logged_in:
        return Ruling(False, "by", f"it is by {who.by!r}, without an address, and so by nobody")
    return rule_on(policies, case, who, said)


def needs_names(terms: Sequence[RuleTerms]) -> bool:
    """Return whether the terms depend on who somebody is."""
    return any(
        term.who is not None or term.quorum > 1 or (term.refusals or 1) > 1 or not term.requester_may_answer
        for term in terms
    )


def who_words(who: Who) -> str:
    if who.key:
        return f"{who.signer or who.key} (signed)"
    return f"{who.by}, logged in as {who.login}" if who.login else f"{who.by or 'nobody'} (unverified)"


def allowed_words(term: RuleTerms, who: Who) -> str:
    if term.who is None:
        return "anyone may answer"
    return f"{', '.join(person.name for person in term.who[:8])} may answer; {who_words(who)} is among them"


def matches(person: Person, who: Who) -> bool:
    """Return whether `who` is this person. A signature outranks a login, and a login outranks a name that is only
    given.
    """
    if who.key:
        listed = who.key in person.keys
        return listed or (not person.keys and model.address(who.signer) in person.emails)
    if who.login:
        return who.login.casefold() in person.logins or (
            not person.logins and who.login.casefold() in person.emails
        )
    return model.address(who.by) in person.emails


def among(policies: Sequence[Policy], listed: Sequence[Person], who: Who) -> bool:
    """Return whether `who` is one of the people listed, under any of the names that the policy knows them by."""
    if any(matches(person, who) for person in listed):
        return True
    known = known_as(policies, who)
    return any(
        person.emails & other.emails or person.logins & other.logins for person in listed for other in known
    )


def known_as(policies: Sequence[Policy], who: Who) -> list[Person]:
    """Return all people of the policies that `who` matches."""
    return [person for policy in policies for person in policy.people if matches(person, who)]


def is_named(policies: Sequence[Policy], who: Who) -> bool:
    """Return whether a signature, a login or the policy connects somebody with the name that an answer bears."""
    address = model.address(who.by)
    if who.key and address == model.address(who.signer):
        return True
    if who.login and address == who.login.casefold():
        return True
    return any(address in person.emails for person in known_as(policies, who))


@dataclass(frozen=True)
class KnownNames:
    """Names of somebody: addresses, and logins of a forge."""

    addresses: frozenset[str]
    logins: frozenset[str]

    def shares(self, other: KnownNames) -> bool:
        return bool(self.addresses & other.addresses or self.logins & other.logins)

    def told_apart(self, other: KnownNames) -> bool:
        """Return whether both are known by names of one kind, so that different names mean different people."""
        return bool((self.addresses and other.addresses) or (self.logins and other.logins))


def against_requester(policies: Sequence[Policy], who: Who, case: RulingCase) -> str:
    """Return why somebody is, or could be, the person whose agent asked; empty when they are another.

    A job knows that person by a login, a clone by an address. Where the policy does not connect the two, an
    address and a login may belong to one person, as they may where people are counted.
    """
    logins = (who.login,) if who.login else ()
    said = known_names(policies, (who.by, who.signer), logins, known_as(policies, who))
    asking = known_names(policies, (case.requester,), case.logins)
    if said.shares(asking):
        return "whose agent asked may not answer"
    if not (asking.addresses or asking.logins) or said.told_apart(asking):
        return ""
    asker = ", ".join(f"@{login}" for login in case.logins) or model.address(case.requester)
    speaker = f"@{who.login}" if who.login else model.address(who.signer or who.by) or "nobody"
    return (
        f"whose agent asked may not answer, and nothing says that {speaker} is not {asker}: "
        "list both, with address and login, under `people`"
    )


def known_names(
    policies: Sequence[Policy], by: Sequence[str], logins: Sequence[str], known: Sequence[Person] = ()
) -> KnownNames:
    """Return all addresses and logins of somebody: those given, and those that the policy lists for them. A forge's
    own addresses count as logins. Accounts of programs are nobody's, and are left out.
    """
    addresses = {model.address(one) for one in by if one}
    told = set() if logins else {model.login_of(one) for one in by}
    found = {login.casefold() for login in (*logins, *told) if login}
    listed = [
        person
        for policy in policies
        for person in policy.people
        if person in known or person.emails & addresses or person.logins & found
    ]
    addresses = {one for one in addresses if not model.login_of(one)}.union(*(p.emails for p in listed))
    found = {login for login in found if not login.endswith(model.ROBOT)}.union(*(p.logins for p in listed))
    return KnownNames(frozenset(addresses), frozenset(found))


def is_meant(policies: Sequence[Policy], word: str, who: Who) -> bool:
    """Return whether the addressee `word` means this person: by name, address, `@login`, or a group of the policy."""
    if who.key and (named := person_of(word)) is not None and who.key in named.keys:
        return True
    plain = word.strip().lstrip("@").casefold()
    address = model.address(who.by)
    known = {address, address.partition("@")[0], who.login.casefold()}
    if not who.key and not who.login:
        known.add(who.by.partition(" <")[0].casefold())
    if plain and plain in known:
        return True
    for policy in policies:
        members = (policy.groups or {}).get(word.strip(), ())
        called = [person for person in policy.people if person.name == word.strip()]
        if any(matches(person, who) for person in (*members, *called)):
            return True
    return False


def may_be_automatic(policies: Sequence[Policy], case: RulingCase) -> Ruling:
    """Return the ruling on an answer that nobody has confirmed: it counts where all deciding rules say so
    explicitly.

    The repository's rules are asked, where it has any: an agent can write the configuration that names a
    machine's own.
    """
    for policy in [one for one in policies if not one.own] or policies:
        terms = deciding((policy,), case)
        if terms and all(term.automatic for term in terms):
            refused = next((t for t in deciding(policies, case) if t.automatic is False), None)
            if refused is None:
                return Ruling(
                    True, ", ".join(term.name for term in terms), "it says `automatic: true`", policy.source
                )
    return Ruling(False, "automatic", "nobody has confirmed it, and no rule says `automatic: true`")


NO_DEFAULT = "no rule says `defaults: true`, which an approval needs"


def may_default(policies: Sequence[Policy], case: RulingCase, *, otherwise: bool) -> Ruling:
    """Return the ruling on whether a declared default may replace an answer; `otherwise` applies where no rule
    mentions it.
    """
    for term in deciding(policies, case):
        if term.defaults is False:
            return Ruling(False, term.name, "its declared default does not apply", term.source)
        if (term.quorum > 1 or term.require_signed) and term.defaults is not True:
            return Ruling(False, term.name, "nobody's default can agree or sign", term.source)
    said = next((term for term in deciding(policies, case) if term.defaults), None)
    if said is not None:
        return Ruling(True, said.name, "its declared default applies", said.source)
    return Ruling(otherwise, "defaults", NO_DEFAULT)


WHOLE, BY_ADDRESS, BY_LOGIN = "whole", "address", "login"
Kind = tuple[str, bool, str]


def people_behind(policies: Sequence[Policy], answers: Sequence[Who]) -> int:
    """Return the least number of different people that these can be."""
    kinds = {who_kind(policies, who) for who in answers}
    by_address = [known for kind, known, _ in kinds if kind == BY_ADDRESS]
    by_login = [known for kind, known, _ in kinds if kind == BY_LOGIN]
    # The policy tells apart whom it lists; anybody else may be one of those on the other side.
    strangers = by_address.count(False) + by_login.count(False)
    return len(kinds) - min(len(by_address), len(by_login), strangers)


def who_kind(policies: Sequence[Policy], who: Who) -> Kind:
    """Return the kind of name that somebody is known by, whether the policy lists them, and their one name."""
    person = listed_person(policies, who)
    if person is not None:
        whole = (person.emails or person.keys) and person.logins
        return (WHOLE if whole else BY_LOGIN if person.logins else BY_ADDRESS, True, person.name)
    if who.login and not who.key:
        return (BY_LOGIN, False, who.login.casefold())
    return (BY_ADDRESS, False, address(who.signer if who.key and who.signer else who.by))


def listed_person(policies: Sequence[Policy], who: Who) -> Person | None:
    """Return the first of the people listed that `who` is; a login that a person is not listed with belongs to
    somebody else.
    """
    return next((person for policy in policies for person in policy.people if matches(person, who)), None)


def cautions(policies: Sequence[Policy]) -> list[str]:
    """Return warnings where a policy counts people without listing both an address and a login for each of them."""
    found = []
    for policy in policies:
        for term in (*(rule.terms for rule in policy.rules), policy.default):
            if term.quorum <= 1 and (term.refusals or 1) <= 1:
                continue
            half = [person.name for person in term.who or policy.people if not is_whole(policy, person)]
            who = ", ".join(half[:8])
            if half:
                found.append(
                    f"rule {term.name}: {who}: known by an address or by a login, not by both; list both under `people`, "
                    "or an answer by the other counts as nobody's, or as the same person's as another"
                )
            elif term.who is None:
                found.append(
                    f"rule {term.name}: anyone may answer; whoever is not listed under `people` with an address and a login "
                    "is not counted beside somebody who is known by the other"
                )
    return list(dict.fromkeys(found))


def is_whole(policy: Policy, person: Person) -> bool:
    """Return whether the policy knows a person both by a login and by an address or a key. A list may name by one of
    these somebody whom `people` lists with both.
    """
    return any(
        bool((known.emails or known.keys) and known.logins)
        for known in policy.people
        if known == person or known.emails & person.emails or known.logins & person.logins
    )


def marks(desk: Desk, gates: Iterable[Gate]) -> dict[str, SignatureMark]:
    """Return the signature's mark by commit, for each answer in these gates that carries a signature."""
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
    """Return the commit in which the author wrote the event; for one recorded again, that is the second parent."""
    return entry.parents[1] if len(entry.parents) > 1 else entry.commit


def is_signed(desk: Desk, commit: str) -> bool:
    try:
        return desk.records.commit(commit).signed
    except GateError:
        return False


def mark_of(book: Book, by: str, verdict: Verdict) -> SignatureMark:
    """Return the mark of a signature. A good signature by somebody else than the answer names is worse than none."""
    if verdict.word == BAD:
        return SignatureMark(INVALID, verdict.signer, verdict.key)
    if verdict.word != GOOD:
        return SignatureMark(UNVERIFIED, "", verdict.key)
    named = is_named(book.policies, Who(by, verdict.key, verdict.signer))
    # A distinguished name has no address that could be held against the answer's.
    otherwise = UNVERIFIED if verdict.signer.startswith("/") else INVALID
    return SignatureMark(VERIFIED if named else otherwise, verdict.signer, verdict.key)
