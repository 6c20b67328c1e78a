"""Who holds a gate, on a real server with our hook: runners at two clones who claim, renew, give back, die and take over, clocks
that move, and somebody who may push and knows all that was ever pushed.

After each step the server has what an honest order of the honest steps makes: at most one holder, who got it when nobody had it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gitgate import claims as claiming
from gitgate.claims import HeldClaim, claim_outcome
from gitgate.errors import GateError
from gitgate.exchange.syncing import sync
from gitgate.gates.leases import read_sighting
from gitgate.model import lease as leases
from gitgate.model.gate import Claim, Gate, Outcome
from gitgate.store.git.refs import LEASES, OPEN
from gitgate.store.records import NOBODY, Signature
from gitgate.store.remote import RefMove
from support.resuming import Seat, claimant
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # real pushes, through the real hook

TERM = 3600
RUNNERS = ("ann", "bob")
BY = Signature(NOBODY, 1_800_000_000)


@dataclass
class World:
    """One answered gate, and what its runners did; `idle`: since when its holder gave no sign of life."""

    server: Clone
    seats: dict[str, Seat]
    mallory: Seat
    gate: Gate = field(init=False)
    held: dict[str, HeldClaim] = field(default_factory=dict)
    """What each runner believes to hold; nobody tells them that they lost it."""
    holder: str = ""
    idle: float = 0.0
    state: str = "answered"
    claims: int = 0
    known: list[tuple[str, str]] = field(default_factory=list)
    """Every lease that was ever there, with the record's tip then."""
    before: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ann = self.seats["ann"]
        self.gate = ann.answer(ann.ask(work=False))
        self.before = self.refs()

    @property
    def record(self) -> str:
        return OPEN + self.gate.id

    @property
    def lease(self) -> str:
        return LEASES + self.gate.id

    def refs(self) -> dict[str, str]:
        return {ref: oid for ref, oid in self.server.refs("refs/hitl").items() if ref.endswith(self.gate.id)}

    def load(self, seat: Seat) -> Gate:
        """All that is there, as this clone sees it."""
        seat.clone.git("fetch", "-q", "origin", "+refs/hitl/*:refs/seen/*")
        return seat.desk.records.load(self.gate.id, self.refs()[self.record])

    # runners

    def claim(self, who: str) -> None:
        """By somebody who is sure that it is free; the server knows better."""
        seat = self.seats[who]
        gate, refs = self.load(seat), self.refs()
        if gate.state not in ("answered", "resuming", "failed"):
            return
        free = self.state in ("answered", "failed") or self.idle >= TERM
        where = ("origin", gate.tip)
        try:
            held, moves = claiming.compose_claim(
                seat.desk, gate, claimant(who, term=TERM), where, refs.get(self.lease)
            )
        except GateError:
            return
        taken = self.push(seat, moves)
        assert taken == free, f"{who} claims: {taken}, and it was {self.state}, idle for {self.idle}"
        if taken:
            self.held[who], self.holder, self.idle, self.state = held, who, 0.0, "resuming"
            self.claims += 1

    def renew(self, who: str) -> None:
        """From wherever this runner believes to be."""
        held = self.held.get(who)
        if held is None:
            return
        after = claiming.next_lease(self.seats[who].desk, held)
        taken = self.push(self.seats[who], [RefMove(self.lease, after.lease, self.refs().get(self.lease))])
        assert taken == (self.holder == who), f"{who} renews: {taken}, and {self.holder or 'nobody'} holds it"
        if taken:
            self.held[who], self.idle = after, 0.0

    def finish(self, who: str, result: str) -> None:
        held = self.held.get(who)
        if held is None:
            return
        seat = self.seats[who]
        gate, refs = self.load(seat), self.refs()
        said = replace(claim_outcome(seat.desk, held, result), reveal=claiming.next_link(held))
        try:
            after = seat.desk.records.write_event(gate, "outcome", said, BY)
        except GateError:
            assert self.holder != who
            return
        moves = [RefMove(self.record, after.tip, gate.tip), RefMove(self.lease, None, refs.get(self.lease))]
        taken = self.push(seat, moves)
        assert taken == (self.holder == who), (
            f"{who} ends it: {taken}, and {self.holder or 'nobody'} holds it"
        )
        if taken:
            self.holder, self.state = "", {"released": "answered"}.get(result, result)

    def pass_by(self, seconds: float) -> None:
        """So long nothing reaches the server."""
        place = self.server.path / "gitgate/sightings" / self.gate.id
        seen = read_sighting(place) if place.exists() else None
        if seen is not None and seen.last is not None:
            place.write_text(replace(seen, last=seen.last - seconds).dump())
        self.idle += seconds

    def push(self, seat: Seat, moves: list[RefMove]) -> bool:
        """All of it or nothing, whatever is there now."""
        before = self.refs()
        specs = [f"{move.new or ''}:{move.ref}" for move in moves if move.new or before.get(move.ref)]
        seat.clone.git("push", "-q", "-f", "--atomic", "origin", *specs, check=False)
        after = self.refs()
        return after != before and all(after.get(move.ref) == move.new for move in moves)

    # somebody else

    def attack(self, *specs: str) -> None:
        """Nothing of it is taken."""
        before = self.refs()
        self.mallory.clone.git("push", "-q", "-f", "--atomic", "origin", *specs, check=False)
        assert self.refs() == before, f"a stranger moved {specs}"

    def move_expiry(self, how: str) -> None:
        """The lease as it is, with another end, beat, or next link."""
        lease = self.refs().get(self.lease)
        self.load(self.mallory)
        if lease is None or not self.holder:
            return
        desk, held = self.mallory.desk, self.held[self.holder]
        said = held.said
        made_up = {
            "the past": replace(said, term=1, expires="2000-01-01T00:00:00Z"),
            "another term": replace(said, term=1),
            "the next beat": replace(said, beat=said.beat + 1),
            "a far beat": replace(said, beat=said.beat + 7, reveal=leases.end_of("00" * 32)),
            "a chain of its own": replace(said, beat=said.beat + 1, anchor=leases.end_of("11" * 32)),
            "over": replace(said, beat=said.beat + 1, term=0, reveal=said.reveal),
        }[how]
        _, oid = claiming.write_lease(desk, made_up, held.claim, held.chain)
        self.attack(f"{oid}:{self.lease}")

    def replay(self, which: int) -> None:
        """A lease that was there before, alone or with the record as it was then."""
        older = [pair for pair in self.known if pair[0] != self.refs().get(self.lease)]
        if older:
            lease, tip = older[which % len(older)]
            self.load(self.mallory)
            self.mallory.clone.git("fetch", "-q", str(self.server.path), lease, tip, check=False)
            self.attack(f"{lease}:{self.lease}")
            self.attack(f"{lease}:{self.lease}", f"{tip}:{self.record}")

    def end_it(self, result: str, reveal: str) -> None:
        """An outcome in the holder's place, with a link that was told already, or made up; with and without the lease."""
        gate = self.load(self.mallory)
        if gate.claim is None or gate.state != "resuming":
            return
        desk, held = self.mallory.desk, self.held[self.holder]
        words = {"": "", "told": held.said.reveal, "made up": "ab" * 32, "nonce": (held.said.nonce * 3)[:64]}
        said = Outcome(desk.now, gate.claim.commit, result, reveal=words[reveal])
        tip = desk.records.write_event(gate, "outcome", said, BY).tip
        self.attack(f"{tip}:{self.record}")
        self.attack(f"{tip}:{self.record}", f":{self.lease}")

    def delete(self) -> None:
        if self.lease in self.refs():
            self.attack(f":{self.lease}")

    def claim_badly(self, how: str) -> None:
        """A claim without its lease, with another's, or of somebody who names the holder's own chain."""
        gate = self.load(self.mallory)
        if not (gate.state == "resuming" or gate.actionable):
            return
        desk = self.mallory.desk
        held, moves = claiming.compose_claim(
            desk, gate, claimant("mallory", term=TERM), ("origin", gate.tip), None
        )
        claim, lease = str(moves[0].new), str(moves[1].new)
        if how == "alone":
            self.attack(f"{claim}:{self.record}")
        elif how == "lease alone":
            self.attack(f"{lease}:{self.lease}")
        elif gate.claim is not None and isinstance(gate.claim.event, Claim):
            event = replace(gate.claim.event, at=desk.now)
            stolen = desk.records.write_event(gate, "claimed", event, BY).tip
            _, oid = claiming.write_lease(desk, replace(held.said, nonce=event.nonce), stolen)
            if self.idle < TERM:
                self.attack(f"{stolen}:{self.record}", f"{oid}:{self.lease}")

    # what holds

    def check(self) -> None:
        refs = self.refs()
        with Seat(self.server) as there:
            desk = there.desk
            gate = desk.records.load(self.gate.id, refs[self.record])
            lease = refs.get(self.lease)
            above = desk.records.commit(lease).parents[0] if lease else None
        assert gate.state == self.state
        assert sum(entry.name == "claimed" for entry in gate.history) == self.claims
        mine = self.held[self.holder] if self.holder else None
        assert above == (mine.claim if mine else None), "the lease is not its holder's"
        assert lease == (mine.lease if mine else None)
        assert (gate.state == "resuming") == bool(self.holder)
        if lease and (lease, refs[self.record]) not in self.known:
            self.known.append((lease, refs[self.record]))


