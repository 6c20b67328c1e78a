"""Partial work comes back as it was left: the same files, the same split between staged, unstaged and untracked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.store.work.restore import matches
from store.hard_cases import CASES, fingerprint, listing, reopen, snap, status
from support.testbed.repositories import Clone, run_git

pytestmark = pytest.mark.slow  # each takes a good part of a second


@pytest.mark.parametrize("case", CASES)
def test_work_is_taken_and_put_back_as_it_was(case: str, repo: Clone, tmp_path: Path) -> None:
    """Taken without a trace, and the same in a new working tree; the directory itself is recognised."""
    CASES[case](repo)
    before = fingerprint(repo)
    snapshot = snap(repo)
    assert fingerprint(repo) == before
    assert not [found for found in snapshot.left_out if "submodule" not in found.reason]
    place = reopen(repo, snapshot, tmp_path / "täken up")
    assert status(place.directory) == status(repo.path)
    assert listing(place.directory) == listing(repo.path)
    assert run_git("rev-parse", "HEAD", cwd=place.directory) == run_git("rev-parse", "HEAD", cwd=repo.path)
    assert matches(repo.repository, snapshot.work, snapshot.staged)
    assert run_git("fsck", "--no-dangling", cwd=repo.path) == b""
