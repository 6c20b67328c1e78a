"""Acts: the agent's conversation, saved with its gate, brought to where it is resumed, and erased.

`refs/hitl/sessions/<id>` is one commit: `session.yaml` and the files. It stays in this clone unless `gitgate.session` says
push, and can be encrypted to the people and machines that may read it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ..agents.agent import NONE
from ..context import Desk, machine
from ..context.targets import remote_of
from ..document import Field, codec, dataclass, replace
from ..errors import BrokenRecord, Failure, GateError, MissingExtra, UnknownGate
from ..exchange.syncing import push_moves
from ..gates.agency import adapter, stayed
from ..model import is_id
from ..model.gate import Answer, Conversation, Gate, Remark, SavedSession, SessionRef
from ..store import private_folder
from ..store.git.canonical import FOLDER, REGULAR
from ..store.git.refs import SESSIONS
from ..store.records import NOBODY, Signature
from ..store.remote import RefMove
from ..store.work import path_of, printable
from ..text.digests import sha256

DOCUMENT, SEALED, FILES = "session.yaml", "session.age", "files"
PLAIN = ("agent", "id", "directory", "place")
MOST_BYTES = 64_000_000


def collect(desk: Desk, ref: SessionRef) -> SavedSession:
    """The conversation as it is kept; one that cannot be read is kept by its id alone, and says why."""
    if desk.settings.text("session") == "off":
        return SavedSession(ref.agent, ref.id, ref.directory)
    try:
        saved = adapter(ref.agent).collect(ref, desk.settings.env)
    except (GateError, OSError) as unread:
        return SavedSession(ref.agent, ref.id, ref.directory, left_out=(("the conversation", str(unread)),))
    return replace(saved, agent=ref.agent)


def tree_of(desk: Desk, saved: SavedSession) -> str:
    """Write the tree of a saved session as it is sent, encrypted where recipients are set, and return its id."""
    recipients = recipients_in(desk.settings.text("sessionRecipients"))
    about = {"hitl": 1, "agent": saved.agent}
    if recipients:
        files = {
            DOCUMENT: codec.dump_document({**about, "encrypted": "age"}),
            SEALED: seal(saved, recipients),
        }
    else:
        left_out = [{"path": quoted_place(path), "reason": quoted_place(why)} for path, why in saved.left_out]
        places = {"directory": quoted_place(saved.directory), "place": quoted_place(saved.place)}
        about |= {"id": saved.id, **places, "left_out": left_out}
        files = {DOCUMENT: codec.dump_document({name: value for name, value in about.items() if value})}
        files |= {f"{FILES}/{name}": content for name, content in saved.files.items()}
    return desk.records.write_files(files)


def write(desk: Desk, gate: str, agent: str, tree: str) -> str:
    """The commit of a session's content, as it is saved with the question."""
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    from ..context.session_proof import message_of

    return desk.records.write_commit(tree, (), by, message_of(gate, agent))


def quoted_place(place: str) -> str:
    """A place as a document can hold it: as git quotes it where it is not UTF-8."""
    return printable(os.fsencode(place)) if place else ""


def save(desk: Desk, gate: Gate, ref: SessionRef) -> SavedSession:
    """Save the conversation of a gate anew: it may have gone on after the question was asked."""
    saved = collect(desk, ref)
    keep_session(desk, gate, saved)
    return saved


def keep_session(desk: Desk, gate: Gate, saved: SavedSession) -> None:
    """Make this the gate's session: signed where this clone asked, and on top of what the clone saved before."""
    ref, tree = SESSIONS + gate.id, tree_of(desk, saved)
    old = desk.refs.get(ref)
    if old is not None and desk.records.commit(old).tree == tree:
        return
    if old is None and is_bound(gate) and machine.find_presence(desk, gate.id) is not None:
        return  # It was erased, and the next key with it.
    from ..context.session_proof import save_on_top

    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    new = save_on_top(desk, gate, old, tree, saved.agent, by) if old is not None else None
    if new is None:
        new = write(desk, gate.id, saved.agent, tree)
    desk.refs.update([RefMove(ref, new, old)])
    dropped_mark(desk, gate.id).unlink(missing_ok=True)


def is_bound(gate: Gate) -> bool:
    return gate.opened.session is not None and bool(gate.opened.session.content)


def content_here(desk: Desk, gate: Gate) -> str:
    """The digest of the session as this clone has it, for the event that a conversation ends in."""
    session, oid = gate.opened.session, desk.refs.get(SESSIONS + gate.id)
    if session is None or oid is None:
        return ""
    from ..context.session_proof import content_of

    return content_of(session.salt, desk.records.commit(oid).tree)


