"""Acts: what an agent needs a person for without asking by itself: tool calls that wait, and last words or a signal file that say so."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import model
from .. import text as times
from ..context import Desk, machine
from ..context.targets import may_publish_work, summaries
from ..document import dataclass, replace
from ..errors import Conflict, GateError, NotAllowed, Usage
from ..exchange.syncing import publish
from ..gates.agency import is_agent, starts_by_itself
from ..model import AWAITING, WITHDRAWN
from ..model.gate import Gate, SessionRef
from ..questions.calls import Call, call_of, config_of, digest_of_call, questions_of
from ..questions.drafts import Draft
from ..questions.signals import Need, draft_of, find_need, last_object, plain_draft, read_need
from ..questions.types import type_of
from ..store import private_folder, read_local, take_lock
from ..store.git.refs import OPEN
from ..text import one_line
from ..text.digests import sha256
from ..text.secrets import redact, secret_values
from . import answering, find_gate
from .askers import asks_nobody
from .asking import AskWishes, ask, key_ref, read_attachment

if TYPE_CHECKING:
    from ..agents.agent import EndedCommand

# Tool calls of an agent that wait for a person: which need to, their gates, and one at a time.
#
# A conversation waits for one gate at a time: it is started again with one answer, and two runners that
# each started it would undo one another. Hooks of calls that were made together run together, so that
# they take turns here.


TURN_TIMEOUT = 100.0


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
    return any_gate(desk, named) if model.is_id(named) else None


def gate_of_key(desk: Desk, key: str) -> Gate | None:
    opened = desk.refs.get(key_ref(key))
    if opened is None:
        return None
    said = model.parse_trailers(desk.records.commit(opened).message) or {}
    return any_gate(desk, said.get("Gate", ""))


def any_gate(desk: Desk, gate: str) -> Gate | None:
    """The gate of that id as it is now, archived or not; one that is unknown here is none."""
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
        return read_local(folder / gate.id).decode("utf-8") in ("", attempt)
    return True


def note_made(desk: Desk, gate: Gate, words: str) -> None:
    """Note how an approved call ended, for the runner that records the answer's outcome."""
    folder = desk.repo.state_dir / "let-through"
    private_folder(folder)
    with contextlib.suppress(OSError):
        (folder / f"{gate.id}.told").write_text(words, encoding="utf-8")


def told_of_call(desk: Desk, gate: str) -> str:
    """Return the note on an approved call's end; empty where the call was made as it was approved."""
    try:
        return read_local(desk.repo.state_dir / "let-through" / f"{gate}.told").decode("utf-8")
    except (OSError, ValueError):
        return ""


