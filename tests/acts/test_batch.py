"""One answer for many gates: each has its own fate, here and in the shared repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.acts.answering import BatchFate, Manner, respond_all
from gitgate.errors import Conflict, PushRefused
from gitgate.exchange.syncing import sync
from gitgate.gates import Filter, list_gates
from gitgate.questions import Given
from support.resuming import Seat
from support.testbed.repositories import Clone

YES = Given(text="yes, all of them")


def answered(seat: Seat, manner: Manner) -> dict[str, BatchFate]:
    desk = seat.desk
    return {
        fate.id: fate
        for fate in respond_all(desk, list_gates(desk, Filter(states=("awaiting",))), YES, manner)
    }


def test_all_of_them_arrive(ann: Seat, bob: Seat) -> None:
    """They are pushed together."""
    gates = [ann.ask(push=True) for _ in range(3)]
    sync(bob.desk, "origin")
    fates = answered(bob, Manner())
    assert set(fates) == {gate.id for gate in gates}
    assert all(fate.done is not None and fate.done.published.pushed for fate in fates.values())
    sync(ann.desk, "origin")
    assert {ann.now(gate).state for gate in gates} == {"answered"}


@pytest.mark.parametrize("push", [False, None])
def test_nothing_is_pushed_where_that_was_said(ann: Seat, bare: Clone, push: bool | None) -> None:
    """By a flag, or by a setting."""
    gate = ann.ask(push=True)
    before = bare.git("for-each-ref")
    if push is None:
        ann.clone.git("config", "gitgate.push", "false")
    assert answered(ann, Manner(push=push))[gate.id].done is not None
    assert bare.git("for-each-ref") == before


@pytest.mark.parametrize("push", [True, None])
def test_a_network_that_is_down(ann: Seat, push: bool | None) -> None:
    """The answers are safe here; who insisted on pushing is told that it failed."""
    gate = ann.ask(push=True)
    ann.clone.git("remote", "set-url", "origin", "/no/such/place")
    fate = answered(ann, Manner(push=push))[gate.id]
    assert ann.now(gate).state == "answered"
    assert (fate.error is not None) == bool(push)
    assert fate.done is not None
    assert not fate.done.published.pushed


@pytest.mark.parametrize("push", [True, None])
def test_a_server_that_refuses_one(ann: Seat, bare: Clone, push: bool | None) -> None:
    """That one is named with the server's reason, and the others arrive."""
    refused, taken = ann.ask(push=True), ann.ask(push=True)
    hook = Path(bare.path) / "hooks/update"
    hook.write_text(f'#!/bin/sh\ncase "$1" in *{refused.id}) echo "not this one" >&2; exit 1;; esac\n')
    hook.chmod(0o755)
    fates = answered(ann, Manner(push=push))
    there = fates[taken.id].done
    assert there is not None
    assert there.published.pushed
    if push:
        assert isinstance(fates[refused.id].error, PushRefused)
        assert "safe here" in str(fates[refused.id].error)
    else:
        done = fates[refused.id].done
        assert done is not None
        assert not done.published.pushed


def test_somebody_was_first(ann: Seat, bob: Seat) -> None:
    """An answer that turns out to be late when it arrives is told as such."""
    gate = ann.ask(push=True)
    sync(bob.desk, "origin")
    ann.answer(gate, "no", push=True)
    assert isinstance(answered(bob, Manner())[gate.id].error, Conflict)


def test_an_answer_that_fits_not_all(ann: Seat) -> None:
    """A gate that it does not fit is left alone."""
    from gitgate.acts.asking import AskWishes, ask
    from gitgate.model.gate import Question
    from gitgate.questions.drafts import Draft

    fitting = ann.ask()
    other = ask(ann.desk, Draft((Question("answer", "Deploy?", "approval"),)), AskWishes()).gate
    fates = answered(ann, Manner())
    assert fates[fitting.id].error is None
    assert fates[other.id].error is not None
    assert ann.now(other).state == "awaiting"
