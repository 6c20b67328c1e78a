"""Whatever honest people say on several clones, and hostile ones make of it: the gate is what honest words make it.

Clones say things off line and sync; somebody else records what was said again, under other names and parents, in another
order, in part, or pushes what does not go on. On objects in memory, through the very code that reads and writes records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitgate.errors import GateError
from gitgate.exchange.entering import against_repeats, fresh
from gitgate.model.gate import Answer, Claim, Edit, Entry, Event, Outcome, Remark
from gitgate.record import message
from gitgate.record.events import repeatable
from gitgate.text import format_time
from support.histories import ADA, BOB, CHOICE, EVE, opened
from support.honest import Word, check
from support.sharing_records import SIGNATURE, Peer, Shared

PLACES = 4
# Whose clones they are: Ada has two machines.
OWNERS = (ADA, ADA, BOB, EVE)
START = 1_900_000_000


@dataclass
class World:
    """Clones of one shared record, what was said on them, and who is after it."""

    quorum: int
    hooked: bool
    shared: Shared = field(init=False)
    peers: list[Peer] = field(init=False)
    words: dict[str, Word] = field(default_factory=dict)
    seen: list[set[str]] = field(default_factory=lambda: [set() for _ in range(PLACES)])
    commits: list[str] = field(default_factory=list)
    """Every commit in which somebody said something, whether it was shared or not."""

    def __post_init__(self) -> None:
        self.shared = Shared.begin(opened(CHOICE, quorum=self.quorum))
        self.peers = [Peer.clone(self.shared) for _ in range(PLACES)]

    # honest

    def say_and_sync(self, place: int, kind: str, value: str, terms: frozenset[str] = frozenset()) -> None:
        self.sync(place)
        self.say(place, kind, value, terms)
        self.sync(place)

    def say(self, place: int, kind: str, value: str, terms: frozenset[str] = frozenset()) -> None:
        """Off line, at one clone; what does not fit there is not said."""
        peer, by = self.peers[place], OWNERS[place]
        at = format_time(START + len(self.words) + 1)
        name, event = self.event(kind, value, terms, at, by, peer)
        self.look(place)
        try:
            gate = peer.add(name, event)
        except GateError:
            return
        self.words[at] = Word(at, kind, by, value, frozenset(self.seen[place]), terms)
        self.commits.append(gate.tip)
        self.look(place)

    def event(
        self, kind: str, value: str, terms: frozenset[str], at: str, by: str, peer: Peer
    ) -> tuple[str, Event]:
        if kind == "vote":
            gate = peer.gate
            amends = gate.answer.commit if gate.state == "answered" and gate.answer else None
            return "answered", Answer(
                self.shared.id, {"answer": value}, "answered", at, peer.tip, by, amends=amends
            )
        if kind == "edit":
            changed = Edit(
                at,
                by,
                to=(value,) if "to" in terms else None,
                priority=value if "priority" in terms else None,
            )
            return "edited", changed
        return {"comment": "commented", "stop": "stopped", "withdrawal": "withdrawn"}[kind], Remark(
            at, by, value
        )

    def look(self, place: int) -> None:
        """Whoever sits there has all of its record in view, and remembers it."""
        self.seen[place] |= {getattr(entry.event, "at", "") for entry in self.peers[place].gate.history[1:]}

    def sync(self, place: int) -> None:
        self.peers[place].sync()
        self.look(place)

    def act(self, place: int, result: str) -> None:
        """A claim, or what came of it: on the shared record alone, by a clone that is even with it."""
        self.sync(place)
        gate = self.shared.gate
        at = format_time(START)
        if gate.state == "answered" and gate.answer is not None:
            claim = Claim(at, gate.answer.commit, f"n{gate.attempts}", "local", "host", gate.attempts + 1, 60)
            self.peers[place].add("claimed", claim)
        elif gate.claim is not None and gate.state == "resuming":
            self.peers[place].add("outcome", Outcome(at, gate.claim.commit, result))
        self.sync(place)

    # hostile

    def push(self, tip: str) -> bool:
        """A plain push: with our hook it is taken where the record goes on, and nothing in it is there already."""
        try:
            gate = self.shared.records.load(self.shared.id, tip)
        except GateError:
            return False
        old = self.shared.tip
        if self.hooked and (
            all(entry.commit != old for entry in gate.history)
            or any(against_repeats(entry) for entry in fresh(gate, old))
        ):
            return False
        if not self.hooked and all(entry.commit != old for entry in gate.history):
            return False  # a rewritten record is no gate's that others have: `reconcile` names it
        self.shared.tip = tip
        return True

    def replay(self, which: int, how: str) -> None:
        """The file of something that was said, on top of what is there, with or without what it is said to come from."""
        if not self.commits:
            return
        records, commit = self.shared.records, self.commits[which % len(self.commits)]
        entry = records.load(self.shared.id, commit).history[-1]
        gate = self.shared.gate
        if how in ("bare", "made up") and all(entry.event != known.event for known in gate.history):
            return  # that is no replay but a forgery: only signatures, or a server that knows who pushes, stop it
        data = records.file_of(entry)
        folder = entry.path.partition("/")[0]
        second = {
            "bare": (),
            "itself": (commit,),
            "tip": (self.shared.tip,),
            "made up": (self.planted(entry, data),),
        }[how]
        gate = self.shared.gate
        tree = records.with_file(records.commit(gate.tip).tree, f"{folder}/x{len(gate.history)}.yaml", data)
        said = message(entry.name, entry.event, gate)
        self.push(records.write_commit(tree, (gate.tip, *second), SIGNATURE, said))

    def planted(self, entry: Entry, data: bytes) -> str:
        """The same file on the question itself, as if it had been said first of all."""
        records = self.shared.records
        root = self.shared.gate.history[0].commit
        tree = records.with_file(records.commit(root).tree, f"{entry.path.partition('/')[0]}/y.yaml", data)
        return records.write_commit(tree, (root,), SIGNATURE, "gate\n")

    def record(self, which: int) -> None:
        """Something that was said, and perhaps not shared yet, recorded again before what its author said earlier."""
        if not self.commits:
            return
        records, commit = self.shared.records, self.commits[which % len(self.commits)]
        entry = records.load(self.shared.id, commit).history[-1]
        if not repeatable(entry):
            return
        try:
            gate = records.repeat(self.shared.gate, entry, SIGNATURE, commit)
        except GateError:
            return
        self.push(gate.tip)

    def swap(self, place: int) -> None:
        """A clone's own record pushed as it is, over whatever is there."""
        self.push(self.peers[place].tip)

    # what holds

    def check(self) -> None:
        check(self.shared.gate, self.words)

    def check_all(self) -> None:
        """At the end everybody syncs, and has the same."""
        for _ in range(2):
            for place in range(PLACES):
                self.sync(place)
        assert {peer.tip for peer in self.peers} == {self.shared.tip}
        self.check()
        recorded = {getattr(entry.event, "at", "") for entry in self.shared.gate.history}
        lost = {getattr(event, "at", "") for peer in self.peers for event in peer.lost}
        assert set(self.words) <= recorded | lost


