"""Acts: who asks: the agent's name, its process, and the conversation that the question belongs to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import context
from ..context import Desk, Process, above
from ..document import dataclass
from ..gates.work import followed, served_in, stands_here
from ..model import is_id, is_robot, login_of
from ..model.gate import Gate, SavedSession
from ..questions.drafts import Draft
from ..store.git.refs import OPEN, RUNS

if TYPE_CHECKING:
    from ..agents.agent import Agent

# What a flow tells its agents: what they ask is asked in that run, by that step of it.
# And on what terms, as JSON.
RUN, STEP, TERMS = "GITGATE_RUN", "GITGATE_STEP", "GITGATE_TERMS"
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash"))
MESSENGERS = frozenset(("git", "git-gate", "timeout", "env", "ask-human.sh"))
WITH_VALUE = frozenset(("-o", "+o", "-O", "+O", "--rcfile", "--init-file"))
MOST_SCRIPT = 40


def terms_of_step(env: Mapping[str, str]) -> Mapping[str, Any]:
    """On what terms a step of a flow asks, where this is the process of its agent."""
    try:
        said = json.loads(env.get(TERMS, "")) if env.get(RUN) and env.get(STEP) else {}
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def asks_nobody(env: Mapping[str, str]) -> bool:
    """Return whether the flow receives its agent's questions itself, instead of a person."""
    return terms_of_step(env).get("human") is False


def session_of_draft(desk: Desk, draft: Draft) -> SavedSession | None:
    """The conversation that the question belongs to: given, or found by itself inside an agent."""
    from ..gates.agency import current_session

    found = current_session(desk, draft.agent, draft.session)
    if found is None:
        return None
    from .sessions import collect

    return collect(desk, found)


def remember_asker(desk: Desk, gate: Gate, saved: SavedSession | None, branch: str | None = None) -> None:
    """Note on this machine alone where and by which process the gate was asked. A resume needs it, and it tells the
    asker from other agents.
    """
    from ..context.machine import Presence, note_presence

    note_presence(
        desk,
        Presence(
            gate=gate.id,
            agent=gate.opened.asked.agent,
            program=saved.agent if saved else "",
            session=saved.id if saved else "",
            directory=str(desk.repo.place),
            work=gate.opened.work.commit or "",
            pid=asking_pid(desk),
            started="",
            boot="",
            at=gate.opened.asked.at,
            branch=branch or "",
            trusted=all(stand.trusted for stand in stands_here(desk)) and served_in(desk.repo) is None,
            flags=flags_of(desk, saved) if saved else (),
        ),
    )


def flags_of(desk: Desk, saved: SavedSession) -> tuple[str, ...]:
    """Return the flags that the asker's program was started with and that a later run of its conversation needs.

    `wrap` knows them for the program that it started. Otherwise they are read from the nearest process above that
    is this program: from its words, or from the line that `ps` shows where the system has no `/proc`.
    """
    from ..gates.agency import adapter

    program = adapter(saved.agent)
    wrapped = wrapped_flags(desk, saved)
    if wrapped is not None:
        return wrapped
    words = next((one.words for one in above() if one.agent == saved.agent), ())
    if words:
        return program.lasting(words)
    return () if PROC.is_dir() else program.lasting_in_line(line_above(program), saved)


PROC = Path("/proc/self")
MOST_ABOVE = 64


def wrapped_flags(desk: Desk, saved: SavedSession) -> tuple[str, ...] | None:
    """Those that `wrap` handed on, where this is the conversation that it started."""
    try:
        said = json.loads(desk.settings.env.get("GITGATE_WRAPPED", ""))
        return tuple(map(str, said["flags"])) if said["session"] == saved.id else None
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


def line_above(program: Agent) -> str:
    """The line of the nearest process above us that is this program."""
    from ..agents.process import shown_by_ps

    here = os.getpid()
    for _ in range(MOST_ABOVE):
        here, line = shown_by_ps(here)
        words = line.split()
        if words and program.is_process(Path(words[0]).name, words):
            return line
        if here <= 1:
            break
    return ""


@dataclass(frozen=True)
class Requester:
    """Person whose agent asks: `by` as git knows them, and the accounts of a forge that started the job, the person's
    own account first.
    """

    by: str = ""
    logins: tuple[str, ...] = ()


def requester(desk: Desk) -> Requester:
    """Return the person who started the job, else the person at this machine. A question that follows another one is
    asked for the person of that one, and a run's question for the person who began the run. Whoever answered it or
    woke it only let the agent go on.
    """
    here, started = desk.settings.identity(), started_by(desk)
    before = followed(desk)
    first = Requester(before.opened.asked.by, before.opened.asked.logins) if before else began_run(desk)
    if first is not None:
        nobody = not here or is_robot(here) or started  # what commits there is no person
        return Requester((first.by if nobody else "") or here, first.logins)
    return Requester(started[0], logins_of(started)) if started else Requester(here)


