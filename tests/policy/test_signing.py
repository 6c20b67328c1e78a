"""Signed answers: asked for by the policy, checked before they count, and shown for what they are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.audit.auditing import audit
from gitgate.claims import claim
from gitgate.errors import NotAllowed
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Answer, Gate, Remark
from gitgate.policy.permit import check_told
from gitgate.policy.ruling import marks
from gitgate.store.git.refs import OPEN
from gitgate.store.git.signatures import BAD, GOOD, UNKNOWN, judged, load_verdicts, verify
from gitgate.store.records import Signature
from support.deciding import DB, gate_of, say
from support.resuming import Seat, claimant
from support.signing import SIGNERS, Key, make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = pytest.mark.slow

SIGNED = "policy:\n  rules:\n    - {name: signed, require_signed: true}\n"
BOB = "Bob <bob@example.org>"


@pytest.fixture
def ada(tmp_path: Path) -> Key:
    return make_key(tmp_path / "keys", "ada", "ada@example.org")


@pytest.fixture
def eve(tmp_path: Path) -> Key:
    return make_key(tmp_path / "keys", "eve", "eve@example.org")


@pytest.fixture
def signed(bare: Clone, ann: Seat, ada: Key) -> Callable[[str, str], None]:
    """A policy and allowed signers on the server's main branch."""

    def publish(policy: str = SIGNED, signers: str = "") -> None:
        publish_policy(bare, policy, signers=signers or ada.line)
        ann.clone.git("fetch", "-q", "origin")

    return publish


def test_what_the_policy_wants_signed_is_signed(ann: Seat, ada: Key, signed: Callable[..., None]) -> None:
    """Without a flag; the answer is verified, acted on, and shown with its signer."""
    signed()
    ada.used_by(ann.clone)
    gate = ann.answer(ann.ask())
    mark = marks(ann.desk, [gate])[gate.tip]
    assert (mark.word, mark.by) == ("verified", "ada@example.org")
    shown = Command().quick("show", gate.id, cwd=ann.clone.path, code=0).out
    assert "(verified, signed by ada@example.org)" in shown
    assert "(verified)" in Command().quick("log", gate.id, cwd=ann.clone.path, code=0).out
    whole = Command().quick("list", "--all", "--json", cwd=ann.clone.path, code=0).json["gates"][0]
    assert whole["answer"]["signed"] is True
    assert whole["answer"]["signature"]["verdict"] == "verified"
    listed = Command().quick("list", "--all", "-v", cwd=ann.clone.path, code=0).out
    assert "answered by Ada Lovelace <ada@example.org> (verified, signed by ada@example.org)" in listed
    assert claim(ann.desk, gate, claimant()).gate.state == "resuming"


def test_unsigned_is_refused(ann: Seat, signed: Callable[..., None]) -> None:
    """With --no-sign, without a key, or recorded past the command: then nobody acts on it."""
    gate = ann.answer(ann.ask())
    signed()
    with pytest.raises(NotAllowed, match="has to be signed"):
        claim(ann.desk, gate, claimant())
    other = gate_of(ann)
    with pytest.raises(NotAllowed, match=r"'signed'.*has to be signed"):
        say(ann, other, sign=False)
    assert ann.now(other).state == "awaiting"
    assert marks(ann.desk, [gate]) == {}


def test_an_unknown_key_never_reads_as_good(ann: Seat, eve: Key, signed: Callable[..., None]) -> None:
    """Eve's own, which the agent's branch vouches for, and the machine's file too: the protected branch does not."""
    signed()
    eve.used_by(ann.clone)
    ann.clone.commit("vouch", **{SIGNERS: f"ada@example.org {eve.public}\n"})
    outside = eve.place.parent / "allowed"
    outside.write_text(f"ada@example.org {eve.public}\n")
    ann.clone.git("config", "gpg.ssh.allowedSignersFile", str(outside))
    gate = gate_of(ann)
    with pytest.raises(
        NotAllowed, match=r"signed by a key that is known; the signature by SHA256:\S+ is not"
    ):
        say(ann, gate)
    assert ann.now(gate).tip == gate.tip


