"""Who holds a gate, on a real server with our hook: runners at two clones who claim, renew, give back, die and take over, clocks
that move, and somebody who may push and knows all that was ever pushed.

After each step the server has what an honest order of the honest steps makes: at most one holder, who got it when nobody had it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gitgate import claims as claiming
from gitgate.claims import HeldClaim, claim_outcome
from gitgate.context import Desk
from gitgate.errors import GateError
from gitgate.exchange.syncing import sync
from gitgate.gates.leases import read_sighting
from gitgate.model import lease as leases
from gitgate.model.gate import Claim, Gate, Outcome
from gitgate.model.lease import Lease
from gitgate.store.git.refs import LEASES, OPEN
from gitgate.store.records import NOBODY, Signature
from gitgate.store.remote import RefMove
from support.knocking import Door, copy_places, examples, lend_objects
from support.resuming import Seat, claimant
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]  # real pushes; under HYPOTHESIS_PROFILE=thorough

TERM = 3600
RUNNERS = ("ann", "bob")
BY = Signature(NOBODY, 1_800_000_000)


@dataclass
class World:
    """One answered gate, and what its runners did; `idle`: since when its holder gave no sign of life."""

    folder: Path
    mallory: Seat
    gate: Gate
    held: dict[str, HeldClaim] = field(default_factory=dict)
    """What each runner believes to hold; nobody tells them that they lost it."""
    holder: str = ""
    idle: float = 0.0
    state: str = "answered"
    claims: int = 0
    known: list[tuple[str, str]] = field(default_factory=list)
    """Every lease that was ever there, with the record's tip then."""

    def __post_init__(self) -> None:
        self.mallory.close()  # who looks at this world from now on
        self.server = Clone(self.folder / "server.git")
        self.seats = {name: Seat(Clone(self.folder / name)) for name in RUNNERS}
        self.door = Door(self.server)
        everywhere = [self.server, *(seat.clone for seat in self.seats.values())]
        for seat in (self.mallory, *self.seats.values()):
            lend_objects(seat.clone, [one for one in everywhere if one != seat.clone])

    @property
    def record(self) -> str:
        return OPEN + self.gate.id

    @property
    def lease(self) -> str:
        return LEASES + self.gate.id

    @property
    def desk(self) -> Desk:
        """Mallory's."""
        if not self.mallory.desks:
            self.mallory.desk.work_in_bulk()
        return self.mallory.desks[-1]

    def rest(self) -> None:
        """Nobody sits at a desk for longer than a step."""
        for seat in (self.mallory, *self.seats.values()):
            seat.close()

    def refs(self) -> dict[str, str]:
        return {ref: oid for ref, oid in self.door.refs().items() if ref.endswith(self.gate.id)}

    def load(self, desk: Desk) -> Gate:
        """As it is there now."""
        return desk.records.load(self.gate.id, self.refs()[self.record])

    # runners

    def claim(self, who: str) -> None:
        """By somebody who is sure that it is free; the server knows better."""
        seat = self.seats[who]
        gate, refs = self.load(seat.desk), self.refs()
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
        gate, refs = self.load(seat.desk), self.refs()
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

    def let_go(self, result: str) -> None:
        """By whoever holds it."""
        if self.holder:
            self.finish(self.holder, result)

    def pass_by(self, seconds: float) -> None:
        """So long nothing reaches the server."""
        place = self.server.path / "gitgate/sightings" / self.gate.id
        seen = read_sighting(place) if place.exists() else None
        if seen is not None and seen.last is not None:
            place.write_text(replace(seen, last=seen.last - seconds).dump())
        self.idle += seconds

    def take_over(self, who: str) -> None:
        """After the holder, if any, gave no sign of life for long enough."""
        self.pass_by(TERM + 60)
        self.claim(who)

    def push(self, seat: Seat, moves: list[RefMove]) -> bool:
        """All of it or nothing, whatever is there now."""
        return self.door.push(seat.clone, {move.ref: move.new for move in moves})

    # somebody else, who knows all that was ever pushed

    def attack(self, *moves: tuple[str, str | None], by: Clone | None = None) -> None:
        """Nothing of it is taken."""
        taken = self.door.push(by or self.mallory.clone, dict(moves))
        assert not taken, f"a stranger moved {moves}"

    @property
    def holding(self) -> HeldClaim | None:
        return self.held.get(self.holder)

    @property
    def other(self) -> HeldClaim | None:
        """What somebody held who has lost it, or given it up."""
        return next((held for who, held in self.held.items() if who != self.holder), None)

    def write_lease(self, said: Lease, *above: str) -> str:
        tree = self.desk.records.commit(above[0]).tree
        return self.desk.records.write_commit(tree, above, BY, leases.lease_message(said))

    def move(self, _: int, how: str) -> None:
        """The lease as it is, with another end, beat, or link, on the claim that counts."""
        held = self.holding
        if held is None:
            return
        said, told = held.said, held.said.reveal
        after, other, own = replace(said, beat=said.beat + 1), self.other, "11" * 32
        made_up = {
            "the past": replace(said, expires="2000-01-01T00:00:00Z"),
            "a next beat in the past": replace(after, term=1, expires="2000-01-01T00:00:00Z"),
            "another term": replace(said, term=1),
            "the next beat": after,
            "a reveal": replace(after, reveal="ab" * 32),
            "no reveal": replace(after, reveal=""),
            "the nonce": replace(after, reveal=(said.nonce * 6)[:64]),
            "the claim's anchor": replace(after, reveal=told or leases.end_of(held.seed)),
            "a far beat": replace(said, beat=said.beat + 7, reveal=leases.end_of("00" * 32)),
            "a chain of its own": replace(
                after, reveal=leases.value_of(own, 1), anchor=leases.end_of(leases.next_seed(own))
            ),
            "somebody else's chain": replace(after, reveal=claiming.next_link(other) if other else told),
            "begun anew": replace(said, beat=0, reveal="", anchor=""),
            "begun anew with a chain": replace(said, beat=0, reveal="", anchor=leases.end_of(own)),
            "over": replace(after, term=0),
            "over with a reveal": replace(after, term=0, reveal="cd" * 32),
        }[how]
        self.attack((self.lease, self.write_lease(made_up, held.claim)))
        self.attack((self.lease, self.write_lease(made_up, held.claim, held.lease)))

    def move_elsewhere(self, _: int, how: str) -> None:
        """A lease that stands on something else than the claim that counts."""
        gate, other = self.load(self.desk), self.other
        said = Lease(gate.id, "mallory", "", "n" * 24, 1, 0, "", "2000-01-01T00:00:00Z")
        above = gate.history[0].commit if how == "the question" else gate.tip
        if how == "a claim that is over" and other is not None:
            said, above = (
                replace(other.said, beat=other.said.beat + 1, reveal=claiming.next_link(other)),
                other.claim,
            )
        if self.holding is None or above != self.holding.claim:
            self.attack((self.lease, self.write_lease(said, above)))

    def replay(self, which: int) -> None:
        """A lease that was there before, alone or with the record as it was then."""
        older = [pair for pair in self.known if pair[0] != self.refs().get(self.lease)]
        if older:
            lease, tip = older[which % len(older)]
            self.attack((self.lease, lease))
            self.attack((self.lease, lease), (self.record, tip))

    def end_it(self, which: int, reveal: str) -> None:
        """An outcome in the holder's place, with a link that was told already, or made up; with and without the lease."""
        gate, held, other = self.load(self.desk), self.holding, self.other
        if held is None:
            return
        words = {
            "none": "",
            "told": held.said.reveal,
            "the claim's anchor": leases.end_of(held.seed),
            "made up": "ab" * 32,
            "nonce": (held.said.nonce * 6)[:64],
            "somebody else's": claiming.next_link(other) if other else "",
        }
        result = ("released", "resumed", "failed")[which % 3]
        said = Outcome(self.desk.now, held.claim, result, reveal=words[reveal])
        tip = self.desk.records.write_event(gate, "outcome", said, BY).tip
        self.attack((self.record, tip))
        self.attack((self.record, tip), (self.lease, None))

    def delete(self, _: int) -> None:
        if self.lease in self.refs():
            self.attack((self.lease, None))

    def claim_badly(self, _: int, how: str) -> None:
        """A claim without its lease, with another's, too early, or of somebody who names the holder's own chain."""
        gate, held = self.load(self.desk), self.holding
        if not (gate.state == "resuming" or gate.actionable):
            return
        desk = self.desk
        mine, moves = claiming.compose_claim(
            desk, gate, claimant("mallory", term=TERM), ("origin", gate.tip), None
        )
        claim, lease = str(moves[0].new), str(moves[1].new)
        if how == "alone":
            self.attack((self.record, claim))
        elif how == "lease alone":
            self.attack((self.lease, lease))
        elif how == "with a strange lease":
            begun = replace(mine.said, anchor=leases.end_of("22" * 32))
            for said in (
                begun,
                replace(mine.said, beat=3, reveal="ab" * 32),
                replace(mine.said, gate="2" * 10),
            ):
                self.attack((self.record, claim), (self.lease, self.write_lease(said, claim)))
            self.attack((self.record, claim), (self.lease, self.write_lease(mine.said, gate.tip)))
        elif held is not None and self.idle < TERM:
            self.claim_early(gate, held, how, (claim, lease))

    def claim_early(self, gate: Gate, held: HeldClaim, how: str, own: tuple[str, str]) -> None:
        """While the holder is alive."""
        desk, event = self.desk, held.gate.claim.event if held.gate.claim else None
        if how == "early":
            self.attack((self.record, own[0]), (self.lease, own[1]))
            self.attack((self.record, own[0]), (self.lease, None))
        elif isinstance(event, Claim):
            stolen = desk.records.write_event(gate, "claimed", replace(event, at=desk.now), BY).tip
            lease = self.write_lease(replace(held.said, beat=0, reveal="", anchor=""), stolen)
            self.attack((self.record, stolen), (self.lease, lease))

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
def worlds(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> Iterator[Callable[[], World]]:
    """Each begins as the first one did."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    (bare.path / "hooks/post-receive").unlink()  # Nothing is resumed: no push need start it.
    places = [bare, *(clone_of(bare, name) for name in RUNNERS)]
    with Seat(places[1]) as ann:
        gate = ann.answer(ann.ask(work=False))
    for place in places:
        place.git("gc", "-q", "--prune=now")
    lived: list[World] = []
    with Seat(clone_of(bare, "mallory")) as mallory:

        def world() -> World:
            folder = copy_places(places, tmp_path / "worlds" / str(len(lived)))
            lived.append(World(folder, mallory, gate))
            return lived[-1]

        yield world
        for each in lived:
            each.rest()


# What is done, as words, so that a history that fails can be read: the method, and what it is given.
Step = tuple[str | float, ...]
WHO = st.sampled_from(RUNNERS)
HONEST = st.one_of(
    st.builds(lambda who: ("renew", who), WHO),
    st.builds(lambda who: ("claim", who), WHO),
    st.builds(lambda how, who: (how, who), st.sampled_from(["take_over", "renew"]), WHO),
    st.just(("pass_by", TERM / 2)),
    st.builds(lambda how: ("let_go", how), st.sampled_from(["released", "failed"])),
    st.builds(lambda who, how: ("finish", who, how), WHO, st.sampled_from(["released", "failed"])),
)
# Each of them is tried twice in every history, in any order.
HOSTILE: list[Step] = [
    *(("move", how) for how in ("the past", "a next beat in the past", "another term", "the next beat")),
    *(("move", how) for how in ("a reveal", "no reveal", "the nonce", "the claim's anchor", "a far beat")),
    *(("move", how) for how in ("a chain of its own", "somebody else's chain", "over", "over with a reveal")),
    *(("move", how) for how in ("begun anew", "begun anew with a chain")),
    *(("move_elsewhere", how) for how in ("the question", "the tip", "a claim that is over")),
    ("replay",),
    *(
        ("end_it", reveal)
        for reveal in ("none", "told", "the claim's anchor", "made up", "nonce", "somebody else's")
    ),
    ("delete",),
    *(("claim_badly", how) for how in ("alone", "lease alone", "with a strange lease", "early", "stolen")),
]


def do(world: World, step: Step) -> None:
    name, *words = step
    getattr(world, str(name))(*words)


@settings(max_examples=examples(5), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    honest=st.lists(HONEST, min_size=7, max_size=12),
    over=st.booleans(),
    hostile=st.permutations([*HOSTILE, *HOSTILE]),
)
def test_a_server_has_one_holder_at_a_time(
    worlds: Callable[[], World], honest: list[Step], over: bool, hostile: list[Step]
) -> None:
    """Who claims what is held is refused, who holds it renews it, and nobody else's word moves it."""
    world = worlds()
    ends: list[Step] = [("finish", who, "resumed") for who in RUNNERS] if over else []
    steps: list[Step] = [("pass_by", 0), ("claim", "ann"), *honest, *ends]
    attacks = list(enumerate(hostile))
    for number, step in enumerate(steps):
        do(world, step)
        world.check()
        for which, (attack, *how) in attacks[number :: len(steps)]:
            do(world, (attack, which, *how))
        world.check()
        world.rest()


def test_a_course_in_which_all_of_it_happens(worlds: Callable[[], World]) -> None:
    """A takeover after a lapse, the first runner's return, attacks at each point: what a random course may leave out."""
    world = worlds()
    course: list[Step] = [
        ("claim", "ann"),
        ("renew", "ann"),
        ("claim", "bob"),
        ("pass_by", TERM / 2),
        ("renew", "ann"),
        ("pass_by", TERM / 2),
        ("claim", "bob"),
        ("pass_by", TERM),
        ("claim", "bob"),
        ("renew", "ann"),
        ("finish", "ann", "resumed"),
        ("renew", "bob"),
        ("finish", "bob", "released"),
        ("renew", "bob"),
        ("claim", "ann"),
        ("finish", "bob", "resumed"),
        ("finish", "ann", "resumed"),
    ]
    for number, step in enumerate(course):
        do(world, step)
        world.check()
        for attack, *how in HOSTILE if number % 3 == 1 else ():
            do(world, (attack, number, *how))
        world.check()
        world.rest()
    assert (world.state, world.claims) == ("resumed", 3)
    sync(world.seats["bob"].desk)
    world.rest()
