"""Policy: the rules: as `.gitgate.yml` says them, and those that are in force for this repository."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..config import FILE, GONE, tightened_once
from ..context import Desk
from ..document import Field, codec, dataclass, duration, field, may_have, near, replace
from ..errors import BadDocument, BrokenPolicy, GateError
from ..model import PRIORITIES, address
from ..questions.types import TYPES
from ..store.git import USUAL
from ..store.git.canonical import mode_kind, parse_history_tree
from ..store.git.protected import Protected, protected_tip, read_protected
from ..store.git.refs import HEADS_OF_TREES, MAIN_HEAD
from ..text.digests import sha256

# Who may answer what, as the `policy:` of `.gitgate.yml` says it, read into the values of `terms`.
#
# A policy grants power, so it is read whole or not at all: a field that nobody knows, a name that nobody
# has, is an error with its line, and while it stands nothing is allowed.


DEFAULT = "default"


@dataclass(frozen=True)
class Person:
    """Person, by the names that the policy knows them under. `keys` are fingerprints; with one listed, another key
    is not theirs.
    """

    name: str
    emails: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RuleTerms:
    """Terms of one rule. `who` of None is anyone. A flag that is None leaves things as they are without a policy.

    `automatic`: scripts may answer unless it is false; an answer that nobody confirmed counts only where it is
    true.
    """

    name: str = DEFAULT
    who: tuple[Person, ...] | None = None
    quorum: int = 1
    refusals: int | None = None
    requester_may_answer: bool = True
    require_signed: bool = False
    within: int | None = None
    defaults: bool | None = None
    automatic: bool | None = None
    source: str = ""
    closed: str = ""
    """Why no answer counts, whoever gives it; empty where one may."""


@dataclass(frozen=True)
class PolicyRule:
    """Terms for the gates that fit the conditions; an empty condition fits all.

    A rule with `confidence_below` adds to the rule that decides otherwise: an agent's own confidence can only
    tighten.
    """

    terms: RuleTerms
    paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    confidence_below: float | None = None


REPLIES = ("commands", "plain")


@dataclass(frozen=True)
class Policy:
    """Policy of a repository or of this machine (`own`). A list of people or agents that is None means any.

    `replies`: which comments on a forge may answer; `plain` takes a word such as `yes`, too.
    """

    default: RuleTerms = RuleTerms()
    rules: tuple[PolicyRule, ...] = ()
    people: tuple[Person, ...] = ()
    groups: Mapping[str, tuple[Person, ...]] | None = None
    allowed_signers: str | None = None
    signers: tuple[str, ...] = ()
    agents: tuple[str, ...] | None = None
    commands: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    loads: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    askers: tuple[Person, ...] | None = None
    runners: tuple[Person, ...] | None = None
    replies: str = REPLIES[0]
    source: str = ""
    own: bool = False

    @property
    def by_path(self) -> bool:
        return any(rule.paths for rule in self.rules)


SSH = r"((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{40,}={0,2})(?: [^\n\r]*)?"
DIGEST = r"SHA256:[A-Za-z0-9+/]{43}"
HEX = r"(?:0x)?([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})"


def fingerprint(text: str) -> tuple[str, str]:
    """Return a key's fingerprint as git prints it, and `type base64` where the key itself was given; two empty texts
    for no key.
    """
    word = text.strip()
    key = re.fullmatch(SSH, word)
    if key is not None:
        from base64 import b64decode, b64encode

        try:
            blob = b64decode(key[2], validate=True)
        except ValueError:
            return "", ""
        kind = key[1].encode()
        if blob[: 4 + len(kind)] != len(kind).to_bytes(4, "big") + kind:
            return "", ""
        return f"SHA256:{b64encode(sha256(blob).digest()).decode().rstrip('=')}", f"{key[1]} {key[2]}"
    if re.fullmatch(DIGEST, word):
        return word, ""
    digits = re.fullmatch(HEX, word.replace(" ", ""))
    return (digits[1].upper(), "") if digits is not None else ("", "")


SECTION = "policy"
ANYONE = "anyone"
MOST_ENTRIES = 500
NAME = r"[A-Za-z0-9][\w .@/+-]{0,99}"

CONDITIONS = ("paths", "types", "priorities", "agents", "confidence_below")
TERMS = (
    *("who", "quorum", "refusals", "requester_may_answer", "require_signed"),
    *("within", "defaults", "automatic"),
)
COMMANDS = ("resume", "start")
LOADS = ("project_settings", "project_servers")
PERSON = ("email", "login", "key")
TOP = ("people", "groups", "allowed_signers", "agents", "askers", "runners", "replies", "rules", *TERMS)
RULE = ("name", *CONDITIONS, *TERMS)


@dataclass(frozen=True)
class PolicyNames:
    """People and groups that a policy's lists may name."""

    people: Mapping[str, Person]
    groups: Mapping[str, tuple[Person, ...]]


