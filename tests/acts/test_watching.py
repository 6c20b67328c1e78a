"""Watching: what is new, from here and from the shared repository, and nothing twice."""

from __future__ import annotations

from gitgate.acts.answering import withdraw
from gitgate.acts.reporting import FETCH_EVERY, watch_events
from support.resuming import Seat


class Turns:
    """Time that passes only while the watcher sleeps; at each sleep something may happen."""

    def __init__(self, *happens: object, step: float = 1.0) -> None:
        self.at, self.step, self.happens = 0.0, step, list(happens)

    def monotonic(self) -> float:
        return self.at

    def sleep(self, _seconds: float) -> None:
        self.at += self.step
        if self.happens:
            act = self.happens.pop(0)
            if callable(act):
                act()


def test_what_happens_elsewhere_is_seen(ann: Seat, bob: Seat) -> None:
    """The shared repository is asked now and then; what was there before the watch is not told again."""
    gate = ann.ask(push=True)
    from gitgate.exchange.syncing import sync

    sync(bob.desk, "origin")
    turns = Turns(lambda: ann.answer(gate, push=True), step=FETCH_EVERY)
    seen = list(watch_events(bob.desk, None, 3 * FETCH_EVERY, monotonic=turns.monotonic, sleep=turns.sleep))
    assert [event["event"] for event in seen] == ["answered"]


def test_one_gate_with_its_past_until_it_closes(alone: Seat) -> None:
    """It ends by itself, before its time is over."""
    gate = alone.ask()
    turns = Turns(None, lambda: withdraw(alone.desk, alone.now(gate), "found it in the docs"))
    seen = list(watch_events(alone.desk, gate.id[:6], 60, monotonic=turns.monotonic, sleep=turns.sleep))
    assert turns.at == 2
    assert seen[0]["event"] == "opened"
    assert seen[-1]["event"] == "withdrawn"
    assert len(seen) == len({event["commit"] for event in seen})
