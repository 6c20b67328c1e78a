"""Waiting: somebody blocks on a gate and hears its answer; the answer is delivered to them and to nobody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.claims.attending import WaitLimit, wait
from gitgate.errors import Failure, GateError
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Claim, Gate
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.refs import OPEN
from support.deciding import DB, gate_of, say
from support.histories import BOB
from support.resuming import Clock, Seat
from support.testbed.repositories import Clone

WAIT = AskWishes(wait=True)


@dataclass
class Bed:
    """A bed and a clock of its own: sleeping passes time at once, and something may happen meanwhile."""

    events: dict[int, Callable[[], object]] = field(default_factory=dict)
    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        event = self.events.pop(len(self.slept), None)
        if event is not None:
            event()
        assert len(self.slept) < 500, "it waits for ever"

    def patience(self, seconds: float | None = None) -> WaitLimit:
        return WaitLimit(seconds, lambda: self.now, self.sleep)


def test_an_answer_that_is_there_is_heard_at_once(alone: Seat) -> None:
    """Claimed and told in one move of the ref: nobody else acts on it."""
    gate = gate_of(alone, wishes=WAIT)
    say(alone, gate)
    bed = Bed()
    heard = wait(alone.desk, alone.now(gate), bed.patience())
    assert bed.slept == []
    assert (heard.state, heard.closed) == ("resumed", True)
    assert [entry.name for entry in heard.history] == ["opened", "answered", "claimed", "resumed"]
    assert heard.answer is not None
    assert heard.answer.answer.values == {"answer": "Postgres"}
    claim = heard.history[2].event
    assert isinstance(claim, Claim)
    assert (claim.runner, claim.by, claim.answer) == ("waiter", "coder", heard.answer.commit)
    assert alone.now(gate) == heard


def test_an_answer_that_comes_while_waiting(alone: Seat) -> None:
    """Looked for now and then, at growing distances."""
    gate = gate_of(alone, wishes=WAIT)
    bed = Bed({6: lambda: say(alone, gate, who=BOB)})
    heard = wait(alone.desk, gate, bed.patience())
    assert heard.state == "resumed"
    assert len(bed.slept) == 6
    assert bed.slept == sorted(bed.slept)
    assert max(bed.slept) <= 1.0


def test_patience_runs_out(alone: Seat) -> None:
    """The gate is open as before; waiting no longer than that, and no answer is made up."""
    gate = gate_of(alone, wishes=WAIT)
    bed = Bed()
    assert wait(alone.desk, gate, bed.patience(3.0)) == gate
    assert sum(bed.slept) == pytest.approx(3.0)
    assert wait(alone.desk, gate, Bed().patience(0.0)) == gate


@pytest.mark.parametrize("delivery", ["none", "resume"])
def test_reading_along_takes_nothing(alone: Seat, delivery: str) -> None:
    """Only with delivery `wait` is hearing it acting on it."""
    terms = {"session": "session-1"} if delivery == "resume" else {}
    gate = gate_of(alone, **terms)  # type: ignore[arg-type]
    say(alone, gate)
    assert wait(alone.desk, alone.now(gate), Bed().patience()).state == "answered"
    assert alone.now(gate).state == "answered"


@pytest.mark.parametrize(("verb", "state"), [(answering.stop, "stopped"), (answering.withdraw, "withdrawn")])
def test_an_end_is_heard_too(alone: Seat, verb: Callable[..., object], state: str) -> None:
    """Nobody goes on waiting for what is over."""
    gate = gate_of(alone, wishes=WAIT)
    bed = Bed({2: lambda: verb(alone.desk, alone.now(gate), "no more")})
    assert wait(alone.desk, gate, bed.patience()).state == state


@pytest.mark.parametrize(
    ("how", "state", "expired"),
    [("stuck", "expired", True), ("fail", "resumed", True), ("default", "resumed", False)],
)
def test_a_deadline_that_passes_while_waiting(
    alone: Seat, clock: Clock, how: str, state: str, expired: bool
) -> None:
    """It acts; a default is told as one."""
    asked = replace(DB, default="SQLite") if how == "default" else DB
    gate = gate_of(alone, asked, wishes=WAIT, timeout=60, on_timeout=how)
    bed = Bed({3: lambda: clock.pass_by(60)})
    heard = wait(alone.desk, gate, bed.patience())
    assert (heard.state, heard.expired, heard.defaulted) == (state, expired, how == "default")


def test_a_late_word_does_not_confuse_what_is_told(ann: Seat, bob: Seat, clock: Clock) -> None:
    """After an expiry a late answer stands last in the record; the expiry is what the waiter hears."""
    gate = gate_of(ann, wishes=WAIT, timeout=60, on_timeout="fail")
    sync(bob.desk)
    say(bob, gate, who=BOB, push=False)
    clock.pass_by(60)
    from gitgate.acts import find_gate

    find_gate(ann.desk, gate.id)
    sync(ann.desk)
    sync(bob.desk)
    sync(ann.desk)
    assert [entry.name for entry in ann.now(gate).history] == ["opened", "expired", "late"]
    heard = wait(ann.desk, ann.now(gate), Bed().patience())
    assert heard.state == "resumed"
    assert heard.answer is None


def test_a_remote_is_listened_to(ann: Seat, bob: Seat) -> None:
    """An answer from another clone arrives by itself, and what was heard is known there."""
    gate = gate_of(ann, wishes=WAIT)
    sync(bob.desk)
    bed = Bed({9: lambda: say(bob, gate, who=BOB)})
    heard = wait(ann.desk, gate, bed.patience(120.0))
    assert heard.state == "resumed"
    sync(bob.desk)
    assert bob.now(gate) == heard


def test_a_remote_that_is_silent_is_no_reason_to_stop(ann: Seat, bare: Clone) -> None:
    """It is said, and waited on."""
    gate = gate_of(ann, wishes=WAIT)
    ann.clone.git("remote", "set-url", "origin", str(bare.path) + "-gone")
    desk = ann.desk
    said: list[str] = []
    desk.progress = said.append
    assert wait(desk, gate, Bed().patience(20.0)).state == "awaiting"
    assert any("origin does not answer" in words for words in said)


@pytest.mark.slow
def test_a_long_wait_says_a_word_now_and_then(alone: Seat) -> None:
    """Once a minute, not more."""
    gate = gate_of(alone, wishes=WAIT)
    desk = alone.desk
    said: list[str] = []
    desk.remind = said.append
    wait(desk, gate, Bed().patience(200.0))
    assert [words.rpartition("(")[2] for words in said] == [
        "1 min)",
        "2 min)",
        "3 min)",
    ]


def test_a_gate_that_was_archived_meanwhile(alone: Seat, clock: Clock) -> None:
    """Its end is still heard."""
    gate = gate_of(alone)

    def end() -> None:
        say(alone, gate)
        clock.pass_by(5)
        fold_closed(alone.desk)

    assert wait(alone.desk, gate, Bed({2: end}).patience()).state == "answered"
    assert alone.clone.refs("refs/hitl/open") == {}


def test_a_gate_that_is_gone(alone: Seat) -> None:
    """Is an error that says what to do."""
    gate = gate_of(alone)
    bed = Bed({2: lambda: alone.clone.git("update-ref", "-d", OPEN + gate.id)})
    with pytest.raises(Failure, match="is gone from this clone") as refused:
        wait(alone.desk, gate, bed.patience())
    assert refused.value.hint == "git gate sync"


def test_two_waiters_hear_it_and_one_takes_it(alone: Seat) -> None:
    """Both print the answer; it is recorded as told once."""
    gate = gate_of(alone, wishes=WAIT)
    answered = say(alone, gate).gate
    first, second = (wait(alone.desk, answered, Bed().patience()) for _ in "12")
    assert states(first) == states(second) == ["answered", "claimed", "resumed"]
    assert states(alone.now(gate)).count("claimed") == 1


def states(gate: Gate) -> list[str]:
    return [entry.name for entry in gate.history[1:]]


def test_an_answer_out_of_reach_is_not_given_out(ann: Seat, bob: Seat, bare: Clone) -> None:
    """Where the gate is shared, nobody knows meanwhile whether another acts on it already; within reach it is heard."""
    gate = gate_of(ann, wishes=WAIT, session="session-1")
    sync(bob.desk)
    say(bob, gate, who=BOB)
    sync(ann.desk)
    url = ann.clone.git("remote", "get-url", "origin")
    ann.clone.git("remote", "set-url", "origin", f"{url}-gone")
    desk = ann.desk
    said: list[str] = []
    desk.remind = said.append
    with pytest.raises(GateError):
        wait(desk, ann.now(gate), Bed().patience(5.0))
    assert said[0].startswith("still waiting: ")
    assert ann.now(gate).state == "answered"
    ann.clone.git("remote", "set-url", "origin", url)
    assert wait(ann.desk, ann.now(gate), Bed().patience(5.0)).state == "resumed"
