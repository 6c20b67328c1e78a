"""Resumption: which conversation a person joins, and what it is given: the question, a way to say how it ended, its terms.

The agent's own conversation where there is one; else the one that was begun for this gate earlier; else a new one, which
may branch off from that of an earlier gate. What the asker wants for it (a model, instructions, a folder) is text for the
agent's program; what would run something (MCP servers) is not used before a person has agreed to it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ...acts import channel, sessions
from ...acts.needing import MOST_BYTES, MOST_SIGNALS
from ...acts.reading import find_gate
from ...agents import scrubbed
from ...agents.agent import Meeting, Start
from ...agents.claude.transcript import TRANSCRIPT
from ...context import presence
from ...context.desk import Desk
from ...errors import Conflict, Failure, GateError, RemoteUnreachable
from ...gates import agency
from ...model.conversation import Talk
from ...model.gate import Gate, Question
from ...model.session import SavedSession, SessionRef
from ...policy import project as bylaws
from ...policy.project import InForce
from ...questions import prompts, proposals
from ...questions.endings import talk_question
from ...questions.prompts import SERVER, TOOL
from .. import place
from ..order import surroundings
from ..place import Situation
from . import joining
from .joining import JoinedConversation

BRIEF = "brief.md"
ALLOWED = (f"mcp__{SERVER}__{TOOL}", "Bash(git gate outcome:*)", "Bash(git-gate outcome:*)")
ENDS_WITHIN = 3.0


@dataclass(frozen=True)
class ChosenConversation:
    """The conversation to open. With `id` one of that id begins, branching off from `saved` if that has one itself."""

    saved: SavedSession
    own: bool
    id: str = ""
    spent: int = 0


def talk_of(gate: Gate) -> Talk:
    """How the conversation is to be held; of a gate that says nothing of it, as usual."""
    question = talk_question(gate)
    return (question.talk if question is not None else None) or Talk()


def the_question(gate: Gate) -> Question | None:
    """The question that the conversation is to decide; with several nobody could say which one an outcome is of."""
    return gate.opened.questions[0] if len(gate.opened.questions) == 1 else None


def own(desk: Desk, gate: Gate, saved: SavedSession) -> ChosenConversation:
    """The agent's own."""
    return ChosenConversation(saved, own=True, spent=spent(recall(desk, gate)))


def another(desk: Desk, gate: Gate, agent: str, *, anew: bool = False) -> ChosenConversation:
    """A conversation that is not the agent's own: the one begun for this gate, one that branches off, or a fresh one."""
    before = None if anew else joined_earlier(desk, gate)
    if before is not None:
        return before
    earlier = talk_of(gate).resume
    saved = SavedSession(agent, "") if not earlier or anew else conversation_of(desk, earlier)
    reason = agency.cannot_join(desk, saved.agent)
    if reason:
        raise Failure(
            f"no session can be opened on this machine for gate {gate.id}: {reason}",
            hint=joining.otherwise(gate),
        )
    return ChosenConversation(saved, own=False, id=str(uuid.UUID(desk.entropy(16), version=4)))


def conversation_of(desk: Desk, earlier: str) -> SavedSession:
    """The conversation that was held about an earlier gate, or in which that was asked."""
    gate = find_gate(desk, earlier).gate
    held = joined_earlier(desk, gate)
    if held is not None and held.saved.files:
        return held.saved
    found = (
        sessions.bring(desk, gate)
        if gate.opened.session is not None
        else sessions.load_session(desk, gate.id)
    )
    if found is None or not found.files:
        raise Failure(
            f"the conversation of gate {gate.id}, which was to be gone on with, is not here",
            hint="begin one that knows nothing of it: git gate join ID --new",
        )
    return found


# What this machine remembers of a conversation that was begun for a gate


def folder_of(desk: Desk, gate: Gate) -> Path:
    return desk.repo.state_dir / "runs" / gate.id / "joined"


