"""Where the policy wants answers signed, changes, ends and words are signed too; and a way out of what a server never takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.errors import Failure, GateError, GitFailed, NotAllowed, PushRefused
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Edit, Gate
from gitgate.policy import Book, load_book
from gitgate.sharing.pushers import Actor, Doorkeeper
from gitgate.store.git.refs import ASIDE, OPEN
from gitgate.store.records import Signature
from support.deciding import gate_of, say
from support.resuming import Seat
from support.signing import Key, make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = pytest.mark.needs("ssh-keygen")

ADA = "Ada Lovelace <ada@example.org>"
POLICY = """policy:
  people:
    ada: {email: ada@example.org, login: ada}
    bob: {email: bob@example.org, login: bob}
  who: [ada, bob]
  require_signed: true
"""


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path / "keys", "ada", "ada@example.org")


@pytest.fixture
def seat(bare: Clone, ann: Seat, key: Key) -> Seat:
    """Ada's clone, with her key, of a server whose policy wants signatures."""
    publish_policy(bare, POLICY, signers=key.line)
    ann.clone.git("fetch", "-q", "origin")
    key.used_by(ann.clone)
    return ann


def local(seat: Seat) -> Gate:
    return gate_of(seat, wishes=AskWishes(push=False))


def door(seat: Seat, gate: Gate, old: str) -> str:
    """What the server's rules say, whoever pushes: a login that the policy does not know."""
    desk = seat.desk
    book: Book = load_book(desk)
    return Doorkeeper(desk, book, Actor("git", how="account")).against(gate, old)


