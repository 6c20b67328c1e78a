"""Surfaces: which of very many pull requests and gates one sweep looks at, so that it costs so much and no more: pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from ...core.model import Gate
from ...core.times import parse_time
from ...service.deadlines import DAY

NEWEST, OTHERS = 50, 50  # so many pull requests without a gate: the newest, and some of the rest
ENDED, LONG_ENDED = 20, 5  # so many gates that closed more than a day ago; each takes three requests at most

Each = TypeVar("Each")


def some_pulls(found: Sequence[Each], at: float) -> list[Each]:
    """Of those that nothing waits on."""
    return some_of(found, NEWEST, OTHERS, at)


def some_gates(found: Sequence[Gate], at: float, *, over: bool = True) -> list[Gate]:
    """All that are open or closed within a day, and some of the others (unless `over` is False): those that closed last, and any.

    Nobody knows whether a sweep ran since one closed: jobs keep nothing, and whether its comment shows its end, or somebody
    replied since, only its thread says. So age alone leaves none out for ever, however long sweeps were away, until it is archived.
    """
    ended = sorted((one for one in found if long_over(one, at)), key=ended_at, reverse=True)
    chosen = {one.id for one in (some_of(ended, ENDED, LONG_ENDED, at) if over else [])}
    left = {one.id for one in ended} - chosen
    return [one for one in found if one.id not in left]


def some_of(found: Sequence[Each], first: int, others: int, at: float) -> list[Each]:
    """The first, and of the rest any, others each time. By chance: turns by the clock would leave out the same ones for ever
    where sweeps are started in step with them.
    """
    rest = found[first:]
    chance = Random(int(at))  # noqa: S311 - nothing is secret here
    return [*found[:first], *chance.sample(rest, min(others, len(rest)))]


def long_over(gate: Gate, at: float) -> bool:
    """Closed a day ago and more."""
    return gate.closed and bool(ended_at(gate)) and at - parse_time(ended_at(gate)) > DAY


def ended_at(gate: Gate) -> str:
    return str(getattr(gate.history[-1].event, "at", ""))
