"""A saved session is what the record names, or what whoever asked went on to save: on the server, and wherever it is resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gitgate import model
from gitgate.acts import sessions
from gitgate.cli.receive import forget_erased
from gitgate.context import session_proof
from gitgate.errors import BrokenRecord
from gitgate.exchange.syncing import publish, sync
from gitgate.model import lease
from gitgate.model.gate import Answer, Conversation, Gate, Remark, SavedSession
from gitgate.sharing import refusals
from gitgate.store.git.refs import Update
from gitgate.store.records import NOBODY, Signature
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

REF = "refs/hitl/sessions/"
FIRST = SavedSession("scripted", "session-1", "/home/ada/x", files={"transcript.jsonl": b"first\n"})
LATER = replace(FIRST, files={"transcript.jsonl": b"first\nlater\n"})
EVEN_LATER = replace(FIRST, files={"transcript.jsonl": b"first\nlater\nlast\n"})
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


ERASED = "refs/gitgate/+erased/"


def talked_in(seat: Seat, gate: Gate, saved: SavedSession) -> Gate:
    """Somebody talked about it in this clone, and the record names what was said; nothing of it is pushed yet."""
    desk = seat.desk
    sessions.keep_session(desk, gate, saved)
    held = Conversation("proposed", 1, confirmed=False, content=sessions.content_here(desk, gate))
    remark = Remark(desk.now, "Bob <bob@example.org>", "we talked", session=held)
    told = desk.records.write_event(seat.now(gate), "commented", remark, Signature(NOBODY, desk.at))
    desk.records.objects.flush()
    seat.clone.git("update-ref", f"refs/hitl/open/{gate.id}", told.tip)
    return told


def erased(seat: Seat, gate: Gate) -> None:
    seat.clone.git("push", "origin", f":{REF}{gate.id}")


COMES_BACK = "was erased: what was saved before that does not come back"


@pytest.mark.parametrize(
    "which",
    [
        pytest.param("the first", marks=pytest.mark.slow),
        pytest.param("the one before the last", marks=pytest.mark.slow),
        "the last",
        "its content alone",
    ],
)
def test_an_earlier_one_does_not_come_back_when_the_last_was_erased(
    ann: Seat, bob: Seat, server: Clone, which: str
) -> None:
    """Nor the last itself: what is erased stays erased, whoever erased it, and whoever pushes."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    middle, last = (saved_again(ann, gate, one) for one in (LATER, EVEN_LATER))
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    alone = bob.clone.git("commit-tree", f"{first}^{{tree}}", "-m", "a session")
    again = {
        "the first": first,
        "the one before the last": middle,
        "the last": last,
        "its content alone": alone,
    }[which]
    erased(ann, gate)
    for seat in (bob, ann) if again != alone else (bob,):
        assert COMES_BACK in pushed(seat, gate, again)
    assert REF + gate.id not in server.refs()
    # The record goes on all the same.
    ann.answer(gate)
    assert server.git("log", "-1", "--format=%s", f"refs/hitl/open/{gate.id}").startswith("answered")
    assert COMES_BACK in pushed(bob, gate, again)


