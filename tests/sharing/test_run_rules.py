"""What a shared repository takes of runs, told by real pushes that run the real hook."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gitgate.context import Desk
from gitgate.errors import PushRefused
from gitgate.flows.journal import HeldRun, begin_run, load_run, stop_run, take_run
from gitgate.model.lease import end_of
from gitgate.record.runs import Run, RunEvent, dump_run_event, path_of, run_id
from gitgate.store.records import Signature
from gitgate.store.records.journal import Journals
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

pytestmark = pytest.mark.slow

RUNS = "refs/hitl/runs/"
LEASES = "refs/hitl/leases/"
BY = Signature("mallory <mallory@example.org>", 1_780_000_000)
AT = "2026-06-01T00:00:00Z"


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Clone:
    return clone_of(server, "ann")


@pytest.fixture
def mallory(server: Clone, clone_of: Callable[..., Clone]) -> Clone:
    return clone_of(server, "mallory")


@pytest.fixture
def held(ann: Clone, desks: Callable[[Clone], Desk]) -> Iterator[HeldRun]:
    found = begin_run(desks(ann), {"flow": "feature"})
    yield found
    found.over.set()


def refused(clone: Clone, *specs: str) -> str:
    """What the server says to a push that it must not take."""
    with pytest.raises(GitError) as said:
        clone.git("push", "origin", *specs)
    return str(said.value)


def forged(desk: Desk, run: str, *events: tuple[str, dict[str, object]]) -> tuple[Run, str]:
    """Further events on the run as it is at the remote, by somebody who has no right to."""
    desk.repo.git.run("fetch", "-q", "origin", f"+{RUNS}*:{RUNS}*", f"+{LEASES}*:{LEASES}*")
    found = load_run(desk, run)
    for name, said in events:
        Journals(desk.repo, desk.records).write_event(found, name, AT, said, BY)
    return found, f"{found.tip}:{RUNS}{run}"


STEP = {"step": "step:a#1", "kind": "step", "name": "a"}


def test_what_a_holder_does_is_taken(
    held: HeldRun, server: Clone, ann: Clone, desks: Callable[[Clone], Desk]
) -> None:
    """It begins, shares, renews, waits, is gone on with elsewhere, and ends."""
    held.append("begun", **STEP)
    held.share()
    held.append("done", step="step:a#1", result=1)
    held.append("begun", **{**STEP, "step": "step:b#1"})
    held.share()
    held.renew()
    assert server.refs()[RUNS + held.run.id] == held.run.tip
    held.append("done", step="step:b#1")
    held.leave("waiting", gates=["abcdefghjk"])
    assert server.refs()[RUNS + held.run.id] == held.run.tip
    assert LEASES + held.run.id not in server.refs()
    again = take_run(desks(ann), held.run.id)
    assert again.held.remote == "origin"
    again.leave("completed", result="x")
    assert server.refs()[RUNS + held.run.id] == again.run.tip


def test_a_journal_only_grows(held: HeldRun, mallory: Clone, desks: Callable[[Clone], Desk]) -> None:
    """It is not rewritten, taken back or deleted."""
    held.append("begun", **STEP)
    held.share()
    run, _ = forged(desks(mallory), held.run.id)
    assert "only grows" in refused(mallory, f"+{run.events[1].commit}:{RUNS}{run.id}")
    assert "is kept" in refused(mallory, f":{RUNS}{run.id}")


@pytest.mark.parametrize(
    ("name", "said", "why"),
    [
        ("begun", STEP, "its lease comes with it"),
        ("completed", {"result": "mine", "reveal": "00" * 32}, "does not prove to be it"),
        ("waiting", {"gates": []}, "does not prove to be it"),
    ],
)
def test_only_its_holder_writes_it(
    held: HeldRun,
    mallory: Clone,
    desks: Callable[[Clone], Desk],
    name: str,
    said: dict[str, object],
    why: str,
) -> None:
    """Whoever can push cannot say what a step came to, nor that the run is over."""
    assert why in refused(mallory, forged(desks(mallory), held.run.id, (name, said))[1])


def claim_on(held: HeldRun) -> dict[str, object]:
    return {
        "at": AT,
        "answer": held.run.tip,
        "nonce": "n",
        "runner": "flow",
        "host": "m",
        "attempt": 2,
        "term": 60,
        "anchor": end_of("ab" * 32),
    }


def test_a_claim_waits_for_the_lease(held: HeldRun, mallory: Clone, desks: Callable[[Clone], Desk]) -> None:
    """A run that is gone on with is not taken over before its lease has lapsed."""
    assert "sign of life" in refused(
        mallory, forged(desks(mallory), held.run.id, ("claimed", {"claim": claim_on(held)}))[1]
    )


def test_a_claim_comes_with_its_lease(held: HeldRun, mallory: Clone, desks: Callable[[Clone], Desk]) -> None:
    """Where nobody holds the run, one that brings none is refused."""
    held.leave("waiting", gates=[])
    assert "without its lease" in refused(
        mallory, forged(desks(mallory), held.run.id, ("claimed", {"claim": claim_on(held)}))[1]
    )


def test_nobody_writes_where_nobody_holds_it(
    held: HeldRun, mallory: Clone, desks: Callable[[Clone], Desk]
) -> None:
    """What a run came to is said by whoever claimed it: without a claim it is no journal at all."""
    held.leave("released", reason="handed back")
    desk = desks(mallory)
    run, _ = forged(desk, held.run.id)
    event = RunEvent("completed", len(run.events), AT, {"result": "mine"})
    data = dump_run_event(event)
    blob = mallory.git("hash-object", "-w", "--stdin", input=data)
    tree = mallory.git("mktree", input=f"100644 blob {blob}\t{path_of('completed', data)}\n")
    tip = mallory.git("commit-tree", tree, "-p", run.tip, "-m", "completed")
    said = refused(mallory, f"{tip}:{RUNS}{run.id}")
    assert "nobody goes on with it" in said, said


def test_somebody_else_does_not_move_its_lease(
    held: HeldRun, mallory: Clone, desks: Callable[[Clone], Desk]
) -> None:
    """Neither away nor on."""
    forged(desks(mallory), held.run.id)
    lease = mallory.git("rev-parse", LEASES + held.run.id)
    assert "goes when it is let go" in refused(mallory, f":{LEASES}{held.run.id}")
    message = mallory.git("log", "-1", "--format=%B", lease).replace("Beat: 0", "Beat: 1")
    tree = mallory.git("rev-parse", f"{lease}^{{tree}}")
    moved = mallory.git("commit-tree", tree, "-p", f"{lease}^1", "-p", lease, "-m", message)
    assert "does not prove to be" in refused(mallory, f"+{moved}:{LEASES}{held.run.id}")


def test_anybody_who_may_act_stops_it(
    held: HeldRun, mallory: Clone, ann: Clone, desks: Callable[[Clone], Desk], server: Clone
) -> None:
    """From another clone; its holder hears it when it shares next, and what had begun there is kept."""
    held.append("begun", **STEP)
    held.share()
    desk = desks(mallory)
    run, _ = forged(desk, held.run.id)
    desk.repo.git.run("fetch", "-q", "origin", f"+{RUNS}*:refs/gitgate/origin/runs/*")
    stop_run(desk, run, "not wanted")
    held.append("done", step="step:a#1", result="kept")
    held.append("begun", **{**STEP, "step": "step:b#1"})
    held.share()
    assert held.run.state == "stopping"
    assert "step:b#1" not in held.run.steps
    assert held.run.steps["step:a#1"].state == "done"
    held.leave("stopped", reason="not wanted")
    assert server.refs()[RUNS + held.run.id] == held.run.tip


def test_a_message_says_what_its_journal_means(
    held: HeldRun, mallory: Clone, desks: Callable[[Clone], Desk]
) -> None:
    """Lists go by it."""
    run, _ = forged(desks(mallory), held.run.id, ("noted", {"text": "x"}))
    tree = mallory.git("rev-parse", f"{run.tip}^{{tree}}")
    other = mallory.git("commit-tree", tree, "-p", f"{run.tip}^", "-m", "x\n\nHitl-State: completed")
    assert "message" in refused(mallory, f"{other}:{RUNS}{run.id}")


def test_a_server_that_refuses_runs_leaves_them_here(
    bare: Clone, clone_of: Callable[..., Clone], desks: Callable[[Clone], Desk]
) -> None:
    """As an earlier version's hook does: the run goes on in this clone alone, unless its push was insisted on."""
    hook = bare.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\ngrep -q refs/hitl/runs && { echo no runs here >&2; exit 1; }\nexit 0\n")
    hook.chmod(0o755)
    ann = clone_of(bare, "ann")
    held = begin_run(desks(ann), {"flow": "feature"})
    assert held.held.remote is None
    assert ann.refs()[RUNS + held.run.id] == held.run.tip
    held.over.set()
    with pytest.raises(PushRefused, match="no runs here"):
        begin_run(desks(ann), {"flow": "feature"}, push=True)


