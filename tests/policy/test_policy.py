"""Policy: what is read from a document, and what it means for one gate and one person."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.errors import BadDocument
from gitgate.policy import Policy, fingerprint, parse_policy
from gitgate.policy.ruling import RulingCase, SaidHow, Who, may_default, needed, rule_on

ADA, BOB, EVE = "Ada <ada@example.org>", "Bob <bob@example.org>", "Eve <eve@example.org>"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFkh0000000000000000000000000000000000000000 ada@laptop"
NOW = SaidHow("2030-01-02T00:00:00Z")
PEOPLE = """
policy:
  people:
    ada: {email: [ada@example.org, ada@home.example], login: ada}
    bob: {email: bob@example.org, login: [bob]}
  groups: {owners: [ada, bob], "on call": ["@eve", "eve@example.org"]}
"""


def policy_of(text: str) -> Policy:
    found = parse_policy(codec.parse_document(text.encode(), "policy.yml"))
    assert found is not None
    return found


def with_rules(*lines: str, more: str = "") -> list[Policy]:
    return [policy_of(PEOPLE + more + "  rules:\n" + "".join(f"    - {{{line}}}\n" for line in lines))]


def case(**terms: object) -> RulingCase:
    plain = {
        "id": "2345672345", "types": ("choice",), "priority": "normal", "agent": "coder",
        "requester": BOB, "asked_at": "2030-01-01T00:00:00Z",
    }  # fmt: skip
    return RulingCase(**{**plain, **terms})  # type: ignore[arg-type]


def allows(policies: list[Policy], who: str | Who, said: SaidHow = NOW, **terms: object) -> str:
    """`yes` and the rules, or the rule that refuses."""
    known = Who(who) if isinstance(who, str) else who
    ruling = rule_on(policies, case(**terms), known, said)
    return f"{'yes' if ruling.allowed else 'no'}: {ruling.rule}"


def test_a_rule_about_confidence_holds_beside_the_one_that_decides() -> None:
    """It adds to whatever rule the paths choose, and takes nothing of it away, wherever it stands."""
    rules = with_rules(
        "name: unsure, confidence_below: 0.8, quorum: 2",
        'name: data, paths: ["db/**"], who: [bob]',
        "name: rest, who: [ada]",
    )
    on_data: dict[str, Any] = {"paths": ("db/a.sql",), "requester": ADA, "quorum": 2}
    assert allows(rules, BOB, **on_data, confidence=0.9) == "yes: data"
    assert allows(rules, BOB, **on_data, confidence=0.5) == "yes: unsure, data"
    assert allows(rules, ADA, **on_data, confidence=0.5) == "no: data"
    assert [needed(rules, case(confidence=sure))[0] for sure in (0.9, 0.8, 0.79, None)] == [1, 1, 2, 2]


def test_a_rule_about_confidence_chooses_no_milder_one() -> None:
    """An agent that says it is unsure is not let off by it; on other paths the rule does not hold."""
    milder = with_rules(
        "name: unsure, confidence_below: 0.8, who: anyone", "name: rest, who: [ada], quorum: 2"
    )
    assert allows(milder, EVE, quorum=2, confidence=0.1) == "no: rest"
    assert needed(milder, case(confidence=0.1))[0] == 2
    apart = with_rules('name: unsure, confidence_below: 0.8, paths: ["db/**"], quorum: 3', "name: rest")
    found = [needed(apart, case(confidence=0.1, paths=paths))[0] for paths in (("src/a",), ("db/a",), None)]
    assert found == [1, 3, 3]


def test_what_a_rule_about_confidence_does_not_say_it_does_not_ask_for() -> None:
    """The default's people do not narrow another rule's."""
    rules = with_rules(
        "name: unsure, confidence_below: 0.8, quorum: 2",
        'name: data, paths: ["db/**"], who: [bob]',
        more="  who: [ada]\n",
    )
    assert allows(rules, BOB, requester=ADA, quorum=2, paths=("db/a",), confidence=0.1) == "yes: unsure, data"


def test_without_a_policy_there_is_none() -> None:
    """A document of settings grants nothing and forbids nothing."""
    assert parse_policy(codec.parse_document(b"settings: {push: true}", "x")) is None


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("policy:\n  quorun: 2", 2, "policy.quorun", "there is no such field"),
        ("policy:\n  who: [zoe]", 2, "policy.who[0]", "nobody is called 'zoe'"),
        ("policy:\n  who: []", 2, "policy.who", "a list of nobody"),
        ("policy:\n  quorum: 0", 2, "policy.quorum", "a whole number from 1 to 100"),
        ("policy:\n  require_signed: yes", 2, "policy.require_signed", "true or false"),
        ("policy:\n  rules:\n    - {who: anyone}", 3, "policy.rules[0].name", "missing"),
        ("policy:\n  rules:\n    - {name: a}\n    - {name: a}", 4, "policy.rules[1].name", "once"),
        ("policy:\n  rules:\n    - {name: a, types: [aproval]}", 3, "policy.rules[0].types[0]", "did you mean approval"),
        ("policy:\n  rules:\n    - {name: a, confidence_below: 80}", 3, "policy.rules[0].confidence_below", "a number from 0 to 1"),
        ("policy:\n  rules:\n    - {name: a, paths: []}", 3, "policy.rules[0].paths", "at least one"),
        ("policy:\n  rules:\n    - {name: a, within: soon}", 3, "policy.rules[0].within", "a duration"),
        ("policy:\n  people:\n    ada: {key: abc}", 3, "policy.people.ada.key", "an ssh public key"),
        ("policy:\n  people:\n    ada: {mail: a}", 3, "policy.people.ada.mail", "there is no such field"),
        ("policy:\n  people: {ada: {}}\n  groups: {ada: []}", 3, "policy.groups.ada", "no person's"),
        ("policy:\n  allowed_signers: ../keys", 2, "policy.allowed_signers", "inside the repository"),
        ("policy:\n  agents:\n    claude: {hooks: true}", 3, "policy.agents.claude.hooks", "there is no such field"),
        ("policy:\n  agents:\n    claude: {project_settings: on}", 3, "policy.agents.claude.project_settings", "true or false"),
        ("policy: 3", 1, "policy", "a mapping"),
        ("policy:", 1, "policy", "it is empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(text: str, line: int, field: str, words: str) -> None:
    """With file, line and field: a policy that cannot be read whole is not read at all."""
    with pytest.raises(BadDocument, match=r"^policy\.yml, line") as wrong:
        policy_of(text)
    assert (wrong.value.line, wrong.value.field) == (line, field)
    assert words in wrong.value.expected


def test_what_an_agent_loads_of_the_projects_own() -> None:
    """Each part by name; what is not said is neither allowed nor forbidden."""
    book = policy_of(
        "policy:\n  agents: {claude: {project_settings: true}, coder: {start: [run]}, codex: {}}"
    )
    assert book.loads == {"claude": {"project_settings": True}}
    assert book.commands["coder"] == {"start": ("run",)}
    assert book.agents == ("claude", "coder", "codex")


def test_the_first_rule_that_fits_decides() -> None:
    """By type, priority and agent; where none fits, the policy's own terms."""
    book = with_rules(
        "name: urgent, priorities: [urgent], who: ada",
        "name: yes-no, types: [approval], who: owners",
        'name: bots, agents: ["bot-*"], who: bob',
        more="  who: anyone\n",
    )
    assert allows(book, EVE) == "yes: default"
    assert allows(book, EVE, types=("text", "approval")) == "no: yes-no"
    assert allows(book, BOB, types=("approval",)) == "yes: yes-no"
    assert allows(book, BOB, types=("approval",), priority="urgent") == "no: urgent"
    assert (allows(book, ADA, agent="bot-7"), allows(book, BOB, agent="bot-7")) == ("no: bots", "yes: bots")