def parse_policy(root: Field) -> Policy | None:
    """Return the policy of a document; None where it has none."""
    if SECTION not in root.mapping():
        return None
    section = root.need(SECTION)
    only(section, TOP, "a policy")
    people, signers = parse_people(section)
    names = PolicyNames(people, {})
    names = PolicyNames(people, parse_groups(section, names))
    default = parse_terms(section, names, RuleTerms(source=place(section)))
    rules, known = [], {DEFAULT}
    for item in entries_of(section, "rules"):
        rule = parse_rule(item, names, default)
        if rule.terms.name in known:
            item.need("name").fail(f"expected each rule's name once; {rule.terms.name!r} is taken")
        known.add(rule.terms.name)
        rules.append(rule)
    signers_file = section.get("allowed_signers")
    return Policy(
        default=default,
        rules=tuple(rules),
        people=tuple(people.values()),
        groups=names.groups,
        allowed_signers=parse_path(signers_file) if signers_file else None,
        signers=signers,
        agents=parse_agents(section.get("agents")),
        commands=parse_commands(section.get("agents")),
        loads=parse_loads(section.get("agents")),
        askers=parse_who(section.get("askers"), names),
        runners=parse_who(section.get("runners"), names),
        replies=parse_replies(section.get("replies")),
        source=root.source,
    )


def parse_replies(found: Field | None) -> str:
    if found is not None and found.value not in REPLIES:
        found.fail(f"expected {' or '.join(REPLIES)}")
    return REPLIES[0] if found is None else str(found.value)


def only(field: Field, names: tuple[str, ...], what: str) -> None:
    for name, item in field.mapping().items():
        if name not in names:
            item.fail(f"there is no such field in {what}{near(name, names)}; there are {', '.join(names)}")


def place(field: Field) -> str:
    return f"{field.source}, line {field.line}"


def entries_of(section: Field, name: str) -> list[Field]:
    found = section.get(name)
    items = [] if found is None else found.items()
    if found is not None and len(items) > MOST_ENTRIES:
        found.fail(f"expected at most {MOST_ENTRIES}; found {len(items)}")
    return items


def parse_people(section: Field) -> tuple[dict[str, Person], tuple[str, ...]]:
    """Return all people by name, and the lines of an allowed-signers file for those whose ssh keys are in the
    policy.
    """
    found = section.get("people")
    people: dict[str, Person] = {}
    signers: list[str] = []
    for name, item in ({} if found is None else found.mapping()).items():
        if not re.fullmatch(NAME, name) or name == ANYONE or "@" in name:
            item.fail("expected a plain name for a person")
        only(item, PERSON, "a person")
        emails = tuple(word.strip().casefold() for word in read_texts(item, "email"))
        keys = []
        for key in read_texts(item, "key"):
            print_, line = fingerprint(key)
            if not print_:
                item.need("key").fail("expected an ssh public key, or a key's fingerprint (SHA256:… or hex)")
            keys.append(print_)
            owner = emails[0] if emails else name.replace(" ", "-")
            if line:
                signers.append(f'{owner} namespaces="git" {line}')
            elif not print_.startswith("SHA256:"):
                signers.append(
                    f"# key {print_} {owner}"
                )  # read by `store.git.signatures`; ssh passes over it
        logins = tuple(word.strip().removeprefix("@").casefold() for word in read_texts(item, "login"))
        people[name] = Person(name, frozenset(emails), frozenset(logins), frozenset(keys))
    return people, tuple(signers)


def read_texts(item: Field, name: str) -> tuple[str, ...]:
    """Return one text or a list of them; refuse an empty one."""
    found = item.get(name)
    if found is None:
        return ()
    items = found.items() if isinstance(found.value, list) else [found]
    return tuple(entry.text(most=4000, least=1) for entry in items)


