"""Names of refs are whole: no branch and no tag that is called like a ref stands in for it, here or where gates are shared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitgate.audit import load_chronicle
from gitgate.errors import BrokenPolicy, NotAllowed
from gitgate.policy import load_book
from gitgate.sharing.branches import protected_branch
from gitgate.store.git.refs import OPEN
from support.deciding import gate_of, say
from support.resuming import Seat
from support.signing import publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError, run_git

ONLY_BOB, ANYONE = "policy: {who: bob@example.org}\n", "policy: {who: anyone}\n"
# What anybody may push who may push at all, and what git takes for the ref where that is missing.
STARTS = ("refs/tags/", "refs/heads/", "refs/remotes/", "refs/")


def plant(clone: Clone, ref: str, policy: str, *starts: str) -> str:
    """A commit with that policy, under names that git completes a missing `ref` to."""
    blob = clone.git("hash-object", "-w", "--stdin", input=policy)
    tree = clone.git("mktree", input=f"100644 blob {blob}\t.gitgate.yml\n")
    commit = clone.git("commit-tree", tree, "-m", "another policy")
    for start in starts or STARTS:
        clone.git("update-ref", f"{start}{ref}", commit)
    return commit


@pytest.fixture
def fetched(bare: Clone, tmp_path: Path) -> Iterator[Seat]:
    """A clone made by `init` and `fetch`, as a checkout in a job is: it does not know the remote's default branch by its HEAD."""
    publish_policy(bare, ONLY_BOB)
    run_git("init", "-q", str(tmp_path / "fetched"), cwd=tmp_path)
    clone = Clone(tmp_path / "fetched")
    clone.git("remote", "add", "origin", str(bare.path))
    clone.git("fetch", "-q", "origin")
    clone.git("checkout", "-q", "-b", "main", "origin/main")
    with Seat(clone) as seat:
        yield seat


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("start", STARTS)
def test_no_tag_or_branch_chooses_the_policy(fetched: Seat, start: str, packed: bool) -> None:
    """Without `refs/remotes/origin/HEAD` the policy is that of the remote's `main`, whatever is called like the one or the other."""
    for ref in ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "HEAD"):
        plant(fetched.clone, ref, ANYONE, start)
    if packed:
        fetched.clone.git("pack-refs", "--all")
    book = load_book(fetched.desk)
    assert (book.ref, book.commit) == (
        "refs/remotes/origin/main",
        fetched.clone.git("show-ref", "--verify", "--hash", "refs/remotes/origin/main"),
    )
    with pytest.raises(NotAllowed, match=r"it is for bob@example\.org"):
        say(fetched, gate_of(fetched))
    assert protected_branch(fetched.desk) == "main"
    history = load_chronicle(fetched.desk)
    assert history is not None
    assert (history.ref, history.tip) == (book.ref, book.commit)


def test_a_pushed_tag_does_not_choose_it_either(fetched: Seat, bob: Seat) -> None:
    """As it comes: pushed by somebody else, and fetched."""
    commit = plant(bob.clone, "refs/remotes/origin/HEAD", ANYONE, "refs/tags/")
    bob.clone.git("push", "-q", "-f", "origin", "refs/tags/refs/remotes/origin/HEAD")
    fetched.clone.git("fetch", "-q", "origin", "refs/tags/*:refs/tags/*")
    assert fetched.clone.git("rev-parse", "refs/remotes/origin/HEAD") == commit  # so git would have it
    with pytest.raises(NotAllowed, match=r"it is for bob@example\.org"):
        say(fetched, gate_of(fetched))


def test_a_missing_protected_branch_refuses(fetched: Seat) -> None:
    """Whatever tag is called so."""
    fetched.clone.git("config", "gitgate.protectedBranch", "stable")
    for ref in ("refs/remotes/origin/stable", "refs/heads/stable"):
        plant(fetched.clone, ref, ANYONE)
    with pytest.raises(BrokenPolicy, match="refs/remotes/origin/stable, which is not here"):
        load_book(fetched.desk)


@pytest.mark.parametrize("start", STARTS)
def test_a_server_takes_its_policy_from_the_branch_alone(
    bare: Clone, ann: Seat, cli: Command, start: str
) -> None:
    """From a missing `gitgate.protectedBranch` no tag takes over: the push is refused."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    publish_policy(bare, ONLY_BOB)
    bare.git("config", "gitgate.protectedBranch", "stable")
    plant(bare, "refs/heads/stable", ANYONE, start)
    gate = ann.ask(push=False)
    with pytest.raises(GitError, match="refs/heads/stable, which is not here, so that no policy can be read"):
        ann.clone.git("push", "-q", "origin", OPEN + gate.id)
    bare.git("update-ref", "refs/heads/stable", "main")
    ann.clone.git("push", "-q", "origin", OPEN + gate.id)
    assert bare.refs("refs/hitl/")[OPEN + gate.id] == gate.tip


@pytest.mark.parametrize("start", STARTS)
def test_an_unborn_head_is_no_tag(bare: Clone, ann: Seat, cli: Command, start: str) -> None:
    """The policy is on the branch that somebody did push."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    publish_policy(bare, ONLY_BOB)
    bare.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    for ref in ("HEAD", "refs/heads/unborn"):
        plant(bare, ref, ANYONE, start)
    with Seat(bare) as there:
        assert load_book(there.desk).ref == "refs/heads/main"
        assert protected_branch(there.desk) == "main"


def test_a_server_refuses_names_that_stand_for_others(bare: Clone, ann: Seat, cli: Command) -> None:
    """A branch that is called like a gate would block that gate for everybody. What is there already may go."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    names = [
        f"{start}{ref}"
        for start in ("refs/heads/", "refs/tags/", "refs/remotes/", "refs/notes/", "refs/", "refs/Heads/")
        for ref in ("refs/hitl/open/abcdefghjk", "refs/heads/main", "Refs/x")
    ]
    for name in names:
        with pytest.raises(GitError, match="git could not tell it from"):
            ann.clone.git("push", "-q", "origin", f"HEAD:{name}")
    # Behind a ref that is none of its business too.
    with pytest.raises(GitError, match="git could not tell it from refs/x/y"):
        ann.clone.git("push", "-q", "origin", "HEAD:refs/heads/a", "HEAD:refs/tags/refs/x/y")
    bare.git("update-ref", names[0], "main")
    ann.clone.git("push", "-q", "origin", f":{names[0]}", "HEAD:refs/heads/my/refs/x", "HEAD:refs/heads/refs")
    assert sorted(bare.refs("refs")) == ["refs/heads/main", "refs/heads/my/refs/x", "refs/heads/refs"]