def test_one_that_stands_on_the_erased_one_does_not_come_back(ann: Seat, bob: Seat, server: Clone) -> None:
    """Its first parents hold all that was to be gone."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    erased(bob, gate)
    later = saved_again(ann, gate)
    assert ann.clone.git("rev-parse", f"{later}^") == first
    assert REF + gate.id not in server.refs()
    assert COMES_BACK in pushed(ann, gate, later)


@pytest.mark.slow
def test_another_gates_session_takes_no_erased_ones_place(ann: Seat, bob: Seat, server: Clone) -> None:
    """It is no session of this gate, before and after."""
    gate, other = ann.ask(), ann.ask("And which then?")
    saved_again(ann, other)
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    unrelated = bob.clone.git("rev-parse", REF + other.id)
    assert "this is not the session of gate" in pushed(bob, gate, unrelated)
    erased(bob, gate)
    assert "this is not the session of gate" in pushed(bob, gate, unrelated)


@pytest.mark.slow
def test_what_was_talked_since_is_taken_where_an_event_names_it(ann: Seat, bob: Seat, server: Clone) -> None:
    """Only an event from after it was erased: one from before names what was to be gone."""
    gate = ann.ask()
    bob.clone.git("config", "gitgate.session", "push")
    bob.clone.git("config", "gitgate.publishWork", "true")
    sync(bob.desk)
    sessions.bring(bob.desk, bob.now(gate))
    talked_in(bob, bob.now(gate), LATER)
    publish(bob.desk, bob.now(gate), work=True)
    before = bob.clone.git("rev-parse", REF + gate.id)
    assert server.git("rev-parse", REF + gate.id) == before
    erased(bob, gate)
    bob.clone.git("update-ref", "-d", REF + gate.id)
    bob.clone.git("update-ref", "-d", f"refs/gitgate/origin/sessions/{gate.id}")
    assert COMES_BACK in pushed(bob, gate, before)
    talked_in(bob, bob.now(gate), EVEN_LATER)
    publish(bob.desk, bob.now(gate), work=True)
    assert server.git("rev-parse", REF + gate.id) == bob.clone.git("rev-parse", REF + gate.id)
    erased(bob, gate)
    assert COMES_BACK in pushed(bob, gate, before)


@pytest.mark.slow
def test_one_that_an_earlier_event_names_is_not_put_back(ann: Seat, bob: Seat, server: Clone) -> None:
    """Of two that people talked in, the one that the later event names is the later one; nor does the agent's own come back
    because somebody's event named it meanwhile.
    """
    gate = ann.ask()
    bob.clone.git("config", "gitgate.session", "push")
    bob.clone.git("config", "gitgate.publishWork", "true")
    first = ann.clone.git("rev-parse", REF + gate.id)
    sync(bob.desk)
    bob.clone.git("fetch", "-q", "origin", f"{REF}*:{REF}*")
    talked_in(bob, bob.now(gate), FIRST)
    publish(bob.desk, bob.now(gate), work=True)
    sync(ann.desk)
    saved_again(ann, gate)
    bob.clone.git("update-ref", "-d", REF + gate.id)
    sessions.bring(bob.desk, bob.now(gate))
    assert "was saved later is here already" in pushed(bob, gate, first)
    named = []
    for saved in (LATER, EVEN_LATER):
        talked_in(bob, bob.now(gate), saved)
        publish(bob.desk, bob.now(gate), work=True)
        named.append(server.git("rev-parse", REF + gate.id))
    assert "was saved later is here already" in pushed(bob, gate, named[0])
    assert server.git("rev-parse", REF + gate.id) == named[1]


@pytest.mark.slow
def test_it_cannot_be_forgotten_that_a_session_was_erased(ann: Seat, bob: Seat, server: Clone) -> None:
    """What the server noted is neither moved nor taken away by a push; nor by the deletion of what is not there any more."""
    gate = ann.ask()
    first, later = ann.clone.git("rev-parse", REF + gate.id), saved_again(ann, gate)
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    erased(ann, gate)
    assert server.refs()[ERASED + gate.id] == server.refs()[f"refs/hitl/open/{gate.id}"]
    for what in (f":{ERASED}{gate.id}", f"+refs/heads/main:{ERASED}{gate.id}"):
        with pytest.raises(GitError) as no:
            bob.clone.git("push", "origin", what)
        assert "pre-receive hook declined" in str(no.value)
    bob.clone.git("push", "origin", f":{REF}{gate.id}")  # git says that it deletes what is not there
    assert COMES_BACK in pushed(bob, gate, first)
    assert COMES_BACK in pushed(bob, gate, later)


def test_a_lie_about_what_was_there(ann: Seat, server: Clone) -> None:
    """Whoever pushes says what they take the session for: what is noted is looked up, and a ref stands once in a push."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    saved_again(ann, gate)
    ref = REF + gate.id
    with Seat(server) as there:
        assert refusals(there.desk, [Update(first, None, ref), Update(None, first, ref)]) == {
            "refs/hitl/": "a push names the same ref twice"
        }
        assert ERASED + gate.id not in server.refs()
        assert refusals(there.desk, [Update(first, None, ref)]) == {}
        assert server.refs()[ERASED + gate.id] == gate.tip
        assert COMES_BACK in refusals(there.desk, [Update(None, first, ref)])[ref]


