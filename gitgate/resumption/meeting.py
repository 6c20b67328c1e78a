"""Resumption: which conversation a person joins, what it is given, and what it came to when the person has left it.

The session says what was decided in a file beside it, by a command or by the tool that it is given. That is a proposal to the person who joined: nothing here touches a
record. What does not answer the question is refused when it is written, and looked at again when it is read.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .. import resumption as place
from ..acts import find_gate, sessions
from ..acts.needs import MOST_BYTES, MOST_SIGNALS
from ..agents import scrubbed
from ..agents.agent import Meeting, Start
from ..agents.claude.transcript import TRANSCRIPT
from ..context import Desk, machine, session_proof
from ..document import codec, field_of, replace
from ..errors import BadAnswer, Conflict, Failure, GateError, NotAllowed, RemoteUnreachable
from ..gates import agency
from ..gates.recording import reload
from ..gates.work import made_by_us
from ..model.gate import (
    BY_NOBODY,
    LEFT,
    PROPOSED,
    Conversation,
    Gate,
    Question,
    SavedSession,
    SessionRef,
    Talk,
    kept,
)
from ..policy import project as bylaws
from ..policy.project import InForce
from ..questions import prompts, signals
from ..questions.answers import talk_question, value_words
from ..questions.file import parse_question, plain_question
from ..questions.prompts import SERVER, TOOL
from ..questions.signals import ended, last_word, may_differ, read_need, signalled
from ..questions.types import expected, type_of
from ..store import read_local, read_local_note, write_private
from ..store.git.programs import our_command
from ..store.git.refs import SESSIONS
from ..text.secrets import redact, secret_values
from ..version import VERSION
from . import Situation, joining, surroundings
from .joining import JoinedConversation

if TYPE_CHECKING:
    from ..questions.signals import Understood, Utterance


VARIABLE = "GITGATE_OUTCOME"
ASKED, SAID = "asked.json", "outcome.json"
OURS = ("command", "mcp")
MOST_OUTCOME = 1 << 20


def open_channel(folder: Path, question: Question) -> Path:
    """The file for the outcome of a session that begins, with the question beside it; what an earlier one said is gone."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    place = folder / SAID
    with contextlib.suppress(FileNotFoundError):
        place.unlink()
    write_json(folder / ASKED, plain_question(question))
    return place


def channel(env: Mapping[str, str]) -> Path:
    """Return the file for the outcome of the session that this process runs in."""
    named = env.get(VARIABLE, "")
    if not named:
        raise NotAllowed(
            f"there is no session here whose outcome this could be: {VARIABLE} is not set",
            hint="it is set in a session that a person opened with: git gate join ID",
        )
    return Path(named)


def question_of(place: Path) -> Question:
    """Return the question that the session is to decide. NotAllowed where the session is over."""
    asked = place.with_name(ASKED)
    try:
        return parse_question(codec.parse_document(read_local(asked), str(asked)))
    except OSError as gone:
        raise NotAllowed(
            f"the session that {VARIABLE} names is over: {asked} cannot be read",
            hint="a person opens it again with: git gate join ID",
        ) from gone


def say(place: Path, said: Mapping[str, object], source: str) -> Understood:
    """Leave an outcome for the person; the last one counts. BadAnswer says what was expected."""
    understood = meaning(said, question_of(place), source)
    write_json(place, {**said, "source": source})
    return understood


def meaning(said: Mapping[str, object], question: Question, source: str) -> Understood:
    """Read an outcome as an answer to this question."""
    return signalled({name: value for name, value in said.items() if name != "source"}, question, source)


