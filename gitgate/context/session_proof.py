"""Context: whose a saved session is. What was saved with the question is bound by the record; what is saved later is signed.

The record holds a digest of the content, and a public key of whoever asked. A session that is saved anew stands on
the one before it, is signed with that key, and names the next one. Only the clone that asked has the secret. What a
person talked with the agent, and kept, is bound by the event that they recorded at the end.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from .. import model
from ..errors import BrokenRecord
from ..model import lease
from ..model.gate import Answer, Gate, Remark, Session
from ..store import locked, private_folder, read_local, write_private
from ..store.git.canonical import Commit
from ..store.records import Signature
from ..text.digests import sha256
from . import Desk

MOST_SAVED = 10_000
KEY = re.compile(r"[0-9a-f]{64}")
DECIDED = frozenset(("answered", "amended", "defaulted", "expired"))


def content_of(salt: str, tree: str) -> str:
    """Return the digest of a session's content for the record. It is salted like the session's id, so that it
    discloses nothing of what was said.
    """
    return sha256(f"{salt}:content:{tree}".encode()).hexdigest()[:32]


# the secret of this clone


def seed_of(desk: Desk, salt: str, *, make: bool = False) -> bytes:
    """The secret behind the keys of one gate; empty where this clone has none."""
    place = desk.repo.state_dir / "session.key"
    try:
        secret = read_secret(place) or (make_secret(place) if make else b"")
    except OSError:
        return b""
    return sha256(secret + salt.encode()).digest() if secret else b""


def read_secret(place: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        found = read_local(place)
        return found if len(found) == lease.SIZE else b""
    return b""


def make_secret(place: Path) -> bytes:
    """The secret, written whole by whoever comes first: two that ask at once have the same one."""
    private_folder(place.parent)
    own = place.with_name(f"{place.name}.{os.getpid()}")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(os.urandom(lease.SIZE))
    try:
        os.link(own, place)
    except FileExistsError:
        if not read_secret(place):
            own.replace(place)
    finally:
        own.unlink(missing_ok=True)
    return read_secret(place)


def first_key(desk: Desk, salt: str) -> str:
    """The key that the record names for what is saved after the question; none where no secret can be kept."""
    seed = seed_of(desk, salt, make=True)
    return lease.public_key(seed, 1) if seed else ""


# what is signed


def signed_text(gate: str, parent: str, tree: str, following: str) -> bytes:
    """The parent binds all that was saved before."""
    return f"gitgate session\n{gate}\n{parent}\n{tree}\n{following}\n".encode()


def message_of(gate: str, agent: str, proof: str = "", following: str = "") -> str:
    """The message of a session's commit; its signature stands between the subject and what lists read."""
    said = model.trailer_message(
        f"session of gate {gate}", [("Gate", gate), ("Agent", agent), ("Next", following)]
    )
    subject, _, rest = said.partition("\n\n")
    return f"{subject}\n\n{proof}\n\n{rest}" if proof else said


def save_on_top(desk: Desk, gate: Gate, parent: str, tree: str, agent: str, by: Signature) -> str | None:
    """Write the commit of what this clone saves anew on `parent`, signed; None where it holds no key for that.

    A key signs once: two texts signed with one would let others sign more. So what is signed stands on the last commit that
    was, also where the ref was put back meanwhile, or never came to name it; and on a chain of our own alone.
    """
    session = gate.opened.session
    seed = seed_of(desk, session.salt) if session is not None and session.key else b""
    if session is None or not seed:
        return None
    place = note_of_keys(desk, session)
    with locked(place.with_name("lock"), wait=True):
        used, last = read_note(place)
        try:
            before = chain(desk, last if last and is_in_chain(desk, last, parent) else parent)
            ours = not against_chain(gate, session, before)
        except BrokenRecord:
            return None
        number, top = len(before), before[0]
        expected = proof_in(top[1].message)[1] if number > 1 else session.key
        if not ours or number <= used or lease.public_key(seed, number) != expected:
            return None  # Another clone asked, or somebody else saved it, or it goes on from where we went on before.
        write_private(place, f"{number}\n".encode())
        following = lease.public_key(seed, number + 1)
        signature = lease.sign(seed, number, signed_text(gate.id, top[0], tree, following))
        message = message_of(
            gate.id, agent, "\n".join(wrap(base64.b64encode(signature).decode(), 76)), following
        )
        new = desk.records.write_commit(tree, (top[0],), by, message)
        write_private(place, f"{number} {new}\n".encode())
        return new


def note_of_keys(desk: Desk, session: Session) -> Path:
    """The file that tells how many keys of a gate's session this clone has used, and the commit that it signed last."""
    name = sha256(session.salt.encode()).hexdigest()[:20]
    return private_folder(desk.repo.state_dir / "session-keys") / name