@contextlib.contextmanager
def turn(
    desk: Desk,
    session: str,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Turn of one asker of a conversation at a time: a lock of the system, which ends with its process and with nothing else."""
    folder = desk.repo.state_dir / "turns"
    private_folder(folder)
    until = monotonic() + TURN_TIMEOUT
    while (ours := take_lock(folder / session_name(session))) is None:
        if monotonic() > until:
            raise Conflict(
                "another question of this conversation is still being asked", hint="ask again in a minute"
            )
        sleep(0.02)
    try:
        yield
    finally:
        os.close(
            ours
        )  # Its file stays: who took it away would part those who wait for it from those who come later.


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


def save_sessions(desk: Desk, ref: SessionRef) -> list[str]:
    """Save a conversation that came to its end again for every gate that it waits at: now its last words are there."""
    from .sessions import save

    return [gate.id for gate in waiting(desk, ref.id) if save(desk, gate, ref).files]


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
    clean = redact(text.encode("utf-8", "replace").decode().replace("\0", ""), secret_values(env)).strip()
    return clean if len(clean) <= most else f"… {clean[-most:]}"


# An agent ended by saying that it needs a person, in its last words or in a signal file, or under `wrap`.
#
# What it said becomes a gate, once; its work stays as it is. A signal file that is written anew, and
# needs nobody any more, takes that gate back.


MOST_FILES, MOST_SIGNALS, MOST_BYTES, MOST_ROUNDS = 1000, 50, 1 << 20, 50
SAID = "said"
# In this folder our hooks note in which conversations of a wrapped command they run.
MARKS, TOKEN = "wrapped", r"[0-9a-f]{24}"


@dataclass(frozen=True)
class Signal:
    """A signal file that says that a person is needed. `agent` is its name without the extension.

    `writing` tells this writing of the file from every other, also of the same words.
    """

    agent: str
    path: str
    need: Need
    writing: str


def signals(desk: Desk, *, since: float = 0.0, before: Collection[str] = ()) -> list[Signal]:
    """The signals that were written since then, and are no writing that was there before."""
    found = []
    for place in signal_files(desk.repo.place / desk.settings.text("signals")):
        with suppress(OSError, ValueError, RecursionError):
            seen = place.stat()
            if seen.st_mtime < since or seen.st_size > MOST_BYTES:
                continue
            said = read_local(place)
            value = json.loads(said.decode("utf-8-sig"))
            need = read_need(value) if isinstance(value, dict) else None
            writing = writing_of(place, seen, said)
            if need is not None and writing not in before:
                path = str(place.relative_to(desk.repo.place))
                found.append(Signal(place.stem, path, need, writing))
    return sorted(found[:MOST_SIGNALS], key=lambda signal: signal.path)


def signal_files(folder: Path) -> list[Path]:
    """The newest first: whatever piles up there, what was written last is seen."""
    found: list[tuple[int, Path]] = []
    with suppress(OSError):
        for place in folder.glob("*.json"):
            with suppress(OSError):
                found.append((place.stat().st_mtime_ns, place))
    return [place for _, place in sorted(found, reverse=True)[:MOST_FILES]]


def writing_of(place: Path, seen: os.stat_result, said: bytes) -> str:
    """A file that is replaced is another one, and one that is written anew is of another time."""
    parts = (os.path.realpath(place), seen.st_ino, seen.st_mtime_ns, sha256(said).hexdigest())
    return sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:24]


def writings(desk: Desk, directory: Path | None = None) -> frozenset[str]:
    """The writings that are there now, in this working tree or in another one."""
    found = set()
    for place in signal_files((directory or desk.repo.place) / desk.settings.text("signals")):
        with suppress(OSError):
            seen = place.stat()
            if seen.st_size <= MOST_BYTES:
                found.add(writing_of(place, seen, read_local(place)))
    return frozenset(found)


def note_writings(desk: Desk, directory: Path) -> None:
    """Mark the signal files in a working tree as seen before an agent is started there: they are no request of that
    run.
    """
    here = writings(desk, directory)
    if here:
        mark_seen(desk, here)


def mark_seen(desk: Desk, found: Collection[str]) -> None:
    folder = desk.repo.state_dir / "signals"
    folder.mkdir(parents=True, exist_ok=True)
    for writing in found:
        (folder / writing).touch(mode=0o600)


def started(transcript: str) -> float:
    """Return when a conversation began, by its first dated record; a signal from before is not its own."""
    with suppress(OSError, ValueError, GateError), Path(transcript).open("rb") as source:
        for _ in range(50):
            record = json.loads(source.readline())
            if isinstance(record, dict) and isinstance(record.get("timestamp"), str):
                return times.parse_time(record["timestamp"])
    return 0.0


def ask_for(
    desk: Desk,
    need: Need | None,
    session: str,
    signalled: Sequence[Signal],
    agent: str | None = None,
    otherwise: str | None = None,
    asked: Sequence[Gate] = (),
) -> list[Gate]:
    """The gates for what agents need at the end of a run: those that were opened meanwhile (`asked`), then new ones.

    Last words are one request, and so is each writing of a signal file. One conversation waits at one gate: the others
    have no session, and are read. They are called `agent`, else as the signal says, else `otherwise`.
    """
    if asks_nobody(desk.settings.env):
        return list(asked)
    with turn(desk, session or "none"):
        found = [*asked, *(waiting(desk, session)[-1:] if session and not asked else ())]
        new = [signal for signal in signalled if not is_old(desk, signal)]
        if need is not None and not found:
            found.append(open_gate(desk, need, session, SAID, agent or otherwise))
        for signal in new:
            if any(says_the_same(gate, signal.need) for gate in found):
                mark_seen(desk, [signal.writing])
                continue
            main = not found
            name = (agent if main else None) or signal.agent
            key = f"signal:{signal.writing}"
            with nullcontext() if main else no_conversation(desk):
                found.append(
                    open_gate(desk, signal.need, session if main else "", signal.path, name, key=key)
                )
        return found


SIGNAL_FILE, SAYS = "signal-file", "its signal file now says "
SIGNALLED = ("status", "summary", "reason", "message")
MOST_WORDS = 500


def end_signalled(desk: Desk) -> list[Gate]:
    """The gates that are taken back because the signal file that they come from, here, was written anew and needs nobody.

    That answers no approval: only a question that an agent ended with has such a file.
    """
    ended = []
    for summary in summaries(desk):
        here = machine.find_presence(desk, summary.id) if summary.state == AWAITING else None
        folder = Path(here.directory) / desk.settings.text("signals") if here is not None else None
        if folder is None or not folder.is_dir():
            continue
        gate = desk.records.load(summary.id, summary.tip)
        said = rewritten(gate, folder)
        if said is not None:
            kept = {name: one_line(str(said[name]), MOST_WORDS) for name in SIGNALLED if said.get(name)}
            words = redact(SAYS + json.dumps(kept, ensure_ascii=False), secret_values(desk.settings.env))
            with suppress(GateError):  # an agent looks, whose gate it is not; or somebody answered just now
                ended.append(answering.withdraw(desk, gate, words, via=SIGNAL_FILE).gate)
    return ended


def rewritten(gate: Gate, folder: Path) -> Mapping[str, Any] | None:
    """Return the signal file of this gate's agent, if it was written after the question and needs nobody any more;
    None otherwise.
    """
    need = gate.opened.config.get("need")
    if not isinstance(need, Mapping):
        return None
    if any(type_of(question).approves for question in gate.opened.questions):
        return None
    source = str(need.get("source") or SAID)
    own = gate.opened.asked.agent.replace("/", "_") if source == SAID else Path(source).stem
    place = folder / f"{own}.json"
    with suppress(OSError, ValueError, RecursionError):
        seen = place.stat()
        # The question's moment is in whole seconds. What is its source said then that somebody is needed.
        if seen.st_size > MOST_BYTES or (
            source == SAID and seen.st_mtime < times.parse_time(gate.opened.asked.at) + 1
        ):
            return None
        said = json.loads(read_local(place).decode("utf-8-sig"))
        if isinstance(said, dict) and isinstance(said.get("status"), str) and read_need(said) is None:
            return said
    return None


def signalled_end(gate: Gate) -> Mapping[str, Any] | None:
    """Return the content of the signal file that withdrew this gate; None where no signal file did."""
    closing = gate.closing
    if gate.state != WITHDRAWN or closing is None or closing.via != SIGNAL_FILE:
        return None
    return last_object(closing.text)[0]


def says_the_same(gate: Gate, need: Need) -> bool:
    """Return whether a gate of this run asks what a signal file of the run says. Then the agent said it twice."""
    said = gate.opened.config.get("need")
    same = isinstance(said, Mapping) and said.get("source") == SAID and said.get("digest") == need.digest
    own = not isinstance(said, Mapping) or said.get("source") == SAID
    return same or (own and need.question in (question.prompt for question in gate.opened.questions))


def is_old(desk: Desk, signal: Signal) -> bool:
    """Return whether this version of a signal file was asked before, or existed before the agent began. An agent need
    not delete its signal.
    """
    seen = (desk.repo.state_dir / "signals" / signal.writing).exists()
    return seen or gate_of_key(desk, f"signal:{signal.writing}") is not None


@contextmanager
def no_conversation(desk: Desk) -> Iterator[None]:
    """While this lasts the desk is in no conversation: what is asked there is no part of the one that we run inside."""
    from ..agents import without_conversation

    settings = desk.settings
    desk.settings = replace(settings, env=without_conversation(settings.env))
    try:
        yield
    finally:
        desk.settings = settings


def open_gate(
    desk: Desk, need: Need, session: str, source: str, agent: str | None, *, key: str | None = None
) -> Gate:
    draft, enclosed = draft_of(need), dict[str, bytes]()
    for path in draft.attach:
        try:
            name, body = read_attachment(Path(path), desk.repo.place)
        except GateError as wrong:
            draft = replace(draft, context=f"{draft.context}\n\nNot attached: {wrong.message}".strip())
        else:
            enclosed[name] = body
    draft = replace(
        draft,
        context=context_from_agent(desk.settings.env, draft.context, 60_000),
        agent=agent,
        session=session or None,
        config={"need": {"source": source, "digest": need.digest}},
        key=key,
    )
    # Words may be said again in a conversation that went on. Without one, every run is a request of its own.
    for number in range(MOST_ROUNDS if session and key is None else 0):
        words = key_of_need(need, session, number)
        held = gate_of_key(desk, words)
        if held is None or held.state == AWAITING:
            return ask_anyhow(desk, replace(draft, key=words), need, enclosed)
    return ask_anyhow(desk, draft, need, enclosed)


def ask_anyhow(desk: Desk, draft: Draft, need: Need, enclosed: Mapping[str, bytes]) -> Gate:
    """Ask on the terms that the request names; where they cannot be had here, its words alone, with the reason."""
    try:
        return ask(desk, draft, AskWishes(), enclosed).gate
    except (Usage, NotAllowed) as refused:
        plain = plain_draft(need)
        words = f"{draft.context}\n\nAsked without its terms: {refused.message}".strip()
        kept = {name: getattr(draft, name) for name in ("key", "agent", "session", "config")}
        return ask(desk, replace(plain, context=words, **kept), AskWishes()).gate


def key_of_need(need: Need, session: str, number: int) -> str:
    """The session's id stays out of the record, and the key is in it."""
    return f"need:{sha256(f'{session}:{need.digest}:{number}'.encode('utf-8', 'replace')).hexdigest()[:24]}"


def ask_for_call(desk: Desk, call: Mapping[str, object], session: str) -> Gate | None:
    """The gate for a call that was deferred: the one that our hook opened, or, where another hook deferred it, a new one."""
    name, name_of_call, given = call.get("name"), call.get("id"), call.get("input")
    if not isinstance(name, str) or not isinstance(name_of_call, str) or not isinstance(given, dict):
        return None
    gate = gate_of_key(desk, key_of_call(name_of_call))
    if gate is not None:
        return gate
    draft = draft_of_call(desk, name, given)
    said = config_of(Call(name, name_of_call, digest_of_call(name, given)))
    return ask(
        desk, replace(draft, key=key_of_call(name_of_call), session=session or None, config=said), AskWishes()
    ).gate


def draft_of_call(desk: Desk, tool: str, given: Mapping[str, object]) -> Draft:
    from ..questions import calls

    if tool == calls.ASK_TOOL:
        return Draft(questions_of(given))
    exact = context_from_agent(desk.settings.env, calls.exact(tool, given), 60_000)
    question = calls.approval(tool, {"command": exact})
    return Draft((question,), title=f"Allow {tool}", context=calls.indented(exact))


@dataclass(frozen=True)
class BeforeRun:
    """Refs of gates and versions of signal files that existed before the command ran."""

    gates: frozenset[str]
    signals: frozenset[str]


def look_before_run(desk: Desk) -> BeforeRun:
    return BeforeRun(frozenset(desk.refs.under(OPEN)), writings(desk))


def read_end(argv: Sequence[str], out: bytes) -> EndedCommand:
    """Return the end of an agent's program, read in the program's own format; the output as text where the format is
    unknown.
    """
    from ..agents import AGENTS, read_end
    from ..agents.agent import EndedCommand
    from ..agents.claude import session_in

    name = program_name(argv)
    known = name if name in AGENTS and name != "command" else "claude"
    text = out.decode("utf-8", "replace")
    return read_end(argv, out) or EndedCommand(text, session_in(argv), known)


def environment_of(
    desk: Desk, argv: Sequence[str], settings: Sequence[tuple[str, str]] = (), token: str = ""
) -> dict[str, str]:
    """Return the environment for the command. It marks the command and its children as an agent's, so that they answer
    no gate. `settings` are git's; `token` names the file in which our hooks note that they run.
    """
    from ..store.work.restore import as_environment

    name, env = program_name(argv), desk.settings.env
    mark = name if can_start(desk, name) else f"wrapped-{name}"
    return {
        "GITGATE_AGENT": mark,
        **env,
        "GITGATE_WRAPPED": started_with(argv, token),
        **(as_environment(settings, env) if settings else {}),
    }


def started_with(argv: Sequence[str], token: str = "") -> str:
    """The conversation and the flags of the command, for the question that it may ask: nobody else keeps them everywhere."""
    from ..agents import AGENTS
    from ..agents.claude import session_in
    from ..agents.claude.command import own_words

    program, words = AGENTS.get(program_name(argv)), own_words(argv)
    flags = program.lasting(words) if program is not None else ()
    said = {"session": session_in(words), "flags": flags}
    return json.dumps({**said, "mark": token} if token else said)


def note_session(desk: Desk, session: str) -> None:
    """Leave the mark that our hooks run in this conversation, for the `git gate wrap` that started it."""
    with contextlib.suppress(ValueError, RecursionError, LookupError, TypeError, OSError):
        token = json.loads(desk.settings.env.get("GITGATE_WRAPPED", ""))["mark"]
        if re.fullmatch(TOKEN, token):
            with (private_folder(desk.repo.state_dir / MARKS) / token).open("a", encoding="utf-8") as out:
                out.write(f"{session_word(session)}\n")


def session_word(session: str) -> str:
    return session if is_session(session) else "unnamed"


def program_name(argv: Sequence[str]) -> str:
    """The name of the program that a command line starts: Claude Code's also behind what starts it, such as `npx`."""
    from ..agents.claude.command import is_claude

    return "claude" if is_claude(argv) else Path(argv[0]).name


def can_start(desk: Desk, name: str) -> bool:
    """Return whether this machine knows how to start that program again, and the program has no conversation to be
    identified by.
    """
    return not starts_by_itself(name) and is_agent(desk, name)


def gates_for_command(desk: Desk, before: BeforeRun, ended: EndedCommand, asker: WrappedAsker) -> list[Gate]:
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
    """Asker behind `wrap`: the agent's name as it was given, else the program's name and the number of its process."""

    program: str
    pid: int
    agent: str | None = None
    known: bool = False
    started: str = ""

    @property
    def default(self) -> str:
        return self.program if self.known else f"agent-{self.program}-{self.pid}"


def asker_of(desk: Desk, argv: Sequence[str], pid: int, agent: str | None) -> WrappedAsker:
    name = program_name(argv)
    return WrappedAsker(name, pid, agent, can_start(desk, name), started_with(argv))


def is_session(text: str) -> bool:
    from ..agents.agent import SESSION_ID

    return re.fullmatch(SESSION_ID, text) is not None


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
        present = machine.find_presence(desk, gate) if ref not in before.gates else None
        if present is None or Path(present.directory) != desk.repo.place:
            continue
        loaded = desk.records.load(gate, tip)
        if loaded.state == AWAITING and loaded.opened.delivery != "wait":
            asked.append(loaded)
    return sorted(asked, key=lambda gate: gate.opened.asked.at)
