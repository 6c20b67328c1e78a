"""People hear how a run ended, once each, whoever looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitgate.flows.journal import begin_run, stop_run, take_run
from gitgate.record.runs import Run
from gitgate.surfaces.notify.addresses import CHANNELS
from support.resuming import Clock, Seat

from .conftest import Listener, send

Told = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def hearing(alone: Seat, by_hand: list[Path], tmp_path: Path) -> list[Path]:
    """A program at this seat hears of everything; where a sender would have been started is listed."""
    alone.clone.git("config", "--add", "gitgate.notify", f"command {tmp_path}/hear")
    return by_hand


def ended(seat: Seat, name: str, by: str = "", **said: Any) -> Run:
    held = begin_run(seat.desk, {"flow": "feature <!here>", **({"by": by} if by else {})})
    return held.leave(name, **said)


ERROR = {"class": "builtins:ValueError", "message": "no luck @everyone"}


@pytest.mark.parametrize(
    ("name", "said", "event"),
    [
        ("completed", {"result": 1}, "run:completed"),
        ("failed", {"error": ERROR}, "run:failed"),
        ("stuck", {"reason": "somebody said no"}, "run:stuck"),
        ("released", {"reason": "stalled: needs HOST"}, "run:stalled"),
    ],
)
def test_an_end_is_told_once(
    alone: Seat, hearing: list[Path], told: Told, name: str, said: dict[str, Any], event: str
) -> None:
    """With what came of it, in words that do nothing."""
    run = ended(alone, name, **said)
    assert hearing == [alone.clone.path]
    assert [send(alone).sent for _ in range(3)] == [1, 0, 0]
    (one,) = told()
    assert (one["event"], one["gate"], one["run"]["id"]) == (event, None, run.id)
    assert one["command"] == f"git gate show {run.id[:6]}"
    assert one["run"]["flow"] == "feature ‹!here›"
    reason = one["run"]["reason"] or ""
    assert reason in ("", "ValueError: no luck ＠everyone", "somebody said no", "stalled: needs HOST")
    assert reason in one["text"]


def test_what_goes_on_or_was_stopped_is_not_told(alone: Seat, hearing: list[Path], told: Told) -> None:
    waits = ended(alone, "waiting", gates=[])
    assert hearing == []
    stop_run(alone.desk, waits, "enough")
    take_run(alone.desk, waits.id).leave("stopped", reason="enough")
    begin_run(alone.desk, {"flow": "other"}).leave("released", reason="detached")
    called = {"parent": waits.id, "parent_step": "flow:other#1"}  # of that the run above it is told
    begin_run(alone.desk, {"flow": "other", **called}).leave("completed")
    assert send(alone).sent == 0
    assert told() == []


def test_a_run_that_went_on_meanwhile_is_told_as_it_is(
    alone: Seat, hearing: list[Path], told: Told, listener: Listener, clock: Clock
) -> None:
    """It stalled, nobody could be told, it was gone on with: what was to be said then is said no more."""
    alone.clone.git("config", "gitgate.notify", f"webhook {listener.url}")
    alone.clone.git("config", "gitgate.notify.secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    listener.status = 500
    run = ended(alone, "released", reason="stalled: needs HOST")
    assert send(alone).failed == 1
    take_run(alone.desk, run.id).leave("completed")
    listener.status = 204
    clock.pass_by(3600)
    send(alone)
    said = [one["event"] for one in listener.said]
    assert said == ["run:stalled", "run:completed"]
    assert len(set(listener.ids)) == 2


def test_an_address_of_some_people_hears_of_their_runs(alone: Seat, hearing: list[Path], told: Told) -> None:
    """And of those whose starter nobody knows; one for pressing gates alone hears of none."""
    assert "command" in CHANNELS
    alone.clone.git("config", "gitgate.notify.to", "ada@example.org")
    theirs = ended(alone, "completed", by="Ada <ada@example.org>")
    ended(alone, "completed", by="Bob <bob@example.org>")
    nobodys = ended(alone, "stuck", reason="no")
    send(alone)
    assert sorted(one["run"]["id"] for one in told()) == sorted([theirs.id, nobodys.id])
    alone.clone.git("config", "gitgate.notify.only", "high")
    ended(alone, "failed", error=ERROR)
    assert send(alone).sent == 0