def read_note(place: Path) -> tuple[int, str]:
    """Return the number of the last key that was used, and the commit that it signed, as far as that was noted."""
    try:
        said = re.fullmatch(r"([0-9]{1,9})(?: ([0-9a-f]{40,64}))?\n", place.read_text("ascii"))
    except (OSError, ValueError):
        return 0, ""
    return (int(said[1]), said[2] or "") if said else (MOST_SAVED, "")


def is_in_chain(desk: Desk, oid: str, sought: str) -> bool:
    """Return whether `sought` is `oid` or one of the commits below it."""
    try:
        return any(at == sought for at, _ in chain(desk, oid))
    except BrokenRecord:
        return False


# what is believed


def chain(desk: Desk, oid: str) -> list[tuple[str, Commit]]:
    """The commits of a session along first parents, newest first."""
    found: list[tuple[str, Commit]] = []
    at: str | None = oid
    while at is not None:
        if len(found) >= MOST_SAVED:
            raise BrokenRecord(f"session {oid[:12]} was saved more often than anybody saves one")
        commit = desk.records.commit(at)
        found.append((at, commit))
        at = next(iter(commit.parents), None)
    return found


def against_session(desk: Desk, gate: Gate, oid: str) -> str:
    """Return the reason against this commit as the session of a gate; empty where there is none, or nobody can tell.

    A gate that an older version asked binds no content, so nothing is said of its session.
    """
    session = gate.opened.session
    if session is None:
        # The conversation about such a question begins with the first person who joins it: nothing names it beforehand.
        decided_in_one = any(question.type == "session" for question in gate.opened.questions)
        return "" if decided_in_one else "the gate was asked without a session"
    if not session.content:
        return ""
    saved = chain(desk, oid)
    if content_of(session.salt, saved[0][1].tree) in bound(gate):
        return ""
    return against_chain(gate, session, saved)


def against_chain(gate: Gate, session: Session, saved: list[tuple[str, Commit]]) -> str:
    root = saved[-1][1]
    if content_of(session.salt, root.tree) != session.content:
        return "its content is not what the record of the gate names"
    key, parent = session.key, saved[-1][0]
    for oid, commit in reversed(saved[:-1]):
        proof, following = proof_in(commit.message)
        text = signed_text(gate.id, parent, commit.tree, following)
        if not key or len(commit.parents) != 1 or lease.signer(proof, text) != key:
            return f"commit {oid[:12]} was not saved by whoever asked"
        key, parent = following, oid
    return ""


def proof_in(message: str) -> tuple[bytes, str]:
    """The signature and the next key; empty where a message has none."""
    parts = message.rstrip("\n").split("\n\n")
    following = (model.parse_trailers(message) or {}).get("Next", "")
    if len(parts) != 3 or not KEY.fullmatch(following):
        return b"", ""
    try:
        return base64.b64decode(parts[1].replace("\n", ""), validate=True), following
    except binascii.Error:
        return b"", ""


def bound(gate: Gate, after: str = "") -> dict[str, int]:
    """The contents that events name: of conversations with people, up to the answer that counts and with it. Each with the
    place in the record of the last event that names it; with `after` only what is named after that commit.
    """
    commits = [entry.commit for entry in gate.history]
    start = commits.index(after) + 1 if after in commits else 0
    return {content: place for place, content in contents(gate) if content and place >= start}


def contents(gate: Gate) -> Iterator[tuple[int, str]]:
    decided = False
    for place, entry in enumerate(gate.history):
        event = entry.event
        if isinstance(event, Answer) and entry.name in ("answered", "amended", "voted") and event.session:
            yield place, event.session.content
        if isinstance(event, Remark) and entry.name == "commented" and event.session and not decided:
            yield place, event.session.content
        decided = decided or entry.name in DECIDED


def is_proven(desk: Desk, gate: Gate, oid: str) -> bool:
    """Return whether the commit is surely the session of a gate that binds its session's content."""
    session = gate.opened.session
    return session is not None and bool(session.content) and not against_session(desk, gate, oid)


def is_older(desk: Desk, gate: Gate, new: str, old: str) -> bool:
    """Return whether the proven session `old` must not be replaced with `new`: `old` continues `new`, a later event
    names `old`, or no event names `new` and `new` does not continue `old`.
    """
    session = gate.opened.session
    if session is None or not is_proven(desk, gate, old):
        return False
    saved, there, named = chain(desk, new), chain(desk, old), bound(gate)
    place = named.get(content_of(session.salt, saved[0][1].tree))
    if place is None:
        return all(oid != old for oid, _ in saved)
    later = named.get(content_of(session.salt, there[0][1].tree), -1) > place
    return later or any(commit.tree == saved[0][1].tree for _, commit in there[1:])


def is_from_before(desk: Desk, gate: Gate, new: str, erased: str) -> bool:
    """Return whether the session was saved before it was erased, when the record ended with the commit `erased`. Only
    an event after that can name what was said since.
    """
    session = gate.opened.session
    if session is None:
        return False
    return content_of(session.salt, desk.records.commit(new).tree) not in bound(gate, erased)
