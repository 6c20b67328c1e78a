"""Service: the policy as it stands for this repository, and whether it allows what somebody is about to do.

It is read from the protected branch (of a server: its own; of a clone: the remote's, as it was last fetched; without a
remote: the local default branch) and from the machine's git configuration: never from a working tree or another branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..config import FILE
from ..core import ruling
from ..core.model import Answer, Counted, Gate, Opened, Work
from ..core.people import address
from ..core.policy import Policy, Terms, parse_policy
from ..core.ruling import Case, Ruling, Said, Who
from ..core.values import dataclass
from ..errors import BadDocument, BrokenPolicy, GateError, NotAllowed
from ..store.protected import USUAL, Protected, read_protected
from ..store.signatures import BAD, GOOD, Verdict, verify
from ..store.touched import touched
from .desk import Desk

SIGNERS = ".gitgate/allowed_signers"
MACHINE = "machine"


@dataclass(frozen=True)
class Book:
    """All policies that hold here; every one of them has to agree. `ref`: the protected branch, where there is one."""

    policies: tuple[Policy, ...] = ()
    ref: str | None = None

    @property
    def signers_path(self) -> str:
        return next((p.allowed_signers for p in self.policies if p.allowed_signers), SIGNERS)


def protected_refs(desk: Desk) -> list[str]:
    """Where the protected branch is looked for, the surest first."""
    named = desk.settings.text("protectedBranch")
    usual = [named] if named else [n for n in (desk.settings.git.get("init.defaultbranch", ""), *USUAL) if n]
    if desk.repo.bare or desk.settings.flag("server"):
        return [f"refs/heads/{named}"] if named else ["HEAD"]
    from .publishing import remote_of

    remote = remote_of(desk)
    if remote is None:
        return [f"refs/heads/{name}" for name in usual]
    return [f"refs/remotes/{remote}/{name}" for name in (usual if named else ["HEAD", *usual])]


def load_book(desk: Desk) -> Book:
    """The policies as they are now; BrokenPolicy where one cannot be read, and then nothing is allowed."""
    refs = protected_refs(desk)
    found = read_protected(desk.repo, FILE, refs)
    if found is None and desk.settings.text("protectedBranch") and desk.refs.get(refs[0]) is None:
        raise BrokenPolicy(
            f"gitgate.protectedBranch names {refs[0]}, which is not here, so that no policy can be read",
            hint="git fetch, or mend it: git config gitgate.protectedBranch main",
        )
    here = [] if found is None else [parsed(found)]
    policies = tuple(policy for policy in (*here, *machine_policies(desk)) if policy is not None)
    return Book(policies, ref_of(found))


def ref_of(found: Protected | None) -> str | None:
    if found is None:
        return None
    name = found.source.rpartition(":")[0]
    return name if name == "HEAD" else f"refs/{name}"


def parsed(found: Protected) -> Policy | None:
    if b"policy" not in found.data:
        return None
    from ..core import codec

    try:
        return parse_policy(codec.parse(found.data, found.source))
    except BadDocument as wrong:
        raise broken(wrong) from wrong


def broken(wrong: BadDocument) -> BrokenPolicy:
    return BrokenPolicy(
        f"the policy is broken, so that nothing is allowed: {wrong.message}",
        hint="mend it on the protected branch, and look at it with: git gate policy check",
    )


def machine_policies(desk: Desk) -> list[Policy | None]:
    """What this machine's own configuration asks for, on top of the repository's."""
    found: list[Policy | None] = []
    signed, requester = desk.settings.flag("requireSigned"), desk.settings.flag("requesterMayAnswer")
    if signed or not requester:
        found.append(
            Policy(Terms(MACHINE, require_signed=signed, requester_may_answer=requester, source="git config"))
        )
    file = desk.settings.text("policyFile")
    if file:
        found.append(parsed(Protected(read_machine_file(desk, Path(file)), file)))
    return found


def read_machine_file(desk: Desk, place: Path) -> bytes:
    """A file of the machine's own: one inside a working tree came with a branch."""
    top = desk.repo.top
    if not place.is_absolute() or (top is not None and place.resolve().is_relative_to(top.resolve())):
        raise BrokenPolicy(
            f"gitgate.policyFile is {place}: expected an absolute path outside the working tree",
            hint="git config gitgate.policyFile /etc/gitgate/policy.yml",
        )
    try:
        return place.read_bytes()
    except OSError as unreadable:
        raise BrokenPolicy(
            f"gitgate.policyFile cannot be read, so that nothing is allowed: {place}: {unreadable.strerror}",
            hint="git config --show-origin gitgate.policyFile",
        ) from unreadable