def parse_groups(section: Field, names: PolicyNames) -> dict[str, tuple[Person, ...]]:
    found = section.get("groups")
    groups: dict[str, tuple[Person, ...]] = {}
    for name, item in ({} if found is None else found.mapping()).items():
        if name in names.people or name == ANYONE:
            item.fail("expected a name that is no person's")
        groups[name] = tuple(member for entry in item.items() for member in parse_entry(entry, names))
    return groups


def parse_who(field: Field | None, names: PolicyNames) -> tuple[Person, ...] | None:
    """Return the people of a list; None is anyone. Refuse an empty list, which would let nobody answer."""
    if field is None or field.value == ANYONE:
        return None
    items = field.items() if isinstance(field.value, list) else [field]
    if any(item.value == ANYONE for item in items):
        return None
    if not items:
        field.fail("expected somebody; a list of nobody would let no one answer")
    return tuple(dict.fromkeys(member for item in items for member in parse_entry(item, names)))


def parse_entry(item: Field, names: PolicyNames) -> tuple[Person, ...]:
    """Return the people that an entry names: a person, a group, or somebody by e-mail, by `@login`, or by a key's
    fingerprint.
    """
    word = item.text(most=4000, least=1).strip()
    if word in names.groups:
        return names.groups[word]
    if word in names.people:
        return (names.people[word],)
    if (somebody := person_of(word)) is not None:
        return (somebody,)
    known = (*names.people, *names.groups)
    return item.fail(
        f"nobody is called {word!r} here; known are {', '.join(known) or 'no people and no groups'}"
    )


def person_of(text: str) -> Person | None:
    """Return whom an e-mail, an `@login`, a key or its fingerprint names; None for any other word."""
    word = text.strip()
    if word.startswith("@"):
        return Person(word, logins=frozenset((word[1:].casefold(),)))
    if print_ := fingerprint(word)[0]:
        return Person(word, keys=frozenset((print_,)))
    return Person(word, emails=frozenset((address(word),))) if "@" in word else None


def parse_terms(item: Field, names: PolicyNames, above: RuleTerms) -> RuleTerms:
    """Return the terms of this rule; a term that is not given is taken from the terms above."""
    quorum, refusals, within = item.get("quorum"), item.get("refusals"), item.get("within")
    defaults, automatic = item.get("defaults"), item.get("automatic")
    return replace(
        above,
        source=place(item),
        who=parse_who(item.get("who"), names) if item.get("who") else above.who,
        requester_may_answer=flag(item, "requester_may_answer", otherwise=above.requester_may_answer),
        require_signed=flag(item, "require_signed", otherwise=above.require_signed),
        automatic=automatic.boolean() if automatic else above.automatic,
        defaults=defaults.boolean() if defaults else above.defaults,
        quorum=quorum.integer(1, 100) if quorum else above.quorum,
        refusals=refusals.integer(1, 100) if refusals else above.refusals,
        within=parse_within(within) if within else above.within,
    )


def parse_agents(found: Field | None) -> tuple[str, ...] | None:
    """Return the agents that may be started again, from a list of names or a mapping of each name to its commands."""
    if found is None:
        return None
    if isinstance(found.value, dict):
        return tuple(found.value)
    return tuple(entry.text(most=100, least=1) for entry in found.items())


def parse_commands(found: Field | None) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the commands that start and resume each agent: a list of words, never a line for a shell."""
    commands: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, item in each_agent(found).items():
        only(item, (*COMMANDS, *LOADS), "an agent")
        commands[name] = {}
        for kind in COMMANDS:
            words = [entry.text(most=4000) for entry in item.need(kind).items()] if item.get(kind) else []
            if words:
                commands[name][kind] = tuple(words)
    return commands


def parse_loads(found: Field | None) -> dict[str, dict[str, bool]]:
    """Return by agent which parts of the project's own configuration the agent loads when it is resumed."""
    said = {
        name: {kind: load.boolean() for kind in LOADS if (load := item.get(kind)) is not None}
        for name, item in each_agent(found).items()
    }
    return {name: loads for name, loads in said.items() if loads}


def each_agent(found: Field | None) -> Mapping[str, Field]:
    return found.mapping() if found is not None and isinstance(found.value, dict) else {}


def flag(item: Field, name: str, *, otherwise: bool) -> bool:
    found = item.get(name)
    return otherwise if found is None else found.boolean()


