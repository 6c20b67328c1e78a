"""Many gates in one go: each all or none, and none because of another's fault."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gitgate.context import open_desk
from gitgate.errors import PushRefused, RemoteUnreachable
from gitgate.store.git import Repository
from gitgate.store.remote import RefFate, RefMove
from gitgate.store.remote import push as pushing
from gitgate.store.remote.fetch import fetch
from gitgate.store.remote.push import MOST_OWN, MOST_REFS, most_refs, push, push_gates
from support.sharing import OPEN, Place, hook, name, open_gates, opening, reasons, record
from support.testbed.repositories import Clone


def shared_tips(place: Place, numbers: range) -> list[RefMove]:
    """Gates open at Ann's, and the moves that open them on the server."""
    return [RefMove(OPEN + gate, tip, None) for gate, tip in open_gates(place.ann, numbers).items()]


def with_work(clone: Clone, number: int) -> list[RefMove]:
    base = clone.git("rev-parse", "HEAD")
    return [opening(clone, number), RefMove(f"refs/hitl/work/{name(number)}", base, None)]


def test_a_stale_gate_does_not_hold_up_the_others(near: Place) -> None:
    """Its own refs stay back together; every other gate arrives whole."""
    push(near.bob.repository, "origin", [opening(near.bob, 3, "his")])
    moves = [move for n in range(8) for move in with_work(near.ann, n)]
    fates = push_gates(near.ann.repository, "origin", moves)
    said = dict(zip([move.ref for move in moves], reasons(fates), strict=True))
    assert said.pop(OPEN + name(3)) == "stale"
    assert said.pop(f"refs/hitl/work/{name(3)}") == "not sent"
    assert set(said.values()) == {"ok"}
    assert f"refs/hitl/work/{name(3)}" not in near.server.refs()


@pytest.mark.slow
def test_a_hook_that_refuses_a_whole_push_costs_only_the_gate_it_means(near: Place) -> None:
    """`pre-receive` refuses all or nothing: the batch is halved until the culprit is alone."""
    hook(near.server, "pre-receive", f"grep -q {name(5)} && echo bad gate >&2 && exit 1; exit 0")
    moves = [opening(near.ann, n) for n in range(30)]
    fates = push_gates(near.ann.repository, "origin", moves)
    assert [n for n, fate in enumerate(fates) if not fate.ok] == [5]
    assert "bad gate" in fates[5].reason
    assert len(near.server.refs(OPEN)) == 29


def test_a_hook_that_refuses_everything_ends(near: Place) -> None:
    """Every gate is refused in its own name."""
    hook(near.server, "pre-receive", "exit 1")
    moves = [opening(near.ann, n) for n in range(5)]
    said = reasons(push_gates(near.ann.repository, "origin", moves))
    assert said == ["refused: pre-receive hook declined"] * 5


def test_a_server_that_is_down_is_said_so(near: Place) -> None:
    """Nothing arrived: an error, no fates."""
    near.server.path.rename(near.server.path.with_name("away"))
    with pytest.raises(RemoteUnreachable):
        push_gates(near.ann.repository, "origin", [opening(near.ann, 1)])


def test_records_alone_need_one_push(near: Place) -> None:
    """Gates of one ref each go without atomicity: one stale among them costs no second push."""
    hook(near.server, "pre-receive", "wc -l >> batches")
    push(near.bob.repository, "origin", [RefMove(OPEN + name(0), record(near.bob, "his"), None)])
    said = reasons(push_gates(near.ann.repository, "origin", [opening(near.ann, n) for n in range(4)]))
    assert said == ["stale", "ok", "ok", "ok"]
    assert (near.server.path / "batches").read_text(encoding="utf-8").split() == ["1", "3"]


OURS = "+refs/hitl/open/*:refs/gitgate/origin/open/*"


@pytest.mark.parametrize(
    ("specs", "told"), [([OURS], True), ([], False), (["+refs/*:refs/all/*", OURS], False)]
)
def test_what_git_notes_by_itself_is_not_noted_again(
    near: Place, monkeypatch: pytest.MonkeyPatch, specs: list[str], *, told: bool
) -> None:
    """Many at once, in a clone whose remote has our refspec, none, or one before it: in any case it is known what the remote has."""
    for spec in specs:
        near.ann.git("config", "--add", "remote.origin.fetch", spec)
    desk = open_desk(near.ann.path, os.environ)
    moves = [move for n in range(MOST_REFS) for move in with_work(near.ann, n)]
    noted: list[str] = []
    real = pushing.note_pushed

    def note(repo: Repository, remote: str, left: Sequence[RefMove], known: Mapping[str, str]) -> None:
        noted.extend(move.ref for move in left)
        real(repo, remote, left, known)

    monkeypatch.setattr(pushing, "note_pushed", note)
    assert set(reasons(push_gates(desk.repo, "origin", moves))) == {"ok"}
    assert [ref for ref in noted if ref.startswith(OPEN)] == [
        move.ref for move in moves if move.ref.startswith(OPEN) and not told
    ]
    there = {
        ref.replace("refs/gitgate/origin", "refs/hitl"): oid
        for ref, oid in near.ann.refs("refs/gitgate").items()
    }
    assert there == near.server.refs("refs/hitl")


def seen(server: Clone) -> list[str]:
    return (server.path / "batches").read_text(encoding="utf-8").split()


