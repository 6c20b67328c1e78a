"""A server whose git is killed while it moves refs: what it had recorded comes to its end, once; nothing else is moved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.audit.auditing import audit
from gitgate.claims import HeldClaim, claim, claim_outcome, finish
from gitgate.errors import GateError
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate
from gitgate.store.remote import RefMove
from support import PATIENCE
from support.resuming import Seat, claimant
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

pytestmark = pytest.mark.slow  # real pushes, through the real hook

OPEN, LEASES, HEADS = "refs/hitl/open/", "refs/hitl/leases/", "refs/heads/"
# Git asks this hook when every ref is locked and none is moved yet.
KILL = '#!/bin/sh\n[ "$1" != prepared ] || kill -9 $PPID\n'


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(server, "ann")) as seat:
        yield seat


def locks(server: Clone) -> list[Path]:
    return sorted([*server.path.glob("refs/**/*.lock"), *server.path.glob("*.lock")])


def kill_at(server: Clone, *moved: str) -> Callable[[], None]:
    """The next transaction ends so: these refs are moved, and the others only locked."""
    hook = server.path / "hooks/reference-transaction"
    hook.write_text(KILL)
    hook.chmod(0o755)

    def after() -> None:
        hook.unlink()
        for ref in moved:
            (server.path / f"{ref}.lock").replace(server.path / ref)

    return after


def grow_old(server: Clone, seconds: float = 700) -> None:
    for lock in locks(server):
        os.utime(lock, (time.time() - seconds,) * 2)


def cut_off(server: Clone, ann: Seat, branch: str, *moved: str) -> tuple[HeldClaim, str, RefMove]:
    """An outcome whose push was cut off when the refs with these beginnings were moved."""
    held = claim(ann.desk, ann.answer(ann.ask()), claimant("ann"))
    old = server.refs().get(HEADS + branch)
    ann.clone.write("made", "m")
    ann.clone.commit("made")
    made = ann.clone.git("rev-parse", "HEAD")
    way = RefMove(HEADS + branch, made, old)
    end = kill_at(server, *(HEADS + branch if one == HEADS else one + held.gate.id for one in moved))
    with pytest.raises(GateError):
        record(ann, held, way)
    end()
    return held, made, way


def record(ann: Seat, held: HeldClaim, way: RefMove) -> Gate:
    said = claim_outcome(
        ann.desk, held, "resumed", branch=way.ref.removeprefix(HEADS), commits=[str(way.new)]
    )
    return finish(ann.desk, held, said, [way])


def another_push(ann: Seat) -> None:
    ann.clone.git("push", "-q", "origin", "HEAD~1:refs/heads/other")
    ann.clone.git("push", "-q", "origin", ":refs/heads/other", check=False)


def settled(server: Clone, ref: str, oid: str, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while server.refs().get(ref) != oid or locks(server):
        assert time.monotonic() < end, (server.refs(), locks(server))
        time.sleep(0.05)


@pytest.mark.parametrize("branch", ["main", "gate/new"])
def test_a_branch_that_stayed_behind_its_outcome_is_moved(server: Clone, ann: Seat, branch: str) -> None:
    """Nobody is left who knows: any later push has it moved, whether it was there before or not."""
    held, made, _way = cut_off(server, ann, branch, OPEN)
    assert server.refs().get(HEADS + branch) != made
    grow_old(server)
    another_push(ann)
    settled(server, HEADS + branch, made)
    assert LEASES + held.gate.id in server.refs()  # It ends with the gate.


def test_it_is_moved_once(server: Clone, ann: Seat, cli: Command) -> None:
    """A person who takes the commits off the branch again is not overruled."""
    _held, made, way = cut_off(server, ann, "main", OPEN)
    grow_old(server)
    cli.quick("worker", "--once", cwd=server.path, code=0)
    assert server.refs()["refs/heads/main"] == made
    ann.clone.git("push", "-q", "-f", "origin", f"{way.old}:refs/heads/main")
    for _ in range(2):
        cli.quick("worker", "--once", cwd=server.path, code=0)
    assert server.refs()["refs/heads/main"] == way.old


def test_a_record_that_stayed_behind_its_branch_is_moved(server: Clone, ann: Seat, cli: Command) -> None:
    """Else the agent would be started again, on work that is done."""
    held, made, _way = cut_off(server, ann, "main", HEADS)
    grow_old(server)
    cli.quick("worker", "--once", cwd=server.path, code=0)
    assert not locks(server)
    assert server.refs()["refs/heads/main"] == made
    shown = cli.quick("show", held.gate.id, "--json", cwd=server.path, code=0).json
    assert shown["state"] == "resumed"


def test_who_pushed_it_comes_to_the_same(server: Clone, ann: Seat) -> None:
    """The runner that was cut off goes on: the first try frees what is locked, and the next one finds its outcome there."""
    held, made, way = cut_off(server, ann, "main", OPEN)
    grow_old(server)
    another_push(ann)
    settled(server, HEADS + "main", made)
    after = record(ann, held, way)
    assert [entry.name for entry in after.history][-2:] == ["claimed", "resumed"]


def test_who_pushed_it_brings_the_branch(server: Clone, ann: Seat) -> None:
    """Where somebody removed the locks by hand, the branch is behind: the runner that is still there moves it alone."""
    held, made, way = cut_off(server, ann, "main", OPEN)
    for lock in locks(server):
        lock.unlink()
    after = record(ann, held, way)
    assert after.state == "resumed"
    assert server.refs()["refs/heads/main"] == made


def test_a_push_finds_the_way_free(server: Clone, ann: Seat) -> None:
    """All was locked and nothing moved: the next push of the same refs is refused by git, and frees them."""
    held, made, way = cut_off(server, ann, "main")
    grow_old(server)
    for _ in range(3):
        try:
            record(ann, held, way)
            break
        except GateError:
            continue
    settled(server, "refs/heads/main", made)
    assert ann.now(held.gate).state == "resumed"


# what verify says


def notes(seat: Seat) -> list[str]:
    return [note.words for note in audit(seat.desk).notes if note.kind == "branch"]


def behind(server: Clone, ann: Seat) -> tuple[HeldClaim, str, RefMove]:
    """A branch whose locks somebody took away, so that it stays where it was."""
    found = cut_off(server, ann, "main", OPEN)
    for lock in locks(server):
        lock.unlink()
    ann.clone.git("fetch", "-q", "origin")
    sync(ann.desk)
    return found


def test_a_branch_that_was_never_moved_is_named(
    server: Clone, ann: Seat, clone_of: Callable[..., Clone]
) -> None:
    """In the clone that has the commits, on the server, and in one that never saw them; with a command that mends it."""
    _held, made, way = behind(server, ann)
    with Seat(clone_of(server, "bob")) as bob, Seat(server) as there:
        sync(bob.desk)
        for seat in (ann, bob, there):
            (said,) = notes(seat)
            assert f"main is where it was before its outcome, and has not got {made[:12]}" in said
        ann.clone.git(*notes(ann)[0].split("put it back: git ")[1].split())
        assert server.refs()["refs/heads/main"] == made
        assert not notes(ann)
        assert not notes(bob)  # What it fetched is old, and the remote was asked.
        assert not notes(there)
    assert way.old != made


@pytest.mark.parametrize("how", ["deleted", "squashed", "rebased", "gone on", "put back"])
def test_what_people_do_with_a_branch_is_not_spoken_of(server: Clone, ann: Seat, how: str) -> None:
    """Who deletes, squashes or rebases it, goes on from it, or puts it back, knows that they did."""
    held = claim(ann.desk, ann.answer(ann.ask()), claimant("ann"))
    git, base = ann.clone.git, server.refs()["refs/heads/main"]
    ann.clone.write("made", "m")
    made = ann.clone.commit("made")
    record(ann, held, RefMove(HEADS + "topic", made, None))
    git("fetch", "-q", "origin")
    tree = git("rev-parse", f"{made}^{{tree}}")
    new = {
        "deleted": "",
        "squashed": git("commit-tree", tree, "-p", base, "-m", "squashed"),
        "rebased": git(
            "commit-tree",
            tree,
            "-p",
            git("commit-tree", f"{base}^{{tree}}", "-p", base, "-m", "x"),
            "-m",
            "made",
        ),
        "gone on": git("commit-tree", tree, "-p", made, "-m", "more"),
        "put back": base,
    }[how]
    git("push", "-q", "-f", "origin", f"{new}:refs/heads/topic")
    git("fetch", "-q", "--prune", "origin")
    assert not notes(ann)


# what is left alone


def test_a_move_that_is_under_way_is_left_alone(server: Clone, ann: Seat, cli: Command) -> None:
    """A lock of a few seconds may be somebody's who is about to go on."""
    _held, made, _way = cut_off(server, ann, "main", OPEN)
    grow_old(server, 60)
    before = locks(server)
    cli.quick("worker", "--once", cwd=server.path, code=0)
    assert locks(server) == before
    assert server.refs()["refs/heads/main"] != made