def parse_within(field: Field) -> int:
    return duration(field) or field.refuse("a time longer than nothing")


def parse_rule(item: Field, names: PolicyNames, default: RuleTerms) -> PolicyRule:
    only(item, RULE, "a rule")
    name = item.need("name").text(most=100, least=1)
    if not re.fullmatch(NAME, name):
        item.need("name").refuse("a name of letters, digits, space, dot, dash or underscore")
    confidence = item.get("confidence_below")
    # Such a rule is held to beside the one that decides: what it does not say must not narrow that one by the default's terms.
    above = default if confidence is None else RuleTerms()
    return PolicyRule(
        terms=replace(parse_terms(item, names, above), name=name),
        paths=conditions(item, "paths"),
        types=parse_choices(item, "types", tuple(TYPES)),
        priorities=parse_choices(item, "priorities", PRIORITIES),
        agents=conditions(item, "agents"),
        confidence_below=confidence.number(0, 1) if confidence else None,
    )


def conditions(item: Field, name: str) -> tuple[str, ...]:
    found = item.get(name)
    if found is None:
        return ()
    return tuple(entry.text(most=500, least=1) for entry in found.items()) or found.refuse("at least one")


def parse_choices(item: Field, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    found = item.get(name)
    if found is None:
        return ()
    return tuple(entry.one_of(allowed) for entry in found.items()) or found.refuse("at least one")


def parse_path(field: Field) -> str:
    path = field.text(most=500, least=1)
    parts = path.split("/")
    if path.startswith(("/", "-")) or any(part in ("", ".", "..") for part in parts):
        field.refuse("a path inside the repository")
    return path


# The policy as it stands for this repository, and whose signatures count.
#
# It is read from the protected branch (of a server: its own; of a clone: the remote's, as it was last
# fetched; without a remote: the local default branch) and from the machine's git configuration: never
# from a working tree or another branch.


SIGNERS = ".gitgate/allowed_signers"


@dataclass(frozen=True)
class Book:
    """Policies that apply to a repository; every one of them has to agree. `ref` is the protected branch, where
    there is one, and `commit` its commit that they were read from.
    """

    policies: tuple[Policy, ...] = ()
    ref: str | None = None
    commit: str | None = None

    @property
    def terms(self) -> list[RuleTerms]:
        """Terms of all rules, whichever gates they are about."""
        return [t for p in self.policies for t in (p.default, *(rule.terms for rule in p.rules))]

    @property
    def signers_path(self) -> str:
        return next((p.allowed_signers for p in self.policies if p.allowed_signers), SIGNERS)


def protected_refs(desk: Desk) -> list[str]:
    """Return the refs at which the protected branch is looked for, the most reliable first."""
    named = desk.settings.text("protectedBranch")
    usual = [named] if named else [n for n in (desk.settings.git.get("init.defaultbranch", ""), *USUAL) if n]
    # A receiving hook sees no working tree, whether there is one or not; then git's own word counts.
    bare = desk.repo.bare and desk.settings.git.get("core.bare") != "false"
    if bare or desk.settings.flag("server"):
        # A server whose HEAD names a branch that nobody pushed has its policy on the one that they did push. In a working tree
        # that is made for an agent, HEAD is the agent's branch.
        head = "HEAD" if desk.repo.git_dir == desk.repo.common_dir else MAIN_HEAD
        return [f"refs/heads/{named}"] if named else [head, *(f"refs/heads/{name}" for name in usual)]
    remote = policy_remote(desk)
    if remote is None:
        return [f"refs/heads/{name}" for name in usual]
    return [f"refs/remotes/{remote}/{name}" for name in (usual if named else ["HEAD", *usual])]


def policy_remote(desk: Desk) -> str | None:
    """Return the remote whose protected branch holds the policy. A file of the working tree, the environment or the
    current branch may choose where gates go; none of these may choose whose policy counts.
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
    """Return the policies as they are now; raise BrokenPolicy where one cannot be read, so that nothing is allowed."""
    found = read_rules_file(desk)
    here = [] if found is None else [policy_in_file(found)]
    policies = tuple(policy for policy in (*here, *machine_policies(desk)) if policy is not None)
    return Book(policies, ref_of(found), None if found is None else found.commit)


def read_rules_file(desk: Desk) -> Protected | None:
    """Return the protected branch's file of rules; None where it has nothing of that name, or no branch is there.

    Refuse whatever else stands there under its name: a link, a folder, another repository, an object that is not here. To take
    it for no rules would grant what they forbid.
    """
    refs, objects = protected_refs(desk), desk.records.objects
    found = read_protected(desk.refs, objects, FILE, refs)
    tip = protected_tip(desk.refs, objects, refs) if found is None else found.commit
    (tree,) = objects.find([f"{tip}^{{tree}}"]) if tip else (None,)
    listed = parse_history_tree(tree.payload, len(tree.oid) // 2) if tree is not None else ()
    mode = next((entry.mode for entry in listed if entry.name == os.fsencode(FILE)), "")
    if mode and (found is None or not mode.startswith(OF_FILES)):
        kind = "not to be read here" if mode.startswith(OF_FILES) else f"{mode_kind(mode)}, and no file"
        raise BrokenPolicy(
            f"{FILE} on the protected branch ({tip}) is {kind}", hint="git fetch, or make it a file there"
        )
    if found is None:
        refuse_absent(desk, refs)
    return found


OF_FILES = "100"
"""Begins the mode of every file, those of old trees included."""


def refuse_absent(desk: Desk, refs: Sequence[str]) -> None:
    """Refuse a protected branch that is configured by its name, and is not here: nobody can say what stands on it."""
    if desk.settings.text("protectedBranch") and desk.refs.get(refs[0]) is None:
        raise BrokenPolicy(
            f"gitgate.protectedBranch names {refs[0]}, which is not here, so that no policy can be read",
            hint="git fetch, or mend it: git config gitgate.protectedBranch main",
        )


def ref_of(found: Protected | None) -> str | None:
    if found is None:
        return None
    name = found.source.rpartition(":")[0]
    return name if name in HEADS_OF_TREES else f"refs/{name}"


def policy_in_file(found: Protected) -> Policy | None:
    if not may_have(found.data, "policy"):
        return None
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
    """Return the policies of this machine's own configuration, which apply on top of the repository's."""
    found: list[Policy | None] = [closed_by(name) for name in tightened_once(desk.settings.git)]
    file = desk.settings.text("policyFile")
    if file:
        policy = policy_in_file(Protected(read_machine_file(desk, Path(file)), file))
        found.append(policy and replace(policy, own=True))
    return found


def closed_by(name: str) -> Policy:
    """Return a policy under which nobody answers: a setting that is gone would have asked for more than anybody asks for now."""
    key = f"gitgate.{name}"
    why = f"{key} is gone, and still set here: write {GONE[name].partition(';')[0]}; then: git config --unset-all {key}"
    return Policy(RuleTerms(key, defaults=False, automatic=False, source="git config", closed=why), own=True)


def read_machine_file(desk: Desk, place: Path) -> bytes:
    """Read a file of the machine's own; refuse one inside a working tree, as it came with a branch."""
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
    """Return the allowed signers whose keys are trusted: the protected branch's file and the policy's own keys.

    None where there are neither: git then uses the machine's own configuration. Empty, so that no signature is
    good, where that configuration names a file of a branch, or where the policy or the file that it names cannot
    be read.
    """
    try:
        book = load_book(desk) if book is None else book
    except GateError:
        return b""  # nobody's signature is good while nobody can say whose keys count
    at = book.commit or book.ref
    refs = [at] if at else protected_refs(desk)
    file = read_protected(desk.refs, desk.records.objects, book.signers_path, refs)
    lines = [line for policy in book.policies for line in policy.signers]
    named = any(policy.allowed_signers for policy in book.policies)
    if file is None and not lines:
        return b"" if named or configured_in_tree(desk) else None
    return b"".join((file.data + b"\n" if file else b"", "".join(f"{line}\n" for line in lines).encode()))


def configured_in_tree(desk: Desk) -> bool:
    """Return whether git's own allowed signers are a file of the working tree: an agent could have added itself to
    it.
    """
    name = desk.settings.git.get("gpg.ssh.allowedsignersfile", "")
    if not name or desk.repo.top is None:
        return False
    home = desk.settings.env.get("HOME", "/")
    place = Path(home, name[2:]) if name.startswith("~/") else Path(desk.repo.top, name)
    return place.resolve().is_relative_to(desk.repo.top.resolve())
