"""Service: a command that was run for somebody, and whether it ended by asking. If it did, there is a gate for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from ..core.model import Gate
from ..core.needs import Need, find_need, read_need
from ..core.session import SessionRef
from ..core.states import AWAITING
from ..store.refs import OPEN
from . import presence
from .calling import any_gate, publish_sessions, save_sessions, waiting
from .desk import Desk
from .needing import ask_for, ask_for_call, signal_times, signals

NAMES_A_SESSION = ("--session-id", "--resume", "-r", "--session")


@dataclass(frozen=True)
class Before:
    """What was there before the command ran: the refs of gates, and the signal files with their times."""

    gates: frozenset[str]
    signals: Mapping[str, float]


@dataclass(frozen=True)
class Ended:
    """What a command said at its end: its exit code, and as much of its result as could be read."""

    code: int
    text: str = ""
    session: str = ""
    call: Mapping[str, object] | None = None
    structured: Mapping[str, object] | None = None


def look(desk: Desk) -> Before:
    return Before(frozenset(desk.refs.under(OPEN)), signal_times(desk))


def read_end(argv: Sequence[str], code: int, out: bytes) -> Ended:
    """The result of an agent: a JSON object that ends its output, else the output as text."""
    from ..agents.claude import last_result

    said = last_result(out)
    if said is None:
        return Ended(code, out.decode("utf-8", "replace"), session_in(argv))
    text, call, structured = said.get("result"), said.get("deferred_tool_use"), said.get("structured_output")
    session = said.get("session_id")
    return Ended(
        code,
        text if isinstance(text, str) else "",
        session if isinstance(session, str) else session_in(argv),
        call if isinstance(call, dict) else None,
        structured if isinstance(structured, dict) else None,
    )


def session_in(argv: Sequence[str]) -> str:
    """The conversation that a command line names, for a program whose output does not."""
    for flag, value in pairwise(argv):
        if flag in NAMES_A_SESSION and not value.startswith("-"):
            return value
    return next(
        (
            word.partition("=")[2]
            for word in argv
            if word.partition("=")[0] in NAMES_A_SESSION and "=" in word
        ),
        "",
    )


def gate_of(desk: Desk, before: Before, ended: Ended, agent: str | None = None) -> Gate | None:
    """The gate that the command waits at now, opened here unless it has been; None when it asked nothing."""
    if is_session(ended.session):
        desk = with_session(desk)
    session = ended.session if is_session(ended.session) else ""
    gate = asked_by_itself(desk, before, session)
    if gate is None and ended.call is not None:
        gate = ask_for_call(desk, ended.call, session)
    if gate is None:
        gate = ask_for(desk, need_of(ended), session, signals(desk, before=before.signals), agent)
    if gate is None:
        return None
    if session:
        publish_sessions(desk, save_sessions(desk, SessionRef("claude", session, str(desk.repo.place))))
    return any_gate(desk, gate.id) or gate


def is_session(text: str) -> bool:
    from ..agents.agent import SESSION_ID

    return SESSION_ID.fullmatch(text) is not None


def with_session(desk: Desk) -> Desk:
    """The desk without the marks of a conversation that we ourselves may run inside: the command had its own."""
    env = {name: value for name, value in desk.settings.env.items() if name != "CLAUDE_CODE_SESSION_ID"}
    return replace(desk, settings=replace(desk.settings, env=env))


def need_of(ended: Ended) -> Need | None:
    return (read_need(ended.structured) if ended.structured is not None else None) or find_need(ended.text)


def asked_by_itself(desk: Desk, before: Before, session: str) -> Gate | None:
    """A gate that the command opened while it ran: of its conversation, else one that was asked from this very place."""
    if session:
        found = waiting(desk, session)
        return found[-1] if found else None
    for ref, tip in desk.refs.under(OPEN).items():
        gate = ref.removeprefix(OPEN)
        present = presence.find(desk, gate) if ref not in before.gates else None
        if present is None or Path(present.directory) != desk.repo.place:
            continue
        loaded = desk.records.load(gate, tip)
        if loaded.state == AWAITING and loaded.opened.delivery != "wait":
            return loaded
    return None