def saved(desk: Desk, gates: Iterable[Gate]) -> frozenset[str]:
    """The gates whose session is saved now, as far as this clone knows: it may be saved after the question, or erased."""
    here, kept = desk.refs.under(SESSIONS), desk.settings.text("session") != "off"
    found = set()
    for gate in gates:
        named = gate.opened.session is not None and gate.opened.session.saved
        if (kept or named) if SESSIONS + gate.id in here else (named and not is_gone(desk, gate.id)):
            found.add(gate.id)
    return frozenset(found)


class SessionFacts(TypedDict):
    """Facts of a gate's conversation that its record does not contain, as `render.shapes.gate` takes them. A program
    that is simply started again has none: no id, and nothing saved.
    """

    session_id: str | None
    saved: bool


def session_facts(desk: Desk, gates: Sequence[Gate]) -> dict[str, SessionFacts]:
    """Return by gate the conversation's id, which is known where it was asked from here, and whether it is saved now."""
    kept = saved(desk, gates)
    if len(gates) == 1:
        found = [machine.find_presence(desk, gates[0].id)] if gates[0].opened.session is not None else []
    else:
        found = [*machine.everyone_here(desk)] if any(gate.opened.session for gate in gates) else []
    ids = {one.gate: one.session for one in found if one is not None}
    facts: dict[str, SessionFacts] = {}
    for gate in gates:
        known = ids.get(gate.id, "")
        none = gate.id in kept and holds_none(desk, gate, known)
        named = known if not known.startswith(NONE) else ""
        facts[gate.id] = {"session_id": named or None, "saved": gate.id in kept and not none}
    return facts


def holds_none(desk: Desk, gate: Gate, known: str) -> bool:
    """Return whether the session kept for the gate is no conversation, but only says how its program is started again.
    `known` is the conversation's id, if any.
    """
    session, oid = gate.opened.session, desk.refs.get(SESSIONS + gate.id)
    if session is None or session.saved or oid is None or (known and not known.startswith(NONE)):
        return False
    try:
        kept = read_session(desk, oid)
    except GateError:  # it may be encrypted to others
        return known.startswith(NONE)
    return kept.id.startswith(NONE) and not kept.files


def is_gone(desk: Desk, gate: str) -> bool:
    """Return whether a session that is not here is known to exist nowhere: it was erased here, or asked here and not
    kept.
    """
    return dropped_mark(desk, gate).exists() or machine.find_presence(desk, gate) is not None


def dropped_mark(desk: Desk, gate: str) -> Path:
    return desk.repo.state_dir / "dropped" / gate


def bring(desk: Desk, gate: Gate) -> SavedSession:
    """The session that the gate's record names, from here or from the remote; any other one is refused."""
    session = gate.opened.session
    if session is None:
        raise Failure(f"gate {gate.id} was asked without a session", hint=f"git gate check {gate.id}")
    here = machine.find_presence(desk, gate.id)
    oid = latest_oid(desk, gate)
    from ..context.session_proof import against_session

    wrong = against_session(desk, gate, oid) if oid is not None else ""
    if wrong:
        raise BrokenRecord(
            f"the saved session was changed by somebody else: {wrong}",
            hint=f"erase it: git gate session drop {gate.id[:6]}   the answer is still there: git gate check {gate.id[:6]}",
            about=f"gate {gate.id}",
        )
    saved = read_session(desk, oid) if oid is not None else None
    if saved is None and here is not None and here.session:
        saved = SavedSession(session.agent, here.session, here.directory)
    if saved is None:
        raise stayed(gate, "here")
    if session_digest(session.salt, saved.id) != session.digest:
        raise BrokenRecord(
            "the saved session is not the one that asked", hint="git gate verify", about=f"gate {gate.id}"
        )
    return replace(saved, agent=session.agent)


def load_session(desk: Desk, gate: str) -> SavedSession | None:
    """The saved session here, or fetched; None when there is none anywhere that can be asked."""
    oid = find_oid(desk, gate)
    return read_session(desk, oid) if oid is not None else None


def load_latest(desk: Desk, gate: Gate) -> SavedSession | None:
    """Return the saved session as it was left last, here or on the remote; None where there is none."""
    oid = latest_oid(desk, gate)
    return read_session(desk, oid) if oid is not None else None


