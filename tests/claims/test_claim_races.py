"""Claims raced for, over real pushes: exactly one winner, whatever the order."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from gitgate.claims import claim
from gitgate.context import open_desk
from gitgate.errors import Conflict
from gitgate.exchange.syncing import sync
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate
from support import PATIENCE
from support.resuming import Clock, Seat, claimant
from support.testbed.repositories import Clone

RACERS = 8


def race(gate: Gate, places: list[Clone], clock: Clock) -> list[str]:
    """Who of those that start together got the claim."""
    start = Barrier(len(places))

    def run(number: int, place: Clone) -> str:
        desk = open_desk(place.path, os.environ, clock=clock)
        try:
            known = reload(desk, gate.id)
            start.wait(PATIENCE)
            claim(desk, known, claimant(f"racer-{number}"))
        except Conflict:
            return ""
        finally:
            desk.close()
        return f"racer-{number}"

    with ThreadPoolExecutor(len(places)) as pool:
        return [name for name in pool.map(run, range(len(places)), places) if name]


def over_clones(rounds: int, ann: Seat, others: list[Clone], clock: Clock) -> None:
    for _ in range(rounds):
        gate = ann.answer(ann.ask())
        for place in others:
            with Seat(place, clock) as seat:
                sync(seat.desk)
        winners = race(gate, [ann.clone, *others], clock)
        assert len(winners) == 1
        sync(ann.desk)
        claimed = ann.now(gate)
        assert [entry.name for entry in claimed.history].count("claimed") == 1
        assert claimed.claim is not None
        assert getattr(claimed.claim.event, "runner", "") == winners[0]


@pytest.mark.slow
def test_one_of_eight_clones_wins(
    ann: Seat, bare: Clone, clone_of: Callable[..., Clone], clock: Clock
) -> None:
    """Eight machines that see the same answer at once: one of them acts."""
    over_clones(2, ann, [clone_of(bare, f"racer{n}") for n in range(RACERS - 1)], clock)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_one_of_eight_clones_wins_each_of_25_rounds(
    ann: Seat, bare: Clone, clone_of: Callable[..., Clone], clock: Clock
) -> None:
    """The same, often."""
    over_clones(25, ann, [clone_of(bare, f"racer{n}") for n in range(RACERS - 1)], clock)


@pytest.mark.slow
def test_one_of_eight_in_a_clone_wins(alone: Seat, clock: Clock) -> None:
    """Several workers in one repository, without a server."""
    for _ in range(3):
        gate = alone.answer(alone.ask())
        assert len(race(gate, [alone.clone] * RACERS, clock)) == 1