CALL = {"step": "flow:inner#1", "kind": "flow", "name": "inner"}
CALLED = {"flow": "inner", "parent_step": "flow:inner#1", "nonce": "n"}


def named(desk: Desk, caller: str) -> tuple[dict[str, str], str]:
    """How a run begins that says that it is a step of that one, and its id."""
    said = {**CALLED, "parent": caller}
    return said, run_id(dump_run_event(RunEvent("started", 0, AT, said)))


def test_a_run_is_a_step_of_one_that_names_it(
    held: HeldRun, server: Clone, ann: Clone, mallory: Clone, desks: Callable[[Clone], Desk]
) -> None:
    """One that says so of a run that does not is not taken, whoever pushes it."""
    desk = desks(mallory)
    said, run = named(desk, held.run.id)
    with pytest.raises(PushRefused, match="has no such step"):
        begin_run(desk, said, push=True, at=AT)
    with pytest.raises(PushRefused, match="which is not here"):
        begin_run(desk, {**said, "parent": "abcdefghjk"}, push=True, at=AT)
    held.append("begun", **CALL, run=run)
    held.share()
    with pytest.raises(PushRefused, match=f"and that is run {run}"):
        begin_run(desk, {**said, "nonce": "another"}, push=True, at=AT)
    child = begin_run(desks(ann), said, push=True, at=AT)
    assert server.refs()[RUNS + run] == child.run.tip
    child.leave("completed")
