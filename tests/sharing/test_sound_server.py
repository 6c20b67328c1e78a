"""The same on a real server with our hook: people in two clones and on a laptop, and somebody who may push, with plain git.

Whatever arrives in whichever order, each gate is what its people's words make it, goes on from what it was, and is either open or in
the archive, closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.errors import GateError
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate
from gitgate.record import message
from gitgate.record.events import repeatable
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.refs import ARCHIVE, OPEN
from gitgate.store.records import Signature
from gitgate.store.records.archive import find_archived, shelves
from support.deciding import DB, gate_of, say
from support.honest import Word, check
from support.resuming import Clock, Seat
from support.signing import Key, make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # real pushes, through the real hook

ADA, BOB = "Ada Lovelace <ada@example.org>", "Bob <bob@example.org>"
MALLORY = Signature("Mallory <mallory@example.org>", 1_800_000_000)
PLACES = {"desk": ADA, "laptop": ADA, "bob": BOB}
MONTH = "2026-01"
POLICY = """policy:
  people:
    ada: {email: ada@example.org}
    bob: {email: bob@example.org}
  who: [ada, bob]
  quorum: 2
  require_signed: true
"""


@dataclass
class World:
    """One gate on the server, who is at which clone, and what they said."""

    server: Clone
    seats: dict[str, Seat]
    mallory: Seat
    clock: Clock
    gate: Gate = field(init=False)
    words: dict[str, Word] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=lambda: {place: set() for place in PLACES})
    commits: list[str] = field(default_factory=list)
    last: str = ""
    outcomes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.gate = gate_of(self.seats["desk"], DB, wishes=AskWishes(work=False))
        self.last = self.gate.tip
        for place in PLACES:
            self.sync(place)

    @property
    def ref(self) -> str:
        return OPEN + self.gate.id

    # honest

    def here(self, place: str) -> Gate | None:
        desk = self.seats[place].desk
        tip = desk.refs.get(self.ref)
        return desk.records.load(self.gate.id, tip) if tip else None

    def say(self, place: str, kind: str, value: str) -> None:
        """Off line; what does not fit there is not said."""
        seat, gate = self.seats[place], self.here(place)
        self.clock.pass_by(1)
        at, view = seat.desk.now, frozenset(self.seen[place])
        if gate is None:
            return
        try:
            after = self.said(seat, gate, kind, value)
        except GateError:
            return
        terms = frozenset({"priority"} if kind == "edit" else ())
        self.words[at] = Word(at, kind, PLACES[place], value, view, terms)
        self.commits.append(after.tip)
        self.seen[place].add(at)

    def said(self, seat: Seat, gate: Gate, kind: str, value: str) -> Gate:
        if kind == "vote":
            return say(seat, gate, value, push=False).gate
        if kind == "edit":
            return answering.edit(seat.desk, gate, priority=value, push=False).gate
        if kind == "comment":
            return answering.comment(seat.desk, gate, "hm", push=False).gate
        return answering.stop(seat.desk, gate, "enough", push=False).gate

    def sync(self, place: str) -> None:
        sync(self.seats[place].desk)
        gate = self.here(place)
        self.seen[place] |= {getattr(entry.event, "at", "") for entry in gate.history[1:]} if gate else set()

    def archive(self, place: str) -> None:
        fold_closed(self.seats[place].desk)

    # hostile

    def look(self) -> Gate | None:
        """Mallory has what anybody has."""
        git = self.mallory.clone.git
        for source in (self.server, *(seat.clone for seat in self.seats.values())):
            git("fetch", "-q", str(source.path), f"+{self.ref}:refs/seen/x", check=False)
        tip = self.server.refs().get(self.ref)
        return self.mallory.desk.records.load(self.gate.id, tip) if tip else None

    def push(self, *specs: str) -> None:
        self.mallory.clone.git("push", "-q", "-f", "--atomic", "origin", *specs, check=False)

    def replay(self, which: int, how: str) -> None:
        gate = self.look()
        if gate is None or not self.commits:
            return
        records, commit = self.mallory.desk.records, self.commits[which % len(self.commits)]
        entry = records.load(gate.id, commit).history[-1]
        path = f"{entry.path.partition('/')[0]}/x{len(gate.history)}.yaml"
        tree = records.with_file(records.commit(gate.tip).tree, path, records.file_of(entry))
        parents = (gate.tip, *{"bare": (), "itself": (commit,), "tip": (gate.tip,)}[how])
        tip = records.write_commit(tree, parents, MALLORY, message(entry.name, entry.event, gate))
        try:
            after = records.load(gate.id, tip)
            honest = message(after.history[-1].name, entry.event, after)
            tip = records.write_commit(tree, parents, MALLORY, honest)
        except GateError:
            pass  # it is pushed all the same
        self.push(f"{tip}:{self.ref}")

    def record(self, which: int) -> None:
        """One of the words of others, whether they shared it or not, before what they said earlier."""
        gate = self.look()
        if gate is None or not self.commits:
            return
        records, commit = self.mallory.desk.records, self.commits[which % len(self.commits)]
        entry = records.load(gate.id, commit).history[-1]
        try:
            tip = records.repeat(gate, entry, MALLORY, commit).tip if repeatable(entry) else gate.tip
        except GateError:
            return
        self.push(f"{tip}:{self.ref}")

    def rewind(self, to: int) -> None:
        gate = self.look()
        if gate is not None:
            self.push(f"{gate.history[to % len(gate.history)].commit}:{self.ref}")

    def reopen(self) -> None:
        """A gate as it was asked, though it is archived perhaps."""
        self.push(f"{self.gate.tip}:{self.ref}")

    def delete(self) -> None:
        self.push(f":{self.ref}")

    def fold(self, how: str) -> None:
        """The gate is put into the archive as it is, or the archive is emptied, and the gate deleted."""
        gate = self.look()
        git = self.mallory.clone.git
        ref = f"{ARCHIVE}{MONTH}"
        base = self.server.refs().get(ref) or git("commit-tree", "-m", "month", git("mktree"))
        git("fetch", "-q", "origin", f"{ARCHIVE}*:refs/seen/*", check=False)
        if how == "empty" or gate is None:
            tip = git("commit-tree", "-p", base, "-m", "fold", git("mktree"))
            self.push(f"{tip}:{ref}")
            self.reopen()
            return
        name = gate.id[:2]
        drawer = git("ls-tree", f"{base}:{name}", check=False).splitlines()
        tree = git("rev-parse", f"{gate.tip}^{{tree}}")
        inner = git("mktree", input="\n".join([*drawer, f"040000 tree {tree}\t{gate.id}", ""]))
        rest = [line for line in git("ls-tree", base).splitlines() if not line.endswith(f"\t{name}")]
        whole = git("mktree", input="\n".join([*rest, f"040000 tree {inner}\t{name}", ""]))
        words = f"fold\n\n{gate.id} {gate.tip}"
        tip = git("commit-tree", "-p", base, "-p", gate.tip, "-m", words, whole)
        self.push(f"{tip}:{ref}")
        self.delete()

    # what holds

    def check(self) -> None:
        tip = self.server.refs().get(self.ref)
        with Seat(self.server) as there:
            desk = there.desk
            kept = find_archived(desk.repo, shelves(desk.repo), [self.gate.id]).get(self.gate.id)
            if kept is not None:
                assert desk.records.load(self.gate.id, kept.tip).closed, "a gate that waits is in the archive"
            tip = tip or (kept.tip if kept is not None else None)
            assert tip is not None, "the gate is lost"
            gate = desk.records.load(self.gate.id, tip)
        assert self.last in {entry.commit for entry in gate.history}, (
            "the record does not go on from what it was"
        )
        self.last = tip
        check(gate, self.words)


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Key]:
    return {who: make_key(tmp_path / "keys", who, f"{who}@example.org") for who in ("ada", "bob")}


@pytest.fixture
def worlds(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, keys: dict[str, Key], clock: Clock
) -> Iterator[Callable[[], World]]:
    """A new gate each time, on one server."""
    publish_policy(bare, POLICY, signers="".join(key.line for key in keys.values()))
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    with ExitStack() as seats:

        def sit(name: str, who: str, email: str) -> Seat:
            clone = clone_of(bare, name)
            clone.git("config", "user.name", who)
            clone.git("config", "user.email", email)
            return seats.enter_context(Seat(clone, clock))

        there = {}
        for place, by in PLACES.items():
            who, _, email = by[:-1].partition(" <")
            there[place] = sit(place, who, email)
            keys[email.partition("@")[0]].used_by(there[place].clone)
        mallory = sit("mallory", "Mallory", "mallory@example.org")
        yield lambda: World(bare, there, mallory, clock)


Step = Callable[[World], object]
PLACE = st.sampled_from(list(PLACES))
VOTES = st.builds(lambda p, v: lambda w: w.say(p, "vote", v), PLACE, st.sampled_from(["Postgres", "SQLite"]))
EDITS = st.builds(lambda p, v: lambda w: w.say(p, "edit", v), PLACE, st.sampled_from(["low", "urgent"]))
WORDS = st.builds(lambda p, k: lambda w: w.say(p, k, ""), PLACE, st.sampled_from(["comment", "stop"]))
SYNCS = st.builds(lambda p: lambda w: w.sync(p), PLACE)
ARCHIVES = st.builds(lambda p: lambda w: w.archive(p), PLACE)
HOSTILE = st.one_of(
    st.builds(
        lambda n, h: lambda w: w.replay(n, h), st.integers(0, 9), st.sampled_from(["bare", "itself", "tip"])
    ),
    st.builds(lambda n: lambda w: w.record(n), st.integers(0, 9)),
    st.builds(lambda n: lambda w: w.rewind(n), st.integers(0, 9)),
    st.builds(lambda h: lambda w: w.fold(h), st.sampled_from(["this", "empty"])),
    st.sampled_from([World.reopen, World.delete]),
)
STEPS = st.lists(
    st.one_of(VOTES, VOTES, EDITS, WORDS, SYNCS, SYNCS, ARCHIVES, HOSTILE, HOSTILE), min_size=6, max_size=14
)


@settings(
    max_examples=6, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)  # each step is a push or two
@given(STEPS)
def test_a_server_holds_each_gate_to_its_peoples_words(
    worlds: Callable[[], World], steps: list[Step]
) -> None:
    """After each step; and when all have synced, every clone has the gate as the server has it."""
    world = worlds()
    for step in steps:
        step(world)
        world.check()
    for place in (*PLACES, *PLACES):
        world.sync(place)
        world.check()
    tips = {seat.clone.refs().get(world.ref) for seat in world.seats.values()}
    assert tips == {world.server.refs().get(world.ref)}
