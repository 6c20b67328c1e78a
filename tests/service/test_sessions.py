"""Saved sessions: kept with the gate, local unless wanted otherwise, encrypted if wanted, erasable."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyrage
import pytest

from gitgate.core.session import SavedSession
from gitgate.errors import BrokenRecord, Failure
from gitgate.service import sessions
from gitgate.service.recording import reload
from gitgate.service.syncing import sync
from resuming import Seat
from testbed.command import Command
from testbed.repositories import Clone

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
    oid = sessions.write(seat.desk, gate, saved)
    seat.clone.git("update-ref", REF + gate, oid)
    return oid


def test_a_session_comes_back_as_it_was(alone: Seat) -> None:
    """Its id, its places, every file byte for byte, and what was left out."""
    gate = alone.ask()
    keep(alone, gate.id)
    assert sessions.load(alone.desk, gate.id) == SAVED


def test_names_that_are_not_utf8(alone: Seat) -> None:
    """A folder may be called anything: it comes back as it was, and the document stays one."""
    odd = os.fsdecode(b'/home/ada/caf\xe9 "x"\\n')
    files = {os.fsdecode(b"caf\xe9/\xff.txt"): b"x"}
    saved = replace(
        SAVED, files=files, directory=odd, place=f"{odd}/.claude", left_out=((odd, f"no such file: {odd}"),)
    )
    gate = alone.ask()
    keep(alone, gate.id, saved)
    assert sessions.load(alone.desk, gate.id) == saved


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


def test_another_session_is_refused(alone: Seat) -> None:
    """A session under the gate's name that is not the one that asked is not taken up."""
    gate = alone.ask()
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
            assert sessions.load(alone.desk, gate.id) == SAVED
        else:
            with pytest.raises(Failure, match="cannot be opened"):
                sessions.load(alone.desk, gate.id)


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


def test_off_keeps_no_conversation(alone: Seat) -> None:
    """Only that there is one is known, and which: enough to go on on this machine."""
    alone.clone.git("config", "gitgate.session", "off")
    gate = alone.ask()
    found = sessions.load(alone.desk, gate.id)
    assert found is not None
    assert (found.id, found.files) == ("session-1", {})