def test_a_branch_that_no_outcome_names_is_left_alone(server: Clone, ann: Seat, cli: Command) -> None:
    """Locks of other branches are none of ours; nor is another commit brought to the branch than the outcome says."""
    _held, made, way = cut_off(server, ann, "main", OPEN)
    (server.path / "refs/heads/main.lock").write_text(f"{way.old}\n")
    (server.path / "refs/heads/other.lock").write_text(f"{made}\n")
    grow_old(server)
    cli.quick("worker", "--once", cwd=server.path, code=0)
    assert server.refs()["refs/heads/main"] == way.old
    assert "refs/heads/other" not in server.refs()
    assert [lock.name for lock in locks(server)] == ["main.lock", "other.lock"]


def test_a_record_that_does_not_go_on_is_not_taken(server: Clone, ann: Seat, cli: Command) -> None:
    """What a lock holds has to be this gate's, whole, and go on from what is there; a part of a name is nothing."""
    gate, other = ann.ask(), ann.ask("And which?")
    for text in (f"{other.tip}\n", gate.tip, gate.tip[:20] + "\n", ""):
        lock = server.path / f"{OPEN}{gate.id}.lock"
        lock.write_text(text)
        grow_old(server)
        cli.quick("worker", "--once", cwd=server.path, code=0)
        assert not lock.exists()
        assert server.refs()[OPEN + gate.id] == gate.tip


def test_doctor_says_it(server: Clone, ann: Seat, cli: Command) -> None:
    """With the command that mends it, which is true."""
    _held, made, _way = cut_off(server, ann, "main", OPEN)
    grow_old(server)
    said = cli.quick("doctor", cwd=server.path).out
    assert "refs/heads/main" in said
    assert "git gate worker --once" in said
    cli.quick("worker", "--once", cwd=server.path, code=0)
    assert server.refs()["refs/heads/main"] == made
    assert "was killed" not in cli.quick("doctor", cwd=server.path).out


def test_nobody_pushes_what_is_locked(server: Clone, ann: Seat) -> None:
    """Why a lock may be trusted: while it stands, git lets nobody move its ref."""
    cut_off(server, ann, "main", OPEN)
    with pytest.raises(GitError, match="lock"):
        ann.clone.git("push", "-q", "origin", "HEAD:refs/heads/main")