def test_what_was_put_there_by_others_may_be_erased_and_saved_anew(
    ann: Seat, bob: Seat, server: Clone
) -> None:
    """On a server that had no hook then: `git gate session drop` is the way out, and who asked pushes the right one again."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    bob.clone.git("fetch", "-q", "origin", "refs/hitl/*:refs/hitl/*")
    forged = planted(bob)
    server.git("fetch", "-q", str(bob.clone.path), forged)
    server.git("update-ref", REF + gate.id, forged)
    erased(bob, gate)
    assert ERASED + gate.id not in server.refs()
    ann.clone.git("push", "origin", f"{first}:{REF}{gate.id}")
    assert server.git("rev-parse", REF + gate.id) == first


def test_what_cannot_be_noted_is_not_erased(ann: Seat, server: Clone) -> None:
    """Else it could be put back."""
    gate = ann.ask()
    (server.path / "refs/gitgate").mkdir(parents=True)
    (server.path / "refs/gitgate/+erased").write_text("in the way")
    with pytest.raises(GitError, match="that it was erased could not be noted"):
        erased(ann, gate)
    assert REF + gate.id in server.refs()


@pytest.mark.slow
def test_a_note_goes_with_its_gate(server: Clone, ann: Seat, cli: Command) -> None:
    """When the gate is archived nothing of it is left, and it is an ordinary push until then."""
    gate, other = ann.ask(), ann.ask("And which then?")
    for one in (gate, other):
        cli.quick("session", "drop", one.id, cwd=ann.clone.path, code=0)
    assert {ERASED + gate.id, ERASED + other.id} <= server.refs().keys()
    cli.quick("withdraw", gate.id, "--reason", "done", cwd=ann.clone.path, code=0)
    cli.quick("archive", cwd=ann.clone.path, code=0)
    with Seat(server) as there:
        forget_erased(there.desk)
    assert ERASED + gate.id not in server.refs()
    assert ERASED + other.id in server.refs()


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


def keys_used(seat: Seat, *tips: str) -> list[str]:
    """The key behind each signature of these chains: one that stands there twice would let others sign."""
    found = {}
    for oid, commit in (link for tip in tips for link in session_proof.chain(seat.desk, tip)):
        proof, following = session_proof.proof_in(commit.message)
        if proof:
            gate = (model.parse_trailers(commit.message) or {})["Gate"]
            text = session_proof.signed_text(gate, commit.parents[0], commit.tree, following)
            found[oid] = lease.signer(proof, text)
    return list(found.values())


def saved_here(seat: Seat, gate: Gate, saved: SavedSession) -> str:
    sessions.keep_session(seat.desk, seat.now(gate), saved)
    return seat.clone.git("rev-parse", REF + gate.id)


def test_a_key_signs_once_where_the_ref_was_put_back(ann: Seat) -> None:
    """What is saved then stands on what was signed last, so that the next key signs it."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    later = saved_here(ann, gate, LATER)
    ann.clone.git("update-ref", REF + gate.id, first)
    again = saved_here(ann, gate, EVEN_LATER)
    keys = keys_used(ann, later, again)
    assert (len(keys), len(set(keys))) == (2, 2)
    assert ann.clone.git("rev-parse", f"{again}^") == later
    assert sessions.bring(ann.desk, ann.now(gate)).files == EVEN_LATER.files


@pytest.mark.parametrize("how", ["alone", "with our next key", "on the question's session"])
def test_a_key_signs_once_where_somebody_elses_commit_is_shorter(ann: Seat, how: str) -> None:
    """The length of a chain that somebody else made names no key of ours: nothing is signed on it."""
    gate = ann.ask()
    first = ann.clone.git("rev-parse", REF + gate.id)
    chain = [first] + [
        saved_here(ann, gate, replace(FIRST, files={"transcript.jsonl": b"%d\n" % count}))
        for count in range(3)
    ]
    foreign = {
        "alone": lambda: planted(ann),
        "with our next key": lambda: planted(ann, planted(ann), like=chain[1]),
        "on the question's session": lambda: planted(ann, first, like=chain[1]),
    }[how]()
    ann.clone.git("update-ref", REF + gate.id, foreign)
    mine = saved_here(ann, gate, LATER)
    assert session_proof.proof_in(ann.desk.records.commit(mine).message) == (b"", "")
    keys = keys_used(ann, chain[-1])
    assert (len(keys), len(set(keys))) == (3, 3)


def test_a_key_signs_once_where_its_user_was_killed(ann: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted as used before it signs: whoever dies in between uses it up."""
    gate = ann.ask()

    def die(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lease, "sign", die)
        with pytest.raises(KeyboardInterrupt):
            sessions.keep_session(ann.desk, ann.now(gate), LATER)
    mine = saved_here(ann, gate, EVEN_LATER)
    assert session_proof.proof_in(ann.desk.records.commit(mine).message) == (b"", "")


def transcript(*uuids: str) -> SavedSession:
    lines = [
        f'{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":"hi"}}}}\n' for uuid in uuids
    ]
    return replace(FIRST, files={"transcript.jsonl": "".join(lines).encode()})


def test_a_session_from_elsewhere_is_judged_before_it_is_taken(ann: Seat, bare: Clone) -> None:
    """It seems to go on from ours, and nobody bound it: what is here stays, and is what is resumed."""
    gate = ann.ask()
    ours = saved_again(ann, gate, transcript("u1"))
    desk = ann.desk
    held = Conversation("proposed", 1, confirmed=False, content="0" * 32)
    remark = Remark(desk.now, "Bob <bob@example.org>", "x", session=held)
    told = desk.records.write_event(ann.now(gate), "commented", remark, Signature(NOBODY, desk.at))
    tree = sessions.tree_of(desk, transcript("u1", "u2"))
    forged = desk.records.write_commit(tree, (ours,), Signature(NOBODY, desk.at), "session of a gate\n")
    desk.records.objects.flush()
    bare.git("fetch", "-q", str(ann.clone.path), forged)
    bare.git("update-ref", REF + gate.id, forged)
    said: list[str] = []
    desk.progress = said.append
    assert sessions.latest_oid(desk, told) == ours
    assert ann.clone.git("rev-parse", REF + gate.id) == ours
    assert "was not saved by whoever asked" in said[0]
