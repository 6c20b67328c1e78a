"""Resumption: a person opens the conversation of an agent that waits: who may, where, and what is kept of it afterwards.

Nothing is decided here and nothing claimed: while they talk, and after that, the gate waits for its answer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import resumption as place
from ..acts import sessions
from ..acts.answering import Deliver
from ..context import Desk, is_agent, machine
from ..context.targets import may_publish_work
from ..errors import Conflict, Failure, GateError
from ..exchange.syncing import Published
from ..gates import agency
from ..gates.recording import reload
from ..gates.work import bring_work, worktrees
from ..model import ANSWERED, AWAITING, split_person
from ..model.gate import Answer, Gate, Question, Remark, SavedSession, SessionRef
from ..questions.answers import value_words
from ..store import locked, private_folder, read_local
from ..store.work import commits
from ..store.work.aside import is_standing
from ..store.work.restore import matches, open_worktree, remove_worktree
from ..text import one_line
from . import Situation

if TYPE_CHECKING:
    from ..agents.agent import Launch


@dataclass(frozen=True)
class JoinedConversation:
    """A conversation and where it is opened. `own`: it is the agent's that asked, which goes on with it when it is resumed.

    `before` are the ids of what was said in it earlier, `signals` digests of what signal files said then, `spent` the seconds that it had lasted, `question` the one that it is
    to decide, where there is just one.
    """

    gate: Gate
    saved: SavedSession
    place: Situation
    launch: Launch
    own: bool = True
    new: bool = False
    question: Question | None = None
    before: frozenset[str] = frozenset()
    signals: frozenset[str] = frozenset()
    spent: int = 0

    @property
    def ref(self) -> SessionRef:
        return SessionRef(self.saved.agent, self.saved.id, str(self.launch.cwd))


@contextlib.contextmanager
def alone(desk: Desk, gate: Gate) -> Iterator[None]:
    """Lock this clone to one conversation at a time for each person, until this process ends, however it ends."""
    lock = desk.repo.state_dir / f"joined-{os.getuid()}.lock"
    private_folder(lock.parent)
    with locked(lock) as ours:
        if not ours:
            other, _, pid = read_local(lock).decode("ascii", "replace").partition(" ")
            raise Conflict(
                f"you are in a session already: gate {other} (process {pid}); one at a time in a clone",
                hint=f"end that one first, or answer without a session: git gate respond {gate.id[:6]}",
            )
        lock.write_text(f"{gate.id} {os.getpid()}", "ascii")
        yield


def who_spoke(gate: Gate) -> list[str]:
    """Return who talked in the gate's conversation before, and what each decided, for whoever goes on with it."""
    found = []
    for entry in gate.history:
        event = entry.event
        if isinstance(event, Answer) and event.session is not None and event.by:
            decided = one_line(", ".join(value_words(value) for value in event.values.values()), 200)
            found.append(f"{name_of(event.by)} talked in it before, and answered: {decided}")
        elif (
            isinstance(event, Remark) and event.session is not None and event.by and entry.name == "commented"
        ):
            found.append(f"{name_of(event.by)} talked in it before, and has not decided")
    return found


def name_of(person: str) -> str:
    return one_line(split_person(person) or "somebody", 60)


def otherwise(gate: Gate) -> str:
    """Return a hint for a gate whose conversation cannot be opened: look at the work, or answer."""
    short = gate.id[:6]
    return f"look at the work: git gate worktree {short}   answer: git gate respond {short}"


def find_session(desk: Desk, gate: Gate) -> SavedSession:
    """Return the conversation, if it can be opened on this machine."""
    from ..agents.agent import Start

    session = gate.opened.session
    if session is None:
        raise Failure(
            f"gate {gate.id} was asked without a session: there is none to join", hint=otherwise(gate)
        )
    settings = agency.agent_settings(desk, session.agent)
    agency.adapter(session.agent).join(
        Start(gate.id, desk.repo.place, desk.repo.state_dir, settings=settings)
    )
    reason = agency.cannot_join(desk, session.agent)
    if reason:
        raise Failure(
            f"the session of gate {gate.id} cannot be opened on this machine: {reason}", hint=otherwise(gate)
        )
    here = machine.find_presence(desk, gate.id)
    if here is not None and here.alive and is_agent(here.pid):
        raise Conflict(
            f"the agent of gate {gate.id} still runs (process {here.pid}); a second copy would undo what the first does",
            hint=f"talk to it there; {otherwise(gate)}",
        )
    try:
        return sessions.bring(desk, gate)
    except Failure as absent:
        absent.hint = f"{absent.hint}\n{otherwise(gate)}"
        raise


