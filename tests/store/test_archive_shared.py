"""The archive of a shared repository: it gains first, then the open refs go; nobody brings a closed gate back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitgate.errors import RemoteUnreachable
from gitgate.store.records import Signature
from gitgate.store.records.archive import archived, listing
from gitgate.store.records.closing import Closed, fold, settle
from gitgate.store.remote import RefMove
from gitgate.store.remote.fetch import fetch, fetch_refs
from gitgate.store.remote.push import push, push_gates
from support.sharing import OPEN, Place, answered, hook, late_files, name, open_gates, start_closers
from support.testbed.repositories import Clone

pytestmark = pytest.mark.slow  # each takes a good part of a second

BY = Signature("Ada Lovelace <ada@example.org>", 1_767_323_045)
MONTH = "2026-01"
ARCHIVE = f"refs/hitl/archive/{MONTH}"


def closed(tips: dict[str, str]) -> list[Closed]:
    return [Closed(gate, tip, MONTH) for gate, tip in tips.items()]


def share(place: Place, numbers: range, *answers: str) -> dict[str, str]:
    """Gates opened by Ann, pushed, and open at Bob's too."""
    tips = open_gates(place.ann, numbers, *answers)
    fates = push_gates(place.ann.repository, "origin", [RefMove(OPEN + g, t, None) for g, t in tips.items()])
    assert all(fate.ok for fate in fates)
    fetch(place.bob.repository, "origin")
    for gate, tip in tips.items():
        place.bob.git("update-ref", OPEN + gate, tip)
    return tips


def test_a_fold_reaches_the_server_and_leaves_nothing_open(place: Place) -> None:
    """Archive and deletions arrive over every transport; the next fetch of another clone sees them vanish."""
    tips = share(place, range(3))
    done = fold(place.ann.repository, closed(tips), by=BY, remote="origin")
    assert set(done.gates) == set(tips)
    assert place.server.refs("refs/hitl") == place.ann.refs("refs/hitl")
    assert set(place.server.refs("refs/hitl")) == {ARCHIVE}
    assert fetch(place.bob.repository, "origin").vanished == set(tips)
    settled = settle(place.bob.repository, "origin", tips, by=BY)
    assert set(settled.gates) == set(tips)
    assert place.bob.refs("refs/hitl") == place.server.refs("refs/hitl")
    assert {one.id: one.tip for one in listing(place.bob.repository)} == tips


@pytest.mark.parametrize("now", ["gone", "another"])
def test_a_lease_that_was_looked_at_once_holds_up_nothing(near: Place, now: str) -> None:
    """It ended after that, or somebody else's came; the gate was closed and folded, and is settled here all the same."""
    tips = share(near, range(2))
    gate, other = tips
    lease = f"refs/hitl/leases/{gate}"
    near.server.git("update-ref", lease, tips[gate])
    assert fetch_refs(near.bob.repository, "origin", [lease]) == {lease: tips[gate]}
    near.server.git("update-ref", *(("-d", lease) if now == "gone" else (lease, tips[other])))
    fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    fetch(near.bob.repository, "origin")
    settled = settle(near.bob.repository, "origin", tips, by=BY)
    assert settled.kept == {}
    assert set(settled.gates) == set(tips)
    assert set(near.server.refs("refs/hitl")) == set(near.bob.refs("refs/hitl")) == {ARCHIVE}


def test_the_archive_gains_before_anything_is_deleted(near: Place) -> None:
    """The server sees the archive's push first, then deletions: on a forge of at most 25 each."""
    near.ann.git("config", "gitgate.forge", "github")
    tips = share(near, range(60))
    hook(
        near.server,
        "pre-receive",
        'awk \'{print ($2 ~ /^0+$/ ? "delete" : "gain")}\' | sort | uniq -c >> seen',
    )
    fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    lines = (near.server.path / "seen").read_text(encoding="utf-8").split("\n")
    assert [line.split() for line in lines if line] == [
        ["1", "gain"],
        ["25", "delete"],
        ["25", "delete"],
        ["10", "delete"],
    ]


