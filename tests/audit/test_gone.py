"""Verify: a record that was there and is gone, or grew shorter, is named, however it came to that. Real servers, without our hook where
it would have refused it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from gitgate.acts import answering
from gitgate.claims import claim, claim_outcome, finish
from gitgate.exchange.syncing import bring_home, sync
from gitgate.flows.journal import begin_run
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate
from gitgate.store.git import remembered
from gitgate.store.git.refs import ARCHIVE, OPEN, RUNS
from support.resuming import Seat, claimant, until
from support.testbed.command import Command
from support.testbed.repositories import Clone


@pytest.fixture
def ann(bare: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(bare, "ann")) as seat:
        yield seat


@pytest.fixture
def bob(bare: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(bare, "bob")) as seat:
        yield seat


Verify = Callable[..., list[str]]


@pytest.fixture
def verify(cli: Command) -> Verify:
    """What `git gate verify` says of what is gone, a line each; its exit code is held to that."""

    def run(seat: Seat | Clone, *given: str) -> list[str]:
        place = seat.clone if isinstance(seat, Seat) else seat
        done = cli.quick("verify", "--json", *given, cwd=place.path)
        assert done.code in (0, 1), done
        said = json.loads(done.out)
        assert done.code == (1 if said["problems"] else 0), done.out
        return [f"{one['gate']}: {one['problem']}" for one in said["problems"]]

    return run


def closed(seat: Seat, gate: Gate) -> Gate:
    """Answered, and acted on to its end."""
    gate = seat.answer(gate, push=True)
    held = claim(seat.desk, gate, claimant())
    finish(seat.desk, held, claim_outcome(seat.desk, held, "resumed"))
    return seat.now(gate)


def gone_at(server: Clone, gate: Gate) -> None:
    server.git("update-ref", "-d", OPEN + gate.id)


def test_what_is_there_is_not_missed(ann: Seat, bob: Seat, verify: Verify) -> None:
    """Asked, answered, acted on, archived by one clone and by the other: nothing of it is missed anywhere."""
    gates = [ann.ask(f"Which? {n}", push=True) for n in range(3)]
    sync(bob.desk)
    bob.answer(gates[0], push=True)
    sync(ann.desk)
    closed(ann, ann.ask("Else?", push=True))
    assert verify(ann) == verify(bob) == []
    from gitgate.sharing.archiving import fold_closed

    assert fold_closed(ann.desk).folded
    bring_home(bob.desk, "origin")
    assert verify(ann) == verify(bob) == []
    sync(bob.desk)
    assert verify(bob) == []


def test_a_gate_that_is_gone_is_named_until_it_is_back(
    ann: Seat, bob: Seat, bare: Clone, cli: Command, verify: Verify
) -> None:
    """Both who asked it and who heard of it miss it, though a look at the remote forgets it; a sync puts it back, and says so."""
    gate, other = ann.ask(push=True), ann.ask("Else?", push=True)
    sync(bob.desk)
    gone_at(bare, gate)
    for seat in (ann, bob):
        bring_home(seat.desk, "origin")
        bring_home(seat.desk, "origin")
        assert not seat.clone.refs(f"refs/gitgate/origin/open/{gate.id}")
        (line,) = verify(seat)
        assert line.startswith(
            f"{gate.id}: origin has it no longer, and no archive has it; it was there at 20"
        )
        assert "git gate sync origin" in line
        assert verify(seat, gate.id) == [line]
        assert verify(seat, other.id) == []
    said = cli.quick("sync", cwd=bob.clone.path, code=0)
    assert f"{gate.id}: it was gone from origin" in said.err
    assert bare.refs(OPEN)[OPEN + gate.id] == gate.tip
    assert verify(bob) == []
    sync(ann.desk)
    assert verify(ann) == []
    again = json.loads(cli.quick("sync", "--json", cwd=bob.clone.path, code=0).out)
    assert again["restored"] == []


def test_a_question_that_was_never_there_is_not_missed(ann: Seat, verify: Verify) -> None:
    ann.ask(push=False)
    bring_home(ann.desk, "origin")
    assert verify(ann) == []


def test_a_claimed_gate_that_is_gone_stays_named(ann: Seat, bare: Clone, verify: Verify) -> None:
    """It is not put back while an agent acts on it here: a sync changes nothing, and it is named all the same."""
    gate = ann.answer(ann.ask(push=True), push=True)
    claim(ann.desk, gate, claimant())
    gone_at(bare, gate)
    sync(ann.desk)
    sync(ann.desk)
    assert OPEN + gate.id not in bare.refs()
    (line,) = verify(ann)
    assert gate.id in line


def test_a_gate_that_is_gone_there_and_here_is_named(
    ann: Seat, bob: Seat, bare: Clone, verify: Verify
) -> None:
    gate = ann.ask(push=True)
    sync(bob.desk)
    gone_at(bare, gate)
    bob.clone.git("update-ref", "-d", OPEN + gate.id)
    sync(bob.desk)
    (line,) = verify(bob)
    assert "a clone that still has it puts it back" in line


@pytest.mark.parametrize("how", ["earlier", "rewritten", "another root"])
def test_a_record_that_was_set_back_is_named(
    ann: Seat, bob: Seat, bare: Clone, how: str, verify: Verify
) -> None:
    """To what it was before, to that with something else on top, and to another record."""
    gate = ann.ask(push=True)
    first = gate.tip
    answering.comment(ann.desk, reload(ann.desk, gate.id), "one", push=True)
    gate = ann.answer(reload(ann.desk, gate.id), push=True)
    sync(bob.desk)
    tip = bare.git("commit-tree", f"{first}^{{tree}}", "-m", "x") if how == "another root" else first
    if how == "rewritten":
        tip = bare.git("commit-tree", f"{first}^{{tree}}", "-p", first, "-m", "x")
    bare.git("update-ref", OPEN + gate.id, tip)
    bring_home(bob.desk, "origin")
    (line,) = verify(bob)
    assert line.startswith(f"{gate.id}: ")
    if (
        how == "earlier"
    ):  # the others are no record that goes on from the one here, which is said whatever was noted
        assert f"origin had {gate.tip[:12]} of it at 20" in line
        assert "git gate sync origin" in line
        sync(bob.desk)
        assert bare.refs(OPEN)[OPEN + gate.id] == gate.tip
        assert verify(bob) == []


def test_a_run_that_is_gone_is_named(ann: Seat, bob: Seat, bare: Clone, verify: Verify) -> None:
    begin_run(ann.desk, {"flow": "feature"}, push=True)
    (name,) = (ref.removeprefix(RUNS) for ref in bare.refs(RUNS))
    sync(bob.desk)
    bare.git("update-ref", "-d", RUNS + name)
    bring_home(bob.desk, "origin")
    (line,) = verify(bob)
    assert line.startswith(f"{name}: origin has it no longer")


def archived_pair(ann: Seat, bare: Clone) -> tuple[Gate, Gate, str, str]:
    """Two gates, each in a fold of its own: their ids, the month's ref, and the fold that has the first alone."""
    from gitgate.sharing.archiving import fold_closed

    one = closed(ann, ann.ask(push=True))
    assert fold_closed(ann.desk).folded
    ((month, first),) = bare.refs(ARCHIVE).items()
    two = closed(ann, ann.ask("Else?", push=True))
    assert fold_closed(ann.desk).folded
    return one, two, month, first


