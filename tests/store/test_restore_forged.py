"""Saved work that somebody put together by hand: ids, names and claims that are not what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.errors import GateError, Usage, WorkFailed
from gitgate.store.work.restore import diff, matches, open_worktree
from gitgate.store.work.snapshot import Snapshot
from store.hard_cases import CASES, snap, status
from support.testbed.repositories import Clone


@pytest.fixture
def asked(repo: Clone) -> Snapshot:
    """Work saved from `repo`, staged, unstaged and untracked."""
    CASES["plain"](repo)
    return snap(repo)


def test_work_that_does_not_stand_on_its_base_is_refused(
    repo: Clone, asked: Snapshot, tmp_path: Path
) -> None:
    """An answer binds to base, staged and work together; any other three commits are not it."""
    other = repo.git("commit-tree", "-m", "x", "HEAD^{tree}")
    base, staged, work = asked.base, asked.staged, asked.work
    for ids in ((other, staged, work), (base, other, work), (base, staged, other), (None, staged, work)):
        with pytest.raises(WorkFailed, match="does not hold together"):
            open_worktree(
                repo.repository,
                base=ids[0],
                staged=ids[1],
                work=ids[2],
                directory=tmp_path / "w",
                branch=None,
                fallback_branch="x",
            )
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("hostile", ["--upload-pack=x", "HEAD", "main", "-", "", "0" * 39])
def test_names_are_not_taken_for_commits(repo: Clone, asked: Snapshot, tmp_path: Path, hostile: str) -> None:
    """Only a full id is one: no option, no ref that somebody can move."""
    with pytest.raises(GateError):
        diff(repo.repository, asked.base, hostile)
    with pytest.raises(GateError):
        matches(repo.repository, hostile, asked.staged)
    with pytest.raises(GateError):
        open_worktree(
            repo.repository,
            base=asked.base,
            staged=asked.staged,
            work=hostile,
            directory=tmp_path / "w",
            branch=None,
            fallback_branch="x",
        )


@pytest.mark.parametrize(
    "branch", ["-x", "--orphan", "@{-1}", "a..b", "HEAD", "", "nul\0", "x.lock", "refs/../x"]
)
def test_a_hostile_branch_name_gets_the_fallback(
    repo: Clone, asked: Snapshot, tmp_path: Path, branch: str
) -> None:
    """The name comes from the question, which anybody may have written."""
    place = open_worktree(
        repo.repository,
        base=asked.base,
        staged=asked.staged,
        work=asked.work,
        directory=tmp_path / "w",
        branch=branch,
        fallback_branch="gate/7k2f",
    )
    assert place.branch == "gate/7k2f"
    with pytest.raises(Usage):
        open_worktree(
            repo.repository,
            base=asked.base,
            staged=asked.staged,
            work=asked.work,
            directory=tmp_path / "w2",
            branch="main",
            fallback_branch=branch,
        )
    assert not (tmp_path / "w2").exists()


def test_a_forged_conflict_is_refused(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """The conflict has to travel with the work, and to have the three sides that git knows."""
    tree = repo.git("rev-parse", "HEAD^{tree}")
    conflict = repo.git("commit-tree", "-m", "no sides in it", tree)
    assert asked.base
    for parents in (("-p", conflict), ()):
        message = f"staged\n\nUnmerged: {conflict}"
        staged = repo.git("commit-tree", "-p", asked.base, *parents, "-m", message, tree)
        work = repo.git("commit-tree", "-p", staged, "-m", "work", tree)
        with pytest.raises(WorkFailed, match="does not hold together"):
            open_worktree(
                repo.repository,
                base=asked.base,
                staged=staged,
                work=work,
                directory=tmp_path / "w",
                branch=None,
                fallback_branch="x",
            )
        assert not (tmp_path / "w").exists()


def test_forged_intentions_reach_nothing(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """Intended paths count only where the work has them and the staged tree does not."""
    tree = repo.git("rev-parse", "HEAD^{tree}")
    message = "staged\n\nIntent-to-add: ../secret\nIntent-to-add: README\nIntent-to-add: .git/config\nOperation: \x1b[31m"
    (tmp_path / "secret").write_text("s")
    assert asked.base
    staged = repo.git("commit-tree", "-p", asked.base, "-m", message, tree)
    work = repo.git("commit-tree", "-p", staged, "-m", "work", tree)
    place = open_worktree(
        repo.repository,
        base=asked.base,
        staged=staged,
        work=work,
        directory=tmp_path / "w",
        branch=None,
        fallback_branch="x",
    )
    assert status(place.directory) == []
    assert all(note.isprintable() for note in place.notes)