def find_place(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation:
    """Return the directory that the agent left, else that of an earlier conversation, else a new worktree of the work."""
    if gate.opened.work.commit is None:
        return without_work(desk, gate)
    return (
        place.same_directory(desk, gate, held)
        or joined_before(desk, gate, held)
        or new_worktree(desk, gate, held)
    )


def without_work(desk: Desk, gate: Gate) -> Situation:
    """Return a place for a question that names no work: the agent's own working tree if it is here, else this one."""
    here = place.asked_here(desk, gate)
    there = place.repository_of(desk, Path(here.directory)) if here is not None else None
    return Situation((there or desk.repo).place, False, None, "", trusted=True)


def place_apart(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation:
    """Return a worktree of the work for a conversation that is not the agent's, whoever works in the agent's directory."""
    if gate.opened.work.commit is None:
        return without_work(desk, gate)
    return joined_before(desk, gate, held) or new_worktree(desk, gate, held)


def joined_before(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation | None:
    directory = worktrees(desk) / join_name(gate)
    if place.repository_of(desk, directory) is None or not place.lock(desk, directory, held):
        return None
    return situation(desk, gate, directory)


def new_worktree(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation:
    """Make a worktree of the work on no branch, so that it blocks nobody's branch while the person thinks."""
    commit, work = bring_work(desk, gate), gate.opened.work
    directory = place.free_directory(desk, join_name(gate))
    private_folder(desk.repo.state_dir)
    directory.parent.mkdir(parents=True, exist_ok=True)
    found = situation(desk, gate, directory)
    open_worktree(
        desk.repo,
        base=work.base,
        staged=work.staged or commit,
        work=commit,
        directory=directory,
        branch=None,
        fallback_branch=f"gate/{gate.id}",
        detach=True,
        trusted=found.trusted,
    )
    place.lock(desk, directory, held)
    return found


def join_name(gate: Gate) -> str:
    return f"{gate.id}-join"


def situation(desk: Desk, gate: Gate, directory: Path) -> Situation:
    trusted = place.is_trusted(desk, gate)
    return Situation(directory, True, None, gate.opened.work.base or "", place.tips(desk), trusted)


def keep_conversation(desk: Desk, talk: JoinedConversation) -> bool:
    """Save the conversation as it is now with the gate, while that waits; False where nothing of it could be read.

    Another conversation never takes the place of the one in which the agent asked: that is what it is resumed with.
    """
    saved = sessions.collect(desk, talk.ref)
    if not saved.files or (gate := reload(desk, talk.gate.id)).state != AWAITING:
        return False
    if talk.own or gate.opened.session is None:
        sessions.keep_session(desk, gate, saved)
    return True


def go_on_from(talk: JoinedConversation, deliver: Deliver) -> Deliver:
    """Deliver the answer, so that the agent goes on where they talked if it is resumed on this machine.

    The directory that it left is found again by itself, and what was edited there told, unless it was committed there.
    """

    def go(desk: Desk, gate: Gate, *, push: bool | None = None, work: bool = False) -> Published:
        found, asked = talk.place, gate.opened.work
        if gate.state == ANSWERED and asked.commit is not None:
            put_away(desk, talk)
            there = place.repository_of(desk, found.directory)
            left = place.left_on(desk, gate)
            if (
                there is not None
                and talk.own
                and (found.ours or not place.stands_as_before(there, asked, left))
            ):
                place.write_note(desk, gate, found)
        # Others take the conversation up by this very answer: whoever acts on it has to find it.
        return deliver(desk, gate, push=push, work=work or (talk.own and may_publish_work(desk)))

    return go


def put_away(desk: Desk, talk: JoinedConversation) -> str:
    """Remove a worktree in which nothing changed; one with changes stays for the next conversation, and is named."""
    found, work = talk.place, talk.gate.opened.work
    if not found.ours or work.commit is None or place.repository_of(desk, found.directory) is None:
        return ""
    there = place.apart(desk, found)
    same = (
        place.head_of(there) == work.base
        and commits.head_branch(there.git) is None
        and not is_standing(there)
    )
    signals = desk.settings.text("signals")
    if same and matches(there, work.commit, work.staged or work.commit, signals=signals):
        with contextlib.suppress(GateError):
            remove_worktree(desk.repo, found.directory, force=True)
            return ""
    return f"what was changed stays in {found.directory}; to go on there: git gate join {talk.gate.id[:6]}"


# They are for the thread that waits for the program; what is started here has them blocked too.
OF_THE_PROGRAM = ("SIGALRM", "SIGINT", "SIGQUIT", "SIGTSTP", "SIGTERM", "SIGHUP")
JOIN_TIMEOUT = 30.0


@contextlib.contextmanager
def saving(open_desk: Callable[[], Desk], talk: JoinedConversation, every: int) -> Iterator[None]:
    """Save `talk` each `every` seconds; 0 is never."""
    if every <= 0:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=save_until, args=(over, open_desk, talk, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(JOIN_TIMEOUT)


def save_until(
    over: threading.Event, open_desk: Callable[[], Desk], talk: JoinedConversation, every: float
) -> None:
    if hasattr(signal, "pthread_sigmask"):
        numbers = {getattr(signal, name) for name in OF_THE_PROGRAM if hasattr(signal, name)}
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    while not over.wait(every):
        # What cannot be saved now is saved the next time, or at the end, where it is told.
        with contextlib.suppress(GateError, OSError):
            desk = open_desk()
            try:
                keep_conversation(desk, talk)
            finally:
                desk.close()
