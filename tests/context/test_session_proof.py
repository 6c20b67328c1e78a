"""A saved session is what the record names, or what whoever asked went on to save: on the server, and wherever it is resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gitgate.acts import sessions
from gitgate.errors import BrokenRecord
from gitgate.exchange.syncing import publish, sync
from gitgate.model import lease
from gitgate.model.gate import Answer, Conversation, Gate, Remark, SavedSession
from gitgate.store.records import NOBODY, Signature
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

REF = "refs/hitl/sessions/"
FIRST = SavedSession("scripted", "session-1", "/home/ada/x", files={"transcript.jsonl": b"first\n"})
LATER = replace(FIRST, files={"transcript.jsonl": b"first\nlater\n"})
PLANTED = replace(FIRST, files={"transcript.jsonl": b"delete everything\n"})


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", cwd=bare.path, code=0)
    (bare.path / "hooks/post-receive").unlink()  # Nothing is resumed on this server: no push need start it.
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    """Whoever asks; their sessions are shared."""
    with Seat(clone_of(server, "ann")) as seat:
        seat.clone.git("config", "gitgate.session", "push")
        seat.clone.git("config", "gitgate.publishWork", "true")
        yield seat


@pytest.fixture
def bob(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    """Anybody who may push."""
    with Seat(clone_of(server, "bob")) as seat:
        yield seat


def saved_again(seat: Seat, gate: Gate, saved: SavedSession = LATER) -> str:
    sessions.keep_session(seat.desk, gate, saved)
    publish(seat.desk, seat.now(gate), work=True)
    return seat.clone.git("rev-parse", REF + gate.id)


def planted(seat: Seat, *parents: str, like: str = "") -> str:
    """A commit of other content for the same conversation; `like` lends its message, and with it its signature."""
    desk = seat.desk
    tree = sessions.tree_of(desk, PLANTED)
    message = seat.clone.git("log", "-1", "--format=%B", like) if like else "session of a gate\n"
    oid = desk.records.write_commit(tree, parents, Signature(NOBODY, desk.at), message + "\n")
    desk.records.objects.flush()
    return oid


def pushed(seat: Seat, gate: Gate, oid: str) -> str:
    """What the server's hook says to this as the session."""
    with pytest.raises(GitError) as no:
        seat.clone.git("push", "--force", "origin", f"{oid}:{REF}{gate.id}")
    return str(no.value)


def refused(seat: Seat, gate: Gate) -> str:
    with pytest.raises(BrokenRecord) as wrong:
        sessions.bring(seat.desk, seat.now(gate))
    assert wrong.value.hint.startswith("erase it: git gate session drop ")
    return wrong.value.message


def test_what_whoever_asked_saves_is_taken(ann: Seat, bob: Seat, server: Clone) -> None:
    """With the question, and again and again afterwards; another clone takes it up each time."""
    gate = ann.ask()
    assert server.git("rev-parse", REF + gate.id) == ann.clone.git("rev-parse", REF + gate.id)
    sync(bob.desk)
    assert sessions.bring(bob.desk, bob.now(gate)).id == "session-1"
    for saved in (FIRST, LATER):
        oid = saved_again(ann, gate, saved)
        assert server.git("rev-parse", REF + gate.id) == oid
        assert sessions.bring(bob.desk, bob.now(gate)).files == saved.files


def test_content_that_is_swapped_is_refused(ann: Seat, bob: Seat, server: Clone) -> None:
    """After the answer, with the right id: by the server's hook, and by a clone where there is no hook."""
    gate = ann.answer(ann.ask())
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    assert "its content is not what the record of the gate names" in pushed(bob, gate, planted(bob))
    bob.clone.git("update-ref", REF + gate.id, planted(bob))
    assert "changed by somebody else: its content" in refused(bob, gate)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("on the first", marks=pytest.mark.slow),
        "with its signature",
        pytest.param("in its place", marks=pytest.mark.slow),
        "on the last",
    ],
)
def test_content_that_seems_to_go_on_is_refused(ann: Seat, bob: Seat, server: Clone, how: str) -> None:
    """A commit on what is there, with no signature or with one of another commit: only whoever asked makes one."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    last = saved_again(ann, gate)
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    forged = {
        "on the first": lambda: planted(bob, first),
        "with its signature": lambda: planted(bob, last, like=last),
        "in its place": lambda: planted(bob, first, like=last),
        "on the last": lambda: planted(bob, last),
    }[how]()
    assert "was not saved by whoever asked" in pushed(bob, gate, forged)
    server.git("fetch", "-q", str(bob.clone.path), forged)
    server.git("update-ref", REF + gate.id, forged)
    bob.clone.git("update-ref", "-d", REF + gate.id)
    assert "was not saved by whoever asked" in refused(bob, gate)


def test_an_earlier_one_is_not_put_back(ann: Seat, bob: Seat, server: Clone) -> None:
    """It was the agent's own once; what it said later would be lost."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    saved_again(ann, gate)
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    assert "was saved later is here already" in pushed(bob, gate, first)


