"""The same on a real server with our hook: people in two clones and on a laptop, and somebody who may push, with plain git.

Whatever arrives in whichever order, each gate is what its people's words make it, goes on from what it was, and is either open or in
the archive, closed; the archive keeps what it has, and lists are told what the records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.context import Desk
from gitgate.errors import GateError
from gitgate.exchange.syncing import sync
from gitgate.model import parse_trailers
from gitgate.model.gate import Answer, Edit, Entry, Event, Gate, Remark
from gitgate.record import message
from gitgate.record.events import repeatable
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.canonical import FOLDER, TreeEntry
from gitgate.store.git.refs import ARCHIVE, OPEN
from gitgate.store.records import Records, Signature
from gitgate.store.records.archive import LATE, Binder, Late, find_archived, shelves
from gitgate.text import format_time
from support.deciding import DB, gate_of, say
from support.honest import Word, check
from support.knocking import Door, Moves, copy_places, examples, lend_objects
from support.resuming import Clock, Seat
from support.signing import Key, make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]  # real pushes; under HYPOTHESIS_PROFILE=thorough

ADA, BOB = "Ada Lovelace <ada@example.org>", "Bob <bob@example.org>"
MALLORY = Signature("Mallory <mallory@example.org>", 1_800_000_000)
PLACES = {"desk": ADA, "laptop": ADA, "bob": BOB}
POLICY = """policy:
  people:
    ada: {email: ada@example.org}
    bob: {email: bob@example.org}
  who: [ada, bob]
  quorum: 2
  require_signed: true
