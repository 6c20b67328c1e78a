"""What doctor says of Claude Code where a person stands: whether plain `claude`, started there, would run our hooks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitgate.context import Desk, open_desk
from gitgate.setup import claude_part
from gitgate.setup.checkup import Finding
from gitgate.setup.hooks_here import examine_hooks
from gitgate.setup.parts import take_steps
from support.testbed.repositories import Clone


@pytest.fixture
def desk(repo: Clone) -> Iterator[Desk]:
    (repo.path / "pkg").mkdir()
    opened = open_desk(repo.path, os.environ)
    yield opened
    opened.close()


@pytest.fixture
def user(home: Path) -> Path:
    """The person's own settings."""
    place = home / ".claude" / "settings.json"
    place.parent.mkdir()
    return place


def said(desk: Desk, folder: str = ".") -> Finding | None:
    return next(examine_hooks(desk, desk.repo.place / folder), None)


def with_claude(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "claude").write_text("#!/bin/sh\n")
    (home / "bin" / "claude").chmod(0o755)
    monkeypatch.setitem(os.environ, "PATH", f"{home / 'bin'}:{os.environ['PATH']}")


def test_nothing_is_said_where_nobody_uses_it(desk: Desk) -> None:
    """Neither is it installed, nor the project set up for it."""
    assert said(desk) is None


def test_a_projects_hooks_hold_at_the_top_alone(desk: Desk) -> None:
    """In a folder below it is said that nothing waits, where the hooks stand, and what mends it."""
    take_steps([part.write() for part in claude_part(desk)])
    top, below = said(desk), said(desk, "pkg")
    assert top is not None
    assert below is not None
    assert (top.state, below.state) == ("good", "missing")
    assert str(desk.repo.place / ".claude/settings.json") in below.words
    assert "git gate wrap" in below.words
    assert "claude plugin install gitgate@gitgate" in below.mend


def test_a_plugin_holds_in_every_folder(desk: Desk, user: Path) -> None:
    """One that is switched off holds nowhere."""
    take_steps([part.write() for part in claude_part(desk)])
    for on, state in ((True, "good"), (False, "missing")):
        user.write_text(json.dumps({"enabledPlugins": {"gitgate@gitgate": on, "other@place": True}}))
        found = said(desk, "pkg")
        assert found is not None
        assert found.state == state


def test_hooks_in_ones_own_settings_hold_in_every_folder(desk: Desk, user: Path) -> None:
    """As they may be put there by hand."""
    take_steps([part.write() for part in claude_part(desk)])
    user.write_text((desk.repo.place / ".claude/settings.json").read_text())
    found = said(desk, "pkg")
    assert found is not None
    assert (found.state, "your own settings" in found.words) == ("good", True)


def test_hooks_that_are_switched_off_are_wrong_where_calls_need_approval(
    desk: Desk, repo: Clone, user: Path
) -> None:
    """Elsewhere it is a choice."""
    take_steps([part.write() for part in claude_part(desk)])
    user.write_text(json.dumps({"disableAllHooks": True, "enabledPlugins": {"gitgate@gitgate": True}}))
    found = said(desk)
    assert found is not None
    assert (found.state, str(user) in found.words) == ("missing", True)
    repo.commit("rules", **{".gitgate.yml": "approvals:\n  - Bash(terraform apply*)\n"})
    found = said(desk)
    assert found is not None
    assert found.state == "wrong"


def test_rules_that_no_hook_would_hold_are_told(
    repo: Clone, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is there, calls need approval, and nothing was set up."""
    with_claude(home, monkeypatch)
    opened = open_desk(repo.path, os.environ)
    try:
        assert said(opened) is None
        repo.commit("rules", **{".gitgate.yml": "approvals:\n  - Bash(terraform apply*)\n"})
        found = said(opened)
        assert found is not None
        assert (found.state, "runs no hook of git gate" in found.words) == ("missing", True)
    finally:
        opened.close()
