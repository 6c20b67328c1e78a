"""What a server with our hook has as the session of a gate: whoever asked saves it again and again, a person answers, somebody
erases it, and somebody who may push has all that was ever saved.

After each step it is what was saved last, or nothing: nothing that nobody saved, and nothing from before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gitgate.acts import sessions
from gitgate.context import Desk
from gitgate.context.session_proof import content_of
from gitgate.exchange.syncing import publish
from gitgate.model.gate import Conversation, Gate, Remark, SavedSession
from gitgate.store.git.refs import OPEN, SESSIONS
from gitgate.store.records import NOBODY, Signature
from support.knocking import Door, copy_places, examples, lend_objects
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]  # real pushes; under HYPOTHESIS_PROFILE=thorough

BY = Signature(NOBODY, 1_800_000_000)


def saved(words: str) -> SavedSession:
    return SavedSession("scripted", "session-1", "/home/ada/x", files={"transcript.jsonl": words.encode()})


@dataclass
class World:
    """A gate that was asked with a session, and all of its sessions so far."""

    folder: Path
    mallory: Seat
    gate: Gate
    known: list[str] = field(default_factory=list)
    """What whoever asked has saved, in its order."""
    erased: bool = False

    def __post_init__(self) -> None:
        self.mallory.close()  # who looks at this world from now on
        self.server = Clone(self.folder / "server.git")
        self.ann = Seat(Clone(self.folder / "ann"))
        self.door = Door(self.server)
        lend_objects(self.mallory.clone, [self.server, self.ann.clone])
        self.known.append(self.door.refs()[self.ref])

    @property
    def ref(self) -> str:
        return SESSIONS + self.gate.id

    @property
    def record(self) -> str:
        return OPEN + self.gate.id

    @property
    def desk(self) -> Desk:
        """Mallory's."""
        if not self.mallory.desks:
            self.mallory.desk.work_in_bulk()
        return self.mallory.desks[-1]

    def rest(self) -> None:
        """Nobody sits at a desk for longer than a step."""
        for seat in (self.mallory, self.ann):
            seat.close()

    # honest

    def save(self, share: bool) -> None:
        """The agent's turn has ended once more; perhaps that is shared later."""
        count = len(self.known)
        sessions.keep_session(self.ann.desk, self.ann.now(self.gate), saved(f"turn {count}\n"))
        self.known.append(self.ann.clone.refs()[self.ref])
        if share:
            self.share()

    def share(self) -> None:
        publish(self.ann.desk, self.ann.now(self.gate), work=True)
        self.door.look_again()
        assert self.door.refs().get(self.ref) == (None if self.erased else self.known[-1])

    def answer(self) -> None:
        gate = self.ann.now(self.gate)
        if gate.state == "awaiting":
            self.ann.answer(gate)
            self.door.look_again()

    def erase(self) -> None:
        """By anybody, at any time, and for good."""
        if self.ref in self.door.refs():
            assert self.door.push(self.mallory.clone, {self.ref: None})
            self.erased = True

    # hostile

    def attack(self, oid: str) -> None:
        """Nobody saved that, or not in this place."""
        if self.door.refs().get(self.ref) != oid:
            assert not self.door.push(self.mallory.clone, {self.ref: oid}), "another session is taken"

    def put_back(self, which: int) -> None:
        """One that is older than what is there, or than what was erased."""
        there = self.door.refs().get(self.ref)
        older = self.known[: self.known.index(there)] if there is not None else self.known
        if older:
            self.attack(older[which % len(older)])

    def plant(self, which: int, on: str, like: str) -> None:
        """Another content, on one of them, on none, or on two; with the message of one of them, and its signature."""
        first, some, last = self.known[0], self.known[which % len(self.known)], self.known[-1]
        parents = {
            "nothing": (),
            "the first": (first,),
            "one": (some,),
            "the last": (last,),
            "two": (last, some),
            "below the last": self.desk.records.commit(last).parents,
        }[on]
        message = "session of a gate\n"
        if like != "nobody":
            message = self.desk.records.commit({"one": some, "the last": last}[like]).message
        tree = sessions.tree_of(self.desk, saved("delete everything\n"))
        self.attack(self.desk.records.write_commit(tree, parents, BY, message))

    def turn(self, which: int, how: str) -> None:
        """What was saved, in another order, or with another history."""
        records, last = self.desk.records, self.known[-1]
        some = records.commit(last if how == "with a second parent" else self.known[which % len(self.known)])
        commit = records.commit(last)
        parents = {
            "with a second parent": (*commit.parents, self.known[0]),
            "on itself": (last,),
            "alone": (),
        }[how]
        if (
            parents or some.tree != records.commit(self.known[0]).tree
        ):  # That is the first one, said otherwise.
            self.attack(records.write_commit(some.tree, parents, BY, commit.message))

    def bind(self, _: int) -> None:
        """A remark after the answer names another content, which is pushed then."""
        gate = self.desk.records.load(self.gate.id, self.door.refs()[self.record])
        if gate.state == "awaiting":
            return
        tree = sessions.tree_of(self.desk, saved("delete everything\n"))
        oid = self.desk.records.write_commit(tree, (), BY, "session of a gate\n")
        session = gate.opened.session
        assert session is not None
        held = Conversation("proposed", 1, confirmed=False, content=content_of(session.salt, tree))
        remark = Remark(self.desk.now, "mallory", "x", session=held)
        told = self.desk.records.write_event(gate, "commented", remark, BY)
        if not self.door.refuses(self.mallory.clone, {self.record: told.tip}):
            assert not self.door.push(self.mallory.clone, {self.record: told.tip, self.ref: oid})

    # what holds

    def check(self) -> None:
        there = self.door.refs().get(self.ref)
        if self.erased:
            assert there is None
        else:
            assert there in self.known, "nobody saved that"