"""


@dataclass(frozen=True)
class Pattern:
    """What each history begins with: a server, its clones, and gates: one that all are about to speak of, one that waits, one that is
    archived, one that Mallory alone has. Mallory's own clone is there once: what is in it is nobody else's.
    """

    mallory: Clone
    at: float
    month: str
    asked: Gate
    waiting: Gate
    kept: Gate
    unasked: Gate


@dataclass
class World:
    """A gate on the server, who is at which clone, and what they said."""

    pattern: Pattern
    folder: Path
    clock: Clock
    words: dict[str, Word] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=lambda: {place: set() for place in PLACES})
    commits: list[str] = field(default_factory=list)
    last: str = ""
    checked: dict[str, str] = field(default_factory=dict)
    """The refs as they were looked at last."""

    def __post_init__(self) -> None:
        self.clock.at = self.pattern.at
        self.server = Clone(self.folder / "server.git")
        self.seats = {place: Seat(Clone(self.folder / place), self.clock) for place in PLACES}
        self.mallory = Seat(self.pattern.mallory, self.clock)
        lend_objects(self.mallory.clone, [self.server, *(seat.clone for seat in self.seats.values())])
        self.door = Door(self.server)
        self.gate = self.pattern.asked
        self.last = self.gate.tip
        self.check()

    @property
    def ref(self) -> str:
        return OPEN + self.gate.id

    def rest(self) -> None:
        """Nobody sits at a desk for longer than a step."""
        for seat in (self.mallory, *self.seats.values()):
            seat.close()

    # honest

    def here(self, place: str) -> Gate | None:
        desk = self.seats[place].desk
        tip = desk.refs.get(self.ref)
        return desk.records.load(self.gate.id, tip) if tip else None

    def say(self, place: str, kind: str, value: str = "") -> None:
        """Off line; what does not fit there is not said."""
        seat, gate = self.seats[place], self.here(place)
        self.clock.pass_by(1)
        at, view = seat.desk.now, frozenset(self.seen[place])
        if gate is None:
            return
        try:
            after = self.said(seat, gate, kind, value)
        except GateError:
            assert kind == "edit" or gate.state != "awaiting", f"{place} cannot say {kind}"
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

    def say_and_sync(self, place: str, kind: str, value: str = "") -> None:
        self.say(place, kind, value)
        self.sync(place)

    def say_apart(self, first: str, second: str) -> None:
        """Ada at both of her machines, of which neither knows what she said at the other."""
        for place, value, priority in ((first, "Postgres", "low"), (second, "SQLite", "urgent")):
            self.say(place, "vote", value)
            self.say(place, "edit", priority)
        self.sync(second)
        self.sync(first)

    def stop_apart(self, place: str, other: str = "") -> None:
        """Somebody stops it off line, while it goes on elsewhere perhaps."""
        self.sync(place)
        self.say(place, "stop")
        if other:
            self.say_and_sync(other, "comment")

    def archive(self, place: str) -> None:
        fold_closed(self.seats[place].desk)

    def end(self, place: str) -> None:
        """It is stopped, and archived."""
        self.sync(place)
        self.say_and_sync(place, "stop")
        self.archive(place)

    # hostile: what Mallory writes and pushes, who has what anybody has

    @property
    def desk(self) -> Desk:
        """Mallory's."""
        if not self.mallory.desks:
            self.mallory.desk.work_in_bulk()
        return self.mallory.desks[-1]

    def refs(self) -> dict[str, str]:
        return self.door.refs()

    def look(self) -> Gate | None:
        tip = self.refs().get(self.ref)
        return self.desk.records.load(self.gate.id, tip) if tip else None

    def push(self, moves: Moves) -> bool:
        """Whatever is taken, what it leaves behind is looked at."""
        self.desk.records.objects.flush()
        taken = self.door.push(self.mallory.clone, moves)
        if taken:
            self.check()
        return taken

    def word(self, which: int) -> Entry | None:
        """Something that somebody said, whether they shared it or not."""
        if not self.commits:
            return None
        return self.desk.records.load(self.gate.id, self.commits[which % len(self.commits)]).history[-1]

    def replay(self, which: int, how: str, on: str) -> None:
        """The file of what is recorded already, on top of what is there, or of what was there, or said to come from somewhere."""
        gate, entry = self.look(), self.word(which)
        if gate is None or entry is None:
            return
        if how == "bare" and all(entry.event != known.event for known in gate.history):
            return  # signed words that are in no record yet are no replay: `record` brings them
        records = self.desk.records
        base = (
            gate if on == "the tip" else records.load(gate.id, gate.history[which % len(gate.history)].commit)
        )
        data, folder = records.file_of(entry), entry.path.partition("/")[0]
        root = gate.history[0].commit

        def planted() -> str:
            tree = records.with_file(records.commit(root).tree, f"{folder}/y.yaml", data)
            return records.write_commit(tree, (root,), MALLORY, "gate\n")

        seconds: dict[str, Callable[[], tuple[str, ...]]] = {
            "bare": lambda: (),
            "itself": lambda: (entry.commit,),
            "the tip": lambda: (gate.tip,),
            "another copy": lambda: (planted(),),
            "both": lambda: (entry.commit, gate.tip),
        }
        second = seconds[how]()
        tree = records.with_file(records.commit(base.tip).tree, f"{folder}/x{len(base.history)}.yaml", data)
        tip = records.write_commit(tree, (base.tip, *second), MALLORY, message(entry.name, entry.event, base))
        with suppress(GateError):  # Where it makes no gate, it is pushed all the same.
            after = records.load(gate.id, tip)
            honest = message(after.history[-1].name, entry.event, after)
            tip = records.write_commit(tree, (base.tip, *second), MALLORY, honest)
        self.push({self.ref: tip})

    def record(self, which: int, lie: str) -> None:
        """One of the words of others, whether they shared it or not, before what they said earlier; perhaps with another message."""
        gate, entry = self.look(), self.word(which)
        if gate is None or entry is None or not repeatable(entry):
            return
        with suppress(GateError):
            after = self.desk.records.repeat(gate, entry, MALLORY, entry.commit)
            self.push({self.ref: self.retold(after, lie)})

    def ask(self, _: int, lie: str) -> None:
        """A new question, whose message tells lists of another one."""
        gate = self.pattern.unasked
        self.push({OPEN + gate.id: self.retold(gate, lie)})

    def remark(self, _: int, lie: str) -> None:
        """What an agent may say, with a message that tells lists something else."""
        gate = self.look()
        if gate is not None:
            with suppress(GateError):
                said = Remark(self.desk.now, "mallory", "hm")
                after = self.desk.records.write_event(gate, "commented", said, MALLORY)
                self.push({self.ref: self.retold(after, lie)})

    def retold(self, gate: Gate, lie: str) -> str:
        records = self.desk.records
        commit = records.commit(gate.tip)
        old, new = LIES[lie]
        return records.write_commit(commit.tree, commit.parents, MALLORY, commit.message.replace(old, new, 1))

    def forge(self, which: int, kind: str) -> None:
        """Words in the name of one of them, without their signature."""
        gate = self.look()
        if gate is None:
            return
        at, by = self.desk.now, (ADA, BOB)[which % 2]
        forged: dict[str, tuple[str, Event]] = {
            "vote": ("answered", Answer(gate.id, {"answer": "SQLite"}, "answered", at, gate.tip, by)),
            "stop": ("stopped", Remark(at, by, "enough")),
            "edit": ("edited", Edit(at, by, priority="low")),
        }
        name, event = forged[kind]
        with suppress(GateError):
            self.push({self.ref: self.desk.records.write_event(gate, name, event, MALLORY).tip})

    def rewind(self, to: int) -> None:
        gate = self.look()
        if gate is not None:
            self.push({self.ref: gate.history[to % len(gate.history)].commit})

    def reopen(self, which: int, whose: str) -> None:
        """A gate as it was once, though it is archived perhaps."""
        gate = self.target(whose)
        self.push({OPEN + gate.id: gate.history[which % len(gate.history)].commit})

    def delete(self, _: int, whose: str) -> None:
        self.push({OPEN + self.target(whose).id: None})

    # hostile: the archive

    def target(self, whose: str) -> Gate:
        """One of the gates, as Mallory saw it last."""
        named = {"waiting": self.pattern.waiting, "kept": self.pattern.kept}
        return named.get(whose) or self.desk.records.load(self.gate.id, self.last)

    def months(self) -> tuple[str, str]:
        """The one that has something, and one that has nothing yet."""
        return ARCHIVE + self.pattern.month, f"{ARCHIVE}2026-01"

    def fold(self, which: int, whose: str, how: str) -> None:
        """A gate is put into the archive as it is, though it waits perhaps, or otherwise; then the open one goes."""
        ref, gate, binder = self.months()[which % 2], self.target(whose), self.binder()
        base, records = self.refs().get(ref), self.desk.records
        tips = {
            "as it was asked": lambda: gate.history[0].commit,
            "as it is elsewhere": lambda: self.closed_elsewhere(gate),
            "stopped by nobody": lambda: self.stopped(gate),
        }
        tip = tips[how]() if how in tips else gate.tip
        fold = binder.fold("2026-01", base, [(gate.id, tip)])
        if how in FOLDERS:
            fold = self.refolded(fold, self.with_folder(fold, gate.id, self.folder_of(how)))
        elif how == "only named":
            before = records.commit(fold).parents[0]
            fold = self.refolded(fold, records.commit(before).tree)
        elif how == "unnamed":
            commit = records.commit(fold)
            fold = records.write_commit(commit.tree, commit.parents[:1], MALLORY, "fold\n")
        self.fold_and_go_on(ref, fold, which)

    def closed_elsewhere(self, gate: Gate) -> str:
        """As somebody closed it who has not shared that, perhaps."""
        known = [self.desk.records.load(self.gate.id, tip) for tip in self.commits]
        return next((one.tip for one in known if one.closed and one.id == gate.id), gate.tip)

    def stopped(self, gate: Gate) -> str:
        """Ada stops it, as Mallory says."""
        said = Remark(self.desk.now, ADA, "enough")
        try:
            return self.desk.records.write_event(gate, "stopped", said, MALLORY).tip
        except GateError:
            return gate.tip

    def lose(self, which: int, how: str) -> None:
        """A fold, perhaps one that takes in a gate too, that has less than its parent."""
        records, kept = self.desk.records, self.pattern.kept.id
        ref = self.months()[0]
        fold = self.next_fold(ref, which)
        tree = {
            "everything": lambda: records.write_tree(()),
            "a drawer": lambda: self.with_drawer(fold, kept, None),
            "an emptied drawer": lambda: self.with_drawer(fold, kept, records.write_tree(())),
            "a gate": lambda: self.with_folder(fold, kept, None),
        }[how]()
        self.fold_and_go_on(ref, self.refolded(fold, tree), which)

    def exchange(self, which: int, how: str) -> None:
        """A fold in which an archived gate is another one."""
        ref = self.months()[0]
        fold = self.next_fold(ref, which)
        tree = self.with_folder(fold, self.pattern.kept.id, self.folder_of(how))
        self.fold_and_go_on(ref, self.refolded(fold, tree), which)

    def come_late(self, which: int, how: str) -> None:
        """Words for an archived gate that nobody said, or that nobody said there."""
        kept, desk = self.pattern.kept, self.desk
        asked = desk.records.load(kept.id, kept.history[0].commit)
        answer = Answer(kept.id, {"answer": "SQLite"}, "answered", desk.now, asked.tip, BOB)
        forged = desk.records.write_event(asked, "answered", answer, MALLORY)
        file = desk.records.objects.write("blob", desk.records.file_of(forged.history[-1]))
        tip = {"forged": forged.tip, "made up": kept.tip, "another gate's": self.last}[how]
        ref = self.months()[0]
        fold = self.binder().fold("2026-01", self.refs().get(ref), [], [Late(kept.id, tip, {"x.yaml": file})])
        self.fold_and_go_on(ref, fold, which)

    def put_back(self, which: int, how: str) -> None:
        """A month as it was, begun anew, or gone."""
        ref = self.months()[0]
        before = self.desk.records.commit(self.refs()[ref]).parents[0]
        new = {"as it was": before, "begun anew": self.binder().root("2026-01"), "gone": None}[how]
        self.fold_and_go_on(ref, new, which)

    def fold_and_go_on(self, ref: str, fold: str | None, which: int) -> None:
        """Where a fold is taken, what it is for follows: what is archived comes back, and what is open goes."""
        if self.push({ref: fold}):
            for whose in ("kept", "waiting", "mine"):
                for older in (which, 0):
                    self.reopen(older, whose)
                self.delete(0, whose)

    def binder(self) -> Binder:
        desk = self.desk
        return Binder(desk.repo, desk.records.objects, MALLORY)

    def next_fold(self, ref: str, which: int) -> str:
        """One that is as it has to be where the gate is closed, or one that takes in nothing."""
        gate = self.target("mine")
        taken = [(gate.id, gate.tip)] if which % 2 and gate.closed else []
        return self.binder().fold("2026-01", self.refs().get(ref), taken)

    def refolded(self, fold: str, tree: str) -> str:
        records = self.desk.records
        commit = records.commit(fold)
        return records.write_commit(tree, commit.parents, MALLORY, commit.message)

    def folder_of(self, how: str) -> str:
        records = self.desk.records
        if how == "empty":
            return records.write_tree(())
        gate = self.pattern.unasked if how == "another gate's" else self.target("kept")
        return records.commit(gate.history[0].commit).tree

    def with_drawer(self, fold: str, gate: str, drawer: str | None) -> str:
        records, name = self.desk.records, gate[:2].encode()
        return replaced(records, records.commit(fold).tree, name, drawer)

    def with_folder(self, fold: str, gate: str, folder: str | None) -> str:
        records = self.desk.records
        top = records.tree(records.commit(fold).tree)
        return self.with_drawer(
            fold, gate, replaced(records, top[gate[:2].encode()].oid, gate.encode(), folder)
        )

    # what holds

    def check(self) -> None:
        refs = self.refs()
        if refs == self.checked:
            return
        with Seat(self.server) as there:
            desk = there.desk
            desk.work_in_bulk()
            for ref, tip in refs.items():
                if ref.startswith(OPEN) and self.checked.get(ref) != tip:
                    check_list(desk, desk.records.load(ref.removeprefix(OPEN), tip))
            self.check_archive(desk, refs)
            shelved, there_now = self.archived(desk, self.gate.id), refs.get(self.ref)
            last = shelved or there_now
            assert last is not None, "the gate is lost"
            gate = desk.records.load(self.gate.id, last)
            if shelved is not None and there_now is not None:
                goes_on = desk.records.load(self.gate.id, there_now).history
                assert shelved in {entry.commit for entry in goes_on}, "it is over, and open as another one"
        assert self.last in {entry.commit for entry in gate.history}, (
            "the record does not go on from what it was"
        )
        assert all(entry.name != "repeated" for entry in gate.history), "an event is recorded twice"
        self.last, self.checked = last, refs
        check(gate, self.words)

    def check_archive(self, desk: Desk, refs: Mapping[str, str]) -> None:
        """What it has is closed, whole, and not open; what it has not is open."""
        kept, waiting = self.pattern.kept, self.pattern.waiting
        found = {ref: folders(desk.records, fold) for ref, fold in refs.items() if ref.startswith(ARCHIVE)}
        every = [gate for gates in found.values() for gate in gates]
        assert len(every) == len(set(every)), "a gate is in two months"
        for ref, gates in found.items():
            if self.checked.get(ref) != refs[ref]:
                for gate, folder in gates.items():
                    tip = self.archived(desk, gate)
                    assert tip is not None, f"the archive has {gate}, and tells nobody"
                    assert desk.records.load(gate, tip).closed, "a gate that waits is in the archive"
                    files = desk.records.tree(folder)
                    late = files.pop(LATE.encode(), None)
                    assert late is None or gate == self.gate.id, "nobody said anything late"
                    assert files == desk.records.tree(desk.records.commit(tip).tree), "it is another gate's"
        assert (self.archived(desk, kept.id), refs.get(OPEN + kept.id)) == (kept.tip, None)
        assert (self.archived(desk, waiting.id), refs.get(OPEN + waiting.id)) == (None, waiting.tip)

    def archived(self, desk: Desk, gate: str) -> str | None:
        found = find_archived(desk.repo, shelves(desk.repo), [gate]).get(gate)
        return found.tip if found is not None else None

    def agree(self) -> None:
        """When all have synced, every clone has the gate as the server has it."""
        for place in (*PLACES, *PLACES):
            self.sync(place)
            self.door.look_again()
            self.check()
        for ref in (self.ref, OPEN + self.pattern.kept.id, OPEN + self.pattern.waiting.id):
            tips = {seat.clone.refs("refs/hitl").get(ref) for seat in self.seats.values()}
            assert tips == {self.refs().get(ref)}


