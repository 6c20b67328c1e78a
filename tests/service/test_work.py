"""The work that an agent left with its question: looked at from any clone that may have it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitgate.core.drafts import Draft
from gitgate.core.model import Gate, Question
from gitgate.errors import Failure
from gitgate.service.asking import Wishes, ask
from gitgate.service.desk import open_desk
from gitgate.service.syncing import sync
from gitgate.service.work import beside, bring_work, diff_of, worktrees
from resuming import Seat
from testbed.repositories import Clone, run_git


def half_done(seat: Seat) -> Gate:
    seat.clone.write("README", "Another project.\n")
    return seat.ask(push=True)


def test_a_question_without_work(person: object, tmp_path: Path) -> None:
    """Where nothing is committed and nothing was to be taken along there is no difference, and nothing to open."""
    run_git("init", "-q", "empty", cwd=tmp_path)
    with Seat(Clone(tmp_path / "empty")) as seat:
        gate = ask(seat.desk, Draft((Question("answer", "Which?", "text"),)), Wishes(work=False)).gate
        assert diff_of(seat.desk, gate) == ""
        with pytest.raises(Failure, match="has no work"):
            bring_work(seat.desk, gate)


def test_work_that_was_published_is_fetched(ann: Seat, bob: Seat) -> None:
    """By whoever looks at it, and only then."""
    ann.clone.git("config", "gitgate.publishWork", "true")
    gate = half_done(ann)
    sync(bob.desk)
    work = str(gate.opened.work.commit)
    assert not bob.clone.repository.git.ok("cat-file", "-e", work)
    assert "+Another project." in diff_of(bob.desk, bob.now(gate)).splitlines()
    assert bob.clone.repository.git.ok("cat-file", "-e", work)


def test_work_that_stayed_where_it_was(ann: Seat, bob: Seat) -> None:
    """Who wants to see it is told where it is; a list goes on without its numbers."""
    gate = half_done(ann)
    sync(bob.desk)
    with pytest.raises(Failure, match="it stayed where scripted asked"):
        diff_of(bob.desk, bob.now(gate))
    assert diff_of(bob.desk, bob.now(gate), stat=True) == ""


def test_colours_are_put_on_after_everything_else_was_taken_off(alone: Seat) -> None:
    """What is added is green, what goes is red, and an escape in the text itself is no colour."""
    alone.clone.write("README", "Another \x1b[32mproject.\n")
    text = diff_of(alone.desk, alone.ask(), color=True)
    lines = text.splitlines()
    assert "\x1b[31m-A project.\x1b[0m" in lines
    added = next(line for line in lines if "Another" in line)
    assert added.startswith("\x1b[32m+Another")
    assert added.count("\x1b") == 2
    assert any(line.startswith("\x1b[36m@@") for line in lines)


def test_a_place_that_is_taken(alone: Seat) -> None:
    """Nothing is opened over what is there; how to name another place is said."""
    gate = alone.ask()
    place = beside(alone.desk, gate)
    place.mkdir()
    with pytest.raises(Failure, match="already there") as refused:
        beside(alone.desk, gate)
    assert refused.value.hint == f"git gate worktree {gate.id[:6]} DIR"


def test_where_agents_from_elsewhere_work(alone: Seat, bare: object, tmp_path: Path) -> None:
    """In a folder that was named, else in the person's own, else, where nobody has a home, in the repository."""
    alone.clone.git("config", "gitgate.worktrees", str(tmp_path / "named"))
    assert worktrees(alone.desk) == tmp_path / "named"
    alone.clone.git("config", "--unset", "gitgate.worktrees")
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    homeless = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_STATE_HOME")}
    assert worktrees(open_desk(alone.clone.path, own)).is_relative_to(tmp_path / "state/gitgate/worktrees")
    assert worktrees(open_desk(alone.clone.path, homeless)) == alone.clone.path / ".git/gitgate/worktrees"
