"""Whose lease moves on a server with our hook, told by real pushes: its holder's, and nobody else's."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gitgate import claims
from gitgate.claims import HeldClaim, claim, claim_outcome, finish, renew
from gitgate.claims.attending import Attendance, hear
from gitgate.context import open_desk
from gitgate.context.machine import boot_id
from gitgate.errors import Conflict, PushRefused
from gitgate.exchange.syncing import sync
from gitgate.gates import leases
from gitgate.gates.leases import Sighting, boottime, read_sighting
from gitgate.model import lease
from gitgate.model.gate import Claim, Gate, Outcome
from gitgate.model.lease import Lease
from gitgate.sharing import refusals
from gitgate.store.git.refs import Update
from gitgate.store.records import NOBODY, Signature
from support.resuming import Seat, claimant
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

pytestmark = pytest.mark.slow  # real pushes, through the real hook

OPEN, LEASES = "refs/hitl/open/", "refs/hitl/leases/"


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(server, "ann")) as seat:
        yield seat


@pytest.fixture
def eve(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    """Somebody who may push, and wants the answer acted on twice."""
    with Seat(clone_of(server, "eve")) as seat:
        yield seat


def held_by(ann: Seat, eve: Seat) -> HeldClaim:
    held = claim(ann.desk, ann.answer(ann.ask()), claimant("ann"))
    sync(eve.desk)
    return held


def refused(seat: Seat, *specs: str) -> str:
    with pytest.raises(GitError) as said:
        seat.clone.git("push", "-f", "origin", *specs)
    return str(said.value)


def forge(seat: Seat, held: HeldClaim, said: Lease) -> str:
    return claims.write_lease(seat.desk, said, held.claim)[1]


def unmoved(server: Clone, held: HeldClaim, seconds: float) -> None:
    """As if the hook had received the last renewal so long ago."""
    place = server.path / "gitgate/sightings" / held.gate.id
    seen = read_sighting(place)
    assert seen is not None
    assert (seen.holder, seen.beat) == (held.claim, held.said.beat)
    place.write_text(replace(seen, last=(seen.last or 0) - seconds).dump())


# moving it


def test_its_holder_moves_it(ann: Seat, server: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewals and the outcome are taken, over the end of a chain too."""
    monkeypatch.setattr(lease, "LINKS", 2)
    held = claim(ann.desk, ann.answer(ann.ask()), claimant("ann"))
    for _ in range(5):
        held = renew(ann.desk, held)
    assert server.refs()[LEASES + held.gate.id] == held.lease
    assert finish(ann.desk, held, claim_outcome(ann.desk, held, "resumed")).state == "resumed"
    assert LEASES + held.gate.id not in server.refs()


def test_an_end_in_the_past(ann: Seat, eve: Seat, server: Clone) -> None:
    """The lease with another end than its holder gave it, so that it looks lapsed."""
    held = held_by(ann, eve)
    for said in (
        replace(held.said, term=1),
        replace(held.said, beat=1, term=1),
        replace(held.said, beat=1, term=1, reveal=lease.end_of("00" * 32)),
        replace(held.said, beat=1, anchor=lease.end_of("00" * 32)),
    ):
        words = refused(eve, f"{forge(eve, held, said)}:{LEASES}{held.gate.id}")
        assert "only its holder moves a lease" in words
    assert server.refs()[LEASES + held.gate.id] == held.lease
    renew(ann.desk, held)


def test_what_was_revealed_before(ann: Seat, eve: Seat) -> None:
    """A lease that was there before, and one that tells the same link again, prove nothing any more."""
    first = held_by(ann, eve)
    second = renew(ann.desk, first)
    third = renew(ann.desk, second)
    eve.clone.git("fetch", "-q", "origin", f"{LEASES}*:refs/seen/*")
    for oid in (first.lease, second.lease):
        eve.clone.git("fetch", "-q", str(ann.clone.path), f"{LEASES}*:refs/seen/*", check=False)
        ann.clone.git("update-ref", f"refs/hitl/keep/{oid[:10]}", oid)
    eve.clone.git("fetch", "-q", str(ann.clone.path), "refs/hitl/keep/*:refs/seen/*")
    for oid in (first.lease, second.lease):
        assert "only its holder moves a lease" in refused(eve, f"{oid}:{LEASES}{first.gate.id}")
    for said in (replace(third.said, term=1), replace(third.said, beat=9, term=1)):
        words = refused(eve, f"{forge(eve, first, said)}:{LEASES}{first.gate.id}")
        assert "only its holder moves a lease" in words