@pytest.fixture
def worlds(bare: Clone, clone_of: Callable[..., Clone], cli: Command) -> Iterator[Callable[[], World]]:
    """A new gate each time, on one server."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    bare.git("config", "uploadpack.allowAnySHA1InWant", "true")
    with ExitStack() as open_seats:
        seats = {name: open_seats.enter_context(Seat(clone_of(bare, name))) for name in (*RUNNERS, "mallory")}
        mallory = seats.pop("mallory")
        yield lambda: World(bare, seats, mallory)


Step = Callable[[World], object]
WHO = st.sampled_from(RUNNERS)
CLAIMS = st.builds(lambda p: lambda w: w.claim(p), WHO)
RENEWALS = st.builds(lambda p: lambda w: w.renew(p), WHO)
ENDS = st.builds(
    lambda p, r: lambda w: w.finish(p, r), WHO, st.sampled_from(["released", "failed", "released"])
)
OVER = st.builds(lambda p: lambda w: w.finish(p, "resumed"), WHO)
TIME = st.builds(lambda s: lambda w: w.pass_by(s), st.sampled_from([TERM / 2, TERM + 60]))
HOSTILE = st.one_of(
    st.builds(
        lambda h: lambda w: w.move_expiry(h),
        st.sampled_from(
            ["the past", "another term", "the next beat", "a far beat", "a chain of its own", "over"]
        ),
    ),
    st.builds(lambda n: lambda w: w.replay(n), st.integers(0, 5)),
    st.builds(
        lambda r, v: lambda w: w.end_it(r, v),
        st.sampled_from(["released", "resumed", "failed"]),
        st.sampled_from(["", "told", "made up", "nonce"]),
    ),
    st.builds(lambda h: lambda w: w.claim_badly(h), st.sampled_from(["alone", "lease alone", "stolen"])),
    st.just(World.delete),
)
STEPS = st.lists(
    st.one_of(CLAIMS, CLAIMS, RENEWALS, RENEWALS, ENDS, OVER, TIME, HOSTILE, HOSTILE, HOSTILE),
    min_size=8,
    max_size=16,
)


@settings(max_examples=5, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_a_server_has_one_holder_at_a_time(worlds: Callable[[], World], steps: list[Step]) -> None:
    """Who claims what is held is refused, who holds it renews it, and nobody else's word moves it."""
    world = worlds()
    for step in [lambda w: w.claim("ann"), *steps]:
        step(world)
        world.check()