def replaced(records: Records, tree: str, name: bytes, folder: str | None) -> str:
    """A tree with another folder of that name, or none."""
    inside = dict(records.tree(tree))
    inside.pop(name, None)
    if folder is not None:
        inside[name] = TreeEntry(FOLDER, name, folder)
    return records.write_tree(inside[key] for key in sorted(inside))


def folders(records: Records, fold: str) -> dict[str, str]:
    """The gates that a month has, and their trees."""
    drawers = records.tree(records.commit(fold).tree).values()
    inside = [entry for drawer in drawers for entry in records.tree(drawer.oid).values()]
    return {entry.name.decode(): entry.oid for entry in inside}


def check_list(desk: Desk, gate: Gate) -> None:
    """What the tip tells lists is what the record means."""
    said = parse_trailers(desk.records.commit(gate.tip).message)
    assert said is not None, "a list can tell nothing of the gate"
    told = [said.get(name, "") for name in ("Gate", "State", "Title", "Priority", "Closed", "To", "Verdict")]
    meant = [gate.id, gate.state, gate.opened.title, gate.priority, "yes" if gate.closed else "", "", ""]
    if gate.answer is not None:
        meant[-1] = gate.answer.answer.verdict
    assert told == meant, "a list tells of another gate"


@pytest.fixture
def worlds(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, clock: Clock, tmp_path: Path
) -> Iterator[Callable[[], World]]:
    """Each begins as the first one did."""
    made = [make_key(tmp_path / "keys", who, f"{who}@example.org") for who in ("ada", "bob")]
    keys = {key.email: key for key in made}
    publish_policy(bare, POLICY, signers="".join(key.line for key in made))
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    (bare.path / "hooks/post-receive").unlink()  # Nothing is resumed: no push need start it.
    clones = {name: clone_of(bare, name) for name in (*PLACES, "mallory")}
    for name, clone in clones.items():
        sit_down(clone, PLACES.get(name, MALLORY.who), keys)
    pattern = begin(bare, clones, clock)
    places = [bare, *(clones[place] for place in PLACES)]
    lived: list[World] = []

    def world() -> World:
        lived.append(World(pattern, copy_places(places, tmp_path / "worlds" / str(len(lived))), clock))
        return lived[-1]

    yield world
    for each in lived:
        each.rest()


