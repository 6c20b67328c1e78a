"""The commits of a resumed agent: which they are, and how they are tied to the decision behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.store.work.commits import add_trailers, conflicts, head_branch, known_tips, made_since
from gitgate.store.work.pinned import _at_head
from gitgate.store.work.restore import Choice, _make_branch, _tip
from support.testbed.repositories import Clone

WANTED = (("Gate", "7k2fabcdef"), ("Decided-by", "Ada"))


def trailers(clone: Clone, commit: str) -> list[str]:
    return clone.git("log", "-1", "--format=%(trailers:unfold)", commit).split("\n")[:-1]


def made(clone: Clone, known: list[str]) -> list[str]:
    return made_since(clone.repository.git, known)


def test_only_what_the_agent_made_is_its(repo: Clone) -> None:
    """Commits of others that it merged, and what was there before, are not."""
    repo.git("checkout", "-q", "-b", "other")
    theirs = repo.commit("theirs", other="o")
    repo.git("checkout", "-q", "main")
    known = known_tips(repo.repository)
    first = repo.commit("first")
    repo.git("merge", "-q", "--no-ff", "-m", "merged", "other")
    assert made(repo, known) == [first, repo.git("rev-parse", "HEAD")]
    assert theirs not in made(repo, known)


def test_trailers_go_onto_all_of_them(repo: Clone) -> None:
    """Also below a merge; author, dates and contents stay, the tree and the index are not touched."""
    repo.git("checkout", "-q", "-b", "side")
    repo.git("checkout", "-q", "main")
    known = known_tips(repo.repository)
    repo.git("commit", "-q", "--allow-empty", "--author", "Bot <bot@x>", "-m", "first\n\nwith a body")
    repo.git("checkout", "-q", "side")
    repo.commit("beside", side="s")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    repo.write("README", "uncommitted\n")
    before = made(repo, known)
    after = add_trailers(repo.repository.git, before, WANTED)
    assert len(after) == 3
    assert repo.git("rev-parse", "HEAD") == after[-1]
    assert all(trailers(repo, commit) == ["Gate: 7k2fabcdef", "Decided-by: Ada"] for commit in after)
    assert repo.git("log", "--format=%an", "--no-merges", f"{after[-1]}^1", "-1") == "Bot"
    for old, new in zip(before, after, strict=True):
        assert repo.git("rev-parse", f"{old}^{{tree}}") == repo.git("rev-parse", f"{new}^{{tree}}")
    assert repo.git("status", "--porcelain") == "M README" or repo.git("status", "--porcelain") == " M README"


def test_those_that_have_them_stay_as_they_are(repo: Clone) -> None:
    """An agent that did as it was told keeps its commits, ids and all."""
    known = known_tips(repo.repository)
    repo.git("commit", "-q", "--allow-empty", "-m", "done\n\nGate: 7k2fabcdef\nDecided-by: Ada")
    before = made(repo, known)
    assert add_trailers(repo.repository.git, before, WANTED) == before


@pytest.mark.needs("ssh-keygen")
def test_signed_commits_are_not_rewritten(repo: Clone, tmp_path: Path) -> None:
    """A signature would be lost; then all of them stay."""
    key = tmp_path / "key"
    repo.git("config", "gpg.format", "ssh")
    repo.git("config", "user.signingKey", str(key))
    import subprocess

    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    known = known_tips(repo.repository)
    repo.commit("plain")
    repo.git("commit", "-q", "--allow-empty", "-S", "-m", "signed")
    before = made(repo, known)
    assert add_trailers(repo.repository.git, before, WANTED) == before


def test_published_commits_are_not_rewritten(bare: Clone, repo: Clone) -> None:
    """What the agent pushed itself is others' already."""
    repo.git("remote", "add", "origin", str(bare.path))
    known = known_tips(repo.repository)
    repo.commit("pushed")
    repo.git("push", "-q", "origin", "main:refs/heads/other")
    repo.git("fetch", "-q", "origin")
    last = repo.commit("kept")
    assert made(repo, known) == [last]