def test_a_stale_clone_cannot_bring_a_gate_back(near: Place) -> None:
    """What Ann archived is removed from Bob's clone before he pushes; his own new gate stays."""
    tips = share(near, range(2))
    fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    new = open_gates(near.bob, [7])
    fetch(near.bob.repository, "origin")
    settled = settle(near.bob.repository, "origin", {**tips, **new}, by=BY)
    assert set(settled.gates) == set(tips)
    assert near.bob.refs(OPEN) == {OPEN + gate: tip for gate, tip in new.items()}
    assert near.server.refs(OPEN) == {}


def test_a_late_answer_is_kept_in_the_archive(near: Place) -> None:
    """Bob answered offline what Ann had archived: his words are in late/ for everybody, his commit is alive."""
    tips = share(near, range(2), "yes")
    gate = name(0)
    mine = answered(near.bob, gate, tips[gate], "no")
    fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    settled = settle(near.bob.repository, "origin", {**tips, gate: mine}, by=BY)
    assert (set(settled.gates), settled.late) == (set(tips), (gate,))
    assert near.bob.refs(OPEN) == {}
    assert archived(near.bob.repository, gate) == tips[gate]
    near.server.git("merge-base", "--is-ancestor", mine, ARCHIVE)

    fold(near.ann.repository, closed({}), by=BY, remote="origin")
    settle(near.ann.repository, "origin", {}, by=BY)
    assert late_files(near.ann, gate) == {"no.yaml": "note: no"}
    assert archived(near.ann.repository, gate) == tips[gate]


def test_a_late_answer_that_cannot_be_shelved_stays_open_here(near: Place) -> None:
    """A server that refuses the archive: the answer is neither lost nor pushed as an open gate."""
    tips = share(near, range(1))
    gate = name(0)
    fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    mine = answered(near.bob, gate, tips[gate], "no")
    hook(near.server, "update", "echo closed >&2; exit 1")
    settled = settle(near.bob.repository, "origin", {gate: mine}, by=BY)
    assert settled.gates == ()
    assert "closed" in settled.kept[gate]
    assert near.bob.refs(OPEN) == {OPEN + gate: mine}
    assert near.server.refs(OPEN) == {}
    hook(near.server, "update", "exit 0")
    assert settle(near.bob.repository, "origin", {gate: mine}, by=BY).late == (gate,)


def test_a_gate_answered_on_the_server_meanwhile_is_not_folded(near: Place) -> None:
    """Ann did not see Bob's answer: her fold leaves the gate open and says why."""
    tips = share(near, range(2))
    gate = name(0)
    newer = answered(near.bob, gate, tips[gate], "no")
    push(near.bob.repository, "origin", [RefMove(OPEN + gate, newer, tips[gate])])
    done = fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    assert done.gates == (name(1),)
    assert "sync first" in done.kept[gate]
    assert near.server.refs(OPEN) == {OPEN + gate: newer}


def test_an_answer_between_the_two_pushes_survives(near: Place) -> None:
    """The gate moved after it was archived and before it was deleted: the deletion is refused, the next fold keeps it."""
    tips = share(near, range(2))
    gate = name(0)
    newer = answered(near.bob, gate, tips[gate], "no")
    near.bob.git("push", "-q", "origin", f"{newer}:refs/hidden/x")
    hook(
        near.server,
        "post-receive",
        f"test -e once || {{ touch once; git update-ref {OPEN}{gate} {newer}; }}",
    )
    done = fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    assert done.gates == (name(1),)
    assert "sync first" in done.kept[gate]
    assert near.server.refs(OPEN) == {OPEN + gate: newer}
    fetch(near.ann.repository, "origin")
    near.ann.git("update-ref", OPEN + gate, newer)
    again = fold(near.ann.repository, closed({gate: newer}), by=BY, remote="origin")
    assert (again.gates, again.late) == ((gate,), (gate,))
    assert late_files(near.ann, gate) == {"no.yaml": "note: no"}
    assert near.server.refs(OPEN) == near.ann.refs(OPEN) == {}


