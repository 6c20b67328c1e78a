"""What a project lets its agents do: as the protected branch has it, and not as the agent's own branch has."""

from __future__ import annotations

import json

import pytest

from gitgate.errors import Failure
from gitgate.service.bylaws import permissions
from resuming import Seat

RULES = {"allow": ["Bash(make test)"], "deny": ["Bash(rm:*)", "Read(./.env)"], "ask": ["WebFetch"]}


def publish(seat: Seat, text: str) -> None:
    """Commit the settings on the protected branch."""
    seat.clone.write(".claude/settings.json", text)
    seat.clone.git("add", "-A")
    seat.clone.git("commit", "-q", "-m", "Say what agents may do")
    seat.clone.git("push", "-q", "origin", "main")


def test_the_protected_branchs_rules(ann: Seat) -> None:
    """Rules on tools, and nothing that is a program or widens where they hold."""
    more = {**RULES, "defaultMode": "bypassPermissions", "additionalDirectories": ["/"]}
    publish(ann, json.dumps({"permissions": more, "hooks": {"Stop": []}, "env": {"A": "b"}}))
    assert permissions(ann.desk, "claude") == RULES
    assert permissions(ann.desk, "codex") == {}


def test_an_agents_own_branch_says_nothing(ann: Seat) -> None:
    """Neither its working tree nor its commits."""
    publish(ann, json.dumps({"permissions": RULES}))
    ann.clone.git("checkout", "-q", "-b", "topic")
    ann.clone.write(".claude/settings.json", json.dumps({"permissions": {"allow": ["Bash"]}}))
    assert permissions(ann.desk, "claude") == RULES
    ann.clone.git("commit", "-q", "-a", "-m", "Let me do anything")
    assert permissions(ann.desk, "claude") == RULES


def test_none(ann: Seat) -> None:
    """A project without settings has no rules."""
    assert permissions(ann.desk, "claude") == {}
    publish(ann, json.dumps({"model": "opus", "permissions": {"deny": []}}))
    assert permissions(ann.desk, "claude") == {}


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"permissions": []}', '{"permissions": {"deny": "Bash"}}', '{"permissions": {"deny": [1]}}'],
)
def test_what_cannot_be_read_starts_nothing(ann: Seat, text: str) -> None:
    """What it forbids cannot be known."""
    publish(ann, text)
    with pytest.raises(Failure, match=r"\.claude/settings\.json cannot be read"):
        permissions(ann.desk, "claude")
