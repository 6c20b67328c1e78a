"""Saved sessions: kept with the gate, local unless wanted otherwise, encrypted if wanted, erasable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyrage
import pytest

from gitgate.acts import sessions
from gitgate.acts.asking import ask
from gitgate.context import presence_file
from gitgate.errors import BrokenRecord, Failure, MissingExtra, UnknownGate
from gitgate.exchange.syncing import sync
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question, SavedSession, SessionRef
from gitgate.questions.drafts import Draft
from support import PATIENCE
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

SAVED = SavedSession(
    "claude",
    "session-1",
    "/home/ada/x",
    "/home/ada/.claude/x",
    {"transcript.jsonl": b"{}\n", "a/b.txt": b"\x00\xff"},
    (("big", "too large"),),
)
REF = "refs/hitl/sessions/"


def keep(seat: Seat, gate: str, saved: SavedSession = SAVED) -> str:
    oid = sessions.write(seat.desk, gate, saved.agent, sessions.tree_of(seat.desk, saved))
    seat.clone.git("update-ref", REF + gate, oid)
    return oid


def test_a_session_comes_back_as_it_was(alone: Seat) -> None:
    """Its id, its places, every file byte for byte, and what was left out."""
    gate = alone.ask()
    keep(alone, gate.id)
    assert sessions.load_session(alone.desk, gate.id) == SAVED


def test_names_that_are_not_utf8(alone: Seat) -> None:
    """A folder may be called anything: it comes back as it was, and the document stays one."""
    odd = os.fsdecode(b'/home/ada/caf\xe9 "x"\\n')
    files = {os.fsdecode(b"caf\xe9/\xff.txt"): b"x"}
    saved = replace(
        SAVED, files=files, directory=odd, place=f"{odd}/.claude", left_out=((odd, f"no such file: {odd}"),)
    )
    gate = alone.ask()
    keep(alone, gate.id, saved)
    assert sessions.load_session(alone.desk, gate.id) == saved


def test_a_session_is_saved_in_a_folder_that_is_not_utf8(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Asking works there, and so does taking the conversation up again."""
    here = tmp_path / os.fsdecode(b"caf\xe9")
    repo.path.rename(here)
    gate = cli("ask", "Which?", "--session", "11111111-2222-3333-4444-555555555555", cwd=here, code=0).line
    with Seat(Clone(here)) as seat:
        saved = sessions.bring(seat.desk, reload(seat.desk, gate))
    assert (saved.id, saved.directory) == ("11111111-2222-3333-4444-555555555555", str(here))


def test_it_stays_here_unless_wanted_otherwise(ann: Seat, bare: Clone) -> None:
    """The question is pushed; the conversation is not."""
    gate = ann.ask()
    assert REF + gate.id in ann.clone.refs()
    assert REF + gate.id not in bare.refs()


def test_it_travels_when_wanted(ann: Seat, bob: Seat, cli: Command) -> None:
    """With `gitgate.session` push, another clone takes it up; the digest in the record says that it is the one."""
    ann.clone.git("config", "gitgate.session", "push")
    ann.clone.git("config", "gitgate.publishWork", "true")
    gate = ann.ask()
    sync(bob.desk)
    assert sessions.bring(bob.desk, bob.now(gate)).id == "session-1"


def test_it_is_found_nowhere(ann: Seat, bob: Seat) -> None:
    """One that stayed where it was is said to have stayed, with what to do."""
    gate = ann.ask()
    sync(bob.desk)
    with pytest.raises(Failure, match="it stayed where scripted asked"):
        sessions.bring(bob.desk, bob.now(gate))


def unbound(gate: Gate) -> Gate:
    """The gate as an older version asked it, whose record names no content."""
    session = gate.opened.session
    assert session is not None
    return replace(gate, opened=replace(gate.opened, session=replace(session, content="", key="")))


def test_another_session_is_refused(alone: Seat) -> None:
    """A session under the gate's name that is not the one that asked is not taken up."""
    gate = unbound(alone.ask())
    keep(alone, gate.id, replace(SAVED, id="session-2"))
    with pytest.raises(BrokenRecord, match="not the one that asked"):
        sessions.bring(alone.desk, gate)


