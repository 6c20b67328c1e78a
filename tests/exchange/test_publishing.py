"""A gate on its way to the shared repository, and what stands in its way; then what is told of where it stands."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate import claims
from gitgate.acts.answering import comment
from gitgate.acts.asking import AskWishes, ask
from gitgate.acts.reporting import events_of_all, gate_status, overall_status, roster
from gitgate.claims import claim
from gitgate.context import presence_file
from gitgate.context.machine import Presence, note_presence
from gitgate.errors import AmbiguousGate, Failure, PushRefused
from gitgate.exchange import merging, syncing
from gitgate.exchange.syncing import publish, sync
from gitgate.gates import Filter, list_gates
from gitgate.gates.history import archived_gates, load_archived
from gitgate.gates.leases import stalled
from gitgate.model.gate import Gate, Question
from gitgate.policy.ruling import marks
from gitgate.questions.drafts import Draft
from gitgate.record import summary_of
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git import refs
from gitgate.store.records import Signature, closing
from support.meanwhile import Meanwhile
from support.resuming import TERM, Clock, Seat, claimant
from support.signing import make_key, publish_policy
from support.testbed.repositories import Clone

# Many small ones, over real pushes: together they would weigh on every run.
pytestmark = pytest.mark.slow
OPEN = "refs/hitl/open/"


def remark(seat: Seat, gate: Gate, *, push: bool = True) -> None:
    comment(seat.desk, seat.now(gate), "wait", push=push)


# publishing


def test_what_is_there_already_is_not_sent_again(ann: Seat, bare: Clone) -> None:
    """It counts as pushed, though the server was not asked."""
    gate = ann.ask(push=True)
    bare.path.rename(bare.path.with_name("away"))
    assert publish(ann.desk, gate, push=True).pushed


def test_a_server_that_takes_no_work(ann: Seat, bare: Clone) -> None:
    """The question arrives without it, and why is said."""
    ann.clone.git("config", "gitgate.publishWork", "true")
    hook = '#!/bin/sh\ncase "$1" in refs/hitl/work/*) echo "too much" >&2; exit 1;; esac\n'
    bare.write("hooks/update", hook, executable=True)
    gate = ann.ask(push=False)
    done = publish(ann.desk, gate, push=True, work=True)
    assert (done.pushed, done.work) == (True, False)
    assert "the work was not taken" in done.reason
    assert "too much" in done.reason
    assert list(bare.refs("refs/hitl")) == [OPEN + gate.id]


def test_a_server_that_takes_no_gate(ann: Seat, bare: Clone) -> None:
    """Who insists gets its reason; the gate is safe here."""
    bare.write("hooks/update", "#!/bin/sh\necho 'no gates here' >&2\nexit 1\n", executable=True)
    gate = ann.ask(push=False)
    with pytest.raises(PushRefused, match="no gates here"):
        publish(ann.desk, gate, push=True)
    assert ann.now(gate).tip == gate.tip


def test_a_gate_that_is_acted_on_here_goes_later(ann: Seat, bare: Clone) -> None:
    """Without its lease it would look as if whoever holds it were gone."""
    ann.clone.git("remote", "remove", "origin")
    gate = ann.answer(ann.ask())
    claim(ann.desk, gate, claimant())
    ann.clone.git("remote", "add", "origin", str(bare.path))
    done = publish(ann.desk, ann.now(gate), push=True)
    assert (done.pushed, done.reason) == (False, syncing.ACTED_ON)
    assert sync(ann.desk).pushed == ()
    assert not bare.refs("refs/hitl")


def test_a_gate_that_somebody_else_moved(ann: Seat, bob: Seat) -> None:
    """What was read before another command of this clone heard of it goes on top of what is there."""
    gate = ann.ask(push=True)
    sync(bob.desk)
    stale = ann.answer(gate, push=False)
    remark(bob, gate)
    sync(ann.desk)
    done = publish(ann.desk, stale, push=True)
    assert done.pushed
    assert [entry.name for entry in done.gate.history] == ["opened", "commented", "answered"]


def test_a_gate_that_never_stands_still_there(
    ann: Seat, bob: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some tries it stays here for now, and the command that brings it there is said."""
    monkeypatch.setattr(syncing, "TRIES", 2)
    gate = ann.ask(push=True)
    sync(bob.desk)
    ours = ann.answer(gate, push=False)
    pester: Callable[[], object] = lambda: remark(bob, gate)  # noqa: E731
    pester()
    with (
        Seat(ann.clone, Meanwhile(clock, pester, int, pester, int)) as busy,
        pytest.raises(Failure, match="keeps changing") as refused,
    ):
        publish(busy.desk, ours, push=True)
    assert refused.value.hint == "git gate sync origin"


# syncing