def sit_down(clone: Clone, person: str, keys: Mapping[str, Key]) -> None:
    who, _, email = person[:-1].partition(" <")
    clone.git("config", "user.name", who)
    clone.git("config", "user.email", email)
    if email in keys:
        keys[email].used_by(clone)


def begin(bare: Clone, clones: Mapping[str, Clone], clock: Clock) -> Pattern:
    with Seat(clones["desk"], clock) as desk, Seat(clones["mallory"], clock) as mallory:
        kept = gate_of(desk, DB, wishes=AskWishes(work=False))
        say(desk, kept, "Postgres")
        kept = answering.stop(desk.desk, desk.now(kept), "enough").gate
        fold_closed(desk.desk)
        waiting = gate_of(desk, DB, wishes=AskWishes(work=False))
        waiting = say(desk, waiting, "Postgres").gate
        asked = gate_of(desk, DB, wishes=AskWishes(work=False))
        for place in ("laptop", "bob"):
            with Seat(clones[place], clock) as seat:
                sync(seat.desk)
        unasked = gate_of(mallory, DB, wishes=AskWishes(work=False, push=False))
        clock.pass_by(1)
        month = format_time(clock.at)[:7]
    for clone in (bare, *clones.values()):
        clone.git("gc", "-q", "--prune=now")
    return Pattern(clones["mallory"], clock.at, month, asked, waiting, kept, unasked)


