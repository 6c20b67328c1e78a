"""Where an agent goes on: a directory is one runner's at a time, and only as long as it works there."""

from __future__ import annotations

import contextlib

from gitgate import resumption
from support.resuming import Seat
from support.testbed.repositories import Clone


def test_a_directory_that_will_not_do_is_let_go(repo: Clone) -> None:
    """What is in it cannot be told: the agent goes on elsewhere, and whoever asked from this directory may have it meanwhile."""
    with Seat(repo) as seat:
        gate = seat.ask()
        with contextlib.ExitStack() as held:
            assert resumption.same_directory(seat.desk, gate, held) is not None
            with contextlib.ExitStack() as other:
                assert not resumption.lock(seat.desk, repo.path, other)
        repo.write("README", "changed since\n")
        (repo.path / ".git/MERGE_HEAD").write_text(repo.git("rev-parse", "HEAD") + "\n")
        with contextlib.ExitStack() as held:
            assert resumption.same_directory(seat.desk, gate, held) is None
            with contextlib.ExitStack() as other:
                assert resumption.lock(seat.desk, repo.path, other)