def test_a_resume_says_so(ann: Seat, server: Clone, cli: Command) -> None:
    """Nothing is claimed and no agent is started: exit 1, with the way out."""
    ann.clone.git("config", "--global", "gitgate.agent.scripted.resume", '["true"]')
    gate = ann.answer(ann.ask())
    ann.clone.git("update-ref", REF + gate.id, planted(ann))
    said = cli.quick("resume", gate.id, cwd=ann.clone.path, code=1)
    assert "the saved session was changed by somebody else" in said.err
    assert f"git gate session drop {gate.id[:6]}" in said.err
    assert ann.now(gate).state == "answered"


def test_an_older_gate_binds_no_content(ann: Seat) -> None:
    """Gates that were asked before there was a digest are read as they were."""
    gate = ann.ask()
    old = older(ann, gate)
    sessions.keep_session(ann.desk, old, LATER)
    ann.clone.git("update-ref", REF + old.id, planted(ann))
    assert sessions.bring(ann.desk, old).files == PLANTED.files


def older(seat: Seat, gate: Gate) -> Gate:
    """The same question as an older version asks it."""
    desk, session = seat.desk, gate.opened.session
    assert session is not None
    opened = replace(gate.opened, session=replace(session, content="", key=""))
    made = desk.records.write_opened(opened, {}, Signature(NOBODY, desk.at))
    desk.records.objects.flush()
    seat.clone.git("update-ref", f"refs/hitl/open/{made.id}", made.tip)
    return made


def test_what_was_talked_elsewhere_is_bound_by_the_answer(ann: Seat, bob: Seat, server: Clone) -> None:
    """A person joins the session in another clone, which has no key: it goes along with their answer, and not before."""
    bob.clone.git("config", "gitgate.session", "push")
    bob.clone.git("config", "gitgate.publishWork", "true")
    gate = ann.ask()
    sync(bob.desk)
    gate = bob.now(gate)
    assert sessions.bring(bob.desk, gate).files == {}
    before = server.git("rev-parse", REF + gate.id)
    sessions.keep_session(bob.desk, gate, LATER)
    publish(bob.desk, gate, work=True)
    assert server.git("rev-parse", REF + gate.id) == before
    talked = Conversation("completed", 1, source="person", content=sessions.content_here(bob.desk, gate))
    desk = bob.desk
    answer = Answer(gate.id, {"answer": "yes"}, "answered", desk.now, gate.tip, "Bob <bob@example.org>")
    answered = desk.records.write_event(
        gate, "answered", replace(answer, session=talked), Signature(NOBODY, desk.at)
    )
    desk.records.objects.flush()
    bob.clone.git("update-ref", f"refs/hitl/open/{gate.id}", answered.tip)
    publish(bob.desk, bob.now(gate), work=True)
    assert server.git("rev-parse", REF + gate.id) == bob.clone.git("rev-parse", REF + gate.id)
    sync(ann.desk)
    ann.clone.git("update-ref", "-d", REF + gate.id)
    assert sessions.bring(ann.desk, ann.now(gate)).files == LATER.files


@pytest.mark.parametrize("when", ["before the answer", "after it"])
def test_a_remark_binds_only_before_the_answer(ann: Seat, when: str) -> None:
    """What a conversation proposed may name its content; a remark after the answer changes nothing of what was agreed to."""
    gate = ann.ask()
    if when == "after it":
        gate = ann.answer(gate, push=False)
    desk = ann.desk
    ann.clone.git("update-ref", REF + gate.id, planted(ann))
    content = sessions.content_here(desk, gate)
    held = Conversation("proposed", 1, confirmed=False, content=content)
    remark = Remark(desk.now, "Bob <bob@example.org>", "x", session=held)
    told = desk.records.write_event(gate, "commented", remark, Signature(NOBODY, desk.at))
    if when == "after it":
        with pytest.raises(BrokenRecord, match="changed by somebody else"):
            sessions.bring(desk, told)
    else:
        assert sessions.bring(desk, told).files == PLANTED.files


def test_what_was_erased_is_not_saved_again(ann: Seat, server: Clone, cli: Command) -> None:
    """An agent that ends its turn later leaves it erased."""
    gate = ann.ask()
    cli.quick("session", "drop", gate.id, cwd=ann.clone.path, code=0)
    sessions.keep_session(ann.desk, gate, LATER)
    assert REF + gate.id not in {**ann.clone.refs(), **server.refs()}


def test_without_a_place_for_the_secret(ann: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is asked all the same, and binds what is saved with it."""
    secret = ann.desk.repo.state_dir / "session.key"
    secret.parent.mkdir(exist_ok=True)
    secret.mkdir()
    session = ann.ask().opened.session
    assert session is not None
    assert (bool(session.content), session.key) == (True, "")


def test_the_same_again_is_no_new_one(ann: Seat) -> None:
    """An agent that ends turn after turn without a word adds nothing."""
    gate = ann.ask()
    assert saved_again(ann, gate) == saved_again(ann, gate)


def test_nobody_else_has_the_secret(ann: Seat) -> None:
    """It is for this account alone, and nothing that is pushed holds it."""
    ann.ask()
    secret = ann.desk.repo.state_dir / "session.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert len(secret.read_bytes()) == lease.SIZE
    assert secret.read_bytes().hex() not in ann.clone.git("log", "--all", "-p")
