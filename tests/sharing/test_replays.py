"""An event counts once: what is in a record already is refused by the hook, counts for nothing elsewhere, and is named.

And what somebody said elsewhere, without their own later word before them, takes the place of none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.audit.auditing import audit
from gitgate.errors import Conflict, NotAllowed
from gitgate.exchange import entering
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate, Remark
from gitgate.policy import load_book
from gitgate.policy.permit import check_told
from gitgate.record import message
from gitgate.sharing import refusals
from gitgate.sharing.pushers import Actor, Doorkeeper
from gitgate.store.git.refs import OPEN, Update
from gitgate.store.records import Signature
from support.deciding import DB, gate_of, say
from support.resuming import Clock, Seat
from support.signing import publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

ADA, BOB, EVE = "Ada <ada@example.org>", "Bob <bob@example.org>", "Eve <eve@example.org>"
MALLORY = Signature("Mallory <mallory@example.org>", 1_800_000_000)


def planted(seat: Seat, gate: Gate, path: str, data: bytes, *second: str, name: str = "voted") -> str:
    """A commit on the gate that adds a file, with the message that it would have if it counted."""
    records = seat.desk.records
    tree = records.with_file(records.commit(gate.tip).tree, path, data)
    said = message(name, gate.history[-1].event, gate)
    return records.write_commit(tree, (gate.tip, *second), MALLORY, said)


def hook_says(seat: Seat, gate: Gate, tip: str) -> str:
    """What the receiving hook has against this, where the gate is as it is here."""
    desk = seat.desk
    ref = OPEN + gate.id
    return refusals(desk, [Update(gate.tip, tip, ref)], partial(entering.against_events, desk)).get(ref, "")


def voted(seat: Seat) -> Gate:
    """Two have to agree: Ada said the one, then the other."""
    gate = gate_of(seat, DB, quorum=2)
    say(seat, gate, "Postgres", ADA)
    return say(seat, gate, "SQLite", ADA).gate


def second_parent(seat: Seat, gate: Gate, how: str) -> tuple[str, ...]:
    """What a replay says that it records again."""
    if how == "a new commit of the same file":
        before = seat.desk.records.load(gate.id, gate.history[0].commit)
        return (planted(seat, before, "answers/q.yaml", seat.desk.records.file_of(gate.history[1])),)
    return {"the old commit": (gate.history[1].commit,), "the newest commit": (gate.tip,)}.get(how, ())


@pytest.mark.parametrize(
    "how", ["the old commit", "nothing", "a new commit of the same file", "the newest commit"]
)
def test_a_vote_that_was_taken_back_is_not_replayed(alone: Seat, how: str) -> None:
    """Neither by its own commit nor by a copy: another vote then decides nothing."""
    gate = voted(alone)
    which = 2 if "newest" in how else 1
    data = alone.desk.records.file_of(gate.history[which])
    tip = planted(alone, gate, "answers/again.yaml", data, *second_parent(alone, gate, how))
    assert "an event counts once (as it is it can never be pushed)" in hook_says(alone, gate, tip)
    alone.clone.git("update-ref", OPEN + gate.id, tip)
    after = say(alone, gate, "Postgres", BOB).gate
    assert [entry.name for entry in after.history[-2:]] == ["repeated", "voted"]
    assert (after.state, len(after.votes)) == ("awaiting", 2)
    (problem,) = audit(alone.desk).problems
    assert (problem.kind, problem.commit) == ("repeated", tip)
    assert f"it is what {gate.history[which].commit[:12]} recorded, once more" in problem.words


def edits(seat: Seat) -> Gate:
    gate = gate_of(seat)
    for priority in ("urgent", "low"):
        gate = answering.edit(seat.desk, seat.now(gate), priority=priority, push=False).gate
    return gate


def comments(seat: Seat) -> Gate:
    gate = gate_of(seat)
    for words in ("stop the release", "never mind"):
        gate = answering.comment(seat.desk, seat.now(gate), words, push=False).gate
    return gate


def stop(seat: Seat) -> Gate:
    return answering.stop(seat.desk, gate_of(seat), "enough", push=False).gate


def withdrawal(seat: Seat) -> Gate:
    return answering.withdraw(seat.desk, gate_of(seat), "found it", push=False).gate


@pytest.mark.parametrize("made", [edits, comments, stop, withdrawal])
@pytest.mark.parametrize("again", [True, False])
def test_other_events_are_not_replayed(alone: Seat, made: Callable[[Seat], Gate], again: bool) -> None:
    """Terms that were changed since, words, ends: nothing of the gate changes, and its record stays readable."""
    gate = made(alone)
    old = gate.history[1]
    data = alone.desk.records.file_of(old)
    second = (old.commit,) if again else ()
    tip = planted(alone, gate, f"{old.path.partition('/')[0]}/x.yaml", data, *second, name=old.name)
    assert "an event counts once" in hook_says(alone, gate, tip)
    alone.clone.git("update-ref", OPEN + gate.id, tip)
    after = alone.now(gate)
    assert after.history[-1].name == "repeated"
    assert (after.state, after.priority, after.closing) == (gate.state, gate.priority, gate.closing)
    assert [problem.kind for problem in audit(alone.desk).problems] == ["repeated"]


@pytest.mark.slow
def test_a_replay_is_refused_by_a_server(bare: Clone, clone_of: Callable[..., Clone], cli: Command) -> None:
    """By its real hook, on a real push; the vote that was taken back stays so."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    with Seat(clone_of(bare, "mallory")) as mallory:
        gate = voted(mallory)
        old = gate.history[1]
        data = mallory.desk.records.file_of(old)
        tip = planted(mallory, gate, "answers/x.yaml", data, old.commit)
        with pytest.raises(GitError, match="an event counts once"):
            mallory.clone.git("push", "-q", "origin", f"{tip}:{OPEN}{gate.id}")
        assert bare.refs()[OPEN + gate.id] == gate.tip


