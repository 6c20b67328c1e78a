"""Policy: the policy as it stands for this repository, and whose signatures count.

It is read from the protected branch (of a server: its own; of a clone: the remote's, as it was last fetched; without a
remote: the local default branch) and from the machine's git configuration: never from a working tree or another branch.
"""

from __future__ import annotations

from pathlib import Path

from ..config import FILE
from ..context.desk import Desk
from ..document.field import may_have
from ..document.values import dataclass, replace
from ..errors import BadDocument, BrokenPolicy, GateError
from ..store.git.objects import Protected, read_protected
from ..store.git.repository import USUAL
from .rules import Policy, RuleTerms, parse_policy

SIGNERS = ".gitgate/allowed_signers"
MACHINE = "machine"


@dataclass(frozen=True)
class Book:
    """All policies that hold here; every one of them has to agree. `ref`: the protected branch, where there is one, and
    `commit` its commit that they were read from.
    """

    policies: tuple[Policy, ...] = ()
    ref: str | None = None
    commit: str | None = None

    @property
    def terms(self) -> list[RuleTerms]:
        """The terms of all rules, whichever gates they are about."""
        return [t for p in self.policies for t in (p.default, *(rule.terms for rule in p.rules))]

    @property
    def signers_path(self) -> str:
        return next((p.allowed_signers for p in self.policies if p.allowed_signers), SIGNERS)


SERVERS = "main-worktree/HEAD"
"""That of the repository itself, as a working tree of it says it."""


def protected_refs(desk: Desk) -> list[str]:
    """Where the protected branch is looked for, the surest first."""
    named = desk.settings.text("protectedBranch")
    usual = [named] if named else [n for n in (desk.settings.git.get("init.defaultbranch", ""), *USUAL) if n]
    # A receiving hook sees no working tree, whether there is one or not; then git's own word counts.
    bare = desk.repo.bare and desk.settings.git.get("core.bare") != "false"
    if bare or desk.settings.flag("server"):
        # A server whose HEAD names a branch that nobody pushed has its policy on the one that they did push. In a working tree
        # that is made for an agent, HEAD is the agent's branch.
        head = "HEAD" if desk.repo.git_dir == desk.repo.common_dir else SERVERS
        return [f"refs/heads/{named}"] if named else [head, *(f"refs/heads/{name}" for name in usual)]
    remote = policy_remote(desk)
    if remote is None:
        return [f"refs/heads/{name}" for name in usual]
    return [f"refs/remotes/{remote}/{name}" for name in (usual if named else ["HEAD", *usual])]


def policy_remote(desk: Desk) -> str | None:
    """The remote whose branch it is. Where gates go may be said by a file of the working tree, by the environment, or by
    the branch that somebody is on: whose word counts may not.
    """
    git = desk.settings.git
    if desk.settings.flag("server"):
        return None
    remotes = [
        key[len("remote.") : -len(".url")]
        for key in git
        if key.startswith("remote.") and key.endswith(".url")
    ]
    for name in (git.get("gitgate.remote", ""), "origin", git.get("remote.pushdefault", "")):
        if name in remotes:
            return name
    if len(remotes) == 1:
        return remotes[0]
    from ..context.targets import remote_of

    return remote_of(desk)


def load_book(desk: Desk) -> Book:
    """The policies as they are now; BrokenPolicy where one cannot be read, and then nothing is allowed."""
    refs = protected_refs(desk)
    found = read_protected(desk.records.objects, FILE, refs)
    if found is None and desk.settings.text("protectedBranch") and desk.refs.get(refs[0]) is None:
        raise BrokenPolicy(
            f"gitgate.protectedBranch names {refs[0]}, which is not here, so that no policy can be read",
            hint="git fetch, or mend it: git config gitgate.protectedBranch main",
        )
    here = [] if found is None else [policy_in_file(found)]
    policies = tuple(policy for policy in (*here, *machine_policies(desk)) if policy is not None)
    return Book(policies, ref_of(found), None if found is None else found.commit)


def ref_of(found: Protected | None) -> str | None:
    if found is None:
        return None
    name = found.source.rpartition(":")[0]
    return name.rpartition("/")[2] if name in ("HEAD", SERVERS) else f"refs/{name}"


def policy_in_file(found: Protected) -> Policy | None:
    if not may_have(found.data, "policy"):
        return None
    from ..document import codec

    try:
        return parse_policy(codec.parse_document(found.data, found.source))
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
            Policy(
                RuleTerms(
                    MACHINE, require_signed=signed, requester_may_answer=requester, source="git config"
                ),
                own=True,
            )
        )
    file = desk.settings.text("policyFile")
    if file:
        policy = policy_in_file(Protected(read_machine_file(desk, Path(file)), file))
        found.append(policy and replace(policy, own=True))
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


def signers_of(desk: Desk, book: Book | None = None) -> bytes | None:
    """Whose keys may be believed: the protected branch's allowed signers and the policy's own keys.

    None where there are neither: then git is asked as the machine has it configured, if that is no file of a branch.
    """
    try:
        book = load_book(desk) if book is None else book
    except GateError:
        return b""  # nobody's signature is good while nobody can say whose keys count
    at = book.commit or book.ref
    refs = [at] if at else protected_refs(desk)
    file = read_protected(desk.records.objects, book.signers_path, refs)
    lines = [line for policy in book.policies for line in policy.signers]
    named = any(policy.allowed_signers for policy in book.policies)
    if file is None and not lines:
        return b"" if named or configured_in_tree(desk) else None
    return b"".join((file.data + b"\n" if file else b"", "".join(f"{line}\n" for line in lines).encode()))


def configured_in_tree(desk: Desk) -> bool:
    """Whether git's own allowed signers are a file that a branch carries: an agent could have written itself into it."""
    name = desk.settings.git.get("gpg.ssh.allowedsignersfile", "")
    if not name or desk.repo.top is None:
        return False
    home = desk.settings.env.get("HOME", "/")
    place = Path(home, name[2:]) if name.startswith("~/") else Path(desk.repo.top, name)
    return place.resolve().is_relative_to(desk.repo.top.resolve())
