"""Refs that are in no files: what has the tip of a ref is that ref, and no branch that is called like it, in whichever store they are."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitgate.audit.auditing import audit
from gitgate.claims import claim, claim_outcome, finish
from gitgate.model.gate import Gate
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git import refuse_names
from gitgate.store.git.refs import ARCHIVE, OPEN, Refs, read_ref
from gitgate.store.records.archive import archived, shelves
from gitgate.store.remote import RefMove
from support.resuming import Clock, Seat, claimant
from support.testbed.repositories import Clone, run_git

EXACT = ("show-ref", "for-each-ref", "update-ref", "symbolic-ref", "pack-refs")


def may_have_reftables() -> bool:
    """Whether this git is 2.45 or later."""
    return subprocess.run(["git", "refs", "list"], capture_output=True, cwd="/").returncode == 128


# Of an older git the folder that tells us of a reftable is enough to have it asked for every ref.
STORES = ("files", "a folder", *(["reftable"] if may_have_reftables() else []))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def seat(store: str, repo: Clone, clock: Clock) -> Iterator[Seat]:
    """A repository without any remote, with its refs in that store."""
    if store == "reftable":
        repo.git("refs", "migrate", "--ref-format=reftable")
    elif store == "a folder":
        (repo.path / ".git" / "reftable").mkdir()
    with Seat(repo, clock) as there:
        yield there


def closed(seat: Seat) -> Gate:
    gate = seat.ask()
    desk = seat.desk
    held = claim(desk, seat.answer(gate), claimant())
    finish(desk, held, claim_outcome(desk, held, "resumed"))
    return gate


def stand_in(seat: Seat, ref: str, oid: str, store: str) -> None:
    """Put branches and a tag that are called like `ref` in its place, and an empty folder where its file would be."""
    for start in ("refs/heads/", "refs/tags/", "refs/"):
        seat.clone.git("update-ref", f"{start}{ref}", oid)
    if seat.clone.refs(ref):
        seat.clone.git("update-ref", "-d", ref)
    if store != "reftable":
        (seat.clone.path / ".git" / ref).mkdir(parents=True)
    assert seat.clone.git("rev-parse", "--verify", ref) == oid  # so git would have it


def test_a_fold_on_a_branch_is_not_in_the_archive(seat: Seat, store: str) -> None:
    """Somebody's fold of an approval that nobody gave: it is neither read nor archived, and the question waits."""
    gate = seat.ask("Really?")
    done = closed(seat)
    asked = seat.clone.refs(OPEN)[OPEN + gate.id]
    desk = seat.desk
    held = claim(desk, seat.answer(gate), claimant())
    finish(desk, held, claim_outcome(desk, held, "resumed"))
    fold_closed(seat.desk)
    (month,) = seat.clone.refs(ARCHIVE)
    stand_in(seat, month, seat.clone.refs(ARCHIVE)[month], store)
    seat.clone.git("update-ref", OPEN + gate.id, asked)
    there = seat.clone.repository
    assert shelves(there) == []
    assert [archived(there, one.id) for one in (gate, done)] == [None, None]
    assert seat.now(gate).answer is None
    third = closed(seat)
    assert fold_closed(seat.desk).folded == (third.id,)
    assert [archived(there, one.id) for one in (gate, done)] == [None, None]
    assert seat.clone.refs(OPEN)[OPEN + gate.id] == asked
    # Their work went with the true fold.
    assert {problem.kind for problem in audit(seat.desk).problems} <= {"work"}


def test_a_tip_is_that_of_the_ref_itself(seat: Seat, store: str) -> None:
    """Loose, packed, symbolic, missing, and deleted."""
    refs, tip, other = Refs(seat.clone.repository), seat.clone.head(), seat.clone.commit("other")
    there = OPEN + "a" * 10
    refs.update([RefMove(there, tip, None)])
    for like in ("refs/heads/", "refs/tags/"):
        seat.clone.git("update-ref", like + there, other)
    assert (refs.get(there), refs.get("HEAD"), refs.get("refs/heads/main")) == (tip, other, other)
    seat.clone.git("pack-refs", "--all")
    assert (refs.get(there), refs.under(OPEN), refs.beginning(there[:-3])) == (tip, {there: tip}, [there])
    assert refs.may_have(OPEN)
    refs.update([RefMove(there, None, tip)])
    assert (refs.get(there), read_ref(refs.git, there), refs.under(OPEN)) == (None, None, {})
    assert seat.clone.git("rev-parse", there) == other


def test_many_new_refs_are_made_in_any_store(seat: Seat) -> None:
    """Also where none is packed in a file."""
    refs, tip = Refs(seat.clone.repository), seat.clone.head()
    moves = [RefMove(f"{OPEN}{number:010d}", tip, None) for number in range(120)]
    refs.update(moves)
    assert seat.clone.refs(OPEN) == {move.ref: tip for move in moves}
    assert refs.under(OPEN) == {move.ref: tip for move in moves}


def test_git_is_asked_for_whole_names(
    repo: Clone, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no file tells: all that git is given, from a question to the archive, is ids, or what takes a name as a whole."""
    (repo.path / ".git" / "reftable").mkdir()
    log, programs = tmp_path / "calls", tmp_path / "bin"
    programs.mkdir()
    real = run_git("--exec-path", cwd=tmp_path).decode().strip() + "/git"
    wrapper = programs / "git"
    wrapper.write_text(
        f'#!/bin/sh\nprintf "%s\\0" "$@" >>"{log}"\nprintf "\\n\\0" >>"{log}"\nexec "{real}" "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    with Seat(repo, clock) as seat:
        gate = closed(seat)
        fold_closed(seat.desk)
        assert archived(repo.repository, gate.id)
        audit(seat.desk)
    calls = [call.split("\0")[:-1] for call in log.read_text().split("\n\0")[:-1]]
    asked = [call for call in calls if any(verb in call for verb in ("show-ref", "for-each-ref"))]
    assert len(calls) > 20
    assert len(asked) > 5
    for call in calls:
        refuse_names(call)
    for call in asked:
        names = [word for word in call[call.index("core.fsmonitor=false") + 2 :] if not word.startswith("-")]
        assert "--verify" in call or "for-each-ref" in call
        assert all(name == "HEAD" or name.startswith("refs/") for name in names), call