def test_encrypted_only_a_recipient_reads_it(alone: Seat, home: object) -> None:
    """Nothing of it stands in the repository: neither its text nor its id nor its paths."""
    key, other = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
    alone.clone.git("config", "gitgate.sessionRecipients", str(key.to_public()))
    gate = alone.ask()
    oid = keep(alone, gate.id)
    assert alone.clone.git("ls-tree", "-r", "--name-only", oid).split() == ["session.age", "session.yaml"]
    assert "session-1" not in alone.clone.git("show", f"{oid}:session.yaml")
    for identity, good in ((other, False), (key, True)):
        alone.clone.write("key", str(identity))
        alone.clone.git("config", "gitgate.sessionIdentity", str(alone.clone.path / "key"))
        if good:
            assert sessions.load_session(alone.desk, gate.id) == SAVED
        else:
            with pytest.raises(Failure, match="cannot be opened"):
                sessions.load_session(alone.desk, gate.id)


@pytest.fixture
def dropped(ann: Seat, cli: Command) -> str:
    ann.clone.git("config", "gitgate.session", "push")
    ann.clone.git("config", "gitgate.publishWork", "true")
    gate = ann.ask()
    said = cli.quick("session", "drop", gate.id[:6], cwd=ann.clone.path, code=0)
    assert "copies in other clones remain" in said.err
    return gate.id