# What was said elsewhere


@pytest.fixture
def two(ann: Seat, bob: Seat) -> tuple[Seat, Seat, Gate]:
    """A desktop and a laptop of one person, and a gate for which two have to agree, on both."""
    gate = gate_of(ann, DB, quorum=2)
    sync(bob.desk)
    return ann, bob, gate


def test_an_older_vote_from_elsewhere_replaces_none(two: tuple[Seat, Seat, Gate], clock: Clock) -> None:
    """Off line the laptop said the one; later the desktop said the other. That stands when the laptop is back, which is told."""
    desktop, laptop, gate = two
    off_line(laptop, gate, "Postgres")
    clock.pass_by(3600)
    say(desktop, gate, "SQLite", ADA)
    done = sync(laptop.desk)
    assert len(done.late) == 1
    assert "Ada's own answer of" in done.late[0]
    assert f"if it still holds: git gate respond {gate.id}" in done.late[0]
    sync(desktop.desk)
    decided = say(desktop, gate, "Postgres", BOB).gate
    assert [entry.name for entry in decided.history] == ["opened", "voted", "late", "voted"]
    assert (
        decided.state,
        [vote.answer.values["answer"] for vote in decided.votes if vote.answer.by == ADA],
    ) == (
        "awaiting",
        ["SQLite"],
    )


def off_line(seat: Seat, gate: Gate, text: str) -> None:
    say(seat, gate, text, ADA, push=False)


def test_whoever_answers_is_told_at_once(two: tuple[Seat, Seat, Gate]) -> None:
    """A clone that had not heard of their other word: the push brings it, exit 5, and a way to say it again."""
    desktop, laptop, gate = two
    say(desktop, gate, "SQLite", ADA)
    with pytest.raises(Conflict, match="was there first, and this one was given without it") as told:
        say(laptop, gate, "Postgres", ADA)
    assert f"git gate respond {gate.id}" in (told.value.hint or "")
    assert say(laptop, gate, "Postgres", ADA).gate.votes[-1].answer.values == {"answer": "Postgres"}


def test_a_vote_amended_elsewhere_replaces_none(two: tuple[Seat, Seat, Gate], clock: Clock) -> None:
    """However often its author thought again there: none of it had their other word before it."""
    desktop, laptop, gate = two
    for text in ("SQLite", "Postgres"):
        off_line(laptop, gate, text)
    clock.pass_by(60)
    say(desktop, gate, "SQLite", ADA)
    assert len(sync(laptop.desk).late) == 2
    after = laptop.now(gate)
    assert [vote.answer.values for vote in after.votes] == [{"answer": "SQLite"}]
    assert after.votes[0].commit == after.history[1].commit


def test_a_vote_given_with_the_other_in_view_replaces_it(two: tuple[Seat, Seat, Gate]) -> None:
    """Off line, but after it had been fetched: that is its author's later word, whatever came meanwhile."""
    desktop, laptop, gate = two
    say(desktop, gate, "SQLite", ADA)
    sync(laptop.desk)
    off_line(laptop, gate, "Postgres")
    answering.comment(desktop.desk, desktop.now(gate), "hm")
    say(desktop, gate, "Postgres", BOB)
    done = sync(laptop.desk)
    assert done.late == ()
    assert laptop.now(gate).state == "answered"


def test_terms_from_elsewhere_do_not_undo_their_authors_own(two: tuple[Seat, Seat, Gate]) -> None:
    """Of the same term; another one is taken."""
    desktop, laptop, gate = two
    answering.edit(laptop.desk, laptop.now(gate), priority="low", push=False)
    answering.edit(laptop.desk, laptop.now(gate), to=("ann@example.org", "bob@example.org"), push=False)
    answering.edit(desktop.desk, desktop.now(gate), priority="urgent")
    done = sync(laptop.desk)
    assert len(done.late) == 1
    after = laptop.now(gate)
    assert (after.priority, after.to) == ("urgent", ("ann@example.org", "bob@example.org"))
    assert [entry.name for entry in after.history] == ["opened", "edited", "late", "edited"]