def test_what_arrives_in_great_numbers_is_packed(
    ann: Seat, bob: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many loose files would make each later command slow; the file is written once, however many there are."""
    gates = [ann.ask(push=True) for _ in range(5)]
    written: list[int] = []
    real = refs.with_refs

    def with_refs(packed: bytes, new: Mapping[str, str]) -> bytes | None:
        written.append(len(new))
        return real(packed, new)

    monkeypatch.setattr(refs, "with_refs", with_refs)
    monkeypatch.setattr(merging, "MANY", 2)
    monkeypatch.setattr(refs, "MANY_NEW", 1)
    done = sync(bob.desk)
    assert sorted(done.new) == sorted(gate.id for gate in gates)
    packed = (bob.clone.path / ".git/packed-refs").read_text()
    assert all(OPEN + gate.id in packed for gate in gates)
    assert written == [5]


@pytest.mark.parametrize("shallow", [False, True])
def test_of_many_what_is_acted_on_here_alone_stays(
    ann: Seat, monkeypatch: pytest.MonkeyPatch, *, shallow: bool
) -> None:
    """Questions that nobody answered go without being looked at; an answered one goes too, and the one with a claim does not."""
    monkeypatch.setattr(merging, "FEW", 2)
    asked = [ann.ask(push=False) for _ in range(3)]
    answered, held = (ann.answer(ann.ask(push=False), push=False) for _ in range(2))
    with monkeypatch.context() as apart:
        apart.setattr(claims, "made_known", lambda _desk, gate: (gate, None, gate.tip))
        claim(ann.desk, held, claimant())
    if shallow:
        ann.clone.write(".git/shallow", f"{ann.now(held).tip}\n")
    done = sync(ann.desk)
    assert sorted(done.pushed) == sorted(gate.id for gate in (*asked, answered))
    assert held.id not in done.refused


def test_great_numbers_while_somebody_packs_refs(
    ann: Seat, bob: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then git makes them, some at a time, and each arrives."""
    monkeypatch.setattr(merging, "MANY", 2)
    monkeypatch.setattr(refs.Refs, "create_packed", lambda *_: False)
    gates = [ann.ask(push=True) for _ in range(5)]
    done = sync(bob.desk)
    assert sorted(done.new) == sorted(gate.id for gate in gates)
    here = bob.clone.refs(OPEN)
    assert [here.get(OPEN + gate.id) for gate in gates] == [ann.now(gate).tip for gate in gates]


def test_a_sync_that_cannot_be_noted(ann: Seat, bob: Seat) -> None:
    """It is said and nothing else: the gates are brought in."""
    gate = ann.ask(push=True)
    bob.clone.write(".git/gitgate", "")
    heard: list[str] = []
    desk = bob.desk
    desk.progress = heard.append
    assert sync(desk).new == (gate.id,)
    assert any("cannot be written" in words for words in heard)


# the archive


def fold(seat: Seat, *gates: tuple[str, str]) -> None:
    """Archive these (id, tip), whatever they are."""
    desk = seat.desk
    closed = [closing.Closed(gate, tip, "2026-01", None) for gate, tip in gates]
    assert len(closing.fold(desk.repo, closed, by=Signature("Ada <a@b>", desk.at)).gates) == len(gates)


def test_archived_records_that_cannot_be_read(alone: Seat) -> None:
    """They are named and left out, of the log too; two that begin alike are not told apart by their beginning."""
    gate = alone.ask()
    head = alone.clone.git("rev-parse", "HEAD")
    work = alone.clone.commit("work of a gate that nobody can read")
    names = ["zzzz222222", "zzzz222223"]
    fold(alone, *((name, head) for name in names))
    alone.clone.git("update-ref", f"refs/hitl/work/{names[0]}", work)
    heard: list[str] = []
    desk = alone.desk
    desk.progress = heard.append
    assert list(archived_gates(desk)) == []
    assert [words.partition(":")[0] for words in heard] == names
    assert {event["gate"] for event in events_of_all(desk)} == {gate.id}
    with pytest.raises(AmbiguousGate, match="zzzz222222, zzzz222223"):
        load_archived(desk, "zzzz")
    fold_closed(desk)
    assert f"refs/hitl/work/{names[0]}" in alone.clone.refs()


def test_open_records_that_cannot_be_read(alone: Seat) -> None:
    """One that only says that it is closed is not folded away, nor does it stop the others or the log."""
    gate = alone.answer(ask(alone.desk, Draft((Question("answer", "Which?", "text"),), agent="plain")).gate)
    words = alone.clone.git("log", "-1", "--format=%B", gate.tip).replace(gate.id, "zzzz222222")
    forged = alone.clone.git("commit-tree", "HEAD^{tree}", "-m", words)
    alone.clone.git("update-ref", f"{OPEN}zzzz222222", forged)
    heard: list[str] = []
    desk = alone.desk
    desk.progress = heard.append
    assert fold_closed(desk).folded == (gate.id,)
    assert {event["gate"] for event in events_of_all(desk)} == {gate.id}
    assert list(alone.clone.refs(OPEN)) == [f"{OPEN}zzzz222222"]
    assert [words.partition(": ")[0] for words in heard if words.startswith("zzzz")] == ["zzzz222222"] * 2


# where things stand


def test_what_is_told_of_a_gate_with_a_deadline(alone: Seat, clock: Clock) -> None:
    """When it ends and what then; with no session to resume, its asker waits for the answer."""
    draft = Draft((Question("answer", "Which?", "text"),), agent="plain", timeout=3600)
    gate = ask(alone.desk, draft).gate
    fields, text = gate_status(alone.desk, gate.id)
    assert f"deadline: {gate.deadline} ({gate.opened.on_timeout})" in text
    assert (fields["state"], fields["next"]) == ("awaiting", f"git gate respond {gate.id[:6]} ANSWER")
    resumable = alone.answer(alone.ask())
    claim(alone.desk, resumable, claimant(monotonic=clock))
    clock.pass_by(TERM + 700)
    fields, text = gate_status(alone.desk, resumable.id)
    assert fields["stalled"] is True
    assert "stalled: whoever acted on it is gone" in text


def test_a_gate_that_cannot_be_read_is_not_called_stalled(alone: Seat, clock: Clock) -> None:
    """It is broken, which is another thing; so is one that only says that somebody acts on it."""
    gate = alone.answer(alone.ask())
    clock.pass_by(86_400)
    summary = summary_of(gate.id, gate.tip, alone.clone.git("log", "-1", "--format=%B", gate.tip))
    assert stalled(alone.desk, summary)
    assert not stalled(alone.desk, summary._replace(tip=alone.clone.git("rev-parse", "HEAD")))
    assert not stalled(alone.desk, summary._replace(state="resuming"))


def test_a_clone_that_never_asked_cannot_tell(ann: Seat, clock: Clock) -> None:
    """Until it has heard from the shared repository nothing is said to stand still."""
    gate = ann.answer(ann.ask(push=False), push=False)
    (ann.clone.path / ".git/gitgate/synced").unlink(missing_ok=True)
    clock.pass_by(86_400)
    summary = summary_of(gate.id, gate.tip, ann.clone.git("log", "-1", "--format=%B", gate.tip))
    assert not stalled(ann.desk, summary)


def test_agents_and_how_each_is_doing(alone: Seat) -> None:
    """An answered gate of one that acts on nothing is not waited for; a resumed one is named with its process."""
    gate = alone.answer(alone.ask())
    claim(alone.desk, gate, claimant())
    state = alone.clone.path / ".git/gitgate"
    for place, text in ((f"places/{gate.id}.json", '{"run": "1"}'), (f"runs/{gate.id}/1/started.json", "{")):
        (state / place).parent.mkdir(parents=True, exist_ok=True)
        (state / place).write_text(text)
    fields, text = overall_status(alone.desk)
    assert fields["counts"] == {"resuming": 1}
    assert f"scripted: resuming ({gate.id[:6]})" in text
    (state / f"runs/{gate.id}/1/started.json").write_text('{"pid": 4242}')
    assert "pid 4242" in overall_status(alone.desk)[1]
    assert roster(alone.desk, []) == []


# signatures


def test_a_policy_that_cannot_be_read_verifies_nobody(ann: Seat, bare: Clone, tmp_path: Path) -> None:
    """An answer with a good signature is shown as unverified: nobody can say whose keys count."""
    ada = make_key(tmp_path / "keys", "ada", "ada@example.org")
    publish_policy(bare, "policy:\n  rules:\n    - {name: signed, require_signed: true}\n", signers=ada.line)
    ann.clone.git("fetch", "-q", "origin")
    ada.used_by(ann.clone)
    gate = ann.answer(ann.ask())
    assert [mark.word for mark in marks(ann.desk, [gate]).values()] == ["verified"]
    publish_policy(bare, "policy: [\n", signers=ada.line)
    ann.clone.git("fetch", "-q", "origin")
    assert [mark.word for mark in marks(ann.desk, [gate]).values()] == ["unverified"]


def test_a_signature_whose_commit_is_not_here(ann: Seat) -> None:
    """There is nothing to show of it, and the rest is shown."""
    gate = ann.answer(ann.ask())
    last = gate.history[-1]
    elsewhere = replace(last, parents=(*last.parents, "1" * 40))
    assert marks(ann.desk, [replace(gate, history=(*gate.history[:-1], elsewhere))]) == {}


def test_whose_process_runs_is_active_and_whose_has_ended_is_gone(alone: Seat) -> None:
    """When nothing of theirs waits. One that asked elsewhere is idle, as far as anybody knows here; each since its first question."""
    draft = Draft((Question("answer", "Which?", "text"),), agent="scripted")
    first = alone.answer(ask(alone.desk, draft, AskWishes()).gate)

    def told() -> tuple[str, str, int]:
        (known,) = roster(alone.desk, list_gates(alone.desk, Filter(all=True)))
        return known.state, known.started_at, known.questions

    at = first.opened.asked.at
    presence_file(alone.desk).unlink()  # as in a clone that it was not asked from
    assert told() == ("idle", at, 1)
    with subprocess.Popen(["sleep", "60"]) as running:
        present = Presence(first.id, "scripted", "scripted", "", "/here", "", running.pid, "", "", at)
        note_presence(alone.desk, present)
        assert told() == ("active", at, 1)
        running.kill()
    assert told() == ("gone", at, 1)
    ask(alone.desk, draft, AskWishes())
    assert told() == ("waiting", at, 2)
