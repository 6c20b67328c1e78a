"""Context: the desk that every verb works at. Repository, settings, person and clock are handed in, once; and whether the person is an
agent, by the processes above this one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import config, text
from ..config import Settings
from ..document import dataclass, field, replace
from ..errors import Failure, NotAllowed, Usage
from ..store.git import Repository, begin_config, begin_discovery, git_at, parse_config, repository_told
from ..store.git.refs import Refs

if TYPE_CHECKING:
    from ..store.git import Piped, Started
    from ..store.index import Index
    from ..store.records import Records

# The desk that every verb works at. Repository, settings, person and clock are handed in, once.


@dataclass(frozen=False)
class Desk:
    """One repository, one person, one clock."""

    repo: Repository
    settings: Settings
    refs: Refs
    clock: Callable[[], float]
    bulk: bool
    entropy: Callable[[int], str] = lambda size: os.urandom(size).hex()
    progress: Callable[[str], None] = lambda _words: None
    remind: Callable[[str], None] = lambda _words: None
    """What somebody who waits for long is told now and then, also where nobody watches a terminal."""
    judged: str = ""
    """The moment that deadlines are judged by, where that is not now: replies that were written before it may not be heard yet."""
    heard: float = 0.0
    """The shared repository has answered this command, and may be asked more: so many seconds it has for that."""
    hosts: dict[str, str] = field(default_factory=dict, repr=False)
    """What ssh means by names of hosts. To look one up may run what the person's own configuration of ssh names: once."""
    reader: Piped | None = field(default=None, repr=False)
    told: list[str] = field(default_factory=list, repr=False)
    """What was not as it should be, and is no reason to fail: for whoever reads along."""
    _above: list[Process] = field(default_factory=list, repr=False)
    _records: Records | None = field(default=None, repr=False)
    _index: Index | None = field(default=None, repr=False)

    @property
    def records(self) -> Records:
        """Imported at first need: a list needs none of them."""
        if self._records is None:
            from ..store.git.objects import open_objects
            from ..store.records import Records

            reader, self.reader = self.reader, None
            self._records = Records(self.repo, open_objects(self.repo, bulk=self.bulk, reader=reader))
        return self._records

    @property
    def index(self) -> Index:
        """Imported at first need: it costs more than it saves where there are few gates."""
        if self._index is None:
            from ..store.index import Index

            self._index = Index(self.repo.index, self.repo.zero)
        return self._index

    def processes_above(self) -> list[Process]:
        """Those that started this one, the nearest first: looked at once, and again where the nearest is gone."""
        first = os.getppid()
        if not self._above or self._above[0].pid != first:
            self._above = list(above(first))
        return self._above

    def work_in_bulk(self) -> None:
        """There is more to read than it costs to import pygit2."""
        self.close()
        self.bulk = True

    def leave_to_other_process(self) -> None:
        """Drop the object readers, which belong to the process that made this desk; this process begins its own."""
        self._records, self.reader = None, None

    def close(self) -> None:
        """End what reads objects, and write what was learnt of many; whoever reads more begins anew."""
        if self._records is not None:
            self._records.objects.close()
            self._records = None
        if self._index is not None and (trouble := self._index.close()):
            self.told.append(trouble)

    @property
    def now(self) -> str:
        return text.format_time(self.clock())

    @property
    def at(self) -> int:
        return int(self.clock())

    @property
    def network_timeout(self) -> int:
        """Seconds that a remote has for its answer."""
        return self.settings.seconds("networkTimeout") or 60

    def person(self) -> str:
        """Return the person at this machine; refuse where git knows no name, because an answer needs one."""
        who = self.settings.identity()
        if not who:
            raise Failure(
                "git does not know who you are, and an answer needs a name",
                hint=INTRODUCTION,
            )
        return who

    def refuse_agents(self, verb: str) -> None:
        """An agent never answers, stops or joins a gate: its shell has the person's git identity, not their judgement."""
        require_person(
            f"`git gate {verb}`",
            self.settings.env,
            hint="leave it to the person; an agent asks with: git gate ask, and reads with: git gate check ID",
        )

    def agent_here(self) -> str:
        """Return why this is no person's process; empty when nothing speaks against a person."""
        marker = self.agents_mark()
        return f"{marker} is set" if marker else agent_above()

    def agents_mark(self) -> str:
        """The variable that an agent's program set in our environment, if one did."""
        from ..agents import mark_in

        return mark_in(self.settings.env)

    def tracked(self, remote: str, gate: str) -> str | None:
        from ..store.remote import tracking_base

        return self.refs.get(f"{tracking_base(remote)}open/{gate}")


