"""Acts: a command that was run for somebody, and whether it ended by asking. If it did, there is a gate for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..context import presence
from ..context.desk import Desk
from ..gates.agency import is_agent, starts_by_itself
from ..model.conversation import SessionRef
from ..model.gate import Gate
from ..model.states import AWAITING
from ..questions.signals import Need, find_need, read_need
from ..store.git.refs import OPEN
from .calling import any_gate, publish_sessions, save_sessions, waiting
from .needing import ask_for, ask_for_call, signals, writings

if TYPE_CHECKING:
    from ..agents.agent import EndedCommand


@dataclass(frozen=True)
class BeforeRun:
    """What was there before the command ran: the refs of gates, and the writings of signal files."""

    gates: frozenset[str]
    signals: frozenset[str]


def look(desk: Desk) -> BeforeRun:
    return BeforeRun(frozenset(desk.refs.under(OPEN)), writings(desk))


def read_end(argv: Sequence[str], out: bytes) -> EndedCommand:
    """What an agent's program said, in its own form; else the output as text."""
    from .. import agents
    from ..agents.agent import EndedCommand
    from ..agents.claude.adapter import session_in

    return agents.read_end(argv, out) or EndedCommand(out.decode("utf-8", "replace"), session_in(argv))


def environment_of(
    desk: Desk, argv: Sequence[str], settings: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """What the command is started with: it and all that it starts are an agent's, and answer no gate. `settings` are git's."""
    from ..store.work.restore import as_environment

    name, env = program_of(argv), desk.settings.env
    mark = name if can_start(desk, name) else f"wrapped-{name}"
    return {
        "GITGATE_AGENT": mark,
        **env,
        "GITGATE_WRAPPED": started_with(argv),
        **(as_environment(settings, env) if settings else {}),
    }


def started_with(argv: Sequence[str]) -> str:
    """The conversation and the flags of the command, for the question that it may ask: nobody else keeps them everywhere."""
    from ..agents import AGENTS
    from ..agents.claude.adapter import session_in

    program = AGENTS.get(program_of(argv))
    flags = program.lasting(argv) if program is not None else ()
    return json.dumps({"session": session_in(argv), "flags": flags})


def program_of(argv: Sequence[str]) -> str:
    return Path(argv[0]).name


def can_start(desk: Desk, name: str) -> bool:
    """Whether this machine knows how to start that program again, and it has no conversation to be named by."""
    return not starts_by_itself(name) and is_agent(desk, name)


def gates_of(desk: Desk, before: BeforeRun, ended: EndedCommand, asker: WrappedAsker) -> list[Gate]:
    """The gates that wait for what the command asked, the conversation's own first; opened here unless they have been."""
    session = ended.session if is_session(ended.session) else ""
    sit_down(desk, ended.agent if session else "", asker.started)
    asked = asked_by_itself(desk, before, session)
    if not asked and ended.call is not None:
        called = ask_for_call(desk, ended.call, session)
        asked = [called] if called is not None else []
    otherwise = None if session else asker.default
    written = signals(desk, before=before.signals)
    found = ask_for(desk, need_of(ended), session, written, asker.agent, otherwise, asked)
    if session and found:
        publish_sessions(desk, save_sessions(desk, SessionRef(ended.agent, session, str(desk.repo.place))))
    return [any_gate(desk, gate.id) or gate for gate in found]


@dataclass(frozen=True)
class WrappedAsker:
    """Who asks: as it was said, else by the program and the number of its process."""

    program: str
    pid: int
    agent: str | None = None
    known: bool = False
    started: str = ""

    @property
    def default(self) -> str:
        return self.program if self.known else f"agent-{self.program}-{self.pid}"


def asker_of(desk: Desk, argv: Sequence[str], pid: int, agent: str | None) -> WrappedAsker:
    name = program_of(argv)
    return WrappedAsker(name, pid, agent, can_start(desk, name), started_with(argv))


def is_session(text: str) -> bool:
    from ..agents.agent import SESSION_ID

    return SESSION_ID.fullmatch(text) is not None


def sit_down(desk: Desk, program: str, started: str) -> None:
    """Make the desk the command's own: without the marks of a conversation that we ourselves may run inside."""
    from ..agents import without_conversation

    env = {**without_conversation(desk.settings.env), "GITGATE_WRAPPED": started}
    if program:
        env["GITGATE_AGENT"] = program
    desk.settings = replace(desk.settings, env=env)


def need_of(ended: EndedCommand) -> Need | None:
    return (read_need(ended.structured) if ended.structured is not None else None) or find_need(ended.text)


def asked_by_itself(desk: Desk, before: BeforeRun, session: str) -> list[Gate]:
    """The gates that the command opened while it ran: the last of its conversation, else all from this very place."""
    if session:
        return waiting(desk, session)[-1:]
    asked = []
    for ref, tip in desk.refs.under(OPEN).items():
        gate = ref.removeprefix(OPEN)
        present = presence.find_presence(desk, gate) if ref not in before.gates else None
        if present is None or Path(present.directory) != desk.repo.place:
            continue
        loaded = desk.records.load(gate, tip)
        if loaded.state == AWAITING and loaded.opened.delivery != "wait":
            asked.append(loaded)
    return sorted(asked, key=lambda gate: gate.opened.asked.at)