def began_run(desk: Desk) -> Requester | None:
    """Return the person who began the run whose step asks, where the run began elsewhere; None otherwise."""
    from ..agents.flow import RUN

    run = desk.settings.env.get(RUN, "")
    tip = desk.refs.get(RUNS + run) if is_id(run) else None
    if tip is None:
        return None
    from ..gates.agency import began_here
    from ..store.records.journal import Journals

    if began_here(desk, run):
        return None
    started = Journals(desk.repo, desk.records).load(run, tip).started
    logins = started.said.get("logins")
    return Requester(started.text("by"), tuple(map(str, logins)) if isinstance(logins, list) else ())


def started_by(desk: Desk) -> tuple[str, ...]:
    """Return the accounts that started the job, as `git gate github prepare` wrote them down, in git's own form of a
    person.
    """
    return tuple(part.strip() for part in desk.settings.text("requester").split(",") if login_of(part))


def logins_of(people: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(person.partition(" <")[0] for person in people))


def asked_for_others(desk: Desk, remote: str, logins: Sequence[str]) -> list[str]:
    """The questions of this clone that the remote does not have, and that do not name all who started what asked them.

    An agent can set up its own git as it likes, and name whom it likes.
    """
    wanted, found = {login.casefold() for login in logins}, []
    for ref, tip in desk.refs.under(OPEN).items():
        gate = ref.removeprefix(OPEN)
        if desk.tracked(remote, gate) is None:
            said = desk.records.load(gate, tip).opened.asked.logins
            if not wanted <= {login.casefold() for login in said}:
                found.append(gate)
    return found


def asking_pid(desk: Desk) -> int:
    return asking_program(desk)[1]


def agent_name(desk: Desk, draft: Draft, session_id: str) -> str:
    if draft.agent:
        return draft.agent
    return named_by(desk, session_id) if session_id else agent_here(desk)


def agent_here(desk: Desk) -> str:
    """The name of whoever asks from this very process, unless it says another: by its conversation, else by its program."""
    from ..agents import detect

    session = detect(desk.settings.env)
    if session is not None:
        return named_by(desk, session.id)
    program, pid = asking_program(desk)
    return f"agent-{program}-{pid}{elsewhere(desk, pid)}"


def elsewhere(desk: Desk, pid: int) -> str:
    """Return a suffix that names the working tree where the process `pid` runs outside of it; empty where it runs
    inside. One program may drive an agent in each of several working trees.
    """
    if context.PROC is None:
        return ""
    try:
        place = (context.PROC / str(pid) / "cwd").readlink()
    except OSError:
        return ""
    return (
        "" if place.is_relative_to(desk.repo.place) else f"-{plain_program(readable(desk.repo.place.name))}"
    )


def named_by(desk: Desk, session_id: str) -> str:
    return f"{readable(desk.repo.place.name)}/{session_id[:4]}"


def asking_program(desk: Desk) -> tuple[str, int]:
    """The program that called us, and its process: the agent's, as its marks and the processes above us tell.

    Where there is no agent, the first one that is no messenger: git, and a shell that runs one line for somebody, only pass
    things on. A shell that runs a script, or that somebody types into, asks for itself.
    """
    from ..agents import program_in

    env, first, own = desk.settings.env, os.getppid(), program_in(desk.settings.env)
    said = (
        next((int(env[name]) for name in own.process_ids if env.get(name, "").isdecimal()), 0) if own else 0
    )
    if own and said:
        return own.name, said
    caller: tuple[str, int] | None = None
    for process in desk.processes_above():
        if agent := process.agent:
            return agent, process.pid
        if caller is None and (name := asks_itself(process)):
            caller = name, process.pid
    name, pid = caller or ("process", first)
    return (own.name if own else name), pid


def asks_itself(process: Process) -> str:
    """Return the name of a process as an asker; empty for a process that only passes on another one's question."""
    called = plain_program(process.called)
    if called in SHELLS:
        script = plain_program(script_of(process.words))[:MOST_SCRIPT] if process.words else ""
        return "" if script in MESSENGERS else script
    return "" if called in MESSENGERS else called or "process"


def script_of(words: Sequence[str]) -> str:
    """The script that a shell runs, or the shell where somebody types into it; empty where it runs one line for somebody."""
    shell, *rest = words
    own, skip = Path(shell).name.lstrip("-"), False
    for word in rest:
        if skip or word in WITH_VALUE:
            skip = not skip
        elif word.startswith(("-", "+")) and word != "-":
            if "c" in word[1:] and not word.startswith("--"):
                return ""
        else:
            # One that is read from a pipe, as of `bash <(…)`, has a number for its name.
            return own if word == "-" or word.startswith(("/dev/fd/", "/proc/")) else Path(word).name
    return own


def plain_program(program: str) -> str:
    """A program's name as a part of an agent's. The system's own may be anything: `memfd:x` is a program without a file."""
    kept = "".join(c if c.isalnum() or c in "._+-" else " " for c in program.rpartition(":")[2])
    return "-".join(kept.split())


def readable(name: str) -> str:
    """A path as a document can hold it: not every name is UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")