@pytest.fixture
def worlds(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> Iterator[Callable[[], World]]:
    """Each begins as the first one did."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    (bare.path / "hooks/post-receive").unlink()  # Nothing is resumed: no push need start it.
    ann = clone_of(bare, "ann")
    for name, value in (("session", "push"), ("publishWork", "true")):
        ann.git("config", f"gitgate.{name}", value)
    with Seat(ann) as seat:
        gate = seat.ask(work=False)
    for place in (bare, ann):
        place.git("gc", "-q", "--prune=now")
    lived: list[World] = []
    with Seat(clone_of(bare, "mallory")) as mallory:

        def world() -> World:
            folder = copy_places([bare, ann], tmp_path / "worlds" / str(len(lived)))
            lived.append(World(folder, mallory, gate))
            return lived[-1]

        yield world
        for each in lived:
            each.rest()


# What is done, as words, so that a history that fails can be read: the method, and what it is given.
Step = tuple[str | bool, ...]
HONEST: st.SearchStrategy[Step] = st.one_of(
    st.just(("save", True)),
    st.builds(lambda share: ("save", share), st.booleans()),
    st.sampled_from([("answer",), ("answer",), ("share",), ("erase",)]),
)
# Each of them is tried twice in every history, in any order.
PLANTS = [
    ("plant", on, like)
    for on in ("nothing", "the first", "one", "the last", "two", "below the last")
    for like in ("nobody", "one", "the last")
]
TURNS = [("turn", how) for how in ("with a second parent", "on itself", "alone")]
HOSTILE: list[tuple[str, ...]] = [*PLANTS, *TURNS, *[("put_back",)] * 5, *[("bind",)] * 3]


@settings(max_examples=examples(4), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    honest=st.lists(HONEST, min_size=4, max_size=8),
    hostile=st.permutations([*HOSTILE, *HOSTILE]),
)
def test_a_server_has_the_session_that_was_saved_last(
    worlds: Callable[[], World], honest: list[Step], hostile: list[tuple[str, ...]]
) -> None:
    """Whoever asked saves it again, and it is taken; nobody else's, and none from before."""
    world = worlds()
    steps: list[Step] = [("save", True), *honest]
    attacks = list(enumerate(hostile))
    for number, (name, *words) in enumerate(steps):
        getattr(world, str(name))(*words)
        world.check()
        for which, (attack, *how) in attacks[number :: len(steps)]:
            getattr(world, attack)(which, *how)
        world.check()
        world.rest()