Step = Callable[[World], object]
PLACE = st.sampled_from([0, 1, 0, 1, 2, 3])
VALUE = st.sampled_from(["Postgres", "SQLite"])
TERMS = st.sampled_from([frozenset({"to"}), frozenset({"priority"}), frozenset({"to", "priority"})])
SAY = st.sampled_from([World.say, World.say_and_sync])
VOTES = st.builds(lambda s, p, v: lambda w: s(w, p, "vote", v), SAY, PLACE, VALUE)
EDITS = st.builds(
    lambda s, p, v, t: lambda w: s(w, p, "edit", v, t),
    SAY,
    PLACE,
    st.sampled_from(["low", "high", "urgent"]),
    TERMS,
)
WORDS = st.builds(
    lambda p, k: lambda w: w.say(p, k, "words"), PLACE, st.sampled_from(["comment", "stop", "withdrawal"])
)
ACTS = st.builds(
    lambda p, r: lambda w: w.act(p, r), PLACE, st.sampled_from(["resumed", "released", "failed"])
)
SYNCS = st.builds(lambda p: lambda w: w.sync(p), PLACE)
REPLAYS = st.builds(
    lambda n, h: lambda w: w.replay(n, h),
    st.integers(0, 4),
    st.sampled_from(["bare", "bare", "itself", "tip", "made up"]),
)
HOSTILE = st.one_of(
    REPLAYS,
    REPLAYS,
    st.builds(lambda n: lambda w: w.record(n), st.integers(0, 4)),
    st.builds(lambda p: lambda w: w.swap(p), PLACE),
)
ALL = st.one_of(VOTES, VOTES, EDITS, SYNCS, SYNCS, HOSTILE, HOSTILE, WORDS, ACTS)
# One thing at a time brings more of its own sort together.
MIXES = {
    "all": ALL,
    "votes": st.one_of(VOTES, SYNCS, HOSTILE),
    "terms": st.one_of(EDITS, EDITS, SYNCS, HOSTILE),
}


def live_through(mix: str, data: st.DataObject) -> None:
    """After each step, and when all have synced: each word counts once at most, none in place of a later one of its author."""
    world = World(data.draw(st.sampled_from([2, 3, 1])), data.draw(st.sampled_from([False, True, False])))
    for step in data.draw(st.lists(MIXES[mix], min_size=4, max_size=14)):
        step(world)
        world.check()
    world.check_all()


@pytest.mark.parametrize("mix", MIXES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_history_makes_more_of_words_than_their_authors_did(mix: str, data: st.DataObject) -> None:
    """A few histories of each mix."""
    live_through(mix, data)


@pytest.mark.slow
@pytest.mark.timeout(900)  # under HYPOTHESIS_PROFILE=thorough
@pytest.mark.parametrize("mix", MIXES)
@settings(max_examples=max(300, settings().max_examples), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_rare_history_does_either(mix: str, data: st.DataObject) -> None:
    """Far more of them, for what few histories come to."""
    live_through(mix, data)