# signatures


def signers_of(desk: Desk, book: Book | None = None) -> bytes | None:
    """Whose keys may be believed: the protected branch's allowed signers and the policy's own keys.

    None where there are neither: then git is asked as the machine has it configured, if that is no file of a branch.
    """
    try:
        book = load_book(desk) if book is None else book
    except GateError:
        return b""  # nobody's signature is good while nobody can say whose keys count
    refs = [book.ref] if book.ref else protected_refs(desk)
    file = read_protected(desk.repo, book.signers_path, refs)
    lines = [line for policy in book.policies for line in policy.signers]
    if file is None and not lines:
        return b"" if configured_in_tree(desk) else None
    return b"".join((file.data + b"\n" if file else b"", "".join(f"{line}\n" for line in lines).encode()))


def configured_in_tree(desk: Desk) -> bool:
    """Whether git's own allowed signers are a file that a branch carries: an agent could have written itself into it."""
    name = desk.settings.git.get("gpg.ssh.allowedsignersfile", "")
    if not name or desk.repo.top is None:
        return False
    home = desk.settings.env.get("HOME", "/")
    place = Path(home, name[2:]) if name.startswith("~/") else Path(desk.repo.top, name)
    return place.resolve().is_relative_to(desk.repo.top.resolve())


def who_said(answer: Answer, verdict: Verdict | None) -> Who:
    """Who stands behind an answer: a good signature's owner, a forge's login that came with it, or only a name."""
    if verdict is not None and verdict.word == GOOD:
        return Who(answer.by, verdict.key, verdict.signer)
    login = answer.evidence.get("login")
    return Who(answer.by, login=login if isinstance(login, str) else "")


def verdict_on(desk: Desk, book: Book, commit: str) -> Verdict | None:
    """What the signature on a commit is worth; None where it carries none."""
    if not desk.records.commit(commit).signed:
        return None
    return verify(desk.repo.git, [commit], signers_of(desk, book))[commit]


# what a gate is, and what is asked of it


def case(desk: Desk, book: Book, gate: Gate) -> Case:
    """What the rules look at; git is asked for paths only where a rule is about paths."""
    return ruling.case_of(gate, paths_of(desk, book, gate.opened.work))


def paths_of(desk: Desk, book: Book, work: Work) -> tuple[str, ...] | None:
    if work.commit is None or not any(policy.by_path for policy in book.policies):
        return ()
    start = book.ref or next((ref for ref in protected_refs(desk) if desk.refs.get(ref)), None)
    return touched(desk.repo, start, work.base, work.commit)


def needed_for(desk: Desk, book: Book, opened: Opened) -> tuple[int, int]:
    """How many have to agree to a question that is about to be asked, and how many refusals it takes."""
    facts = ruling.case_of_question("", opened, opened.priority, opened.to, paths_of(desk, book, opened.work))
    return ruling.needed(book.policies, facts)


def on_answer(desk: Desk, book: Book, gate: Gate, counted: Counted) -> Ruling:
    """Whether one recorded answer is one that the policy accepts."""
    verdict = verdict_on(desk, book, counted.signed_commit)
    if verdict is not None and verdict.word == BAD:
        return Ruling(False, "signature", "its signature is bad")
    said = Said(counted.answer.at, counted.answer.via)
    return ruling.rule_on(book.policies, case(desk, book, gate), who_said(counted.answer, verdict), said)


def check_told(desk: Desk, gate: Gate) -> None:
    """Whether what a gate's asker would be told is something that the policy accepts: else nobody acts on it."""
    book = load_book(desk)
    if not book.policies or gate.answer is None:
        return
    check_agent(book, gate)
    if gate.defaulted:
        refuse_unless(gate, default_ruling(desk, book, gate))
        return
    facts = case(desk, book, gate)
    agree, refuse = ruling.needed(book.policies, facts)
    verdict = gate.answer.answer.verdict
    accepted: set[str] = set()
    refused: Ruling | None = None
    for vote in alike(gate):
        said = on_answer(desk, book, gate, vote)
        if said.allowed:
            accepted.add(one_name(book, vote.answer.by))
        else:
            refused = refused or said
    enough = refuse if verdict == "rejected" else agree
    if len(accepted) < enough:
        names = ", ".join(term.name for term in ruling.deciding(book.policies, facts))
        short = Ruling(False, names, f"{enough} have to agree, and {len(accepted)} do whom it accepts")
        refuse_unless(gate, refused or short)