def test_it_is_erased_here_and_there(
    dropped: str, ann: Seat, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """The ref is gone on both sides, the record is whole, and erasing it again says that there is none."""
    assert REF + dropped not in ann.clone.refs()
    assert REF + dropped not in bare.refs()
    assert cli.quick("show", dropped, "--json", cwd=ann.clone.path, code=0).json["state"] == "awaiting"
    cli.quick("session", "drop", dropped, cwd=ann.clone.path, code=1)


def saved_by(cli: Command, seat: Seat, gate: str) -> tuple[bool, bool, str]:
    """As `show`, the list and `status` have it."""
    shown = cli.quick("show", gate, "--json", cwd=seat.clone.path, code=0).json["session"]["saved"]
    (listed,) = (
        one["session"]["saved"]
        for one in cli.quick("list", "--all", "--json", cwd=seat.clone.path, code=0).json["gates"]
        if one["id"] == gate
    )
    lines = cli.quick("status", gate, cwd=seat.clone.path, code=0).out.splitlines()
    return shown, listed, next(line for line in lines if line.startswith("session: "))


def test_whether_it_is_saved_is_told_as_it_is_now(ann: Seat, cli: Command) -> None:
    """Saved with the question, erased: each time what is so then. What was erased is not saved again at the end of a turn."""
    gate = ann.ask()
    assert saved_by(cli, ann, gate.id) == (True, True, "session: claude session-1, saved")
    cli.quick("session", "drop", gate.id, cwd=ann.clone.path, code=0)
    assert saved_by(cli, ann, gate.id) == (False, False, "session: claude session-1, not saved")
    sessions.keep_session(ann.desk, gate, SAVED)
    assert saved_by(cli, ann, gate.id)[:2] == (False, False)


def test_one_that_was_erased_elsewhere_is_not_said_to_be_saved(dropped: str, bob: Seat, cli: Command) -> None:
    """Whoever erases a session that somebody else asked with knows afterwards that it is gone."""
    cli.quick("sync", cwd=bob.clone.path, code=0)
    assert saved_by(cli, bob, dropped)[0] is False


def test_off_is_not_said_to_be_saved(alone: Seat, cli: Command) -> None:
    """Only its id is known."""
    alone.clone.git("config", "gitgate.session", "off")
    assert saved_by(cli, alone, alone.ask().id)[:2] == (False, False)


def test_off_keeps_no_conversation(alone: Seat) -> None:
    """Only that there is one is known, and which: enough to go on on this machine."""
    alone.clone.git("config", "gitgate.session", "off")
    gate = alone.ask()
    found = sessions.load_session(alone.desk, gate.id)
    assert found is not None
    assert (found.id, found.files) == ("session-1", {})


def test_a_conversation_that_cannot_be_read(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept by its id alone, which says what is missing and why: the question is not lost for it."""
    gate = alone.ask()
    monkeypatch.delenv("HOME")
    saved = sessions.save(alone.desk, gate, SessionRef("claude", "session-1", "/home/ada/x"))
    assert (saved.id, saved.files) == ("session-1", {})
    assert saved.left_out[0][0] == "the conversation"


def test_a_question_of_nobody_in_particular(alone: Seat) -> None:
    """One that was asked without a session has none to bring."""
    gate = ask(alone.desk, Draft((Question("answer", "Which?", "text"),), agent="plain")).gate
    with pytest.raises(Failure, match="asked without a session"):
        sessions.bring(alone.desk, gate)


def test_what_this_machine_remembers_is_enough_to_go_on(alone: Seat) -> None:
    """Without the saved files the program may still have the conversation, under the id that was noted here."""
    gate = alone.ask()
    alone.clone.git("update-ref", "-d", REF + gate.id)
    found = sessions.bring(alone.desk, gate)
    assert (found.id, found.files, found.directory) == ("session-1", {}, str(alone.clone.path))
    presence_file(alone.desk).unlink()
    with pytest.raises(Failure, match="is not here"):
        sessions.bring(alone.desk, gate)


def tree_of(clone: Clone, *entries: str) -> str:
    return clone.git("mktree", input="".join(f"{entry}\n" for entry in entries))


@pytest.mark.parametrize(
    ("document", "words"), [(None, "has no session.yaml"), ("encrypted: age\n", "has no session.age")]
)
def test_a_commit_that_is_no_session(alone: Seat, document: str | None, words: str) -> None:
    """Whoever pushed it: it is named, and nothing is taken from it."""
    gate, clone = alone.ask(), alone.clone
    entries = []
    if document is not None:
        entries.append(
            f"100644 blob {clone.git('hash-object', '-w', '--stdin', input=document)}\tsession.yaml"
        )
    clone.git("update-ref", REF + gate.id, clone.git("commit-tree", tree_of(clone, *entries), "-m", "x"))
    with pytest.raises(BrokenRecord, match=words):
        sessions.load_session(alone.desk, gate.id)


def nested(clone: Clone, folders: int) -> str:
    """A tree that holds a link, a file, and so many folders in one another with a file in the last."""
    text = clone.git("hash-object", "-w", "--stdin", input="x")
    tree = tree_of(clone, f"100644 blob {text}\tlast")
    for _ in range(folders):
        tree = tree_of(clone, f"040000 tree {tree}\td")
    return tree_of(
        clone, f"120000 blob {text}\tlink", f"100644 blob {text}\tfile", f"040000 tree {tree}\tdeep"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("folders", "seen"), [(1, True), (12, False)])
def test_links_and_endless_folders_stay_out(alone: Seat, folders: int, *, seen: bool) -> None:
    """A link could lead anywhere, and no conversation is that deep."""
    gate, clone = alone.ask(), alone.clone
    document = clone.git("hash-object", "-w", "--stdin", input="hitl: 1\nagent: claude\nid: session-1\n")
    tree = tree_of(
        clone, f"100644 blob {document}\tsession.yaml", f"040000 tree {nested(clone, folders)}\tfiles"
    )
    clone.git("update-ref", REF + gate.id, clone.git("commit-tree", tree, "-m", "x"))
    found = sessions.load_session(alone.desk, gate.id)
    assert found is not None
    assert sorted(found.files) == (["deep/d/last", "file"] if seen else ["file"])


def test_one_that_would_fill_the_memory(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused while it is read, and the limit is said."""
    gate = alone.ask()
    keep(alone, gate.id, replace(SAVED, files={"transcript.jsonl": b"x" * 2001}))
    monkeypatch.setattr(sessions, "MOST_BYTES", 2000)
    with pytest.raises(BrokenRecord, match="is larger than"):
        sessions.load_session(alone.desk, gate.id)


def write_sealed(seat: Seat, recipients: str) -> str:
    seat.clone.git("config", "gitgate.sessionRecipients", recipients)
    return sessions.write(seat.desk, "2222222222", SAVED.agent, sessions.tree_of(seat.desk, SAVED))


@pytest.mark.needs("ssh-keygen")
def test_an_ssh_key_opens_what_was_encrypted_to_it(alone: Seat, home: Path) -> None:
    """The keys that people have already will do, with their comments, beside others, and named from their home."""
    place = home / ".ssh/id_ed25519"
    place.parent.mkdir()
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada's key", "-f", str(place)]
    subprocess.run(make, check=True, timeout=PATIENCE)
    public = place.with_suffix(".pub").read_text().replace("ada's key", "ada@laptop")
    other = pyrage.x25519.Identity.generate().to_public()
    oid = write_sealed(alone, f"{other}, {public} {other}")
    alone.clone.git("config", "gitgate.sessionIdentity", "~/.ssh/id_ed25519")
    assert sessions.read_session(alone.desk, oid) == SAVED


def test_an_encrypted_session_and_no_key(alone: Seat) -> None:
    """What to set is said."""
    oid = write_sealed(alone, str(pyrage.x25519.Identity.generate().to_public()))
    with pytest.raises(Failure, match="no key is set") as refused:
        sessions.read_session(alone.desk, oid)
    assert refused.value.hint.startswith("git config gitgate.sessionIdentity")


def test_a_recipient_that_is_no_key(alone: Seat) -> None:
    """Nothing is saved in the clear for it."""
    with pytest.raises(Failure, match="what is no key"):
        write_sealed(alone, "age1nonsense")


def test_encryption_without_the_extra(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said how to get it; nothing is saved in the clear instead."""
    monkeypatch.setitem(sys.modules, "pyrage", None)
    with pytest.raises(MissingExtra) as absent:
        write_sealed(alone, "age1abc")
    assert "git-gate[age]" in absent.value.hint


@pytest.mark.parametrize("plain", [b"[]", b'{"files": {}}', b'{"files": {"a": "\xc3\xa9"}, "left_out": []}'])
def test_what_was_encrypted_is_judged_too(alone: Seat, plain: bytes) -> None:
    """Anybody can encrypt anything to a public key."""
    key = pyrage.x25519.Identity.generate()
    place = alone.clone.write("key", f"# mine\n{key}\n")
    alone.clone.git("config", "gitgate.sessionIdentity", str(place))
    with pytest.raises(BrokenRecord, match="no session"):
        sessions.unseal(alone.desk, pyrage.encrypt(plain, [key.to_public()]))


# erasing


@pytest.mark.slow
@pytest.mark.parametrize("name", ["abc", "2222222222"])
def test_nothing_to_erase(ann: Seat, name: str) -> None:
    """Half a name might mean another gate's, and a gate without a session has none to lose."""
    with pytest.raises(UnknownGate):
        sessions.drop(ann.desk, name)


def test_erased_in_a_repository_of_ones_own(alone: Seat) -> None:
    """There is no other place to erase it in."""
    gate = alone.ask()
    assert sessions.drop(alone.desk, gate.id) == sessions.Dropped(gate.id, here=True)
    assert REF + gate.id not in alone.clone.refs()


@pytest.mark.slow
def test_erased_by_somebody_who_never_had_it(ann: Seat, bob: Seat, bare: Clone) -> None:
    """It is enough that the shared repository has it."""
    gate = ann.ask()
    ann.clone.git("push", "-q", "origin", REF + gate.id)
    assert sessions.drop(bob.desk, gate.id) == sessions.Dropped(
        gate.id, here=False, remote="origin", there=True
    )
    assert REF + gate.id not in bare.refs()


@pytest.mark.slow
def test_a_server_that_keeps_it(ann: Seat, bare: Clone) -> None:
    """Ours stays as well, so that the same command can be given again; nobody believes it gone."""
    gate = ann.ask()
    ann.clone.git("push", "-q", "origin", REF + gate.id)
    bare.write("hooks/update", "#!/bin/sh\necho 'nothing is deleted here' >&2\nexit 1\n", executable=True)
    with pytest.raises(Failure, match=r"did not erase the session.*nothing is deleted here"):
        sessions.drop(ann.desk, gate.id)
    assert REF + gate.id in ann.clone.refs()
