"""The branch that an agent worked on reaches the shared repository by fast-forward, or not at all and with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.errors import Failure
from gitgate.service.branches import publish_branch
from resuming import Seat
from testbed.repositories import Clone


def commit(clone: Clone, text: str) -> str:
    (clone.path / "file.txt").write_text(text)
    clone.git("add", "file.txt")
    clone.git("commit", "-q", "-m", text)
    return clone.git("rev-parse", "HEAD")


@pytest.fixture
def willing(ann: Seat) -> Seat:
    """A clone whose person agreed that work is published."""
    ann.clone.git("config", "gitgate.publishWork", "true")
    return ann


def test_what_the_branch_gained(willing: Seat, bare: Clone) -> None:
    """It goes there once; a second time there is nothing to push."""
    tip = commit(willing.clone, "more")
    assert publish_branch(willing.desk) == "main"
    assert bare.git("rev-parse", "main") == tip
    assert publish_branch(willing.desk) == ""


def test_a_new_branch(willing: Seat, bare: Clone) -> None:
    """One that is not there yet is made there."""
    willing.clone.git("checkout", "-q", "-b", "topic")
    tip = commit(willing.clone, "more")
    assert publish_branch(willing.desk) == "topic"
    assert bare.git("rev-parse", "topic") == tip


def test_nothing_that_was_not_agreed_to(ann: Seat, alone: Seat) -> None:
    """Without consent, without a remote, or on no branch nothing is pushed."""
    commit(ann.clone, "more")
    assert publish_branch(ann.desk) == ""
    assert publish_branch(alone.desk) == ""
    ann.clone.git("config", "gitgate.publishWork", "true")
    ann.clone.git("checkout", "-q", "--detach")
    assert publish_branch(ann.desk) == ""


def test_a_branch_that_went_another_way(willing: Seat, bob: Seat) -> None:
    """Nobody's commits are pushed over."""
    commit(bob.clone, "theirs")
    bob.clone.git("push", "-q", "origin", "main")
    commit(willing.clone, "ours")
    with pytest.raises(Failure, match="went another way") as refused:
        publish_branch(willing.desk)
    assert refused.value.hint == "git fetch origin && git merge origin/main"


def test_a_server_that_refuses_it(willing: Seat, bare: Clone) -> None:
    """The server's reason is passed on."""
    hook = Path(bare.path) / "hooks/update"
    hook.write_text("#!/bin/sh\necho 'no pushes on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    commit(willing.clone, "more")
    with pytest.raises(Failure, match="main was not pushed to origin"):
        publish_branch(willing.desk)