def test_what_was_folded_offline_is_shared_later(near: Place) -> None:
    """Folds made without the remote are built again on its archive; nothing of either is lost."""
    tips = share(near, range(2))
    fold(near.ann.repository, closed({name(0): tips[name(0)]}), by=BY, remote="origin")
    alone = open_gates(near.bob, [5, 6])
    gate = name(5)
    fold(near.bob.repository, closed(alone), by=BY)
    late = answered(near.bob, gate, alone[gate], "late")
    fold(near.bob.repository, closed({gate: late}), by=BY)
    done = fold(near.bob.repository, closed({name(1): tips[name(1)]}), by=BY, remote="origin")
    assert name(1) in done.gates
    want = {**tips, **alone}
    assert {one.id: one.tip for one in listing(near.bob.repository)} == want
    assert near.server.refs("refs/hitl/archive") == near.bob.refs("refs/hitl/archive")
    near.server.git("merge-base", "--is-ancestor", late, ARCHIVE)
    assert near.server.git("ls-tree", "--name-only", f"{ARCHIVE}:{gate[:2]}/{gate}/late") == "late.yaml"


def test_work_is_kept_by_who_did_not_have_it(near: Place) -> None:
    """The closer fetches published work, keeps it as evidence, and deletes its ref with the record's."""
    tips = share(near, range(2))
    near.ann.commit("more", file="x")
    base = near.ann.git("rev-parse", "HEAD")
    works = [near.ann.git("commit-tree", "-p", base, "-m", f"work {n}", f"{base}^{{tree}}") for n in range(2)]
    ref = f"refs/hitl/work/{name(0)}"
    push(near.ann.repository, "origin", [RefMove(ref, works[0], None)])
    gates = [Closed(name(n), tips[name(n)], MONTH, works[n]) for n in range(2)]
    done = fold(near.bob.repository, gates, by=BY, remote="origin")
    assert set(done.gates) == set(tips)
    near.server.git("merge-base", "--is-ancestor", works[0], f"refs/hitl/evidence/{MONTH}")
    assert set(near.server.refs("refs/hitl")) == {ARCHIVE, f"refs/hitl/evidence/{MONTH}"}
    # Work that was never published is not published by closing its gate.
    assert near.server.git("rev-parse", "-q", "--verify", f"{works[1]}^{{commit}}", check=False) == ""


def test_a_host_that_does_not_take_the_work_gets_the_records(near: Place) -> None:
    """Evidence refused: the archive is pushed alone, and the work's ref stays where it is."""
    tips = share(near, range(1))
    base = near.ann.git("rev-parse", "HEAD")
    work = RefMove(f"refs/hitl/work/{name(0)}", base, None)
    push(near.ann.repository, "origin", [work])
    hook(near.server, "update", "case $1 in refs/hitl/evidence/*) exit 1;; esac")
    done = fold(near.ann.repository, [Closed(name(0), tips[name(0)], MONTH, base)], by=BY, remote="origin")
    assert done.gates == (name(0),)
    assert set(near.server.refs("refs/hitl")) == {ARCHIVE, work.ref}


def test_a_server_that_is_down_leaves_all_as_it_was(near: Place) -> None:
    """No remote, no fold: nothing here changes either."""
    tips = share(near, range(2))
    before = near.ann.refs()
    near.server.path.rename(near.server.path.with_name("away"))
    with pytest.raises(RemoteUnreachable):
        fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    assert near.ann.refs() == before


@pytest.mark.slow
def test_eight_closers_of_one_server_lose_nothing(bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """8 clones fold 50 gates each into the same month at once: the server's archive has 400 of 400, none is open."""
    clones = [clone_of(bare, f"closer{n}") for n in range(8)]
    tips = open_gates(bare, range(400))
    for clone in clones:
        fetch(clone.repository, "origin")
    start_closers([clone.path for clone in clones], tips, "origin")
    assert {one.id: one.tip for one in listing(bare.repository)} == tips
    assert bare.refs(OPEN) == {}


def test_a_gate_that_the_server_does_not_archive_holds_up_no_other(near: Place) -> None:
    """Its hook refuses whole pushes: the rest is archived, and the reason is told of that one alone."""
    tips = share(near, range(9))
    bad = name(4)
    hook(
        near.server,
        "pre-receive",
        f"""while read -r old new ref; do
          case $ref in refs/hitl/archive/*) ;; *) continue ;; esac
          git log -1 --format=%B "$new" | grep -q {bad} && echo "gate: {bad} waits" >&2 && exit 1
        done; exit 0""",
    )
    done = fold(near.ann.repository, closed(tips), by=BY, remote="origin")
    assert set(done.gates) == set(tips) - {bad}
    assert list(done.kept) == [bad]
    assert f"{bad} waits" in done.kept[bad]
    assert {one.id for one in listing(near.ann.repository)} == set(tips) - {bad}
