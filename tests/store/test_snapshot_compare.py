"""Whether a directory is still as the agent left it, and what the work is as a diff."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitgate.store.work import snapshot
from gitgate.store.work.restore import diff, matches
from gitgate.store.work.snapshot import Snapshot
from store.hard_cases import CASES, snap
from support.testbed.repositories import Clone


@pytest.fixture
def asked(repo: Clone) -> Snapshot:
    """Work saved from `repo`, staged, unstaged and untracked."""
    CASES["plain"](repo)
    return snap(repo)


@pytest.mark.parametrize(
    "change",
    [
        lambda repo: repo.write("a", "edited\n"),
        lambda repo: repo.write("deep/er/new", "edited\n"),
        lambda repo: repo.write("another", "new\n"),
        lambda repo: repo.git("add", "b"),
        lambda repo: repo.git("reset", "-q", "a"),
        lambda repo: repo.git("add", "-N", "deep"),
        lambda repo: (repo.path / "b").chmod(0o755),
        lambda repo: (repo.path / "deep/er/new").unlink(),
        lambda repo: repo.git("commit", "-q", "--allow-empty", "-m", "on", "--only"),
        lambda repo: repo.git("commit", "-q", "-m", "on"),
        lambda repo: repo.git("rm", "-q", "-f", "b"),
    ],
)
def test_a_directory_that_has_changed_is_not_the_one_it_was(
    repo: Clone, asked: Snapshot, change: Callable[[Clone], object]
) -> None:
    """Each kind of change: to a file, to the index, to HEAD, to what is untracked."""
    assert matches(repo.repository, asked.work, asked.staged)
    change(repo)
    assert not matches(repo.repository, asked.work, asked.staged)


def test_a_directory_is_recognised_as_it_was_taken(repo: Clone) -> None:
    """Without untracked files, with an ignored one included, with a secret that stayed: all the same directory."""
    repo.commit(**{".gitignore": "*.log\n"})
    clean = snap(repo)
    assert matches(repo.repository, clean.work, clean.staged)
    for name in ("new", "x.log", ".env", "keys.pem"):
        repo.write(name, "text\n")
    tracked_only = snap(repo, untracked=False)
    assert matches(repo.repository, tracked_only.work, tracked_only.staged, untracked=False)
    assert not matches(repo.repository, tracked_only.work, tracked_only.staged)
    repo.write("README", "edited\n")
    taken = clean
    for untracked, include in ((False, ()), (True, ("x.log", "keys.pem")), (False, ("x.log",))):
        taken = snap(repo, untracked=untracked, include=include)
        assert matches(repo.repository, taken.work, taken.staged)
    (repo.path / "x.log").unlink()
    assert not matches(repo.repository, taken.work, taken.staged)


def test_a_directory_that_cannot_be_judged_is_not_taken_for_the_same(
    repo: Clone, asked: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another git is at work in it: better a new working tree than half a checkout."""
    monkeypatch.setattr(snapshot, "LONGEST_WAIT", 0.0)
    repo.write(".git/index.lock")
    assert not matches(repo.repository, asked.work, asked.staged)


def test_the_diff_is_the_work(repo: Clone, asked: Snapshot) -> None:
    """From base to work, staged and untracked alike; as a summary, in colour, of some paths."""
    here = repo.repository
    assert asked.base
    patch = diff(here, asked.base, asked.work)
    assert b"+staged, then edited" in patch
    assert b"+untracked" in patch
    assert b"\x1b[" not in patch
    assert b"\x1b[" in diff(here, asked.base, asked.work, color=True)
    assert b"deep/er/new" in diff(here, asked.base, asked.work, stat=True)
    assert diff(here, asked.base, asked.work, paths=("b",)).count(b"diff --git") == 1
    assert diff(here, asked.base, asked.work, paths=("*",)) == b""
    assert diff(here, asked.base, asked.base) == b""
    assert diff(here, None, asked.base).count(b"new file") == 6