def latest_oid(desk: Desk, gate: Gate) -> str | None:
    """The session as it was saved last. Where somebody talked in it since, that may have been in another clone."""
    here = find_oid(desk, gate.id)
    remote = remote_of(desk)
    if here is None or remote is None or not needs_a_look(desk, gate, here):
        return here
    from ..context import session_proof
    from ..store.remote.fetch import fetch_refs

    ref = SESSIONS + gate.id
    try:
        theirs = fetch_refs(desk.repo, remote, [ref], timeout=desk.network_timeout).get(ref)
        if theirs is None or theirs == here or not adds_to_conversation(desk, theirs, here):
            return here
        wrong = session_proof.against_session(desk, gate, theirs)
    except GateError as silent:
        desk.progress(f"whether gate {gate.id} was talked about elsewhere is not known: {silent.message}")
        return here
    if wrong:
        desk.progress(f"the session of gate {gate.id} on {remote} was changed by somebody else: {wrong}")
        return here
    desk.refs.update([RefMove(ref, theirs, here)])
    return theirs


def needs_a_look(desk: Desk, gate: Gate, here: str) -> bool:
    """Return whether the record names a conversation that the session here may not contain."""
    held = [event for entry in gate.history if (event := held_in(entry.event)) is not None]
    if not held or gate.opened.session is None:
        return bool(held)
    from ..context.session_proof import content_of

    named = [one.content for one in held if one.content]
    salt, tree = gate.opened.session.salt, desk.records.commit(here).tree
    return bool(named) and content_of(salt, tree) != named[-1]


def held_in(event: object) -> Conversation | None:
    return event.session if isinstance(event, Answer | Remark) else None


def adds_to_conversation(desk: Desk, new: str, old: str) -> bool:
    """Return whether the new conversation contains everything of the old one, and more."""
    from ..agents.claude.transcript import TRANSCRIPT
    from ..questions.signals import known

    after, before = (known(read_session(desk, oid).files.get(TRANSCRIPT, b"")) for oid in (new, old))
    return before < after


def find_oid(desk: Desk, gate: str) -> str | None:
    oid = desk.refs.get(SESSIONS + gate)
    remote = remote_of(desk)
    if oid is None and remote is not None:
        from ..store.remote.fetch import fetch_refs

        oid = fetch_refs(desk.repo, remote, [SESSIONS + gate], timeout=desk.network_timeout).get(
            SESSIONS + gate
        )
    return oid


def read_session(desk: Desk, oid: str) -> SavedSession:
    records = desk.records
    top = records.tree(records.commit(oid).tree)
    if DOCUMENT.encode() not in top:
        raise BrokenRecord(f"session {oid[:12]} has no {DOCUMENT}")
    about = codec.parse_document(records.blob(top[DOCUMENT.encode()].oid), f"{oid[:12]}:{DOCUMENT}")
    if about.get("encrypted") is not None:
        if SEALED.encode() not in top:
            raise BrokenRecord(f"session {oid[:12]} has no {SEALED}")
        return unseal(desk, records.blob(top[SEALED.encode()].oid))

    def words(entry: Field, name: str) -> str:
        found = entry.get(name)
        return found.text(most=4096) if found is not None else ""

    def place(entry: Field, name: str) -> str:
        return os.fsdecode(path_of(words(entry, name)))

    left_out = about.get("left_out")
    told = [(place(entry, "path"), place(entry, "reason")) for entry in left_out.items()] if left_out else []
    folder = top.get(FILES.encode())
    files = read_files(desk, folder.oid) if folder is not None and folder.mode == FOLDER else {}
    return SavedSession(
        words(about, "agent"),
        words(about, "id"),
        place(about, "directory"),
        place(about, "place"),
        files,
        tuple(told),
    )


def read_files(desk: Desk, tree: str, prefix: str = "", depth: int = 0) -> dict[str, bytes]:
    """Regular files only: a link could lead out of where they are put."""
    found: dict[str, bytes] = {}
    for entry in desk.records.tree(tree).values():
        name = prefix + os.fsdecode(entry.name)
        if entry.mode == REGULAR:
            found[name] = desk.records.blob(entry.oid)
        elif entry.mode == FOLDER and depth < 8:
            found |= read_files(desk, entry.oid, f"{name}/", depth + 1)
        if sum(map(len, found.values())) > MOST_BYTES:
            raise BrokenRecord(f"the saved session is larger than {MOST_BYTES / 1e6:g} MB")
    return found


def recipients_in(text: str) -> list[str]:
    """Keys, between commas or blanks. One of OpenSSH's is two words, and a third that its owner added for people."""
    found: list[str] = []
    words = text.replace(",", " ").split()
    while words:
        key = words.pop(0)
        if key.startswith("ssh-") and words:
            key = f"{key} {words.pop(0)}"
            if words and not words[0].startswith(("ssh-", "age1")):
                words.pop(0)
        found.append(key)
    return found