def alike(gate: Gate) -> list[Counted]:
    """The answers that say the same as the one that counts."""
    if gate.answer is None:
        return []
    told = gate.answer.answer
    both = told.verdict == "rejected"
    return [
        vote
        for vote in gate.votes
        if vote.answer.values == told.values or (both and vote.answer.verdict == "rejected")
    ]


def one_name(book: Book, by: str) -> str:
    """Somebody's one name, so that nobody counts twice under two addresses."""
    known = (p.name for policy in book.policies for p in policy.people if address(by) in p.emails)
    return next(known, address(by))


def default_ruling(desk: Desk, book: Book, gate: Gate) -> Ruling:
    plain = all(question.type != "approval" for question in gate.opened.questions)
    otherwise = plain or desk.settings.flag("approvalDefaults")
    if not book.policies:
        return Ruling(otherwise, "setting", "an approval needs the permission of gitgate.approvalDefaults")
    return ruling.may_default(book.policies, case(desk, book, gate), otherwise=otherwise)


def check_agent(book: Book, gate: Gate) -> None:
    """Only agents that the policy knows are started again."""
    session = gate.opened.session
    for policy in book.policies:
        if session is not None and policy.agents is not None and session.agent not in policy.agents:
            listed = ", ".join(policy.agents) or "none"
            why = f"{session.agent!r} is no agent that may be started again; there are {listed}"
            refuse_unless(gate, Ruling(False, "agents", why, policy.source))


def refuse_unless(gate: Gate, said: Ruling) -> None:
    if not said.allowed:
        where = f" ({said.source})" if said.source else ""
        raise NotAllowed(
            f"gate {gate.id}: the policy's rule {said.rule!r} does not allow it: {said.why}{where}",
            hint=f"git gate policy check {gate.id[:6]}",
        )


# what somebody is about to say


@dataclass(frozen=True)
class Permit:
    """Leave to say something: whether to sign it, and the last check, once it is written and before it counts."""

    sign: bool
    approve: Callable[[Gate], None] | None = None


def permit(desk: Desk, gate: Gate, who: Who, said: Said, *, sign: bool | None) -> Permit:
    """Leave to answer or end a gate. NotAllowed at once where no signature could change it; else once there is one."""
    wanted = desk.settings.flag("sign") if sign is None else sign
    book = load_book(desk)
    if not book.policies:
        return Permit(wanted)
    facts = case(desk, book, gate)
    needed = any(term.require_signed for term in ruling.deciding(book.policies, facts))
    if not (wanted or (needed and sign is None)):
        refuse_unless(gate, ruling.rule_on(book.policies, facts, who, said))
        return Permit(sign=False)

    def approve(after: Gate) -> None:
        verdict = verdict_on(desk, book, after.tip)
        good = verdict is not None and verdict.word == GOOD
        signed = replace(who, key=verdict.key, signer=verdict.signer) if verdict and good else who
        if needed and not good:
            raise unknown_key(gate, verdict, book)
        refuse_unless(gate, ruling.rule_on(book.policies, facts, signed, said))

    return Permit(sign=True, approve=approve)


def unknown_key(gate: Gate, verdict: Verdict | None, book: Book) -> NotAllowed:
    key = f" by {verdict.key}" if verdict is not None and verdict.key else ""
    return NotAllowed(
        f"gate {gate.id}: the answer has to be signed by a key that is known; the signature{key} is not",
        hint=f"have your key added to {book.signers_path} on the protected branch",
    )


def may_answer(desk: Desk, book: Book, gate: Gate, person: str) -> bool:
    """For a list: whether this person could answer, if they sign where that is asked."""
    return explain(desk, book, gate, Who(person)).allowed


def explain(desk: Desk, book: Book, gate: Gate, who: Who, *, via: str = "cli") -> Ruling:
    """The ruling on somebody who is only named: as if they signed, where that is needed and could be theirs."""
    facts = case(desk, book, gate)
    signing = any(term.require_signed for term in ruling.deciding(book.policies, facts))
    posed = pretend(book.policies, who) if signing and not who.key else who
    return ruling.rule_on(book.policies, facts, posed, Said(desk.now, via))


def pretend(policies: Sequence[Policy], who: Who) -> Who:
    """The same person with a key of theirs, as the policy knows it."""
    known = [p for policy in policies for p in policy.people if address(who.by) in p.emails and p.keys]
    key = next((key for person in known for key in sorted(person.keys)), "a key of theirs")
    return replace(who, key=key, signer=who.by)