INTRODUCTION = 'git config --global user.name "Your Name" && git config --global user.email you@example.com'


def open_desk(
    start: Path,
    env: Mapping[str, str],
    *,
    flags: Mapping[str, str] | None = None,
    bulk: bool = False,
    clock: Callable[[], float] = time.time,
    progress: Callable[[str], None] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Desk:
    """`meanwhile` is done while git says where the repository is."""
    if config.may_hide_git(env):
        from ..agents import seen_by_git

        env = seen_by_git(env)
    git = git_at(start, env)
    begun = [begin_config(git)]
    try:
        begun.append(begin_discovery(git))  # Two questions to git, answered at the same time.
        if meanwhile is not None:
            meanwhile()
        told, found = (one.result() for one in begun)
    finally:
        for one in begun:
            one.close()
    repo = replace(repository_told(found, start, env), configured=parse_config(told.out))
    known = last_values(repo.configured)
    desk = Desk(repo, config.load_settings(env, known, repo.top, flags), Refs(repo), clock, bulk)
    if progress is not None:
        desk.progress = progress
    return desk


def presence_file(desk: Desk) -> Path:
    """Return the file of notes on who asked from this clone; `machine` reads and writes it."""
    return desk.repo.state_dir / "asked.jsonl"


def earlier_presences(desk: Desk) -> Path:
    """Return the folder in which earlier versions kept a file for each gate."""
    return desk.repo.state_dir / "asked"


def has_asked(desk: Desk) -> bool:
    """Return whether anybody has asked from this clone."""
    return presence_file(desk).exists() or earlier_presences(desk).is_dir()


def machine_settings(env: Mapping[str, str]) -> Settings:
    """Return the settings of this machine and its person, outside of any repository."""
    return config.load_settings(env, read_git_config(begin_config(git_at(Path("/"), env))), None)


def read_git_config(begun: Started) -> dict[str, str]:
    """Every setting of git's, the last one winning, as git itself reads them."""
    return last_values(parse_config(begun.result().out))


def last_values(configured: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {key: values[-1] for key, values in configured.items()}


def check_choice(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise Usage(f"{name} is {value!r}; expected one of {', '.join(allowed)}")
    return value


# The processes that started this one, and whether an agent is among them. What it clears from its
# children's environment is still in its own, and its name and its command line stay: where the system
# shows them (`/proc`), they are looked at.
#
# Where the system should show them and does not, nobody can say that a person started this process: it
# counts as an agent's. That is so where `/proc` is empty or another PID namespace's, or lacks a process
# above us that it ought to show.
#
# Best effort: a process that cuts itself off from its parents, a sandbox with processes of its own and
# without a marker, or plain git, is not seen here. What stops those are signed answers and the server's rules.


ALL = Path("/proc")
PROC: Path | None = ALL if sys.platform == "linux" else None  # None where the system shows no processes so
MOST_ABOVE = 256
LONGEST_COMMAND = 65_536
HIDING = ("2", "invisible", "4", "ptraceable")  # values of `hidepid`
LOOKS = 3  # a process may end while we look; then its parent's number changes, and the next look is whole


@dataclass(frozen=True)
class Process:
    """One of the processes above: its number, what the system calls it, and its command line."""

    pid: int
    called: str
    words: tuple[str, ...]
    place: Path
    parent: int = 0

    @property
    def agent(self) -> str:
        """The name of the agent's program that it is; empty when it is none."""
        from ..agents import program_of_process

        found = program_of_process(self.called, self.words)
        return found.name if found else ""

    @property
    def sign(self) -> str:
        """Evidence that the process is an agent's: a mark in its environment, or its program; empty without any."""
        if mark := marker_of(self.place):
            return f"{mark} is set in process {self.pid}, {self.called}"
        return f"process {self.pid} is {agent}" if (agent := self.agent) else ""


@dataclass(frozen=True)
class Look:
    """Result of a look at the processes above: what tells of an agent, or which process could not be seen."""

    agent: str = ""
    gap: str = ""


def above(pid: int | None = None, proc: Path | None = None) -> Iterator[Process]:
    """Yield this process and those above it, the nearest first, as far as they can be seen."""
    place = PROC if proc is None else proc
    here = os.getpid() if pid is None else pid
    for _ in range(MOST_ABOVE):
        process = read_process(place, here) if place is not None and here > 0 else None
        if process is None:
            return
        yield process
        here = process.parent


def read_process(proc: Path, pid: int) -> Process | None:
    """Read one process; None where it is not shown, or another one in its place."""
    place = proc / str(pid)
    try:
        head, _, tail = (place / "stat").read_text("utf-8", "replace").rpartition(")")
    except OSError:
        return None
    number, _, called = head.partition(" (")
    fields = tail.split()
    if number != str(pid) or len(fields) < 2 or not fields[1].isdecimal():
        return None
    return Process(pid, called, command_line(place), place, int(fields[1]))


def look_above(pid: int | None = None, proc: Path | None = None) -> Look:
    """Look for an agent among this process and those above it, up to the first of this PID namespace."""
    place = PROC if proc is None else proc
    here = os.getpid() if pid is None else pid
    if place is None:
        return Look()
    gap = ""
    for _ in range(LOOKS):
        seen = list(above(here, place))
        if sign := next((sign for process in seen if (sign := process.sign)), ""):
            return Look(agent=sign)
        gap = gap_above(here, seen, place)
        if not gap:
            return Look()
    return Look(gap=gap)


def gap_above(pid: int, seen: Sequence[Process], proc: Path) -> str:
    """Say which process `/proc` ought to show and does not; empty where it shows all that it has to."""
    try:
        own = (proc / "self").readlink().name
    except OSError:
        own = ""
    if not seen or own != str(pid):
        return f"{proc} does not show this very process, {pid}"
    parent = seen[-1].parent
    if len(seen) >= MOST_ABOVE:
        return f"more than {MOST_ABOVE} processes stand above it"
    # No number: it was started from outside of this PID namespace, as by `docker exec`.
    if parent == 0 or (is_of_others(parent) and hides_others(proc)):
        return ""
    return f"{proc} does not show process {parent}, which stands above it"


def is_of_others(pid: int) -> bool:
    """Return whether a process exists and belongs to another user: the system does not let us signal it."""
    try:
        os.kill(pid, 0)  # sends nothing
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def hides_others(proc: Path) -> bool:
    """Return whether `/proc` was mounted to show each user only their own processes (`hidepid`)."""
    try:
        mounts = (proc / "self" / "mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    # Of several at one place the last one shows. Behind the dash: the kind, its source, the options.
    fitting = [line.split() for line in mounts if line.split()[4:5] == [str(proc)]]
    if not fitting or "-" not in fitting[-1]:
        return False
    kind, _, options = (*fitting[-1][fitting[-1].index("-") + 1 :], "", "", "")[:3]
    said = next((word.partition("=")[2] for word in options.split(",") if word.startswith("hidepid=")), "")
    return kind == "proc" and said in HIDING


def agent_above(pid: int | None = None, proc: Path | None = None) -> str:
    """Return why a person is not taken to have started this process; empty when nothing speaks against one."""
    look = look_above(pid, proc)
    return look.agent or look.gap


def require_person(act: str, env: Mapping[str, str], *, hint: str) -> None:
    """Refuse `act` where an agent started this process, or where nobody can see whether one did."""
    from ..agents import mark_in

    marker = mark_in(env)
    look = Look(agent=f"{marker} is set") if marker else look_above()
    if look.agent:
        raise NotAllowed(f"{act} is for people, and this is an agent's process ({look.agent})", hint=hint)
    if look.gap:
        raise NotAllowed(
            f"{act} is for people, and whether an agent started this process cannot be seen: {look.gap}",
            hint="type it where /proc shows them: outside of this sandbox, or after: mount -t proc proc /proc",
        )


def is_agent(pid: int) -> bool:
    """Return whether the process of that number is an agent's program."""
    found = next(above(pid, ALL), None)
    return found is not None and bool(found.agent)


def command_line(place: Path) -> tuple[str, ...]:
    try:
        with (place / "cmdline").open("rb") as source:
            said = source.read(LONGEST_COMMAND)
    except OSError:
        return ()
    return tuple(word.decode("utf-8", "replace") for word in said.split(b"\0")[:-1])


def marker_of(place: Path) -> str:
    """The mark in the environment that a process was started with, if it has one and may be read."""
    from ..agents import mark_in

    try:
        said = (place / "environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    pairs = (entry.partition("=") for entry in said.split("\0"))
    return mark_in({name: value for name, _, value in pairs})