# What is done, as words, so that a history that fails can be read: the method, and what it is given.
Step = tuple[str, ...]
PLACE = st.sampled_from(list(PLACES))
SAID = [("vote", "Postgres"), ("vote", "SQLite"), ("edit", "low"), ("edit", "urgent"), ("comment", "")]
HONEST: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from([("say_apart", "laptop", "desk"), ("say_apart", "desk", "laptop")]),
    st.sampled_from([("stop_apart", "bob"), ("stop_apart", "laptop", "bob")]),
    st.builds(lambda place, said: ("say_and_sync", place, *said), PLACE, st.sampled_from(SAID)),
    st.builds(lambda place, said: ("say", place, *said), PLACE, st.sampled_from([*SAID, ("stop", "")])),
    st.builds(lambda place: ("sync", place), PLACE),
    st.builds(lambda how, place: (how, place), st.sampled_from(["end", "archive"]), PLACE),
)
LIES = {
    "nothing else": ("", ""),
    "another state": ("Hitl-State: ", "Hitl-State: not "),
    "another title": ("Hitl-Title: ", "Hitl-Title: not "),
    "urgent": ("Hitl-Priority: ", "Hitl-Priority: very "),
    "closed": ("Hitl-Priority: ", "Hitl-Closed: yes\nHitl-Priority: "),
    "for others": ("Hitl-Priority: ", "Hitl-To: eve\nHitl-Priority: "),
    "none": ("Hitl-", "X-"),
}
FOLDERS = ("empty", "another gate's", "older")
WHOSE = ("mine", "waiting", "kept")
# Each of them is tried once in every history, in any order.
HOSTILE: list[Step] = [
    *(("replay", how, "the tip") for how in ("bare", "itself", "the tip", "another copy", "both")),
    *(("replay", how, "an older commit") for how in ("bare", "itself")),
    *(("record", lie) for lie in LIES),
    *(("ask", lie) for lie in LIES if lie != "nothing else"),
    *(("remark", lie) for lie in LIES if lie != "nothing else"),
    *(("forge", kind) for kind in ("vote", "stop", "edit")),
    ("rewind",),
    *((how, whose) for how in ("reopen", "delete") for whose in WHOSE),
    *(
        ("fold", whose, how)
        for whose in WHOSE
        for how in ("as it is", "as it was asked", "stopped by nobody", "only named", "unnamed")
    ),
    *[("fold", "mine", "as it is elsewhere")] * 8,
    *(("fold", whose, how) for whose in WHOSE for how in FOLDERS),
    *(("lose", how) for how in ("everything", "a drawer", "an emptied drawer", "a gate")),
    *(("exchange", how) for how in FOLDERS),
    *(("come_late", how) for how in ("forged", "made up", "another gate's")),
    *(("put_back", how) for how in ("as it was", "begun anew", "gone")),
]


@settings(max_examples=examples(4), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(honest=st.lists(HONEST, min_size=6, max_size=10), hostile=st.permutations(HOSTILE))
def test_a_server_holds_each_gate_to_its_peoples_words(
    worlds: Callable[[], World], honest: list[Step], hostile: list[Step]
) -> None:
    """After each step; and when all have synced, every clone has the gate as the server has it."""
    world = worlds()
    attacks = list(enumerate(hostile))
    for number, (name, *words) in enumerate(honest):
        getattr(world, name)(*words)
        world.door.look_again()
        world.check()
        for which, (attack, *how) in attacks[number :: len(honest)]:
            getattr(world, attack)(which, *how)
        world.rest()
    world.agree()
    world.rest()
