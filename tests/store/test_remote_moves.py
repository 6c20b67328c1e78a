"""Refs pushed to and fetched from real servers: by path, `file://`, ssh and http."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.errors import Usage
from gitgate.store.remote import FateKind, Fetched, RefFate, RefMove
from gitgate.store.remote.fetch import begin_fetch, fetch, fetch_refs
from gitgate.store.remote.push import push
from support.sharing import NOBODY, OPEN, Place, hook, name, opening, reasons, record
from support.testbed.repositories import Clone


@pytest.mark.slow
class TestEveryWay:
    def test_a_gate_travels_from_one_clone_to_another(self, place: Place) -> None:
        """Created, moved on and deleted over each transport, seen by the other clone as such."""
        first = opening(place.ann, 1)
        assert push(place.ann.repository, "origin", [first]) == [RefFate(first.ref, FateKind.OK)]
        seen = fetch(place.bob.repository, "origin")
        assert seen == Fetched(updated=frozenset({name(1)}))
        assert seen.changed
        assert place.tracked(place.bob) == {f"open/{name(1)}": first.new}

        then = RefMove(first.ref, record(place.ann, "gate 1", "answered"), first.new)
        assert push(place.ann.repository, "origin", [then])[0].ok
        seen = fetch(place.bob.repository, "origin")
        assert seen == Fetched(updated=frozenset({name(1)}), before={name(1): str(first.new)[:7]})

        assert push(place.ann.repository, "origin", [RefMove(first.ref, None, then.new)])[0].ok
        seen = fetch(place.bob.repository, "origin")
        assert seen == Fetched(vanished=frozenset({name(1)}))
        assert place.tracked(place.bob) == {}

    def test_nothing_new_is_no_change(self, place: Place) -> None:
        """A second fetch of the same refs reports nothing and moves nothing."""
        push(place.ann.repository, "origin", [opening(place.ann, n) for n in range(3)])
        assert len(fetch(place.bob.repository, "origin").updated) == 3
        before = place.bob.refs()
        assert not fetch(place.bob.repository, "origin").changed
        assert place.bob.refs() == before

    def test_who_comes_second_is_stale(self, place: Place) -> None:
        """Of two creations, two advances and two deletions the first counts, the other is told `stale`."""
        push(place.ann.repository, "origin", [opening(place.ann, 1, "hers")])
        late = opening(place.bob, 1, "his")
        assert push(place.bob.repository, "origin", [late]) == [RefFate(late.ref, FateKind.STALE)]
        moved = RefMove(late.ref, record(place.bob, "his", "more"), late.new)
        assert reasons(push(place.bob.repository, "origin", [moved])) == ["stale"]
        gone = RefMove(f"{OPEN}{name(9)}", None, NOBODY)
        assert reasons(push(place.bob.repository, "origin", [gone])) == ["stale"]
        assert place.server.refs(OPEN) == {late.ref: record(place.ann, "hers")}

    def test_an_atomic_batch_happens_or_does_not(self, place: Place) -> None:
        """One stale ref keeps the others back, which are told apart from it; nothing moved."""
        taken = opening(place.ann, 1)
        push(place.ann.repository, "origin", [taken])
        mine, other = RefMove(taken.ref, record(place.bob, "his"), None), opening(place.bob, 2)
        assert reasons(push(place.bob.repository, "origin", [other, mine])) == ["not sent", "stale"]
        assert place.server.refs(OPEN) == {taken.ref: taken.new}
        assert place.tracked(place.bob) == {}

    def test_without_atomicity_each_ref_has_its_own_fate(self, place: Place) -> None:
        """The ones that fit are taken, and what we remember of the remote says exactly that."""
        taken = opening(place.ann, 1)
        push(place.ann.repository, "origin", [taken])
        mine, other = RefMove(taken.ref, record(place.bob, "his"), None), opening(place.bob, 2)
        fates = push(place.bob.repository, "origin", [mine, other], atomic=False)
        assert reasons(fates) == ["stale", "ok"]
        assert place.tracked(place.bob) == {f"open/{name(2)}": other.new}

    @pytest.mark.parametrize("atomic", [True, False])
    def test_a_race_lost_within_the_server_is_stale(self, place: Place, atomic: bool) -> None:
        """Somebody moved one ref after the server had told us its value: that one is stale, the other not to blame."""
        taken, other = opening(place.ann, 1), opening(place.ann, 2)
        main = place.server.git("rev-parse", "main")
        hook(place.server, "update", f"test $1 != {taken.ref} || git update-ref $1 {main}")
        said = reasons(push(place.ann.repository, "origin", [other, taken], atomic=atomic))
        assert said == ["not sent" if atomic else "ok", "stale"]
        assert place.server.refs(taken.ref) == {taken.ref: main}

    def test_a_hook_that_refuses_is_quoted(self, place: Place) -> None:
        """What the server's hook says reaches the fate of the ref that it refused; control characters do not."""
        hook(
            place.server,
            "update",
            f'case $1 in *{name(2)}) printf "no\\tway \\033[31m\\n" >&2; exit 1;; esac',
        )
        good, bad = opening(place.ann, 1), opening(place.ann, 2)
        fates = push(place.ann.repository, "origin", [good, bad], atomic=False)
        assert fates[0].ok
        assert fates[1].reason.startswith("refused: hook declined: no way")
        assert fates[1].reason.isprintable()
        assert place.server.refs(OPEN) == {good.ref: good.new}

    def test_a_refused_atomic_batch_leaves_nothing(self, place: Place) -> None:
        """The ref that the hook refuses is named as refused, its companion as not sent."""
        hook(place.server, "update", f"case $1 in *{name(2)}) exit 1;; esac")
        fates = push(place.ann.repository, "origin", [opening(place.ann, 1), opening(place.ann, 2)])
        assert reasons(fates) == ["not sent", "refused: hook declined"]
        assert place.server.refs(OPEN) == {}

    def test_a_repeat_of_what_arrived_is_fine(self, place: Place) -> None:
        """A push whose answer was lost can be sent again: what is there already is `ok`."""
        moves = [opening(place.ann, n) for n in range(2)]
        assert push(place.ann.repository, "origin", moves) == push(place.ann.repository, "origin", moves)

    def test_single_refs_are_brought_on_demand(self, place: Place) -> None:
        """Work and session come when asked for; one that the server lacks is no error and brings nothing."""
        base = place.ann.git("rev-parse", "HEAD")
        work = place.ann.git("commit-tree", "-p", base, "-m", "work", f"{base}^{{tree}}")
        saved = record(place.ann, "session")
        moves = [
            RefMove(f"refs/hitl/work/{name(1)}", work, None),
            RefMove(f"refs/hitl/sessions/{name(1)}", saved, None),
            RefMove(f"refs/hitl/work/{name(2)}", base, None),
        ]
        assert all(fate.ok for fate in push(place.ann.repository, "origin", moves))
        wanted = [f"work/{name(1)}", f"sessions/{name(1)}", f"sessions/{name(2)}"]
        got = fetch_refs(place.bob.repository, "origin", wanted)
        assert got == {f"refs/hitl/work/{name(1)}": work, f"refs/hitl/sessions/{name(1)}": saved}
        assert place.bob.git("cat-file", "-t", work) == "commit"
        assert set(place.tracked(place.bob)) == {f"work/{name(1)}", f"sessions/{name(1)}"}

        erase = RefMove(f"refs/hitl/sessions/{name(1)}", None, saved)
        push(place.ann.repository, "origin", [erase])
        assert fetch_refs(place.bob.repository, "origin", [f"sessions/{name(1)}"]) == {}
        assert set(place.tracked(place.bob)) == {f"work/{name(1)}"}


