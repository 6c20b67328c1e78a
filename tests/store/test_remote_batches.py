"""Many gates in one go: each all or none, and none because of another's fault."""

from __future__ import annotations

import pytest

from gitgate.errors import RemoteUnreachable
from gitgate.store.batches import push_gates
from gitgate.store.push import push
from gitgate.store.remote import RefMove
from sharing import OPEN, Place, hook, name, opening, reasons, record
from testbed.repositories import Clone


def with_work(clone: Clone, number: int) -> list[RefMove]:
    base = clone.git("rev-parse", "HEAD")
    return [opening(clone, number), RefMove(f"refs/hitl/work/{name(number)}", base, None)]


def test_a_stale_gate_does_not_hold_up_the_others(near: Place) -> None:
    """Its own refs stay back together; every other gate arrives whole."""
    push(near.bob.repository, "origin", [opening(near.bob, 3, "his")])
    moves = [move for n in range(8) for move in with_work(near.ann, n)]
    fates = push_gates(near.ann.repository, "origin", moves)
    said = dict(zip([move.ref for move in moves], reasons(fates), strict=True))
    assert said.pop(OPEN + name(3)) == "stale"
    assert said.pop(f"refs/hitl/work/{name(3)}") == "not sent"
    assert set(said.values()) == {"ok"}
    assert f"refs/hitl/work/{name(3)}" not in near.server.refs()


def test_a_hook_that_refuses_a_whole_push_costs_only_the_gate_it_means(near: Place) -> None:
    """`pre-receive` refuses all or nothing: the batch is halved until the culprit is alone."""
    hook(near.server, "pre-receive", f"grep -q {name(5)} && echo bad gate >&2 && exit 1; exit 0")
    moves = [opening(near.ann, n) for n in range(30)]
    fates = push_gates(near.ann.repository, "origin", moves)
    assert [n for n, fate in enumerate(fates) if not fate.ok] == [5]
    assert "bad gate" in fates[5].reason
    assert len(near.server.refs(OPEN)) == 29


def test_a_hook_that_refuses_everything_ends(near: Place) -> None:
    """Every gate is refused in its own name."""
    hook(near.server, "pre-receive", "exit 1")
    moves = [opening(near.ann, n) for n in range(5)]
    said = reasons(push_gates(near.ann.repository, "origin", moves))
    assert said == ["refused: pre-receive hook declined"] * 5


def test_a_server_that_is_down_is_said_so(near: Place) -> None:
    """Nothing arrived: an error, no fates."""
    near.server.path.rename(near.server.path.with_name("away"))
    with pytest.raises(RemoteUnreachable):
        push_gates(near.ann.repository, "origin", [opening(near.ann, 1)])


def test_records_alone_need_one_push(near: Place) -> None:
    """Gates of one ref each go without atomicity: one stale among them costs no second push."""
    hook(near.server, "pre-receive", "wc -l >> batches")
    push(near.bob.repository, "origin", [RefMove(OPEN + name(0), record(near.bob, "his"), None)])
    said = reasons(push_gates(near.ann.repository, "origin", [opening(near.ann, n) for n in range(4)]))
    assert said == ["stale", "ok", "ok", "ok"]
    assert (near.server.path / "batches").read_text(encoding="utf-8").split() == ["1", "3"]
