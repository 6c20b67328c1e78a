"""Gates that changed on both sides, or while they are brought together: none is lost, and none holds up another."""

from __future__ import annotations

import pytest

from gitgate.acts.answering import comment, withdraw
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate
from support.meanwhile import Meanwhile
from support.resuming import Clock, Seat
from support.testbed.repositories import Clone

# Many small ones, over real pushes: together they would weigh on every run.
pytestmark = pytest.mark.slow


def remark(seat: Seat, gate: Gate, text: str = "wait", *, push: bool = False) -> None:
    comment(seat.desk, seat.now(gate), text, push=push)


def names(seat: Seat, gate: Gate) -> list[str]:
    return [entry.name for entry in seat.now(gate).history]


def test_a_gate_that_changes_here_while_it_is_brought_in(ann: Seat, bob: Seat, clock: Clock) -> None:
    """That one waits for the next sync, and is said to; the others arrive."""
    moving, still = ann.ask(), ann.ask()
    sync(bob.desk)
    for gate in (moving, still):
        remark(ann, gate, push=True)
    with Seat(bob.clone, Meanwhile(clock, lambda: remark(bob, moving, "mine"))) as busy:
        done = sync(busy.desk)
    assert done.updated == (still.id,)
    assert "being changed right now" in done.broken[moving.id]
    assert sync(bob.desk).again == (moving.id,)
    assert names(bob, moving) == ["opened", "commented", "commented"]


def test_a_gate_that_changes_there_while_ours_is_recorded_again(ann: Seat, bob: Seat, clock: Clock) -> None:
    """Another command of this clone heard of it: pushing what stands on the old one would be refused, so it is done anew."""
    gate = ann.ask()
    sync(bob.desk)
    remark(ann, gate, "one", push=True)
    remark(bob, gate, "mine")

    def hear_of_another() -> None:
        remark(ann, gate, "two", push=True)
        bob.clone.git("fetch", "-q", "origin", "+refs/hitl/open/*:refs/gitgate/origin/open/*")

    # The first two readings date the sync itself.
    with Seat(bob.clone, Meanwhile(clock, int, int, hear_of_another)) as busy:
        done = sync(busy.desk)
    assert (done.refused, done.pushed) == ({}, (gate.id,))
    sync(ann.desk)
    assert names(ann, gate) == ["opened", "commented", "commented", "commented"]


def test_words_that_find_no_place_any_more(ann: Seat, bob: Seat) -> None:
    """A question that was answered there cannot be withdrawn here: whoever did is told."""
    gate = ann.ask()
    sync(bob.desk)
    ann.answer(gate, push=True)
    withdraw(bob.desk, bob.now(gate), "no need", push=False)
    done = sync(bob.desk)
    assert [words.partition(":")[0] for words in done.lost] == [f"{gate.id} withdrawn"]
    assert names(bob, gate) == ["opened", "answered"]


def test_one_that_the_server_does_not_take(ann: Seat, bare: Clone) -> None:
    """It is named with the server's reason; the other one arrives."""
    refused, taken = ann.ask(), ann.ask()
    for gate in (refused, taken):
        remark(ann, gate)
    hook = f'#!/bin/sh\ncase "$1" in *{refused.id}) echo "not this one" >&2; exit 1;; esac\n'
    bare.write("hooks/update", hook, executable=True)
    done = sync(ann.desk)
    assert done.pushed == (taken.id,)
    assert "not this one" in done.refused[refused.id]


def test_hundreds_of_refs_that_are_no_gates(ann: Seat, bob: Seat, bare: Clone) -> None:
    """Each is named, the gate among them is taken, and how far it is is told meanwhile."""
    gate = ann.ask()
    letters = "23456789abcdefghjkmnpqrstuvwxyz"
    odd = [f"zzzzzzzz{one}{other}" for one in letters for other in letters][:500]
    head = bare.git("rev-parse", "main")
    bare.git("update-ref", "--stdin", input="".join(f"create refs/hitl/open/{name} {head}\n" for name in odd))
    heard: list[str] = []
    desk = bob.desk
    desk.progress = heard.append
    done = sync(desk)
    assert done.new == (gate.id,)
    assert set(odd) == set(done.broken)
    assert "reading gates: 400 of 501" in heard