@pytest.mark.parametrize("how", ["shorter", "gone", "empty"])
def test_what_an_archive_lost_is_named_until_it_is_back(
    ann: Seat, bare: Clone, how: str, cli: Command, verify: Verify
) -> None:
    one, two, month, first = archived_pair(ann, bare)
    assert verify(ann) == []
    if how == "gone":
        bare.git("update-ref", "-d", month)
    else:
        root = bare.git("rev-list", "--max-parents=0", "--first-parent", month)
        bare.git("update-ref", month, first if how == "shorter" else root)
    sync(ann.desk)
    (line,) = verify(ann)
    lost = [two.id] if how == "shorter" else sorted([one.id, two.id])
    assert f"({', '.join(lost)})" in line
    assert "git gate archive" in line
    cli.quick("archive", cwd=ann.clone.path, code=0)
    assert verify(ann) == []
    assert bare.refs(ARCHIVE)


def test_a_gate_is_not_missed_where_the_archive_that_has_it_was_not_fetched_yet(
    ann: Seat, bob: Seat, verify: Verify, cli: Command
) -> None:
    """A look at the remote brings no archive: that is said, and is no trouble."""
    from gitgate.sharing.archiving import fold_closed

    gate = closed(ann, ann.ask(push=True))
    sync(bob.desk)
    fold_closed(ann.desk)
    bring_home(bob.desk, "origin")
    said = json.loads(cli.quick("verify", "--json", cwd=bob.clone.path, code=0).out)
    assert [note["gate"] for note in said["notes"] if note["kind"] == "gone"] == [gate.id]


