"""Refs on their way have whole names: nothing that is called like one is pushed, fetched or moved in its stead."""

from __future__ import annotations

import pytest

from gitgate.store.remote import RefMove
from gitgate.store.remote.fetch import fetch_branch
from gitgate.store.remote.push import push, push_gates
from support.sharing import OPEN, Place, name, opening, reasons, record

BLOCKING = ("refs/heads/", "refs/tags/", "refs/")
STANDING_IN = (*BLOCKING, "refs/remotes/")


@pytest.mark.slow
def test_a_branch_called_like_a_missing_ref_is_not_what_was_pushed(place: Place) -> None:
    """On each way: git moves the branch, where it is at what we expect of the ref; it says which ref it moved."""
    first, like = opening(place.ann, 1), f"refs/heads/{OPEN}{name(1)}"
    place.ann.git("push", "-q", "origin", f"{first.new}:{like}")
    then = RefMove(first.ref, record(place.ann, "gate 1", "answered"), first.new)
    (fate,) = push(place.ann.repository, "origin", [then])
    assert (fate.ok, fate.blocked) == (False, (like,))
    assert f"git push origin :{like}" in fate.reason
    assert place.server.refs(OPEN) == {}


@pytest.mark.parametrize("start", STANDING_IN)
def test_a_new_ref_is_made_under_its_own_name_or_not_at_all(near: Place, start: str) -> None:
    """Somebody was there first with a name that git takes for it, which is left as it is."""
    near.server.git("update-ref", f"{start}{OPEN}{name(1)}", "main")
    before = near.server.refs()
    (fate,) = push(near.ann.repository, "origin", [opening(near.ann, 1)])
    assert (fate.ok, fate.blocked) == (False, (f"{start}{OPEN}{name(1)}",))
    assert near.server.refs() == before
    near.server.git("update-ref", "-d", f"{start}{OPEN}{name(1)}")
    assert reasons(push(near.ann.repository, "origin", [opening(near.ann, 1)])) == ["ok"]


@pytest.mark.parametrize("start", BLOCKING)
def test_what_git_cannot_tell_apart_blocks_only_itself(near: Place, start: str) -> None:
    """Both are there: the gate waits, named with what is in its way; all others go through, with their work."""
    several = [opening(near.ann, number) for number in range(1, 5)]
    assert all(fate.ok for fate in push(near.ann.repository, "origin", several))
    like = f"{start}{several[1].ref}"
    near.server.git("update-ref", like, "main")
    then = [RefMove(one.ref, record(near.ann, one.ref, "more"), one.new) for one in several]
    fates = push_gates(near.ann.repository, "origin", then)
    assert [fate.ok for fate in fates] == [True, False, True, True]
    assert fates[1].blocked == (like,)
    assert fates[1].reason.startswith("refused: ")
    assert near.server.refs(OPEN) == {
        one.ref: (before if one.ref == several[1].ref else one).new
        for one, before in zip(then, several, strict=True)
    }
    # Deleting and moving are the same, and so is an atomic push of one gate alone.
    (fate,) = push(near.ann.repository, "origin", [RefMove(several[1].ref, None, several[1].new)])
    assert (fate.ok, fate.blocked) == (False, (like,))
    assert near.server.git("show-ref", "--verify", "--hash", like) == near.server.git("rev-parse", "main")


def test_an_id_is_no_name_of_a_local_ref(near: Place) -> None:
    """A branch here that is called as the commit's id is: git would push what that is at."""
    move = opening(near.ann, 1)
    for start in ("refs/heads/", "refs/tags/"):
        near.ann.git("update-ref", f"{start}{move.new}", "main")
    assert reasons(push(near.ann.repository, "origin", [move])) == ["ok"]
    assert near.server.refs(OPEN) == {move.ref: move.new}


@pytest.mark.slow
def test_a_missing_branch_is_missing(place: Place) -> None:
    """On each way: no tag that is called so is brought in its stead, nor any branch that only fits the pattern."""
    tip = place.server.git("rev-parse", "main")
    for start in STANDING_IN:
        place.server.git("update-ref", f"{start}refs/heads/feature", "main")
    for other in ("feat-ure", "features", "afeature", "feat/ure"):
        place.server.git("update-ref", f"refs/heads/{other}", "main")
    assert fetch_branch(place.bob.repository, "origin", "feature") is None
    assert fetch_branch(place.bob.repository, "origin", "feat-ure") == tip
    place.server.git("update-ref", "refs/heads/feature", "main")
    assert fetch_branch(place.bob.repository, "origin", "feature") == tip
    place.server.git("update-ref", "-d", "refs/heads/feature")
    assert fetch_branch(place.bob.repository, "origin", "feature") is None


@pytest.mark.parametrize("branch", ["x", "xy", "a/b", "é", "v1.2/x-y"])
def test_a_branch_of_any_length_is_fetched(near: Place, branch: str) -> None:
    """The pattern's star stands somewhere in its name."""
    assert fetch_branch(near.bob.repository, "origin", branch) is None
    new = near.ann.commit("on it")
    near.ann.git("push", "-q", "origin", f"HEAD:refs/heads/{branch}")
    assert fetch_branch(near.bob.repository, "origin", branch) == new