def remember(desk: Desk, talk: JoinedConversation, pid: int, seconds: int) -> None:
    """So that a conversation is found again whatever happens to us."""
    said = {
        "agent": talk.saved.agent,
        "id": talk.saved.id,
        "directory": str(talk.launch.cwd),
        "own": talk.own,
    }
    running = {"pid": pid, "started": presence.started(pid) if pid else ""}
    with contextlib.suppress(OSError):
        channel.write(folder_of(desk, talk.gate) / "session.json", {**said, **running, "seconds": seconds})


def recall(desk: Desk, gate: Gate) -> Mapping[str, object]:
    try:
        said = json.loads((folder_of(desk, gate) / "session.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def joined_earlier(desk: Desk, gate: Gate) -> ChosenConversation | None:
    """The conversation that was begun for this gate: as it is on this machine now, else as it was saved."""
    said = recall(desk, gate)
    agent, name, directory = (str(said.get(key) or "") for key in ("agent", "id", "directory"))
    if said.get("own") is False and agent and name:
        ref = SessionRef(agent, name, directory)
        with contextlib.suppress(GateError, OSError):
            saved = agency.adapter(agent).collect(ref, desk.settings.env)
            if saved.files or agency.adapter(agent).name == "command":
                return ChosenConversation(replace(saved, agent=agent), own=False, spent=spent(said))
    if gate.opened.session is not None:
        return None
    try:
        kept = sessions.load_session(desk, gate.id)
    except RemoteUnreachable as silent:  # off line one can begin a conversation all the same
        desk.progress(
            f"whether somebody talked about gate {gate.id} elsewhere is not known: {silent.message}"
        )
        return None
    return ChosenConversation(kept, own=False, spent=spent(said)) if kept and kept.files else None


def spent(said: Mapping[str, object]) -> int:
    found = said.get("seconds")
    return found if isinstance(found, int) and found > 0 else 0


def refuse_open(desk: Desk, gate: Gate) -> None:
    """A program that outlived the command that started it is still in the conversation: two would undo each other's part."""
    said = recall(desk, gate)
    pid, begun = said.get("pid"), said.get("started")
    if not isinstance(pid, int) or not begun:
        return
    until = time.monotonic() + ENDS_WITHIN
    while presence.started(pid) == begun:
        if time.monotonic() > until:
            raise Conflict(
                f"the session of gate {gate.id} is still open (process {pid}), though whoever opened it has gone",
                hint=f"talk to it there, or end it: kill {pid}",
            )
        time.sleep(0.05)


# Opening it


@contextlib.contextmanager
def open_meeting(
    desk: Desk, gate: Gate, chosen: ChosenConversation, servers: Mapping[str, object] = {}
) -> Iterator[JoinedConversation]:
    """Everything in its place for the agent's program, and the place nobody else's while this lasts."""
    refuse_open(desk, gate)
    with contextlib.ExitStack() as held:
        find = joining.find_place if chosen.own else joining.place_apart
        found = find(desk, gate, held)
        question = the_question(gate)
        cwd = within(found.directory, talk_of(gate).cwd)
        adapter = agency.adapter(chosen.saved.agent)
        if chosen.saved.files:
            adapter.place(chosen.saved, cwd, desk.settings.env)
        there = place.apart(desk, found)
        ours = place.made_by_us(desk, found.directory)
        project = held.enter_context(bylaws.in_force(desk, there, ours=ours, say=desk.progress))
        start = request(desk, gate, chosen, found, cwd, servers, project)
        launch = adapter.join(start)
        if start.prompt:
            whole = prompts.briefing(gate).encode("utf-8", "replace")
            launch = replace(launch, files={**launch.files, BRIEF: whole})
        name = chosen.id or chosen.saved.id
        yield JoinedConversation(
            gate,
            replace(chosen.saved, id=name),
            found,
            launch,
            own=chosen.own,
            new=bool(chosen.id),
            question=question,
            before=said_before(desk, chosen, cwd),
            signals=signalled_before(desk, found.directory),
            spent=chosen.spent,
        )


def said_before(desk: Desk, chosen: ChosenConversation, cwd: Path) -> frozenset[str]:
    """What was said when this was decided on is no word on it."""
    known = proposals.known(chosen.saved.files.get(TRANSCRIPT, b""))
    if not chosen.saved.id:
        return known
    ref = SessionRef(chosen.saved.agent, chosen.saved.id, str(cwd))
    with contextlib.suppress(GateError, OSError):
        now = agency.adapter(ref.agent).collect(ref, desk.settings.env)
        known |= proposals.known(now.files.get(TRANSCRIPT, b""))
    return known


def signalled_before(desk: Desk, directory: Path) -> frozenset[str]:
    """Nor is what signal files say already: whoever asked may have written one."""
    known = set[str]()
    for file in signal_files(desk, directory):
        with contextlib.suppress(OSError):
            known.add(digest(file.read_bytes()))
    return frozenset(known)


def signal_files(desk: Desk, directory: Path) -> list[Path]:
    """Those of a session's directory that are plain files and not too large to be signals."""
    found = []
    for file in sorted((directory / desk.settings.text("signals")).glob("*.json"))[:MOST_SIGNALS]:
        with contextlib.suppress(OSError):
            if not file.is_symlink() and file.stat().st_size <= MOST_BYTES:
                found.append(file)
    return found


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def request(
    desk: Desk,
    gate: Gate,
    chosen: ChosenConversation,
    found: Situation,
    cwd: Path,
    servers: Mapping[str, object],
    project: InForce,
) -> Start:
    agent, question = chosen.saved.agent, the_question(gate)
    folder = folder_of(desk, gate)
    around = surroundings(desk, gate, found, agent, project.settings)
    del around["GITGATE_GATE"]  # It says that the agent was resumed, and nobody sits before it.
    meeting = meeting_terms(gate, chosen, servers)
    if question is not None:
        place = channel.open_channel(folder, question)
        around[channel.VARIABLE] = str(place)
        meeting = replace(meeting, servers={**servers, SERVER: our_server(place)}, allowed=ALLOWED)
    return Start(
        gate=gate.id,
        cwd=cwd,
        folder=folder,
        # In a conversation that goes on the question is known; one that begins, or branches off, is told.
        prompt=prompts.fitted(gate, str(folder / BRIEF)) if chosen.id else "",
        session=SessionRef(agent, chosen.saved.id, chosen.saved.directory) if chosen.saved.id else None,
        hooks=agency.adapter(agent).hooks(),
        permissions=bylaws.permissions(desk, agent),
        settings=bylaws.without_doubt(agency.settings_for_start(desk, agent), project),
        env=scrubbed(desk.settings.env),
        extra_env=around,
        meeting=meeting,
    )


def meeting_terms(gate: Gate, chosen: ChosenConversation, servers: Mapping[str, object]) -> Meeting:
    """How it is held. The agent's own conversation keeps its model and its instructions."""
    if chosen.own:
        return Meeting(servers=servers)
    return Meeting(
        id=chosen.id, system=prompts.instructions(gate), model=talk_of(gate).model, servers=servers
    )


def our_server(place: Path) -> dict[str, object]:
    """The tool by which the session says what was decided: this very installation."""
    return {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-P", "-m", "gitgate", "outcome", "--mcp"],
        "env": {channel.VARIABLE: str(place)},
    }


def within(top: Path, folder: str) -> Path:
    """The folder in which the conversation is held; a link may lead nowhere else than `..` may."""
    cwd = (top / folder).resolve()
    if not cwd.is_relative_to(top.resolve()):
        raise Failure(
            f"{folder} leads out of the worktree {top}", hint="answer it yourself: git gate respond ID"
        )
    if not cwd.is_dir():
        raise Failure(
            f"the session is to be held in {folder}, and there is no such folder in {top}",
            hint="answer it yourself: git gate respond ID",
        )
    return cwd if folder else top