@pytest.mark.parametrize("lie", ["an older one", "none", "what the push brings"])
def test_a_lie_about_what_was_there_is_no_sign_of_life(ann: Seat, server: Clone, lie: str) -> None:
    """Git refuses such a move after the hook has looked: it takes the old value from whoever pushes."""
    held = claim(ann.desk, ann.answer(ann.ask()), claimant("ann"))
    first = held.lease
    second = renew(ann.desk, held)
    third = renew(ann.desk, second)
    unmoved(server, third, 1000)
    place = server.path / "gitgate/sightings" / held.gate.id
    before = read_sighting(place)
    with contextlib.closing(open_desk(server.path, dict(os.environ))) as desk:
        old, new = {
            "an older one": (first, second.lease),
            "none": (None, third.lease),
            "what the push brings": (second.lease, third.lease),
        }[lie]
        refusals(desk, [Update(old, new, LEASES + held.gate.id)])
    assert read_sighting(place) == before
    renew(ann.desk, third)
    after = read_sighting(place)
    assert before is not None
    assert after is not None
    assert (after.last or 0) > (before.last or 0)


def test_its_deletion(ann: Seat, eve: Seat) -> None:
    """It goes with the outcome alone."""
    held = held_by(ann, eve)
    assert "its lease goes with the outcome" in refused(eve, f":{LEASES}{held.gate.id}")


def test_an_outcome_of_somebody_else(ann: Seat, eve: Seat, server: Clone) -> None:
    """Given back by who does not hold it, the gate would be claimed again while the first agent works."""
    held = held_by(ann, eve)
    for result, reveal in (
        ("released", ""),
        ("released", "0" * 64),
        ("resumed", held.said.nonce * 2 + "0" * 16),
    ):
        desk = eve.desk
        said = Outcome(desk.now, held.claim, result, reveal=reveal)
        after = desk.records.write_event(eve.now(held.gate), "outcome", said, Signature(NOBODY, desk.at))
        words = refused(eve, f"{after.tip}:{OPEN}{held.gate.id}", f":{LEASES}{held.gate.id}")
        assert "only the holder of the claim" in words
    assert server.refs()[OPEN + held.gate.id] == held.claim


# taking over


def take_over(seat: Seat, gate: Gate, name: str = "eve") -> tuple[HeldClaim, list[str]]:
    """A claim on top of the one that counts, whatever was watched, with its lease."""
    desk = seat.desk
    now = seat.now(gate)
    held, moves = claims.compose_claim(desk, now, claimant(name), ("origin", now.tip), None)
    return held, [f"{move.new}:{move.ref}" for move in moves]


def test_a_claim_before_the_lease_has_lapsed(ann: Seat, eve: Seat, server: Clone) -> None:
    """By the server's clock, from when it received the last renewal; whatever who claims has seen."""
    held = held_by(ann, eve)
    for seconds in (0, 20, 45):  # the rest is for a machine that does other things as well
        unmoved(server, held, seconds)
        assert "has 60 s for the next" in refused(eve, *take_over(eve, held.gate)[1])
        held = renew(ann.desk, held)
    unmoved(server, held, 61)
    eve.clone.git("push", "-q", "-f", "origin", *take_over(eve, held.gate)[1])
    with pytest.raises((claims.ClaimLost, Conflict)):
        renew(ann.desk, held)


def test_a_claim_without_its_lease(ann: Seat, eve: Seat, server: Clone) -> None:
    """It would leave the first runner's lease beside another's claim."""
    held = held_by(ann, eve)
    unmoved(server, held, 61)
    assert "comes without its lease" in refused(eve, take_over(eve, held.gate)[1][0])
    gate = ann.answer(ann.ask())
    sync(eve.desk)
    assert "comes without its lease" in refused(eve, take_over(eve, gate)[1][0])


def test_where_the_hook_has_not_seen_it_received(ann: Seat, eve: Seat, server: Clone) -> None:
    """A machine that was started anew, a hook that came later: it is watched from the first look on."""
    held = held_by(ann, eve)
    server.git("pack-refs", "--all")
    place = server.path / "gitgate/sightings" / held.gate.id
    place.unlink()
    for left in (-1.0, 61.0):
        assert "sign of life 0 s ago" in refused(eve, *take_over(eve, held.gate)[1])
        place.write_text(Sighting(held.claim, 0, "another", 0.0, boottime() - left, 1.0).dump())
    assert "sign of life 0 s ago" in refused(eve, *take_over(eve, held.gate)[1])
    place.write_text(Sighting(held.claim, 0, boot_id(), 0.0, boottime() - 61, 1.0).dump())
    eve.clone.git("push", "-q", "-f", "origin", *take_over(eve, held.gate)[1])


def test_what_another_account_received(ann: Seat, eve: Seat, server: Clone) -> None:
    """Its folder is its own; the time of the ref's file is everybody's."""
    held = held_by(ann, eve)
    for age, taken in ((30, False), (-3600, False), (61, True)):
        (server.path / "gitgate/sightings" / held.gate.id).unlink()
        at = time.time() - age
        os.utime(server.path / f"{LEASES}{held.gate.id}", (at, at))
        if taken:
            eve.clone.git("push", "-q", "-f", "origin", *take_over(eve, held.gate)[1])
        else:
            assert "has 60 s for the next" in refused(eve, *take_over(eve, held.gate)[1])


