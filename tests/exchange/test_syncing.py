"""Two clones and the repository that they share: nothing is lost, and one answer counts, whoever syncs first."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.acts import answering, find_gate, open_gate
from gitgate.acts.answering import Manner, respond
from gitgate.acts.asking import AskWishes, ask
from gitgate.context import Desk, open_desk
from gitgate.errors import Conflict, Failure, IllegalEvent, RemoteUnreachable
from gitgate.exchange.syncing import publish, sync
from gitgate.gates.history import archived_gates, load_archived
from gitgate.model.gate import Gate, Option
from gitgate.questions import Given
from gitgate.questions.drafts import Draft, question
from gitgate.sharing.archiving import fold_closed
from gitgate.store.records import Signature
from support.testbed.repositories import Clone, make_bare, make_clone

AT = 1_800_000_000.0
LOCAL = Manner(push=False)


@dataclass(frozen=True)
class Place:
    """A clone and the person who sits at it."""

    clone: Clone
    desk: Desk

    def refs(self, pattern: str) -> dict[str, str]:
        return self.clone.refs(pattern)


@dataclass(frozen=True)
class Shared:
    """A bare repository, and as many clones of it as a test needs."""

    server: Clone
    open: Callable[[str], Place]


@pytest.fixture
def shared(tmp_path: Path, home: Path) -> Shared:
    start = make_clone_of_nothing(tmp_path)
    server = make_bare(tmp_path / "server.git")
    start.git("push", "-q", str(server.path), "HEAD:refs/heads/main")
    ticks = itertools.count()

    def sit(name: str) -> Place:
        server.git("clone", "-q", str(server.path), str(tmp_path / name))
        clone = Clone(tmp_path / name)
        clone.git("config", "user.name", name)
        clone.git("config", "user.email", f"{name}@example.org")
        env = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
        return Place(clone, open_desk(clone.path, env, bulk=True, clock=lambda: AT + next(ticks)))

    return Shared(server, sit)


def make_clone_of_nothing(tmp_path: Path) -> Clone:
    for name, value in (("user.name", "Start"), ("user.email", "start@example.org")):
        Clone(tmp_path).git("config", "--global", name, value)
    return make_clone(tmp_path / "start")


def opened(place: Place, *, push: bool | None = None, quorum: int = 1, words: str = "Which way?") -> Gate:
    options = (Option("Left"), Option("Right"))
    draft = Draft((question(words, options=options),), agent="agent", quorum=quorum)
    return ask(place.desk, draft, AskWishes(push=push)).gate


def answered(place: Place, gate: Gate, words: str, manner: Manner = LOCAL) -> Gate:
    return respond(place.desk, open_gate(place.desk, gate.id), Given(text=words), manner).gate


def view(place: Place, gate: Gate) -> tuple[object, ...]:
    """What a person sees of the gate in this clone."""
    now = find_gate(place.desk, gate.id).gate
    counts = now.answer.answer.values["answer"] if now.answer else None
    return (now.state, counts, [late.answer.values["answer"] for late in now.late], now.tip)


def test_a_gate_travels_to_a_plain_clone(shared: Shared) -> None:
    """What one clone asks, another that never was set up lists after a sync."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    assert find_gate(ann.desk, gate.id).pushed
    done = sync(bob.desk)
    assert done.new == (gate.id,)
    assert find_gate(bob.desk, gate.id).gate.tip == gate.tip


@pytest.mark.parametrize("first", ["ann", "bob"])
@pytest.mark.parametrize("again", [1, 2])
def test_two_offline_answers_end_in_one_counted_and_one_late(shared: Shared, first: str, again: int) -> None:
    """In whichever order they sync, and however often, both sides end alike and nobody's words are lost."""
    places = {name: shared.open(name) for name in ("ann", "bob")}
    gate = opened(places["ann"])
    sync(places["bob"].desk)
    answered(places["ann"], gate, "Left")
    answered(places["bob"], gate, "Right")
    order = [places[first], *(place for name, place in places.items() if name != first)]
    for place in [*order, *order] * again:
        sync(place.desk)
    said = {"ann": "Left", "bob": "Right"}
    late = next(words for name, words in said.items() if name != first)
    for place in places.values():
        state, counts, others, _ = view(place, gate)
        assert (state, counts, others) == ("answered", said[first], [late])
    assert view(places["ann"], gate) == view(places["bob"], gate)


