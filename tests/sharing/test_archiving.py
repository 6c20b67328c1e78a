"""Closed gates folded away: nothing of them is left over, and nothing that is worth keeping goes."""

from __future__ import annotations

import subprocess

import pytest

from gitgate.acts import find_gate
from gitgate.acts.answering import stop
from gitgate.audit.auditing import audit
from gitgate.claims import claim, claim_outcome, finish
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate
from gitgate.sharing.archiving import fold_closed
from support.resuming import Seat, claimant
from support.testbed.command import COMMAND, Command

HITL = "refs/hitl/"


def closed(seat: Seat, *, dirty: bool) -> Gate:
    if dirty:
        seat.clone.write("partial", "p")
    gate = seat.ask()
    answered = seat.answer(gate)
    desk = seat.desk
    held = claim(desk, answered, claimant())
    finish(desk, held, claim_outcome(desk, held, "resumed"))
    return gate


def kinds(refs: dict[str, str]) -> list[str]:
    return sorted(ref.removeprefix(HITL).partition("/")[0] for ref in refs)


@pytest.mark.parametrize("dirty", [True, False])
def test_without_a_remote_no_ref_is_left(alone: Seat, *, dirty: bool) -> None:
    """Whether the agent had changed anything or not; `verify` has nothing to mention."""
    gate = closed(alone, dirty=dirty)
    assert fold_closed(alone.desk).folded == (gate.id,)
    assert kinds(alone.clone.refs(HITL)) == ["archive", "evidence"]
    alone.clone.git(
        "merge-base", "--is-ancestor", str(gate.opened.work.commit), *alone.clone.refs(f"{HITL}evidence")
    )
    assert not audit(alone.desk).notes


@pytest.mark.parametrize("consent", [True, False])
@pytest.mark.parametrize("dirty", [True, False])
@pytest.mark.slow
def test_with_a_remote_no_ref_is_left_on_either_side(ann: Seat, *, dirty: bool, consent: bool) -> None:
    """What was never published, and is nowhere else, stays here."""
    ann.clone.git("config", "gitgate.publishWork", str(consent).lower())
    gate = closed(ann, dirty=dirty)
    assert fold_closed(ann.desk).folded == (gate.id,)
    there = ann.clone.git("ls-remote", "origin", f"{HITL}*").split("\n")  # also a tag that is called so
    evidence = ["evidence"] if consent else []
    names = [line.partition("\t")[2] for line in there]
    assert kinds({name: "" for name in names if name.startswith(HITL)}) == ["archive", *evidence]
    only_here = ["work"] if dirty and not consent else []
    assert kinds(ann.clone.refs(HITL)) == ["archive", *evidence, *only_here]


def test_what_an_earlier_archive_left_goes_with_the_next(alone: Seat) -> None:
    """Also when there is nothing new to fold."""
    gate = closed(alone, dirty=False)
    fold_closed(alone.desk)
    alone.clone.git("update-ref", "-d", next(iter(alone.clone.refs(f"{HITL}evidence"))))
    alone.clone.git("update-ref", f"{HITL}work/{gate.id}", str(gate.opened.work.commit))
    assert fold_closed(alone.desk).folded == ()
    assert kinds(alone.clone.refs(HITL)) == ["archive"]


@pytest.mark.slow
def test_a_clone_that_hears_of_it_keeps_nothing_either(ann: Seat, bob: Seat) -> None:
    """Whoever asked need not archive anything: the sync that tells of the archive tidies up."""
    gate = ann.ask()
    sync(bob.desk)
    stop(bob.desk, bob.now(gate), "over")
    fold_closed(bob.desk)
    assert sync(ann.desk).archived == (gate.id,)
    assert kinds(ann.clone.refs(HITL)) == ["archive"]


@pytest.mark.slow
def test_an_answer_that_came_when_it_was_archived_is_shown(ann: Seat, bob: Seat) -> None:
    """Whoever gave it was told nothing of the archive yet; it changes nothing, and everybody can read it."""
    gate = ann.ask()
    sync(bob.desk)
    ann.answer(gate)
    held = claim(ann.desk, ann.now(gate), claimant())
    finish(ann.desk, held, claim_outcome(ann.desk, held, "resumed"))
    fold_closed(ann.desk)
    bob.answer(gate, "Later", push=False)
    (told,) = sync(bob.desk).lost
    assert told == f"{gate.id}, archived before; what was said here: git gate show {gate.id}"
    stop(ann.desk, ann.ask(), "no need")
    fold_closed(ann.desk)  # what the remote has in its archive comes with the next
    for seat in (ann, bob):
        found = find_gate(seat.desk, gate.id)
        assert found.archived
        assert [vote.answer.values["answer"] for vote in found.gate.late] == ["Later"]
        assert found.gate.answer is not None
        assert found.gate.answer.answer.values["answer"] != "Later"


def test_a_full_disk_is_no_bug(alone: Seat, cli: Command) -> None:
    """What cannot be written is said, with what to do; when there is room again, nothing was lost."""
    cli.quick("stop", alone.ask().id, "--reason", "x", cwd=alone.clone.path, code=0)
    told = subprocess.run(
        ["sh", "-c", f"ulimit -f 0; exec '{COMMAND}' archive"],
        cwd=alone.clone.path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert told.returncode == 1
    assert "nothing can be written to" in told.stderr
    assert "then type the same again" in told.stderr
    assert "a bug in gitgate" not in told.stderr
    folded = cli("archive", cwd=alone.clone.path, code=0)
    assert "folded 1 gate" in folded.out + folded.err