def test_a_lease_that_is_for_nothing(ann: Seat, eve: Seat) -> None:
    """Where nobody acts and nobody waits there is nothing to hold."""
    gate = ann.answer(ann.ask())
    sync(eve.desk)
    held, _ = take_over(eve, gate)
    assert "a lease comes with a claim" in refused(eve, f"{held.lease}:{LEASES}{gate.id}")


def test_a_claim_of_an_older_version(ann: Seat, server: Clone) -> None:
    """It names no chain, and its lease moves as it did then."""
    desk = ann.desk
    gate = ann.answer(ann.ask())
    assert gate.answer is not None
    event = Claim(desk.now, gate.answer.commit, "n" * 24, "old", "host", 1, 60)
    by = Signature(NOBODY, desk.at)
    claimed = desk.records.write_event(gate, "claimed", event, by)
    said = Lease(gate.id, "old", "host", "n" * 24, 60, 0, desk.now, desk.now)
    _, first = claims.write_lease(desk, said, claimed.tip)
    _, second = claims.write_lease(desk, replace(said, beat=1), claimed.tip)
    ann.clone.git("push", "-q", "origin", f"{claimed.tip}:{OPEN}{gate.id}", f"{first}:{LEASES}{gate.id}")
    ann.clone.git("push", "-q", "-f", "origin", f"{second}:{LEASES}{gate.id}")
    over = desk.records.write_event(claimed, "outcome", Outcome(desk.now, claimed.tip, "resumed"), by)
    ann.clone.git("push", "-q", "origin", f"{over.tip}:{OPEN}{gate.id}", f":{LEASES}{gate.id}")
    assert server.refs()[OPEN + gate.id] == over.tip


# waiting


def test_a_waiters_lease(ann: Seat, eve: Seat, server: Clone) -> None:
    """It is the waiter's: made, renewed, given up and ended by who waits, and by nobody else."""
    gate = ann.ask(wait=True)
    attendance = Attendance(ann.desk, gate, boottime)
    attendance.keep(gate)
    held = attendance.held
    assert held is not None
    sync(eve.desk)
    again = renew(ann.desk, held)
    _, forged = claims.write_lease(eve.desk, replace(again.said, beat=2, term=1), gate.tip, held.chain)
    eve.clone.git("fetch", "-q", "origin", f"{LEASES}{gate.id}:refs/seen/lease")
    assert "only its holder moves a lease" in refused(eve, f"{forged}:{LEASES}{gate.id}")
    assert "the lease is its waiter's" in refused(eve, f":{LEASES}{gate.id}")
    answered = ann.answer(gate)
    sync(eve.desk)
    assert "has 300 s for the next" in refused(eve, *take_over(eve, answered)[1])
    assert hear(ann.desk, ann.now(gate), again).state == "resumed"
    assert LEASES + gate.id not in server.refs()


def test_a_waiter_that_left(ann: Seat, eve: Seat, server: Clone) -> None:
    """Its lease says so itself, and a runner has not to wait for its term."""
    gate = ann.ask(wait=True)
    attendance = Attendance(ann.desk, gate, boottime)
    attendance.keep(gate)
    attendance.leave(gate)
    found = leases.read_lease(ann.desk, gate.id, server.refs()[LEASES + gate.id])
    assert found is not None
    assert found.over
    ann.answer(gate)
    sync(eve.desk)
    assert claim(eve.desk, eve.now(gate), claimant("eve")).attempt == 1


# the policy

POLICY = """
policy:
  people:
    ada: {email: ada@example.org, login: ada}
    eve: {email: eve@example.org, login: eve}
  runners: [ada]
"""


def test_only_runners_of_the_policy(
    ann: Seat, eve: Seat, server: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They claim, renew and end; a lease that is moved is judged as a claim is, a waiter's too."""
    ann.clone.write(".gitgate.yml", POLICY)
    ann.clone.git("add", ".gitgate.yml")
    ann.clone.git("commit", "-qm", "policy")
    ann.clone.git("push", "-q", "origin", "main")
    monkeypatch.setenv("GITGATE_ACTOR", "ada")
    held = claim(ann.desk, ann.answer(ann.ask()), claimant("ann"))
    monkeypatch.setenv("GITGATE_ACTOR", "eve")
    with pytest.raises(PushRefused, match="is not a runner"):
        renew(ann.desk, held)
    assert os.environ["GITGATE_ACTOR"] == "eve"
    monkeypatch.setenv("GITGATE_ACTOR", "ada")
    held = renew(ann.desk, held)
    assert server.refs()[LEASES + held.gate.id] == held.lease