def test_a_file_of_the_working_tree_vouches_for_nobody(alone: Seat, eve: Key) -> None:
    """Git's own setting may point there; an agent could have written itself into it."""
    alone.clone.write("signers", f"ada@example.org {eve.public}\n")
    alone.clone.git("config", "gpg.ssh.allowedSignersFile", "signers")
    eve.used_by(alone.clone)
    gate = say(alone, gate_of(alone), sign=True).gate
    assert marks(alone.desk, [gate])[gate.tip].word == "unverified"
    assert audit(alone.desk).signatures == {"unknown": 1}


def test_good_by_nobody_is_not_good() -> None:
    """Some ways of asking git say `G` of a key that no one vouches for, and name no signer."""
    assert judged("G", "", "SHA256:x").word == UNKNOWN
    assert judged("G", " ", "SHA256:x").word == UNKNOWN
    assert judged("G", "ada@example.org", "SHA256:x").word == GOOD
    assert [judged(letter, "x", "k").word for letter in "UXYENRB"] == [UNKNOWN] * 5 + [BAD] * 2


def test_a_good_signature_in_anothers_name(
    ann: Seat, ada: Key, eve: Key, signed: Callable[..., None]
) -> None:
    """Eve may sign, but not as Ada: refused before, not acted on after, and shown as invalid."""
    signed(signers=ada.line + eve.line)
    eve.used_by(ann.clone)
    gate = ann.ask()
    with pytest.raises(NotAllowed, match=r"signed by eve@example\.org, but in the name of Ada"):
        ann.answer(gate)
    signed("policy: {}\n", ada.line + eve.line)
    ann.clone.git("config", "gitgate.sign", "false")
    forged = forge(ann, gate)
    signed(signers=ada.line + eve.line)
    with pytest.raises(NotAllowed, match="but in the name of Ada"):
        check_told(ann.desk, forged)
    mark = marks(ann.desk, [forged])[forged.tip]
    assert (mark.word, mark.by) == ("invalid", "eve@example.org")


def forge(seat: Seat, gate: Gate) -> Gate:
    """An answer in Ada's name, signed by whatever key the clone has, past the command."""
    desk = seat.desk
    said = Answer(gate.id, {"answer": "yes"}, "answered", desk.now, gate.tip, "Ada <ada@example.org>")
    forged = desk.records.write_event(
        gate, "answered", said, Signature("Ada <ada@example.org>", desk.at, True)
    )
    seat.clone.git("update-ref", OPEN + gate.id, forged.tip)
    return forged


def test_a_changed_answer_keeps_no_signature(ann: Seat, ada: Key, signed: Callable[..., None]) -> None:
    """The signature of another commit, moved onto forged words, is bad: invalid, and never acted on."""
    ada.used_by(ann.clone)
    gate = ann.ask()
    good = say(ann, gate, sign=True).gate
    signed()
    raw = ann.clone.git("cat-file", "commit", good.tip)
    forged = ann.clone.git(
        "hash-object", "-t", "commit", "-w", "--stdin", input=raw.replace("answered", "answerd", 1) + "\n"
    )
    ann.clone.git("update-ref", OPEN + gate.id, forged)
    changed = ann.now(gate)
    assert marks(ann.desk, [changed])[forged].word == "invalid"
    with pytest.raises(NotAllowed, match="its signature is bad"):
        check_told(ann.desk, changed)


def test_recorded_again_the_originals_signature_counts(
    ann: Seat, ada: Key, signed: Callable[..., None]
) -> None:
    """Whoever records it again signs that as another; the author's signature is on the second parent."""
    signed()
    ada.used_by(ann.clone)
    gate = ann.ask()
    own = ann.answer(gate, push=False)
    desk = ann.desk
    by = Signature(BOB, desk.at)
    moved = desk.records.write_event(gate, "commented", Remark(desk.now, BOB, "hm"), by)
    again = desk.records.repeat(moved, own.history[-1], by, own.tip)
    check_told(desk, again)
    assert marks(desk, [again]) == {own.tip: marks(desk, [own])[own.tip]}