def read_session_outcome(place: Path, question: Question) -> Understood | None:
    """Read the outcome that the session left; None where it left none. BadAnswer where it does not fit the question."""
    try:
        if place.is_symlink() or place.stat().st_size > MOST_OUTCOME:
            raise BadAnswer(f"the outcome that the session left is no file of at most {MOST_OUTCOME:,} bytes")
        data, at = read_local(place), place.stat().st_mtime
    except FileNotFoundError:
        return None
    except OSError as unreadable:
        raise BadAnswer(
            f"the outcome that the session left cannot be read: {unreadable.strerror}"
        ) from unreadable
    try:
        said = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as wrong:
        raise BadAnswer(f"the outcome that the session left is not JSON: {wrong}") from wrong
    if not isinstance(said, dict):
        raise BadAnswer("the outcome that the session left is not a JSON object")
    try:
        found = meaning(said, question, str(said["source"]) if said.get("source") in OURS else "file")
        return replace(found, at=at)
    except GateError as unfit:
        raise BadAnswer(f"the outcome that the session left does not fit: {unfit.message}") from unfit


def write_json(place: Path, value: Mapping[str, object]) -> None:
    write_private(place, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


BRIEF = "brief.md"
ALLOWED = (f"mcp__{SERVER}__{TOOL}", "Bash(git gate outcome:*)", "Bash(git-gate outcome:*)")
END_TIMEOUT = 3.0


@dataclass(frozen=True)
class ChosenConversation:
    """The conversation to open. With `id` one of that id begins, branching off from `saved` if that has one itself."""

    saved: SavedSession
    own: bool
    id: str = ""
    spent: int = 0


def talk_of(gate: Gate) -> Talk:
    """Return how the conversation is to be held; the usual terms where the gate names none."""
    question = talk_question(gate)
    return (question.talk if question is not None else None) or Talk()


def the_question(gate: Gate) -> Question | None:
    """Return the question that the conversation is to decide; None with several, since an outcome could be of any."""
    return gate.opened.questions[0] if len(gate.opened.questions) == 1 else None


def own(desk: Desk, gate: Gate, saved: SavedSession) -> ChosenConversation:
    """Return the conversation of the agent itself."""
    return ChosenConversation(saved, own=True, spent=spent(recall(desk, gate)))


def another(desk: Desk, gate: Gate, agent: str, *, anew: bool = False) -> ChosenConversation:
    """Return a conversation that is not the agent's: the one begun for this gate, one that branches off, or a new one."""
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
    return ChosenConversation(saved, own=False, id=agency.adapter(saved.agent).new_session(desk.entropy(16)))


def conversation_of(desk: Desk, earlier: str) -> SavedSession:
    """Return the conversation that was held about an earlier gate, or else the one in which that gate was asked."""
    gate = find_gate(desk, earlier).gate
    held = joined_earlier(desk, gate)
    if held is not None and held.saved.files:
        return held.saved
    found = (
        sessions.bring(desk, gate) if gate.opened.session is not None else sessions.load_latest(desk, gate)
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
    """Note the conversation on this machine, so that it is found again if this process is killed."""
    said = {
        "agent": talk.saved.agent,
        "id": talk.saved.id,
        "directory": str(talk.launch.cwd),
        "own": talk.own,
    }
    running = {"pid": pid, "started": machine.started(pid) if pid else ""}
    with contextlib.suppress(OSError):
        write_json(folder_of(desk, talk.gate) / "session.json", {**said, **running, "seconds": seconds})


def recall(desk: Desk, gate: Gate) -> Mapping[str, object]:
    try:
        return read_local_note(folder_of(desk, gate) / "session.json")
    except (OSError, ValueError):
        return {}


def joined_earlier(desk: Desk, gate: Gate) -> ChosenConversation | None:
    """Return the conversation begun for this gate, as it is here, or as others saved it if they went on with it since."""
    said = recall(desk, gate)
    ours = begun_here(desk, said)
    kept = None
    if gate.opened.session is None and (ours is None or joining.who_spoke(gate)):
        kept = saved_elsewhere(desk, gate)
    if kept is None or not kept.files or (ours is not None and not is_more(kept, ours)):
        kept = ours
    return ChosenConversation(kept, own=False, spent=spent(said)) if kept is not None else None


def begun_here(desk: Desk, said: Mapping[str, object]) -> SavedSession | None:
    agent, name, directory = (str(said.get(key) or "") for key in ("agent", "id", "directory"))
    if said.get("own") is False and agent and name:
        with contextlib.suppress(GateError, OSError):
            saved = agency.adapter(agent).collect(SessionRef(agent, name, directory), desk.settings.env)
            if saved.files or agency.adapter(agent).name == "command":
                return replace(saved, agent=agent)
    return None


def saved_elsewhere(desk: Desk, gate: Gate) -> SavedSession | None:
    try:
        return sessions.load_latest(desk, gate)
    except RemoteUnreachable as silent:  # off line one can begin a conversation all the same
        desk.progress(
            f"whether somebody talked about gate {gate.id} elsewhere is not known: {silent.message}"
        )
        return None


def is_more(one: SavedSession, other: SavedSession) -> bool:
    """Return whether `one` is the conversation `other`, with more said in it."""
    after, before = (signals.known(saved.files.get(TRANSCRIPT, b"")) for saved in (one, other))
    return (one.agent, one.id) == (other.agent, other.id) and before < after


def spent(said: Mapping[str, object]) -> int:
    found = said.get("seconds")
    return found if isinstance(found, int) and found > 0 else 0


def refuse_open(desk: Desk, gate: Gate) -> None:
    """Refuse a conversation that a program still has open after its command has gone: two would undo each other's part."""
    said = recall(desk, gate)
    pid, begun = said.get("pid"), said.get("started")
    if not isinstance(pid, int) or not begun:
        return
    until = time.monotonic() + END_TIMEOUT
    while machine.started(pid) == begun:
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
    """Prepare the place and all that the agent's program needs, and lock the place during this block."""
    refuse_open(desk, gate)
    with contextlib.ExitStack() as held:
        find = joining.find_place if chosen.own else joining.place_apart
        found = find(desk, gate, held)
        question = the_question(gate)
        cwd = folder_within(found.directory, talk_of(gate).cwd)
        adapter = agency.adapter(chosen.saved.agent)
        said, program = chosen.saved, agency.agent_settings(desk, chosen.saved.agent).program
        if said.files:
            adapter.place(said, cwd, desk.settings.env, program)
        if chosen.id:
            before = said if said.files else None
            adapter.begin(chosen.id, cwd, desk.settings.env, saved=before, program=program)
        there = place.apart(desk, found)
        ours = made_by_us(desk, found.directory)
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
    """Return the ids of what the conversation has by now: it was said before the session, and decides nothing."""
    known = signals.known(chosen.saved.files.get(TRANSCRIPT, b""))
    if not chosen.saved.id:
        return known
    ref = SessionRef(chosen.saved.agent, chosen.saved.id, str(cwd))
    with contextlib.suppress(GateError, OSError):
        now = agency.adapter(ref.agent).collect(ref, desk.settings.env)
        known |= signals.known(now.files.get(TRANSCRIPT, b""))
    return known


def signalled_before(desk: Desk, directory: Path) -> frozenset[str]:
    """Return digests of the signal files as they are: the asker may have written them, so they decide nothing."""
    known = set[str]()
    for file in signal_files(desk, directory):
        with contextlib.suppress(OSError):
            known.add(digest(read_local(file)))
    return frozenset(known)


def signal_files(desk: Desk, directory: Path) -> list[Path]:
    """Return the files in a session's directory that may be signals: plain files that are not too large."""
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
    settings = agency.settings_in_talk(desk, gate, agent) if chosen.own else None
    around = surroundings(desk, gate, found, agent, project.settings)
    del around["GITGATE_GATE"]  # It says that the agent was resumed, and nobody sits before it.
    meeting = meeting_terms(gate, chosen, servers)
    if question is not None:
        place = open_channel(folder, question)
        around[VARIABLE] = str(place)
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
        settings=bylaws.without_doubt(settings or agency.settings_for_start(desk, agent), project),
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
    """Return the tool by which the session says what was decided: the command of this very installation."""
    program, *words = our_command("outcome", "--mcp")
    return {
        "type": "stdio",
        "command": program,
        "args": words,
        "env": {VARIABLE: str(place)},
    }


def folder_within(top: Path, folder: str) -> Path:
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


# An object in the agent's last message may repeat an older one, or be an example: only a person takes it for the answer.
UNMISTAKEN = frozenset(("command", "mcp", "file"))


@dataclass(frozen=True)
class HeardProposal:
    """Proposal of a session, if it made one, with what the person said last, and whether the two may differ."""

    said: Understood | None = None
    last: str = ""
    differs: bool = False

    @property
    def plain(self) -> bool:
        """Return whether a tool, a command or a file made the proposal, and the person said nothing after it."""
        said = self.said
        return said is not None and said.value is not None and said.source in UNMISTAKEN and not self.differs


def understand(desk: Desk, talk: JoinedConversation, since: float) -> HeardProposal:
    """Return what the session said was decided, else the object that ends its last message. BadAnswer where it left an
    outcome that does not answer the question.
    """
    spoken = utterances_of(desk, talk)
    word = last_word(spoken)
    last = word.text if word is not None else ""
    if talk.question is None:
        return HeardProposal(last=last)
    said = read_session_outcome(folder_of(desk, talk.gate) / SAID, talk.question)
    said = said or signal_in(desk, talk, since) or ended(spoken, talk.question)
    return HeardProposal(said, last, said is not None and may_differ(said, spoken))


def utterances_of(desk: Desk, talk: JoinedConversation) -> list[Utterance]:
    """Return what was said while the person was there; empty where the conversation cannot be read."""
    with contextlib.suppress(GateError, OSError):
        saved = agency.adapter(talk.saved.agent).collect(talk.ref, desk.settings.env)
        return signals.spoken(saved.files.get(TRANSCRIPT, b""), talk.before)
    return []


def signal_in(desk: Desk, talk: JoinedConversation, since: float) -> Understood | None:
    """The newest signal file that was written meanwhile, unless it says that a person is still needed.

    One that says what some file said when the session was opened is an old word, whatever its date and its name.
    """
    found: list[tuple[float, Mapping[str, object]]] = []
    for file in signal_files(desk, talk.place.directory):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            at, data = file.stat().st_mtime, read_local(file)
            if at < since or digest(data) in talk.signals:
                continue
            value = json.loads(data.decode("utf-8-sig"))
            if isinstance(value, dict) and "status" in value and read_need(value) is None:
                found.append((at, value))
    if not found or talk.question is None:
        return None
    with contextlib.suppress(GateError):
        at, value = max(found, key=lambda each: each[0])
        return replace(meaning(value, talk.question, "file"), at=at)
    return None


def held(
    desk: Desk,
    talk: JoinedConversation,
    outcome: str,
    seconds: int,
    said: Understood | None = None,
    *,
    source: str = "",
    reason: str = "",
    confirmed: bool = True,
) -> Conversation:
    """Return the record of how the conversation went. It has a transcript only where the asker wanted one."""
    words = said.__dict__ if said is not None else {}
    return Conversation(
        outcome=outcome,
        seconds=max(0, seconds),
        status=str(words.get("status", "")),
        summary=str(words.get("summary", "")),
        reason=reason or str(words.get("reason", "")),
        message=str(words.get("message", "")),
        source=source or str(words.get("source", "")),
        confirmed=confirmed and outcome not in BY_NOBODY,
        transcript=transcript(desk, talk) if talk_of(talk.gate).transcript else "",
        content=sessions.content_here(desk, talk.gate) if talk.own else "",
    )


def proposed(desk: Desk, talk: JoinedConversation, seconds: int, said: Understood) -> Conversation:
    """Return what is kept of an outcome that nobody confirmed: its value and its agent, but no transcript."""
    whole = held(desk, talk, PROPOSED, seconds, said, confirmed=False)
    value = field_of(said.value, "the outcome").plain()
    return replace(whole, transcript="", agent=talk.saved.agent, value=value)


def left(desk: Desk, talk: JoinedConversation, seconds: int) -> Conversation | None:
    """Return the record of a conversation without an answer, if others need its holder's word to take it up."""
    oid = desk.refs.get(SESSIONS + talk.gate.id) if talk.own else None
    if oid is None or not session_proof.against_session(desk, reload(desk, talk.gate.id), oid):
        return None
    return replace(held(desk, talk, LEFT, seconds), transcript="")


def transcript(desk: Desk, talk: JoinedConversation) -> str:
    """Return the transcript without secrets, and cut to what a record may hold. Its end is kept."""
    text = signals.transcript_text(utterances_of(desk, talk))
    return kept(redact(text, secret_values(desk.settings.env)))


# The tool by which the agent in the session says what was decided: the Model Context Protocol over lines of JSON.
#
# One tool, made from the question. It speaks as little of the protocol as that takes, so that it needs no library and starts
# at once. A value that does not answer the question comes back as the tool's error, with what was expected.

# What is spoken here is the same in all of them, the latest first; batches of requests belong to one alone, and are taken.
PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NO_METHOD, NO_REQUEST, NOT_JSON, NO_PARAMETERS = -32601, -32600, -32700, -32602
WHEN = (
    "Say what the person decided in this conversation. Call it when they have decided, and only then; never decide for them. "
    "Nothing is recorded before they have left the session and confirmed it. The last call counts."
)
SPOKEN = {
    "status": "CONTINUE or STOP for an approval; DONE, NEEDS_REVIEW or another word where nothing was decided yet",
    "summary": "What was decided, or done, in a few sentences",
    "reason": "Why; for a refusal what speaks against it",
    "message": "What the person wants to have told to whoever asked",
}


def reply_to_line(line: bytes, place: Path) -> str | None:
    """Return the reply to one line of the client's, a request or several; None where none is wanted."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return rpc_error(None, NOT_JSON, "this line is not JSON")
    if isinstance(message, list) and message:
        replies = [said for one in message if (said := reply_to(one, place)) is not None]
        return f"[{', '.join(replies)}]" if replies else None
    return reply_to(message, place)


def reply_to(message: object, place: Path) -> str | None:
    """Return the reply to one request; None where none is wanted."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        # An answer to something that we never asked, or nothing that we know.
        return None if isinstance(message, dict) else rpc_error(None, NO_REQUEST, "expected one request")
    if "id" not in message:
        return None
    number, given = message["id"], message.get("params")
    parameters = given if isinstance(given, dict) else {}
    method = message["method"]
    if method == "initialize":
        return rpc_result(number, hello(parameters))
    if method == "ping":
        return rpc_result(number, {})
    if method == "tools/list":
        return rpc_result(number, {"tools": [described(question_of(place))]})
    if method == "tools/call":
        if parameters.get("name") != TOOL:
            return rpc_error(number, NO_PARAMETERS, f"there is one tool here: {TOOL}")
        return rpc_result(number, call_result(parameters.get("arguments"), place))
    return rpc_error(number, NO_METHOD, f"{method} is nothing that is done here")


def hello(parameters: Mapping[str, object]) -> dict[str, object]:
    version = parameters.get("protocolVersion")
    return {
        "protocolVersion": version if version in PROTOCOLS else PROTOCOLS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": SERVER, "version": VERSION},
        "instructions": WHEN,
    }


def described(question: Question) -> dict[str, object]:
    """Return the description of the tool, with a value as narrow as the question allows."""
    fields = {name: {"type": "string", "description": words} for name, words in SPOKEN.items()}
    value = {
        **type_of(question).value_schema(question),
        "description": f"What they decided: {expected(question)}",
    }
    schema = {"type": "object", "properties": {"value": value, **fields}, "additionalProperties": False}
    return {"name": TOOL, "description": WHEN, "inputSchema": schema}


def call_result(arguments: object, place: Path) -> dict[str, object]:
    """The result of a call. It names no gate: a hook would take that for a question that was just asked."""
    given = arguments if isinstance(arguments, dict) else {}
    try:
        understood = say(place, given, "mcp")
    except GateError as refused:
        said = f"Not written: {refused.message}; {expected(question_of(place))}"
        return tool_result(said, wrong=True)
    what = "no value yet" if understood.value is None else value_words(understood.value)
    status = f" ({understood.status})" if understood.status else ""
    return tool_result(
        f"Written: {what}{status}. It counts when the person has left the session (/exit) and confirmed it."
    )


def tool_result(text: str, *, wrong: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": wrong}


def rpc_result(number: object, value: Mapping[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": value}, ensure_ascii=True)


def rpc_error(number: object, code: int, words: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}})