def wait_for_note(server: Clone, tip: str) -> None:
    """The push does not wait for the hook that writes it."""
    place = server.path / "gitgate" / remembered.FILE
    until(lambda: place.is_file() and tip.encode() in place.read_bytes())


def test_a_server_misses_its_own(ann: Seat, bare: Clone, cli: Command, verify: Verify) -> None:
    """Whoever has a shell there takes a gate away, or sets it back."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    gate, other = ann.ask(push=True), ann.ask("Else?", push=True)
    asked = other.tip
    other = ann.answer(other, push=True)
    wait_for_note(bare, other.tip)
    assert verify(bare) == []
    gone_at(bare, gate)
    bare.git("update-ref", OPEN + other.id, asked)
    found = verify(bare)
    assert len(found) == 2
    assert any(
        line.startswith(f"{gate.id}: this repository has it no longer, and no archive has it")
        for line in found
    )
    assert any(line.startswith(f"{other.id}: this repository had {other.tip[:12]}") for line in found)
    for _ in range(2):  # the first says that one of them was rewritten
        sync(ann.desk)
    wait_for_note(bare, gate.tip)
    assert verify(bare) == []


# the note itself


def test_a_note_that_was_cut_off_takes_nothing_else_along(
    ann: Seat, bob: Seat, bare: Clone, verify: Verify
) -> None:
    gate = ann.ask(push=True)
    sync(bob.desk)
    place = bob.clone.path / ".git/gitgate" / remembered.FILE
    place.write_bytes(place.read_bytes() + b"1234 \xff\0 refs/gitga")
    other = ann.ask("Else?", push=True)
    sync(bob.desk)
    gone_at(bare, gate)
    gone_at(bare, other)
    bring_home(bob.desk, "origin")
    assert len(verify(bob)) == 2


def test_a_note_stays_small_and_keeps_what_counts(
    ann: Seat, bob: Seat, bare: Clone, monkeypatch: pytest.MonkeyPatch, verify: Verify
) -> None:
    """A record that was set back is not forgotten by its being shortened, nor one that is gone."""
    gate, back = ann.ask(push=True), ann.ask("Else?", push=True)
    first = back.tip
    for word in "abcdef":
        answering.comment(ann.desk, reload(ann.desk, back.id), word, push=True)
        sync(bob.desk)
    place = bob.clone.path / ".git/gitgate" / remembered.FILE
    last = ann.now(back).tip
    bare.git("update-ref", OPEN + back.id, first)
    gone_at(bare, gate)
    bring_home(bob.desk, "origin")
    before = sorted(verify(bob))
    assert len(before) == 2
    monkeypatch.setattr(remembered, "MOST", 0)
    ref = f"refs/gitgate/origin/open/{'2' * 10}"
    found = remembered.shortened(bob.desk.repo, remembered.read_seen_tips(bob.desk.repo))
    assert found == b""  # no room for anything
    monkeypatch.setattr(remembered, "MOST", 2000)
    remembered.remember_tips(bob.desk.repo, {ref: last})
    assert place.stat().st_size < 1000
    bob.clone.git("update-ref", ref, last)
    assert [line.partition(" at ")[0] for line in sorted(verify(bob)) if "2222222222" not in line] == [
        line.partition(" at ")[0] for line in before
    ]