class TestBatches:
    @pytest.mark.slow
    def test_sixty_gates_go_in_three_pushes_to_a_forge(self, near: Place) -> None:
        """25 refs a push at most; the server's hook sees each batch once."""
        near.ann.git("config", "gitgate.forge", "gitea")
        hook(near.server, "pre-receive", "wc -l >> batches")
        moves = [opening(near.ann, n) for n in range(60)]
        assert all(fate.ok for fate in push(near.ann.repository, "origin", moves))
        assert (near.server.path / "batches").read_text(encoding="utf-8").split() == ["25", "25", "10"]
        assert near.server.refs(OPEN) == {move.ref: move.new for move in moves}
        assert len(near.tracked(near.ann)) == 60

    def test_a_batch_that_fails_does_not_hold_up_the_next(self, near: Place) -> None:
        """With 30 gates and one stale among the first 25, the other batch arrives."""
        near.ann.git("config", "gitgate.forge", "gitea")
        moves = [opening(near.ann, n) for n in range(30)]
        push(near.bob.repository, "origin", [opening(near.bob, 3, "first")])
        said = reasons(push(near.ann.repository, "origin", moves))
        assert said == ["not sent"] * 3 + ["stale"] + ["not sent"] * 21 + ["ok"] * 5

    def test_a_server_that_dies_in_between_leaves_plain_fates(self, near: Place) -> None:
        """What had arrived is `ok`; the rest is `not sent`, and a repeat sends it."""
        near.ann.git("config", "gitgate.forge", "gitea")
        hook(near.server, "post-receive", f"mv {near.server.path} {near.server.path}.gone")
        moves = [opening(near.ann, n) for n in range(30)]
        said = reasons(push(near.ann.repository, "origin", moves))
        assert said == ["ok"] * 25 + ["not sent"] * 5
        Path(f"{near.server.path}.gone").rename(near.server.path)
        hook(near.server, "post-receive", "true")
        assert all(fate.ok for fate in push(near.ann.repository, "origin", moves))

    def test_no_moves_is_no_push(self, repo: Clone) -> None:
        """Nothing to do needs no remote."""
        assert push(repo.repository, "origin", []) == []

    def test_the_same_ref_twice_is_a_mistake(self, near: Place) -> None:
        """Two values for one ref cannot both be meant."""
        with pytest.raises(Usage):
            push(near.ann.repository, "origin", [opening(near.ann, 1), opening(near.ann, 1, "other")])


def test_progress_is_told_when_somebody_wants_it(near: Place) -> None:
    """Stages in words, with numbers that reach their end."""
    seen: list[tuple[str, int, int | None]] = []
    moves = [opening(near.ann, n) for n in range(20)]
    push(near.ann.repository, "origin", moves, progress=lambda *told: seen.append(told))
    assert ("sending", 21, 21) in seen
    near.bob.git("remote", "set-url", "origin", f"file://{near.server.path}")
    near.bob.git("config", "fetch.unpackLimit", "1")
    seen.clear()
    fetch(near.bob.repository, "origin", progress=lambda *told: seen.append(told))
    assert ("receiving", 21, 21) in seen


def test_a_fetch_that_has_begun_can_be_waited_for_or_left(near: Place) -> None:
    """What is here can be read meanwhile; one that is left ends, and the next finds everything."""
    push(near.ann.repository, "origin", [opening(near.ann, 1)])
    with begin_fetch(near.bob.repository, "origin") as polling:
        assert near.bob.refs(OPEN) == {}
        assert polling.wait().updated == {name(1)}
    hook(near.server, "slow", "sleep 20")
    near.ann.git("config", "remote.origin.uploadpack", str(near.server.path / "hooks" / "slow"))
    with begin_fetch(near.ann.repository, "origin") as polling:
        process = polling.conversation.process
    assert process.poll() is not None