def test_a_server_of_ones_own_is_given_all_at_once(near: Place) -> None:
    """One push, whether what is sent stands here under the same name or not; what else is here stays here."""
    hook(near.server, "pre-receive", "wc -l >> batches")
    moves = shared_tips(near, range(40))
    more = [opening(near.ann, n) for n in range(50, 60)]
    said = reasons(push_gates(near.ann.repository, "origin", [*moves[:30], *more]))
    assert said == ["ok"] * 40
    assert near.server.refs(OPEN) == {move.ref: move.new for move in [*moves[:30], *more]}
    assert {f"open/{move.ref.removeprefix(OPEN)}" for move in moves[:30]} <= set(near.tracked(near.ann))
    assert seen(near.server) == ["40"]


def test_each_refs_fate_is_kept_among_many(near: Place) -> None:
    """Somebody opened one of them otherwise, and moved another on: these two are theirs, the rest arrives."""
    moves = shared_tips(near, range(40))
    push(near.ann.repository, "origin", moves[1:2])
    fetch(near.bob.repository, "origin")
    theirs = near.bob.git("commit-tree", "-p", str(moves[1].new), "-m", "on", f"{moves[1].new}^{{tree}}")
    push(near.bob.repository, "origin", [RefMove(moves[1].ref, theirs, moves[1].new)])
    push(near.bob.repository, "origin", [RefMove(moves[3].ref, record(near.bob, "his"), None)])
    said = reasons(push_gates(near.ann.repository, "origin", moves))
    assert [said[1], said[3]] == ["stale", "stale"]
    assert said.count("ok") == 38
    assert near.server.refs()[moves[1].ref] == theirs


def test_a_hook_that_names_what_it_refuses_is_asked_once_more(near: Place) -> None:
    """As ours does: the others go again at once, and not half by half."""
    bad = [f"{OPEN}{name(n)}" for n in (5, 17)]
    hook(
        near.server,
        "pre-receive",
        f"""cat >> lines; echo x >> batches
        for bad in {" ".join(bad)}; do
          grep -q $bad lines && echo "gate: $bad: no" >&2 && worse=1
        done; rm lines; [ ! "$worse" ]""",
    )
    fates = push_gates(near.ann.repository, "origin", shared_tips(near, range(60)))
    assert [n for n, fate in enumerate(fates) if not fate.ok] == [5, 17]
    assert fates[5].reason == f"refused: pre-receive hook declined: gate: {bad[0]}: no"
    assert len(seen(near.server)) == 2


@pytest.mark.slow
def test_a_server_that_does_not_take_so_many(near: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses a push of more than so many refs, or breaks it off: each half goes by itself, until it takes them."""
    hook(near.server, "pre-receive", 'n=$(wc -l); echo "$n" >> batches; [ "$n" -le 20 ] || exit 1')
    moves = shared_tips(near, range(70))
    assert reasons(push_gates(near.ann.repository, "origin", moves[:60])) == ["ok"] * 60
    assert seen(near.server) == ["60", "30", "15", "15", "30", "15", "15"]
    (near.server.path / "hooks/pre-receive").unlink()
    tried = []
    real = push

    def refusing(repo: Repository, remote: str, batch: list[RefMove], **how: Any) -> list[RefFate]:
        tried.append(len(batch))
        if len(batch) > 30:
            raise PushRefused("origin: it does not take so much at once")
        return real(repo, remote, batch, **how)

    monkeypatch.setattr("gitgate.store.remote.push.push", refusing)
    again = shared_tips(near, range(70, 120))
    assert reasons(push_gates(near.ann.repository, "origin", again)) == ["ok"] * 50
    assert tried == [50, 25, 25]


@pytest.mark.slow
def test_a_server_that_takes_nothing_is_soon_left_alone(near: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch shrinks to what any host takes; then it is an error."""
    tried = []

    def refusing(_repo: Repository, _remote: str, batch: list[RefMove], **_how: Any) -> list[RefFate]:
        tried.append(len(batch))
        raise PushRefused("origin: it does not let us write")

    monkeypatch.setattr("gitgate.store.remote.push.push", refusing)
    with pytest.raises(PushRefused):
        push_gates(near.ann.repository, "origin", [opening(near.ann, n) for n in range(60)])
    assert tried == [60, 30, 15]


@pytest.mark.parametrize(
    ("url", "forge"),
    [
        ("https://github.com/a/b", True),
        ("git@github.com:a/b.git", True),
        ("ssh://git@ssh.github.com:443/a/b", True),
        ("https://corp.ghe.com/a/b", True),
        ("https://user:secret@GitLab.com/a/b", True),
        ("https://codeberg.org/a/b", True),
        ("git@git.example.org:a/b", False),
        ("https://notgithub.com/a/b", False),
        ("https://github.com.example.org/a/b", False),
        ("/srv/github.com/b.git", False),
        ("./github.com", False),
        ("team:a/b", True),
    ],
)
def test_what_a_remote_takes_is_told_by_its_host(repo: Clone, url: str, *, forge: bool) -> None:
    """A forge by its address, one that a setting puts in its place too; any other forge by `gitgate.forge`. The same by what a verb
    knows of git's settings.
    """
    repo.git("remote", "add", "origin", url)
    if url.startswith("team:"):
        repo.git("config", "url.https://github.com/.insteadOf", "team:")
    for known in (repo.repository, open_desk(repo.path, os.environ).repo):
        assert most_refs(known, "origin") == (MOST_REFS if forge else MOST_OWN)
    repo.git("config", "gitgate.forge", "gitea")
    for known in (repo.repository, open_desk(repo.path, os.environ).repo):
        assert most_refs(known, "origin") == pushing.MOST_REFS
