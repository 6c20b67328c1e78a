"""Rules: which calls need approval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.config import IN_FILE
from gitgate.document import codec
from gitgate.errors import BadDocument
from gitgate.questions.call_rules import is_near, parse_rules
from gitgate.questions.calls import CallPlace, find_rule

PLACE = CallPlace("/r", "/r/sub", {"/r": "/real", "/link/x.sql": "/real/migrations/x.sql"})


def matches(rule: str, tool: str, **arguments: object) -> bool:
    rules = parse_rules(codec.parse_document(f'approvals:\n  - "{rule}"\n'.encode(), "rules"))
    return find_rule(rules, tool, arguments, PLACE) is not None


@pytest.mark.parametrize(
    ("rule", "command", "wanted"),
    [
        ("Bash(terraform apply*)", "terraform apply -auto-approve", True),
        ("Bash(terraform apply*)", "terraform plan", False),
        ("Bash(terraform apply*)", "cd infra && TF=1 terraform   apply", True),
        ("Bash(terraform apply*)", "sudo -E terraform apply", True),
        ("Bash(terraform apply*)", "bash -c 'terraform apply'", True),
        ("Bash(terraform apply*)", "/usr/bin/terraform apply", True),
        ("Bash(terraform apply*)", "echo ok\nterraform apply", True),
        ("Bash(terraform apply*)", "echo terraform apply", False),
        ("Bash(npm publish:*)", "npm publish --tag next", True),
        ("Bash(npm publish:*)", "npm test", False),
        ("Bash", "ls", True), ("Bash(*)", "ls", True), ("Bash()", "ls", True),
        ("Bash(*prod*)", "deploy --to=prod-eu", True),
        ("Bash(rm -rf ?)", "rm -rf x", True), ("Bash(rm -rf ?)", "rm -rf xy", False),
        ("Write(x)", "ls", False), ("*", "ls", True),
    ],
)  # fmt: skip
def test_commands(rule: str, command: str, wanted: bool) -> None:
    """A command is meant wherever in a line it is run, and not where it is only named."""
    assert matches(rule, "Bash", command=command) is wanted


@pytest.mark.parametrize(
    ("rule", "path", "wanted"),
    [
        ("Write(migrations/**)", "/r/migrations/1.sql", True),
        ("Write(migrations/**)", "/r/migrations/a/b/1.sql", True),
        ("Write(migrations/)", "/r/migrations/a/1.sql", True),
        ("Write(migrations)", "/r/migrations/a/1.sql", True),
        ("Write(migrations/*)", "/r/migrations/1.sql", True),
        ("Write(**/*.sql)", "/r/a/b/c.sql", True), ("Write(**/*.sql)", "/r/c.sql", True),
        ("Write(*.sql)", "/r/a/c.sql", False),
        ("Write(migrations/**)", "../migrations/1.sql", True),
        ("Write(migrations/**)", "/r/src/../migrations/1.sql", True),
        ("Write(migrations/**)", "/link/x.sql", True),
        ("Write(migrations/**)", "/r/src/1.sql", False),
        ("Write(migrations/**)", "migrations/1.sql", False),
        ("Write(sub/migrations/**)", "migrations/1.sql", True),
        ("Write(/etc/**)", "/etc/hosts", True),
        ("Write(migrations/**)", "/elsewhere/migrations/1.sql", False),
    ],
)  # fmt: skip
def test_paths(rule: str, path: str, wanted: bool) -> None:
    """From the top of the repository, by whatever way the file is named; every tool that writes is meant."""
    for tool in ("Write", "Edit", "MultiEdit"):
        assert matches(rule, tool, file_path=path) is wanted
    assert not matches(rule, "Read", file_path=path)


def test_other_tools() -> None:
    """By name, and by any text among the arguments."""
    assert matches("mcp__*", "mcp__billing__pay", amount=3)
    assert matches("mcp__billing__*(*prod*)", "mcp__billing__pay", to={"env": ["x", "prod-1"]})
    assert not matches("mcp__billing__*(*prod*)", "mcp__billing__pay", to="test")
    assert matches("WebFetch(https://*.internal/*)", "WebFetch", url="https://a.internal/x")
    assert not matches("mcp__*", "Bash", command="ls")


def test_what_cannot_be_read_needs_approval() -> None:
    """A command that is no text is not let through."""
    assert matches("Bash(terraform apply*)", "Bash", command=["terraform", "apply"])


def test_a_rule_says_more() -> None:
    """Whom to ask, why, and until when."""
    text = "approvals:\n  - call: Bash(x*)\n    why: it costs\n    to: [ann]\n    quorum: 2\n    timeout: 2h\n    on_timeout: fail\n"
    (rule,) = parse_rules(codec.parse_document(text.encode(), "rules"))
    assert (rule.why, rule.to, rule.quorum, rule.timeout, rule.on_timeout) == (
        "it costs",
        ("ann",),
        2,
        7200,
        "fail",
    )


@pytest.mark.parametrize(
    "text",
    [
        "approvals: Bash",
        "approvals:\n  - {why: x}",
        "approvals:\n  - '(x)'",
        "approvals:\n  - {call: Bash, wy: x}",
        "approvals:\n  - 3",
        "approvals:\n  - {call: Bash, timeout: soon}",
    ],
)
def test_a_rule_that_is_misspelt_is_an_error(text: str) -> None:
    """Nobody is to think that a rule holds that does not."""
    with pytest.raises(BadDocument):
        parse_rules(codec.parse_document(text.encode(), "rules"))


def test_many_stars_are_read_quickly() -> None:
    """No pattern takes for ever."""
    assert not matches("Bash(" + "*a" * 12 + "b)", "Bash", command="a" * 300)


@given(
    st.integers(0, 9),
    st.characters(codec="utf-8", categories=("Ll", "Lu", "Nd", "Zs", "Pd")),
    st.integers(0, 3),
)
def test_one_slip_makes_no_other_field(at: int, letter: str, slip: int) -> None:
    """A letter too many, too few, another one, or two that changed places: such a field may be meant for the rules."""
    word = "approvals"
    made = (
        word[:at] + letter + word[at:],
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    )[slip]
    assert is_near(made)
    assert is_near(made.upper())


@pytest.mark.parametrize(
    "name",
    [
        *IN_FILE,
        "allow",
        "agents",
        "flows",
        "people",
        "rules",
        "questions",
        "proposals",
        "größe",
        "",
        "x" * 99,
    ],
)
def test_other_names_are_not_near(name: str) -> None:
    """A later git gate may read a field that this one does not know."""
    assert is_near(name) == (name == "approvals")