def test_a_course_in_which_all_of_it_happens(worlds: Callable[[], World]) -> None:
    """A takeover after a lapse, the first runner's return, attacks at each point: what a random course may leave out."""
    world = worlds()

    def hostile() -> None:
        for how in ("the past", "another term", "the next beat", "a far beat", "a chain of its own", "over"):
            world.move_expiry(how)
        for which in range(len(world.known)):
            world.replay(which)
        for reveal in ("", "told", "made up", "nonce"):
            world.end_it("released", reveal)
        for how in ("alone", "lease alone", "stolen"):
            world.claim_badly(how)
        world.delete()
        world.check()

    course: list[Step] = [
        lambda w: w.claim("ann"),
        lambda w: w.renew("ann"),
        lambda w: w.claim("bob"),
        lambda w: w.pass_by(TERM / 2),
        lambda w: w.renew("ann"),
        lambda w: w.pass_by(TERM / 2),
        lambda w: w.claim("bob"),
        lambda w: w.pass_by(TERM),
        lambda w: w.claim("bob"),
        lambda w: w.renew("ann"),
        lambda w: w.finish("ann", "resumed"),
        lambda w: w.renew("bob"),
        lambda w: w.finish("bob", "released"),
        lambda w: w.renew("bob"),
        lambda w: w.claim("ann"),
        lambda w: w.finish("bob", "resumed"),
        lambda w: w.finish("ann", "resumed"),
    ]
    for number, step in enumerate(course):
        step(world)
        world.check()
        if number % 3 == 1:
            hostile()
    assert (world.state, world.claims) == ("resumed", 3)
    sync(world.seats["bob"].desk)
