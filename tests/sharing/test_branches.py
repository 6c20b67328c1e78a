"""The branch that an agent worked on reaches the shared repository by fast-forward, or not at all and with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.errors import Failure
from gitgate.sharing.branches import Pushed, protected_branch, publish_branch
from support.resuming import Seat
from support.testbed.repositories import Clone


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
    assert publish_branch(willing.desk) == Pushed("main")
    assert bare.git("rev-parse", "main") == tip
    assert publish_branch(willing.desk) is None


def test_a_new_branch(willing: Seat, bare: Clone) -> None:
    """One that is not there yet is made there."""
    willing.clone.git("checkout", "-q", "-b", "topic")
    tip = commit(willing.clone, "more")
    assert publish_branch(willing.desk) == Pushed("topic")
    assert bare.git("rev-parse", "topic") == tip


def test_nothing_that_was_not_agreed_to(ann: Seat, alone: Seat) -> None:
    """Without consent, without a remote, or on no branch nothing is pushed."""
    commit(ann.clone, "more")
    assert publish_branch(ann.desk) is None
    assert publish_branch(alone.desk) is None
    ann.clone.git("config", "gitgate.publishWork", "true")
    ann.clone.git("checkout", "-q", "--detach")
    assert publish_branch(ann.desk) is None


def test_a_branch_that_went_on(willing: Seat, bob: Seat, bare: Clone) -> None:
    """Nobody's commits are pushed over, and nobody's are lost with the checkout: both are merged."""
    bob.clone.commit("theirs", theirs="t")
    bob.clone.git("push", "-q", "origin", "main")
    tip = commit(willing.clone, "ours")
    assert publish_branch(willing.desk) == Pushed(
        "main", how="merged with 1 commit that reached main meanwhile"
    )
    assert bare.git("rev-parse", "main^1", "main^2").split() == [bob.clone.git("rev-parse", "HEAD"), tip]


def test_a_branch_that_conflicts(willing: Seat, bob: Seat, bare: Clone) -> None:
    """What is here is on a branch of its own, which says why."""
    commit(bob.clone, "theirs")
    bob.clone.git("push", "-q", "origin", "main")
    tip = commit(willing.clone, "ours")
    why = "main went on by 1 commit meanwhile, and conflicts in file.txt"
    assert publish_branch(willing.desk) == Pushed(f"gate/{tip[:10]}", why, moved=True)
    assert bare.git("rev-parse", f"gate/{tip[:10]}") == tip


def test_a_branch_that_was_rewritten(willing: Seat, bob: Seat, bare: Clone) -> None:
    """As by a rebase: ours go on top of it. Where something was taken out it does not come back."""
    bob.clone.commit("theirs", theirs="t")
    bob.clone.git("push", "-q", "origin", "main")
    willing.clone.git("pull", "-q")
    commit(willing.clone, "ours")
    bob.clone.git("commit", "-q", "--amend", "-m", "theirs, reworded")
    bob.clone.git("push", "-q", "--force", "origin", "main")
    assert publish_branch(willing.desk) == Pushed(
        "main", how="rebased onto main, which was rewritten meanwhile"
    )
    assert bare.git("log", "-2", "--format=%s", "main") == "ours\ntheirs, reworded"
    willing.clone.git("fetch", "-q")
    willing.clone.git("reset", "-q", "--hard", "origin/main")
    tip = commit(willing.clone, "more")
    bob.clone.git("reset", "-q", "--hard", "HEAD~1")
    bob.clone.commit("another", another="a")
    bob.clone.git("push", "-q", "--force", "origin", "main")
    own = Pushed(f"gate/{tip[:10]}", "main was rewritten meanwhile", moved=True)
    assert publish_branch(willing.desk) == own


def test_a_branch_that_was_deleted(willing: Seat, bare: Clone) -> None:
    """It is not made again."""
    willing.clone.git("checkout", "-q", "-b", "topic")
    willing.clone.git("push", "-q", "origin", "topic")
    tip = commit(willing.clone, "more")
    bare.git("update-ref", "-d", "refs/heads/topic")
    why = "topic was deleted meanwhile, and is not made again"
    assert publish_branch(willing.desk) == Pushed(f"gate/{tip[:10]}", why, moved=True)
    assert bare.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [
        f"gate/{tip[:10]}",
        "main",
    ]


def test_a_server_that_refuses_it(willing: Seat, bare: Clone) -> None:
    """The server's reason is passed on."""
    hook = Path(bare.path) / "hooks/update"
    hook.write_text("#!/bin/sh\necho 'no pushes on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    commit(willing.clone, "more")
    with pytest.raises(Failure, match="main was not pushed to origin"):
        publish_branch(willing.desk)


@pytest.mark.parametrize(
    "path", [".gitgate.yml", ".gitgate/allowed_signers", "CLAUDE.md", "a/.claude/settings.json"]
)
def test_a_policy_is_changed_by_people(willing: Seat, bare: Clone, path: str) -> None:
    """On the branch that it is read from; the commits are kept on one of their own, which can be merged."""
    before = bare.git("rev-parse", "main")
    willing.clone.commit("Who decides", **{path: "policy: {}\n"})
    tip = willing.clone.git("rev-parse", "HEAD")
    own = Pushed(f"gate/{tip[:10]}", f"on main people alone change {path}")
    assert publish_branch(willing.desk) == own
    assert publish_branch(willing.desk) is None
    assert (bare.git("rev-parse", "main"), bare.git("rev-parse", own.branch)) == (before, tip)
    willing.clone.git("checkout", "-q", "-b", "topic")
    assert publish_branch(willing.desk) == Pushed("topic")


def test_a_job_moves_its_own_branch(willing: Seat, bare: Clone) -> None:
    """And makes new ones; what somebody has there already is not moved by an agent that was put elsewhere."""
    willing.clone.git("config", "gitgate.jobBranch", "topic")
    before = bare.git("rev-parse", "main")
    tip = commit(willing.clone, "more")
    assert publish_branch(willing.desk) == Pushed(
        f"gate/{tip[:10]}", "the agent was put on topic, and main is not moved for it"
    )
    assert bare.git("rev-parse", "main") == before
    for branch in ("topic", "other"):
        willing.clone.git("checkout", "-q", "-b", branch)
        assert publish_branch(willing.desk) == Pushed(branch)
    commit(willing.clone, "still more")
    assert str(publish_branch(willing.desk)).count("gate/") == 1


def test_the_name_of_the_protected_branch(willing: Seat, alone: Seat, bare: Clone) -> None:
    """Of a clone, by what the remote's HEAD is, or by the setting; of one without a remote; and none where there is none."""
    assert protected_branch(willing.desk) == "main"
    willing.clone.git("update-ref", "refs/remotes/origin/a/b", "HEAD")
    willing.clone.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/a/b")
    assert protected_branch(willing.desk) == "a/b"
    willing.clone.git("config", "gitgate.protectedBranch", "main")
    assert protected_branch(willing.desk) == "main"
    willing.clone.git("config", "gitgate.protectedBranch", "gone")
    assert protected_branch(willing.desk) == ""
    assert protected_branch(alone.desk) == "main"
