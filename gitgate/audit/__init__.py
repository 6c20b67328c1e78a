"""Audit: whether what is recorded holds. Here are the values that a check ends with, and the policy that it goes by: who may answer a
gate, by which rule; and whether each answer that counts was accepted by the policy of its time.

The policy of then is the protected branch's: at the commit that the answer names, and never older than what the work
stands on; where it names none, by the date. What this machine asks for on top has no history, and no part in it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from .. import text
from ..config import FILE
from ..context import Desk
from ..document import OID, dataclass
from ..errors import GateError
from ..gates.work import comes_back
from ..model.gate import Answer, Counted, Entry, Gate
from ..policy import SIGNERS, Book, RuleTerms, policy_in_file, protected_refs, ruling, signers_of
from ..policy.addressees import held_to, is_of_gate
from ..policy.permit import POLICY, case, explain, paths_of, said_by, who_said
from ..policy.ruling import Ruling, RulingCase, Who, deciding, people_behind
from ..store.git import BranchChange, left_line, load_changes, load_line
from ..store.git.protected import find_protected, read_protected
from ..store.git.signatures import BAD, Verdict, verify


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that does not hold. `commit` is empty where it is about the gate as a whole."""

    gate: str
    commit: str
    kind: str
    words: str

    @property
    def problem(self) -> str:
        """Its words, by the name that they have in JSON."""
        return self.words

    def shape(self) -> dict[str, str]:
        return {"gate": self.gate, "commit": self.commit, "kind": self.kind, "problem": self.problem}

    @property
    def line(self) -> str:
        return f"{self.gate} {self.commit[:12] or '-'} {self.words}"


@dataclasses.dataclass
class Verified:
    """Result of a verification: the counts, the problems, and what could not be checked here and why (`notes`)."""

    gates: int = 0
    events: int = 0
    runs: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    signatures: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def shape(self) -> dict[str, object]:
        """Return the result as JSON has it."""
        return {
            "ok": self.ok,
            "gates": self.gates,
            "events": self.events,
            "runs": self.runs,
            "signatures": self.signatures,
            "problems": [problem.shape() for problem in self.problems],
            "notes": [note.shape() for note in self.notes],
        }

    @property
    def ok(self) -> bool:
        """True if nothing is wrong; what could not be checked here is not wrong."""
        return not self.problems

    def wrong(self, gate: str, commit: str, kind: str, words: str) -> None:
        self.problems += (Problem(gate, commit, kind, words),)

    def note(self, gate: str, commit: str, kind: str, words: str) -> None:
        self.notes += (Problem(gate, commit, kind, words),)


# The policy of the time.


# How long somebody may have gone by a policy that had been replaced: a clone knows of it when it fetches.
GRACE = 86_400


@dataclass(frozen=False)
class Epoch:
    """The policy from one change of it to the next. `broken`: why nothing was allowed."""

    change: BranchChange
    place: int
    book: Book
    signers: bytes | None
    broken: str = ""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=False)
class Chronicle:
    """All of them, oldest first, and the branch that they were on, with the commit that it is at."""

    ref: str
    tip: str
    line: Mapping[str, int]
    epochs: list[Epoch]
    starts: dict[str, Epoch | None] = field(default_factory=dict)
    before: Epoch | None = None

    def at_commit(self, commit: str) -> Epoch | None:
        """Return the policy that held at this commit of the branch; None before there was any."""
        place = self.line[commit]
        return next((epoch for epoch in reversed(self.epochs) if epoch.place <= place), None)

    def at_time(self, moment: float) -> Epoch | None:
        return next((epoch for epoch in reversed(self.epochs) if epoch.change.at <= moment), None)

    def after(self, epoch: Epoch | None) -> Epoch | None:
        """Return the epoch that replaced this one; None while nothing has."""
        place = -1 if epoch is None else epoch.place
        return next((later for later in self.epochs if later.place > place), None)