def test_the_late_answers_own_commit_stays_reachable(shared: Shared) -> None:
    """Recorded again, it keeps its author's commit as second parent, so that a signature on it stays good."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    original = answered(bob, gate, "Right").tip
    answered(ann, gate, "Left", Manner())
    sync(bob.desk)
    late = find_gate(bob.desk, gate.id).gate.late[0]
    assert late.signed_commit == original
    assert bob.clone.git("rev-parse", f"{late.commit}^2") == original
    assert bob.clone.git("log", "-1", "--format=%an", original) == "bob"


def test_who_loses_the_race_on_line_is_told(shared: Shared) -> None:
    """An answer that pushes into an answered gate is kept as late, and its author hears it at once."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    answered(ann, gate, "Left", Manner())
    with pytest.raises(Conflict, match="ann was first"):
        answered(bob, gate, "Right", Manner())
    assert view(bob, gate)[:3] == ("answered", "Left", ["Right"])


def test_a_quorum_that_is_still_open_takes_both(shared: Shared) -> None:
    """Two offline votes for the same are two votes, not one and a late one."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann, quorum=2)
    sync(bob.desk)
    answered(ann, gate, "Left")
    answered(bob, gate, "Left")
    for place in (ann, bob, ann):
        sync(place.desk)
    assert view(ann, gate)[:3] == ("answered", "Left", [])
    assert view(ann, gate) == view(bob, gate)


def test_a_comment_made_off_line_survives_an_answer(shared: Shared) -> None:
    """Remarks are recorded again on top of what the other side decided."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    answering.comment(bob.desk, open_gate(bob.desk, gate.id), "mind the step", push=False)
    answered(ann, gate, "Left", Manner())
    sync(bob.desk)
    sync(ann.desk)
    names = [entry.name for entry in find_gate(ann.desk, gate.id).gate.history]
    assert names == ["opened", "answered", "commented"]


def test_an_expiry_that_lost_to_an_answer_is_dropped(shared: Shared) -> None:
    """The answer reached the shared repository first; an expiry is nobody's word, and goes."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = ask(ann.desk, Draft((question("Which way?"),), agent="agent", timeout=3600)).gate
    sync(bob.desk)
    answered(bob, gate, "left", Manner())
    late = open_desk(ann.clone.path, ann.desk.settings.env, clock=lambda: AT + 7200)
    assert find_gate(late, gate.id).gate.state == "expired"
    done = sync(late)
    late.close()
    assert done.lost == (f"{gate.id} expired",)
    assert view(ann, gate)[:2] == ("answered", "left")


def test_a_network_that_is_down_leaves_the_gate_here(shared: Shared) -> None:
    """Not pushed is a word, not a failure; insisting makes it one. A later sync brings it there."""
    ann = shared.open("ann")
    away = shared.server.path.with_name("away.git")
    shared.server.path.rename(away)
    gate = opened(ann)
    assert not find_gate(ann.desk, gate.id).pushed
    with pytest.raises(RemoteUnreachable, match="safe here"):
        publish(ann.desk, gate, push=True)
    away.rename(shared.server.path)
    assert sync(ann.desk).pushed == (gate.id,)
    assert shared.server.refs("refs/hitl/open") == {f"refs/hitl/open/{gate.id}": gate.tip}


def test_without_consent_the_record_goes_alone(shared: Shared) -> None:
    """Work holds unpublished files: it stays until `init` said otherwise."""
    ann = shared.open("ann")
    ann.clone.write("secret plan", "half done\n")
    gate = opened(ann)
    assert list(shared.server.refs("refs/hitl")) == [f"refs/hitl/open/{gate.id}"]
    ann.clone.git("config", "gitgate.publishWork", "true")
    consenting = open_desk(ann.clone.path, ann.desk.settings.env, clock=ann.desk.clock)
    second = ask(consenting, Draft((question("And now?"),), agent="agent")).gate
    consenting.close()
    assert f"refs/hitl/work/{second.id}" in shared.server.refs("refs/hitl")


def test_a_sync_without_a_remote_says_so(tmp_path: Path, home: Path) -> None:
    """There is nothing to guess."""
    clone = make_clone_of_nothing(tmp_path)
    desk = open_desk(clone.path, {"PATH": "/usr/bin:/bin", "HOME": str(home)})
    with pytest.raises(Failure, match="no remote"):
        sync(desk)
    desk.close()


@pytest.mark.slow
def test_many_gates_arrive_in_one_sync(shared: Shared) -> None:
    """Batches of 25 refs go out; the other side takes them all at once."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gates = {opened(ann, push=False, words=f"Question {n}?").id for n in range(60)}
    assert set(sync(ann.desk).pushed) == gates
    assert set(sync(bob.desk).new) == gates
    assert not sync(bob.desk).changed