def test_who_touches_more_is_held_to_more() -> None:
    """Each path has its rule, and all of them have to agree: a harmless path opens nothing."""
    book = with_rules(
        'name: docs, paths: ["docs/**"], who: anyone',
        'name: data, paths: ["db/**"], who: ada',
        "name: rest, who: owners",
    )
    assert allows(book, EVE, paths=("docs/a.md",)) == "yes: docs"
    assert allows(book, EVE, paths=("docs/a.md", "core.py")) == "no: rest"
    assert allows(book, BOB, paths=("docs/a.md", "core.py")) == "yes: docs, rest"
    assert allows(book, BOB, paths=("docs/a.md", "db/schema.sql")) == "no: data"
    assert allows(book, ADA, paths=("db/schema.sql", "core.py")) == "yes: data, rest"
    assert allows(book, BOB, paths=None) == "no: data", "what is touched is not known, so it may be anything"


def test_a_person_by_each_of_their_names() -> None:
    """By any address, by a login that a server vouches for, by a key; another's key is nobody's."""
    print_, _ = fingerprint(KEY)
    book = [policy_of(f'policy:\n  people: {{ada: {{email: ada@example.org, key: "{KEY}"}}}}\n  who: ada')]
    assert allows(book, ADA) == "yes: default"
    assert allows(book, Who(ADA, print_, "ada@example.org")) == "yes: default"
    assert allows(book, Who(ADA, "SHA256:" + "a" * 43, "ada@example.org")) == "no: default"
    logins = with_rules("name: all, who: [owners, on call]")
    assert allows(logins, "A. <ADA@home.example>") == "yes: all"
    assert allows(logins, Who(EVE, login="Eve")) == "yes: all"
    assert allows(logins, Who(ADA, login="mallory")) == "no: all"


def test_a_signature_is_needed_and_has_to_be_of_the_name() -> None:
    """An unsigned answer is not taken; a good signature in somebody else's name neither."""
    book = with_rules("name: signed, who: owners, require_signed: true")
    assert allows(book, ADA) == "no: signed"
    assert allows(book, Who(ADA, "SHA256:x", "ada@example.org")) == "yes: signed"
    assert allows(book, Who(BOB, "SHA256:x", "ada@example.org")) == "no: signed"
    assert allows(book, Who(EVE, "SHA256:x", "eve@example.org")) == "no: signed"