def load_chronicle(desk: Desk) -> Chronicle | None:
    """None where the branch never had a policy, or is not here."""
    ref, tip = find_protected(desk.refs, desk.records.objects, protected_refs(desk))
    if not tip or not load_changes(desk.repo, tip, [FILE]):
        return None
    named = {SIGNERS} | {
        policy.allowed_signers
        for change in load_changes(desk.repo, tip, [FILE])
        for policy in load_epoch(desk, ref, change, 0).book.policies
        if policy.allowed_signers
    }
    line = load_line(desk.repo, tip)
    changes = load_changes(desk.repo, tip, [FILE, *sorted(named)])
    return Chronicle(
        ref, tip, line, [load_epoch(desk, ref, change, line[change.commit]) for change in changes]
    )


def load_epoch(desk: Desk, ref: str, change: BranchChange, place: int) -> Epoch:
    """The policy and the allowed signers, as that commit has them."""
    book = Book((), ref, change.commit)
    try:
        found = read_protected(desk.refs, desk.records.objects, FILE, [change.commit])
        policy = None if found is None else policy_in_file(found)
        book = Book(() if policy is None else (policy,), ref, change.commit)
        return Epoch(change, place, book, signers_of(desk, book))
    except GateError as broken:
        return Epoch(change, place, book, b"", broken.message)


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer that counts for something, and the policy by which it has to be judged."""

    gate: Gate
    counted: Counted
    epoch: Epoch


def check_policies(desk: Desk, done: Verified, gates: Iterable[Gate]) -> None:
    """Every answer of these gates, by the policy of its day."""
    history = load_chronicle(desk) or Chronicle("", "", {}, [])
    found = [given for gate in gates for given in judgeable(desk, done, history, gate)]
    load_verdicts_of(desk, done, history, found)
    told: dict[str, list[JudgedAnswer]] = {}
    for given in found:
        told.setdefault(given.gate.id, []).append(given)
    for several in told.values():
        check_gate(desk, done, several)


def judgeable(desk: Desk, done: Verified, history: Chronicle, gate: Gate) -> Iterable[JudgedAnswer]:
    for entry in gate.events:
        if isinstance(entry.event, Answer) and entry.name != "late":
            epoch = epoch_of(desk, done, history, gate, entry, entry.event)
            if epoch is None and gate.holds_to:
                epoch = before_policies(desk, history)
            if epoch is not None:
                original = entry.parents[1] if len(entry.parents) > 1 else entry.commit
                yield JudgedAnswer(gate, Counted(entry.commit, entry.event, original), epoch)


def epoch_of(
    desk: Desk, done: Verified, history: Chronicle, gate: Gate, entry: Entry, answer: Answer
) -> Epoch | None:
    """Return the policy by which an answer is judged, after reporting what is wrong with the one that it names; None
    where there was none.
    """
    if not history.epochs:
        return None  # the branch never had a policy, or is not here
    moment = text.parse_time(answer.at)
    named = answer.evidence.get(POLICY)
    if named is None:
        found = history.at_time(moment)
    elif not isinstance(named, str) or not re.fullmatch(OID, named) or named not in history.line:
        words = f"it names {str(named)[:12]} as the policy that it was judged by, which is no commit of {history.ref}"
        (done.note if desk.repo.shallow else done.wrong)(gate.id, entry.commit, POLICY, words)
        found = history.at_time(moment)
    else:
        found = history.at_commit(named)
        why = against_day(history, found, moment)
        if why:
            done.wrong(gate.id, entry.commit, POLICY, f"it names {named[:12]} as its policy, {why}")
    return later(found, at_start(desk, history, gate))


def before_policies(desk: Desk, history: Chronicle) -> Epoch:
    """The time without a policy, when only whom a question is for held others back."""
    if history.before is None:
        history.before = Epoch(BranchChange("", 0), -1, Book(), signers_of(desk, Book()))
    return history.before


def against_day(history: Chronicle, epoch: Epoch | None, moment: float) -> str:
    """Return the reason why a policy cannot be the one that held at this moment; empty when it can."""
    if epoch is not None and epoch.change.at > moment + GRACE:
        return f"which came later, on {text.format_time(epoch.change.at)}"
    replaced = history.after(epoch)
    if replaced is not None and replaced.change.at + GRACE < moment:
        return f"which was replaced on {text.format_time(replaced.change.at)}, more than a day before"
    return ""


def at_start(desk: Desk, history: Chronicle, gate: Gate) -> Epoch | None:
    """Return the policy that held where the work left the branch. The answer is younger than that, whatever date it
    claims.
    """
    base = gate.opened.work.base
    if base is None or len(history.epochs) < 2:
        return None
    if base not in history.starts:
        left = base if base in history.line else left_line(desk.repo, history.tip, base)
        history.starts[base] = history.at_commit(left) if left is not None and left in history.line else None
    return history.starts[base]


def later(one: Epoch | None, other: Epoch | None) -> Epoch | None:
    return max((epoch for epoch in (one, other) if epoch is not None), key=lambda e: e.place, default=None)


def load_verdicts_of(desk: Desk, done: Verified, history: Chronicle, found: Iterable[JudgedAnswer]) -> None:
    """Signatures by the signers of then: asked anew only where they were others than now."""
    by_signers: dict[bytes | None, list[JudgedAnswer]] = {}
    for given in found:
        by_signers.setdefault(given.epoch.signers, []).append(given)
    for signers, several in by_signers.items():
        signed = [g.counted.signed_commit for g in several if g.counted.signed_commit in done.verdicts]
        same = not history.epochs or signers == history.epochs[-1].signers
        verdicts = done.verdicts if same else verify(desk.repo.git, signed, signers)
        for given in several:
            given.epoch.verdicts = {**given.epoch.verdicts, **verdicts}


def check_gate(desk: Desk, done: Verified, several: list[JudgedAnswer]) -> None:
    """Check that the answer given to the asker rests on answers that were accepted; another that was refused only gets
    a note.
    """
    gate = several[0].gate
    facts: dict[int, RulingCase] = {}
    accepted: list[Who] = []
    refused: list[tuple[JudgedAnswer, Ruling]] = []
    for given in several:
        said = judged(desk, given, facts)
        if not said.allowed:
            refused.append((given, said))
        elif is_alike(gate, given.counted.answer):
            accepted.append(speaker(given))
    last = decisive(several)
    count = people_behind(held_to(last.epoch.book, gate).policies, accepted)
    stands = gate.answer is None or count >= enough(last, facts)
    for given, said in refused:
        where = f" ({said.source})" if said.source else ""
        words = f"the policy of its day does not allow it, by its rule {said.rule!r}: {said.why}{where}"
        words = said.why if said.of_gate else words
        (done.note if stands else done.wrong)(gate.id, given.counted.commit, POLICY, words)
    if not stands and not refused:
        words = f"{count} agree whom the policy of the day accepts, and more have to"
        done.wrong(gate.id, gate.tip, POLICY, words)


def judged(desk: Desk, given: JudgedAnswer, facts: dict[int, RulingCase]) -> Ruling:
    """One answer by the policy of its day."""
    epoch, answer = given.epoch, given.counted.answer
    if epoch.broken:
        return Ruling(False, POLICY, epoch.broken)
    book = held_to(epoch.book, given.gate)
    if not book.policies or (is_of_gate(book) and answer.verdict == "defaulted"):
        return Ruling(True, "", "there was none")
    if epoch.place not in facts:
        paths = paths_of(desk, book, given.gate.opened.work)
        facts[epoch.place] = ruling.case_of(given.gate, paths)
    if answer.verdict == "defaulted":
        return ruling.may_default(book.policies, facts[epoch.place], otherwise=True)
    verdict = epoch.verdicts.get(given.counted.signed_commit)
    if verdict is not None and verdict.word == BAD:
        return Ruling(False, "signature", "its signature is bad")
    return ruling.rule_on_recorded(book.policies, facts[epoch.place], speaker(given), said_by(answer))


def speaker(given: JudgedAnswer) -> Who:
    return who_said(given.counted.answer, given.epoch.verdicts.get(given.counted.signed_commit))


def is_alike(gate: Gate, answer: Answer) -> bool:
    """Return whether the answer agrees with the one that counts."""
    if gate.answer is None:
        return False
    told = gate.answer.answer
    both = told.verdict == answer.verdict == "rejected"
    return both or answer.values == told.values


def decisive(several: list[JudgedAnswer]) -> JudgedAnswer:
    """The answer that was told, else the last one."""
    told = several[0].gate.answer
    found = (given for given in reversed(several) if told and given.counted.commit == told.commit)
    return next(found, several[-1])


def enough(last: JudgedAnswer, facts: Mapping[int, RulingCase]) -> int:
    """Return how many answers have to agree, by the policy of the day on which the gate was decided."""
    case = facts.get(last.epoch.place)
    if case is None or last.counted.answer.verdict == "defaulted":
        return 1
    agree, refuse = ruling.needed(held_to(last.epoch.book, last.gate).policies, case)
    return refuse if last.counted.answer.verdict == "rejected" else agree


@dataclass(frozen=True)
class Explained:
    """Explanation of whether somebody may answer a gate, by which rule (None: no policy), and why.

    `paths`: the paths of its work that a rule is about. `staged_only`: those of them that the files do not show.
    None where nobody knows.
    """

    gate: str
    who: str
    allowed: bool
    rule: str | None
    why: str
    source: str
    terms: tuple[RuleTerms, ...]
    paths: tuple[str, ...] | None
    staged_only: tuple[str, ...] | None = None

    @property
    def rules(self) -> tuple[Mapping[str, object], ...]:
        """The terms that hold for this gate, for programs."""
        return tuple(map(plain_terms, self.terms))


@dataclass(frozen=True)
class PolicyInForce:
    """The rules that hold here, each as a mapping of its terms, by where they were read. No sources: no policy."""

    sources: Mapping[str, tuple[Mapping[str, object], ...]]
    branch: str | None


def explain_gate(desk: Desk, book: Book, gate: Gate, given: str | None) -> Explained:
    """One gate and one person, by default the one at this machine."""
    who = who_meant(desk, given)
    facts = case(desk, book, gate)
    said = explain(desk, book, gate, who)
    terms = deciding(held_to(book, gate).policies, facts)
    hidden = comes_back(desk, gate.opened.work) if facts.paths is not None else None
    return Explained(
        gate.id,
        given or who.by,
        said.allowed,
        said.rule if book.policies else None,
        said.why,
        said.source,
        terms,
        facts.paths,
        None if hidden is None else (*hidden["staged_only"], *hidden["in_conflict"]),
    )


def who_meant(desk: Desk, given: str | None) -> Who:
    """An e-mail, `Name <e-mail>`, or `@login`."""
    if given and given.startswith("@"):
        return Who("", login=given[1:])
    return Who(f"{given} <{given}>" if given and "<" not in given else given or desk.person())


def in_force(book: Book) -> PolicyInForce:
    return PolicyInForce(
        {source: tuple(map(plain_terms, terms)) for source, terms in rules_of(book)}, book.ref
    )


def rules_of(book: Book) -> list[tuple[str, tuple[RuleTerms, ...]]]:
    """Every rule of every policy in its order, the default last, with where it was read."""
    return [
        (policy.source or policy.default.source, (*(rule.terms for rule in policy.rules), policy.default))
        for policy in book.policies
    ]


def plain_terms(term: RuleTerms) -> Mapping[str, object]:
    """A rule's terms, for programs."""
    return {
        "name": term.name,
        "who": None if term.who is None else [person.name for person in term.who],
        "quorum": term.quorum,
        "refusals": term.refusals,
        "requester_may_answer": term.requester_may_answer,
        "require_signed": term.require_signed,
        "within": term.within,
        "defaults": term.defaults,
        "automatic": term.automatic,
        "source": term.source,
    }
