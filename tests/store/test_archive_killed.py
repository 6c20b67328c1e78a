"""Folding and settling, killed at each write: nothing is lost, and a repeat finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gitgate.store import git
from gitgate.store.records import Signature
from gitgate.store.records.archive import archived
from gitgate.store.records.closing import Closed, fold, settle
from gitgate.store.remote import RefMove, wire
from gitgate.store.remote.fetch import fetch
from gitgate.store.remote.push import push
from support import PATIENCE
from support.sharing import OPEN, Place, answered, late_files, name, open_gates
from support.testbed.repositories import Clone

BY = Signature("Ada Lovelace <ada@example.org>", 1_767_323_045)
MONTH = "2026-01"


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(step: int, *, after: bool) -> Iterator[list[int]]:
    """Die at the `step`th git command, before it ran or when it had run and nothing was told of it."""
    steps = [0]

    def wrap(real: Callable[..., Any], finish: Callable[[Any], object]) -> Callable[..., Any]:
        def run(*args: Any, **how: Any) -> Any:
            steps[0] += 1
            if steps[0] == step and not after:
                raise Killed
            result = real(*args, **how)
            if steps[0] == step:
                finish(args[0])
                raise Killed
            return result

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(git.Git, "run", wrap(git.Git.run, lambda _git: None))
        patch.setattr(
            wire.GitConversation,
            "__init__",
            wrap(wire.GitConversation.__init__, lambda talk: talk.process.wait(PATIENCE)),
        )
        yield steps


def reachable(clone: Clone, tip: str) -> bool:
    """Whether some ref keeps this commit alive."""
    return clone.git("for-each-ref", f"--contains={tip}", "refs/hitl") != ""


# Every step takes a while with a server: by default some of them, and in turn each when all tests are run.
STRIDES = [7, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough])]


def steps_of(action: Callable[[], object]) -> int:
    with killed_at(0, after=False) as steps:
        action()
    return steps[0]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.slow
def test_folding_here_survives_a_kill_at_every_step(repo: Clone, after: bool) -> None:
    """Whenever it dies every record is open or archived; folding again leaves it archived, once."""
    work = repo.git("rev-parse", "HEAD")

    def gates(first: int) -> list[Closed]:
        tips = open_gates(repo, range(first, first + 2))
        return [Closed(gate, tip, MONTH, work) for gate, tip in tips.items()]

    first = gates(0)
    steps = steps_of(lambda: fold(repo.repository, first, by=BY))
    assert steps > 5
    for step in range(1, steps + 1):
        batch = gates(step * 2)
        with killed_at(step, after=after), pytest.raises(Killed):
            fold(repo.repository, batch, by=BY)
        assert all(reachable(repo, gate.tip) for gate in batch)
        assert set(fold(repo.repository, batch, by=BY).gates) == {gate.id for gate in batch}
        assert all(archived(repo.repository, gate.id) == gate.tip for gate in batch)
        assert repo.refs(OPEN) == {}


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.slow
def test_folding_on_a_server_survives_a_kill_at_every_step(near: Place, after: bool, stride: int) -> None:
    """The server never has fewer records than before, and a repeat from the same clone finishes."""

    def gates(first: int) -> list[Closed]:
        tips = open_gates(near.ann, range(first, first + 2))
        push(near.ann.repository, "origin", [RefMove(OPEN + gate, tip, None) for gate, tip in tips.items()])
        return [Closed(gate, tip, MONTH) for gate, tip in tips.items()]

    first = gates(0)
    steps = steps_of(lambda: fold(near.ann.repository, first, by=BY, remote="origin"))
    for step in range(1 + (after and stride > 1), steps + 1, stride):
        batch = gates(step * 2)
        with killed_at(step, after=after), pytest.raises(Killed):
            fold(near.ann.repository, batch, by=BY, remote="origin")
        assert all(reachable(near.server, gate.tip) for gate in batch)
        assert all(reachable(near.ann, gate.tip) for gate in batch)
        assert set(fold(near.ann.repository, batch, by=BY, remote="origin").gates) == {g.id for g in batch}
        assert near.server.refs("refs/hitl") == near.ann.refs("refs/hitl")
        assert all(archived(near.server.repository, gate.id) == gate.tip for gate in batch)
        assert near.server.refs(OPEN) == {}


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("after", [False, True])
def test_settling_survives_a_kill_at_every_step(near: Place, after: bool, stride: int) -> None:
    """A late answer is in the stale clone or in the archive at every moment, and in the archive after a repeat."""

    def stale(number: int) -> tuple[str, str]:
        gate = name(number)
        tip = open_gates(near.ann, [number])[gate]
        push(near.ann.repository, "origin", [RefMove(OPEN + gate, tip, None)])
        fetch(near.bob.repository, "origin")
        mine = answered(near.bob, gate, tip, f"no{number}")
        fold(near.ann.repository, [Closed(gate, tip, MONTH)], by=BY, remote="origin")
        return gate, mine

    gate, mine = stale(0)
    steps = steps_of(lambda: settle(near.bob.repository, "origin", {gate: mine}, by=BY))
    for step in range(1 + (after and stride > 1), steps + 1, stride):
        gate, mine = stale(step)
        with killed_at(step, after=after), pytest.raises(Killed):
            settle(near.bob.repository, "origin", {gate: mine}, by=BY)
        assert reachable(near.bob, mine)
        assert settle(near.bob.repository, "origin", {gate: mine}, by=BY).gates == (gate,)
        assert reachable(near.server, mine)
        assert f"no{step}.yaml" in late_files(near.server, gate)
        assert near.bob.refs(OPEN) == near.server.refs(OPEN) == {}