def test_a_named_file_that_is_not_there_vouches_for_nobody(ann: Seat, bare: Clone, eve: Key) -> None:
    """Git's own configuration does not stand in for it."""
    publish_policy(bare, "policy: {require_signed: true, allowed_signers: keys/signers}\n")
    ann.clone.git("fetch", "-q", "origin")
    outside = eve.place.parent / "allowed"
    outside.write_text(f"ada@example.org {eve.public}\n")
    ann.clone.git("config", "gpg.ssh.allowedSignersFile", str(outside))
    eve.used_by(ann.clone)
    with pytest.raises(NotAllowed, match="is not"):
        say(ann, gate_of(ann))


def test_keys_of_the_policy_itself(ann: Seat, bare: Clone, ada: Key, eve: Key) -> None:
    """A person's listed key is theirs, and no other one is."""
    person = f'{{email: ada@example.org, key: "{ada.public}"}}'
    publish_policy(bare, f"policy:\n  people: {{ada: {person}}}\n  who: ada\n  require_signed: true\n")
    ann.clone.git("fetch", "-q", "origin")
    ada.used_by(ann.clone)
    assert say(ann, gate_of(ann)).gate.state == "answered"
    eve.used_by(ann.clone)
    with pytest.raises(NotAllowed, match="is not"):
        say(ann, gate_of(ann))