def seal(saved: SavedSession, recipients: Sequence[str]) -> bytes:
    """The whole session, its id and its paths too, readable only by those named."""
    import base64  # few encrypt
    import json

    files = {name: base64.b64encode(content).decode() for name, content in saved.files.items()}
    plain = {name: getattr(saved, name) for name in (*PLAIN, "left_out")}
    pyrage = age_library()
    try:
        keys = [
            (pyrage.ssh if word.startswith("ssh-") else pyrage.x25519).Recipient.from_str(word)
            for word in recipients
        ]
    except pyrage.RecipientError as wrong:
        raise Failure(
            f"gitgate.sessionRecipients names what is no key: {wrong}",
            hint="git config gitgate.sessionRecipients age1…",
        ) from wrong
    return bytes(pyrage.encrypt(json.dumps({**plain, "files": files}).encode(), keys))


def unseal(desk: Desk, sealed: bytes) -> SavedSession:
    pyrage = age_library()
    place = desk.settings.text("sessionIdentity")
    if not place:
        raise Failure(
            "the session is encrypted, and no key is set that opens it",
            hint="git config gitgate.sessionIdentity ~/.config/gitgate/age.key",
        )
    import base64
    import json

    home = desk.settings.env.get("HOME", "")
    path = Path(home, place[2:]) if place.startswith("~/") else Path(place)
    try:
        said = json.loads(pyrage.decrypt(sealed, keys_in(pyrage, path.read_bytes())))
    except (OSError, ValueError, pyrage.IdentityError, pyrage.DecryptError) as wrong:
        raise Failure(
            f"the session cannot be opened with {path}: {wrong}", hint="ask who saved it"
        ) from wrong
    try:
        files = {str(name): base64.b64decode(content) for name, content in said["files"].items()}
        left_out = tuple((str(path), str(why)) for path, why in said["left_out"])
        agent, name, directory, place = (str(said[word]) for word in PLAIN)
    except (ValueError, TypeError, LookupError, AttributeError) as odd:
        raise BrokenRecord("what was encrypted is no session", hint="ask who saved it") from odd
    return SavedSession(agent, name, directory, place, files, left_out)


def keys_in(pyrage: Any, text: bytes) -> list[Any]:
    """The keys of a file: one of OpenSSH's, or age's, a line each."""
    if text.startswith(b"-----BEGIN "):
        return [pyrage.ssh.Identity.from_buffer(text)]
    lines = (line.strip() for line in text.decode("utf-8").splitlines())
    return [pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")]


def age_library() -> Any:
    """The extra, which has no types of its own."""
    try:
        import pyrage
    except ImportError as absent:
        raise MissingExtra("encrypted sessions need an extra", hint="pip install 'git-gate[age]'") from absent
    return pyrage


@dataclass(frozen=True)
class Dropped:
    """Result of erasing a saved session: whether it was erased here, and on which remote."""

    gate: str
    here: bool
    remote: str | None = None
    there: bool = False


def drop(desk: Desk, gate: str) -> Dropped:
    """Erase a saved session here and on the remote. Objects stay until git prunes them; other copies remain."""
    if not is_id(gate):
        raise UnknownGate(f"{gate!r} is not a gate's full id", hint="git gate list --all")
    ref = SESSIONS + gate
    here = desk.refs.get(ref)
    remote = remote_of(desk)
    there = None
    if remote is not None:
        from ..store.remote.fetch import fetch_refs

        there = fetch_refs(desk.repo, remote, [ref], timeout=desk.network_timeout).get(ref)
    if here is None and there is None:
        raise UnknownGate(f"gate {gate} has no saved session", hint="git gate list --all")
    if remote is not None and there is not None:
        for fate in push_moves(desk, remote, [RefMove(ref, None, there)]):
            if not fate.ok:
                raise Failure(
                    f"{remote} did not erase the session: {fate.reason}", hint="git gate session drop ID"
                )
    if here is not None:
        desk.refs.update([RefMove(ref, None, here)])
    with contextlib.suppress(OSError):  # It is gone; that we know it is only told.
        private_folder(dropped_mark(desk, gate).parent)
        dropped_mark(desk, gate).touch()
    return Dropped(gate, here is not None, remote, there is not None)


def session_digest(salt: str, session_id: str) -> str:
    return sha256(f"{salt}:{session_id}".encode()).hexdigest()[:32]