def test_terms_changed_again_elsewhere_undo_no_others(two: tuple[Seat, Seat, Gate]) -> None:
    """That their author changed one of them there before is no knowledge of what they changed here."""
    desktop, laptop, gate = two
    answering.edit(laptop.desk, laptop.now(gate), to=("ann@example.org", "bob@example.org"), push=False)
    answering.edit(
        laptop.desk, laptop.now(gate), to=("ann@example.org", "eve@example.org"), priority="low", push=False
    )
    answering.edit(desktop.desk, desktop.now(gate), priority="urgent")
    done = sync(laptop.desk)
    assert len(done.late) == 1
    after = laptop.now(gate)
    assert (after.priority, after.to) == ("urgent", ("ann@example.org", "bob@example.org"))
    assert [entry.name for entry in after.history] == ["opened", "edited", "edited", "late"]


def test_a_sync_tells_it_in_words_and_in_json(two: tuple[Seat, Seat, Gate], cli: Command) -> None:
    """On standard error, and as `late`."""
    desktop, laptop, gate = two
    off_line(laptop, gate, "Postgres")
    say(desktop, gate, "SQLite", ADA)
    said = cli.quick("sync", "--json", cwd=laptop.clone.path, code=0)
    assert "own answer" in said.json["late"][0]
    off_line(laptop, gate, "Postgres")
    sync(desktop.desk)
    say(desktop, gate, "SQLite", ADA)
    said = cli.quick("sync", cwd=laptop.clone.path, code=0)
    assert "kept, and without effect" in said.err


def test_others_words_are_not_held_up(two: tuple[Seat, Seat, Gate]) -> None:
    """What is one person's is nobody else's: a second person's vote from elsewhere counts."""
    desktop, laptop, gate = two
    off_line(laptop, gate, "Postgres")
    say(desktop, gate, "Postgres", EVE)
    assert sync(laptop.desk).late == ()
    assert laptop.now(gate).state == "answered"
    with pytest.raises(Conflict):
        say(desktop, gate, "SQLite")


# Who somebody is, where a policy asks

POLICY = """policy:
  people:
    ada: {email: [ada@example.org, ada@home.example]}
    bob: {email: bob@example.org}
    eve: {email: eve@example.org}
  who: anyone
  quorum: 2
"""


@pytest.fixture
def policed(bare: Clone, ann: Seat) -> Seat:
    publish_policy(bare, POLICY)
    ann.clone.git("fetch", "-q", "origin")
    return ann


@pytest.mark.parametrize("name", ["Bob", "bob", "Bob <>", "<bob"])
def test_a_name_without_an_address_is_nobodys(policed: Seat, name: str) -> None:
    """It makes no second person of one, and none of nobody: refused where it is pushed, acted on by nobody elsewhere."""
    gate = gate_of(policed, DB, wishes=AskWishes(push=False))
    said = say(policed, gate, "Postgres", ADA, push=False).gate
    desk = policed.desk
    answer = replace(said.votes[0].answer, by=name, seen=said.tip)
    after = desk.records.write_event(said, "answered", answer, MALLORY)
    assert after.state == "answered"
    policed.clone.git("update-ref", OPEN + gate.id, after.tip)
    with pytest.raises(NotAllowed, match="without an address, and so by nobody"):
        check_told(policed.desk, after)
    keeper = Doorkeeper(policed.desk, load_book(policed.desk), Actor("bob", how="GITGATE_ACTOR"))
    why = keeper.against(after, said.tip)
    assert "by nobody" in why or "in the name of" in why


def test_a_stop_by_a_bare_name_is_nobodys(policed: Seat) -> None:
    """Not even where whoever asked pushes it: an agent ends no gate."""
    gate = gate_of(policed, DB, wishes=AskWishes(push=False))
    desk = policed.desk
    after = desk.records.write_event(gate, "stopped", Remark(desk.now, "coder", "enough"), MALLORY)
    keeper = Doorkeeper(desk, load_book(desk), Actor("ada@example.org", how="GITGATE_ACTOR"))
    assert "by nobody" in keeper.against(after, gate.tip)


@pytest.mark.parametrize("off_line_first", [True, False])
def test_one_person_has_one_last_word(policed: Seat, bob: Seat, clock: Clock, off_line_first: bool) -> None:
    """Under whichever of their addresses, and where an older one comes from elsewhere: the other is not counted."""
    home = "Ada <ada@home.example>"
    gate = gate_of(policed, DB)
    sync(bob.desk)
    if off_line_first:
        say(bob, gate, "Postgres", home, push=False)
        clock.pass_by(60)
        say(policed, gate, "SQLite", ADA)
        assert sync(bob.desk).pushed
        sync(policed.desk)
    else:
        say(policed, gate, "Postgres", home)
        say(policed, gate, "SQLite", ADA)
    with pytest.raises(NotAllowed, match="2 have to agree, and 1 do"):
        say(policed, gate, "Postgres", BOB, push=False)
    assert say(policed, gate, "SQLite", EVE, push=False).gate.state == "answered"