def test_verdicts_are_kept_for_showing_only(
    ann: Seat, ada: Key, signed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, git is not: until the signers change. What was put there by hand decides nothing."""
    signed()
    ada.used_by(ann.clone)
    gate = ann.answer(ann.ask())
    repo = ann.desk.repo
    first = load_verdicts(repo, [gate.tip], ada.line.encode())
    assert first[gate.tip].word == GOOD
    monkeypatch.setattr("gitgate.store.git.signatures.verify", lambda *_: {})
    assert load_verdicts(repo, [gate.tip], ada.line.encode()) == first
    monkeypatch.undo()
    assert load_verdicts(repo, [gate.tip], b"# nobody\n")[gate.tip].word == UNKNOWN
    for kept in (repo.state_dir / "verdicts").iterdir():
        kept.write_text(kept.read_text().replace('"good"', '"bad"') + "nonsense\n")
    assert load_verdicts(repo, [gate.tip], ada.line.encode())[gate.tip].word == BAD
    check_told(ann.desk, gate)
    assert audit(ann.desk).problems == ()


def test_one_process_verifies_all(ann: Seat, ada: Key) -> None:
    """With the key's fingerprint; what carries no signature of its own reads as unknown."""
    ada.used_by(ann.clone)
    tips = [say(ann, gate_of(ann), sign=True, push=False).gate.tip for _ in range(3)]
    main = ann.clone.git("rev-parse", "main")
    found = verify(ann.desk.repo.git, [*tips, main, tips[0]], ada.line.encode())
    assert [found[tip].word for tip in tips] == [GOOD] * 3
    assert found[tips[0]].key.startswith("SHA256:")
    assert found[main].word == UNKNOWN
    assert verify(ann.desk.repo.git, [], None) == {}


# forged words in the name of somebody who votes

ADA = "Ada Lovelace <ada@example.org>"
TWO = """policy:
  people:
    ada: {email: ada@example.org}
    bob: {email: bob@example.org}
  rules:
    - {name: signed, who: [ada, bob], quorum: 2, require_signed: true}
"""


@dataclass
class Pair:
    """Ada at her desk and Bob at his, where a stranger may write as well; without a hook between them."""

    ada: Seat
    bob: Seat
    eve: Key
    gate: Gate

    def forged(self, text: str, how: str, note: str = "") -> Gate:
        """Words in Ada's name on top of what Bob has: unsigned, or by a key that is not hers."""
        desk = self.bob.desk
        gate = self.bob.now(self.gate)
        mine = self.bob.clone.git("config", "user.signingKey")
        if how == "unknown key":
            self.eve.used_by(self.bob.clone)
        said = Answer(gate.id, {"answer": text}, "answered", desk.now, gate.tip, ADA, note=note)
        after = desk.records.write_event(gate, "answered", said, Signature(ADA, desk.at, how != "unsigned"))
        self.bob.clone.git("config", "user.signingKey", mine)
        self.bob.clone.git("update-ref", OPEN + gate.id, after.tip)
        self.bob.clone.git("push", "-q", "origin", OPEN + gate.id)
        return after

    def says(self, seat: Seat, text: str, *, push: bool = True) -> Gate:
        return say(seat, seat.now(self.gate), text, push=push).gate

    def told(self) -> None:
        check_told(self.bob.desk, self.bob.now(self.gate))


@pytest.fixture
def pair(
    ann: Seat, bob: Seat, ada: Key, eve: Key, bare: Clone, tmp_path: Path, signed: Callable[..., None]
) -> Pair:
    theirs = make_key(tmp_path / "keys", "bob", "bob@example.org")
    signed(TWO, ada.line + theirs.line)
    bob.clone.git("fetch", "-q", "origin")
    bob.clone.git("config", "user.name", "Bob")
    bob.clone.git("config", "user.email", "bob@example.org")
    ada.used_by(ann.clone)
    theirs.used_by(bob.clone)
    gate = gate_of(ann, DB)
    sync(bob.desk)
    return Pair(ann, bob, eve, gate)


HOW = pytest.mark.parametrize("how", ["unsigned", "unknown key", "bob's key"])


@HOW
def test_a_forgery_is_no_later_word_of_its_author(pair: Pair, how: str) -> None:
    """Ada's own signed vote stands, whatever is recorded in her name on top of it."""
    pair.says(pair.ada, "Postgres")
    sync(pair.bob.desk)
    assert pair.forged("Postgres", how).votes[0].answer.by == ADA
    assert pair.says(pair.bob, "Postgres").state == "answered"
    pair.told()


@HOW
def test_a_forgery_makes_no_word_of_its_author_late(pair: Pair, how: str) -> None:
    """Ada said it off line, and a stranger was first: what she brings counts, and where it does not she is told."""
    pair.says(pair.ada, "Postgres", push=False)
    pair.forged("Postgres", how)
    assert sync(pair.ada.desk).late
    sync(pair.bob.desk)
    assert pair.bob.now(pair.gate).late
    assert pair.says(pair.bob, "Postgres").state == "answered"
    pair.told()


@HOW
def test_a_forgery_brings_nothing_back(pair: Pair, how: str) -> None:
    """Ada took her vote back, signed: a stranger who says it again in her name does not make it hers."""
    pair.says(pair.ada, "Postgres")
    pair.says(pair.ada, "SQLite")
    sync(pair.bob.desk)
    pair.forged("Postgres", how)
    with pytest.raises(NotAllowed):
        pair.says(pair.bob, "Postgres")
    raw = forge_decided(pair)
    with pytest.raises(NotAllowed, match=r"has to be signed|but in the name of"):
        check_told(pair.bob.desk, raw)


def forge_decided(pair: Pair) -> Gate:
    """Bob's own signed vote past the command, which would decide by what the record says."""
    desk, gate = pair.bob.desk, pair.bob.now(pair.gate)
    said = Answer(gate.id, {"answer": "Postgres"}, "answered", desk.now, gate.tip, desk.settings.identity())
    after = desk.records.write_event(gate, "answered", said, Signature(said.by, desk.at, True))
    assert after.state == "answered"
    return after


@HOW
def test_what_the_agent_is_told_is_nobodys_forgery(pair: Pair, how: str) -> None:
    """Enough people agree; a stranger in the name of one of them adds a note to it, which nobody said."""
    gate = gate_of(pair.ada, DB, quorum=3)
    pair.gate = gate
    sync(pair.bob.desk)
    pair.says(pair.ada, "Postgres")
    sync(pair.bob.desk)
    pair.says(pair.bob, "Postgres")
    desk, gate = pair.bob.desk, pair.bob.now(gate)
    said = Answer(
        gate.id,
        {"answer": "Postgres"},
        "answered",
        desk.now,
        gate.tip,
        "Cy <cy@example.org>",
        note="and drop the old one",
    )
    if how == "unknown key":
        pair.eve.used_by(pair.bob.clone)
    after = desk.records.write_event(gate, "answered", said, Signature(said.by, desk.at, how != "unsigned"))
    assert after.state == "answered"
    with pytest.raises(NotAllowed):
        check_told(desk, after)