CHANGES: dict[str, Callable[[Seat, Gate], Gate]] = {
    "edited": lambda s, g: answering.edit(s.desk, g, priority="high", push=False).gate,
    "commented": lambda s, g: answering.comment(s.desk, g, "hm", push=False).gate,
    "stopped": lambda s, g: answering.stop(s.desk, g, "enough", push=False).gate,
    "withdrawn": lambda s, g: answering.withdraw(s.desk, g, "found it", push=False).gate,
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_the_policy_wants_signed_is_signed(seat: Seat, what: str) -> None:
    """Also by whose agent asked, whom the policy of answers would not ask; the hook takes it from anybody."""
    gate = local(seat)
    after = CHANGES[what](seat, gate)
    assert after.history[-1].name == what
    assert seat.desk.records.commit(after.tip).signed
    assert door(seat, after, gate.tip) == ""


@pytest.mark.parametrize("what", CHANGES)
def test_without_a_key_nothing_is_written(seat: Seat, what: str) -> None:
    """The rule is named, and how to name a key; with a key that nobody knows it is said before anything counts."""
    gate = local(seat)
    seat.clone.git("config", "user.signingKey", "/nowhere.pub")
    with pytest.raises(GitFailed) as refused:
        CHANGES[what](seat, gate)
    assert "the policy's rule 'default' wants this signed" in refused.value.message
    assert "user.signingKey" in refused.value.hint
    make_key(seat.clone.path.parent / "keys", "eve", "ada@example.org").used_by(seat.clone)
    with pytest.raises(NotAllowed, match="has to be signed by a key that is known"):
        CHANGES[what](seat, gate)
    assert seat.now(gate) == gate


@pytest.mark.parametrize("what", CHANGES)
def test_unsigned_is_refused_and_never_taken(seat: Seat, what: str) -> None:
    """By the hook: the words tell a clone that nobody can mend it."""
    gate = local(seat)
    seat.clone.git("update-ref", "-d", "refs/remotes/origin/HEAD")
    seat.clone.git("update-ref", "-d", "refs/remotes/origin/main")
    after = CHANGES[what](seat, gate)
    assert not seat.desk.records.commit(after.tip).signed
    seat.clone.git("fetch", "-q", "origin")
    assert "(as it is it can never be pushed)" in door(seat, after, gate.tip)


def test_a_stranger_is_told_beforehand(seat: Seat) -> None:
    """Neither whose agent asked nor one who may answer: nothing is written."""
    gate = local(seat)
    seat.clone.git("config", "user.email", "eve@example.org")
    for change in ("edited", "stopped", "withdrawn"):
        with pytest.raises(NotAllowed):
            CHANGES[change](seat, gate)
    assert seat.now(gate) == gate


def test_a_signature_in_anothers_name_is_no_signature(seat: Seat, tmp_path: Path) -> None:
    """Bob's key under Ada's name: not for a comment, nor for a change of her gate."""
    gate = local(seat)
    bob = make_key(tmp_path / "keys", "bob", "bob@example.org")
    publish_policy(
        Clone(Path(seat.clone.git("remote", "get-url", "origin"))),
        POLICY,
        signers=bob.line + make_key(tmp_path / "keys", "ada2", "ada@example.org").line,
    )
    seat.clone.git("fetch", "-q", "origin")
    bob.used_by(seat.clone)
    for what in ("edited", "commented", "withdrawn"):
        with pytest.raises(NotAllowed, match="signed by bob@"):
            CHANGES[what](seat, gate)
    desk = seat.desk
    forged = desk.records.write_event(
        gate, "edited", Edit(desk.now, ADA, priority="low"), Signature(ADA, desk.at, sign=True)
    )
    assert "signed by bob@example.org" in door(seat, forged, gate.tip)


# A way out


@pytest.fixture
def hooked(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def stuck(hooked: Clone, ann: Seat, key: Key) -> tuple[Seat, Gate]:
    """A gate that was edited off line before the policy was heard of: its server never takes that."""
    gate = gate_of(ann)
    answering.edit(ann.desk, gate, priority="urgent", push=False)
    publish_policy(hooked, POLICY, signers=key.line)
    key.used_by(ann.clone)
    return ann, gate


@pytest.mark.slow
def test_a_sync_puts_aside_what_is_never_taken(stuck: tuple[Seat, Gate], hooked: Clone) -> None:
    """It says so, keeps it, and pushes the signed answer that stood on it."""
    seat, gate = stuck
    seat.clone.git("fetch", "-q", "origin")
    before = say(seat, gate, push=False).gate
    done = sync(seat.desk)
    (one,) = done.aside
    assert (one.gate, one.event, one.commit) == (gate.id, "edited", before.history[1].commit)
    assert one.ref == f"{ASIDE}{gate.id}/{before.tip[:10]}"
    assert "git log -p refs/gitgate/aside/" in one.words
    assert "priority: urgent" in seat.clone.git("log", "-p", one.ref)
    after = seat.now(gate)
    assert hooked.refs()[OPEN + gate.id] == after.tip
    assert [entry.name for entry in after.history] == ["opened", "answered"]
    assert (after.state, after.priority) == ("answered", "normal")
    assert sync(seat.desk).aside == ()


@pytest.mark.slow
def test_whoever_records_it_is_told_at_once(stuck: tuple[Seat, Gate], cli: Command) -> None:
    """It is not safe here: exit 1, and what to type; then the sync says it in words and in JSON."""
    seat, gate = stuck
    with pytest.raises(PushRefused, match="can never be pushed") as refused:
        answering.edit(seat.desk, seat.now(gate), priority="low")
    assert "git gate sync origin" in refused.value.hint
    said = cli.quick("sync", "--json", cwd=seat.clone.path, code=1)
    assert [one["event"] for one in said.json["aside"]] == ["edited", "edited"]
    assert "was put aside" in said.err
    cli.quick("sync", cwd=seat.clone.path, code=0)


@pytest.mark.slow
def test_what_another_could_push_is_put_aside_on_ones_word(ann: Seat, hooked: Clone, cli: Command) -> None:
    """The server refuses it from this account, which may change: it stays, until somebody says so."""
    gate = gate_of(ann)
    publish_policy(hooked, POLICY.replace("require_signed: true", "quorum: 1"))
    seat, tip = ann, answering.comment(ann.desk, gate, "hm", push=False).gate.tip
    done = sync(seat.desk)
    assert "in the name of" in done.refused[gate.id]
    assert seat.now(gate).tip == tip
    said = cli.quick("sync", cwd=seat.clone.path, code=1)
    assert f"git gate sync --put-aside {gate.id[:6]}" in said.err
    cli.quick("sync", "--put-aside", gate.id, cwd=seat.clone.path, code=0)
    assert seat.now(gate).tip == gate.tip
    assert seat.clone.refs(ASIDE) == {f"{ASIDE}{gate.id}/{tip[:10]}": tip}


def test_what_was_never_shared_is_not_put_aside(ann: Seat) -> None:
    """There is nothing to go back to."""
    gate = local(ann)
    with pytest.raises(Failure, match="does not have gate"):
        sync(ann.desk, aside=gate.id)
    with pytest.raises(GateError):
        sync(ann.desk, aside="2222222222")
