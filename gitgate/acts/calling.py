"""Acts: tool calls of an agent that wait for a person: which need to, their gates, and one at a time.

A conversation waits for one gate at a time: it is started again with one answer, and two runners that each started it
would undo one another. Hooks of calls that were made together run together, so that they take turns here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from ..config import FILE
from ..context import machine
from ..context.desk import Desk
from ..context.remotes import may_publish_work
from ..document.field import may_have
from ..errors import Conflict, GateError
from ..exchange.publishing import publish
from ..model import states, trailers
from ..model.conversation import SessionRef
from ..model.gate import Gate
from ..model.states import AWAITING
from ..questions.calls import CallRule, call_of, parse_rules
from ..store.git.permissions import private_folder
from ..store.git.refs import OPEN
from .asking import key_ref

TURN_TIMEOUT = 100.0
STALE_TURN = 150.0


def load_rules(desk: Desk) -> tuple[CallRule, ...]:
    """The calls that need approval, by the protected branch; where there is no such file, none."""
    from ..policy.book import protected_refs
    from ..store.git.objects import read_protected

    found = read_protected(desk.records.objects, FILE, protected_refs(desk))
    if found is None or not may_have(found.data, "approvals"):
        return ()
    from ..document import codec

    return parse_rules(codec.parse_document(found.data, found.source))


def key_of_call(call_id: str) -> str:
    return f"call:{call_id[:200]}"


def gate_of_call(desk: Desk, call_id: str) -> Gate | None:
    """The gate that this very call opened: the one that the agent was resumed for, or one that was opened from this clone."""
    for gate in (named_gate(desk), gate_of_key(desk, key_of_call(call_id))):
        call = call_of(gate) if gate is not None else None
        if gate is not None and call is not None and call.id == call_id[:200]:
            return gate
    return None


def named_gate(desk: Desk) -> Gate | None:
    """The gate that this process was started for, as its runner says."""
    named = desk.settings.env.get("GITGATE_GATE", "")
    return any_gate(desk, named) if states.is_id(named) else None


def gate_of_key(desk: Desk, key: str) -> Gate | None:
    opened = desk.refs.get(key_ref(key))
    if opened is None:
        return None
    said = trailers.parse_trailers(desk.records.commit(opened).message) or {}
    return any_gate(desk, said.get("Gate", ""))


def any_gate(desk: Desk, gate: str) -> Gate | None:
    """The gate of that id as it is now, archived or not; one that is unknown here is none."""
    from .reading import find_gate

    try:
        return find_gate(desk, gate).gate
    except GateError:
        return None


def waiting(desk: Desk, session: str) -> list[Gate]:
    """The gates that this conversation asked from here, and that nobody has decided yet."""
    found = []
    for present in machine.everyone_here(desk):
        if present.session != session:
            continue
        tip = desk.refs.get(OPEN + present.gate)
        gate = desk.records.load(present.gate, tip) if tip else None
        if gate is not None and gate.state == AWAITING and gate.opened.delivery == "resume":
            found.append(gate)
    return found


def let_through(desk: Desk, gate: Gate) -> bool:
    """Note that an approved call is made now; False when that was so in an earlier attempt, which nobody saw the end of."""
    folder = desk.repo.state_dir / "let-through"
    private_folder(folder)
    attempt = gate.claim.commit if gate.claim is not None else "by hand"
    try:
        with os.fdopen(os.open(folder / gate.id, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(attempt)
    except FileExistsError:
        # Two hooks that are told of the same call in the same attempt agree.
        return (folder / gate.id).read_text("utf-8") in ("", attempt)
    return True


def note_made(desk: Desk, gate: Gate, words: str) -> None:
    """What became of an approved call, for whoever records what came of the answer."""
    folder = desk.repo.state_dir / "let-through"
    private_folder(folder)
    with contextlib.suppress(OSError):
        (folder / f"{gate.id}.told").write_text(words, encoding="utf-8")


def told_of_call(desk: Desk, gate: str) -> str:
    """What was noted of it; nothing where the call was made as it was approved."""
    try:
        return (desk.repo.state_dir / "let-through" / f"{gate}.told").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


@contextlib.contextmanager
def turn(
    desk: Desk,
    session: str,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """One asker of a conversation at a time."""
    folder = desk.repo.state_dir / "turns"
    private_folder(folder)
    place = folder / session_name(session)
    until = monotonic() + TURN_TIMEOUT
    while not take_turn(place):
        if monotonic() > until:
            raise Conflict(
                "another question of this conversation is still being asked", hint="ask again in a minute"
            )
        sleep(0.02)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            place.unlink()


def end_run(desk: Desk, session: str) -> None:
    """Note that a second question of this conversation was denied, so that it makes no more calls while the first one waits."""
    folder = desk.repo.state_dir / "turns"
    private_folder(folder)
    (folder / f"{session_name(session)}.over").touch()


def is_over(desk: Desk, session: str) -> Gate | None:
    """The question that still waits, where a run went past it and was to end."""
    place = desk.repo.state_dir / "turns" / f"{session_name(session)}.over"
    if not session or not place.exists():
        return None
    found = waiting(desk, session)
    if not found:
        place.unlink(missing_ok=True)
    return found[0] if found else None


def session_name(session: str) -> str:
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:20]


def take_turn(place: Path) -> bool:
    """Whether the turn is ours now. Whoever died with it left a file that grows old."""
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        with contextlib.suppress(OSError):
            if time.time() - place.stat().st_mtime > STALE_TURN:
                place.unlink()
        return False
    return True


def save_sessions(desk: Desk, ref: SessionRef) -> list[str]:
    """Save a conversation that came to its end again for every gate that it waits at: now its last words are there."""
    from . import sessions

    return [gate.id for gate in waiting(desk, ref.id) if sessions.save(desk, gate, ref).files]


def publish_sessions(desk: Desk, gates: list[str]) -> None:
    """Send what `save_sessions` saved along, where sessions are shared."""
    if desk.settings.text("session") != "push":
        return
    for gate in gates:
        tip = desk.refs.get(OPEN + gate)
        if tip is not None:
            publish(desk, desk.records.load(gate, tip), work=may_publish_work(desk))


def context_from_agent(env: Mapping[str, str], text: str, most: int = 4000) -> str:
    """Words of an agent for a gate's context: without secrets, and not without end."""
    from ..text.secrets import redact, secret_values

    clean = redact(text.encode("utf-8", "replace").decode().replace("\0", ""), secret_values(env)).strip()
    return clean if len(clean) <= most else f"… {clean[-most:]}"
