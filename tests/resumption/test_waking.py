"""Gates that stand still at a server: whoever sees them has it look once, however many they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from gitgate.context import Desk
from gitgate.context.targets import summaries
from gitgate.exchange.syncing import push_moves, sync
from gitgate.record import Summary
from gitgate.resumption import calls
from gitgate.store.remote import FateKind, RefFate, RefMove
from support.resuming import Seat
from support.testbed.repositories import Clone


@pytest.fixture
def looks(bob: Clone) -> Iterator[Desk]:
    """The desk of Bob, who sees them."""
    with Seat(bob) as seat:
        yield seat.desk


@pytest.fixture
def still(ann: Clone, looks: Desk) -> list[Summary]:
    """Gates that Ann asked and answered, as Bob sees them, who has heard of the server just now."""
    with Seat(ann) as asks:
        for _ in range(4):
            asks.answer(asks.ask(push=True), push=True)
    sync(looks)
    found = [one._replace(state="stalled") for one in summaries(looks)]
    assert len(found) == 4
    return found


def test_many_gates_wake_their_server_once(
    looks: Desk, still: list[Summary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pushes, and each gate is spoken of; where the first cannot be pushed, the next one is. Nobody is woken twice."""
    pushed: list[str] = []

    def push(desk: Desk, remote: str, moves: Sequence[RefMove]) -> list[RefFate]:
        pushed.extend(move.ref.rpartition("/")[2] for move in moves)
        if len(pushed) == 1:
            return [RefFate(moves[0].ref, FateKind.STALE)]
        return push_moves(desk, remote, moves)

    monkeypatch.setattr(calls, "push_moves", push)
    said = calls.hand_on(looks, still)
    assert pushed == [still[0].id, still[1].id, still[1].id]
    assert [words.split(":")[0] for words in said] == [f"gate {one.id}" for one in still[1:]]
    assert calls.hand_on(looks, still) == []
    assert len(pushed) == 3


@pytest.mark.slow
def test_whom_nobody_may_wake_is_asked_for_once(
    looks: Desk, still: list[Summary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forge has no hook of ours; where a remote leads is for git to say, by a process each time."""
    asked: list[str] = []

    def may_not(_desk: Desk, remote: str) -> bool:
        asked.append(remote)
        return False

    monkeypatch.setattr(calls, "may_wake", may_not)
    assert calls.hand_on(looks, still) == []
    assert asked == ["origin"]