@pytest.mark.parametrize("clash", [True, False])
def test_a_trial_merge_names_what_would_conflict(repo: Clone, clash: bool) -> None:
    """Nothing is merged, and no ref moves."""
    base = repo.git("rev-parse", "HEAD")
    ours = repo.commit("ours", README="ours\n")
    repo.git("checkout", "-q", base)
    theirs = repo.commit("theirs", **({"README": "theirs\n"} if clash else {"other": "o\n"}))
    before = repo.refs()
    assert conflicts(repo.repository.git, ours, theirs) == (["README"] if clash else [])
    assert repo.refs() == before


def test_branches_that_end_there_go_along(repo: Clone) -> None:
    """The one that was left for none, and one made on the way; one that stands on what was there before stays."""
    repo.git("branch", "older")
    before = [repo.commit("one", one="1"), repo.commit("two", two="2")]
    repo.git("branch", "side", before[0])
    older = repo.git("rev-parse", "older")
    repo.git("checkout", "-q", "--detach")
    after = add_trailers(repo.repository.git, before, WANTED)
    assert repo.git("rev-parse", "side", "main", "HEAD", "older").split() == [*after, after[1], older]


def test_what_is_checked_out_elsewhere_is_somebody_elses(repo: Clone, tmp_path: Path) -> None:
    """A person commits in a working tree of their own meanwhile, and the agent merges that: it is not the agent's."""
    known = known_tips(repo.repository)
    people = tmp_path / "people"
    repo.git("worktree", "add", "-q", "-b", "people", str(people))
    repo.git("-C", str(people), "commit", "-q", "--allow-empty", "-m", "theirs")
    theirs = repo.git("rev-parse", "people")
    repo.commit("mine", mine="m")
    repo.git("merge", "-q", "--no-ff", "-m", "merged", "people")
    before = made(repo, known)
    after = add_trailers(repo.repository.git, before, WANTED)
    assert len(before) == 2
    assert theirs not in before
    assert repo.git("rev-parse", "people") == theirs
    assert trailers(repo, theirs) == []
    assert trailers(repo, after[1]) == ["Gate: 7k2fabcdef", "Decided-by: Ada"]


def test_a_branch_may_have_any_name(repo: Clone) -> None:
    """One that an agent made, with what Unicode calls a line separator in it."""
    before = [repo.commit("one", one="1")]
    repo.git("branch", "x\u2028y")
    (after,) = add_trailers(repo.repository.git, before, WANTED)
    assert repo.git("rev-parse", "x\u2028y") == after


@pytest.mark.parametrize("start", ["refs/tags/", "refs/heads/", "refs/"])
def test_no_tag_is_the_branch_of_a_working_tree(repo: Clone, start: str, tmp_path: Path) -> None:
    """On a branch without commits nothing is made yet, whatever is called like HEAD or like that branch."""
    other = repo.commit("of somebody else")
    repo.git("reset", "-q", "--hard", "HEAD^")
    repo.git("checkout", "-q", "--orphan", "unborn")
    for ref in ("HEAD", "refs/heads/unborn"):
        repo.git("update-ref", f"{start}{ref}", other)
    assert made(repo, []) == []
    assert _at_head(repo.repository.git, [b"README"]) == {}
    assert _tip(repo.repository.git, "unborn") is None
    choice = Choice("unborn", create=True, notes=())
    assert _make_branch(repo.repository.git, other, choice) == "refs/heads/unborn"
    assert repo.git("show-ref", "--verify", "--hash", "refs/heads/unborn") == other


def test_a_branch_is_called_so_beside_a_tag_of_its_name(repo: Clone) -> None:
    """Git tells the two apart by `heads/`; that is no part of the branch's name, and a line separator may be."""
    repo.git("tag", "main")
    assert head_branch(repo.repository.git) == "main"
    repo.git("checkout", "-q", "-b", "a\u2028b\u00a0")
    assert head_branch(repo.repository.git) == "a\u2028b\u00a0"
    repo.git("checkout", "-q", "--detach")
    assert head_branch(repo.repository.git) is None