def test_a_forged_record_on_the_server_hinders_no_other(shared: Shared) -> None:
    """It is named and left alone; the gates beside it arrive."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    forged = shared.server.git("rev-parse", "refs/heads/main")
    shared.server.git("update-ref", "refs/hitl/open/2222222222", forged)
    done = sync(bob.desk)
    assert done.new == (gate.id,)
    assert set(done.broken) == {"2222222222"}
    assert "refs/hitl/open/2222222222" not in bob.refs("refs/hitl")


# the archive


def test_a_closed_gate_leaves_and_stays_readable(shared: Shared) -> None:
    """Folded on the server and here; found again by its prefix."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    answered(ann, gate, "Left", Manner())
    done = fold_closed(ann.desk)
    assert done.folded == (gate.id,)
    assert not shared.server.refs("refs/hitl/open")
    sync(bob.desk)
    for place in (ann, bob):
        if place is bob:
            fold_closed(bob.desk)
        assert not place.refs("refs/hitl/open")
    found = find_gate(ann.desk, gate.id[:5])
    assert found.archived
    assert found.gate.state == "answered"
    assert [old.id for old in archived_gates(ann.desk)] == [gate.id]


@pytest.mark.slow
def test_a_stale_clone_does_not_bring_a_closed_gate_back(shared: Shared) -> None:
    """Its sync notices that the gate was archived, and removes its own copy."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    answered(ann, gate, "Left", Manner())
    fold_closed(ann.desk)
    assert sync(bob.desk).archived == (gate.id,)
    assert not shared.server.refs("refs/hitl/open")
    assert not bob.refs("refs/hitl/open")


@pytest.mark.slow
@pytest.mark.parametrize("sync_first", [True, False])
def test_an_answer_to_an_archived_gate_is_kept_beside_it(shared: Shared, *, sync_first: bool) -> None:
    """It changes nothing, is not lost, does not reopen the gate, and its author is told."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    answered(ann, gate, "Left", Manner())
    fold_closed(ann.desk)
    if sync_first:
        answered(bob, gate, "Right")
        assert sync(bob.desk).archived == (gate.id,)
    else:
        with pytest.raises(Conflict, match="archived"):
            answered(bob, gate, "Right", Manner())
    assert not shared.server.refs("refs/hitl/open")
    (month,) = shared.server.refs("refs/hitl/archive").values()
    kept = shared.server.git("ls-tree", "-r", "--name-only", month)
    assert f"{gate.id[:2]}/{gate.id}/late/" in kept
    archived = load_archived(bob.desk, gate.id)
    assert archived is not None
    assert archived.answer is not None
    assert archived.answer.answer.values == {"answer": "Left"}


def test_a_waiting_gate_is_never_folded(shared: Shared) -> None:
    """Housekeeping touches only what is over."""
    ann = shared.open("ann")
    gate = opened(ann)
    assert fold_closed(ann.desk).folded == ()
    assert find_gate(ann.desk, gate.id).gate.state == "awaiting"


def test_a_gate_answered_elsewhere_is_not_folded_as_it_was_here(shared: Shared) -> None:
    """Folding syncs first: what was said there is what closes."""
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    answered(bob, gate, "Right", Manner())
    assert fold_closed(ann.desk).folded == (gate.id,)
    closed = load_archived(ann.desk, gate.id)
    assert closed is not None
    assert closed.answer is not None
    assert closed.answer.answer.values == {"answer": "Right"}


def test_an_archived_gate_cannot_be_answered_here(shared: Shared) -> None:
    """There is no open gate of that name, and the hint says where it is."""
    ann = shared.open("ann")
    gate = opened(ann)
    answered(ann, gate, "Left", Manner())
    with pytest.raises(IllegalEvent, match="already answered"):
        answered(ann, gate, "Right", Manner())


def test_an_answer_slipped_in_as_first_parent_is_not_taken_over(shared: Shared) -> None:
    """On a server without our hook somebody records the answer that counts again, as late, on top of their own: a push
    that moves forward, and a record that is sound by itself. The clone that knew the other one objects.
    """
    ann, bob = shared.open("ann"), shared.open("bob")
    gate = opened(ann)
    sync(bob.desk)
    honest = answered(ann, gate, "Left", Manner())
    sync(bob.desk)
    forger = shared.open("eve")
    forger.clone.git("fetch", "-q", "origin", f"+refs/hitl/open/{gate.id}:refs/hitl/open/{gate.id}")
    forger.clone.git("update-ref", f"refs/hitl/open/{gate.id}", gate.tip)
    forged = answered(forger, gate, "Right")
    by = Signature("eve <eve@example.org>", int(AT))
    again = forger.desk.records.repeat(forged, honest.history[-1], by, honest.tip)
    forger.clone.git("push", "-q", "origin", f"{again.tip}:refs/hitl/open/{gate.id}")
    done = sync(bob.desk)
    assert "was rewritten" in done.broken[gate.id]
    assert view(bob, gate)[:2] == ("answered", "Left")
