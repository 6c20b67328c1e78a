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
from .agency import MARKS, is_agent
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
    """What a command said at its end, as much as could be read. `program`: whose conversation it was, where that is known."""

    text: str = ""
    session: str = ""
    program: str = "claude"
    call: Mapping[str, object] | None = None
    structured: Mapping[str, object] | None = None


def look(desk: Desk) -> Before:
    return Before(frozenset(desk.refs.under(OPEN)), signal_times(desk))


def read_end(argv: Sequence[str], out: bytes) -> Ended:
    """The result of an agent: a JSON object that ends its output, or Codex's events; else the output as text."""
    from ..agents.claude import last_result

    said = last_result(out)
    if said is None:
        return read_codex(out) or Ended(out.decode("utf-8", "replace"), session_in(argv))
    text, call, structured = said.get("result"), said.get("deferred_tool_use"), said.get("structured_output")
    session = said.get("session_id")
    return Ended(
        text if isinstance(text, str) else "",
        session if isinstance(session, str) else session_in(argv),
        call=call if isinstance(call, dict) else None,
        structured=structured if isinstance(structured, dict) else None,
    )


def read_codex(out: bytes) -> Ended | None:
    """The last message in the events of `codex exec --json`."""
    from ..agents.codex import events

    if b'"thread.started"' not in out:
        return None
    session, text = "", ""
    for event in events(out):
        item = event.get("item")
        if event.get("type") == "thread.started":
            session = str(event.get("thread_id") or "")
        elif isinstance(item, dict) and item.get("type") == "agent_message":
            text = str(item.get("text") or "")
    return Ended(text, session, "codex")


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


def environment_of(
    desk: Desk, argv: Sequence[str], settings: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """What the command is started with: it and all that it starts are an agent's, and answer no gate. `settings` are git's."""
    from ..store.drivers import as_environment

    name, env = program_of(argv), desk.settings.env
    mark = name if can_start(desk, name) else f"wrapped-{name}"
    return {"GITGATE_AGENT": mark, **env, **(as_environment(settings, env) if settings else {})}


def program_of(argv: Sequence[str]) -> str:
    return Path(argv[0]).name


def can_start(desk: Desk, name: str) -> bool:
    """Whether this machine knows how to start that program again, and it has no conversation to be named by."""
    return name not in ("claude", "codex") and is_agent(desk, name)


def gate_of(desk: Desk, before: Before, ended: Ended, asker: Asker) -> Gate | None:
    """The gate that the command waits at now, opened here unless it has been; None when it asked nothing."""
    session = ended.session if is_session(ended.session) else ""
    sit_down(desk, ended.program if session else "")
    gate = asked_by_itself(desk, before, session)
    if gate is None and ended.call is not None:
        gate = ask_for_call(desk, ended.call, session)
    if gate is None:
        otherwise = None if session else asker.default
        gate = ask_for(
            desk, need_of(ended), session, signals(desk, before=before.signals), asker.agent, otherwise
        )
    if gate is None:
        return None
    if session:
        publish_sessions(desk, save_sessions(desk, SessionRef(ended.program, session, str(desk.repo.place))))
    return any_gate(desk, gate.id) or gate


@dataclass(frozen=True)
class Asker:
    """Who asks: as it was said, else by the program and the number of its process."""

    program: str
    pid: int
    agent: str | None = None
    known: bool = False

    @property
    def default(self) -> str:
        return self.program if self.known else f"agent-{self.program}-{self.pid}"


def asker_of(desk: Desk, argv: Sequence[str], pid: int, agent: str | None) -> Asker:
    name = program_of(argv)
    return Asker(name, pid, agent, can_start(desk, name))


def is_session(text: str) -> bool:
    from ..agents.agent import SESSION_ID

    return SESSION_ID.fullmatch(text) is not None


def sit_down(desk: Desk, program: str) -> None:
    """Make the desk the command's own: without the marks of a conversation that we ourselves may run inside."""
    env = {name: value for name, value in desk.settings.env.items() if name not in MARKS}
    if program:
        env["GITGATE_AGENT"] = program
    desk.settings = replace(desk.settings, env=env)


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