def test_the_requester_under_any_address() -> None:
    """Whose agent asked may be kept from answering, also as somebody else."""
    book = with_rules("name: four-eyes, requester_may_answer: false")
    assert allows(book, BOB) == "no: four-eyes"
    assert allows(book, ADA) == "yes: four-eyes"
    assert allows(book, ADA, requester="Ada <ada@home.example>") == "no: four-eyes"
    assert allows(book, Who("x <x@x>", "SHA256:x", "bob@example.org")) == "no: four-eyes"


def test_time_scripts_and_numbers() -> None:
    """A limit in time, answers of scripts, and a question that wants fewer than the rule."""
    book = with_rules(
        "name: a, within: 12h", "name: b, types: [text], automatic: false, quorum: 2, refusals: 2"
    )[:1]
    assert allows(book, ADA) == "no: a"
    assert allows(book, ADA, SaidHow("2030-01-01T12:00:00Z")) == "yes: a"
    strict = with_rules("name: b, automatic: false, quorum: 2, refusals: 1")
    assert allows(strict, ADA) == "no: b"
    assert allows(strict, ADA, quorum=3) == "yes: b"
    assert allows(strict, ADA, quorum=2, refusals=2) == "no: b"
    assert allows(strict, ADA, SaidHow(NOW.at, "signal"), quorum=2) == "no: b"
    assert needed(strict, case()) == (2, 1)
    assert needed([], case()) == (1, 1)


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        ((), "no: automatic"),
        (("name: a",), "no: automatic"),
        (("name: a, automatic: true",), "yes: a"),
        (("name: a, automatic: false",), "no: a"),
        (('name: a, paths: ["db/**"], automatic: true', "name: b"), "no: automatic"),
        (('name: a, paths: ["db/**"], automatic: true', "name: b, automatic: true"), "yes: a, b"),
        (('name: a, paths: ["db/**"], automatic: true', "name: b, automatic: false"), "no: b"),
    ],
)
@pytest.mark.parametrize("via", ["join --yes", "automatic"])
def test_what_nobody_confirmed_counts_where_every_rule_says_so(
    rules: tuple[str, ...], answer: str, via: str
) -> None:
    """In so many words, for each path that the work touches; a rule that says nothing of it is not enough."""
    book = with_rules(*rules)[:1] if rules else []
    assert allows(book, ADA, SaidHow(NOW.at, via), paths=("db/a.sql", "x.py")) == answer


def test_a_script_answers_unless_it_is_kept_out() -> None:
    """`signal` and Python need no leave of their own."""
    for via in ("signal", "python", "cli", "join"):
        assert allows(with_rules("name: a")[:1], ADA, SaidHow(NOW.at, via)) == "yes: a"


def test_whom_a_question_is_for() -> None:
    """It may only tighten: among those who may, only those that it names."""
    book = with_rules("name: a, who: owners")
    assert allows(book, ADA, to=("bob",)) == "no: to"
    assert allows(book, BOB, to=("bob",)) == "yes: a"
    assert allows(book, BOB, to=("owners",)) == "yes: a"
    assert allows(book, EVE, to=("eve",)) == "no: a"
    forged = Who("bob <ada@example.org>", "SHA256:x", "ada@example.org")
    assert allows(book, forged, to=("bob",)) == "no: to", (
        "a signed name is the key's, not what it calls itself"
    )


def test_defaults() -> None:
    """As they are without a policy, unless a rule says so; nobody's default can sign or agree."""
    quiet, never, ever, signed = (
        with_rules(f"name: a{more}")
        for more in ("", ", defaults: false", ", defaults: true", ", require_signed: true")
    )
    assert [may_default(quiet, case(), otherwise=otherwise).allowed for otherwise in (True, False)] == [
        True,
        False,
    ]
    assert not may_default(never, case(), otherwise=True).allowed
    assert may_default(ever, case(), otherwise=False).allowed
    assert not may_default(signed, case(), otherwise=True).allowed


def test_every_policy_has_to_agree() -> None:
    """That of the machine beside that of the repository."""
    both = [*with_rules("name: a, who: owners"), policy_of("policy: {who: [ada@example.org]}")]
    assert (allows(both, ADA), allows(both, BOB)) == ("yes: a, default", "no: default")


@given(st.text(max_size=300))
def test_any_text_is_a_policy_or_an_error(text: str) -> None:
    """Nothing else ever comes of it."""
    for body in (text, "policy:\n  " + text):
        with contextlib.suppress(BadDocument):
            parse_policy(codec.parse_document(body.encode("utf-8", "replace"), "x"))


@pytest.mark.parametrize(
    "key", ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa " + "A" * 60, "SHA256:short", "12 34"]
)
def test_what_is_no_key_has_no_fingerprint(key: str) -> None:
    """Also one whose inside says that it is of another kind."""
    assert fingerprint(key) == ("", "")
